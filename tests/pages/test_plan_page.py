"""The plan page: every preset, every state, and that it shows what the core computes."""

from __future__ import annotations

import functools
import html
import sys
import tomllib
from concurrent.futures import wait

import pytest
from our_plan import our_plan
from page_parts import fabrics, grey_parts
from plan_cards import big_figures, shown_figures

from nest_core.api.answer import answer
from nest_core.api.goodput import goodput
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import parameter
from nest_core.documents.units import humanise
from nest_core.fabric import Clos, GraphFabric, Hierarchical
from nest_core.report.explain.summary import certificate_line
from nest_core.report.explain.validity import rests_on
from nest_core.report.figures import entries
from nest_core.report.figures.alternatives import alternatives_table
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_studio.form.scenario import FORM
from nest_studio.jobs import waiting as jobs
from nest_studio.jobs.tasks.requests import priced_baselines
from nest_studio.jobs.waiting import WorkerJob
from nest_studio.plan import state as plan_state
from nest_studio.session.open_plan import over_preset, unsaid
from nest_studio.session.scenario_file import command_line, scenario_toml

# One preset of every kind, and what is peculiar among them; `tests/figures` draws them all.
KINDS = (
    "a100-fat-tree-512",
    "dgx-superpod-h100-as-built",
    "dgx1-v100-64",
    "dragonfly-1056",
    "drawn-8",
    "hpn-dual-plane",
    "meta-3tier-7to1",
    "mi300x-mesh-64",
    "rail-only-1024",
    "torus-16x16",
    "tpu-v4-4x4x8-twisted",
    "unequal-racks-88",
)


@functools.cache
def answered(name):
    return answer(load_scenario(name))


def values(page):
    """The figures of the cards."""
    return big_figures(text_of(page))


def text_of(page):
    return " ".join(element.proto.body for element in page.get("html"))


def widget(page, key):
    kinds = ("selectbox", "slider", "number_input", "multiselect", "button")
    return next(w for kind in kinds for w in getattr(page, kind) if w.key == key)


@pytest.mark.baselines
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "llama2-7b-64-h100" else pytest.mark.check)
        for name in preset_names("scenarios")
    ],
)
def test_every_preset_shows_its_answer(plan_page, name):
    page = plan_page(scenario=name)
    assert not page.exception
    assert not page.error
    expected = answered(name)
    assert values(page) == shown_figures(expected)
    (shown,) = fabrics(page)
    assert shown["svg"]
    assert shown["matrix"] or not expected.result.best
    assert html.escape(rests_on(expected.validity_of(expected.best), expected.result)) in text_of(
        page
    )
    page = plan_page(scenario=name, tab="Why")
    assert not page.exception
    assert [metric.value for metric in page.metric][:5] == [
        headline.value for headline in expected.headlines()
    ]
    shown = text_of(page)
    assert certificate_line(expected.result).rpartition(",")[0] in shown
    assert "Overlap: fitted" in shown


def test_the_first_visit_shows_the_default_scenario(usual_default, plan_page):
    page = plan_page()
    assert widget(page, "scenario").value == "llama3-70b-1024-h100"
    assert values(page)[0] != "–"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", KINDS)
def test_every_fabric_has_its_sliders(plan_page, name):
    small = {"workload.global_batch_sequences": "1"}
    page = plan_page(scenario="llama2-7b-64-h100", fabric=name, **small)
    assert not page.exception
    document = scenario_document("llama2-7b-64-h100")[0] | {"fabric": name}
    fabric = Scenario(document).values.fabric
    captions = [caption.value for caption in page.caption]
    if isinstance(fabric, Clos):
        assert len(page.slider) == fabric.tiers - 1
        assert sum("realised" in caption for caption in captions) == len(page.slider)
    elif isinstance(fabric, Hierarchical):
        assert len(page.slider) == len(fabric.tiers) - 1
    else:
        assert not page.slider
        drawn = isinstance(fabric, GraphFabric)
        told = "ratio of a drawn tier is a field" if drawn else "no switch tiers"
        assert any(told in caption for caption in captions)


