"""Folded Clos fabrics: leaf-spine, fat-tree, rail-optimised and rail-only, as-built or whole.

Sizing follows NVIDIA's reference architectures (``docs/method.md``, "Sizing"): a leaf gives
``radix/2`` ports to nodes; oversubscription takes uplinks away from it, so the number of
uplinks is the integer nearest to ``down / ratio`` and the realised ratio may differ from the
one asked for; or, ``oversubscribe = "split_radix"``, it divides all ports anew. Spines are the
fewest whose ports suffice and over which a leaf's uplinks spread evenly. A third tier groups
``radix/2`` leaves into a pod.

All NICs of a node go to one leaf, or, wired rail by rail, NIC ``i`` goes to the leaf of rail
``i`` of its unit. Rail-only fabrics join the rails nowhere above the node: what crosses rails
is forwarded inside a node. Planes are identical, disjoint copies of the switches; every NIC
divides its bandwidth over them (dual-ToR is two planes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import networkx as nx
import numpy as np

from nest_core.errors import InputError
from nest_core.topology.asbuilt import AsBuilt, as_built, take_away
from nest_core.topology.checks import IntArray, Routing, check_explicit_size
from nest_core.topology.clos_rules import check_figures, set_rails
from nest_core.topology.interior import Interconnect, Interior
from nest_core.topology.sizing import Demand, Oversubscribe, Sizing, size

__all__ = ["TIER_NAMES", "Clos", "SwitchTier"]

Kind = Literal["leaf_spine", "fat_tree", "rail_optimised", "rail_only"]

_LEAF = ("leaf", "spine", "core")
TIER_NAMES: dict[Kind, tuple[str, str, str]] = {
    "leaf_spine": _LEAF,
    "fat_tree": ("edge", "aggregation", "core"),
    "rail_optimised": _LEAF,
    "rail_only": _LEAF,
}


@dataclass(frozen=True, slots=True)
class SwitchTier:
    """One switch tier, realised in whole ports, all planes together.

    Parameters
    ----------
    name : str
    height : int
        1 for leaves.
    devices_below : int
        Devices under one full group of this tier.
    groups : int
        Leaves at height 1, pods at height 2 of three tiers, otherwise 1 (rail-only: one per
        rail).
    switches_per_group : int
        Physical switches of this tier in one full group.
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
    """A Clos fabric of equal nodes, some of which (and some switches) may be missing.

    Parameters
    ----------
    kind : {"leaf_spine", "fat_tree", "rail_optimised", "rail_only"}
        The first two have the same wiring; each names its tiers as its community does.
    devices : int
        Devices if nothing were missing; once built, devices present.
    devices_per_node, nics_per_node, radix : int
        ``radix`` counts ports of one link's bandwidth, ``nic_bandwidth_Bps / planes``.
    nic_bandwidth_Bps : float
        One NIC, all planes together, one direction.
    tiers : int
        Switch tiers above the node, 1 to 3.
    oversubscription : tuple of float
        Down : up of every switch tier but the top one, innermost first.
    hop_latency_s : float
        One link and the switch behind it.
    intra_bandwidth_Bps, intra_latency_s, interconnect
        The node, as in `Interior`.
    planes : int
        Identical, disjoint copies of the switches.
    rails : int
        Of rail kinds; 0: one per NIC, or the most that divide NICs and devices of a node. A
        device's rail is its slot modulo rails. 1 for other kinds.
    pods : {"units", "rails"}
        In three tiers of a rail-optimised fabric: whether a pod gathers whole units, or leaves
        of one rail. Rail-only pods are of one rail always.
    routing, ecmp_seed
        How flows choose among parallel links.
    missing : tuple of str
        ``"node 17"``, ``"device 9"``, ``"leaf 3"``, ``"spine 0"`` (switches by the names of
        their tier). Switches are numbered group by group, within a group plane by plane.
    installed : int
        Left at 0: derived from ``devices``. Not 0 only where something is missing.
    oversubscribe : {"remove_uplinks", "split_radix"}
        Whether a ratio takes uplinks away from a leaf (and a pod) of fixed size, or divides the
        radix anew, so that leaves and pods hold more.
    devices_per_host : int
        Devices that one operating system sees, where a node (what devices reach each other in
        without a NIC) has several hosts; 0: those of a node.
    """

    name: str
    kind: Kind
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
    interconnect: Interconnect = "switch"
    planes: int = 1
    rails: int = 0
    pods: Literal["units", "rails"] = "units"
    routing: Routing = "adaptive"
    ecmp_seed: int = 0
    missing: tuple[str, ...] = ()
    installed: int = 0
    oversubscribe: Oversubscribe = "remove_uplinks"
    devices_per_host: int = 0

    def __post_init__(self) -> None:
        check_figures(self)
        set_rails(self)
        _ = self.interior, self.sizing
        if not self.missing and not self.installed:
            return
        present = self.devices
        if not self.installed:
            object.__setattr__(self, "installed", self.devices)
        left = take_away(self).devices.size
        if self.installed != present and left != present:
            raise InputError(
                "clos.devices",
                f"must be what is left of {self.installed} devices ({left})",
                present,
                "set installed to 0 and devices to the number if nothing were missing",
            )
        object.__setattr__(self, "devices", left)

    @property
    def slots(self) -> int:
        """Devices if nothing were missing."""
        return self.installed or self.devices

    @property
    def nodes(self) -> int:
        """Servers if nothing were missing."""
        return -(-self.slots // self.devices_per_node)

    @property
    def link_bandwidth_Bps(self) -> float:
        """One link of one plane, one direction."""
        return self.nic_bandwidth_Bps / self.planes

    @property
    def interior(self) -> Interior:
        """The inside of a node."""
        return Interior(
            self.interconnect, self.devices_per_node, self.intra_bandwidth_Bps, self.intra_latency_s
        )

    @property
    def demand(self) -> Demand:
        """What one plane has to carry."""
        return Demand(
            nodes=self.nodes,
            radix=self.radix,
            tiers=self.tiers,
            links=self.nics_per_node // self.rails,
            rails=self.rails,
            apart=self.kind == "rail_only",
            pods=self.pods,
            oversubscription=self.oversubscription,
            oversubscribe=self.oversubscribe,
        )

    @property
    def sizing(self) -> Sizing:
        """One plane in whole ports, nothing missing."""
        return size(self.demand)

    @property
    def as_built(self) -> AsBuilt:
        """What is left when the missing elements are taken away."""
        return as_built(self)

    @property
    def tier_names(self) -> tuple[str, ...]:
        """Names of the switch tiers, innermost first."""
        return TIER_NAMES[self.kind][: self.tiers]

    @property
    def switch_tiers(self) -> tuple[SwitchTier, ...]:
        """The tiers above the node, realised in whole ports and switches, nothing missing."""
        return _tiers(self)

    def node_of(self) -> IntArray:
        """Node of every device, shape (devices,); numbers count missing nodes too."""
        return self.as_built.devices // self.devices_per_node

    def host_of(self) -> IntArray:
        """Host of every device, shape (devices,); numbers count missing ones too."""
        return self.as_built.devices // (self.devices_per_host or self.devices_per_node)

    def slot_of(self) -> IntArray:
        """Place of every device in its node, shape (devices,)."""
        return self.as_built.devices % self.devices_per_node

    def rail_of(self) -> IntArray:
        """Rail of every device, shape (devices,); 0 where nodes have one leaf."""
        return self.slot_of() % self.rails

    def group_of(self, height: int) -> IntArray:
        """Group of switches at ``height`` (1: leaves) that each device hangs on, shape (devices,).

        Parallel switches of several planes, and all switches of a pod, are one group.
        """
        sizing = self.sizing
        leaf: IntArray = self.node_of() // sizing.nodes_per_unit * self.rails + self.rail_of()
        if height == 1:
            return leaf
        pod: IntArray = np.array(sizing.pod_of, dtype=np.int64)[leaf]
        if height == 2:
            return pod
        top: IntArray = np.array(sizing.top_of, dtype=np.int64)[pod]
        return top

    def nic_links(self) -> int:
        """NIC links of one node, all planes, nothing missing."""
        return self.nics_per_node * self.planes

    def leaf_links(self) -> IntArray:
        """Links of one node into each of its leaf groups, shape (groups at height 1,).

        All planes together, without those to missing leaves. Rail kinds: of one rail.
        """
        return self.as_built.leaf_links

    def uplinks(self, height: int) -> IntArray:
        """Links of each group at ``height`` into the tier above, shape (groups at ``height``,).

        All planes together, without those that missing switches take away.
        """
        return self.as_built.uplinks[height - 1]

    def switch_counts(self) -> dict[str, int]:
        """Physical switches in place, by tier name."""
        return dict(zip(self.tier_names, self.as_built.switches, strict=True))

    def link_counts(self) -> dict[str, int]:
        """Links in place between a tier and what is below it, by name of the upper tier."""
        return dict(zip(self.tier_names, self.as_built.links, strict=True))

    def explicit(self) -> nx.Graph[Any]:
        """The link graph; a group's switches of one tier are drawn as one, with their ``count``.

        Devices are integers; every device hangs on its node's switch (or on the others of its
        node, where links join them directly) and on the NIC that serves it: its own, one that
        several devices share, or, where neither number divides the other, a pool of several
        for several. NICs forward nothing between devices. Edges carry ``bandwidth_Bps`` (one
        link, one direction), ``count`` and ``latency_s``, switches their ``radix``. Links that
        nothing is left of are not drawn.

        Raises
        ------
        InputError
            Over 16,384 devices.
        """
        check_explicit_size(self.devices)
        graph: nx.Graph[Any] = nx.Graph(name=self.name)
        graph.add_nodes_from(range(self.devices), role="device")
        self._draw_nodes(graph)
        groups = [self.group_of(height) for height in range(1, self.tiers + 1)]
        boxes = {
            (name, group): count
            for name, counts in zip(self.tier_names, self.as_built.boxes, strict=True)
            for group, count in enumerate(counts.tolist())
        }
        for index, (below, above) in enumerate(pairwise(groups)):
            uplinks = self.uplinks(index + 1)
            for a, b in np.unique(np.stack((below, above)), axis=1).T.tolist():
                if uplinks[a]:
                    graph.add_edge(
                        (self.tier_names[index], a),
                        (self.tier_names[index + 1], b),
                        bandwidth_Bps=self.link_bandwidth_Bps,
                        count=int(uplinks[a]),
                        latency_s=self.hop_latency_s,
                    )
        for node, data in graph.nodes(data=True):
            data.setdefault("role", "switch")
            if node in boxes:
                data |= {"radix": self.radix} | ({"count": boxes[node]} if boxes[node] > 1 else {})
        return graph

    def _draw_nodes(self, graph: nx.Graph[Any]) -> None:
        """Devices, the insides of nodes, NICs and their links to leaves."""
        served, links = self.devices_per_node // self.rails, self.nics_per_node // self.rails
        pools = math.gcd(served, links)
        sharing, nics = served // pools, links // pools
        inside: dict[int, dict[int, int]] = {}
        leaf_of, leaf_links = self.group_of(1).tolist(), self.leaf_links() // links
        places = zip(self.node_of().tolist(), self.slot_of().tolist(), strict=True)
        for device, (node, slot) in enumerate(places):
            inside.setdefault(node, {})[slot] = device
            place, rail = divmod(slot, self.rails)
            nic = ("nic", node, rail * pools + place // sharing)
            graph.add_node(nic, role="nic", **({"count": nics} if nics > 1 else {}))
            graph.add_edge(
                device,
                nic,
                bandwidth_Bps=self.nic_bandwidth_Bps,
                count=-(-nics // sharing),
                latency_s=0.0,
            )
            leaf = leaf_of[device]
            if leaf_links[leaf]:
                graph.add_edge(
                    nic,
                    (self.tier_names[0], leaf),
                    bandwidth_Bps=self.link_bandwidth_Bps,
                    count=nics * int(leaf_links[leaf]),
                    latency_s=self.hop_latency_s,
                )
        for node, devices in inside.items():
            self.interior.draw(graph, node, devices)


def _tiers(fabric: Clos) -> tuple[SwitchTier, ...]:
    sizing, planes, names = fabric.sizing, fabric.planes, fabric.tier_names
    slots, apart = fabric.slots, fabric.rails if fabric.kind == "rail_only" else 1
    within = fabric.rails if fabric.tiers == 3 and fabric.pods == "rails" else apart
    per_leaf = min(sizing.nodes_per_unit * fabric.devices_per_node, slots) // fabric.rails
    leaves = sizing.units * sizing.rails
    tiers = [SwitchTier(names[0], 1, per_leaf, leaves, planes, fabric.nic_links(), 1.0)]
    if fabric.tiers == 1:
        return tuple(tiers)
    full = max(range(len(sizing.leaves)), key=sizing.leaves.__getitem__)
    spines, ratio = sizing.spines[full], sizing.down / sizing.up
    tiers.append(
        SwitchTier(
            names[1],
            2,
            min(sizing.leaves[full] * per_leaf, slots // within),
            len(sizing.leaves),
            spines * planes,
            sizing.up * planes,
            ratio,
        )
    )
    if fabric.tiers == 3:
        down, up = sizing.leaves[full] * sizing.up // spines, sizing.spine_up[full]
        tiers.append(
            SwitchTier(
                names[2],
                3,
                slots // apart,
                apart,
                sizing.cores * planes,
                spines * up * planes,
                down / up,
            )
        )
    return tuple(tiers)
