"""The notebook page: every button, every state, and that the store has what is on screen."""

from __future__ import annotations

import html
import json
from dataclasses import replace

import pytest
from page_parts import components
from streamlit.testing.v1 import AppTest

from nest_core.api.answer import answer
from nest_core.errors import InputError
from nest_core.notebook import Cell, Notebook, Summary, add_cell, from_json, to_json
from nest_core.scenario import load_scenario, scenario_document
from nest_core.store import Database, Notebooks
from nest_studio import jobs, notebook_shelf, notebook_view
from nest_studio.jobs import Job

SMALL = "llama2-7b-64-h100"
DATE = "2026-11-20T08:00:00+00:00"


class JobQueue:
    """Does the work where it is asked for."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.done = 0

    def ask(self, key, function, *arguments, urgent=True, wanted_by=None):
        if key not in self.jobs:
            job = self.jobs[key] = Job(key)
            self.done += 1
            try:
                job.set_result(function(*arguments, progress=lambda *_: None, stop=lambda: False))
            except InputError as error:
                job.set_exception(error)
        return self.jobs[key]

    def forget(self, key):
        self.jobs.pop(key, None)


@pytest.fixture(scope="module")
def finished():
    """One queue for all tests, so that the small plan is found once."""
    return JobQueue()


@pytest.fixture
def job_queue(finished, monkeypatch):
    monkeypatch.setattr(jobs, "job_queue", lambda: finished)
    monkeypatch.setattr(notebook_shelf, "DEFAULT_SCENARIO", SMALL)
    return finished


@pytest.fixture
def url(tmp_path, monkeypatch):
    found = f"sqlite:///{tmp_path / 'n.sqlite'}"
    monkeypatch.setenv("NEST_STUDIO_DATABASE", found)
    return found


@pytest.fixture
def store(url):
    return Notebooks(Database(url))


@pytest.fixture
def opened(root, store, job_queue):
    """``opened(name)``: the page, at the address of a notebook if one is named."""

    def run(name=None):
        page = AppTest.from_file(str(root / "pages" / "notebook.py"), default_timeout=120)
        if name:
            page.query_params["notebook"] = name
        return page.run()

    return run


@pytest.fixture
def inputs():
    document = scenario_document(SMALL)[0] | {"baselines": {"names": []}}
    return {"document": document, "overrides": {}}


def note(name, text=""):
    return Cell(name, "note", name.upper(), text)


def press(page, key):
    next(button for button in page.button if button.key == key).click().run()
    assert not page.exception
    return page


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def charts(page):
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def titles(page):
    return [field.value for field in page.text_input if str(field.key).startswith("title-")]


def cells(store, name="N"):
    return store.open(name).notebook.cells


def test_the_first_visit_explains_and_offers_a_beginning(opened):
    page = opened()
    assert not page.exception
    assert "Press Pin on another page to add to it, or begin here." in text_of(page)
    assert {"start", "start-empty"} <= {button.key for button in page.button}


def test_the_default_plan_is_computed_shown_and_kept(opened, store):
    page = press(opened(), "start")
    expected = answer(load_scenario(SMALL))
    assert [metric.value for metric in page.metric] == [h.value for h in expected.headlines()]
    assert len(charts(page)) == 3
    (fabric,) = components(page, "nest-studio.svg")
    assert "stage-4" in fabric["svg"]
    assert page.query_params["notebook"] == "My notebook"
    (cell,) = cells(store, "My notebook")
    assert cell.summary.rows[0]["iteration time, s"] == expected.result.best.iteration_s
    again = opened("My notebook")
    assert "Pinned 2" in text_of(again)
    assert not again.warning


def test_the_address_opens_a_notebook(opened, store):
    store.save(Notebook("N", (note("a"),)))
    store.save(Notebook("M", (note("b"),)))
    page = opened("M")
    assert titles(page) == ["B"]
    assert page.radio[0].value == "M"
    page.radio[0].set_value("N").run()
    assert titles(page) == ["A"]
    assert page.query_params["notebook"] == "N"


def test_an_address_of_nothing_says_so(opened, store):
    store.save(Notebook("N"))
    page = opened("<Lost>")
    assert page.warning[0].value.startswith(r"There is no notebook named \<Lost>.")
    assert "Or open one at the left." in text_of(page)


def test_titles_and_notes_are_saved_as_they_are_typed(opened, store):
    store.save(Notebook("N", (note("a"),)))
    page = opened("N")
    page.text_input(key="title-a").set_value("  Why   this ").run()
    page.text_area(key="note-a").set_value("It is **cheap** <b>and</b> fast").run()
    assert cells(store) == (Cell("a", "note", "Why this", "It is **cheap** <b>and</b> fast"),)
    assert "It is <strong>cheap</strong> &lt;b&gt;and" in " ".join(
        element.proto.body for element in page.get("html")
    )
    assert "Saved " in text_of(page)
    page.text_input(key="title-a").set_value("   ").run()
    assert titles(page) == ["Why this"]


def test_cells_are_moved_copied_deleted_and_brought_back(opened, store):
    store.save(Notebook("N", tuple(map(note, "abc"))))
    page = opened("N")
    press(page, "down-a")
    assert titles(page) == ["B", "A", "C"]
    press(page, "up-c")
    assert titles(page) == ["B", "C", "A"]
    press(page, "copy-b")
    assert titles(page) == ["B", "B (copy)", "C", "A"]
    press(page, "delete-c")
    assert titles(page) == ["B", "B (copy)", "A"]
    assert [cell.title for cell in cells(store)] == titles(page)
    for expected in (["B", "B (copy)", "C", "A"], ["B", "C", "A"], ["B", "A", "C"]):
        press(page, "undo")
        assert titles(page) == expected
    press(page, "undo")
    assert [cell.title for cell in cells(store)] == ["A", "B", "C"]
    assert next(button for button in page.button if button.key == "undo").disabled


def test_the_ends_cannot_be_moved_over(opened, store):
    store.save(Notebook("N", tuple(map(note, "ab"))))
    disabled = {button.key for button in opened("N").button if button.disabled}
    assert {"up-a", "down-b"} <= disabled
    assert not {"down-a", "up-b"} & disabled


def test_a_note_is_added(opened, store):
    store.save(Notebook("N"))
    page = opened("N")
    assert "Nothing is pinned here yet." in text_of(page)
    press(page, "add-note")
    assert [cell.kind for cell in cells(store)] == ["note"]
    assert len(page.text_area) == 1


def test_undo_does_not_undo_what_others_did(opened, store):
    store.save(Notebook("N", tuple(map(note, "ab"))))
    page = press(opened("N"), "down-a")
    theirs = store.open("N")
    store.save(add_cell(theirs.notebook, note("c")), theirs.revision)
    page.run()
    assert titles(page) == ["B", "A", "C"]
    assert next(button for button in page.button if button.key == "undo").disabled


@pytest.fixture
def conflict(opened, store):
    """A page with an edit that came second, and the other's notebook."""
    store.save(Notebook("N", (note("a"),)))
    page = opened("N")
    theirs = store.open("N")
    store.save(add_cell(theirs.notebook, note("theirs")), theirs.revision)
    page.text_input(key="title-a").set_value("Mine").run()
    assert not page.exception
    return page


