"""Text topologies for ns-3: ASTRA-sim's physical topology, and SimAI's, which says more of servers.

ASTRA-sim's (astra-network-ns3, ``scratch/common.h``) begins with ``nodes switches links``, SimAI's
(aliyun/SimAI, ``gen_Topo_Template.py``) with ``nodes gpu_per_server nv_switches other_switches
links gpu_type``. The numbers of the switches follow, those inside servers first, then a line ``a b
rate latency error_rate`` per pair of nodes, as the routes of both know one link of a pair. Devices
come before switches. A NIC that serves one device and one switch is a part of their link, any other
a switch.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nest_core.documents import gigabytes, microseconds, plural, require
from nest_core.fabric import Fabric, LinkGraph, as_graph
from nest_core.interop.formats.trees import host_groups
from nest_core.interop.formats.values import FabricText, unsaid_counts

__all__ = ["write_ns3", "write_simai"]

GPU_TYPE = "H100"
"""SimAI asks for one of those that it knows."""


def write_ns3(fabric: Fabric) -> FabricText:
    """Return the physical topology that ASTRA-sim's ns-3 backend reads."""
    return _written(
        fabric, "ns-3", lambda nodes, inner, outer, links: f"{nodes} {inner + outer} {links}"
    )


def write_simai(fabric: Fabric) -> FabricText:
    """Return SimAI's topology.

    Raises
    ------
    InputError
        For servers of unequal size.
    """
    sizes = np.bincount(host_groups(fabric, "SimAI").host_of)
    require(
        np.ptp(sizes) == 0,
        "fabric",
        "must have servers of equal size for SimAI",
        "unequal ones",
        "choose ns-3",
    )
    written = _written(
        fabric,
        "SimAI",
        lambda nodes, inner, outer, links: f"{nodes} {sizes[0]} {inner} {outer} {links} {GPU_TYPE}",
    )
    return replace(
        written,
        lost=(*written.lost, f"The accelerator: SimAI asks for a type, {GPU_TYPE} is written."),
    )


def _written(fabric: Fabric, target: str, head: Callable[[int, int, int, int], str]) -> FabricText:
    """Return a topology under its head: of nodes, switches inside servers, others, and links."""
    host_of, graph = host_groups(fabric, target).host_of, fabric.explicit()
    shared_nics, role = _join_nics(graph), dict(graph.nodes(data="role"))
    # What touches devices of one server and nothing else is inside it.
    near = {
        switch: {int(host_of[end]) if role[end] == "device" else -1 for end in graph[switch]}
        for switch in graph
        if role[switch] != "device" and graph[switch]
    }
    inner = [
        switch
        for switch, hosts in near.items()
        if role[switch] == "switch" and len(hosts) == 1 and -1 not in hosts
    ]
    order = list(dict.fromkeys([*range(fabric.devices), *inner, *near]))
    number = {node: place for place, node in enumerate(order)}
    lines = [
        f"{' '.join(map(str, sorted((number[a], number[b]))))} "
        f"{_plain(8 * gigabytes(data['bandwidth_Bps'] * data['count']))}Gbps "
        f"{_plain(microseconds(data['latency_s']) / 1000)}ms 0"
        for a, b, data in graph.edges(data=True)
    ]
    lost = {
        **dict.fromkeys(fabric.lost_in_graph, True),
        "Forwarding by devices: hosts of ns-3 use their direct links for themselves only.": any(
            role[a] == role[b] == "device" for a, b in graph.edges
        ),
        "Names: devices and switches are numbered.": True,
        "Parallel links: those of two elements are one, as fast as all of them.": any(
            data["count"] > 1 for *_, data in graph.edges(data=True)
        ),
        f"{plural(shared_nics, 'NIC')} that several devices or links share: now switches.": (
            shared_nics
        ),
        "Switches without links.": len(order) < len(graph),
        f"Routing, which is {fabric.routing}: ns-3 hashes flows.": fabric.routing != "ecmp",
        "The seed of the hash.": fabric.routing == "ecmp" and fabric.ecmp_seed,
        **dict.fromkeys(unsaid_counts(as_graph(fabric)), True),
    }
    switches = range(fabric.devices, len(order))
    counts = head(len(order), len(inner), len(switches) - len(inner), len(lines))
    return FabricText(
        "\n".join([counts, " ".join(map(str, switches)), *lines]) + "\n",
        tuple(sentence for sentence, holds in lost.items() if holds),
    )


def _join_nics(graph: LinkGraph) -> int:
    """Make NICs between one device and one switch a part of their link; return how many stay."""
    nics = [node for node, data in graph.nodes(data=True) if data["role"] == "nic"]
    for nic in nics:
        ends = sorted(graph[nic], key=lambda end: str(graph.nodes[end]["role"]))
        if [graph.nodes[end]["role"] for end in ends] == ["device", "switch"]:
            sides = graph[nic].values()
            rate = min(side["bandwidth_Bps"] * side["count"] for side in sides)
            before = graph.get_edge_data(ends[0], ends[1], {"bandwidth_Bps": 0.0, "count": 1})
            graph.add_edge(
                *ends,
                bandwidth_Bps=before["bandwidth_Bps"] * before["count"] + rate,
                count=1,
                latency_s=sum(side["latency_s"] for side in sides),
            )
            graph.remove_node(nic)
    return sum(nic in graph for nic in nics)


def _plain(figure: float) -> str:
    """Return up to twelve digits, never an exponent, which ns-3 does not read."""
    return str(np.format_float_positional(float(f"{figure:.12g}"), trim="-"))
