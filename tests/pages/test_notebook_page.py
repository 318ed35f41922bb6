"""The notebook page: what it shows of any file, its few buttons, and that the store follows."""

from __future__ import annotations

import html
import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from streamlit.testing.v1 import AppTest

from nest_core.report.notebook import new_notebook, pin_cells, pinned, write_notebook
from nest_core.scenario import scenario_document
from nest_studio.session.store import Database, Notebooks

SMALL = "llama2-7b-64-h100"
EVIL = "<script>alert(1)</script><img src=//elsewhere.example/x.png>"
PLOT = "application/vnd.plotly.v1+json"


@pytest.fixture
def store(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'n.sqlite'}"
    monkeypatch.setenv("NEST_STUDIO_DATABASE", url)
    return Notebooks(Database(url))


@pytest.fixture
def opened(root, store):
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


def notes(*titles):
    cells = [cell for title in titles for cell in pin_cells("note", title, "", {})]
    for cell, title in zip(cells, titles, strict=True):
        cell.id = title
    return new_notebook(cells)


def press(page, key):
    next(button for button in page.button if button.key == key).click().run()
    assert not page.exception
    return page


def raw(page):
    return " ".join(element.proto.body for element in page.get("html"))


def text_of(page):
    return html.unescape(raw(page))


def titles(store, name="N"):
    return [cell.id for cell in store.open(name).notebook.cells]


def test_the_first_visit_says_how_a_notebook_begins(opened):
    page = opened()
    assert not page.exception
    assert "Press Pin on another page" in text_of(page)


def test_the_address_opens_a_notebook(opened, store):
    store.save("N", notes("a"))
    store.save("M", notes("b"))
    page = opened("M")
    assert "<h2>b</h2>" in raw(page)
    assert page.radio[0].value == "M"
    page.radio[0].set_value("N").run()
    assert "<h2>a</h2>" in raw(page)
    assert page.query_params["notebook"] == "N"


def test_an_address_of_nothing_says_so(opened, store):
    store.save("N", notes())
    page = opened("<Lost>")
    assert page.warning[0].value.startswith(r"There is no notebook named \<Lost>")
    assert page.radio[0].value is None


def test_text_code_figures_and_pictures_are_shown(opened, store):
    plot = {"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}
    outputs = [
        new_output("display_data", data={PLOT: plot, "text/plain": "two bars"}),
        new_output("display_data", data={"image/png": "iVBORw0="}),
        new_output("stream", text="printed"),
    ]
    cells = [new_markdown_cell("*so*"), new_code_cell("1 + 1", outputs=outputs), new_code_cell("2")]
    store.save("N", new_notebook(cells))
    page = opened("N")
    assert "<em>so</em>" in raw(page)
    assert [block.value for block in page.code] == ["1 + 1", "printed", "2"]
    (chart,) = page.get("plotly_chart")
    assert json.loads(chart.proto.spec)["data"][0]["y"] == [1, 2]
    assert 'src="data:image/png;base64,iVBORw0="' in raw(page)
    assert "It has no output yet: run it in Jupyter." in text_of(page)


def test_nothing_of_a_strangers_cell_runs_or_loads(opened, store):
    outputs = [
        new_output("display_data", data={"text/html": EVIL}),
        new_output("display_data", data={"text/html": EVIL, "text/plain": EVIL}),
        new_output("display_data", data={"image/svg+xml": EVIL}),
        new_output("display_data", data={"image/png": f'" {EVIL}', "text/plain": "no picture"}),
        new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL]),
    ]
    store.save("N", new_notebook([new_markdown_cell(EVIL), new_code_cell(EVIL, outputs=outputs)]))
    page = opened("N")
    assert not page.exception
    assert "<script" not in raw(page)
    assert "elsewhere" not in raw(page).replace(html.escape(EVIL), "")
    assert not page.markdown


def test_cells_are_moved_deleted_and_brought_back(opened, store):
    store.save("N", notes("a", "b", "c"))
    page = opened("N")
    disabled = {button.key for button in page.button if button.disabled}
    assert disabled == {"up-a", "down-c"}
    press(page, "down-a")
    assert titles(store) == ["b", "a", "c"]
    press(page, "up-c")
    assert titles(store) == ["b", "c", "a"]
    press(page, "delete-c")
    assert titles(store) == ["b", "a"]
    press(page, "restore-3")
    assert titles(store) == ["b", "c", "a"]
    press(page, "restore-1")
    assert titles(store) == ["a", "b", "c"]
    assert store.open("N").revision == 6


def test_a_second_tab_is_told_before_it_overwrites(opened, store):
    store.save("N", notes("a", "b"))
    page = opened("N")
    theirs = store.save("N", notes("theirs", "a", "b"), 1)
    press(page, "delete-a")
    assert page.error[0].value.startswith("Notebook N must still be version 1, which was opened")
    assert store.open("N") == theirs
    assert "<h2>theirs</h2>" in raw(page)
    press(page, "delete-a")
    assert not page.error
    assert titles(store) == ["theirs", "b"]


