"""The roofline of a layer: FLOP/s against FLOP per byte, one point per operator and pass."""

import math
from collections.abc import Iterator, Sequence

from nest_core.costs.anatomy import Anatomy, OperatorPart, OperatorPass
from nest_core.documents.units import capital, humanise, humanise_rate, humanise_seconds, percent
from nest_core.hardware.estimator import compute_precision, reached
from nest_core.report.figures.operators import (
    BOUND_COLOURS,
    bound_legend,
    hover_text,
    legend_traces,
    short_name,
)
from nest_core.report.figures.style import (
    LIMIT,
    MUTED,
    SILENT,
    Chart,
    Trace,
    curve,
    dots,
    note,
    plot,
    pointed,
    value_axis,
)
from nest_core.workload import Kernel

__all__ = ["roofline_figure"]

_HEIGHT = 440
_MARGIN = (64, 16, 30, 52)
_MIN_SIZE, _MAX_SIZE = 7.0, 20.0
_LEFTMOST = 0.05
_NAMED, _NAMED_FROM = 7, 0.02


def roofline_figure(anatomy: Anatomy) -> Chart:
    """Draw every operator under the roofs of its accelerator, both axes logarithmic.

    Solid are the data sheet's roofs, dashed what the family's large products and copies reach,
    dotted what fused attention reaches. Element-wise operators are placed by a rough count of
    their arithmetic; what has none stands at the left edge.
    """
    parts = [part for part in anatomy.parts if part.runs]
    passes = [run for part in parts for run in (part.forward, part.backward)]
    intensities = [run.drawn_flops / run.bytes for run in passes if run.drawn_flops]
    device = anatomy.accelerator
    peak, bandwidth = device.peak(anatomy.precision), device.memory_bandwidth_Bps
    x0 = min([_LEFTMOST, *(0.5 * value for value in intensities)])
    x1 = max([100.0 * peak / bandwidth / 10.0, *(4.0 * value for value in intensities)])
    low, high = min([*(_rate(run, x0) for run in passes), x0 * bandwidth]) / 2.5, 1.9 * peak
    copies = bandwidth * device.family.memory_efficiency
    products, attention = (
        device.matmul_peak(compute_precision(kernel, device, anatomy.precision))
        * reached(kernel, device)
        for kernel in (Kernel("gemm", 0.0, 0.0), Kernel("attention", 0.0, 0.0))
    )
    slope_at = x0 * 1.4
    notes = [
        note(
            f"{humanise(peak, 'FLOP/s')}; products reach {percent(products / peak)} (dashed), "
            f"attention {percent(attention / peak)} (dotted)",
            1.0,
            math.log10(peak),
            xref="paper",
            xanchor="right",
            yanchor="bottom",
            yshift=3,
        ),
        note(
            f"{humanise_rate(bandwidth)}; copies reach "
            f"{percent(device.family.memory_efficiency)} (dashed)",
            math.log10(slope_at),
            math.log10(slope_at * copies),
            xanchor="left",
            yanchor="top",
            yshift=-12,
        ),
        *_names(parts, math.log10(high / low)),
    ]
    legend = bound_legend(parts)
    return Chart(
        _finding(anatomy, parts),
        f"Roofline of {device.name} in {anatomy.precision}: rate over intensity, both "
        "axes logarithmic",
        "Filled: forward, open: backward; the larger, the more time. Element-wise operators stand "
        "where a rough count of their arithmetic puts them; a triangle has none.",
        plot(
            [
                _roof([x0, peak / bandwidth, x1], bandwidth, peak, MUTED, "solid", 1.8),
                _roof([x0, products / copies, x1], copies, products, LIMIT, "dash"),
                _roof([attention / copies, x1], copies, attention, LIMIT, "dot"),
                *_points(parts, x0),
                *legend_traces(legend),
            ],
            _HEIGHT,
            _MARGIN,
            xaxis=_axis("intensity, FLOP per byte", x0, x1),
            yaxis=_axis("rate, FLOP/s", low, high),
            annotations=notes,
            hoverlabel={"align": "left", "font": {"size": 12}},
        ),
        legend,
    )


