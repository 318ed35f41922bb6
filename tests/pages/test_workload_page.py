"""The workload page: every control is taken apart, bad input is one sentence, Plan is followed."""

from __future__ import annotations

import html
import json

import pytest
from page_parts import grey_parts
from streamlit.testing.v1 import AppTest

from nest_core.costs.anatomy import anatomy
from nest_core.hardware import load_accelerator
from nest_core.hardware.stacks import default_stack, under
from nest_core.report.explain.layer_summary import (
    LAYER_WORDS,
    layer_finding,
    layer_headlines,
    layer_in_words,
    operator_rows,
)
from nest_core.workload import Accumulation, Strategy
from nest_core.workload.model_files import load_model, model_table
from nest_core.workload.operators import Launching
from nest_studio.form.model import OWN_MODEL

CHARTS = 2
STANDARD = {
    "model": "llama3-70b",
    "kind": "block",
    "accelerator": "h100-80gb",
    "precision": "bf16",
    "recompute": "none",
    "strategy": {"tp": 8, "sp": True, "sequence": 8192},
}


def values(page):
    return [metric.value for metric in page.metric]


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def charts(page):
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def widget(page, key):
    kinds = ("selectbox", "number_input", "checkbox")
    return next(w for kind in kinds for w in getattr(page, kind) if w.key == key)


def expected(**changes):
    asked = {**STANDARD, **changes}
    device = load_accelerator(asked["accelerator"])
    stack = default_stack(device.family.name)
    software = {
        "accumulation": Accumulation(4.0, fused=stack.accumulation == "product"),
        "launching": Launching(stack.eager_experts, stack.casts(asked["precision"]), False),
        "scaled_activations": stack.scaled_activations,
    }
    strategy = Strategy(**software | STANDARD["strategy"] | asked["strategy"])
    return anatomy(
        load_model(asked["model"]),
        asked["kind"],
        strategy,
        under(device, stack, asked["precision"]),
        asked["precision"],
        asked["recompute"],
    )


def assert_shows(page, found):
    assert not page.exception
    assert not page.error
    assert values(page) == [headline.value for headline in layer_headlines(found)]
    shown = text_of(page)
    assert layer_in_words(found)[0] in shown
    assert layer_finding(found) in shown
    assert all(row["operator"] in shown for row in operator_rows(found))
    assert all(exchange.node.name in shown for exchange in found.exchanges)
    assert len(charts(page)) == CHARTS


def test_the_first_visit_shows_a_block_on_eight_ranks(workload_page):
    page = workload_page()
    assert_shows(page, expected())
    spec = json.dumps(charts(page)[0], ensure_ascii=False)
    assert "FLOP: 2 · m · n · k = 2 · 8,192 · 8,192 · 3,584 = 481 GFLOP" in spec


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("key", "value", "changes"),
    [
        ("layer.tp", 2, {"strategy": {"tp": 2}}),
        ("layer.sp", False, {"strategy": {"sp": False}}),
        ("layer.cp", 4, {"strategy": {"cp": 4}}),
        ("layer.micro_batch_sequences", 3, {"strategy": {"micro_batch": 3}}),
        ("layer.recompute", "full", {"recompute": "full"}),
        ("layer.accelerator", "a100-80gb", {"accelerator": "a100-80gb"}),
        ("layer.sequence_length_tokens", 1024, {"strategy": {"sequence": 1024}}),
        ("layer.precision", "fp8", {"precision": "fp8"}),
        ("layer.attention", "unfused", {"strategy": {"attention": "unfused"}}),
        ("layer.context", "all_gather", {"strategy": {"context": "all_gather"}}),
        ("layer.kind", LAYER_WORDS["head"], {"kind": "head"}),
        ("layer.kind", LAYER_WORDS["embedding"], {"kind": "embedding"}),
    ],
)
@pytest.mark.sampled(3)
def test_every_control_is_taken_apart(workload_page, key, value, changes):
    page = workload_page()
    widget(page, key).set_value(value).run()
    assert_shows(page, expected(**changes))


@pytest.mark.parametrize(
    ("model", "kind"),
    [("deepseek-v3", "moe_block"), ("mixtral-8x7b", "moe_block"), ("gpt3-175b", "block")],
)
def test_another_model_brings_its_layers_and_limits(workload_page, model, kind):
    page = workload_page()
    widget(page, "layer.model").set_value(model).run()
    positions = load_model(model).positions
    sequence = min(8192, positions) if positions else 8192
    assert_shows(page, expected(model=model, kind=kind, strategy={"sequence": sequence}))
    keys = {control.key for control in page.number_input}
    assert ("layer.ep" in keys) == (kind == "moe_block")


