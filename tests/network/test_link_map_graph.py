"""Networks of arbitrary link graphs: routes, levels by cuts, and the error of levels alone."""

from __future__ import annotations

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from fabric_specs import CLOS, EXPLICIT, HIERARCHIES, RAILS, TORI, clos, torus, tree

from nest_core.costs.layout import seated
from nest_core.documents.errors import InputError
from nest_core.network import Network, collapse, transfers
from nest_core.network.clusters import graph_network
from nest_core.network.cuts import Cuts
from nest_core.network.link_graph import read_links
from nest_core.network.patterns import REMOTE_HOPS, block_levels, collapse_error, levels_only
from nest_core.network.tree import TreeTier
from nest_core.network.twins import reduced, whole

# Where links and structure state the same: not where a mesh's flows divide by another rule, and
# not where a device drives one NIC of a pool but the pool counts as one link group.
AGREE = {
    name: fabric
    for name, fabric in {**HIERARCHIES, **CLOS, **RAILS}.items()
    if name not in ("hybrid cube mesh", "three NICs for four devices", "one device")
}
SIMPLE = ["one tier", "two tiers, 3:1 in whole ports", "fat tree, k = 4", "rails, 4:1"]


def link(graph: nx.Graph, a: object, b: object, GBps: float, us: float = 1.0, count: int = 1):
    graph.add_edge(a, b, bandwidth_Bps=GBps * 1e9, count=count, latency_s=us * 1e-6)


def drawn(devices: int, switches: list[object]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(devices), role="device")
    graph.add_nodes_from(switches, role="switch")
    return graph


def both(found, expected):
    assert found.alpha_s == pytest.approx(expected.alpha_s, rel=1e-12)
    assert found.beta_s_per_byte == pytest.approx(expected.beta_s_per_byte, rel=1e-12)


