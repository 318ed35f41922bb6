"""One iteration of the slowest stage, part by part, and where the peak rate goes.

A stage's iteration is compute, communication by class (`nest_core.explain.traffic`) and idling;
the parts add up to the iteration. Model FLOP utilisation is what model FLOP alone would take at the
device's peak over the iteration, so 100 % less every part's share: what compute takes beyond that
is lost in kernels, to recomputation, in uneven stages or on idle devices.
"""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.costs import Problem, Report
from nest_core.explain.traffic import Traffic, traffic_of, wider

__all__ = ["KINDS", "IterationPart", "iteration_parts", "lost", "report_parts"]

KINDS = {
    "tp": "tensor",
    "etp": "tensor",
    "cp": "context",
    "ep": "expert",
    "transfers": "pipeline",
    "data": "data",
    "expert_data": "data",
    "tied": "data",
}
"""What classes of traffic are parts of, in the order of the parts."""


@dataclass(frozen=True, slots=True)
class IterationPart:
    """A part of an iteration.

    Parameters
    ----------
    name : str
        ``compute``, a value of `KINDS`, ``communication`` as a whole, or ``bubble``.
    seconds : float
    level : str
        The level that its traffic depends on most; empty where there is none.
    """

    name: str
    seconds: float
    level: str = ""


def iteration_parts(problem: Problem, report: Report) -> tuple[IterationPart, ...]:
    """Compute, tensor, context, expert, pipeline, data and bubble of the slowest stage.

    Parts that take no time are left out, but for compute. Seconds add up to ``iteration_s``.
    """
    number = _slowest(report)
    stage, levels = report.stages[number], [name for name, _ in wider(problem.network)]
    traffic = {entry.name: entry for entry in traffic_of(problem, report.plan)}
    parts = [IterationPart("compute", stage.compute_s + stage.recompute_s)]
    for kind in dict.fromkeys(KINDS.values()):
        of = [traffic[name] for name in KINDS if KINDS[name] == kind and name in traffic]
        seconds = sum(entry.seconds[number] for entry in of)
        parts.append(IterationPart(kind, seconds, _level(of, number, levels)))
    parts.append(IterationPart("bubble", stage.idle_s))
    least = 1e-6 * report.iteration_s
    return tuple(part for part in parts if part.seconds > least or part.name == "compute")


def report_parts(report: Report) -> tuple[IterationPart, ...]:
    """The same with communication as a whole, from a price alone."""
    stage = report.stages[_slowest(report)]
    return (
        IterationPart("compute", stage.compute_s + stage.recompute_s),
        IterationPart("communication", stage.communication_s),
        IterationPart("bubble", stage.idle_s),
    )


def lost(report: Report, parts: tuple[IterationPart, ...]) -> tuple[tuple[str, float], ...]:
    """What takes the utilisation from 1 to the report's, share by share; they sum to the gap.

    Parameters
    ----------
    parts : tuple of IterationPart
        Of the report.
    """
    compute, *others = parts
    kernels = compute.seconds / report.iteration_s - report.mfu
    return (
        ("kernels", kernels),
        *((part.name, part.seconds / report.iteration_s) for part in others),
    )


def _slowest(report: Report) -> int:
    return max(range(len(report.stages)), key=lambda s: report.stages[s].micro_batch_s)


def _level(of: list[Traffic], stage: int, levels: list[str]) -> str:
    """Where the costliest of some classes is at."""
    at = max(of, key=lambda entry: entry.seconds[stage], default=None)
    return "" if at is None or at.level[stage] < 0 else levels[at.level[stage]]
