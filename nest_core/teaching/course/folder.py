"""The lessons that are offered: the studio's own, a teacher's folder's, and those that pins begin.

The folder is named by ``NEST_STUDIO_LESSONS`` (`nest-studio app --lessons DIR`) and read again
whenever a file in it changes. A file that cannot be read keeps no other from being shown. The
figure of a pin is named by its kind; ``[inputs]`` holds what the cell asks for, and a control of
such a lesson is a dotted key of its scenario. It is planned when the lesson is opened, which can be
watched and stopped.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from nest_core.api.answer import Answer, answer
from nest_core.api.studies import StudyResult, comparison_result, ratios_result, sweep_result
from nest_core.documents import NOTHING, InputError, plural, read_text, require, toml_document
from nest_core.documents.schema.lesson import FormulaTable, LessonFile
from nest_core.report.notebook.inputs import SCENARIO_KINDS, checked_inputs
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.studies.comparison import compare
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.sweeps import highest_ratios, sweep
from nest_core.teaching.course import LESSONS_VARIABLE
from nest_core.teaching.course.page import Page, lesson_page
from nest_core.teaching.lessons import (
    FIGURES,
    LESSONS,
    Brief,
    Lesson,
    LessonFigure,
    Reveal,
    Settings,
)
from nest_core.teaching.lessons import lesson as shipped_lesson
from nest_core.teaching.lessons.files import among, read_lesson
from nest_core.teaching.lessons.lesson import Control, Value, check_offered

__all__ = [
    "Offered",
    "find_figure",
    "find_lesson",
    "lesson_file",
    "lesson_text",
    "offered",
    "own_lesson",
    "work_brief",
    "work_page",
    "work_reveal",
]

MOST_FILES = 200

_Results = Callable[[str, Mapping[str, Any]], Answer | StudyResult[Any]]
_STEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Offered:
    """What there is to learn.

    Parameters
    ----------
    lessons : tuple of Lesson
        The studio's own first, then the folder's by name.
    troubles : tuple of (str, str)
        Files of the folder that are no lessons: their names, and one sentence why.
    """

    lessons: tuple[Lesson, ...]
    troubles: tuple[tuple[str, str], ...] = ()

    def named(self, name: str) -> Lesson | None:
        """Return the lesson of a key, or of a short name as links had it, in capitals or not."""
        names = (((lesson.key, lesson.short.lower()), lesson) for lesson in self.lessons)
        return next((lesson for both, lesson in names if name.lower() in both), None)


def offered(environment: Mapping[str, str] = os.environ) -> Offered:
    """All lessons, and what is wrong with files that are none."""
    folder_name = environment.get(LESSONS_VARIABLE, "").strip()
    if not folder_name:
        return Offered(LESSONS)
    try:
        folder, rule = Path(folder_name), "must be a folder of lesson files"
        require(folder.is_dir(), LESSONS_VARIABLE, rule, folder_name, "name another")
        paths = sorted(folder.glob("*.toml"))[:MOST_FILES]
        stamps = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    except InputError as error:
        return Offered(LESSONS, ((folder_name, str(error)),))
    except OSError as error:
        return Offered(LESSONS, ((folder_name, f"The folder cannot be read: {error.strerror}."),))
    return _read(folder, stamps)


@lru_cache(maxsize=8)
def _read(folder: Path, stamps: tuple[tuple[str, int, int], ...]) -> Offered:
    lessons, troubles = list(LESSONS), []
    for name, _, _ in stamps:
        taken = {word for lesson in lessons for word in (lesson.key, lesson.short.lower())}
        try:
            lesson = own_lesson(folder / name)
            require(
                not ({lesson.key, lesson.short.lower()} & taken),
                "short",
                "must be a name that no other lesson has",
                lesson.short,
                "choose another",
            )
        except InputError as error:
            troubles.append((name, str(error)))
        else:
            lessons.append(lesson)
    return Offered(tuple(lessons), tuple(troubles))


def own_lesson(path: Path) -> Lesson:
    """Return the lesson of a file that a person named.

    Raises
    ------
    InputError
        For the first thing that is wrong with it.
    """
    require(
        _STEM.fullmatch(path.stem),
        "file name",
        "must be letters, digits, - and _ before .toml",
        path.name,
        "rename it",
    )
    return read_lesson(read_text(path), path.stem.lower(), find_figure)


def find_lesson(
    name: str, folder: Path | None, environment: Mapping[str, str] = os.environ
) -> Lesson:
    """Return a lesson by its key, or by a path where ``folder`` says where paths start."""
    index = offered(environment)
    if lesson := index.named(name):
        return lesson
    keys = ", ".join(lesson.key for lesson in index.lessons)
    for file, sentence in index.troubles:
        require(
            Path(file).stem.lower() != name.lower(),
            "LESSON",
            f"must be a lesson's file ({sentence})",
            file,
            "correct it",
        )
    if folder is not None and (name.endswith(".toml") or "/" in name):
        return own_lesson(folder / name)
    raise InputError("LESSON", "must be a lesson or a path to a .toml file", name, f"pick {keys}")


def find_figure(file: LessonFile, tell: Tell = silent, stop: Stop = never) -> LessonFigure:
    """Return the figure of a file: one of the studio's, or what a pin computes.

    Parameters
    ----------
    file : LessonFile
    tell : callable (share, words), optional
        Told how far the plans of a pin are.
    stop : callable () -> bool, optional
        Asked meanwhile; once true, what is there is shown.

    Raises
    ------
    InputError
        If there is no such figure, or its inputs are not what it takes.
    """
    if file.figure in SCENARIO_KINDS:
        return _figure(file.figure, file, partial(_result, tell=tell, stop=stop))
    check_offered("figure", "must be one of the figures", file.figure, (*FIGURES, *SCENARIO_KINDS))
    return among(FIGURES, file)


def _figure(kind: str, file: LessonFile, result: _Results) -> LessonFigure:
    if file.inputs is None:
        raise InputError("inputs", "is required with this figure", kind, "pin it and start anew")
    inputs = checked_inputs(kind, file.inputs)
    controls = tuple(
        Control(
            table.key,
            table.label or table.key,
            tuple(table.values or ()),
            _start(table.values, table.start, f"control[{number}]"),
            table.help or "Sets it in the scenario.",
        )
        for number, table in enumerate(file.control or ())
    )
    require(
        not (controls and "document" not in inputs),
        "control",
        "must be left out with this figure",
        kind,
        "leave it out",
    )

    def result_of(settings: Settings) -> Answer | StudyResult[Any]:
        changed = {"overrides": {**inputs["overrides"], **settings}} if settings else {}
        return result(kind, inputs | changed)

    starts = {control.key: control.standard for control in controls}
    return LessonFigure(
        kind,
        controls,
        lambda settings: _reveal(result_of(settings)),
        row=lambda _: {
            name: value
            for name, value in result_of(starts).rows()[0].items()
            if isinstance(value, int | float | str)
        },
        slow=True,
    )


def _result(
    kind: str, inputs: Mapping[str, Any], tell: Tell, stop: Stop
) -> Answer | StudyResult[Any]:
    """Return what a pin of this kind computes."""
    if kind == "comparison":
        entries = [
            (entry["name"], Scenario(entry["document"], entry["overrides"]))
            for entry in inputs["entries"]
        ]
        options = {name: value for name, value in inputs.items() if name != "entries"}
        return comparison_result(compare(entries, **options))
    scenario = Scenario(inputs["document"], inputs["overrides"])
    if kind == "plan":
        values = scenario.values
        then = f"; then {plural(len(values.baselines), 'baseline')}" if values.baselines else ""
        return answer(
            values, progress=lambda now: tell(0.5 * now.share, now.words + then), stop=stop
        )
    if kind == "sweep":
        axes = [
            (axis["parameter"], axis["values"]) for axis in (inputs["x"], inputs.get("y")) if axis
        ]
        return sweep_result(sweep(scenario, axes, progress=tell, stop=stop))
    return ratios_result(
        highest_ratios(scenario, inputs["mix"], inputs["loss"], progress=tell, stop=stop)
    )


def _start(values: list[Value] | None, start: Value | None, where: str) -> Value:
    if not values:
        raise InputError(f"{where}.values", "is required with this figure", values, "list them")
    start = values[0] if start is None else start
    check_offered(f"{where}.start", "must be one of its values", start, values)
    return start


def _reveal(result: Answer | StudyResult[Any]) -> Reveal:
    """Pictures, a sentence, and formulas of a plan or the rows of a study."""
    if isinstance(result, Answer):
        formulas = tuple(
            FormulaTable(
                name=headline.name,
                symbols=headline.formula[0],
                numbers="; ".join(headline.formula[1:]) or headline.value,
                source=headline.basis or NOTHING,
            )
            for headline in result.headlines()
            if headline.formula
        )
        first = result.rows()[0]
        return Reveal(result.pictures(), (str(first.get("plan") or first["reason"]),), formulas)
    rows = tuple(
        {
            name: f"{value:.4g}" if isinstance(value, float) else str(value)
            for name, value in row.items()
        }
        for row in result.rows()
    )
    return Reveal(result.pictures(), (result.title,), (), (Table(result.title, "", rows),))


_HEAD = """\
# A lesson that began as a pin. Write the question, its choices and the notes; then put the file
# into the folder of your lessons (docs/howto/teacher.md).
"""


def lesson_text(pin: Mapping[str, Any]) -> str:
    """Return the lesson file that a pin begins as: its figure, with words to be filled in.

    Parameters
    ----------
    pin : mapping
        Its ``kind``, ``title``, ``note``, ``inputs`` and ``figures``.

    Raises
    ------
    InputError
        For a pin that shows no figure of a scenario.
    """
    kind, title = pin["kind"], pin["title"]
    require(
        kind in SCENARIO_KINDS, "cell", "must have figures of a scenario", kind, "take another cell"
    )
    document = {
        "schema": 1,
        "title": title,
        "short": " ".join(title[:24].split()),
        "figure": kind,
        "minutes": 10,
        "aims": ["write what people can do afterwards"],
        "lead": pin["note"][:4000] or "Write what to know before the question.",
        "question": {
            "text": "Write what is to be predicted?",
            "right": "a",
            "answer": "Write the answer and its reason.",
            "choices": {"a": "Write the right choice", "b": "Write a wrong one"},
        },
        "notes": {
            "expected": "Write the expected answer and its reason.",
            "mistakes": [
                {"answer": "Write a typical wrong answer", "overlooks": "Write what it overlooks."}
            ],
            "discuss": ["Write what to ask next?"],
        },
        "inputs": _without_null(checked_inputs(kind, pin["inputs"])),
    }
    return _HEAD + _names(pin["figures"]) + "\n" + toml_document(document)


def lesson_file(title: str) -> str:
    """Return what such a file is called.

    Examples
    --------
    >>> lesson_file("Llama 2 7B, 64 H100")
    'llama-2-7b-64-h100.toml'
    """
    words = re.findall(r"[a-z0-9]+", title.lower())
    return f"{'-'.join(words)[:40].strip('-') or 'lesson'}.toml"


def _names(figures: Sequence[object]) -> str:
    names = [
        f"{{{name}}}" for name in map(str, figures) if re.fullmatch(r"[^{}:\s][^{}:\r\n]*", name)
    ]
    words = "Words may hold what the pin computes, in braces:"
    return f"# {words}\n# {', '.join(names)}\n" if names else ""


def _without_null(value: Any) -> Any:
    """Tables without keys that hold nothing, which TOML cannot write."""
    if isinstance(value, Mapping):
        return {key: _without_null(inner) for key, inner in value.items() if inner is not None}
    return [_without_null(inner) for inner in value] if isinstance(value, list | tuple) else value


def work_brief(key: str, text: str, *, progress: Tell, stop: Stop) -> Brief:
    """Question and notes of a lesson.

    Parameters
    ----------
    key, text : str
        Of the lesson; without a text one of the studio's own.
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "planning for the question")
    return _lesson(key, text, progress, stop).brief()


def work_reveal(key: str, text: str, settings: Settings, *, progress: Tell, stop: Stop) -> Reveal:
    """Return what a lesson shows under settings.

    Parameters
    ----------
    key, text : str
    settings : mapping
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "planning for the figure")
    return _lesson(key, text, progress, stop).reveal(settings)


def work_page(key: str, text: str, *, progress: Tell, stop: Stop) -> Page:
    """Return a lesson as one HTML file.

    Parameters
    ----------
    key, text : str
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "computing all states")
    return lesson_page(_lesson(key, text, progress, stop))


def _lesson(key: str, text: str, tell: Tell, stop: Stop) -> Lesson:
    return (
        read_lesson(text, key, partial(find_figure, tell=tell, stop=stop))
        if text
        else shipped_lesson(key)
    )
