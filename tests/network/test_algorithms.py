"""Collective algorithms: their defining properties on every kind of fabric, and by hand."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from fabric_specs import CLOS, EVERY, HIERARCHIES, TORI, clos, torus, tree
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.network import IDEAL, Network, collapse, message_time, price_phases
from nest_core.network.algorithms import (
    ALGORITHMS,
    IN_NETWORK,
    MOST_FLOWS,
    algorithm_stages,
)
from nest_core.network.algorithms.schedules import columns, double_tree, halving, tree_edges
from nest_core.network.collective import (
    KINDS,
    CollectiveAnswer,
    bus_factor,
    collective,
    member_groups,
)
from nest_core.network.groups import exchange
from nest_core.network.traffic import multi_rail_reduce_scatter
from nest_core.scenario import load_fabric
from nest_studio.cli import run


def algorithm_phases(op, algorithm, network, groups):
    """Phases of all stages, which follow one another."""
    return [phase for stage in algorithm_stages(op, algorithm, network, groups) for phase in stage]


NETWORKS = {name: collapse(spec) for name, spec in EVERY.items() if spec.devices > 1}
EACH = [(op, name) for op, known in ALGORITHMS.items() for name in known]
REDUCE_SCATTERS = list(ALGORITHMS["reduce_scatter"])

one_switch = collapse(HIERARCHIES["one switch"])


def times(
    network: Network, op: str, size: int, bytes_: float = 1e9, **how: Any
) -> dict[str, float]:
    """Every algorithm that suits, with its time."""
    free = {"algorithm": "fastest", "in_network": True}
    answer = collective(network, op, bytes_, size, **free, **how)
    return {
        entry.algorithm: entry.time_s for entry in answer.candidates if entry.time_s is not None
    }


def one(network: Network, op: str, algorithm: str, bytes_: float, size: int, **how: Any) -> float:
    return collective(network, op, bytes_, size, algorithm=algorithm, **how).time_s


# Bounds.


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NETWORKS)
def test_no_algorithm_beats_the_ports(name: str):
    """What a member must send or receive takes at least its time on all of its ports."""
    network = NETWORKS[name]
    size = network.devices
    port = float(network.link_map.link_Bps.max())
    if network.torus is not None:
        port = network.link_map.port_Bps
    ports = max(network.link_map.all_ports_Bps, port)
    if CLOS.get(name):  # NICs leave the node beside its switch
        ports = max(ports, 2 * port)
    for op in ("all_reduce", "all_gather", "reduce_scatter", "broadcast"):
        for algorithm, seconds in times(network, op, size).items():
            factor = bus_factor(op, size)
            least = 1.0 if algorithm in IN_NETWORK else factor
            assert min(least, factor) * 1e9 <= seconds * ports * (1 + 1e-9), (op, algorithm)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("op", ["all_reduce", "all_to_all", "broadcast"])
def test_the_fastest_is_no_slower_than_any(name: str, op: str):
    network = NETWORKS[name]
    for size_bytes in (1e4, 1e9):
        found = times(network, op, network.devices, size_bytes)
        best = collective(
            network, op, size_bytes, network.devices, algorithm="fastest", in_network=True
        )
        assert best.time_s == min(found.values())
        assert best.time_s == one(network, op, best.algorithm, size_bytes, network.devices)


# Relations between operations.


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("algorithm", REDUCE_SCATTERS)
def test_an_all_reduce_is_a_scatter_and_a_gather(name: str, algorithm: str):
    network = NETWORKS[name]
    groups = member_groups(network.devices, network.devices)
    try:
        half = algorithm_phases("reduce_scatter", algorithm, network, groups)
    except InputError:
        assert algorithm in ("multi_ring", "multi_rail")
        return
    back = algorithm_phases("all_gather", algorithm, network, groups)
    both = algorithm_phases("all_reduce", algorithm, network, groups)
    sizes = np.array([1e3, 1e9])

    def seconds(phases: list[Any]) -> np.ndarray:
        return price_phases(network.link_map, phases, 1).seconds(sizes)

    assert seconds(both) == pytest.approx(seconds(half) + seconds(back))
    if network.torus is None:  # dimension-order routes there and back differ
        assert seconds(half) == pytest.approx(seconds(back))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("op", "algorithm"), EACH)
@pytest.mark.parametrize("size", [2, 3, 5, 6, 8])
def test_messages_reach_everybody(op: str, algorithm: str, size: int):
    """Bytes arrive at every member that lacks something, and nobody sends to itself."""
    try:
        phases = algorithm_phases(op, algorithm, one_switch, member_groups(8, size))
    except InputError:
        assert algorithm == "multi_ring"
        return
    received, sent = np.zeros(8), np.zeros(8)
    for phase in phases:
        assert (phase.source != phase.target).all()
        np.add.at(received, phase.target, phase.volume)
        np.add.at(sent, phase.source, phase.volume)
    assert not (received + sent)[size:].any()
    others = (size - 1) / size
    if op in ("broadcast", "point_to_point"):
        assert (received[1:size] >= 1).all()
    elif op == "reduce_scatter":
        assert (sent[:size] >= others - 1e-12).all()
    else:
        least = {"all_gather": others, "all_to_all": others}.get(op, 1.0)
        assert (received[:size] >= least - 1e-12).all()


# Schedules.


@pytest.mark.parametrize("n", range(2, 40))
def test_trees_are_trees(n: int):
    child, parent = tree_edges(n)
    assert sorted(child) == list(range(1, n))
    up = dict(zip(child.tolist(), parent.tolist(), strict=True))
    depths = []
    for member in range(n):
        depth = 0
        while member:
            member, depth = up[member], depth + 1
        depths.append(depth)
    assert max(depths) <= np.ceil(np.log2(n))
    assert np.bincount(parent).max() <= 2


@pytest.mark.parametrize("n", [4, 6, 8, 16, 64])
def test_two_trees_load_members_evenly(n: int):
    (step,) = double_tree(n)
    sent = np.bincount(step.source, step.volume, minlength=n)
    assert sent.max() <= 2.0
    assert sent.sum() == pytest.approx(2 * (n - 1))


@pytest.mark.parametrize("schedule", [halving, partial(halving, far=True)])
@pytest.mark.parametrize("n", range(2, 20))
def test_halving_mixes_everything(schedule: Any, n: int):
    """Following the messages, every member's input reaches every member's part."""
    knows = np.eye(n, dtype=bool)
    for step in schedule(n):
        before = knows.copy()
        for source, target in zip(step.source, step.target, strict=True):
            knows[target] |= before[source]
    assert knows.all()


def test_halving_for_odd_numbers_costs_a_hand_over():
    """Five on one switch: 1 + 3/5 + 2/5 + 1/5 of the buffer in four steps."""
    fabric = collapse(tree((5, 100, 1, "device", 1)))
    assert one(fabric, "reduce_scatter", "halving_doubling", 100e9, 5) == pytest.approx(
        1 + 0.6 + 0.4 + 0.2 + 4e-6
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_columns_hold_the_whole_buffer(name: str):
    """At every level the shards that one block's members stand for add up to the buffer."""
    network = NETWORKS[name]
    groups = member_groups(network.devices, network.devices)
    for level in columns(groups, network.nesting):
        for entry in level:
            assert (entry.weight <= 1).all()
            assert len(set(entry.members.reshape(-1).tolist())) <= network.devices
            blocks = {tuple(row) for row in np.sort(entry.members, axis=1).tolist()}
            assert len(blocks) == len(entry.members)
            assert float(entry.shard.sum()) == pytest.approx(round(float(entry.shard.sum())))


