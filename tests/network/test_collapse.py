"""The collapsed network says what the explicit link graph says, for every kind of fabric.

Latencies are those of the way, lone flows get its narrowest link, and uplink groups are minimum
cuts; a difference means that plans are priced on another fabric than the one that was drawn.
"""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from fabric_specs import (
    CLOS,
    EVERY,
    EXPLICIT,
    HIERARCHIES,
    NESTED,
    RAILS,
    TORI,
    TREES,
    TWISTED,
    clos,
    tree,
)
from routes import Counter, cut

from nest_core.documents.errors import InputError
from nest_core.fabric import Clos, Fabric, Torus
from nest_core.network import collapse, transfers
from nest_core.network.tree import TreeLinkMap


def pairs(fabric: Fabric, most: int = 400) -> list[tuple[int, int]]:
    """All ordered pairs of distinct devices, or a fixed sample of them."""
    everything = list(itertools.permutations(range(fabric.devices), 2))
    if len(everything) <= most:
        return everything
    chosen = np.random.default_rng(7).choice(len(everything), most, replace=False)
    return [everything[index] for index in chosen]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", EXPLICIT)
def test_latency_is_that_of_the_way(name):
    """A failure: transfers between some pair are priced at a distance that no cable has.

    Links on the way add up, in meshed nodes and where rails are relayed too. Elsewhere a level
    states it for all of its pairs.
    """
    fabric = EXPLICIT[name]
    network, counter = collapse(fabric), Counter(fabric)
    plain = not isinstance(fabric, Clos) or (
        fabric.interconnect == "switch" and fabric.kind != "rail_only"
    )
    chosen = pairs(fabric)
    for (source, target), delay in zip(chosen, counter.delays(chosen), strict=True):
        alone = transfers(network, np.array([source]), np.array([target]))
        assert alone.alpha_s.item() == pytest.approx(delay, rel=1e-12)
        if plain:
            level = int(network.level(source, target))
            assert network.levels[level].latency_s == pytest.approx(delay, rel=1e-12)


@pytest.mark.parametrize("name", [*TORI, *TWISTED])
def test_a_torus_level_is_the_hop_distance(name):
    """A failure: a dimension, its wrap or its twist is misread."""
    fabric = EVERY[name]
    network = collapse(fabric)
    hops = dict(nx.all_pairs_shortest_path_length(fabric.explicit()))
    device = range(fabric.devices)
    expected = np.array([[hops[a][b] for b in device] for a in device])
    assert (network.level(np.array(device)[:, None], device) + 1 == expected).all()
    assert len(network.levels) == max(max(row.values()) for row in hops.values())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", EXPLICIT)
def test_a_flow_alone_gets_the_narrowest_link_of_its_way(name):
    """A failure: a lone transfer is priced by a bandwidth that its way does not have.

    It has its own NIC or NICs, and with adaptive routing all of a switch's uplinks.
    """
    fabric = EXPLICIT[name]
    network, counter = collapse(fabric), Counter(fabric)
    for source, target in pairs(fabric, 150):
        (expected,) = counter.seconds_per_byte([(source, target)])
        alone = transfers(network, np.array([source]), np.array([target]))
        assert alone.beta_s_per_byte.item() == pytest.approx(expected, rel=1e-12)


def test_a_device_with_two_nics_uses_both_up_to_the_leaf():
    """Sixteen NICs for eight devices: 2 x 50 GB/s from device to leaf."""
    network = collapse(CLOS["two NICs per device"])
    assert network.levels[1].single_flow_Bps == 100e9
    alone = transfers(network, np.array([0]), np.array([8]))
    assert 1 / alone.beta_s_per_byte.item() == pytest.approx(100e9)


class UplinkGroups:
    """How much groups of a tree can send and take, read off its uplink groups.

    Group -1 of a tier's groups is what the tier's children hold: at the first tier of a Clos
    the devices of one NIC, at the first of a hierarchy one device.
    """

    def __init__(self, link_map: TreeLinkMap) -> None:
        owned = [index for index, tier in enumerate(link_map.tiers) if tier.direct]
        self.tiers = link_map.tiers[max(owned, default=0) :]
        self.below = [self.tiers[0].child, *(tier.group for tier in self.tiers)]

    def up(self, index: int, devices: np.ndarray) -> float:
        """Bytes/s of the uplinks into a tier that these devices have."""
        tier = self.tiers[index]
        link_groups = np.unique(tier.child[devices])
        return float(tier.capacity_Bps[link_groups].sum())

    def members(self, index: int, group: int) -> np.ndarray:
        return np.flatnonzero(self.below[index] == group)

    def push(self, index: int, group: int) -> float:
        """Bytes/s that a child can send up into a tier, given what its own children can."""
        devices = self.members(index, group)
        if index == 0:
            tier = self.tiers[0]
            alone = tier.link_Bps[tier.child[devices]] * tier.group_links
            return min(self.up(0, devices), float(alone.sum()))
        inner = np.unique(self.below[index - 1][devices])
        return min(self.up(index, devices), sum(self.push(index - 1, int(g)) for g in inner))

    def take(self, index: int, group: int) -> float:
        """Bytes/s that everything outside a child can take from it."""
        devices = self.members(index, group)
        parent = int(self.tiers[index].group[devices[0]])
        around = np.flatnonzero(self.tiers[index].group == parent)
        peers = set(self.below[index][around].tolist()) - {group}
        total = sum(self.push(index, peer) for peer in peers)
        if index + 1 < len(self.tiers):
            total += min(self.up(index + 1, around), self.take(index + 1, parent))
        return total


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in {**TREES, **RAILS} if name != "one device"])
def test_uplink_groups_are_minimum_cuts(name):
    """A failure: a group gets more, or less, than the cables that leave it.

    Where inner links or a short rest of the fabric are the narrower cut, the groups must say
    so too. What lies below the outermost port that a device owns is another world: NICs leave
    the nodes beside their insides.
    """
    fabric = EVERY[name]
    link_map = collapse(fabric).link_map
    link_groups = UplinkGroups(link_map)
    graph = Counter(fabric).outer
    for index, below in enumerate(link_groups.below[:-1]):
        there = np.unique(below)
        for group in {there[0], there[len(there) // 2], there[-1]}:
            inside = set(link_groups.members(index, int(group)).tolist())
            if len(inside) == fabric.devices:
                continue
            expected = min(link_groups.push(index, int(group)), link_groups.take(index, int(group)))
            assert cut(graph, fabric.devices, inside) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "capacities"),
    [
        # 8 x 900; one shared uplink of 100 per node, of 400 per rack.
        ("the paper's uplinks", (900, 100, 400)),
        # 450; 4 devices with 50 / 2 each; one uplink of 400 / 4.
        ("both owners, oversubscribed", (450, 100, 100)),
        # 450; 8 NICs of 50; 2 nodes per leaf = 16 down, 16 / 4 = 4 up.
        ("two tiers, 4:1", (450, 400, 200)),
        # Pods of 4 leaves with 4 down, 4 / 1 up; 4 spines with 4 down, 4 / 4 = 1 up each.
        ("three tiers, short leaf and pod", (450, 100, 200, 200)),
    ],
)
def test_capacities_of_named_fabrics(name, capacities):
    """GB/s of the link groups, by hand."""
    levels = collapse(NESTED[name]).levels
    assert [level.capacity_Bps / 1e9 for level in levels] == pytest.approx(capacities)


