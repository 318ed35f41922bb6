"""The Explore page: questions, values, points that open as scenarios, and every state."""

from __future__ import annotations

import html
import json
import time

import pytest
import streamlit as st
from our_plan import our_plan
from page_parts import grey_parts
from plan_cards import big_figures, shown_figures
from streamlit.testing.v1 import AppTest
from streamlit.util import AttributeDictionary

from nest_core.report.figures.study import ratios_finding
from nest_core.report.figures.sweep import pictures
from nest_core.report.notebook import pinned
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_core.studies.sweeps import highest_ratios, sweep
from nest_studio.components.show import show_picture
from nest_studio.form.scenario import changes_in_words
from nest_studio.jobs import waiting as jobs
from nest_studio.session.store import Database, Notebooks

SMALL = "llama2-7b-64-h100"
SMALL_FABRIC = "h100-spine-leaf-64"
ANSWER = {"results-title", "results"}
PATIENCE_S = 120.0


@pytest.fixture
def explore_page(root):
    """``explore_page(**address)``: the page as it opens on an address's parameters, answered."""

    def opened(answer=True, **address):
        page = AppTest.from_file(
            str(root / "nest_studio" / "server" / "script.py"), default_timeout=120
        )
        usual = {"scenario": SMALL, "explore.asks": "Sweep parameters"}
        for key, value in (usual | address).items():
            page.query_params[key] = value
        page.switch_page("../../pages/explore.py")
        return answered(page.run()) if answer else page.run()

    return opened


def answered(page):
    """The page once its job has ended."""
    until = time.monotonic() + PATIENCE_S
    while running(page):
        assert time.monotonic() < until, "the job did not end"
        time.sleep(0.1)
        page.run()
    return page


def running(page):
    return any(button.label == "Cancel" for button in page.button)


def widget(page, key):
    kinds = ("selectbox", "text_input", "number_input", "multiselect", "slider", "button")
    return next(w for kind in kinds for w in getattr(page, kind) if w.key == key)


def keys(page):
    return {button.key for button in page.button}


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def charts(page):
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def swept(x, y=None, preset=SMALL, **overrides):
    """The same sweep without the page."""
    document, _ = scenario_document(preset)
    return sweep(Scenario(document, overrides), [x] if y is None else [x, y])


def test_the_first_visit_turns_the_first_tier(explore_page):
    page = explore_page()
    assert not page.exception
    assert not page.error
    assert widget(page, "explore.question").value == "Leaf oversubscription"
    found = swept(("oversubscription.0", [1, 1.5, 2, 3, 4, 6, 8]))
    shown = pictures(found)
    assert len(charts(page)) == len(shown) == 3
    assert all(picture.title in text_of(page) for picture in shown)
    assert widget(page, "explore.point").value == "leaf oversubscription 1:1"
    assert found.points[0].words in text_of(page)


@pytest.mark.parametrize(
    ("asks", "texts"),
    [
        ("How much oversubscription?", ["explore.oversubscription.0"]),
        ("Which micro-batch and ZeRO stage?", ["explore.zero", "explore.micro_batch"]),
    ],
)
def test_it_opens_on_two_questions_in_words(explore_page, asks, texts):
    page = explore_page(answer=False, **{"explore.asks": asks})
    assert not page.exception
    assert [each.key for each in page.text_input if each.key.startswith("explore.")] == texts
    assert "explore.question" not in {each.key for each in page.selectbox}
    assert page.segmented_control[0].options[:2] == [
        "How much oversubscription?",
        "Which micro-batch and ZeRO stage?",
    ]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("scenario", "question", "parameters"),
    [
        (SMALL, "Micro-batch × ZeRO", ("ZeRO stage", "micro-batch")),
        (SMALL, "Scaling", ("devices", "none")),
        (SMALL, "Memory per device", ("memory per device", "none")),
        (SMALL, "Sequence length × recomputation", ("sequence length", "recomputation")),
        (SMALL, "NIC speed", ("NIC speed", "none")),
        (SMALL, "Node size", ("node size", "none")),
        (
            "bert-large-64-v100",
            "Two tiers at once",
            ("pod oversubscription", "spine oversubscription"),
        ),
        ("llama2-7b-64-tpu-torus", "Link speed", ("link speed", "none")),
    ],
)
def test_every_question_sets_its_parameters_and_is_answered(
    explore_page, scenario, question, parameters
):
    page = explore_page(scenario=scenario)
    widget(page, "explore.question").set_value(question).run()
    assert not page.exception
    assert not page.error
    chosen = [widget(page, f"explore.{axis}").value for axis in ("x", "y")]
    assert chosen[: len(parameters)] == list(parameters)
    if "explore-run" in keys(page):
        return
    answered(page)
    assert not page.exception
    assert charts(page)


