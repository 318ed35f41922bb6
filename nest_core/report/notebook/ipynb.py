"""The file of a notebook: an ``.ipynb`` of nbformat 4, whoever wrote it.

A pin adds words, code that computes a result again, and its output. The inputs stand in the code as
Python literals and in the cell's metadata as plain JSON, by which the studio knows its own cells.
No cell needs another one: each runs in Jupyter as it stands.
"""

import json
import pprint
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from nest_core.api.answer import Answer
from nest_core.api.studies import StudyResult
from nest_core.documents import (
    MAX_FILE_BYTES,
    InputError,
    as_markdown,
    assign,
    parsed_json,
    require,
)
from nest_core.documents.schema import check_plain
from nest_core.report.figures import Chart
from nest_core.report.notebook.report import note_markdown
from nest_core.report.tables import Table

__all__ = [
    "KINDS",
    "PinOutput",
    "new_notebook",
    "output_of",
    "pin_cells",
    "pinned",
    "read_notebook",
    "table_output",
    "write_notebook",
]

METADATA = "nest_studio"
"""The key of a cell's metadata under which the studio keeps a pin's kind, title and inputs."""

_WIDTH = 96
_LOADED = 'nest.load(inputs["document"], inputs["overrides"])'
_SHOW = "display(result, *result.pictures())"
_WHY = """\
from nest_core import planner
from nest_core.costs.loads import link_loads
from nest_core.report import explain
from nest_core.report.explain import words

scenario = {loaded}.values
problem = scenario.problem()
best = planner.search(problem, scenario.space, time_limit_s=scenario.time_limit_s).best
table = explain.{table}
display(table)"""
_WHY_TABLES = {
    "binding": "binding_table(explain.bindings(problem, best), best)",
    "links": "busiest_table(link_loads(problem, best).busiest)",
    "axes": "axes_table(explain.next_best(problem, scenario.space, best, time_limit_s=30))",
    "shadow": (
        "shadow_table(\n"
        "    planner.shadow_prices(problem, scenario.space, best.iteration_s, 30),\n"
        "    explain.gains(problem, best.plan),\n"
        ")"
    ),
    "head-room": (
        "head_room_table(planner.head_room_steps(problem, scenario.space, (best,), 30), best)"
    ),
    "equations": "equation_table(explain.equations(problem, best), best)",
}
KINDS: Mapping[str, str] = {
    "plan": f"result = nest.plan({_LOADED})\n{_SHOW}",
    "sweep": (
        f"axes = [inputs[name] for name in ('x', 'y') if inputs.get(name)]\n"
        f"result = nest.sweep(\n    {_LOADED},\n"
        '    **{axis["parameter"]: axis["values"] for axis in axes},\n'
        f")\n{_SHOW}"
    ),
    "study": f'result = nest.study(inputs["study"])\n{_SHOW}',
    "comparison": (
        "result = nest.compare(\n"
        '    {entry["name"]: nest.load(entry["document"], entry["overrides"])'
        ' for entry in inputs["entries"]},\n'
        '    budget=inputs.get("budget"),\n'
        '    failures=inputs.get("failures", True),\n'
        '    device_usd=inputs.get("device_usd"),\n'
        '    prices=inputs.get("prices"),\n'
        '    assumed=inputs.get("assumed"),\n'
        f")\n{_SHOW}"
    ),
    "ratios": f'result = nest.ratios({_LOADED}, inputs["mix"], inputs["loss"])\n{_SHOW}',
    "fabric": 'result = nest.levels(inputs["document"])\ndisplay(result, result.plot())',
    "layer": (
        "from nest_core.api.layer import LayerRequest, layer\n"
        "from nest_core.report.figures.operators import graph_figure\n"
        "from nest_core.report.figures.roofline import roofline_figure\n\n"
        "before, after = layer(LayerRequest(**inputs))\n"
        "display(graph_figure(before, after), roofline_figure(after))"
    ),
    "why": _WHY,
    "lesson": (
        "from nest_core.teaching.drawings import lesson_pictures\n"
        "from nest_core.teaching.lessons import lesson\n\n"
        'reveal = lesson(inputs["lesson"]).reveal(inputs["settings"])\n'
        'print("\\n".join(reveal.texts))\n'
        "display(*lesson_pictures(reveal.content))"
    ),
}
"""Kinds of pins, and the code that computes each from ``inputs``."""


@dataclass(frozen=True, slots=True)
class PinOutput:
    """What a pin shows.

    Parameters
    ----------
    text : str
    html : str
        The same for Jupyter; empty: the text alone.
    pictures : tuple of Chart
    figures : tuple of str
        Names of the figures of its first row, which a lesson may quote.
    """

    text: str
    html: str = ""
    pictures: tuple[Chart, ...] = ()
    figures: tuple[str, ...] = ()


def output_of(result: Answer | StudyResult[Any]) -> PinOutput:
    """Return what a result of the API shows in a notebook."""
    names = tuple(name for name, value in result.rows()[0].items() if value is not None)
    return PinOutput(str(result), result._repr_html_(), result.pictures(), names)


def table_output(table: Table, pictures: tuple[Chart, ...] = ()) -> PinOutput:
    """Return what a table shows in a notebook, with pictures below it."""
    return PinOutput(str(table), table._repr_html_(), pictures)


