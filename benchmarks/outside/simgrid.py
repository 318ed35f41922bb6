"""Our times of traffic beside SimGrid's, a flow-level simulator, on the same fabrics.

SimGrid's own fat-trees, tori and dragonflies, without latency, cross-traffic or factors; and drawn
graphs that lost a cable, where every path that a flow may take is one message more. Patterns are
rings over all and over strides, an all-to-all, and transfers between the stages of a pipeline, each
one the phases that we price.
"""

import functools
import json
import math
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, cast

import networkx as nx
import numpy as np

from benchmarks.outside.tool import BUILD, Debian, Row
from nest_core.fabric import Clos, Dragonfly, Fabric, GraphFabric, Torus
from nest_core.fabric.checks import LinkGraph, Routing
from nest_core.fabric.graph import Element, Link
from nest_core.network import (
    Phase,
    by_algorithm,
    collapse,
    exchange,
    message_time,
    price_phases,
    reduce_scatters,
    transfers,
)
from nest_core.network.patterns import pattern_phases

TOOL = Debian(
    "python3-simgrid",
    (
        "python3-simgrid", "libsimgrid4.0", "libns3.43", "libboost-context1.83.0", "libgsl28",
        "libgslcblas0", "libgfortran5", "libxml2", "libsqlite3-0", "liblzma5", "zlib1g", "libzstd1",
        "libstdc++6", "libgcc-s1", "libc6", "libexpat1", "libffi8", "libbz2-1.0", "libssl3t64",
        "python3.13-minimal", "libpython3.13-minimal", "libpython3.13-stdlib",
    ),
    suite="trixie",
)  # fmt: skip
RATE_Bps, SIZE, HOP_s = 25e9, 2.0**30, 5e-7
LINKS = {"rate_Bps": RATE_Bps, "latency_s": 0.0}
NEAR = 0.03
FAT_TREES = ((16, 4, 1.0), (16, 4, 2.0), (64, 8, 1.0), (64, 8, 2.0), (60, 6, 3.0), (62, 8, 1.0))
"""Nodes, nodes of a leaf, down : up."""
TORI = ((8, 8), (4, 8), (5, 7), (6, 6), (4, 4, 4), (3, 4, 5), (2, 4, 4), (4, 4, 8))
ENTERING = {"device": 1e4, "nic": 1e8, "switch": 0.0}
"""What a path pays beside one a hop: paths with fewest NICs, then devices, then hops are taken."""
SERVERS: tuple[
    tuple[Literal["leaf_spine", "rail_optimised", "rail_only"], int, int, int, int, float], ...
] = (
    ("rail_optimised", 32, 4, 4, 8, 1.0),
    ("rail_optimised", 32, 4, 4, 8, 3.0),
    ("rail_only", 32, 4, 4, 8, 1.0),
    ("leaf_spine", 48, 8, 2, 12, 2.0),
    ("leaf_spine", 44, 4, 4, 16, 1.0),
    ("leaf_spine", 30, 2, 1, 8, 3.0),
)
"""Kind, devices, devices and NICs of a node, radix, down : up."""
REASON = (
    "its uplinks are the target's number modulo the spines, so the flows of a leaf may meet on one "
    "where adaptive routing spreads them"
)
Flows = list[tuple[int, int, float]]
Arc = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Setup:
    """A fabric, and SimGrid's zone and host of every device; without a zone routes are given."""

    family: str
    name: str
    fabric: Fabric
    zone: dict[str, Any] | None = None
    seat: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A pattern on a fabric: what we say, and what SimGrid is asked."""

    setup: Setup
    pattern: str
    ours_s: float
    zone: dict[str, Any]
    phases: list[Flows]


def patterns(fabric: Fabric) -> Iterator[tuple[str, list[Phase], float]]:
    """Yield names, phases and our seconds of `SIZE` bytes."""
    network = collapse(fabric)
    devices, link_map = fabric.devices, network.link_map
    steps = [k for k in range(2, devices) if devices % k == 0]
    chosen = {steps[0], steps[len(steps) // 2], steps[-1]} if steps else set()
    listed = [("ring", pattern_phases(network, "dp_ring", 1))]
    listed += [(f"rings at {k}", pattern_phases(network, "dp_ring", k)) for k in sorted(chosen)]
    for k in sorted(chosen):
        phases = pattern_phases(network, "pp", devices, k, "fwdbwd")
        listed.append((f"pipeline of {devices // k} stages", phases))
    every = np.arange(devices)[None]
    ways = by_algorithm(network, "all_reduce", every)
    name = min(ways, key=lambda way: float(ways[way].seconds(SIZE)[0]))
    listed.append((f"half an all-reduce, {name}", reduce_scatters(network)[name](network, every)))
    for name, phases in listed:
        yield name, phases, float(price_phases(link_map, phases, 1).seconds(SIZE)[0])
    ours = float(message_time(network, "all_to_all", every).seconds(SIZE).max())
    yield "all-to-all", [exchange(every, volume=1.0 / devices, steps=1.0)], ours


def flows_of(phase: Phase) -> Flows:
    """Return source, target and bytes of what is sent."""
    sizes = (phase.volume * SIZE).tolist()
    rows = zip(phase.source.tolist(), phase.target.tolist(), sizes, strict=True)
    return [row for row in rows if row[0] != row[1]]


def cases(setup: Setup) -> Iterator[Case]:
    """Yield every pattern on a fabric."""
    fabric, zone, seat = setup.fabric, setup.zone, setup.seat
    if zone is not None:
        slow, slow_zone = (
            replace(cast(Any, fabric), hop_latency_s=HOP_s),
            zone | {"latency_s": HOP_s},
        )
        others = np.arange(1, fabric.devices)
        ours = float(transfers(collapse(slow), 0 * others, others).seconds(1.0).max())
        flows = [(seat[0], seat[other], 1.0) for other in others.tolist()]
        yield Case(setup, "a byte to each", ours, slow_zone, [flows])
    for pattern, phases, ours in patterns(fabric):
        if zone is None:
            yield Case(setup, pattern, ours, *by_paths(fabric, phases))
        else:
            seated = [[(seat[a], seat[b], size) for a, b, size in flows_of(p)] for p in phases]
            yield Case(setup, pattern, ours, zone, seated)


def setups() -> Iterator[Setup]:
    """Yield all fabrics."""
    yield from zones()
    yield from drawn()
    yield from nodes()


def zones() -> Iterator[Setup]:
    """Yield fabrics that SimGrid has zones for."""
    for routing in ("shortest_path", "adaptive"):
        family = f"fat-tree, {routing}"
        for nodes, per_leaf, ratio in FAT_TREES:
            yield fat_tree(family, clos(nodes, 2 * per_leaf, 2, ratio, routing))
        for radix in (4, 6, 8):
            yield fat_tree(family, clos(radix**3 // 4, radix, 3, 1.0, routing))
    for shape in TORI:
        torus = Torus("torus", shape, (True,) * len(shape), RATE_Bps, 0.0)
        zone = {"kind": "torus", "shape": list(shape)} | LINKS
        yield Setup("torus", "x".join(map(str, shape)), torus, zone, tuple(range(torus.devices)))
    for routers, nodes, groups in ((4, 2, 4), (6, 1, 5), (8, 2, 8), (6, 4, 6)):
        yield dragonfly(
            Dragonfly(
                "dragonfly", routers, nodes, 1, RATE_Bps, RATE_Bps, 0.0, groups=groups,
                routing="shortest_path",
            )
        )  # fmt: skip


def clos(nodes: int, radix: int, tiers: int, ratio: float, routing: Routing) -> Clos:
    """Return leaves and spines, or edges, aggregation and cores, below nodes of one device."""
    return Clos(
        "clos", "fat_tree", nodes, 1, 1, RATE_Bps, radix, tiers, (ratio, 1.0)[: tiers - 1], 0.0,
        RATE_Bps, 0.0, routing=routing,
    )  # fmt: skip


def fat_tree(family: str, fabric: Clos) -> Setup:
    """Return it with a zone of more spines with one cable each."""
    below = [fabric.sizing.nodes_per_unit, *([] if fabric.tiers == 2 else [fabric.radix // 2])]
    ups = [int(fabric.uplinks(1).max())]
    if fabric.tiers == 3:
        ups.append(int(fabric.uplinks(2).max()) // ups[0])
    down = [*below, -(-fabric.devices // math.prod(below))]
    zone = {"kind": "fat_tree", "down": down, "up": [1, *ups], "count": [1] * fabric.tiers}
    name = f"{fabric.devices}: {';'.join(map(str, down))} down, {';'.join(map(str, ups))} up"
    return Setup(family, name, fabric, zone | LINKS, tuple(range(fabric.devices)))


def dragonfly(fabric: Dragonfly) -> Setup:
    """Return it with routers in SimGrid's order, where router n of a group leads to group n."""
    routers, nodes = fabric.routers_per_group, fabric.nodes_per_router
    seat: list[int] = []
    for group in range(fabric.groups):
        leads = {fabric.gateway(group, n): n for n in range(fabric.groups) if n != group}
        free = iter(sorted(set(range(routers)) - set(leads.values())))
        for router in range(routers):
            first = (group * routers + leads.get(router, -1)) * nodes
            if router not in leads:
                first = (group * routers + next(free)) * nodes
            seat += range(first, first + nodes)
    zone = {
        "kind": "dragonfly",
        "groups": [fabric.groups, 1],
        "chassis": [1, 1],
        "routers": [routers, 1],
        "nodes": nodes,
    }
    name = f"{fabric.groups} groups of {routers} routers of {nodes}"
    return Setup("dragonfly", name, fabric, zone | LINKS, tuple(seat))


