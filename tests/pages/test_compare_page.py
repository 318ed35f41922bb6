"""The Compare page: ready-made sets, every change of the list, the address, and every state."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path

import pytest
from page_parts import grey_parts
from streamlit.testing.v1 import AppTest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import load_toml, preset_path
from nest_core.report.documents import DESIGN_COLOURS
from nest_core.report.figures.comparison import pictures
from nest_core.report.sheet import words
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.comparison import LONGEST_NAME, compare
from nest_studio.compare.state import LONGEST_ADDRESS, READY_MADE
from nest_studio.jobs import waiting as jobs
from nest_studio.jobs.tasks.designs import planned_design
from nest_studio.plan import certainty as sure_view
from nest_studio.plan.state import PlanPage

PAGE = Path(__file__).resolve().parents[2] / "pages" / "compare.py"
# Workers started with "spawn" import the main script again, which must not draw then.
ALONE = """import streamlit as st

if __name__ == "__main__":
    st.navigation([st.Page({page!r})]).run()
"""
SMALL = "llama2-7b-64-h100"
FEW = {"search.pp": 1, "search.zero": 1, "search.recompute": "none", "search.schedule": "1f1b"}
RATIO = "fabric.clos.oversubscription.0"
TWO = [["One", SMALL, FEW], ["Two", SMALL, {**FEW, "accelerator.memory_GiB": 60.0}]]


@pytest.fixture
def fresh_page(tmp_path):
    """The page alone, not run yet."""
    script = tmp_path / "app.py"
    script.write_text(ALONE.format(page=str(PAGE)))
    return lambda: AppTest.from_file(str(script), default_timeout=120)


@pytest.fixture
def compare_page(fresh_page):
    """``compare_page(entries, **address)``: the page as it opens on a comparison's link."""

    def opened(listed=TWO, text="", **address):
        page = fresh_page()
        if listed is not None:
            page.query_params["compare"] = text or json.dumps(listed)
        for key, value in ({"compare.failures": "false"} | address).items():
            page.query_params[key] = value
        for key in ("more", "all-figures"):
            page.session_state[key] = True
        return page.run()

    return opened


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def titles(page):
    return [chart.proto.alt for chart in page.get("plotly_chart")]


def charts(page):
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def widget(page, key):
    kinds = ("selectbox", "number_input", "button", "toggle", "text_input")
    return next(w for kind in kinds for w in getattr(page, kind) if w.key == key)


def name_fields(page):
    return [field for field in page.text_input if str(field.key).startswith("compare-name-")]


def names(page):
    return [field.value for field in name_fields(page)]


def identity(page, place):
    """What the keys of an entry's widgets end in."""
    return name_fields(page)[place].key.rpartition("-")[2]


def typed(page, name):
    return page.text_input(key=f"bill.{name}")


def asked(listed, budget=None, failures=False):
    entries = [
        (name, Scenario(scenario_document(scenario)[0], overrides))
        for name, scenario, overrides in listed
    ]
    return compare(entries, budget=budget, failures=failures)


def test_the_page_shows_what_the_core_compares(compare_page):
    page = compare_page()
    assert not page.exception
    assert not page.error
    expected = asked(TWO)
    assert [chart.proto.alt.partition(". ")[0] for chart in page.get("plotly_chart")] == [
        picture.title.partition(". ")[0] for picture in pictures(expected)[1:]
    ]
    shown = text_of(page)
    differing = [line for line in expected.lines() if any(line.differs)]
    for line in differing:
        assert line.figure in shown
        assert all(text in shown for text in line.texts)
    marks = sum(sum(line.differs) for line in differing)
    assert shown.count('class="nest-differs"') == marks


def test_all_figures_can_be_shown(compare_page):
    page = compare_page()
    assert "axes, innermost first" not in text_of(page)
    widget(page, "compare.only").set_value(False).run()
    assert "axes, innermost first" in text_of(page)


def test_the_first_visit_compares_three_ratios(compare_page):
    page = compare_page(None)
    assert not page.exception
    assert names(page) == ["1:1", "2:1", "4:1"]
    assert len(charts(page)) == 2
    assert re.search(r"Oversubscription[^<]*</th>", text_of(page))
    assert not re.search(r">[a-z]+[.][a-z_]+[.]", text_of(page))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", READY_MADE)
