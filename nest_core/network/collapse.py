"""From a fabric as people specify it to the levels and link map that costs read.

Hierarchies and Clos fabrics collapse exactly: one level per tier. A torus collapses into one
affinity class per hop distance, a dragonfly into node, router, group and all, a drawn graph that
is a torus or a mesh as that, any other into groups of devices that see the rest alike; all keep
their links for counting.

Levels and link map of Clos fabrics: a node, then one level per switch tier.

Devices of a node meet inside it; others climb through the NICs that serve them to their leaf
and on. On rail-optimised fabrics devices of one rail share leaves, so the leaf level cuts
across the nodes; on rail-only fabrics rails never meet, and a flow between rails is forwarded
inside its source node.
"""

from functools import singledispatch

import numpy as np

from nest_core.documents.units import plural
from nest_core.fabric import TABLED, Clos, Dragonfly, Fabric, Hierarchical, Torus, lattice_of
from nest_core.network.dragonfly import dragonfly_network
from nest_core.network.levels import Level, Network
from nest_core.network.link_map import (
    ECMP_DRAWS,
    FloatArray,
    IntArray,
    node_link_map,
    rank_within,
)
from nest_core.network.torus import TorusLinkMap, TorusShape
from nest_core.network.tree import TreeLinkMap, TreeTier, ways_out

__all__ = ["clos_network", "collapse", "is_counted"]


@singledispatch
def collapse(fabric: Fabric) -> Network:
    """Return the level-wise network of a fabric.

    A kind that knows its levels registers its own arithmetic; of any other they are found by
    cuts of its link graph.
    """
    if fabric.routing in TABLED:
        return _routed(fabric)
    lattice = lattice_of(fabric)
    if lattice is not None:
        return _torus(lattice.torus, lattice.place)
    from nest_core.network.clusters import graph_network  # scipy: only drawn fabrics need it

    return graph_network(fabric.explicit(), fabric.routing, fabric.ecmp_seed)


@collapse.register
def _clos(fabric: Clos) -> Network:
    return _routed(fabric) if fabric.routing in TABLED else clos_network(fabric)


@collapse.register
def _dragonfly(fabric: Dragonfly) -> Network:
    return _routed(fabric) if fabric.routing in TABLED else dragonfly_network(fabric)


def _routed(fabric: Fabric) -> Network:
    from nest_core.network.opensm import routed_network  # as above

    return routed_network(fabric)


def is_counted(fabric: Fabric) -> bool:
    """Whether levels follow from counts, in milliseconds, not from cuts of the link graph."""
    if fabric.routing in TABLED:
        return False
    is_registered = collapse.dispatch(type(fabric)) is not collapse.dispatch(object)
    return is_registered or lattice_of(fabric) is not None


@collapse.register
def _hierarchical(fabric: Hierarchical) -> Network:
    levels: list[Level] = []
    tiers: list[TreeTier] = []
    devices = np.arange(fabric.devices)
    below = devices
    for index, tier in enumerate(fabric.tiers):
        group = fabric.group_of(index)
        per_device = tier.uplink_per == "device"
        child_size = int(np.bincount(below).max())
        levels.append(
            Level(
                name=tier.name,
                kind="nested",
                group_size=int(np.bincount(group).max()),
                groups=int(np.unique(group).size),
                links=child_size if per_device else 1,
                link_bandwidth_Bps=tier.link_bandwidth_Bps,
                latency_s=tier.latency_s,
                child_size=child_size,
            )
        )
        owner = devices if per_device else below
        rate = np.full(int(owner.max()) + 1, tier.link_bandwidth_Bps)
        tiers.append(TreeTier(owner, group, rate, rate, tier.latency_s, per_device))
        below = group
    return Network(
        fabric.devices,
        tuple(levels),
        TreeLinkMap(tuple(tiers)),
        tuple(tier.group for tier in tiers),
        hosts=fabric.host_of() if fabric.devices_per_host else None,
    )


def _torus(fabric: Torus, place: IntArray) -> Network:
    shape = TorusShape(fabric.shape, fabric.wrap, fabric.shifts)
    levels = tuple(
        Level(
            name=plural(hops, "hop"),
            kind="affinity",
            group_size=0,
            groups=fabric.devices,
            links=1,
            # A flow of h hops occupies h links; where all devices send the same way each
            # link carries h of them.
            link_bandwidth_Bps=fabric.link_bandwidth_Bps / hops,
            latency_s=hops * fabric.hop_latency_s,
            child_size=1,
        )
        for hops in range(1, shape.diameter + 1)
    )
    link_map = TorusLinkMap(shape, place, fabric.link_bandwidth_Bps, fabric.hop_latency_s)
    return Network(
        fabric.devices,
        levels,
        link_map,
        shape.nesting(place, list(range(len(fabric.shape)))),
        shape,
    )


def clos_network(fabric: Clos, leaf_uplinks: int | None = None) -> Network:
    """Collapse a Clos fabric; exact.

    Parameters
    ----------
    fabric : Clos
    leaf_uplinks : int, optional
        Of every leaf switch, the most that are switched on.
    """
    node = fabric.node_of()
    devices = np.arange(fabric.devices)
    ports = np.full(fabric.devices, fabric.intra_bandwidth_Bps)
    inside = TreeTier(devices, node, ports, ports, fabric.intra_latency_s, direct=True)
    links = [fabric.uplinks(height) for height in range(1, fabric.tiers)]
    if leaf_uplinks is not None:
        links[0] = np.minimum(links[0], leaf_uplinks * fabric.planes)
    uplinks = [
        _uplink_tier(fabric, height, tier_links) for height, tier_links in enumerate(links, start=2)
    ]
    tiers = [inside, _nic_tier(fabric, node), *uplinks]
    rails = fabric.rails if fabric.kind == "rail_only" else 1
    ecmp = fabric.routing == "ecmp"
    link_map = TreeLinkMap(
        tuple(tiers),
        scale_up=node_link_map(fabric),
        rail=fabric.rail_of() if rails > 1 else None,
        relay=_relays(fabric, node) if rails > 1 else None,
        egress=ways_out(fabric.leaf_links()[fabric.group_of(1)] > 0, node),
        hashed=ecmp,
        seed=fabric.ecmp_seed,
        variants=ECMP_DRAWS if ecmp else 1,
    )
    hosts = fabric.host_of() if fabric.devices_per_host else None
    return Network(
        fabric.devices, _levels(fabric, node, links), link_map, _nesting(fabric, node), hosts=hosts
    )