def test_a_notebook_is_renamed_and_deleted(opened, store):
    store.save("N", notes("a"))
    store.save("M", notes())
    page = opened("N")
    page.text_input(key="notebook-name").set_value("M")
    page.button(key="FormSubmitter:rename-notebook-Rename").click().run()
    assert page.error[0].value.startswith("Notebook name must not be taken, but is 'M'")
    page.text_input(key="notebook-name").set_value("Better")
    page.button(key="FormSubmitter:rename-notebook-Rename").click().run()
    assert [entry.name for entry in store.listed()] == ["Better", "M"]
    assert page.query_params["notebook"] == "Better"
    press(page, "delete-all")
    assert [entry.name for entry in store.listed()] == ["M"]
    assert "notebook" not in page.query_params


def test_a_file_of_jupyter_is_taken_beside_one_of_its_name(opened, store):
    store.save("mine", notes("a"))
    page = opened()
    file = ("mine.ipynb", write_notebook(notes("b")).encode(), "application/json")
    page.file_uploader(key="notebook-file").set_value(file).run()
    assert not page.exception
    assert page.query_params["notebook"] == "mine (2)"
    assert titles(store, "mine (2)") == ["b"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"\xff", "Notebook must be UTF-8 text"), (b"{}", "Notebook must be a Jupyter notebook")],
)
def test_a_file_that_is_no_notebook_is_one_sentence(opened, store, content, sentence):
    page = opened()
    page.file_uploader(key="notebook-file").set_value(("n.ipynb", content, "text/plain")).run()
    assert not page.exception
    assert page.error[0].value.startswith(sentence)
    assert store.listed() == ()


def test_a_database_that_is_none_is_one_sentence(root, tmp_path, monkeypatch):
    path = tmp_path / "n.sqlite"
    path.write_text("no database " * 100)
    monkeypatch.setenv("NEST_STUDIO_DATABASE", f"sqlite:///{path}")
    page = AppTest.from_file(str(root / "pages" / "notebook.py")).run()
    assert not page.exception
    assert page.error[0].value.startswith("Database must be one that can be read and written")


def test_its_files_are_a_notebook_a_report_and_a_lesson(opened, store, inputs):
    store.save("N", new_notebook(pin_cells("plan", "P", "", inputs)))
    assert [button.label for button in opened("N").download_button] == [
        "↓ Notebook (ipynb)",
        "↓ Report (HTML)",
        "Lesson",
    ]


def test_a_pin_that_was_edited_to_no_scenario_is_shown_without_ways_out(opened, store, inputs):
    bad = {**inputs, "overrides": {"workload.sequence_length_tokens": 0}}
    store.save("N", new_notebook(pin_cells("plan", "P", "", bad)))
    page = opened("N")
    assert not page.exception
    assert not any(str(button.key).startswith("open-") for button in page.button)


PAGE = """
from nest_core.report.notebook import PinOutput
from nest_core.scenario import scenario_document
from nest_studio.notebook.pins import pin_button

document, _ = scenario_document("llama2-7b-64-h100")
inputs = {"document": document, "overrides": {}}
output = PinOutput("5.2 s", figures=("iteration time, s",))
pin_button("plan", "A plan", inputs, key="x", output=lambda: output)
"""


@pytest.fixture
def pin_page(store):
    def run():
        page = AppTest.from_string(PAGE, default_timeout=60)
        page.session_state["pin-x"] = True
        return page.run()

    return run


def test_a_pin_makes_the_first_notebook(pin_page, store):
    page = pin_page()
    assert page.selectbox[0].value == "My notebook"
    page.text_area[0].set_value("Look")
    press(page, "pin-x-do")
    words, code = store.open("My notebook").notebook.cells
    assert words.source == "## A plan\n\nLook"
    pin = pinned(code)
    assert pin["inputs"] == {"document": scenario_document(SMALL)[0], "overrides": {}}
    assert code.outputs[0].data["text/plain"] == "5.2 s"
    assert page.success[0].value == "Pinned to My notebook: 2 cells."
    press(page, "pin-x-do")
    assert pinned(store.open("My notebook").notebook.cells[3])["note"] == ""


def test_a_pin_goes_where_the_last_one_went(pin_page, store):
    for name in ("A", "B"):
        store.save(name, new_notebook())
    page = pin_page()
    assert page.selectbox[0].value == "A"
    page.selectbox[0].set_value("B")
    page.text_input[0].set_value("Mine")
    press(page, "pin-x-do")
    assert store.open("B").notebook.cells[0].source == "## Mine"
    assert page.selectbox[0].value == "B"
    assert store.open("A").notebook.cells == []
