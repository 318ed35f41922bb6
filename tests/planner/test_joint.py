"""The planner's joint space against every plan of small cases, priced over concrete devices.

Degrees on all axes, schedules, strategies that differ from stage to stage, orders and idle devices:
what may be chosen is read from the documented set of plans by the oracle (``oracle.py``), which
shares no code with the planner or its costs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from joint_instances import LEFT, MOST_PLANS, choices_left, joint_instance, random_joint_plan
from oracle import Choice, Found, Oracle, Pick
from planner_instances import Instance

from nest_core.costs import Plan, Point, Report, StageStrategy, price
from nest_core.planner import SearchResult, audit, search
from nest_core.planner.search import _frontier

pytestmark = pytest.mark.slow

_QUICK = range(4, 17)
_MORE = (*range(4), *range(17, 120))
_ALL = 1_200
_LEAST = 200


@dataclass(frozen=True)
class Case:
    """A problem, the best plan of each of its points by the oracle, and the planner's answer."""

    instance: Instance
    oracle: Oracle
    choices: list[Choice]
    ranking: list[Found]
    result: SearchResult

    @property
    def name(self) -> str:
        """For messages."""
        return f"joint seed {self.instance.seed}"

    @property
    def optimum(self) -> float:
        """Seconds; infinite where nothing fits."""
        return self.ranking[0].seconds if self.ranking else float("inf")


def _case(seed: int) -> Case:
    instance = joint_instance(seed)
    oracle = instance.oracle
    result = search(instance.problem, instance.space)
    return Case(instance, oracle, list(oracle.choices()), oracle.ranking(), result)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(_QUICK, id="quick"),
        pytest.param(_MORE, id="more", marks=pytest.mark.check),
    ],
)
def cases(request) -> list[Case]:
    return [_case(seed) for seed in request.param]


def _close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def _choice(point: Point) -> Choice:
    return Choice(*(getattr(point, name) for name in Choice._fields))


def _outer(choice: Choice, *, mixed: bool) -> Choice:
    """A point; where stages may differ, without what only names its first strategy."""
    if not mixed:
        return choice
    return choice._replace(tp=choice.width, cp=1, sp=False, ep=1, zero=0, etp=0, zero_group=0)


def _picks(plan: Plan) -> tuple[Pick, ...]:
    point = plan.point
    if plan.strategies:
        return tuple(
            Pick(*(getattr(one, name) for name in Pick._fields)) for one in plan.strategies
        )
    return (Pick(*(getattr(point, name) for name in Pick._fields)),) * point.pp


def _compare(report: Report, oracle: Oracle, name: str) -> None:
    """A priced plan, number by number."""
    plan = report.plan
    told = oracle.price(_choice(plan.point), plan.cuts, plan.recompute, _picks(plan))
    assert report.iteration_s == _close(told.seconds), f"{name}: {plan}"
    for stage, mine in zip(report.stages, told.stages, strict=True):
        assert stage.micro_batch_s == _close(mine.seconds), f"{name}: {plan}"
        assert stage.sync_s == _close(mine.sync), f"{name}: {plan}"
        assert stage.memory.total == _close(mine.memory), f"{name}: {plan}"
    fits = all(stage.memory <= oracle.problem.memory_bytes for stage in told.stages)
    assert report.feasible == fits, f"{name}: {plan}"


def _listed(case: Case, plan: Plan) -> None:
    """The plan is one of those that the space has."""
    oracle, mixed = case.oracle, case.instance.space.mixed
    own = _outer(_choice(plan.point), mixed=mixed)
    points = [choice for choice in case.choices if _outer(choice, mixed=mixed) == own]
    assert len(points) == 1, f"{case.name}: {plan}"
    assert set(_picks(plan)) <= set(oracle.picks(points[0])), f"{case.name}: {plan}"
    assert plan.cuts in set(oracle.cuts(points[0])), f"{case.name}: {plan}"
    assert set(plan.recompute) <= set(case.instance.space.recompute), f"{case.name}: {plan}"
    assert mixed or not plan.strategies, f"{case.name}: {plan}"


