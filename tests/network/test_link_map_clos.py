"""Clos fabrics, link by link: rails, planes, what failed, meshed nodes, and routing."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from fabric_specs import RAILS, clos, rails
from routes import Counter

from nest_core.network import Network, Phase, collapse, price_phases, transfers
from nest_core.network.groups import exchange
from nest_core.network.traffic import hierarchical_reduce_scatter, ring_reduce_scatter

GB = 1e9
US = 1e-6


def beta(network: Network, source: object, target: object) -> np.ndarray:
    """s/GB of transfers at once."""
    return transfers(network, np.array(source), np.array(target)).beta_s_per_byte[0] * GB


def alpha(network: Network, source: int, target: int) -> float:
    """Microseconds of one transfer."""
    return transfers(network, np.array([source]), np.array([target])).alpha_s.item() / US


def ring_beta(network: Network, groups: np.ndarray) -> np.ndarray:
    """s/GB of reduce-scatters round one ring each, all at once."""
    found = price_phases(network.link_map, ring_reduce_scatter(groups), len(groups))
    return found.beta_s_per_byte[0] * GB


# Rails: device d of node n is 4 n + d, on rail d; units of four nodes, NICs of 50.


@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("kind", ["rail_optimised", "rail_only"])
def test_groups_with_a_stride_of_whole_nodes_are_free_of_oversubscription(kind, ratio):
    """{d, d + 4, d + 8, d + 12}: one rail of one unit, all below one leaf, 3/4 over a NIC each.

    All eight such groups at once, whatever the ratio above the leaves.
    """
    network = collapse(rails(kind=kind, ratios=(ratio,)))
    groups = np.arange(32).reshape(2, 4, 4).transpose(0, 2, 1).reshape(8, 4)
    assert groups[5].tolist() == [17, 21, 25, 29]
    assert (network.level(groups[:, :1], groups[:, 1:]) == 1).all()
    assert ring_beta(network, groups) == pytest.approx(np.full(8, 3 / 4 / 50))


@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0])
def test_flows_between_rails_pay_all_of_the_oversubscription(ratio):
    """Everyone sends to the next rail of the next node of his unit: four flows leave each leaf
    over 4 / ratio uplinks of 50, although source and target are in one unit.

    With the same ports wired node by node, they would not leave their leaf.
    """
    device = np.arange(32)
    target = device // 16 * 16 + (device + 4) % 16 // 4 * 4 + (device + 1) % 4
    network = collapse(rails(ratios=(ratio,)))
    assert (network.level(device, target) == 2).all()
    assert beta(network, device, target) == pytest.approx(np.full(32, ratio / 50))
    plain = collapse(clos(32, per_node=4, nics=4, ratios=(ratio,)))
    assert beta(plain, device, target) == pytest.approx(np.full(32, 1 / 50))


@pytest.mark.parametrize("name", RAILS)
def test_rails_meet_below_the_spine_where_they_should(name):
    """In the node, or on one leaf: nodes of one unit and, above the node, one rail.

    On rail-only fabrics all rails of a unit do, by way of a neighbour in the node.
    """
    fabric = RAILS[name]
    network = collapse(fabric)
    node, rail = fabric.node_of(), fabric.rail_of()
    unit = node // fabric.sizing.nodes_per_unit
    same_node = node[:, None] == node[None]
    same_leaf = unit[:, None] == unit[None]
    if fabric.kind == "rail_optimised":
        same_leaf &= rail[:, None] == rail[None]
    device = np.arange(network.devices)
    met = network.level(device[:, None], device[None])
    assert ((met <= 0) == same_node).all()
    assert ((met <= 1) == (same_node | same_leaf)).all()


def test_rail_only_forwards_between_rails_inside_the_source_node():
    """0 -> 5 goes to 1 over the node's switch and on over 1's NIC and the leaf of rail 1.

    0.5 us and then two hops of 0.6; alone 1/50. When 1 sends to 5 or to 9 too, the two share
    1's NIC; what 0 sends on its own rail at the same time does not.
    """
    network = collapse(rails(64, kind="rail_only"))
    assert alpha(network, 0, 5) == pytest.approx(0.5 + 1.2)
    assert alpha(network, 1, 5) == pytest.approx(1.2)
    assert alpha(network, 0, 17) == pytest.approx(0.5 + 2.4)
    assert beta(network, [0], [5]) == pytest.approx([1 / 50])
    assert beta(network, [0, 1], [5, 9]) == pytest.approx([2 / 50] * 2)
    assert beta(network, [0, 0], [5, 8]) == pytest.approx([1 / 50] * 2)


def test_forwarding_crosses_the_switch_of_the_source_node():
    """Behind NICs of 50, a switch of 40 is the narrower one: 1/40 across rails, 1/50 along.

    2 -> 1 comes in over the same port of device 1 as what it forwards for 0: 2/40.
    """
    network = collapse(rails(64, kind="rail_only", intra_bandwidth_Bps=40e9))
    assert beta(network, [0], [5]) == pytest.approx([1 / 40])
    assert beta(network, [0], [4]) == pytest.approx([1 / 50])
    assert beta(network, [0, 2], [5, 1]) == pytest.approx([2 / 40] * 2)


def test_a_relay_that_is_missing_is_replaced_inside_the_same_two_nodes():
    """Node 0 has no device on rail 1. What it sends there goes out on its own rail and changes
    over in the target's node; it must not pass through a third one.

    Devices 0, 1, 2 are slots 0, 2, 3 of node 0; 3 and 4 are slots 0 and 1 of node 1.
    """
    network = collapse(rails(64, kind="rail_only", missing=("device 1",)))
    assert alpha(network, 0, 4) == pytest.approx(0.5 + 1.2)
    assert alpha(network, 4, 0) == pytest.approx(0.5 + 1.2)
    everyone_else = np.arange(7, 59)
    source, target = np.append(everyone_else, 0), np.append(everyone_else + 4, 4)
    assert beta(network, source, target) == pytest.approx(np.full(53, 1 / 50))


def test_a_relay_whose_leaf_is_lost_forwards_nothing():
    """Units have four nodes and four leaves: rail 0 of unit 0 is leaf 0, rail 3 of unit 1 leaf 7.

    3 -> 16 wants rail 0, which its node has lost, so it goes along rail 3 to 19 and changes over
    there; where unit 1 has lost rail 3 too, both nodes change over, and 3 -> 1 -> 17 -> 16 it is.
    """
    whole = collapse(rails(64, kind="rail_only"))
    straight = alpha(whole, 1, 17)
    one = collapse(rails(64, kind="rail_only", missing=("leaf 0",)))
    assert beta(one, [3], [16]) == pytest.approx([1 / 50])
    assert alpha(one, 3, 16) == pytest.approx(straight + 0.5)
    two = collapse(rails(64, kind="rail_only", missing=("leaf 0", "leaf 7")))
    assert beta(two, [3], [16]) == pytest.approx([1 / 50])
    assert alpha(two, 3, 16) == pytest.approx(straight + 2 * 0.5)
    assert beta(two, [3, 1], [16, 17]) == pytest.approx([2 / 50] * 2)


@pytest.mark.parametrize("planes", [2, 4])
@pytest.mark.parametrize("kind", ["leaf_spine", "rail_optimised"])
def test_planes_divide_the_links_and_not_the_bandwidth(kind, planes):
    """Identical copies of the switches, each with a part of every NIC: the same times."""
    one, several = (rails(kind=kind, ratios=(2.0,), planes=count) for count in (1, planes))
    assert several.link_bandwidth_Bps == one.link_bandwidth_Bps / planes
    dice = np.random.default_rng(0)
    source, target = np.arange(32), dice.permutation(32)
    expected = beta(collapse(one), source, target)
    assert beta(collapse(several), source, target) == pytest.approx(expected)


def test_a_failed_leaf_of_two_planes_halves_its_nodes():
    """Leaf 0 is the first unit's in the first plane: its 16 devices have one plane left.

    They get 25 to anywhere, and anyone to them; others keep 50, and insides of nodes 450.
    """
    network = collapse(clos(64, planes=2, missing=("leaf 0",)))
    assert beta(network, [0], [16]) == pytest.approx([1 / 25])
    assert beta(network, [16], [15]) == pytest.approx([1 / 25])
    assert beta(network, [0], [8]) == pytest.approx([1 / 25])
    assert beta(network, [16], [32]) == pytest.approx([1 / 50])
    assert beta(network, [0], [1]) == pytest.approx([1 / 450])


def test_a_missing_leaf_of_rails_leaves_its_devices_a_way():
    """The topology allows it, because neighbours in the node can forward over their rails.

    0 -> 4 goes by way of 1, 2 or 3 and one of their leaves: 1/50, not never.
    """
    network = collapse(rails(missing=("leaf 0",)))
    assert beta(network, [0], [4]) == pytest.approx([1 / 50])


def test_a_missing_spine_takes_its_part_of_every_uplink():
    """16 devices per leaf over four spines, or three: 16 or 12 uplinks of 50 for 16 flows."""
    source = np.arange(128)
    for missing, uplinks in (((), 16), (("spine 0",), 12)):
        fabric = clos(128, radix=32, missing=missing)
        assert fabric.uplinks(1).tolist() == [uplinks] * 8
        found = beta(collapse(fabric), source, (source + 16) % 128)
        assert found == pytest.approx(np.full(128, 16 / (uplinks * 50)))


# Nodes without a switch.


@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_direct_exchange_uses_all_links_of_a_mesh(size):
    """Each of 7 links has 450 / 7. Size 8: an eighth to everyone at once, 7/8 over 450 in one
    step; a ring has one link and seven steps. Groups of fewer use links to their own."""
    network = collapse(clos(16, interconnect="mesh"))
    groups = np.arange(16).reshape(-1, size)
    direct = price_phases(
        network.link_map, hierarchical_reduce_scatter(network, groups), len(groups)
    )
    link = 450 / 7
    assert direct.beta_s_per_byte[0] * GB == pytest.approx(np.full(len(groups), 1 / size / link))
    assert direct.alpha_s[0] / US == pytest.approx(np.full(len(groups), 0.5))
    assert ring_beta(network, groups) == pytest.approx((size - 1) / size / link)
    assert beta(network, [0, 0], [1, 2]) == pytest.approx([1 / link] * 2)


def test_across_meshed_nodes_the_hierarchy_goes_on_as_ever():
    """Two nodes of eight: 1/8 per link of 450 / 7, then half of an eighth over a NIC."""
    network = collapse(clos(16, interconnect="mesh"))
    half = price_phases(
        network.link_map, hierarchical_reduce_scatter(network, np.arange(16)[None]), 1
    )
    assert half.beta_s_per_byte.item() * GB == pytest.approx(1 / 8 / (450 / 7) + 1 / 16 / 50)
    assert half.alpha_s.item() / US == pytest.approx(0.5 + 1.2)


def test_flows_of_a_hybrid_cube_mesh():
    """Six links of 75 per device: 0-1 one, 0-3 two; 0 and 5 meet over 1 or 4, half each way, by
    one link on each; 0 and 6 over 2 or 4, likewise; two hops take twice as long.

    0 -> 5 and 0 -> 1: link 0-1 carries half of one and all of the other.
    """
    network = collapse(clos(32, nics=4, radix=16, interconnect="hybrid_cube_mesh"))
    assert beta(network, [0], [1]) == pytest.approx([1 / 75])
    assert beta(network, [0], [3]) == pytest.approx([1 / 150])
    assert beta(network, [0], [5]) == pytest.approx([1 / 2 / 75])
    assert beta(network, [0, 0], [5, 1]) == pytest.approx([1.5 / 75] * 2)
    assert alpha(network, 0, 3) == pytest.approx(0.5)
    assert alpha(network, 0, 5) == pytest.approx(1.0)


@pytest.mark.parametrize("interconnect", ["mesh", "ring", "hybrid_cube_mesh"])
def test_an_exchange_inside_a_node_is_counted_link_by_link(interconnect):
    """Everyone to everyone at once: the busiest link of the explicit graph."""
    fabric = clos(16, interconnect=interconnect)
    network = collapse(fabric)
    phase = exchange(np.arange(8)[None], volume=1 / 8, steps=1)
    found = price_phases(network.link_map, [phase], 1).beta_s_per_byte.item()
    flows = list(permutations(range(8), 2))
    assert found == pytest.approx(max(Counter(fabric).seconds_per_byte(flows)) / 8)
    assert network.meshed_nodes


# Routing.


def shifted(devices: int, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Everyone sends to the device so many places on."""
    return np.arange(devices), (np.arange(devices) + shift) % devices