def pin_cells(
    kind: str,
    title: str,
    note: str,
    inputs: Mapping[str, Any],
    output: PinOutput | None = None,
) -> list[NotebookNode]:
    """Return the two cells of a pin: words in Markdown, and code with its output.

    Parameters
    ----------
    kind : str
        One of `KINDS`, or ``note`` for words alone.
    title : str
    note : str
        Markdown.
    inputs : mapping
        Plain JSON.
    output : PinOutput, optional
        What the result shows; without it the code has not been run.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    words = f"## {as_markdown(title)}\n\n{note_markdown(note)}".strip()
    if kind == "note":
        return [new_markdown_cell(words)]
    require(
        kind in KINDS,
        "kind",
        "must be a kind of pins",
        kind,
        "pick " + ", ".join(KINDS),
    )
    values = _merged(inputs) if kind == "fabric" else dict(inputs)
    pin = {
        "kind": kind,
        "title": title,
        "note": note,
        "inputs": values,
        "figures": list(output.figures) if output else [],
    }
    code = new_code_cell(
        _source(kind, values), outputs=_outputs(output) if output else [], metadata={METADATA: pin}
    )
    return [new_markdown_cell(words, metadata={METADATA: {"above": code.id}}), code]


def pinned(cell: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the kind, title, note, inputs and figures of a pin; None for any other cell."""
    pin = cell["metadata"].get(METADATA)
    types = {"kind": str, "title": str, "note": str, "inputs": dict, "figures": list}
    if (
        cell["cell_type"] != "code"
        or not isinstance(pin, Mapping)
        or not all(isinstance(pin.get(name), kind) for name, kind in types.items())
    ):
        return None
    return pin if pin["kind"] in KINDS else None


def _merged(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fabric's document with its overrides written into it."""
    merged = {"fabric": inputs["document"]}
    for key, value in inputs.get("overrides", {}).items():
        assign(merged, key, value)
    return {"document": merged["fabric"]}


def _source(kind: str, inputs: Mapping[str, Any]) -> str:
    code = KINDS[kind]
    if kind == "study" and "design" in inputs["study"]:
        code = code.replace("nest.study", "nest.design")
    if kind == "why":
        code = code.format(loaded=_LOADED, table=_WHY_TABLES[inputs["part"]])
    literal = pprint.pformat(dict(inputs), width=_WIDTH, sort_dicts=False)
    return f"import nest_core as nest\n\ninputs = {literal}\n\n{code}"


def _outputs(output: PinOutput) -> list[NotebookNode]:
    words = {"text/plain": output.text} | ({"text/html": output.html} if output.html else {})
    bundles = [words, *(picture._repr_mimebundle_() for picture in output.pictures)]
    return [new_output("display_data", data=data) for data in bundles]


_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def new_notebook(cells: list[NotebookNode] | None = None) -> NotebookNode:
    """Return a notebook of these cells."""
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=cells or [], metadata=metadata)
    return notebook


def write_notebook(notebook: NotebookNode) -> str:
    """Return the text of a notebook's file.

    Raises
    ------
    InputError
        If it is longer than a file may be.
    """
    text: str = nbformat.v4.writes(notebook, ensure_ascii=False) + "\n"
    if (size := len(text.encode())) > MAX_FILE_BYTES:
        raise InputError(
            "notebook", f"must hold at most {MAX_FILE_BYTES:,} bytes", size, "split it"
        )
    return text


def read_notebook(text: str, where: str = "notebook") -> NotebookNode:
    """Return the notebook of a file's text, each of its cells with an id of its own.

    Parameters
    ----------
    text : str
    where : str
        What messages call the file.

    Raises
    ------
    InputError
        If it is too long, no JSON, or no notebook; the message says which part breaks what.
    """
    document = _document(text, where)
    require(
        document.get("nbformat") == 4,
        where,
        "must be a Jupyter notebook of format 4",
        document.get("nbformat"),
        "save it anew in Jupyter",
    )
    try:
        _give_ids(document)
        nbformat.validate(nbformat.from_dict(document))
        plain = json.dumps(document, allow_nan=False)
    except (AttributeError, KeyError, TypeError, ValueError, nbformat.ValidationError) as error:
        raise InputError(
            where,
            "must hold what the Jupyter notebook format asks for",
            " ".join(str(error).split("\n", 1)[0].split())[:200],
            "save it anew in Jupyter",
        ) from error
    notebook: NotebookNode = nbformat.v4.reads(plain)
    return notebook


def _give_ids(document: dict[str, Any]) -> None:
    """Make a document one of minor version 5, whose cells have ids, each another one."""
    document["nbformat_minor"] = max(document["nbformat_minor"], nbformat.v4.nbformat_minor)
    seen: set[str] = set()
    for cell in document["cells"]:
        if cell.get("id", "") in {"", *seen}:
            cell["id"] = secrets.token_hex(4)
        seen.add(cell["id"])


def _document(text: str, where: str) -> dict[str, Any]:
    require(
        len(text.encode("utf-8", "replace")) <= MAX_FILE_BYTES,
        where,
        f"must hold at most {MAX_FILE_BYTES:,} bytes",
        "larger",
        "split it",
    )
    document = parsed_json(text, where, "save it anew")
    check_plain(where, document)
    if not isinstance(document, dict):
        raise InputError(where, "must be a JSON object", document, "save it as .ipynb")
    return document
