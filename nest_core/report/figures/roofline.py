"""The roofline of a layer: FLOP/s against FLOP per byte, one point per operator and pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from nest_core.costs.anatomy import BOUNDS, Anatomy, OperatorPart, OperatorPass
from nest_core.documents.units import capital, humanise, humanise_rate, humanise_seconds, percent
from nest_core.explain.layer_summary import BOUND_WORDS
from nest_core.hardware.estimator import compute_precision, reached
from nest_core.report.figures.operators import BOUND_COLOURS, hover_text, legend_traces, short_name
from nest_core.report.figures.style import FAINT, LIMIT, MUTED, Picture, frame, value_axis
from nest_core.workload import Kernel
from nest_core.workload.operators import Unit

__all__ = ["roofline_figure"]

_HEIGHT = 440
_MARGIN = (64, 16, 30, 52)
_SMALLEST, _LARGEST = 7.0, 20.0
_LEFTMOST = 0.05
_NAMED, _NAMED_FROM = 7, 0.02
_UNITS: tuple[Unit, Unit] = ("gemm", "attention")


def roofline_figure(found: Anatomy) -> Picture:
    """Every operator under the roofs of its accelerator, both axes logarithmic.

    Solid are the data sheet's roofs, dashed what the family's large products and copies reach,
    dotted what fused attention reaches. Element-wise operators are placed by a rough count of
    their arithmetic; what has none stands at the left edge.
    """
    parts = [part for part in found.parts if part.runs]
    passes = [(part, each) for part in parts for each in (part.forward, part.backward)]
    intensities = [each.drawn_flops / each.bytes for _, each in passes if each.drawn_flops]
    peak = found.accelerator.peak(found.precision)
    bandwidth = found.accelerator.memory_bandwidth_Bps
    left = min([_LEFTMOST, *(0.5 * value for value in intensities)])
    right = max([100.0 * peak / bandwidth / 10.0, *(4.0 * value for value in intensities)])
    rates = [_rate(each, left) for _, each in passes]
    low = min([*rates, left * bandwidth]) / 2.5
    layout = frame(
        _HEIGHT,
        _MARGIN,
        xaxis=_axis("intensity, FLOP per byte", left, right),
        yaxis=_axis("rate, FLOP/s", low, 1.9 * peak),
        annotations=[*_labels(found, left), *_names(parts, low, 1.9 * peak)],
        hoverlabel={"align": "left", "font": {"size": 12}},
    )
    legend = tuple(
        (f"bound by {BOUND_WORDS[name]}", BOUND_COLOURS[name])
        for name in BOUNDS
        if any(part.bound == name for part in parts)
    )
    traces = [*_roofs(found, left, right), *_points(found, parts, left), *legend_traces(legend)]
    return Picture(
        _finding(found, parts),
        f"Roofline of {found.accelerator.name} in {found.precision}: rate over intensity, both "
        "axes logarithmic",
        "Filled: forward, open: backward; the larger, the more time. Element-wise operators stand "
        "where a rough count of their arithmetic puts them; a triangle has none.",
        go.Figure(data=traces, layout=layout),
        legend,
    )


def _finding(found: Anatomy, parts: Sequence[OperatorPart]) -> str:
    ridge = found.accelerator.peak(found.precision) / found.accelerator.memory_bandwidth_Bps
    beyond = [part for part in parts if part.forward.flops > ridge * part.forward.bytes]
    if not beyond:
        return f"No operator lies beyond the ridge at {ridge:,.3g} FLOP per byte"
    done = sum(part.forward.flops + part.backward.flops for part in beyond)
    took = sum(part.forward.seconds + part.backward.seconds for part in beyond)
    reached = percent(done / took / found.accelerator.peak(found.precision))
    count = f"all {len(beyond)}" if len(beyond) == len(parts) else f"{len(beyond)} of {len(parts)}"
    lie, reach = ("lie", "reach") if len(beyond) > 1 else ("lies", "reaches")
    return (
        f"{capital(count)} operators {lie} beyond the ridge at {ridge:,.3g} FLOP "
        f"per byte and {reach} {reached} of the peak"
    )


def _points(found: Anatomy, parts: Sequence[OperatorPart], left: float) -> list[dict[str, Any]]:
    longest = max(each.seconds for part in parts for each in (part.forward, part.backward))
    made = []
    for backward, title in enumerate(("forward", "backward")):
        drawn = [(part, part.backward if backward else part.forward) for part in parts]
        sizes = [
            _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt(each.seconds / longest)
            for _, each in drawn
        ]
        colours = [BOUND_COLOURS[part.bound] for part, _ in drawn]
        made.append(
            {
                "type": "scatter",
                "mode": "markers",
                "showlegend": False,
                "x": [each.drawn_flops / each.bytes or left for _, each in drawn],
                "y": [_rate(each, left) for _, each in drawn],
                "marker": {
                    "color": colours,
                    "size": sizes,
                    "opacity": 0.85,
                    "symbol": [_symbol(each, bool(backward)) for _, each in drawn],
                    "line": {"width": 1.6 if backward else 0.6, "color": colours},
                },
                "cliponaxis": False,
                "customdata": [_words(part, each, title) for part, each in drawn],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    return made


def _words(part: OperatorPart, each: OperatorPass, title: str) -> str:
    lines = list(each.words)
    if not each.flops and each.drawn_flops:
        flops = humanise(each.drawn_flops, "FLOP")
        lines.append(f"arithmetic, roughly: {flops} = {each.drawn_flops / each.bytes:.3g} FLOP/B")
    if each.drawn_flops:
        rate = humanise(each.drawn_flops / each.seconds, "FLOP/s")
        took = humanise_seconds(each.seconds)
        lines.append(f"rate: {humanise(each.drawn_flops, 'FLOP')} / {took} = {rate}")
    else:
        lines.append("no arithmetic: intensity 0, left of the picture")
    return hover_text(f"{part.name}, {title}", lines)


def _symbol(each: OperatorPass, backward: bool) -> str:
    shape = "circle" if each.drawn_flops else "triangle-left"
    return f"{shape}-open" if backward else shape


def _rate(each: OperatorPass, left: float) -> float:
    """FLOP/s; of a pass without arithmetic those that its bytes had at the left edge."""
    return (each.drawn_flops or left * each.bytes) / each.seconds


def _roofs(found: Anatomy, left: float, right: float) -> list[dict[str, Any]]:
    device = found.accelerator
    copies = device.memory_bandwidth_Bps * device.family.memory_efficiency
    peak = device.peak(found.precision)
    products, attention = (_reached(found, unit) for unit in _UNITS)
    return [
        _roof(left, right, device.memory_bandwidth_Bps, peak, MUTED, "solid", 1.8),
        _roof(left, right, copies, products, LIMIT, "dash", 1.3),
        _roof(left, right, copies, attention, LIMIT, "dot", 1.3, flat=True),
    ]


def _reached(found: Anatomy, unit: Unit) -> float:
    """FLOP/s of large kernels of a unit."""
    kernel = Kernel(unit, 0.0, 0.0)
    used = compute_precision(kernel, found.accelerator, found.precision)
    return found.accelerator.matmul_peak(used) * reached(kernel, found.accelerator)


def _roof(
    left: float,
    right: float,
    slope: float,
    top: float,
    colour: str,
    dash: str,
    width: float,
    *,
    flat: bool = False,
) -> dict[str, Any]:
    ridge = top / slope
    x = [ridge, right] if flat else [left, ridge, right]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": [min(top, slope * at) for at in x],
        "line": {"color": colour, "dash": dash, "width": width},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _labels(found: Anatomy, left: float) -> list[dict[str, Any]]:
    family, bandwidth = found.accelerator.family, found.accelerator.memory_bandwidth_Bps
    peak = found.accelerator.peak(found.precision)
    products, attention = (_reached(found, unit) / peak for unit in _UNITS)
    common = {"showarrow": False, "font": {"size": 12}}
    top = (
        f"{humanise(peak, 'FLOP/s')}; products reach {percent(products)} (dashed), "
        f"attention {percent(attention)} (dotted)"
    )
    slope = f"{humanise_rate(bandwidth)}; copies reach {percent(family.memory_efficiency)} (dashed)"
    return [
        common
        | {
            "text": top,
            "xref": "paper",
            "x": 1.0,
            "xanchor": "right",
            "y": math.log10(peak),
            "yanchor": "bottom",
            "yshift": 3,
        },
        common
        | {
            "text": slope,
            "x": math.log10(left * 1.4),
            "xanchor": "left",
            "y": math.log10(left * 1.4 * bandwidth * family.memory_efficiency),
            "yanchor": "top",
            "yshift": -12,
        },
    ]


def _names(parts: Sequence[OperatorPart], low: float, high: float) -> list[dict[str, Any]]:
    """Names of the longest operators with arithmetic, below their points of the forward pass.

    The further left, the lower: a name reaches right from its leader, under all leaders there.
    """
    whole = sum(part.seconds for part in parts)
    counted = [part for part in parts if part.forward.flops and part.seconds > _NAMED_FROM * whole]
    named = sorted(counted, key=lambda part: part.seconds, reverse=True)[:_NAMED]
    if not named:
        return []
    named.sort(key=lambda part: part.forward.flops / part.forward.bytes, reverse=True)
    pixel = math.log10(high / low) / (_HEIGHT - _MARGIN[2] - _MARGIN[3])
    lowest = min(math.log10(part.forward.flops / part.forward.seconds) for part in named)
    return [
        {
            "x": math.log10(part.forward.flops / part.forward.bytes),
            "y": math.log10(part.forward.flops / part.forward.seconds),
            "text": short_name(part.name),
            "xanchor": "left",
            "ax": math.log10(part.forward.flops / part.forward.bytes),
            "axref": "x",
            "ay": lowest - pixel * (32 + 18 * depth),
            "ayref": "y",
            "showarrow": True,
            "arrowhead": 0,
            "arrowwidth": 0.8,
            "arrowcolor": MUTED,
            "standoff": 8,
            "font": {"size": 12.5},
        }
        for depth, part in enumerate(named)
    ]


def _axis(title: str, low: float, high: float) -> dict[str, Any]:
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return value_axis(title) | {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": [10.0**power for power in powers],
        "ticktext": [_power(power) for power in powers],
        "gridcolor": FAINT,
        "ticks": "outside",
        "ticklen": 5,
        "tickcolor": "rgba(0, 0, 0, 0)",
    }


def _power(power: int) -> str:
    """A round power of ten: ``100 T``."""
    if power < 3:
        return f"{10.0**power:g}"
    prefix = ("", "k", "M", "G", "T", "P", "E")[power // 3]
    return f"{10 ** (power % 3)} {prefix}".strip()
