"""The level-wise program against every plan of small problems, and against its own rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, count, pairwise, product

import numpy as np
import pytest
from small_problems import SHAPES, every_cut, small_problem

from nest_core.costs import (
    RECOMPUTE,
    Plan,
    Point,
    StageStrategy,
    check_plan,
    links,
    price,
    stage_costs,
)
from nest_core.costs.overlap import Overlap
from nest_core.costs.problem import with_methods
from nest_core.costs.ragged import plan_links
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.network.patterns import levels_only
from nest_core.planner.levelwise import PAPER_ORDER, levelwise
from nest_core.planner.levelwise.limits import _first
from nest_core.planner.program import Choices, cost_tables
from nest_core.workload.recomputation import ordered

SEEDS = range(28)
METHODS = ("block:1", "uniform:2")


def view(seed: int, *, by_method: bool):
    """A small problem on its levels, with one replica and nothing tied.

    The program takes a tied copy's link at its outermost, and so may promise too much time.
    """
    small = small_problem(seed)
    names = ordered(METHODS) if by_method else RECOMPUTE
    problem = replace(
        small.problem,
        network=levels_only(small.problem.network),
        table=lambda *key: with_methods(
            replace(small.problem.table(*key), tied_parameters=0.0), names
        ),
        lower_bound=None,
        recomputations=names,
    )
    deepest = 3 if problem.network.devices > 6 else 6
    return problem, replace(
        small.space,
        tp=(1, 2),
        dp=(1,),
        pp=tuple(depth for depth in small.space.pp if depth <= deepest),
        micro_batch=(1,),
        orders=(PAPER_ORDER,),
        zero=(0,),
        recompute=("none", *METHODS) if by_method else small.space.recompute,
    )


def starts(problem, width: int, stages: int, *, gaps: bool):
    """Every ascending choice of first devices, from the last stage on, that the rule allows."""
    network = problem.network
    sizes = [np.bincount(block).max() for block in network.nesting]
    level = next(n for n, size in enumerate(sizes) if size >= width)
    group = network.nesting[level]
    free = [
        at
        for at in range(network.devices - width + 1)
        if len(set(group[at : at + width].tolist())) == 1
    ]
    for chosen in combinations(free, stages):
        apart = [b - a for a, b in pairwise(chosen)]
        if min(apart, default=width) >= width and (gaps or all(one == width for one in apart)):
            yield chosen


def least(problem, space, *, gaps: bool = True) -> float:
    """The paper's objective of the best plan, by enumeration of places, cuts and choices."""
    best, m = np.inf, problem.batch
    for width, stages in product(space.tp, space.pp):
        if width * stages > problem.network.devices:
            continue
        for chosen in starts(problem, width, stages, gaps=gaps):
            ranks = [at + w for at in chosen for w in range(width)]
            costs = []
            for sp in space.sp if width > 1 else (False,):
                point = Point(width, sp, 1, stages, 1, 0, PAPER_ORDER, tuple(ranks))
                costs.append(stage_costs(problem, point, links(problem, point)))
            for cuts in every_cut(problem.layers, point):
                best = min(best, objective(costs, cuts, stages, m, problem.rows(space.recompute)))
    return best


def objective(costs, cuts, stages: int, m: int, rows) -> float:
    """``(m + S - 1) max t + max e`` with the best choice of every stage."""
    every = []
    for s in range(stages):
        i, j = cuts[s], cuts[s + 1]
        every.append(
            [
                (
                    (load := entry.load(s, ((i, j),), c)[0]),
                    entry.sync_seconds(s, ((i, j),), c, load),
                )
                for entry in costs
                for c in rows.tolist()
                if entry.used(s, ((i, j),), c) <= entry.limit * (1 + 1e-12)
            ]
        )
    best = np.inf
    for cap in {load for stage in every for load, _ in stage}:
        syncs = [min([e for t, e in stage if t <= cap], default=np.inf) for stage in every]
        best = min(best, (m + stages - 1) * cap + max(syncs))
    return best


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sampled(3)
def test_it_finds_the_least_objective_of_all_plans(seed):
    problem, space = view(seed, by_method=seed % 3 == 0)
    found = levelwise(problem, space, rule=False, unequal=False)
    assert found.proven
    enumerated = least(problem, space)
    if not found.best:
        assert enumerated == np.inf
        return
    promise = found.best[0]
    assert promise.seconds == pytest.approx(enumerated, rel=1e-9)
    check_plan(problem, promise.plan)
    report = price(problem, promise.plan)
    assert report.feasible
    loads = [stage.micro_batch_s for stage in report.stages]
    late = max(stage.sync_s for stage in report.stages)
    m, depth = problem.batch, len(loads)
    assert promise.seconds == pytest.approx((m + depth - 1) * max(loads) + late, rel=1e-9)
    assert report.iteration_s <= promise.seconds * (1 + 1e-9)


