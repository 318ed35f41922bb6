"""Lessons from files: the words of a file around one of the figures.

A file is checked when it is read: its keys, its figure, its controls, and every name in its words
that can be known before something slow is computed. Numbers are computed when they are asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from nest_core.documents import InputError, parse_toml, require
from nest_core.documents.schema import checked
from nest_core.documents.schema.lesson import (
    ControlTable,
    ExerciseTable,
    LessonFile,
    LessonSpan,
    QuestionTable,
)
from nest_core.teaching.lessons.figure import LessonFigure
from nest_core.teaching.lessons.lesson import (
    Asked,
    Brief,
    Control,
    Exercise,
    Lesson,
    Question,
    Reveal,
    Settings,
    Value,
    check_offered,
)
from nest_core.teaching.lessons.quantity import fill, names_in, scale

__all__ = ["Finder", "among", "read_lesson"]

T = TypeVar("T")
_NumberAt = Callable[[str, str], Value]
Finder = Callable[[LessonFile], LessonFigure]
"""The figure that a file names."""

_DIGITS, _ROUNDED = 3, 0.005
"""Significant digits of answers, and the tolerance that takes what they leave out."""
_ANSWER = "answer"
"""What a worked solution may name beside its figure's numbers: the answer with its unit."""


def among(figures: Mapping[str, LessonFigure], file: LessonFile) -> LessonFigure:
    """Return the figure of a table that a file names."""
    check_offered("figure", "must be one of the figures", file.figure, figures)
    require(
        file.inputs is None,
        "inputs",
        "must be left out with this figure",
        file.figure,
        "leave it out",
    )
    return figures[file.figure]


def read_lesson(text: str, key: str, find: Finder, *, own: bool = True) -> Lesson:
    """Return the lesson of a file's text.

    Parameters
    ----------
    text : str
        TOML.
    key : str
        Of the lesson: the file's name without its ending.
    find : callable (LessonFile) -> LessonFigure
    own : bool
        Whether it is a person's; its text is then kept.

    Raises
    ------
    InputError
        For the first thing that is wrong with it.
    """
    file = checked(LessonFile, parse_toml(text, f"{key}.toml"))
    figure = find(file)
    _check_names(file, figure)
    given = figure.at(file.question.given, "question.given")
    _check_right(file.question, figure)

    def words(value: T, where: str) -> T:
        # Where numbers have names of their own, nothing is computed before the lesson is opened.
        return value if figure.row is not None else _filled(value, _at(figure, given), where)

    controls = _controls(file.control, figure)
    starts = {control.key: control.standard for control in figure.controls}
    return Lesson(
        key,
        file.short,
        file.title,
        words(file.lead, "lead"),
        controls,
        cache(partial(_brief, file, figure, given)),
        lambda settings: _explained(file, figure, {**starts, **settings}),
        figure.slow,
        file.minutes,
        tuple(words(file.aims, "aims")),
        _exercise(file.exercise, figure) if file.exercise else None,
        _exported(file.export, controls),
        text if own else "",
    )


def _at(figure: LessonFigure, given: Settings) -> _NumberAt:
    """Return what names stand for where this is given."""
    return lambda name, where: figure.number(name, given, where)


def _filled(value: T, number: _NumberAt, where: str) -> T:
    """Return words, or a table or list of them, with the number of each name where it stands."""
    filled: Any = value
    if isinstance(value, str):
        filled = fill(value, lambda name: number(name, where), where)
    elif isinstance(value, list):
        filled = [_filled(inner, number, f"{where}[{place}]") for place, inner in enumerate(value)]
    elif isinstance(value, dict):
        filled = {key: _filled(inner, number, f"{where}.{key}") for key, inner in value.items()}
    elif isinstance(value, BaseModel):
        parts = {name: _filled(inner, number, f"{where}.{name}") for name, inner in value}
        filled = value.model_copy(update=parts)
    return cast(T, filled)


def _explained(file: LessonFile, figure: LessonFigure, settings: Settings) -> Reveal:
    """Return what a figure shows, with the file's words about it and their numbers."""
    reveal = figure.show(settings)
    moved = {name: value for name, value in settings.items() if name in figure.given}
    number = _at(figure, figure.at({**file.question.given, **moved}))
    return replace(
        reveal,
        texts=(*reveal.texts, *_filled(file.explain, number, "explain")),
        formulas=(*reveal.formulas, *_filled(file.formula, number, "formula")),
    )


def _check_names(file: LessonFile, figure: LessonFigure) -> None:
    """Refuse a name in braces that the figure lacks, wherever it stands."""

    def checked_number(name: str, where: str) -> float:
        if (where, name) != ("exercise.solution", _ANSWER):
            figure.check(name, where)
        return 0.0

    for part, words in file.model_dump(exclude={"inputs", "control"}).items():
        _filled(words, checked_number, part)


