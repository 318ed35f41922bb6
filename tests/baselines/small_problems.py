"""Small random problems, and every plan of them written down one by one.

Validity follows the words of docs/method.md, "The program"; prices are `nest_core.costs.price`'s.
Nothing here searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from nest_core.costs import (
    RECOMPUTE,
    Calls,
    LayerTable,
    Plan,
    Point,
    Problem,
    StageCosts,
    StageStrategy,
    StateBytes,
    links,
    stage_costs,
)
from nest_core.costs.schedules import iteration_seconds
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.planner import ORDERS, SearchSpace

__all__ = [
    "Priced",
    "Small",
    "every_cut",
    "every_mixed_plan",
    "every_plan",
    "every_point",
    "fastest",
    "small_problem",
]

SHAPES = ((2, 2), (4, 2), (2, 2, 2), (2, 3), (4,), (3, 2), (2, 4))


@dataclass(frozen=True)
class Small:
    """A problem, its fabric's shape and its space."""

    shape: tuple[int, ...]
    problem: Problem
    space: SearchSpace


def small_problem(seed: int, *, experts: bool = False, axes: dict[str, object] | None = None):
    """Up to 8 devices and 6 layers, memory somewhere among what plans need; a seed's own."""
    dice = np.random.default_rng([seed, 77])
    shape = SHAPES[seed % len(SHAPES)]
    layers = int(dice.integers(4, 7))
    batch = int(dice.choice([2, 4, 8, 12, 24]))
    tiers, bandwidth = [], float(dice.uniform(20, 120))
    for number, size in enumerate(shape):
        own = "device" if dice.random() < 0.5 else "child"
        ratio = float(dice.choice([1.0, 2.0, 4.0]))
        tiers.append(Tier(f"tier {number}", size, bandwidth, 0.01 * (number + 1), own, ratio))
        bandwidth *= float(dice.uniform(0.1, 0.8))
    fabric = Hierarchical(f"small {shape}", tuple(tiers))
    problem = Problem(
        network=collapse(fabric),
        table=random_tables(seed, layers, experts),
        batch=batch,
        tokens=16,
        memory_bytes=float(dice.uniform(60, 500)) * (2.5 if experts else 1.0),
        reserved_bytes=2.0,
        state=StateBytes(2.0, 4.0, 12.0),
        update_Bps=200.0,
        model_flops=1.0,
        peak_flops=1.0,
        fragmentation=0.05,
    )
    devices = fabric.devices
    space = SearchSpace(
        tp=(1, 2, 4),
        sp=(False, True),
        dp=tuple(range(1, devices + 1)),
        pp=tuple(range(1, min(layers, devices) + 1)),
        micro_batch=(1, 2),
        zero=(0, 1, 3),
        orders=ORDERS,
    )
    return Small(shape, problem, replace(space, **(axes or {})))


def random_tables(seed: int, layers: int, experts: bool):
    """Tables drawn strategy by strategy, so that no two plans take equally long."""
    dice = np.random.default_rng([seed, 3])
    seconds = dice.uniform(0.5, 2.0, layers)
    weights = dice.uniform(0.5, 5.0, layers) * dice.choice([0.5, 1.0, 3.0])
    kept = dice.uniform(5.0, 40.0, layers)
    whole = dice.choice([0.0, 3.0, 30.0])
    inside = dice.uniform(5.0, 80.0, layers) * dice.choice([0.1, 0.6, 2.0])
    made: dict[tuple[int, ...], LayerTable] = {}

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        key = (tp, int(sp), micro_batch, cp, ep)
        if key not in made:
            own = np.random.default_rng([seed, *key])
            made[key] = drawn(own, tp, sp, micro_batch, cp, ep)
        return made[key]

    def drawn(own, tp: int, sp: bool, micro_batch: int, cp: int, ep: int) -> LayerTable:
        stray = own.uniform(0.9, 1.1, layers)
        compute = seconds * micro_batch**0.8 / (tp * cp) ** 0.9 * stray
        activations = kept * micro_batch / cp / (tp if sp else tp**0.5)
        held = np.stack([activations, activations * 0.5, activations * 0.1])
        nothing = np.zeros(layers)
        calls = {}
        for axis, degree, kind, scale in (
            ("tp", tp, "reduce_scatter" if sp else "all_reduce", 1.0),
            ("cp", cp, "ring", 0.7),
            ("ep", ep, "all_to_all", 0.5),
        ):
            if degree > 1:
                sent = scale * inside * micro_batch * own.uniform(0.8, 1.2, layers)
                number = np.full(layers, 2.0)
                calls[axis] = Calls(
                    kind,
                    number,
                    sent,
                    np.stack([nothing, nothing, number / 2]),
                    np.stack([nothing, nothing, sent / 2]),
                )
        edge = np.full(layers + 1, whole * micro_batch / cp)
        edge[[0, -1]] = 0.0
        return LayerTable(
            compute_s=compute,
            forward_s=compute / 3,
            weight_s=compute / 4,
            replay_s=compute * np.array([[0.0], [0.02], [0.25]]) * stray,
            launch_s=np.zeros((3, layers)),
            calls=calls,
            parameters=weights / tp,
            expert_parameters=weights / ep * (1.5 if experts else 0.0),
            tied_parameters=float(min(weights[0], weights[-1]) / tp) if seed % 3 == 0 else 0.0,
            kept_bytes=held,
            working_bytes=activations - held,
            boundary_bytes=edge,
        )

    return table


