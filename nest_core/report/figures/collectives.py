"""A collective against message size: its time and its bus bandwidth, on the same axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.calibration.collectives.sweep import CollectiveSweep, Measured
from nest_core.documents.units import GB, humanise, humanise_bytes, humanise_rate, humanise_seconds
from nest_core.network import FloatArray
from nest_core.report.figures.style import (
    ACCENT,
    LIMIT,
    TIME_COLOURS,
    Picture,
    frame,
    note,
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
_HEIGHT = 330
_MARGIN = (64, 16, 8, 44)
_TICKS = range(12, 33, 4)
_ENDS = [np.log10(2.0**12) - 0.05, np.log10(2.0**32) + 0.05]


def time_figure(found: CollectiveSweep, measured: Measured | None = None) -> Picture:
    """Seconds against bytes, both logarithmic."""
    traces = [
        _bound(found.size_bytes, found.bound_s),
        _curve(found, found.seconds),
    ]
    lowest, highest = _range(found.seconds, found.bound_s[found.bound_s > found.seconds.min() / 4])
    if measured is not None:
        traces.append(_points(measured, measured.seconds, _time_texts(measured)))
        lowest, highest = _range(np.array([lowest, highest]), measured.seconds)
    layout = frame(
        _HEIGHT,
        _MARGIN,
        xaxis=size_axis("message size", _TICKS) | {"range": _ENDS},
        yaxis=time_axis(lowest, highest)
        | {"range": [np.log10(lowest) - 0.15, np.log10(highest) + 0.15]},
    )
    return Picture(
        _time_finding(found, measured),
        f"Time of {_what(found)}, both axes logarithmic",
        "Flat: latency sets the time; parallel to the dashed line: bandwidth does.",
        go.Figure(data=traces, layout=layout),
        _legend(found, measured),
    )


def bandwidth_figure(found: CollectiveSweep, measured: Measured | None = None) -> Picture:
    """Bus bandwidth against bytes, linear against logarithmic."""
    bus = found.bus_Bps / GB
    bound = found.bound_Bps / GB
    traces = [
        _bound(found.size_bytes[[0, -1]], np.array([bound, bound])),
        _curve(found, bus),
    ]
    top = max(bound, float(bus.max()))
    if measured is not None:
        reached = found.bus_of(measured.size_bytes, measured.seconds) / GB
        texts = [
            f"{humanise_bytes(size)}: {humanise(value)} GB/s measured"
            for size, value in zip(measured.size_bytes, reached, strict=True)
        ]
        traces.append(_points(measured, reached, texts))
        top = max(top, float(reached.max()))
    layout = frame(
        _HEIGHT,
        _MARGIN,
        xaxis=size_axis("message size", _TICKS) | {"range": _ENDS},
        yaxis=value_axis("bus bandwidth, GB/s") | {"range": [0, top * 1.14]},
        annotations=[_bound_label(found)],
    )
    return Picture(
        _bandwidth_finding(found),
        f"Bus bandwidth of {_what(found)}, one way per device",
        "Bus bandwidth is what every device moves, so it can be held against its port; the "
        "dashed line is what the links allow the best algorithm.",
        go.Figure(data=traces, layout=layout),
        _legend(found, measured),
    )


def half_peak_bytes(found: CollectiveSweep) -> float | None:
    """Smallest message at half of the bound; None where none of the sweep gets there."""
    share = found.bus_Bps / found.bound_Bps
    reaches = np.flatnonzero(share >= 0.5)
    if not len(reaches):
        return None
    at = int(reaches[0])
    if at == 0:
        return float(found.size_bytes[0])
    part = (0.5 - share[at - 1]) / (share[at] - share[at - 1])
    low, high = np.log(found.size_bytes[at - 1 : at + 1])
    return float(np.exp(low + part * (high - low)))


def _what(found: CollectiveSweep) -> str:
    among = f"{found.devices:,} devices"
    where = ("", " in one node")[found.nodes] if found.nodes < 2 else f" in {found.nodes:,} nodes"
    return f"one {found.op.replace('_', '-')} among {among}{where}"


def _bandwidth_finding(found: CollectiveSweep) -> str:
    half = half_peak_bytes(found)
    peak = humanise_rate(found.bound_Bps)
    if half is None:
        best = int(np.argmax(found.bus_Bps))
        part = found.bus_Bps[best] / found.bound_Bps
        size = size_label(found.size_bytes[best])
        return f"Even {size} reach only {100 * part:.3g} % of the peak of {peak}"
    if half <= found.size_bytes[0]:
        return f"Messages of {size_label(half)} and more reach over half of {peak}"
    return f"Half of the peak bus bandwidth is reached at {humanise_bytes(half)}"


def _time_finding(found: CollectiveSweep, measured: Measured | None) -> str:
    if measured is None:
        first, last = (humanise_seconds(found.seconds[end]) for end in (0, -1))
        small, large = (size_label(found.size_bytes[end]) for end in (0, -1))
        return f"From {first} for {small} to {last} for {large}"
    ratio = measured.seconds / _at(found, measured.size_bytes)
    worst, middle = float(np.abs(ratio - 1).max()), float(np.median(np.abs(ratio - 1)))
    if worst < 0.5:
        apart = f"{100 * middle:.2g} % in the median, {100 * worst:.2g} % at worst"
        return f"Measured runs differ by {apart}"
    return f"Measured runs take {ratio.min():.3g} to {ratio.max():.3g} times as long"


def _at(found: CollectiveSweep, size_bytes: FloatArray) -> FloatArray:
    """Our curve at other sizes, interpolated on logarithms."""
    return np.asarray(
        np.exp(np.interp(np.log(size_bytes), np.log(found.size_bytes), np.log(found.seconds)))
    )


def _curve(found: CollectiveSweep, values: FloatArray) -> dict[str, Any]:
    texts = [
        f"{humanise_bytes(size)}: {humanise_seconds(time)}, {humanise_rate(rate)}<br>{name}"
        for size, time, rate, name in zip(
            found.size_bytes, found.seconds, found.bus_Bps, found.algorithms, strict=True
        )
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "our model",
        "x": found.size_bytes,
        "y": values,
        "line": {"color": ACCENT, "width": 2.5},
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
    }


def _bound(size_bytes: FloatArray, values: FloatArray) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "bound of the links",
        "x": size_bytes,
        "y": values,
        "line": {"color": LIMIT, "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }


def _points(measured: Measured, values: FloatArray, texts: list[str]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "x": measured.size_bytes,
        "y": values,
        "marker": {"color": MEASURED, "size": 7, "symbol": "circle-open", "line": {"width": 1.8}},
        "cliponaxis": False,
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
    }


def _time_texts(measured: Measured) -> list[str]:
    return [
        f"{humanise_bytes(size)}: {humanise_seconds(time)} measured"
        for size, time in zip(measured.size_bytes, measured.seconds, strict=True)
    ]


def _bound_label(found: CollectiveSweep) -> dict[str, Any]:
    return note(
        f"the links allow {humanise_rate(found.bound_Bps)}",
        np.log10(found.size_bytes[0]),
        found.bound_Bps / GB,
        xanchor="left",
        yanchor="bottom",
        font={"color": LIMIT, "size": 12},
    )


def size_axis(title: str, powers: Sequence[int]) -> dict[str, Any]:
    """A logarithmic axis of bytes with ticks at powers of two."""
    return value_axis(title) | {
        "type": "log",
        "tickvals": [2.0**power for power in powers],
        "ticktext": [size_label(2.0**power) for power in powers],
        # Invisible ticks keep the labels clear of those of the other axis.
        "ticks": "outside",
        "ticklen": 6,
        "tickcolor": "rgba(0, 0, 0, 0)",
    }


def time_axis(lowest: float, highest: float) -> dict[str, Any]:
    """A logarithmic axis of seconds with a tick per decade."""
    decades = range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
    return value_axis("time") | {
        "type": "log",
        "tickvals": [10.0**power for power in decades],
        "ticktext": [without_noughts(humanise_seconds(10.0**power)) for power in decades],
    }


def size_label(size_bytes: float) -> str:
    """A round size without its noughts: ``4 KiB``."""
    return without_noughts(humanise_bytes(size_bytes))


def without_noughts(text: str) -> str:
    """A figure with its unit, rounded as far as that changes nothing: ``10 ms``."""
    value, unit = text.split()
    return f"{float(value.replace(',', '')):g} {unit}"


def _range(*values: FloatArray) -> tuple[float, float]:
    every = np.concatenate(values)
    return float(every.min()), float(every.max())


def _legend(found: CollectiveSweep, measured: Measured | None) -> tuple[tuple[str, str], ...]:
    names = ", ".join(dict.fromkeys(found.algorithms)).replace("_", " ")
    shown = ((f"our model: {names}", ACCENT), ("bound of the links", LIMIT))
    if measured is None:
        return shown
    return (*shown, (f"measured, {measured.accelerator}", MEASURED))
