"""``nest-studio lesson``: the index of lessons, or one of them as a file that runs by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["lesson"]


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
    from nest_core.documents.files import check_writable, write_file
    from nest_core.teaching.course.folder import find_lesson, offered
    from nest_core.teaching.course.page import lesson_page

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
        emit({"lessons": rows, "skipped": troubles}, as_json, _as_text)
        return
    subject = find_lesson(lesson, Path())
    path = output or Path(f"{subject.key}.html")
    check_writable(path, "--output")
    page = lesson_page(subject)
    write_file(path, page.text, "--output")
    fields = {"output": str(path), "states": page.states, "bytes_beside_library": page.own_bytes}
    emit(fields, as_json, _written)


def _as_text(fields: Mapping[str, Any]) -> str:
    rows = [
        [entry["lesson"], entry["minutes"], entry["title"], "; ".join(entry["aims"])]
        for entry in fields["lessons"]
    ]
    minutes = sum(entry["minutes"] for entry in fields["lessons"])
    lines = [table(["lesson", "minutes", "title", "aims"], rows), "", f"{minutes} minutes in all."]
    return "\n".join(
        [*lines, *(f"! {entry['file']}: {entry['reason']}" for entry in fields["skipped"])]
    )


def _written(fields: Mapping[str, Any]) -> str:
    return (
        f"{fields['output']}: {fields['states']} states of its controls, "
        f"{fields['bytes_beside_library'] / 1e6:.2g} MB beside the plotting library."
    )
