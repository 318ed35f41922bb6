"""Parts of switched fabrics: Clos, hierarchies and dragonflies, by index arithmetic.

Parts of tori of chips, or of servers whose NICs are joined directly.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nest_core.bill.inventory import (
    BITS,
    RACK,
    Hall,
    Inventory,
    LinkCount,
    SwitchCount,
    by_metres,
    chip_hall,
    node_hall,
)
from nest_core.bill.lines import priced_switch
from nest_core.bill.prices import Prices
from nest_core.documents import format_money, percent
from nest_core.fabric import Clos, Dragonfly, Hierarchical, IntArray, Torus

__all__ = ["clos_parts", "clos_places", "dragonfly_parts", "hierarchical_parts", "torus_parts"]


def clos_parts(fabric: Clos, prices: Prices) -> Inventory:
    """Leaves amid their nodes, spines amid their pod or the hall."""
    per_rack = fabric.nodes_per_rack
    racks = (node // per_rack for node in range(fabric.nodes)) if per_rack else ()
    hall = node_hall(prices, fabric.nodes, fabric.devices_per_node, fabric.name, racks)
    nodes = np.unique(fabric.node_of())
    places = clos_places(fabric, hall)
    runs = [by_metres(*_nic_runs(fabric, hall, nodes, places[0]))]
    above = (fabric.sizing.pod_of, fabric.sizing.top_of)
    for height, (below, upper_places) in enumerate(pairwise(places), start=1):
        upper = upper_places[np.array(above[height - 1])]
        runs.append(by_metres(hall.lengths_m(below, upper), fabric.uplinks(height)))
    return Inventory(
        hall,
        len(nodes),
        len(nodes) * fabric.nics_per_node,
        fabric.nic_bandwidth_Bps * BITS,
        tuple(_switches(fabric)),
        tuple(
            LinkCount(name, rate * BITS, metres, "switch" if index else "nic")
            for index, (name, rate, metres) in enumerate(
                zip(fabric.tier_names, fabric.link_rates_Bps, runs, strict=True)
            )
        ),
        _spread(fabric, prices),
    )


def _switches(fabric: Clos) -> Iterator[SwitchCount]:
    """Yield the switches of every tier, by ports of their fastest links, which slower ones share.

    Only a switch with ports as fast takes such links.
    """
    wide, ends = fabric.link_ports, np.multiply(fabric.as_built.links, fabric.link_ports)
    for tier, (name, count) in enumerate(fabric.switch_counts().items()):
        fastest, used = max(wide[tier : tier + 2]), int(ends[tier : tier + 2].sum())
        rate = fabric.link_bandwidth_Bps * BITS * fastest
        yield SwitchCount(
            name, count, fabric.radix // fastest, rate, -(-used // fastest), lanes=fastest
        )


def clos_places(fabric: Clos, hall: Hall) -> list[IntArray]:
    """Return rack of every group of switches, per height."""
    sizing = fabric.sizing
    first = (np.arange(sizing.units * sizing.rails) // sizing.rails) * sizing.nodes_per_unit
    last = np.minimum(first + sizing.nodes_per_unit, fabric.nodes) - 1
    places = [hall.middle(first, last)]
    for group_of in (sizing.pod_of, sizing.top_of)[: fabric.tiers - 1]:
        groups = np.array(group_of)
        first, last = _ends(groups, first, last, int(groups.max()) + 1)
        places.append(hall.middle(first, last))
    return places


def _nic_runs(
    fabric: Clos, hall: Hall, nodes: IntArray, leaves: IntArray
) -> tuple[IntArray, IntArray]:
    """Length of every node's links to its leaves, and how many they are."""
    sizing = fabric.sizing
    unit = nodes // sizing.nodes_per_unit
    links = fabric.leaf_links().reshape(sizing.units, sizing.rails).sum(axis=1)
    return hall.lengths_m(hall.rack_of(nodes), leaves[unit * sizing.rails]), links[unit]


