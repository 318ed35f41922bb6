"""NEST's lead in a table of the paper, in every reading."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from nest_core.paper.cases import PLANNERS
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    HATCH,
    LIMIT,
    MUTED,
    Picture,
    frame,
    note,
    ruler,
    value_axis,
)
from nest_core.teaching.lessons.paper_table import READINGS, Leads

__all__ = ["leads_picture"]

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
    ratios = [
        (PLANNERS[lead.planner], lead.ratios[1], lead.ratios[2])
        for lead in found.leads
        if lead.ratios[1] is not None and lead.ratios[2] is not None
    ]
    moves = [(before - after, name, before, after) for name, before, after in ratios]
    gone = [move for move in moves if move[0] > 0.005 and move[-1] < 1.005]
    _, name, before, after = max(gone or moves, default=(0.0, "", 1.0, 1.0))
    if abs(before - after) < 0.005:
        return "In the right order no lead changes here"
    if gone:
        return f"The lead over {name}, {before:.3g}, is gone in the right order"
    return f"The lead over {name} goes from {before:.3g} to {after:.3g} in the right order"
