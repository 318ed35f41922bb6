"""Memory per stage against what a device has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nest_core.costs.price import Stage
from nest_core.figures.entries import Entry
from nest_core.figures.stages import StackedParts, axis_names, stage_rows_figure
from nest_core.figures.style import LIMIT, MARK, MEMORY_COLOURS, STASH_OUTLINE, Picture, axis_unit
from nest_core.summary import fullest
from nest_core.units import humanise_bytes

__all__ = ["memory_figure", "stage_bytes"]

# A stage far over the limit must not squash those that fit.
_LARGEST_OVERFLOW = 2.5


def stage_bytes(stage: Stage, part: str) -> float:
    """One part of a stage's memory, bytes; the parts add up to its total."""
    return float(getattr(stage.memory, part))


def memory_figure(entries: Sequence[Entry], limit_bytes: float) -> Picture:
    """Weights, gradients, optimizer, activations, stash and buffers of every stage.

    Parameters
    ----------
    entries : sequence of Entry
    limit_bytes : float
        Memory of one device, drawn as a line.
    """
    needs = [stage.memory.total for e in entries if e.report for stage in e.report.stages]
    largest = min(max([limit_bytes, *needs]), _LARGEST_OVERFLOW * limit_bytes)
    scale, unit = axis_unit(limit_bytes, "B")
    parts = StackedParts(
        colours=MEMORY_COLOURS,
        value=lambda stage, part: stage_bytes(stage, part) / scale,
        top=1.2 * largest / scale,
        unit=unit,
        axis=f"memory per device, {unit}",
        outlines={"stash": STASH_OUTLINE},
        line=limit_bytes / scale,
        marked=lambda report: fullest(report)[0] if len(report.stages) > 1 else -1,
    )
    return Picture(
        _finding(entries, limit_bytes),
        f"Memory per stage: need of one device, {unit}",
        "A stage fits while its bar stays under the dashed line; early stages stash the "
        f"activations of more micro-batches; {MARK} is the fullest.",
        stage_rows_figure(entries, parts, _limit_line(len(entries), limit_bytes, scale)),
        tuple(MEMORY_COLOURS.items()),
    )


def _limit_line(rows: int, limit_bytes: float, scale: float) -> dict[str, list[dict[str, Any]]]:
    height = limit_bytes / scale
    lines = [
        {
            "type": "line", "xref": f"{x} domain", "yref": y, "x0": 0, "x1": 1, "y0": height,
            "y1": height, "line": {"color": LIMIT, "width": 1.5, "dash": "dash"},
        }
        for x, y in map(axis_names, range(rows))
    ]  # fmt: skip
    label = {
        "text": f"{humanise_bytes(limit_bytes)} per device", "xref": "paper", "yref": "y domain",
        "x": 1, "y": 1, "yshift": 1, "xanchor": "right", "yanchor": "bottom",
        "showarrow": False, "font": {"color": LIMIT, "size": 12},
    }  # fmt: skip
    return {"shapes": lines, "annotations": [label]}


def _finding(entries: Sequence[Entry], limit_bytes: float) -> str:
    best = next((e.report for e in entries if e.ours), None)
    limit = humanise_bytes(limit_bytes)
    if best is None:
        return f"Nothing fits into {limit} per device"
    number, stage = fullest(best)
    free = humanise_bytes(limit_bytes - stage.memory.total)
    where = f"Stage {number + 1} is fullest" if len(best.stages) > 1 else "The one stage fits"
    return f"{where}: {humanise_bytes(stage.memory.total)} of {limit}, {free} free"