def _spread(fabric: Clos, prices: Prices) -> tuple[str, ...]:
    """Say how uplinks are spread over spines, and what the other way costs.

    Even ones pass for an eighth more spines than their ports need: NVIDIA's tables have 18 for 16.
    """
    if fabric.tiers == 1:
        return ()
    intact = replace(fabric, devices=fabric.slots, installed=0, missing=())
    even = fabric.demand.even
    other = replace(intact, routing="adaptive", spread="fewest" if even else "even")
    count, instead = (sum(sized.sizing.spines) * sized.planes for sized in (intact, other))
    leaf, spine = fabric.tier_names[:2]
    if count == instead or (even and 8 * count <= 9 * instead):
        return ()
    more = format_money(abs(_switches_usd(intact, prices) - _switches_usd(other, prices)))
    if even:
        fixed = f" with adaptive routing ({fabric.routing} needs evenness)"
        remedy = f'clos.spread = "fewest"{"" if fabric.routing == "adaptive" else fixed}'
        return (
            f"{more} buy evenness: as many links from one {leaf} to each {spine} take {count:,} "
            f"{spine} switches, though the ports of {instead:,} would do: {remedy}.",
        )
    sizing = intact.sizing
    alike = dict(zip(zip(sizing.leaves, sizing.spines, strict=True), range(count), strict=False))
    links = min(map(sizing.spine_links, alike.values()), key=_worst_pair)
    return (
        f"{count:,} {spine} switches are the fewest that adaptive routing can use: uplinks are "
        f"dealt in turn, {links.min()} or {links.max()} from one {leaf} to each {spine} above it, "
        f"and two {leaf} switches that send each other all they have get "
        f"{percent(_worst_pair(links))} of it at worst. Even ones "
        f'(clos.spread = "even") take {instead:,}, {more} more.',
    )


def _worst_pair(links: IntArray) -> float:
    """Return the least share of their uplinks that two leaves have to the same spines."""
    return float(np.minimum(links[:, None], links[None]).sum(axis=2).min() / links[0].sum())


def _switches_usd(fabric: Clos, prices: Prices) -> float:
    return sum(priced_switch(prices, count)[1].price_usd.typical for count in _switches(fabric))


def hierarchical_parts(fabric: Hierarchical, prices: Prices) -> Inventory:
    """Return cables by what climbs into each level, and the fewest switches that hold them."""
    innermost = fabric.host_level
    node, places = fabric.group_of(innermost), fabric.groups[innermost]
    level = next(
        (k for k, tier in enumerate(fabric.tiers) if re.match(RACK, tier.name, re.IGNORECASE)), 0
    )
    racks = np.zeros(places, np.int64)
    racks[node] = fabric.group_of(level)
    in_order = np.maximum.accumulate(racks).tolist() if level else ()  # failed ones beside others
    hall = node_hall(
        prices,
        places,
        fabric.devices_per_host if innermost else fabric.tiers[0].group_size,
        fabric.name,
        in_order,
    )
    rack = hall.rack_of(np.arange(places))
    links: list[LinkCount] = []
    rates: list[tuple[str, float, IntArray, IntArray]] = []
    below = node
    for level, tier in list(enumerate(fabric.tiers))[innermost + 1 :]:
        group = fabric.group_of(level)
        count, rate = _cables(
            fabric.uplinks(level),
            tier.bandwidth_Bps * BITS,
            tier.oversubscription,
            max(switch.rate_Gbps for switch in prices.switch),
        )
        first, last = _ends(group, node, node, fabric.groups[level])
        above = hall.middle(np.minimum(first, last), last)  # groups without devices: node 0
        parent = np.zeros(len(count), dtype=np.int64)
        parent[below] = group
        lengths = hall.lengths_m(rack, above[parent])
        lower = "nic" if level == innermost + 1 else "switch"
        links.append(LinkCount(tier.name, rate, by_metres(lengths, count), lower))
        rates.append((tier.name, rate, count, parent))
        rack, below = above, group
    return Inventory(
        hall,
        len(np.unique(node)),
        links[0].count if links else 0,
        links[0].rate_Gbps if links else 0.0,
        tuple(_hierarchical_switches(prices, rates)),
        tuple(links),
        ()
        if not links
        else (
            "Levels do not say which switches join them: those counted are the fewest listed ones "
            "whose ports hold the cables of each group; describe the fabric as a Clos for a bill.",
        ),
    )


