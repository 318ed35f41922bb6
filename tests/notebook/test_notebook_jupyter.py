"""The Jupyter notebook: run in a kernel of its own, it prints the figures that were pinned."""

from __future__ import annotations

import ast
import json

import nbformat
import pytest
from nbclient import NotebookClient

import nest_core as nest
from nest_core.notebook import Cell, Notebook
from nest_core.notebook.jupyter import jupyter_notebook
from nest_core.notebook.kinds import summarise

PLOT = "application/vnd.plotly.v1+json"


def code_of(text):
    cells = nbformat.reads(text, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def printed_rows(cell):
    """What a cell printed: one list of lines per row."""
    text = "".join(out.text for out in cell.outputs if out.output_type == "stream")
    return [block.splitlines() for block in text.strip("\n").split("\n\n")]


def shown_data(cell):
    """The rich output of a cell, in its order."""
    return [out.data for out in cell.outputs if out.output_type != "stream"]


def test_run_in_a_kernel_it_prints_the_pinned_figures(
    small_notebook, study_inputs, study_shown, noon, tmp_path
):
    studies = tuple(
        Cell(kind, kind, kind, "", inputs, summarise(study_shown[kind], noon))
        for kind, inputs in study_inputs.items()
    )
    pinned = (*small_notebook.cells[1:], *studies)
    made = nbformat.reads(jupyter_notebook(Notebook("N", pinned)), as_version=4)
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(made, timeout=300, kernel_name="python3", resources=folder).execute()
    ran = [cell for cell in made.cells if cell.cell_type == "code"][1:]
    for cell, source in zip(ran, pinned, strict=True):
        found = printed_rows(cell)
        assert len(found) == len(source.summary.rows)
        for printed, row in zip(found, source.summary.rows, strict=True):
            for line, (name, value) in zip(printed, row.items(), strict=True):
                assert line.startswith(f"{name}: ")
                figure = line.removeprefix(f"{name}: ")
                if isinstance(value, float):
                    assert float(figure) == pytest.approx(value, rel=1e-12)
                else:
                    assert figure == str(value)
    pictures = [3, *(len(found.pictures) for found in study_shown.values())]
    drawn = [sum(PLOT in data for data in shown_data(cell)) for cell in ran]
    assert drawn == pictures
    assert "<table" in shown_data(ran[0])[-1]["text/html"]


def test_the_inputs_are_written_without_loss(small_notebook):
    assignment = ast.parse(code_of(jupyter_notebook(small_notebook))[-1]).body[0]
    assert ast.literal_eval(assignment.value) == small_notebook.cells[1].inputs


def test_notes_and_titles_are_markdown(small_notebook):
    cells = nbformat.reads(jupyter_notebook(small_notebook), as_version=4).cells
    words = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert words[0].startswith("# Seven billion\n")
    assert words[1:] == ["## Why\n\n*Small* first.", "## Llama 2\n\nOn 64 devices."]


def test_every_kind_calls_the_public_api_and_nothing_else():
    entries = [{"name": name, "document": {}, "overrides": {}} for name in "ab"]
    cells = (
        Cell("s", "sweep", "S", "", {"document": {}, "overrides": {}, "x": {}, "y": None}),
        Cell("r", "ratios", "R", "", {"document": {}, "overrides": {}, "mix": [], "loss": 0.1}),
        Cell("c", "comparison", "C", "", {"entries": entries, "budget": None}),
    )
    imports, *calls = code_of(jupyter_notebook(Notebook("N", cells)))
    imported = [
        n for n in ast.walk(ast.parse(imports)) if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    assert [ast.unparse(node) for node in imported] == ["import nest_core as nest"]
    for call in calls:
        nodes = list(ast.walk(ast.parse(call)))
        assert not any(isinstance(n, ast.Import | ast.ImportFrom) for n in nodes)
        of_nest = {
            n.attr for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "nest"
        }
        assert of_nest <= set(nest.__all__)


def test_the_same_notebook_gives_the_same_file(small_notebook):
    assert jupyter_notebook(small_notebook) == jupyter_notebook(small_notebook)


def test_a_notebook_of_notes_computes_nothing():
    text = jupyter_notebook(Notebook("N", (Cell("n", "note", "A\n# B", "text"),)))
    assert code_of(text) == []
    assert json.loads(text)["cells"][1]["source"] == "## A # B\n\ntext"
