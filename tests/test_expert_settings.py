"""How experts are reached, from the file to the price: dispatch, passes beside one another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import nest_core as nest
from nest_core.costs import Plan, Point, Report, price
from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_path
from nest_core.scenario import Scenario, ScenarioValues
from nest_core.workload import Strategy, chain, load_model

PROXY = load_toml(preset_path("models", "deepseek-v3.toml")) | {"blocks": 14}
POINT = Point(
    tp=1, sp=False, dp=16, pp=4, micro_batch=1, zero=1, order=("tp", "cp", "dp", "pp"), ep=16,
    schedule="interleaved", interleave=2,
)  # fmt: skip
CUTS = (0, 3, 5, 7, 9, 11, 13, 15, 16)
MEASURED = {"one device connection": 191.1 / 184.2 - 1, "32 device connections": 198.5 / 184.2 - 1}
"""NVIDIA/Megatron-LM, pull request 6311: TFLOP/s per GPU, 14 layers of DeepSeek-V3 on 64 H100."""


def asked(model: object = PROXY, **workload: object) -> ScenarioValues:
    document: dict[str, Any] = {
        "schema": 1,
        "name": "proxy",
        "fabric": "h100-spine-leaf-64",
        "accelerator": "h100-80gb",
        "workload": {
            "model": model,
            "sequence_length_tokens": 2048,
            "global_batch_sequences": 256,
            **workload,
        },
    }
    return Scenario(document).values


def priced(recompute: str = "full", point: Point = POINT, **workload: object) -> Report:
    scenario = asked(**workload)
    cuts = CUTS if point.pp > 1 else (0, 16)
    return price(scenario.problem((recompute,)), Plan(point, cuts, (recompute,) * point.pp))


def test_megatrons_overlap_is_as_large_as_measured():
    """What MTP adds is left out; the gain lies between those with one connection and with 32."""
    alone, beside = (priced(expert_overlap=on) for on in (False, True))
    gain = alone.iteration_s / beside.iteration_s - 1
    assert MEASURED["one device connection"] < gain < MEASURED["32 device connections"]
    held = [max(stage.memory.total for stage in one.stages) for one in (alone, beside)]
    assert 1 < held[1] / held[0] < 1.01  # measured: 1.006


def test_once_per_node_spares_the_nics():
    """Two nodes and eight experts a token: more than three copies of four stay at home."""
    plain, once, hybrid = (
        priced(dispatch=name).iteration_s for name in ("all_to_all", "once_per_node", "hybrid")
    )
    assert hybrid == once < 0.85 * plain  # nodes with one host


def test_overlap_waits_for_a_schedule_that_has_it():
    """1F1B in a pipeline runs one pass at a time, and without overlap nothing hides."""
    plain = Point(**{name: getattr(POINT, name) for name in ("tp", "sp", "dp", "pp", "micro_batch",
                     "zero", "order", "ep")})  # fmt: skip
    for point, workload in ((plain, {}), (POINT, {"overlap": "none"})):
        scenarios = [asked(expert_overlap=on, **workload) for on in (False, True)]
        cuts = CUTS if point.interleave > 1 else (0, 5, 9, 13, 16)
        plan = Plan(point, cuts, ("none",) * 4)
        alone, beside = (price(one.problem(), plan).iteration_s for one in scenarios)
        assert alone == pytest.approx(beside, rel=1e-12)


def test_a_dense_model_has_nothing_to_dispatch():
    """Like its imbalance and capacity, settings of experts change nothing."""
    plan = Plan(Point(1, False, 64, 1, 1, 1, ("tp", "cp", "dp", "pp")), (0, 34), ("none",))
    plain, told = (
        price(asked("llama3-8b", **settings).problem(), plan)
        for settings in ({}, {"dispatch": "hybrid", "expert_overlap": True})
    )
    assert plain == told


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dispatch": "deepep"}, r"workload\.dispatch must be .*once_per_node"),
        ({"expert_overlap": 1}, r"workload\.expert_overlap must be"),
        ({"model": PROXY | {"expert_groups": 3}}, "expert_groups must divide"),
        ({"model": PROXY | {"top_groups": 9}}, "top_groups must not exceed"),
        ({"model": PROXY | {"expert_groups": 64, "top_groups": 1}}, "top_groups must hold"),
    ],
)
def test_other_values_are_one_sentence(settings, message):
    with pytest.raises(InputError, match=message) as caught:
        asked(**settings)
    assert str(caught.value).count("\n") == 0


def test_a_search_finds_no_less_with_them():
    """Neither makes the best plan slower."""
    search = {"tp": 1, "cp": 1, "pp": [1, 4], "dp": 16, "ep": [4, 16], "zero": 1}
    document: dict[str, Any] = {
        "schema": 1,
        "name": "proxy",
        "fabric": "h100-spine-leaf-64",
        "accelerator": "h100-80gb",
        "workload": {
            "model": PROXY,
            "sequence_length_tokens": 2048,
            "global_batch_sequences": 256,
        },
        "search": search | {"schedule": ["1f1b", "interleaved"], "interleave": [1, 2]},
    }
    best = []
    for settings in ({}, {"dispatch": "once_per_node"}, {"expert_overlap": True}):
        document["workload"] |= settings
        answer = nest.plan(nest.load(document))
        assert answer.result.certificate.proven
        best.append(answer.result.best.iteration_s)
    assert best == sorted(best, reverse=True)
    assert best[-1] < best[0]


def test_probabilities_before_the_last_product_keep_no_outputs():
    """Megatron Core's report (arXiv:2603.07685) counts 26.3 GB of DeepSeek-V3 on a device.

    A first stage of 1F1B has as many micro-batches in flight as there are stages, so that it keeps
    outputs of about as many blocks as the model has: 58 with experts, and one of multi-token
    prediction, which is left out here.
    """
    model = load_model("deepseek-v3")
    shape = Strategy(sequence=4096, ep=64)
    outputs, inputs = (
        chain(model, replace(shape, scaled_activations=scaled)).runs for scaled in (False, True)
    )
    spared = sum(
        times * (kept.kept_bytes("none") - without.kept_bytes("none"))
        for (kept, times), (without, _) in zip(outputs, inputs, strict=True)
    )
    assert spared == 58 * 4096 * model.top_k * model.hidden * 2
    assert spared == pytest.approx(26.3e9, rel=0.05)
