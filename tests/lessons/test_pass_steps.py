"""A pipeline step by step: steps end when the iteration does, and every message is sent once."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs import MEGATRON_ORDER, Plan, Point, price
from nest_core.simulator import simulate
from nest_core.teaching.lessons.figure import bare_chain, noded
from nest_core.teaching.lessons.walk import PassSteps

WIDTH, SIZE = 2, 64e6
FORWARD_S, BACKWARD_S = 2e-3, 4e-3


def _stepped(schedule, pp, m, nic_GBps=50):
    virtual = 2 if schedule == "interleaved" else 1
    layers = pp * virtual
    chain = bare_chain(
        noded(pp, WIDTH, nic_GBps),
        (FORWARD_S + BACKWARD_S,) * layers,
        (FORWARD_S,) * layers,
        (0.0, *(SIZE,) * (layers - 1), 0.0),
        m,
    )
    point = Point(WIDTH, True, 1, pp, 1, 0, MEGATRON_ORDER, schedule=schedule, interleave=virtual)
    plan = Plan(point, tuple(range(layers + 1)), ("none",) * pp)
    return PassSteps.of(price(chain, plan), simulate(chain, plan))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
@pytest.mark.parametrize(("pp", "m"), [(2, 4), (4, 8)])
def test_steps_last_as_long_as_the_iteration_and_every_pass_runs_once(schedule, pp, m):
    found = _stepped(schedule, pp, m)
    assert found.seconds == pytest.approx(found.iteration.seconds)
    assert sum(one.taken_s for one in found.states) == pytest.approx(found.seconds)
    hop = SIZE / 50e9 + 5e-6
    if pp == 2 and schedule == "1f1b":
        # The last stage never waits but for the first forward pass and the last backward one.
        assert found.seconds == pytest.approx((m + 1) * (FORWARD_S + BACKWARD_S + hop))
    work = np.zeros(pp)
    for one in found.states:
        work += one.taken_s * (one.running >= 0)
    assert work == pytest.approx((found.ends_s - found.begins_s).sum(axis=1), rel=0.02)
    for stage in range(pp):
        order = [one.running[stage] for one in found.states if one.running[stage] >= 0]
        assert sorted(set(order)) == list(range(found.begins_s.shape[1]))
        assert order == sorted(order)
    received = found.received_s - found.begins_s
    assert received[received > 0].min() == pytest.approx(hop)


@pytest.mark.parametrize(("schedule", "virtual"), [("1f1b", 1), ("interleaved", 2)])
def test_every_boundary_is_crossed_by_every_micro_batch_both_ways(schedule, virtual):
    pp, m = 4, 8
    found = _stepped(schedule, pp, m)
    sent = [pair for one in found.states for pair in one.sent]
    assert len(sent) == 2 * (virtual * pp - 1) * m
    assert all((a - b) % pp in (1, pp - 1) for a, b in sent)
    # Of an inner stage every rank's NIC sends forward and back, once per micro-batch and piece.
    links = found.iteration.problem.network.link_map
    carried = found.iteration.loads.bytes["transfers"]
    assert carried[links.outside].max() == pytest.approx(2 * virtual * m * SIZE)
    assert carried[~links.outside].max() == 0


def test_a_nic_of_half_the_rate_makes_messages_longer():
    fast, slow = _stepped("1f1b", 2, 4), _stepped("1f1b", 2, 4, nic_GBps=25)
    assert slow.seconds - fast.seconds == pytest.approx(5 * (SIZE / 25e9 - SIZE / 50e9))
