"""The lessons that are offered: the studio's own, and those of a teacher's folder.

The folder is named by ``NEST_STUDIO_LESSONS`` (`nest-studio app --lessons DIR`) and read again
whenever a file in it changes. A file that cannot be read keeps no other from being shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.teaching.course import LESSONS_VARIABLE
from nest_core.teaching.course.pinned import find_figure
from nest_core.teaching.lessons import LESSONS, Lesson
from nest_core.teaching.lessons.files import read_lesson

__all__ = ["Offered", "check_folder", "find_lesson", "offered", "own_lesson"]

MOST_FILES = 200

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

    def lesson(self, key: str) -> Lesson:
        """One of them; InputError for another key."""
        for lesson in self.lessons:
            if lesson.key == key:
                return lesson
        keys = ", ".join(lesson.key for lesson in self.lessons)
        raise InputError("lesson", "must be one of the lessons", key, f"pick {keys}")


def offered(environment: Mapping[str, str] = os.environ) -> Offered:
    """All lessons, and what is wrong with files that are none."""
    folder_name = environment.get(LESSONS_VARIABLE, "").strip()
    if not folder_name:
        return Offered(LESSONS)
    try:
        folder = check_folder(Path(folder_name))
        paths = sorted(folder.glob("*.toml"))[:MOST_FILES]
        stamps = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    except InputError as error:
        return Offered(LESSONS, ((folder_name, str(error)),))
    except OSError as error:
        return Offered(LESSONS, ((folder_name, f"The folder cannot be read: {error.strerror}."),))
    return _read(folder, stamps)


def check_folder(folder: Path) -> Path:
    """A folder that a person named; InputError where there is none."""
    if not folder.is_dir():
        raise InputError(
            LESSONS_VARIABLE, "must be a folder of lesson files", str(folder), "name another"
        )
    return folder


@lru_cache(maxsize=8)
def _read(folder: Path, stamps: tuple[tuple[str, int, int], ...]) -> Offered:
    lessons, troubles = list(LESSONS), []
    for name, _, _ in stamps:
        taken = {lesson.key for lesson in lessons} | {lesson.short for lesson in lessons}
        try:
            lesson = own_lesson(folder / name)
            if {lesson.key, lesson.short} & taken:
                raise InputError(
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
    """The lesson of a file that a person named.

    Raises
    ------
    InputError
        For the first thing that is wrong with it.
    """
    if not _STEM.fullmatch(path.stem):
        raise InputError(
            "file name", "must be letters, digits, - and _ before .toml", path.name, "rename it"
        )
    return read_lesson(read_text(path), path.stem, find_figure)


def find_lesson(
    name: str, folder: Path | None, environment: Mapping[str, str] = os.environ
) -> Lesson:
    """A lesson by its key, or by a path where ``folder`` says where paths start."""
    index = offered(environment)
    for lesson in index.lessons:
        if lesson.key == name:
            return lesson
    keys = ", ".join(lesson.key for lesson in index.lessons)
    for file, sentence in index.troubles:
        if Path(file).stem == name:
            raise InputError("LESSON", f"must be a lesson's file ({sentence})", file, "correct it")
    if folder is not None and (name.endswith(".toml") or "/" in name):
        return own_lesson(folder / name)
    raise InputError("LESSON", "must be a lesson or a path to a .toml file", name, f"pick {keys}")