def _cables(
    uplinks: IntArray, uplink_Gbps: float, ratio: float, largest: float
) -> tuple[IntArray, float]:
    """Whole cables of every child, and the rate of one.

    An uplink faster than any listed port is several of the fastest in parallel; oversubscription
    removes cables.
    """
    parallel = max(1, math.ceil(uplink_Gbps / largest - 1e-9))
    count: IntArray = np.ceil(uplinks * (parallel / ratio) - 1e-6).astype(np.int64)
    return count, uplink_Gbps / parallel


def _ends(
    group: IntArray, first: IntArray, last: IntArray, groups: int
) -> tuple[IntArray, IntArray]:
    """Return the least of the firsts and the greatest of the lasts of every group."""
    begin = np.full(groups, int(last.max()))
    end = np.zeros(groups, dtype=np.int64)
    np.minimum.at(begin, group, first)
    np.maximum.at(end, group, last)
    return begin, end


def _hierarchical_switches(
    prices: Prices, tiers: list[tuple[str, float, IntArray, IntArray]]
) -> Iterator[SwitchCount]:
    """Yield the fewest listed switches per group whose ports hold the cables below and above."""
    for index, (name, rate, count, parent) in enumerate(tiers):
        groups = len(tiers[index + 1][2]) if index + 1 < len(tiers) else 1
        ends = np.bincount(parent, count, minlength=groups).astype(np.float64)
        if index + 1 < len(tiers):
            _, above_rate, above, _ = tiers[index + 1]
            # Ports at another rate count by what they carry.
            ends = ends + above * (above_rate / rate)
        switch = next((s for s in prices.switch if s.rate_Gbps >= rate * (1 - 1e-9)), None)
        chosen = switch or max(prices.switch, key=lambda s: s.rate_Gbps)
        ports = max(1, int(chosen.ports * max(1, chosen.rate_Gbps // rate)))
        boxes = int(np.ceil(ends / ports - 1e-9).sum())
        yield SwitchCount(name, boxes, ports, rate, int(np.ceil(ends.sum())), estimate=True)


def dragonfly_parts(fabric: Dragonfly, prices: Prices) -> Inventory:
    """Count a dragonfly, whose routers stand together amid the nodes of their group."""
    hall = node_hall(prices, fabric.nodes, fabric.devices_per_node, fabric.name)
    a, p, groups = fabric.routers_per_group, fabric.nodes_per_router, fabric.groups
    per_group = a * p
    first = np.arange(groups) * per_group
    place = hall.middle(first, first + per_group - 1)
    nodes = np.arange(fabric.nodes)
    to_router = hall.lengths_m(hall.rack_of(nodes), place[nodes // per_group])
    local = groups * a * (a - 1) // 2
    links = fabric.links_per_pair
    pairs = hall.spread_m(place) if links else Counter[int]()
    wide = links * groups * (groups - 1) // 2
    rates = [
        bandwidth * BITS
        for bandwidth in (
            fabric.nic_bandwidth_Bps,
            fabric.local_bandwidth_Bps,
            fabric.global_bandwidth_Bps,
        )
    ]
    nics = fabric.nodes * fabric.nics_per_node
    used = nics + 2 * local + 2 * wide
    return Inventory(
        hall,
        fabric.nodes,
        nics,
        rates[0],
        (SwitchCount("router", fabric.routers, fabric.radix, max(rates), used),),
        (
            LinkCount(
                "node",
                rates[0],
                by_metres(to_router, np.full_like(to_router, fabric.nics_per_node)),
                "nic",
            ),
            LinkCount("local", rates[1], ((hall.in_rack_m, local),) if local else ()),
            LinkCount("global", rates[2], tuple((m, n * links) for m, n in sorted(pairs.items()))),
        ),
    )


def torus_parts(fabric: Torus, prices: Prices) -> Inventory:
    """Return links between chips, or between NICs; whole cubes behind optical switches."""
    rate = fabric.link_bandwidth_Bps * BITS
    if fabric.nics_per_device:
        return _of_nics(fabric, prices, rate)
    hall = chip_hall(prices, fabric.places, fabric.name)
    of_cubes = len(fabric.shape) == 3 and all(size % 4 == 0 for size in fabric.shape)
    if of_cubes and all(fabric.wrap):  # TPU v4's, behind optical switches
        return _cube_inventory(fabric, prices, hall, rate)
    near, far = _runs(fabric, hall, 1)
    links = tuple(
        LinkCount(tier, rate, tuple(sorted(runs.items())), "chip", "chip", copper=copper)
        for tier, runs, copper in (("neighbour", near, True), ("wrap-around", far, False))
        if runs
    )
    return Inventory(hall, fabric.devices, 0, 0.0, (), links)


def _of_nics(fabric: Torus, prices: Prices, rate: float) -> Inventory:
    """Servers whose NICs, broken out, are joined directly."""
    per_node = fabric.devices_per_node
    nodes = -(-fabric.places // per_node)
    hall = node_hall(prices, nodes, per_node, fabric.name)
    links = tuple(
        LinkCount(tier, rate, tuple(sorted(runs.items())), "nic", "nic")
        for tier, runs in zip(
            ("neighbour", "wrap-around"), _runs(fabric, hall, per_node), strict=True
        )
        if runs
    )
    return Inventory(
        hall,
        nodes,
        fabric.devices * fabric.nics_per_device,
        fabric.nic_bandwidth_Bps * BITS,
        (),
        links,
        (f"NICs are broken out into links of {rate:.4g} Gb/s, each with modules of its own.",),
    )


def _runs(fabric: Torus, hall: Hall, per_node: int) -> tuple[Counter[int], Counter[int]]:
    """Return links by length, those between neighbours and those that close a dimension."""
    near: Counter[int] = Counter()
    far: Counter[int] = Counter()
    for a, b, _, closes in fabric.link_places():
        lengths, counts = np.unique(
            hall.lengths_m(hall.rack_of(a // per_node), hall.rack_of(b // per_node)),
            return_counts=True,
        )
        (far if closes else near).update(dict(zip(lengths.tolist(), counts.tolist(), strict=True)))
    return near, far


def _cube_inventory(fabric: Torus, prices: Prices, hall: Hall, rate: float) -> Inventory:
    """Cubes of 64 chips: 144 links inside, 96 fibres out, two for every link between cubes.

    Every one of the 3 x 16 pairs of opposite face links has an optical switch of its own, with
    two ports per cube (Jouppi et al. 2023).
    """
    cubes = fabric.places // 64
    optical, faces = prices.optical_switch, 3 * 16
    boxes = faces * -(-2 * cubes // optical.used_ports)
    cube = np.arange(cubes)
    centre = hall.middle(np.zeros(1, np.int64), np.array([fabric.places - 1]))
    lengths = hall.lengths_m(hall.rack_of(cube * 64), np.repeat(centre, cubes))
    checks: tuple[str, ...] = (
        "Whole cubes are billed as TPU v4 has them, behind optical circuit switches, which smaller "
        "slices share with the rest of their pod: switches are priced by the ports used.",
    )
    if 2 * cubes > optical.used_ports:
        checks += (
            f"{cubes} cubes need {2 * cubes} ports of every optical switch, one has "
            f"{optical.used_ports}: larger ones, or a second layer, which is not counted.",
        )
    return Inventory(
        hall,
        fabric.devices,
        0,
        0.0,
        (SwitchCount("optical", boxes, optical.ports, rate, 2 * faces * cubes, optical=True),),
        (
            LinkCount("cube", rate, ((hall.in_rack_m, 144 * cubes),), "chip", "chip", copper=True),
            LinkCount(
                "between cubes",
                rate,
                by_metres(lengths, np.full(cubes, 48)),
                "chip",
                "chip",
                cables_per_link=2,
            ),
        ),
        checks,
    )
