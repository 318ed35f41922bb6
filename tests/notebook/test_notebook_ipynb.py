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
        ('{"nbformat": NaN}', "notebook must be a Jupyter notebook of format 4, but is nan"),
        (changed(OTHER, "metadata", to={"x": 1e999}), "notebook must hold what the Jupyter"),
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
