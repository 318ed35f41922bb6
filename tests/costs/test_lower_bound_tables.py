"""Lower bounds: no micro-batch takes or holds less per sequence than its family's table says."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nest_core.scenario import load_scenario

SCENARIOS = ("llama3-70b-1024-h100", "mixtral-8x7b-256-tpuv4like", "bert-large-64-v100")
DEGREES = ((1, False, 1), (2, True, 1), (4, False, 2), (8, True, 2))


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp8"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_micro_batch_is_under_its_lower_bound(name, precision):
    scenario = load_scenario(name)
    if precision not in scenario.accelerator.precisions:
        pytest.skip(f"{scenario.accelerator.name} does not compute in {precision}")
    problem = load_scenario(name, [f'workload.precision="{precision}"']).problem()
    experts = (1, 2) if scenario.model.experts > 1 else (1,)
    for tp, sp, cp in DEGREES:
        for ep in experts:
            lower_bound = problem.lower_bound(tp, sp, cp, ep, tp)
            for sequences in (1, 2, 3, 8):
                _over(problem.table(tp, sp, sequences, cp, ep, tp), lower_bound, sequences)


def _over(table, lower_bound, sequences):
    slack = 1 + 1e-9
    for column in ("compute_s", "replay_s", "kept_bytes", "working_bytes", "boundary_bytes"):
        assert (getattr(table, column) * slack >= sequences * getattr(lower_bound, column)).all(), (
            column
        )
    assert (table.launch_s * slack >= lower_bound.launch_s).all()
    for column in ("parameters", "expert_parameters"):
        np.testing.assert_allclose(getattr(table, column), getattr(lower_bound, column))
    assert table.tied_parameters == lower_bound.tied_parameters
    assert table.calls.keys() == lower_bound.calls.keys()
    for axis, calls in table.calls.items():
        least = lower_bound.calls[axis]
        np.testing.assert_array_equal(calls.number, least.number)
        assert (calls.bytes * slack >= sequences * least.bytes).all()
        assert (calls.replay_bytes * slack >= sequences * least.replay_bytes).all()


def test_a_lower_bound_is_close_to_large_micro_batches():
    """A bound of zero would pass the test above; whole tiles and waves are all it leaves out."""
    problem = load_scenario("llama3-70b-1024-h100").problem()
    lower_bound, table = problem.lower_bound(2, True, 1, 1, 2), problem.table(2, True, 8, 1, 1, 2)
    assert 8 * lower_bound.compute_s.sum() > 0.85 * table.compute_s.sum()


def test_a_device_with_a_profile_has_no_lower_bound():
    """Measured kernels may be faster per row than any estimate."""
    scenario = load_scenario("llama3-70b-1024-h100")
    assert scenario.problem().lower_bound is not None
    measured = replace(scenario.accelerator, profile=SimpleNamespace(seconds=None))
    without = replace(scenario, accelerator=measured)
    assert without.problem().lower_bound is None
