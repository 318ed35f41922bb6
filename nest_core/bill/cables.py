"""Cable schedule: one row per cable, from port to port, with its kind and length.

Rows are those that the bill counts: the same rack layout gives their lengths, the same price list
what they are. Ports of a switch are numbered from 1. Where two or more of them share a cage, by a
twin-port transceiver or because the switch's own ports are broken out, a port is called by cage and
place: ``port 5/2``. Rows are made one by one, so that a fabric of 131,072 devices takes seconds and
no memory to speak of.

Units: metres, whole, as cables are sold.
NetBox: columns of the bulk import of cables that versions 3.7 to 4.7 have in common, and its choice
values (netbox-community/netbox, ``dcim/forms/bulk_import.py`` and ``dcim/choices.py``).
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from nest_core.bill.bill import inventory, media_by_tier
from nest_core.bill.bundles import (
    Bundle,
    Side,
    clos_bundles,
    dragonfly_bundles,
    graph_bundles,
    torus_bundles,
)
from nest_core.bill.inventory import Inventory, SwitchCount
from nest_core.bill.lines import Ends, MediaChoice, choose, listed_switch
from nest_core.bill.prices import Prices
from nest_core.documents import as_cell, require, summed
from nest_core.fabric import Clos, Dragonfly, Fabric, Hierarchical, as_graph, lattice_of

__all__ = [
    "COLUMNS",
    "NETBOX_COLUMNS",
    "Cable",
    "Format",
    "Schedule",
    "cable_schedule",
    "csv_lines",
]

Format: TypeAlias = Literal["csv", "netbox"]

COLUMNS = ("a", "a_port", "b", "b_port", "type", "length_m", "tier", "item", "a_module", "b_module")

NETBOX_COLUMNS = (
    "side_a_device",
    "side_a_type",
    "side_a_name",
    "side_b_device",
    "side_b_type",
    "side_b_name",
    "type",
    "status",
    "label",
    "length",
    "length_unit",
)
NETBOX_TYPES = {
    "DAC": "dac-passive",
    "ACC": "dac-active",
    "AEC": "dac-active",
    "AOC": "aoc",
    "MMF": "mmf-om4",
    "SMF": "smf-os2",
    "SMF-2km": "smf-os2",
    "MMF-LPO": "mmf-om4",
    "SMF-CPO": "smf-os2",
}
"""By kind in the price list; what is not here is left empty, as NetBox allows."""
_CHUNK = 2_000
_NAMES = (
    "NetBox takes the rows once it has devices and interfaces of these names; rename them here as "
    "your site calls them, or there before the import."
)
_CELLS: Callable[[Any], tuple[str | int, ...]] = attrgetter(*COLUMNS)


@dataclass(frozen=True, slots=True)
class Cable:
    """One cable.

    Parameters
    ----------
    a, a_port, b, b_port : str
        The end nearer to the devices, and the other.
    type : str
        Kind of cable as the price list has it: DAC, AEC, MMF, ...
    length_m : int
    tier : str
        As the bill calls it.
    item : str
        What to order.
    a_module, b_module : str
        Transceivers; empty where the cable carries its ends.
    """

    a: str
    a_port: str
    b: str
    b_port: str
    type: str
    length_m: int
    tier: str
    item: str
    a_module: str
    b_module: str

    def cells(self) -> tuple[str | int, ...]:
        """Return the cells by `COLUMNS`."""
        return _CELLS(self)


@dataclass(frozen=True, slots=True)
class Schedule:
    """All cables of a fabric.

    Parameters
    ----------
    count : int
        Cables, those of the bill.
    tiers : tuple of (str, int)
        Cables by tier, innermost first.
    notes : tuple of str
        What to know before ordering or importing, one sentence each.
    cables : iterator of Cable
        Innermost tier first; can be gone through once.
    """

    count: int
    tiers: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    cables: Iterator[Cable]


def cable_schedule(fabric: Fabric, prices: Prices) -> Schedule:
    """Return every cable of a fabric, as the bill counts them.

    Raises
    ------
    InputError
        For fabrics that do not say which switches join their devices.

    Examples
    --------
    >>> from nest_core.bill.prices import load_prices
    >>> from nest_core.scenario import load_fabric
    >>> found = cable_schedule(load_fabric("dgx-superpod-h100"), load_prices())
    >>> found.count, next(found.cables).b_port
    (2048, 'port 1/1')
    """
    require(
        not isinstance(fabric, Hierarchical),
        "fabric",
        "must say which switches join its devices, for a list of its cables",
        "levels of groups",
        "describe it as a Clos, or draw it",
    )
    parts = inventory(fabric, prices)
    tiers = summed((link.tier, link.count * link.cables_per_link) for link in parts.links)
    shared = {count.role: _per_cage(prices, count) for count in parts.switches}
    media = media_by_tier(fabric, prices, parts)
    rows = _rows(prices, _bundles(fabric, parts, prices), shared, media)
    return Schedule(sum(tiers.values()), tuple(tiers.items()), _notes(prices, parts, shared), rows)


def csv_lines(cables: Iterable[Cable], style: Format) -> Iterator[str]:
    """Return the schedule as CSV, many lines at a time, with a header.

    Parameters
    ----------
    cables : iterable of Cable
    style : {"csv", "netbox"}
        All that a `Cable` says, or NetBox's bulk import.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NETBOX_COLUMNS if style == "netbox" else COLUMNS)
    for number, cable in enumerate(cables, start=1):
        writer.writerow(
            map(as_cell, _netbox(cable, number) if style == "netbox" else cable.cells())
        )
        if number % _CHUNK == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _netbox(cable: Cable, number: int) -> tuple[str | int, ...]:
    sides = (cable.a, "dcim.interface", cable.a_port, cable.b, "dcim.interface", cable.b_port)
    return (
        *sides,
        NETBOX_TYPES.get(cable.type, ""),
        "planned",
        f"C{number:06d}",
        cable.length_m,
        "m",
    )


