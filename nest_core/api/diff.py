"""Traces of a profiler beside the simulated iteration of their plan, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from nest_core.api.price import Given
from nest_core.api.scenario import Named
from nest_core.api.simulate import Simulated, simulate
from nest_core.calibration.logs.kineto import TERMS, RankTrace, read_trace
from nest_core.costs.communication import CLASSES
from nest_core.costs.layout import device_order
from nest_core.documents import humanise_seconds, plural, require, table
from nest_core.scenario import Scenario
from nest_core.simulator.activity import PARTS, activity, part_of

__all__ = ["TraceDiff", "diff"]

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
                {"file": trace.name, "rank": trace.rank, "stage": stage, "steps": trace.steps}
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
        f"must be of one of the plan's {used:,} ranks and say of which (distributedInfo)",
        "without a rank" if trace.rank is None else f"rank {trace.rank} of {trace.ranks}",
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