# By hand.


def test_one_switch_by_hand():
    """Eight at 450 GB/s and 0.5 us; 1 GB."""
    found = times(one_switch, "all_reduce", 8)
    s_per_GB, us = 1 / 450, 0.5e-6
    expected = {
        "ring": 14 * us + 2 * 7 / 8 * s_per_GB,
        "halving_doubling": 6 * us + 2 * 7 / 8 * s_per_GB,
        "direct": 2 * us + 2 * 7 / 8 * s_per_GB,
        "double_binary_tree": 6 * us + 2 * s_per_GB,
        "in_network": 2 * us + s_per_GB,
        "nvls_tree": 2 * us + s_per_GB,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_in_network_sends_once_per_group_over_every_uplink():
    """Nodes of 8, racks of 4 nodes, 2 racks; NVLink 900, one 100 per node, one 400 per rack."""
    fabric = collapse(HIERARCHIES["the paper's uplinks"])
    for size, rate in ((8, 900e9), (64, 100e9)):
        seconds = one(fabric, "all_reduce", "in_network", 1e12, size)
        assert seconds == pytest.approx(1e12 / rate, rel=1e-5)
    # Where NICs leave the node beside its switch, a device's NIC carries its eighth of the buffer.
    seconds = one(collapse(clos(64)), "all_reduce", "in_network", 1e12, 64)
    assert seconds == pytest.approx(1e12 / 8 / 50e9, rel=1e-5)


def test_all_rails_work_at_once():
    """Eight NICs of 50 GB/s per node: eight times one ring's bandwidth."""
    network = collapse(clos(64))
    alone, rails = (one(network, "all_reduce", name, 1e12, 64) for name in ("ring", "multi_rail"))
    assert alone == pytest.approx(2 * 63 / 64 * 1e12 / 50e9, rel=1e-3)
    assert rails == pytest.approx(alone / 8, rel=1e-3)


def test_trees_join_nodes_and_chains_their_members():
    """Two nodes of four: 2 * 3/4 of the buffer along chains through ports of 100, while its own
    quarter crosses through a NIC: of 900 at once, of 10 for longer than the chains take."""
    for nic, expected in ((900, 2 * 3 / 4 / 100), (10, 1 / 4 / 10)):
        network = collapse(tree((4, 100, 1, "device", 1), (2, nic, 1, "device", 1)))
        seconds = one(network, "all_reduce", "double_binary_tree", 1e12, 8)
        assert seconds == pytest.approx(expected * 1e12 / 1e9, rel=1e-5)


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_every_rail_is_a_ring_through_everybody(nodes: int):
    """Follow each rail: through a node, on to the next on the rail that it leaves by."""
    network = collapse(tree((4, 900, 0.1, "device", 1), (nodes, 50, 0.2, "device", 1)))
    phases = algorithm_phases("reduce_scatter", "multi_rail", network, np.arange(4 * nodes)[None])
    beside, beyond = {}, {}
    for source, target in zip(phases[0].source, phases[0].target, strict=True):
        (beyond if source // 4 != target // 4 else beside)[int(source)] = int(target)
    for slot in range(4):
        here, seen = slot, []
        for _ in range(nodes):
            for step in range(4):
                seen.append(here)
                here = beside[here] if step < 3 else beyond[here]
        assert sorted(seen) == list(range(4 * nodes))
        assert here == slot


def test_a_torus_uses_all_of_its_links():
    network = collapse(torus((4, 4, 4), (True, True, True)))
    answer = collective(network, "all_reduce", 1e12, 64)
    assert answer.algorithm == "multi_ring"
    assert answer.bus_bandwidth_Bps == pytest.approx(6 * 50e9, rel=1e-3)
    assert one(network, "all_reduce", "hierarchical_ring", 1e12, 64) == pytest.approx(
        6 * answer.time_s, rel=1e-3
    )


def test_groups_at_once_share_the_uplinks():
    """Eight strided groups over nodes with one 100 GB/s uplink: each gets an eighth of it."""
    network = collapse(tree((8, 900, 0.1, "device", 1), (4, 100, 0.2, "child", 1)))
    alone, together = (
        one(network, "all_reduce", "ring", 1e12, 4, stride=8, concurrent=which)
        for which in ("one", "all")
    )
    assert alone == pytest.approx(2 * 3 / 4 * 1e12 / 100e9, rel=1e-5)
    assert together == pytest.approx(8 * alone, rel=1e-5)


def test_small_messages_wait_for_the_farthest_peer():
    """A direct all-to-all on a ring of 16: nearest peer for large buffers, farthest for none."""
    network = collapse(torus((16, 1), (True, True)))
    assert one(network, "all_to_all", "direct", 0.0, 16) == pytest.approx(8e-6)
    load = 36 / 16 / 50e9
    assert one(network, "all_to_all", "direct", 1e9, 16) == pytest.approx(1e-6 + 1e9 * load)


def test_chunks_hide_all_but_the_slowest_level():
    network = collapse(tree((8, 900, 0.1, "device", 1), (4, 100, 0.2, "device", 1)))
    whole = one(network, "reduce_scatter", "hierarchical_ring", 1e10, 32)
    parts = one(network, "reduce_scatter", "hierarchical_ring", 1e10, 32, chunks=64)
    inside, outside = 7 / 8 * 1e10 / 900e9, 3 / 4 * 1e10 / 8 / 100e9
    assert whole == pytest.approx(inside + outside, rel=1e-3)
    # Outside traffic crosses the ports of the inside too.
    assert max(inside, outside) < parts < whole
    assert one(network, "all_reduce", "ring", 1e9, 8, chunks=4) == pytest.approx(
        4 * one(network, "all_reduce", "ring", 0.25e9, 8)
    )


# Properties.

sizes = st.integers(2, 8)
rates = st.integers(10, 900)


@settings(max_examples=40, deadline=None)
@given(inner=sizes, outer=sizes, rate=rates, up=rates, which=st.sampled_from(EACH), data=st.data())
def test_more_bandwidth_is_never_slower(
    inner: int, outer: int, rate: int, up: int, which: tuple[str, str], data: st.DataObject
):
    op, algorithm = which
    owner = data.draw(st.sampled_from(["device", "child"]))
    size = data.draw(st.integers(2, inner * outer))
    tier = data.draw(st.integers(0, 1))
    slow, fast = (
        collapse(
            tree(
                (inner, rate * (factor if tier == 0 else 1), 0.5, "device", 1),
                (outer, up * (factor if tier == 1 else 1), 1.0, owner, 1),
            )
        )
        for factor in (1, 3)
    )
    try:
        before = one(slow, op, algorithm, 1e8, size)
    except InputError:
        return
    assert one(fast, op, algorithm, 1e8, size) <= before * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(which=st.sampled_from(EACH), data=st.data())
def test_nodes_that_are_alike_can_change_places(which: tuple[str, str], data: st.DataObject):
    """Members moved by a symmetry of the links (nodes turned round) take equally long."""
    op, algorithm = which
    network = collapse(tree((4, 450, 0.5, "device", 1), (6, 50, 1.0, "child", 1)))
    size = data.draw(st.integers(2, 24))
    turn = data.draw(st.integers(1, 5))
    groups = member_groups(24, size)
    try:
        phases = algorithm_phases(op, algorithm, network, groups)
    except InputError:
        return
    moved = algorithm_phases(op, algorithm, network, (groups + 4 * turn) % 24)
    first, second = (
        price_phases(network.link_map, which_, 1).seconds(1e8) for which_ in (phases, moved)
    )
    if size % 4 == 0 or algorithm in ("ring", "ring_bidirectional", "direct", "pairwise"):
        assert second == pytest.approx(first)


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(sorted(NETWORKS)), which=st.sampled_from(EACH), size=st.integers(2, 128)
)
def test_time_grows_with_the_message(name: str, which: tuple[str, str], size: int):
    network = NETWORKS[name]
    op, algorithm = which
    size = min(size, network.devices)
    try:
        found = [one(network, op, algorithm, b, size) for b in (0.0, 1e3, 1e6, 1e9)]
    except InputError:
        return
    assert found == sorted(found)
    assert found[-1] > 0


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("algorithm", ["ring", "hierarchical_ring", "hierarchical_halving"])
def test_more_groups_at_once_are_never_faster(name: str, algorithm: str):
    network = NETWORKS[name]
    for stride in (1, 2):
        size = network.devices // stride // 2
        if size < 2:
            continue
        alone, together = (
            one(network, "all_reduce", algorithm, 1e8, size, stride=stride, concurrent=which)
            for which in ("one", "all")
        )
        assert together >= alone * (1 - 1e-12)


# What libraries run.


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("op", ALGORITHMS)
def test_what_libraries_run_is_one_of_the_algorithms(name: str, op: str):
    network = NETWORKS[name]
    answer = collective(network, op, 1e6, network.devices, algorithm="library")
    assert answer.algorithm in ALGORITHMS[op]
    if op in KINDS and answer.algorithm == "ring":
        assert one(network, op, answer.algorithm, 1e6, network.devices) == pytest.approx(
            answer.time_s
        )


def test_rings_that_pass_through_nvlink_and_nics_at_once_take_as_long_as_the_slower():
    """Of 31/32 of the buffer 7/8 at 450 and 1/8 at 50, not both in turn; steps still add up."""
    network = collapse(tree((8, 450, 0.5, "device", 1), (4, 50, 1.5, "device", 1)))
    groups = np.arange(32)[None]
    found = price_phases(network.link_map, multi_rail_reduce_scatter(network, groups), 1)
    assert found.seconds(1e9) == pytest.approx(
        (28 * 0.5 + 3 * 1.5) * 1e-6 + 31 / 32 * max(7 / 8 / 450, 1 / 8 / 50)
    )
    halving = one(network, "reduce_scatter", "hierarchical_halving", 1e9, 32)
    assert halving == pytest.approx((3 * 0.5 + 2 * 1.5) * 1e-6 + 7 / 8 / 450 + 3 / 32 / 50)


@pytest.mark.parametrize("held", [1, 2, 4])
def test_rings_of_libraries_are_the_explorer_s(held: int):
    """Wherever nodes hold equally many members; elsewhere one ring."""
    network = collapse(tree((4, 450, 0.5, "device", 1), (6, 50, 1.5, "device", 1)))
    members = (4 * np.arange(6)[:, None] + np.arange(held)).reshape(1, -1)
    found = price_phases(network.link_map, multi_rail_reduce_scatter(network, members), 1)
    (stages,) = (algorithm_stages("reduce_scatter", "multi_rail", network, members),)
    told = sum(price_phases(network.link_map, list(stage), 1).seconds(1e9) for stage in stages)
    assert found.seconds(1e9) == pytest.approx(told, rel=1e-3)
    uneven = members[:, :-1]
    if held > 1:
        (one_ring,) = multi_rail_reduce_scatter(network, uneven)
        assert len(one_ring.source) == uneven.size


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", preset_names("fabrics"))
@pytest.mark.sampled(4)
def test_an_exchange_counted_by_blocks_is_that_of_all_its_flows(name: str, count: int):
    """Wherever members sit, also unevenly; teams take their slowest."""
    network = collapse(load_fabric(name))
    rng = np.random.default_rng(count)
    for size in (2, 5, 8):
        if count * size > network.devices:
            continue
        groups = rng.permutation(network.devices)[: count * size].reshape(count, size)
        team = np.arange(count) % 2
        flows = exchange(groups, volume=1.0 / size, steps=1.0)
        listed = price_phases(network.link_map, [flows], count, IDEAL, team)
        found = message_time(network, "all_to_all", groups, IDEAL, team)
        assert found.alpha_s == pytest.approx(listed.alpha_s, rel=1e-12)
        assert found.beta_s_per_byte == pytest.approx(listed.beta_s_per_byte, rel=1e-12)


def test_an_all_to_all_of_many_thousands_needs_no_list_of_flows():
    """16,384 devices in nodes of 8 with NICs of their own: 268 million flows."""
    network = collapse(clos(16_384, radix=64, tiers=3, ratios=(1.0, 1.0)))
    answer = collective(network, "all_to_all", 1e9, 16_384, algorithm="library")
    assert answer.time_s == pytest.approx(1e9 * (1 - 8 / 16_384) / 50e9, rel=1e-3)
    assert "268,419,072 flows" in answer.bottleneck


# Words.


def test_bottlenecks_in_words():
    network = collapse(tree((8, 900, 0.1, "device", 1), (4, 100, 0.2, "child", 1)))

    def found(op: str, size_bytes: float, size: int, **how: Any) -> CollectiveAnswer:
        return collective(network, op, size_bytes, size, **how)

    answer = found("all_reduce", 1e12, 4, stride=8, concurrent="all", algorithm="ring")
    assert answer.bottleneck == "devices 0 to 7 up to tier 1: 8 flows share 100 GB/s"
    assert answer.level == "tier 1"
    answer = found("all_reduce", 1e12, 8, algorithm="ring")
    assert answer.bottleneck == "device 0 up to tier 0: one flow has 900 GB/s"
    answer = found("all_reduce", 1.0, 8, algorithm="ring")
    assert answer.bottleneck == "latency: 14 steps, most of it at level tier 0"
    grid = collective(collapse(TORI["4x4"]), "all_reduce", 1e12, 16, algorithm="ring")
    assert grid.bottleneck.startswith("device 0, dimension 1, upwards: ")


# Refusals.


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"op": "gossip"}, "op must be one of all_reduce"),
        ({"size": 1}, "size must lie between 2 and 8"),
        ({"size": 9}, "size must lie between 2 and 8"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"size": 4, "stride": 3}, "use at most 2"),
        ({"size": 3, "stride": 3, "concurrent": "all"}, "use at most 2, or one group"),
        ({"bytes_": -1.0}, "bytes must be a finite number between 0 and"),
        ({"bytes_": float("nan")}, "bytes must be a finite number between 0 and"),
        ({"chunks": 0}, "chunks must lie between 1 and"),
        ({"algorithm": "magic"}, "algorithm must be one that all_reduce has"),
        ({"algorithm": "multi_ring"}, "multi_ring must run on a torus"),
    ],
)
def test_refusals(how: dict[str, Any], message: str):
    given_ = {"op": "all_reduce", "bytes_": 1e6, "size": 8, **how}
    with pytest.raises(InputError, match=message):
        collective(one_switch, given_.pop("op"), given_.pop("bytes_"), given_.pop("size"), **given_)


