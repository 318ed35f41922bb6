"""Bars of the lessons: memory of stages, ZeRO's bytes, times of plans, NEST's lead in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from nest_core.costs import Report, Stage
from nest_core.documents.units import (
    format_ratio,
    humanise,
    humanise_bytes,
    humanise_seconds,
    percent,
    plural,
)
from nest_core.paper.cases import PLANNERS
from nest_core.report.figures.stages import limit_label, stage_bytes, stage_seconds
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    HATCH,
    LIMIT,
    MEMORY_COLOURS,
    MUTED,
    STASH_OUTLINE,
    TIME_COLOURS,
    Picture,
    axis_unit,
    frame,
    note,
    ruler,
    value_axis,
)
from nest_core.teaching.lessons.experts import SHOWN_STAGE, Spreads
from nest_core.teaching.lessons.oversubscription import Width, Widths
from nest_core.teaching.lessons.paper_table import READINGS, Leads
from nest_core.teaching.lessons.stash import Stash
from nest_core.teaching.lessons.tensor import Blocks
from nest_core.teaching.lessons.zero import Sharded, ZeroStages

__all__ = [
    "expert_memory_picture",
    "expert_time_picture",
    "leads_picture",
    "stash_picture",
    "tensor_picture",
    "widths_picture",
    "zero_memory_picture",
    "zero_traffic_picture",
]

_HEIGHT = 310
_MARGIN = (62, 12, 8, 48)
_STATES = ("weights", "gradients", "optimizer")


@dataclass(frozen=True, slots=True)
class _Bars:
    """Bars stacked from parts.

    Parameters
    ----------
    names : sequence of str
        Below the bars.
    parts : mapping of str to sequence of float
        From the bottom up, in SI.
    colours : mapping of str to str
    base : str
        ``B`` or ``s``.
    quantity, across : str
        Titles of the axes.
    tops : sequence of str
        Above the bars.
    hatched : sequence of bool
        Bars that are no choice.
    limit : float
        A line across; 0 for none.
    """

    names: Sequence[str]
    parts: Mapping[str, Sequence[float]]
    colours: Mapping[str, str]
    base: str
    quantity: str
    across: str
    tops: Sequence[str]
    hatched: Sequence[bool]
    limit: float = 0.0

    @property
    def totals(self) -> list[float]:
        return [sum(values) for values in zip(*self.parts.values(), strict=True)]

    @property
    def scale(self) -> tuple[float, str]:
        return axis_unit(max([self.limit, *self.totals]) or 1.0, self.base)


def _figure(bars: _Bars) -> go.Figure:
    scale, unit = bars.scale
    top = 1.16 * max([bars.limit, *bars.totals, scale / 10]) / scale
    traces = [
        _part(bars, name, values, scale, unit) for name, values in bars.parts.items() if any(values)
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "text",
            "x": list(bars.names),
            "y": [total / scale for total in bars.totals],
            "text": list(bars.tops),
            "textposition": "top center",
            "hoverinfo": "skip",
            "name": "total",
            "textfont": {"size": 12},
            "cliponaxis": False,
        }
    )
    limit = bars.limit / scale
    return go.Figure(
        data=traces,
        layout=frame(
            _HEIGHT,
            _MARGIN,
            barmode="stack",
            bargap=0.3,
            xaxis={
                "type": "category",
                "fixedrange": True,
                "showgrid": False,
                "automargin": True,
                "title": {"text": bars.across, "standoff": 6, "font": {"size": 12}},
            },
            yaxis=value_axis(f"{bars.quantity}, {unit}") | {"range": [0, top]},
            shapes=[ruler(limit)] if limit else [],
            annotations=[limit_label(bars.limit, limit)] if limit else [],
        ),
    )


def _part(
    bars: _Bars, name: str, values: Sequence[float], scale: float, unit: str
) -> dict[str, Any]:
    line = {"width": 0.5, "color": STASH_OUTLINE} if name == "stash" else {"width": 0}
    return {
        "type": "bar",
        "name": name,
        "x": list(bars.names),
        "y": [value / scale for value in values],
        "marker": {
            "color": bars.colours[name],
            "line": line,
            "pattern": {
                "shape": [HATCH if hatched else "" for hatched in bars.hatched],
                "size": 6,
                "solidity": 0.3,
            },
        },
        "customdata": [f"{name}: {humanise(value / scale)} {unit}" for value in values],
        "hovertemplate": "%{x}<br>%{customdata}<extra></extra>",
    }


def _legend(bars: _Bars) -> tuple[tuple[str, str], ...]:
    return tuple((name, bars.colours[name]) for name, values in bars.parts.items() if any(values))


def _stacked(
    stages: Sequence[Stage], value: Callable[[Stage, str], float], colours: Mapping[str, str]
) -> dict[str, list[float]]:
    """Every part of every stage."""
    return {part: [float(value(stage, part)) for stage in stages] for part in colours}


def stash_picture(found: Stash) -> Picture:
    """Memory of every stage of one pipeline."""
    stages, limit = found.report.stages, found.report.memory_limit_bytes
    bars = _Bars(
        names=[str(number) for number in range(1, len(stages) + 1)],
        parts=_stacked(stages, stage_bytes, MEMORY_COLOURS),
        colours=MEMORY_COLOURS,
        base="B",
        quantity="memory per device",
        across="stage; above the bars: micro-batches in flight",
        tops=[f"{held}" for held in found.held],
        hatched=[stage.memory.total > limit for stage in stages],
        limit=limit,
    )
    needs = bars.totals
    fullest = needs.index(max(needs))
    verdict = "fits" if max(needs) <= limit else "does not fit"
    return Picture(
        f"Stage {fullest + 1} is fullest: {humanise_bytes(max(needs))} of "
        f"{humanise_bytes(limit)}, {verdict}",
        f"Memory of one device of each stage, {bars.scale[1]}",
        "The yellow part is the stash: activations of the micro-batches in flight beside the one "
        "at work. Hatched bars do not fit.",
        _figure(bars),
        _legend(bars),
    )


def _zero_bars(
    found: ZeroStages,
    parts: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    quantity: str,
    value: Callable[[Sharded], float],
    limit: float,
) -> _Bars:
    return _Bars(
        names=[f"ZeRO {one.zero}" for one in found.stages],
        parts=parts,
        colours=colours,
        base="B",
        quantity=quantity,
        across="",
        tops=[humanise_bytes(value(one)) for one in found.stages],
        hatched=[bool(limit) and value(one) > limit for one in found.stages],
        limit=limit,
    )


def zero_memory_picture(found: ZeroStages) -> Picture:
    """Weights, gradients and optimizer states on one rank, by ZeRO stage."""
    parts = {part: [getattr(one, part) for one in found.stages] for part in _STATES}
    limit = found.limit_bytes
    bars = _zero_bars(found, parts, MEMORY_COLOURS, "states", lambda one: one.held, limit)
    least, most = found.stages[-1].held, found.stages[0].held
    return Picture(
        f"ZeRO 3 leaves {humanise_bytes(least)} of {humanise_bytes(most)}"
        if found.ranks > 1
        else "One rank has nobody to share with: all stages hold the same",
        f"States on one of {found.ranks} ranks, {bars.scale[1]}; activations are not in it",
        "What stays whole is a stage's lower bound: more ranks do not lower it.",
        _figure(bars),
        _legend(bars),
    )


def zero_traffic_picture(found: ZeroStages) -> Picture:
    """Bytes that one rank sends per iteration, by ZeRO stage."""
    sent = [one.sent for one in found.stages]
    colours = {"sent": TIME_COLOURS["communication"]}
    bars = _zero_bars(found, {"sent": sent}, colours, "sent", lambda one: one.sent, 0.0)
    if sent[0] == 0:
        title = "One rank sends nothing"
    elif abs(sent[3] / sent[0] - 1) < 0.005:
        title = "ZeRO 3 sends as much as ZeRO 0"
    else:
        title = f"ZeRO 3 sends {sent[3] / sent[0]:.3g} times what ZeRO 0 sends"
    return Picture(
        title,
        "Sent per device and iteration of "
        f"{plural(found.micro_batches, 'micro-batch', 'micro-batches')}, "
        f"{bars.scale[1]}",
        "Stages 2 and 3 send for every micro-batch; 0 and 1 once per iteration.",
        _figure(bars),
        _legend(bars),
    )


def _slowest(report: Report) -> Stage:
    """The stage that waits least: its parts add up to the iteration like every other's."""
    return min(report.stages, key=lambda stage: stage.idle_s)


