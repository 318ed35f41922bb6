"""Text topologies for ns-3: ASTRA-sim's physical topology, and SimAI's with six fields.

ns-3 (astra-network-ns3, ``scratch/topology``): ``nodes switches links``, the switches' numbers, one
line ``a b rate latency error_rate`` per link. SimAI (aliyun/SimAI, ``gen_Topo_Template.py``):
``nodes gpu_per_server nv_switches other_switches links gpu_type``; devices come first, then the
switches inside servers, then the others. NICs are no nodes: one that serves one device and one
switch becomes a part of the link, any other a switch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from nest_core.documents import gigabytes, grouped, microseconds, plural, require
from nest_core.fabric import MAX_LINKS, Fabric, GraphFabric, as_graph
from nest_core.interop.formats.trees import host_groups
from nest_core.interop.formats.values import FabricText, unsaid_counts

__all__ = ["write_ns3", "write_simai"]

GPU_TYPE = "H100"
"""SimAI asks for one; it is a label."""

Joined = tuple[str, str, float, float, int]
"""Ends, bytes/s of one link, seconds, parallel links."""


@dataclass(frozen=True, slots=True)
class _Ns3Topology:
    devices: tuple[str, ...]
    inner: tuple[str, ...]
    outer: tuple[str, ...]
    links: list[Joined]
    per_server: int
    """0: servers differ."""
    lost: tuple[str, ...]


def write_ns3(fabric: Fabric) -> FabricText:
    """Return the physical topology that ASTRA-sim's ns-3 backend reads."""
    plan = _plan(fabric, "ns-3")
    switches = len(plan.inner) + len(plan.outer)
    lines = list(_links(plan))
    head = f"{len(plan.devices) + switches} {switches} {len(lines)}"
    return FabricText("\n".join([head, _switches(plan), *lines]) + "\n", plan.lost)


def write_simai(fabric: Fabric) -> FabricText:
    """Return SimAI's topology.

    Raises
    ------
    InputError
        For servers of unequal size.
    """
    plan = _plan(fabric, "SimAI")
    require(
        plan.per_server,
        "fabric",
        "must have servers of equal size for SimAI",
        "unequal ones",
        "choose ns-3",
    )
    nodes = len(plan.devices) + len(plan.inner) + len(plan.outer)
    lines = list(_links(plan))
    head = f"{nodes} {plan.per_server} {len(plan.inner)} {len(plan.outer)} {len(lines)} {GPU_TYPE}"
    return FabricText(
        "\n".join([head, _switches(plan), *lines]) + "\n",
        (*plan.lost, f"The accelerator: SimAI asks for a type, {GPU_TYPE} is written."),
    )


def _switches(plan: _Ns3Topology) -> str:
    first, count = len(plan.devices), len(plan.inner) + len(plan.outer)
    return " ".join(str(first + number) for number in range(count))


def _links(plan: _Ns3Topology) -> Iterator[str]:
    total = sum(count for *_, count in plan.links)
    require(
        total <= MAX_LINKS,
        "link",
        f"must number at most {MAX_LINKS:,} for ns-3, which lists each",
        total,
        "make the fabric smaller",
    )
    number = {name: place for place, name in enumerate((*plan.devices, *plan.inner, *plan.outer))}
    for a, b, rate, latency, count in plan.links:
        gbps, ms = gigabytes(rate) * 8, microseconds(latency) / 1000
        yield from [f"{number[a]} {number[b]} {_plain(gbps)}Gbps {_plain(ms)}ms 0"] * count


def _plain(figure: float) -> str:
    """Return up to twelve digits, never an exponent, which ns-3 does not read."""
    return str(np.format_float_positional(float(f"{figure:.12g}"), trim="-"))


def _plan(fabric: Fabric, target: str) -> _Ns3Topology:
    require(
        fabric.switched,
        "fabric",
        f"must have switches to be written for {target}, whose hosts forward nothing",
        f"a {fabric.noun}",
        "choose a graph format, or ASTRA-sim's analytical YAML",
    )
    hosts = host_groups(fabric, target)
    graph, drawn = as_graph(fabric), fabric.lost_in_graph
    roles = {element.id: element.role for element in graph.elements}
    links, shared_nics = _without_nics(graph, roles)
    if any(roles[a] == roles[b] == "device" for a, b, *_ in links):
        drawn += (
            "Forwarding by devices: hosts of ns-3 use their direct links for themselves only.",
        )
    host_of = dict(zip(graph.device_ids, hosts.host_of.tolist(), strict=True))
    near = grouped(
        (switch, host_of.get(other, -1))
        for a, b, *_ in links
        for switch, other in ((a, b), (b, a))
        if roles[switch] != "device"
    )
    switches = [
        element.id for element in graph.elements if element.role != "device" and element.id in near
    ]
    several = np.bincount(hosts.host_of).max() > 1
    inner = tuple(
        name
        for name in switches
        if several
        and roles[name] == "switch"
        and len(set(near[name])) == 1
        and -1 not in near[name]
    )
    sizes = np.unique(np.bincount(hosts.host_of))
    hashes = graph.routing == "ecmp"
    shared = f"{plural(shared_nics, 'NIC')} that several devices or links share: now switches."
    lost = {
        **dict.fromkeys(drawn, True),
        "Names: devices and switches are numbered.": True,
        shared: shared_nics,
        "Switches without links.": len(switches) < [*roles.values()].count("switch"),
        f"Routing, which is {graph.routing}: ns-3 hashes flows.": not hashes,
        "The seed of the hash.": hashes and graph.ecmp_seed,
        **dict.fromkeys(unsaid_counts(graph), True),
    }
    chosen = set(inner)
    return _Ns3Topology(
        graph.device_ids,
        inner,
        tuple(name for name in switches if name not in chosen),
        links,
        int(sizes[0]) if sizes.size == 1 else 0,
        tuple(sentence for sentence, holds in lost.items() if holds),
    )


def _without_nics(graph: GraphFabric, roles: Mapping[str, str]) -> tuple[list[Joined], int]:
    """Return links with NICs taken out where they join two elements, and how many NICs are left."""
    every = [(e.a, e.b, e.bandwidth_Bps, e.latency_s, e.count) for e in graph.links]
    touching = grouped((end, link) for link in every for end in link[:2] if roles[end] == "nic")
    replaced: dict[frozenset[str], Joined] = {}
    gone: set[str] = set()
    for nic, links in touching.items():
        ends = [b if a == nic else a for a, b, *_ in links]
        pair = frozenset(ends)
        if sorted(roles[end] for end in ends) != ["device", "switch"] or pair in replaced:
            continue
        if roles[ends[0]] == "switch":
            ends.reverse()
            links = links[::-1]
        # The side with more links keeps its number: a NIC's two ports are two links.
        count = max(link[4] for link in links)
        rate = min(link[2] * link[4] for link in links) / count
        replaced[pair] = (ends[0], ends[1], rate, sum(link[3] for link in links), count)
        gone.add(nic)
    remaining = [link for link in every if link[0] not in gone and link[1] not in gone]
    return [*remaining, *replaced.values()], len(touching) - len(gone)
