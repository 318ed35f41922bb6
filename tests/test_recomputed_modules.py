"""Sets of modules from the file to the price: what is asked, planned, repeated and measured."""

from __future__ import annotations

import json
from typing import Any

import pytest

import nest_core as nest
from nest_core.documents.errors import InputError

MOONLIGHT: dict[str, Any] = {
    "name": "Moonlight 16B with down projections of queries",
    "family": "deepseek_v3",
    "blocks": 27,
    "dense_blocks": 1,
    "hidden": 2048,
    "heads": 16,
    "kv_heads": 16,
    "head_dim": 128,
    "ffn": 11264,
    "vocabulary": 163840,
    "experts": 64,
    "top_k": 6,
    "expert_ffn": 1408,
    "shared_ffn": 2816,
    "q_rank": 1536,
    "kv_rank": 512,
    "rope_dim": 64,
    "value_dim": 128,
}
NODE = {
    "name": "node",
    "group_size": 8,
    "uplink_per": "device",
    "bandwidth_GBps": 450.0,
    "oversubscription": 1.0,
    "latency_us": 0.5,
}
PLAN: dict[str, Any] = {"tp": 2, "sp": True, "dp": 4, "ep": 4, "zero": 1}
MEASURED = {
    "selective": (-0.0001, 0.0385),
    "moe_act": (-0.0185, 0.0199),
    "mla_up_proj": (-0.0196, 0.0519),
    "mla_up_proj+mlp": (-0.0191, 0.0865),
}
"""Megatron-Bridge's pull request 5570: memory and time against no recomputation."""


def asked(recompute: object, model: object = None, **search: object) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": "modules",
        "fabric": {"kind": "hierarchical", "level": [NODE]},
        "accelerator": "h100-80gb",
        "workload": {
            "model": model or MOONLIGHT,
            "sequence_length_tokens": 4096,
            "global_batch_sequences": 4,
            "precision": "bf16",
            "optimizer": "adam",
        },
        "search": {**PLAN, "pp": 1, "cp": 1, "recompute": recompute, **search},
    }


@pytest.fixture(scope="module")
def ours() -> dict[str, tuple[float, float]]:
    """Memory of tensors and seconds, over those without recomputation."""
    found = {}
    for name in ("none", *MEASURED):
        report = nest.price(asked("none"), PLAN | {"recompute": name}).report
        assert report.plan.recompute == (name,)
        found[name] = (report.stages[0].memory.tensors, report.iteration_s)
    memory, seconds = found["none"]
    return {name: (held / memory - 1, took / seconds - 1) for name, (held, took) in found.items()}


@pytest.mark.parametrize("name", MEASURED)
def test_modules_free_what_was_measured_on_moonlight(name, ours):
    assert ours[name][0] == pytest.approx(MEASURED[name][0], abs=0.005)
    assert 0 < ours[name][1] < 2 * MEASURED[name][1]


def test_a_set_is_planned_printed_and_repeated():
    scenario = asked([{"modules": ["mlp", "mla_up_proj"]}])
    answer = nest.plan(scenario).to_json()
    assert answer["plan"]["recompute"] == "mla_up_proj+mlp"
    given = json.loads(json.dumps(answer["plan"]))
    repeated = nest.price(scenario, given)
    assert repeated.report.iteration_s == answer["iteration_time_s"]
    assert repeated.report.stages[0].recompute_s > 0
    word = "mla_up_proj+mlp"
    elsewhere = nest.price(asked("none"), ",".join((f"recompute={word}", "tp=2,sp=true,dp=4,ep=4")))
    assert elsewhere.report.plan.recompute == (word,)
    table = {"recompute": {"modules": ["mlp", "mla_up_proj"]}}
    assert nest.price(asked("none"), PLAN | table).report.plan.recompute == (word,)


def test_the_search_takes_the_cheapest_set_that_fits():
    free = nest.price(asked("none"), PLAN).to_json()["memory"]["surely_bytes"]
    scenario = asked(["none", {"modules": ["moe_act"]}, "full"])
    scenario["override"] = {"accelerator.memory_GiB": (free - 0.3 * 2**30) / 2**30}
    assert nest.plan(scenario).to_json()["plan"]["recompute"] == "moe_act"


REFUSED = [
    ({"modules": ["atention"]}, "is 'atention': pick core_attn, moe_act, layernorm, mla_up_proj"),
    ({"modules": ["mlp", "mlp"]}, "search.recompute must name each module once, and at least one"),
    ({"modules": []}, "search.recompute.modules must be a list of at least 1 entries"),
    ({"moduls": ["mlp"]}, "search.recompute.moduls is not a known key"),
    (["none", {"modules": ["moe"]}, "some"], "must be 'none', 'selective', 'full' or a table"),
]


@pytest.mark.parametrize(("recompute", "message"), REFUSED, ids=[str(one) for one, _ in REFUSED])
def test_what_is_no_set_of_modules_is_refused(recompute, message):
    with pytest.raises(InputError) as caught:
        nest.load(asked(recompute))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dense_model_has_no_experts_to_recompute():
    message = "Llama 3 8B has, but is 'moe_act': pick core_attn, layernorm, mlp"
    with pytest.raises(InputError, match=f"search.recompute must name modules that {message}"):
        nest.load(asked({"modules": ["moe_act"]}, "llama3-8b", ep=1))
    with pytest.raises(InputError, match=f"plan.recompute must name modules that {message}"):
        nest.price(asked("none", "llama3-8b", ep=1), {"tp": 8, "recompute": "moe_act"})


def test_a_set_that_the_search_does_not_name_is_exported_as_a_trace():
    exported = nest.export(asked("none"), "astra-sim", PLAN | {"recompute": "moe_act"})
    assert exported.report.plan.recompute == ("moe_act",)
    assert exported.files
