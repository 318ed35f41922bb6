"""A study's result: a metric over the first axis, lines for the second, panels for the third."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from nest_core.documents.units import capital, percent
from nest_core.explain import quantity
from nest_core.report.figures.style import FAINT, Picture, empty, frame
from nest_core.studies.parameters import Value
from nest_core.studies.study import Study, StudyAxis

__all__ = ["METRIC_WORDS", "is_better_low", "study_picture"]

METRIC_WORDS = {
    "tokens_per_s": "throughput, tokens/s",
    "iteration_s": "iteration, s",
    "mfu": "MFU",
    "bubble": "bubble, share of the slowest stage's work",
    "memory_GiB": "memory of the fullest stage, GiB",
    "network_usd": "price of the network, $",
    "network_kW": "power of the network, kW",
    "tokens_per_s_per_network_usd": "throughput per dollar of network, tokens/s per $",
    "tokens_per_s_per_network_W": "throughput per watt of network, tokens/s per W",
    "worst_loss": "throughput that the worst failed switch takes, share",
}
"""Metrics as axes have them, with their units."""

_HEIGHT = 380
_LINES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_DASHES = ("solid", "dash", "dot")
_MOST_PANELS = 6
_GAP = 0.03

Row = Mapping[str, Any]


def is_better_low(metric: str) -> bool:
    """Whether less of a metric is better."""
    return not metric.startswith(("tokens_per_s", "mfu"))


def study_picture(study: Study, rows: Sequence[Row], metric: str) -> Picture:
    """Rows of a study as lines; what a fourth axis and others tell apart must be filtered before.

    Points carry the number of their point as ``customdata``.
    """
    known = [row for row in rows if row.get(metric) is not None]
    words = METRIC_WORDS[metric]
    if not known:
        return empty("No point has a plan", capital(words), _HEIGHT, (62, 16, 14, 58))
    x, *others = study.axes
    lines, panels = ([*others[:2], None, None])[:2]
    shown = _present(panels, known)[:_MOST_PANELS]
    top = 1.08 * max(float(row[metric]) for row in known)
    width = (1.0 + _GAP) / len(shown)
    layout: dict[str, Any] = {}
    data: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    numeric = all(isinstance(value, int | float) for value in x.values)
    at = {value: float(value) if numeric else float(n) for n, value in enumerate(x.values)}
    for place, panel in enumerate(shown):
        end = "" if place == 0 else str(place + 1)
        domain = [place * width, min(1.0, (place + 1) * width - _GAP)]
        layout[f"xaxis{end}"] = _across(x, at, numeric, domain, len(shown))
        layout[f"yaxis{end}"] = _up(words if place == 0 else "", top, f"x{end}")
        if panels is not None:
            annotations.append(_head(panels.named(panel), sum(domain) / 2))
        here = [row for row in known if panels is None or row[panels.key] == panel]
        for number, line in enumerate(_present(lines, known)):
            own = [row for row in here if lines is None or row[lines.key] == line]
            data.append(_line(own, x, at, metric, number, lines, line, end))
    legend = (
        tuple(
            (lines.named(line), _LINES[number % len(_LINES)])
            for number, line in enumerate(_present(lines, known))
        )
        if lines is not None
        else ()
    )
    plot = go.Figure(
        data=data,
        layout=frame(_HEIGHT, (72, 16, 28, 58), annotations=annotations, **layout),
    )
    reading = "Every point is planned anew."
    if any(not row["meets"] for row in known):
        reading += " Hollow: misses a constraint."
    if len(_present(panels, known)) > _MOST_PANELS:
        reading += (
            f" The first {_MOST_PANELS} values of {panels.label if panels else ''} are drawn."
        )
    if len(study.axes) > 3:
        reading += " Filter the axes that are not drawn to one value each."
    return Picture(_finding(study, known, metric), capital(words), reading, plot, legend)


def _present(axis: StudyAxis | None, rows: Sequence[Row]) -> list[Value | None]:
    """Values of an axis that rows have, in order; one None without an axis."""
    if axis is None:
        return [None]
    there = {row[axis.key] for row in rows}
    return [value for value in axis.values if value in there]


def _line(
    rows: Sequence[Row],
    x: StudyAxis,
    at: Mapping[Value, float],
    metric: str,
    number: int,
    axis: StudyAxis | None,
    value: Value | None,
    end: str,
) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: at[row[x.key]])
    colour = _LINES[number % len(_LINES)]
    named = f"{axis.named(value)}, " if axis is not None else ""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [at[row[x.key]] for row in ordered],
        "y": [row[metric] for row in ordered],
        "xaxis": f"x{end}",
        "yaxis": f"y{end}",
        "name": named.rstrip(", "),
        "line": {
            "color": colour,
            "width": 2,
            "dash": _DASHES[number // len(_LINES) % len(_DASHES)],
        },
        "marker": {
            "size": 8,
            "color": colour,
            "symbol": ["circle" if row["meets"] else "circle-open" for row in ordered],
        },
        "customdata": [row["point"] for row in ordered],
        "hovertext": [
            f"{named}{x.named(row[x.key])}<br>{_figure(metric, row[metric])}<br>{row['plan']}"
            + (f"<br>{row['reason']}" if row["reason"] else "")
            for row in ordered
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _across(
    axis: StudyAxis,
    at: Mapping[Value, float],
    numeric: bool,
    domain: list[float],
    panels: int,
) -> dict[str, Any]:
    places = list(at.values())
    span = max(places) - min(places) or 1.0
    least = min((b - a for a, b in itertools.pairwise(sorted(places))), default=1.0)
    crowded = len(places) > 12 // panels or (numeric and least < 0.04 * panels * span)
    ticks = (
        {} if numeric and crowded else {"tickvals": places, "ticktext": list(map(axis.words, at))}
    )
    return {
        "domain": domain,
        "title": {"text": axis.title, "standoff": 6, "font": {"size": 12}},
        "range": [min(places) - 0.06 * span, max(places) + 0.06 * span],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "nticks": 6,
        "tickangle": 0 if numeric else -30,
        **ticks,
    }


def _up(title: str, top: float, anchor: str) -> dict[str, Any]:
    return {
        "range": [0.0, top],
        "anchor": anchor,
        "gridcolor": FAINT,
        "gridwidth": 0.5,
        "zeroline": False,
        "fixedrange": True,
        "tickformat": ",.3~s" if top >= 1000 else "~g",
        "showticklabels": bool(title),
        "title": {"text": title, "standoff": 8, "font": {"size": 12}},
    }


def _head(text: str, at: float) -> dict[str, Any]:
    return {
        "text": text,
        "x": at,
        "y": 1.0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
    }


def _figure(metric: str, value: float) -> str:
    """A metric's value with its unit."""
    unit = METRIC_WORDS[metric].partition(", ")[2]
    return percent(value) if unit.startswith("share") or metric == "mfu" else quantity(value, unit)


def _finding(study: Study, rows: Sequence[Row], metric: str) -> str:
    """Where a metric is best, among the points that meet the constraints."""
    allowed = [row for row in rows if row["meets"]]
    if not allowed:
        return "No point meets the constraints"
    pick = min if is_better_low(metric) else max
    best = pick(allowed, key=lambda row: float(row[metric]))
    where = ", ".join(axis.named(best[axis.key]) for axis in study.axes)
    verb = "Least" if is_better_low(metric) else "Most"
    name = METRIC_WORDS[metric].partition(", ")[0]
    return f"{verb} {name}: {_figure(metric, best[metric])} at {where}"
