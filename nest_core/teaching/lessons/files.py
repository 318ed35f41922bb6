"""Lessons from files: the words of a file around one of the figures.

A file is checked when it is read: its keys, its figure, its controls, and every name in its words
that can be known before something slow is computed. Numbers are computed when they are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.presets import parse_toml
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
    Choice,
    Control,
    Exercise,
    Formula,
    Lesson,
    Notes,
    Question,
    Reveal,
    Settings,
    Value,
)
from nest_core.teaching.lessons.quantity import scale
from nest_core.teaching.lessons.words import fill, names_in

__all__ = ["Finder", "among", "read_lesson"]

Finder = Callable[[LessonFile], LessonFigure]
"""The figure that a file names."""

_ANSWER = "answer"
"""What a worked solution may name beside its figure's numbers: the answer with its unit."""


def among(figures: Mapping[str, LessonFigure]) -> Finder:
    """Finds figures of a table."""

    def find(file: LessonFile) -> LessonFigure:
        if file.figure not in figures:
            rule = "must be one of the figures"
            raise InputError("figure", rule, file.figure, "pick " + ", ".join(figures))
        if file.inputs is not None:
            raise InputError(
                "inputs", "must be left out with this figure", file.figure, "leave it out"
            )
        return figures[file.figure]

    return find


