"""Iterations against a plain replay that shares no code, and defects that it notices."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from plain_replay import Replay, Toy

from nest_core.costs import Calls, LayerTable, Overlap, Plan, Point, Problem, StateBytes
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.simulator import iteration, messages, simulate, traffic
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
    compute = dice.uniform(1, 3, layers)
    boundary = dice.uniform(0.2, 2, layers + 1)
    boundary[[0, -1]] = 0
    fields: dict[str, Any] = {
        "cuts": (0, *map(int, inner), layers),
        "compute": compute.tolist(),
        "forward": (compute / 3).tolist(),
        "weight": (compute * dice.uniform(0.1, 0.33, layers)).tolist(),
        "again": (compute * dice.choice([0, 0.3])).tolist(),
        "launch": (dice.choice([0, 1]) * dice.uniform(0, 3, layers)).tolist(),
        "tensor_bytes": (dice.choice([0, 2], layers) * dice.uniform(0.2, 2, layers)).tolist(),
        "weights": dice.uniform(0.5, 3, layers).tolist(),
        "boundary": boundary.tolist(),
        "tied": float(dice.choice([0, 0.4])),
        "tp": int(dice.integers(1, 3)),
        "dp": int(dice.integers(1, 3)),
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
    size = np.array(case.tensor_bytes)
    number = 2.0 * (size > 0)
    weights = np.array(case.weights)
    calls = Calls("all_reduce", number, size, none, none)
    table = LayerTable(
        compute_s=np.array(case.compute),
        forward_s=np.array(case.forward),
        weight_s=np.array(case.weight),
        replay_s=np.stack([0 * weights, 0 * weights, np.array(case.again)]),
        launch_s=np.array([case.launch] * 3),
        calls={"tp": calls},
        parameters=weights,
        expert_parameters=np.zeros(layers),
        tied_parameters=case.tied,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=np.array(case.boundary),
    )
    devices = case.tp * case.dp * case.pp
    tier = Tier("node", max(devices, 2), case.rate, case.latency)
    point = Point(
        case.tp, False, case.dp, case.pp, 1, case.zero, ("tp", "cp", "dp", "pp"),
        schedule=case.schedule, interleave=case.v,
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
        model_flops=1.0,
        peak_flops=1.0,
        overlap=Overlap("fitted", case.tp_share, case.pp_share, case.dp_share),
    )
    return problem, Plan(point, case.cuts, ("full" if any(case.again) else "none",) * case.pp)


@pytest.mark.parametrize("seed", range(60))
def test_an_iteration_takes_what_a_plain_replay_does(seed):
    case = toy(seed)
    assert simulate(*posed(case)).seconds == pytest.approx(Replay(case).seconds(), rel=1e-9)
