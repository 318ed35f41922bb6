"""Lessons from files: the words of a file around one of the figures.

A file is checked when it is read: its keys, its figure, its controls, and every name in its words
that can be known before something slow is computed. Numbers are computed when they are asked for.
"""

from __future__ import annotations

import itertools
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
Finder = Callable[[LessonFile], LessonFigure]
"""The figure that a file names."""

_ANSWER = "answer"
"""What a worked solution may name beside its figure's numbers: the answer with its unit."""


def among(figures: Mapping[str, LessonFigure]) -> Finder:
    """Return what finds figures of a table."""

    def find(file: LessonFile) -> LessonFigure:
        check_offered("figure", "must be one of the figures", file.figure, figures)
        require(
            file.inputs is None,
            "inputs",
            "must be left out with this figure",
            file.figure,
            "leave it out",
        )
        return figures[file.figure]

    return find


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
        return value if figure.row is not None else _filled(value, figure, given, where)

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


def _filled(value: T, figure: LessonFigure, given: Settings, where: str) -> T:
    """Return words, or a table or list of them, with their numbers."""
    filled: Any = value
    if isinstance(value, str):
        filled = fill(value, lambda name: figure.number(name, given, where), where)
    elif isinstance(value, list):
        filled = [_filled(inner, figure, given, where) for inner in value]
    elif isinstance(value, dict):
        filled = {key: _filled(inner, figure, given, where) for key, inner in value.items()}
    elif isinstance(value, BaseModel):
        parts = {name: _filled(inner, figure, given, f"{where}.{name}") for name, inner in value}
        filled = value.model_copy(update=parts)
    return cast(T, filled)


def _explained(file: LessonFile, figure: LessonFigure, settings: Settings) -> Reveal:
    """Return what a figure shows, with the file's words about it and their numbers."""
    reveal = figure.show(settings)
    moved = {name: value for name, value in settings.items() if name in figure.given}
    given = figure.at({**file.question.given, **moved})
    return replace(
        reveal,
        texts=(*reveal.texts, *_filled(file.explain, figure, given, "explain")),
        formulas=(*reveal.formulas, *_filled(file.formula, figure, given, "formula")),
    )


def _check_names(file: LessonFile, figure: LessonFigure) -> None:
    """Refuse a name in braces that the figure lacks, wherever it stands."""
    if figure.row is not None:
        return
    for where, text in _all_words(file.model_dump(exclude={"inputs", "control"}), ""):
        for name in names_in(text):
            if name not in figure.names and (where, name) != ("exercise.solution", _ANSWER):
                figure.number(name, {}, where)


def _all_words(value: Any, where: str) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(where, value)]
    if isinstance(value, dict):
        parts = ((f"{where}.{key}".removeprefix("."), inner) for key, inner in value.items())
    elif isinstance(value, list):
        parts = ((f"{where}[{number}]", inner) for number, inner in enumerate(value))
    else:
        return []
    return list(itertools.chain.from_iterable(_all_words(inner, path) for path, inner in parts))


def _check_right(question: QuestionTable, figure: LessonFigure) -> None:
    right = question.right
    if question.choices:
        if not names_in(str(right)):
            rule = "must be the key of a choice"
            check_offered("question.right", rule, right, question.choices)
        return
    if isinstance(right, str) and figure.row is None and right not in figure.names:
        figure.number(right, {}, "question.right")
    rule = "must be above 0 where a number is asked for"
    require(question.most > 0, "question.most", rule, question.most, "say how large it may be")


def _brief(file: LessonFile, figure: LessonFigure, given: Settings) -> Brief:
    """Return question and notes with their numbers."""
    asked, right = file.question, file.question.right
    if asked.choices:
        right = _filled(str(right), figure, given, "question.right")
        check_offered("question.right", "must become the key of a choice", right, asked.choices)
    elif isinstance(right, str):
        right = _numeric(figure, right, given, "question.right") / scale(asked.unit)
    parts = dict(_filled(asked.model_copy(update={"right": right}), figure, given, "question"))
    return Brief(Question.model_construct(**parts), _filled(file.notes, figure, given, "notes"))


def _numeric(figure: LessonFigure, name: str, given: Settings, where: str) -> float:
    value = figure.number(name, given, where)
    if isinstance(value, str):
        raise InputError(where, "must name a number", name, "name another")
    return float(value)


def _controls(tables: list[ControlTable] | None, figure: LessonFigure) -> tuple[Control, ...]:
    """Return the figure's controls, or those that a file names, with what it says of them."""
    if tables is None:
        return figure.controls
    by_key = {control.key: control for control in figure.controls}
    controls = []
    for number, table in enumerate(tables):
        where = f"control[{number}]"
        rule = f"must be a control of the figure {figure.key}"
        check_offered(f"{where}.key", rule, table.key, by_key, "none: it has no controls")
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
            rule = "must be among the control's values"
            check_offered(f"export.{key}", rule, value, by_key[key].values)
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
    if figure.row is None and table.answer not in figure.names:
        figure.number(table.answer, {}, "exercise.answer")

    def ask(settings: Settings) -> Asked:
        given = figure.at(settings, "exercise.given")
        answer = _numeric(figure, table.answer, given, "exercise.answer") / scale(table.unit)

        def number(name: str) -> Value:
            if name == _ANSWER:
                return f"{answer:.4g} {table.unit}".rstrip()
            return figure.number(name, given, "exercise")

        return Asked(
            fill(table.text, number, "exercise.text"),
            answer,
            table.unit,
            table.tolerance * abs(answer),
            fill(table.solution, number, "exercise.solution"),
        )

    return Exercise(drawn, ask)


def _drawn(numbers: list[Value] | LessonSpan) -> tuple[Value, ...]:
    if not isinstance(numbers, LessonSpan):
        return tuple(numbers)
    count = int((numbers.max - numbers.min) / numbers.step + 1e-9) + 1
    return tuple(float(f"{numbers.min + step * numbers.step:.9g}") for step in range(count))
