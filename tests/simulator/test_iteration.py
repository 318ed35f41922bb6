"""Iterations against a plain replay that shares no code, and defects that it notices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plain_replay import Replay, Toy

from nest_core.costs import Calls, LayerTable, Overlap, Plan, Point, Problem, StateBytes
from nest_core.fabric import Clos, Hierarchical, Tier
from nest_core.network import collapse
from nest_core.simulator import drawn_seconds, iteration, messages, simulate, traffic
from nest_core.simulator.engine import Calls as EngineCalls
from nest_core.simulator.engine import Tasks, run


def toy(seed: int, **fixed: Any) -> Toy:
    """A random chain of twos."""
    dice = np.random.default_rng(seed)
    schedule = fixed.get("schedule", str(dice.choice(["1f1b", "gpipe", "interleaved", "zb_h1"])))
    pp = fixed.get("pp", int(dice.choice([2, 2, 3] if schedule == "interleaved" else [1, 2, 3])))
    v = int(dice.choice([2, 3])) if schedule == "interleaved" else 1
    layers = pp * v + int(dice.integers(0, 3))
    inner = sorted(1 + dice.choice(layers - 1, pp * v - 1, replace=False))
    compute, is_again = dice.uniform(1, 3, layers), bool(dice.integers(2))
    boundary = dice.uniform(0.2, 2, layers + 1)
    boundary[[0, -1]] = 0
    fields: dict[str, Any] = {
        "cuts": (0, *map(int, inner), layers),
        "compute": compute.tolist(),
        "forward": (compute / 3).tolist(),
        "weight": (compute * dice.uniform(0.1, 0.33, layers)).tolist(),
        "again": (compute * 0.3 * is_again).tolist(),
        "launch": (dice.choice([0, 1]) * dice.uniform(0, 3, layers)).tolist(),
        "tensor_bytes": (dice.choice([0, 2], layers) * dice.uniform(0.2, 2, layers)).tolist(),
        "weights": dice.uniform(0.5, 3, layers).tolist(),
        "boundary": boundary.tolist(),
        "context_bytes": (dice.choice([0, 2], layers) * dice.uniform(0.2, 2, layers)).tolist(),
        "expert_bytes": (dice.choice([0, 2], layers) * dice.uniform(0.2, 2, layers)).tolist(),
        "tensor_again": (
            is_again * dice.choice([0, 1], layers) * dice.uniform(0.1, 1, layers)
        ).tolist(),
        "context_again": (
            is_again * dice.choice([0, 1], layers) * dice.uniform(0.1, 1, layers)
        ).tolist(),
        "host_bytes": (dice.choice([0, 1]) * dice.uniform(0, 3, layers)).tolist(),
        "host_rate": 1.5,
        "tied": float(dice.choice([0, 0.4])),
        "tp": int(dice.integers(1, 3)),
        **dict(zip(("dp", "cp"), [(1, 1), (2, 1), (1, 2)][dice.integers(3)], strict=True)),
        "pp": pp,
        "m": pp * int(dice.integers(1, 4)),
        "v": v,
        "zero": int(dice.choice([0, 1, 3])),
        "schedule": schedule,
        "tp_share": int(dice.integers(2)),
        "pp_share": int(dice.integers(2)),
        "dp_share": int(dice.integers(2)),
        "latency": float(dice.choice([0.0, 0.05])),
    }
    return Toy(**(fields | fixed))


def posed(case: Toy) -> tuple[Problem, Plan]:
    """Return what the product is asked."""
    layers, none = len(case.compute), np.zeros((3, len(case.compute)))
    weights = np.array(case.weights)
    is_again, has_experts = any(case.again), any(case.expert_bytes)
    run_again = np.array([0.0, 0.0, 1.0])[:, None]

    def calls(kind: Any, size: list[float], again: list[float]) -> Calls:
        often = [np.array(of) > 0 for of in (size, again)]
        return Calls(
            kind, 2.0 * often[0], np.array(size), run_again * often[1], run_again * np.array(again)
        )

    kind = ("ring", "all_to_all", "reduce_scatter")[layers % 3]
    table = LayerTable(
        compute_s=np.array(case.compute),
        forward_s=np.array(case.forward),
        weight_s=np.array(case.weight),
        replay_s=np.stack([0 * weights, 0 * weights, np.array(case.again)]),
        launch_s=np.array([case.launch] * 3),
        calls={
            "tp": calls("all_reduce", case.tensor_bytes, case.tensor_again),
            "cp": calls(kind, case.context_bytes, case.context_again),
            "ep": calls("all_to_all", case.expert_bytes, [0.0] * layers),
        },
        parameters=weights,
        expert_parameters=np.full(layers, float(has_experts)),
        tied_parameters=case.tied,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=np.array(case.boundary),
        host_bytes=np.array(case.host_bytes),
    )
    sharers = case.dp * case.cp
    devices = case.tp * sharers * case.pp
    tier = Tier("node", max(devices, 2), case.rate, case.latency)
    point = Point(
        case.tp, False, case.dp, case.pp, 1, case.zero, ("tp", "cp", "dp", "pp"),
        schedule=case.schedule, interleave=case.v, cp=case.cp,
        ep=sharers if has_experts else 1, etp=case.tp,
    )  # fmt: skip
    problem = Problem(
        network=collapse(Hierarchical("flat", (tier,))),
        table=lambda tp, sp, micro_batch, cp, ep, etp: table,
        batch=case.m * case.dp,
        tokens=1,
        memory_bytes=1e9,
        reserved_bytes=0.0,
        state=StateBytes(1.0, 1.0, 2.0),
        update_Bps=1e30,
        host_Bps=case.host_rate,
        model_flops=1.0,
        peak_flops=1.0,
        overlap=Overlap("fitted", case.tp_share, case.pp_share, case.dp_share),
    )
    return problem, Plan(point, case.cuts, ("full" if is_again else "none",) * case.pp)


@pytest.mark.parametrize("seed", range(60))
def test_an_iteration_takes_what_a_plain_replay_does(seed):
    case = toy(seed)
    assert simulate(*posed(case)).seconds == pytest.approx(Replay(case).seconds(), rel=1e-9)


# Defects. Each is put into an iteration that the plain replay confirms; the replay then differs.

WHOLE = toy(
    38, schedule="1f1b", pp=3, tp=2, dp=2, cp=1, m=6, zero=3, latency=0.05,
    tp_share=1, pp_share=1, dp_share=1,
)  # fmt: skip


def altered(monkeypatch: pytest.MonkeyPatch, change: Any) -> float:
    """Seconds where the engine is given something else."""

    def changed(tasks: Tasks, calls: EngineCalls, capacity: np.ndarray, slowdown: float) -> Any:
        return run(*change(tasks, calls, capacity), slowdown)

    monkeypatch.setattr(iteration, "run", changed)
    return simulate(*posed(WHOLE), is_whole=True).seconds


def test_nothing_altered_is_the_plain_replay(monkeypatch):
    same = altered(monkeypatch, lambda tasks, calls, capacity: (tasks, calls, capacity))
    assert same == pytest.approx(Replay(WHOLE).seconds(), rel=1e-9)


def test_half_a_link_is_noticed(monkeypatch):
    """Every link that carries something, one after another."""
    expected = Replay(WHOLE).seconds()
    problem, plan = posed(WHOLE)
    carried = sum(simulate(problem, plan, is_whole=True).loads.bytes.values())
    links = np.flatnonzero(np.asarray(carried) > 0)
    assert len(links) == 2 * WHOLE.tp * WHOLE.dp * WHOLE.pp
    for link in links.tolist():
        factor = np.where(np.arange(len(carried)) == link, 0.5, 1.0)
        halved = altered(
            monkeypatch, lambda tasks, calls, capacity, by=factor: (tasks, calls, capacity * by)
        )
        assert halved > expected * (1 + 1e-4)


def test_ignored_latency_is_noticed(monkeypatch):
    def at_once(tasks: Tasks, calls: EngineCalls, capacity: np.ndarray) -> Any:
        return tasks, calls._replace(latency_s=0 * calls.latency_s), capacity

    hasty = altered(monkeypatch, at_once)
    assert hasty < Replay(WHOLE).seconds() * (1 - 1e-4)


def without(tasks: Tasks, dropped: np.ndarray) -> Tasks:
    """Tasks that no longer wait as some edges say; ``dropped`` (edges,)."""
    source = np.repeat(np.arange(len(tasks.seconds)), np.diff(tasks.first_after))
    return tasks._replace(
        waits=tasks.waits - np.bincount(tasks.after[dropped], minlength=len(tasks.waits)),
        first_after=np.searchsorted(source[~dropped], np.arange(len(tasks.seconds) + 1)),
        after=tasks.after[~dropped],
    )


@pytest.mark.parametrize(
    "kind",
    ["receive", "return", "tp", "data", "forward", "recomputation", "backward", "copy"],
)
def test_what_nobody_waits_for_is_noticed(kind, monkeypatch):
    """All edges out of one kind of task are dropped, but those to its like."""
    played = simulate(*posed(WHOLE), is_whole=True)
    rows = [
        played.programs[s].rows[played.programs[s].row[entry]]
        for s, entry in zip(played.stage.tolist(), played.entry.tolist(), strict=True)
    ]
    names = np.array([row.call.axis if row.call else row.kind for row in rows])

    def change(tasks: Tasks, calls: EngineCalls, capacity: np.ndarray) -> Any:
        source = np.repeat(np.arange(len(names)), np.diff(tasks.first_after))
        dropped = (names[source] == kind) & (names[tasks.after] != kind)
        return without(tasks, dropped), calls, capacity

    assert altered(monkeypatch, change) != pytest.approx(Replay(WHOLE).seconds(), rel=1e-4)


def test_a_message_that_its_receiver_does_not_wait_for_is_noticed(monkeypatch):
    """Any single dropped edge between stages moves some task."""
    tasks_seen: list[Any] = []
    altered(monkeypatch, lambda *given: tasks_seen.append(given) or given)
    tasks, calls, capacity = tasks_seen[0]
    played = simulate(*posed(WHOLE), is_whole=True)
    source = np.repeat(np.arange(len(tasks.seconds)), np.diff(tasks.first_after))
    between = np.flatnonzero(played.stage[source] != played.stage[tasks.after])
    assert len(between)
    before = run(tasks, calls, capacity, 0.0)[0]
    for edge in between[::7].tolist():
        dropped = np.arange(len(source)) == edge
        begins, _ = run(without(tasks, dropped), calls, capacity, 0.0)
        assert begins != pytest.approx(before, rel=1e-6)


def test_swapped_directions_are_noticed(monkeypatch):
    """What comes back takes the way of what is sent, so that both meet on their links."""
    case = toy(
        11, schedule="1f1b", pp=3, tp=1, dp=1, cp=1, m=6, latency=0.05,
        tp_share=1, pp_share=1, dp_share=1, launch=[0.0] * 16, tied=0.0,
    )  # fmt: skip
    case = replace(case, boundary=[6 * size for size in case.boundary])
    expected = Replay(case).seconds()
    assert simulate(*posed(case)).seconds == pytest.approx(expected, rel=1e-9)

    def swapped(link_map: Any, phases: Any, *more: Any) -> messages.Way:
        turned = [replace(phase, source=phase.target, target=phase.source) for phase in phases]
        is_back = all((phase.source > phase.target).all() for phase in phases)
        return messages.way(link_map, turned if is_back else phases, *more)

    monkeypatch.setattr(traffic, "way", swapped)
    assert simulate(*posed(case)).seconds > expected * (1 + 1e-4)


def test_a_hash_spreads_seconds_and_adaptive_routing_does_not():
    """Four transfers of a leaf over four uplinks: some draws have two of them meet, or more."""
    leaves = Clos(
        "clos", "leaf_spine", 16, 1, 1, 1.0, 8, 2, (1.0,), 0.0, 1.0, 0.0, routing="ecmp"
    )  # fmt: skip
    problem, plan = posed(toy(5, tp=1, dp=8, cp=1, pp=2, zero=0, schedule="gpipe", m=2))
    hashed = replace(problem, network=collapse(leaves))
    assert hashed.network.link_map.variants == 32
    seconds = np.array([simulate(hashed, plan, draw=draw).seconds for draw in range(32)])
    drawn = drawn_seconds(hashed, simulate(hashed, plan, draw=5))
    assert drawn.tolist() == seconds[: len(drawn)].tolist()
    assert seconds[5] == pytest.approx(simulate(hashed, plan, draw=5, is_whole=True).seconds)
    median, late = np.quantile(seconds, [0.5, 0.95])
    assert seconds.min() < median < late <= seconds.max()
    adaptive = replace(problem, network=collapse(replace(leaves, routing="adaptive")))
    assert adaptive.network.link_map.variants == 1
    assert simulate(adaptive, plan).seconds < seconds.min()
