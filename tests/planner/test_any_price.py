"""Prices of plans that the search does not reach, over concrete devices.

Context and expert parallelism, every schedule, every axis order and ZeRO stage, with slow hosts and
overlap, by the oracle that was written from docs/method.md alone (``oracle.py``).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from oracle import CHOICES, Oracle
from planner_instances import Instance, any_choice, any_picks, any_stages, large_instance

from nest_core.costs import (
    IDEAL_OVERLAP,
    NO_OVERLAP,
    Overlap,
    Plan,
    Point,
    Report,
    StageStrategy,
    links,
    price,
    stage_costs,
)
from nest_core.planner.baselines.baseline import PlanPrices
from nest_core.workload.offload import NO_OFFLOAD

pytestmark = pytest.mark.slow

_QUICK = range(7)
_MORE = range(7, 100)
_PLANS = 12
_AXES = ("dp", "tp", "pp", "cp", "ep", "etp", "micro_batch", "interleave")


def _close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def _priced(instance: Instance, oracle: Oracle, dice: np.random.Generator) -> Report:
    choice = any_choice(dice, instance)
    cuts, recompute = any_stages(dice, instance, choice)
    picks = any_picks(dice, choice) if dice.random() < 0.5 else ()
    strategies = tuple(StageStrategy(*pick) for pick in picks)
    report = price(instance.problem, Plan(Point(*choice), cuts, recompute, strategies))
    told = oracle.price(choice, cuts, recompute, picks)
    assert report.iteration_s == _close(told.seconds), (instance.seed, report.plan)
    for stage, mine in zip(report.stages, told.stages, strict=True):
        assert stage.micro_batch_s == _close(mine.seconds), (instance.seed, report.plan)
        assert stage.sync_s == _close(mine.sync), (instance.seed, report.plan)
        assert stage.memory.total == _close(mine.memory), (instance.seed, report.plan)
    fits = all(stage.memory <= instance.problem.memory_bytes for stage in told.stages)
    assert report.feasible == fits, (instance.seed, report.plan)
    return report


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(_QUICK, id="quick"),
        pytest.param(_MORE, id="more", marks=pytest.mark.check),
    ],
)
def reports(request) -> list[tuple[Instance, Report]]:
    """Random plans of random instances, each already held against the oracle."""
    found = []
    for seed in request.param:
        instance, dice = large_instance(seed), np.random.default_rng([seed, 21])
        oracle = instance.oracle
        found += [(instance, _priced(instance, oracle, dice)) for _ in range(_PLANS)]
    return found


def test_every_kind_of_plan_was_priced(reports):
    seen: Counter[str] = Counter()
    for instance, report in reports:
        point = report.plan.point
        table = instance.problem.table(
            point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp
        )
        experts, slow = table.expert_parameters.any(), table.launch_s.any()
        outer = point.order.index("cp") > point.order.index("dp")
        seen.update(
            name
            for name, there in {
                "ring": point.cp > 1 and table.calls["cp"].kind == "ring",
                "gathered": point.cp > 1 and table.calls["cp"].kind == "reduce_scatter",
                "experts": point.ep > 1 and bool(experts),
                "experts over tensor ranks": point.etp < point.tp and bool(experts),
                "wider experts": point.etp > point.tp and bool(experts),
                "experts inside dp": 1 < point.ep < point.dp * point.cp,
                "experts of dp first": point.ep > 1 and point.cp > 1 and outer and point.dp > 1,
                "gpipe": point.schedule == "gpipe" and point.pp > 1,
                "interleaved": point.interleave > 1,
                "interleaved tied": point.interleave > 1 and table.tied_parameters > 0,
                "sharded": point.zero == 3 and point.dp * point.cp > 1,
                "sharded by context": point.zero > 0 and point.dp == 1 and point.cp > 1,
                "copies of shards": point.zero_group > 0,
                "copies of experts' shards": point.zero_group > 0 and point.experts_apart,
                "launch": bool(slow),
                "overlap": instance.problem.overlap.name == "fitted",
                "ideal": instance.problem.overlap.name == "ideal",
                "library": instance.problem.software.between is not None,
                "mixed": len(set(report.plan.strategies)) > 1,
                "rails": point.device_order == "rail",
            }.items()
            if there
        )
    rare = {name: seen[name] for name in seen if seen[name] < len(reports) / 60}
    assert not rare
    assert len(seen) == 20, seen


def test_times_of_a_stage_add_up(reports):
    for instance, report in reports:
        for stage in report.stages:
            parts = (stage.compute_s, stage.recompute_s, stage.communication_s, stage.idle_s)
            assert sum(parts) == pytest.approx(report.iteration_s, rel=1e-9), instance.seed
            assert min(parts) >= -1e-9 * report.iteration_s, instance.seed
            assert 0 <= stage.launch_s <= stage.compute_s, instance.seed
        told = sum(seconds for _, seconds in report.terms)
        assert told == pytest.approx(report.iteration_s, rel=1e-9), instance.seed


def test_the_program_is_told_what_the_price_says(reports):
    """Load, synchronisation and memory by prefix sums, where a stage is one virtual stage."""
    compared = 0
    for instance, report in reports:
        problem, point = instance.problem, report.plan.point
        if point.interleave > 1:
            continue
        for s, stage in enumerate(report.stages):
            own = report.plan.stage_point(s)
            costs = stage_costs(problem, own, links(problem, own))
            c = CHOICES.index(stage.recompute)
            assert costs.load(s, stage.virtual_stages, c)[0] == _close(stage.micro_batch_s)
            assert costs.sync_seconds(s, stage.virtual_stages, c, stage.micro_batch_s) == _close(
                stage.sync_s
            )
            used = costs.used(s, stage.virtual_stages, c) * (1 + problem.fragmentation)
            used += problem.context_bytes(own) + own.communicators * problem.communicator_bytes
            assert used == _close(stage.memory.total), (instance.seed, own)
            compared += own.ep > 1
    assert compared > len(reports) / 7.5


def test_arrays_over_stages_are_the_price_to_the_bit(reports):
    """What random walks and Alpa-E compare: time, and whether it fits, over all axes.

    Whatever was priced before on the same problem.
    """
    schedules, axes, by_problem = Counter(), Counter(), {}
    for instance, report in reports:
        plan = report.plan
        if plan.strategies or plan.is_replayed or plan.offload != NO_OFFLOAD:
            continue
        problem, point = instance.problem, plan.point
        axes.update(axis for axis in _AXES if getattr(point, axis) > 1)
        axes["sp"] += point.sp
        prices = by_problem.setdefault(instance.seed, PlanPrices(problem))
        for zero in (point.zero, 1, 2, 3) if point.sharers > 1 else (point.zero,):
            other = replace(plan, point=replace(point, zero=zero))
            told = price(problem, other)
            assert prices.seconds(other) == told.iteration_s, (instance.seed, other.point)
            assert (prices.overflow(other) == 0.0) == told.feasible, (instance.seed, other.point)
        schedules[plan.point.schedule] += len(set(plan.recompute)) > 1
    assert min(schedules[name] for name in ("1f1b", "gpipe", "interleaved")) > 2, schedules
    assert min(axes[axis] for axis in (*_AXES, "sp")) > 2, axes


def test_virtual_stages_of_the_stages_cover_the_chain(reports):
    for instance, report in reports:
        spans = sorted(span for stage in report.stages for span in stage.virtual_stages)
        cuts = report.plan.cuts
        assert spans == list(pairwise(cuts)), instance.seed


@pytest.mark.parametrize("share", ["tp", "pp", "dp"])
def test_more_overlap_never_hurts_and_slower_compute_never_helps(reports, share):
    for instance, report in reports[::5]:
        base = Overlap("fitted", 0.3, 0.3, 0.3, 0.4)
        more = replace(base, **{share: 0.9})
        dearer = replace(base, slowdown=0.9)
        plain, better, worse = (
            price(replace(instance.problem, overlap=overlap), report.plan).iteration_s
            for overlap in (base, more, dearer)
        )
        assert better <= plain * (1 + 1e-12), instance.seed
        assert worse >= plain * (1 - 1e-12), instance.seed


def test_overlap_lies_between_none_and_ideal(reports):
    helped = 0
    for instance, report in reports[::5]:
        none, some, ideal = (
            price(replace(instance.problem, overlap=overlap), report.plan).iteration_s
            for overlap in (NO_OVERLAP, Overlap("fitted", 0.5, 0.5, 0.5, 0.2), IDEAL_OVERLAP)
        )
        assert ideal <= some * (1 + 1e-12), instance.seed
        assert some <= none * (1 + 1e-12), instance.seed
        helped += ideal < none * (1 - 1e-6)
    assert helped > len(reports) / 25
