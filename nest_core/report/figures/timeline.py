"""One iteration as a picture: a row per stage, its passes where they run, grey where it waits.

Bars are thick lines, one trace per part with gaps in between, so that thousands draw at once. Of
more than `MAX_PASSES` passes the first and the last ones are drawn; in between a row's height is
divided as its time is.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nest_core.costs.plan_words import schedule_words
from nest_core.costs.timeline import PARTS, Timeline
from nest_core.documents.units import humanise_seconds, percent, plural
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.report.figures.operators import legend_traces
from nest_core.report.figures.stages import slowest as pace
from nest_core.report.figures.style import (
    MARK,
    TIME_COLOURS,
    Chart,
    Trace,
    axis_title,
    axis_unit,
    bare_axis,
    bars,
    curve,
    empty,
    plot,
    pointed,
    value_axis,
)

__all__ = ["MAX_PASSES", "timeline_figure"]

MAX_PASSES = 2400

_HEIGHT, _MARGIN = 340, (64, 16, 24, 46)
_PLOT_HEIGHT = _HEIGHT - _MARGIN[2] - _MARGIN[3]
_ROW, _THICKEST = 0.84, 40  # of a row's height; pixels
_FORWARD = 0.6  # of a backward bar's thickness
_NUMBERED = 64  # passes per stage, with room for their numbers
_TICKS = 16
_ROUNDING = 1e-9  # of an iteration
_AGREES = 5e-4  # relative; less is the same to three digits


def timeline_figure(timeline: Timeline | None, why: str = "There is no plan to play back") -> Chart:
    """Draw when every stage computes, communicates and waits.

    Parameters
    ----------
    timeline : Timeline or None
    why : str
        Why there is none: the title.
    """
    if timeline is None:
        return empty(why, "Pipeline timeline", _HEIGHT, _MARGIN)
    scale, unit = axis_unit(timeline.seconds, "s")
    rows, slowest = timeline.stages, pace(timeline.report) + 1
    pen = _Pen(scale, min(_THICKEST, _ROW * _PLOT_HEIGHT / rows))
    drawn = _drawn(timeline)
    traces = [
        _waiting(timeline, drawn, pen),
        *_passes(timeline, drawn, pen),
        *_last(timeline, pen),
        *_middle(timeline, drawn, scale, pen.thick * rows / _PLOT_HEIGHT),
    ]
    if timeline.start_s.shape[1] <= _NUMBERED and rows <= _TICKS:
        traces.append(_numbers(timeline, scale))
    legend = tuple(TIME_COLOURS.items())
    point = timeline.report.plan.point
    ticks = sorted({*range(1, rows + 1, math.ceil(rows / _TICKS)), *([slowest] if slowest else [])})
    return Chart(
        _finding(timeline, slowest),
        f"Pipeline timeline of one replica, {unit}: {plural(rows, 'stage')}, "
        f"{plural(timeline.micro_batches, 'micro-batch', 'micro-batches')}, "
        f"{schedule_words(point.schedule, point.interleave)}",
        _reading(timeline, is_complete=drawn.is_complete),
        plot(
            [*traces, *legend_traces(legend)],
            _HEIGHT,
            _MARGIN,
            dragmode="zoom",
            hoverdistance=12,
            xaxis=value_axis(
                f"time since the iteration began, {unit}",
                range=[0, timeline.seconds / scale],
                nticks=10,
                fixedrange=False,
            ),
            # Stages from the top down; the slowest carries the mark.
            yaxis=bare_axis(
                title=axis_title("stage"),
                range=[rows + 0.5, 0.5],
                tickvals=ticks,
                ticktext=[f"{MARK} {n} " if n == slowest else f"{n} " for n in ticks],
            ),
        ),
        legend,
    )


@dataclass(frozen=True, slots=True)
class _Pen:
    """Seconds of a unit of the axis, and how thick a row is, pixels."""

    scale: float
    thick: float

    def lines(
        self, part: str, first: FloatArray, last: FloatArray, stage: IntArray, share: float = 1.0
    ) -> Trace:
        """Return bars as one broken line."""
        x = (
            (np.stack([first, last, np.full(len(first), np.nan)], axis=1) / self.scale)
            .reshape(-1)
            .astype(np.float32)
        )
        y, width = np.repeat(stage.astype(np.int16), 3), round(self.thick * share, 1)
        look: Trace = {"line": {"simplify": False}, "name": part, "showlegend": False}
        return curve(x, y, TIME_COLOURS[part], width, **look)


@dataclass(frozen=True, slots=True, eq=False)
class _DrawnPasses:
    """Which passes are drawn one by one, shape (pp, passes), and the middle of every row."""

    passes: BoolArray
    first_s: FloatArray
    last_s: FloatArray

    @property
    def is_complete(self) -> bool:
        return bool(self.passes.all())


def _drawn(timeline: Timeline) -> _DrawnPasses:
    start, end = timeline.start_s, timeline.end_s
    if start.size <= MAX_PASSES:
        return _DrawnPasses(np.ones(start.shape, np.bool_), end[:, -1], end[:, -1])
    half = MAX_PASSES // 2
    early = end <= np.partition(end.reshape(-1), half)[half]
    middle = ~(early | (start >= np.partition(start.reshape(-1), -half)[-half]))
    first = np.where(middle, start, np.inf).min(axis=1)
    last = np.where(middle, end, -np.inf).max(axis=1)
    is_empty = ~middle.any(axis=1)
    first_s, last_s = (np.where(is_empty, end[:, -1], ends) for ends in (first, last))
    return _DrawnPasses(~middle, first_s, last_s)


def _waiting(timeline: Timeline, drawn: _DrawnPasses, pen: _Pen) -> Trace:
    """Return what lies between the passes, before the first and after the last."""
    ready = timeline.end_s[:, -1:] + (timeline.sync_s + timeline.update_s)[:, None]
    begins = np.concatenate([np.zeros(ready.shape), timeline.end_s[:, :-1], ready], axis=1)
    ends = np.concatenate([timeline.start_s, np.full(ready.shape, timeline.seconds)], axis=1)
    waits = ends - begins > _ROUNDING * timeline.seconds
    waits[:, 1:-1] &= drawn.passes[:, 1:] | drawn.passes[:, :-1]
    stage = np.nonzero(waits)[0] + 1
    return pen.lines("idle", begins[waits], ends[waits], stage) | {"hoverinfo": "skip"}


def _begins(timeline: Timeline) -> FloatArray:
    """Return when the parts of every pass begin, drawn one after another; shape (pp, passes, 3).

    Forward: communication, compute. Backward: recomputation, compute, communication.
    """
    communication, replay, compute = np.moveaxis(timeline.pass_parts_s, 2, 0)
    back = timeline.backward
    offset = [
        np.where(back, replay + compute, 0.0),
        np.where(back, 0.0, communication),
        np.where(back, replay, communication),
    ]
    return np.asarray(timeline.start_s[..., None] + np.stack(offset, axis=2))


def _passes(timeline: Timeline, drawn: _DrawnPasses, pen: _Pen) -> Iterator[Trace]:
    """Yield a trace per part of all forward and of all backward passes that have it."""
    begins = _begins(timeline)
    for place, part in enumerate(PARTS):
        seconds = timeline.pass_parts_s[..., place]
        for name, back, share in (("forward", False, _FORWARD), ("backward", True, 1.0)):
            runs = drawn.passes & (timeline.backward == back) & (seconds > 0)
            if not runs.any():
                continue
            first, stage = begins[..., place][runs], np.nonzero(runs)[0] + 1
            yield pen.lines(part, first, first + seconds[runs], stage, share) | {
                "name": f"{part}, {name}",
                "customdata": np.repeat((timeline.micro_batch[runs] + 1).astype(np.int32), 3),
                "hovertemplate": f"stage %{{y}}, micro-batch %{{customdata}}<br>{part} of its "
                f"{name} pass<extra></extra>",
            }


def _last(timeline: Timeline, pen: _Pen) -> list[Trace]:
    """Return what every stage does once, after its last pass."""
    begins, rows = timeline.end_s[:, -1], np.arange(1, timeline.stages + 1)
    once = (
        ("communication", "gradient synchronisation", begins, timeline.sync_s),
        ("compute", "optimizer step", begins + timeline.sync_s, timeline.update_s),
    )
    return [
        pen.lines(part, first[some], (first + seconds)[some], rows[some])
        | {"name": words, "hovertemplate": f"stage %{{y}}<br>{words}<extra></extra>"}
        for part, words, first, seconds in once
        for some in (seconds > 0,)
        if some.any()
    ]


def _middle(timeline: Timeline, drawn: _DrawnPasses, scale: float, high: float) -> Iterator[Trace]:
    """Yield passes that are not drawn one by one: a row's height divided as its time is."""
    if drawn.is_complete:
        return
    span = drawn.last_s - drawn.first_s
    seconds = np.where(drawn.passes[..., None], 0.0, timeline.pass_parts_s).sum(axis=1)
    part = np.divide(seconds, span[:, None], out=np.zeros_like(seconds), where=span[:, None] > 0)
    part = np.column_stack([part, np.maximum(0.0, 1.0 - part.sum(axis=1))])
    rows = np.arange(1, timeline.stages + 1)
    below = rows + high / 2
    for place, name in enumerate((*PARTS, "idle")):
        tall = high * part[:, place]
        yield bars(
            span / scale,
            below - tall / 2,
            {"color": TIME_COLOURS[name], "line": {"width": 0}},
            name=f"{name}, in between",
            showlegend=False,
            base=drawn.first_s / scale,
            width=tall,
            **pointed(
                f"stage {row}, passes in between<br>{name}: {percent(value)} of the time"
                for row, value in zip(rows, part[:, place], strict=True)
            ),
        )
        below = below - tall