@pytest.mark.parametrize(
    ("kind", "shift"),
    [("leaf_spine", shift) for shift in (1, 8, 16, 24, 64, 77, 128)]
    + [("rail_optimised", shift) for shift in (16, 64, 128)],
)
def test_shifts_are_free_of_contention_by_target_and_not_by_hash(kind, shift):
    """D-mod-k (Zahavi, "D-Mod-K routing", 2010) on full bisection: every link has one flow.

    16 devices per leaf, 16 uplinks. Leaf-spine: any shift. On rails a leaf's devices are eight
    apart, and shifts along a rail must be as free. Adaptive routing is ideal. A hash throws 16
    balls into 16 bins: somewhere two or more meet.
    """
    worst = {}
    for routing in ("adaptive", "shortest_path", "ecmp"):
        network = collapse(clos(256, radix=32, kind=kind, routing=routing))
        source, target = shifted(256, shift)
        leaves = network.level(source, target) == 2
        assert leaves.any()
        worst[routing] = beta(network, source, target)[leaves].max() * 50
    assert worst["adaptive"] == pytest.approx(1)
    assert worst["shortest_path"] == pytest.approx(1)
    if np.count_nonzero(leaves) == 256:
        assert 1.5 < worst["ecmp"] < 6


def test_all_to_one_leaf_takes_as_many_links_as_it_has_targets():
    """By target, flows to one device share one link, whoever sends: two leaves of 16 NICs send
    to device 0 and 1 of a third; each spine passes on what its one link down takes."""
    network = collapse(clos(128, radix=32, routing="shortest_path"))
    sources = [16, 17, 32, 33]
    found = beta(network, sources, [0, 0, 0, 1])
    assert found == pytest.approx([3 / 50] * 3 + [1 / 50])


