"""What a sweep over fabrics says about size and price: scaling against ideal, and a Pareto set."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from nest_core.documents.units import capital, format_money, percent
from nest_core.report.figures.style import ACCENT, FAINT, MUTED, Picture, axis_unit, frame
from nest_core.report.figures.sweep_parts import band, hover, parameter_axis, places, rate_unit
from nest_core.studies.rows import StudyRow
from nest_core.studies.sweeps import Sweep

__all__ = ["pareto_picture", "pareto_set", "scaling_picture"]

_HEIGHT = 380
_KEPT = 0.98
_MOST_LABELLED = 9


def scaling_picture(sweep: Sweep) -> Picture | None:
    """Throughput against ideal scaling from the smallest fabric with a plan.

    None unless the one parameter is the number of devices, and two of them have a plan.
    """
    feasible = [point for point in sweep.points if point.feasible and point.devices]
    if sweep.x.key != "devices" or sweep.y is not None or len(feasible) < 2:
        return None
    first, last = feasible[0], feasible[-1]
    at = dict(zip(sweep.x.values, places(sweep.x), strict=True))
    scale, unit = rate_unit(sweep)
    x = [at[point.values[0]] for point in feasible]
    rates = [(point.tokens_per_s or 0.0) / scale for point in feasible]
    ideal = [rates[0] * (point.devices or 1) / (first.devices or 1) for point in feasible]
    parts = [rate / best for rate, best in zip(rates, ideal, strict=True)]
    ends = [math.log10(min(rates)) - 0.15, math.log10(max(ideal)) + 0.2]
    layout = frame(
        _HEIGHT,
        (62, 16, 14, 58),
        xaxis=parameter_axis(sweep.x, list(at.values()), 0.3),
        yaxis={
            "type": "log",
            "range": ends,
            "gridcolor": FAINT,
            "gridwidth": 0.5,
            "fixedrange": True,
            "dtick": "D2" if ends[1] - ends[0] < 1.5 else 1,
            "tickformat": "~g",
            "title": {"text": f"throughput, {unit}", "standoff": 8, "font": {"size": 12}},
        },
        annotations=[
            {
                "text": f"{100 * part:.0f} %",
                "x": place,
                "y": math.log10(rate),
                "yshift": -16,
                "showarrow": False,
            }
            for place, rate, part in zip(x, rates, parts, strict=True)
        ],
    )
    data = [
        *band(x, feasible, scale, 0.1),
        {
            "type": "scatter",
            "mode": "lines",
            "name": "ideal",
            "x": x,
            "y": ideal,
            "hoverinfo": "skip",
            "line": {"color": MUTED, "dash": "dash"},
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "planned",
            "x": x,
            "y": rates,
            "line": {"color": ACCENT, "width": 2},
            "marker": {"size": 8, "color": ACCENT},
            "hovertext": [hover(sweep, point) for point in feasible],
            "hovertemplate": "%{hovertext}<extra></extra>",
        },
    ]
    return Picture(
        f"From {first.devices:,} to {last.devices:,} devices throughput grows "
        f"{rates[-1] / rates[0]:.3g}-fold: {percent(parts[-1])} of ideal",
        f"Throughput against ideal scaling from {first.devices:,} devices; {unit}",
        "Percentages are of ideal. The global batch stays, so each replica gets less to do.",
        go.Figure(data=data, layout=layout),
        (("planned", ACCENT), ("ideal", MUTED)),
    )


def pareto_set(points: list[StudyRow]) -> list[StudyRow]:
    """Those that no other beats in price and throughput both, cheapest first."""
    best, found = 0.0, []
    for point in sorted(points, key=lambda p: (p.network_usd or 0.0, -(p.tokens_per_s or 0.0))):
        if (point.tokens_per_s or 0.0) > best:
            best = point.tokens_per_s or 0.0
            found.append(point)
    return found


def pareto_picture(sweep: Sweep) -> Picture | None:
    """Throughput against the network's price; None unless a parameter changes the price alone.

    Fabrics of different sizes do different work and are not compared.
    """
    priced = [point for point in sweep.points if point.feasible and point.network_usd]
    wanted = {axis.key for axis in sweep.axes if axis.fabric}
    if not wanted or "devices" in wanted or len({point.network_usd for point in priced}) < 2:
        return None
    kept = pareto_set(priced)
    scale, unit = rate_unit(sweep)
    largest = max(point.network_usd or 0.0 for point in priced)
    money, currency = axis_unit(largest, "$")

    def where(point: StudyRow) -> tuple[float, float]:
        return (point.network_usd or 0.0) / money, (point.tokens_per_s or 0.0) / scale

    dots = [where(point) for point in priced]
    line = [where(point) for point in kept]
    layout = frame(
        _HEIGHT,
        (62, 16, 14, 50),
        xaxis=_axis(f"price of the network, {currency}", [x for x, _ in dots]),
        yaxis=_axis(f"throughput, {unit}", [y for _, y in dots]),
        annotations=[
            {
                "text": _short(sweep, point),
                "x": x,
                "y": y,
                "yshift": 13,
                "showarrow": False,
                "font": {"size": 12},
            }
            for point, (x, y) in zip(kept, line, strict=True)
        ]
        if len(kept) <= _MOST_LABELLED
        else [],
    )
    chosen = [point in kept for point in priced]
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Pareto set",
            "x": [x for x, _ in line],
            "y": [y for _, y in line],
            "hoverinfo": "skip",
            "line": {"color": ACCENT, "width": 1.5, "shape": "hv"},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "showlegend": False,
            "x": [x for x, _ in dots],
            "y": [y for _, y in dots],
            "marker": {
                "opacity": 1.0,
                "size": [10 if is_kept else 8 for is_kept in chosen],
                "color": [ACCENT if is_kept else MUTED for is_kept in chosen],
            },
            "hovertext": [hover(sweep, point) for point in priced],
            "hovertemplate": "%{hovertext}<extra></extra>",
        },
    ]
    return Picture(
        _finding(sweep, kept),
        f"Throughput against the price of the network; {unit}, {currency}",
        "Blue points are the Pareto set: none is both cheaper and faster. Axes do not start at 0.",
        go.Figure(data=data, layout=layout),
        (("Pareto set", ACCENT), ("beaten", MUTED)),
    )


def _axis(title: str, values: list[float]) -> dict[str, object]:
    low, high = min(values), max(values)
    room = 0.12 * (high - low) or 0.1 * high
    return {
        "title": {"text": title, "standoff": 6, "font": {"size": 12}},
        "range": [max(0.0, low - room), high + 1.3 * room],
        "gridcolor": FAINT,
        "gridwidth": 0.5,
        "zeroline": False,
        "nticks": 6,
        "fixedrange": True,
    }


def _short(sweep: Sweep, point: StudyRow) -> str:
    pairs = zip(sweep.axes, point.values, strict=True)
    return ", ".join(axis.words(value) for axis, value in pairs)


def _finding(sweep: Sweep, kept: list[StudyRow]) -> str:
    best = kept[-1]
    if len(kept) == 1:
        return f"{capital(sweep.named(best))} is the cheapest and the fastest"
    rate, price = best.tokens_per_s or 1.0, best.network_usd or 1.0
    cheap = next(point for point in kept if (point.tokens_per_s or 0.0) >= _KEPT * rate)
    if cheap is best:
        return f"No cheaper network keeps {100 * _KEPT:.0f} % of the throughput"
    return (
        f"{capital(sweep.named(cheap))} keeps {percent((cheap.tokens_per_s or 0.0) / rate)} of the "
        f"throughput for {format_money(cheap.network_usd or 0.0)} instead of {format_money(price)}"
    )
