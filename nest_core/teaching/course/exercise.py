"""Exercises: one question per student, each with other numbers, their marks, and both as text.

Numbers are drawn from what a lesson's file gives, by seed and student: the same seed gives the same
numbers, and a student's do not depend on how many others there are. Students come in their order,
and as long as there are other numbers left nobody is asked what somebody before was asked. Texts
are Moodle's GIFT, and Markdown for print.

References
----------
Moodle documentation, "GIFT format": a numerical question is ``{#answer:tolerance}``, general
feedback follows ``####``; ``~ = # { } :`` and the backslash are escaped by a backslash.
"""

import csv
import io
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nest_core.documents import InputError, as_markdown, require
from nest_core.teaching.lessons.files import readings
from nest_core.teaching.lessons.lesson import Asked, Exercise, Lesson, Value

__all__ = ["FORMATS", "MOST_STUDENTS", "Mark", "draw", "gift", "mark", "markdown"]

MOST_STUDENTS = 10_000
_TRIES = 100
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Mark:
    """One row of answers.

    Parameters
    ----------
    row : int
        Of the file; its first row of answers is 2.
    student : int or None
        None where the row does not say.
    answer : str
        As it was written.
    right : bool or None
        None where it could not be marked.
    expected : float or None
        In the unit that was asked for.
    note : str
        One sentence where something is odd; else empty.
    """

    row: int
    student: int | None
    answer: str
    right: bool | None
    expected: float | None
    note: str = ""


def draw(lesson: Lesson, seed: int, students: int) -> tuple[Asked, ...]:
    """Return the questions of so many students, in their order.

    Raises
    ------
    InputError
        If the lesson asks for no number, or there are too many students.
    """
    exercise = lesson.exercise
    if exercise is None:
        raise InputError(
            "LESSON", "must have an exercise", lesson.key, "add [exercise] to its file"
        )
    require(
        1 <= students <= MOST_STUDENTS,
        "--students",
        f"must be from 1 to {MOST_STUDENTS:,}",
        students,
        "change it",
    )
    return tuple(itertools.islice(_questions(lesson.key, exercise, seed), students))


def _questions(key: str, exercise: Exercise, seed: int) -> Iterator[Asked]:
    """Every student's question; the same again only when tries have found no others.

    Numbers with which a typical wrong answer would count are nobody's.
    """
    seen: set[tuple[Value, ...]] = set()
    for student in itertools.count(1):
        chance = random.Random(f"{key} {seed} {student}")
        question: Asked | None = None
        for _ in range(_TRIES):
            picked = {name: chance.choice(values) for name, values in exercise.given.items()}
            is_new = tuple(picked.values()) not in seen
            if (is_new or question is None) and (drawn := exercise.ask(picked)).is_clear:
                question = drawn
                if is_new:
                    seen.add(tuple(picked.values()))
                    break
        if question is None:
            raise InputError(
                f"{key}, exercise.mistakes",
                "must differ from the answer by more than twice its tolerance",
                "none do",
                "change given",
            )
        yield question


def mark(lesson: Lesson, seed: int, text: str, name: str) -> tuple[Mark, ...]:
    """Return marks of answers, row by row.

    Parameters
    ----------
    lesson : Lesson
    seed : int
        That the questions were drawn with.
    text : str
        CSV with columns ``student`` and ``answer``, separated by commas, semicolons or tabs.
    name : str
        Of the file, for messages.

    Raises
    ------
    InputError
        If the file has no such columns. What is odd about a row is said in its mark.
    """
    rows = _rows(text, name)
    numbers = [int(student) for student, _ in rows if _is_student(student)]
    sheets = draw(lesson, seed, max(numbers, default=1))
    seen: dict[int, int] = {}
    return tuple(
        _marked(row, student, answer, sheets, seen)
        for row, (student, answer) in enumerate(rows, start=2)
        if student or answer
    )