def _check_right(question: QuestionTable, figure: LessonFigure) -> None:
    right = question.right
    if question.choices:
        if not names_in(str(right)):
            check_offered("question.right", "must be the key of a choice", right, question.choices)
        return
    if isinstance(right, str):
        figure.check(right, "question.right")
    require(
        question.most > 0,
        "question.most",
        "must be above 0 where a number is asked for",
        question.most,
        "say how large it may be",
    )


def _brief(file: LessonFile, figure: LessonFigure, given: Settings) -> Brief:
    """Return question and notes with their numbers."""
    asked, right, number = file.question, file.question.right, _at(figure, given)
    if asked.choices:
        right = _filled(str(right), number, "question.right")
        check_offered("question.right", "must become the key of a choice", right, asked.choices)
    elif isinstance(right, str):
        right = _numeric(number, right, "question.right", asked.unit)
    parts = dict(_filled(asked.model_copy(update={"right": right}), number, "question"))
    return Brief(Question.model_construct(**parts), _filled(file.notes, number, "notes"))


def _numeric(number: _NumberAt, name: str, where: str, unit: str) -> float:
    """Return the number of a name in a unit."""
    value = number(name, where)
    if isinstance(value, str):
        raise InputError(where, "must name a number", name, "name another")
    return float(value) / scale(unit)


def _controls(tables: list[ControlTable] | None, figure: LessonFigure) -> tuple[Control, ...]:
    """Return the figure's controls, or those that a file names, with what it says of them."""
    if tables is None:
        return figure.controls
    by_key = {control.key: control for control in figure.controls}
    controls = []
    for number, table in enumerate(tables):
        where = f"control[{number}]"
        check_offered(
            f"{where}.key",
            f"must be a control of the figure {figure.key}",
            table.key,
            by_key,
            "none: it has no controls",
        )
        controls.append(_control(table, by_key[table.key], where))
    return tuple(controls)


def _control(table: ControlTable, base: Control, where: str) -> Control:
    values: tuple[Value, ...] = base.values if table.values is None else tuple(table.values)
    for value in values:
        check_offered(f"{where}.values", "must be among what the figure offers", value, base.values)
    usual = base.standard if base.standard in values else values[0]
    start = usual if table.start is None else table.start
    check_offered(f"{where}.start", "must be one of its values", start, values)
    return replace(
        base,
        label=table.label or base.label,
        values=values,
        standard=start,
        help=table.help or base.help,
        names=tuple(base.name(value) for value in values) if base.names else (),
        last=base.last if values == base.values else None,
    )


def _exported(
    exports: Mapping[str, list[Value]], controls: tuple[Control, ...]
) -> dict[str, tuple[Value, ...]]:
    """Values of controls in the lesson's own file, each with where the control starts."""
    by_key = {control.key: control for control in controls}
    for key, values in exports.items():
        check_offered(f"export.{key}", "must be a control of the lesson", key, by_key)
        for value in values:
            check_offered(
                f"export.{key}", "must be among the control's values", value, by_key[key].values
            )
    return {
        key: tuple(
            value
            for value in by_key[key].values
            if value in values or value == by_key[key].standard
        )
        for key, values in exports.items()
    }


def _exercise(table: ExerciseTable, figure: LessonFigure) -> Exercise:
    drawn = {name: _drawn(numbers) for name, numbers in table.given.items()}
    for name, values in drawn.items():
        for value in (values[0], values[-1]):
            figure.at({name: value}, "exercise.given")
    for name in (table.answer, *table.mistakes):
        figure.check(name, "exercise.answer")

    def ask(settings: Settings) -> Asked:
        number = _at(figure, figure.at(settings, "exercise.given"))
        answer, *wrong = (
            _numeric(number, name, "exercise.answer", table.unit)
            for name in (table.answer, *table.mistakes)
        )
        is_rounded = table.tolerance >= _ROUNDED
        if is_rounded and abs(answer - round(answer)) > 1e-9 * abs(answer):
            answer = float(f"{answer:.{_DIGITS}g}")
        words = f"{answer:.10g} {table.unit}".rstrip()
        text, solution = _filled(
            [table.text, table.solution],
            lambda name, where: words if name == _ANSWER else number(name, where),
            "exercise",
        )
        return Asked(
            text + " Three significant digits are enough." * is_rounded,
            answer,
            table.unit,
            table.tolerance * abs(answer),
            solution,
            tuple(wrong),
        )

    return Exercise(drawn, ask)


def _drawn(numbers: list[Value] | LessonSpan) -> tuple[Value, ...]:
    if not isinstance(numbers, LessonSpan):
        return tuple(numbers)
    count = int((numbers.max - numbers.min) / numbers.step + 1e-9) + 1
    return tuple(float(f"{numbers.min + step * numbers.step:.9g}") for step in range(count))