def test_the_address_restores_the_question_and_the_values(explore_page):
    page = explore_page(
        **{
            "explore.question": "a question of my own",
            "explore.x": "memory per device",
            "explore.y": "ZeRO stage",
            "explore.memory": "40, 80",
            "explore.zero": "1, 3",
        }
    )
    assert not page.exception
    expected = pictures(swept(("memory", [40, 80]), ("zero", [1, 3])))[0]
    assert expected.title in text_of(page)


def test_another_parameter_makes_it_a_question_of_ones_own(explore_page):
    page = explore_page()
    widget(page, "explore.x").set_value("global batch").run()
    assert widget(page, "explore.question").value == "a question of my own"
    assert widget(page, "explore.batch").value == "256, 512, 1024, 2048, 4096"


@pytest.mark.check
def test_another_scenario_brings_values_of_its_own_but_keeps_what_was_written(explore_page):
    page = explore_page(**{"explore.question": "Memory per device"})
    widget(page, "scenario").set_value("bert-large-64-v100").run()
    assert not page.exception
    assert widget(page, "explore.memory").value == "16, 24, 32, 40, 64, 80, 96"
    widget(page, "explore.memory").set_value("20, 30").run()
    widget(page, "scenario").set_value(SMALL).run()
    assert widget(page, "explore.memory").value == "20, 30"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1, 0.5", "Oversubscription must be at least 1.0, but is 0.5"),
        ("1, two", "must be a number, but is 'two'"),
    ],
)
def test_values_that_cannot_be_are_one_sentence_and_the_figures_stay_in_grey(
    explore_page, text, sentence
):
    page = explore_page()
    drawn = charts(page)
    widget(page, "explore.oversubscription.0").set_value(text).run()
    assert not page.exception
    (notice,) = page.error
    assert sentence in notice.value
    assert charts(page) == drawn
    assert grey_parts(page) == ANSWER


def test_a_scenario_that_cannot_be_keeps_the_last_answer_in_grey(explore_page):
    page = explore_page()
    drawn = charts(page)
    widget(page, "fabric.clos.devices").set_value(131_072).run()
    assert not page.exception
    (notice,) = page.error
    assert "must" in notice.value
    assert charts(page) == drawn
    assert grey_parts(page) == ANSWER
    widget(page, "fabric.clos.devices").set_value(64).run()
    answered(page)
    assert not page.error
    assert not grey_parts(page)


def test_a_change_of_the_form_is_swept_anew(explore_page):
    page = explore_page(**{"explore.question": "Memory per device", "explore.memory": "64, 80"})
    widget(page, "workload.global_batch_sequences").set_value(512).run()
    answered(page)
    changed = swept(("memory", [64, 80]), **{"workload.global_batch_sequences": 512})
    assert changed.points[1].words in text_of(page)


