"""How much more a design costs than the best, along a price and by assumption, for charts.

Figures are those of `nest_core.studies.decision`: a curve is zero at the break-even that the
command line prints, and what lies within the paired interval is a tie.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.documents.claims import Claim
from nest_core.studies.decision import Decision

__all__ = ["DearnessCurve", "Moved", "curves", "moved"]

_POINTS = 60


@dataclass(frozen=True, slots=True)
class DearnessCurve:
    """How much dearer a design's tokens are than the best's, along the accelerator's price.

    Parameters
    ----------
    name : str
    usd : tuple of float
        Of an accelerator with its share of the server.
    dearer : tuple of float
    low, high : tuple of float
        At the ends of the paired interval; empty for all but the second.
    """

    name: str
    usd: tuple[float, ...]
    dearer: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def curves(decision: Decision) -> tuple[DearnessCurve, ...]:
    """Return one per design beside the best, up to a round price above all that matter."""
    if decision.goal != "tokens_per_usd":
        return ()
    edge, device_usd = decision.break_even("device_usd"), decision.device_usd
    price = device_usd.typical if device_usd else 0.0
    prices = [1.6 * price, 50e3]
    if edge is not None and edge.value and edge.value < 4 * price:
        prices.append(1.25 * edge.value)
    step = 10.0 ** math.floor(math.log10(max(prices)))
    max_usd = step * math.ceil(max(prices) / step)
    usd = tuple(max_usd * number / _POINTS for number in range(1, _POINTS + 1))
    drawn = []
    for bill in decision.bills[1:]:
        width = math.exp(decision.width(bill))
        more = [decision.dearer(bill, replace(decision.assumed, device_usd=at)) for at in usd]
        factors = (1.0, 1 / width, width) if bill is decision.rival else (1.0,)
        lines = (tuple((1 + value) * factor - 1 for value in more) for factor in factors)
        drawn.append(DearnessCurve(bill.name, usd, *lines))
    return tuple(drawn)


@dataclass(frozen=True, slots=True)
class Moved:
    """How much dearer the second's tokens are while one assumption moves.

    Parameters
    ----------
    name, span : str
        The assumption, and between what it moves.
    ends : tuple of float
        How much dearer at either end of the span, in its order.
    changes : tuple of Claim
        Which design is built instead, within the span.
    """

    name: str
    span: str
    ends: tuple[float, float]
    changes: tuple[Claim, ...]


def moved(decision: Decision) -> Sequence[Moved]:
    """Return what moves the second's dearness, the widest first; nothing without a second.

    What changes the choice comes before the rest.
    """
    rival = decision.rival
    if rival is None:
        return ()
    rows = [
        Moved(
            entry.name,
            entry.span,
            (decision.dearer(rival, entry.at(low)), decision.dearer(rival, entry.at(high))),
            tuple(filter(None, (decision.change(entry, low), decision.change(entry, high)))),
        )
        for entry in decision.drawn_assumptions()
        for low, high in [(entry.low, entry.high)]
    ]
    return sorted(rows, key=lambda row: (not row.changes, -abs(row.ends[1] - row.ends[0])))