def test_one_flow_has_a_link_or_all_of_them():
    """Two NICs of 50 per device: adaptive routing spreads a flow over the leaf's uplinks, static
    routing keeps it on one of 50."""
    found = {
        routing: beta(collapse(clos(64, nics=16, radix=64, routing=routing)), [0], [63]).item()
        for routing in ("adaptive", "shortest_path", "ecmp")
    }
    assert found == pytest.approx({"adaptive": 1 / 100, "shortest_path": 1 / 50, "ecmp": 1 / 50})
    fast = clos(64, nics=16, radix=64, routing="ecmp", spine_link_Bps=100e9)
    assert beta(collapse(fast), [0], [63]).item() == pytest.approx(1 / 100)


@pytest.mark.parametrize("routing", ["shortest_path", "ecmp"])
def test_a_flow_has_one_link_also_where_others_failed(routing):
    """Leaf 0 of the first plane is gone: half of the unit's uplinks, none of them slower."""
    fabric = clos(128, radix=32, planes=2, routing=routing, missing=("leaf 0",))
    assert fabric.uplinks(1)[:2].tolist() == [16, 32]
    alone = transfers(collapse(fabric), np.array([0]), np.array([127]))
    assert alone.beta_s_per_byte.item() == pytest.approx(1 / fabric.link_bandwidth_Bps)


