"""Folded Clos fabrics: leaf-spine and fat-tree, sized from devices, radix and ratio.

Sizing follows NVIDIA's reference architectures (``docs/method.md``, "Sizing"): a leaf gives
``radix/2`` ports to nodes; oversubscription takes uplinks away from it, so the number of
uplinks is the integer nearest to ``down / ratio`` and the realised ratio may differ from the
one asked for. Spines are the fewest whose ports suffice and over which a leaf's uplinks spread
evenly. A third tier groups ``radix/2`` leaves into a pod.

All NICs of a node go to one leaf (rail-optimised wiring is another kind). Traffic spreads over
parallel uplinks as adaptive routing does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import networkx as nx

from nest_core.errors import InputError
from nest_core.topology.checks import check_devices, check_explicit_size, positive, whole

__all__ = ["Clos", "SwitchTier"]

_NAMES = {"leaf_spine": ("leaf", "spine", "core"), "fat_tree": ("edge", "aggregation", "core")}


@dataclass(frozen=True, slots=True)
class SwitchTier:
    """One switch tier, realised in whole ports.

    Parameters
    ----------
    name : str
    height : int
        1 for leaves.
    devices_below : int
        Devices under one full group of this tier.
    groups : int
        Leaves at height 1, pods at height 2 of three tiers, otherwise 1.
    switches_per_group : int
        Physical switches of this tier in one group.
    links_from_child : int
        Parallel links with which one full child group (node, leaf, pod) reaches this tier.
    oversubscription : float
        Realised ratio, down : up, of the child's ports; 1 at height 1.
    """

    name: str
    height: int
    devices_below: int
    groups: int
    switches_per_group: int
    links_from_child: int
    oversubscription: float


@dataclass(frozen=True, slots=True)
class Clos:
    """A leaf-spine or fat-tree fabric of equal nodes.

    Parameters
    ----------
    kind : {"leaf_spine", "fat_tree"}
        Same wiring; each names its tiers as its community does.
    devices, devices_per_node, nics_per_node, radix : int
    nic_bandwidth_Bps : float
        One NIC, and every switch port, one direction.
    tiers : int
        Switch tiers above the node, 1 to 3.
    oversubscription : tuple of float
        Down : up of every switch tier but the top one, innermost first.
    hop_latency_s : float
        One link and the switch behind it.
    intra_bandwidth_Bps, intra_latency_s : float
        One device into its node's switch; between two devices of a node, total.
    """

    name: str
    kind: Literal["leaf_spine", "fat_tree"]
    devices: int
    devices_per_node: int
    nics_per_node: int
    nic_bandwidth_Bps: float
    radix: int
    tiers: int
    oversubscription: tuple[float, ...]
    hop_latency_s: float
    intra_bandwidth_Bps: float
    intra_latency_s: float

    def __post_init__(self) -> None:
        for field in ("devices", "devices_per_node", "nics_per_node"):
            whole(f"clos.{field}", getattr(self, field))
        whole("clos.radix", self.radix, least=2)
        check_devices("clos.devices", self.devices)
        positive("clos.nic_bandwidth_GBps", self.nic_bandwidth_Bps)
        positive("clos.hop_latency_us", self.hop_latency_s, zero=True)
        positive("intra_node.bandwidth_GBps", self.intra_bandwidth_Bps)
        positive("intra_node.latency_us", self.intra_latency_s, zero=True)
        if not 1 <= self.tiers <= 3:
            raise InputError("clos.tiers", "must be 1, 2 or 3", self.tiers, "add or drop a tier")
        if self.devices % self.devices_per_node:
            raise InputError(
                "clos.devices",
                f"must be a multiple of clos.devices_per_node = {self.devices_per_node}",
                self.devices,
                f"use {self.nodes * self.devices_per_node} or change the node",
            )
        if len(self.oversubscription) != self.tiers - 1:
            raise InputError(
                "clos.oversubscription",
                f"must have one entry per switch tier but the top one ({self.tiers - 1})",
                list(self.oversubscription),
                "give one ratio per tier, innermost first",
            )
        for index, ratio in enumerate(self.oversubscription):
            field = f"clos.oversubscription[{index}]"
            positive(field, ratio)
            if ratio < 1:
                raise InputError(
                    field,
                    "must be at least 1, because a leaf has as many ports up as down",
                    ratio,
                    "use 1 for full bisection",
                )
        _size(self)

    @property
    def nodes(self) -> int:
        """Servers."""
        return -(-self.devices // self.devices_per_node)

    @property
    def switch_tiers(self) -> tuple[SwitchTier, ...]:
        """The tiers above the node, realised in whole ports and switches."""
        return _size(self)

    def explicit(self) -> nx.Graph[Any]:
        """The link graph; a group's switches of one tier are drawn as one switch.

        Devices are integers; every device hangs on its node's switch and on the NIC that
        serves it: its own, one that several devices share, or, where neither number divides
        the other, a pool of several for several. NICs forward nothing between devices. Edges
        carry ``bandwidth_Bps`` (one link, one direction), ``count`` and ``latency_s``.

        Raises
        ------
        InputError
            Over 16,384 devices.
        """
        check_explicit_size(self.devices)
        graph: nx.Graph[Any] = nx.Graph(name=self.name)
        leaf = self.switch_tiers[0]
        pools = math.gcd(self.devices_per_node, self.nics_per_node)
        sharing, links = self.devices_per_node // pools, self.nics_per_node // pools
        for device in range(self.devices):
            node, slot = divmod(device, self.devices_per_node)
            graph.add_node(device, role="device")
            graph.add_node(("node", node), role="switch")
            graph.add_edge(
                device,
                ("node", node),
                bandwidth_Bps=self.intra_bandwidth_Bps,
                count=1,
                latency_s=self.intra_latency_s / 2,
            )
            nic = ("nic", node, slot // sharing)
            graph.add_node(nic, role="nic")
            graph.add_edge(
                device,
                nic,
                bandwidth_Bps=self.nic_bandwidth_Bps,
                count=-(-links // sharing),
                latency_s=0.0,
            )
            graph.add_edge(
                nic,
                (leaf.name, device // leaf.devices_below),
                bandwidth_Bps=self.nic_bandwidth_Bps,
                count=links,
                latency_s=self.hop_latency_s,
            )
        for below, above in zip(self.switch_tiers, self.switch_tiers[1:], strict=False):
            for group in range(below.groups):
                graph.add_edge(
                    (below.name, group),
                    (above.name, group * below.devices_below // above.devices_below),
                    bandwidth_Bps=self.nic_bandwidth_Bps,
                    count=above.links_from_child,
                    latency_s=self.hop_latency_s,
                )
        for tier in self.switch_tiers:
            for group in range(tier.groups):
                graph.add_node((tier.name, group), role="switch")
        return graph


def _size(fabric: Clos) -> tuple[SwitchTier, ...]:
    """Switch tiers in whole ports; refuses what the radix cannot carry."""
    names = _NAMES[fabric.kind]
    radix, nics, nodes = fabric.radix, fabric.nics_per_node, fabric.nodes
    if fabric.tiers == 1:
        if nodes * nics > radix:
            raise InputError(
                "clos.tiers",
                f"must be more than 1, because {nodes * nics} NICs exceed radix {radix}",
                1,
                "use 2 tiers or a larger radix",
            )
        return (SwitchTier(names[0], 1, fabric.devices, 1, 1, nics, 1.0),)
    nodes_per_leaf = radix // 2 // nics
    if nodes_per_leaf < 1:
        raise InputError(
            "clos.radix",
            f"must leave ports for one node of {nics} NICs on half of the leaf",
            radix,
            f"use a radix of at least {2 * nics}",
        )
    leaves = -(-nodes // nodes_per_leaf)
    down = nodes_per_leaf * nics
    up = _uplinks(down, fabric.oversubscription[0])
    leaf_size = nodes_per_leaf * fabric.devices_per_node
    leaf = SwitchTier(names[0], 1, min(leaf_size, fabric.devices), leaves, 1, nics, 1.0)
    if fabric.tiers == 2:
        if leaves > radix:
            raise InputError(
                "clos.tiers",
                f"must be more than 2, because {leaves} leaves exceed radix {radix}",
                2,
                "use 3 tiers, a larger radix or fewer devices",
            )
        spines = _spread(up, -(-leaves * up // radix))
        return (leaf, SwitchTier(names[1], 2, fabric.devices, 1, spines, up, down / up))
    leaves_per_pod = radix // 2
    pods = -(-leaves // leaves_per_pod)
    if pods > radix:
        raise InputError(
            "clos.devices",
            f"must not need more than {radix} pods of {leaves_per_pod * leaf_size} devices",
            fabric.devices,
            "use a larger radix or fewer devices",
        )
    spines = _spread(up, -(-leaves_per_pod * up // (radix // 2)))
    spine_down = leaves_per_pod * up // spines
    spine_up = _uplinks(spine_down, fabric.oversubscription[1])
    pod_up = spines * spine_up
    pod_size = min(leaves_per_pod * leaf_size, fabric.devices)
    return (
        leaf,
        SwitchTier(names[1], 2, pod_size, pods, spines, up, down / up),
        SwitchTier(
            names[2],
            3,
            fabric.devices,
            1,
            -(-pods * pod_up // radix),
            pod_up,
            spine_down / spine_up,
        ),
    )


def _uplinks(down: int, ratio: float) -> int:
    """The whole number of uplinks nearest to ``down / ratio``, at least one."""
    return max(1, math.floor(down / ratio + 0.5))


def _spread(up: int, least: int) -> int:
    """The fewest switches, at least ``least``, that share a leaf's uplinks evenly."""
    return next(count for count in range(least, up + 1) if up % count == 0)
