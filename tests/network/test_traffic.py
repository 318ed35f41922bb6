"""Times of transfers and collectives: by hand, and against a counter of flows per cable."""

from __future__ import annotations

import numpy as np
import pytest
from fabric_specs import CLOS, HIERARCHIES, NESTED, clos, torus, tree
from routes import path, routing_graph, usable

from nest_core.network import Affine, collapse, collectives, transfers
from nest_core.topology import Fabric

GB = 1e9
US = 1e-6


def scatter(fabric: Fabric, *groups: list[int]) -> Affine:
    """Reduce-scatters of all groups at once."""
    return collectives(collapse(fabric), np.array(groups))


def send(fabric: Fabric, *flows: tuple[int, int]) -> Affine:
    """Transfers that run at once."""
    source, target = np.array(flows).T
    return transfers(collapse(fabric), source, target)


def both(found: Affine) -> np.ndarray:
    """(alpha in us, beta in s/GB) of every member, shape (members, 2)."""
    return np.stack([found.alpha_s / US, found.beta_s_per_byte * GB], axis=1)


def rows(*entries: tuple[float, float]) -> object:
    """What `both` should be, up to rounding."""
    return pytest.approx(np.array(entries), rel=1e-12)


def test_one_node():
    """Eight devices behind one switch: log2 8 = 3 steps, 7/8 of the buffer at 450 GB/s."""
    (alpha, beta), *_ = both(scatter(HIERARCHIES["one switch"], list(range(8))))
    assert alpha == pytest.approx(3 * 0.5)
    assert beta == pytest.approx(7 / 8 / 450)


def test_a_pair_exchanges_half():
    """Two of the eight: one step, half of the buffer; the other six are silent."""
    (alpha, beta), *_ = both(scatter(HIERARCHIES["one switch"], [2, 5]))
    assert (alpha, beta) == pytest.approx((0.5, 1 / 2 / 450))


def test_two_nodes_over_their_nics():
    """Inside: 3/4 at 450. Across: half of a quarter, four flows over four NICs of 50."""
    fabric = tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "device", 1))
    (alpha, beta), *_ = both(scatter(fabric, list(range(8))))
    assert alpha == pytest.approx(2 * 0.5 + 1 * 1.5)
    assert beta == pytest.approx(3 / 4 / 450 + 1 / 2 * 1 / 4 * 4 / (4 * 50))


def test_two_nodes_over_one_shared_uplink_each():
    """The same, but the four flows share one link of 50: four times as long across."""
    fabric = tree((4, 450, 0.5, "device", 1), (2, 50, 1.5, "child", 1))
    (_, beta), *_ = both(scatter(fabric, list(range(8))))
    assert beta == pytest.approx(3 / 4 / 450 + 1 / 2 * 1 / 4 * 4 / 50)


def test_mixing_up_who_owns_an_uplink_costs_a_factor_of_nearly_five():
    """The paper's 900 / 100 / 400 GB/s, read as shared uplinks or as a port per device.

    Shared: 7/8/900 + 3/4 * 1/8 * 8/100 + 1/2 * 1/32 * 32/400 = 0.009722 s/GB.
    Own:    7/8/900 + 3/4 * 1/8 / 100   + 1/2 * 1/32 / 100    = 0.002066 s/GB: what crosses the
    outermost level also leaves its node, so the port of 100 is the narrower one.
    """
    own = tree((8, 900, 0.1, "device", 1), (4, 100, 0.2, "device", 1), (2, 400, 0.3, "device", 1))
    (_, slow), *_ = both(scatter(HIERARCHIES["the paper's uplinks"], list(range(64))))
    (_, fast), *_ = both(scatter(own, list(range(64))))
    assert slow == pytest.approx(7 / 8 / 900 + 3 / 4 / 100 + 1 / 2 / 400)
    assert fast == pytest.approx(7 / 8 / 900 + 3 / 4 / 8 / 100 + 1 / 2 / 32 / 100)
    assert slow / fast == pytest.approx(4.706, abs=0.001)


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
    found = scatter(fabric, *[[g + 8 * node for node in range(4)] for g in range(8)])
    assert both(found) == rows(*[(2 * 1.5, 3 / 4 * 8 / uplinks)] * 8)


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
    """One NIC of 50 per device, one uplink of 100 per node of four.

    0->4 and 1->5 share node 0's uplink and node 1's: 2/100, as a lone NIC would be: 1/50.
    Three flows into node 2 from different nodes: 3/100. 8->9 stays inside: 1/450.
    """
    fabric = tree((4, 450, 0.5, "device", 1), (4, 100, 1.5, "child", 1))
    assert both(send(fabric, (0, 4), (1, 5))) == rows(*[(1.5, 2 / 100)] * 2)
    mixed = send(fabric, (0, 8), (4, 9), (12, 10), (8, 9))
    assert both(mixed) == rows(*[(1.5, 3 / 100)] * 3, (0.5, 2 / 450))


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


