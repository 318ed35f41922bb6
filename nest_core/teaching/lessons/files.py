"""Lessons from files: the words of a file around one of the figures.

A file is checked when it is read: its keys, its figure, its controls, and every name in its words
that can be known before something slow is computed. Numbers are computed when they are asked for.

An answer may have a unit of the same kind as the one that was asked for, a decimal comma, and
marks between thousands. Where it can be read in two ways, both count. In words, ``{idle:percent}``
becomes ``42.9 %``: between braces stands a name, and after a colon the form in which people read
its number. Nothing else is done there: a file of somebody else's cannot compute or look up
anything.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from nest_core.documents import (
    InputError,
    humanise_bytes,
    humanise_seconds,
    parse_toml,
    percent,
    require,
)
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

__all__ = [
    "FORMS",
    "UNITS",
    "Finder",
    "among",
    "fill",
    "names_in",
    "read_lesson",
    "readings",
    "scale",
    "told",
]

UNITS: Mapping[str, Mapping[str, float]] = {
    "share": {"%": 0.01, "percent": 0.01},
    "time": {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "min": 60.0, "h": 3600.0},
    "size": {
        "B": 1.0,
        "bytes": 1.0,
        "kB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "TB": 1e12,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
        "TiB": 2.0**40,
    },
    "rate": {"B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12},
}
"""SI per unit, by kind; what stands nowhere here is a count of its own."""

_WRITTEN = re.compile(r"([+\u2212-]?[\d.,'\u2019]*\d[\d.,]*(?:[eE][+\u2212-]?\d+)?)\s*(.*)")


def scale(unit: str) -> float:
    """SI per unit; 1 for counts.

    Examples
    --------
    >>> scale("%"), scale("GiB") == 2**30, scale("micro-batches")
    (0.01, True, 1.0)
    """
    return next((units[unit] for units in UNITS.values() if unit in units), 1.0)


def readings(text: str, unit: str, where: str = "answer") -> tuple[float, ...]:
    """Return what an answer can mean, in ``unit``; the usual reading first.

    Parameters
    ----------
    text : str
        As a student wrote it.
    unit : str
        That was asked for; counts where none is written.
    where : str
        What messages call it.

    Raises
    ------
    InputError
        If it is no number, or has a unit of another kind.

    Examples
    --------
    >>> readings("42,9 %", "%"), readings("1.5 s", "ms"), readings("1,234", "ms")
    ((42.9,), (1500.0,), (1.234, 1234.0))
    >>> readings("0.429", "%")
    (0.429, 42.9)
    """
    match = _WRITTEN.fullmatch(re.sub(r"(?<=\d)[\s_](?=\d{3}\b)", "", " ".join(text.split())))
    numbers = _numbers(match[1].replace("\u2212", "-")) if match else ()
    if not match or not numbers:
        raise InputError(where, "must be a number", text, f"write one in {unit or 'digits'}")
    written = match[2].rstrip(".").strip()
    if not written or written.lower() == unit.lower():
        is_bare = unit == "%" and not written
        return (*numbers, *(100 * number for number in numbers if is_bare and abs(number) <= 1))
    kind = next((units for units in UNITS.values() if unit in units), {unit: 1.0})
    near = kind.get(written) or {name.lower(): size for name, size in kind.items()}.get(
        written.lower()
    )
    if near is None:
        rule = f"must be in {unit}" if unit else "must be a plain number"
        raise InputError(where, rule, text, "use " + ", ".join(kind) if unit else "leave it out")
    return tuple(number * near / scale(unit) for number in numbers)


def _numbers(text: str) -> tuple[float, ...]:
    """Return a number's readings: the last mark of two kinds is the decimal one."""
    plain = text.replace("'", "").replace("\u2019", "")
    marks = re.findall(r"[.,]", plain)
    if len(set(marks)) == 2:
        tries = [plain.replace("." if marks[-1] == "," else ",", "").replace(",", ".")]
    elif len(marks) > 1:
        tries = [plain.replace(marks[0], "")]
    else:
        tries = [plain.replace(",", ".")]
        if re.fullmatch(r"[+-]?\d{1,3},\d{3}", plain):
            tries.append(plain.replace(",", ""))
    try:
        return tuple(float(number) for number in tries)
    except ValueError:  # several decimal marks
        return ()


_PLACE = re.compile(r"\{([^{}:]+)(?::([^{}:]*))?\}")

FORMS: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "bytes": humanise_bytes,
    "seconds": humanise_seconds,
    "count": lambda value: f"{value:,.0f}",
    "g": lambda value: f"{value:g}",
}
"""How a number is written; without a form with three digits, with a digit as form with as many."""


def names_in(text: str) -> tuple[str, ...]:
    """Names between braces.

    Examples
    --------
    >>> names_in("{pp} stages, {idle:percent} idle")
    ('pp', 'idle')
    """
    return tuple(match[1].strip() for match in _PLACE.finditer(text))


def fill(text: str, number: Callable[[str], Value], where: str = "words") -> str:
    """Return a text with its numbers.

    Parameters
    ----------
    text : str
    number : callable (str) -> int, float or str
        What a name stands for; refuses those that it does not know.
    where : str
        What messages call the text.

    Examples
    --------
    >>> fill("{pp} stages: {idle:percent}", {"pp": 4, "idle": 3 / 7}.__getitem__)
    '4 stages: 42.9 %'
    """
    return _PLACE.sub(lambda match: told(number(match[1].strip()), match[2], where), text)


def told(value: Value, form: str | None = None, where: str = "words") -> str:
    """Return a value as people read it.

    Examples
    --------
    >>> told(1234.5), told(1234.5, "5"), told(0.5, "percent"), told(7), told("tp 8")
    ('1.23e+03', '1234.5', '50 %', '7', 'tp 8')
    """
    if isinstance(value, str) or (form is None and isinstance(value, int)):
        return str(value)
    if form is None:
        return f"{value:.3g}"
    if form.isdigit():
        return f"{value:.{int(form[:2])}g}"
    require(form in FORMS, where, "must use a form that there is", form, "use " + ", ".join(FORMS))
    return FORMS[form](value)


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
