"""Small random problems on every kind of fabric, and plans of every kind; all from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from nest_core.costs import (
    IDEAL_OVERLAP,
    NO_OVERLAP,
    Calls,
    LayerTable,
    Overlap,
    Plan,
    Point,
    Problem,
    StageStrategy,
    StateBytes,
    check_plan,
)
from nest_core.costs.plan import SCHEDULES, V_SHAPED
from nest_core.documents.errors import InputError
from nest_core.fabric import Clos, Dragonfly, Fabric, GraphFabric, Hierarchical, Tier, Torus
from nest_core.fabric.graph import Element, Link
from nest_core.network import collapse
from nest_core.workload.offload import Offload

__all__ = ["FABRICS", "random_case", "random_problem"]

FABRICS = ("hierarchical", "leaf_spine", "rail_optimised", "torus", "dragonfly", "graph", "ecmp")
RATE_Bps, HOP_s = 64.0, 0.01


def random_fabric(dice: np.random.Generator, kind: str) -> Fabric:
    """Up to 16 devices."""
    if kind == "hierarchical":
        sizes = [(2, 4), (4, 2, 2), (3, 3), (2, 1, 4), (12,)][dice.integers(5)]
        return Hierarchical(
            "tree",
            tuple(
                Tier(
                    f"tier {n}",
                    size,
                    RATE_Bps / (n + 1),
                    HOP_s * n,
                    str(dice.choice(["device", "child"])),  # type: ignore[arg-type]
                    float(dice.choice([1, 2])),
                )
                for n, size in enumerate(sizes)
            ),
        )
    if kind == "torus":
        shape = [(4, 4), (3, 4), (2, 2, 4), (2, 4)][dice.integers(4)]
        wrap = tuple(bool(dice.random() < 0.7) for _ in shape)
        return Torus("torus", shape, wrap, RATE_Bps, HOP_s)
    if kind == "dragonfly":
        return Dragonfly(
            "dragonfly", 3, 2, 1, RATE_Bps, RATE_Bps / 2, HOP_s, groups=int(dice.integers(2, 4)),
            routing=str(dice.choice(["adaptive", "shortest_path", "ecmp"])),  # type: ignore[arg-type]
        )  # fmt: skip
    if kind == "graph":
        leaves, each, spines = int(dice.integers(2, 4)), int(dice.integers(2, 5)), 2
        elements = [Element(f"gpu{n}", "device") for n in range(leaves * each)]
        names = [f"leaf{n}" for n in range(leaves)] + [f"spine{n}" for n in range(spines)]
        elements += [Element(name, "switch") for name in names]
        links = [Link(f"gpu{n}", f"leaf{n // each}", RATE_Bps) for n in range(leaves * each)]
        cables = [
            Link(f"leaf{a}", f"spine{b}", RATE_Bps) for a in range(leaves) for b in range(spines)
        ]
        cables.pop(int(dice.integers(len(cables))))
        return GraphFabric("lost a cable", tuple(elements), (*links, *cables))
    clos_kind = str(dice.choice(["leaf_spine", "rail_optimised"])) if kind == "ecmp" else kind
    return Clos(
        "clos", clos_kind, 16, 4, int(dice.choice([2, 4])), RATE_Bps / 2, 8, 2,  # type: ignore[arg-type]
        (float(dice.choice([1, 3])),), HOP_s, 4 * RATE_Bps, HOP_s / 4,
        routing="ecmp" if kind == "ecmp" else "adaptive",
    )  # fmt: skip


def random_table(dice: np.random.Generator, layers: int, degrees: dict[str, int]) -> LayerTable:
    """Layers of which none is like another; calls on all axes that have ranks."""
    compute = dice.uniform(0.5, 2.0, layers)
    again = np.array([0.0, 0.1, 0.3])[:, None]
    kinds = {
        "tp": ("all_reduce", "reduce_scatter"),
        "cp": ("ring", "reduce_scatter", "all_to_all"),
        "ep": ("all_to_all",),
        "etp": ("reduce_scatter",),
    }
    calls = {}
    for axis, names in kinds.items():
        if degrees[axis] > 1:
            number = dice.choice([0.0, 2.0, 4.0], layers)
            size = number * dice.uniform(0.5, 8.0, layers)
            kind: Any = str(dice.choice(names))
            calls[axis] = Calls(kind, number, size, 2 * again * number, 2 * again * size)
    weights = dice.uniform(1.0, 16.0, layers)
    boundary = dice.uniform(1.0, 16.0, layers + 1)
    boundary[[0, -1]] = 0.0
    slow = dice.random() < 0.25
    return LayerTable(
        compute_s=compute,
        forward_s=compute / 3,
        weight_s=compute * dice.uniform(0.1, 1 / 3, layers),
        replay_s=compute * again,
        launch_s=slow * dice.uniform(0, 2, layers) * (1 + again),
        calls=calls,
        parameters=weights,
        expert_parameters=dice.uniform(1.0, 8.0, layers) * dice.choice([0.0, 1.0], layers),
        tied_parameters=float(min(weights[0], weights[-1])) * bool(dice.random() < 0.4),
        kept_bytes=np.ones((3, layers)),
        working_bytes=np.zeros((3, layers)),
        boundary_bytes=boundary,
    )


def random_problem(seed: int, fabric: Fabric, overlap: Overlap | None = None) -> Problem:
    """Layers on a fabric."""
    dice = np.random.default_rng([seed, 1])
    layers = int(dice.integers(4, 9))

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        own = np.random.default_rng([seed, tp, int(sp), micro_batch, cp, ep, etp])
        return random_table(own, layers, {"tp": tp, "cp": cp, "ep": ep, "etp": etp})

    fitted = Overlap("fitted", *dice.uniform(0.1, 0.9, 4), experts=bool(dice.random() < 0.5))
    overlaps = (NO_OVERLAP, IDEAL_OVERLAP, fitted)
    return Problem(
        network=collapse(fabric),
        table=table,
        batch=int(dice.choice([8, 12])),
        tokens=1,
        memory_bytes=1e9,
        reserved_bytes=0.0,
        state=StateBytes(2.0, 4.0, 12.0),
        update_Bps=100.0,
        host_Bps=20.0,
        model_flops=1.0,
        peak_flops=1.0,
        overlap=overlaps[seed % 3] if overlap is None else overlap,
    )


def random_case(seed: int, kind: str, **fixed: Any) -> tuple[Problem, Plan]:
    """Return a problem and a plan that exists on it; ``fixed`` are fields of its point."""
    dice = np.random.default_rng([seed, 2])
    fabric = random_fabric(dice, kind)
    problem = random_problem(seed, fabric)
    while True:
        try:
            plan = _random_plan(dice, problem, fixed)
            check_plan(problem, plan)
        except InputError:
            continue
        return problem, plan


def _random_plan(dice: np.random.Generator, problem: Problem, fixed: dict[str, Any]) -> Plan:
    """Return any plan; most exist."""
    schedule = fixed.get("schedule", str(dice.choice(SCHEDULES)))
    tp, cp, dp = (int(dice.choice([1, 2, 2, 4])) for _ in range(3))
    several = schedule == "interleaved_zb" or schedule.startswith("interleaved")
    v = int(dice.choice([2, 3])) if several else 1 + (schedule in V_SHAPED)
    pp = int(dice.choice([2, 2, 3, 4] if v > 1 else [1, 2, 2, 3, 4]))
    sharers = dp * cp
    zero = int(dice.integers(4))
    groups = [n for n in range(2, sharers) if sharers % n == 0]
    sp = bool(tp > 1 and dice.random() < 0.5)
    fields: dict[str, Any] = {
        "tp": tp,
        "sp": sp,
        "cp": cp,
        "dp": dp,
        "pp": pp,
        "ep": int(dice.choice([n for n in range(1, sharers + 1) if sharers % n == 0])),
        "etp": int(dice.choice([1, tp])) if sp else tp,
        "micro_batch": int(dice.choice([1, 1, 2])),
        "zero": zero,
        "zero_group": int(dice.choice([0, *groups])) if zero and dice.random() < 0.5 else 0,
        "order": [("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp")][dice.integers(2)],
        "schedule": schedule,
        "interleave": v,
    }
    point = Point(**(fields | fixed))
    parts = point.pp * point.interleave
    if parts > problem.layers:
        raise InputError("plan.pp", "must leave layers", parts, "lower it")
    inner = sorted(1 + dice.choice(problem.layers - 1, parts - 1, replace=False))
    cuts = (0, *map(int, inner), problem.layers)
    recompute = tuple(map(str, dice.choice(["none", "selective", "full"], point.pp)))
    offload = Offload()
    if dice.random() < 0.2:
        offload = Offload(optimizer=0.5)
    elif dice.random() < 0.2 and schedule in SCHEDULES[:3]:
        offload, recompute = Offload(activations=0.5), ("none",) * point.pp
    strategies: tuple[StageStrategy, ...] = ()
    if dice.random() < 0.3 and point.pp > 1 and schedule in ("1f1b", "gpipe", "zb_h1"):
        strategies = tuple(_strategy(dice, point) for _ in range(point.pp))
    return Plan(point, cuts, recompute, strategies, offload)


def _strategy(dice: np.random.Generator, point: Point) -> StageStrategy:
    """Return what a stage does, at times on more or fewer devices than the others."""
    tp, cp = (int(dice.choice([1, 1, 2, degree])) for degree in (point.tp, point.cp))
    sharers = point.dp * cp
    ep = int(dice.choice([n for n in range(1, sharers + 1) if sharers % n == 0]))
    return StageStrategy(tp, bool(tp > 1 and dice.random() < 0.5), cp, ep, int(dice.integers(4)))
