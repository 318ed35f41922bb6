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
from dataclasses import dataclass

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
        bill, value = bills[place], values[place]
        ties = tuple(
            bills[other].name
            for other in places
            if other != place
            and value is not None
            and values[other] is not None
            and _tie(bill, bills[other], by, (value, values[other] or 0.0))
        )
        lead = next((row for row in rows if row.rank == rows[-1].rank), None)
        rank = lead.rank if lead and lead.name in ties else number + 1  # of a tie the first has it
        note = bill.worst_loss[1] if by == "failure" and bill.worst_loss else bill.reason
        text = _text(value, by, planned)
        rows.append(OrderedDesign(rank, bill.name, value, text, ties, note))
    return tuple(rows)


def _value(one: WholeBill, by: str, planned: bool) -> float | None:
    if by == "days":
        return one.training.days if one.training else None
    if by == "failure":
        return one.worst_loss[0] if one.worst_loss else None
    rate, owned = one.tokens_per_s, one.owned
    if not planned or rate is None:
        return None if planned else owned.total_usd.typical
    hours = owned.years * 8766.0 * (owned.sold_share or 1.0)  # what has no source has it nowhere
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
