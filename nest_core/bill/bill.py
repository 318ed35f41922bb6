"""Bill of materials: what a fabric's network consists of, costs and draws.

Parts are counted by `inventory`, cables chosen by `lines`, prices taken from a checked list.
Accelerators and servers are no part of the bill; their power is, where racks are checked. Prices
are US dollars, powers watts, rates Gb/s; low and high ends of all figures add up as if they came
together, which overstates the spread.

A switch is the first listed one of the fabric's radix and rate; or one whose ports, broken out
two, four or eight ways, are those; else it is priced by capacity and marked as an estimate.
``transceivers`` counts ends of optical links, two per link, as the sizing formulae do; a twin-port
module carries two of them, so modules are fewer.
"""

import math
from dataclasses import dataclass, replace
from functools import singledispatch

from nest_core.bill.counts import clos_parts, dragonfly_parts, hierarchical_parts, torus_parts
from nest_core.bill.counts_drawn import graph_parts
from nest_core.bill.inventory import Hall, Inventory
from nest_core.bill.lines import (
    BillLine,
    LinkTotal,
    SwitchTotal,
    check_reach,
    priced_cards,
    priced_links,
    priced_switch,
    with_owned,
)
from nest_core.bill.prices import NONE, PriceRange, Prices
from nest_core.documents import humanise_power, require
from nest_core.fabric import Clos, Dragonfly, Fabric, Hierarchical, as_graph, torus_of

__all__ = ["Bill", "bill", "inventory", "media_by_tier"]

_SAME = 1e-6
_SCALE_UP = BillLine(
    "scale-up switch",
    "switch inside a node",
    "node",
    0,
    NONE,
    NONE,
    "in the price of its server",
    False,
)


@dataclass(frozen=True, slots=True)
class Bill:
    """A fabric's bill.

    Parameters
    ----------
    name, prices : str
        Of the fabric and of the price list.
    lines : tuple of BillLine
        Innermost tier first: cards, then switches, transceivers and cables tier by tier.
    switches : tuple of SwitchTotal
    links : tuple of LinkTotal
    nics, transceivers, modules, cables : int
        Transceivers count link ends, modules what is ordered.
    price_usd, power_W : PriceRange
        Of the network alone.
    nodes, racks, network_racks, nodes_per_rack : int
    node_power_W, rack_power_W : float
        One node, one full rack of nodes.
    server : str
        What the power of a node is that of.
    checks : tuple of str
        What exceeds a limit or is not known, and what to do about it.
    """

    name: str
    prices: str
    lines: tuple[BillLine, ...]
    switches: tuple[SwitchTotal, ...]
    links: tuple[LinkTotal, ...]
    nics: int
    transceivers: int
    modules: int
    cables: int
    price_usd: PriceRange
    power_W: PriceRange
    nodes: int
    racks: int
    network_racks: int
    nodes_per_rack: int
    node_power_W: float
    rack_power_W: float
    server: str
    checks: tuple[str, ...]

    @property
    def estimated_share(self) -> float:
        """Return the typical price's share that rests on estimates; 0 where nothing is bought."""
        estimated = sum(line.price_usd.typical for line in self.lines if line.estimate)
        return estimated / self.price_usd.typical if self.price_usd.typical else 0.0


@singledispatch
def inventory(fabric: Fabric, prices: Prices) -> Inventory:
    """Count a fabric of any kind; the list says how it stands on the floor.

    A kind that knows its parts registers its own arithmetic, O(nodes + switches); the parts of any
    other are those of its link graph.
    """
    torus = torus_of(fabric)
    return torus_parts(torus, prices) if torus else graph_parts(as_graph(fabric), prices)


inventory.register(Clos, clos_parts)
inventory.register(Dragonfly, dragonfly_parts)
inventory.register(Hierarchical, hierarchical_parts)


