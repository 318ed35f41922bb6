"""Times of transfers and collectives: by hand, and against a counter of flows per cable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from fabric_specs import CLOS, EVERY, EXPLICIT, HIERARCHIES, clos, torus, tree
from routes import Counter

from nest_core.fabric import Fabric
from nest_core.network import (
    MessageTime,
    Protocol,
    collapse,
    collectives,
    message_time,
    price_phases,
    transfers,
)
from nest_core.network.traffic import (
    by_algorithm,
    hierarchical_reduce_scatter,
    multi_ring_reduce_scatter,
    ring_reduce_scatter,
    tree_all_reduce,
)

GB = 1e9
US = 1e-6

Way = Literal["ring", "hierarchical", "multi_ring"]


def scatter(
    fabric: Fabric, *groups: Sequence[int] | np.ndarray, way: Way = "hierarchical"
) -> MessageTime:
    """Reduce-scatters of all groups at once, by one algorithm."""
    network, members = collapse(fabric), np.array(groups)
    if way == "multi_ring":
        phases = multi_ring_reduce_scatter(network.torus, network.place, members)
    elif way == "ring":
        phases = ring_reduce_scatter(members)
    else:
        phases = hierarchical_reduce_scatter(network, members)
    return price_phases(network.link_map, phases, len(members))


def send(fabric: Fabric, *flows: tuple[int, int]) -> MessageTime:
    """Transfers that run at once."""
    source, target = np.array(flows).T
    return transfers(collapse(fabric), source, target)


def both(found: MessageTime) -> np.ndarray:
    """(alpha in us, beta in s/GB) of every member of the one regime, shape (members, 2)."""
    (alpha,), (beta,) = found.alpha_s, found.beta_s_per_byte
    return np.stack([alpha / US, beta * GB], axis=1)


def rows(*entries: tuple[float, float]) -> object:
    """What `both` should be, up to rounding."""
    return pytest.approx(np.array(entries), rel=1e-12)


def test_one_node():
    """Eight devices behind one switch: log2 8 = 3 steps, 7/8 of the buffer at 450 GB/s."""
    (alpha, beta), *_ = both(scatter(HIERARCHIES["one switch"], list(range(8))))
    assert alpha == pytest.approx(3 * 0.5)
    assert beta == pytest.approx(7 / 8 / 450)


def test_a_ring_takes_a_step_per_other_member():
    """Round the same switch: seven steps, the same 7/8 of the buffer at 450 GB/s."""
    found = scatter(HIERARCHIES["one switch"], list(range(8)), way="ring")
    assert both(found) == rows((7 * 0.5, 7 / 8 / 450))
    passed_round = message_time(collapse(HIERARCHIES["one switch"]), "ring", np.arange(8)[None])
    assert both(passed_round) == rows((7 * 0.5, 7 / 8 / 450))


@pytest.mark.parametrize("way", ["ring", "hierarchical"])
def test_a_pair_exchanges_half(way):
    """Two of the eight: one step, half of the buffer; the other six are silent."""
    found = scatter(HIERARCHIES["one switch"], [2, 5], way=way)
    assert both(found) == rows((0.5, 1 / 2 / 450))


def test_two_nodes_over_their_nics():
    """Inside: 3/4 at 450. Across: half of a quarter, everyone over a NIC of 50 of his own.

    One ring over all eight has one flow each way between the nodes: 7/8 over a NIC, 7 steps as
    slow as the slowest of them.
    """
    fabric = tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "device", 1))
    (alpha, beta), *_ = both(scatter(fabric, list(range(8))))
    assert alpha == pytest.approx(2 * 0.5 + 1 * 1.5)
    assert beta == pytest.approx(3 / 4 / 450 + 1 / 2 * 1 / 4 / 50)
    assert both(scatter(fabric, list(range(8)), way="ring")) == rows((7 * 1.5, 7 / 8 / 50))


def test_two_nodes_over_one_shared_uplink_each():
    """The same, but the four flows share one link of 50: four times as long across.

    The ring does not care, and has become the faster one for large messages.
    """
    fabric = tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "child", 1))
    (_, beta), *_ = both(scatter(fabric, list(range(8))))
    assert beta == pytest.approx(3 / 4 / 450 + 1 / 2 * 1 / 4 * 4 / 50)
    assert both(scatter(fabric, list(range(8)), way="ring")) == rows((7 * 1.5, 7 / 8 / 50))


def test_the_fastest_algorithm_is_taken_for_every_message_size():
    """NICs of 50: the ring has 7 slow steps, the hierarchy 1; and it moves less over the NICs.

    Behind one switch both move the same, so the hierarchy with its 3 steps for 7 is faster at
    any size. A row of a torus: both ways round at once is twice as fast.
    """
    eight = np.arange(8)[None]
    nics = tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "device", 1))
    found = collectives(collapse(nics), eight)
    assert found.seconds(0.0) == pytest.approx(2.5 * US)
    assert found.seconds(GB) == pytest.approx(2.5 * US + 3 / 4 / 450 + 1 / 8 / 50)
    found = collectives(collapse(HIERARCHIES["one switch"]), eight)
    assert found.seconds(GB) == pytest.approx(1.5 * US + 7 / 8 / 450)
    found = collectives(collapse(torus((8, 1), (True, True))), eight)
    assert found.seconds(GB) == pytest.approx(7 * US + 7 / 8 / 100)


def test_a_ring_wins_where_the_exchange_is_crowded():
    """Three of four devices of one node and one of the next, one uplink of 1 GB/s per node.

    Ring: one flow each way, 3/4 of the buffer. Hierarchy: three flows with half of it each.
    """
    fabric = tree((4, 450, 0.5, "device", 1), (2, 1, 1.5, "child", 1))
    found = collectives(collapse(fabric), np.array([[0, 1, 2, 4]]))
    assert found.seconds(GB) == pytest.approx(3 * 1.5 * US + 3 / 4)
    assert found.seconds(1.0) == pytest.approx(2.5 * US, rel=1e-2)


def test_a_tree_over_two_nodes_sends_half_of_what_rings_do():
    """Sixteen devices: half of an eighth of the buffer per port, where a ring sends 15/16 of it.

    Inside, chains take 7/8 of the buffer at 450 GB/s at the same time; three steps and one.
    """
    fabric = tree((8, 450, 0.5, "device", 1), (2, 10, 1.5, "device", 1))
    network, group = collapse(fabric), np.arange(16)[None]
    half = price_phases(network.link_map, tree_all_reduce(network, group), 1)
    assert both(half) == rows((3 * 0.5 + 1.5, 1 / 2 / 8 / 10))
    trees = (Protocol(tree=True),)
    by = by_algorithm(network, "all_reduce", group, trees)
    assert by["double_binary_tree"].seconds(GB) == half.seconds(GB)
    assert by["multi_rail"].seconds(GB) == pytest.approx(15 / 16 / 8 / 10, rel=1e-3)
    assert message_time(network, "all_reduce", group, trees).seconds(GB) == half.seconds(GB)
    assert "double_binary_tree" not in by_algorithm(network, "all_reduce", group)


def test_mixing_up_who_owns_an_uplink_costs_a_factor_of_five():
    """The paper's 900 / 100 / 400 GB/s, read as shared uplinks or as a port per device.

    Shared: 7/8/900 + 3/4 * 1/8 * 8/100 + 1/2 * 1/32 * 32/400 = 0.009722 s/GB.
    Own:    7/8/900 + 3/4 * 1/8 / 100   + 1/2 * 1/32 / 400    = 0.001949 s/GB: every level has
    ports of its own.
    """
    own = tree((8, 900, 0.1, "device", 1), (4, 100, 0.2, "device", 1), (2, 400, 0.3, "device", 1))
    (_, slow), *_ = both(scatter(HIERARCHIES["the paper's uplinks"], list(range(64))))
    (_, fast), *_ = both(scatter(own, list(range(64))))
    assert slow == pytest.approx(7 / 8 / 900 + 3 / 4 / 100 + 1 / 2 / 400)
    assert fast == pytest.approx(7 / 8 / 900 + 3 / 4 / 8 / 100 + 1 / 2 / 32 / 400)
    assert slow / fast == pytest.approx(4.989, abs=0.001)


def test_replicas_across_an_oversubscribed_spine():
    """Data-parallel pairs {g, g + 16}: 16 devices of a leaf send over 16/4 = 4 spine links.

    Each pair exchanges half of its buffer; a device's share is 4 * 50 / 16 GB/s. Two hops up
    and two down at 0.6 us. Alone, a pair has a NIC to itself.
    """
    fabric = CLOS["two tiers, 4:1"]
    together = scatter(fabric, *[[g, g + 16] for g in range(16)])
    assert both(together) == rows(*[(4 * 0.6, 1 / 2 * 16 / (4 * 50))] * 16)
    alone = scatter(fabric, [3, 19])
    assert both(alone) == rows((4 * 0.6, 1 / 2 / 50))


@pytest.mark.parametrize(
    ("owner", "uplinks"), [("device", 8 * 50), ("child", 50)], ids=["NICs", "one uplink"]
)
def test_strided_groups_share_what_leaves_their_node(owner, uplinks):
    """Groups {g, g+8, g+16, g+24}, g < 8: eight flows leave every node at once, 3/4 each."""
    fabric = tree((8, 450, 0.5, "device", 1), (4, 50, 1.5, owner, 1))
    groups = [[g + 8 * node for node in range(4)] for g in range(8)]
    assert both(scatter(fabric, *groups)) == rows(*[(2 * 1.5, 3 / 4 * 8 / uplinks)] * 8)
    ringed = scatter(fabric, *groups, way="ring")
    assert both(ringed) == rows(*[(3 * 1.5, 3 / 4 * 8 / uplinks)] * 8)


def test_three_and_one():
    """An uneven group prices its widest exchange and its least divided shard.

    Devices 0, 1, 2 and 4 of two nodes of four. Inside: fan-in 3 and 1, so ceil(log2 3) = 2
    steps and 2/3 of the buffer at 450. The lone member keeps the whole buffer, so half of it
    crosses, and the fuller node sends three flows over its shared link of 50.
    """
    fabric = tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "child", 1))
    (alpha, beta), *_ = both(scatter(fabric, [0, 1, 2, 4]))
    assert alpha == pytest.approx(2 * 0.5 + 1.5)
    assert beta == pytest.approx(2 / 3 / 450 + 1 / 2 * 1 * 3 / 50)


def test_a_level_that_joins_one_child_is_no_exchange():
    """Its latency is not paid, but flows of the level outside cross its links."""
    fabric = tree((2, 450, 0.5, "device", 1), (1, 10, 0.5, "child", 1), (2, 80, 2.0, "child", 1))
    (alpha, beta), *_ = both(scatter(fabric, [0, 1, 2, 3]))
    assert alpha == pytest.approx(0.5 + 2.0)
    assert beta == pytest.approx(1 / 2 / 450 + 1 / 2 * 1 / 2 * 2 / 10)


def test_groups_of_one_take_no_time():
    assert both(scatter(HIERARCHIES["one switch"], [0], [1])) == rows((0, 0), (0, 0))


def test_transfers_count_flows_at_both_ends():
    """A port of 450 per device, one uplink of 100 per node of four.

    0->4 and 1->5 share node 0's uplink and node 1's: 2/100. Three flows into node 2 from
    different nodes: 3/100. 8->9 stays inside, but 9 has one port and 4->9 comes in there too:
    2/450; 8->11 meets nobody: 1/450.
    """
    fabric = tree((4, 450, 0.5, "device", 1), (4, 100, 1.5, "child", 1))
    assert both(send(fabric, (0, 4), (1, 5))) == rows(*[(1.5, 2 / 100)] * 2)
    mixed = send(fabric, (0, 8), (4, 9), (12, 10), (8, 9))
    assert both(mixed) == rows(*[(1.5, 3 / 100)] * 3, (0.5, 2 / 450))
    apart = send(fabric, (0, 8), (4, 9), (12, 10), (8, 11))
    assert both(apart) == rows(*[(1.5, 3 / 100)] * 3, (0.5, 1 / 450))


def test_the_flows_of_one_device_share_its_nic():
    """A device owns its NIC of 50, also where others of its node leave theirs idle: 2/50."""
    fabric = tree((4, 450, 0.5, "device", 1), (4, 50, 1.5, "device", 1))
    assert both(send(fabric, (0, 4), (0, 8))) == rows(*[(1.5, 2 / 50)] * 2)
    assert both(send(fabric, (4, 0), (8, 0))) == rows(*[(1.5, 2 / 50)] * 2)
    assert both(send(fabric, (0, 4), (1, 8))) == rows(*[(1.5, 1 / 50)] * 2)


def test_nics_leave_a_clos_node_beside_its_switch():
    """450 GB/s inside and 50 outside at once, from the same device: neither waits."""
    found = send(CLOS["two tiers"], (0, 1), (0, 8))
    assert both(found) == rows((0.5, 1 / 450), (1.2, 1 / 50))


def test_a_transfer_to_oneself_takes_no_time():
    assert both(send(HIERARCHIES["one switch"], (3, 3))) == rows((0, 0))


def test_opposite_flows_do_not_slow_each_other():
    """Links are full duplex."""
    fabric = tree((4, 450, 0.5, "device", 1), (2, 100, 1.5, "child", 1))
    assert both(send(fabric, (0, 4), (4, 0))) == rows(*[(1.5, 1 / 100)] * 2)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_shift_along_a_torus_ring(step):
    """All of a ring send h hops the same way: every link carries h flows of 50 GB/s links."""
    ring = torus((8, 1), (True, True))
    found = send(ring, *[(device, (device + step) % 8) for device in range(8)])
    assert both(found) == rows(*[(step * 1.0, step / 50)] * 8)


def test_a_ring_around_a_torus_row():
    """A row of four: 3 steps of one hop, 3/4 of the buffer; half of it where it goes both ways."""
    square = torus((4, 4), (True, True))
    assert both(scatter(square, [4, 5, 6, 7], way="ring")) == rows((3.0, 3 / 4 / 50))
    assert both(scatter(square, [4, 5, 6, 7], way="multi_ring")) == rows((3.0, 3 / 4 / 2 / 50))


def test_strided_rings_share_the_links_between_them():
    """Every second device of a ring of eight: 3 steps of two hops. Alone it has the links to
    itself; with the other half at work, two flows share each."""
    ring = torus((8, 1), (True, True))
    alone = scatter(ring, [0, 2, 4, 6], way="ring")
    assert both(alone) == rows((3 * 2.0, 3 / 4 / 50))
    together = scatter(ring, [0, 2, 4, 6], [1, 3, 5, 7], way="ring")
    assert both(together) == rows(*[(3 * 2.0, 3 / 4 * 2 / 50)] * 2)


def test_an_open_torus_pays_the_way_back():
    """Without wrap the ring of a row of four closes over three hops.

    They lead the other way, over links that a ring one way leaves idle: only latency suffers.
    A second ring the other way round finds them busy, so it gains nothing.
    """
    row = torus((4, 1), (False, False))
    assert both(scatter(row, [0, 1, 2, 3], way="ring")) == rows((3 * 3.0, 3 / 4 / 50))
    assert both(scatter(row, [0, 1, 2, 3], way="multi_ring")) == rows((3 * 3.0, 3 / 4 / 50))


def test_a_team_takes_the_slowest_alpha_and_beta_apart():
    """A stage is priced by the slowest of its groups in each respect, algorithm by algorithm.

    0-1 inside a node at 450, 0.5 us; 4-8 across at 50, 1.5 us; both belong to team 1. Nobody
    costs nothing.
    """
    network = collapse(tree((4, 450, 0.5, "device", 1), (3, 50, 1.5, "device", 1)))
    groups = np.array([[0, 1], [4, 8]])
    team = collectives(network, groups, team=np.array([1, 1]))
    each = collectives(network, groups)
    for found, apart in (
        (team.alpha_s, each.alpha_s),
        (team.beta_s_per_byte, each.beta_s_per_byte),
    ):
        assert set(found[:, 0].tolist()) == {0.0}
        assert found[:, 1].tolist() == apart.max(axis=1).tolist()
    assert team.seconds(GB)[1] == pytest.approx(1.5 * US + 1 / 2 / 50)


MANY = [name for name in EXPLICIT if EXPLICIT[name].devices > 1]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", MANY)
def test_transfers_take_as_long_as_their_busiest_cable(name, seed):
    """Every flow is routed over the explicit graph and counted on every cable it crosses.

    A failure: some placement is priced with fewer, or more, flows on a cable than it sends.
    Anyone sends to anyone, or everyone to another. Where several devices share several NICs,
    only the latter: a flow is held to its part of the NICs, but not a device with several.
    """
    fabric = EXPLICIT[name]
    dice = np.random.default_rng(seed)
    devices = fabric.devices
    if seed % 2 or name in ("three NICs for four devices", "eight NICs for six devices"):
        flows = np.stack([np.arange(devices), dice.permutation(devices)], axis=1)
    else:
        flows = dice.integers(devices, size=(int(dice.integers(1, 2 * devices)), 2))
    found = transfers(collapse(fabric), flows[:, 0], flows[:, 1])
    expected = Counter(fabric).seconds_per_byte(flows)
    assert found.beta_s_per_byte[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", MANY)
def test_a_pair_exchanges_its_parts_like_two_transfers(name):
    """A reduce-scatter between two devices is half of the buffer each way, whoever they are."""
    fabric = EXPLICIT[name]
    dice = np.random.default_rng(1)
    for _ in range(20):
        a, b = sorted(dice.choice(fabric.devices, 2, replace=False).tolist())
        there, back = both(send(fabric, (a, b), (b, a)))
        latency, whole = np.maximum(there, back)
        for way in ("ring", "hierarchical"):
            assert both(scatter(fabric, [a, b], way=way)) == rows((latency, whole / 2))


@pytest.mark.parametrize("name", [name for name in EVERY if EVERY[name].devices >= 4])
def test_more_groups_at_once_are_never_faster(name):
    """Contention only adds: the price of a group alone is a lower bound, whatever the way.

    Any groups on trees, consecutive ones on tori, whose multi-rings use the dimensions that
    some group needs.
    """
    network = collapse(EVERY[name])
    size = max(2, network.devices // 4)
    order = np.random.default_rng(2).permutation(network.devices)
    if network.torus is not None:
        order = np.arange(network.devices)
    groups = np.sort(order[: 2 * size].reshape(2, size), axis=1)
    together = collectives(network, groups)
    for number in range(len(groups)):
        alone = collectives(network, groups[number : number + 1])
        for here, there in (
            (alone.alpha_s, together.alpha_s),
            (alone.beta_s_per_byte, together.beta_s_per_byte),
        ):
            assert (here[:, 0] <= there[:, number] * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", [name for name in EVERY if EVERY[name].devices > 1])
def test_a_collective_is_at_least_its_textbook_bound(name):
    """(n-1)/n of the buffer must leave every device through its own ports (nccl-tests)."""
    network = collapse(EVERY[name])
    n = network.devices
    found = collectives(network, np.arange(n)[None])
    bound = (n - 1) / n / network.link_map.all_ports_Bps
    assert (found.beta_s_per_byte >= bound * (1 - 1e-12)).all()


@pytest.mark.check
def test_a_million_devices_are_counted_in_vectors():
    """65,536 groups of 16 on the largest fabric, as a plan there asks for."""
    network = collapse(clos(1_048_576, radix=256, tiers=3, ratios=(2.0, 2.0)))
    groups = np.arange(1_048_576).reshape(-1, 16)
    assert np.isfinite(collectives(network, groups).beta_s_per_byte).all()