@pytest.mark.parametrize("seed", [1, 2, 5, 6, 12, 13])
def test_under_caps_the_longest_stage_is_found(seed):
    """Where layers send unequally much and traffic hides, a shorter one may be over a cap."""
    problem, _ = view(seed, by_method=seed % 3 == 0)
    dice = np.random.default_rng([seed, 5])
    edge = np.pad(dice.uniform(0.0, 60.0, problem.layers - 1), 1)
    made = problem.table
    problem = replace(
        problem,
        table=lambda *key: replace(made(*key), boundary_bytes=edge),
        overlap=Overlap("fitted", 0.4, 0.7, 1.0),
    )
    point = Point(1, False, 2, 2, 1, 0, PAPER_ORDER)
    costs = stage_costs(problem, point, links(problem, point))
    # Every other boundary takes longer to cross, so that a shorter stage may take longer.
    crossed = costs.arrive[[1, 1]] * (1 + 99 * (np.arange(problem.layers + 1) % 2))
    costs = replace(costs, arrive=crossed, sync=3 * costs.sync, once=3 * costs.once)
    t = cost_tables(Choices.of((costs,), problem.rows(problem.recomputations)))
    least_arrive, late = float(t.arrive[0, 1, 1:-1].min()), 0
    for c, j in product(range(len(problem.recomputations)), range(2, problem.layers)):
        spans = [((i, j),) for i in range(1, j)]
        loads = [costs.load(0, span, c)[0] for span in spans]
        syncs = [
            costs.sync_seconds(0, span, c, load) for span, load in zip(spans, loads, strict=True)
        ]
        for cap, sync_cap in product(loads, [*syncs, np.inf]):
            caps = cap * (1 + 1e-9), sync_cap * (1 + 1e-9)
            under = [load <= caps[0] and e <= caps[1] for load, e in zip(loads, syncs, strict=True)]
            longest = under.index(True) + 1 if any(under) else j
            assert _first(t, c, j, (1, 0), least_arrive, caps, (1, j)) == longest
            late += not all(under[longest - 1 :])
    assert late  # a shorter one was over a cap


def test_gaps_are_left_where_nodes_are_no_multiple_of_a_stage():
    """Three stages of two on three nodes of three: without a gap there is no plan."""
    problem, space = view(5, by_method=False)
    tiers = (Tier("node", 3, 80.0, 0.01), Tier("rack", 3, 20.0, 0.02))
    network = levels_only(collapse(Hierarchical("nine", tiers)))
    problem, space = replace(problem, network=network), replace(space, tp=(2,), pp=(3,))
    promise = levelwise(problem, space, rule=False).best[0]
    assert promise.seconds == pytest.approx(least(problem, space), rel=1e-9)
    assert least(problem, space, gaps=False) == np.inf


def placements(problem, space):
    """Widths and first devices of all stages, first stage first, equal or not, with any gaps."""
    network = problem.network
    sizes = [np.bincount(block).max() for block in network.nesting]
    free = {}
    for width in space.tp:
        level = next((n for n, size in enumerate(sizes) if size >= width), None)
        group = None if level is None else network.nesting[level]
        free[width] = [
            at
            for at in range(network.devices - width + 1)
            if group is not None and len(set(group[at : at + width].tolist())) == 1
        ]

    def after(stages: int, first: int):
        if not stages:
            yield ()
            return
        for width in space.tp:
            for at in free[width]:
                if at >= first:
                    for rest in after(stages - 1, at + width):
                        yield ((width, at), *rest)

    for stages in space.pp:
        yield from after(stages, 0)


