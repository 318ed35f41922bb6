"""From a fabric as people specify it to the levels that costs read.

Hierarchies collapse exactly: one nested level per switch tier. A torus collapses into one
affinity class per hop distance.
"""

from __future__ import annotations

from nest_core.network.levels import Level, Network, TorusShape
from nest_core.topology import Clos, Fabric, Hierarchical, Torus

__all__ = ["collapse", "collapse_error"]


def collapse(fabric: Fabric) -> Network:
    """The level-wise network of a fabric, in time proportional to the number of levels."""
    if isinstance(fabric, Hierarchical):
        return _hierarchical(fabric)
    if isinstance(fabric, Clos):
        return _clos(fabric)
    return _torus(fabric)


def collapse_error(fabric: Fabric) -> float | None:
    """Worst relative difference to link-level pricing, or None where it is not measured.

    Trees collapse without loss. A torus, and a node whose devices share NICs unevenly (levels
    pool a node's NICs), are not measured.
    """
    if isinstance(fabric, Torus):
        return None
    if isinstance(fabric, Clos) and fabric.nics_per_node % fabric.devices_per_node:
        return None
    return 0.0


def _hierarchical(fabric: Hierarchical) -> Network:
    levels: list[Level] = []
    child = 1
    for tier in fabric.tiers:
        group = child * tier.group_size
        levels.append(
            Level(
                name=tier.name,
                kind="nested",
                group_size=group,
                groups=fabric.devices // group,
                links=child if tier.uplink_per == "device" else 1,
                link_bandwidth_Bps=tier.bandwidth_Bps / tier.oversubscription,
                latency_s=tier.latency_s,
                child_size=child,
            )
        )
        child = group
    return Network(fabric.devices, tuple(levels))


def _clos(fabric: Clos) -> Network:
    node = Level(
        name="node",
        kind="nested",
        group_size=fabric.devices_per_node,
        groups=fabric.nodes,
        links=1,
        link_bandwidth_Bps=fabric.intra_bandwidth_Bps,
        latency_s=fabric.intra_latency_s,
        child_size=1,
    )
    levels = [node]
    for tier in fabric.switch_tiers:
        levels.append(
            Level(
                name=tier.name,
                kind="nested",
                group_size=tier.devices_below,
                groups=tier.groups,
                links=tier.links_from_child,
                link_bandwidth_Bps=fabric.nic_bandwidth_Bps,
                latency_s=2 * tier.height * fabric.hop_latency_s,
                child_size=levels[-1].group_size,
            )
        )
    return Network(fabric.devices, tuple(levels))


def _torus(fabric: Torus) -> Network:
    shape = TorusShape(fabric.shape, fabric.wrap)
    levels = tuple(
        Level(
            name="1 hop" if hops == 1 else f"{hops} hops",
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
    return Network(fabric.devices, levels, shape)
