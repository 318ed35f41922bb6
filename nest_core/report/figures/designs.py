"""The figures of a design study: price against days with what ties for the best, and a tornado."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from nest_core.documents.units import capital, signed_percent
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    LIMIT,
    MUTED,
    Picture,
    axis_unit,
    broken,
    frame,
    note,
    plain,
)
from nest_core.report.scale import round_ticks
from nest_core.studies.design_choice import GOAL_UNITS, Contender, DesignChoice
from nest_core.studies.design_search import Designed, Planned
from nest_core.studies.sensitivity import Sensitivity

__all__ = ["choice_rows", "designs_picture", "tornado_picture"]

_HEIGHT = 420
_MARGIN = (58, 16, 14, 50)
_ROW = 17
_BAR = 26
_MOST_BARS = 12
_MOST_LABELLED = 9


def designs_picture(
    found: Designed, choice: DesignChoice, every: Sequence[Planned] = ()
) -> Picture:
    """Planned designs by price and days, the set that none beats, and what ties with the best.

    Names stand below the dots, where no design is: each at the foot of its dot's line, the
    cheapest lowest.

    Parameters
    ----------
    found : Designed
    choice : DesignChoice
        Of one contender at least.
    every : sequence of Planned, optional
        All designs of the space with their plans: those that the search left out are drawn too.
    """
    placed = sorted(choice.contenders, key=lambda one: one.planned.design.price_usd)
    best = choice.contenders[0]
    tied = [one for one in placed if one.rank == 1]
    short = _short(placed)
    unbeaten = {one.design.name for one in found.pareto}
    planned = {one.design.name for one in found.planned}
    beaten = [one for one in found.planned if one.design.name not in unbeaten]
    bounded = [one for one in every if one.design.name not in planned]
    shown = [*found.planned, *bounded]
    money, currency = axis_unit(max(one.design.price_usd for one in shown), "$")
    labelled = placed if len(placed) <= _MOST_LABELLED else tied[:_MOST_LABELLED]
    low, high = min(one.days for one in shown), max(one.days for one in shown)
    above = 0.06 * (high - low) or 0.05 * high
    inner = _HEIGHT - _MARGIN[2] - _MARGIN[3]
    foot = _ROW * (len(labelled) + 1)
    per_px = (high - low + above) / (inner - foot)
    feet = [low - per_px * _ROW * (len(labelled) - row) for row in range(len(labelled))]
    layout = frame(
        _HEIGHT,
        _MARGIN,
        xaxis=_axis(_paid(choice, currency)) | {"showgrid": False, "ticks": "outside"},
        yaxis=_axis("days of the training run")
        | {
            "range": [low - per_px * foot, high + above],
            "tickvals": round_ticks(low - above, high + above),
        },
        annotations=[
            note(
                f"<b>{short[one.name]}: the choice</b>" if one is best else short[one.name],
                one.planned.design.price_usd / money,
                at,
                xanchor="left",
                xshift=3,
                align="left",
            )
            for one, at in zip(labelled, feet, strict=True)
        ],
    )
    at = [(one.planned.design.price_usd / money, one.planned.days) for one in labelled]
    drops = broken(((x, x), (y, foot)) for (x, y), foot in zip(at, feet, strict=True))
    data = [
        _line(drops, FAINT, 1.0),
        _dots("left out by a bound", bounded, money, 6, MUTED, "circle-open"),
        _dots("beaten", beaten, money, 6, MUTED, "circle"),
        _line(_places([one.planned for one in tied], money), ACCENT, 2.0),
        _members("beaten by none", placed, choice, money, "circle-open"),
        _members("tie with the best", tied, choice, money, "circle"),
    ]
    legend = [("beaten by none; filled and joined: tie with the best", ACCENT)]
    legend.append((f"beaten{'; hollow: left out by a bound' if bounded else ''}", MUTED))
    return Picture(
        _finding(short[best.name], len(tied), len(unbeaten)),
        f"Days against price of {len(shown):,} designs; {currency}",
        _reading(found, bounded),
        go.Figure(data=data, layout=layout),
        tuple(legend),
        lambda: choice_rows(choice),
    )


def tornado_picture(found: Sensitivity) -> Picture:
    """How far what is uncertain moves the cost of the goal, and where the choice changes."""
    swings = found.swings[:_MOST_BARS]
    names = [one.name for one in swings]
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": [100 * getattr(one, end) for one in swings],
            "marker": {
                "color": [
                    LIMIT if getattr(one, f"{end}_choice") != found.choice else colour
                    for one in swings
                ]
            },
            "hovertext": [
                f"{one.name}, {end} end: {signed_percent(getattr(one, end), 2)}<br>"
                f"chosen there: {getattr(one, f'{end}_choice')}"
                for one in swings
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for end, colour in (("low", "#56B4E9"), ("high", ACCENT))
    ]
    layout = frame(
        70 + _BAR * max(1, len(swings)),
        (330, 16, 10, 46),
        barmode="overlay",
        xaxis=_axis("change of what the goal costs, %")
        | {"zeroline": True, "zerolinecolor": MUTED},
        yaxis={"autorange": "reversed", "fixedrange": True, "showgrid": False},
    )
    return Picture(
        found.sentences[0],
        "The choice's cost with one thing at either end of what is known, all else at its centre",
        "Prices to their ends, parameters to the ends of their 80 % intervals.",
        go.Figure(data=bars, layout=layout),
        (("low end", "#56B4E9"), ("high end", ACCENT), ("another is chosen", LIMIT)),
    )


def _axis(title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 12}},
        "gridcolor": FAINT,
        "gridwidth": 0.5,
        "zeroline": False,
        "nticks": 6,
        "fixedrange": True,
    }


def _paid(choice: DesignChoice, currency: str) -> str:
    network = choice.goal == "tokens_per_network_usd"
    return f"{'price of the network' if network else 'whole bill'}, {currency}"


def _places(planned: Sequence[Planned], money: float) -> dict[str, Any]:
    return {
        "x": [one.design.price_usd / money for one in planned],
        "y": [one.days for one in planned],
    }


def _line(places: dict[str, Any], colour: str, width: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        **places,
        "showlegend": False,
        "hoverinfo": "skip",
        "line": {"color": colour, "width": width},
    }


def _dots(
    name: str, planned: Sequence[Planned], money: float, size: int, colour: str, symbol: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        **_places(planned, money),
        "marker": {
            "size": size,
            "color": colour,
            "symbol": symbol,
            "opacity": 1.0,
            "line": {"width": size / 6, "color": colour},
        },
        "hovertext": [_hover(one) for one in planned],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _members(
    name: str, members: Sequence[Contender], choice: DesignChoice, money: float, symbol: str
) -> dict[str, Any]:
    """Dots that carry their place in the order as ``customdata``."""
    order = [one.name for one in choice.contenders]
    dots = _dots(name, [one.planned for one in members], money, 11, ACCENT, symbol)
    return dots | {"customdata": [order.index(one.name) for one in members]}


def _hover(one: Planned) -> str:
    design = one.design
    return (
        f"{plain(design.name)}<br>{design.price_usd / 1e6:,.4g} M$, {design.power_W / 1e3:,.4g} kW"
        f"<br>{one.days:,.4g} days: {plain(one.plan)}"
    )


def _short(placed: Sequence[Contender]) -> dict[str, str]:
    """What of every name is not that of all."""
    each = {one.name: one.name.split(", ") for one in placed}
    same = set.intersection(*map(set, each.values())) if len(each) > 1 else set()
    return {
        name: plain(", ".join(part for part in parts if part not in same))
        for name, parts in each.items()
    }


def _finding(best: str, tied: int, unbeaten: int) -> str:
    if tied > 1:
        return f"{capital(best)} costs least of {tied} designs that tie with the best"
    if unbeaten > 1:
        return f"{capital(best)} is the choice of {unbeaten:,} designs that none beats"
    return f"{capital(best)} is the only design that none beats"


def _reading(found: Designed, bounded: Sequence[Planned]) -> str:
    said = (
        "A design is beaten where another is as good in price, power and days, and better in one. "
        "Axes do not start at 0."
    )
    left = found.certificate.bounded
    if left and not bounded:
        said += f" Without a dot, as never planned: {left:,} that a bound shows beaten."
    return said


def choice_rows(choice: DesignChoice) -> list[dict[str, Any]]:
    """Every member of the set in order; units stand in the names."""
    return [
        {
            "rank": one.rank,
            "design": one.name,
            GOAL_UNITS[choice.goal]: one.value,
            "price, $": round(one.planned.design.price_usd),
            "power, kW": one.planned.design.power_W / 1e3,
            "days": one.planned.days,
            "days, low": one.span[0],
            "days, high": one.span[1],
            "worst failure, share": one.worst_loss[0] if one.worst_loss else None,
            "plan": one.planned.plan,
        }
        for one in choice.contenders
    ]
