"""What pictures claim in words is true of the links: each claim counted anew on the link graph.

A claim is a pattern and a function of the link graph alone. What no pattern knows fails, so a new
sentence needs its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import pytest
from clos_specs import NODE, clos
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.fabric import Clos, Dragonfly, Fabric, Hierarchical, Tier, Torus
from nest_core.fabric.clos_plan import TIER_NAMES
from nest_core.report.picture import picture

KINDS = ("leaf_spine", "fat_tree", "rail_optimised", "rail_only")
SINGULAR = {"leaves": "leaf", "switches": "switch"}


def _one(word: str) -> str:
    word = word.removesuffix(" switches").removesuffix(" switch")
    return SINGULAR.get(word, word.removesuffix("s"))


class Seen:
    """A Clos fabric's first plane, as its link graph has it."""

    def __init__(self, fabric: Clos) -> None:
        self.fabric, self.graph = fabric, fabric.explicit()
        self.names = TIER_NAMES[fabric.kind]
        self.devices = [node for node in self.graph if isinstance(node, int)]
        self.node = dict(zip(self.devices, fabric.node_of().tolist(), strict=True))
        self.slot = dict(zip(self.devices, fabric.slot_of().tolist(), strict=True))

    def tier(self, name: str) -> list[Any]:
        return [node for node in self.graph if isinstance(node, tuple) and node[0] == name]

    def number(self, switch: Any) -> int:
        return int(self.graph.nodes[switch].get("count", 1))

    def links(self, lower: str, upper: str) -> dict[Any, Counter[Any]]:
        """Links from every switch of a tier to those of the tier above."""
        above = set(self.tier(upper))
        return {
            switch: Counter(
                {
                    other: self.graph.edges[switch, other]["count"]
                    for other in self.graph[switch]
                    if other in above
                }
            )
            for switch in self.tier(lower)
        }

    def leaves_of(self, device: int) -> set[Any]:
        """Leaves that a device's NICs hang on."""
        low = set(self.tier(self.names[0]))
        nics = [n for n in self.graph[device] if self.graph.nodes[n]["role"] == "nic"]
        return {other for nic in nics for other in self.graph[nic] if other in low}


def device_on_its_rail(seen: Seen, rails: str = "0") -> bool:
    """Slots, or those that are alike modulo the rails, share no leaves with others."""
    by_slot: dict[int, set[Any]] = {}
    for device in seen.devices:
        slot = seen.slot[device]
        rail = slot % int(rails) if int(rails) else slot
        by_slot.setdefault(rail, set()).update(seen.leaves_of(device))
    leaves = list(by_slot.values())
    return sum(map(len, leaves)) == len(set().union(*leaves))


def nodes_below(seen: Seen) -> dict[Any, set[int]]:
    """Nodes with a device on every leaf."""
    below: dict[Any, set[int]] = {leaf: set() for leaf in seen.tier(seen.names[0])}
    for device in seen.devices:
        for leaf in seen.leaves_of(device):
            below[leaf].add(seen.node[device])
    return below


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _within(found: list[int], low: str, high: str | None) -> bool:
    """Whether all counts are in a range that names the fewest and the most."""
    return (min(found), max(found)) == (_number(low), _number(high or low))


def nodes_per_leaf(seen: Seen, low: str, high: str | None) -> bool:
    """A leaf that has lost all its nodes has none."""
    return _within([len(nodes) for nodes in nodes_below(seen).values() if nodes], low, high)


def links_to_leaf(seen: Seen, low: str, high: str | None) -> bool:
    ports = [
        sum(
            seen.graph.edges[leaf, other]["count"]
            for other in seen.graph[leaf]
            if seen.graph.nodes[other]["role"] == "nic"
        )
        for leaf in seen.tier(seen.names[0])
    ]
    return _within([count for count in ports if count], low, high)


def every_pair(seen: Seen, low: str, high: str, count: str) -> bool:
    """So many links from each lower switch to each upper one; several may be drawn as one."""
    links = seen.links(_one(low), _one(high))
    above = set(seen.tier(_one(high)))
    return all(
        found[switch] == _number(count) * seen.number(switch)
        for found in links.values()
        for switch in above
    )