def permutations(devices: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some devices, each sending once and receiving once."""
    dice = np.random.default_rng(seed)
    some = int(dice.integers(1, devices + 1))
    source, target = dice.permutation(devices)[:some], dice.permutation(devices)[:some]
    return source[source != target], target[source != target]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", AGREE)
def test_links_and_structure_give_the_same_times(name, seed):
    """A failure: a flow takes another way through the graph than through the structure."""
    fabric = AGREE[name]
    source, target = permutations(fabric.devices, seed)
    found = transfers(graph_network(fabric.explicit()), source, target)
    both(found, transfers(collapse(fabric), source, target))


@pytest.mark.parametrize("name", TORI)
def test_a_torus_as_a_graph_keeps_latency_hops_and_straight_ways(name):
    """Minimal ways differ in their turns, not in their length; straight ones are the same."""
    fabric = TORI[name]
    whole, structure = graph_network(fabric.explicit()).link_map, collapse(fabric).link_map
    every = np.arange(fabric.devices)
    source, target = np.repeat(every, fabric.devices), np.tile(every, fabric.devices)
    apart = source != target
    source, target = source[apart], target[apart]
    found, expected = whole.routes(source, target), structure.routes(source, target)
    assert found.latency_s == pytest.approx(expected.latency_s, rel=1e-12)
    hops = np.bincount(found.flow, found.share)
    assert hops == pytest.approx(np.bincount(expected.flow, expected.share), rel=1e-12)
    near = expected.latency_s == expected.latency_s.min()
    both(
        transfers(graph_network(fabric.explicit()), source[near][:4], target[near][:4]),
        transfers(collapse(fabric), source[near][:4], target[near][:4]),
    )


@pytest.mark.parametrize("name", [*SIMPLE, "4x4", "a short rack"])
def test_numbers_of_devices_and_elements_do_not_matter(name):
    """Relabelled, the same fabric gives the same levels and times."""
    graph = EXPLICIT[name].explicit()
    dice = np.random.default_rng(3)
    devices = [element for element in graph if graph.nodes[element]["role"] == "device"]
    others = [element for element in graph if graph.nodes[element]["role"] != "device"]
    moved = dict(zip(devices, dice.permutation(len(devices)).tolist(), strict=True))
    names = dict(zip(others, [f"x{i}" for i in dice.permutation(len(others))], strict=True))
    other = nx.relabel_nodes(graph, moved | names)
    a, b = graph_network(graph), graph_network(other)
    assert [(x.group_size, x.groups, x.capacity_Bps, x.latency_s) for x in a.levels] == [
        (x.group_size, x.groups, pytest.approx(x.capacity_Bps), pytest.approx(x.latency_s))
        for x in b.levels
    ]
    source, target = permutations(len(devices), 5)
    place = np.array([moved[device] for device in devices])
    both(transfers(b, place[source], place[target]), transfers(a, source, target))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", EXPLICIT)
def test_more_bandwidth_is_never_slower(name):
    """All links of one tier doubled: no flow of a random placement gets slower under one path."""
    network = graph_network(EXPLICIT[name].explicit(), "shortest_path")
    source, target = permutations(network.devices, 1)
    if not len(source):
        return
    before = transfers(network, source, target).beta_s_per_byte
    for tier in range(len(network.levels)):
        link_map = network.link_map.faster(tier, 2.0)
        after = transfers(
            Network(network.devices, network.levels, link_map, network.nesting), source, target
        ).beta_s_per_byte
        assert (after <= before * (1 + 1e-12)).all()
        assert (after >= before / 2 * (1 - 1e-12)).all()


def test_wider_links_of_a_tier_leave_other_tiers_as_they_are():
    """Racks of two devices under a spine: the uplink holds a flow up, whatever the rack has."""
    graph = drawn(4, ["left", "right", "spine"])
    for device in range(4):
        link(graph, device, "left" if device < 2 else "right", 50)
    for leaf in ("left", "right"):
        link(graph, leaf, "spine", 10)
    network = graph_network(graph)

    def rate(tier: int, source: int, target: int) -> float:
        link_map = network.link_map.faster(tier, 2.0)
        wider = Network(network.devices, network.levels, link_map, network.nesting)
        found = transfers(wider, np.array([source]), np.array([target]))
        return 1e-9 / float(found.beta_s_per_byte.item())

    assert [rate(tier, 0, 2) for tier in (0, 1)] == pytest.approx([10, 20])
    assert [rate(tier, 0, 1) for tier in (0, 1)] == pytest.approx([100, 50])


def test_every_flow_arrives_whole():
    """Shares that enter an element leave it: what arrives at the target adds up to the flow."""
    network = graph_network(torus((4, 4, 4), (True,) * 3).explicit())
    source, target = permutations(64, 2)
    routes = network.link_map.routes(source, target)
    links = network.link_map.links
    last = links.head[routes.link_group] == target[routes.flow]
    assert np.bincount(routes.flow[last], routes.share[last]) == pytest.approx(1.0)


@pytest.mark.parametrize("table", [100, 2**24])
@pytest.mark.parametrize("seed", range(6))
def test_flows_divide_at_every_switch_as_its_widths_do(seed, table, monkeypatch):
    """Random regular fabrics: paths part and meet again, and cross more links than flows go.

    The oracle walks the distances of networkx; asked again, the answer is the same, and so it is
    where next hops are too many to be tabled at once.
    """
    monkeypatch.setattr("nest_core.network.graph.TABLE", table)
    monkeypatch.setattr("nest_core.network.twins.TABLE", table)
    dice = np.random.default_rng(seed)
    graph = nx.relabel_nodes(
        nx.random_regular_graph(5, 40, seed=seed), {k: f"s{k}" for k in range(40)}
    )
    nx.set_node_attributes(graph, "switch", "role")
    for a, b in graph.edges:
        link(graph, a, b, float(dice.integers(1, 4)), count=int(dice.integers(1, 3)))
    for device in range(12):
        graph.add_node(device, role="device")
        link(graph, device, f"s{device * 3}", 100)
    link_map = graph_network(graph).link_map
    links = link_map.links
    source, target = dice.integers(0, 12, (2, 9))
    expected: dict[tuple[int, object, object], float] = {}
    for flow, (start, goal) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        switches = graph.subgraph([n for n in graph if isinstance(n, str) or n in (start, goal)])
        away = nx.shortest_path_length(switches, target=goal)
        part = {start: 1.0}
        for distance in range(away[start], 0, -1):
            for here in [n for n in part if away[n] == distance]:
                nearer = [n for n in switches[here] if away[n] == distance - 1]
                widths = [
                    graph.edges[here, n]["bandwidth_Bps"] * graph.edges[here, n]["count"]
                    for n in nearer
                ]
                for ahead, width in zip(nearer, widths, strict=True):
                    moved = part[here] * width / sum(widths)
                    expected[flow, here, ahead] = moved
                    part[ahead] = part.get(ahead, 0.0) + moved
    for _ in range(2):
        routes = link_map.routes(source, target)
        ends = zip(
            routes.flow.tolist(),
            [links.elements[k] for k in links.tail[routes.link_group]],
            [links.elements[k] for k in links.head[routes.link_group]],
            strict=True,
        )
        found = dict(zip(ends, routes.share.tolist(), strict=True))
        assert len(found) == len(routes.flow)
        assert found == pytest.approx(expected, rel=1e-12)


def clustered(seed: int) -> nx.Graph:
    """Nodes of one size or nearly so below leaves, in rails or planes, with and without NICs and
    switches of their own; here and there a link is missing, or another.
    """
    dice = np.random.default_rng(seed)
    leaves, spines, per, rails, planes = (
        int(dice.choice(choices))
        for choices in ((2, 3, 4), (1, 2, 3), (1, 2, 4), (1, 1, 2), (1, 2))
    )
    switched, has_nics = dice.random(2) < 0.7
    graph = drawn(0, [f"spine{spine}" for spine in range(spines)])
    for leaf in range(leaves * rails * planes):
        graph.add_node(f"leaf{leaf}", role="switch")
        for spine in range(spines):
            wide = int(dice.choice([1, 1, 1, 2]))
            link(graph, f"leaf{leaf}", f"spine{spine}", float(dice.choice([50, 50, 25])), 1, wide)
    for leaf, host in np.ndindex(leaves, int(dice.integers(5, 8))):
        size, name = (per if dice.random() < 0.95 else 1), f"host{leaf}.{host}"
        members = [f"{name} gpu{slot}" for slot in range(size)]
        graph.add_nodes_from(members, role="device")
        if switched and size > 1:
            graph.add_node(name, role="switch")
        inside = [(member, name) for member in members] if switched else pairwise(members)
        for a, b in inside if size > 1 else ():
            link(graph, a, b, 400, 0.1)
        for slot, plane in np.ndindex(size, planes):
            up = f"leaf{(leaf * rails + slot % rails) * planes + plane}"
            nic = f"{name} nic{slot // (1 + seed % 2)}.{plane}"
            if has_nics:
                graph.add_node(nic, role="nic")
                link(graph, members[slot], nic, float(dice.choice([50, 25], p=[0.97, 0.03])), 0.2)
            if dice.random() < 0.98 or plane == 0:
                link(graph, nic if has_nics else members[slot], up, 50)
    return graph


def walked(graph: nx.Graph, start: object, goal: object) -> dict[tuple[object, object], float]:
    """What of a flow crosses each link, walked over the distances that networkx finds."""
    enter = {"device": 1e4, "nic": 1e8, "switch": 0.0}
    role = nx.get_node_attributes(graph, "role")
    towards = nx.DiGraph()
    for a, b in [*graph.edges, *((b, a) for a, b in graph.edges)]:
        towards.add_edge(b, a, cost=1 + enter[role[b]])
    away = nx.single_source_dijkstra_path_length(towards, goal, weight="cost")
    crossed: dict[tuple[object, object], float] = {}
    part = {start: 1.0}
    while set(part) != {goal}:
        here = max((name for name in part if name != goal), key=away.__getitem__)
        moved = part.pop(here)
        ahead = [b for b in graph[here] if away[here] == away[b] + 1 + enter[role[b]]]
        if role[here] == "device":
            ahead = [b for b in ahead if role[b] != "nic"] or ahead
        widths = [
            graph.edges[here, b]["bandwidth_Bps"] * graph.edges[here, b]["count"] for b in ahead
        ]
        for b, width in zip(ahead, widths, strict=True):
            crossed[here, b] = moved * width / sum(widths)
            part[b] = part.get(b, 0.0) + crossed[here, b]
    return crossed


@pytest.mark.parametrize("seed", range(12))
def test_three_parts_of_a_kind_stand_for_all(seed, monkeypatch):
    """Levels are those of the search over the whole graph to the bit, and so are routes and
    latencies; some of them networkx walks as well.
    """
    graph = clustered(seed)
    network = graph_network(graph)
    link_map = network.link_map
    links, pairs = link_map.links, np.indices((network.devices,) * 2).reshape(2, -1)
    assert reduced(links)[0]
    routes, latency_s = link_map.routes(*pairs), link_map.latency_s(*pairs)
    for module in ("graph", "clusters"):
        monkeypatch.setattr(
            f"nest_core.network.{module}.reduced", lambda links, *_: ([], whole(links))
        )
    slow = graph_network(graph)
    assert network.levels == slow.levels
    assert all((a == b).all() for a, b in zip(network.nesting, slow.nesting, strict=True))
    assert (link_map.arc_level == slow.link_map.arc_level).all()
    expected = slow.link_map.routes(*pairs)
    for entry in (routes, expected):
        order = np.lexsort((entry.link_group, entry.flow))
        for name in ("flow", "link_group", "share"):
            object.__setattr__(entry, name, getattr(entry, name)[order])
    for name in ("flow", "link_group", "share", "latency_s", "outside"):
        assert (getattr(routes, name) == getattr(expected, name)).all()
    assert (latency_s == slow.link_map.latency_s(*pairs)).all()
    for flow in np.random.default_rng(seed).choice(len(pairs[0]), 12).tolist():
        some = slice(*np.searchsorted(routes.flow, [flow, flow + 1]))
        ends = [
            (links.elements[links.tail[arc]], links.elements[links.head[arc]])
            for arc in routes.link_group[some].tolist()
        ]
        found = dict(zip(ends, routes.share[some].tolist(), strict=True))
        start, goal = (links.elements[end[flow]] for end in pairs)
        assert found == pytest.approx(walked(graph, start, goal), rel=1e-12)


def test_parts_that_others_pass_through_are_not_taken_together():
    """Four nodes alone join two leaves: what the others send each other spreads over all four."""
    graph = drawn(0, ["leaf0", "leaf1"])
    for node in range(12):
        graph.add_node(node, role="device")
        for leaf in (0, 1) if node < 4 else (node % 2,):
            graph.add_node(nic := f"nic {node}.{leaf}", role="nic")
            link(graph, node, nic, 50)
            link(graph, nic, f"leaf{leaf}", 50)
    link_map = graph_network(graph).link_map
    routes = link_map.routes(np.array([4]), np.array([5]))
    assert len(routes.flow) == 2 + 4 * 4 + 2
    assert not reduced(link_map.links)[0]


def test_devices_forward_only_where_switches_do_not_connect():
    """Two devices with a link to a third, and a long way over switches."""
    graph = drawn(3, ["s0", "s1", "s2"])
    link(graph, 0, 1, 100)
    link(graph, 1, 2, 100)
    for a, b in ((0, "s0"), ("s0", "s1"), ("s1", "s2"), ("s2", 2)):
        link(graph, a, b, 10)
    link_map = graph_network(graph).link_map
    routes = link_map.routes(np.array([0]), np.array([2]))
    assert len(routes.link_group) == 4
    assert routes.latency_s == pytest.approx([4e-6])
    graph.remove_edge("s0", "s1")
    routes = graph_network(graph).link_map.routes(np.array([0]), np.array([2]))
    assert len(routes.link_group) == 2


def test_adaptive_flows_divide_by_capacity_and_single_ones_take_one_link():
    """Two spines, one of three parallel links: 3/4 of the flow, or one link of 10 GB/s."""
    graph = drawn(2, ["a", "b", "s0", "s1"])
    link(graph, 0, "a", 100)
    link(graph, 1, "b", 100)
    for leaf in "ab":
        link(graph, leaf, "s0", 10)
        link(graph, leaf, "s1", 10, count=3)
    ends = np.array([0]), np.array([1])
    beta = {
        routing: transfers(graph_network(graph, routing), *ends).beta_s_per_byte[0]
        for routing in ("adaptive", "shortest_path", "ecmp")
    }
    expected = {"adaptive": 1 / 40e9, "shortest_path": 1 / 10e9, "ecmp": 1 / 10e9}
    assert beta == pytest.approx(expected)


def test_ecmp_collides_and_repeats():
    """64 flows over 4 spines collide; the same seed gives the same, another seed another."""
    graph = drawn(128, ["a", "b", *"wxyz"])
    for device in range(128):
        link(graph, device, "a" if device < 64 else "b", 10)
    for leaf in "ab":
        for spine in "wxyz":
            link(graph, leaf, spine, 160)
    source = np.arange(64)
    times = {
        seed: transfers(graph_network(graph, "ecmp", seed), source, source + 64).beta_s_per_byte
        for seed in (0, 7)
    }
    ideal = transfers(graph_network(graph), source, source + 64).beta_s_per_byte
    assert ideal == pytest.approx(1 / 10e9)
    assert 1.05 < times[0].max() * 10e9 < 2
    assert (times[0] != times[7]).any()
    both(
        transfers(graph_network(graph, "ecmp", 7), source, source + 64),
        transfers(graph_network(graph, "ecmp", 7), source, source + 64),
    )


def real_tiers(network: Network) -> list[tuple[int, int, object, object]]:
    """Levels that join something: devices, groups, bandwidth of a device, latency."""
    found: list[tuple[int, int, object, object]] = []
    lesser = np.inf
    size = 1
    for level in network.levels:
        capacity = min(level.capacity_Bps, lesser)
        if level.group_size == size:
            lesser = capacity if level.group_size > 1 else np.inf
            continue
        found.append(
            (
                level.group_size,
                level.groups,
                pytest.approx(capacity),
                pytest.approx(level.latency_s),
            )
        )
        size, lesser = level.group_size, np.inf
    return found


@pytest.mark.parametrize("name", {**HIERARCHIES, **CLOS})
def test_clusters_of_a_drawn_tree_are_its_groups(name):
    """A failure: distances or cuts join what the fabric keeps apart, or misjudge an uplink.

    In meshes a device's cut is all of its links.
    """
    fabric = {**HIERARCHIES, **CLOS}[name]
    if fabric.devices == 1:
        return
    network, expected = graph_network(fabric.explicit()), collapse(fabric)
    found = [(x.group_size, x.groups, x.capacity_Bps, x.latency_s) for x in network.levels]
    wanted = real_tiers(expected)
    if name in ("ring nodes", "hybrid cube mesh"):
        found, wanted = found[1:], wanted[1:]
    assert found == wanted
    outermost = [group for group in expected.nesting if len(np.unique(group)) < fabric.devices]
    kept = {tuple(np.unique(group, return_inverse=True)[1]) for group in outermost}
    assert {tuple(group) for group in network.nesting} == kept


def test_levels_have_the_names_of_what_joins_them():
    """768 A100 read from a file had the levels gpu, level 1 and level 2.

    Hosts lend their names to the switches inside them, and the nodes of one pod are on several
    leaves, so that spines join some of them as well.
    """
    graph = drawn(24, [])
    leaves_of = {0: "ab", 1: "ab", 2: "bc", 3: "cd", 4: "ef", 5: "ef"}
    for host, leaves in leaves_of.items():
        graph.add_node(f"gpu{host:03d}", role="switch")
        for place in range(4):
            device, nic, leaf = 4 * host + place, f"nic{host}.{place}", f"leaf-{leaves[place // 2]}"
            graph.add_node(nic, role="nic")
            graph.add_node(leaf, role="switch")
            link(graph, device, f"gpu{host:03d}", 450)
            link(graph, device, nic, 50)
            link(graph, nic, leaf, 50)
    for spine in ("spine1", "spine2"):
        graph.add_node(spine, role="switch")
        for leaf in "abcdef":
            link(graph, f"leaf-{leaf}", spine, 50)
    network = graph_network(graph)
    assert [level.name for level in network.levels] == ["node", "leaf", "spine"]
    assert network.levels[1].group_size == 16
    # Plans kept from then name the blocks by number.
    old, new = (seated(network, f"8 per {level}") for level in ("level 1", "leaf"))
    assert (old[0] == new[0]).all()
    assert old[1] == new[1] == 16


def test_meshes_of_equal_hops_are_told_apart_by_cuts():
    """Two meshes of four at 100 GB/s, joined device by device at 10: hops alone see one group."""
    graph = drawn(8, [])
    for half in (range(4), range(4, 8)):
        for a in half:
            for b in half:
                if a < b:
                    link(graph, a, b, 100)
    for a in range(4):
        link(graph, a, a + 4, 10)
    levels = graph_network(graph).levels
    assert [(x.group_size, x.capacity_Bps) for x in levels] == [(4, 300e9), (8, 40e9)]


def test_a_star_of_unequal_racks_is_not_split():
    """Uplinks of 40, 40, 10 and 5 GB/s meet at one spine: one level, the worst child's uplink."""
    graph = drawn(8, ["spine", *(f"rack{i}" for i in range(4))])
    for device in range(8):
        link(graph, device, f"rack{device // 2}", 100)
    for rack, uplink in enumerate((40, 40, 10, 5)):
        link(graph, f"rack{rack}", "spine", uplink)
    levels = graph_network(graph).levels
    assert [(x.name, x.group_size, x.capacity_Bps) for x in levels] == [
        ("rack", 2, 100e9),
        ("spine", 8, 5e9),
    ]


def _of_twins(seed: int) -> nx.Graph:
    """Four places of three devices that see the same, linked to one another or not."""
    dice = np.random.default_rng(seed)
    graph, places = nx.Graph(), nx.cycle_graph(4)
    graph.add_nodes_from(range(12), role="device")
    between = {edge: float(dice.integers(1, 9)) for edge in places.edges}
    inside = dice.integers(0, 12, size=4).tolist()
    for a, b in combinations(range(12), 2):
        pair = a // 3, b // 3
        if GBps := inside[a // 3] if a // 3 == b // 3 else between.get(pair, 0.0):
            link(graph, a, b, GBps)
    return graph


def _cuts(graph: nx.Graph) -> Cuts:
    links = read_links(graph)
    return Cuts.between(links, np.ones(len(links.tail), bool), np.arange(12), np.zeros(12, int))


@pytest.mark.parametrize("seed", range(12))
def test_the_cut_tree_holds_every_pair(seed):
    """Gusfield's tree against networkx's maximum flows on random graphs, and on twins."""
    dice = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(12, 4, 0.5, seed=seed)
    nx.set_node_attributes(graph, "device", "role")
    for a, b in graph.edges:
        link(graph, a, b, float(dice.integers(1, 9)))
    if seed >= 6:
        graph = _of_twins(seed)
    a, b, value = _cuts(graph).tree(np.arange(12))
    found = nx.Graph()
    found.add_weighted_edges_from(zip(a.tolist(), b.tolist(), value.tolist(), strict=True))
    nx.set_edge_attributes(
        graph, {edge: graph.edges[edge]["bandwidth_Bps"] for edge in graph.edges}, "capacity"
    )
    for s in range(12):
        for t in range(s):
            path = nx.shortest_path(found, s, t)
            least = min(found.edges[edge]["weight"] for edge in nx.utils.pairwise(path))
            assert least == pytest.approx(nx.maximum_flow_value(graph, s, t))


@pytest.mark.parametrize("seed", range(24))
def test_uplinks_are_networkx_minimum_cuts(seed):
    """Children of two groups below switches, some too narrow: to the rest of one's own group.

    A failure: what a switch passes straight on was taken for enough, or counted twice.
    """
    dice = np.random.default_rng(seed)
    graph, group = drawn(12, []), np.arange(12) // 6
    for switch in ("a", "b", "c", "top"):
        graph.add_node(switch, role="switch")
    for device in range(12):
        for switch in dice.choice(["a", "b", "c"], 2, replace=False).tolist():
            link(graph, device, switch, float(dice.integers(1, 4) ** (1 + seed % 3)))
    for switch in ("a", "b", "c"):
        link(graph, switch, "top", float(dice.integers(1, 20)))
    link(graph, 0, 1, 2.0)
    links = read_links(graph)
    used, inside = np.ones(len(links.tail), bool), np.append(np.arange(12), np.full(4, -1))
    found = Cuts.between(links, used, inside, group).uplinks_Bps()
    flows = nx.DiGraph(graph)
    for *_, data in flows.edges(data=True):
        data["capacity"] = data["bandwidth_Bps"]
    for device in range(12):
        others = [other for other in range(12) if other != device and group[other] == group[device]]
        flows.add_edges_from((other, "rest") for other in others)  # without a limit
        assert found[device] == pytest.approx(nx.minimum_cut_value(flows, device, "rest"))
        flows.remove_node("rest")


def test_linked_twins_are_one_class():
    """One flow does for all devices of a clique, however many; those of another speed do not."""
    graph = nx.complete_graph(12)
    nx.set_node_attributes(graph, "device", "role")
    for a, b in list(graph.edges):
        link(graph, a, b, 9.0 if b < 6 else 1.0)
    assert len(set(_cuts(graph).alike[:6].tolist())) == 1
    assert len(set(_cuts(graph).alike[6:].tolist())) == 1
    assert len(set(_cuts(graph).alike.tolist())) == 2


def test_a_device_on_the_way_of_another_group_stays_in_its_own():
    """A device may lie on shortest paths of several groups, and is still of one."""
    graph = drawn(6, [])
    graph.add_node("nic", role="nic")
    for a, b in ((2, 4), (3, 4), (3, "nic")):
        link(graph, a, b, 1.0)
    for a, b in ((0, 4), (1, 2), (4, "nic"), (5, "nic")):
        link(graph, a, b, 3.0)
    link(graph, 1, 3, 10.0)
    nesting = graph_network(graph).nesting
    assert len(nesting) > 1
    assert not nesting[-1].any()


EQUAL = [
    name
    for name in {**HIERARCHIES, **CLOS}
    if name
    not in (
        "three tiers, short last pod",
        "three tiers, short leaf and pod",
        "a NIC for two devices",
        "eight NICs for six devices",
        "meshed nodes",
        "ring nodes",
        "hybrid cube mesh",
    )
]


@pytest.mark.parametrize("name", EQUAL)
def test_levels_alone_price_trees_of_equal_groups_exactly(name):
    """Their collapse error is 0, from the structure and from the drawing.

    Drawn, a level of one child is no level, and the one around it hides its narrower ports.
    """
    fabric = {**HIERARCHIES, **CLOS}[name]
    assert collapse_error(collapse(fabric)) == 0.0
    drawing = collapse_error(graph_network(fabric.explicit()))
    assert drawing == (pytest.approx(0.375, abs=1e-3) if name == "a level of one child" else 0.0)


@pytest.mark.parametrize("name", ["4x4", "4x4x4", "rails, 4:1", "meshed nodes", "ring nodes"])
def test_what_levels_cannot_say_is_an_error(name):
    """Tori, rails with oversubscription and switchless nodes are not trees."""
    assert collapse_error(collapse(EXPLICIT[name])) > 0.1
    assert collapse_error(graph_network(EXPLICIT[name].explicit())) > 0.1


@pytest.mark.parametrize("name", list(TORI))
def test_blocks_of_a_torus_are_of_the_paper_s_three_levels(name):
    """One hop, two, and remote: blocks counted as far as their farthest pair, 16 hops, and NEST's
    plan for GPT-3 175B on 16 x 16 took 17 % longer than ours."""
    network, graph = collapse(TORI[name]), TORI[name].explicit()
    apart = dict(nx.all_pairs_shortest_path_length(graph))
    assert len(network.nesting) == len(block_levels(network))
    for block, number in zip(network.nesting, block_levels(network), strict=True):
        members = np.flatnonzero(block == block[0])
        hops = max(apart[members[0]][other] for other in members.tolist())
        assert number + 1 == max(1, min(hops, REMOTE_HOPS))


def test_a_wrong_level_shows_in_the_error():
    """Half of a level's bandwidth is an error of 1: levels alone take twice as long."""
    network = collapse(tree((8, 900, 0.1, "device", 1), (4, 100, 0.2, "child", 1)))
    node, rack = network.levels
    slower = type(rack)(
        **{f: getattr(rack, f) for f in rack.__slots__}
        | {"link_bandwidth_Bps": rack.link_bandwidth_Bps / 2}
    )
    wrong = Network(network.devices, (node, slower), network.link_map, network.nesting)
    assert collapse_error(wrong) == pytest.approx(1.0, rel=1e-3)
    assert levels_only(wrong).levels == wrong.levels


def test_one_sender_alone_has_its_own_port_of_a_bundle():
    """Levels gave it all uplinks of its leaf, and the collapse error said 0."""
    network = collapse(clos(64, ratios=(1.0,)))
    alone, far = np.array([0]), np.array([63])
    links, levels = (
        float(transfers(each, alone, far).seconds(1e9)[0])
        for each in (network, levels_only(network))
    )
    assert levels == pytest.approx(links, rel=1e-9)
    assert collapse_error(network) == 0.0


def test_the_collapse_error_sees_one_sender_alone(monkeypatch):
    """Bundles that one may use whole are no error of many senders."""
    network = collapse(clos(64, ratios=(1.0,)))
    monkeypatch.setattr("nest_core.network.patterns.TreeTier", _with_whole_bundles)
    assert collapse_error(network) > 0.9


def _with_whole_bundles(child, group, capacity, one_link, latency, owned):
    bundled = capacity if len(capacity) < 8 else one_link
    return TreeTier(child, group, capacity, bundled, latency, owned)


def test_drawings_that_cannot_be_routed_are_refused():
    lonely = drawn(2, [])
    with pytest.raises(InputError, match="link must connect all devices"):
        graph_network(lonely)
    with pytest.raises(InputError, match="element must include a device"):
        graph_network(drawn(0, ["s"]))


def test_one_device_is_one_level():
    graph = drawn(1, ["s"])
    link(graph, 0, "s", 10)
    network = graph_network(graph)
    assert [(level.group_size, level.groups) for level in network.levels] == [(1, 1)]
    assert network.link_map.least_latency_s == 0.0


@pytest.mark.check
def test_a_thousand_devices_collapse_in_seconds():
    """A generous bound for a shared machine; benchmarks say more."""
    network = graph_network(clos(1024, radix=64, ratios=(4.0,)).explicit())
    assert [(level.name, level.group_size) for level in network.levels] == [
        ("node", 8),
        ("leaf", 32),
        ("spine", 1024),
    ]
