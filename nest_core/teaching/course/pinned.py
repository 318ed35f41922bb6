"""Pins as lessons: figures that a pin in a notebook computes, and the file that one begins as.

The figure of a pin is named by its kind; ``[inputs]`` holds what the cell asks for, and a control
of such a lesson is a dotted key of its scenario.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nest_core.api.answer import Answer, answer
from nest_core.api.studies import StudyResult, comparison_result, ratios_result, sweep_result
from nest_core.documents.errors import InputError
from nest_core.documents.overrides import toml_document
from nest_core.documents.schema.lesson import LessonFile
from nest_core.report.notebook.inputs import SCENARIO_KINDS, checked_inputs
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.studies.comparison import compare
from nest_core.studies.ratios import highest_ratios
from nest_core.studies.sweeps import sweep
from nest_core.teaching.lessons import FIGURES, LessonFigure
from nest_core.teaching.lessons.files import among
from nest_core.teaching.lessons.lesson import Control, Formula, Reveal, Settings, Value

__all__ = ["find_figure", "lesson_file", "lesson_text"]

_named = among(FIGURES)


def find_figure(file: LessonFile) -> LessonFigure:
    """The figure of a file: one of the studio's, or what a pin computes.

    Raises
    ------
    InputError
        If there is no such figure, or its inputs are not what it takes.
    """
    if file.figure in SCENARIO_KINDS:
        return _figure(file.figure, file)
    if file.figure not in FIGURES:
        rule = "must be one of the figures"
        figures = ", ".join((*FIGURES, *SCENARIO_KINDS))
        raise InputError("figure", rule, file.figure, f"pick {figures}")
    return _named(file)


def _figure(kind: str, file: LessonFile) -> LessonFigure:
    if file.inputs is None:
        raise InputError("inputs", "is required with this figure", kind, "pin it and start anew")
    inputs = checked_inputs(kind, file.inputs)
    controls = tuple(
        Control(
            table.key,
            table.label or table.key,
            tuple(table.values or ()),
            _start(table.values, table.start, f"control[{number}]"),
            table.help or "Sets it in the scenario.",
        )
        for number, table in enumerate(file.control or ())
    )
    if controls and "document" not in inputs:
        raise InputError("control", "must be left out with this figure", kind, "leave it out")

    def result_of(settings: Settings) -> Answer | StudyResult[Any]:
        changed = {"overrides": {**inputs["overrides"], **settings}} if settings else {}
        return _result(kind, inputs | changed)

    starts = {control.key: control.standard for control in controls}
    return LessonFigure(
        kind,
        controls,
        lambda settings: _reveal(result_of(settings)),
        row=lambda _: _row(result_of(starts)),
        slow=True,
    )


def _result(kind: str, inputs: Mapping[str, Any]) -> Answer | StudyResult[Any]:
    """What a pin of this kind computes."""
    if kind == "comparison":
        entries = [
            (entry["name"], Scenario(entry["document"], entry["overrides"]))
            for entry in inputs["entries"]
        ]
        options = {name: value for name, value in inputs.items() if name != "entries"}
        return comparison_result(compare(entries, **options))
    scenario = Scenario(inputs["document"], inputs["overrides"])
    if kind == "plan":
        return answer(scenario.values)
    if kind == "sweep":
        axes = [
            (axis["parameter"], axis["values"]) for axis in (inputs["x"], inputs.get("y")) if axis
        ]
        return sweep_result(sweep(scenario, axes))
    return ratios_result(highest_ratios(scenario, inputs["mix"], inputs["loss"]))


def _start(values: list[Value] | None, start: Value | None, where: str) -> Value:
    if not values:
        raise InputError(f"{where}.values", "is required with this figure", values, "list them")
    if start is not None and start not in values:
        raise InputError(
            f"{where}.start", "must be one of its values", start, "use " + str(values[0])
        )
    return values[0] if start is None else start


def _row(result: Answer | StudyResult[Any]) -> Mapping[str, Value]:
    """The figures of the first row, by their names."""
    first = result.rows()[0]
    return {name: value for name, value in first.items() if isinstance(value, int | float | str)}


def _reveal(result: Answer | StudyResult[Any]) -> Reveal:
    """Pictures, a sentence, and formulas of a plan or the rows of a study."""
    if isinstance(result, Answer):
        formulas = tuple(
            Formula(
                headline.name,
                headline.formula[0],
                "; ".join(headline.formula[1:]) or headline.value,
                headline.basis,
            )
            for headline in result.headlines()
            if headline.formula
        )
        first = result.rows()[0]
        return Reveal(result.pictures(), (str(first.get("plan") or first["reason"]),), formulas)
    rows = tuple(
        {
            name: f"{value:.4g}" if isinstance(value, float) else str(value)
            for name, value in row.items()
        }
        for row in result.rows()
    )
    return Reveal(result.pictures(), (result.title,), (), (Table(result.title, "", rows),))


_HEAD = """\
# A lesson that began as a pin. Write the question, its choices and the notes; then put the file
# into the folder of your lessons (docs/howto/teacher.md).
"""


def lesson_text(pin: Mapping[str, Any]) -> str:
    """Return the lesson file that a pin begins as: its figure, with words to be filled in.

    Parameters
    ----------
    pin : mapping
        Its ``kind``, ``title``, ``note``, ``inputs`` and ``figures``.

    Raises
    ------
    InputError
        For a pin that shows no figure of a scenario.
    """
    kind, title = pin["kind"], pin["title"]
    if kind not in SCENARIO_KINDS:
        raise InputError("cell", "must have figures of a scenario", kind, "take another cell")
    document = {
        "schema": 1,
        "title": title,
        "short": " ".join(title[:24].split()),
        "figure": kind,
        "minutes": 10,
        "aims": ["write what people can do afterwards"],
        "lead": pin["note"][:4000] or "Write what to know before the question.",
        "question": {
            "text": "Write what is to be predicted?",
            "right": "a",
            "answer": "Write the answer and its reason.",
            "choices": {"a": "Write the right choice", "b": "Write a wrong one"},
        },
        "notes": {"expected": "Write the expected answer and its reason."},
        "inputs": _without_null(checked_inputs(kind, pin["inputs"])),
    }
    return _HEAD + _names(pin["figures"]) + "\n" + toml_document(document)


def lesson_file(title: str) -> str:
    """Return what such a file is called.

    Examples
    --------
    >>> lesson_file("Llama 2 7B, 64 H100")
    'llama-2-7b-64-h100.toml'
    """
    words = re.findall(r"[a-z0-9]+", title.lower())
    return f"{'-'.join(words)[:40].strip('-') or 'lesson'}.toml"


def _names(figures: Sequence[object]) -> str:
    names = [
        f"{{{name}}}" for name in map(str, figures) if re.fullmatch(r"[^{}:\s][^{}:\r\n]*", name)
    ]
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