def least_unequal(problem, space) -> dict[tuple[bool, bool], float]:
    """The paper's objective at its best, by whether widths differ and devices are left between.

    Every stage is priced on its own devices, by `nest_core.costs` on the level network.
    """
    best: dict[tuple[bool, bool], float] = {}
    m, made = problem.batch, {}
    for stages in placements(problem, space):
        if not space.idle_devices and sum(width for width, _ in stages) < problem.network.devices:
            continue
        ranks = tuple(at + w for width, at in stages for w in range(width))
        costs = []  # by stage and sequence parallelism
        for s, (width, _) in enumerate(stages):
            near = stages[max(0, s - 1) : s + 2], s, len(stages)
            for sp in space.sp if width > 1 else (False,):
                if (near, sp) not in made:
                    made[near, sp] = stage_of(problem, stages, s, sp, ranks)
                costs.append((s, made[near, sp]))
        apart = any(a + width < b for (width, a), (_, b) in pairwise(stages))
        kind = len({width for width, _ in stages}) > 1, apart
        for cuts in combinations(range(1, problem.layers), len(stages) - 1):
            found = objective_of(costs, (0, *cuts, problem.layers), len(stages), m)
            best[kind] = min(best.get(kind, np.inf), found)
    return best


def stage_of(problem, stages, s: int, sp: bool, ranks):
    """Costs of one stage among its neighbours, on their own devices."""
    strategies = tuple(StageStrategy(width, sp and width > 1, 1, 1, 0) for width, _ in stages)
    first = strategies[0]
    point = Point(first.tp, first.sp, 1, len(stages), 1, 0, PAPER_ORDER, ranks)
    plan = Plan(point, (), ("none",) * len(stages), strategies)
    at = plan.stage_point(s)
    return stage_costs(problem, at, plan_links(problem, plan, at))


def objective_of(costs, cuts, stages: int, m: int) -> float:
    """``(m + S - 1) max t + max e`` with the best choice of every stage."""
    every = [[] for _ in range(stages)]
    for s, entry in costs:
        i, j = cuts[s], cuts[s + 1]
        every[s] += [
            ((load := entry.load(s, ((i, j),), c)[0]), entry.sync_seconds(s, ((i, j),), c, load))
            for c in range(len(RECOMPUTE))
            if entry.used(s, ((i, j),), c) <= entry.limit * (1 + 1e-12)
        ]
    best = np.inf
    for cap in {load for stage in every for load, _ in stage}:
        syncs = [min([e for t, e in stage if t <= cap], default=np.inf) for stage in every]
        best = min(best, (m + stages - 1) * cap + max(syncs))
    return best


BOTH = (6, 66, 115, 125)
"""Their optima have unequal widths and a gap, and nothing else reaches them."""


def unequal_view(seed: int):
    """Two or three widths; none that cuts across blocks, which levels do not tell apart."""
    problem, space = view(seed, by_method=False)
    tp = (1, 2, 4) if SHAPES[seed % len(SHAPES)] in ((2, 2), (4, 2), (2, 2, 2), (4,)) else (1, 2)
    return problem, replace(space, tp=tp, pp=tuple(depth for depth in space.pp if depth <= 3))


@pytest.mark.parametrize("whole", [False, True], ids=["idle", "whole"])
@pytest.mark.parametrize(
    "seed",
    [*range(9), *BOTH[1:], *(pytest.param(n, marks=pytest.mark.check) for n in range(9, 60))],
)
@pytest.mark.sampled(4)
def test_unequal_widths_find_the_least_objective_of_all_plans(seed, whole):
    problem, space = unequal_view(seed)
    space = replace(space, idle_devices=not whole)
    found = levelwise(problem, space, rule=False)
    enumerated = least_unequal(problem, space)
    best = min(enumerated.values(), default=np.inf)
    assert found.proven
    if seed in BOTH and not whole:
        others = [least for kind, least in enumerated.items() if kind != (True, True)]
        assert best < min(others) * (1 - 1e-3)
    if not found.best:
        assert best == np.inf
        return
    promise = found.best[0]
    assert promise.seconds == pytest.approx(best, rel=1e-9)
    check_plan(problem, promise.plan)
    report = price(problem, promise.plan)
    assert report.feasible
    loads = [stage.micro_batch_s for stage in report.stages]
    late = max(stage.sync_s for stage in report.stages)
    m, depth = problem.batch, len(loads)
    assert promise.seconds == pytest.approx((m + depth - 1) * max(loads) + late, rel=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 4, 8, 16])
