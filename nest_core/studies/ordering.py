"""Designs in order of price, of days or of what the worst single failure costs, with their ties.

Two designs tie where what tells them apart lies inside the paired interval: by days where their
speeds differ by less than it (`nest_core.studies.uncertainty`); by price, which is that of a
million tokens, where the interval about the ratio of their speeds holds the ratio of their costs;
by failure where the shares that are lost differ by less than the interval about the rest. Without
plans the price is that of the whole bill; then figures within a thousandth are a tie. Prices of the
parts are the same in all designs, so their ends make no tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.documents.errors import InputError
from nest_core.documents.units import format_days, format_money, percent
from nest_core.hardware.posterior import WIDTH
from nest_core.studies.uncertainty import paired_sd
from nest_core.studies.whole_bill import WholeBill

__all__ = ["ORDERS", "OrderedDesign", "ordered"]

ORDERS = ("price", "days", "failure")
_SAME = 1e-3


@dataclass(frozen=True, slots=True)
class OrderedDesign:
    """A design in its place.

    Parameters
    ----------
    rank : int
        From 1; the same for designs that tie with the first of their rank.
    name : str
    value : float or None
        Dollars (per million tokens where planned), days, or share lost; None comes last.
    text : str
        The value as people read it.
    ties : tuple of str
        Designs that it cannot be told from.
    note : str
        Why there is no value, or what fails.
    """

    rank: int
    name: str
    value: float | None
    text: str
    ties: tuple[str, ...] = ()
    note: str = ""


def ordered(bills: Sequence[WholeBill], by: str = "price") -> tuple[OrderedDesign, ...]:
    """Return designs from the best to the worst.

    Parameters
    ----------
    bills : sequence of WholeBill
    by : {"price", "days", "failure"}

    Raises
    ------
    InputError
        For another order.
    """
    if by not in ORDERS:
        raise InputError("order", "must be price, days or failure", by, "pick one")
    planned = all(bill.report is not None for bill in bills)
    values = [_value(bill, by, planned) for bill in bills]
    places = sorted(
        range(len(bills)), key=lambda place: (values[place] is None, values[place] or 0.0)
    )
    rows: list[OrderedDesign] = []
    for number, place in enumerate(places):
        value = values[place]
        others = [other for other in places if other != place]
        ties = tuple(
            bills[other].name
            for other in others
            if value is not None
            and values[other] is not None
            and _tie(bills[place], bills[other], by, (value, values[other] or 0.0))
        )
        rows.append(
            OrderedDesign(
                number + 1,
                bills[place].name,
                value,
                _text(value, by, planned),
                ties,
                _note(bills[place], by),
            )
        )
    return _joined(rows)


def _joined(rows: list[OrderedDesign]) -> tuple[OrderedDesign, ...]:
    """Return the rows; those that tie with the first of a rank share it."""
    ranked: list[OrderedDesign] = []
    for row in rows:
        lead = (
            next((earlier for earlier in ranked if earlier.rank == ranked[-1].rank), None)
            if ranked
            else None
        )
        same = lead is not None and lead.name in row.ties
        ranked.append(replace(row, rank=lead.rank) if lead and same else row)
    return tuple(ranked)


def _value(one: WholeBill, by: str, planned: bool) -> float | None:
    if by == "days":
        return one.training.days if one.training else None
    if by == "failure":
        return one.worst_loss[0] if one.worst_loss else None
    if not planned:
        return one.owned.total_usd.typical
    return _per_million(one)


def _per_million(one: WholeBill) -> float | None:
    """Dollars, at whatever has a source: what none has is missing in every design."""
    rate, owned = one.tokens_per_s, one.owned
    if rate is None:
        return None
    hours = owned.years * 8766.0 * (owned.sold_share or 1.0)
    return owned.total_usd.typical * 1e6 / (rate * 3600.0 * hours)


def _tie(one: WholeBill, other: WholeBill, by: str, values: tuple[float, float]) -> bool:
    mine, theirs = values
    if one.sureness is None or other.sureness is None:
        return math.isclose(mine, theirs, rel_tol=_SAME)
    width = WIDTH * paired_sd(one.sureness, other.sureness)
    if by == "failure":  # of what is left of each one's own throughput
        mine, theirs = 1.0 - mine, 1.0 - theirs
        if mine <= 0 or theirs <= 0:
            return mine <= 0 and theirs <= 0
    return abs(math.log(mine / theirs)) < width


def _text(value: float | None, by: str, planned: bool) -> str:
    if value is None:
        return "unknown"
    if by == "days":
        return format_days(value)
    if by == "failure":
        return f"{percent(value)} lost"
    return f"${value:.3g} per million tokens" if planned else format_money(value)


def _note(one: WholeBill, by: str) -> str:
    if by == "failure" and one.worst_loss:
        return one.worst_loss[1]
    return one.reason
