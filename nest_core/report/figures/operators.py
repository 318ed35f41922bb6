"""The graph of a layer before and after a strategy, coloured by what bounds each operator."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nest_core.costs.anatomy import BOUNDS, Anatomy, Exchange, OperatorBound, OperatorPart
from nest_core.documents.units import capital, humanise_bytes, humanise_seconds
from nest_core.report.explain.layer_summary import (
    BOUND_WORDS,
    LAYER_WORDS,
    layer_finding,
    strategy_in_words,
)
from nest_core.report.figures.layered import LayeredGraph, layered
from nest_core.report.figures.style import (
    LABEL_PX,
    MUTED,
    PAPER,
    SILENT,
    TIME_COLOURS,
    Chart,
    Legend,
    Trace,
    broken,
    curve,
    dots,
    hidden_axis,
    note,
    plain,
    plot,
    pointed,
)
from nest_core.workload import Graph

__all__ = [
    "BOUND_COLOURS",
    "bound_legend",
    "graph_figure",
    "hover_text",
    "legend_traces",
    "short_name",
]

BOUND_COLOURS: dict[OperatorBound, str] = {
    "arithmetic": TIME_COLOURS["compute"],
    "memory": "#009E73",
    "host": "#83878D",
}
"""The host's is the grey of idle time: the device waits."""

COMMUNICATION = TIME_COLOURS["communication"]
RECOMPUTATION = TIME_COLOURS["recomputation"]

_ROW_HEIGHT, _TOP = 50, 34
_MARGIN = (4, 4, _TOP, 4)
_GAP = 0.03
_HALF_WIDTH, _HALF_HEIGHT = 0.46, 0.34
_DIAMOND, _LETTER = 0.16, 0.072
_LOWER = -0.02
_STEPS = 10
_LINE = 84
_FAINT_FILL, _STRONG_FILL, _BAR = "0.13", "0.9", 0.09
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
class _Side:
    """One of the two graphs."""

    anatomy: Anatomy
    drawing: LayeredGraph
    title: str
    domain: tuple[float, float] = (0.0, 1.0)
    axis: str = "x"


def graph_figure(before: Anatomy, after: Anatomy, ink: str = "") -> Chart:
    """Draw operators from the top down, before at the left, after at the right.

    Both sides have the same places; a collective of the right side is a line at the left. A
    strategy that divides nothing has one side.

    Parameters
    ----------
    before, after : Anatomy
        Of the same layer.
    ink : str
        Colour of what boxes say; empty: the page's colour of text in figures.
    """
    drawing, title = _draw(after), strategy_in_words(after.strategy, after.kind)
    sides = [_Side(after, drawing, title)]
    if before.graph != after.graph:
        first = drawing if _operators(before.graph) == _operators(after.graph) else _draw(before)
        sides = [
            _Side(before, first, "one device", (0.0, 0.5 - _GAP / 2)),
            _Side(after, drawing, f"one rank of {title}", (0.5 + _GAP / 2, 1.0), "x2"),
        ]
    rows = max(side.drawing.rows for side in sides)
    axes = {
        f"xaxis{side.axis[1:]}": hidden_axis()
        | {
            "range": [side.drawing.ends[0] - 0.05, side.drawing.ends[1] + 0.05],
            "domain": side.domain,
            "anchor": "y",
        }
        for side in sides
    }
    inked = {"size": LABEL_PX} | ({"color": ink} if ink else {})
    legend = tuple(_legend([side.anatomy for side in sides]))
    batch = f"{after.strategy.micro_batch:,} × {after.strategy.sequence:,} tokens"
    return Chart(
        layer_finding(after),
        f"{capital(LAYER_WORDS[after.kind])} of {after.model.name}, {batch}, "
        f"{after.accelerator.name}, {after.precision}: time of each operator, both passes",
        "The bar in a box is its operator's time beside the longest one's. Pointing at "
        "a box or a diamond shows its formula with the numbers. Joined ones run in one product "
        "with a neighbour.",
        plot(
            [*(trace for side in sides for trace in _traces(side, inked)), *legend_traces(legend)],
            rows * _ROW_HEIGHT + _TOP + _MARGIN[3],
            _MARGIN,
            yaxis=hidden_axis() | {"range": [rows - 0.5, -0.5]},
            annotations=[_side_title(side, inked) for side in sides],
            shapes=[shape for side in sides for shape in _boxes(side)],
            hoverdistance=28,
            legend={
                "orientation": "h",
                "x": 0,
                "y": 1 + (_TOP - 4) / (rows * _ROW_HEIGHT),
                "yanchor": "bottom",
            },
            hoverlabel={"align": "left", "font": {"size": 12}},
            **axes,
        ),
        legend,
    )