def test_every_ready_made_set_is_compared(compare_page, name):
    page = compare_page()
    widget(page, "compare-set").set_value(name).run()
    assert not page.exception
    assert not page.error
    assert names(page) == [entry[0] for entry in READY_MADE_NAMES[name]]
    assert widget(page, "compare-set").value is None
    assert len(charts(page)) == 2


READY_MADE_NAMES = {
    "Plan's job at 1:1, 2:1, 4:1": [["1:1"], ["2:1"], ["4:1"]],
    "Rail-optimised, spine-leaf, rail-only (1,024 H100)": [
        ["Rail-optimised"],
        ["Spine-leaf"],
        ["Rail-only"],
    ],
    "Switches, mesh, torus (64 H100)": [["Spine-leaf"], ["Mesh in the node"], ["Torus"]],
}


def test_the_ratios_are_of_the_job_on_the_plan_page(compare_page):
    page = compare_page()
    document, _ = scenario_document(SMALL)
    page.session_state["PlanPage"] = PlanPage(
        Scenario(document, dict(FEW)), failures={"failures": "llama3-405b"}
    )
    widget(page, "compare-set").set_value("Plan's job at 1:1, 2:1, 4:1").run()
    assert not page.exception
    listed = json.loads(page.query_params["compare"])
    assert [overrides["failures"] for _, _, overrides in listed] == ["llama3-405b"] * 3
    helps = [button.help for button in page.button if "compare-plan-" in str(button.key)]
    assert sum("batch 1,024" in text for text in helps) == 3


def test_names_are_edited_and_told_apart(compare_page):
    page = compare_page()
    name_fields(page)[0].set_value("  Rails   first ").run()
    assert names(page) == ["Rails first", "Two"]
    name_fields(page)[1].set_value("Rails first").run()
    assert names(page) == ["Rails first", "Rails first (2)"]
    assert not page.exception
    name_fields(page)[1].set_value(" ").run()
    assert names(page)[1] == "Rails first (2)"
    assert "Rails first (2)" in text_of(page)


def test_the_order_changes_and_comes_back(compare_page):
    page = compare_page()
    assert widget(page, f"compare-up-{identity(page, 0)}").disabled
    widget(page, f"compare-up-{identity(page, 1)}").click().run()
    assert names(page) == ["Two", "One"]
    expected = asked(TWO[::-1])
    assert titles(page)[0].startswith(pictures(expected)[1].title)
    widget(page, "compare-undo").click().run()
    assert names(page) == ["One", "Two"]
    widget(page, f"compare-down-{identity(page, 0)}").click().run()
    assert names(page) == ["Two", "One"]


def test_one_scenario_alone_asks_for_another(compare_page):
    page = compare_page()
    widget(page, f"compare-remove-{identity(page, 0)}").click().run()
    assert not page.exception
    (notice,) = page.info
    assert notice.value == "Add another scenario to compare."
    assert not charts(page)
    widget(page, f"compare-remove-{identity(page, 0)}").click().run()
    assert page.info[0].value == "Add two scenarios to compare."
    widget(page, "compare-undo").click().run()
    widget(page, "compare-undo").click().run()
    assert names(page) == ["One", "Two"]
    assert len(charts(page)) == 2


def test_the_same_job_is_put_on_another_fabric(compare_page):
    other = ["mi300x-mesh-64", SMALL, FEW | {"fabric": "mi300x-mesh-64"}]
    page = compare_page([["One", SMALL, FEW]])
    document, _ = scenario_document(SMALL)
    overrides = FEW | {"fabric": "mesh-8x8", "fabric.clos.oversubscription.0": 4.0}
    page.session_state["PlanPage"] = PlanPage(Scenario(document, overrides))
    widget(page, "compare-add-fabric").set_value("mi300x-mesh-64").run()
    widget(page, "compare-add").click().run()
    assert not page.exception
    assert json.loads(page.query_params["compare"]) == [["One", SMALL, FEW], other]
    expected = asked([["One", SMALL, FEW], other])
    assert titles(page)[0].startswith(pictures(expected)[1].title)


def test_a_seventh_scenario_cannot_be_added(compare_page):
    six = [[str(number), SMALL, FEW] for number in range(6)]
    page = compare_page(six)
    assert len(name_fields(page)) == 6
    assert widget(page, "compare-add").disabled
    assert not page.error