def _numbers(timeline: Timeline, scale: float) -> Trace:
    """Return micro-batches by number, from 1, on their compute."""
    compute = PARTS.index("compute")
    middle = _begins(timeline)[..., compute] + timeline.pass_parts_s[..., compute] / 2
    return {
        "type": "scatter",
        "mode": "text",
        "name": "micro-batch",
        "x": (middle / scale).reshape(-1).astype(np.float32),
        "y": np.repeat(np.arange(1, timeline.stages + 1, dtype=np.int16), middle.shape[1]),
        "text": [str(number + 1) for number in timeline.micro_batch.reshape(-1).tolist()],
        "textfont": {"size": 12, "color": "#FFFFFF"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _finding(timeline: Timeline, slowest: int) -> str:
    if timeline.stages == 1:
        return "One stage: no stage waits for another"
    where = f"; stage {slowest} sets the pace" if slowest else ""
    return f"The bubble adds {percent(timeline.report.bubble)} to the ideal time{where}"


def _reading(timeline: Timeline, *, is_complete: bool) -> str:
    priced = humanise_seconds(timeline.report.iteration_s)
    error = percent(abs(timeline.difference))
    more = "longer" if timeline.difference > 0 else "less"
    agreed = (
        "as long as"
        if abs(timeline.difference) < _AGREES
        else f"{humanise_seconds(timeline.seconds)}, {error} {more} than"
    )
    between = "" if is_complete else " In the middle a row's height is divided as its time is."
    return (
        "Thin bars run forward, thick ones backward, a part of a pass in one piece. "
        f"Pass by pass it takes {agreed} the "
        f"{'replay' if timeline.report.plan.is_replayed else 'closed form'} that prices it, "
        f"{priced}.{between} "
        "Drag to zoom, double-click for all."
    )