def legend_traces(legend: Legend) -> list[Trace]:
    """Return empty traces that name the colours where a figure stands alone."""
    return [
        dots([None], [None], {"symbol": "square", "size": 11, "color": colour}, name=name)
        for name, colour in legend
    ]


def bound_legend(parts: Iterable[OperatorPart]) -> Legend:
    """Return what bounds any of the operators, with its colour."""
    bounds = {part.bound for part in parts}
    names = (name for name in BOUNDS if name in bounds)
    return tuple((f"bound by {BOUND_WORDS[name]}", BOUND_COLOURS[name]) for name in names)


def hover_text(title: str, lines: Iterable[str]) -> str:
    """Return a bold title and lines short enough to stand beside the pointer."""
    wrapped = [
        piece
        for line in lines
        for piece in textwrap.wrap(line, _LINE, subsequent_indent="\u2003", break_long_words=False)
    ]
    return "<br>".join([f"<b>{plain(title)}</b>", *map(plain, wrapped)])


def short_name(name: str) -> str:
    """Return the last part of a name, its group only where another has the same.

    Examples
    --------
    >>> short_name("attention.core"), short_name("mlp_norm"), short_name("experts.gate")
    ('attention', 'norm', 'expert gate')
    """
    group, _, last = name.rpartition(".")
    first = group.partition(".")[0]
    words = last.replace("_", " ").removeprefix("attention ").removeprefix("mlp ")
    words = _SHORTER.get(words, words)
    return (
        f"{first.removesuffix('s')} {words}"
        if first in ("experts", "shared") and last in ("gate", "up", "down")
        else words
    )


def _operators(graph: Graph) -> set[str]:
    return {node.name for node in graph.nodes if node.op not in ("reshape", "collective")}


def _draw(anatomy: Anatomy) -> LayeredGraph:
    parents = {
        node.name: list(
            dict.fromkeys(anatomy.graph.behind(name, "reshape") for name in node.inputs)
        )
        for node in anatomy.graph.nodes
        if node.op != "reshape"
    }
    calls = {
        call.node.name: (_DIAMOND, _DIAMOND + _LETTER * max(map(len, _call_words(call))))
        for call in anatomy.exchanges
    }
    return layered(parents, dict.fromkeys(parents, (0.5, 0.5)) | calls)


def _traces(side: _Side, inked: Trace) -> list[Trace]:
    """Return edges, what boxes say, and diamonds with what they say."""
    entry = side.anatomy.graph.nodes[0].name
    boxes = {
        part.name: (
            f"{plain(short_name(part.name))}<br>"
            f"{_small(humanise_seconds(part.seconds) if part.runs else 'joined')}",
            hover_text(*_part_words(part, side.anatomy)),
        )
        for part in side.anatomy.parts
    }
    boxes[entry] = ("input", hover_text("input", ["What the layer receives."]))
    calls = {
        call.node.name: (
            f"{_call_words(call)[0]}<br>{_small(_call_words(call)[1])}",
            hover_text(call.node.name, call.words),
        )
        for call in side.anatomy.exchanges
    }
    diamond = {"size": 15, "symbol": "diamond", "color": COMMUNICATION, "opacity": 1}
    return [
        _lines(side),
        _labels(side, boxes, "middle center", {"size": 44, "opacity": 0}, inked, _LOWER),
        _labels(side, calls, "middle right", diamond, inked),
    ]


def _labels(
    side: _Side,
    entries: dict[str, tuple[str, str]],
    position: str,
    marker: Trace,
    inked: Trace,
    lower: float = 0.0,
) -> Trace:
    places = [side.drawing.places[name] for name in entries]
    return dots(
        [at for at, _ in places],
        [row + lower for _, row in places],
        marker,
        mode="markers+text",
        text=[label for label, _ in entries.values()],
        textposition=position,
        textfont=inked,
        cliponaxis=False,
        showlegend=False,
        xaxis=side.axis,
        yaxis="y",
        **pointed(words for _, words in entries.values()),
    )


