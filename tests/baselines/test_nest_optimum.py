"""The level-wise program against every plan of small problems, and against its own rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from small_problems import every_cut, small_problem

from nest_core.costs import RECOMPUTE, Point, check_plan, links, price, stage_costs
from nest_core.costs.problem import with_methods
from nest_core.network import collapse
from nest_core.network.error import levels_only
from nest_core.planner.levelwise import PAPER_ORDER, levelwise
from nest_core.topology import Hierarchical, Tier
from nest_core.workload.recomputation import ordered

SEEDS = range(28)
METHODS = ("block:1", "uniform:2")


def view(seed: int):
    """A small problem on its levels, with one replica and nothing tied.

    The program takes a tied copy's link at its outermost, and so may promise too much time.
    Every third has methods of full recomputation.
    """
    small = small_problem(seed)
    names = ordered(METHODS) if seed % 3 == 0 else RECOMPUTE
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
        recompute=("none", *METHODS) if seed % 3 == 0 else small.space.recompute,
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
                (entry.load(s, i, j, c), entry.sync_seconds(s, i, j, c))
                for entry in costs
                for c in rows.tolist()
                if entry.used(s, i, j, c) <= entry.limit * (1 + 1e-12)
            ]
        )
    best = np.inf
    for cap in {load for stage in every for load, _ in stage}:
        syncs = [min([e for t, e in stage if t <= cap], default=np.inf) for stage in every]
        best = min(best, (m + stages - 1) * cap + max(syncs))
    return best


@pytest.mark.parametrize("seed", SEEDS)
def test_it_finds_the_least_objective_of_all_plans(seed):
    problem, space = view(seed)
    found = levelwise(problem, space, rule=False)
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


def test_gaps_are_left_where_nodes_are_no_multiple_of_a_stage():
    """Three stages of two on three nodes of three: without a gap there is no plan."""
    problem, space = view(5)
    tiers = (Tier("node", 3, 80.0, 0.01), Tier("rack", 3, 20.0, 0.02))
    network = levels_only(collapse(Hierarchical("nine", tiers)))
    problem, space = replace(problem, network=network), replace(space, tp=(2,), pp=(3,))
    promise = levelwise(problem, space, rule=False).best[0]
    assert promise.seconds == pytest.approx(least(problem, space), rel=1e-9)
    assert least(problem, space, gaps=False) == np.inf