def _nic_tier(fabric: Clos, node: IntArray) -> TreeTier:
    """Return the NICs that serve every device, and the leaves that they reach.

    A device has its own where there are enough, else several share one; where neither number
    divides the other, several share several.
    """
    served = fabric.devices_per_node // fabric.rails
    nics = fabric.nics_per_node // fabric.rails
    pools = int(np.gcd(served, nics))
    place = fabric.slot_of() // fabric.rails
    pool = (node * fabric.rails + fabric.rail_of()) * pools + place // (served // pools)
    leaf = fabric.group_of(1)
    nic_planes = nics * fabric.planes
    pool_rate = np.zeros(int(pool.max()) + 1)
    pool_rate[pool] = (
        fabric.leaf_links()[leaf] / nic_planes * (nics // pools) * fabric.nic_bandwidth_Bps
    )
    nics_driven = -(-nics // served)  # of the pool's NICs, as many as one device drives
    one_link = pool_rate * nics_driven * pools / nics
    return TreeTier(pool, leaf, pool_rate, one_link, 2 * fabric.hop_latency_s, direct=True)


def _uplink_tier(fabric: Clos, height: int, links: IntArray) -> TreeTier:
    """Uplinks of the switch groups below ``height``."""
    rate = fabric.link_rates_Bps[height - 1]
    capacity: FloatArray = links.astype(np.float64) * rate
    child, group = fabric.group_of(height - 1), fabric.group_of(height)
    latency = 2 * height * fabric.hop_latency_s
    if fabric.routing == "adaptive":
        return TreeTier(child, group, capacity, capacity, latency)
    one_link = np.full(len(links), rate)
    switches = (max(fabric.sizing.spines), fabric.sizing.cores)[height - 2] * fabric.planes
    return TreeTier(
        child,
        group,
        capacity,
        one_link,
        latency,
        False,
        int(links.max()),
        links,
        rank_within(child),
        max(1, int(links.max()) // switches),
    )


def _relays(fabric: Clos, node: IntArray) -> IntArray:
    """Return the device of its own node that forwards for each device to each rail; -1 where none
    can.
    """
    slot, rails = fabric.slot_of(), fabric.rails
    alive = fabric.leaf_links()[fabric.group_of(1)] > 0
    at = np.full((int(node.max()) + 1, fabric.devices_per_node), -1, dtype=np.int64)
    at[node, slot] = np.where(alive, np.arange(fabric.devices), -1)
    wanted = slot[:, None] // rails * rails + np.arange(rails)[None, :]
    relay = at[node[:, None], wanted]
    any_of_rail: IntArray = at.reshape(len(at), -1, rails).max(axis=1)
    return np.where(relay >= 0, relay, any_of_rail[node])


def _nesting(fabric: Clos, node: IntArray) -> tuple[IntArray, ...]:
    """Nodes, the nodes of one leaf or unit, pods, everything."""
    unit = node // fabric.sizing.nodes_per_unit
    blocks = [node, unit]
    if fabric.tiers == 3 and fabric.pods == "units":
        pod = np.zeros(int(unit.max()) + 1, dtype=np.int64)
        pod[unit] = fabric.group_of(2)
        blocks.append(pod[unit])
    if int(blocks[-1].max()) != int(blocks[-1].min()):
        blocks.append(np.zeros(fabric.devices, dtype=np.int64))
    return tuple(blocks)


def _levels(fabric: Clos, node: IntArray, uplinks: list[IntArray]) -> tuple[Level, ...]:
    count = int(np.unique(node).size)
    levels = [
        Level(
            name="node",
            kind="nested",
            group_size=int(np.bincount(node).max()),
            groups=count,
            links=1,
            link_bandwidth_Bps=fabric.intra_bandwidth_Bps,
            latency_s=fabric.intra_latency_s,
            child_size=1,
        )
    ]
    sizes = np.bincount(node)
    served = fabric.devices_per_node // fabric.rails
    links = np.bincount(node, fabric.leaf_links()[fabric.group_of(1)]) / served
    for index, name in enumerate(fabric.tier_names):
        group = fabric.group_of(index + 1)
        if index:
            links = uplinks[index - 1].astype(np.float64)
            sizes = np.bincount(fabric.group_of(index), minlength=len(links))
        members = np.bincount(group)
        across = fabric.rails > 1 and int(members.max()) < fabric.devices
        present = (sizes > 0) & (links > 0)  # a leaf that is missing has neither links nor say
        scarce = int(np.argmin(np.where(present, links / np.maximum(sizes, 1), np.inf)))
        levels.append(
            Level(
                name=name,
                kind="affinity" if across else "nested",
                group_size=int(members.max()),
                groups=int(np.count_nonzero(members)),
                links=round(float(links[scarce])),
                link_bandwidth_Bps=fabric.link_rates_Bps[index],
                latency_s=2 * (index + 1) * fabric.hop_latency_s,
                child_size=int(sizes[scarce]),
            )
        )
    return tuple(levels)
