"""The planner against every plan of small instances, priced over concrete devices.

The oracle (``oracle.py``) was written from docs/method.md alone; what the planner, its bounds and
`nest_core.costs.price` say must be what it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from oracle import CHOICES, Choice, Found, Oracle
from planner_instances import (
    Instance,
    large_instance,
    queued_instance,
    random_instance,
    random_plan,
)

from nest_core.costs import Plan, Point, Report, price
from nest_core.planner import SearchResult, search
from nest_core.planner.frontier import Frontier

pytestmark = pytest.mark.check
"""Long; ``test_joint.py`` holds the whole space against the oracle in the fast suite."""

_SEEDS = 500
_MANY = 5_000
_SHARE = 0.2


@dataclass(frozen=True)
class Solved:
    """An instance, every point's best plan by the oracle, and the planner's answer."""

    instance: Instance
    oracle: Oracle
    ranking: list[Found]
    result: SearchResult

    @property
    def name(self) -> str:
        """For messages."""
        return f"seed {self.instance.seed} ({self.instance.family.name})"


def _solved(seed: int) -> Solved:
    instance = random_instance(seed)
    oracle = instance.oracle
    result = search(instance.problem, instance.space)
    return Solved(instance, oracle, oracle.ranking(), result)


def _close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=0)


def _choice(point: Point) -> Choice:
    return Choice(*(getattr(point, name) for name in Choice._fields))


def _compare(report: Report, oracle: Oracle, name: str) -> None:
    """A priced plan, number by number."""
    plan = report.plan
    told = oracle.price(_choice(plan.point), plan.cuts, plan.recompute)
    assert report.iteration_s == _close(told.seconds), f"{name}: {plan}"
    for stage, mine in zip(report.stages, told.stages, strict=True):
        assert stage.micro_batch_s == _close(mine.seconds), f"{name}: {plan}"
        assert stage.sync_s == pytest.approx(mine.sync, rel=1e-9, abs=1e-12), f"{name}: {plan}"
        assert stage.memory.total == _close(mine.memory), f"{name}: {plan}"
    fits = all(stage.memory <= oracle.problem.memory_bytes for stage in told.stages)
    assert report.feasible == fits, f"{name}: {plan}"


def _check(solved: Solved) -> None:
    """Best time, its price and infeasibility of one instance."""
    best, ranking = solved.result.best, solved.ranking
    if not ranking or best is None:
        assert not ranking, f"{solved.name}: the planner missed {ranking[0]}"
        assert best is None, f"{solved.name}: {best} does not fit"
        return
    assert best.iteration_s == _close(ranking[0].seconds), f"{solved.name}: {ranking[0]}"
    assert best.feasible, solved.name
    _compare(price(solved.instance.problem, best.plan), solved.oracle, solved.name)


@pytest.fixture(scope="module")
def solved() -> list[Solved]:
    return [_solved(seed) for seed in range(_SEEDS)]


def test_the_plan_is_the_best_of_all(solved):
    for one in solved:
        _check(one)


@pytest.mark.parametrize("part", range(10))
def test_the_plan_is_the_best_of_all_in_many_more(part):
    for seed in range(_SEEDS + part, _SEEDS + _MANY, 10):
        _check(_solved(seed))


def _used(solved: Solved) -> Iterator[str]:
    """Options that the best plan uses although the space held another choice."""
    instance, oracle, space = solved.instance, solved.oracle, solved.instance.space
    if not solved.ranking:
        yield "memory"
        return
    best = solved.ranking[0]
    choice = best.choice
    # Without a limit nothing is gained from recomputation.
    free = Oracle(instance.fabric, instance.problem, replace(space, recompute=CHOICES[:1]))
    if free.ranking(memory=float("inf"))[0].seconds < best.seconds * (1 - 1e-9):
        yield "memory"
    widths = {"tp": choice.tp, "dp": choice.dp, "pp": choice.pp, "micro_batch": choice.micro_batch}
    yield from (name for name, width in widths.items() if width > 1 and 1 in getattr(space, name))
    if choice.sp and False in space.sp:
        yield "sp"
    if choice.zero and len(space.zero) > 1:
        yield from ("ZeRO", f"ZeRO {choice.zero}")
    if len(space.recompute) > 1:
        yield from set(best.recompute)
        if len(set(best.recompute)) > 1:
            yield "mixed recomputation"
    lengths = [end - first for first, end in pairwise(best.cuts)]
    if max(lengths) - min(lengths) > (oracle.layers % choice.pp > 0):
        yield "uneven cuts"
    if choice.order != space.orders[0]:
        yield "second order"
    if oracle.traffic(choice).highest > 0:
        yield "outer level"
    if choice.devices < oracle.devices and any(
        other.devices == oracle.devices for other in oracle.choices()
    ):
        yield "idle devices"


def test_every_option_is_worth_its_cost_somewhere(solved):
    seen = Counter(option for one in solved for option in _used(one))
    often = (
        "tp",
        "dp",
        "pp",
        "sp",
        "micro_batch",
        "ZeRO",
        "none",
        "selective",
        "full",
        "mixed recomputation",
        "uneven cuts",
        "second order",
        "outer level",
        "idle devices",
        "memory",
    )
    assert {option: seen[option] for option in often if seen[option] < _SHARE * _SEEDS} == {}
    assert min(seen[f"ZeRO {zero}"] for zero in (1, 2, 3)) >= 0.05 * _SEEDS
    nothing = sum(not one.ranking for one in solved)
    assert nothing >= 0.05 * _SEEDS


def test_the_planner_sees_the_same_points(solved):
    for one in solved[:200]:
        mine = _numbered(Frontier(one.instance.problem, one.instance.space))
        assert sorted(mine) == sorted(one.oracle.choices()), one.name


def test_the_certificate_counts_every_point(solved):
    for one in solved:
        told, points = one.result.certificate, len(list(one.oracle.choices()))
        assert told.proven, one.name
        assert told.points == points == told.solved + told.bounded + told.infeasible, one.name
        assert told.infeasible <= points - len(one.ranking), one.name
        assert one.ranking or told.infeasible == points, one.name


def test_any_plan_is_priced_alike(solved):
    """Not only the best: bad plans and plans that do not fit."""
    for one in solved[:200]:
        _compare_random(one.instance, one.oracle, plans=5)


def test_any_plan_on_a_larger_fabric_is_priced_alike():
    """Up to 96 devices and 4 levels: groups that straddle and share link groups unevenly."""
    for seed in range(40):
        instance = large_instance(seed)
        _compare_random(instance, instance.oracle, plans=5)


def _compare_random(instance: Instance, oracle: Oracle, plans: int) -> None:
    dice = np.random.default_rng(instance.seed)
    choices = list(oracle.choices())
    for _ in range(plans):
        choice, cuts, recompute = random_plan(dice, instance, choices)
        report = price(instance.problem, Plan(Point(*choice), cuts, recompute))
        _compare(report, oracle, f"seed {instance.seed}")


# --- bounds and screening ---------------------------------------------------------------------


def _numbered(frontier: Frontier) -> list[Choice]:
    return [_choice(frontier.points.point(number)) for number in range(len(frontier))]


def _opened(
    frontier: Frontier, cutoff: float, *, refined: bool = False
) -> dict[int, tuple[float, float, float]]:
    """Points that pass, with bounds of the time, the sum of loads and the synchronisation."""
    found = frontier.open(np.arange(len(frontier.rows)), cutoff)
    parts, at = [found], 0
    if refined:
        parts = []
        while at < len(found):
            part, looked_at = frontier.refine(found, at, cutoff)
            parts.append(part)
            at += looked_at
    return {
        number: bounds
        for part in parts
        for number, *bounds in zip(
            part.columns.number.tolist(),
            *(getattr(part.limits, name).tolist() for name in ("seconds", "total", "sync")),
            strict=True,
        )
    }


def test_no_plan_beats_a_bound():
    """Of the time, of the sum of loads and of the largest synchronisation, point by point.

    The bounds of many points at once, those that know the longest stage, and those under a
    point's real layout.
    """
    for seed in range(60):
        instance = random_instance(seed)
        oracle, frontier = instance.oracle, Frontier(instance.problem, instance.space)
        opened = _opened(frontier, float("inf"))
        refined = _opened(frontier, float("inf"), refined=True)
        assert opened.keys() == refined.keys()
        assert all(opened[number][0] <= bounds[0] for number, bounds in refined.items())
        for number, choice in enumerate(_numbered(frontier)):
            best = oracle.best(choice)
            if best is None:
                continue
            plans = list(oracle.plans(choice))
            told = {
                "time": best.seconds,
                "sum": min(plan.total for plan in plans),
                "sync": min(plan.sync for plan in plans),
            }
            sharp = frontier.prepared(number)
            assert frontier.bound_of(number) <= best.seconds * (1 + 1e-12), (seed, choice)
            for bounds in (
                opened[number],
                refined[number],
                (sharp.lower_bound, sharp.total, sharp.sync),
            ):
                assert all(
                    low <= true * (1 + 1e-12)
                    for low, true in zip(bounds, told.values(), strict=True)
                ), (seed, choice, bounds, told)


def test_screening_knows_what_fits():
    dropped = 0
    for seed in range(120):
        instance = random_instance(seed)
        oracle, frontier = instance.oracle, Frontier(instance.problem, instance.space)
        opened, choices = _opened(frontier, float("inf")), _numbered(frontier)
        there = [_fits(oracle, choice, instance.problem.memory_bytes) for choice in choices]
        assert [number in opened for number in range(len(choices))] == there, seed
        dropped += there.count(False)
    assert dropped > 1000


def test_no_point_is_lost_under_a_cutoff_that_it_meets():
    """Neither by the screening nor by the program."""
    for seed in range(60):
        instance = random_instance(seed)
        oracle, frontier = instance.oracle, Frontier(instance.problem, instance.space)
        for number, choice in enumerate(_numbered(frontier)):
            best = oracle.best(choice)
            if best is None:
                continue
            met = best.seconds * (1 + 1e-12)
            assert number in _opened(frontier, met), (seed, best)
            assert number in _opened(frontier, met, refined=True), (seed, best)
            prepared = frontier.prepared(number)
            assert prepared.lower_bound <= met, (seed, best)
            assert frontier.solver.solve(prepared, met)[0] == _close(best.seconds), (seed, best)


@pytest.mark.parametrize("layers", [(100, 25, 25), (0, 100, 25, 25), (0, 0, 100, 25, 25)])
def test_a_long_queue_loses_no_winner(layers):
    """Screening under a cutoff starts with the second chunk of points; here the best is there.

    Forty micro-batches of even loads have lower bounds below the best plan's. Its tall layer
    is in the first stage, which pays one transfer where a stage in the middle would pay two.
    """
    batch = 720_720
    micro_batches = (10, *(m for m in range(20, 400) if batch % m == 0))
    instance = queued_instance(layers, batch, micro_batches)
    points = instance.oracle.ranking()
    assert len(points) > 40
    best = search(instance.problem, instance.space).best
    assert best is not None
    assert best.iteration_s == _close(points[0].seconds)


def test_the_memory_that_the_answer_asks_for_is_the_least():
    """Where nothing fits: a little less is too little, and that much is enough."""
    tried = 0
    for seed in range(300):
        instance = random_instance(seed)
        result = search(instance.problem, instance.space)
        if result.best is not None:
            continue
        tried += 1
        oracle = instance.oracle
        assert result.needed_bytes > instance.problem.memory_bytes, seed
        less = result.needed_bytes * (1 - 2e-4)
        assert not any(_fits(oracle, choice, less) for choice in oracle.choices()), seed
        enough = result.needed_bytes * (1 + 1e-9)
        assert any(_fits(oracle, choice, enough) for choice in oracle.choices()), seed
    assert tried >= 10


def _fits(oracle: Oracle, choice: Choice, memory: float) -> bool:
    return next(oracle.plans(choice, memory=memory), None) is not None


# --- more than one plan ----------------------------------------------------------------------


@pytest.mark.parametrize("top", [2, 5, 40])
def test_the_alternatives_are_the_next_best_points(top):
    for seed in range(60):
        instance = random_instance(seed)
        oracle = instance.oracle
        ranking = oracle.ranking()
        result = search(instance.problem, instance.space, top=top)
        reports = [result.best, *result.alternatives] if result.best else []
        assert [report.iteration_s for report in reports] == [
            _close(plan.seconds) for plan in ranking[:top]
        ], seed
        points = [_choice(report.plan.point) for report in reports]
        assert len(set(points)) == len(points), seed
        by_point = {plan.choice: plan.seconds for plan in ranking}
        assert [report.iteration_s for report in reports] == [
            _close(by_point[choice]) for choice in points
        ], seed