def widths_picture(found: Widths) -> Picture:
    """Iteration of the best plan of every tensor-parallel width."""
    fastest, _ = found.best
    none = dict.fromkeys(TIME_COLOURS, 0.0)
    columns = [
        {part: stage_seconds(_slowest(one.report), part) for part in TIME_COLOURS}
        if one.report is not None
        else none
        for one in found.widths
    ]
    bars = _Bars(
        names=[_width_name(one, found.per_node) for one in found.widths],
        parts={part: [column[part] for column in columns] for part in TIME_COLOURS},
        colours=TIME_COLOURS,
        base="s",
        quantity="iteration",
        across="tensor-parallel width, and the pipeline that suits it best",
        tops=[_width_top(one, fastest) for one in found.widths],
        hatched=[False for _ in found.widths],
    )
    inside = "inside the node" if fastest <= found.per_node else "across nodes"
    return Picture(
        f"At {format_ratio(found.ratio)} tp {fastest} is fastest, {inside}",
        f"Iteration of the slowest stage, {bars.scale[1]}; nodes of {found.per_node}",
        "Each bar is the best plan that the planner finds at this width. Communication is what "
        "compute does not hide.",
        _figure(bars),
        _legend(bars),
    )


def tensor_picture(found: Blocks) -> Picture:
    """A block's compute and collectives by tensor-parallel width."""
    colours = {part: TIME_COLOURS[part] for part in ("compute", "communication")}
    most = found.of(found.per_node)
    bars = _Bars(
        names=[
            f"tp {one.tp}<br>"
            + ("1 node" if one.tp <= found.per_node else f"{one.tp // found.per_node} nodes")
            for one in found.widths
        ],
        parts={
            "compute": [one.compute_s for one in found.widths],
            "communication": [one.sent_s for one in found.widths],
        },
        colours=colours,
        base="s",
        quantity="one block",
        across="tensor-parallel width",
        tops=[humanise_seconds(one.seconds) for one in found.widths],
        hatched=[False for _ in found.widths],
    )
    far = found.widths[-1]
    return Picture(
        f"Collectives take {percent(most.sent_s / most.seconds)} of a block at tp {most.tp}, "
        f"{percent(far.sent_s / far.seconds)} at tp {far.tp}",
        f"Forward and backward of a block, {bars.scale[1]}; uplinks {format_ratio(found.ratio)}",
        "Nothing hides behind compute here. Fitted overlap hides a part: see the Plan page.",
        _figure(bars),
        _legend(bars),
    )