def test_a_long_sweep_waits_for_a_click(explore_page):
    values = ", ".join(str(60 + size) for size in range(21))
    few = {
        "search.tp": "exactly 2",
        "search.zero": "exactly 1",
        "search.micro_batch_sequences": "exactly 2",
    }
    page = explore_page(
        **few, **{"explore.question": "Memory per device", "explore.memory": values}
    )
    assert not charts(page)
    (notice,) = page.info
    assert notice.value == "21 points, each planned anew."
    widget(page, "explore-run").click().run()
    answered(page)
    assert charts(page)
    assert len(page.selectbox(key="explore.point").options) == 21


@pytest.mark.check
def test_what_was_cancelled_is_shown_as_far_as_it_went_and_can_be_continued(
    explore_page, monkeypatch
):
    cut = {"explore.question": "Memory per device", "explore.memory": "65, 80"}
    asked, real = [], jobs.JobQueue.ask

    def ask(self, key, function, *inputs, **options):
        """The first time a job that somebody cancels after its first point."""
        asked.append(real(self, key, function if asked else cut_short, *inputs, **options))
        return asked[-1]

    monkeypatch.setattr(jobs.JobQueue, "ask", ask)
    monkeypatch.setattr(jobs, "MOMENT_S", 0.0)
    page = explore_page(answer=False, **cut)
    until = time.monotonic() + PATIENCE_S
    while asked[0].share < 0.5:
        assert time.monotonic() < until, "nobody took it up"
        time.sleep(0.01)
    widget(page, "stop-explore-sweep").click().run()
    answered(page)
    (notice,) = page.info
    assert notice.value == "Planning was cancelled: what was found by then is shown."
    assert widget(page, "explore.point").options == ["memory per device 65 GiB"]
    widget(page, "run-explore-sweep").click().run()
    answered(page)
    assert not page.info
    assert len(widget(page, "explore.point").options) == 2


def cut_short(*inputs, progress, stop):
    """A sweep that hears after its first point that it should stop."""
    asked = []

    def over():
        while len(asked) > 1 and not stop():
            time.sleep(0.01)
        return stop()

    def slow(*told):
        asked.append(told)
        time.sleep(0.2)  # what comes at once after another progress is not told
        progress(*told)

    return sweep(*inputs, stop=over, progress=slow)


def test_a_point_opens_as_a_scenario(explore_page):
    page = explore_page(**{"explore.question": "Memory per device", "explore.memory": "64, 80"})
    widget(page, "explore.point").set_value("memory per device 64 GiB").run()
    widget(page, "explore-open").click().run()
    assert not page.exception
    assert widget(page, "accelerator.memory_GiB").value == 64.0
    assert f"Changed: {changes_in_words({'accelerator.memory_GiB': 64.0})}" in text_of(page)
    expected = our_plan(load_scenario(SMALL, ["accelerator.memory_GiB=64.0"]))
    assert big_figures(text_of(page)) == shown_figures(expected)


def test_what_explore_pins_plan_shows_and_keeps(explore_page):
    page = explore_page(
        **{"explore.question": "Micro-batch × ZeRO", "explore.zero": "1, 3"},
        **{"explore.micro_batch": "1, 4"},
    )
    widget(page, "explore.point").set_value("ZeRO 3, micro-batch 4 sequences").run()
    words = swept(("zero", [3]), ("micro_batch", [4])).points[0].words
    page.session_state["tab"] = "Why"
    widget(page, "explore-open").click().run()
    assert not page.exception
    assert widget(page, "search.zero").value == "exactly 3"
    assert widget(page, "search.micro_batch_sequences").value == "exactly 4"
    pins = {"search.zero": 3, "search.micro_batch_sequences": 4}
    assert page.session_state["PlanPage"].scenario.overrides == pins
    assert words in text_of(page)


def test_a_point_of_a_fabrics_setting_opens_with_its_field(explore_page):
    page = explore_page(**{"explore.question": "NIC speed", "explore.speed.nic": "25, 50"})
    widget(page, "explore.point").set_value("NIC speed 25 GB/s").run()
    found = swept(("speed.nic", [25, 50]))
    page.session_state["tab"] = "Why"
    widget(page, "explore-open").click().run()
    assert not page.exception
    assert widget(page, "fabric").value == SMALL_FABRIC
    assert widget(page, "fabric.clos.nic_bandwidth_GBps").value == 25
    assert found.points[0].words in text_of(page)