def test_a_ring_around_a_torus_row_and_one_with_strides():
    """A row of four: 3 steps of one hop, 3/4 of the buffer. Every second device of a ring of
    eight: 3 steps of two hops, whose links two flows share."""
    square = torus((4, 4), (True, True))
    assert both(scatter(square, [4, 5, 6, 7])) == rows((3.0, 3 / 4 / 50))
    ring = torus((8, 1), (True, True))
    assert both(scatter(ring, [0, 2, 4, 6])) == rows((3 * 2.0, 3 / 4 * 2 / 50))


def test_an_open_torus_pays_the_way_back():
    """Without wrap the ring of a row of four closes over three hops."""
    row = torus((4, 1), (False, False))
    assert both(scatter(row, [0, 1, 2, 3])) == rows((3 * 3.0, 3 / 4 * 3 / 50))


def test_slowest_takes_alpha_and_beta_apart():
    """A stage is priced by the slowest of its groups in each respect; nobody costs nothing."""
    found = Affine(np.array([1.0, 3.0, 2.0]), np.array([9.0, 4.0, 5.0]))
    slowest = found.slowest(np.array([0, 0, 2]), 4)
    assert slowest.alpha_s.tolist() == [3.0, 0.0, 2.0, 0.0]
    assert slowest.beta_s_per_byte.tolist() == [9.0, 0.0, 5.0, 0.0]


def one_flow_per_port(fabric: Fabric) -> bool:
    """Whether flows cross the cables that the levels count: no NIC shared or doubled."""
    return fabric in HIERARCHIES.values() or fabric.devices_per_node == fabric.nics_per_node


COUNTED = [name for name in NESTED if one_flow_per_port(NESTED[name]) and NESTED[name].devices > 1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", COUNTED)
def test_transfers_take_as_long_as_their_busiest_cable(name, seed):
    """Every flow is routed over the explicit graph and counted on every cable it crosses.

    A failure: some placement is priced with fewer, or more, flows on a cable than it sends.
    Anyone sends to anyone in a tree; on a Clos every device sends and receives once, because
    there a device has one port per level.
    """
    fabric = NESTED[name]
    dice = np.random.default_rng(seed)
    devices = fabric.devices
    if name in HIERARCHIES:
        flows = dice.integers(devices, size=(int(dice.integers(1, 2 * devices)), 2))
    else:
        some = int(dice.integers(1, devices + 1))
        flows = np.stack([dice.permutation(devices)[:some], dice.permutation(devices)[:some]], 1)
    flows = flows[flows[:, 0] != flows[:, 1]]
    if not len(flows):
        return
    routes = routing_graph(fabric)
    ways = [path(routes, int(a), int(b)) for a, b in flows]
    crossing: dict[object, int] = {}
    for way in ways:
        for link in way:
            crossing[link] = crossing.get(link, 0) + 1
    expected = [
        max(
            max(crossing[link] / routes.edges[link]["capacity"], 1 / usable(routes.edges[link]))
            for link in way
        )
        for way in ways
    ]
    found = transfers(collapse(fabric), flows[:, 0], flows[:, 1])
    assert found.beta_s_per_byte == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", COUNTED)
def test_a_pair_exchanges_its_halves_like_two_transfers(name):
    """A reduce-scatter between two devices is half of the buffer each way, whoever they are."""
    fabric = NESTED[name]
    dice = np.random.default_rng(1)
    for _ in range(20):
        a, b = sorted(dice.choice(fabric.devices, 2, replace=False).tolist())
        (alpha, beta), *_ = both(scatter(fabric, [a, b]))
        (latency, whole), *_ = both(send(fabric, (a, b), (b, a)))
        assert (alpha, beta) == pytest.approx((latency, whole / 2))


@pytest.mark.parametrize("name", NESTED)
def test_more_groups_at_once_are_never_faster(name):
    """Contention only adds: the price of a group alone is a lower bound."""
    fabric = NESTED[name]
    if fabric.devices < 4:
        return
    dice = np.random.default_rng(2)
    size = max(2, fabric.devices // 4)
    order = dice.permutation(fabric.devices)[: 4 * size].reshape(4, size)
    groups = np.sort(order, axis=1).tolist()
    together = scatter(fabric, *groups)
    for number, group in enumerate(groups):
        alone = scatter(fabric, group)
        assert alone.beta_s_per_byte[0] <= together.beta_s_per_byte[number] * (1 + 1e-12)
        assert alone.alpha_s[0] == together.alpha_s[number]


@pytest.mark.parametrize("name", NESTED)
def test_a_collective_is_at_least_its_textbook_bound(name):
    """(n-1)/n of the buffer must leave every device through its own port (nccl-tests)."""
    fabric = NESTED[name]
    network = collapse(fabric)
    if fabric.devices == 1:
        return
    group = list(range(fabric.devices))
    found = scatter(fabric, group)
    port = network.levels[0].single_flow_Bps
    n = fabric.devices
    assert found.beta_s_per_byte[0] >= (n - 1) / n / port * (1 - 1e-12)


def test_a_million_devices_are_counted_in_vectors():
    """65,536 groups of 16 on the largest fabric, as a plan there asks for."""
    network = collapse(clos(1_048_576, radix=256, tiers=3, ratios=(2.0, 2.0)))
    groups = np.arange(1_048_576).reshape(-1, 16)
    assert np.isfinite(collectives(network, groups).beta_s_per_byte).all()
