"""The event engine: fair shares of links against linear programs, and tasks against sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from nest_core.simulator.engine import Calls, Tasks, fair_rates, run

NONE = np.zeros(0, np.int64)


def calls_of(
    weights: np.ndarray, most: np.ndarray, volume: np.ndarray, phases: list[list[list[int]]]
) -> Calls:
    """Calls of phases of flows; ``weights`` (flows, links)."""
    flow, link = np.nonzero(weights)
    per_phase = [len(phase) for call in phases for phase in call]
    order = [n for call in phases for phase in call for n in phase]
    assert order == sorted(order)
    return Calls(
        np.cumsum([0, *map(len, phases)]),
        np.zeros(len(per_phase)),
        np.cumsum([0, *per_phase]),
        volume.astype(float),
        most.astype(float),
        np.searchsorted(flow, np.arange(len(weights) + 1)),
        link,
        weights[flow, link].astype(float),
        np.zeros(len(phases) + 1, np.int64),
        NONE,
    )


def tasks_of(
    seconds: list[float], call: list[int], size: list[float], after: dict[int, list[int]]
) -> Tasks:
    """Tasks that wait for those that name them."""
    count = len(seconds)
    waits = np.zeros(count, np.int64)
    for follow in after.values():
        waits[follow] += 1
    return Tasks(
        np.array(seconds, float),
        np.array(call),
        np.array(size, float),
        np.ones(count),
        np.where(np.array(call) < 0, 0, -1),
        np.zeros(count, bool),
        waits,
        np.cumsum([0, *(len(after.get(k, [])) for k in range(count))]),
        np.array([n for k in range(count) for n in after.get(k, [])], np.int64),
    )


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random weights (flows, links), most per flow and capacities, with many ties."""
    dice = np.random.default_rng(seed)
    flows, links = int(dice.integers(1, 9)), int(dice.integers(1, 7))
    crosses = dice.random((flows, links)) < 0.5
    crosses[np.arange(flows), dice.integers(links, size=flows)] = True
    weights = crosses * dice.choice([0.25, 0.5, 1.0, 1.0, 2.0], (flows, links))
    capacity = dice.choice([1.0, 2.0, 3.0, 7.5], links)
    most = np.where(dice.random(flows) < 0.3, dice.choice([0.1, 0.5, 1.0], flows), np.inf)
    return weights, most, capacity