@pytest.mark.parametrize("ratio", [1.0, 4.0])
@pytest.mark.parametrize("routing", ["shortest_path", "ecmp"])
def test_static_routing_is_never_faster_than_adaptive(routing, ratio):
    """To the last flow of any traffic; and never slower than if all flows met on one link."""
    dice = np.random.default_rng(3)
    count = 400
    phase = Phase(
        dice.integers(64, size=count),
        dice.integers(64, size=count),
        np.arange(count),
        dice.uniform(0.1, 1, count),
        np.ones(count),
    )
    ideal, static = (
        price_phases(collapse(clos(64, ratios=(ratio,), routing=kind)).link_map, [phase], count)
        for kind in ("adaptive", routing)
    )
    slowest = static.beta_s_per_byte.max()
    assert ideal.beta_s_per_byte.max() * 1.01 < slowest <= phase.volume.sum() / 50e9
    assert static.alpha_s == pytest.approx(ideal.alpha_s, rel=1e-12)


def test_hashes_are_repeatable_and_depend_on_the_seed():
    """The same fabric gives the same times; another seed others."""
    first, again, other = (
        beta(collapse(clos(128, radix=32, routing="ecmp", ecmp_seed=seed)), *shifted(128, 16))
        for seed in (1, 1, 1001)
    )
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("ends", ["up", "down"])
def test_the_two_directions_of_a_cable_are_apart(ends):
    """16 flows leave a leaf at 4:1 while 16 others arrive: each as if alone."""
    network = collapse(clos(64, ratios=(4.0,)))
    there, back = np.arange(16), np.arange(16, 32)
    source = np.concatenate([there, back]) if ends == "up" else np.concatenate([back, there])
    target = np.concatenate([back, there]) if ends == "up" else np.concatenate([there, back])
    expected = beta(network, there, back)
    assert expected == pytest.approx(np.full(16, 16 / 200))
    assert beta(network, source, target)[:16] == pytest.approx(expected)