def _width_name(one: Width, per_node: int) -> str:
    nodes = one.tp // per_node
    where = "1 node" if nodes <= 1 else f"{nodes} nodes"
    deep = f"pp {one.report.plan.point.pp}" if one.report is not None else "no plan"
    return f"tp {one.tp}<br>{where}<br>{deep}"


def _width_top(one: Width, fastest: int) -> str:
    if one.report is None:
        return "does not fit"
    text = f"{one.report.iteration_s:.3g} s"
    best = one.tp == fastest
    return f"<b>{text}</b>" if best else text


def _expert_names(found: Spreads) -> list[str]:
    return [f"ep {one.ep}" for one in found.spreads]


def expert_memory_picture(found: Spreads) -> Picture:
    """Memory of one stage under every expert-parallel degree."""
    stages = [one.report.stages[SHOWN_STAGE] for one in found.spreads]
    limit = found.spreads[0].report.memory_limit_bytes
    bars = _Bars(
        names=_expert_names(found),
        parts=_stacked(stages, stage_bytes, MEMORY_COLOURS),
        colours=MEMORY_COLOURS,
        base="B",
        quantity="memory per device",
        across="expert-parallel degree",
        tops=[humanise_bytes(stage.memory.total) for stage in stages],
        hatched=[stage.memory.total > limit for stage in stages],
        limit=limit,
    )
    first, last = bars.totals[0], bars.totals[-1]
    return Picture(
        f"Spreading the experts leaves {humanise_bytes(last)} of {humanise_bytes(first)}",
        f"Memory of one device of stage {SHOWN_STAGE + 1}, {bars.scale[1]}",
        "Only the experts' weights, gradients and states are spread; activations are not.",
        _figure(bars),
        _legend(bars),
    )


