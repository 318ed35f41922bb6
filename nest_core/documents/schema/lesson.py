"""A lesson's file, ``schema = 1``: question, choices, controls, figure, notes and exercise.

Words may hold names in braces, which the lesson's figure computes: ``{idle:percent}``
(`nest_core.teaching.lessons.files`).
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from nest_core.documents.schema.checking import Name, SchemaTable, must

__all__ = ["ControlTable", "ExerciseTable", "LessonFile", "LessonSpan", "QuestionTable"]

Words = Annotated[str, Field(min_length=1, max_length=4_000)]
Value = int | float | Annotated[str, Field(max_length=200)]
Values = Annotated[list[Value], Field(min_length=1, max_length=64)]
Given = dict[Name, Value]


class QuestionTable(SchemaTable):
    """``[question]``: one of several choices, or a number."""

    text: Words
    right: Annotated[str, Field(min_length=1, max_length=200)] | float
    answer: Words
    choices: Annotated[dict[Name, Words], Field(max_length=12)] = {}
    unit: Annotated[str, Field(max_length=40)] = ""
    most: Annotated[float, Field(ge=0)] = 0.0
    tolerance: Annotated[float, Field(ge=0, le=1)] = 0.05
    given: Given = {}


class ControlTable(SchemaTable):
    """One of ``[[control]]``: which of a figure's controls, what it offers, where it starts."""

    key: Name
    label: Name | None = None
    help: Words | None = None
    values: Values | None = None
    start: Value | None = None


class MistakeTable(SchemaTable):
    """A typical wrong answer, and what it overlooks."""

    answer: Words
    overlooks: Words


class NotesTable(SchemaTable):
    """``[notes]``, for the teacher."""

    expected: Words
    mistakes: Annotated[list[MistakeTable], Field(max_length=20)] = []
    discuss: Annotated[list[Words], Field(max_length=20)] = []


class FormulaTable(SchemaTable):
    """One of ``[[formula]]``: in symbols, with the numbers on screen, and where it is from."""

    name: Name
    symbols: Words
    numbers: Words
    source: Words


class LessonSpan(SchemaTable):
    """Numbers from ``min`` to ``max`` in steps."""

    min: float
    max: float
    step: Annotated[float, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _some(self) -> Self:
        must(
            self.min <= self.max <= self.min + 10_000 * self.step,
            "at most 10,000 steps from min up to max",
        )
        return self


class ExerciseTable(SchemaTable):
    """``[exercise]``: a number that is asked of every student with other numbers."""

    text: Words
    answer: Name
    solution: Words
    mistakes: Annotated[list[Name], Field(max_length=8)] = []
    unit: Annotated[str, Field(max_length=40)] = ""
    tolerance: Annotated[float, Field(ge=0, le=1)] = 0.02
    given: dict[Name, Values | LessonSpan]


class LessonFile(SchemaTable):
    """The whole file."""

    version: Literal[1] = Field(alias="schema")
    title: Name
    short: Annotated[str, Field(min_length=1, max_length=24)]
    lead: Words
    figure: Name
    minutes: Annotated[int, Field(ge=1, le=600)]
    aims: Annotated[list[Words], Field(max_length=8)] = []
    inputs: dict[str, Any] | None = None
    control: Annotated[list[ControlTable], Field(max_length=6)] | None = None
    question: QuestionTable
    notes: NotesTable
    exercise: ExerciseTable | None = None
    explain: Annotated[list[Words], Field(max_length=8)] = []
    formula: Annotated[list[FormulaTable], Field(max_length=8)] = []
    export: dict[Name, Values] = {}