def drawn() -> Iterator[Setup]:
    """Yield leaves and spines that lost a cable."""
    for seed in range(8):
        rng = random.Random(seed)
        leaves, spines, per_leaf = rng.randint(3, 5), rng.randint(2, 4), rng.randint(2, 6)
        hosts = [f"gpu{n}" for n in range(leaves * per_leaf)]
        elements = [Element(name, "device") for name in hosts]
        elements += [Element(f"leaf{n}", "switch") for n in range(leaves)]
        elements += [Element(f"spine{n}", "switch") for n in range(spines)]
        links = [Link(name, f"leaf{n // per_leaf}", RATE_Bps) for n, name in enumerate(hosts)]
        cables = [
            Link(f"leaf{a}", f"spine{b}", RATE_Bps) for a in range(leaves) for b in range(spines)
        ]
        cables.pop(rng.randrange(len(cables)))
        fabric = GraphFabric("graph", tuple(elements), (*links, *cables))
        yield Setup("a lost cable", f"{leaves} leaves of {per_leaf}, {spines} spines", fabric)


def nodes() -> Iterator[Setup]:
    """Yield nodes of several devices and NICs, and dragonflies and meshes that SimGrid lacks."""
    for kind, devices, per_node, nics, radix, ratio in SERVERS:
        fabric = Clos(
            "clos", kind, devices, per_node, nics, RATE_Bps, radix, 2, (ratio,), 0.0, 8 * RATE_Bps,
            0.0,
        )  # fmt: skip
        name = f"{kind}, {devices} in {per_node}s, {ratio:g}:1"
        yield Setup("nodes of several devices", name, fabric)
    for routers, per_router, links, groups, per_node in (
        (4, 2, 2, 5, 1), (4, 2, 2, 9, 1), (4, 2, 3, 4, 1), (8, 4, 1, 4, 1), (3, 2, 2, 4, 2),
    ):  # fmt: skip
        fly = Dragonfly(
            "dragonfly", routers, per_router, links, RATE_Bps, 2 * RATE_Bps, 0.0, 8 * RATE_Bps,
            groups=groups, devices_per_node=per_node,
        )  # fmt: skip
        name = f"{groups} groups of {routers} routers of {per_router} x {per_node}, h {links}"
        yield Setup("dragonfly, several global links", name, fly)