def _finding(anatomy: Anatomy, parts: Sequence[OperatorPart]) -> str:
    peak = anatomy.accelerator.peak(anatomy.precision)
    ridge = peak / anatomy.accelerator.memory_bandwidth_Bps
    beyond = [part for part in parts if part.forward.flops > ridge * part.forward.bytes]
    if not beyond:
        return f"No operator lies beyond the ridge at {ridge:,.3g} FLOP per byte"
    done = sum(part.forward.flops + part.backward.flops for part in beyond)
    took = sum(part.forward.seconds + part.backward.seconds for part in beyond)
    count = f"all {len(beyond)}" if len(beyond) == len(parts) else f"{len(beyond)} of {len(parts)}"
    lie, reach = ("lie", "reach") if len(beyond) > 1 else ("lies", "reaches")
    return (
        f"{capital(count)} operators {lie} beyond the ridge at {ridge:,.3g} FLOP "
        f"per byte and {reach} {percent(done / took / peak)} of the peak"
    )


def _points(parts: Sequence[OperatorPart], x0: float) -> Iterator[Trace]:
    longest = max(run.seconds for part in parts for run in (part.forward, part.backward))
    colours = [BOUND_COLOURS[part.bound] for part in parts]
    for title, ending, width in (("forward", "", 0.6), ("backward", "-open", 1.6)):
        runs: list[OperatorPass] = [getattr(part, title) for part in parts]
        shapes = ["circle" if run.drawn_flops else "triangle-left" for run in runs]
        marker = {
            "color": colours,
            "size": [
                _MIN_SIZE + (_MAX_SIZE - _MIN_SIZE) * math.sqrt(run.seconds / longest)
                for run in runs
            ],
            "opacity": 0.85,
            "symbol": [shape + ending for shape in shapes],
            "line": {"width": width, "color": colours},
        }
        yield dots(
            [run.drawn_flops / run.bytes or x0 for run in runs],
            [_rate(run, x0) for run in runs],
            marker,
            showlegend=False,
            cliponaxis=False,
            **pointed(
                hover_text(f"{part.name}, {title}", _words(run))
                for part, run in zip(parts, runs, strict=True)
            ),
        )


def _words(run: OperatorPass) -> list[str]:
    if not run.drawn_flops:
        return [*run.words, "no arithmetic: intensity 0, left of the picture"]
    lines, flops = list(run.words), humanise(run.drawn_flops, "FLOP")
    if not run.flops:
        lines.append(f"arithmetic, roughly: {flops} = {run.drawn_flops / run.bytes:.3g} FLOP/B")
    rate = humanise(run.drawn_flops / run.seconds, "FLOP/s")
    return [*lines, f"rate: {flops} / {humanise_seconds(run.seconds)} = {rate}"]


def _rate(run: OperatorPass, x0: float) -> float:
    """Return FLOP/s; of a pass without arithmetic those that its bytes had at the left edge."""
    return (run.drawn_flops or x0 * run.bytes) / run.seconds


def _roof(
    x: list[float], slope: float, top: float, colour: str, dash: str, width: float = 1.3
) -> Trace:
    return curve(
        x, [min(top, slope * at) for at in x], colour, width, line={"dash": dash}, **SILENT
    )


def _names(parts: Sequence[OperatorPart], decades: float) -> list[Trace]:
    """Return the longest operators with arithmetic, below their points of the forward pass.

    The further left, the lower: a name reaches right from its leader, under all leaders there.
    """
    total = sum(part.seconds for part in parts)
    counted = [part for part in parts if part.forward.flops and part.seconds > _NAMED_FROM * total]
    longest = sorted(counted, key=lambda part: part.seconds, reverse=True)[:_NAMED]
    places = [
        (
            math.log10(part.forward.flops / part.forward.bytes),
            math.log10(part.forward.flops / part.forward.seconds),
            short_name(part.name),
        )
        for part in sorted(
            longest, key=lambda part: part.forward.flops / part.forward.bytes, reverse=True
        )
    ]
    pixel = decades / (_HEIGHT - _MARGIN[2] - _MARGIN[3])
    lowest = min((y for _, y, _ in places), default=0.0)
    return [
        {
            "x": x,
            "y": y,
            "text": text,
            "xanchor": "left",
            "ax": x,
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
        for depth, (x, y, text) in enumerate(places)
    ]


def _axis(title: str, low: float, high: float) -> Trace:
    ends = [math.log10(low), math.log10(high)]
    powers = range(math.ceil(ends[0]), math.floor(ends[1]) + 1)
    return value_axis(
        title,
        type="log",
        range=ends,
        tickvals=[10.0**power for power in powers],
        ticktext=[
            f"{10 ** (power % 3)} {' kMGTPE'[power // 3]}" if power > 2 else f"{10.0**power:g}"
            for power in powers
        ],
        ticks="outside",
        ticklen=5,
        tickcolor="rgba(0, 0, 0, 0)",
    )
