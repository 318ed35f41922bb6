"""Studies: every point of a product of axes planned, or the fabrics that no other beats."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nest_core.api.studies import ResultRows
from nest_core.documents.errors import InputError
from nest_core.studies.design_choice import DesignChoice, in_words, weigh
from nest_core.studies.design_search import Designed, search_designs
from nest_core.studies.engine import WorkerPool, run
from nest_core.studies.rows import MemoryCache, rows_of
from nest_core.studies.sensitivity import Sensitivity, sensitivity
from nest_core.studies.study import Study, load_study, study_of

if TYPE_CHECKING:
    from nest_core.report.figures import Picture

__all__ = ["Chosen", "Studied", "design", "study"]


@dataclass(frozen=True, slots=True)
class Studied(ResultRows):
    """A study with the rows of all its points.

    Parameters
    ----------
    study : Study
    points : tuple of dict
        Every point's values, status, metrics and plan, in order.
    """

    study: Study
    points: tuple[dict[str, Any], ...]

    @property
    def title(self) -> str:
        """Its name."""
        return self.study.name

    def rows(self) -> list[dict[str, Any]]:
        """A row per point of text and figures, none rounded; units stand in the names."""
        return list(self.points)

    def pictures(self) -> tuple[Picture, ...]:
        """Every metric over the axes."""
        from nest_core.report.figures.study import study_picture

        return tuple(study_picture(self.study, self.points, name) for name in self.study.metrics)

    def _shown(self) -> list[dict[str, str]]:
        first = self.study.metrics[0]
        return [
            {axis.key: str(row[axis.key]) for axis in self.study.axes}
            | {first: f"{row[first]:.4g}" if row[first] is not None else "–"}
            | {"plan or reason": row["plan"] or row["reason"]}
            for row in self.points
        ]


@dataclass(frozen=True, slots=True)
class Chosen(ResultRows):
    """The fabrics of a study that no other beats, in the order of its goal.

    Parameters
    ----------
    name : str
    found : Designed
        With the certificate.
    choice : DesignChoice
    rests_on : Sensitivity
    """

    name: str
    found: Designed
    choice: DesignChoice
    rests_on: Sensitivity

    @property
    def title(self) -> str:
        """Its name and the choice."""
        first = self.choice.contenders[0]
        return f"{self.name}: {first.name}, {in_words(self.choice.goal, first.value)}"

    def rows(self) -> list[dict[str, Any]]:
        """A row per member of the set, none rounded; units stand in the names."""
        from nest_core.report.figures.designs import choice_rows

        return choice_rows(self.choice)

    def pictures(self) -> tuple[Picture, ...]:
        """Days against price, and what the choice rests on."""
        from nest_core.report.figures.designs import designs_picture, tornado_picture

        return designs_picture(self.found, self.choice), tornado_picture(self.rests_on)

    def _shown(self) -> list[dict[str, str]]:
        return [
            {"rank": str(row["rank"]), "design": row["design"], "days": f"{row['days']:.4g}"}
            for row in self.rows()
        ]


def study(
    asked: str | Path | Mapping[str, Any], *, executor: Executor | None = None, workers: int = 1
) -> Studied:
    """Plan every point of a study.

    Parameters
    ----------
    asked : str, Path or mapping
        A preset, a file, or a study's document.
    executor : Executor, optional
        Who computes, ``workers`` at a time; this process without one.

    Raises
    ------
    InputError
        If it is no study, or one with a ``[design]``.

    Examples
    --------
    >>> import nest_core as nest
    >>> axes = [{"parameter": "zero", "values": [0, 1]}]
    >>> base = {"schema": 1, "name": "ZeRO", "scenario": "llama2-7b-64-h100"}
    >>> [row["status"] for row in nest.study(base | {"axes": axes}).rows()]
    ['solved', 'solved']
    """
    read, cache = _read(asked), MemoryCache()
    if read.design is not None:
        raise InputError("study", "must have axes", read.name, "use design for a [design]")
    run(read.points(), cache, WorkerPool.of(executor, workers))
    return Studied(read, tuple(rows_of(read, cache)))


def design(
    asked: str | Path | Mapping[str, Any], *, executor: Executor | None = None, workers: int = 1
) -> Chosen:
    """The fabrics of a design study that no other beats; parameters as of `study`.

    Raises
    ------
    InputError
        If it is no study with a ``[design]``, or nothing of it can be bought and planned.

    Examples
    --------
    >>> import nest_core as nest
    >>> base = {"schema": 1, "name": "Fabric", "scenario": "llama2-7b-64-h100"}
    >>> families = {"families": ["rail-only", "spine-leaf"], "ratios": [1.0, 4.0]}
    >>> nest.design(base | {"design": families}).found.certificate.proven
    True
    """
    read, pool = _read(asked), WorkerPool.of(executor, workers)
    found = search_designs(read, MemoryCache(), pool)
    choice = weigh(read, found, pool)
    return Chosen(read.name, found, choice, sensitivity(read, choice))


def _read(asked: str | Path | Mapping[str, Any]) -> Study:
    if isinstance(asked, Mapping):
        return study_of(asked, Path())
    return load_study(str(asked), Path())
