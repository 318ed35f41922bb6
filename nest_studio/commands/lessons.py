"""Commands for a course and on the paper: ``lesson``, ``exercise``, ``paper`` and ``solve``."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nest_core.documents import check_writable, read_text, table, write_file
from nest_studio.commands.output import JsonFlag, emit, tell_share

if TYPE_CHECKING:
    from nest_core.paper import Reproduction

__all__ = [
    "exercise",
    "lesson",
    "paper",
    "solve",
]

_WIDTH = 100


def paper(
    name: Annotated[
        str, typer.Argument(help="figure1 to 3, 5 to 11, table1 to 7, section5 or algorithm1.")
    ],
    costs: Annotated[
        Literal["published", "own"], typer.Option(help="The artifact's costs, or this studio's.")
    ] = "published",
    as_json: JsonFlag = False,
) -> None:
    """Compute a figure or table of the paper again."""
    from nest_core.paper import reproduce

    reproduction = reproduce(name, costs)
    emit(reproduction.to_json(), as_json, lambda _: _paper_text(reproduction))


def _paper_text(reproduction: Reproduction) -> str:
    tables = (
        f"{part.title}\n" + table(header, [[row[key] for key in header] for row in part.words])
        for part in reproduction.tables
        for header in [list(part.words[0])]
    )
    paragraph = (textwrap.fill(sentence, _WIDTH) for sentence in reproduction.paragraph)
    return "\n\n".join([f"{reproduction.title}. {reproduction.printed}", *tables, *paragraph])


def solve(
    instance: Annotated[Path, typer.Argument(help="Instance file of the paper's artifact (JSON).")],
    as_json: JsonFlag = False,
) -> None:
    """Solve an instance file under the paper's published costs."""
    from nest_core.paper.published import read_instance
    from nest_core.paper.published import solve as solve_instance

    emit(solve_instance(read_instance(instance)).to_json(), as_json, _solve_text)


def _solve_text(solution: Mapping[str, Any]) -> str:
    if not solution["feasible"]:
        return f"infeasible: {solution['reason']}"
    stages = table(
        ["stage", "layers", "devices", "level to producer", "load", "memory, GB"],
        [
            [
                number,
                "{}..{}".format(stage["layers"][0], stage["layers"][1] - 1),
                stage["devices"],
                stage["level_to_producer"],
                f"{stage['load']:.4g}",
                f"{stage['memory_bytes'] / 1e9:.3g}",
            ]
            for number, stage in enumerate(solution["stages"])
        ],
    )
    return (
        f"time per batch     {solution['time_per_batch']:.6g} (the instance's unit)\n"
        f"throughput         {solution['throughput']:.6g}\n"
        f"data parallel      {solution['data_parallel']}\n"
        f"tensor parallel    {solution['tensor_parallel']}\n"
        f"search             {solution['solve_seconds']:.3g} s\n\n{stages}"
    )


def lesson(
    lesson: Annotated[
        str, typer.Argument(help="Key of a lesson, or a lesson's file (TOML); without it, all.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option(help="HTML file to write; LESSON.html if not given.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the lessons with minutes and aims, or write one as HTML that runs without a network."""
    from nest_core.studies.solving import never
    from nest_core.teaching.course.folder import find_lesson, offered, work_page

    if not lesson:
        folder = offered()
        rows = [
            {
                "lesson": entry.key,
                "title": entry.title,
                "minutes": entry.minutes,
                "aims": list(entry.aims),
                "exercise": entry.exercise is not None,
            }
            for entry in folder.lessons
        ]
        troubles = [{"file": name, "reason": reason} for name, reason in folder.troubles]
        emit({"lessons": rows, "skipped": troubles}, as_json, _lesson_text)
        return
    subject = find_lesson(lesson, Path())
    path = output or Path(f"{subject.key}.html")
    check_writable(path, "--output")
    page = work_page(subject.key, subject.text, progress=tell_share, stop=never)
    write_file(path, page.text, "--output")
    emit(
        {"output": str(path), "states": page.states, "bytes_beside_library": page.own_bytes},
        as_json,
        lambda _: (
            f"{path}: {page.states} states of its controls, {page.own_bytes / 1e6:.2g} MB beside "
            "the plotting library."
        ),
    )


def _lesson_text(fields: Mapping[str, Any]) -> str:
    rows = [
        [entry["lesson"], entry["minutes"], entry["title"], "; ".join(entry["aims"])]
        for entry in fields["lessons"]
    ]
    return "\n".join(
        [
            table(["lesson", "minutes", "title", "aims"], rows),
            f"\n{sum(entry['minutes'] for entry in fields['lessons'])} minutes in all.",
            *(f"! {entry['file']}: {entry['reason']}" for entry in fields["skipped"]),
        ]
    )


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
    from nest_core.teaching.course.exercise import FORMATS, draw
    from nest_core.teaching.course.exercise import mark as marked
    from nest_core.teaching.course.folder import find_lesson

    subject = find_lesson(lesson, Path())
    marks = () if mark is None else marked(subject, seed, read_text(mark), str(mark))
    sheets = draw(subject, seed, students) if mark is None else ()
    fields = {
        "lesson": subject.key,
        "seed": seed,
        "exercises": [
            {
                "student": student,
                "question": question.text,
                "answer": question.answer,
                "unit": question.unit,
                "tolerance": question.tolerance,
                "solution": question.solution,
            }
            for student, question in enumerate(sheets, start=1)
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
        emit(fields, as_json, _exercise_text)


def _exercise_text(fields: Mapping[str, Any]) -> str:
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
    marks = [entry["right"] for entry in fields["marks"] if entry["right"] is not None]
    return (
        f"{sum(marks)} of {len(marks)} marked answers are right.\n\n"
        f"{table(['student', 'answer', 'expected', 'mark', 'note'], rows)}"
    )
