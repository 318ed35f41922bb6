"""Many plans at once: sweeps, comparisons, ratios, studies, and designs of fabrics."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nest_core.api.results import Result
from nest_core.api.scenario import Named, load
from nest_core.costs.plan_words import plan_words
from nest_core.documents.errors import InputError, require
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, as_written
from nest_core.studies import comparison, sweeps
from nest_core.studies.comparison import LONGEST_NAME, Comparison
from nest_core.studies.decision import refusal
from nest_core.studies.design_choice import in_words
from nest_core.studies.design_search import search_designs
from nest_core.studies.engine import WorkerPool, run
from nest_core.studies.rows import RowCache, rows_of
from nest_core.studies.sensitivity import DesignAnswer, choose_design
from nest_core.studies.study import Study, load_study, study_of
from nest_core.studies.sweeps import Ratios, Sweep

if TYPE_CHECKING:
    from nest_core.report.figures import Chart

__all__ = [
    "StudyResult",
    "compare",
    "comparison_result",
    "design",
    "design_result",
    "ratios",
    "ratios_result",
    "study",
    "study_result",
    "sweep",
    "sweep_result",
]

_WIDTH = 100
"""Characters that a line of printed results has at most."""
Found = TypeVar("Found")
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class StudyResult(Result, Generic[Found]):
    """What a study came to, to be read, drawn and kept.

    Parameters
    ----------
    found : object
        The answer of the core: a sweep, a comparison, …
    title : str
        What was studied.
    values : sequence of mapping
        Its rows, none rounded; units stand in the names.
    cells : sequence of mapping
        The table that is printed.
    draw : callable () -> tuple of Chart
    """

    found: Found
    title: str
    values: Rows
    cells: Sequence[dict[str, str]]
    draw: Callable[[], tuple[Chart, ...]]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row each of text and figures, none rounded; units stand in the names."""
        return [dict(row) for row in self.values]

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the commands ``sweep --axis`` and ``ratios``: what, and its rows."""
        return {"title": self.title, "rows": self.rows()}

    def tables(self) -> tuple[Table, ...]:
        """Return the table that is printed."""
        return (Table(self.title, "", self.cells),)

    def pictures(self) -> tuple[Chart, ...]:
        """Return every picture, the one of `plot` first."""
        return self.draw()

    def __str__(self) -> str:
        return str(Table(textwrap.fill(self.title, _WIDTH), "", self.cells))


def sweep_result(result: Sweep) -> StudyResult[Sweep]:
    """Return a sweep to be read: a scenario at every value of one or two parameters."""
    from nest_core.report.figures.sweep import pictures
    from nest_core.report.figures.sweep_parts import against

    cells = [
        {
            axis.title: axis.words(value)
            for axis, value in zip(result.axes, point.values, strict=True)
        }
        | {
            "iteration, s": f"{point.iteration_s:.4g}" if point.iteration_s else "–",
            "throughput": against(point.paired) if point.paired else "–",
            "plan or reason": plan_words(point.plan) if point.plan else point.reason,
        }
        for point in result.points
    ]
    return StudyResult(result, result.scenario, result.rows(), cells, lambda: pictures(result))


def comparison_result(result: Comparison) -> StudyResult[Comparison]:
    """Return a comparison to be read, the first scenario being what others are read against."""
    from nest_core.report.figures.comparison import pictures
    from nest_core.report.sheet.words import title as decision_title
    from nest_core.report.sheet.words import why

    names = [candidate.name for candidate in result.candidates]
    cells = [
        {"": line.figure} | dict(zip(names, line.texts, strict=True)) for line in result.lines()
    ]
    try:
        decision = result.decision()
        title = f"{decision_title(decision)}. {' '.join(why(decision))} {decision.rule}"
    except InputError as error:
        title = f"Nothing is decided: {error}"
    return StudyResult(result, title, result.rows(), cells, lambda: pictures(result))


def ratios_result(result: Ratios) -> StudyResult[Ratios]:
    """Return the highest oversubscription of every tier that a mix of models bears."""
    from nest_core.report.figures.study import ratio_rows, ratios_finding, ratios_picture

    title = f"{result.scenario}. {ratios_finding(result)}"
    return StudyResult(
        result, title, result.rows(), ratio_rows(result), lambda: (ratios_picture(result),)
    )


def study_result(study: Study, points: Rows) -> StudyResult[Study]:
    """Return a study with the rows of its points: values, status, metrics and plan, in order."""
    from nest_core.report.figures.study import study_picture

    first = study.metrics[0]
    cells = [
        {axis.column: str(row[axis.column]) for axis in study.axes}
        | {first: f"{row[first]:.4g}" if row[first] is not None else "–"}
        | {"plan or reason": row["plan"] or row["reason"]}
        for row in points
    ]

    def draw() -> tuple[Chart, ...]:
        return tuple(study_picture(study, points, name) for name in study.metrics)

    return StudyResult(study, study.name, points, cells, draw)


def design_result(name: str, answer: DesignAnswer) -> StudyResult[DesignAnswer]:
    """Return the fabrics of a study that no other beats, in the order of its goal."""
    from nest_core.report.figures.designs import (
        choice_rows,
        designs_picture,
        failure_words,
        tornado_picture,
    )

    choice, first, rows = answer.choice, answer.choice.contenders[0], choice_rows(answer.choice)
    cells = [
        {"rank": str(row["rank"]), "design": row["design"], "days": f"{row['days']:.4g}"}
        for row in rows
    ]

    def draw() -> tuple[Chart, ...]:
        drawn = designs_picture(answer.searched, choice)
        return (drawn, tornado_picture(answer.sensitivity)) if answer.sensitivity else (drawn,)

    title = (
        f"{name}: {first.name}, {in_words(choice.goal, first.value)}{failure_words(first)}"
        f"{refusal(choice.differs)}"
    )
    return StudyResult(answer, title, rows, cells, draw)


def sweep(scenario: Scenario | Named, **values: Iterable[float | str]) -> StudyResult[Sweep]:
    """Plan a scenario at every value of one or two parameters.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    **values
        One or two sweep parameters (``oversubscription``, ``micro_batch``, ``memory``, ``zero``,
        ``batch``, ``sequence``, ``devices``, ...) with their values.

    Raises
    ------
    InputError
        If the scenario has no such parameter, or a value is out of its range.

    Examples
    --------
    >>> sweep("llama2-7b-64-h100", zero=[0, 1]).to_frame()["feasible"].tolist()
    [True, True]
    """
    base = load(scenario)
    require(
        1 <= len(values) <= 2, "sweep", "must have one or two parameters", list(values), "name them"
    )
    axes = [(name, _listed(name, listed)) for name, listed in values.items()]
    return sweep_result(sweeps.sweep(base, axes))


def compare(
    scenarios: Iterable[Scenario | Named] | Mapping[str, Scenario | Named],
    *,
    budget: Mapping[str, Any] | None = None,
    failures: bool = True,
    level_wise: bool = False,
    device_usd: float | None = None,
    prices: Mapping[str, Any] | None = None,
    assumed: Mapping[str, Any] | None = None,
) -> StudyResult[Comparison]:
    """Solve two to six scenarios and read them against the first.

    Parameters
    ----------
    scenarios : iterable of Scenario, str, Path or mapping; or mapping of name to one
        Without names, they are called by what of their titles not all of them share.
    budget : mapping, optional
        ``{"kind": "price" | "power", "value": dollars or watts of the network or None}``: every
        fabric is scaled to it too; None is what the first network takes.
    failures : bool
        Whether one failed switch is tried.
    level_wise : bool
        Whether NEST's level-wise program plans beside the exact search.
    device_usd : float, optional
        US dollars of an accelerator with its share of the server; the listed estimate without it.
    prices : mapping, optional
        Dotted keys of the price list to values, over the shipped one.
    assumed : mapping, optional
        ``hours``, the share of them that trains this model (1); ``max_loss``, the share of the
        throughput that the worst single failure may cost where designs tie (0.1); ``tokens`` of
        the training run (20 per parameter); ``failures``, published rates by name, and what of
        them differs by keys that start with ``failures.`` (each scenario's own).

    Raises
    ------
    InputError
        For scenarios, a budget or assumptions that are none.
    """
    for name, given in (("failures", failures), ("level_wise", level_wise)):
        require(isinstance(given, bool), name, "must be True or False", given, "give one of them")
    entries = (
        {name: load(scenario) for name, scenario in scenarios.items()}
        if isinstance(scenarios, Mapping)
        else _named([load(scenario) for scenario in _listed("scenarios", scenarios)])
    )
    return comparison_result(
        comparison.compare(
            list(entries.items()),
            budget=budget,
            failures=failures,
            level_wise=level_wise,
            device_usd=device_usd,
            prices=prices,
            assumed=assumed,
        )
    )


def ratios(
    scenario: Scenario | Named,
    mix: Mapping[str, float] | Iterable[Mapping[str, Any]],
    loss: float = 0.02,
) -> StudyResult[Ratios]:
    """Return the highest ratio of every tier that costs a mix of models less than a limit.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    mix : mapping of model to share, or iterable of mapping
        Models by preset's name or path with their shares of the cluster's time, of any sum; or
        tables with ``model``, which may be one of sizes, and ``share``.
    loss : float
        The limit, as a share of what the mix trains at the least ratio.

    Raises
    ------
    InputError
        If the fabric has no ratios, or a model does not fit at the least.

    Examples
    --------
    >>> found = ratios("llama2-7b-64-h100", {"llama2-7b": 1.0}, loss=0.01)
    >>> [tier.label for tier in found.found.tiers]
    ['leaf']
    """
    base = load(scenario)
    parts = (
        [{"model": model, "share": share} for model, share in mix.items()]
        if isinstance(mix, Mapping)
        else _listed("mix", mix)
    )
    mixed, limit = as_written("mix", parts), as_written("loss", loss)
    return ratios_result(sweeps.highest_ratios(base, mixed, limit))


def study(
    asked: str | Path | Mapping[str, Any], *, executor: Executor | None = None, workers: int = 1
) -> StudyResult[Study]:
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
    read, cache = _read(asked), RowCache()
    require(read.design is None, "study", "must have axes", read.name, "use design for a [design]")
    run(read.points(), cache, WorkerPool.of(executor, workers))
    return study_result(read, list(rows_of(read, cache)))


def design(
    asked: str | Path | Mapping[str, Any], *, executor: Executor | None = None, workers: int = 1
) -> StudyResult[DesignAnswer]:
    """Return the fabrics of a design study that no other beats; parameters as of `study`.

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
    return design_result(
        read.name, choose_design(read, search_designs(read, RowCache(), pool), pool)
    )


def _read(asked: str | Path | Mapping[str, Any]) -> Study:
    return study_of(asked, Path()) if isinstance(asked, Mapping) else load_study(str(asked), Path())


def _named(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    """Scenarios by number and by what of their titles is not the same in all."""
    titles = [scenario.title.split(", ") for scenario in scenarios]
    entries = {}
    for number, (title, scenario) in enumerate(zip(titles, scenarios, strict=True), start=1):
        parts = ", ".join(part for part in title if any(part not in other for other in titles))
        name = f"{number}. {parts}" if parts else f"scenario {number}"
        entries[textwrap.shorten(name, LONGEST_NAME, placeholder=" …")] = scenario
    return entries


def _listed(name: str, values: object) -> list[Any]:
    """Return what is given as a list, or anything else that can be gone through."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(name, "must be a list", values, "put it into brackets")
    return list(as_written(name, values) if hasattr(values, "tolist") else values)
