"""What a comparison says in one line and the line below: which design wins, and while what."""

from __future__ import annotations

from nest_core.documents.units import format_money, percent, signed_percent
from nest_core.report.sheet.weighing import Weighing, dearer
from nest_core.studies.break_evens import BreakEven, between
from nest_core.studies.whole_bill import WholeBill

__all__ = ["headline", "rests_on_price"]

_PROVEN = 1e-3
"""A plan that is nearer to the best than that decides."""
_MOST = 2
"""Further designs that the line below speaks of."""


def headline(found: Weighing) -> str:
    """The break-even of the choice against its nearest rival; a tie is said as one."""
    mine, other = found.choice, found.rival
    if other is None:
        return f"{mine.name} stands alone: nothing beside it has a plan"
    edge = _of(found.break_evens, "device_usd")
    if edge is None:
        return f"{mine.name} or {other.name}"
    if found.speeds_tie and mine.owned.devices == other.owned.devices:
        less, more = sorted((mine, other), key=lambda one: one.owned.total_usd.typical)
        saved = more.owned.total_usd.typical - less.owned.total_usd.typical
        words = f"{mine.name} and {other.name} tie in speed"
        return f"{words}; {less.name} costs {format_money(saved)} less" if saved > 0 else words
    open_ = [one for one in (mine, other) if one.gap > _PROVEN]
    if open_:  # its own best plan may turn the sentence
        worst = max(open_, key=lambda one: one.gap)
        return f"Not decided: {worst.name}'s plan may be {percent(worst.gap)} from the best"
    return edge.headline


def rests_on_price(found: Weighing) -> str:
    """What the price, the hours and the range of the break-even say, and other designs."""
    mine, other, price = found.choice, found.rival, found.device_usd
    edge = _of(found.break_evens, "device_usd")
    told = []
    if other is not None and price is not None:
        first, second = mine.cost(), other.cost()
        if first is not None and second is not None:
            apart = dearer(first, second, price.typical, found.hours)
            side = "more" if apart > 0 else "less"
            told.append(
                f"At {format_money(price.typical)} {other.name} costs "
                f"{signed_percent(abs(apart))[1:]} {side} per token than {mine.name}."
                if signed_percent(apart) != "0 %"
                else f"At {format_money(price.typical)} a token costs the same in both."
            )
    elif other is not None:
        told.append("No source states the price of an accelerator: the break-even stands alone.")
    hours = _of(found.break_evens, "share_of_hours")
    if hours is not None and hours.value is not None and not found.speeds_tie:
        told.append(
            f"{hours.winner} wins there while it trains this model for more than "
            f"{percent(hours.value)} of its hours."
        )
    if edge is not None and edge.value is not None:
        told.append(_range(edge))
    told += [_beside(found, one) for one in _further(found)[:_MOST]]
    told += [
        f"{one.name}'s plan is not proven: a better one may be up to {percent(one.gap)} faster."
        for one in found.bills
        if one.gap
    ]
    told += [f"{one.name}: {one.caveat}" for one in found.bills if one.caveat]
    told += [f"{one.name} is left out: {one.reason}." for one in found.left_out]
    return " ".join(filter(None, told))


def _range(edge: BreakEven) -> str:
    low, high = edge.low or 0.0, edge.high
    if high is None:
        ends = f"{format_money(low)} or more" if low > 0 else "open at both ends"
    else:
        ends = (
            f"{format_money(low)} to {format_money(high)}"
            if low > 0
            else f"up to {format_money(high)}"
        )
    value = f" of {format_money(edge.value)}" if edge.value is not None else ""
    return f"Range of the break-even{value}: {ends}."


def _further(found: Weighing) -> list[WholeBill]:
    return [one for one in found.bills if one is not found.choice and one is not found.rival]


def _beside(found: Weighing, other: WholeBill) -> str:
    """What decides against a further design, in few words."""
    edges = between(found.choice, other, found.device_usd, found.hours)
    edge = _of(tuple(edges), "device_usd")
    return f"{edge.headline}." if edge else ""


def _of(edges: tuple[BreakEven, ...], quantity: str) -> BreakEven | None:
    return next((one for one in edges if one.quantity == quantity), None)
