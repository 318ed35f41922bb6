"""Stage figures: where each stage's iteration goes, and its memory against what a device has.

A row per method, and every row has the same two axes. Horizontally stand the model's layers, stage
by stage, so that a plan of four stages and one of eighty are compared in the same place and a cut
is where it is; a bar is as wide as the layers its stage holds, all virtual stages of an interleaved
stage together.
"""

import itertools
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import plotly.graph_objects as go

from nest_core.costs import Report, Stage
from nest_core.documents.units import capital, humanise, humanise_bytes, percent
from nest_core.report.explain import bottleneck, fullest, fullest_words
from nest_core.report.figures.entries import MethodRow
from nest_core.report.figures.style import (
    BALANCED,
    FAINT,
    HATCH,
    LIMIT,
    MARK,
    MEMORY_COLOURS,
    PAPER,
    STASH_OUTLINE,
    TIME_COLOURS,
    Chart,
    Trace,
    axis_names,
    axis_title,
    axis_unit,
    bare_axis,
    dots,
    note,
    plot,
    pointed,
    ruler,
    value_axis,
    wrapped,
)

__all__ = [
    "StackedParts",
    "balance_figure",
    "memory_figure",
    "slowest",
    "stage_rows_figure",
    "time_parts",
]

_ROW_HEIGHT, _LABEL_HEIGHT = 136, 36
_MARGIN = (52, 10, 2, 46)
_NUMBERED_STAGES = 16
_SECONDS = {
    "compute": "compute_s",
    "recomputation": "recompute_s",
    "communication": "communication_s",
    "idle": "idle_s",
}
_LINE = 64  # characters
_TAG = re.compile(r"<[^>]+>")
_NUMBER_HEIGHT = 0.16  # of an axis
_LARGEST_OVERFLOW = 2.5
"""A stage further over the limit must not squash those that fit."""


@dataclass(frozen=True, slots=True)
class StackedParts:
    """What a stage's bar is stacked from.

    Parameters
    ----------
    colours : mapping of str to str
        The parts from the bottom up.
    value : callable (Stage, part) -> float
        In units of the axis.
    top : float
        Upper end of the vertical axes.
    unit, axis : str
        The unit, and the quantity with it.
    outlines : mapping of str to str
        Parts that carry an outline, and its colour.
    line : float
        Height of a line across every row, which numbers keep clear of; 0 for none.
    marked : callable (Report) -> int
        Which stage binds, from 0; −1 for none.
    """

    colours: Mapping[str, str]
    value: Callable[[Stage, str], float]
    top: float
    unit: str
    axis: str
    outlines: Mapping[str, str] = field(default_factory=dict)
    line: float = 0.0
    marked: Callable[[Report], int] = lambda report: -1


def stage_rows_figure(
    entries: Sequence[MethodRow],
    parts: StackedParts,
    shapes: Sequence[Trace] = (),
    labels: Sequence[Trace] = (),
) -> go.Figure:
    """Draw stacked bars of every stage of every method.

    Parameters
    ----------
    entries : sequence of MethodRow
    parts : StackedParts
    shapes, labels : sequence of dict
        More ``shapes`` and ``annotations`` of the layout.
    """
    rows = len(entries)
    layers = max((e.report.stages[-1].last for e in entries if e.report), default=1)
    notes = [
        note(
            parts.axis,
            0,
            0.5,
            textangle=-90,
            xshift=4 - _MARGIN[0],
            **PAPER,
            xanchor="left",
            yanchor="middle",
        )
    ]
    axes: dict[str, Trace] = {}
    traces: list[Trace] = []
    for row, entry in enumerate(entries):
        x, y = axis_names(row)
        # Upper end of the row's axis, as a share of the plot's height.
        top = 1 - (row + _LABEL_HEIGHT / _ROW_HEIGHT) / rows
        axes[f"xaxis{x[1:]}"] = _layers_axis(layers, y, is_last=row == rows - 1)
        axes[f"yaxis{y[1:]}"] = value_axis(
            anchor=x, domain=[1 - (row + 1) / rows, top], range=[0, parts.top], nticks=4
        )
        notes.append(_row_label(entry, top))
        # Plotly draws axes only where there is a trace.
        nothing = dots([0], [0], {}, name="nothing", opacity=0, hoverinfo="skip")
        drawn = [nothing] if entry.report is None else _bars(entry, entry.report, parts)
        traces += [trace | {"xaxis": x, "yaxis": y} for trace in drawn]
    names: set[str] = set()  # each part stands in the legend once
    for trace in traces:
        trace["showlegend"] = trace["type"] == "bar" and trace["name"] not in names
        names.add(trace["name"])
    return plot(
        traces,
        _MARGIN[2] + rows * _ROW_HEIGHT + _MARGIN[3],
        _MARGIN,
        barmode="stack",
        bargap=0,
        annotations=[*notes, *labels],
        shapes=list(shapes),
        **axes,
    )


