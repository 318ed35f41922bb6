"""The figures of a design study: price against days with what ties for the best, and a tornado."""

from collections.abc import Sequence
from typing import Any

from nest_core.documents.units import capital, percent, signed_percent
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    LIMIT,
    MUTED,
    SILENT,
    Chart,
    Trace,
    axis_unit,
    bars,
    broken,
    curve,
    dots,
    hovered,
    note,
    plain,
    plot,
    value_axis,
)
from nest_core.report.scale import round_ticks
from nest_core.studies.decision import refusal
from nest_core.studies.design_choice import Contender, DesignChoice
from nest_core.studies.design_search import Designed, Planned
from nest_core.studies.sensitivity import Sensitivity

__all__ = ["choice_rows", "designs_picture", "failure_words", "tornado_picture"]

_HEIGHT = 420
_MARGIN = (58, 16, 14, 50)
_ROW = 17
_BAR = 26
_MAX_BARS = 12
_MAX_LABELS = 9
_LOW_END = "#56B4E9"


def designs_picture(
    designed: Designed, choice: DesignChoice, every: Sequence[Planned] = ()
) -> Chart:
    """Draw planned designs by price and days, the set that none beats, and what ties for the best.

    Names stand below the dots, where no design is: each at the foot of its dot's line, the
    cheapest lowest.

    Parameters
    ----------
    designed : Designed
    choice : DesignChoice
        Of one contender at least.
    every : sequence of Planned, optional
        All designs of the space with their plans: those that the search left out are drawn too.
    """
    contenders = sorted(choice.contenders, key=lambda c: c.planned.design.price_usd)
    best, short = choice.contenders[0], _short(contenders)
    tied = [contender for contender in contenders if contender.rank == 1]
    unbeaten = {planned.design.name for planned in designed.pareto}
    names = {planned.design.name for planned in designed.planned}
    beaten = [planned for planned in designed.planned if planned.design.name not in unbeaten]
    bounded = [planned for planned in every if planned.design.name not in names]
    drawn = [*designed.planned, *bounded]
    money, currency = axis_unit(max(planned.design.price_usd for planned in drawn), "$")
    labelled = contenders if len(contenders) <= _MAX_LABELS else tied[:_MAX_LABELS]
    low, high = min(planned.days for planned in drawn), max(planned.days for planned in drawn)
    above = 0.06 * (high - low) or 0.05 * high
    below = _ROW * (len(labelled) + 1)
    per_px = (high - low + above) / (_HEIGHT - _MARGIN[2] - _MARGIN[3] - below)
    feet = [low - per_px * _ROW * (len(labelled) - row) for row in range(len(labelled))]
    at = _places([contender.planned for contender in labelled], money)
    drops = broken(((x, x), (y, foot)) for x, y, foot in zip(*at, feet, strict=True))
    order = [contender.name for contender in choice.contenders]
    data = [
        curve(**drops, colour=FAINT, width=1.0, **SILENT),
        _dots("left out by a bound", bounded, money, "circle-open"),
        _dots("beaten", beaten, money, "circle"),
        curve(*_places([contender.planned for contender in tied], money), ACCENT, **SILENT),
    ]
    for name, members, symbol in (
        ("beaten by none", contenders, "circle-open"),
        ("tie with the best", tied, "circle"),
    ):
        planned = [contender.planned for contender in members]
        trace = _dots(name, planned, money, symbol, size=11, colour=ACCENT)
        data.append(trace | {"customdata": [order.index(member.name) for member in members]})
    paid = "price of the network" if choice.goal == "tokens_per_network_usd" else "whole bill"
    hollow = "; hollow: left out by a bound" if bounded else ""
    return Chart(
        _finding(capital(short[best.name]), len(tied), len(unbeaten))
        + failure_words(best)
        + refusal(choice.differs),
        f"Days against price of {len(drawn):,} designs; {currency}",
        _reading(designed, bounded),
        plot(
            data,
            _HEIGHT,
            _MARGIN,
            xaxis=value_axis(f"{paid}, {currency}", nticks=6, showgrid=False, ticks="outside"),
            yaxis=value_axis(
                "days of the training run",
                nticks=6,
                range=[low - per_px * below, high + above],
                tickvals=round_ticks(low - above, high + above),
            ),
            annotations=[
                note(
                    f"<b>{short[contender.name]}: the choice</b>"
                    if contender is best
                    else short[contender.name],
                    x,
                    foot,
                    xanchor="left",
                    xshift=3,
                    align="left",
                )
                for contender, x, foot in zip(labelled, at[0], feet, strict=True)
            ],
        ),
        (
            ("beaten by none; filled and joined: tie with the best", ACCENT),
            (f"beaten{hollow}", MUTED),
        ),
        lambda: choice_rows(choice),
    )


