"""Pins as lessons: figures that a cell of a notebook computes, and the file that one begins as.

The figure of a pin is named by its kind; ``[inputs]`` holds what the cell asks for, and a control
of such a lesson is a dotted key of its scenario.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nest_core.errors import InputError
from nest_core.lessons import FIGURES, Figure
from nest_core.lessons.files import among
from nest_core.lessons.lesson import Control, Formula, Reveal, Settings, Value
from nest_core.notebook.cells import Cell, CellKind
from nest_core.notebook.document import portable
from nest_core.notebook.kinds import KINDS, Shown, compute
from nest_core.schema.lesson import LessonFile
from nest_core.toml_text import toml_document

__all__ = ["PINNED", "find_figure", "lesson_file", "lesson_text"]

PINNED: tuple[CellKind, ...] = tuple(kind for kind, one in KINDS.items() if one.teaches)
"""Kinds of cells that lessons can show."""

_named = among(FIGURES)


def find_figure(file: LessonFile) -> Figure:
    """The figure of a file: one of the studio's, or what a pin computes.

    Raises
    ------
    InputError
        If there is no such figure, or its inputs are not what it takes.
    """
    if file.figure in PINNED:
        return _figure(file.figure, file)
    if file.figure not in FIGURES:
        rule = "must be one of the figures"
        known = ", ".join((*FIGURES, *PINNED))
        raise InputError("figure", rule, file.figure, f"pick {known}")
    return _named(file)


def _figure(kind: CellKind, file: LessonFile) -> Figure:
    if file.inputs is None:
        raise InputError("inputs", "is required with this figure", kind, "pin it and start anew")
    inputs = portable(kind, file.inputs, "inputs")
    controls = tuple(
        Control(
            one.key,
            one.label or one.key,
            tuple(one.values or ()),
            _start(one.values, one.start, f"control[{number}]"),
            one.help or "Sets it in the scenario.",
        )
        for number, one in enumerate(file.control or ())
    )
    if controls and "document" not in inputs:
        raise InputError("control", "must be left out with this figure", kind, "leave it out")

    def found(settings: Settings) -> Shown:
        asked = dict(inputs)
        if settings:
            asked["overrides"] = {**inputs.get("overrides", {}), **settings}
        shown = compute(kind, asked)
        if shown is None:
            raise InputError("inputs", "must lead to a result", "none", "pin it again")
        return shown

    starts = {control.key: control.standard for control in controls}
    return Figure(
        kind,
        controls,
        lambda settings: _reveal(found(settings)),
        row=lambda _: _row(found(starts)),
        slow=True,
    )


def _start(values: list[Value] | None, start: Value | None, where: str) -> Value:
    if not values:
        raise InputError(f"{where}.values", "is required with this figure", values, "list them")
    if start is not None and start not in values:
        raise InputError(
            f"{where}.start", "must be one of its values", start, "use " + str(values[0])
        )
    return values[0] if start is None else start


def _row(shown: Shown) -> Mapping[str, Value]:
    """The figures of the first row, by their names."""
    first = shown.rows[0] if shown.rows else {}
    return {name: value for name, value in first.items() if isinstance(value, int | float | str)}


def _reveal(shown: Shown) -> Reveal:
    formulas = tuple(
        Formula(one.name, one.formula[0], "; ".join(one.formula[1:]) or one.value, one.basis)
        for one in shown.headlines
        if one.formula
    )
    tables = (shown.table,) if shown.table else ()
    return Reveal(shown.pictures, shown.facts, formulas, tables)


_HEAD = """\
# A lesson that began as a pin. Write the question, its choices and the notes; then put the file
# into the folder of your lessons (docs/howto/teacher.md).
"""


def lesson_text(cell: Cell) -> str:
    """The lesson file that a pinned cell begins as: its figure, with words to be filled in.

    Raises
    ------
    InputError
        For a cell that shows no figure of a scenario.
    """
    if cell.kind not in PINNED:
        raise InputError("cell", "must have figures of a scenario", cell.kind, "take another cell")
    known = _row(Shown(cell.summary.rows)) if cell.summary else {}
    document = {
        "schema": 1,
        "title": cell.title,
        "short": " ".join(cell.title[:24].split()),
        "figure": cell.kind,
        "minutes": 10,
        "aims": ["write what people can do afterwards"],
        "lead": cell.note[:4000] or "Write what to know before the question.",
        "question": {
            "text": "Write what is to be predicted?",
            "right": "a",
            "answer": "Write the answer and its reason.",
            "choices": {"a": "Write the right choice", "b": "Write a wrong one"},
        },
        "notes": {"expected": "Write the expected answer and its reason."},
        "inputs": _without_null(cell.inputs),
    }
    return _HEAD + _names(known) + "\n" + toml_document(document)


def lesson_file(cell: Cell) -> str:
    """What such a file is called.

    Examples
    --------
    >>> lesson_file(Cell("a", "plan", "Llama 2 7B, 64 H100"))
    'llama-2-7b-64-h100.toml'
    """
    words = re.findall(r"[a-z0-9]+", cell.title.lower())
    return f"{'-'.join(words)[:40].strip('-') or 'lesson'}.toml"


def _names(known: Mapping[str, Value]) -> str:
    names = [f"{{{name}}}" for name in known if not re.search(r"[{}:]", name)]
    if not names:
        return ""
    return "".join(
        f"# {line}\n"
        for line in ("Words may hold what the pin computes, in braces:", ", ".join(names))
    )


def _without_null(value: Any) -> Any:
    """Tables without keys that hold nothing, which TOML cannot write."""
    if isinstance(value, Mapping):
        return {key: _without_null(inner) for key, inner in value.items() if inner is not None}
    return [_without_null(inner) for inner in value] if isinstance(value, list | tuple) else value
