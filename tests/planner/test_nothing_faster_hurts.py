"""Nothing that gets faster makes a plan, or the best plan, slower.

Random plans of random problems, and one resource of each faster: the kernels of some layers and
passes, the host, the optimizer, a level's bandwidth or latency, the communication library, or more
memory. Traffic hides behind compute, so quicker compute hides less of it; a price may come down by
less than the compute, never go up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from planner_instances import (
    Instance,
    any_choice,
    any_picks,
    any_stages,
    large_instance,
    random_instance,
)

from nest_core.costs import (
    IDEAL_OVERLAP,
    LayerTable,
    Overlap,
    Plan,
    Point,
    Problem,
    StageStrategy,
    price,
)
from nest_core.costs.software import Software
from nest_core.fabric import Tier
from nest_core.hardware.collectives import Curve
from nest_core.network import collapse
from nest_core.planner import search

Quicker = Callable[[Instance, np.random.Generator], Problem]

_OVERLAPS = (
    Overlap("fitted", 0.6, 0.6, 0.75),
    Overlap("fitted", 0.9, 0.9, 0.9, 0.3),
    Overlap("fitted", 0.3, 1.0, 1.0),
    IDEAL_OVERLAP,
)


def _factors(dice: np.random.Generator, layers: int) -> np.ndarray:
    """A factor for every layer, up to 1, and 1 for about half of them."""
    return np.where(dice.random(layers) < 0.5, 1.0, dice.uniform(0.0, 1.0, layers))


def _tables(problem: Problem, change: Callable[[LayerTable], LayerTable]) -> Problem:
    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        return change(problem.table(tp, sp, micro_batch, cp, ep, etp))

    return replace(problem, table=table, lower_bound=None)


def forward(instance: Instance, dice: np.random.Generator) -> Problem:
    """Kernels of some layers' forward passes, and of their replay."""
    factor = _factors(dice, instance.problem.layers)

    def change(table: LayerTable) -> LayerTable:
        quicker = table.forward_s * factor
        saved = table.forward_s - quicker
        return replace(
            table,
            forward_s=quicker,
            compute_s=table.compute_s - saved,
            replay_s=table.replay_s * factor,
        )

    return _tables(instance.problem, change)


def backward(instance: Instance, dice: np.random.Generator) -> Problem:
    """Kernels of some layers' backward passes."""
    factor = _factors(dice, instance.problem.layers)

    def change(table: LayerTable) -> LayerTable:
        own = (table.compute_s - table.forward_s) * factor
        return replace(table, compute_s=table.forward_s + own)

    return _tables(instance.problem, change)


def kernels(instance: Instance, dice: np.random.Generator) -> Problem:
    """All kernels alike, as on a quicker device."""
    factor = float(dice.uniform(0.2, 1.0))

    def change(table: LayerTable) -> LayerTable:
        return replace(
            table,
            compute_s=factor * table.compute_s,
            forward_s=factor * table.forward_s,
            replay_s=factor * table.replay_s,
        )

    return _tables(instance.problem, change)


def host(instance: Instance, dice: np.random.Generator) -> Problem:
    """Launches of some layers."""
    factor = _factors(dice, instance.problem.layers)
    return _tables(instance.problem, lambda table: replace(table, launch_s=table.launch_s * factor))


def optimizer(instance: Instance, dice: np.random.Generator) -> Problem:
    """Bytes per second of the optimizer step."""
    return replace(
        instance.problem, update_Bps=instance.problem.update_Bps * float(dice.uniform(1, 10))
    )


def bandwidth(instance: Instance, dice: np.random.Generator) -> Problem:
    """One level's bandwidth."""
    factor = float(dice.uniform(1, 10))
    return _level(
        instance, dice, lambda tier: replace(tier, bandwidth_Bps=factor * tier.bandwidth_Bps)
    )


def latency(instance: Instance, dice: np.random.Generator) -> Problem:
    """One level's latency."""
    factor = float(dice.uniform(0, 1))
    return _level(instance, dice, lambda tier: replace(tier, latency_s=factor * tier.latency_s))


