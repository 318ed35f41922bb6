"""What designs train per dollar once accelerators are paid for, and where the winner changes.

A design trains R tokens/s on D accelerators over a network of N dollars. With x dollars for an
accelerator and its share of the server, it trains ``R / (N + D x)`` per dollar. Of two designs the
first is ahead exactly where ``x (R_1 D_2 - R_2 D_1) > R_2 N_1 - R_1 N_2``: the left factor says
whose accelerators do more, the right side who trains more per dollar of the network alone. So
there is one break-even at most, or one of them is ahead at any price
(docs/decisions/break-even.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nest_core.bill.prices import Prices
from nest_core.schema import StudyTable, parameter

__all__ = ["DEVICE_USD", "Design", "DevicePrice", "Lead", "break_even", "device_price", "lead"]

DEVICE_USD = parameter("device_usd", StudyTable)
"""No accelerator costs more than its bound: a break-even from there on is none."""


@dataclass(frozen=True, slots=True)
class DevicePrice:
    """An accelerator with its share of the server.

    Parameters
    ----------
    usd : float
    basis : str
        Where the figure comes from, in one sentence.
    """

    usd: float
    basis: str


@dataclass(frozen=True, slots=True)
class Design:
    """What a design trains, on how many accelerators, and what its network costs.

    Parameters
    ----------
    tokens_per_s : float
        Above 0.
    devices : int
    network_usd : float
    """

    tokens_per_s: float
    devices: int
    network_usd: float

    def per_usd(self, device_usd: float) -> float:
        """Tokens/s per dollar of network and accelerators; infinite where nothing costs."""
        whole = self.network_usd + self.devices * device_usd
        return self.tokens_per_s / whole if whole > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Lead:
    """Between which prices of an accelerator a design trains most per dollar.

    Parameters
    ----------
    design : int
        Its place.
    low, high : float
        US dollars; 0 and infinity where it leads at any price on that side.
    below, above : int or None
        Places of the designs that are level with it at ``low`` and ``high``; None without one.
    """

    design: int
    low: float
    high: float
    below: int | None = None
    above: int | None = None


def lead(designs: Sequence[Design], device_usd: float) -> Lead:
    """The design that trains most per dollar at a price of an accelerator, and how long it does.

    Ties go to whoever is ahead beyond that price, then to whoever stands first. ``device_usd`` is
    below the bound of `DEVICE_USD`.

    Examples
    --------
    >>> fast, cheap = Design(1.02e6, 1024, 6e6), Design(1e6, 1024, 4e6)
    >>> found = lead([fast, cheap], 37e3)
    >>> found.design, found.low, found.high
    (1, 0.0, 93750.0)
    """
    best = max(range(len(designs)), key=lambda place: _rank(designs[place], device_usd))
    found = Lead(best, 0.0, float("inf"))
    for place, other in enumerate(designs):
        slope, need = _sides(designs[best], other)
        if slope == 0:
            continue
        edge = need / slope
        if slope > 0 and edge > found.low:
            found = Lead(best, edge, found.high, place, found.above)
        if slope < 0 and 0 <= edge < min(found.high, DEVICE_USD.high or 0.0):
            found = Lead(best, found.low, edge, found.below, place)
    return found


def break_even(first: Design, second: Design) -> float | None:
    """The price of an accelerator at which two train as much per dollar.

    0 where that would lie below nothing; None where no price makes them differ in order.
    """
    slope, need = _sides(first, second)
    return max(need / slope, 0.0) if slope else None


def device_price(accelerator: str, prices: Prices) -> DevicePrice | None:
    """What an accelerator costs with its share of a listed server.

    Parameters
    ----------
    accelerator : str
        Its name. The server is one whose name ends in a word of it, else the first with a price.
    prices : Prices

    Returns
    -------
    DevicePrice or None
        None where no listed server has a price.
    """
    words = set(accelerator.split())
    priced = [server for server in prices.server if server.price_usd is not None]
    priced.sort(key=lambda server: server.name.split()[-1] not in words)
    if not priced or priced[0].price_usd is None:
        return None
    server, figure = priced[0], priced[0].price_usd
    own = server.name.split()[-1] in words
    share = f"a share of 1/{server.devices} of a {server.name}: {figure.source}"
    told = f"{figure.kind}, {figure.date}: {share}"
    return DevicePrice(
        figure.typical / server.devices,
        told if own else f"no price of a {accelerator} is listed; taken as {told}",
    )


def _rank(one: Design, device_usd: float) -> tuple[float, float]:
    """What it trains per dollar, then per accelerator, which decides a cent further on."""
    return one.per_usd(device_usd), one.tokens_per_s / one.devices


def _sides(first: Design, second: Design) -> tuple[float, float]:
    """Factor of x and right side of the inequality by which the first is ahead."""
    return (
        first.tokens_per_s * second.devices - second.tokens_per_s * first.devices,
        second.tokens_per_s * first.network_usd - first.tokens_per_s * second.network_usd,
    )
