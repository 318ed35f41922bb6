"""The figures that a lesson's file can name: what they show, and the numbers behind its words.

A figure has controls, which people move, and given numbers, which its arithmetic takes: a question
is asked at some of them, an exercise draws others for every student.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nest_core.calibration.collectives.sweep import CollectiveSweep
from nest_core.costs import Report
from nest_core.costs.timeline import Timeline
from nest_core.documents.errors import InputError
from nest_core.teaching.lessons.lesson import Control, Reveal, Settings, Value

__all__ = ["Given", "LessonFigure", "Number", "Plans", "Sweeps", "Timelines"]

Number = Callable[[Settings], Value]


class Plans(NamedTuple):
    """Plans beside each other, by name, None where none fits.

    ``views`` says how the app shows them: ``memory`` and ``time`` of every stage, or the ``rate``
    at which sequences of ``tokens`` are trained on.
    """

    reports: Mapping[str, Report | None]
    views: tuple[str, ...]
    tokens: int = 1


class Timelines(NamedTuple):
    """Schedules, played back."""

    timelines: tuple[Timeline, ...]


class Sweeps(NamedTuple):
    """One collective by several algorithms."""

    sweeps: tuple[CollectiveSweep, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """A number, or one of some words, that arithmetic takes.

    Parameters
    ----------
    standard : int, float or str
        Where it stands if nothing is said; a whole one takes whole numbers only.
    min, max : float
        Bounds of a number, ends included.
    values : tuple of str
        What a word can be.
    """

    standard: Value
    min: float = 1.0
    max: float = 1024.0
    values: tuple[str, ...] = ()

    def check(self, name: str, value: Value) -> Value:
        """The value; InputError where it is none of these."""
        if isinstance(self.standard, str):
            if value not in self.values:
                rule = "must be one of its values"
                raise InputError(name, rule, value, "use " + ", ".join(self.values))
            return value
        is_whole = isinstance(self.standard, int)
        wrong = isinstance(value, str | bool) or (is_whole and value != int(value))
        if wrong or not self.min <= float(value) <= self.max:
            kind = "whole number" if is_whole else "number"
            raise InputError(
                name,
                f"must be a {kind} from {self.min:g} to {self.max:g}",
                value,
                "change it",
            )
        return int(value) if is_whole else float(value)


@dataclass(frozen=True, slots=True)
class LessonFigure:
    """What a lesson shows, without its words.

    Parameters
    ----------
    key : str
        How files name it.
    controls : tuple of Control
    show : callable (Settings) -> Reveal
        A pure function of valid settings.
    given : mapping of str to Given
    numbers : mapping of str to callable (Settings) -> value
        In SI, of what is given; words where a number would not do.
    row : callable (Settings) -> mapping, optional
        Numbers whose names are known only when they are computed.
    slow : bool
        Whether showing it takes longer than a page may, 100 ms.
    """

    key: str
    controls: tuple[Control, ...]
    show: Callable[[Settings], Reveal]
    given: Mapping[str, Given] = field(default_factory=dict)
    numbers: Mapping[str, Number] = field(default_factory=dict)
    row: Callable[[Settings], Mapping[str, Value]] | None = None
    slow: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What words can name."""
        return (*self.given, *self.numbers)

    def at(self, given: Settings, where: str = "given") -> dict[str, Value]:
        """All that is given, where a file says some of it."""
        for name in given:
            if name not in self.given:
                names = ", ".join(self.given) or "none: this figure takes nothing"
                rule = f"must be something that the figure {self.key} takes"
                raise InputError(f"{where}.{name}", rule, given[name], f"use {names}")
        return {
            name: bounds.check(f"{where}.{name}", given.get(name, bounds.standard))
            for name, bounds in self.given.items()
        }

    def number(self, name: str, given: Settings, where: str = "words") -> Value:
        """What a name stands for; InputError for one that the figure lacks."""
        if name in self.given:
            return given[name]
        if name in self.numbers:
            return self.numbers[name](given)
        row = self.row(given) if self.row else {}
        if name in row:
            return row[name]
        names = ", ".join((*self.names, *row)) or "none: this figure computes no numbers"
        raise InputError(
            where, f"must name what the figure {self.key} computes", name, f"use {names}"
        )