def test_a_degree_is_limited_or_pinned(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100", **{"search.tp": "up to 4"})
    assert page.session_state["PlanPage"].scenario.overrides == {"search.tp": {"max": 4}}
    widget(page, "search.tp").set_value("exactly 4").run()
    assert page.session_state["PlanPage"].scenario.overrides == {"search.tp": 4}
    page = plan_page(scenario="llama2-7b-64-h100", **{"search.tp": "4"})
    assert page.session_state["PlanPage"].scenario.overrides == {"search.tp": 4}
    expected = our_plan(load_scenario("llama2-7b-64-h100", ["search.tp=4"]))
    assert values(page) == shown_figures(expected)


def test_a_slider_is_an_override(plan_page):
    page = plan_page(scenario="llama3-70b-1024-h100")
    before = values(page)
    widget(page, "fabric.clos.oversubscription.0").set_value(4.0).run()
    expected = our_plan(
        load_scenario("llama3-70b-1024-h100", ["fabric.clos.oversubscription=[4.0]"])
    )
    assert values(page) == shown_figures(expected)
    assert values(page) != before
    assert any("realised 4:1, 8 uplinks" in caption.value for caption in page.caption)
    assert "oversubscription 4:1" in text_of(page)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("key", "value", "setting"),
    [
        ("workload.model", "llama2-7b", 'workload.model="llama2-7b"'),
        ("workload.global_batch_sequences", 512, "workload.global_batch_sequences=512"),
        ("workload.sequence_length_tokens", 2048, "workload.sequence_length_tokens=2048"),
        ("workload.precision", "fp16", 'workload.precision="fp16"'),
        ("workload.optimizer", "adam_8bit", 'workload.optimizer="adam_8bit"'),
        ("accelerator.memory_GiB", 40.0, "accelerator.memory_GiB=40.0"),
        ("search.tp", "up to 2", "search.tp={max=2}"),
        ("search.tp", "any", "search.tp={min=1}"),
        ("search.pp", "exactly 2", "search.pp=2"),
        ("search.dp", "up to 32", "search.dp={max=32}"),
        ("search.micro_batch_sequences", "exactly 1", "search.micro_batch_sequences=1"),
        ("search.zero", "exactly 0", "search.zero=0"),
        ("search.recompute", "exactly full", 'search.recompute="full"'),
        ("search.offload", ["optimizer:1"], "search.offload={optimizer=1.0}"),
        (
            "search.order",
            "stages of a replica side by side",
            'search.order=["tp", "cp", "pp", "dp"]',
        ),
    ],
)
@pytest.mark.sampled(3)
def test_every_control_is_an_override(plan_page, key, value, setting):
    page = plan_page(scenario="llama2-7b-64-h100")
    widget(page, key).set_value(value).run()
    assert not page.exception
    expected = our_plan(load_scenario("llama2-7b-64-h100", [setting]))
    assert values(page) == shown_figures(expected)