def test_nothing_differs_between_equals(compare_page):
    page = compare_page([["a", SMALL, FEW], ["b", SMALL, FEW]])
    assert "Nothing differs: these are the same scenario." in text_of(page)


def test_budget_and_lost_switches_are_added(compare_page):
    page = compare_page(**{"compare.budget": "network power", "compare.failures": "true"})
    assert not page.exception
    expected = asked(TWO, budget={"kind": "power", "value": None}, failures=True)
    budget, losses = pictures(expected)[1:3]
    assert [title.partition(". ")[0] for title in titles(page)[-2:]] == [
        budget.title.partition(". ")[0],
        losses.title.partition(". ")[0],
    ]
    widget(page, "compare.budget_value").set_value(12.0).run()
    assert "network power up to 12.0 kW" in text_of(page)
    widget(page, "compare.budget").set_value("none").run()
    widget(page, "compare.failures").set_value(False).run()
    assert len(charts(page)) == 2


def test_what_no_plan_fits_stands_beside_what_one_does(compare_page):
    page = compare_page(
        [["Fits", SMALL, FEW], ["Starved", SMALL, {**FEW, "accelerator.memory_GiB": 3.0}]]
    )
    assert not page.exception
    assert not page.error
    shown = text_of(page)
    assert "Why no plan" in shown
    assert "no plan fits into memory" in shown


def test_bad_input_is_one_sentence_and_keeps_the_last_figures(compare_page):
    page = compare_page()
    before = charts(page)
    document, _ = scenario_document(SMALL)
    broken = Scenario(document, {"fabric.clos.devices": 63})
    page.session_state["PlanPage"] = PlanPage(broken)
    widget(page, "compare-add").click().run()
    assert not page.exception
    (notice,) = page.error
    assert notice.value.startswith("Plan is left out: Devices must be a multiple")
    assert charts(page) == before
    assert not grey_parts(page)
    widget(page, "compare-remove-0").click().run()
    assert charts(page) == before
    assert grey_parts(page) == {"results"}
    widget(page, "compare-undo").click().run()
    widget(page, "compare-undo").click().run()
    assert not page.error
    assert not grey_parts(page)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        "{}",
        '[["a"]]',
        '[["a", "no such preset", {}]]',
        '[["", "x", {}]]',
        '[["a", ["x"], {}]]',
        "[" * 5000,
    ],
)
def test_a_link_that_cannot_be_read_says_so(fresh_page, text):
    page = fresh_page()
    page.query_params["compare"] = text
    page.query_params["compare.failures"] = "false"
    page.run()
    assert not page.exception
    (notice,) = page.warning
    assert notice.value.startswith("The link's comparison cannot be read")
    assert names(page) == ["1:1", "2:1", "4:1"]
    widget(page, "compare-start-over").click().run()
    assert not page.warning


def test_the_address_brings_the_comparison_back(compare_page):
    page = compare_page()
    name_fields(page)[1].set_value("Less memory").run()
    text = page.query_params["compare"]
    assert json.loads(text) == [TWO[0], ["Less memory", *TWO[1][1:]]]
    again = compare_page(json.loads(text))
    assert names(again) == ["One", "Less memory"]
    assert charts(again) == charts(page)


def test_what_is_too_long_for_the_address_is_kept_in_the_store(compare_page):
    page = compare_page()
    document, _ = scenario_document(SMALL)
    drawn = load_toml(preset_path("fabrics", "h100-spine-leaf-64.toml"))
    drawn["source"] = "y" * LONGEST_ADDRESS
    page.session_state["PlanPage"] = PlanPage(Scenario(document, {"fabric": drawn}))
    widget(page, "compare-add").click().run()
    assert not page.exception
    text = page.query_params["compare"]
    assert len(text) < 40
    again = compare_page(text=text)
    assert names(again) == names(page)
    assert charts(again) == charts(page)


@pytest.mark.parametrize("text", ["kept.nobody", "kept."])
def test_a_key_that_nobody_knows_is_said(compare_page, text):
    page = compare_page(text=text)
    assert not page.exception
    assert "cannot be read" in page.warning[0].value


