"""Files of notebooks: ours, of other tools, edited, damaged, and of the studio's earlier JSON."""

from __future__ import annotations

import copy
import json

import nbformat
import pytest

from nest_core.documents.errors import InputError
from nest_core.report.notebook import cell_parts, pinned, read_notebook, write_notebook

OTHER = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Mine\n", "words"]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {"collapsed": False},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": ["1\n", "2\n"]}],
            "source": "print(1)",
        },
        {"cell_type": "raw", "metadata": {}, "source": "raw"},
    ],
    "metadata": {"colab": {"name": "x"}},
    "nbformat": 4,
    "nbformat_minor": 0,
}
OLD = {
    "schema": 1,
    "name": "Seven billion",
    "created": "2026-11-22T12:00:00+00:00",
    "changed": "2026-11-22T12:04:00+00:00",
    "cells": [
        {
            "id": "p",
            "kind": "plan",
            "title": "Llama 2",
            "note": "On 64.",
            "inputs": {"document": {"name": "x"}, "overrides": {"search.tp": 1}},
            "summary": {
                "rows": [{"iteration time, s": 5.25, "plan": None}],
                "versions": {},
                "date": "2026-11-22T12:04:00+00:00",
            },
        },
        {
            "id": "s",
            "kind": "sweep",
            "title": "ZeRO",
            "note": "",
            "inputs": {"document": {}, "overrides": {}, "x": {"knob": "zero", "values": [0]}},
            "summary": None,
        },
        {"id": "n", "kind": "note", "title": "Why", "note": "*so*", "inputs": {}, "summary": None},
    ],
}


def test_ours_is_read_back_without_loss(small_notebook):
    text = write_notebook(small_notebook)
    nbformat.validate(nbformat.reads(text, as_version=4))
    assert write_notebook(read_notebook(text)) == text


def test_one_of_another_tool_gets_ids_and_keeps_the_rest():
    notebook = read_notebook(json.dumps(OTHER))
    assert len({cell.id for cell in notebook.cells}) == 3
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code", "raw"]
    assert notebook.cells[0].source == "# Mine\nwords"
    assert notebook.metadata == OTHER["metadata"]
    assert [part.text for part in cell_parts(notebook.cells[1])] == ["1\n2\n"]
    assert not any(map(pinned, notebook.cells))


def test_one_edited_in_jupyter_opens(small_notebook):
    """Cells without output, of the same id, of other metadata."""
    code = small_notebook.cells[-1]
    code.outputs, code.source = [], "nest.plan('x')"
    twin = copy.deepcopy(code)
    twin.metadata = {"nest_studio": {"kind": "plan"}, "tags": ["a"]}
    small_notebook.cells.append(twin)
    notebook = read_notebook(json.dumps(small_notebook))
    assert len({cell.id for cell in notebook.cells}) == 4
    assert [bool(pinned(cell)) for cell in notebook.cells] == [False, False, True, False]


def test_json_of_an_earlier_studio_is_read_as_ipynb():
    notebook = read_notebook(json.dumps(OLD))
    assert [cell.cell_type for cell in notebook.cells] == [*["markdown", "code"] * 2, "markdown"]
    words, plan, _, sweep, note = notebook.cells
    assert words.source == "## Llama 2\n\nOn 64."
    assert note.source == "## Why\n\n*so*"
    assert pinned(plan)["inputs"] == OLD["cells"][0]["inputs"]
    (part,) = cell_parts(plan)
    assert "iteration time, s" in part.text
    assert "5.25" in part.text
    assert pinned(sweep)["inputs"]["x"] == {"parameter": "zero", "values": [0]}
    assert write_notebook(read_notebook(write_notebook(notebook))) == write_notebook(notebook)


def changed(document, *path, to):
    made = copy.deepcopy(document)
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(made)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "notebook must be valid JSON"),
        ("{", "notebook must be valid JSON"),
        ("[" * 10_000, "notebook must be valid JSON"),
        ('{"nbformat": NaN}', "notebook must be valid JSON"),
        ('{"nbformat": 1e999}', "notebook must be valid JSON"),
        ('{"a": ' * 40 + "1" + "}" * 40, "notebook must nest at most"),
        ('"\\ud800"', "notebook must "),
        ("[]", "notebook must be a JSON object"),
        ("{}", "notebook must be a Jupyter notebook of format 4, but is None"),
        ('{"nbformat": 3, "worksheets": []}', "notebook must be a Jupyter notebook of format 4"),
        (changed(OTHER, "cells", to={}), "notebook must hold what the Jupyter notebook format"),
        (changed(OTHER, "cells", 0, "source", to=5), "notebook must hold what the Jupyter"),
        (changed(OTHER, "cells", 0, "cell_type", to="x"), "notebook must hold what the Jupyter"),
        (changed(OTHER, "cells", 1, "outputs", to=[{}]), "notebook must hold what the Jupyter"),
        (changed(OTHER, "nbformat_minor", to="x"), "notebook must hold what the Jupyter"),
        (changed(OLD, "cells", 0, to=3), "notebook must be a notebook of the studio"),
        (changed(OLD, "cells", 0, "kind", to="plot"), "kind must be a kind of pins"),
        (changed(OLD, "cells", 0, "summary", to=[1]), "notebook must be a notebook of the studio"),
        (changed(OLD, "cells", 0, "inputs", to=None), "notebook must be a notebook of the studio"),
        (" " * 5_000_001, "notebook must hold at most 5,000,000 bytes"),
    ],
)
def test_what_is_no_notebook_is_one_sentence(text, rule):
    with pytest.raises(InputError) as caught:
        read_notebook(text)
    assert str(caught.value).startswith(rule)
    assert "\n" not in str(caught.value)


def test_one_that_could_not_be_read_back_is_not_written(small_notebook):
    small_notebook.cells[0].source = "x" * 5_000_000
    with pytest.raises(InputError, match="notebook must hold at most 5,000,000 bytes"):
        write_notebook(small_notebook)