@pytest.mark.parametrize(
    ("key", "value", "changes"),
    [
        ("layer.ep", 8, {"ep": 8}),
        ("layer.expert_tensor", False, {"etp": 1}),
        ("layer.imbalance", 1.5, {"imbalance": 1.5}),
        ("layer.capacity", 1.25, {"capacity": 1.25}),
    ],
)
@pytest.mark.sampled(2)
def test_every_control_of_experts_is_taken_apart(workload_page, key, value, changes):
    page = workload_page(**{"layer.model": "mixtral-8x7b", "layer.ep": "4"})
    widget(page, key).set_value(value).run()
    strategy = {"ep": 4, **changes}
    assert_shows(page, expected(model="mixtral-8x7b", kind="moe_block", strategy=strategy))


def test_an_address_is_a_page(workload_page):
    address = {
        "layer.model": "deepseek-v3",
        "layer.tp": "4",
        "layer.ep": "16",
        "layer.cp": "2",
        "layer.recompute": "selective",
        "layer.sequence_length_tokens": "4096",
    }
    page = workload_page(**address)
    strategy = {"tp": 4, "ep": 16, "cp": 2, "sequence": 4096}
    found = expected(
        model="deepseek-v3", kind="moe_block", strategy=strategy, recompute="selective"
    )
    assert_shows(page, found)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("layer.tp", 7, "tp must divide the model's 64 heads, but is 7: choose a divisor."),
        ("layer.cp", 3, "cp must divide the sequence of 8192 tokens, but is 3: choose a divisor."),
        ("layer.precision", "fp8", "precision must be one that A100 SXM 80 GB computes in, but"),
    ],
)
def test_bad_input_is_one_sentence_and_the_page_stays(workload_page, key, value, sentence):
    page = workload_page(**({"layer.accelerator": "a100-80gb"} if value == "fp8" else {}))
    before, drawn = values(page), charts(page)
    widget(page, key).set_value(value).run()
    assert not page.exception
    (notice,) = page.error
    assert notice.value.startswith(sentence)
    assert values(page) == before
    assert charts(page) == drawn
    assert grey_parts(page) == {"results"}
    first = 1 if isinstance(value, int) else "bf16"
    widget(page, key).set_value(first).run()
    assert not page.error


def test_a_bad_address_shows_the_standard_layer_in_grey(workload_page):
    page = workload_page(**{"layer.tp": "7"})
    assert not page.exception
    assert len(page.error) == 1
    assert values(page) == [headline.value for headline in layer_headlines(expected())]


def test_an_accelerator_brings_a_precision_that_it_has(workload_page):
    page = workload_page(**{"layer.precision": "bf16"})
    widget(page, "layer.accelerator").set_value("v100-32gb").run()
    assert not page.error
    assert widget(page, "layer.precision").value == "fp16"


def test_the_scenario_on_plan_is_where_it_starts(root):
    page = AppTest.from_file(
        str(root / "nest_studio" / "server" / "script.py"), default_timeout=300
    )
    page.query_params["scenario"] = "mixtral-8x7b-256-tpuv4like"
    page.query_params["workload.global_batch_sequences"] = "8"  # few plans
    page.run()
    assert not page.exception
    page.switch_page("../../pages/workload.py").run()
    assert not page.exception
    assert widget(page, "layer.model").value == "mixtral-8x7b"
    assert widget(page, "layer.accelerator").value == "tpuv4-like"
    assert widget(page, "layer.sequence_length_tokens").value == 4096
    assert "Mixture-of-experts block of Mixtral 8x7B" in text_of(page)
    assert page.query_params["layer.model"] == "mixtral-8x7b"


def test_labels_carry_units_and_help_a_range(workload_page):
    page = workload_page(**{"layer.model": "mixtral-8x7b"})
    for control in page.number_input:
        assert "," in control.label, control.label
        assert " to " in control.help
    for control in page.selectbox:
        assert control.help


def test_a_link_brings_a_model_of_ones_own(workload_page):
    """A reload, or a colleague, sees the model that the figures are of."""
    table = {**model_table(load_model("llama2-7b")), "name": OWN_MODEL, "blocks": 9}
    page = workload_page(**{"layer.model": OWN_MODEL, "own_model": json.dumps(table)})
    assert not page.exception
    assert widget(page, "layer.model").value == OWN_MODEL
    assert "9 alike of the model's 11 layers" in text_of(page)
    assert json.loads(page.query_params["own_model"])["blocks"] == 9
