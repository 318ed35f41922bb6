"""Pipeline schedules, replayed pass by pass, against what `price` says about equal stages.

The replay knows only who waits for whom: a forward pass for the one before it in the chain, a
backward pass for the one after it, and every stage for its own passes in the schedule's order.
"""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs import LayerTable, Plan, Point, Problem, Report, StateBytes, price
from nest_core.costs.schedules import in_flight, paired
from nest_core.network import collapse
from nest_core.topology import Hierarchical, Tier

Pass = tuple[str, int, int]
"""Forward, backward or weights, micro-batch, virtual stage of the whole chain."""

_SECONDS = {"F": 2.0, "B": 5.0}
"""Of a virtual stage."""

_SPLIT = ({"F": 2.0, "B": 3.0, "W": 2.0}, {"F": 4.0, "B": 3.5, "W": 1.0})
"""The same where gradients of weights are a pass of their own."""


def gpipe(pp: int, s: int, m: int, v: int) -> list[Pass]:
    """Everything forward, then everything backward."""
    assert v == 1
    return [("F", k, s) for k in range(m)] + [("B", k, s) for k in range(m)]


def one_forward_one_backward(pp: int, s: int, m: int, v: int) -> list[Pass]:
    """As many passes forward as there are stages behind, then in turn."""
    assert v == 1
    ahead = min(pp - 1 - s, m)
    return in_turn([("F", k, s) for k in range(m)], [("B", k, s) for k in range(m)], ahead)


