"""An iteration of a plan event by event, beside what was planned and what a profiler traced."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from nest_core.api.price import Given, given_or_best
from nest_core.api.results import Result
from nest_core.api.scenario import Named, load
from nest_core.calibration.logs.traces import TERMS, RankTrace, read_trace
from nest_core.costs import Problem, Report, device_order, price
from nest_core.costs.communication import CLASSES
from nest_core.documents import (
    InputError,
    humanise_seconds,
    percent,
    plural,
    require,
    signed_percent,
    table,
)
from nest_core.network import BusyLink, FloatArray
from nest_core.report.explain import busiest_table
from nest_core.report.figures import Chart
from nest_core.report.figures.timeline import links_figure, rows_of_stages, timeline_figure
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.simulator import Iteration, drawn_seconds
from nest_core.simulator import simulate as simulate_plan
from nest_core.simulator.activity import (
    PARTS,
    Activity,
    StageTerms,
    activity,
    part_of,
    slowest,
    stage_terms,
)
from nest_core.simulator.link_use import busiest
from nest_core.simulator.trace import trace_events
from nest_core.studies.failures import Failure, break_elements, single_failures
from nest_core.studies.whole_bill import spare_nodes

__all__ = ["Simulated", "TraceDiff", "diff", "simulate"]

EACH = ("each",)
QUANTILES = {"p50_s": 0.5, "p95_s": 0.95}


@dataclass(frozen=True, slots=True, eq=False)
class Simulated(Result):
    """An iteration of a plan, event by event.

    Parameters
    ----------
    problem : Problem
    report : Report
        The plan as it was priced.
    iteration : Iteration
    activities : tuple of Activity
        Of a device of the slowest class, stage by stage.
    terms : tuple of StageTerms
        Stage by stage.
    links : tuple of BusyLink
        The busiest ones.
    wall_s : float
        That the simulation took.
    failures : tuple of Failure
        What elements that fail or are slow take; of one, ``iteration`` is the one with it, where
        the plan still runs.
    drawn_s : float array (draws,)
        What it takes under draws of the fabric's hash; one where nothing is hashed.
    """

    problem: Problem
    report: Report
    iteration: Iteration
    activities: tuple[Activity, ...]
    terms: tuple[StageTerms, ...]
    links: tuple[BusyLink, ...]
    wall_s: float
    failures: tuple[Failure, ...] = ()
    drawn_s: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def difference(self) -> float:
        """How much longer than planned it takes, relative; negative where it is shorter."""
        return self.iteration.seconds / self.report.iteration_s - 1.0

    @property
    def slowest(self) -> StageTerms:
        """The stage that waits least."""
        return min(self.terms, key=lambda stage: stage.terms.get("waiting", (0.0, 0.0))[1])

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio simulate --json``."""
        return {
            "feasible": self.report.feasible,
            "reason": self.report.reason or None,
            "plan": self.report.plan.to_json(),
            "iteration_time_s": self.iteration.seconds,
            "planned_iteration_time_s": self.report.iteration_s,
            "difference": self.difference,
            "stage": self.slowest.stage,
            "terms": self.slowest.to_json(),
            "stages": [
                {"devices": stage.alike, "device": stage.device, "terms": stage.to_json()}
                for stage in self.terms
            ],
            "busiest_links": [link.to_json() for link in self.links],
            "replanned_iteration_time_s": None,
            "wall_s": self.wall_s,
            "failures": [failure.to_json() for failure in self.failures],
            "worst_failure": self._worst(),
            "draws": {
                name: float(np.quantile(self.drawn_s, share)) for name, share in QUANTILES.items()
            }
            | {"number": len(self.drawn_s)}
            if len(self.drawn_s) > 1
            else None,
            **self._broken(),
        }

    def _worst(self) -> dict[str, Any] | None:
        """Return the worst single failure where each was tried, as `compare` prints it."""
        worst = self.failures[0] if len(self.failures) > 1 else None
        return {"lost": worst.least_loss, "what": worst.words} if worst else None

    def _broken(self) -> dict[str, Any]:
        """Return what fields are where elements fail together."""
        if len(self.failures) != 1:
            return {}
        fields = self.failures[0].to_json()
        seconds = fields["iteration_time_s"]
        return {
            "iteration_time_s": seconds,
            "difference": None if seconds is None else self.difference,
            "reason": fields["reason"] or self.report.reason or None,
            "replanned_iteration_time_s": fields["replanned_iteration_time_s"],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the terms of every stage, s; a row each."""
        return [
            {"stage": stage.stage, "term": name} | seconds
            for stage in self.terms
            for name, seconds in stage.to_json().items()
        ]

    def tables(self) -> tuple[Table, ...]:
        """Return the busiest links."""
        return (busiest_table(self.links),)

    def pictures(self) -> tuple[Chart, ...]:
        """Return the timeline, and the busiest links over time."""
        return (
            timeline_figure(
                self.iteration, self.report, rows_of_stages(self.iteration, self.activities)
            ),
            links_figure(self.iteration, self.links),
        )

    def trace(self) -> Iterator[str]:
        """Yield a Chrome trace, as Perfetto reads it, event by event."""
        return trace_events(self.iteration, self.activities, self.links)

    def __str__(self) -> str:
        stage = self.slowest
        rows = stage.terms | {"iteration": (self.report.iteration_s, self.iteration.seconds)}
        texts = [[name, *map("{:.4g}".format, (a, b, b - a))] for name, (a, b) in rows.items()]
        return "\n".join(
            [
                f"{humanise_seconds(self.iteration.seconds)} event by event, "
                f"{humanise_seconds(self.report.iteration_s)} planned: "
                f"{signed_percent(self.difference, 2)}",
                *filter(None, [draws_in_words(self.drawn_s)]),
                f"stage {stage.stage} waits least:",
                "",
                table(["term", "planned, s", "simulated, s", "difference, s"], texts),
                "",
                str(busiest_table(self.links)),
                *(["", _failures_text(self.failures)] if self.failures else []),
            ]
        )


def draws_in_words(drawn_s: FloatArray) -> str:
    """Return what a plan takes over draws of a hash, s; empty where no route is a hash.

    Examples
    --------
    >>> draws_in_words(np.array([1.0, 1.0, 1.0, 2.0]))
    "p50 1.00 s, p95 1.85 s over 4 draws of the fabric's hash"
    """
    if len(drawn_s) < 2:
        return ""
    middle, high = (humanise_seconds(np.quantile(drawn_s, share)) for share in QUANTILES.values())
    return f"p50 {middle}, p95 {high} over {len(drawn_s)} draws of the fabric's hash"


def _failures_text(failures: Sequence[Failure]) -> str:
    rows = []
    for failure in failures:
        alike = f" and {plural(failure.alike - 1, 'other')}" if failure.alike > 1 else ""
        anew = percent(failure.replanned_loss) if failure.is_replanned else "–"
        rows.append(
            [f"{', '.join(failure.elements)}{alike}", percent(failure.loss), anew, failure.note]
        )
    return table(["without, or slow", "loss", "planned anew", ""], rows)


def simulate(
    scenario: Scenario | Named,
    plan: Given | None = None,
    *,
    placement: str | Path | None = None,
    draw: int = 0,
    fail: Sequence[str] = (),
    slow: Mapping[str, float] | None = None,
    replan: bool = False,
) -> Simulated:
    """Play an iteration of a plan on a scenario's links, event by event.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    plan : optional
        As `price` takes it; the best plan without it.
    placement : str or Path, optional
        A CSV or JSON file with its rank mapping.
    draw : int
        Of the fabric's hash, under static ECMP.
    fail : sequence of str
        Elements that fail together (`nest_core.studies.failures`); ``["each"]``: every one that
        may, one at a time, those that are alike once.
    slow : mapping of str to float
        Elements that lost a share of their speed.
    replan : bool
        Whether the best plan on what is left is sought too.

    Raises
    ------
    InputError
        If it is no plan of this scenario, if none fits, or if it has too many passes. Not fitting
        into memory is an answer.

    Examples
    --------
    >>> result = simulate("llama2-7b-64-h100", "dp=32,tp=2,zero=1")
    >>> abs(result.difference) < 0.1
    True
    """
    loaded = load(scenario)
    given, reason = given_or_best(loaded.values, plan, placement)
    if given is None:
        raise InputError("plan", "must fit", "none", reason)
    values = loaded.values.hiding(given.hidden)
    problem = values.problem(given.plan.recompute)
    report = price(problem, given.plan)
    began = time.perf_counter()
    before = iteration = simulate_plan(problem, report.plan, draw=draw)
    failures: tuple[Failure, ...] = ()
    if fail or slow:
        spares = spare_nodes(loaded)
        if tuple(fail) == EACH:
            failures = single_failures(values, report.plan, spares=spares)
        else:
            lost = break_elements(
                values, report.plan, fail, slow, replan=replan, spares=spares, before=iteration
            )
            iteration, failures = lost.iteration or iteration, (lost,)
    activities = slowest(iteration)
    return Simulated(
        problem,
        report,
        iteration,
        activities,
        stage_terms(problem, report, activities),
        busiest(iteration),
        time.perf_counter() - began,
        failures,
        drawn_seconds(problem, before),
    )


_TERM_OF_PART = {"waiting": "idle", "kernel launches": "idle", "copies to the host": "copies"}


@dataclass(frozen=True, slots=True, eq=False)
class TraceDiff:
    """Traces beside a simulated iteration.

    Parameters
    ----------
    iteration_s : float
        As simulated.
    traces : tuple of (RankTrace, int, dict of str to float)
        Each with its stage and what that rank does in the simulation.
    """

    iteration_s: float
    traces: tuple[tuple[RankTrace, int, dict[str, float]], ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return the terms of every stage with a trace, s, means over its ranks; a row each."""
        import pandas as pd

        terms = [
            (stage, term, trace.seconds[term], does[term])
            for trace, stage, does in sorted(self.traces, key=itemgetter(1))
            for term in TERMS
        ]
        frame = pd.DataFrame(terms, columns=["stage", "term", "measured_s", "simulated_s"])
        means = frame.groupby(["stage", "term"], sort=False).mean()
        rows: list[dict[str, Any]] = means[means.any(axis=1)].reset_index().to_dict("records")
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio diff --json``."""
        steps = [sum(trace.seconds.values()) for trace, _, _ in self.traces]
        return {
            "iteration_time_s": self.iteration_s,
            "measured_iteration_time_s": sum(steps) / len(steps),
            "rows": self.rows(),
            "traces": [
                {
                    "file": trace.name,
                    "rank": trace.rank,
                    "stage": stage,
                    "steps": trace.steps,
                    "hidden_share": trace.hidden_share,
                }
                for trace, stage, _ in self.traces
            ],
        }

    def __str__(self) -> str:
        fields = self.to_json()
        measured = humanise_seconds(fields["measured_iteration_time_s"])
        unmarked = [trace.name for trace, _, _ in self.traces if not trace.steps]
        header = ["stage", "term", "measured, s", "simulated, s", "difference, s"]
        rows = [
            [row["stage"], row["term"], *map("{:.4g}".format, (a, b, b - a))]
            for row in fields["rows"]
            for a, b in [(row["measured_s"], row["simulated_s"])]
        ]
        return "\n".join(
            [
                f"A step of {plural(len(self.traces), 'trace')} takes {measured}, simulated "
                f"{humanise_seconds(self.iteration_s)}; exposed communication by kind of kernel:",
                *(f"{name}: without ProfilerStep marks all is one step" for name in unmarked),
                "",
                table(header, rows),
            ]
        )


def diff(
    scenario: Scenario | Named, traces: Sequence[str | Path], plan: Given | None = None
) -> TraceDiff:
    """Set traces of PyTorch's profiler beside the simulated iteration of a plan.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    traces : sequence of str or Path
        A file per rank, of any ranks.
    plan : optional
        As `price` takes it; the best plan without it.

    Raises
    ------
    InputError
        If one is no such trace, has no durations, or is of a rank that the plan has not.
    """
    result = simulate(scenario, plan)
    require(traces, "traces", "must be at least one", "none", "name a file")
    return TraceDiff(
        result.iteration.seconds, tuple(_beside(result, read_trace(Path(file))) for file in traces)
    )


def _beside(result: Simulated, trace: RankTrace) -> tuple[RankTrace, int, dict[str, float]]:
    """Return a trace with its stage, and what its rank does in the simulation."""
    iteration, plan = result.iteration, result.report.plan
    used = plan.devices_used
    rank = 0 if used == 1 else trace.rank
    require(
        trace.ranks in (None, used) and rank is not None and 0 <= rank < used,
        trace.name,
        f"must be of one of the plan's {used:,} ranks and say of which (distributedInfo; of "
        "Chakra's the last number of the file's name)",
        "without a rank" if trace.rank is None else f"rank {trace.rank} of {trace.ranks or 'any'}",
        "give the plan that ran with --plan, and traces of its run",
    )
    stage = next(s for s, ranks in enumerate(plan.ranks) if rank in ranks)
    device = int(device_order(iteration.problem.network, plan.point.device_order)[rank])
    kinds = {
        part_of(row): row.call.kind if row.call.kind in TERMS else "send_receive"
        for row in sorted(iteration.programs[stage].rows, key=lambda row: row.size)
        if row.call is not None
    }
    does = dict.fromkeys(TERMS, 0.0)
    for part, seconds in zip(PARTS, activity(iteration, stage, device).seconds, strict=True):
        term = kinds.get(part, "other") if part in CLASSES else _TERM_OF_PART.get(part, "compute")
        does[term] += float(seconds)
    return trace, stage, does