def test_replicas_of_unequal_stages_take_no_longer_than_promised(seed):
    problem, space = unequal_view(seed)
    problem = replace(problem, memory_bytes=4 * problem.memory_bytes)
    found = levelwise(problem, replace(space, dp=(2,), zero=(0, 1)))
    for promise in found.best:
        check_plan(problem, promise.plan)
        report = price(problem, promise.plan)
        assert report.feasible
        assert report.iteration_s <= promise.seconds * (1 + 1e-9)


def test_stages_that_gather_their_weights_take_no_longer_than_promised():
    """Two replicas, with memory that some stages fit into under ZeRO 3 alone."""
    gathered = 0
    for seed, share in product(range(14), (0.3, 0.5, 0.7, 1.0)):
        problem, space = view(seed, by_method=False)
        problem = replace(problem, memory_bytes=share * problem.memory_bytes)
        space = replace(space, dp=(2,), zero=(0, 3), pp=(2, 3))
        for promise in levelwise(problem, space, unequal=False).best:
            points = [promise.plan.stage_point(s) for s in range(promise.plan.point.pp)]
            gathered += any(point.zero == 3 for point in points)
            report = price(problem, promise.plan)
            assert report.iteration_s <= promise.seconds * (1 + 1e-9)
    assert gathered > 3


@pytest.mark.parametrize("seed", [12, 22, 68])
def test_stages_of_unequal_width_have_zero_groups_of_their_own(seed):
    """A group of two is part of four sharers on the wide stage, and all on the narrow one."""
    problem, space = unequal_view(seed)
    problem = replace(problem, memory_bytes=4 * problem.memory_bytes)
    found = levelwise(problem, replace(space, dp=(2,), cp=(1, 2), zero=(3,), zero_groups=(2,)))
    groups = []
    for promise in found.best:
        check_plan(problem, promise.plan)
        report = price(problem, promise.plan)
        assert report.feasible
        assert report.iteration_s <= promise.seconds * (1 + 1e-9)
        points = [promise.plan.stage_point(s) for s in range(promise.plan.point.pp)]
        groups += [{p.zero_group for p in points}] * promise.plan.ragged
        assert all(p.zero_group == (2 if p.sharers == 4 else 0) for p in points)
    assert {0, 2} in groups


def test_without_a_time_limit_it_ends_at_the_same_strategy_everywhere(monkeypatch):
    """Whatever the clock says; what it leaves is told as a gap."""
    problem, space = unequal_view(1)
    least = levelwise(problem, space).best[0].seconds
    fast, slow = (count(step=step).__next__ for step in (0, 1000))
    for share in (0.02, 0.1, 0.5):
        monkeypatch.setattr("nest_core.planner.levelwise.program._PRICED_S", share)
        early = levelwise(problem, space, clock=fast)
        assert early == levelwise(problem, space, clock=slow)
        assert early.lower_bound_s <= least * (1 + 1e-9)
    monkeypatch.setattr("nest_core.planner.levelwise.program._PRICED_S", 0.002)
    assert not levelwise(problem, space).proven


def test_whenever_it_is_stopped_it_says_what_is_left():
    """A second passes at every look at the clock."""
    problem, space = unequal_view(1)
    least = levelwise(problem, space).best[0].seconds
    for limit in range(200):
        found = levelwise(problem, space, time_limit_s=limit, clock=count().__next__)
        assert found.lower_bound_s <= least * (1 + 1e-9)
        assert found.best or limit or not found.proven
        if found.proven:
            assert found.best[0].seconds == pytest.approx(least, rel=1e-9)
            return
    pytest.fail("it was never done")
