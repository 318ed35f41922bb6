"""Pipeline schedules, replayed pass by pass, against what `price` says about equal stages.

The replay knows only who waits for whom: a forward pass for the one before it in the chain, a
backward pass for the one after it, and every stage for its own passes in the schedule's order.
"""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs import LayerTable, Plan, Point, Problem, Report, StateBytes, price
from nest_core.network import collapse
from nest_core.topology import Hierarchical, Tier

Pass = tuple[str, int, int]
"""Forward or backward, micro-batch, virtual stage of the whole chain."""

_FORWARD, _BACKWARD = 2.0, 5.0
"""Seconds of a virtual stage."""


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


def replay(orders: list[list[Pass]], virtual_stages: int) -> tuple[float, list[int]]:
    """When the last pass ends, and the most passes forward that each stage has yet to answer."""
    done: dict[Pass, float] = {}
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
                clock[s] = done[one] = ready + (_FORWARD if kind == "F" else _BACKWARD)
                open_passes[s] += 1 if kind == "F" else -1
                most[s] = max(most[s], open_passes[s])
                place[s] += 1
                moved = True
        assert moved, "the schedule waits for itself"
    return max(clock), most


def priced(schedule: str, pp: int, m: int, v: int) -> Report:
    """Virtual stages of one layer, links that take no time, one byte kept per virtual stage."""
    layers = pp * v
    nothing, none = np.zeros(layers), np.zeros((3, layers))
    table = LayerTable(
        compute_s=np.full(layers, _FORWARD + _BACKWARD),
        forward_s=np.full(layers, _FORWARD),
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=np.ones((3, layers)),
        working_bytes=none,
        boundary_bytes=np.zeros(layers + 1),
    )
    problem = Problem(
        network=collapse(Hierarchical("one", (Tier("node", pp, 1.0, 0.0),))),
        table=lambda tp, sp, micro_batch, cp, ep: table,
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
    return price(problem, Plan(point, tuple(range(layers + 1)), ("none",) * pp))


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
    seconds, most = replay(orders, pp * v)
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