def bill(fabric: Fabric, prices: Prices) -> Bill:
    """Count and price the network of a fabric.

    Parameters
    ----------
    fabric : Fabric
    prices : Prices
        As `load_prices` returns it.

    Examples
    --------
    >>> from nest_core.scenario import load_fabric
    >>> from nest_core.bill.prices import load_prices
    >>> found = bill(load_fabric("dgx-superpod-h100"), load_prices())
    >>> [(total.role, total.item, total.count) for total in found.switches]
    [('leaf', 'QM9700', 32), ('spine', 'QM9700', 16)]
    >>> found.transceivers, found.modules
    (4096, 2560)
    """
    parts = inventory(fabric, prices)
    switches = [priced_switch(prices, count) for count in parts.switches]
    cards = priced_cards(prices, parts)
    media = media_by_tier(fabric, prices, parts)
    wired = [priced_links(prices, link, media.get(link.tier, "")) for link in parts.links]
    inner = replace(_SCALE_UP, count=parts.scale_up)  # the servers', no network switches
    network = (*cards, *(line for _, line, _ in switches), *(x for w in wired for x in w.lines))
    lines = [*with_owned(prices, network), *([inner] if inner.count else [])]
    height = sum(units * total.count for total, _, units in switches)
    network_W = sum(line.power_W.typical for _, line, _ in switches)
    floor = prices.floor
    return Bill(
        name=fabric.name,
        prices=prices.name,
        lines=tuple(lines),
        switches=tuple(total for total, _, _ in switches),
        links=tuple(priced.total for priced in wired),
        nics=parts.nics,
        transceivers=sum(priced.ends for priced in wired),
        modules=sum(line.count for line in lines if line.part == "transceiver"),
        cables=sum(run.count for priced in wired for run in priced.total.runs),
        price_usd=sum((line.price_usd for line in lines), NONE),
        power_W=sum((line.power_W for line in lines), NONE),
        nodes=parts.nodes,
        racks=parts.hall.racks,
        network_racks=max(
            math.ceil(height / floor.rack_units.typical - _SAME),
            math.ceil(network_W / (1e3 * floor.rack_power_limit_kW.typical) - _SAME),
        ),
        nodes_per_rack=parts.hall.per_rack,
        node_power_W=1e3 * parts.hall.node_power_kW.typical,
        rack_power_W=1e3 * parts.hall.rack_power_kW,
        server=parts.hall.server,
        checks=(
            *parts.checks,
            *_hall_checks(parts.hall),
            *dict.fromkeys(check for priced in wired for check in priced.checks),
            *dict.fromkeys(
                f"No listed switch has {count.ports} ports of {count.rate_Gbps:.4g} Gb/s: it is "
                "priced by capacity; add one to the price list."
                for count, (total, _, _) in zip(parts.switches, switches, strict=True)
                if not total.item
            ),
            *dict.fromkeys(
                f"No source states the price of {line.item}: the total is without it."
                for line in lines
                if not line.priced
            ),
        ),
    )


def media_by_tier(fabric: Fabric, prices: Prices, parts: Inventory) -> dict[str, str]:
    """Kinds of cable or optics that tiers ask for: of the fabric, else of the list.

    Raises
    ------
    InputError
        Where the fabric names a tier that it does not have, or what does not reach.
    """
    tiers = [link.tier for link in parts.links]
    fabric_optics = dict(fabric.optics)
    for tier in fabric_optics:
        require(
            tier in tiers,
            f"optics.{tier}",
            "must name a tier of the fabric",
            tier,
            "pick " + ", ".join(tiers),
        )
    media = prices.cabling.tiers | fabric_optics
    for link in parts.links:
        if link.tier in media:
            where = "optics" if link.tier in fabric_optics else "prices.cabling.tiers"
            check_reach(prices, link, media[link.tier], f"{where}.{link.tier}")
    return media


def _hall_checks(hall: Hall) -> tuple[str, ...]:
    if hall.is_listed or hall.server == "chip":
        return hall.checks
    power = humanise_power(1e3 * hall.node_power_kW.typical)
    return (
        *hall.checks,
        f"No listed server has such nodes: {power} per {hall.server} is an estimate; list one.",
    )
