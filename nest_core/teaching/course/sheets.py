"""Exercises as text: Moodle's GIFT, and Markdown for print.

References
----------
Moodle documentation, "GIFT format": a numerical question is ``{#answer:tolerance}``, general
feedback follows ``####``; ``~ = # { } :`` and the backslash are escaped by a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nest_core.documents.quoting import as_markdown
from nest_core.teaching.course.exercise import Sheet
from nest_core.teaching.lessons.lesson import Asked, Lesson

__all__ = ["FORMATS", "gift", "markdown"]

_ACTS = re.compile(r"[\\~=#{}:]")


def gift(lesson: Lesson, seed: int, sheets: Sequence[Sheet]) -> str:
    """A file for Moodle's question bank: one category, one question per student.

    Parameters
    ----------
    lesson : Lesson
    seed : int
    sheets : sequence of Sheet
    """
    width = len(str(sheets[-1].student)) if sheets else 1
    parts = [f"$CATEGORY: Nest Studio/{_line(lesson.short).replace('/', ' ')}, seed {seed}"]
    for sheet in sheets:
        question = sheet.asked
        name = _quoted(f"{lesson.short} {sheet.student:0{width}}")
        parts.append(
            f"::{name}::[plain]{_quoted(_question(question))} "
            f"{{#{question.answer:.10g}:{question.tolerance:.4g}####{_quoted(question.solution)}}}"
        )
    return "\n\n".join(parts) + "\n"


def markdown(lesson: Lesson, seed: int, sheets: Sequence[Sheet]) -> str:
    """Questions to hand out, then the answers with worked solutions.

    Parameters
    ----------
    lesson : Lesson
    seed : int
    sheets : sequence of Sheet
    """
    questions, answers = [], []
    for sheet in sheets:
        question = sheet.asked
        questions.append(f"## Student {sheet.student}\n\n{as_markdown(question.text)}")
        value = as_markdown(f"{question.answer:.6g} {question.unit}".rstrip())
        off = as_markdown(f"{question.tolerance:.3g} {question.unit}".rstrip())
        answers.append(
            f"* Student {sheet.student}: **{value}** (± {off}). {as_markdown(question.solution)}"
        )
    title = f"# {as_markdown(lesson.title)}: exercises, seed {seed}"
    return "\n\n".join([title, *questions, "# Answers", "\n".join(answers)]) + "\n"


def _question(asked: Asked) -> str:
    """The question, with the unit where it does not say it."""
    if not asked.unit or asked.unit in asked.text:
        return asked.text
    return f"{asked.text} (in {asked.unit})"


def _line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    """Text in which nothing acts; GIFT ends a question at an empty line."""
    return _ACTS.sub(r"\\\g<0>", _line(text))


FORMATS = {"gift": gift, "md": markdown}
"""Writers by name."""