def read_lesson(text: str, key: str, find: Finder, *, own: bool = True) -> Lesson:
    """The lesson of a file's text.

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

    def words(said: str, where: str) -> str:
        if figure.row is not None:  # nothing is computed before the lesson is opened
            return said
        return fill(said, lambda name: figure.number(name, given, where), where)

    @cache
    def brief() -> Brief:
        return _brief(file, figure, given)

    controls = _controls(file.control, figure)
    starts = {control.key: control.standard for control in figure.controls}

    def show(settings: Settings) -> Reveal:
        return _explained(file, figure, {**starts, **settings})

    return Lesson(
        key,
        file.short,
        file.title,
        words(file.lead, "lead"),
        controls,
        brief,
        show,
        figure.slow,
        file.minutes,
        tuple(words(aim, "aims") for aim in file.aims),
        _exercise(file.exercise, figure) if file.exercise else None,
        _exported(file.export, controls),
        text if own else "",
    )


def _explained(file: LessonFile, figure: LessonFigure, settings: Settings) -> Reveal:
    """Return what a figure shows, with the file's words about it and their numbers."""
    reveal = figure.show(settings)
    moved = {name: value for name, value in settings.items() if name in figure.given}
    given = figure.at({**file.question.given, **moved})

    def words(text: str, where: str) -> str:
        return fill(text, lambda name: figure.number(name, given, where), where)

    return replace(
        reveal,
        texts=(*reveal.texts, *(words(text, "explain") for text in file.explain)),
        formulas=(
            *reveal.formulas,
            *(
                Formula(table.name, table.symbols, words(table.numbers, "formula"), table.source)
                for table in file.formula
            ),
        ),
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
        if not names_in(str(right)) and right not in question.choices:
            raise InputError(
                "question.right",
                "must be the key of a choice",
                right,
                "use " + ", ".join(question.choices),
            )
        return
    if isinstance(right, str) and figure.row is None and right not in figure.names:
        figure.number(right, {}, "question.right")
    if question.most <= 0:
        rule = "must be above 0 where a number is asked for"
        raise InputError("question.most", rule, question.most, "say how large it may be")


def _brief(file: LessonFile, figure: LessonFigure, given: Settings) -> Brief:
    """Question and notes with their numbers."""
    question, notes = file.question, file.notes

    def words(said: str, where: str = "question") -> str:
        return fill(said, lambda name: figure.number(name, given, where), where)

    right: str | float
    if question.choices:
        right = words(str(question.right), "question.right")
        if right not in question.choices:
            rule = "must become the key of a choice"
            raise InputError("question.right", rule, right, "use " + ", ".join(question.choices))
    elif isinstance(question.right, str):
        value = _numeric(figure, question.right, given, "question.right")
        right = value / scale(question.unit)
    else:
        right = question.right
    return Brief(
        Question(
            words(question.text),
            right,
            words(question.answer),
            tuple(Choice(key, words(text)) for key, text in question.choices.items()),
            question.unit,
            question.most,
            question.tolerance,
        ),
        Notes(
            file.minutes,
            words(notes.expected, "notes.expected"),
            tuple(
                (
                    words(mistake.answer, "notes.mistakes"),
                    words(mistake.overlooks, "notes.mistakes"),
                )
                for mistake in notes.mistakes
            ),
            tuple(words(text, "notes.discuss") for text in notes.discuss),
        ),
    )


def _numeric(figure: LessonFigure, name: str, given: Settings, where: str) -> float:
    value = figure.number(name, given, where)
    if isinstance(value, str):
        raise InputError(where, "must name a number", name, "name another")
    return float(value)


def _controls(asked: list[ControlTable] | None, figure: LessonFigure) -> tuple[Control, ...]:
    """The figure's controls, or those that a file names, with what it says of them."""
    if asked is None:
        return figure.controls
    by_key = {control.key: control for control in figure.controls}
    controls = []
    for number, table in enumerate(asked):
        where = f"control[{number}]"
        if table.key not in by_key:
            rule = f"must be a control of the figure {figure.key}"
            offered = ", ".join(by_key) or "none: it has no controls"
            raise InputError(f"{where}.key", rule, table.key, f"use {offered}")
        controls.append(_control(table, by_key[table.key], where))
    return tuple(controls)


def _control(asked: ControlTable, base: Control, where: str) -> Control:
    values: tuple[Value, ...] = base.values if asked.values is None else tuple(asked.values)
    for value in values:
        if value not in base.values:
            raise InputError(
                f"{where}.values",
                "must be among what the figure offers",
                value,
                "use " + ", ".join(map(str, base.values)),
            )
    start = asked.start if asked.start is not None else base.standard
    if start not in values:
        start = values[0] if asked.start is None else start
        if start not in values:
            rule, offered = "must be one of its values", ", ".join(map(str, values))
            raise InputError(f"{where}.start", rule, start, f"use {offered}")
    return replace(
        base,
        label=asked.label or base.label,
        values=values,
        standard=start,
        help=asked.help or base.help,
        names=tuple(base.name(value) for value in values) if base.names else (),
        last=base.last if values == base.values else None,
    )


def _exported(
    asked: Mapping[str, list[Value]], controls: tuple[Control, ...]
) -> dict[str, tuple[Value, ...]]:
    """Values of controls in the lesson's own file, each with where the control starts."""
    by_key = {control.key: control for control in controls}
    for key, values in asked.items():
        if key not in by_key:
            rule, offered = "must be a control of the lesson", ", ".join(by_key) or "none"
            raise InputError(f"export.{key}", rule, values, f"use {offered}")
        for value in values:
            if value not in by_key[key].values:
                rule = "must be among the control's values"
                offered = ", ".join(map(str, by_key[key].values))
                raise InputError(f"export.{key}", rule, value, f"use {offered}")
    return {
        key: tuple(
            value
            for value in by_key[key].values
            if value in values or value == by_key[key].standard
        )
        for key, values in asked.items()
    }


def _exercise(asked: ExerciseTable, figure: LessonFigure) -> Exercise:
    drawn = {name: _drawn(numbers) for name, numbers in asked.given.items()}
    for name, values in drawn.items():
        for value in (values[0], values[-1]):
            figure.at({name: value}, "exercise.given")
    if figure.row is None and asked.answer not in figure.names:
        figure.number(asked.answer, {}, "exercise.answer")

    def ask(settings: Settings) -> Asked:
        given = figure.at(settings, "exercise.given")
        answer = _numeric(figure, asked.answer, given, "exercise.answer") / scale(asked.unit)

        def number(name: str) -> Value:
            if name == _ANSWER:
                return f"{answer:.4g} {asked.unit}".rstrip()
            return figure.number(name, given, "exercise")

        return Asked(
            fill(asked.text, number, "exercise.text"),
            answer,
            asked.unit,
            asked.tolerance * abs(answer),
            fill(asked.solution, number, "exercise.solution"),
        )

    return Exercise(drawn, ask)


def _drawn(one: list[Value] | LessonSpan) -> tuple[Value, ...]:
    if not isinstance(one, LessonSpan):
        return tuple(one)
    count = int((one.max - one.min) / one.step + 1e-9) + 1
    return tuple(float(f"{one.min + step * one.step:.9g}") for step in range(count))
