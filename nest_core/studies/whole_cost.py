"""What designs train per dollar once everything is paid for, and where the winner changes.

A design trains R tokens/s on D accelerators, spares counted; beside them N dollars are paid once,
for the network and its hall, and E a year, for energy and staff, over Y years. With x dollars for
an accelerator and its share of the server, its whole cost is ``C = N + E Y + D x`` and it trains
``R Y / C`` per dollar. Of two designs the first is ahead exactly where ``R_1 C_2 - R_2 C_1 > 0``.
That is affine in x: ``x (R_1 D_2 - R_2 D_1) > R_2 (N_1 + E_1 Y) - R_1 (N_2 + E_2 Y)``, where the
left factor says whose accelerators do more, the right side who trains more per dollar of the rest.
It is affine in Y as well, and in the share y of its hours for which a cluster trains this model
while accelerators are worth the same in all designs for the rest of them: there R becomes
``y R_i D_0 / R_0 + (1 - y) D_i`` with a design 0 as the reference. So in each of the three there is
one break-even at most, or one of them is ahead everywhere (docs/decisions/break-even.md).
"""

from dataclasses import dataclass, replace

from nest_core.documents.schema import StudyTable, parameter

__all__ = [
    "DEVICE_USD",
    "BreakEvenPoint",
    "DesignCost",
    "crossing_of_hours",
    "crossing_of_price",
    "crossing_of_years",
    "with_hours",
]

DEVICE_USD = parameter("device_usd", StudyTable)
"""No accelerator costs more than its bound: a break-even from there on is none."""


@dataclass(frozen=True, slots=True)
class DesignCost:
    """What a design trains, on how many accelerators, and what the rest of it costs.

    Parameters
    ----------
    tokens_per_s : float
        Above 0.
    devices : int
    network_usd : float
        The network, and what else is bought once beside accelerators: the hall, storage.
    yearly_usd : float
        Energy and staff.
    years : float
        For which it is kept.
    spares : float
        Spare accelerators for one that computes.
    """

    tokens_per_s: float
    devices: int
    network_usd: float
    yearly_usd: float = 0.0
    years: float = 0.0
    spares: float = 0.0

    @property
    def besides_usd(self) -> float:
        """All but accelerators and their servers."""
        return self.network_usd + self.years * self.yearly_usd

    @property
    def paid(self) -> float:
        """Accelerators that are paid for."""
        return self.devices * (1.0 + self.spares)

    def whole_usd(self, device_usd: float) -> float:
        """Return what everything costs over its years."""
        return self.besides_usd + self.paid * device_usd


@dataclass(frozen=True, slots=True)
class BreakEvenPoint:
    """Where the first of two designs is ahead.

    Parameters
    ----------
    at : float
        From 0 to infinity.
    above : bool
        Whether it is ahead above it, else below. Ahead everywhere: above 0, or below infinity.
    """

    at: float
    above: bool

    @property
    def always(self) -> bool:
        """Whether the first is ahead everywhere."""
        return self.at == (0.0 if self.above else float("inf"))

    @property
    def never(self) -> bool:
        """Whether the second is ahead, or level, everywhere."""
        return self.at == (float("inf") if self.above else 0.0)


def with_hours(design: DesignCost, reference: DesignCost, hours: float) -> DesignCost:
    """Return a design by its work where this model gets a share of the hours.

    For the rest of them an accelerator is worth as much in every design: what one of the reference
    trains. With all hours the work is what the design trains, up to a factor that all share.
    """
    trained = design.tokens_per_s / reference.tokens_per_s * reference.devices
    return replace(design, tokens_per_s=hours * trained + (1 - hours) * design.devices)


def crossing_of_price(first: DesignCost, second: DesignCost) -> BreakEvenPoint:
    """Return prices of an accelerator at which the first trains more per dollar.

    Examples
    --------
    >>> fast, cheap = DesignCost(1.02e6, 1024, 6e6), DesignCost(1e6, 1024, 4e6)
    >>> crossing_of_price(fast, cheap)
    BreakEvenPoint(at=93750.0, above=True)
    """
    slope = first.tokens_per_s * second.paid - second.tokens_per_s * first.paid
    rest = second.tokens_per_s * first.besides_usd - first.tokens_per_s * second.besides_usd
    return _crossing(-rest, slope, DEVICE_USD.high or float("inf"))


def crossing_of_years(first: DesignCost, second: DesignCost, device_usd: float) -> BreakEvenPoint:
    """Years for which the first must be kept to train more per dollar."""
    first_usd, second_usd = (
        design.network_usd + design.paid * device_usd for design in (first, second)
    )
    return _crossing(
        first.tokens_per_s * second_usd - second.tokens_per_s * first_usd,
        first.tokens_per_s * second.yearly_usd - second.tokens_per_s * first.yearly_usd,
        float("inf"),
    )


def crossing_of_hours(
    first: DesignCost, second: DesignCost, device_usd: float, reference: DesignCost
) -> BreakEvenPoint:
    """Return shares of its hours that it must train this model for the first to do more per dollar.

    For the rest of them an accelerator is worth as much in both; see `with_hours`.
    """
    first_usd, second_usd = first.whole_usd(device_usd), second.whole_usd(device_usd)
    rate = reference.devices / reference.tokens_per_s
    idle = first.devices * second_usd - second.devices * first_usd
    trained = rate * (first.tokens_per_s * second_usd - second.tokens_per_s * first_usd)
    return _crossing(idle, trained - idle, 1.0)


def _crossing(offset: float, slope: float, max_at: float) -> BreakEvenPoint:
    """Solve ``offset + slope t > 0`` for t from 0 to ``max_at``."""
    if slope == 0:
        return BreakEvenPoint(0.0 if offset > 0 else float("inf"), True)
    at = -offset / slope
    return BreakEvenPoint(max(0.0, at) if at < max_at else float("inf"), slope > 0)
