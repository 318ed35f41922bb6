"""A refusal of memory names its stack, and one under which it would be none."""

import pytest

from nest_core.api.answer import answer
from nest_core.api.price import price
from nest_core.api.scenario import load
from nest_core.report.explain import mine

JOB = {
    "schema": 1,
    "name": "16 A100",
    "accelerator": "a100-80gb",
    "stack": "megatron-lm-2021",
    "workload": {
        "model": "llama2-7b",
        "sequence_length_tokens": 4096,
        "global_batch_sequences": 2048,
    },
    "fabric": {
        "kind": "hierarchical",
        "level": [
            {
                "name": "node",
                "group_size": 8,
                "uplink_per": "device",
                "bandwidth_GBps": 300.0,
                "latency_us": 0.5,
            },
            {
                "name": "cluster",
                "group_size": 2,
                "uplink_per": "device",
                "bandwidth_GBps": 25.0,
                "latency_us": 1.2,
            },
        ],
    },
}
PLAN = "dp=8,tp=1,pp=2,micro_batch=2,zero=1"


def test_a_plan_that_newer_software_holds():
    """69 GB were measured of this plan, 64.3 GiB; the stack that stores scores needs twice that."""
    early = price(JOB, PLAN)
    assert not early.report.feasible
    assert "per device under megatron-lm-2021" in early.report.reason
    assert "; under megatron-core-2026 it fits, in 6" in early.report.reason
    today = price({**JOB, "stack": "megatron-core-2026"}, PLAN)
    assert today.report.feasible
    fullest = max(stage.memory.total for stage in today.report.stages)
    assert fullest == pytest.approx(69e9, rel=0.02)
    words = today.to_json()["memory"]["words"]
    assert "Memory under megatron-core-2026: four runs of five" in words


def test_a_plan_that_no_software_holds():
    reason = price({**JOB, "stack": "megatron-core-2026"}, "dp=16,micro_batch=64").report.reason
    assert "under megatron-core-2026, " in reason
    assert "it fits" not in reason


def test_a_search_that_newer_software_saves():
    """Whole on every device and with every activation kept: only stored scores are too much."""
    workload = {**JOB["workload"], "sequence_length_tokens": 4096, "global_batch_sequences": 16}
    search = {"recompute": ["none"], "tp": 1, "pp": 1, "cp": 1, "micro_batch_sequences": 2}
    tight = {**JOB, "workload": workload, "search": {**search, "zero": [3]}}
    result = answer(load(tight).values).result
    assert result.best is None
    assert "under megatron-lm-2021" in result.reason
    assert result.reason.endswith("; under megatron-core-2026 it fits")


def test_turns_of_the_search_are_counted(monkeypatch):
    """Without any turn no plan is found, whatever a clock says; so no stack is named."""
    workload = {**JOB["workload"], "global_batch_sequences": 16}
    search = {"recompute": ["none"], "tp": 1, "pp": 1, "cp": 1, "micro_batch_sequences": 2}
    tight = {**JOB, "workload": workload, "search": {**search, "zero": [3]}}
    monkeypatch.setattr(mine, "_MAX_TURNS", 0)
    assert "it fits" not in answer(load(tight).values).result.reason


def test_attention_that_the_scenario_states_stays():
    """Stored scores that were asked for are no fault of the stack."""
    workload = {**JOB["workload"], "attention": "unfused"}
    given = price({**JOB, "stack": "megatron-core-2026", "workload": workload}, PLAN)
    assert not given.report.feasible
    assert "it fits" not in given.report.reason
