"""Plans as MaxText 0.2.5 and JAX's meshes take them.

What ``create_device_mesh`` lays out and refuses was seen with jax 0.10.2 and libtpu's description
of a v5p slice of 4 x 4 x 4; MaxText's own checks run in ``make outside``.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from export_cases import drawn_plans, exported, plan, priced, scenario
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.interop.exporters import ExportRefused, export_plan
from nest_core.interop.exporters.maxtext import mesh_dimensions


def keys_of(files: dict[str, Any]) -> dict[str, Any]:
    """Keys of a configuration with their values; numbers as numbers."""
    lines = [line for line in str(files["nest_plan.yml"]).splitlines() if line[0] != "#"]
    pairs = dict(line.split(": ", 1) for line in lines)
    return {
        key: float(value) if value.replace(".", "", 1).isdecimal() else value
        for key, value in pairs.items()
    }


def degrees(keys: dict[str, Any], prefix: str) -> dict[str, float]:
    return {
        key.removeprefix(prefix).removesuffix("_parallelism"): value
        for key, value in keys.items()
        if key.startswith(prefix)
    }


@settings(max_examples=80, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_degrees_and_batch_multiply_out(data: st.DataObject) -> None:
    asked = scenario(data.draw(st.sampled_from(["llama3-8b", "mixtral-8x7b"])))
    chosen = data.draw(drawn_plans(asked))
    point = chosen.point
    assume(asked.batch % (point.dp * point.micro_batch) == 0)
    m = point.micro_batches(asked.batch)
    assume(point.interleave == 1 or m % point.pp == 0)
    assume(point.interleave * point.pp <= asked.model.blocks + 2)
    try:
        files = export_plan("maxtext", asked, priced(asked, chosen)).files
    except ExportRefused:
        return
    keys = keys_of(dict(files))
    inside, between = degrees(keys, "ici_"), degrees(keys, "dcn_")
    assert math.prod(inside.values()) == min(8, point.devices_used)
    assert math.prod(inside.values()) * math.prod(between.values()) == point.devices_used
    batch = keys["per_device_batch_size"] * point.devices_used * keys["gradient_accumulation_steps"]
    assert batch == asked.batch
    both = {axis: inside[axis] * between[axis] for axis in inside}
    # What shares a replica's weights, as MaxText cuts them.
    cut = both["fsdp"] * both["context"] * both["expert"]
    assert cut == (point.shard_ranks if point.zero == 3 else 1)
    assert both["pipeline"] == point.pp


@pytest.mark.parametrize(
    ("degrees", "lie"),
    [((64,), True), ((16, 4), True), ((4, 16), True), ((1, 16, 4), True),
     ((8, 8), False), ((32, 2), False), ((4, 8, 2), False)],
)  # fmt: skip
def test_meshes_lie_as_jax_lays_them(degrees: tuple[int, ...], lie: bool) -> None:
    dimensions = mesh_dimensions(degrees, (4, 4, 4))
    assert (dimensions is not None) == lie
    if dimensions is not None:
        assert [math.prod(4 for _ in place) for place in dimensions] == list(degrees)


def test_an_axis_lies_on_a_rectangle() -> None:
    """JAX 0.10.2 lays 8 over 2 x 4; squares alone were taken."""
    assert mesh_dimensions((2, 8), (2, 2, 4)) == ((0,), (1, 2))


def test_a_mesh_that_lies_needs_no_split() -> None:
    files = exported("maxtext", scenario("llama3-8b", "tpu-v4-4x4x4"), tp=4, dp=16, zero=3)
    assert keys_of(dict(files.files))["allow_split_physical_axes"] == "false"
    assert "tensor 4 on dimension 0, fsdp 16 on dimension 1 and 2" in files.notes[-1]


def test_a_mesh_that_does_not_lie_is_split_and_the_nearest_offered() -> None:
    files = exported("maxtext", scenario("llama3-8b", "tpu-v4-4x4x4"), tp=8, dp=8, zero=3)
    keys = keys_of(dict(files.files))
    assert keys["allow_split_physical_axes"] == "true"
    assert keys["ici_tensor_parallelism"] == keys["ici_fsdp_parallelism"] == 8
    assert "nearest degrees that lie on whole dimensions are tensor " in files.notes[-1]


def test_no_recomputation_keeps_products_and_attention() -> None:
    """The policy ``none`` compiles to what ``full`` does."""
    for recompute, policy in (("none", "minimal_with_context"), ("full", "full")):
        files = exported("maxtext", scenario(), dp=64, zero=3, recompute=recompute)
        assert keys_of(dict(files.files))["remat_policy"] == policy
        assert any("holds less than planned" in note for note in files.notes) == (policy != "full")


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_twice_the_bytes_of_zero_1_are_told(zero: int) -> None:
    """Seen in what libtpu compiles of its step on v5e 4x4, data 16."""
    notes = exported("maxtext", scenario(), dp=16, tp=4, zero=zero).notes
    assert any("twice the bytes" in note for note in notes) == (zero == 1)


def gigabytes(notes: tuple[str, ...]) -> list[float]:
    """Numbers of gigabytes that notes name."""
    return [float(n) for n in re.findall(r"([\d.]+) GB (?:a device|that)", " ".join(notes))]


def test_zero_1_keeps_the_masters_whole() -> None:
    """Seen in its compiled step: arguments of 4 + 8 / dp bytes per parameter, where 12 / dp are."""
    fields = {"dp": 16, "tp": 4, "zero": 1}
    report = priced(scenario(), plan(scenario(), **fields))
    free = (80 * 2**30 - max(stage.memory.total for stage in report.stages)) / 1e9
    more = 8.03 / 4 * 4 * 15 / 16
    notes = exported("maxtext", scenario(), **fields).notes
    assert gigabytes(notes) == [pytest.approx(more, rel=0.01), pytest.approx(free, abs=0.01)]


@pytest.mark.parametrize(("pp", "tables"), [(2, 1), (4, 2)])
def test_embedding_and_head_lie_on_every_stage(pp: int, tables: int) -> None:
    """Seen in its compiled step: a stage has both, whole over the pipeline's."""
    notes = exported("maxtext", scenario(), dp=64 // pp, pp=pp, schedule="gpipe", zero=3).notes
    bytes_each = (2 + 4 + 12) / (64 // pp)
    assert gigabytes(notes)[0] == pytest.approx(tables * 0.5253 * bytes_each, abs=0.006)


def test_a_step_without_recomputation_is_said_to_take_longer() -> None:
    fields = {"dp": 16, "tp": 4, "zero": 3}
    least, most = (
        priced(scenario(), plan(scenario(), **fields, recompute=recompute)).iteration_s
        for recompute in ("none", "full")
    )
    notes = " ".join(exported("maxtext", scenario(), **fields, recompute="none").notes)
    assert f"between the {least:.4g} s of the plan and {most:.4g} s" in notes


def test_sums_between_groups_come_after_every_micro_batch() -> None:
    for group in ("all", 8):
        notes = exported("maxtext", scenario(), dp=64, zero=3, zero_group=group).notes
        assert any("between ZeRO's groups" in note for note in notes) == (group == 8)


@pytest.mark.parametrize(("model", "wide"), [("llama3-8b", False), ("mixtral-8x7b", True)])
def test_experts_are_gathered_in_32_bits(model: str, wide: bool) -> None:
    """Seen in its compiled step, where dense weights are gathered in 16."""
    notes = exported("maxtext", scenario(model), dp=64, zero=3).notes
    assert any("experts in 32 bits" in note for note in notes) == wide


def test_products_of_experts_are_kept_by_name() -> None:
    """Of which ``minimal`` leaves out the up projection."""
    tpu = scenario("mixtral-8x7b", "tpu-v4-4x4x4", 'accelerator="tpu-v4"')
    for recompute, policy in (("none", "custom"), ("selective", "custom"), ("full", "full")):
        files = exported("maxtext", tpu, dp=64, zero=3, recompute=recompute).files
        keys = keys_of(dict(files))
        assert keys["remat_policy"] == policy
        kept = {key for key, value in keys.items() if value == "device"}
        assert ("moe_mlpwi_1" in kept) == ("mlpwo" in kept) == (policy == "custom")
        assert ("context" in kept) == (recompute == "none")


def test_jax_keeps_products_under_selective() -> None:
    """Which is ``minimal``; another stack's ``selective`` is core attention alone, and refused."""
    tpu = scenario("llama3-8b", "tpu-v4-4x4x4", 'accelerator="tpu-v4"')
    files = exported("maxtext", tpu, dp=64, zero=3, recompute="selective").files
    assert keys_of(dict(files))["remat_policy"] == "minimal"


def test_a_pipeline_takes_its_micro_batches_together() -> None:
    files = exported("maxtext", scenario(), dp=16, pp=4, schedule="gpipe", zero=3)
    keys = keys_of(dict(files.files))
    assert keys["num_pipeline_microbatches"] == 32
    assert keys["gradient_accumulation_steps"] == 1
    assert keys["per_device_batch_size"] * 64 == 512
    assert keys["num_layers_per_pipeline_stage"] * 4 == 32


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"dp": 64, "zero": 2}, r"ZeRO stage must be 0, 1 or 3 for MaxText"),
        ({"dp": 32, "cp": 2, "zero": 1}, r"ZeRO stage must be 3 with context or expert"),
        ({"dp": 16, "pp": 4, "zero": 3}, r"Schedule must be GPipe"),
        ({"dp": 16, "pp": 4, "schedule": "gpipe", "cuts": [0, 3, 18, 25, 34]},
         r"Division into stages must give"),
        ({"dp": 64, "zero": 3, "recompute": "selective"}, r"Recomputation must be none or full"),
        ({"dp": 4, "tp": 16, "zero": 3}, r"Tensor parallel \(tp\) must divide the 8 KV heads"),
    ],
)  # fmt: skip
def test_what_maxtext_cannot_run_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExportRefused, match=sentence):
        exported("maxtext", scenario(), **fields)
