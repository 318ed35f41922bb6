"""What a lesson is: predict, reveal, explain, and the teacher's notes.

A lesson asks a question before it shows anything. Its answer, the figures behind it and every
number in its texts are computed when they are asked for; nothing is stored. Units are SI, unless
a label on screen says otherwise.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from nest_core.documents.errors import require
from nest_core.documents.schema.lesson import FormulaTable, NotesTable, QuestionTable
from nest_core.report.tables import Table

__all__ = [
    "Asked",
    "Brief",
    "Control",
    "Exercise",
    "Lesson",
    "Question",
    "Reveal",
    "Settings",
    "Value",
    "check_offered",
]

_HANDS = "abcdefghijklmnopqrstuvwxyz"
Value = int | float | str
Settings = Mapping[str, Value]


def check_offered(
    where: str, rule: str, value: object, offered: Iterable[object], nothing: str = "none"
) -> None:
    """Refuse a value that is not among what is offered.

    Raises
    ------
    InputError
        With all that is offered, or ``nothing``.
    """
    values = list(offered)
    require(value in values, where, rule, value, f"use {', '.join(map(str, values)) or nothing}")


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
        """Return what it can be beside other settings."""
        return self.values if self.last is None else self.values[: self.last(settings)]

    def name(self, value: Value) -> str:
        """Return a value as people read it."""
        return self.names[self.values.index(value)] if self.names else str(value)


class Question(QuestionTable):
    """What to predict, with its numbers: one of several choices, or a number."""

    def is_right(self, prediction: str | float) -> bool:
        """Whether a prediction is the answer."""
        return (
            prediction == self.right
            if isinstance(self.right, str) or isinstance(prediction, str)
            else abs(prediction - self.right) <= self.tolerance * abs(self.right)
        )

    def told(self, prediction: str | float) -> str:
        """Return a prediction as people read it."""
        return (
            self.choices[prediction]
            if isinstance(prediction, str)
            else f"{prediction:g} {self.unit}".rstrip()
        )

    def verdict(self, prediction: str | float | None) -> str:
        """One sentence about a prediction, or the answer alone without one."""
        if prediction is None:
            return f"Answer: {self.answer}"
        return (
            f"Right. {self.answer}"
            if self.is_right(prediction)
            else f"You said: {self.told(prediction)}. Computed: {self.answer}"
        )


@dataclass(frozen=True, slots=True)
class Brief:
    """What a lesson needs before its reveal."""

    question: Question
    notes: NotesTable

    @property
    def hands(self) -> dict[str, str]:
        """What a class raises its hands for, by key: the choices, or the number among others."""
        return self.question.choices or {
            key: f"{float(f'{value:.3g}'):g} {self.question.unit}".rstrip()
            for key, value in self._offered.items()
        }

    @property
    def right_hand(self) -> str:
        """Key of the one of `hands` that is right."""
        right = self.question.right
        return next((key for key, value in self._offered.items() if value == right), str(right))

    @property
    def _offered(self) -> dict[str, float]:
        """The number that is right among typical wrong ones, or among some where there are few."""
        if isinstance(self.question.right, str):
            return {}
        right, texts = self.question.right, [mistake.answer for mistake in self.notes.mistakes]
        numbers = [float(text) for text in texts if text.replace(".", "", 1).isdecimal()]
        wrong = [
            value
            for value in (*numbers, 2 * right, right / 2, 4 * right)
            if not self.question.is_right(value)
        ]
        return dict(zip(_HANDS, sorted({right, *wrong[: max(len(numbers), 3)]}), strict=False))


@dataclass(frozen=True, slots=True)
class Reveal:
    """What a lesson shows under some settings.

    Parameters
    ----------
    content : object
        What `nest_core.teaching.drawings.lesson_pictures` draws.
    texts : tuple of str
        The explanation, short.
    formulas : tuple of FormulaTable
    tables : tuple of Table
    """

    content: object
    texts: tuple[str, ...] = ()
    formulas: tuple[FormulaTable, ...] = ()
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
    mistakes : tuple of float
        Typical wrong answers, in ``unit``.
    """

    text: str
    answer: float
    unit: str
    tolerance: float
    solution: str
    mistakes: tuple[float, ...] = ()

    @property
    def is_clear(self) -> bool:
        """Whether no answer counts that is as near to a typical wrong one as may be."""
        return all(abs(wrong - self.answer) > 2 * self.tolerance for wrong in self.mistakes)


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
        """Return what is shown under settings; controls that are left out stand where they start.

        Raises
        ------
        InputError
            For a control that the lesson lacks, or a value that it does not offer.
        """
        by_key = {control.key: control for control in self.controls}
        for key, value in settings.items():
            where = f"{self.key}.{key}"
            check_offered(where, "must be a control of the lesson", key, by_key)
            check_offered(
                where, "must be a value that the lesson offers", value, by_key[key].values
            )
        complete = {**self.standard, **settings}
        for control in self.controls:
            offered = control.offered(complete)
            if complete[control.key] not in offered:
                complete[control.key] = offered[-1]
        return self.show(complete)
