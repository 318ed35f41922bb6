"""One arm of an experiment as a run: what fills the cells that its source leaves empty."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from run_tables import SUBSET

from benchmarks.validation.training.arms import arm_run
from nest_core.calibration.training.machines import model_of
from nest_core.calibration.training.predict import predict
from nest_core.calibration.training.rows import Unusable


def arm(name: str, **changed: str) -> dict[str, str]:
    """An arm of the subset, with cells changed."""
    listed = csv.DictReader((SUBSET / "ab_pairs.csv").read_text().splitlines())
    return next(row for row in listed if row["arm"] == name) | changed


EMPTY = dict.fromkeys(("tp", "pp", "cp", "micro_batch", "global_batch", "seq_len", "recompute"), "")


def test_torchtitan_left_to_its_configuration_is_torchtitan_spelled_out():
    """Batch, sequence, degrees and recomputation of an arm that says none of them."""
    stated = arm_run(arm("tensorwise_fp8ag"))
    empty = arm_run(arm("tensorwise_fp8ag", **EMPTY))
    assert replace(empty, assumed=()) == replace(stated, assumed=())


def test_what_is_stated_is_never_filled_in():
    run = arm_run(arm("tensorwise_fp8ag", micro_batch="2", seq_len="4096", global_batch=""))
    assert (run.point.micro_batch, run.sequence, run.batch) == (2, 4096, 16)


def test_an_arm_says_whether_it_is_compiled():
    """Eager is unfused, whatever its stack usually is."""
    facts = [
        arm_run(arm("none", other=how)).fact("compiled") for how in ("eager", "torch.compile", "")
    ]
    assert facts == ["no", "yes", None]
    eager, compiled = (
        predict(arm_run(arm("none", other=how))) for how in ("eager", "torch.compile")
    )
    assert compiled.iteration_s < eager.iteration_s


def test_of_a_pipeline_the_batch_is_asked_for():
    """How many micro-batches it runs is no default."""
    with pytest.raises(Unusable, match="states no global_batch_seqs"):
        arm_run(arm("tensorwise_fp8ag", **EMPTY | {"pp": "2", "dp": "4"}))


def test_other_frameworks_state_their_own():
    with pytest.raises(Unusable, match="states no tp"):
        arm_run(arm("no_overlap_no_recompute", tp=""))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"recompute": "selective_2nd_layer"}, "recomputes every second layer"),
        ({"vp_layout": "InterleavedZeroBubble"}, "a zero-bubble schedule of several virtual"),
        ({"vp_layout": "ZB-V"}, "a zero-bubble schedule of several virtual"),
    ],
)
def test_what_no_plan_states(changed, reason):
    with pytest.raises(Unusable, match=reason):
        arm_run(arm("tensorwise_fp8ag", **changed))


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("DeepSeek-V3-16B (torchtitan)", 15.7e9), ("GPT-OSS-20B", 20.9e9), ("Moonlight-16B", 16.0e9)],
)
def test_models_without_a_preset_have_their_published_size(model, parameters):
    """From the models' cards: 15.7, 20.9 and 16 thousand million parameters."""
    run = arm_run(arm("tensorwise_fp8ag", model=model, ep="8"))
    assert model_of(run).parameters == pytest.approx(parameters, rel=0.02)