def test_what_does_not_suit_is_refused():
    grid = collapse(TORI["4x4"])
    for algorithm, message in (
        ("in_network", "must have switches at every level"),
        ("nvls_tree", "must have a switch in every node"),
        ("multi_rail", "must run on a fabric of nodes"),
    ):
        with pytest.raises(InputError, match=message):
            collective(grid, "all_reduce", 1e6, 16, algorithm=algorithm)
    with pytest.raises(InputError, match="as many members of a group in every node"):
        collective(collapse(clos(64)), "all_reduce", 1e6, 12, algorithm="multi_rail")


def test_too_many_flows_are_refused_at_once():
    network = collapse(tree((1 << 17, 450, 0.5, "device", 1)))
    groups = np.arange(1 << 17)[None]
    for op, algorithm in (("all_to_all", "direct"), ("all_to_all", "pairwise")):
        with pytest.raises(InputError, match=r"use a hierarchical one"):
            algorithm_stages(op, algorithm, network, groups)
    assert MOST_FLOWS >= 1024 * 1023


# The command.


def test_the_command_prints_the_answer(capsys: pytest.CaptureFixture[str]):
    line = "collective h100-spine-leaf-64 --bytes 1e9 --size 8 --stride 8 --concurrent all --json"
    for spelling in ("all-reduce", "AllReduce", "all_reduce"):
        assert run([*line.split(), "--op", spelling]) == 0
        fields = json.loads(capsys.readouterr().out)
        assert {"time_s", "bus_bandwidth_Bps", "algorithm", "bottleneck"} <= set(fields)
        assert fields["bus_bandwidth_Bps"] == pytest.approx(50e9, rel=0.01)
    assert (
        run([*line.replace("h100-spine-leaf-64", "tpu-v4-4x4x4").split()[:-1], "--op", "alltoall"])
        == 0
    )
    assert "dimension 2, upwards" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "--op gossip --bytes 1e6 --size 8",
        "--op all-reduce --bytes 1e6 --size 65",
        "--op all-reduce --bytes many --size 8",
        "--op all-reduce --bytes 1e6 --size 8 --concurrent some",
        "--op all-reduce --bytes 1e6 --size 8 --algorithm magic",
    ],
)
def test_the_command_refuses_in_one_sentence(line: str, capsys: pytest.CaptureFixture[str]):
    assert run(["collective", "h100-spine-leaf-64", *line.split()]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.endswith(".\n")
    assert captured.err.count("\n") == 1


def test_hierarchical_is_the_fastest_of_its_kind():
    network = NETWORKS["the paper's uplinks"]
    answer = collective(network, "all_reduce", 1e8, 64, algorithm="hierarchical")
    names = {entry.algorithm for entry in answer.candidates}
    assert names == {"hierarchical_ring", "hierarchical_ring_bidirectional", "hierarchical_halving"}
    assert answer.time_s == min(entry.time_s for entry in answer.candidates)
