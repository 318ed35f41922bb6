"""Fabrics that may be bought: days over price, the set that no other beats, and what ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from nest_core.explain.summary import share
from nest_core.figures.style import ACCENT, FAINT, LIMIT, MUTED, Picture, frame
from nest_core.studies.design_choice import Choice, Contender, in_words
from nest_core.studies.design_search import Designed, Planned
from nest_core.studies.sensitivity import Sensitivity
from nest_core.units import signed_percent

__all__ = ["choice_rows", "designs_picture", "tornado_picture"]

_HEIGHT = 420
_ROW = 26
_MOST_BARS = 12
_WHOLE, _PAID = "the whole bill", {"tokens_per_network_usd": "the network"}


def designs_picture(found: Designed, choice: Choice, every: Sequence[Planned] = ()) -> Picture:
    """All planned designs, the Pareto set in the shades of its power, the choice and its ties.

    Members of the set carry their place in the choice's order as ``customdata``. ``every`` are
    designs that were planned by brute force, where that was done.
    """
    kept = {one.design.name for one in found.pareto}
    others = [one for one in (every or found.planned) if one.design.name not in kept]
    tied = [one for one in choice.contenders if one.rank == 1]
    power = [one.planned.design.power_W / 1e3 for one in choice.contenders]
    data: list[dict[str, Any]] = [
        _dots("planned, beaten", others, {"size": 6, "color": MUTED}),
        {
            "type": "scatter",
            "mode": "markers",
            "name": "Pareto set",
            "x": [one.planned.design.price_usd / 1e6 for one in choice.contenders],
            "y": [one.planned.days for one in choice.contenders],
            "marker": {
                "size": 11,
                "color": power,
                "colorscale": [[0.0, "#9ecae9"], [1.0, ACCENT]],
                "showscale": len(set(power)) > 1,
                "colorbar": {"title": {"text": "kW"}, "thickness": 10, "len": 0.6},
                "line": {"width": 1, "color": "rgba(255, 255, 255, 0.8)"},
            },
            "customdata": list(range(len(choice.contenders))),
            "hovertext": [_told(choice, one) for one in choice.contenders],
            "hovertemplate": "%{hovertext}<extra></extra>",
        },
        _rings("ties with the best", tied, ACCENT, 18),
        _rings("the choice", tied[:1], LIMIT, 24),
    ]
    layout = frame(
        _HEIGHT,
        (62, 16, 14, 58),
        xaxis=_axis(f"price of {_PAID.get(choice.goal, _WHOLE)}, M$"),
        yaxis=_axis("days of the training run"),
    )
    proof = found.certificate
    return Picture(
        _finding(choice),
        f"Days against price; {proof.designs:,} designs, {proof.planned:,} planned, "
        f"{proof.bounded:,} bounded, {proof.infeasible:,} infeasible",
        "Ringed: those that the interval of their paired difference does not tell from the best; "
        "of them the cheapest is chosen. Click a point.",
        go.Figure(data=data, layout=layout),
        (("beaten", MUTED), ("Pareto set", ACCENT), ("the choice", LIMIT)),
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
        70 + _ROW * max(1, len(swings)),
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
        "fixedrange": True,
    }


def _dots(name: str, planned: Sequence[Planned], marker: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [one.design.price_usd / 1e6 for one in planned],
        "y": [one.days for one in planned],
        "marker": marker,
        "hovertext": [f"{one.design.name}<br>{one.plan}" for one in planned],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _rings(name: str, members: Sequence[Contender], colour: str, size: int) -> dict[str, Any]:
    ring = {"size": size, "symbol": "circle-open", "color": colour, "line": {"width": 2}}
    return _dots(name, [one.planned for one in members], ring) | {"hoverinfo": "skip"}


def _told(choice: Choice, one: Contender) -> str:
    worst = f"{share(one.worst_loss[0])} lost to {one.worst_loss[1]}" if one.worst_loss else ""
    lines = (
        f"<b>{one.name}</b>",
        "" if choice.goal == "days" else in_words(choice.goal, one.value),
        f"{one.planned.days:.3g} days ({one.span[0]:.3g} to {one.span[1]:.3g})",
        f"${one.planned.design.price_usd / 1e6:,.4g} M, {one.planned.design.power_W / 1e3:,.4g} kW",
        one.planned.plan,
        worst,
    )
    return "<br>".join(line for line in lines if line)


def _finding(choice: Choice) -> str:
    if not choice.contenders:
        return "No design has a plan"
    first = choice.contenders[0]
    ties = sum(one.rank == 1 for one in choice.contenders) - 1
    said = f"{first.name}: {in_words(choice.goal, first.value)}"
    return f"{said}; {ties} tie with it" if ties else said


def choice_rows(choice: Choice) -> list[dict[str, Any]]:
    """Every member of the set in order; units stand in the names."""
    return [
        {
            "rank": one.rank,
            "design": one.name,
            choice.goal: one.value,
            "price, $": one.planned.design.price_usd,
            "power, kW": one.planned.design.power_W / 1e3,
            "days": one.planned.days,
            "days, low": one.span[0],
            "days, high": one.span[1],
            "worst failure, share": one.worst_loss[0] if one.worst_loss else None,
            "plan": one.planned.plan,
        }
        for one in choice.contenders
    ]
