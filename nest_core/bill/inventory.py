"""What a fabric consists of, and where it stands; before any price.

Where nodes and switches stand, and how long the cables between them are.

Nodes fill racks in the order of their numbers, as many as height and power of a rack allow;
racks fill rows. A switch stands in the middle rack of those that it serves. A cable inside a rack
has a fixed length; others run up to a tray, along rows and across them, and down again:

    length = rise + |columns apart| * rack width + |rows apart| * row pitch + slack.

Lengths are rounded up to whole metres, as cables are sold. All figures are those of the price
list's ``[floor]``.

What a fabric consists of: switches, links by tier and length, cards; before any price.

Everything is counted by index arithmetic on nodes, leaves and pods, never cable by cable, so a
fabric of 131,072 devices takes milliseconds. What failed is not counted. The insides of nodes
are no part of the network.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from nest_core.bill.prices import Floor, PriceRange, Prices, Server
from nest_core.documents import humanise, plural
from nest_core.fabric import IntArray

__all__ = [
    "BITS",
    "Hall",
    "Inventory",
    "LinkCount",
    "SwitchCount",
    "by_metres",
    "chip_hall",
    "node_hall",
]


@dataclass(frozen=True, slots=True)
class Hall:
    """Racks of equal nodes, numbered along the rows.

    Parameters
    ----------
    floor : Floor
    nodes : int
        Places, failed ones counted.
    per_rack : int
    node_power_kW : PriceRange
    server : str
        What the power of a node is that of.
    is_listed : bool
        Whether that is a listed server; else the power is an estimate.
    checks : tuple of str
        What the racks do not hold.
    """

    floor: Floor
    nodes: int
    per_rack: int
    node_power_kW: PriceRange
    server: str
    is_listed: bool
    checks: tuple[str, ...] = ()

    @property
    def racks(self) -> int:
        """Return racks with nodes."""
        return -(-self.nodes // self.per_rack)

    @property
    def rack_power_kW(self) -> float:
        """Return a full rack of nodes."""
        return self.per_rack * self.node_power_kW.typical

    def rack_of(self, node: IntArray) -> IntArray:
        """Return rack of each node."""
        return node // self.per_rack

    def middle(self, first: IntArray, last: IntArray) -> IntArray:
        """Middle rack of nodes ``first`` to ``last``, both included.

        In one row it is the one halfway; over several rows the one halfway along in the row that
        is halfway down.
        """
        columns = int(self.floor.racks_per_row.typical)
        a, b = self.rack_of(first), self.rack_of(last)
        row_a, row_b = a // columns, b // columns
        row = (row_a + row_b) // 2
        start = np.where(row_a == row_b, a % columns, 0)
        end = np.where(row_a == row_b, b % columns, min(columns, self.racks) - 1)
        # A last row that is short has no racks beyond its end.
        return np.asarray(np.minimum(row * columns + (start + end) // 2, self.racks - 1))

    def lengths_m(self, a: IntArray, b: IntArray) -> IntArray:
        """Return metres of a cable between racks, whole, element by element."""
        columns = int(self.floor.racks_per_row.typical)
        across = np.abs(a % columns - b % columns)
        return self.runs_m(across, np.abs(a // columns - b // columns))

    def runs_m(self, across: IntArray, down: IntArray) -> IntArray:
        """Return metres of a cable between racks so many columns and rows apart."""
        floor = self.floor
        run = (
            floor.rise_m.typical
            + across * floor.rack_width_m.typical
            + down * floor.row_pitch_m.typical
            + floor.slack_m.typical
        )
        metres = np.where((across == 0) & (down == 0), floor.in_rack_m.typical, run)
        return np.maximum(1, np.ceil(metres - 1e-9)).astype(np.int64)

    def spread_m(self, racks: IntArray) -> Counter[int]:
        """Return how many pairs of switches are how many metres apart, by autocorrelation.

        Parameters
        ----------
        racks : int array, shape (switches,)
            Where each stands; every unordered pair counts once.
        """
        # A row is not longer than what stands in it.
        columns = min(int(self.floor.racks_per_row.typical), int(racks.max()) + 1)
        rows = int(racks.max()) // columns + 1
        shape = (2 * rows, 2 * columns)
        here = np.zeros(shape)
        np.add.at(here, (racks // columns, racks % columns), 1.0)
        spectrum = np.fft.rfft2(here)
        pairs = np.rint(np.fft.irfft2(np.abs(spectrum) ** 2, s=shape)).astype(np.int64)
        pairs[0, 0] -= len(racks)  # a switch and itself
        down, across = np.indices(shape)
        metres = self.runs_m(
            np.minimum(across, shape[1] - across), np.minimum(down, shape[0] - down)
        )
        return Counter(
            {
                length: int(pairs[metres == length].sum()) // 2
                for length in np.unique(metres[pairs > 0]).tolist()
            }
        )


def node_hall(prices: Prices, nodes: int, devices_per_node: int, fabric: str = "") -> Hall:
    """Return racks of servers.

    Of the listed servers that have as many devices as a node it is ``[floor] server``, else the
    one whose accelerator the fabric's name gives (B300 in DGX B300), else the first; if none has,
    a node draws as many times the power of a device.
    """
    floor = prices.floor
    words = set(fabric.replace(",", " ").split())
    fitting = [server for server in prices.server if server.devices == devices_per_node]
    fitting.sort(
        key=lambda server: (server.name != floor.server, server.name.split()[-1] not in words)
    )
    server = fitting[0] if fitting else None
    power = server.power_kW.range if server else devices_per_node * floor.device_power_kW.range
    units = server.rack_units if server else max(1, devices_per_node)
    name = server.name if server else f"node of {plural(devices_per_node, 'device')}"
    return _hall(floor, nodes, power, units, name, server)


def chip_hall(prices: Prices, chips: int) -> Hall:
    """Return racks of chips that are joined directly, without servers of their own."""
    floor = prices.floor
    per_rack = int(floor.chips_per_rack.typical)
    return Hall(
        floor,
        chips,
        per_rack,
        floor.chip_power_kW.range,
        "chip",
        False,
        _over(floor, per_rack, floor.chip_power_kW.typical, "chips", "floor.chips_per_rack"),
    )


def _hall(
    floor: Floor, nodes: int, power: PriceRange, units: int, name: str, server: Server | None
) -> Hall:
    limit, height = floor.rack_power_limit_kW.typical, floor.rack_units.typical
    by_power = int(limit / power.typical + 1e-9) if power.typical > 0 else nodes
    per_rack = floor.nodes_per_rack or max(1, min(by_power, int(height // units)))
    checks = _over(floor, per_rack, power.typical, name, "floor.nodes_per_rack")
    if per_rack * units > height:
        checks += (
            f"{per_rack} {name} take {per_rack * units} rack units, a rack has {height:g}: "
            "lower floor.nodes_per_rack or raise floor.rack_units.",
        )
    return Hall(floor, nodes, max(1, per_rack), power, name, server is not None, checks)


def _over(floor: Floor, per_rack: int, power_kW: float, name: str, key: str) -> tuple[str, ...]:
    limit = floor.rack_power_limit_kW.typical
    needed = per_rack * power_kW
    if needed <= limit * (1 + 1e-9):
        return ()
    remedy = f"lower {key} or raise" if per_rack > 1 else "raise"
    return (
        f"A rack of {per_rack} {name} draws {humanise(1e3 * needed, 'W')}, over the limit of "
        f"{humanise(1e3 * limit, 'W')}: {remedy} floor.rack_power_limit_kW.",
    )


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
        """Return how many links there are."""
        return sum(count for _, count in self.metres)

    @property
    def longest_m(self) -> int:
        """Return metres of the longest; 0 if there is none."""
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
    """Return links by whole metres, those that there are none of left out."""
    metres, place = np.unique(lengths, return_inverse=True)
    total = np.bincount(place, counts, minlength=len(metres)).astype(np.int64)
    return tuple((m, n) for m, n in zip(metres.tolist(), total.tolist(), strict=True) if n)
