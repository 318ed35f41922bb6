"""A collective against message size: its time and its bus bandwidth, on the same axis."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from nest_core.calibration.collectives.sweep import CollectiveSweep, Measured
from nest_core.documents.units import GB, humanise, humanise_bytes, humanise_rate, humanise_seconds
from nest_core.network import FloatArray
from nest_core.report.figures.style import (
    ACCENT,
    LIMIT,
    TIME_COLOURS,
    Chart,
    Legend,
    Trace,
    curve,
    dots,
    note,
    plot,
    value_axis,
)

__all__ = [
    "bandwidth_figure",
    "half_peak_bytes",
    "size_axis",
    "size_label",
    "time_axis",
    "time_figure",
    "without_noughts",
]

MEASURED = TIME_COLOURS["communication"]
_SIZE = (330, (64, 16, 8, 44))
"""Height and margin."""
_TICKS = range(12, 33, 4)
_ENDS = [np.log10(2.0**12) - 0.05, np.log10(2.0**32) + 0.05]
_TEXT = "%{text}<extra></extra>"


def time_figure(sweep: CollectiveSweep, measured: Measured | None = None) -> Chart:
    """Draw seconds against bytes, both logarithmic."""
    traces = [_bound(sweep.size_bytes, sweep.bound_s), _curve(sweep, sweep.seconds)]
    drawn = [sweep.seconds, sweep.bound_s[sweep.bound_s > sweep.seconds.min() / 4]]
    if measured is not None:
        traces.append(_points(measured, measured.seconds, map(humanise_seconds, measured.seconds)))
        drawn.append(measured.seconds)
    seconds = np.concatenate(drawn)
    lowest, highest = float(seconds.min()), float(seconds.max())
    return Chart(
        _time_finding(sweep, measured),
        f"Time of {_what(sweep)}, both axes logarithmic",
        "Flat: latency sets the time; parallel to the dashed line: bandwidth does.",
        plot(
            traces,
            *_SIZE,
            xaxis=size_axis("message size", _TICKS) | {"range": _ENDS},
            yaxis=time_axis(lowest, highest)
            | {"range": [np.log10(lowest) - 0.15, np.log10(highest) + 0.15]},
        ),
        _legend(sweep, measured),
    )


def bandwidth_figure(sweep: CollectiveSweep, measured: Measured | None = None) -> Chart:
    """Draw bus bandwidth against bytes, linear against logarithmic."""
    bus, bound = sweep.bus_Bps / GB, sweep.bound_Bps / GB
    traces = [_bound(sweep.size_bytes[[0, -1]], np.array([bound, bound])), _curve(sweep, bus)]
    top = max(bound, float(bus.max()))
    if measured is not None:
        reached = sweep.bus_of(measured.size_bytes, measured.seconds) / GB
        traces.append(_points(measured, reached, (f"{humanise(rate)} GB/s" for rate in reached)))
        top = max(top, float(reached.max()))
    label = note(
        f"the links allow {humanise_rate(sweep.bound_Bps)}",
        np.log10(sweep.size_bytes[0]),
        bound,
        xanchor="left",
        yanchor="bottom",
        font={"color": LIMIT, "size": 12},
    )
    return Chart(
        _bandwidth_finding(sweep),
        f"Bus bandwidth of {_what(sweep)}, one way per device",
        "Bus bandwidth is what every device moves, so it can be held against its port; the "
        "dashed line is what the links allow the best algorithm.",
        plot(
            traces,
            *_SIZE,
            xaxis=size_axis("message size", _TICKS) | {"range": _ENDS},
            yaxis=value_axis("bus bandwidth, GB/s", range=[0, top * 1.14]),
            annotations=[label],
        ),
        _legend(sweep, measured),
    )


def half_peak_bytes(sweep: CollectiveSweep) -> float | None:
    """Return the smallest message at half of the bound; None where none gets there."""
    share = sweep.bus_Bps / sweep.bound_Bps
    reaches = np.flatnonzero(share >= 0.5)
    if not len(reaches):
        return None
    at = int(reaches[0])
    if at == 0:
        return float(sweep.size_bytes[0])
    part = (0.5 - share[at - 1]) / (share[at] - share[at - 1])
    low, high = np.log(sweep.size_bytes[at - 1 : at + 1])
    return float(np.exp(low + part * (high - low)))


def _what(sweep: CollectiveSweep) -> str:
    where = ("", " in one node")[sweep.nodes] if sweep.nodes < 2 else f" in {sweep.nodes:,} nodes"
    return f"one {sweep.op.replace('_', '-')} among {sweep.devices:,} devices{where}"


def _bandwidth_finding(sweep: CollectiveSweep) -> str:
    half, peak = half_peak_bytes(sweep), humanise_rate(sweep.bound_Bps)
    if half is None:
        best = int(np.argmax(sweep.bus_Bps))
        part = sweep.bus_Bps[best] / sweep.bound_Bps
        size = size_label(sweep.size_bytes[best])
        return f"Even {size} reach only {100 * part:.3g} % of the peak of {peak}"
    if half <= sweep.size_bytes[0]:
        return f"Messages of {size_label(half)} and more reach over half of {peak}"
    return f"Half of the peak bus bandwidth is reached at {humanise_bytes(half)}"


def _time_finding(sweep: CollectiveSweep, measured: Measured | None) -> str:
    if measured is None:
        first, last = (humanise_seconds(sweep.seconds[end]) for end in (0, -1))
        small, large = (size_label(sweep.size_bytes[end]) for end in (0, -1))
        return f"From {first} for {small} to {last} for {large}"
    # Our curve at the measured sizes, interpolated on logarithms.
    places = np.log(measured.size_bytes), np.log(sweep.size_bytes)
    ratio = measured.seconds / np.exp(np.interp(*places, np.log(sweep.seconds)))
    worst, middle = float(np.abs(ratio - 1).max()), float(np.median(np.abs(ratio - 1)))
    if worst < 0.5:
        return (
            f"Measured runs differ by {100 * middle:.2g} % in the median, "
            f"{100 * worst:.2g} % at worst"
        )
    return f"Measured runs take {ratio.min():.3g} to {ratio.max():.3g} times as long"


def _curve(sweep: CollectiveSweep, values: FloatArray) -> Trace:
    texts = [
        f"{humanise_bytes(size)}: {humanise_seconds(time)}, {humanise_rate(rate)}<br>{name}"
        for size, time, rate, name in zip(
            sweep.size_bytes, sweep.seconds, sweep.bus_Bps, sweep.algorithms, strict=True
        )
    ]
    return curve(
        sweep.size_bytes,
        values,
        ACCENT,
        2.5,
        name="our model",
        **{"text": texts, "hovertemplate": _TEXT},
    )


def _bound(size_bytes: FloatArray, values: FloatArray) -> Trace:
    return curve(
        size_bytes,
        values,
        LIMIT,
        1.5,
        name="bound of the links",
        hoverinfo="skip",
        line={"dash": "dash"},
    )


def _points(measured: Measured, values: FloatArray, texts: Iterable[str]) -> Trace:
    return dots(
        measured.size_bytes,
        values,
        {"color": MEASURED, "size": 7, "symbol": "circle-open", "line": {"width": 1.8}},
        name="measured",
        cliponaxis=False,
        text=[
            f"{humanise_bytes(size)}: {text} measured"
            for size, text in zip(measured.size_bytes, texts, strict=True)
        ],
        hovertemplate=_TEXT,
    )


def size_axis(title: str, powers: Sequence[int]) -> Trace:
    """Return a logarithmic axis of bytes with ticks at powers of two."""
    return value_axis(
        title,
        type="log",
        tickvals=[2.0**power for power in powers],
        ticktext=[size_label(2.0**power) for power in powers],
        # Invisible ticks keep the labels clear of those of the other axis.
        ticks="outside",
        ticklen=6,
        tickcolor="rgba(0, 0, 0, 0)",
    )


def time_axis(lowest: float, highest: float) -> Trace:
    """Return a logarithmic axis of seconds with a tick per decade."""
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    ticks = [10.0**power for power in range(first, last + 1)]
    return value_axis(
        "time",
        type="log",
        tickvals=ticks,
        ticktext=[without_noughts(humanise_seconds(tick)) for tick in ticks],
    )


def size_label(size_bytes: float) -> str:
    """Return a round size without its noughts: ``4 KiB``."""
    return without_noughts(humanise_bytes(size_bytes))


def without_noughts(text: str) -> str:
    """Return a figure with its unit, rounded as far as that changes nothing: ``10 ms``."""
    value, unit = text.split()
    return f"{float(value.replace(',', '')):g} {unit}"


def _legend(sweep: CollectiveSweep, measured: Measured | None) -> Legend:
    names = ", ".join(dict.fromkeys(sweep.algorithms)).replace("_", " ")
    legend = ((f"our model: {names}", ACCENT), ("bound of the links", LIMIT))
    return (
        legend if measured is None else (*legend, (f"measured, {measured.accelerator}", MEASURED))
    )
