"""NEST's level-wise program beside the exact search: what it promised, takes, and loses by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

import plotly.graph_objects as go

from nest_core.documents.units import humanise_seconds, signed
from nest_core.planner.baselines import Baseline
from nest_core.report.figures.style import (
    ACCENT,
    LIMIT,
    MUTED,
    Picture,
    axis_unit,
    empty,
    frame,
    note,
    rows_axis,
    value_axis,
)

__all__ = ["CAUSES", "fall_figure", "waterfall_figure"]

CAUSES = {
    "schedule": "schedule: 1F1B alone",
    "memory_rule": "memory rule",
    "objective": "objective",
    "levels": "levels: not links",
    "widths": "widths: unequal",
}
"""Terms of a waterfall in the order in which they are drawn, and what they are called."""

_ROW, _TOP, _BOTTOM = 32, 8, 46
_MARGIN = (170, 24, _TOP, _BOTTOM)
_SUBTITLE = "NEST, level-wise program (paper), beside the exact search (ours)"
_SAME = 5e-4
_LEAST_AXIS = 0.01  # of an iteration; differences below it are drawn to this scale
_HOLLOW = "rgba(0, 0, 0, 0)"


class _Row(NamedTuple):
    name: str
    base: float
    length: float
    colour: str
    text: str


def waterfall_figure(nest: Baseline | None, ours_s: float | None, why: str = "") -> Picture:
    """Seconds beyond the exact search's iteration, cause by cause.

    Parameters
    ----------
    nest : Baseline or None
        None: it is not there.
    ours_s : float or None
        Seconds of an iteration under the exact search's plan; None where there is none.
    why : str
        Why it is not there.
    """
    height = _TOP + 8 * _ROW + _BOTTOM
    if nest is None:
        return empty(why, _SUBTITLE, height, _MARGIN)
    if not nest.feasible or nest.report is None or ours_s is None:
        why = nest.reason or "the exact search has no plan to compare with"
        return empty(f"No comparison: {why}", _SUBTITLE, height, _MARGIN)
    took = nest.report.iteration_s
    falls = asdict(nest.waterfall) if nest.waterfall else {}
    promised_s = took if nest.promised_s is None else nest.promised_s
    return fall_figure(took, ours_s, promised_s, falls, nest.origin)


def fall_figure(
    took: float, ours_s: float, promised_s: float, falls: Mapping[str, float], origin: str
) -> Picture:
    """The same where both have a plan, from what was kept of them.

    Parameters
    ----------
    took, ours_s, promised_s : float
        Seconds of an iteration under NEST's plan and ours, and what NEST's was thought to take.
    falls : mapping
        Seconds by term of a `Waterfall`; empty where none was drawn up.
    origin : str
        How NEST's program came to its plan.
    """
    rows = _rows(took, ours_s, promised_s, falls)
    ends = [end for row in rows for end in (row.base, row.base + row.length)]
    low, high = min(ends), max(ends)
    room = max(high - low, _LEAST_AXIS * ours_s)
    scale, unit = axis_unit(room, "s")
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(rows))),
        "x": [row.length / scale for row in rows],
        "base": [row.base / scale for row in rows],
        "width": 0.62,
        "marker": {
            "color": [row.colour for row in rows],
            "line": {"color": MUTED, "width": 1.0},
        },
        "customdata": [f"{row.name}: {row.text}" for row in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    layout = frame(
        _TOP + _ROW * len(rows) + _BOTTOM,
        _MARGIN,
        xaxis=value_axis(f"over the exact search's iteration, {unit}")
        | {"range": [(low - 0.04 * room) / scale, (low + 1.3 * room) / scale]},
        yaxis=rows_axis([row.name for row in rows]),
        annotations=[
            note(
                row.text,
                max(row.base, row.base + row.length) / scale,
                number,
                xanchor="left",
                xshift=6,
            )
            for number, row in enumerate(rows)
        ],
        shapes=[
            {
                "type": "line",
                "x0": 0,
                "x1": 0,
                "y0": -0.5,
                "y1": len(rows) - 0.5,
                "line": {"color": ACCENT, "width": 2},
            }
        ],
    )
    return Picture(
        _finding(took, ours_s, falls),
        f"{_SUBTITLE}: {unit} of an iteration beyond ours",
        "Blue line: the exact search's iteration. From it, cause by cause, to what the program's "
        "plan takes on the fabric; hollow: what the program promised on its levels. "
        f"That plan: {origin}.",
        go.Figure(data=[bars], layout=layout),
    )


def _rows(took: float, ours_s: float, promised: float, falls: Mapping[str, float]) -> list[_Row]:
    rows = [_Row("Exact search (ours)", 0.0, 0.0, ACCENT, humanise_seconds(ours_s))]
    at = 0.0
    for key, words in CAUSES.items():
        if key in falls:
            colour = LIMIT if falls[key] > 0 else ACCENT
            rows.append(
                _Row(
                    words,
                    at,
                    falls[key],
                    colour,
                    signed(falls[key], humanise_seconds)
                    if abs(falls[key]) > 1e-9 * ours_s
                    else "0",
                )
            )
            at += falls[key]
    rows.append(_Row("NEST takes", 0.0, took - ours_s, MUTED, humanise_seconds(took)))
    rows.append(_Row("NEST promised", 0.0, promised - ours_s, _HOLLOW, humanise_seconds(promised)))
    return rows


def _finding(took: float, ours_s: float, falls: Mapping[str, float]) -> str:
    ratio = took / ours_s - 1.0
    if abs(ratio) < _SAME:
        return "NEST's level-wise program and the exact search tie"
    if ratio < 0:
        return f"NEST's level-wise program is {-100 * ratio:.3g} % faster than the exact search"
    told = f"NEST's level-wise program is {100 * ratio:.3g} % slower than the exact search"
    if not falls:
        return told
    cause = max(falls, key=falls.__getitem__)
    return f"{told}, most of it by its {CAUSES[cause].partition(':')[0]}"
