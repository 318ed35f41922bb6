"""A notebook as an executable Jupyter notebook (nbformat 4) that computes the same figures.

Every code cell holds its inputs as Python literals and calls `nest_core`; it prints its rows as
``name: value`` and shows its figures. Nothing is asserted: whoever runs it later may compare.
"""

from __future__ import annotations

import json
import pprint
from typing import Any

import nbformat

from nest_core.notebook.cells import Cell, Notebook
from nest_core.notebook.kinds import versions
from nest_core.notebook.words import note_markdown
from nest_core.quoting import as_markdown

__all__ = ["jupyter_notebook"]

_PLAN = """\
found = nest.plan(nest.load(inputs["document"], inputs.get("overrides")))
show_row(plan_row(found))
for picture in found.pictures():
    picture.titled().show()
found"""
_SWEEP = """\
found = sweep.run({"overrides": {}} | inputs)
for row in scalar_rows(found.rows()):
    show_row(row)
for picture in sweep_pictures(found):
    picture.titled().show()"""
_COMPARISON = """\
found = comparison.run(inputs)
for row in scalar_rows(found.rows()):
    show_row(row)
for picture in comparison_pictures(found):
    picture.titled().show()"""
_RATIOS = """\
found = highest_ratios({"overrides": {}} | inputs)
for row in scalar_rows(found.rows()):
    show_row(row)
ratios_picture(found).titled().show()"""
_BODIES = {"plan": _PLAN, "sweep": _SWEEP, "comparison": _COMPARISON, "ratios": _RATIOS}
_IMPORTS = {
    "plan": (
        "import nest_core as nest",
        "from nest_core.notebook.kinds import plan_row",
    ),
    "sweep": (
        "from nest_core.figures.sweep import pictures as sweep_pictures",
        "from nest_core.notebook.kinds import scalar_rows",
        "from nest_core.studies import sweep",
    ),
    "comparison": (
        "from nest_core.figures.comparison import pictures as comparison_pictures",
        "from nest_core.notebook.kinds import scalar_rows",
        "from nest_core.studies import comparison",
    ),
    "ratios": (
        "from nest_core.figures.ratios import ratios_picture",
        "from nest_core.notebook.kinds import scalar_rows",
        "from nest_core.studies.ratios import highest_ratios",
    ),
}
_SHOW = '''

def show_row(row):
    """Print a row of results, one figure per line, none of them rounded."""
    for name, value in row.items():
        print(f"{name}: {value}")
    print()'''


def jupyter_notebook(notebook: Notebook) -> str:
    """The text of the ``.ipynb`` file; the same notebook gives the same text."""
    cells = [_text("front", _front(notebook))]
    if any(cell.kind != "note" for cell in notebook.cells):
        cells.append(_code("imports", _preamble(notebook)))
    for number, cell in enumerate(notebook.cells, start=1):
        cells.append(_text(f"cell-{number}-text", _words(cell)))
        if cell.kind != "note":
            cells.append(_code(f"cell-{number}-code", _calls(cell)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    nbformat.validate(made)
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _text(name: str, source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def _code(name: str, source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def _front(notebook: Notebook) -> str:
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    return (
        f"# {as_markdown(notebook.name)}\n\n"
        f"A notebook of Nest Studio, exported with {made}. Running it computes every figure again; "
        "it needs the package `nest-studio`."
    )


def _preamble(notebook: Notebook) -> str:
    kinds = dict.fromkeys(cell.kind for cell in notebook.cells if cell.kind != "note")
    lines = {line for kind in kinds for line in _IMPORTS[kind]}
    return "\n".join(sorted(lines)) + "\n" + _SHOW


def _words(cell: Cell) -> str:
    return f"## {as_markdown(cell.title)}\n\n{note_markdown(cell.note)}".strip()


def _calls(cell: Cell) -> str:
    inputs = pprint.pformat(dict(cell.inputs), width=96, sort_dicts=False)
    return f"inputs = {inputs}\n{_BODIES[cell.kind]}"