def rates_of(weights: np.ndarray, most: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Return the engine's rates."""
    flows, links = weights.shape
    calls = calls_of(weights, most, np.ones(flows), [[list(range(flows))]])
    used, room = np.zeros(links), np.zeros(links)
    rates = fair_rates(np.arange(flows), calls, capacity, used, room)
    assert not used.any()
    assert not room.any()
    return rates


def by_programs(weights: np.ndarray, most: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Raise the least rate as far as it goes, fix who cannot have more, and go on."""
    flows = len(weights)
    fixed: dict[int, float] = {}
    while len(fixed) < flows:
        free = [n for n in range(flows) if n not in fixed]

        def best(goal: np.ndarray, least: float, fixed: dict[int, float] = fixed) -> float:
            # Variables: rates, and a level below those that are not fixed.
            open_rows = np.zeros((flows, flows + 1))
            open_rows[:, :flows] = -np.eye(flows)
            open_rows[:, -1] = 1.0
            rows = [n for n in range(flows) if n not in fixed]
            above = np.vstack([np.hstack([weights.T, 0 * capacity[:, None]]), open_rows[rows]])
            ends = [(fixed[n], fixed[n]) if n in fixed else (0, most[n]) for n in range(flows)]
            limit = np.append(capacity, np.zeros(len(rows)))
            answer = linprog(-goal, above, limit, bounds=[*ends, (least, None)])
            return -float(answer.fun)

        level = best(np.append(np.zeros(flows), 1.0), 0.0)
        for n in free:
            goal = np.append(np.arange(flows) == n, 0.0).astype(float)
            if best(goal, level * (1 - 1e-9)) <= level * (1 + 1e-6):
                fixed[n] = level
    return np.array([fixed[n] for n in range(flows)])


@pytest.mark.parametrize("seed", range(60))
def test_rates_are_max_min_fair(seed):
    weights, most, capacity = drawn(seed)
    rates = rates_of(weights, most, capacity)
    load = rates @ weights
    assert (load <= capacity * (1 + 1e-9)).all()
    for n, rate in enumerate(rates):
        full = (weights[n] > 0) & (load >= capacity * (1 - 1e-9))
        fastest = [rates[weights[:, link] > 0].max() for link in np.flatnonzero(full)]
        assert rate == pytest.approx(most[n]) or any(
            rate >= other * (1 - 1e-9) for other in fastest
        )


@pytest.mark.parametrize("seed", range(15))
def test_rates_are_those_of_linear_programs(seed):
    weights, most, capacity = drawn(1000 + seed)
    expected = by_programs(weights, most, capacity)
    assert rates_of(weights, most, capacity) == pytest.approx(expected, rel=1e-5)


def test_a_class_of_flows_is_weighed_by_its_members():
    alone = rates_of(np.array([[1.0, 0.0]] * 3 + [[1.0, 1.0]]), np.full(4, np.inf), np.ones(2))
    classed = rates_of(np.array([[3.0, 0.0], [1.0, 1.0]]), np.full(2, np.inf), np.ones(2))
    assert alone[[0, 3]] == pytest.approx(classed)


def test_flows_share_a_link_while_they_meet():
    """Ten and thirty bytes at a byte a second: at half the rate until the first is over."""
    weights = np.ones((2, 1))
    calls = calls_of(weights, np.full(2, np.inf), np.ones(2), [[[0]], [[1]]])
    tasks = tasks_of([0, 0], [0, 1], [10, 30], {})
    begins, ends = run(tasks, calls, np.ones(1), 0.0)
    assert begins.tolist() == [0, 0]
    assert ends == pytest.approx([20, 40])


def test_phases_follow_one_another_after_their_latency():
    calls = calls_of(np.eye(2), np.full(2, np.inf), np.array([1.0, 2.0]), [[[0], [1]]])
    calls = calls._replace(latency_s=np.array([3.0, 5.0]))
    tasks = tasks_of([0, 7], [0, -1], [4, 0], {0: [1]})._replace(times=np.array([2.0, 1.0]))
    begins, ends = run(tasks, calls, np.array([1.0, 2.0]), 0.0)
    assert ends[0] == pytest.approx(2 * (3 + 5) + 4 + 8 / 2)
    assert (begins[1], ends[1]) == pytest.approx((ends[0], ends[0] + 7))


def test_hidden_calls_slow_work_down_while_they_run():
    calls = calls_of(np.ones((1, 1)), np.full(1, np.inf), np.ones(1), [[[0]]])
    calls = calls._replace(first_member=np.array([0, 1]), member=np.array([0]))
    tasks = tasks_of([10, 0], [-1, 0], [0, 4], {})._replace(is_hidden=np.array([False, True]))
    _, ends = run(tasks, calls, np.ones(1), 0.25)
    assert ends == pytest.approx([4 + (10 - 4 * 0.75), 4])


def test_what_waits_for_itself_never_ends():
    tasks = tasks_of([1, 1, 1], [-1, -1, -1], [0, 0, 0], {0: [1], 1: [2], 2: [1]})
    calls = calls_of(np.zeros((0, 1)), np.zeros(0), np.zeros(0), [])
    _, ends = run(tasks, calls, np.ones(1), 0.0)
    assert ends.tolist() == [1.0, np.inf, np.inf]


def test_flows_that_no_link_carries_never_end():
    calls = calls_of(np.ones((1, 1)), np.full(1, np.inf), np.ones(1), [[[0]]])
    _, ends = run(tasks_of([0], [0], [1], {}), calls, np.zeros(1), 0.0)
    assert ends.tolist() == [np.inf]
