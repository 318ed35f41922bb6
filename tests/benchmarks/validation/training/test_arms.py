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


@pytest.mark.parametrize(
    ("words", "group"),
    [("FSDP2 8", 0), ("HSDP 2x4", 4), ("FSDP2, replicate=2", 4), ("dist opt, 4 instances", 2)],
)
def test_copies_of_the_shards_are_read(words, group):
    run = arm_run(arm("tensorwise_fp8ag", zero_or_fsdp=words))
    assert run.point.zero_group == group
    assert run.point.instances == (8 // group if group else 1)


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        ("optimizer CPU offload", "optimizer:1"),
        ("activation offload", "activations:1"),
        ("cpu_offloading_num_layers=8", "activations:0.25"),
        ("activations 50%, optimizer", "activations:0.5+optimizer:0.5"),
        ("none", None),
    ],
)
def test_what_is_offloaded_is_a_share(words, spelled):
    """Less memory, and no less time."""
    run = arm_run(arm("tensorwise_fp8ag", recompute="none", offload=words))
    assert run.fact("offload") == spelled
    moved, plain = predict(run), predict(arm_run(arm("tensorwise_fp8ag", recompute="none")))
    assert moved.iteration_s >= plain.iteration_s
    held = [max(stage.memory.tensors for stage in report.stages) for report in (moved, plain)]
    assert (held[0] < held[1]) == (spelled is not None)


def test_what_else_is_offloaded_says_so():
    with pytest.raises(Unusable, match="offloads embeddings, which no cost describes"):
        arm_run(arm("tensorwise_fp8ag", offload="embeddings"))


@pytest.mark.parametrize(
    "words", ["async_tp", "async tensor parallel", "tp_comm_overlap userbuffers"]
)
def test_tensor_traffic_that_hides(words):
    """In the column of overlap, or among other switches."""
    for column in ("overlap_flags", "other"):
        degrees = {"tp": "2", "dp": "4"}
        hidden, plain = (
            predict(arm_run(arm("tensorwise_fp8ag", **degrees, **cells)))
            for cells in ({column: words}, {column: ""})
        )
        assert hidden.iteration_s < plain.iteration_s


def test_context_parallelism_and_batches_are_read():
    """Halves of sequences, and a batch that the arm states."""
    run = arm_run(arm("tensorwise_fp8ag", cp="2", dp="4", global_batch="16"))
    assert (run.point.cp, run.point.dp, run.batch) == (2, 4, 16)
    assert predict(run).iteration_s > 0


def test_of_every_second_layer_half_are_recomputed():
    """As long and as large as half of the layers in a row."""
    runs = [
        arm_run(arm("tensorwise_fp8ag", recompute=words))
        for words in ("none", "selective_2nd_layer", "every third layer", "full")
    ]
    assert [run.recompute for run in runs] == ["none", "block:16", "block:10", "full"]
    times = [predict(run).iteration_s for run in runs]
    assert times[0] < times[2] < times[1] < times[3]
    assert times[1] - times[0] == pytest.approx((times[3] - times[0]) / 2, rel=0.02)


@pytest.mark.parametrize(
    ("words", "zero"),
    [("DeepSpeed ZeRO-2", 2), ("ZeRO-3", 3), ("FSDP2", 3), ("none", 0), ("dist opt", 1)],
)
def test_what_shards_is_read_beside_experts(words, zero):
    """Whatever the expert degree is."""
    changed = {"zero_or_fsdp": words, "model": "Qwen3-30B-A3B", "ep": "8", "source": "a blog"}
    run = arm_run(arm("tensorwise_fp8ag", **changed))
    assert (run.point.zero, run.point.ep) == (zero, 8)


@pytest.mark.parametrize("products", ["mxfp8 linears", "mxfp8 grouped GEMM", "fp8 moe only"])
def test_products_of_which_some_are_narrow_are_refused(products):
    with pytest.raises(Unusable, match="runs some products in 8 bits and others in 16"):
        arm_run(arm("tensorwise_fp8ag", precision_recipe=products))


def test_graphs_are_read():
    words = ("none", "TE attn+moe_router+moe_preprocess", "full iteration graph")
    facts = [arm_run(arm("tensorwise_fp8ag", cuda_graphs=each)).fact("launch") for each in words]
    assert facts == [None, "layer_graphs", "iteration_graphs"]
