"""The one rule by which designs are put in order.

Two designs tie where their paired interval (`nest_core.studies.uncertainty.paired_sd`) holds the
ratio of their costs: the same cluster would have to measure both. Of those that no other surely
beats, which all tie with each other, they go first whose worst single failure costs less than a
share of the throughput; then who costs less to buy and keep; then who draws less power. The rest
follows in the same way.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nest_core.documents import percent
from nest_core.documents.schema.study import Goal
from nest_core.hardware.posterior import SHARE, WIDTH
from nest_core.network import FloatArray

__all__ = [
    "GOAL_FIGURES",
    "MAX_LOSS",
    "TieOrder",
    "choose",
    "first_change",
    "ranked",
    "rule_in_words",
    "ties_of",
]

MAX_LOSS = 0.1
"""Share of the throughput that the worst single failure may cost where nobody says another."""
GOAL_FIGURES: dict[Goal, str] = {
    "days": "days",
    "tokens_per_usd": "whole bill per token",
    "tokens_per_network_usd": "price of the network per token",
    "tokens_per_W": "power per token",
}
"""What is to be small, in words."""
_ROUNDING = 1e-9
_STEPS = 40
"""Between the centre and an end, before bisection."""


class TieOrder(NamedTuple):
    """What puts designs that tie in order, least first.

    Parameters
    ----------
    is_fragile : bool
        Whether the worst single failure costs more than the share.
    usd : float
    power_W : float
    """

    is_fragile: bool
    usd: float
    power_W: float


def rule_in_words(figure: str, max_loss: float) -> str:
    """Return the rule as it is printed."""
    return (
        f"Designs tie where the {percent(SHARE)} paired interval of their {figure} holds zero. Of "
        f"those that none surely beats, they go first whose worst single failure costs less than "
        f"{100 * max_loss:.6g} % of the throughput; then the lower bill; then the lower power."
    )


def choose(costs: FloatArray, log_sd: FloatArray, tie_orders: Sequence[TieOrder]) -> int:
    """Return the place of the design that the rule puts first.

    Parameters
    ----------
    costs : (n,)
        What is to be small, above 0.
    log_sd : (n, n)
        Standard deviations of the logarithms of the ratios of costs.
    tie_orders : sequence of TieOrder
    """
    return min(_unbeaten(costs, log_sd), key=lambda place: (tie_orders[place], place))


def ranked(
    costs: FloatArray, log_sd: FloatArray, tie_orders: Sequence[TieOrder]
) -> list[tuple[int, int]]:
    """Return places in order, each with its rank from 1; ties share it. Parameters of `choose`."""
    rest = list(range(len(costs)))
    order: list[tuple[int, int]] = []
    while rest:
        best = [rest[n] for n in _unbeaten(costs[rest], log_sd[np.ix_(rest, rest)])]
        best.sort(key=lambda place: (tie_orders[place], place))
        order += [(place, len(order) + 1) for place in best]
        rest = [place for place in rest if place not in best]
    return order


def ties_of(costs: FloatArray, log_sd: FloatArray, place: int) -> list[int]:
    """Return the places of those that cannot be told from one, itself among them."""
    off = np.abs(np.log(costs / costs[place]))
    return [int(n) for n in np.flatnonzero(off <= WIDTH * log_sd[place] + _ROUNDING)]


def _unbeaten(costs: FloatArray, log_sd: FloatArray) -> list[int]:
    """Return the places of those that no other is surely cheaper than."""
    logs = np.log(costs)
    surely = logs[:, None] - logs[None, :] > WIDTH * log_sd + _ROUNDING
    return [int(n) for n in np.flatnonzero(~surely.any(axis=1))]


def first_change(
    chosen: Callable[[float], int], first: int, centre: float, end: float
) -> tuple[float, int] | None:
    """Return where between the centre and an end the choice first is another, and which."""
    before = centre
    for step in range(1, _STEPS + 1):
        at = centre + (end - centre) * step / _STEPS
        if chosen(at) != first:
            break
        before = at
    else:
        return None
    for _ in range(_STEPS):
        middle = (before + at) / 2.0
        before, at = (middle, at) if chosen(middle) == first else (before, middle)
    return at, chosen(at)