def _layers_axis(layers: int, anchor: str, *, is_last: bool) -> Trace:
    title = "layers, stage by stage; a bar is as wide as the layers of its stage"
    return bare_axis(
        anchor=anchor,
        range=[0, layers],
        showticklabels=is_last,
        ticks="outside" if is_last else "",
        ticklen=3,
        showline=True,
        linecolor=FAINT,
        **({"title": axis_title(title, 6)} if is_last else {}),
    )


def _row_label(entry: MethodRow, top: float) -> Trace:
    name = f"<b>{entry.name}</b>" if entry.ours else entry.name
    # Two lines fit above a row, each within half a page; the name stands in the first.
    indent = " " * len(f"{_TAG.sub('', entry.name)}  ")
    lines = textwrap.wrap(
        entry.summary, _LINE, initial_indent=indent, max_lines=2, placeholder=" …"
    ) or [""]
    return note(
        "<br>".join([f"{name}  {lines[0].lstrip()}", *lines[1:]]),
        0,
        top,
        align="left",
        yshift=1,
        **({"hovertext": wrapped(entry.reason)} if entry.reason else {}),
        **PAPER,
        xanchor="left",
        yanchor="bottom",
    )


def _bars(entry: MethodRow, report: Report, parts: StackedParts) -> list[Trace]:
    stages = report.stages
    labels = [
        f"{entry.name}, stage {number}, layers {stage.spans}"
        for number, stage in enumerate(stages, start=1)
    ]
    widths = [stage.layers for stage in stages]
    centres = [
        end - width / 2 for end, width in zip(itertools.accumulate(widths), widths, strict=True)
    ]
    traces: list[Trace] = []
    totals = [0.0] * len(stages)
    for part, colour in parts.colours.items():
        values = [parts.value(stage, part) for stage in stages]
        totals = [total + value for total, value in zip(totals, values, strict=True)]
        if not any(round(value, 6) for value in values):
            continue
        marker: dict[str, Any] = {
            "color": colour,
            "line": {"width": 0.5, "color": parts.outlines[part]}
            if part in parts.outlines
            else {"width": 0},
        }
        if not entry.feasible:
            marker["pattern"] = {"shape": HATCH, "size": 6, "solidity": 0.3}
        traces.append(
            {
                "type": "bar",
                "x": centres,
                "y": [round(value, 6) for value in values],
                "width": widths,
                "name": part,
                "legendgroup": part,
                "marker": marker,
                **pointed(
                    f"{label}<br>{part}: {humanise(value)} {parts.unit}"
                    for label, value in zip(labels, values, strict=True)
                ),
            }
        )
    near = parts.line - _NUMBER_HEIGHT * parts.top
    heights = [max(total, parts.line) if total > near else total for total in totals]
    # Stage numbers on top of the bars; of many stages that of the marked one alone.
    marked, many = parts.marked(report), len(stages) > _NUMBERED_STAGES
    numbered = [s for s in range(len(stages)) if s == marked or not many]
    numbers = {
        "type": "scatter",
        "mode": "text",
        "x": [centres[s] for s in numbered],
        "y": [heights[s] for s in numbered],
        "text": [f"{MARK} {s + 1}" if s == marked else f"{s + 1}" for s in numbered],
        "textposition": "top center",
        "textfont": {"size": 12},
        "hoverinfo": "skip",
        "name": "stage number",
    }
    return [*traces, numbers]


def slowest(report: Report) -> int:
    """Return the stage (from 0) that sets the pace; −1 where all are balanced."""
    number, excess = bottleneck(report)
    return number if excess >= BALANCED else -1


