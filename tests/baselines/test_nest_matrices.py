"""The matrices that NEST's program read, beside the price of its plan on levels."""

from __future__ import annotations

import pytest
from small_problems import small_problem

from nest_core.costs import price
from nest_core.costs.communication import traffic_of
from nest_core.network import collapse
from nest_core.planner.baselines.cost_matrices import _levels, cost_matrices
from nest_core.planner.baselines.nest import find, on_levels
from nest_core.scenario import load_fabric

_NAMES = {"data": "dp", "expert_data": "edp", "transfers": "pp"}


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 6, 8, 9, 10, 11])
def test_own_cells_are_what_the_program_promised_class_by_class(seed):
    """Leaving each class out of a plan's price on levels says the same, by other code."""
    small = small_problem(seed, experts=seed % 2 == 1)
    plan = find(small.problem, small.space).plan
    assert plan is not None
    found = cost_matrices(small.problem, plan)
    spent = {name: row[own].max() for name, row, own in
             zip(found.ranks, found.seconds, found.own, strict=True)}  # fmt: skip
    view = on_levels(small.problem)
    apart = {
        _NAMES.get(entry.name, entry.name): max(entry.seconds) for entry in traffic_of(view, plan)
    }
    told = price(view, plan)
    if plan.point.pp == 1:
        assert sum(spent.values()) == pytest.approx(told.stages[0].communication_s)
    for name, seconds in apart.items():
        if seconds > 1e-9:
            assert spent[name] >= seconds * (1 - 1e-9)
            if plan.point.pp == 1:
                assert spent[name] == pytest.approx(seconds)


def test_a_torus_s_blocks_are_called_by_hops_up_to_remote():
    names = [level.name for level in _levels(collapse(load_fabric("tpu-v4-4x4x4")))]
    assert names == ["2 hops", "3 hops or more, 16 devices", "3 hops or more"]