def expert_time_picture(found: Spreads) -> Picture:
    """Iteration of one stage under every expert-parallel degree."""
    stages = [one.report.stages[SHOWN_STAGE] for one in found.spreads]
    bars = _Bars(
        names=_expert_names(found),
        parts=_stacked(stages, stage_seconds, TIME_COLOURS),
        colours=TIME_COLOURS,
        base="s",
        quantity="iteration",
        across="expert-parallel degree",
        tops=[f"{one.report.iteration_s:.3g} s" for one in found.spreads],
        hatched=[not one.report.feasible for one in found.spreads],
    )
    first, last = (stages[place].communication_s for place in (0, -1))
    return Picture(
        f"Communication goes from {first:.3g} s to {last:.3g} s at ep {found.spreads[-1].ep}",
        f"Iteration of stage {SHOWN_STAGE + 1}, {bars.scale[1]}; nodes of {found.per_node}, "
        f"imbalance {found.imbalance:g}",
        "All-to-alls come with ep; gradients of experts shrink with it. Hatched: some stage does "
        "not fit.",
        _figure(bars),
        _legend(bars),
    )


_LIMITED = {"color": LIMIT, "size": 12}
_LOOKS = (
    {"color": "rgba(0, 0, 0, 0)", "line": {"color": MUTED, "width": 1.5}},
    {"color": MUTED},
    {"color": ACCENT},
    {"color": ACCENT, "pattern": {"shape": HATCH, "size": 6, "solidity": 0.3}},
)


def leads_picture(found: Leads) -> Picture:
    """Grouped bars: planners, and in each group the readings."""
    traces = [_lead_bars(found, place) for place in range(len(READINGS))]
    ratios = [ratio for lead in found.leads for ratio in lead.ratios if ratio is not None]
    label = note("equally fast", 1, 1, xref="paper", xshift=6, xanchor="left", font=_LIMITED)
    return Picture(
        _leads_finding(found),
        f"NEST's throughput over that of other planners, {found.model} on {found.devices:,} "
        "devices; ratio",
        "Outlined: as printed; grey: the artifact's costs; blue: stages in their right order; "
        "hatched: transfers in milliseconds too.",
        go.Figure(
            data=traces,
            layout=frame(
                340,
                (52, 84, 10, 34),
                barmode="group",
                bargap=0.25,
                bargroupgap=0.06,
                xaxis={"type": "category", "fixedrange": True, "showgrid": False},
                yaxis=value_axis("ratio") | {"range": [0, 1.15 * max([*ratios, 1.0])]},
                shapes=[ruler(1)],
                annotations=[label],
            ),
        ),
        (
            (READINGS[0], FAINT),
            (READINGS[1], MUTED),
            (f"{READINGS[2]}; hatched: {READINGS[3]}", ACCENT),
        ),
    )


def _lead_bars(found: Leads, place: int) -> dict[str, Any]:
    names = [PLANNERS[lead.planner] for lead in found.leads]
    values = [lead.ratios[place] for lead in found.leads]
    return {
        "type": "bar",
        "name": READINGS[place],
        "x": names,
        "y": values,
        "marker": _LOOKS[place],
        "text": ["no figure" if value is None else f"{value:.3g}" for value in values],
        "textposition": "outside",
        "textangle": 0,
        "textfont": {"size": 12},
        "hovertemplate": f"%{{x}}, {READINGS[place]}: %{{text}}<extra></extra>",
    }


def _leads_finding(found: Leads) -> str:
    known = [
        (PLANNERS[lead.planner], lead.ratios[1], lead.ratios[2])
        for lead in found.leads
        if lead.ratios[1] is not None and lead.ratios[2] is not None
    ]
    moves = [(before - after, name, before, after) for name, before, after in known]
    gone = [move for move in moves if move[0] > 0.005 and move[-1] < 1.005]
    _, name, before, after = max(gone or moves, default=(0.0, "", 1.0, 1.0))
    if abs(before - after) < 0.005:
        return "In the right order no lead changes here"
    if gone:
        return f"The lead over {name}, {before:.3g}, is gone in the right order"
    return f"The lead over {name} goes from {before:.3g} to {after:.3g} in the right order"
