"""Plans replayed where elements fail or are slow."""

from __future__ import annotations

import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from small_fabric import job, small

from nest_core.documents import InputError
from nest_core.fabric import as_graph, element_kinds
from nest_core.network import collapse, link_group_name
from nest_core.scenario import load_fabric
from nest_core.simulator import simulate
from nest_core.studies import failures
from nest_core.studies.broken import broken
from nest_core.studies.failures import break_elements, single_failures, worst_failure

WORDS = "dp=4,tp=1,pp=2,micro_batch=2,zero=1"
DEVICES = [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.fixture(scope="module")
def values():
    """Two planes, so that switches may fail, on a fabric half of which is idle."""
    return small(planes=2)


@pytest.fixture(scope="module")
def plan(values):
    return job(values, collapse(values.fabric), WORDS, DEVICES)[1]


def test_a_switch_that_failed_is_missing(values, plan):
    rest = replace(values, fabric=replace(values.fabric, missing=("leaf 1",)))
    expected = simulate(rest.problem(), plan, is_whole=True).seconds
    failure = break_elements(values, plan, ["leaf 1"])
    assert failure.same_plan_s == pytest.approx(expected, rel=1e-9)
    before = simulate(values.problem(), plan, is_whole=True).seconds
    assert failure.loss == pytest.approx(1 - before / expected)
    assert failure.loss > 0


def test_a_dead_device_is_replaced_by_the_nearest_idle_one(values, plan):
    """Idle are 8 to 15; of a job on 0, 1, 4, 5 the others under the same leaf are nearer."""
    network = collapse(values.fabric)
    moved = broken(values.fabric, network, ["device 1"]).moved(plan, network)
    # Devices behind the dead one are numbered one less.
    assert moved.point.device_order == (0, 7, 1, 2, 3, 4, 5, 6)
    few = job(values, network, "dp=4,tp=1,pp=1,micro_batch=4,zero=0", [0, 1, 8, 9])[1]
    moved = broken(values.fabric, network, ["device 9"]).moved(few, network)
    assert moved.point.device_order == (0, 1, 8, 9)  # which was 10, under the same leaf
    failure = break_elements(values, plan, ["device 1"])
    assert failure.same_plan_s is not None


def test_a_plan_without_spare_devices_cannot_run_and_is_planned_anew():
    values = small(planes=2, devices=8)
    plan = job(values, collapse(values.fabric), WORDS, DEVICES)[1]
    failure = break_elements(values, plan, ["node 1"], replan=True)
    assert failure.same_plan_s is None
    assert failure.loss == 1.0
    assert failure.reason == "the plan needs 8 devices, 6 are left"
    assert failure.replanned_plan.devices_used <= 6
    assert failure.replanned_loss < 1.0


def test_replanning_never_loses_more_than_the_same_plan(values, plan):
    failure = break_elements(values, plan, ["leaf 0"], {"device 3": 0.5}, replan=True)
    assert failure.replanned_loss <= failure.loss


def test_a_slow_device_slows_its_work_and_a_slow_link_its_messages(values, plan):
    slow = break_elements(values, plan, [], {"device 2": 0.5})
    pace = np.where(np.arange(16) == 2, 2.0, 1.0)
    expected = simulate(values.problem(), plan, pace=pace, is_whole=True).seconds
    assert slow.same_plan_s == pytest.approx(expected, rel=1e-9)
    losses = [
        break_elements(values, plan, [], {"leaf 0": lost}).loss
        for lost in (0.25, 0.5, 0.75, 0.999999)
    ]
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(break_elements(values, plan, ["leaf 0"]).loss, 1e-3)


def test_a_nic_and_the_link_of_its_name_are_what_they_are_called(values, plan):
    """A node's NIC of two planes is two links; a link is one of them."""
    network = collapse(values.fabric)
    capacity = network.link_map.capacity_Bps
    rest = broken(values.fabric, network, ["nic 5"]).network.link_map.capacity_Bps
    lost = np.flatnonzero(rest != capacity)
    assert (capacity[lost] - rest[lost]).tolist() == [5e9, 5e9]
    name = link_group_name(network, int(lost[0]))
    rest = broken(values.fabric, network, [name]).network.link_map.capacity_Bps
    assert (capacity - rest)[lost].tolist() == [2.5e9, 2.5e9]


def test_links_are_found_where_devices_are_gone(values):
    network = collapse(values.fabric)
    name = "devices 12 to 15 up to spine"
    alone = broken(values.fabric, network, [name]).network.link_map
    both = broken(values.fabric, network, ["node 0", name]).network.link_map
    tiers = alone.tiers[2], both.tiers[2]
    assert tiers[0].capacity_Bps.tolist() == tiers[1].capacity_Bps.tolist()
    assert tiers[0].capacity_Bps[3] < tiers[0].capacity_Bps[2]


def test_every_element_is_ranked_once_and_loses_what_its_class_says(values, plan):
    """Each is broken by itself, every device followed by itself."""
    ranked = single_failures(values, plan)
    nics = values.fabric.nodes * values.fabric.nics_per_node
    kinds = element_kinds(values.fabric) | {"nic": nics}
    links = len(collapse(values.fabric).link_map.capacity_Bps) // 2
    assert sum(failure.alike for failure in ranked) == sum(kinds.values()) + links
    several = [failure.is_several for failure in ranked]
    assert several == sorted(several), "rails and planes are many switches at once"
    losses = [failure.replanned_loss for failure in ranked if not failure.is_several]
    assert losses == sorted(losses, reverse=True)
    assert all(0 <= failure.replanned_loss <= failure.loss for failure in ranked)
    for kind, number in kinds.items():
        expected = []
        for n in range(number):
            try:
                expected.append(break_elements(values, plan, [f"{kind} {n}"]).loss)
            except InputError:
                expected.append(1.0)
        classes = [f for f in ranked if f.elements[0].rsplit(" ", 1)[0] == kind]
        listed = [failure.loss for failure in classes for _ in range(failure.alike)]
        assert sorted(listed) == pytest.approx(sorted(expected), rel=1e-6, abs=1e-9)


def test_a_nic_and_its_only_link_are_replayed_once(monkeypatch):
    """Both are listed, each with what it takes by itself."""
    values = small(planes=1)
    network = collapse(values.fabric)
    plan = job(values, network, WORDS, DEVICES)[1]
    replayed = []

    def counted(values, plan, fail, **more):
        replayed.extend(fail)
        return break_elements(values, plan, fail, **more)

    monkeypatch.setattr(failures, "break_elements", counted)
    listed = {lost.elements[0]: lost for lost in single_failures(values, plan)}
    nic, link = listed["nic 4"], listed["device 4 up to leaf"]
    assert nic.alike == link.alike == 4
    assert nic.loss > 0
    assert "nic 4" in replayed
    assert "device 4 up to leaf" not in replayed
    assert listed.pop("spine 0").reason.startswith("leaves no path")
    for name, lost in listed.items():
        alone = break_elements(values, plan, [name], replan=True)
        assert (lost.loss, lost.replanned_loss) == pytest.approx(
            (alone.loss, alone.replanned_loss), abs=1e-9
        )


@pytest.mark.parametrize("most", [0, failures.MOST_TASKS])
@pytest.mark.parametrize("spares", [0, 1])
def test_the_worst_single_failure_is_the_first_of_all(values, plan, spares, most, monkeypatch):
    """What studies ask for plans as few as they need; it names the same element and loss.

    Where of each kind and tier the busiest class alone is replayed it names one of its kind.
    """
    monkeypatch.setattr(failures, "MOST_TASKS", most)
    first = single_failures(values, plan, spares=spares)[0]
    worst = worst_failure(values, plan, spares)
    if most:
        assert worst.elements == first.elements
    assert worst.elements[0].split()[0] == first.elements[0].split()[0]
    assert (worst.least_loss, worst.alike) == (first.least_loss, first.alike)


def test_of_a_large_drawing_the_busiest_of_each_kind_are_tried(values, plan, monkeypatch):
    """Half of the fabric is idle: what is tried carries the plan, and the worst stays the same."""
    drawn = replace(values, fabric=as_graph(values.fabric))
    network = collapse(drawn.fabric)
    before = simulate(drawn.problem(network=network), plan)
    everything = worst_failure(drawn, plan, 0)
    monkeypatch.setattr(failures, "MOST_DRAWN", 10)
    tried = failures._tried(drawn.fabric, before, 1)
    graph = nx.relabel_nodes(drawn.fabric.explicit(), dict(enumerate(drawn.fabric.device_ids)))
    ids = drawn.fabric.device_ids
    far = {of: min(nx.shortest_path_length(graph, of, device) for device in ids) for of in graph}
    kinds = {(graph.nodes[of]["role"], far[of]) for of in graph}
    kinds |= {("link", *sorted((far[a], far[b]))) for a, b in graph.edges}
    assert len(tried) == len(kinds)
    assert {kind for kind, _ in tried} == {kind for kind, *_ in kinds}
    used = {*np.array(ids)[DEVICES].tolist()}
    for _, name in tried:
        nearest = min(
            min(nx.shortest_path_length(graph, end, device) for device in used) - far[end]
            for end in name.split(" to ")
        )
        assert nearest == 0
    worst = worst_failure(drawn, plan, 0)
    assert worst.least_loss == everything.least_loss


def test_spare_nodes_stand_in_for_what_is_lost():
    """As many as a leaf takes leave nothing to lose; the same plan waits for none of them."""
    values = small(planes=1, devices=16)
    network = collapse(values.fabric)
    plan = job(values, network, WORDS.replace("dp=4", "dp=8"), range(16))[1]
    gone = np.setdiff1d(np.arange(16), broken(values.fabric, network, ["leaf 0"]).devices)
    nodes = len(np.unique(network.host[gone]))
    before_s = simulate(values.problem(plan.recompute, network), plan).seconds
    for spares in range(1, nodes + 2):
        failure = break_elements(values, plan, ["leaf 0"], replan=True, spares=spares)
        assert failure.same_plan_s is None
        assert failure.spares == min(spares, nodes)
        if spares >= nodes:
            assert (failure.replanned_s, failure.replanned_plan) == (before_s, plan)
    device = break_elements(values, plan, ["device 3"], replan=True, spares=1)
    assert (device.replanned_loss, device.spares, device.replanned_plan) == (0.0, 1, plan)


@pytest.mark.parametrize("name", ["torus-16x16", "mesh-8x8", "dragonfly-1056", "tpu-v4-2x2x4"])
def test_a_cable_that_fails_takes_both_directions(name):
    """Of every link that routes cross, the way back is what the same two ends cross back."""
    fabric = load_fabric(name)
    network = collapse(fabric)
    link_map = network.link_map
    rng = np.random.default_rng(0)
    source, target = rng.integers(network.devices, size=(2, 400))
    used = np.unique(link_map.routes(source, target).link_group)
    there = set(np.unique(link_map.routes(target, source).link_group).tolist())
    for link in used.tolist():
        back = link_map.reverse(link)
        assert link_map.reverse(back) == link != back
        assert link_map.capacity_Bps[back] == link_map.capacity_Bps[link]
    near = np.flatnonzero(network.level(source, target) == 0)
    pairs = zip(source[near].tolist(), target[near].tolist(), strict=True)
    for a, b in pairs:
        ways = [link_map.routes(*map(np.array, ([x], [y]))).link_group for x, y in ((a, b), (b, a))]
        assert {link_map.reverse(link) for link in ways[0].tolist()} == set(ways[1].tolist())
    link = link_group_name(network, int(used[0]))
    rest = broken(fabric, network, [link]).network.link_map.capacity_Bps
    dead = set(np.flatnonzero(rest != link_map.capacity_Bps).tolist())
    assert dead == {int(used[0]), link_map.reverse(int(used[0]))}
    assert there


@pytest.mark.parametrize(
    ("name", "nearest"), [("leef 1", "leaf 1"), ("nic 99", "nic 15"), ("devices 0 to 3 up", "")]
)
def test_what_there_is_not_has_the_nearest_named(values, plan, name, nearest):
    with pytest.raises(InputError, match=re.escape(f'the nearest named is "{nearest}')):
        break_elements(values, plan, [name])


@pytest.mark.parametrize("lost", [0.0, -0.1, 1.0])
def test_nothing_is_slower_than_stopped_or_faster_than_new(values, plan, lost):
    with pytest.raises(InputError, match="must lose from 0 to 100 %"):
        break_elements(values, plan, [], {"device 1": lost})
