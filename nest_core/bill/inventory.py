"""What a fabric consists of: switches, links by tier and length, cards; before any price.

Everything is counted by index arithmetic on nodes, leaves and pods, never cable by cable, so a
fabric of 131,072 devices takes milliseconds. What failed is not counted. The insides of nodes
are no part of the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.bill.floor import Hall
from nest_core.fabric import IntArray

__all__ = ["BITS", "Inventory", "LinkCount", "SwitchCount", "by_metres"]

BITS = 8e-9
"""Bytes/s to Gb/s."""


@dataclass(frozen=True, slots=True)
class SwitchCount:
    """Equal switches of one role.

    Parameters
    ----------
    role : str
    count, ports : int
        Switches, and ports of one at ``rate_Gbps``; no ports: whatever the list offers.
    rate_Gbps : float
    used : int
        Ports with a link, all switches together.
    optical : bool
        Circuit switches, one fibre per port.
    estimate : bool
        Whether the count itself is one.
    """

    role: str
    count: int
    ports: int
    rate_Gbps: float
    used: int
    optical: bool = False
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class LinkCount:
    """Links between two kinds of elements.

    Parameters
    ----------
    tier : str
        By the upper end: the tier of switches that they lead to.
    rate_Gbps : float
    metres : tuple of (int, int)
        Length, and how many links are that long.
    lower, upper : {"nic", "switch", "chip"}
        What the ends plug into.
    copper : bool
        Boards and backplanes: never fibre.
    cables_per_link : int
        2 through an optical circuit switch, each as long as ``metres`` says.
    """

    tier: str
    rate_Gbps: float
    metres: tuple[tuple[int, int], ...]
    lower: str = "switch"
    upper: str = "switch"
    copper: bool = False
    cables_per_link: int = 1

    @property
    def count(self) -> int:
        """Links."""
        return sum(count for _, count in self.metres)

    @property
    def longest_m(self) -> int:
        """Metres of the longest; 0 if there is none."""
        return max((metres for metres, _ in self.metres), default=0)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The parts of one fabric.

    Parameters
    ----------
    hall : Hall
    nodes : int
        Servers (torus: chips) present.
    nics : int
    nic_rate_Gbps : float
    switches : tuple of SwitchCount
    links : tuple of LinkCount
        Innermost tier first.
    checks : tuple of str
        Sentences about what does not fit or is not known.
    """

    hall: Hall
    nodes: int
    nics: int
    nic_rate_Gbps: float
    switches: tuple[SwitchCount, ...]
    links: tuple[LinkCount, ...]
    checks: tuple[str, ...] = ()


def by_metres(lengths: IntArray, counts: IntArray) -> tuple[tuple[int, int], ...]:
    """Links by whole metres, those that there are none of left out."""
    metres, place = np.unique(lengths, return_inverse=True)
    total = np.bincount(place, counts, minlength=len(metres)).astype(np.int64)
    return tuple((m, n) for m, n in zip(metres.tolist(), total.tolist(), strict=True) if n)
