"""Trees of hosts, as schedulers have them, and hierarchies of levels.

`tree_document` and `block_document` turn what Slurm says into levels; `host_groups` says which
hosts of a fabric a scheduler should keep together. Between hosts every device is taken to own
one uplink per level, because schedulers state neither rates nor numbers of links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import networkx as nx
import numpy as np

from nest_core.documents import grouped, plural, require
from nest_core.fabric import (
    MAX_DEVICES,
    ROLES,
    Clos,
    Dragonfly,
    Fabric,
    GraphFabric,
    Hierarchical,
    IntArray,
    heights,
)
from nest_core.interop.formats.draft import title
from nest_core.interop.formats.values import Reading, Source, level_table, listed
from nest_core.network.groups import numbered

__all__ = [
    "Hosts",
    "TreeSwitch",
    "block_document",
    "host_groups",
    "inside_hosts",
    "tree_document",
]

MAX_LEVELS = 15
MAX_NAMED = 65_536
"""Groups of a level that may have names of their own, as the schema has it."""
_NO_RATES = "Slurm states no rates, latencies or numbers of links: no oversubscription assumed."


@dataclass(frozen=True, slots=True)
class TreeSwitch:
    """A switch of a file: either switches hang on it, or hosts."""

    where: int | str
    switches: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    size: int = 0
    """Nodes with those that fill a block up."""


def tree_document(source: Source, switches: Mapping[str, TreeSwitch]) -> Reading:
    """Return levels from a tree of switches.

    Leaves at unequal depth get a switch of one child between, which changes no grouping. What
    several switches list hangs on the last of them, as Slurm notes a switch's parent.
    """
    switches, several = _under_last(switches)
    root, tree = _tree(source, switches)
    height: dict[str, int] = {}
    for name in reversed(list(nx.topological_sort(tree))):
        height[name] = 1 + max((height[child] for child in tree[name]), default=0)
    source.require(
        height[root] <= MAX_LEVELS,
        switches[root].where,
        f"must have at most {MAX_LEVELS} switches above each other",
        height[root],
        "flatten the tree",
    )
    sizes: list[list[int]] = []
    rows: list[list[str]] = []
    row = [root]
    padded = False
    for level in range(height[root], 1, -1):
        children = [switches[name].switches if height[name] == level else (name,) for name in row]
        padded |= any(height[name] < level for name in row)
        sizes.append(list(map(len, children)))
        rows.append(row)
        row = [child for group in children for child in group]
    sizes.append([len(switches[name].nodes) for name in row])
    rows = [[node for name in row for node in switches[name].nodes], row, *reversed(rows)]
    notes = {
        _NO_RATES: True,
        f"{plural(len(several), 'switch or node', 'switches or nodes')} below several switches read"
        f" below the last: {listed(several)}.": several,
        "Leaves hang at unequal depth: switches of one child were put between.": padded,
    }
    return _levels(source, sizes[::-1], ROLES, rows, notes)


def block_document(
    source: Source, blocks: Mapping[str, TreeSwitch], block_sizes: Sequence[int]
) -> Reading:
    """Return levels from blocks: one of blocks, one per further size that gathers them, and all.

    A block is what hangs on a switch of its own.
    """
    empty = [name for name, block in blocks.items() if not block.nodes]
    first = next((block.size for block in blocks.values()), 1)
    base, count = (block_sizes[0] if block_sizes else first), len(blocks) - len(empty)
    source.require(
        count,
        "",
        "must define a block with nodes",
        listed(empty) or "none",
        "add a line BlockName=... Nodes=...",
    )
    small = [name for name, block in blocks.items() if 0 < block.size < base]
    blocks = {name: block for name, block in blocks.items() if block.nodes}
    sizes = [[len(block.nodes) for block in blocks.values()]]
    names = ["block"]
    gathered = 1
    for size in block_sizes[1:]:
        step = size // base // gathered
        gathered *= step
        if step > 1 and count > step:
            row = [step] * (count // step) + ([count % step] if count % step else [])
            sizes.append(row)
            names.append(f"{gathered} blocks")
            count = len(row)
    if count > 1:
        sizes.append([count])
        names.append("cluster")
    hosts = [node for block in blocks.values() for node in block.nodes]
    block_of = {node: name for name, block in blocks.items() for node in block.nodes}
    twice = [node for node, count in Counter(hosts).items() if count > 1]
    source.require(
        not twice,
        blocks[block_of[twice[0]]].where if twice else "",
        f"must put node {twice[0] if twice else ''} into one block",
        " and ".join(name for name, block in blocks.items() if {*twice[:1]} & {*block.nodes}),
        "remove it from one of them",
    )
    notes = {
        _NO_RATES: True,
        f"{plural(len(small), 'block')} with fewer nodes than the base block size of {base:,},"
        f" which Slurm 24.11 refuses and 26.05 takes: {listed(small)}.": small,
        f"{plural(len(empty), 'block')} without nodes left out: {listed(empty)}.": empty,
    }
    return _levels(source, sizes, names, [hosts, list(blocks)], notes)


def _tree(source: Source, switches: Mapping[str, TreeSwitch]) -> tuple[str, nx.DiGraph[str]]:
    """Return the root and the tree below it; refuse what is no tree."""
    tree: nx.DiGraph[str] = nx.DiGraph()
    tree.add_nodes_from(switches)
    for name, switch in switches.items():
        source.require(
            bool(switch.switches) != bool(switch.nodes),
            switch.where,
            "must give a switch either switches or nodes",
            f"{name} with {'both' if switch.nodes else 'neither'}",
            "give leaves their nodes, other switches their children",
        )
        for child in switch.switches:
            source.require(
                child in switches,
                switch.where,
                f"must list switches that exist below {name}",
                child,
                "define it or correct its name",
            )
            tree.add_edge(name, child)
    roots = [name for name, parents in tree.in_degree() if not parents]
    source.require(
        switches, "", "must define a switch", "none", "add a line SwitchName=... Nodes=..."
    )
    source.require(roots, "", "must have a switch without a parent", "a cycle", "break the cycle")
    source.require(
        len(roots) <= 1,
        "",
        "must join all switches under one",
        f"{len(roots)} roots: " + ", ".join(roots[:8]),
        "add a switch above them, or take the others out",
    )
    reached = {roots[0], *nx.descendants(tree, roots[0])}
    astray = [name for name in switches if name not in reached]
    where, what = (switches[astray[0]].where, astray[0]) if astray else ("", "")
    source.require(not astray, where, "must hang on the root", f"{what}, on a cycle", "break it")
    return roots[0], tree


def _under_last(switches: Mapping[str, TreeSwitch]) -> tuple[dict[str, TreeSwitch], list[str]]:
    """Return switches with the children that no later one lists, and children of several."""
    below = [
        ((kind, child), name)
        for name, switch in switches.items()
        for kind, children in (("switch", switch.switches), ("node", switch.nodes))
        for child in children
    ]
    parent = dict(below)
    several = [child for (_, child), count in Counter(key for key, _ in below).items() if count > 1]
    single = {
        name: replace(
            switch,
            switches=tuple(child for child in switch.switches if parent["switch", child] == name),
            nodes=tuple(node for node in switch.nodes if parent["node", node] == name),
        )
        for name, switch in switches.items()
    }
    empty: set[str] = set()
    while several and (
        more := {n for n, s in single.items() if not ({*s.switches} - empty or s.nodes)} - empty
    ):
        empty |= more
    return {
        name: replace(switch, switches=tuple(n for n in switch.switches if n not in empty))
        for name, switch in single.items()
        if name not in empty
    }, several


def _levels(
    source: Source,
    sizes: list[list[int]],
    names: Sequence[str],
    groups: list[list[str]],
    notes: dict[str, object],
) -> Reading:
    """Return a document of levels.

    Parameters
    ----------
    sizes : list of list of int
        Of every group of every level above hosts.
    names : sequence of str
        Of these levels.
    groups : list of list of str
        Names of hosts, then of the groups of the levels above as far as they have any.
    notes : dict of str to object
        Sentences, and whether they hold.
    """
    groups = [row if len(row) <= MAX_NAMED else [] for row in groups]
    assumed = source.assumed
    hosts = sum(sizes[0])
    source.require(
        hosts * assumed.devices_per_node <= MAX_DEVICES,
        "",
        f"must have at most {MAX_DEVICES:,} devices",
        f"{hosts:,} nodes of {assumed.devices_per_node}",
        "leave nodes out",
    )
    levels = assumed.levels(groups[0])
    for height, row in enumerate(sizes, start=1):
        name = names[height - 1] if height <= len(names) else f"tier {height}"
        given = groups[height] if height < len(groups) else []
        rates = assumed.link_bandwidth_GBps, 2 * height * assumed.hop_latency_us
        levels.append(level_table(name, row, *rates) | ({"names": given} if given else {}))
    inside = f" {assumed.inside_words}" if assumed.devices_per_node > 1 else ""
    last = (
        f"{plural(assumed.devices_per_node, 'device')} per node{inside}, and"
        f" {assumed.link_bandwidth_GBps:g} GB/s per device and {assumed.hop_latency_us:g} us per"
        " hop between nodes, assumed."
    )
    return (
        assumed.marked(
            {"schema": 1, "name": title(source.name), "kind": "hierarchical", "level": levels}
            # Of islands the innermost level is not the host.
            | ({"devices_per_host": assumed.devices_per_node} if assumed.devices_per_island else {})
        ),
        (*(note for note, holds in notes.items() if holds), last),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """Hosts of a fabric and what keeps them together, innermost first.

    Parameters
    ----------
    host_of : int array, shape (devices,)
        Host of every device, numbered from 0 in the order of their first devices.
    groups : tuple of int array, each of shape (hosts,)
        Group of every host per level, nested; the outermost is one group.
    lost : tuple of str
        What of the fabric a tree of hosts does not say.
    """

    host_of: IntArray
    groups: tuple[IntArray, ...]
    lost: tuple[str, ...]


def host_groups(fabric: Fabric, target: str) -> Hosts:
    """Return the tree of hosts that a scheduler sees of a fabric.

    The innermost level of a hierarchy counts as a host, unless it says how many devices a host
    has, of a drawn fabric what stands between
    devices and NICs, or, without NICs, the fastest and nearest switches.

    Where a switch has several parents (any Clos), the switches of one tier that the same hosts
    reach count as one: the usual logical parent per level.

    Raises
    ------
    InputError
        For fabrics without switches, such as tori.
    """
    require(
        fabric.switched,
        "fabric",
        f"must have switches to be written as {target}",
        f"a {fabric.noun}",
        "choose a graph format, or TOML",
    )
    rows, lost = _rows(fabric)
    host_of, first = numbered(rows[0])
    groups: list[IntArray] = []
    for row in [*rows[1:], np.zeros_like(rows[0])]:
        group, _ = numbered(row[first])
        if not groups or group.max() < groups[-1].max():
            groups.append(group)
    return Hosts(host_of, tuple(groups), lost)


def inside_hosts(graph: GraphFabric, host_of: Mapping[str, int]) -> dict[str, int]:
    """Return the host of every element that is inside one, in the order of the graph.

    Parameters
    ----------
    host_of : mapping of str to int
        Of devices, by their ids.

    Notes
    -----
    A switch is inside the host of the devices that hang on it, or of all its switches; a NIC is
    inside that of its devices, or of the switch that it shares with no other host.
    """
    roles = {element.id: element.role for element in graph.elements}
    near = grouped(pair for k in graph.links for pair in ((k.a, k.b), (k.b, k.a)))
    owners = dict(host_of)
    for role, below in (("switch", ["device"]), ("switch", ["switch"]), ("nic", [*roles.values()])):
        hosts = {
            name: {owners.get(other, -1) for other in others if roles[other] in below}
            for name, others in near.items()
            if roles[name] == role and name not in owners
        }
        single = {name: group - {-1 if role == "nic" else -2} for name, group in hosts.items()}
        owners |= {name: min(group) for name, group in single.items() if len(group) == 1}
        owners = {name: host for name, host in owners.items() if host >= 0}
    return {name: owners[name] for name in roles if name in owners}


@singledispatch
def _rows(fabric: Fabric) -> tuple[list[IntArray], tuple[str, ...]]:
    """Return groups of devices from the host outwards, and what they do not say of the fabric."""
    return _graph_rows(fabric), (
        "Elements and links one by one: switches that the same hosts reach are one.",
    )


@_rows.register
def _(fabric: Hierarchical) -> tuple[list[IntArray], tuple[str, ...]]:
    return [
        *([] if fabric.host_level else _hosts(fabric)),
        *map(fabric.group_of, range(fabric.host_level, len(fabric.tiers))),
    ], ()


@_rows.register
def _(fabric: Dragonfly) -> tuple[list[IntArray], tuple[str, ...]]:
    return [fabric.node_of(), fabric.router_of(), fabric.group_of()], (
        "Links between routers and groups: only which hosts they gather is kept.",
    )


@_rows.register
def _(fabric: Clos) -> tuple[list[IntArray], tuple[str, ...]]:
    node = fabric.node_of()
    rows = [*_hosts(fabric), node, node // fabric.sizing.nodes_per_unit]
    if fabric.tiers == 3 and fabric.kind != "rail_only" and fabric.pods == "units":
        rows.append(fabric.group_of(2))
    return rows, ("The switches of a tier are one logical parent per group of hosts.",)


def _hosts(fabric: Clos | Hierarchical) -> list[IntArray]:
    """Return the hosts where a node, or an innermost group, has several."""
    return [fabric.host_of()] if fabric.devices_per_host else []


def _graph_rows(fabric: Fabric) -> list[IntArray]:
    """Return devices that are joined once all switches up to a tier are there, tier by tier.

    A tier is a distance from the nearest device; of switches at one distance those with faster
    links downwards come first (a node's switch before a leaf that devices hang on directly),
    then those that are sooner reached.
    """
    graph = fabric.explicit()
    devices = list(range(fabric.devices))
    height = heights(graph, devices)
    rate: dict[Any, float] = {}
    far: dict[Any, float] = {}
    for node in sorted(graph, key=height.__getitem__):
        below = [other for other in graph[node] if height[other] < height[node]]
        edges = [graph.edges[node, other] for other in below]
        rate[node] = max((edge["bandwidth_Bps"] for edge in edges), default=0.0)
        reached = (far[o] + e["latency_s"] for o, e in zip(below, edges, strict=True))
        far[node] = round(min(reached, default=0.0), 12)
    # NICs forward nothing between the devices of different hosts: they come with the devices.
    rank: dict[Any, tuple[float, ...]] = {
        node: (height[node], -rate[node], far[node]) if data["role"] == "switch" else (0,)
        for node, data in graph.nodes(data=True)
    }
    joined = nx.utils.UnionFind(graph.nodes)
    rows: list[IntArray] = []
    outside = False

    def row() -> IntArray:
        number: dict[Any, int] = {}
        return np.array([number.setdefault(joined[device], len(number)) for device in devices])

    tiers = grouped((rank[node], node) for node in graph)
    for tier in sorted(tiers):
        nics = (
            graph.nodes[other]["role"] == "nic" and height[other] <= height[node]
            for node in tiers[tier]
            for other in graph[node]
        )
        if tier > (0,) and not outside and any(nics):
            # What NICs reach is outside of hosts, also where a host has one device; what joined
            # devices before, such as a NIC of two, is the inside of one.
            rows, outside = [row()], True
        for node in tiers[tier]:
            joined.union(node, *(other for other in graph[node] if rank[other] <= tier))
        groups = row()
        if groups.max() < (rows[-1].max() if rows else len(devices) - 1):
            rows.append(groups)
    if len(rows) < 2:
        # One switch, or none, for all: every device is a host of its own.
        rows.insert(0, np.arange(fabric.devices, dtype=np.int64))
    return rows[: MAX_LEVELS - 1]
