"""Full recomputation by a method: what is asked, priced, planned and exported."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import nest_core as nest
from nest_core.costs.head_room import at_most, spread_of
from nest_core.costs.parse import read_pasted
from nest_core.documents.errors import InputError

NODE = {
    "name": "node",
    "group_size": 8,
    "uplink_per": "device",
    "bandwidth_GBps": 450.0,
    "oversubscription": 1.0,
    "latency_us": 0.5,
}
PLAN: dict[str, Any] = {"tp": 2, "sp": True, "dp": 2, "pp": 2}
BLOCKS = 16
"""Of a stage of Llama 3 8B on two stages."""


def asked(recompute: object = "none", **search: object) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": "methods",
        "fabric": {"kind": "hierarchical", "level": [NODE]},
        "accelerator": "h100-80gb",
        "workload": {
            "model": "llama3-8b",
            "sequence_length_tokens": 4096,
            "global_batch_sequences": 16,
            "precision": "bf16",
            "optimizer": "adam",
        },
        "search": {**PLAN, "cp": 1, "zero": 0, "recompute": recompute, **search},
    }


def priced(recompute: object, **plan: object):
    return nest.price(asked(), PLAN | {"recompute": recompute} | plan).report


def kept(report) -> list[float]:
    return [stage.memory.activations for stage in report.stages]


def test_chunks_of_one_layer_and_a_block_of_all_are_full_recomputation():
    full = priced("full")
    assert priced({"uniform": 1}) == full
    block = priced(f"block:{BLOCKS}")
    assert block.iteration_s == pytest.approx(full.iteration_s, rel=1e-12)
    for one, other in zip(block.stages, full.stages, strict=True):
        assert one.memory.total == pytest.approx(other.memory.total, rel=1e-12)
        assert one.recompute_s == pytest.approx(other.recompute_s, rel=1e-12)


def test_more_blocks_hold_less_and_take_longer():
    reports = [priced("none"), *(priced(f"block:{n}") for n in range(1, BLOCKS + 1))]
    for less, more in pairwise(reports):
        assert all(a > b for a, b in zip(kept(less), kept(more), strict=True))
        assert less.iteration_s < more.iteration_s
        parts = [stage.recompute_s for stage in more.stages]
        assert all(a < b for a, b in zip([s.recompute_s for s in less.stages], parts, strict=True))


def test_chunks_keep_an_input_each_and_make_all_of_a_chunk_again():
    plain, full, pairs, fives = (priced(one) for one in ("none", "full", "uniform:2", "uniform:5"))
    assert pairs.iteration_s == fives.iteration_s == full.iteration_s
    for s, ends in enumerate([1, 1]):  # a stage has 16 blocks, and an embedding or a head
        block = (kept(plain)[s] - kept(full)[s]) / BLOCKS
        entry = (kept(full)[s] - kept(pairs)[s]) / (BLOCKS // 2)
        assert kept(full)[s] - kept(fives)[s] == pytest.approx(12 * entry * ends)
        alive = [report.stages[s].memory.working for report in (full, pairs)]
        if s == 0:  # the head's logits are larger than one block
            assert alive[1] - alive[0] == pytest.approx(block + entry)


def test_every_virtual_stage_counts_its_own_first_blocks():
    virtual = {"schedule": "interleaved", "interleave": 2, "dp": 1, "tp": 4}
    plain, two, all_of_it = (priced(one, **virtual) for one in ("none", "block:2", "full"))
    for a, b, c in zip(plain.stages, two.stages, all_of_it.stages, strict=True):
        assert b.recompute_s == pytest.approx(c.recompute_s * 4 / 16)
        freed = a.memory.activations - b.memory.activations
        assert freed == pytest.approx((a.memory.activations - c.memory.activations) * 4 / 16)


def surely(needed: float) -> float:
    """Memory that is enough for so much as surely as plans must fit."""
    return needed / at_most(1.0, spread_of("megatron").sd)


def test_the_search_recomputes_no_more_blocks_than_it_must():
    needed = max(stage.memory.total for stage in priced("block:5").stages)
    scenario = asked(["none", {"block": 3}, {"block": 5}, {"block": 9}, "full"], pp=2)
    scenario["override"] = {"accelerator.memory_GiB": surely(needed + 1e6) / 2**30}
    answer = nest.plan(scenario).to_json()
    assert "block:5" in answer["plan"]["stage_recompute"]
    repeated = nest.price(scenario, answer["plan"]).report
    assert repeated.iteration_s == answer["iteration_time_s"]


@pytest.mark.parametrize("recompute", ["block:4", "uniform:2"])
def test_a_method_is_exported_to_megatron_and_read_back(recompute):
    scenario = nest.load(asked({"block": 4}))
    files = nest.export(scenario, "megatron", PLAN | {"recompute": recompute}).files
    (command,) = [str(text) for name, text in files.items() if name.endswith(".sh")]
    method, layers = recompute.split(":")
    assert f"--recompute-method {method}" in command
    assert f"--recompute-num-layers {layers}" in command
    assert read_pasted(command, 34, 8).plan.recompute == (recompute,) * 2
    nemo = nest.export(scenario, "nemo", PLAN | {"recompute": recompute}).files
    assert any(
        f'recompute_method="{method}"' in str(text).replace(" ", "") for text in nemo.values()
    )


@pytest.mark.parametrize("target", ["deepspeed", "torchtitan"])
def test_frameworks_without_methods_refuse_them(target):
    plan = {"tp": 1, "dp": 8, "recompute": "block:4"}
    refused = nest.export(asked(), target, plan).refused
    assert refused.startswith("Recomputation must be none or full for")


REFUSED = [
    ({"block": 0}, "search.recompute.block must be"),
    ({"uniform": 2, "block": 2}, "search.recompute must be"),
    ({}, "search.recompute must be"),
]


@pytest.mark.parametrize(("recompute", "message"), REFUSED)
def test_what_is_no_method_is_refused(recompute, message):
    with pytest.raises(InputError) as caught:
        nest.load(asked(recompute))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("recompute", ["block:0", "block:", "block:x", "uniform:-1", "block:1.5"])
def test_a_plan_names_a_whole_number_of_layers(recompute):
    with pytest.raises(InputError, match=r"plan\.recompute\.\w+ must be a whole number of layers"):
        priced(recompute)