def test_a_cancelled_comparison_waits_to_be_run_again(compare_page, monkeypatch):
    page = compare_page()
    before = charts(page)
    stopped = jobs.WorkerJob("stopped")
    stopped.set_exception(jobs.Stopped())
    real = jobs.JobQueue.ask

    def ask(self, key, function, *args, **options):
        if function is planned_design and args[0].fabric.devices == 64:
            return stopped
        return real(self, key, function, *args, **options)

    monkeypatch.setattr(jobs.JobQueue, "ask", ask)
    name_fields(page)[1].set_value("Third").run()
    assert not page.exception
    assert page.info[0].value == "One, planning: cancelled."
    assert charts(page) == before
    assert grey_parts(page) == {"results"}
    monkeypatch.setattr(jobs.JobQueue, "ask", real)
    next(button for button in page.button if button.label == "Run").click().run()
    assert not page.info
    assert "Third" in text_of(page)


def test_a_design_that_fails_is_a_line_and_the_others_stand(compare_page, monkeypatch):
    """One design that failed took the whole page with it, after 184 s, for one red line."""
    real = jobs.JobQueue.ask

    def ask(self, key, function, *args, **options):
        if function is planned_design and args[0].setting("accelerator.memory_GiB") == 60.0:
            failed = jobs.WorkerJob("failed")
            failed.set_exception(InputError("fabric", "must be smaller", 64, "use less"))
            return failed
        return real(self, key, function, *args, **options)

    monkeypatch.setattr(jobs.JobQueue, "ask", ask)
    page = compare_page([*TWO, ["Three", SMALL, {**FEW, "accelerator.memory_GiB": 50.0}]])
    assert not page.exception
    (notice,) = page.error
    assert notice.value == "Two: Fabric must be smaller, but is 64: use less."
    shown = page.session_state["ComparePage"].answer[1]
    assert [one.name for one in shown.candidates] == ["One", "Three"]
    assert len(charts(page)) == 2


def test_designs_that_are_there_stand_while_others_are_awaited(compare_page, monkeypatch):
    """And another name, or another place in the list, plans nothing anew."""
    real, planned = jobs.JobQueue.ask, []

    def ask(self, key, function, *args, **options):
        job = real(self, key, function, *args, **options)
        if function is planned_design:
            planned.append(key)
            return jobs.WorkerJob(key) if planned.index(key) == 1 else job
        return job

    monkeypatch.setattr(jobs.JobQueue, "ask", ask)
    monkeypatch.setattr(jobs, "MOMENT_S", 0.1)
    page = compare_page([*TWO, ["Three", SMALL, {**FEW, "accelerator.memory_GiB": 50.0}]])
    assert not page.exception
    assert len(charts(page)) == 2
    monkeypatch.setattr(jobs.JobQueue, "ask", real)
    shown = page.session_state["ComparePage"].answer[1]
    assert [one.name for one in shown.candidates] == ["One", "Three"]
    page.run()
    widget(page, f"compare-down-{identity(page, 0)}").click().run()
    name_fields(page)[0].set_value("Second").run()
    shown = page.session_state["ComparePage"].answer[1]
    assert [one.name for one in shown.candidates] == ["Second", "One", "Three"]
    assert len(set(planned)) == 3


def test_labels_carry_units_and_help_a_range(compare_page):
    page = compare_page(**{"compare.budget": "network price"})
    for control in page.number_input:
        assert "," in control.label
        assert "\\" not in control.label  # which a screen reader would read
        assert " to " in control.help
    for control in page.selectbox:
        assert control.help


def test_the_table_as_csv_has_every_figure():
    found = asked(TWO)
    head, *rows = csv.reader(io.StringIO(found.to_csv()))
    assert head[3:] == ["One", "Two"]
    assert len(rows) == len(found.lines())


def test_a_scenario_that_is_none_is_left_out_and_the_others_stand(compare_page):
    bad = ["Bad", SMALL, {**FEW, "fabric.clos.devices": 12}]
    page = compare_page([TWO[0], bad, TWO[1]])
    assert not page.exception
    (notice,) = page.error
    assert notice.value.startswith("Bad is left out: Devices must be a multiple of")
    shown = page.session_state["ComparePage"].answer[1]
    assert [one.name for one in shown.candidates] == ["One", "Two"]
    swatches = re.findall(r'nest-swatch" style="background: ([^"]+)"', text_of(page))
    assert swatches == [DESIGN_COLOURS[0], "transparent", DESIGN_COLOURS[1]]
    assert [one.name for one in page.session_state["ComparePage"].history.present] == [
        "One",
        "Bad",
        "Two",
    ]