@pytest.mark.parametrize("name", [*NESTED, *TORI])
def test_levels_count_their_groups(name):
    """Equal groups that nest: as many as hold a device, the last level one; a torus: every
    device."""
    fabric = EVERY[name]
    network = collapse(fabric)
    assert network.devices == fabric.devices
    for level in network.levels:
        if isinstance(fabric, Torus):
            assert (level.kind, level.group_size, level.groups) == ("affinity", 0, fabric.devices)
        else:
            assert level.kind == "nested"
            assert level.groups == -(-fabric.devices // level.group_size)
    if not isinstance(fabric, Torus):
        assert network.levels[-1].groups == 1


@pytest.mark.parametrize("name", HIERARCHIES)
def test_bandwidth_is_the_uplink_group_shared_by_all_of_the_child(name):
    """What one device gets when its whole group sends; never more than alone."""
    for level in collapse(HIERARCHIES[name]).levels:
        assert level.bandwidth_Bps == pytest.approx(level.capacity_Bps / level.child_size)
        assert level.single_flow_Bps >= level.bandwidth_Bps


@pytest.mark.parametrize(
    ("name", "kinds", "groups", "sizes"),
    [
        # 8 nodes of 4; 2 units with a leaf per rail, of 4 devices each.
        ("rails", ["nested", "affinity", "nested"], (8, 8, 1), (4, 4, 32)),
        # 16 nodes; 4 units x 4 rails; every rail is a fabric of its own.
        ("rail-only", ["nested", "affinity", "affinity"], (16, 16, 4), (4, 4, 16)),
        # 9 devices present in nodes of 4; racks of 16, 8 and 12; one pod.
        ("a short rack", ["nested"] * 3, (9, 3, 1), (4, 16, 36)),
    ],
)
def test_groups_of_named_fabrics(name, kinds, groups, sizes):
    """By hand: what cuts across the nodes is an affinity level; a level names its largest."""
    levels = collapse(EVERY[name]).levels
    assert [level.kind for level in levels] == kinds
    assert tuple(level.groups for level in levels) == groups
    assert tuple(level.group_size for level in levels) == sizes


@pytest.mark.check
def test_collapsing_takes_no_link_graph():
    """The largest fabric collapses although nobody could draw it."""
    fabric = clos(1_048_576, radix=256, tiers=3, ratios=(1.0, 1.0))
    assert collapse(fabric).devices == 1_048_576
    with pytest.raises(InputError, match="builds link graphs of at most 16,384 devices"):
        fabric.explicit()


def test_latency_that_falls_outward_has_no_link_graph():
    """Levels may say it, but no cable can be shorter than the path inside it."""
    fabric = tree((4, 450, 2.0, "device", 1), (4, 50, 1.0, "child", 1))
    assert [level.latency_s for level in collapse(fabric).levels] == [2e-6, 1e-6]
    with pytest.raises(InputError, match=r"level\[1\].latency_us must not be smaller"):
        fabric.explicit()


def roles(graph: nx.Graph[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, role in graph.nodes(data="role"):
        found[role] = found.get(role, 0) + 1
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EVERY)
def test_every_node_of_the_link_graph_has_a_role_and_every_link_its_figures(name):
    """Pictures and simulators read the graph by these names."""
    fabric = EVERY[name]
    graph = fabric.explicit()
    assert nx.is_connected(graph)
    assert set(roles(graph)) <= {"device", "nic", "switch"}
    assert roles(graph)["device"] == fabric.devices
    assert all(graph.nodes[device]["role"] == "device" for device in range(fabric.devices))
    for _, _, link in graph.edges(data=True):
        assert link["bandwidth_Bps"] > 0
        assert link["latency_s"] >= 0
        assert isinstance(link["count"], int)
        assert link["count"] >= 1