def _level(
    instance: Instance, dice: np.random.Generator, change: Callable[[Tier], Tier]
) -> Problem:
    tiers = list(instance.fabric.tiers)
    at = int(dice.integers(len(tiers)))
    tiers[at] = change(tiers[at])
    return replace(instance.problem, network=collapse(replace(instance.fabric, tiers=tuple(tiers))))


def library(instance: Instance, dice: np.random.Generator) -> Problem:
    """What the communication library needs to begin, and for every step."""
    factor = float(dice.uniform(0, 1))

    def quicker(curve: Curve | None) -> Curve | None:
        if curve is None:
            return None
        regimes = tuple(
            replace(
                regime,
                base_s=tuple(factor * base for base in regime.base_s),
                step_s=factor * regime.step_s,
            )
            for regime in curve.regimes
        )
        return replace(curve, regimes=regimes)

    software = instance.problem.software
    return replace(
        instance.problem, software=Software(quicker(software.inside), quicker(software.between))
    )


def memory(instance: Instance, dice: np.random.Generator) -> Problem:
    """Memory per device."""
    return replace(
        instance.problem, memory_bytes=instance.problem.memory_bytes * float(dice.uniform(1, 4))
    )


RESOURCES: tuple[Quicker, ...] = (
    forward,
    backward,
    kernels,
    host,
    optimizer,
    bandwidth,
    latency,
    library,
    memory,
)


def _overlapping(instance: Instance, seed: int) -> Instance:
    overlap = _OVERLAPS[seed % len(_OVERLAPS)]
    return replace(instance, problem=replace(instance.problem, overlap=overlap))


def _plan(instance: Instance, dice: np.random.Generator) -> Plan:
    choice = any_choice(dice, instance)
    cuts, recompute = any_stages(dice, instance, choice)
    picks = any_picks(dice, choice) if dice.random() < 0.3 else ()
    return Plan(Point(*choice), cuts, recompute, tuple(StageStrategy(*pick) for pick in picks))


def _priced(seeds: range, plans: int) -> None:
    """Random plans, with each resource quicker; each helps some of them."""
    gained: Counter[str] = Counter()
    for seed in seeds:
        dice = np.random.default_rng([seed, 43])
        instance = _overlapping(large_instance(seed), seed)
        for _ in range(plans):
            plan = _plan(instance, dice)
            before = price(instance.problem, plan)
            # Compute that a faster forward pass spares hides less of what the backward pass sends,
            # and passes of uneven layouts wait for one another one by one.
            slack = 1e-3 if plan.is_replayed else 1e-12
            for resource in RESOURCES:
                after = price(resource(instance, dice), plan)
                told = seed, resource.__name__, plan
                assert after.iteration_s <= before.iteration_s * (1 + slack), told
                assert after.feasible >= before.feasible, told
                gained[resource.__name__] += after.iteration_s < before.iteration_s
    assert len(+gained) == len(RESOURCES) - 1, gained  # memory takes no time


def _searched(seeds: range) -> None:
    for seed in seeds:
        dice = np.random.default_rng([seed, 47])
        instance = _overlapping(random_instance(seed), seed)
        before = _best_s(instance.problem, instance)
        for resource in RESOURCES:
            after = _best_s(resource(instance, dice), instance)
            assert after <= before * (1 + 1e-12), (seed, resource.__name__)


def _best_s(problem: Problem, instance: Instance) -> float:
    best = search(problem, instance.space).best
    return best.iteration_s if best else float("inf")


def test_no_plan_gets_slower():
    _priced(range(6), 3)


@pytest.mark.check
def test_no_best_plan_gets_slower():
    _searched(range(6))


@pytest.mark.check
@pytest.mark.parametrize("part", range(4))
def test_no_plan_gets_slower_in_many_more(part):
    _priced(range(100 + 60 * part, 160 + 60 * part), 8)
    _searched(range(100 + 40 * part, 140 + 40 * part))