def test_an_edit_that_came_second_is_kept_on_screen_and_not_saved(conflict, store):
    (notice,) = conflict.warning
    assert notice.value.startswith("Unsaved changes: notebook N must still be version 1")
    assert titles(conflict) == ["Mine"]
    assert [cell.id for cell in cells(store)] == ["a", "theirs"]
    press(conflict, "retry")
    assert len(conflict.warning) == 1


def test_unsaved_edits_can_be_given_up(conflict):
    press(conflict, "reload")
    assert titles(conflict) == ["A", "THEIRS"]
    assert not conflict.warning


def test_unsaved_edits_can_be_saved_under_another_name(conflict, store):
    conflict.text_input(key="save-as").set_value("Mine").run()
    press(conflict, "save-under")
    assert not conflict.warning
    assert titles(conflict) == ["Mine"]
    assert [cell.title for cell in cells(store, "Mine")] == ["Mine"]
    assert [cell.id for cell in cells(store)] == ["a", "theirs"]


def test_a_run_again_says_what_changed_and_keeps_it(opened, store, inputs, job_queue):
    store.save(Notebook("First", (Cell("a", "plan", "P", "", inputs),)))
    opened("First")
    (cell,) = cells(store, "First")
    row = dict(cell.summary.rows[0])
    row["iteration time, s"] *= 2
    older = Summary((row,), {"nest-studio": "0.0.9"}, DATE)
    store.save(Notebook("N", (replace(cell, summary=older),)))
    page = opened("N")
    assert "Press Re-run to keep what it is now. Changed since 20 Nov 2026, 08:00" in text_of(page)
    assert "(−50.0 %)" in page.warning[0].value
    assert cells(store)[0].summary == older
    before = job_queue.done
    press(page, f"again-{cell.id}")
    assert job_queue.done == before + 1
    assert "Run again. Changed since 20 Nov 2026, 08:00 with nest-studio 0.0.9:" in text_of(page)
    assert cells(store)[0].summary.rows == cell.summary.rows
    page.run()
    assert not page.warning
    press(page, f"again-{cell.id}")
    assert "Run again: the same figures as on" in text_of(page)