def interleaved(pp: int, s: int, m: int, v: int) -> list[Pass]:
    """Groups of pp micro-batches go through one virtual stage after another, and so back."""
    groups = range(m // pp)
    forward = [
        ("F", group * pp + k, virtual_stage * pp + s)
        for group in groups
        for virtual_stage in range(v)
        for k in range(pp)
    ]
    backward = [
        ("B", group * pp + k, virtual_stage * pp + s)
        for group in groups
        for virtual_stage in reversed(range(v))
        for k in range(pp)
    ]
    ahead = min(2 * (pp - 1 - s) + (v - 1) * pp, m * v)
    return in_turn(forward, backward, ahead)


def in_turn(forward: list[Pass], backward: list[Pass], ahead: int) -> list[Pass]:
    """Some passes forward, then one forward and one backward, then the rest backward."""
    order = forward[:ahead]
    for number, one in enumerate(forward[ahead:]):
        order += [one, backward[number]]
    return order + backward[len(forward) - ahead :]


ORDERS = {"gpipe": gpipe, "1f1b": one_forward_one_backward, "interleaved": interleaved}


def zero_bubble(pp: int, s: int, m: int, more: int) -> list[Pass]:
    """Like 1F1B, with ``more`` times its passes ahead, and each W as many behind as stages are
    before; ``more`` 1 is ZB-H1, 2 is ZB-H2."""
    ahead, late = min(more * (pp - 1 - s), m), more * s
    order = [("F", k, s) for k in range(ahead)]
    for k in range(m):
        order += [("F", k + ahead, s)] * (k + ahead < m) + [("B", k, s)]
        order += [("W", k - late, s)] * (k >= late)
    return order + [("W", k, s) for k in range(max(0, m - late), m)]


def replay(
    orders: list[list[Pass]],
    virtual_stages: int,
    takes: list[dict[str, float]],
    answer: str = "B",
) -> tuple[float, float, list[int]]:
    """When the last pass ends, the longest that a stage takes from its first pass to its last, and
    the most passes forward that each stage has yet to answer."""
    done: dict[Pass, float] = {}
    begun: dict[int, float] = {}
    clock, place = [0.0] * len(orders), [0] * len(orders)
    open_passes, most = [0] * len(orders), [0] * len(orders)
    while any(place[s] < len(order) for s, order in enumerate(orders)):
        moved = False
        for s, order in enumerate(orders):
            while place[s] < len(order):
                kind, k, virtual_stage = one = order[place[s]]
                needs = []
                if kind == "F" and virtual_stage > 0:
                    needs = [("F", k, virtual_stage - 1)]
                if kind == "B":
                    needs = [
                        ("B", k, virtual_stage + 1)
                        if virtual_stage < virtual_stages - 1
                        else ("F", k, virtual_stage)
                    ]
                if any(need not in done for need in needs):
                    break
                ready = max([clock[s], *(done[need] for need in needs)])
                begun.setdefault(s, ready)
                clock[s] = done[one] = ready + takes[virtual_stage][kind]
                open_passes[s] += (kind == "F") - (kind == answer)
                most[s] = max(most[s], open_passes[s])
                place[s] += 1
                moved = True
        assert moved, "the schedule waits for itself"
    spans = [end - begun[s] for s, end in enumerate(clock)]
    return max(clock), max(spans), most


def priced(
    schedule: str,
    pp: int,
    m: int,
    v: int,
    takes: list[dict[str, float]] | None = None,
    recompute: str = "none",
) -> Report:
    """Virtual stages of one layer, links that take no time, one byte kept per virtual stage."""
    layers = pp * v
    takes = takes or [_SECONDS] * layers
    nothing, none = np.zeros(layers), np.zeros((3, layers))
    table = LayerTable(
        compute_s=np.array([sum(one.values()) for one in takes]),
        forward_s=np.array([one["F"] for one in takes]),
        weight_s=np.array([one.get("W", 0.0) for one in takes]),
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=np.ones((3, layers)) * np.array([[1.0], [0.5], [0.25]]),
        working_bytes=none,
        boundary_bytes=np.zeros(layers + 1),
    )
    problem = Problem(
        network=collapse(Hierarchical("one", (Tier("node", pp, 1.0, 0.0),))),
        table=lambda tp, sp, micro_batch, cp, ep, etp: table,
        batch=m,
        tokens=1,
        memory_bytes=1e9,
        reserved_bytes=0.0,
        state=StateBytes(0.0, 0.0, 0.0),
        update_Bps=1.0,
        model_flops=1.0,
        peak_flops=1.0,
    )
    order = ("tp", "cp", "dp", "pp")
    point = Point(1, False, 1, pp, 1, 0, order, schedule=schedule, interleave=v)
    return price(problem, Plan(point, tuple(range(layers + 1)), (recompute,) * pp))


CASES = [
    (schedule, pp, m, v)
    for schedule in ORDERS
    for pp in (1, 2, 3, 4, 7)
    for m in (1, 2, 3, 4, 6, 12, 14)
    for v in ((2, 3, 5) if schedule == "interleaved" else (1,))
    if schedule != "interleaved" or (pp > 1 and m % pp == 0)
]


@pytest.mark.parametrize(("schedule", "pp", "m", "v"), CASES)
def test_time_and_memory_are_those_of_the_replay(schedule, pp, m, v):
    orders = [ORDERS[schedule](pp, s, m, v) for s in range(pp)]
    seconds, _, most = replay(orders, pp * v, [_SECONDS] * (pp * v))
    report = priced(schedule, pp, m, v)
    assert report.iteration_s == pytest.approx(seconds, rel=1e-12)
    held = [stage.memory.activations + stage.memory.stash for stage in report.stages]
    assert held == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("v", [2, 4])
def test_interleaving_trades_bubble_for_memory(v):
    """The bubble is a v-th of 1F1B's, and the first stage holds more."""
    plain, chunked = priced("1f1b", 4, 8, 1), priced("interleaved", 4, 8, v)
    assert plain.bubble == pytest.approx(3 / 8)  # (p - 1) / m
    assert chunked.bubble == pytest.approx(3 / 8 / v)
    first, other = chunked.stages[0].memory, plain.stages[0].memory
    assert first.stash / first.activations > other.stash / other.activations


@pytest.mark.parametrize("schedule", ["zb_h1", "zb_1p", "zb_2p"])
@pytest.mark.parametrize("split", _SPLIT, ids=["W as F", "short W"])
@pytest.mark.parametrize("pp", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 14, 30])
def test_a_zero_bubble_schedule_is_its_replay(schedule, split, pp, m):
    """ZB-H1 ends when its last pass does; the others last as long as their slowest stage."""
    orders = [zero_bubble(pp, s, m, 2 if schedule == "zb_2p" else 1) for s in range(pp)]
    ended, span, most = replay(orders, pp, [split] * pp, answer="W")
    report = priced(schedule, pp, m, 1, [split] * pp)
    seconds = ended if schedule == "zb_h1" else span
    assert report.iteration_s == pytest.approx(seconds, rel=1e-12)
    held = [stage.memory.activations + stage.memory.stash for stage in report.stages]
    assert held == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize(("more", "schedule"), [(1, "zb_h1"), (2, "zb_2p")])