def test_a_name_too_long_for_its_field_is_cut(compare_page):
    page = compare_page([["n" * 500, *TWO[0][1:]], TWO[1]])
    assert not page.warning
    assert page.session_state["ComparePage"].history.present[0].name == "n" * LONGEST_NAME


def test_how_sure_a_difference_is_comes_from_shared_draws(compare_page, monkeypatch):
    monkeypatch.setattr(sure_view, "PARTS", ((0, 1), (1, 2)))
    page = compare_page()
    page.session_state["sure"] = True
    page.run()
    assert not page.exception
    shown = text_of(page)
    assert "Beside One, draw by draw" in shown
    assert re.search(r"Two.*(slower|faster|cannot be told apart) \([+-].* of draws", shown)


def answer_of(page):
    """The title, and the sentence below it."""
    shown = text_of(page)
    return re.search('nest-answer">([^<]+)', shown)[1], re.search('nest-below">([^<]+)', shown)[1]


def test_the_title_is_the_decision_under_the_prices_of_the_rail(compare_page):
    page = compare_page([["4:1", SMALL, FEW | {RATIO: 4.0}], ["1:1", SMALL, FEW | {RATIO: 1.0}]])
    assert not page.exception
    found = page.session_state["ComparePage"].answer[1]
    title, below = answer_of(page)
    assert title == words.title(found.decision())
    assert found.decision().rule in text_of(page)
    assert "At $37.0 k" in below
    typed(page, "device_usd").set_value("$30,000").run()
    assert not page.error
    assert "At $30.0 k" in answer_of(page)[1]
    typed(page, "years").set_value("3").run()
    assert "Whole bill over 3 years" in text_of(page)
    asked = {"bill.device_usd": "$30,000", "bill.years": "3"}
    again = compare_page(json.loads(page.query_params["compare"]), **asked)
    assert answer_of(again) == answer_of(page)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        ("device_usd", "-5", "must be at least 0, but is '-5'"),
        ("device_usd", "cheap", "must be a number, but is 'cheap'"),
        ("device_usd", "0", "Accelerator with server share must be above 0, but is '0'"),
        ("pue", "0.5", "must be at least 1, but is '0.5'"),
        ("hours", "120", "must be from 0 to 100 %, but is '120'"),
        ("max_loss", "101", "must be from 0 to 100 %, but is '101'"),
        ("tokens", "0", "must be from 1 to 1e18, but is '0'"),
    ],
)
def test_a_price_that_cannot_be_is_one_sentence_and_figures_stand(compare_page, field, text, rule):
    page = compare_page()
    figures = {"device_usd": "30000", "pue": "1.2", "hours": "80", "tokens": "1e12"}
    good = (figures | {"max_loss": "5"})[field]
    typed(page, field).set_value(good).run()
    before = text_of(page)
    typed(page, field).set_value(text).run()
    assert not page.exception
    (notice,) = page.error
    assert rule in notice.value
    assert text_of(page) == before
    typed(page, field).set_value("").run()
    assert not page.error


def test_one_click_adds_the_same_size_in_another_topology(compare_page):
    page = compare_page([["One", SMALL, FEW]])
    for name in ("rail-only", "4:1"):
        widget(page, "compare-add-as").set_value(name).run()
        assert not page.exception
    assert names(page) == ["One", "rail-only", "4:1"]
    one, rails, ratio = page.session_state["ComparePage"].answer[1].candidates
    assert rails.scenario.fabric.devices == one.scenario.fabric.devices
    assert rails.scenario.fabric.arrangement().startswith("rail-only")
    assert ratio.scenario.fabric.oversubscription == (4.0,)
    widget(page, "compare-add-as").set_value("fat-tree").run()
    assert not page.exception
    assert len(names(page)) == 4 or page.error


def test_a_topology_that_does_not_exist_is_refused_in_labels(compare_page):
    """A rack's 72 NICs do not fit on half of a leaf; "--compare" and "clos.radix" stood there."""
    page = compare_page([["One", SMALL, FEW | {"fabric": "gb200-nvl72-rails"}]])
    widget(page, "compare-add-as").set_value("spine-leaf").run()
    assert not page.exception
    (sentence,) = [notice.value for notice in page.error if "exist" in notice.value]
    assert sentence.startswith("Spine-leaf must exist at this size: switch radix must")
    assert not any(key in sentence for key in ("clos", "--compare", ".."))
