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

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nest_core.bill.prices import Floor, PriceFigure, PriceRange, Prices, Server
from nest_core.documents import humanise_power, plural
from nest_core.fabric import IntArray

__all__ = [
    "BITS",
    "RACK",
    "Hall",
    "Inventory",
    "LinkCount",
    "SwitchCount",
    "by_metres",
    "chip_hall",
    "node_hall",
    "servers_named",
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
    rack_numbers : tuple of int
        Rack of every place, where the fabric says; else nodes fill racks in order.
    """

    floor: Floor
    nodes: int
    per_rack: int
    node_power_kW: PriceRange
    server: str
    is_listed: bool
    checks: tuple[str, ...] = ()
    rack_numbers: tuple[int, ...] = ()

    @property
    def racks(self) -> int:
        """Return racks with nodes."""
        return max(self.rack_numbers) + 1 if self.rack_numbers else -(-self.nodes // self.per_rack)

    @property
    def rack_power_kW(self) -> float:
        """Return a full rack of nodes."""
        return self.per_rack * self.node_power_kW.typical

    def rack_of(self, node: IntArray) -> IntArray:
        """Return rack of each node."""
        return np.array(self.rack_numbers)[node] if self.rack_numbers else node // self.per_rack

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
        return self.runs_m(np.abs(a % columns - b % columns), np.abs(a // columns - b // columns))

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

    @property
    def in_rack_m(self) -> int:
        """Metres of a cable within a rack."""
        return int(self.runs_m(np.zeros(1, np.int64), np.zeros(1, np.int64))[0])

    def spread_m(self, racks: IntArray) -> Counter[int]:
        """Return how many pairs of switches are how many metres apart, by autocorrelation.

        Parameters
        ----------
        racks : int array, shape (switches,)
            Where each stands; every unordered pair counts once.
        """
        # A row is not longer than what stands in it.
        columns = min(int(self.floor.racks_per_row.typical), int(racks.max()) + 1)
        shape = (2 * (int(racks.max()) // columns + 1), 2 * columns)
        here = np.zeros(shape)
        np.add.at(here, (racks // columns, racks % columns), 1.0)
        pairs = np.rint(np.fft.irfft2(np.abs(np.fft.rfft2(here)) ** 2, s=shape)).astype(np.int64)
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


def node_hall(
    prices: Prices,
    nodes: int,
    devices_per_node: int,
    fabric: str = "",
    racks: Iterable[int] = (),
) -> Hall:
    """Return racks of servers; ``racks`` are those of every node, where the fabric has them.

    Of the listed servers that have as many devices as a node it is ``[floor] server``, else the
    one whose accelerator the fabric's name gives (B300 in DGX B300), else the first; if none has,
    a node draws as many times the power of a device.
    """
    floor, told = prices.floor, _told(prices, fabric)
    server = next((s for s in (*told, *prices.server) if s.devices == devices_per_node), None)
    power = (
        server.power_kW.range
        if server
        else devices_per_node * _share_kW(told, floor.device_power_kW)
    )
    units = server.rack_units if server else max(1, devices_per_node)
    name = server.name if server else f"node of {plural(devices_per_node, 'device')}"
    return _hall(floor, nodes, power, units, name, server, tuple(racks))


def chip_hall(prices: Prices, chips: int, fabric: str = "") -> Hall:
    """Return racks of chips that are joined directly, without servers of their own.

    Each draws as much as one device of the server that the list or the fabric's name tells.
    """
    floor = prices.floor
    per_rack = int(floor.chips_per_rack.typical)
    power = _share_kW(_told(prices, fabric), floor.chip_power_kW)
    return Hall(
        floor,
        chips,
        per_rack,
        power,
        "chip",
        False,
        _over(floor, per_rack, power.typical, "chips", "floor.chips_per_rack"),
    )


def servers_named(name: str, prices: Prices) -> list[Server]:
    """Return the listed servers that have a word in common with a name, as of an accelerator."""
    words = set(name.replace(",", " ").split()) - {"DGX"}  # of A100 as of B300
    words = words & {"PCIe", "NVL"} or words  # a DGX holds no cards
    return [server for server in prices.server if words & set(server.name.split())]


def _told(prices: Prices, fabric: str) -> list[Server]:
    """Return ``[floor] server``, or else those that a fabric's name tells."""
    return [
        server for server in prices.server if server.name == prices.floor.server
    ] or servers_named(fabric, prices)


def _share_kW(told: list[Server], otherwise: PriceFigure) -> PriceRange:
    """Return what one device of a server draws with its share of the rest."""
    return (1 / told[0].devices) * told[0].power_kW.range if told else otherwise.range


def _hall(
    floor: Floor,
    nodes: int,
    power: PriceRange,
    units: int,
    name: str,
    server: Server | None,
    racks: tuple[int, ...],
) -> Hall:
    limit, height = floor.rack_power_limit_kW.typical, floor.rack_units.typical
    by_power = int(limit / power.typical + 1e-9) if power.typical > 0 else nodes
    per_rack = (
        floor.nodes_per_rack
        or max(Counter(racks).values(), default=0)
        or max(1, min(by_power, int(height // units)))
    )
    checks = _over(floor, per_rack, power.typical, name, "floor.nodes_per_rack")
    if per_rack * units > height:
        checks += (
            f"{per_rack} {name} take {per_rack * units} rack units, a rack has {height:g}: "
            "lower floor.nodes_per_rack or raise floor.rack_units.",
        )
    is_listed, racks = server is not None, () if floor.nodes_per_rack else racks
    return Hall(floor, nodes, per_rack, power, name, is_listed, checks, racks)


def _over(floor: Floor, per_rack: int, power_kW: float, name: str, key: str) -> tuple[str, ...]:
    limit = floor.rack_power_limit_kW.typical
    needed = per_rack * power_kW
    if needed <= limit * (1 + 1e-9):
        return ()
    remedy = f"lower {key} or raise" if per_rack > 1 else "raise"
    return (
        f"A rack of {per_rack} {name} draws {humanise_power(1e3 * needed)}, over the limit of "
        f"{humanise_power(1e3 * limit)}: {remedy} floor.rack_power_limit_kW.",
    )


RACK = r"(?:rack|cabinet)(?![a-z])"
"""How names of levels and groups that are racks begin."""

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
    lanes : int
        Links of the slowest rate that one port holds.
    """

    role: str
    count: int
    ports: int
    rate_Gbps: float
    used: int
    optical: bool = False
    estimate: bool = False
    lanes: int = 1


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
    scale_up : int
        Switches inside nodes that are drawn: NVSwitch and the like, no part of the network.
    """

    hall: Hall
    nodes: int
    nics: int
    nic_rate_Gbps: float
    switches: tuple[SwitchCount, ...]
    links: tuple[LinkCount, ...]
    checks: tuple[str, ...] = ()
    scale_up: int = 0


def by_metres(lengths: IntArray, counts: IntArray) -> tuple[tuple[int, int], ...]:
    """Return links by whole metres, those that there are none of left out."""
    metres, place = np.unique(lengths, return_inverse=True)
    total = np.bincount(place, counts, minlength=len(metres)).astype(np.int64)
    return tuple((m, n) for m, n in zip(metres.tolist(), total.tolist(), strict=True) if n)