def _check(case: Case) -> None:
    """Best time, its price, the certificate, and whether there is a plan at all."""
    best, told = case.result.best, case.result.certificate
    assert told.proven, case.name
    assert told.points == len(case.choices), case.name
    assert told.points == told.solved + told.bounded + told.infeasible, case.name
    assert told.infeasible <= told.points - len(case.ranking), case.name
    assert case.ranking or told.infeasible == told.points, case.name
    if not case.ranking or best is None:
        assert not case.ranking, f"{case.name}: the planner missed {case.ranking[0]}"
        assert best is None, f"{case.name}: {best.plan} does not fit"
        return
    assert best.iteration_s == _close(case.optimum), (
        f"{case.name}: {best.plan} for {case.ranking[0]}"
    )
    assert told.lower_bound_s <= case.optimum * (1 + 1e-12), case.name
    assert told.gap == pytest.approx(0, abs=1e-12), case.name
    assert best.feasible, case.name
    _listed(case, best.plan)
    _compare(price(case.instance.problem, best.plan), case.oracle, case.name)


# --- the optimum --------------------------------------------------------------------------------


def test_the_plan_is_the_best_of_the_joint_space(cases):
    for case in cases:
        _check(case)


def test_every_axis_is_open_in_the_quick_cases(cases):
    left = Counter(axis for case in cases for axis in choices_left(case.oracle))
    assert {axis: left[axis] for axis in LEFT if left[axis] < 0.1 * len(cases)} == {}


@pytest.mark.check
def test_the_plan_is_the_best_of_the_joint_space_in_a_thousand_cases():
    """Whatever is open: each axis in two hundred cases or more; its best value is not the first."""
    left: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for seed in range(_ALL):
        case = _case(seed)
        _check(case)
        _audited(case)
        left.update(choices_left(case.oracle))
        used.update(_worth(case))
        assert 0 < sum(map(case.oracle.count, case.choices)) <= MOST_PLANS, case.name
    assert {axis: left[axis] for axis in LEFT if left[axis] < _LEAST} == {}
    assert {axis: used[axis] for axis in LEFT if used[axis] < 0.03 * _ALL} == {}


def _worth(case: Case) -> set[str]:
    """Axes on which the best plan takes what it would not have by default."""
    if not case.ranking:
        return set()
    best, space = case.ranking[0], case.instance.space
    choice, lengths = best.choice, [end - first for first, end in pairwise(best.cuts)]
    slack = case.oracle.layers % choice.pp > 0
    return {
        name
        for name, there in {
            "dp": choice.dp > 1,
            "tp": max(pick.tp for pick in best.picks) > 1,
            "pp": choice.pp > 1,
            "cp": max(pick.cp for pick in best.picks) > 1,
            "ep": max(pick.ep for pick in best.picks) > 1,
            "etp": any(pick.etp != pick.tp for pick in best.picks),
            "sp": any(pick.sp for pick in best.picks),
            "zero": any(pick.zero for pick in best.picks),
            "zero_group": any(pick.zero_group for pick in best.picks),
            "recompute": set(best.recompute) != {"none"},
            "micro_batch": choice.micro_batch > 1,
            "schedule": choice.schedule != "1f1b",
            "interleave": choice.interleave > 1,
            "order": choice.order != space.orders[0],
            "device_order": choice.device_order != space.device_orders[0],
            "idle_devices": choice.devices < case.oracle.devices,
            "uneven cuts": choice.interleave == 1 and max(lengths) - min(lengths) > slack,
            "mixed": len(set(best.picks)) > 1,
            "as_needed": space.as_needed and _joint_is_faster(case),
        }.items()
        if there
    }


def _joint_is_faster(case: Case) -> bool:
    instance = case.instance
    free = Oracle(instance.fabric, instance.problem, replace(instance.space, as_needed=False))
    return free.ranking()[0].seconds < case.optimum * (1 - 1e-9)


