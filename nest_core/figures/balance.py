"""Stage balance: where each stage's iteration goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nest_core.costs.price import Report, Stage
from nest_core.figures.entries import Entry
from nest_core.figures.stages import StackedParts, stage_rows_figure
from nest_core.figures.style import BALANCED, MARK, TIME_COLOURS, Picture, axis_unit
from nest_core.summary import bottleneck, share

__all__ = ["balance_figure", "slowest", "stage_seconds", "time_parts"]


def stage_seconds(stage: Stage, part: str) -> float:
    """One part of a stage's iteration, seconds; the parts add up to the iteration time."""
    return {
        "compute": stage.compute_s,
        "recomputation": stage.recompute_s,
        "communication": stage.communication_s,
        "idle": stage.idle_s,
    }[part]


def slowest(report: Report) -> int:
    """The stage (from 0) that sets the pace; −1 where all are balanced."""
    number, excess = bottleneck(report)
    return number if excess >= BALANCED else -1


def time_parts(entries: Sequence[Entry]) -> StackedParts:
    """What stacks an iteration, on an axis as long as the longest; no stage is marked."""
    longest = max((e.report.iteration_s for e in entries if e.report), default=1.0)
    scale, unit = axis_unit(longest, "s")
    return StackedParts(
        colours=TIME_COLOURS,
        value=lambda stage, part: stage_seconds(stage, part) / scale,
        top=1.2 * longest / scale,
        unit=unit,
        axis=f"time per iteration, {unit}",
        outlines={},
    )


def balance_figure(entries: Sequence[Entry]) -> Picture:
    """Compute, recomputation, communication and idle time of every stage of every method."""
    parts = replace(time_parts(entries), marked=slowest)
    return Picture(
        _finding(entries),
        f"Stage balance: {parts.axis}",
        "A stage's bar is one iteration long: grey is waiting for other stages, orange is what "
        f"the network takes; {MARK} sets the pace.",
        stage_rows_figure(entries, parts, {}),
        tuple(TIME_COLOURS.items()),
    )


def _finding(entries: Sequence[Entry]) -> str:
    best = next((e.report for e in entries if e.ours), None)
    if best is None:
        return "There is no plan to balance"
    number, excess = bottleneck(best)
    if len(best.stages) == 1:
        spent = best.stages[0].communication_s / best.iteration_s
        return f"One stage: communication takes {share(spent)}"
    if excess < BALANCED:
        return f"All {len(best.stages)} stages are balanced within 0.5 %"
    return f"Stage {number + 1} is the bottleneck, {share(excess)} above the mean"