def one_switch(seen: Seen, *_: str) -> bool:
    switches = seen.tier(seen.names[0])
    return len(seen.names) and len(switches) == 1 and seen.number(switches[0]) == 1


def rails_apart(seen: Seen, *_: str) -> bool:
    """Without the inside of nodes, devices of different rails are in different parts."""
    outside = seen.graph.copy()
    outside.remove_edges_from(
        [
            (a, b)
            for a, b in outside.edges
            if {"device", "switch"} == {outside.nodes[a]["role"], outside.nodes[b]["role"]}
            or "device" == outside.nodes[a]["role"] == outside.nodes[b]["role"]
        ]
    )
    rail = dict(zip(seen.devices, seen.fabric.rail_of().tolist(), strict=True))
    return all(
        len({rail[node] for node in part if isinstance(node, int)}) <= 1
        for part in nx.connected_components(outside)
    )


def one_hop(seen: Seen, unit: str) -> bool:
    """Devices of one rail in a unit of so many share a leaf."""
    fabric = seen.fabric
    rail = dict(zip(seen.devices, fabric.rail_of().tolist(), strict=True))
    together: dict[tuple[int, int], list[set[Any]]] = {}
    per_unit = _number(unit)
    for device in seen.devices:
        place = seen.node[device] * fabric.devices_per_node + seen.slot[device]
        together.setdefault((place // per_unit, rail[device]), []).append(seen.leaves_of(device))
    return all(set.intersection(*leaves) for leaves in together.values() if all(leaves))


def cut_half(seen: Seen, planes: str) -> bool:
    """Switches of planes are apart, and a device without one leaf still reaches the others."""
    return all(len(seen.leaves_of(device)) >= 2 for device in seen.devices)


def everywhere(seen: Seen, number: str, _: str, unit: str) -> bool:
    """A device's share of what climbs out of any group, to the digits that are written."""
    claimed = float(number.replace(",", "")) * {"GB/s": 1e9, "TB/s": 1e12, "MB/s": 1e6}[unit]
    return worst_share(seen) == pytest.approx(claimed, rel=0.006)


def worst_share(seen: Seen) -> float:
    """The least that leaves, or all that hangs on a pod's spines, have upwards for a device."""
    fabric, graph = seen.fabric, seen.graph
    shares = [fabric.nics_per_node * fabric.nic_bandwidth_Bps / fabric.devices_per_node]
    for height in range(1, fabric.tiers):
        group = dict(zip(seen.devices, fabric.group_of(height).tolist(), strict=True))
        if len(set(group.values())) < 2:
            continue
        lower, upper = seen.tier(seen.names[height - 1]), set(seen.tier(seen.names[height]))
        below: dict[int, set[Any]] = {}
        for device in seen.devices:
            reach = {device} | {n for n in graph[device] if graph.nodes[n]["role"] == "nic"}
            for name in seen.names[:height]:
                reach |= {
                    o for n in reach for o in graph[n] if isinstance(o, tuple) and o[0] == name
                }
            below.setdefault(group[device], set()).update(reach & set(lower))
        for number, switches in below.items():
            climbing = sum(
                graph.edges[switch, other]["count"] * graph.edges[switch, other]["bandwidth_Bps"]
                for switch in switches
                for other in graph[switch]
                if other in upper
            )
            devices = sum(1 for device in seen.devices if group[device] == number)
            if climbing:
                shares.append(climbing / devices)
    return min(shares)


CLAIMS: tuple[tuple[str, Callable[..., bool]], ...] = (
    (r"Device i of every node is on rail i:", device_on_its_rail),
    (r"Device i of every node is on rail i mod (\d+)", device_on_its_rail),
    (r"one leaf hop within a unit of ([\d,]+)", one_hop),
    (r"^of ([\d,]+)(?: to ([\d,]+))? nodes", nodes_per_leaf),
    (r"^([\d,]+)(?: to ([\d,]+))? under an? \w+", nodes_per_leaf),
    (r"^([\d,]+)(?: to ([\d,]+))? in a unit", nodes_per_leaf),
    (r"links, ([\d,]+)(?: to ([\d,]+))? to an? ", links_to_leaf),
    (r"every ([\w ]+) to every ([\w ]+), x ([\d,]+)", every_pair),
    (r"^One switch joins all", one_switch),
    (r"^Rails never meet above the node", rails_apart),
    (r"in (two|three|four|\d+) planes that share no switch", cut_half),
    (r"keeps? (?:its )?([\d.,]+)()\u00a0(\wB/s)", everywhere),
    (r"keeps? ([\d.,]+) of (its|their) [\d.,]+\u00a0(\wB/s)", everywhere),
)


@st.composite
def clos_fabrics(draw: Any) -> Clos:
    per_node = draw(st.sampled_from([1, 2, 4, 8]))
    nics = draw(st.sampled_from([n for n in (1, 2, 4, 8) if n <= 2 * per_node]))
    tiers = draw(st.sampled_from([1, 2, 2, 2, 3]))
    kind = draw(st.sampled_from(KINDS))
    figures = NODE | {"devices_per_node": per_node, "nics_per_node": nics}
    if kind.startswith("rail"):
        figures["rails"] = draw(st.sampled_from([0, 1, 2, nics]))
    missing = draw(
        st.lists(
            st.sampled_from(["node 1", "device 2", "leaf 0", "leaf 1", "spine 0", "device 0"]),
            max_size=2,
            unique=True,
        )
    )
    if kind == "fat_tree":
        missing = [name.replace("leaf", "edge").replace("spine", "aggregation") for name in missing]
    try:
        fabric = Clos(
            name="f",
            kind=kind,
            devices=per_node * draw(st.integers(1, 40)),
            radix=draw(st.sampled_from([8, 16, 32, 64])),
            tiers=tiers,
            oversubscription=tuple(
                draw(st.sampled_from([1.0, 1.5, 2.0, 3.0])) for _ in range(tiers - 1)
            ),
            missing=tuple(missing),
            spine_link_Bps=draw(st.sampled_from([0.0, 0.0, 100e9])) if tiers > 1 else 0.0,
            core_link_Bps=draw(st.sampled_from([0.0, 200e9])) if tiers > 2 else 0.0,
            **figures,
        )
        fabric.explicit()
    except InputError:
        assume(False)
    return fabric


def sentences(fabric: Fabric) -> Iterator[str]:
    drawn = picture(fabric, width=900)
    yield drawn.title
    for label in drawn.labels:
        yield from (part for words in label.words for part in words.split("; "))


LOST_RAIL = clos(
    8, 8, 3, 1.0, 3.0, kind="rail_only", devices_per_node=4, nics_per_node=2,
    missing=("leaf 1", "device 2"),
)  # fmt: skip
"""The links of a pod that nothing reaches any more were said to be what its devices keep."""


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@example(LOST_RAIL)
@given(clos_fabrics())
def test_what_a_clos_picture_says_is_so(fabric):
    """A fabric of 8 devices and 4 NICs a node said "device i of every node is on rail i"."""
    seen = Seen(fabric)
    for words in sentences(fabric):
        for pattern, holds in CLAIMS:
            if match := re.search(pattern, words):
                assert holds(seen, *match.groups()), (words, fabric)


def test_every_claim_is_made_somewhere():
    """A pattern that no sentence has any more would check nothing."""
    fabrics = [
        clos(64, 16, 2),
        clos(1024, 64, 2),
        clos(72, 16, 2, 2.0),
        clos(8, 64, 1),
        clos(64, 16, 2, kind="rail_optimised", missing=()),
        clos(64, 16, 2, kind="rail_optimised", nics_per_node=4, rails=4),
        clos(64, 16, 2, kind="rail_only"),
        clos(64, 16, 2, planes=2, nic_bandwidth_Bps=50e9),
        clos(128, 16, 2, missing=("spine 0",)),
    ]
    said = [words for fabric in fabrics for words in sentences(fabric)]
    unsaid = [pattern for pattern, _ in CLAIMS if not any(re.search(pattern, one) for one in said)]
    assert unsaid == []


@st.composite
def hierarchies(draw: Any) -> Hierarchical:
    """Up to three levels, groups of unequal size, with what has failed."""
    tiers, groups = [], 1
    for name in ("pod", "rack", "node")[draw(st.integers(0, 2)) :]:
        sizes = draw(st.lists(st.integers(1, 4), min_size=groups, max_size=groups))
        per = draw(st.sampled_from(["device", "child"]))
        ratio = draw(st.sampled_from([1.0, 1.0, 2.0]))
        rate = draw(st.sampled_from([50e9, 100e9, 450e9]))
        tiers.insert(0, Tier(name, 0, rate, 1e-6, per, ratio, tuple(sizes)))
        groups = sum(sizes)
    missing = draw(st.lists(st.sampled_from(["device 0", f"{tiers[0].name} 0"]), max_size=1))
    try:
        fabric = Hierarchical("f", tuple(tiers), missing=tuple(missing))
        fabric.explicit()
    except InputError:
        assume(False)
    return fabric


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(hierarchies())
def test_what_a_picture_of_levels_says_is_so(fabric):
    """Of groups of unequal size the mean was said of every device."""
    title = picture(fabric, width=900).title
    graph = fabric.explicit()
    pattern = r"(at least )?([\d.,]+)\u00a0(\wB/s) (?:in its|at the) (\w+)"
    names = {tier.name: level for level, tier in enumerate(fabric.tiers)}
    for least, number, unit, name in re.findall(pattern, title):
        claimed = float(number.replace(",", "")) * {"GB/s": 1e9, "TB/s": 1e12}[unit]
        level = names[name]
        # What climbs into a switch of the level from each group below it, for each of its devices.
        found = []
        group = fabric.group_of(level - 1) if level else range(fabric.devices)
        for part in sorted(set(group)):
            members = [device for device, of in enumerate(group) if of == part]
            tier = fabric.tiers[level]
            ends = len(members) if tier.uplink_per == "device" or not level else 1
            found.append(ends * tier.bandwidth_Bps / tier.oversubscription / len(members))
        switches = [node for node in graph if isinstance(node, tuple) and node[0] == level]
        assert switches
        assert min(found) == pytest.approx(claimed, rel=0.006)
        assert bool(least) == (max(found) > 1.01 * min(found))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_what_a_picture_of_a_torus_says_is_so(shape, wrap):
    assume(max(shape) > 1)
    fabric = Torus("f", tuple(shape), tuple(wrap[: len(shape)]), 50e9, 1e-6)
    graph, title = fabric.explicit(), picture(fabric, width=900).title
    up_to, links, hops = re.search(
        r": (up to )?(\w+) links? of .*, at most (\d+) hop", title
    ).groups()
    numbers = ("no", "one", "two", "three", "four", "five", "six")
    degrees = [
        sum(graph.edges[node, other].get("count", 1) for other in graph[node]) for node in graph
    ]
    assert max(degrees) == numbers.index(links)
    assert up_to or set(degrees) == {max(degrees)}
    assert nx.diameter(graph) == int(hops)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), st.integers(1, 2), st.integers(1, 3), st.integers(1, 5))
def test_what_a_picture_of_a_dragonfly_says_is_so(a, p, h, groups):
    try:
        fabric = Dragonfly("f", a, p, h, 50e9, 50e9, 1e-6, groups=groups)
        graph, title = fabric.explicit(), picture(fabric, width=900).title
    except InputError:
        assume(False)
    router = [node for node in graph if isinstance(node, tuple) and node[0] == "router"]
    group_of = {node: node[1] // a if len(node) == 2 else node[1] for node in router}
    joined = {
        tuple(sorted((group_of[x], group_of[y])))
        for x, y in graph.edges
        if x in group_of and y in group_of and group_of[x] != group_of[y]
    }
    inside = Counter(
        group_of[x]
        for x, y in graph.edges
        if x in group_of and y in group_of and group_of[x] == group_of[y]
    )
    if said := re.search(r"Any two of (\d+) groups", title):
        count = len(set(group_of.values()))
        assert count == int(said[1])
        assert len(joined) == count * (count - 1) // 2
    if "any two routers" in title:
        assert all(count == a * (a - 1) // 2 for count in inside.values())
        assert len(inside) == len(set(group_of.values()))
