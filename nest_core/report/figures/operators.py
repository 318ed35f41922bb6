"""The graph of a layer before and after a strategy, coloured by what bounds each operator."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from nest_core.costs.anatomy import BOUNDS, Anatomy, Exchange, OperatorBound, OperatorPart
from nest_core.documents.units import capital, humanise_bytes, humanise_seconds
from nest_core.explain.layer_summary import (
    BOUND_WORDS,
    LAYER_WORDS,
    layer_finding,
    strategy_in_words,
)
from nest_core.report.figures.layered import Drawing, layered
from nest_core.report.figures.style import (
    LABEL_PX,
    MUTED,
    TIME_COLOURS,
    Picture,
    broken,
    frame,
    hidden_axis,
    note,
)
from nest_core.workload import Graph

__all__ = ["BOUND_COLOURS", "graph_figure", "hover_text", "legend_traces", "short_name"]

BOUND_COLOURS: dict[OperatorBound, str] = {
    "arithmetic": TIME_COLOURS["compute"],
    "memory": "#009E73",
    "host": "#83878D",
}
"""The host's is the grey of idle time: the device waits."""

COMMUNICATION = TIME_COLOURS["communication"]
RECOMPUTATION = TIME_COLOURS["recomputation"]

_ROW_HEIGHT, _TOP, _BOTTOM = 50, 34, 4
_GAP = 0.03
_HALF_WIDTH, _HALF_HEIGHT = 0.46, 0.34
_BOX = (0.5, 0.5)
_DIAMOND, _LETTER = 0.16, 0.072
_LOWER = -0.02
_STEPS = 10
_LINE = 84
_FAINT_FILL, _STRONG_FILL, _BAR = 0.13, 0.9, 0.09
_GROUPS = ("attention", "mlp")
_SHORTER = {
    "core": "attention",
    "key value down": "KV down",
    "key value norm": "KV norm",
    "query position": "query pos.",
    "key position": "key pos.",
    "rope query": "rope, query",
    "rope key": "rope, key",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Panel:
    """One of the two graphs."""

    found: Anatomy
    drawing: Drawing
    title: str
    domain: tuple[float, float]
    axis: str


def graph_figure(before: Anatomy, after: Anatomy, ink: str = "") -> Picture:
    """Operators from the top down, before at the left, after at the right.

    Both sides have the same places; a collective of the right side is a line at the left. A
    strategy that divides nothing has one side.

    Parameters
    ----------
    before, after : Anatomy
        Of the same layer.
    ink : str
        Colour of what boxes say; empty: the page's colour of text in figures.
    """
    drawing = _draw(after)
    alone = before.graph == after.graph
    panels = [
        _Panel(after, drawing, strategy_in_words(after.strategy, after.kind), (0.0, 1.0), "x")
    ]
    if not alone:
        same = _operators(before.graph) == _operators(after.graph)
        panels = [
            _Panel(
                before, drawing if same else _draw(before), "one device", (0.0, 0.5 - _GAP / 2), "x"
            ),
            _Panel(
                after,
                drawing,
                f"one rank of {strategy_in_words(after.strategy, after.kind)}",
                (0.5 + _GAP / 2, 1.0),
                "x2",
            ),
        ]
    rows = max(panel.drawing.rows for panel in panels)
    layout = frame(
        rows * _ROW_HEIGHT + _TOP + _BOTTOM,
        (4, 4, _TOP, _BOTTOM),
        yaxis=hidden_axis() | {"range": [rows - 0.5, -0.5]},
        annotations=[_panel_title(panel, ink) for panel in panels],
        shapes=[shape for panel in panels for shape in _boxes(panel)],
        hoverdistance=28,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1 + (_TOP - 4) / (rows * _ROW_HEIGHT),
            "yanchor": "bottom",
        },
        hoverlabel={"align": "left", "font": {"size": 12}},
    )
    for panel in panels:
        layout[f"xaxis{panel.axis[1:]}"] = hidden_axis() | {
            "range": [panel.drawing.left - 0.05, panel.drawing.right + 0.05],
            "domain": panel.domain,
            "anchor": "y",
        }
    legend = _legend([panel.found for panel in panels])
    traces = [trace for panel in panels for trace in _traces(panel, ink)] + legend_traces(legend)
    batch = f"{after.strategy.micro_batch:,} × {after.strategy.sequence:,} tokens"
    return Picture(
        layer_finding(after),
        f"{capital(LAYER_WORDS[after.kind])} of {after.model.name}, {batch}, "
        f"{after.accelerator.name}, {after.precision}: time of each operator, both passes",
        "The bar in a box is its operator's time beside the longest one's. Pointing at "
        "a box or a diamond shows its formula with the numbers. Joined ones run in one product "
        "with a neighbour.",
        go.Figure(data=traces, layout=layout),
        legend,
    )