def every_point(problem: Problem, space: SearchSpace) -> Iterator[Point]:
    """Valid points; several may place their ranks alike."""
    devices, plain = problem.network.devices, [s for s in space.schedules if s != "interleaved"]
    for tp, sp, cp, ep, dp, pp, micro, zero in product(
        space.tp, space.sp, space.cp, space.ep, space.dp, space.pp, space.micro_batch, space.zero
    ):
        used, sharers = tp * cp * dp * pp, dp * cp
        if used > devices or (used < devices and not space.idle_devices):
            continue
        if problem.batch % (dp * micro) or sharers % ep or pp > problem.layers:
            continue
        if (sp and tp == 1) or (sharers == 1 and zero != min(space.zero)):
            continue
        rounds = problem.batch // (dp * micro) % pp == 0
        alone = [name for name in plain if name == "1f1b" or "1f1b" not in plain]
        schedules = [(name, 1) for name in (plain if pp > 1 else alone)]
        if "interleaved" in space.schedules and pp > 1 and rounds:
            schedules += [("interleaved", v) for v in space.interleave if v > 1]
        for (schedule, v), order, host_mapping in product(
            schedules, space.orders, space.device_orders
        ):
            point = Point(
                tp,
                sp,
                dp,
                pp,
                micro,
                zero if sharers > 1 else 0,
                order,
                host_mapping,
                cp,
                ep,
                schedule,
                v,
            )
            if any(every_cut(problem.layers, point)):
                yield point


def every_cut(layers: int, point: Point) -> Iterator[tuple[int, ...]]:
    """All cuts, or of interleaved points those into equal virtual stages of blocks or of layers."""
    virtual_stages = point.pp * point.interleave
    if point.schedule != "interleaved":
        for inner in combinations(range(1, layers), virtual_stages - 1):
            yield (0, *inner, layers)
        return
    if layers % virtual_stages == 0:
        yield tuple(range(0, layers + 1, layers // virtual_stages))
    if (layers - 2) % virtual_stages == 0 and layers > 2:
        each = (layers - 2) // virtual_stages
        yield (0, *(1 + each * virtual_stage for virtual_stage in range(1, virtual_stages)), layers)


def every_plan(problem: Problem, space: SearchSpace) -> Iterator[Plan]:
    """Plans whose stages have one strategy."""
    for point in every_point(problem, space):
        for cuts in every_cut(problem.layers, point):
            for recompute in product(space.recompute, repeat=point.pp):
                yield Plan(point, cuts, recompute)


def every_mixed_plan(problem: Problem, space: SearchSpace) -> Iterator[Plan]:
    """Plans whose stages each have their own ZeRO stage and sequence parallelism."""
    for point in every_point(problem, space):
        zeros = sorted(set(space.zero)) if point.sharers > 1 else [0]
        if point.zero != zeros[0] or point.sp != min(space.sp):
            continue  # one of the points that differ in nothing else stands for all
        own = [
            StageStrategy(point.tp, sp, point.cp, point.ep, zero)
            for sp, zero in product([sp for sp in space.sp if point.tp > 1 or not sp], zeros)
        ]
        for plan_cuts in every_cut(problem.layers, point):
            for recompute in product(space.recompute, repeat=point.pp):
                for strategies in product(own, repeat=point.pp):
                    yield Plan(point, plan_cuts, recompute, strategies)


class Priced:
    """`nest_core.costs.price`'s time and memory of many plans, stage by stage."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._costs: dict[Point, StageCosts] = {}

    def __call__(self, plan: Plan) -> tuple[float, bool]:
        """Seconds of an iteration, and whether every stage fits."""
        loads, hidden = np.array(
            [
                self._of(plan.stage_point(s)).load(
                    s, plan.virtual_stages(s), RECOMPUTE.index(plan.recompute[s])
                )
                for s in range(plan.point.pp)
            ]
        ).T
        syncs, fits = [], True
        for s in range(plan.point.pp):
            costs = self._of(plan.stage_point(s))
            virtual_stages, c = plan.virtual_stages(s), RECOMPUTE.index(plan.recompute[s])
            pace = max(loads) if plan.point.interleave > 1 else loads[s]
            syncs.append(costs.sync_seconds(s, virtual_stages, c, pace))
            kept = sum(costs.kept[c, j] - costs.kept[c, i] for i, j in virtual_stages)
            peak = max(costs.peak[c, i:j].max() for i, j in virtual_stages)
            static = sum(costs.static[j] - costs.static[i] for i, j in virtual_stages)
            step = sum(costs.step[j] - costs.step[i] for i, j in virtual_stages)
            used = static + max(costs.in_flight[s] * kept + peak, step)
            fits = fits and used <= costs.limit
        m = plan.point.micro_batches(self.problem.batch)
        seconds = iteration_seconds(
            plan.point, m, loads, np.zeros(len(loads)), hidden, np.array(syncs)
        )
        return seconds, bool(fits)

    def _of(self, point: Point) -> StageCosts:
        if point not in self._costs:
            self._costs[point] = stage_costs(self.problem, point, links(self.problem, point))
        return self._costs[point]


def fastest(problem: Problem, plans: Iterable[Plan]) -> float:
    """The least time of a plan that fits; infinite if none does."""
    priced = Priced(problem)
    return min((seconds for seconds, fits in map(priced, plans) if fits), default=float("inf"))
