"""One simulated iteration as a picture: who computes, communicates and waits, and busy links.

A row is a stage, seen from a device of its slowest class, or a stream of one device. Thin bars run
forward. What is drawn span by span is one broken line per part; where spans are too many to be
told apart, a row is an image of `_COLUMNS` columns, in which the height is divided as the column's
time is.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nest_core.costs import Report, schedule_words
from nest_core.costs.communication import CLASSES, KINDS
from nest_core.documents.units import humanise_seconds, percent, plural
from nest_core.network import BusyLink, FloatArray, IntArray
from nest_core.report.explain import busiest_table
from nest_core.report.figures.operators import legend_traces
from nest_core.report.figures.stages import slowest as pace
from nest_core.report.figures.style import (
    FAINT,
    KIND_COLOURS,
    LIMIT,
    MARK,
    MUTED,
    TIME_COLOURS,
    Chart,
    Trace,
    axis_title,
    axis_unit,
    bare_axis,
    bars,
    curve,
    empty,
    note,
    plot,
    pointed,
    stepped_scale,
    value_axis,
)
from nest_core.simulator import Iteration, stages_of
from nest_core.simulator.activity import (
    PARTS,
    Activity,
    activity,
    entry_times,
    part_of,
    pass_of,
)
from nest_core.simulator.entries import COMPUTE, STREAMS
from nest_core.simulator.link_use import link_use

__all__ = [
    "MAX_SPANS",
    "TimelineRow",
    "links_figure",
    "rows_of_device",
    "rows_of_stages",
    "timeline_figure",
]

MAX_SPANS = 400
"""Of a row that is drawn span by span."""

_COLOURS = {
    **{name: TIME_COLOURS[name] for name in ("compute", "recomputation")},
    **{f"{kind} communication": colour for kind, colour in KIND_COLOURS.items()},
    "host": MUTED,
    "waiting": TIME_COLOURS["idle"],
}
"""What is told apart, by colour."""
_LOOKS = list(_COLOURS)
_LOOK_OF_PART = np.array(
    [
        _LOOKS.index(
            f"{KINDS[part]} communication"
            if part in CLASSES
            else {
                "optimizer": "compute",
                "kernel launches": "host",
                "copies to the host": "host",
            }.get(part, part)
        )
        for part in PARTS
    ]
)

_HEIGHT, _MARGIN = 340, (64, 16, 24, 46)
_PLOT_HEIGHT = _HEIGHT - _MARGIN[2] - _MARGIN[3]
_ROW, _THICKEST = 0.84, 40  # of a row's height; pixels
_FORWARD = 0.6  # of a backward bar's thickness
_COLUMNS, _CLEAR = 1200, 6  # of an image, and of a pass that is told from the next
_NUMBERED = 128  # bars of a row, with room for their numbers
_TICKS = 16
_AGREES = 5e-4  # relative; less is the same to three digits
_LINK_ROW, _BINS = 34, 400
_BUSY_SCALE = [(0.0, FAINT), (0.5, TIME_COLOURS["communication"]), (1.0, LIMIT)]
"""From idle to full, on light and on dark pages."""


@dataclass(frozen=True, slots=True, eq=False)
class TimelineRow:
    """A row: spans one after another, arrays (spans,).

    Parameters
    ----------
    name : str
        On the axis.
    words : str
        Beside the pointer.
    look : int array
        Which of the colours.
    is_forward : bool array
    micro_batch : int array
        -1 of what belongs to none.
    begins_s, ends_s : float array
    """

    name: str
    words: str
    look: IntArray
    is_forward: IntArray
    micro_batch: IntArray
    begins_s: FloatArray
    ends_s: FloatArray

    @classmethod
    def of(
        cls,
        iteration: Iteration,
        stage: int,
        words: tuple[str, str],
        spans: tuple[IntArray, IntArray, FloatArray, FloatArray],
    ) -> "TimelineRow":
        """Return spans by part, entry, beginning and end; those that go on alike are one."""
        part, entry, begins_s, ends_s = spans
        program, passes = iteration.programs[stage], pass_of(iteration, stage)
        number = np.where(entry < 0, -1, passes[entry])
        look = _LOOK_OF_PART[part]
        starts = np.ones(len(look), np.bool_)
        same = (np.diff(look) == 0) & ((np.diff(number) == 0) | (look[1:] == _LOOK_OF_PART[-1]))
        starts[1:] = ~(same & (begins_s[1:] == ends_s[:-1]))
        ends = np.append(starts[1:], True)
        way = np.where(number < 0, -1, iteration.order.way[stage, number])
        micro_batch = np.where(number < 0, -1, program.micro_batch[entry])
        is_waiting = look == _LOOK_OF_PART[-1]
        return cls(
            *words,
            look[starts].astype(np.int8),
            ((way == 0) & ~is_waiting)[starts].astype(np.int8),
            np.where(is_waiting, -1, micro_batch)[starts].astype(np.int32),
            begins_s[starts],
            ends_s[ends],
        )

    @property
    def is_fine(self) -> bool:
        """Whether columns hold several passes: thin ones would only make the edge ragged."""
        number = (
            2 * self.micro_batch[self.micro_batch >= 0] + self.is_forward[self.micro_batch >= 0]
        )
        return bool(np.count_nonzero(np.diff(number)) > _COLUMNS / _CLEAR)

    def spans(self) -> Iterator[tuple[int, int, float, float]]:
        """Yield the look, micro-batch, beginning and end of every span."""
        columns = (self.look, self.micro_batch, self.begins_s, self.ends_s)
        return zip(*(column.tolist() for column in columns), strict=True)

    def shares(self, edges_s: FloatArray) -> FloatArray:
        """Return the share of every bin by look and direction, (looks, 2, bins)."""
        result = np.zeros((len(_LOOKS), 2, len(edges_s) - 1))
        at = np.stack([self.begins_s, self.ends_s], axis=1)
        for look, way in np.unique(np.stack([self.look, self.is_forward]), axis=1).T.tolist():
            mine = (self.look == look) & (self.is_forward == way)
            spent = np.cumsum(np.diff(at[mine], axis=1))
            steps = np.stack([np.append(0.0, spent[:-1]), spent], axis=1).reshape(-1)
            seconds = np.diff(np.interp(edges_s, at[mine].reshape(-1), steps))
            result[look, way] = seconds / np.diff(edges_s)
        return result


def rows_of_stages(iteration: Iteration, activities: Sequence[Activity]) -> tuple[TimelineRow, ...]:
    """Return a row per stage."""
    return tuple(
        TimelineRow.of(
            iteration,
            entry.stage,
            (f"{entry.stage + 1}", f"stage {entry.stage + 1}, as device {entry.device} has it"),
            (entry.part, entry.entry, entry.begins_s, entry.ends_s),
        )
        for entry in activities
    )


def rows_of_device(iteration: Iteration, device: int) -> tuple[TimelineRow, ...]:
    """Return a row of what a device does, and one of every other stream of it; none if idle."""
    stage = int(stages_of(iteration.problem, iteration.plan)[device])
    if stage < 0:
        return ()
    does, program = activity(iteration, stage, device), iteration.programs[stage]
    words = ("device", f"device {device}, of stage {stage + 1}")
    spans = [(words, (does.part, does.entry, does.begins_s, does.ends_s))]
    begins_s, ends_s = entry_times(iteration, stage, device)
    part = np.array([PARTS.index(part_of(row)) for row in program.rows])[program.row]
    stream = np.array([row.stream for row in program.rows])[program.row]
    for number, name in enumerate(STREAMS):
        mine = np.flatnonzero((stream == number) & (ends_s > begins_s))
        if number != COMPUTE and len(mine):
            words = (name, f"device {device}, stream of {name}")
            spans.append((words, (part[mine], mine, begins_s[mine], ends_s[mine])))
    return tuple(TimelineRow.of(iteration, stage, *entry) for entry in spans)


def timeline_figure(
    iteration: Iteration | None,
    report: Report | None = None,
    rows: Sequence[TimelineRow] = (),
    why: str = "There is no plan to play back",
) -> Chart:
    """Draw when stages, or streams of a device, compute, communicate and wait.

    Parameters
    ----------
    iteration : Iteration or None
    report : Report
        The plan as it was priced.
    rows : sequence of TimelineRow
    why : str
        Why there is nothing: the title.
    """
    if iteration is None or report is None or not rows:
        return empty(why, "Timeline of an iteration", _HEIGHT, _MARGIN)
    last = max(float(row.ends_s[-1]) for row in rows)
    scale, unit = axis_unit(last, "s")
    thick = min(_THICKEST, _ROW * _PLOT_HEIGHT / len(rows))
    is_exact = all(len(row.look) <= MAX_SPANS for row in rows)
    draw = partial(_spans, thick=thick) if is_exact else partial(_image, thick=thick, last=last)
    is_device = rows[0].name == "device"
    traces = [*draw(rows, scale=scale), _pointed(rows, last / scale)]
    if is_exact and not is_device and len(rows) <= _TICKS:
        traces.append(_numbers(rows, scale))
    spent = np.sum([row.shares(np.array([0.0, last])) for row in rows], axis=(0, 2, 3))
    legend = tuple(
        pair for pair, share in zip(_COLOURS.items(), spent, strict=True) if share > _AGREES
    )
    slowest = 0 if is_device else pace(report) + 1
    point, m = report.plan.point, int(iteration.order.micro_batch.max()) + 1
    ticks = sorted(
        {*range(1, len(rows) + 1, math.ceil(len(rows) / _TICKS)), *([slowest] if slowest else [])}
    )
    names = {n: rows[n - 1].name for n in ticks}
    return Chart(
        _finding(rows, slowest, last),
        f"Timeline of an iteration, {unit}: {plural(point.pp, 'stage')}, "
        f"{plural(m, 'micro-batch', 'micro-batches')}, "
        f"{schedule_words(point.schedule, point.interleave)}",
        _reading(iteration, report, rows, is_exact=is_exact),
        plot(
            [*traces, *legend_traces(legend)],
            _HEIGHT,
            _MARGIN,
            dragmode="zoom",
            hoverdistance=12,
            barmode="overlay",
            xaxis=value_axis(
                f"time since the iteration began, {unit}",
                range=[0, last / scale],
                nticks=10,
                fixedrange=False,
            ),
            # Stages from the top down; the slowest carries the mark.
            yaxis=bare_axis(
                title=axis_title("" if is_device else "stage"),
                range=[len(rows) + 0.5, 0.5],
                tickvals=ticks,
                ticktext=[
                    f"{MARK} {name} " if n == slowest else f"{name} " for n, name in names.items()
                ],
            ),
        ),
        legend,
        partial(_table, rows),
    )


def _table(rows: Sequence[TimelineRow]) -> list[dict[str, Any]]:
    return [
        {
            "row": row.name,
            "part": _LOOKS[look],
            "micro-batch": None if number < 0 else number + 1,
            "begins, s": begins,
            "ends, s": ends,
        }
        for row in rows
        for look, number, begins, ends in row.spans()
    ]


def _spans(rows: Sequence[TimelineRow], *, thick: float, scale: float) -> Iterator[Trace]:
    """Yield a broken line per look, forward ones thin."""
    row = np.repeat(np.arange(1, len(rows) + 1), [len(row.look) for row in rows])
    look, forward, micro_batch, begins_s, ends_s = (
        np.concatenate([getattr(row, name) for row in rows])
        for name in ("look", "is_forward", "micro_batch", "begins_s", "ends_s")
    )
    for number, is_forward in np.unique(np.stack([look, forward]), axis=1).T.tolist():
        mine = (look == number) & (forward == is_forward)
        ends = np.stack([begins_s[mine], ends_s[mine], np.full(mine.sum(), np.nan)], axis=1)
        width = round(thick * (_FORWARD if is_forward else 1.0), 1)
        yield curve(
            (ends / scale).reshape(-1).astype(np.float32),
            np.repeat(row[mine].astype(np.int16), 3),
            _COLOURS[_LOOKS[number]],
            width,
            line={"simplify": False},
            name=_LOOKS[number],
            showlegend=False,
            customdata=np.repeat(micro_batch[mine] + 1, 3),
            hovertemplate=f"{_LOOKS[number]}, micro-batch %{{customdata}}<extra></extra>",
        )


def _image(
    rows: Sequence[TimelineRow], *, thick: float, scale: float, last: float
) -> Iterator[Trace]:
    """Yield one map of looks, a pixel high."""
    high, pitch = max(2, round(thick)), max(3, round(_PLOT_HEIGHT / len(rows)))
    edges_s = np.linspace(0.0, last, _COLUMNS + 1)
    pixels = np.zeros((len(rows) * pitch, _COLUMNS), np.int8)
    middle = (np.arange(high)[:, None] + 0.5) / high
    for n, row in enumerate(rows):
        forward = 1.0 if row.is_fine else _FORWARD
        tall = row.shares(edges_s) * np.array([1.0, forward])[None, :, None]
        tall = tall.reshape(-1, _COLUMNS)
        tops = np.cumsum(tall, axis=0)
        tops += (1.0 - tops[-1]) / 2
        top = n * pitch + (pitch - high) // 2
        for k, (low, up) in enumerate(zip(tops - tall, tops, strict=True)):
            inside = (middle >= 1.0 - up) & (middle < 1.0 - low)
            pixels[top : top + high][inside] = k // 2 + 1
    yield {
        "type": "heatmap",
        "name": "timeline",
        "z": pixels,
        "x0": last / scale / _COLUMNS / 2,
        "dx": last / scale / _COLUMNS,
        "y0": 0.5 + 0.5 / pitch,
        "dy": 1 / pitch,
        "zmin": -0.5,
        "zmax": len(_LOOKS) + 0.5,
        "colorscale": stepped_scale(["rgba(0, 0, 0, 0)", *_COLOURS.values()]),
        "showscale": False,
        "hoverinfo": "skip",
    }


def _pointed(rows: Sequence[TimelineRow], end: float) -> Trace:
    """Return invisible bars over whole rows that say what each spends its time with."""
    texts = []
    for row in rows:
        shares = row.shares(np.array([0.0, row.ends_s[-1]])).sum(axis=(1, 2))
        parts = [f"{_LOOKS[n]} {percent(shares[n])}" for n in np.flatnonzero(shares > _AGREES)]
        texts.append("<br>".join([row.words, *parts]))
    places = list(range(1, len(rows) + 1))
    return bars([end] * len(rows), places, {}, name="rows", opacity=0, **pointed(texts)) | {
        "showlegend": False
    }


def _numbers(rows: Sequence[TimelineRow], scale: float) -> Trace:
    """Return micro-batches by number, from 1, on their compute where there is room."""
    least = rows[0].ends_s[-1] / _NUMBERED
    places = [
        ((begins + ends) / 2 / scale, place, str(number + 1))
        for place, row in enumerate(rows, 1)
        for look, number, begins, ends in row.spans()
        if look == 0 and number >= 0 and ends - begins > least
    ]
    x, y, text = zip(*places, strict=True) if places else ((), (), ())
    return {
        "type": "scatter",
        "mode": "text",
        "name": "micro-batch",
        "x": x,
        "y": y,
        "text": text,
        "textfont": {"size": 12, "color": "#FFFFFF"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _finding(rows: Sequence[TimelineRow], slowest: int, last: float) -> str:
    idle = [
        float((row.ends_s - row.begins_s)[row.look == _LOOK_OF_PART[-1]].sum()) / last
        for row in rows
    ]
    if rows[0].name == "device":
        return f"{rows[0].words}, waits {percent(idle[0])} of the time".capitalize()
    if len(rows) == 1:
        return "One stage: no stage waits for another"
    low, high = percent(min(idle)), percent(max(idle))
    if not slowest:
        return f"Stages wait {low if low == high else f'{low} to {high}'} of the time"
    return f"Stage {slowest} sets the pace and waits {percent(idle[slowest - 1])}; others to {high}"


def _reading(
    iteration: Iteration, report: Report, rows: Sequence[TimelineRow], *, is_exact: bool
) -> str:
    priced = humanise_seconds(report.iteration_s)
    difference = iteration.seconds / report.iteration_s - 1.0
    more = "longer" if difference > 0 else "less"
    agreed = (
        "as long as"
        if abs(difference) < _AGREES
        else f"{humanise_seconds(iteration.seconds)}, {percent(abs(difference))} {more} than"
    )
    is_told = is_exact or not all(row.is_fine for row in rows)
    ways = "Thin bars run forward, thick ones backward. " if is_told else ""
    divided = "" if is_exact else " Where bars are too thin to tell, a row's height is divided."
    return (
        f"{ways}Event by event it takes {agreed} the "
        f"{'replay' if report.plan.is_replayed else 'closed form'} that prices it, {priced}."
        f"{divided} Drag to zoom, double-click for all."
    )


def links_figure(iteration: Iteration | None, links: Sequence[BusyLink]) -> Chart:
    """Draw how busy the busiest links are in the course of an iteration.

    Parameters
    ----------
    iteration : Iteration or None
    links : sequence of BusyLink
        The busiest first.
    """
    subtitle = "Busiest links over time: share of a link's rate"
    if iteration is None or not links:
        why = "Nothing is sent" if iteration else "There is no plan to play back"
        return empty(why, subtitle, _HEIGHT, _MARGIN)
    last = float(iteration.ends_s.max())
    scale, unit = axis_unit(last, "s")
    edges_s = np.linspace(0.0, last, _BINS + 1)
    z = link_use(iteration, [link.link_group for link in links], edges_s)
    names = [f"{link.in_words}: {_users(link)}" for link in links]
    cells = {
        "type": "heatmap",
        "name": "busy, %",
        "z": np.round(100 * z, 1).astype(np.float32),
        "x": edges_s / scale,
        "y": [n + 0.25 for n in range(len(links))],
        "zmin": 0.0,
        "zmax": 100.0,
        "colorscale": _BUSY_SCALE,
        "showscale": False,
        "ygap": _LINK_ROW / 2,
        "hovertemplate": f"%{{x:.4g}} {unit}: %{{z:.3g}} % busy<extra></extra>",
    }
    return Chart(
        busiest_table(links).title,
        f"{subtitle}, from 0 (grey) to 100 % (red); time in {unit}",
        "A row stands for all links that are as busy; shares behind its name are of the whole "
        "iteration. A call's bytes are spread over the time that it runs.",
        plot(
            [cells],
            _MARGIN[2] + _MARGIN[3] + _LINK_ROW * len(links),
            _MARGIN,
            annotations=[
                note(name, 0, n - 0.25, xref="paper", xanchor="left", yanchor="middle")
                for n, name in enumerate(names)
            ],
            xaxis=value_axis(
                f"time since the iteration began, {unit}",
                range=[0, last / scale],
                nticks=10,
                fixedrange=False,
                showgrid=False,
            ),
            yaxis=bare_axis(range=[len(links) - 0.5, -0.5], showticklabels=False),
        ),
        table=partial(_uses, tuple(names), edges_s, z),
    )


def _users(link: BusyLink) -> str:
    parts = [f"{CLASSES.get(name, name)} {percent(part)}" for name, part in link.users.items()]
    return ", ".join(parts[:2])


def _uses(names: Sequence[str], edges_s: FloatArray, z: FloatArray) -> list[dict[str, Any]]:
    return [
        {"link": name, "begins, s": begins, "busy": share}
        for name, shares in zip(names, z.tolist(), strict=True)
        for begins, share in zip(edges_s.tolist(), shares, strict=False)
    ]
