"""Dragonflies: counts, diameter and global links as Kim et al. (2008) define them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest

from nest_core.documents.errors import InputError
from nest_core.fabric import Dragonfly

SHAPES = [(2, 1, 1, 0), (4, 2, 2, 0), (4, 2, 2, 5), (4, 2, 2, 4), (6, 1, 3, 7), (3, 2, 1, 2)]


def dragonfly(a: int, p: int, h: int, groups: int = 0, **changes: Any) -> Dragonfly:
    return Dragonfly("d", a, p, h, 50e9, 25e9, 1e-6, groups=groups, **changes)


@pytest.mark.parametrize("h", [1, 2, 4])
def test_a_balanced_dragonfly_has_the_papers_counts(h):
    """a = 2p = 2h: radix 4h - 1, N = 4h^4 + 2h^2."""
    fabric = dragonfly(2 * h, h, h)
    assert fabric.radix == 4 * h - 1
    assert fabric.devices == fabric.nodes == 4 * h**4 + 2 * h**2
    assert fabric.groups == 2 * h * h + 1


def router_graph(fabric: Dragonfly) -> nx.Graph:
    graph = fabric.explicit()
    return graph.subgraph([n for n in graph if isinstance(n, tuple) and n[0] == "router"])


@pytest.mark.parametrize("shape", SHAPES)
def test_groups_are_complete_and_every_pair_has_its_links(shape):
    """All local links, floor(a h / (g - 1)) global ones per pair, no router over its ports."""
    fabric = dragonfly(*shape)
    a, h, g = fabric.routers_per_group, fabric.global_links_per_router, fabric.groups
    graph = router_graph(fabric)
    between: Counter[tuple[int, int]] = Counter()
    ports: Counter[int] = Counter()
    local = 0
    for (_, x), (_, y), link in graph.edges(data=True):
        if x // a == y // a:
            local += 1
            assert (link["count"], link["bandwidth_Bps"]) == (1, 50e9)
            continue
        assert link["bandwidth_Bps"] == 25e9
        between[min(x // a, y // a), max(x // a, y // a)] += link["count"]
        ports[x] += link["count"]
        ports[y] += link["count"]
    assert local == g * a * (a - 1) // 2
    assert between == dict.fromkeys(combinations(range(g), 2), a * h // (g - 1))
    assert max(ports.values()) <= h
    if (a * h) % (g - 1) == 0:
        assert set(ports.values()) == {h}
    assert nx.diameter(graph) <= 3


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gateway_owns_a_link_to_the_target(shape):
    fabric = dragonfly(*shape)
    a = fabric.routers_per_group
    graph = router_graph(fabric)
    for x, y in combinations(range(fabric.groups), 2):
        for link in range(fabric.links_per_pair):
            ends = x * a + fabric.gateway(x, y, link), y * a + fabric.gateway(y, x, link)
            assert graph.has_edge(("router", ends[0]), ("router", ends[1]))
    first, second = np.array([0, 1]), np.array([1, 0])
    assert fabric.gateway(first, second).tolist() == [fabric.gateway(0, 1), fabric.gateway(1, 0)]


def test_devices_are_numbered_node_by_node():
    fabric = dragonfly(4, 2, 2, devices_per_node=2, nic_bandwidth_Bps=40e9)
    device = np.arange(fabric.devices)
    assert fabric.devices == 4 * 2 * 9 * 2
    assert np.array_equal(fabric.node_of(), device // 2)
    assert np.array_equal(fabric.slot_of(), device % 2)
    assert np.array_equal(fabric.router_of(), device // 4)
    assert np.array_equal(fabric.group_of(), device // 16)
    graph = fabric.explicit()
    link = graph.edges[("nic", 5, 0), ("router", 2)]
    assert (link["bandwidth_Bps"], link["count"]) == (40e9, 1)


def test_the_most_groups_and_the_local_rate_are_the_defaults():
    fabric = dragonfly(4, 2, 2)
    assert fabric.groups == 9
    assert fabric.nic_bandwidth_Bps == 50e9
    assert dragonfly(4, 2, 2, 1).links_per_pair == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": 10}, "dragonfly.groups must not exceed 9, one more than a group's 8 global"),
        ({"groups": -1}, "dragonfly.groups must be a whole number of at least 1, but is -1"),
        ({"routers_per_group": 0}, "dragonfly.routers_per_group must be a whole number"),
        ({"global_bandwidth_Bps": 0.0}, "dragonfly.global_bandwidth_GBps must be a finite"),
        ({"nic_bandwidth_Bps": -1.0}, "dragonfly.nic_bandwidth_GBps must be a finite"),
        ({"nodes_per_router": 10**6}, "dragonfly must not exceed 1,048,576 devices"),
        ({"interconnect": "hybrid_cube_mesh"}, "must not be a hybrid cube mesh unless"),
    ],
)
def test_what_is_no_dragonfly_is_refused(change, message):
    figures: dict[str, Any] = {
        "name": "d", "routers_per_group": 4, "nodes_per_router": 2, "global_links_per_router": 2,
        "local_bandwidth_Bps": 50e9, "global_bandwidth_Bps": 25e9, "hop_latency_s": 1e-6, **change,
    }  # fmt: skip
    with pytest.raises(InputError, match=message) as caught:
        Dragonfly(**figures)
    assert str(caught.value).endswith(".")