def test_a_point_without_a_plan_says_why(explore_page):
    page = explore_page(**{"explore.question": "Memory per device", "explore.memory": "3, 80"})
    widget(page, "explore.point").set_value("memory per device 3 GiB").run()
    assert "No plan fits into memory: the leanest found" in text_of(page)
    assert not widget(page, "explore-open").disabled


def test_the_highest_ratios_stand_with_both_sides(explore_page):
    page = explore_page(**{"explore.asks": "Highest ratios"})
    assert not page.exception
    document, _ = scenario_document(SMALL)
    found = highest_ratios(Scenario(document), [{"model": "llama2-7b", "share": 1.0}], 0.02)
    assert ratios_finding(found) in text_of(page)
    assert len(charts(page)) == 1


def test_the_highest_ratios_are_pinned(explore_page, tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'n.sqlite'}"
    monkeypatch.setenv("NEST_STUDIO_DATABASE", url)
    page = explore_page(**{"explore.asks": "Highest ratios", "explore.loss": "0.5"})
    page.session_state["pin-ratios"] = True
    page.run()
    widget(page, "pin-ratios-do").click().run()
    assert not page.exception
    _, code = Notebooks(Database(url)).open("My notebook").notebook.cells
    pin = pinned(code)
    assert pin["kind"] == "ratios"
    assert (pin["inputs"]["mix"], pin["inputs"]["loss"]) == (
        [{"model": "llama2-7b", "share": 1.0}],
        0.005,
    )
    assert pin["title"] in code.outputs[0].data["text/plain"].replace("\n", " ")
    assert len(code.outputs) == 2


def test_every_figure_can_be_kept(explore_page):
    page = explore_page(**{"explore.question": "Memory per device", "explore.memory": "64, 80"})
    labels = [button.label for button in page.download_button]
    assert labels.count("Data (CSV)") == len(charts(page))


def clicked(*points):
    """What Streamlit keeps of a click on a chart: dictionaries whose keys are attributes too."""
    return AttributeDictionary({"selection": {"points": list(points)}})


def test_a_click_hands_on_what_the_point_carries(monkeypatch):
    kept, asked, taken = {"plot-x": clicked({"customdata": [3]})}, {}, []
    monkeypatch.setattr(st, "session_state", kept)
    chart = "streamlit.delta_generator.DeltaGenerator.plotly_chart"
    monkeypatch.setattr(chart, lambda *_, **options: asked.update(options))
    picture = pictures(swept(("memory", [64, 80])))[0]
    show_picture(picture, "x", on_pick=taken.append)
    asked["on_select"]()
    for nothing in (clicked(), clicked({"x": 1.0})):
        kept["plot-x"] = nothing
        asked["on_select"]()
    assert taken == [3]
    show_picture(picture, "y")
    assert asked["on_select"] == "ignore"


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ({"scenario": "llama2-7b-64-tpu-torus"}, "Fabric must have tiers to oversubscribe"),
        ({"workload.sequence_length_tokens": "8192", "explore.models": "gpt3-13b"}, "positions"),
    ],
)
def test_ratios_that_cannot_be_asked_for_are_one_sentence(explore_page, address, sentence):
    page = explore_page(**{"explore.asks": "Highest ratios"} | address)
    assert not page.exception
    (notice,) = page.error
    assert sentence in notice.value
    assert not charts(page)


def test_labels_carry_units_and_help_a_range(explore_page):
    page = explore_page(**{"explore.question": "Memory per device"})
    text = widget(page, "explore.memory")
    assert text.label == "Values of memory per device, GiB"
    assert "0.001 to 1,000,000" in text.help
    for control in (*page.number_input, *page.slider):
        assert "," in control.label, control.label
        assert " to " in control.help
    for control in page.selectbox:
        assert control.help