def _is_student(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MOST_STUDENTS


def _marked(
    row: int, student: str, answer: str, sheets: Sequence[Asked], seen: dict[int, int]
) -> Mark:
    if not _is_student(student):
        error = InputError(
            f"row {row}, student",
            f"must be a student's number, 1 to {MOST_STUDENTS:,}",
            student,
            "write the number of the question",
        )
        return Mark(row, None, answer, None, None, str(error))
    number = int(student)
    question = sheets[number - 1]
    if number in seen:
        note = f"Student {number} answered in row {seen[number]} already: that one counts."
        return Mark(row, number, answer, None, question.answer, note)
    seen[number] = row
    try:
        values = readings(answer, question.unit, f"row {row}, answer")
    except InputError as error:
        return Mark(row, number, answer, None, question.answer, str(error))
    slack = question.tolerance + _SLACK * abs(question.answer)
    fits = [value for value in values if abs(value - question.answer) <= slack]
    note = ""
    if len(values) > 1 and fits and fits[0] != values[0]:
        note = f"Read as {fits[0]:g} {question.unit}".rstrip() + f", not as {values[0]:g}."
    return Mark(row, number, answer, bool(fits), question.answer, note)


def _rows(text: str, name: str) -> list[tuple[str, str]]:
    """Student and answer of every row below the header."""
    header = text.splitlines()[0] if text.strip() else ""
    mark_between = max(",;\t", key=header.count)
    table = list(csv.reader(io.StringIO(text), delimiter=mark_between))
    columns = [cell.strip().lower() for cell in table[0]] if table else []
    for column in ("student", "answer"):
        require(
            column in columns,
            name,
            f"must have a column {column}",
            ", ".join(columns) or "an empty file",
            "begin it with student,answer",
        )
    who, what = columns.index("student"), columns.index("answer")
    answers = []
    for cells in table[1:]:
        # A decimal comma that nobody quoted makes one cell too many.
        last = what == len(columns) - 1 and len(cells) > len(columns)
        answer = mark_between.join(cells[what:]) if last else _cell(cells, what)
        answers.append((_cell(cells, who), answer.strip()))
    return answers


def _cell(cells: list[str], place: int) -> str:
    return cells[place].strip() if place < len(cells) else ""


_ACTS = re.compile(r"[\\~=#{}:]")


def gift(lesson: Lesson, seed: int, sheets: Sequence[Asked]) -> str:
    """Return a file for Moodle's question bank: one category, one question per student.

    Parameters
    ----------
    lesson : Lesson
    seed : int
    sheets : sequence of Asked
        Of the students in their order.
    """
    width = len(str(len(sheets)))
    parts = [f"$CATEGORY: Nest Studio/{_line(lesson.short).replace('/', ' ')}, seed {seed}"]
    for student, question in enumerate(sheets, start=1):
        name = _quoted(f"{lesson.short} {student:0{width}}")
        unit = "" if question.unit in question.text else f" (in {question.unit})"
        parts.append(
            f"::{name}::[plain]{_quoted(question.text + unit)} "
            f"{{#{question.answer:.10g}:{question.tolerance:.4g}####{_quoted(question.solution)}}}"
        )
    return "\n\n".join(parts) + "\n"


def markdown(lesson: Lesson, seed: int, sheets: Sequence[Asked]) -> str:
    """Questions to hand out, then the answers with worked solutions.

    Parameters
    ----------
    lesson : Lesson
    seed : int
    sheets : sequence of Asked
        Of the students in their order.
    """
    questions, answers = [], []
    for student, question in enumerate(sheets, start=1):
        questions.append(f"## Student {student}\n\n{as_markdown(question.text)}")
        value = as_markdown(f"{question.answer:.10g} {question.unit}".rstrip())
        off = as_markdown(f"{question.tolerance:.3g} {question.unit}".rstrip())
        answers.append(
            f"* Student {student}: **{value}** (± {off}). {as_markdown(question.solution)}"
        )
    title = f"# {as_markdown(lesson.title)}: exercises, seed {seed}"
    return "\n\n".join([title, *questions, "# Answers", "\n".join(answers)]) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    """Text in which nothing acts; GIFT ends a question at an empty line."""
    return _ACTS.sub(r"\\\g<0>", _line(text))


FORMATS = {"gift": gift, "md": markdown}
"""Writers by name."""
