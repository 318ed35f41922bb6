"""What a lesson is: predict, reveal, explain, and the teacher's notes.

A lesson asks a question before it shows anything. Its answer, the figures behind it and every
number in its texts are computed when they are asked for; nothing is stored. Units are SI, unless
a label on screen says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nest_core.documents.errors import InputError
from nest_core.report.tables import Table

__all__ = [
    "Asked",
    "Brief",
    "Choice",
    "Control",
    "Exercise",
    "Formula",
    "Lesson",
    "Notes",
    "Question",
    "Reveal",
    "Settings",
    "Value",
]

Value = int | float | str
Settings = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Control:
    """Something that moves a reveal's figures.

    Parameters
    ----------
    key : str
        Its name in `Settings`.
    label : str
        With the unit.
    values : tuple
        All that it can be, in order.
    standard : int, float or str
        One of them: where it starts.
    help : str
        What it does, and its range.
    names : tuple of str
        What people read instead of each value; empty: the value itself.
    stepped : bool
        Whether people walk through the values one by one.
    last : callable (Settings) -> int or None
        Where other settings decide how far the values go: how many of them there are under these.
        Beyond, the last of them is shown.
    """

    key: str
    label: str
    values: tuple[Value, ...]
    standard: Value
    help: str
    names: tuple[str, ...] = ()
    stepped: bool = False
    last: Callable[[Settings], int] | None = None

    def offered(self, settings: Settings) -> tuple[Value, ...]:
        """What it can be beside other settings."""
        return self.values if self.last is None else self.values[: self.last(settings)]

    def name(self, value: Value) -> str:
        """A value as people read it."""
        return self.names[self.values.index(value)] if self.names else str(value)


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to pick.

    Parameters
    ----------
    key : str
        Short, for links.
    text : str
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What to predict: one of several choices, or a number.

    Parameters
    ----------
    text : str
    right : str or float
        Key of the right choice, or the number.
    answer : str
        The answer in words.
    choices : tuple of Choice
        Empty where a number is asked for.
    unit : str
        Of the number.
    most : float
        Largest number that may be entered; the smallest is 0.
    tolerance : float
        How far a number may be off and still count as right, relative.
    """

    text: str
    right: str | float
    answer: str
    choices: tuple[Choice, ...] = ()
    unit: str = ""
    most: float = 0.0
    tolerance: float = 0.05

    def is_right(self, prediction: str | float) -> bool:
        """Whether a prediction is the answer."""
        if isinstance(self.right, str) or isinstance(prediction, str):
            return prediction == self.right
        return abs(prediction - self.right) <= self.tolerance * abs(self.right)

    def told(self, prediction: str | float) -> str:
        """A prediction as people read it."""
        if isinstance(prediction, str):
            return next(choice.text for choice in self.choices if choice.key == prediction)
        return f"{prediction:g} {self.unit}".rstrip()

    def verdict(self, prediction: str | float | None) -> str:
        """One sentence about a prediction, or the answer alone without one."""
        if prediction is None:
            return f"Answer: {self.answer}"
        if self.is_right(prediction):
            return f"Right. {self.answer}"
        return f"You said: {self.told(prediction)}. Computed: {self.answer}"

    @property
    def hands(self) -> tuple[Choice, ...]:
        """What a class raises its hands for: the choices, or ranges that double."""
        if self.choices:
            return self.choices
        edges = [0.0, *(self.most / 2**power for power in (3, 2, 1, 0))]
        return tuple(
            Choice(key, f"{low:g} to {high:g} {self.unit}".rstrip())
            for key, low, high in zip("abcd", edges, edges[1:], strict=False)
        )

    @property
    def right_hand(self) -> str:
        """Key of the one of `hands` that is right."""
        if isinstance(self.right, str):
            return self.right
        share = max(self.right, 1e-300) / self.most
        return "abcd"[min(3, max(0, 3 + math.ceil(math.log2(share))))]


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula with the numbers on screen.

    Parameters
    ----------
    name : str
        What it gives.
    symbols, numbers : str
        The formula, and the same with figures and its result.
    source : str
    """

    name: str
    symbols: str
    numbers: str
    source: str


@dataclass(frozen=True, slots=True)
class Notes:
    """For the teacher.

    Parameters
    ----------
    minutes : int
        What the lesson takes, discussion included.
    expected : str
        The expected answer and its reason.
    mistakes : tuple of (str, str)
        Typical wrong answers, and what each overlooks.
    discuss : tuple of str
        Questions to go on with.
    """

    minutes: int
    expected: str
    mistakes: tuple[tuple[str, str], ...]
    discuss: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Brief:
    """What a lesson needs before its reveal."""

    question: Question
    notes: Notes


@dataclass(frozen=True, slots=True)
class Reveal:
    """What a lesson shows under some settings.

    Parameters
    ----------
    content : object
        What `nest_core.teaching.drawings.lesson_pictures` draws.
    texts : tuple of str
        The explanation, short.
    formulas : tuple of Formula
    tables : tuple of Table
    """

    content: object
    texts: tuple[str, ...] = ()
    formulas: tuple[Formula, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A number that one student is asked for.

    Parameters
    ----------
    text : str
        The question.
    answer : float
        In ``unit``.
    unit : str
    tolerance : float
        How far an answer may be off, in ``unit``.
    solution : str
        Worked, with this student's numbers.
    """

    text: str
    answer: float
    unit: str
    tolerance: float
    solution: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """What a lesson can ask of everybody with other numbers.

    Parameters
    ----------
    given : mapping of str to tuple
        What each number may be.
    ask : callable (Settings) -> Asked
        The question with these numbers.
    """

    given: Mapping[str, tuple[Value, ...]]
    ask: Callable[[Settings], Asked]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One guided lesson.

    Parameters
    ----------
    key : str
        Of its widgets.
    short, title : str
        The short one stands in links.
    lead : str
        What to know before the question.
    controls : tuple of Control
    brief : callable () -> Brief
        Question and notes; computed once.
    show : callable (Settings) -> Reveal
        A pure function of valid settings.
    slow : bool
        Whether its question or what it shows takes longer than a page may, 100 ms.
    minutes : int
        What it takes, discussion included.
    aims : tuple of str
        What people can do afterwards.
    exercise : Exercise or None
        What it asks with numbers per student.
    exported : mapping of str to tuple
        Values of controls in the lesson's own file, where all of them would be too many.
    text : str
        Its file, where it is not one of the studio's own.
    """

    key: str
    short: str
    title: str
    lead: str
    controls: tuple[Control, ...]
    brief: Callable[[], Brief]
    show: Callable[[Settings], Reveal]
    slow: bool = False
    minutes: int = 0
    aims: tuple[str, ...] = ()
    exercise: Exercise | None = None
    exported: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    text: str = ""

    @property
    def standard(self) -> dict[str, Value]:
        """Where the controls start."""
        return {control.key: control.standard for control in self.controls}

    def reveal(self, settings: Settings) -> Reveal:
        """What is shown under settings; controls that are left out stand where they start.

        Raises
        ------
        InputError
            For a control that the lesson lacks, or a value that it does not offer.
        """
        by_key = {control.key: control for control in self.controls}
        for key, value in settings.items():
            if key not in by_key:
                raise InputError(
                    f"{self.key}.{key}",
                    "must be a control of the lesson",
                    value,
                    "use " + ", ".join(by_key),
                )
            if value not in by_key[key].values:
                raise InputError(
                    f"{self.key}.{key}",
                    "must be a value that the lesson offers",
                    value,
                    "use " + ", ".join(map(str, by_key[key].values)),
                )
        complete = {**self.standard, **settings}
        for control in self.controls:
            offered = control.offered(complete)
            if complete[control.key] not in offered:
                complete[control.key] = offered[-1]
        return self.show(complete)