def time_parts(entries: Sequence[MethodRow]) -> StackedParts:
    """Return what stacks an iteration, on an axis as long as the longest; no stage is marked."""
    longest = max((e.report.iteration_s for e in entries if e.report), default=1.0)
    scale, unit = axis_unit(longest, "s")
    return StackedParts(
        colours=TIME_COLOURS,
        value=lambda stage, part: getattr(stage, _SECONDS[part]) / scale,
        top=1.2 * longest / scale,
        unit=unit,
        axis=f"time per iteration, {unit}",
    )


def balance_figure(entries: Sequence[MethodRow]) -> Chart:
    """Draw compute, recomputation, communication and idle time of every stage of every method."""
    parts = replace(time_parts(entries), marked=slowest)
    return Chart(
        _balance_finding(entries),
        f"Stage balance: {parts.axis}",
        "A stage's bar is one iteration long: grey is waiting for other stages, orange is what "
        f"the network takes; {MARK} sets the pace.",
        stage_rows_figure(entries, parts),
        tuple(TIME_COLOURS.items()),
    )


def _balance_finding(entries: Sequence[MethodRow]) -> str:
    best = next((e.report for e in entries if e.ours), None)
    if best is None:
        return "There is no plan to balance"
    number, excess = bottleneck(best)
    if len(best.stages) == 1:
        spent = best.stages[0].communication_s / best.iteration_s
        return f"One stage: communication takes {percent(spent)}"
    loads = [stage.micro_batch_s for stage in best.stages]
    if max(loads) < (1 + BALANCED) * min(loads):
        return f"All {len(best.stages)} stages are balanced within 0.5 %"
    slow = sum(load > (1 - BALANCED) * max(loads) for load in loads)
    which = (
        f"Stage {number + 1} is the bottleneck"
        if slow == 1
        else f"{slow} of {len(loads)} stages are slowest"
    )
    return f"{which}, {percent(excess)} above the mean"


def memory_figure(entries: Sequence[MethodRow], limit_bytes: float) -> Chart:
    """Draw weights, gradients, optimizer, activations, stash and buffers of every stage.

    Parameters
    ----------
    entries : sequence of MethodRow
    limit_bytes : float
        Memory of one device, drawn as a line.
    """
    needs = [stage.memory.total for e in entries if e.report for stage in e.report.stages]
    largest = min(max([limit_bytes, *needs]), _LARGEST_OVERFLOW * limit_bytes)
    scale, unit = axis_unit(limit_bytes, "B")
    parts = StackedParts(
        colours=MEMORY_COLOURS,
        value=lambda stage, part: getattr(stage.memory, part) / scale,
        top=1.2 * largest / scale,
        unit=unit,
        axis=f"memory per device, {unit}",
        outlines={"stash": STASH_OUTLINE},
        line=limit_bytes / scale,
        marked=lambda report: fullest(report)[0] if len(report.stages) > 1 else -1,
    )
    lines = [
        ruler(parts.line, xref=f"{x} domain", yref=y)
        for x, y in map(axis_names, range(len(entries)))
    ]
    label = note(
        f"{humanise_bytes(limit_bytes)} per device",
        1,
        1,
        xref="paper",
        yref="y domain",
        xanchor="right",
        yanchor="bottom",
        yshift=1,
        font={"color": LIMIT, "size": 12},
    )
    return Chart(
        _memory_finding(entries, limit_bytes),
        f"Memory per stage: need of one device, {unit}",
        "A stage fits while its bar stays under the dashed line; early stages stash the "
        f"activations of more micro-batches; {MARK} is the fullest.",
        stage_rows_figure(entries, parts, lines, [label]),
        tuple(MEMORY_COLOURS.items()),
    )


def _memory_finding(entries: Sequence[MethodRow], limit_bytes: float) -> str:
    best = next((e.report for e in entries if e.ours), None)
    limit = humanise_bytes(limit_bytes)
    if best is None:
        return f"There is no plan to hold in {limit} per device"
    total = fullest(best)[1].memory.total
    where = "The one stage fits" if len(best.stages) == 1 else capital(fullest_words(best))
    free = humanise_bytes(limit_bytes - total)
    return f"{where}: {humanise_bytes(total)} of {limit}, {free} free"
