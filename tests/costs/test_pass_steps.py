"""A pipeline step by step: ends when the playback does, sends what its boundaries hold."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs import MEGATRON_ORDER, Plan, Point, price
from nest_core.costs.timeline import pass_steps, timeline
from nest_core.teaching.lessons.figure import bare_chain, noded

WIDTH, SIZE = 2, 64e6


def _stepped(schedule, pp, m, nic_GBps=50):
    virtual = 2 if schedule == "interleaved" else 1
    layers = pp * virtual
    whole = bare_chain(
        noded(pp, WIDTH, nic_GBps),
        (6e-3,) * layers,
        (2e-3,) * layers,
        (0.0, *(SIZE,) * (layers - 1), 0.0),
        m,
    )
    point = Point(WIDTH, True, 1, pp, 1, 0, MEGATRON_ORDER, schedule=schedule, interleave=virtual)
    report = price(whole, Plan(point, tuple(range(layers + 1)), ("none",) * pp))
    return report, pass_steps(whole, timeline(whole, report)), whole.network.link_map


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
@pytest.mark.parametrize(("pp", "m"), [(2, 4), (4, 8)])
def test_steps_last_as_long_as_the_playback_and_every_pass_runs_once(schedule, pp, m):
    report, found, _ = _stepped(schedule, pp, m)
    played = found.timeline
    assert found.seconds == pytest.approx(played.seconds)
    assert sum(one.taken_s for one in found.states) == pytest.approx(found.seconds)
    if pp == 2:  # both stages are alike: the closed form is the playback
        assert found.seconds == pytest.approx(report.iteration_s)
    work = np.zeros(pp)
    for one in found.states:
        work += one.taken_s * (one.running >= 0)
    assert work == pytest.approx(played.pass_parts_s.sum(axis=(1, 2)))
    for stage in range(pp):
        order = [one.running[stage] for one in found.states if one.running[stage] >= 0]
        assert sorted(set(order)) == list(range(played.start_s.shape[1]))
        assert order == sorted(order)


@pytest.mark.parametrize(("schedule", "virtual"), [("1f1b", 1), ("interleaved", 2)])
def test_every_boundary_is_crossed_by_every_micro_batch_both_ways(schedule, virtual):
    pp, m = 4, 8
    _, found, links = _stepped(schedule, pp, m)
    sent = [pair for one in found.states for pair in one.sent]
    assert len(sent) == 2 * (virtual * pp - 1) * m
    # Of an inner stage every rank's NIC sends forward and back, once per micro-batch and piece.
    assert links.outside.any()
    most = found.states[-1].sent_bytes[links.outside].max()
    assert most == pytest.approx(2 * virtual * m * SIZE)
    assert found.states[-1].sent_bytes[~links.outside].max() == 0


def test_a_nic_of_half_the_rate_changes_price_and_steps_alike():
    before, fast, _ = _stepped("1f1b", 2, 4)
    after, slow, _ = _stepped("1f1b", 2, 4, nic_GBps=25)
    assert after.iteration_s > before.iteration_s
    assert slow.seconds - fast.seconds == pytest.approx(after.iteration_s - before.iteration_s)