def by_paths(fabric: Fabric, phases: list[Phase]) -> tuple[dict[str, Any], list[Flows]]:
    """Return hosts that have one route each, and messages cut into one for every path.

    A message alone would be weighed as one; parts weigh what they carry of it.
    """
    graph = fabric.explicit()
    arcs = {arc: n for n, arc in enumerate([*graph.edges, *((b, a) for a, b in graph.edges)])}
    devices, routes, result = fabric.devices, {}, []
    ways = functools.cache(functools.partial(shares, fabric, graph))
    for phase in phases:
        flows: Flows = []
        for a, b, size in flows_of(phase):
            for copy, (way, share) in enumerate(ways(a, b)):
                ends = copy * devices + a, copy * devices + b
                routes[ends] = [arcs[arc] for arc in way], share
                flows.append((*ends, share * size))
        result.append(flows)
    zone = {
        "kind": "routed",
        "hosts": 1 + max(max(ends) for ends in routes),
        "links_Bps": [
            graph.edges[arc]["bandwidth_Bps"] * graph.edges[arc]["count"] for arc in arcs
        ],
        "routes": [(a, b, way, share) for (a, b), (way, share) in routes.items()],
    }
    return zone, result


def barred(fabric: Fabric, source: int, target: int) -> tuple[Any, ...]:
    """Return the routers of a dragonfly's groups but the two, which minimal routes do not cross."""
    if not isinstance(fabric, Dragonfly):
        return ()
    group = fabric.group_of()[[source, target]].tolist()
    size = fabric.routers_per_group
    return tuple(("router", n) for n in range(fabric.routers) if n // size not in group)


def shares(fabric: Fabric, graph: LinkGraph, a: int, b: int) -> list[tuple[list[Arc], float]]:
    """Return the arcs of shortest paths, and what each carries where hops divide by capacity."""
    seen = nx.restricted_view(graph, barred(fabric, a, b), [])
    role = nx.get_node_attributes(seen, "role")

    def cost(_: object, head: object, __: object) -> float:
        return 1.0 + ENTERING[role[head]]

    ways = [tuple(pairwise(way)) for way in nx.all_shortest_paths(seen, a, b, weight=cost)]
    if any(role[way[0][1]] != "nic" for way in ways):
        ways = [way for way in ways if role[way[0][1]] != "nic"]  # forwarded inside the node first
    result = []
    for way in ways:
        share = 1.0
        for k, arc in enumerate(way):
            wide = {
                other[k]: seen.edges[other[k]]["bandwidth_Bps"] * seen.edges[other[k]]["count"]
                for other in ways
                if other[:k] == way[:k]
            }
            share *= wide[arc] / sum(wide.values())
        result.append((list(way), share))
    return result


def simulated(asked: list[Case]) -> list[float]:
    """Return SimGrid's seconds."""
    folder = BUILD / "simgrid"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.json").write_text(
        json.dumps([{"zone": case.zone, "phases": case.phases} for case in asked])
    )
    TOOL.run_python("3.13", "simgrid_times.py", folder)
    answers = json.loads((folder / "answers.json").read_text())
    return [float("nan") if answer is None else sum(answer) for answer in answers]


def rows() -> list[Row]:
    """Return how many times are near, family by family."""
    asked = [case for setup in setups() for case in cases(setup)]
    errors: dict[str, dict[str, float]] = {}
    for case, seconds in zip(asked, simulated(asked), strict=True):
        name = f"{case.pattern} on {case.setup.name}"
        errors.setdefault(case.setup.family, {})[name] = case.ours_s / seconds - 1
    result = []
    for family, by_name in errors.items():
        sizes = [abs(error) for error in by_name.values()]
        worst = max(by_name, key=lambda name: abs(by_name[name]))
        near = sum(error <= NEAR for error in sizes)
        remark = f"median {statistics.median(sizes):.2%}, largest {by_name[worst]:+.2%} ({worst})"
        if near < len(sizes):
            remark += f"; {REASON}"
        what = f"{family}: times of traffic within {NEAR:.0%}"
        result.append(Row("SimGrid", TOOL.version(), what, len(sizes), near, remark))
    return result