def test_a_cell_that_another_tab_deletes_meanwhile_is_no_failure(
    opened, store, inputs, monkeypatch
):
    plans = tuple(Cell(name, "plan", name, "", inputs) for name in "ab")
    store.save(Notebook("N", plans))
    keep = notebook_view.keep_summary

    def late(cell_id, summary):
        theirs = store.open("N")
        if len(theirs.notebook.cells) == 2:
            store.save(replace(theirs.notebook, cells=plans[:1]), theirs.revision)
        keep(cell_id, summary)

    monkeypatch.setattr(notebook_view, "keep_summary", late)
    page = opened("N")
    assert not page.exception
    page.run()
    assert titles(page) == ["a"]
    assert cells(store)[0].summary is not None


def test_all_cells_are_run_again_at_once(opened, store, inputs, job_queue):
    other = {**inputs, "overrides": {"accelerator.memory_GiB": 70.0}}
    plans = (Cell("a", "plan", "A", "", inputs), Cell("b", "plan", "B", "", other))
    store.save(Notebook("N", (note("n"), *plans)))
    page = opened("N")
    before = job_queue.done
    press(page, "again-all")
    assert job_queue.done == before + 2
    assert text_of(page).count("Run again: the same figures as on") == 2
    store.save(Notebook("M", (note("n"),)))
    (button,) = (button for button in opened("M").button if button.key == "again-all")
    assert button.disabled


def test_two_cells_are_run_again_side_by_side(opened, store, inputs):
    other = {**inputs, "overrides": {"accelerator.memory_GiB": 70.0}}
    plans = (Cell("a", "plan", "A", "", inputs), Cell("b", "plan", "B", "", other))
    store.save(Notebook("N", plans))
    page = opened("N")
    page.button(key="again-a").click()
    press(page, "again-b")
    assert text_of(page).count("Run again: the same figures as on") >= 1
    assert not page.warning


def test_ticked_plans_become_a_comparison(opened, store, inputs):
    slow = {**inputs, "overrides": {"fabric.clos.oversubscription.0": 4.0}}
    plans = (Cell("a", "plan", "Same", "", inputs), Cell("b", "plan", "Same", "", slow))
    store.save(Notebook("N", (*plans, note("c"))))
    page = opened("N")
    compare = next(button for button in page.button if button.key == "compare")
    assert compare.disabled
    page.checkbox(key="compare-a").check().run()
    page.checkbox(key="compare-b").check().run()
    press(page, "compare")
    assert [cell.kind for cell in cells(store)] == ["plan", "plan", "comparison", "note"]
    made = cells(store)[2]
    assert not any(box.value for box in page.checkbox)
    assert made.title == "Same (1) beside Same (2)"
    assert [entry["overrides"] for entry in made.inputs["entries"]] == [{}, slow["overrides"]]
    assert len(made.summary.rows) == 2
    assert "Scenarios side by side" in text_of(page)


def test_cells_far_down_are_computed_when_they_are_opened(opened, store, inputs, job_queue):
    limits = [{"overrides": {"accelerator.memory_GiB": 79.0 - n}} for n in range(5)]
    assert len(limits) == notebook_view.OPEN_CELLS + 1
    many = tuple(Cell(f"c{n}", "plan", "P", "", inputs | limit) for n, limit in enumerate(limits))
    store.save(Notebook("N", many))
    before = job_queue.done
    page = opened("N")
    assert job_queue.done == before + notebook_view.OPEN_CELLS
    assert "Open it to compute its figures." in text_of(page)


def test_inputs_that_no_longer_hold_are_one_sentence(opened, store, inputs):
    bad = {**inputs, "overrides": {"workload.sequence_length_tokens": 0}}
    store.save(Notebook("N", (Cell("a", "plan", "A", "", bad), note("b"))))
    page = opened("N")
    assert not page.exception
    assert page.error[0].value.startswith("workload.sequence_length_tokens must be at least 1")
    assert titles(page) == ["A", "B"]


def test_a_notebook_is_made_renamed_and_deleted(opened, store):
    page = opened()
    page.text_input(key="new-notebook-name").set_value("First")
    page.button(key="FormSubmitter:new-notebook-Create").click().run()
    assert page.query_params["notebook"] == "First"
    page.text_input(key="rename-notebook-name").set_value("Better")
    page.button(key="FormSubmitter:rename-notebook-Rename").click().run()
    assert [entry.name for entry in store.listed()] == ["Better"]
    assert page.query_params["notebook"] == "Better"
    press(page, "delete-all")
    assert store.listed() == ()
    assert "notebook" not in page.query_params