@pytest.mark.check
def test_no_excluded_point_of_the_joint_space_beats_its_bound(cases):
    excluded = sum(_audited(case) for case in cases)
    assert excluded > 10 * len(cases)


def _audited(case: Case) -> int:
    """The planner's own audit of every point that it excluded; how many there were."""
    count = len(case.choices)
    told = audit(case.instance.problem, case.instance.space, case.result, count, seed=1)
    assert not told.violations, f"{case.name}: {told.violations}"
    return told.solved + told.infeasible


def test_any_plan_of_the_joint_space_is_priced_alike(cases):
    """Not only the best: bad plans, and plans that do not fit."""
    mixed = 0
    for case in cases:
        dice = np.random.default_rng([case.instance.seed, 41])
        for _ in range(3):
            drawn = random_joint_plan(dice, case.oracle, case.choices)
            choice, cuts, recompute, picks = drawn
            strategies = tuple(StageStrategy(*pick) for pick in picks)
            plan = Plan(Point(*choice), cuts, recompute, strategies)
            _compare(price(case.instance.problem, plan), case.oracle, case.name)
            mixed += len(set(picks)) > 1
    assert mixed > 0.15 * len(cases)


# --- bounds and memory --------------------------------------------------------------------------


def test_no_plan_of_the_joint_space_beats_a_bound(cases):
    """Of the point among others, and under its real layout: time, sum, synchronisation."""
    seen = 0
    for case in cases:
        space = case.instance.space
        mine = {_outer(choice, mixed=space.mixed): choice for choice in case.choices}
        frontier = _frontier(case.instance.problem, space)
        assert len(frontier) == len(mine), case.name
        refined = _refined(frontier)
        for number in range(len(frontier)):
            choice = mine[_outer(_choice(frontier.points.point(number)), mixed=space.mixed)]
            best = case.oracle.best(choice)
            if best is None:
                continue
            seen += 1
            sharp = frontier.prepared(number)
            plans = list(case.oracle.plans(choice))
            for low, true in (
                (frontier.bound_of(number), best.seconds),
                (refined.get(number, 0.0), best.seconds),
                (sharp.lower_bound, best.seconds),
                (sharp.total, min(plan.total for plan in plans)),
                (sharp.sync, min(plan.sync for plan in plans)),
            ):
                assert low <= true * (1 + 1e-12), f"{case.name}: {choice}"
    assert seen > 15 * len(cases)


def _refined(frontier) -> dict[int, float]:
    """Bounds that know the longest stage; of GPipe where 1F1B takes its place there are none."""
    opened = frontier.open(np.arange(len(frontier.rows)), float("inf"))
    found, at = {}, 0
    while at < len(opened):
        part, looked_at = frontier.refine(opened, at, float("inf"))
        found |= dict(zip(part.columns.number.tolist(), part.limits.seconds.tolist(), strict=True))
        at += looked_at
    return found


def test_the_memory_that_the_joint_answer_asks_for_is_enough(cases):
    """Where nothing fits. It is the least where one schedule, micro-batch and strategy are open.

    Points are compared by tensors alone, so buffers of communicators may make another the least.
    """
    tried, least = 0, 0
    for case in cases:
        problem, space = case.instance.problem, case.instance.space
        scarce = replace(problem, memory_bytes=problem.reserved_bytes + 1e-3)
        result = search(scarce, space)
        assert result.best is None, case.name
        if not result.needed_bytes:
            continue
        tried += 1
        assert _fits(case, result.needed_bytes * (1 + 1e-9)), f"{case.name}: {result.reason}"
        if len(space.micro_batch) > 1 or space.mixed or "interleaved" in space.schedules:
            continue
        if problem.communicator_bytes:
            continue
        least += 1
        less = result.needed_bytes * (1 - 2e-4)
        assert not _fits(case, less), f"{case.name}: {result.reason}"
    assert tried > 0.5 * len(cases)
    assert least > 0.02 * len(cases)


def _fits(case: Case, memory: float) -> bool:
    plans = (case.oracle.plans(choice, memory=memory) for choice in case.choices)
    return any(next(found, None) is not None for found in plans)


