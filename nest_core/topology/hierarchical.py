"""Fabrics given level by level: nodes in racks in pods.

A tier joins ``group_size`` children (innermost: devices). What climbs into a tier goes over
uplinks owned by the devices below (``uplink_per = "device"``, as NICs are) or by the whole
child group (``"child"``, as a rack's uplink is). Mixing the two up changes an all-reduce
several times over, so every tier says which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import networkx as nx

from nest_core.errors import InputError
from nest_core.topology.checks import check_devices, check_explicit_size, positive, whole

__all__ = ["Hierarchical", "Tier"]


@dataclass(frozen=True, slots=True)
class Tier:
    """One level of a hierarchy.

    Parameters
    ----------
    name : str
    group_size : int
        Children joined here; at the innermost tier a child is a device.
    bandwidth_Bps : float
        One uplink into this tier, one direction.
    latency_s : float
        Between two devices that meet here, one way, total.
    uplink_per : {"device", "child"}
    oversubscription : float
        Down : up; divides the uplink.
    """

    name: str
    group_size: int
    bandwidth_Bps: float
    latency_s: float
    uplink_per: Literal["device", "child"] = "device"
    oversubscription: float = 1.0


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """A tree of switches, one tier per level; the product of group sizes is the device count."""

    name: str
    tiers: tuple[Tier, ...]

    def __post_init__(self) -> None:
        if not self.tiers:
            raise InputError("level", "must list at least one level", [], "add a [[level]] table")
        for index, tier in enumerate(self.tiers):
            where = f"level[{index}]"
            whole(f"{where}.group_size", tier.group_size)
            positive(f"{where}.bandwidth_GBps", tier.bandwidth_Bps)
            positive(f"{where}.latency_us", tier.latency_s, zero=True)
            positive(f"{where}.oversubscription", tier.oversubscription)
        check_devices("level", self.devices)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return math.prod(tier.group_size for tier in self.tiers)

    def explicit(self) -> nx.Graph[Any]:
        """The link graph: devices are integers, switches ``(tier name, number)``.

        Edges carry ``bandwidth_Bps`` (one link, one direction), ``count`` and ``latency_s``.

        Raises
        ------
        InputError
            Over 16,384 devices, or if latency falls outward (a path cannot get shorter by
            climbing further).
        """
        check_explicit_size(self.devices)
        graph: nx.Graph[Any] = nx.Graph(name=self.name)
        graph.add_nodes_from(range(self.devices), role="device")
        below: list[object] = list(range(self.devices))
        child = 1
        reached = 0.0
        for index, tier in enumerate(self.tiers):
            step = tier.latency_s / 2 - reached
            if step < 0:
                raise InputError(
                    f"level[{index}].latency_us",
                    "must not be smaller than the level's inside it",
                    tier.latency_s * 1e6,
                    "state the total latency between two devices that meet at this level",
                )
            parents = [
                (index, tier.name, number) for number in range(len(below) // tier.group_size)
            ]
            for parent in parents:
                graph.add_node(parent, role="switch")
            for number, node in enumerate(below):
                graph.add_edge(
                    node,
                    parents[number // tier.group_size],
                    bandwidth_Bps=tier.bandwidth_Bps / tier.oversubscription,
                    count=child if tier.uplink_per == "device" else 1,
                    latency_s=step,
                )
            reached = tier.latency_s / 2
            child *= tier.group_size
            below = list(parents)
        return graph