def test_a_name_that_is_taken_is_one_sentence(opened, store):
    store.save(Notebook("N"))
    page = opened()
    page.text_input(key="new-notebook-name").set_value("N")
    page.button(key="FormSubmitter:new-notebook-Create").click().run()
    assert page.error[0].value.startswith("notebook name must not be taken, but is 'N'")
    page.run()
    assert not page.error


def test_an_exported_notebook_is_imported_beside_its_original(opened, store, inputs):
    saved = store.save(Notebook("N", (note("a", "*x*"), Cell("p", "plan", "P", "", inputs))))
    page = opened()
    file = ("n.json", to_json(saved.notebook).encode(), "application/json")
    page.file_uploader(key="notebook-file").set_value(file).run()
    assert not page.exception
    assert page.query_params["notebook"] == "N (2)"
    found = cells(store, "N (2)")
    assert [replace(cell, summary=None) for cell in found] == list(saved.notebook.cells)


def test_a_file_that_is_no_notebook_is_one_sentence(opened, store):
    page = opened()
    page.file_uploader(key="notebook-file").set_value(("n.json", b"\xff", "text/plain")).run()
    assert page.error[0].value.startswith("notebook must be UTF-8 text")
    assert store.listed() == ()


def test_a_database_that_is_none_is_one_sentence(root, tmp_path, monkeypatch):
    path = tmp_path / "n.sqlite"
    path.write_text("no database " * 100)
    monkeypatch.setenv("NEST_STUDIO_DATABASE", f"sqlite:///{path}")
    page = AppTest.from_file(str(root / "pages" / "notebook.py")).run()
    assert not page.exception
    assert page.error[0].value.startswith("database must be one that can be read and written")


def test_all_three_exports_hold_the_cells(opened, store, inputs, job_queue):
    store.save(Notebook("N", (note("a", "Words"), Cell("p", "plan", "P", "", inputs))))
    page = opened("N")
    assert [button.label for button in page.download_button][:3] == [
        "↓ Report (HTML)",
        "↓ Notebook (JSON)",
        "↓ Jupyter (ipynb)",
    ]
    notebook = store.open("N").notebook
    assert from_json(to_json(notebook)) == notebook
    report = notebook_shelf._report(notebook)
    assert "Words" in report
    assert "the same figures" in report


PAGE = """
from nest_core.scenario import scenario_document
from nest_studio.pins import pin_button

document, _ = scenario_document("llama2-7b-64-h100")
inputs = {"document": document, "overrides": OVERRIDES}
pin_button("plan", "A plan", inputs, key="x", rows=lambda: [{"t": 1.0, "plan": "tp 1"}])
"""


@pytest.fixture
def pin_page(store):
    def run(overrides="{}"):
        page = AppTest.from_string(PAGE.replace("OVERRIDES", overrides), default_timeout=60)
        page.session_state["pin-x"] = True
        return page.run()

    return run


def test_a_pin_makes_the_first_notebook(pin_page, store):
    page = pin_page()
    assert page.selectbox[0].value == "My notebook"
    page.text_area[0].set_value("Look")
    press(page, "pin-x-do")
    (cell,) = cells(store, "My notebook")
    asked = {"document": scenario_document(SMALL)[0], "overrides": {}}
    assert (cell.kind, cell.title, cell.note, cell.inputs) == ("plan", "A plan", "Look", asked)
    assert cell.summary.rows == ({"t": 1.0, "plan": "tp 1"},)
    assert page.success[0].value == "Pinned to My notebook: 1 cell."
    press(page, "pin-x-do")
    assert cells(store, "My notebook")[1].note == ""


def test_a_pin_goes_where_the_last_one_went(pin_page, store):
    for name in ("A", "B"):
        store.save(Notebook(name))
    page = pin_page()
    assert page.selectbox[0].value == "A"
    page.selectbox[0].set_value("B")
    page.text_input[0].set_value("Mine")
    press(page, "pin-x-do")
    assert [cell.title for cell in cells(store, "B")] == ["Mine"]
    assert page.selectbox[0].value == "B"


def test_a_pin_that_names_a_file_is_one_sentence(pin_page, store):
    page = press(pin_page("{'fabric': 'my/own.toml'}"), "pin-x-do")
    assert page.error[0].value.startswith("inputs.overrides.fabric must be a preset or a table")
    assert store.listed() == ()
