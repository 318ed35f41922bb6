"""``nest-studio exercise``: a lesson's question with other numbers for every student, and marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["exercise"]


def exercise(
    lesson: Annotated[str, typer.Argument(help="Key of a lesson, or a lesson's file (TOML).")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    students: Annotated[int, typer.Option(help="So many questions are drawn.")] = 1,
    format: Annotated[
        Literal["gift", "md"], typer.Option(help="gift for Moodle's question bank, md for print.")
    ] = "md",
    mark: Annotated[
        Path | None,
        typer.Option(help="CSV with columns student and answer: marks them instead."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Draw a question with numbers, a worked solution and a tolerance for every student."""
    from nest_core.documents.files import read_text
    from nest_core.teaching.course.exercise import draw
    from nest_core.teaching.course.exercise import mark as marked
    from nest_core.teaching.course.folder import find_lesson
    from nest_core.teaching.course.sheets import FORMATS

    subject = find_lesson(lesson, Path())
    marks = () if mark is None else marked(subject, seed, read_text(mark), str(mark))
    sheets = draw(subject, seed, students) if mark is None else ()
    fields = {
        "lesson": subject.key,
        "seed": seed,
        "exercises": [
            {
                "student": sheet.student,
                "question": sheet.asked.text,
                "answer": sheet.asked.answer,
                "unit": sheet.asked.unit,
                "tolerance": sheet.asked.tolerance,
                "solution": sheet.asked.solution,
            }
            for sheet in sheets
        ],
        "marks": [
            {
                "row": drawn.row,
                "student": drawn.student,
                "answer": drawn.answer,
                "expected": drawn.expected,
                "right": drawn.right,
                "note": drawn.note,
            }
            for drawn in marks
        ],
    }
    if mark is None:
        emit(fields, as_json, lambda _: FORMATS[format](subject, seed, sheets).rstrip("\n"))
    else:
        emit(fields, as_json, _as_text)


def _as_text(fields: Mapping[str, Any]) -> str:
    words = {True: "right", False: "wrong", None: "not marked"}
    rows = [
        [
            entry["student"] if entry["student"] is not None else "–",
            entry["answer"],
            "–" if entry["expected"] is None else f"{entry['expected']:.6g}",
            words[entry["right"]],
            entry["note"],
        ]
        for entry in fields["marks"]
    ]
    right = sum(entry["right"] is True for entry in fields["marks"])
    counted = sum(entry["right"] is not None for entry in fields["marks"])
    head = ["student", "answer", "expected", "mark", "note"]
    return f"{right} of {counted} marked answers are right.\n\n{table(head, rows)}"