# --- more than one plan, and searches that are cut short ----------------------------------------


@pytest.mark.parametrize("top", [pytest.param(2, marks=pytest.mark.check), 7])
@pytest.mark.check
def test_the_alternatives_are_the_next_best_points_of_the_joint_space(cases, top):
    """But for GPipe where 1F1B may take its place: it is as fast, and leaner.

    Not so where that decides what is needed.
    """
    for case in cases:
        space = case.instance.space
        replaced = {
            choice._replace(schedule="gpipe")
            for choice in case.choices
            if choice.schedule == "1f1b" and not space.as_needed
        }
        ranking = [plan for plan in case.ranking if plan.choice not in replaced]
        result = search(case.instance.problem, space, top=top)
        reports = [result.best, *result.alternatives] if result.best else []
        assert [report.iteration_s for report in reports] == [
            _close(plan.seconds) for plan in ranking[:top]
        ], case.name
        by_point = {_outer(plan.choice, mixed=space.mixed): plan.seconds for plan in case.ranking}
        found = [_outer(_choice(report.plan.point), mixed=space.mixed) for report in reports]
        assert len(set(found)) == len(found), case.name
        assert [report.iteration_s for report in reports] == [
            _close(by_point[point]) for point in found
        ], case.name


def _cut_short(case: Case, result: SearchResult) -> bool:
    """Whether it was; the bound lies below the optimum and the plan not, and the gap says so."""
    told, best = result.certificate, result.best
    assert told.lower_bound_s <= case.optimum * (1 + 1e-12), case.name
    if best is not None:
        _listed(case, best.plan)
        assert best.feasible, case.name
        assert best.iteration_s >= case.optimum * (1 - 1e-9), case.name
        gap = (best.iteration_s - told.lower_bound_s) / best.iteration_s
        assert told.gap == pytest.approx(gap, abs=1e-12), case.name
    assert told.points == told.solved + told.bounded + told.infeasible + told.open, case.name
    least = best.iteration_s if best else math.inf
    better = sum(
        found.seconds < least * (1 - 1e-9)
        for found in case.ranking
        if found.choice.schedule != "gpipe" or not case.instance.space.replaces_gpipe
    )
    assert told.open >= better, case.name  # what is bounded holds none that is better
    if told.proven:
        assert (best is None) == (not case.ranking), case.name
        assert best is None or best.iteration_s == _close(case.optimum), case.name
    return not told.proven


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ticks", [1, 2, 4, 8, 16])
def test_a_search_out_of_time_tells_its_gap(cases, ticks):
    short = 0
    for case in cases:
        clock = iter(range(10**6))
        result = search(
            case.instance.problem,
            case.instance.space,
            time_limit_s=float(ticks),
            clock=lambda clock=clock: float(next(clock)),
        )
        short += _cut_short(case, result)
    assert short > 0.1 * len(cases)


@pytest.mark.parametrize("calls", [1, 3])
def test_a_search_that_is_stopped_tells_its_gap(cases, calls):
    short = 0
    for case in cases:
        asked = iter(range(10**6))
        result = search(
            case.instance.problem,
            case.instance.space,
            stop=lambda asked=asked: next(asked) >= calls,
        )
        short += _cut_short(case, result)
    assert short > 0.1 * len(cases)


def test_progress_closes_in_on_the_optimum(cases):
    for case in cases:
        seen = []
        search(case.instance.problem, case.instance.space, progress=seen.append)
        for one in seen:
            assert one.points == len(case.choices), case.name
            assert one.solved + one.bounded + one.infeasible <= one.points, case.name
            assert one.lower_bound_s <= case.optimum * (1 + 1e-12), case.name
            assert one.best_s >= case.optimum * (1 - 1e-9), case.name
        for before, after in pairwise(seen):
            assert after.best_s <= before.best_s, case.name
            assert after.lower_bound_s >= before.lower_bound_s * (1 - 1e-12), case.name