def legend_traces(legend: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Empty traces that name the colours where a figure stands alone."""
    marker = {"symbol": "square", "size": 11}
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [None],
            "y": [None],
            "name": name,
            "marker": marker | {"color": colour},
        }
        for name, colour in legend
    ]


def hover_text(title: str, lines: Iterable[str]) -> str:
    """A bold title and lines short enough to stand beside the pointer."""
    wrapped = [
        piece
        for line in lines
        for piece in textwrap.wrap(line, _LINE, subsequent_indent="\u2003", break_long_words=False)
    ]
    return "<br>".join([f"<b>{_escaped(title)}</b>", *map(_escaped, wrapped)])


def short_name(name: str) -> str:
    """What a box says: the last part of a name, its group only where another has the same.

    Examples
    --------
    >>> short_name("attention.core"), short_name("mlp_norm"), short_name("experts.gate")
    ('attention', 'norm', 'expert gate')
    """
    group, _, last = name.rpartition(".")
    first = group.partition(".")[0]
    words = last.replace("_", " ")
    for known in _GROUPS:
        words = words.removeprefix(f"{known} ")
    words = _SHORTER.get(words, words)
    if first in ("experts", "shared") and last in ("gate", "up", "down"):
        words = f"{first.removesuffix('s')} {words}"
    return words


def _operators(graph: Graph) -> set[str]:
    return {node.name for node in graph.nodes if node.op not in ("reshape", "collective")}


def _draw(found: Anatomy) -> Drawing:
    graph = found.graph

    def source(name: str) -> str:
        while graph[name].op == "reshape":
            name = graph[name].inputs[0]
        return name

    shown = [node for node in graph.nodes if node.op != "reshape"]
    parents = {node.name: list(dict.fromkeys(map(source, node.inputs))) for node in shown}
    extents = {node.name: _BOX for node in shown}
    for call in found.exchanges:
        letters = max(map(len, _call_words(call)))
        extents[call.node.name] = (_DIAMOND, _DIAMOND + _LETTER * letters)
    return layered(parents, extents)


def _traces(panel: _Panel, ink: str) -> list[dict[str, Any]]:
    places, found = panel.drawing.places, panel.found
    boxes: list[tuple[str, str, str]] = [
        (part.name, _box_label(part), hover_text(*_part_words(part, found))) for part in found.parts
    ]
    entry = found.graph.nodes[0]
    boxes.append((entry.name, "input", hover_text("input", ["What the layer receives."])))
    calls: list[tuple[str, str, str]] = [
        (call.node.name, _call_label(call), hover_text(call.node.name, call.words))
        for call in found.exchanges
    ]
    return [
        _lines(panel),
        _points(panel, boxes, places, "middle center", _LOWER, ink, {"size": 44, "opacity": 0}),
        _points(
            panel,
            calls,
            places,
            "middle right",
            0.0,
            ink,
            {"size": 15, "symbol": "diamond", "color": COMMUNICATION, "opacity": 1},
        ),
    ]


def _points(
    panel: _Panel,
    entries: Sequence[tuple[str, str, str]],
    places: Any,
    position: str,
    lower: float,
    ink: str,
    marker: dict[str, Any],
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [places[name][0] for name, _, _ in entries],
        "y": [places[name][1] + lower for name, _, _ in entries],
        "text": [label for _, label, _ in entries],
        "customdata": [words for _, _, words in entries],
        "textposition": position,
        "textfont": {"size": LABEL_PX} | _inked(ink),
        "marker": marker,
        "cliponaxis": False,
        "hovertemplate": "%{customdata}<extra></extra>",
        "showlegend": False,
        "xaxis": panel.axis,
        "yaxis": "y",
    }


def _lines(panel: _Panel) -> dict[str, Any]:
    """All edges as one trace: smooth ways from box to box, through what is not there."""
    here = {node.name for node in panel.found.graph.nodes}
    calls = {call.node.name for call in panel.found.exchanges}
    ends = {upper for upper, _, _ in panel.drawing.ways}
    lines: list[tuple[list[float], list[float]]] = []
    for _, lower, way in panel.drawing.ways:
        if lower not in here and lower not in ends:
            continue  # a collective that nobody reads, on the side that does not have it
        x: list[float] = []
        y: list[float] = []
        for (one, upper_row), (other, lower_row) in pairwise(way):
            # Straight beside boxes and labels, curved only between the rows.
            start, end = upper_row + _HALF_HEIGHT, lower_row - _HALF_HEIGHT
            for step in range(_STEPS + 1):
                t = step / _STEPS
                x.append(one + (other - one) * t * t * (3 - 2 * t))
                y.append(start + (end - start) * t)
            if lower_row != way[-1][1] or lower in calls or lower not in here:
                x.append(other)
                y.append(lower_row + (_HALF_HEIGHT if lower in ends else 0.0))
        lines.append((x, y))
    return {
        "type": "scatter",
        "mode": "lines",
        **broken(lines),
        "line": {"color": MUTED, "width": 1.1},
        "hoverinfo": "skip",
        "showlegend": False,
        "xaxis": panel.axis,
        "yaxis": "y",
    }


def _boxes(panel: _Panel) -> list[dict[str, Any]]:
    longest = max((part.seconds for part in panel.found.parts), default=0.0) or 1.0
    shapes: list[dict[str, Any]] = []
    for part in panel.found.parts:
        at, row = panel.drawing.places[part.name]
        if not part.runs:
            shapes.append(_box(panel, at, row, 1.0, "rgba(0, 0, 0, 0)", MUTED, "dot"))
            continue
        colour = BOUND_COLOURS[part.bound]
        outline, width = (RECOMPUTATION, 2.6) if part.replayed else (colour, 1.2)
        shapes.append(
            _box(panel, at, row, 1.0, _clear(colour, _FAINT_FILL), outline, "solid", width)
        )
        bar = _box(panel, at, row, part.seconds / longest, _clear(colour, _STRONG_FILL))
        shapes.append(bar | {"y0": row + _HALF_HEIGHT - _BAR})
    return shapes


def _box(
    panel: _Panel,
    at: float,
    row: int,
    part: float,
    fill: str,
    line: str = "",
    dash: str = "solid",
    width: float = 1.0,
) -> dict[str, Any]:
    return {
        "type": "rect",
        "layer": "below",
        "xref": panel.axis,
        "yref": "y",
        "x0": at - _HALF_WIDTH,
        "x1": at - _HALF_WIDTH + 2 * _HALF_WIDTH * part,
        "y0": row - _HALF_HEIGHT,
        "y1": row + _HALF_HEIGHT,
        "fillcolor": fill,
        "line": {"color": line or fill, "width": width if line else 0, "dash": dash},
    }


def _part_words(part: OperatorPart, found: Anatomy) -> tuple[str, tuple[str, ...]]:
    title = f"{part.name}: {part.node.function or part.node.op}".replace("_", " ")
    if not part.runs:
        return title, part.words
    taken = f"{100 * part.seconds / found.device_s:.3g} % of the layer"
    words = part.words
    if part.bound == "host":
        kernels = len(part.forward.kernels) * (1 + part.replayed) + len(part.backward.kernels)
        issue = found.accelerator.family.host_s
        words += (
            f"the host takes longer: {kernels} kernels · {humanise_seconds(issue)} each = "
            f"{humanise_seconds(kernels * issue)}",
        )
    return f"{title}, {humanise_seconds(part.seconds)}, {taken}", words


def _box_label(part: OperatorPart) -> str:
    second = humanise_seconds(part.seconds) if part.runs else "joined"
    return f"{_escaped(short_name(part.name))}<br>{_small(second)}"


def _call_label(call: Exchange) -> str:
    name, size = _call_words(call)
    return f"{name}<br>{_small(size)}"


def _call_words(call: Exchange) -> tuple[str, str]:
    both = call.node.forward or call.node.backward
    arrow = "" if call.node.forward else "↑ "
    return f"{arrow}{both[0].replace('_', '-')}", f"{call.node.axis}, {humanise_bytes(call.bytes)}"


def _small(text: str) -> str:
    return f'<span style="font-size:12px">{_escaped(text)}</span>'


def _panel_title(panel: _Panel, ink: str) -> dict[str, Any]:
    found = panel.found
    return note(
        f"<b>{panel.title}</b>: {humanise_seconds(found.device_s)}, keeps "
        f"{humanise_bytes(found.kept_bytes)}",
        panel.domain[0],
        1.0,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        yshift=8,
        font={"size": LABEL_PX} | _inked(ink),
    )


def _legend(sides: Sequence[Anatomy]) -> tuple[tuple[str, str], ...]:
    parts = [part for side in sides for part in side.parts if part.runs]
    shown = [
        (f"bound by {BOUND_WORDS[name]}", BOUND_COLOURS[name])
        for name in BOUNDS
        if any(part.bound == name for part in parts)
    ]
    calls = [call for side in sides for call in side.exchanges]
    if calls:
        both = all(call.node.forward for call in calls)
        shown.append((f"communication{'' if both else ', ↑ in backward only'}", COMMUNICATION))
    if any(part.replayed for part in parts):
        shown.append(("outlined: run again in backward", RECOMPUTATION))
    return tuple(shown)


def _clear(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def _inked(ink: str) -> dict[str, str]:
    return {"color": ink} if ink else {}


def _escaped(text: str) -> str:
    # Plotly reads tags in what it shows.
    return text.replace("<", "&lt;")
