"""Classes of what lives through the same iteration: one member stands for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from random_plans import FABRICS, random_case

from nest_core.costs.plan import SCHEDULES
from nest_core.simulator import Iteration, simulate
from nest_core.simulator.classes import Flows, Members, classes_of


def times(played: Iteration, owner: np.ndarray) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Begin and end by stage, entry and owner."""
    keys = zip(played.stage.tolist(), played.entry.tolist(), owner.tolist(), strict=True)
    both = zip(played.begins_s.tolist(), played.ends_s.tolist(), strict=True)
    return dict(zip(keys, both, strict=True))


def agree(seed: int, kind: str, **fixed: object) -> None:
    """Hold every task of every device against its class's."""
    problem, plan = random_case(seed, kind, **fixed)
    classed = simulate(problem, plan, draw=seed)
    whole = simulate(problem, plan, draw=seed, is_whole=True)
    assert np.isfinite(whole.ends_s).all()
    assert classed.seconds == pytest.approx(whole.seconds, rel=1e-9)
    is_work = np.array(
        [
            whole.programs[s].rows[whole.programs[s].row[entry]].call is None
            for s, entry in zip(whole.stage.tolist(), whole.entry.tolist(), strict=True)
        ]
    )
    owner = np.where(
        is_work,
        classed.classes.device[np.where(is_work, whole.owner, 0)],
        classed.classes.group[np.where(is_work, 0, whole.owner)],
    )
    ours = times(classed, classed.owner)
    keys = list(zip(whole.stage.tolist(), whole.entry.tolist(), owner.tolist(), strict=True))
    expected = np.stack([whole.begins_s, whole.ends_s], axis=1)
    assert np.array([ours[key] for key in keys]) == pytest.approx(
        expected, rel=1e-9, abs=1e-9 * whole.seconds
    )
    assert set(keys) == set(ours)
    for name, load in whole.loads.bytes.items():
        assert classed.loads.bytes[name] == pytest.approx(load, rel=1e-9)


@pytest.mark.parametrize("kind", FABRICS)
@pytest.mark.parametrize("seed", range(12))
def test_classes_live_through_what_their_members_do(kind, seed):
    agree(seed, kind)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(3))
def test_classes_hold_under_every_schedule(schedule, seed):
    kind = FABRICS[(seed + SCHEDULES.index(schedule)) % len(FABRICS)]
    agree(100 + seed, kind, schedule=schedule, pp=2)


def test_equal_groups_are_one_class_and_a_wider_link_tells_them_apart():
    """Four pairs that each send over a link of their own."""
    members = Members(np.repeat(np.arange(4), 2), np.arange(8))
    flows = Flows(np.arange(4), np.arange(4), np.arange(4), np.ones(4))
    labels = (np.zeros(8),), (np.zeros(4),), (np.zeros(4),), (np.ones(4),)
    alike = classes_of(members, flows, labels)
    assert [of.max() + 1 for of in (alike.device, alike.group, alike.flow, alike.link)] == [1] * 4
    wider = (*labels[:3], (np.array([1.0, 1.0, 2.0, 1.0]),))
    apart = classes_of(members, flows, wider)
    assert apart.group.tolist() == [0, 0, 1, 0]
    assert apart.device.tolist() == [0, 0, 0, 0, 1, 1, 0, 0]


def test_a_difference_far_away_is_seen():
    """A ring of groups that share links with their neighbours: each distance is a class."""
    groups, count = np.arange(8), 8
    flow = np.repeat(groups, 2)
    link = np.stack([groups, (groups + 1) % count], axis=1).reshape(-1)
    flows = Flows(groups, flow, link, np.ones(2 * count))
    members = Members(groups, groups)
    capacity = np.ones(count)
    labels = (np.zeros(count),), (np.zeros(count),), (np.zeros(count),), (capacity,)
    assert classes_of(members, flows, labels).group.max() == 0
    capacity[0] = 2.0
    assert classes_of(members, flows, labels).group.max() == 3
