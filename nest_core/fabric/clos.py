"""Folded Clos fabrics: leaf-spine, fat-tree, rail-optimised and rail-only, as-built or whole.

Sizing follows NVIDIA's reference architectures (``docs/method.md``, "Sizing"): a leaf gives
``radix/2`` ports to nodes; oversubscription removes uplinks from it, so the number of
uplinks is the integer nearest to ``down / ratio`` and the realised ratio may differ from the
one asked for; or, ``oversubscribe = "split_radix"``, it divides all ports anew. Spines are the
fewest whose ports suffice, in two tiers and under fixed routing those over which a leaf's uplinks
spread evenly. A third tier groups ``radix/2`` leaves into a pod.

All NICs of a node go to one leaf, or, wired rail by rail, NIC ``i`` goes to the leaf of rail
``i`` of its unit. Rail-only fabrics join the rails nowhere above the node: what crosses rails
is forwarded inside a node. Planes are identical, disjoint copies of the switches; every NIC
divides its bandwidth over them (dual-ToR is two planes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nest_core.documents import (
    InputError,
    format_ratio,
    from_gbps_bytes,
    from_microseconds,
    gigabytes,
    humanise_rate,
    microseconds,
    require,
)
from nest_core.documents.schema import FabricFile
from nest_core.documents.schema.fabric import ClosTable, IntraNodeTable
from nest_core.fabric.asbuilt import AsBuilt, as_built, switches_per_plane, without_failed
from nest_core.fabric.checks import IntArray, LinkGraph
from nest_core.fabric.clos_plan import ClosPlan
from nest_core.fabric.fabric import Document, Fabric, SwitchPorts

__all__ = ["Clos"]

_CALLED = {
    "leaf_spine": "spine-leaf",
    "fat_tree": "fat tree",
    "rail_optimised": "rail-optimised",
    "rail_only": "rail-only",
}


@dataclass(frozen=True, slots=True)
class Clos(ClosPlan):
    """A Clos fabric of equal nodes, some of which (and some switches) may have failed.

    Parameters are those of `ClosPlan`.
    """

    lost_in_graph = (
        *Fabric.lost_in_graph,
        "Switches of a tier that the fabric uses as one are written as one, with their number.",
    )

    def __post_init__(self) -> None:
        ClosPlan.__post_init__(self)
        if not self.missing and not self.installed:
            return
        present = self.devices
        if not self.installed:
            object.__setattr__(self, "installed", self.devices)
        usable = without_failed(self).devices.size
        require(
            self.installed == present or usable == present,
            "clos.devices",
            f"must be what is left of {self.installed} devices ({usable})",
            present,
            "set installed to 0 and devices to the number if nothing had failed",
        )
        object.__setattr__(self, "devices", usable)

    @classmethod
    def from_file(cls, file: FabricFile, clos: ClosTable, inside: IntraNodeTable) -> Clos:
        """Return the fabric of a file's ``[clos]`` and ``[intra_node]``."""
        kind = file.kind
        if kind not in ("leaf_spine", "fat_tree", "rail_optimised", "rail_only"):
            raise InputError("kind", "must be one of a Clos", kind, "change it")
        return cls(
            name=file.name,
            kind=kind,
            devices=clos.devices,
            devices_per_node=clos.devices_per_node,
            nics_per_node=clos.nics_per_node,
            nic_bandwidth_Bps=from_gbps_bytes(clos.nic_bandwidth_GBps),
            radix=clos.radix,
            tiers=clos.tiers,
            oversubscription=tuple(clos.oversubscription),
            hop_latency_s=from_microseconds(clos.hop_latency_us),
            intra_bandwidth_Bps=from_gbps_bytes(inside.bandwidth_GBps),
            intra_latency_s=from_microseconds(inside.latency_us),
            interconnect=inside.interconnect,
            planes=clos.planes,
            rails=clos.rails or 0,
            pods=clos.pods,
            oversubscribe=clos.oversubscribe,
            spread=clos.spread,
            nodes_per_rack=clos.nodes_per_rack or 0,
            spine_link_Bps=from_gbps_bytes(clos.spine_link_GBps or 0.0),
            core_link_Bps=from_gbps_bytes(clos.core_link_GBps or 0.0),
            devices_per_host=file.devices_per_host or 0,
            routing=file.routing,
            ecmp_seed=file.ecmp_seed,
            missing=tuple(file.missing),
            optics=tuple(file.optics.items()),
        )

    def tables(self) -> Document:
        """``[clos]`` and ``[intra_node]``."""
        clos: Document = {
            "devices": self.slots,
            "devices_per_node": self.devices_per_node,
            "nics_per_node": self.nics_per_node,
            "nic_bandwidth_GBps": gigabytes(self.nic_bandwidth_Bps),
            "radix": self.radix,
            "tiers": self.tiers,
            "oversubscription": list(self.oversubscription),
            "hop_latency_us": microseconds(self.hop_latency_s),
        }
        more = (
            ("planes", self.planes, 1),
            ("rails", self.rails, None if self.kind in ("rail_optimised", "rail_only") else 1),
            ("pods", self.pods, "units"),
            ("oversubscribe", self.oversubscribe, "remove_uplinks"),
            ("spread", self.spread, None),
            ("nodes_per_rack", self.nodes_per_rack, 0),
            ("spine_link_GBps", gigabytes(self.spine_link_Bps), 0.0),
            ("core_link_GBps", gigabytes(self.core_link_Bps), 0.0),
        )
        clos |= {key: value for key, value, default in more if value != default}
        return {"clos": clos, "intra_node": self.scale_up.table()}

    @property
    def ratios(self) -> tuple[float, ...]:
        """Realised in whole ports of full switches, of every tier above the leaves."""
        links, wide = self._full_links()[: self.tiers - 1], self.link_ports
        return tuple(
            down * wide[tier] / (up * wide[tier + 1]) for tier, (down, up) in enumerate(links)
        )

    def _full_links(self) -> list[tuple[int, int]]:
        """Return links down and up of a full leaf, and of the spine with most of them."""
        sizing, full, links = self.sizing, self.sizing.fullest, [(self.sizing.down, self.sizing.up)]
        if self.tiers > 1:
            down = -(-sizing.leaves[full] * sizing.up // sizing.spines[full])
            links.append((down, sizing.spine_up[full]))
        return links

    def realised_ratios(self) -> tuple[str, ...]:
        """Whole ports of every tier above the leaves."""
        sizing, full = self.sizing, self.sizing.fullest
        of_pod = np.multiply(sizing.spines, sizing.spine_up)
        rates = [
            f" of {humanise_rate(rate)}" if ports > 1 else ""
            for rate, ports in zip(self.link_rates_Bps, self.link_ports, strict=True)
        ]
        groups = (sizing.up, self.tier_names[0]), *((up, "pod") for up in of_pod[full:])
        return tuple(
            f"{format_ratio(ratio)}, {links * self.planes:,} uplinks{rate} per {below}"
            for ratio, rate, (links, below) in zip(self.ratios, rates[1:], groups, strict=False)
        )

    def switch_ports(self) -> tuple[SwitchPorts, ...]:
        """Ports of every tier's switch with the most links; a faster one takes several.

        Examples
        --------
        >>> from nest_core.scenario import load_fabric
        >>> for tier in load_fabric("h100-spine-leaf-1024-4to1").switch_ports():
        ...     print(tier.name, tier.switches, tier.down, tier.up, tier.free)
        leaf 32 32 8 24
        spine 4 64 0 0
        """
        sizing, stated, wide = self.sizing, self.oversubscription, (*self.link_ports, 1, 1)
        links = self._full_links()
        links[0] = min(sizing.down, self.demand.nodes * self.demand.links), sizing.up
        if self.tiers > 2:
            tops = self.rails if self.kind == "rail_only" else 1
            ends = sum(s * up for s, up in zip(sizing.spines, sizing.spine_up, strict=True)) // tops
            links.append((-(-ends // sizing.cores), 0))
        return tuple(
            SwitchPorts(
                name,
                count,
                self.radix,
                down * wide[tier],
                up * wide[tier + 1],
                stated[tier] if tier < len(stated) else None,
            )
            for tier, (name, count, (down, up)) in enumerate(
                zip(self.tier_names, self.as_built.switches, links, strict=True)
            )
        )

    def arrangement(self) -> str:
        """Return what its community calls it, ratios and planes."""
        return f"{_CALLED[self.kind]}{self.ratio_words()}{self._in_planes()}"

    def _in_planes(self) -> str:
        return f" in {self.planes} planes" if self.planes > 1 else ""

    def extent(self) -> str:
        """Nodes and what they hold."""
        return f"{self.nodes:,} nodes of {self.devices_per_node}{self._hosts()}"

    def _hosts(self) -> str:
        """Of a node that has several, how many, and what they hold."""
        per_host = self.devices_per_host
        several = 0 < per_host < self.devices_per_node
        return f" ({self.devices_per_node // per_host} hosts of {per_host})" if several else ""

    def contents(self) -> str:
        """Nodes, NICs and switches."""
        switches = ", ".join(f"{count:,} {name}" for name, count in self.switch_counts().items())
        return (
            f"{self.nodes:,} nodes of {self.devices_per_node} devices{self._hosts()} with "
            f"{self.nics_per_node} NICs of {humanise_rate(self.nic_bandwidth_Bps)}; switches "
            f"of radix {self.radix}{self._in_planes()}: {switches}."
        )

    @property
    def as_built(self) -> AsBuilt:
        """What is left without the failed elements."""
        return as_built(self)

    @property
    def element_counts(self) -> dict[str, int]:
        """Devices, nodes, and switches of every tier in all planes."""
        switches = (int(of.sum()) * self.planes for of in switches_per_plane(self))
        names = zip(self.tier_names, switches, strict=True)
        return {"device": self.slots, "node": self.nodes, **dict(names)}

    def place_of(self) -> IntArray:
        """Return number of every device as if nothing had failed, shape (devices,)."""
        return self.as_built.devices

    def node_of(self) -> IntArray:
        """Node of every device, shape (devices,); numbers count failed nodes too."""
        return self.as_built.devices // self.devices_per_node

    def host_of(self) -> IntArray:
        """Host of every device, shape (devices,); numbers count failed ones too."""
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
        group: IntArray = self.node_of() // sizing.nodes_per_unit * self.rails + self.rail_of()
        for above in (sizing.pod_of, sizing.top_of)[: height - 1]:
            group = np.array(above, dtype=np.int64)[group]
        return group

    def leaf_links(self) -> IntArray:
        """Links of one node into each of its leaf groups, shape (groups at height 1,).

        All planes together, without those to failed leaves. Rail kinds: of one rail.
        """
        return self.as_built.leaf_links

    def uplinks(self, height: int) -> IntArray:
        """Links of each group at ``height`` into the tier above, shape (groups at ``height``,).

        All planes together, without those of failed switches.
        """
        return self.as_built.uplinks[height - 1]

    def switch_counts(self) -> dict[str, int]:
        """Physical switches in place, by tier name."""
        return dict(zip(self.tier_names, self.as_built.switches, strict=True))

    def explicit(self) -> LinkGraph:
        """Return the link graph; a group's switches of one tier are drawn as one, with their
        ``count``.

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
        graph = self._devices_alone()
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
                        bandwidth_Bps=self.link_rates_Bps[index + 1],
                        count=int(uplinks[a]),
                        latency_s=self.hop_latency_s,
                    )
        slowest = map(min, self.link_ports, (*self.link_ports[1:], self.link_ports[-1]))
        radix = {
            name: self.radix // ports for name, ports in zip(self.tier_names, slowest, strict=True)
        }
        for node, data in graph.nodes(data=True):
            data.setdefault("role", "switch")
            if node in boxes:
                count = {"count": boxes[node]} if boxes[node] > 1 else {}
                data |= {"radix": radix[node[0]]} | count
        return graph

    def _draw_nodes(self, graph: LinkGraph) -> None:
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
            self.scale_up.draw(graph, node, devices)