def failure_words(contender: Contender) -> str:
    """Return what the worst single failure takes of a design, to end the sentence that names it."""
    worst = contender.worst_loss
    return f"; without {worst[1]} it loses {percent(worst[0])} of its throughput" if worst else ""


def tornado_picture(sensitivity: Sensitivity) -> Chart:
    """Draw how far what is uncertain moves the cost of the goal, and where the choice changes."""
    swings = sensitivity.swings[:_MAX_BARS]
    drawn = []
    for end, colour in (("low", _LOW_END), ("high", ACCENT)):
        choices = [getattr(swing, f"{end}_choice") for swing in swings]
        changes = [getattr(swing, end) for swing in swings]
        colours = [LIMIT if choice != sensitivity.choice else colour for choice in choices]
        texts = hovered(
            f"{swing.name}, {end} end: {signed_percent(change, 2)}<br>chosen there: {choice}"
            for swing, change, choice in zip(swings, changes, choices, strict=True)
        )
        x, y = [100 * change for change in changes], [swing.name for swing in swings]
        drawn.append(bars(x, y, {"color": colours}, **texts))
    return Chart(
        sensitivity.sentences[0],
        "The choice's cost with one thing at either end of what is known, all else at its centre",
        "Prices to their ends, parameters to the ends of their 80 % intervals.",
        plot(
            drawn,
            70 + _BAR * max(1, len(swings)),
            (330, 16, 10, 46),
            barmode="overlay",
            xaxis=value_axis(
                "change of what the goal costs, %", nticks=6, zeroline=True, zerolinecolor=MUTED
            ),
            yaxis={"autorange": "reversed", "fixedrange": True, "showgrid": False},
        ),
        (("low end", _LOW_END), ("high end", ACCENT), ("another is chosen", LIMIT)),
    )


def _places(planned: Sequence[Planned], money: float) -> tuple[list[float], list[float]]:
    return [p.design.price_usd / money for p in planned], [p.days for p in planned]


def _dots(
    name: str,
    planned: Sequence[Planned],
    money: float,
    symbol: str,
    size: int = 6,
    colour: str = MUTED,
) -> Trace:
    return dots(
        *_places(planned, money),
        {
            "size": size,
            "color": colour,
            "symbol": symbol,
            "opacity": 1.0,
            "line": {"width": size / 6, "color": colour},
        },
        name=name,
        **hovered(map(_hover, planned)),
    )


def _hover(planned: Planned) -> str:
    design = planned.design
    return (
        f"{plain(design.name)}<br>{design.price_usd / 1e6:,.4g} M$, {design.power_W / 1e3:,.4g} kW"
        f"<br>{planned.days:,.4g} days: {plain(planned.plan)}"
    )


def _short(contenders: Sequence[Contender]) -> dict[str, str]:
    """Return what of every name is not that of all."""
    parts = {contender.name: contender.name.split(", ") for contender in contenders}
    same = set.intersection(*map(set, parts.values())) if len(parts) > 1 else set()
    return {
        name: plain(", ".join(word for word in words if word not in same))
        for name, words in parts.items()
    }


def _finding(best: str, tied: int, unbeaten: int) -> str:
    if tied > 1:
        return f"{best} goes first of {tied} designs that tie with each other"
    if unbeaten > 1:
        return f"{best} is the choice of {unbeaten:,} designs that none beats"
    return f"{best} is the only design that none beats"


def _reading(designed: Designed, bounded: Sequence[Planned]) -> str:
    count = 0 if bounded else designed.certificate.bounded
    more = f" Without a dot, as never planned: {count:,} that a bound shows beaten."
    return (
        "A design is beaten where another is as good in price, power and days, and better in one. "
        f"Axes do not start at 0.{more if count else ''}"
    )


def choice_rows(choice: DesignChoice) -> list[dict[str, Any]]:
    """Return every member of the set in order; units stand in the names."""
    return [
        {
            "rank": contender.rank,
            "design": contender.name,
            choice.goal: contender.value,
            "price_usd": round(contender.planned.design.price_usd),
            "power_kW": contender.planned.design.power_W / 1e3,
            "days": contender.planned.days,
            "days_low": contender.span[0],
            "days_high": contender.span[1],
            "worst_loss": contender.worst_loss[0] if contender.worst_loss else None,
            "plan": contender.planned.plan,
        }
        for contender in choice.contenders
    ]