def _bundles(fabric: Fabric, parts: Inventory, prices: Prices) -> Iterator[Bundle]:
    if isinstance(fabric, Clos):
        return clos_bundles(fabric, parts)
    if isinstance(fabric, Dragonfly):
        return dragonfly_bundles(fabric, parts)
    lattice = lattice_of(fabric)
    return (
        graph_bundles(as_graph(fabric), prices)
        if lattice is None
        else torus_bundles(fabric, lattice, parts, prices)
    )


def _rows(
    prices: Prices,
    bundles: Iterator[Bundle],
    shared: Mapping[str, int],
    media_of: Mapping[str, str],
) -> Iterator[Cable]:
    for bundle in bundles:
        chosen: dict[int, MediaChoice] = {}
        media = media_of.get(bundle.link.tier, "")
        (a, a_cage, a_elements, a_ports), (b, b_cage, b_elements, b_ports) = (
            (side, shared.get(side.role, 1), side.element.tolist(), side.port.tolist())
            for side in (bundle.a, bundle.b)
        )
        every = zip(a_elements, a_ports, b_elements, b_ports, bundle.metres.tolist(), strict=True)
        for source, port, other, other_port, metres in every:
            if metres not in chosen:
                chosen[metres] = choose(prices, bundle.link, metres, media)
            choice = chosen[metres]
            yield Cable(
                a.name(source),
                _port(a, port, a_cage),
                b.name(other),
                _port(b, other_port, b_cage),
                choice.cable.kind,
                metres,
                bundle.link.tier,
                choice.cable.name,
                _module(choice.lower),
                _module(choice.upper),
            )


def _port(side: Side, number: int, per_cage: int) -> str:
    if not side.role:
        return side.port_name(number)
    return (
        f"port {number + 1}"
        if per_cage == 1
        else f"port {number // per_cage + 1}/{number % per_cage + 1}"
    )


def _module(end: Ends | None) -> str:
    return end.module.name if end else ""


def _per_cage(prices: Prices, count: SwitchCount) -> int:
    """Ports of a switch that share a cage: broken out, or of a twin-port transceiver."""
    if count.optical:
        return 1
    listed = listed_switch(prices, count)
    if listed and listed[1] > 1:
        return listed[1] * count.lanes
    twins = (
        module.ports
        for module in prices.transceiver
        if module.end == "switch" and module.rate_Gbps == count.rate_Gbps
    )
    return max(twins, default=1) * count.lanes


def _notes(prices: Prices, parts: Inventory, shared: Mapping[str, int]) -> tuple[str, ...]:
    roles: dict[str, list[str]] = {}
    for count in parts.switches:
        share, listed = shared[count.role], listed_switch(prices, count)
        sentence = (
            f"broken out from ports of {listed[0].name}: rows of ports 1/1 to 1/{share} leave "
            "one cage, by a breakout cable or a transceiver of several ports."
            if listed and listed[1] > 1
            else f"{share} to a cage: rows of ports 1/1 to 1/{share} share a transceiver."
        )
        if share > 1 and count.role not in roles.setdefault(sentence, []):
            roles[sentence].append(count.role)
    shares = (
        f"Ports of {' and '.join(of)} switches are {sentence}"
        for sentence, of in roles.items()
        if of
    )
    return (*shares, _NAMES)
