"""What every ratio of a tier costs a mix of models, up to the limit."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.documents.units import NOTHING, capital, format_money, format_ratio, percent
from nest_core.report.figures.style import LIMIT, Picture, frame, note, ruler, value_axis
from nest_core.studies.ratios import Ratios, TierRatios

__all__ = ["ratio_rows", "ratios_finding", "ratios_picture"]

_HEIGHT = 360
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def ratios_picture(found: Ratios) -> Picture:
    """Loss against ratio, one line per tier, each up to the first ratio that costs too much.

    Needs one tier at least.
    """
    losses = [step.loss for tier in found.tiers for step in tier.steps if step.loss is not None]
    top = 100 * max([found.limit * 1.5, *losses])
    low = min([100 * loss for loss in losses] + [0.0])
    layout = frame(
        _HEIGHT,
        (62, 16, 18, 50),
        xaxis=value_axis("oversubscription, down : up") | {"zeroline": False, "nticks": 12},
        yaxis=value_axis("loss, %") | {"range": [low - 0.04 * top, 1.08 * top]},
        shapes=[ruler(100 * found.limit)],
        annotations=[
            note(
                f"limit {100 * found.limit:g} %",
                0,
                100 * found.limit,
                xref="paper",
                xanchor="left",
                yanchor="bottom",
                font={"color": LIMIT, "size": 12},
            )
        ],
    )
    data = [_line(found, tier, number) for number, tier in enumerate(found.tiers)]
    return Picture(
        _reached(found),
        "Loss of the mix against the ratio of one tier, the others as they are; %",
        "Each ratio is planned anew for every model. The highest is the last before the limit. "
        + UNMEASURED_RATIO,
        go.Figure(data=data, layout=layout),
        tuple(
            (tier.label, _COLOURS[number % len(_COLOURS)])
            for number, tier in enumerate(found.tiers)
        )
        if len(found.tiers) > 1
        else (),
    )


def ratio_rows(found: Ratios) -> list[dict[str, str]]:
    """One row per tier for a table: what it bears, and what lies on either side."""
    return [
        {
            "tier": tier.label,
            "now": format_ratio(tier.present),
            "highest": format_ratio(tier.highest.ratio),
            "costs": percent(tier.highest.loss or 0.0),
            "the next": format_ratio(tier.beyond.ratio) if tier.beyond else NOTHING,
            "would cost": NOTHING
            if tier.beyond is None or tier.beyond.loss is None
            else percent(tier.beyond.loss),
            f"network, from {format_ratio(tier.steps[0].ratio)}": NOTHING
            if tier.price_usd is None
            else " → ".join(format_money(price) for price in tier.price_usd),
            "becomes": tier.highest.realised,
        }
        for tier in found.tiers
    ]


def _line(found: Ratios, tier: TierRatios, number: int) -> dict[str, Any]:
    steps = [step for step in tier.steps if step.loss is not None]
    colour = _COLOURS[number % len(_COLOURS)]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": tier.label,
        "x": [step.ratio for step in steps],
        "y": [100 * (step.loss or 0.0) for step in steps],
        "line": {"color": colour, "width": 2},
        "marker": {
            "size": 9,
            "color": colour,
            "symbol": [
                _SYMBOLS[number % len(_SYMBOLS)]
                + ("" if (step.loss or 0.0) < found.limit else "-open")
                for step in steps
            ],
        },
        "hovertext": [
            f"<b>{tier.label} {format_ratio(step.ratio)}</b><br>realised {step.realised}<br>"
            + "<br>".join(
                f"{name} loses {percent(lost)}"
                for (name, _), lost in zip(found.mix, step.losses, strict=True)
            )
            for step in steps
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def ratios_finding(found: Ratios) -> str:
    """What every tier bears, in one sentence."""
    if not found.tiers:
        return "No tier was tried to its end"
    borne = ", ".join(f"{tier.label} {format_ratio(tier.highest.ratio)}" for tier in found.tiers)
    return capital(f"{borne}: the most that costs the mix less than {100 * found.limit:g} %")


def _reached(found: Ratios) -> str:
    """Where the tiers meet the limit, as the title of the figure beside the table."""
    said = [
        f"{tier.label} reaches the limit at {format_ratio(tier.beyond.ratio)}"
        if tier.beyond
        else f"{tier.label} stays below the limit to {format_ratio(tier.steps[-1].ratio)}"
        for tier in found.tiers
    ]
    return capital("; ".join(said))
