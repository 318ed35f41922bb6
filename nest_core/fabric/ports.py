"""The ports of switches, tier by tier, in whole numbers.

Per tier the switch with the most links, nothing failed; ports of one plane, at one link's rate.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SwitchPorts"]


@dataclass(frozen=True, slots=True)
class SwitchPorts:
    """A fully used switch of one tier.

    Parameters
    ----------
    name : str
        Of the tier.
    switches : int
        In place, all planes together.
    radix, down, up, free : int
        Ports of one switch; ``down + up + free = radix``. Of a dragonfly's router ``up`` are
        those to other routers.
    stated : float or None
        Oversubscription asked for, down : up; None for the top tier and for routers.
    """

    name: str
    switches: int
    radix: int
    down: int
    up: int
    stated: float | None

    @property
    def free(self) -> int:
        """Ports without a link."""
        return self.radix - self.down - self.up

    @property
    def realised(self) -> float | None:
        """Oversubscription of whole ports; None where nothing was asked for."""
        return None if self.stated is None else self.down / self.up
