"""Offloading as an axis of the search, against every plan of small cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joint_instances import joint_instance
from oracle import Oracle
from planner_instances import Instance

from nest_core.costs import price
from nest_core.costs.schedules import DELAYS
from nest_core.planner import audit, search
from nest_core.workload.offload import NO_OFFLOAD, Offload

OPTIONS = (Offload(optimizer=1.0), Offload(activations=0.5), Offload(0.25, 0.5))
SEEDS = (1, 10, 12, 13, 18, 19, 24)


def opened(seed: int) -> Instance:
    """A joint instance in little memory, with a link to the host that may be worth its time."""
    instance = joint_instance(seed)
    dice = np.random.default_rng([seed, 19])
    busy = float(instance.problem.table(1, False, 1, 1, 1, 1).compute_s.mean())
    bytes_ = float(instance.problem.table(1, False, 1, 1, 1, 1).kept_bytes[0].mean())
    space = replace(instance.space, recompute=("none", "full")[: 1 + seed % 2])
    least = search(replace(instance.problem, memory_bytes=1.0), space).needed_bytes
    problem = replace(
        instance.problem,
        host_Bps=bytes_ / busy * dice.uniform(0.3, 3.0),
        memory_bytes=(least or instance.problem.memory_bytes) * dice.uniform(0.8, 1.2),
    )
    return replace(instance, problem=problem, space=replace(space, offload=(NO_OFFLOAD, *OPTIONS)))


def ranked(instance: Instance) -> list[float]:
    """Seconds of the best plan of every point under every offload, best first."""
    found = []
    for offload in instance.space.offload:
        space = instance.space
        if offload.activations:
            schedules = tuple(name for name in space.schedules if name not in DELAYS)
            space = replace(space, recompute=("none",), schedules=schedules)
        shares = (offload.activations, offload.optimizer)
        oracle = Oracle(instance.fabric, instance.problem, space, shares)
        found += [plan.seconds for plan in oracle.ranking()]
    return sorted(found)


@pytest.fixture(scope="module")
def solved():
    found = []
    for seed in SEEDS:
        instance = opened(seed)
        found.append((instance, search(instance.problem, instance.space)))
    return found


def test_the_plan_is_the_best_of_all_that_offload_or_not(solved):
    for instance, result in solved:
        seconds = ranked(instance)
        if not seconds:
            assert result.best is None, instance.seed
            continue
        assert result.best is not None, instance.seed
        assert result.best.iteration_s == pytest.approx(seconds[0], rel=1e-9), instance.seed
        assert price(instance.problem, result.best.plan) == result.best


def test_what_is_offloaded_is_chosen_somewhere(solved):
    chosen = {result.best.plan.offload for _, result in solved if result.best}
    assert chosen == {NO_OFFLOAD, *OPTIONS}


def test_points_of_all_offloads_are_in_the_certificate_and_in_the_audit(solved):
    for instance, result in solved[:2]:
        alone = [
            search(instance.problem, replace(instance.space, offload=(one,)))
            for one in instance.space.offload
        ]
        certificate = result.certificate
        assert certificate.points == sum(one.certificate.points for one in alone)
        known = certificate.solved + certificate.bounded + certificate.infeasible
        assert known == certificate.points
        assert certificate.proven
        best = [one.best.iteration_s for one in alone if one.best]
        assert (result.best.iteration_s if best else 0.0) == min(best, default=0.0)
        assert not audit(instance.problem, instance.space, result, 12, instance.seed).violations
