"""From a fabric as people specify it to the levels and link map that costs read.

Hierarchies and Clos fabrics collapse exactly: one level per tier. A torus collapses into one
affinity class per hop distance, a dragonfly into node, router, group and all, a drawn graph that
is a torus or a mesh as that, any other into groups of devices that see the rest alike; all keep
their links for counting.
"""

from functools import singledispatch

import numpy as np

from nest_core.documents.units import plural
from nest_core.fabric import Clos, Dragonfly, Fabric, Hierarchical, Torus
from nest_core.fabric.checks import TABLED
from nest_core.fabric.lattice import lattice_of
from nest_core.network.clos import clos_network
from nest_core.network.dragonfly import dragonfly_network
from nest_core.network.levels import Level, Network
from nest_core.network.link_map import IntArray
from nest_core.network.torus import TorusLinkMap, TorusShape
from nest_core.network.tree import TreeLinkMap, TreeTier

__all__ = ["collapse", "is_counted"]


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