def test_an_infeasible_request_says_why_and_what_to_do(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100")
    widget(page, "accelerator.memory_GiB").set_value(2.0).run()
    expected = our_plan(load_scenario("llama2-7b-64-h100", ["accelerator.memory_GiB=2.0"]))
    (notice,) = page.error
    assert expected.result.reason[1:] in notice.value
    assert expected.advice in notice.value
    assert set(values(page)) == {"–"}
    (shown,) = fabrics(page)
    assert shown["svg"]
    assert not shown["matrix"]
    (button,) = (button for button in page.button if button.label.startswith("Set memory"))
    button.click().run()
    assert not page.error
    assert values(page)[0] != "–"


def test_bad_input_is_one_sentence_and_keeps_the_last_figures(plan_page):
    page = plan_page(scenario="bert-large-64-v100")
    before, drawn = values(page), fabrics(page)
    widget(page, "workload.sequence_length_tokens").set_value(4096).run()
    assert not page.exception
    (notice,) = page.error
    assert notice.value.startswith("Sequence length must not exceed the 512 ")
    assert values(page) == before
    assert fabrics(page) == drawn
    assert grey_parts(page) == {"results", "results-middle", "results-methods"}
    widget(page, "workload.sequence_length_tokens").set_value(512).run()
    assert not page.error
    assert not grey_parts(page)


def test_bad_input_in_the_address_is_one_sentence_and_plans_nothing_else(plan_page, monkeypatch):
    """The preset was planned in its place, which nobody had asked for."""
    monkeypatch.setattr(jobs.JobQueue, "ask", None)
    page = plan_page(**{"workload.model": "gpt3-175b"})
    assert not page.exception
    (notice,) = page.error
    assert "2048 positions" in notice.value


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ({"search.ep": "exactly 7"}, "Expert parallel (ep) must divide the 8 experts, but is 7"),
        (
            {"fabric": "gb200-nvl72-rails", "fabric.clos.devices": "600"},
            "Devices must be a multiple of node size 72, but is 600",
        ),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(plan_page, address, sentence):
    page = plan_page(scenario="mixtral-8x7b-256-tpuv4like", **address)
    assert not page.exception
    (notice,) = page.error
    assert notice.value.startswith(sentence)


def test_a_search_without_a_point_is_one_sentence(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100", **{"search.tp": "exactly 7"})
    assert not page.exception
    assert len(page.error) == 1
    assert page.error[0].value.startswith("Tensor parallel (tp) ")


def test_a_pin_without_a_meaning_is_said_beside_it_and_changes_nothing(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100", **{"search.tp": "some"})
    assert not page.exception
    assert not page.error
    assert any("search.tp must be any, up to n" in one.value for one in page.caption)
    assert page.session_state["PlanPage"].scenario.overrides == {}


def test_a_changed_field_is_put_back_alone(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100")
    widget(page, "search.pp").set_value("exactly 2")
    widget(page, "workload.optimizer").set_value("sgd").run()
    assert "2 changed" in text_of(page)
    page.button(key="back-search.pp").click().run()
    assert page.session_state["PlanPage"].scenario.overrides == {"workload.optimizer": "sgd"}


def test_a_chip_is_another_place_of_the_same_field(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100")
    page.session_state["chip-model"] = True
    page.run()
    widget(page, "chip workload.model").set_value("bert-large").run()
    assert not page.error
    assert widget(page, "workload.model").value == "bert-large"
    assert widget(page, "workload.sequence_length_tokens").value == 512
    page.session_state["chip-batch"] = True
    page.run()
    assert widget(page, "chip workload.sequence_length_tokens").value == 512


def test_a_training_run_costs_what_a_person_says(plan_page):
    """Without a price there is none; neither changes the plan."""
    page = plan_page(scenario="llama2-7b-64-h100")
    assert "no price is given" in text_of(page)
    widget(page, "run.usd_per_gpu_hour").set_value(2.0)
    widget(page, "run.tokens_T").set_value(1.0).run()
    best = our_plan(load_scenario("llama2-7b-64-h100")).best
    share = goodput("llama2-7b-64-h100").estimate.shares.effective
    seconds = 1e12 / (best.tokens_per_s_per_device * 64) / share
    assert values(page)[2] == f"{seconds / 86_400:.3g}"
    assert values(page)[3] == f"${humanise(2.0 * 64 * seconds / 3600)}"
    assert page.session_state["PlanPage"].scenario.overrides == {}


def test_a_preset_sets_everything_anew(usual_default, plan_page):
    page = plan_page()
    widget(page, "accelerator.memory_GiB").set_value(40.0)
    widget(page, "search.zero").set_value("exactly 0")
    widget(page, "fabric.clos.oversubscription.0").set_value(4.0).run()
    widget(page, "scenario").set_value("llama2-7b-64-h100").run()
    expected = our_plan(load_scenario("llama2-7b-64-h100"))
    assert values(page) == shown_figures(expected)
    assert "Changed: " not in text_of(page)


def test_a_fabric_brings_its_own_ratios(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100")
    widget(page, "fabric.clos.oversubscription.0").set_value(4.0).run()
    widget(page, "fabric").set_value("v100-pods-64").run()
    assert [slider.value for slider in page.slider] == [1.0, 2.0]


def test_a_device_brings_its_memory_and_a_precision(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100")
    widget(page, "accelerator").set_value("v100-32gb").run()
    assert not page.error
    assert widget(page, "accelerator.memory_GiB").value == 32.0
    assert widget(page, "workload.precision").value == "fp16"


def test_a_model_with_learned_positions_shortens_the_sequence(plan_page):
    page = plan_page(scenario="llama2-7b-64-h100")
    widget(page, "workload.model").set_value("bert-large").run()
    assert not page.error
    assert widget(page, "workload.sequence_length_tokens").value == 512


@pytest.mark.baselines
def test_slow_baselines_are_drawn_grey_and_then_anew(plan_page, monkeypatch):
    """And then each with the line of its interval."""
    slow, ask = WorkerJob("slow"), jobs.JobQueue.ask

    def asked(queue, key, function, *args, **how):
        return slow if function is priced_baselines else ask(queue, key, function, *args, **how)

    with monkeypatch.context() as patch:
        patch.setattr(jobs.JobQueue, "ask", asked)
        patch.setattr(jobs, "wait_a_moment", lambda some: wait(set(some) - {slow}))
        page = plan_page(scenario="llama2-7b-64-h100")
        assert "…" in text_of(page), "the page did not draw our plan before the baselines"
    page.run()
    expected = answered("llama2-7b-64-h100")
    assert values(page) == shown_figures(expected)
    assert alternatives_table(
        entries(expected.result, expected.baselines),
        expected.scenario.sequence,
        expected.interval,
        "Manual",
        expected.result.certificate,
    ) in text_of(page)


@pytest.mark.baselines
def test_no_method_on_the_page_is_ahead_of_a_search_that_was_cut_short(plan_page, monkeypatch):
    """It is planned once more, from the fastest of them, as the command does."""
    sets = ["workload.global_batch_sequences=640", "search.pp=2"]
    monkeypatch.setattr(sys.modules["nest_core.planner.search"], "_WORK", 0.0)
    expected = answer(load_scenario("llama2-7b-64-h100", sets))
    page = plan_page(scenario="llama2-7b-64-h100", **dict(pin.split("=") for pin in sets))
    assert not page.exception
    assert expected.result.certificate.origin
    assert values(page) == shown_figures(expected)
    assert rests_on(expected.validity_of(expected.best), expected.result) in text_of(page)


def test_a_search_that_takes_long_stands_above_the_earlier_answer(plan_page, monkeypatch):
    """In grey, with a way out; cancelled before it began, it can be run again."""
    page = plan_page(scenario="llama2-7b-64-h100")
    before = values(page)
    held, real = WorkerJob(key="held"), plan_state._plan
    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)
    monkeypatch.setattr(
        plan_state,
        "_plan",
        lambda scenario, place="", **how: (
            held if scenario.values.batch == 640 else real(scenario, place, **how)
        ),
    )
    widget(page, "workload.global_batch_sequences").set_value(640).run()
    assert not page.exception
    assert page.button(key="stop-plan").label == "Cancel"
    assert grey_parts(page) == {"results", "results-middle", "results-methods"}
    assert values(page) == before
    page.button(key="stop-plan").click().run()
    assert held.stopped


def test_labels_carry_units_and_help_a_range(plan_page):
    page = plan_page()
    for control in (*page.number_input, *page.slider):
        assert "," in control.label, control.label
        assert " to " in control.help
    for control in page.selectbox:
        assert control.help


def test_settings_of_experts_are_offered_for_experts_with_what_they_were_worth(plan_page):
    """A dense model has neither; what is chosen goes into the search."""
    page = plan_page(**{"workload.model": "mixtral-790m", "workload.global_batch_sequences": 8})
    overlap = page.checkbox(key="workload.expert_overlap")
    assert "Expert overlap: 1.04 to 1.63 in 4 experiments, one of them clean" in overlap.help
    assert "DeepEP or HybridEP" in widget(page, "workload.dispatch").help
    overlap.check().run()
    assert f"{parameter('workload.expert_overlap').label} True" in text_of(page)
    widget(page, "workload.model").set_value("llama3-8b").run()
    assert not page.exception
    assert "expert overlap" not in text_of(page).lower()
    assert not [box for box in page.checkbox if box.key == "workload.expert_overlap"]


@pytest.mark.parametrize("name", preset_names("scenarios"))
def test_the_file_asks_for_the_same(name):
    document, _ = scenario_document(name)
    overrides = {
        "accelerator.memory_GiB": 60.0,
        "search.zero": [0, 1],
        "search.offload": ["none", {"activations": 0.5}],
        "search.tp": {"max": 4},
        "search.order": ["tp", "cp", "pp", "dp"],
        "workload.optimizer": "sgd",
    }
    written = tomllib.loads(scenario_toml(document, overrides))
    assert Scenario(written).values == Scenario(document, overrides).values
    assert tomllib.loads(scenario_toml(document, {})) == document


def test_what_is_offloaded_goes_from_the_form_into_a_file_and_back(plan_page):
    """The form had no field for it."""
    page = plan_page(scenario="llama2-7b-64-h100")
    widget(page, "search.offload").set_value(["none", "optimizer:1"]).run()
    request = page.session_state["PlanPage"].scenario
    written = tomllib.loads(scenario_toml(request.document, request.overrides))
    assert written["override"] == {"search.offload": ["none", {"optimizer": 1.0}]}
    name, overrides = over_preset(Scenario(written))
    offloads = FORM["search.offload"]
    assert (name, unsaid(Scenario(written))) == ("llama2-7b-64-h100", "")
    assert offloads.shown(overrides["search.offload"]) == (["none", "optimizer:1"],)
    pinned = {**request.document, "search": {"offload": {"optimizer": 1.0}}}
    _, overrides = over_preset(Scenario(pinned))
    assert offloads.shown(overrides["search.offload"]) == (["optimizer:1"],)


def test_the_command_asks_for_the_same():
    overrides = {"search.tp": {"max": 4}, "workload.optimizer": "sgd"}
    assert command_line("llama2-7b-64-h100", overrides) == (
        "nest-studio plan llama2-7b-64-h100 --set 'search.tp={ max = 4 }' "
        "--set 'workload.optimizer=\"sgd\"'"
    )