def test_bubbles_and_memory_are_those_of_the_papers_table(more, schedule):
    """(p - 1)(F + B - W) in p micro-batches, and (p - 1)(F + B - 2 W) in 2 p - 1."""
    split = _SPLIT[1]
    report = priced(schedule, 4, 16, 1, [split] * 4)
    assert report.fill_s == pytest.approx(3 * (split["F"] + split["B"] - more * split["W"]))
    for stage in report.stages:
        assert stage.memory.activations + stage.memory.stash == pytest.approx(3 * more + 1)


def test_zero_bubbles_need_gradients_of_weights_as_long_as_the_rest():
    even = {"F": 2.0, "B": 2.0, "W": 2.0}
    assert priced("zb_2p", 4, 16, 1, [even] * 4).fill_s == pytest.approx(0.0, abs=1e-9)


def test_what_waits_for_its_weights_is_held_whole():
    """Recomputation holds less only until the backward pass has run it again."""
    stages = priced("zb_h1", 4, 16, 1, [_SPLIT[0]] * 4, "full").stages
    held = [stage.memory.activations + stage.memory.stash for stage in stages]
    assert held == pytest.approx([4 * 0.25, 3 * 0.25 + 1, 2 * 0.25 + 2, 0.25 + 3])


def test_uneven_stages_take_what_the_replay_does_or_little_more():
    """The form lets everything wait for the slowest stage: seldom less, 2 % more in the median."""
    dice, off = np.random.default_rng(7), []
    for _ in range(150):
        pp, m, more = int(dice.integers(2, 8)), int(dice.integers(2, 30)), int(dice.integers(1, 3))
        takes = [
            {"F": 2 * scale, "B": 2.2 * scale, "W": 1.6 * scale} for scale in dice.uniform(1, 2, pp)
        ]
        orders = [zero_bubble(pp, s, m, more) for s in range(pp)]
        ended, span, _ = replay(orders, pp, takes, answer="W")
        report = priced("zb_h1" if more == 1 else "zb_2p", pp, m, 1, takes)
        off.append(report.iteration_s / (ended if more == 1 else span) - 1)
    assert min(off) > -0.005
    assert np.median(off) < 0.03
    assert np.quantile(off, 0.9) < 0.08


def test_uneven_virtual_stages_take_about_what_the_replay_does():
    """One layer of four fewer here and there, as in layouts by hand: both ways, within 10 %."""
    dice, off = np.random.default_rng(8), []
    for _ in range(100):
        pp, v = int(dice.choice([2, 4])), int(dice.integers(2, 5))
        m = pp * int(dice.choice([1, 2, 4, 8]))
        takes = [{"F": 1.0 * size, "B": 2.0 * size} for size in dice.integers(3, 5, pp * v)]
        orders = [interleaved(pp, s, m, v) for s in range(pp)]
        played, _, _ = replay(orders, pp * v, takes)
        off.append(priced("interleaved", pp, m, v, takes).iteration_s / played - 1)
    assert np.median(np.abs(off)) < 0.03
    assert np.abs(off).max() < 0.10


@pytest.mark.parametrize(("pp", "v", "m"), [(1, 1, 1), (1, 1, 6), (2, 2, 4), (4, 2, 4), (4, 3, 16)])
def test_passes_that_run_beside_one_another(pp, v, m):
    """One more pass forward before the turns begin; each turn is a pair of the rest."""
    schedule, orders = ("interleaved" if v > 1 else "1f1b"), ("tp", "cp", "dp", "pp")
    point = Point(1, False, 1, pp, 1, 0, orders, schedule=schedule, interleave=v)
    for s in range(pp):
        order = interleaved(pp, s, m, v) if v > 1 else one_forward_one_backward(pp, s, m, v)
        passes = [[one for one in order if one[0] == kind] for kind in "FB"]
        ahead = next(at for at, one in enumerate(order) if one[0] == "B")  # its own pass included
        pairs = len(passes[0][ahead:])
        assert paired(point, m)[s] == pytest.approx(pairs / (m * v))
        most = min(ahead + 1, m * v)  # what is ahead, and the pass that runs
        assert in_flight(point, m, beside=True)[s] == pytest.approx(most / v)
