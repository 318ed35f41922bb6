"""A notebook as an executable Jupyter notebook (nbformat 4) that computes the same figures.

Every code cell holds its inputs as Python literals and calls the API; it prints its rows as
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

_LOADED = 'nest.load(inputs["document"], inputs.get("overrides"))'
_CALLS = {
    "plan": f"nest.plan({_LOADED})",
    "sweep": f"""\
nest.sweep(
    {_LOADED},
    **{{axis["parameter"]: axis["values"] for axis in (inputs["x"], inputs.get("y")) if axis}},
)""",
    "comparison": """\
nest.compare(
    {one["name"]: nest.load(one["document"], one.get("overrides")) for one in inputs["entries"]},
    **{name: value for name, value in inputs.items() if name != "entries"},
)""",
    "ratios": f'nest.ratios({_LOADED}, inputs["mix"], inputs["loss"])',
}
_SHOWN = """\
from nest_core.notebook.kinds import compute

inputs = {inputs}
found = compute("{kind}", inputs)
for row in found.rows:
    for name, value in row.items():
        print(f"{{name}}: {{value}}")
for picture in found.pictures:
    picture.titled().show()"""
"""Of kinds that the API has no function for."""
_PREAMBLE = '''\
import nest_core as nest


def show(found):
    """Print rows of results, one figure per line, none of them rounded, and draw the pictures."""
    for row in found.rows():
        for name, value in row.items():
            print(f"{name}: {value}")
        print()
    for picture in found.pictures():
        picture.titled().show()'''


def jupyter_notebook(notebook: Notebook) -> str:
    """The text of the ``.ipynb`` file; the same notebook gives the same text."""
    cells = [_text("front", _front(notebook))]
    if any(cell.kind != "note" for cell in notebook.cells):
        cells.append(_code("imports", _PREAMBLE))
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


def _words(cell: Cell) -> str:
    return f"## {as_markdown(cell.title)}\n\n{note_markdown(cell.note)}".strip()


def _calls(cell: Cell) -> str:
    inputs = pprint.pformat(dict(cell.inputs), width=96, sort_dicts=False)
    if cell.kind not in _CALLS:
        return _SHOWN.format(inputs=inputs, kind=cell.kind)
    return f"inputs = {inputs}\nfound = {_CALLS[cell.kind]}\nshow(found)\nfound"