def _lines(side: _Side) -> Trace:
    """Return all edges as one trace: smooth ways from box to box, through what is not drawn."""
    nodes = {node.name for node in side.anatomy.graph.nodes}
    calls = {call.node.name for call in side.anatomy.exchanges}
    starts = {upper for upper, _, _ in side.drawing.ways}
    lines: list[tuple[list[float], list[float]]] = []
    for _, lower, way in side.drawing.ways:
        if lower not in nodes | starts:
            continue  # a collective that nobody reads, on the side that does not have it
        x: list[float] = []
        y: list[float] = []
        for (x0, upper_row), (x1, lower_row) in pairwise(way):
            # Straight beside boxes and labels, curved only between the rows.
            y0, y1 = upper_row + _HALF_HEIGHT, lower_row - _HALF_HEIGHT
            steps = [step / _STEPS for step in range(_STEPS + 1)]
            x += [x0 + (x1 - x0) * t * t * (3 - 2 * t) for t in steps]
            y += [y0 + (y1 - y0) * t for t in steps]
            if lower_row != way[-1][1] or lower in calls or lower not in nodes:
                x.append(x1)
                y.append(lower_row + (_HALF_HEIGHT if lower in starts else 0.0))
        lines.append((x, y))
    return curve(
        **broken(lines), colour=MUTED, width=1.1, **SILENT, **{"xaxis": side.axis, "yaxis": "y"}
    )


def _boxes(side: _Side) -> Iterator[Trace]:
    longest = max((part.seconds for part in side.anatomy.parts), default=0.0) or 1.0
    for part in side.anatomy.parts:
        at, row = side.drawing.places[part.name]
        box = {
            "type": "rect",
            "layer": "below",
            "xref": side.axis,
            "yref": "y",
            "x0": at - _HALF_WIDTH,
            "x1": at + _HALF_WIDTH,
            "y0": row - _HALF_HEIGHT,
            "y1": row + _HALF_HEIGHT,
        }
        if not part.runs:
            outline: Trace = {"color": MUTED, "width": 1.0, "dash": "dot"}
            yield box | {"fillcolor": "rgba(0, 0, 0, 0)", "line": outline}
            continue
        colour = BOUND_COLOURS[part.bound]
        drawn, width = (RECOMPUTATION, 2.6) if part.replayed else (colour, 1.2)
        outline = {"color": drawn, "width": width, "dash": "solid"}
        strong = _clear(colour, _STRONG_FILL)
        bar = {
            "x1": at - _HALF_WIDTH + 2 * _HALF_WIDTH * part.seconds / longest,
            "y0": row + _HALF_HEIGHT - _BAR,
            "fillcolor": strong,
            "line": {"color": strong, "width": 0, "dash": "solid"},
        }
        yield from (box | {"fillcolor": _clear(colour, _FAINT_FILL), "line": outline}, box | bar)


def _part_words(part: OperatorPart, anatomy: Anatomy) -> tuple[str, tuple[str, ...]]:
    title, words = (
        f"{part.name}: {part.node.function or part.node.op}".replace("_", " "),
        part.words,
    )
    if not part.runs:
        return title, words
    if part.bound == "host":
        kernels = len(part.forward.kernels) * (1 + part.replayed) + len(part.backward.kernels)
        issue = anatomy.accelerator.family.host_s
        words += (
            f"the host takes longer: {kernels} kernels · {humanise_seconds(issue)} each = "
            f"{humanise_seconds(kernels * issue)}",
        )
    share = f"{100 * part.seconds / anatomy.device_s:.3g} % of the layer"
    return f"{title}, {humanise_seconds(part.seconds)}, {share}", words


def _call_words(call: Exchange) -> tuple[str, str]:
    name = (*call.node.forward, *call.node.backward)[0].replace("_", "-")
    arrow = "" if call.node.forward else "↑ "
    return f"{arrow}{name}", f"{call.node.axis}, {humanise_bytes(call.bytes)}"


def _small(text: str) -> str:
    return f'<span style="font-size:12px">{plain(text)}</span>'


def _side_title(side: _Side, inked: Trace) -> Trace:
    spent = humanise_seconds(side.anatomy.device_s)
    text = f"<b>{side.title}</b>: {spent}, keeps {humanise_bytes(side.anatomy.kept_bytes)}"
    return note(
        text,
        side.domain[0],
        1.0,
        yshift=8,
        font=inked,
        **PAPER,
        xanchor="left",
        yanchor="bottom",
    )


def _legend(sides: Sequence[Anatomy]) -> Iterator[tuple[str, str]]:
    parts = [part for side in sides for part in side.parts if part.runs]
    calls = [call for side in sides for call in side.exchanges]
    yield from bound_legend(parts)
    if calls:
        both = all(call.node.forward for call in calls)
        yield f"communication{'' if both else ', ↑ in backward only'}", COMMUNICATION
    if any(part.replayed for part in parts):
        yield "outlined: run again in backward", RECOMPUTATION


def _clear(colour: str, opacity: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"
