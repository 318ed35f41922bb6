"""Plans replayed where elements fail or are slow."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from small_fabric import job, small

from nest_core.documents import InputError
from nest_core.fabric import element_kinds
from nest_core.network import collapse, link_group_name
from nest_core.simulator import simulate
from nest_core.studies.failures import break_elements, broken, single_failures

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
    assert failure.same_plan.seconds == pytest.approx(expected, rel=1e-9)
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
    assert failure.same_plan is not None


def test_a_plan_without_spare_devices_cannot_run_and_is_planned_anew():
    values = small(planes=2, devices=8)
    plan = job(values, collapse(values.fabric), WORDS, DEVICES)[1]
    failure = break_elements(values, plan, ["node 1"], replan=True)
    assert failure.same_plan is None
    assert failure.loss == 1.0
    assert failure.reason == "the plan needs 8 devices, 6 are left"
    assert failure.replanned.plan.devices_used <= 6
    assert failure.replanned_loss < 1.0


def test_replanning_never_loses_more_than_the_same_plan(values, plan):
    failure = break_elements(values, plan, ["leaf 0"], {"device 3": 0.5}, replan=True)
    assert failure.replanned_loss <= failure.loss


def test_a_slow_device_slows_its_work_and_a_slow_link_its_messages(values, plan):
    slow = break_elements(values, plan, [], {"device 2": 0.5})
    pace = np.where(np.arange(16) == 2, 2.0, 1.0)
    expected = simulate(values.problem(), plan, pace=pace, is_whole=True).seconds
    assert slow.same_plan.seconds == pytest.approx(expected, rel=1e-9)
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
    kinds = element_kinds(values.fabric)
    links = len(collapse(values.fabric).link_map.capacity_Bps) // 2
    assert sum(failure.alike for failure in ranked) == sum(kinds.values()) + links
    assert [failure.loss for failure in ranked] == sorted(
        (failure.loss for failure in ranked), reverse=True
    )
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
