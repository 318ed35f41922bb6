"""MCMC: a random walk over the planner's own space.

**The original** is the parallelisation half of TopoOpt: it takes FlexFlow's Markov chain Monte
Carlo search, which changes one choice at random, always takes what is faster and sometimes what is
slower, and alternates it with a search for the network's topology. The NEST paper lets it walk over
NEST's own strategies, ten times, and reports the best.

**Here** a state is a whole plan. A neighbour changes one axis: tp with or without sp, cp, ep, dp,
pp, micro-batch, ZeRO, schedule, an order, one cut, or the recomputation of one stage or of all.
Data parallelism follows the other degrees, so that a chain need not pass through idle devices; cuts
start even again when their number changes. A worse neighbour is taken with probability
``(t / t')**(1 / temperature)``; plans that do not fit rank behind all that do, those with less
overflow first. Ten chains start from points drawn at random among the valid ones.

**Left out** is the topology, which is given here.

**Why that is fair to it**: it sees the true fabric and the true costs, has the whole uniform space,
is led back into memory (the original checks afterwards), and may price `PRICES` plans in all, which
takes about as long as the exact search, as it did in the paper. It is a function of its seed.

References
----------
.. [1] Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for
   Distributed Training Jobs", NSDI 2023.
.. [2] Jia, Zaharia and Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks",
   MLSys 2019.
.. [3] Metropolis et al., "Equation of State Calculations by Fast Computing Machines", Journal of
   Chemical Physics 21, 1953.
.. [4] NEST, MLSys 2026, section 5.1.
"""

import itertools
import math
import random
from dataclasses import replace
from functools import lru_cache

from nest_core.costs import Plan, Point, Problem
from nest_core.planner import SearchSpace
from nest_core.planner.baselines.baseline import (
    Found,
    PlanPrices,
    canonical,
    even_choices,
    grouped,
    valid,
)
from nest_core.planner.layouts import even_patterns
from nest_core.planner.points import Points
from nest_core.planner.space import enumerate_rows

__all__ = ["PRICES", "RESTARTS", "TEMPERATURE", "find", "neighbour"]

RESTARTS = 10
PRICES = 500
"""Plans that all chains together may price."""
TEMPERATURE = 0.05
"""A plan slower by this share is taken with probability 1/e."""

_MISFIT = 10.0  # in logarithms of seconds: what devices full twice over are worse than full ones
_ABOVE = 10.0  # no plan that fits takes e**100 seconds
_TRIES = 200


def find(problem: Problem, space: SearchSpace, seed: int, budget: int = PRICES) -> Found:
    """Return the best plan that any chain met.

    Parameters
    ----------
    budget : int
        Plans to price in all; the chains share it evenly.

    Raises
    ------
    InputError
        If the space holds no valid point.
    """
    dice = random.Random(seed)
    points = Points(problem, space, enumerate_rows(problem, space))
    prices = PlanPrices(problem)
    best, least = None, math.inf
    for _ in range(RESTARTS):
        plan = _start(problem, space, points.point(dice.randrange(len(points))), dice)
        energy = _energy(prices, plan)
        if energy < least:
            best, least = plan, energy
        for _ in range(budget // RESTARTS - 1):
            tried = neighbour(problem, space, plan, dice)
            if tried is None:
                break
            new = _energy(prices, tried)
            if new <= energy or dice.random() < math.exp((energy - new) / TEMPERATURE):
                plan, energy = tried, new
            if new < least:
                best, least = tried, new
    return Found(best, f"best of {RESTARTS} random walks, {budget:,} plans priced, seed {seed}")


def neighbour(problem: Problem, space: SearchSpace, plan: Plan, dice: random.Random) -> Plan | None:
    """Return a plan of the space that differs on one axis; None if none was met."""
    axes = _axes(space)
    for _ in range(_TRIES):
        axis = dice.randrange(len(axes) + 2)
        if axis < len(axes):
            moved = _moved(problem, space, plan, axes[axis], dice)
        else:
            is_cut = axis == len(axes)
            moved = _cut(problem, plan, dice) if is_cut else _recomputed(space, plan, dice)
        if moved is not None and moved != plan:
            return moved
    return None


def _energy(prices: PlanPrices, plan: Plan) -> float:
    """Logarithm of the time; where the plan does not fit, its overflow, and far higher."""
    over = prices.overflow(plan)
    return _MISFIT * (_ABOVE + over) if over else math.log(prices.seconds(plan))


_MoveAxis = tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]
"""Fields of a point that change together, and what they may be."""


@lru_cache(maxsize=16)
def _axes(space: SearchSpace) -> tuple[_MoveAxis, ...]:
    """Axes on which there is a choice."""
    plain = [(name, 1) for name in space.schedules if name != "interleaved"]
    chunked = [("interleaved", v) for v in space.interleave if "interleaved" in space.schedules]
    listed = {
        ("tp", "sp", "etp"): (
            (tp, sp, etp)
            for tp, sp in itertools.product(space.tp, space.sp)
            for etp in space.expert_tensor(tp, sp)
        ),
        ("cp",): ((value,) for value in space.cp),
        ("ep",): ((value,) for value in space.ep),
        ("dp",): ((value,) for value in space.dp),
        ("pp",): ((value,) for value in space.pp),
        ("micro_batch",): ((value,) for value in space.micro_batch),
        ("zero", "zero_group"): (
            (zero, group) for zero in space.zero for group in (space.zero_groups if zero else (0,))
        ),
        ("schedule", "interleave"): plain + chunked,
        ("order",): ((value,) for value in space.orders),
        ("device_order",): ((value,) for value in space.device_orders),
    }
    axes = ((fields, tuple(choices)) for fields, choices in listed.items())
    return tuple(axis for axis in axes if len(axis[1]) > 1)


def _start(problem: Problem, space: SearchSpace, point: Point, dice: random.Random) -> Plan:
    """Return a valid point with as many replicas as go with it, cut evenly."""
    filled = _refilled(problem, space, point) or point
    return Plan(
        filled, even_choices(problem, filled)[0], (dice.choice(space.recompute),) * filled.pp
    )


def _refilled(problem: Problem, space: SearchSpace, point: Point) -> Point | None:
    """Return the point with the most replicas with which it is valid."""
    width = point.devices_used // point.dp
    for dp in sorted(space.dp, reverse=True):
        if width * dp <= problem.network.devices:  # else no valid point, and need not be made
            candidate = grouped(space, replace(point, dp=dp))
            if valid(problem, space, candidate):
                return candidate
    return None


def _moved(
    problem: Problem, space: SearchSpace, plan: Plan, axis: _MoveAxis, dice: random.Random
) -> Plan | None:
    """Return the plan with another value on one axis, if there is such a point."""
    before, (fields, choices) = plan.point, axis
    changes = dict(zip(fields, dice.choice(choices), strict=True))
    point: Point | None = replace(before, **changes)  # type: ignore[arg-type]  # field by field
    if point is None or point == before:
        return None
    if fields != ("dp",):
        # A single copy forgets its ZeRO stage; with several it is the smallest again.
        point = _refilled(problem, space, replace(point, zero=_zero(space, point)))
    if point is None:
        return None
    point = grouped(space, replace(point, zero=_zero(space, point)))
    if not valid(problem, space, point):
        return None
    point = canonical(space, point)
    if (point.pp, point.interleave) == (before.pp, before.interleave):
        return replace(plan, point=point)
    recompute = plan.recompute if point.pp == before.pp else (plan.recompute[0],) * point.pp
    return Plan(point, even_choices(problem, point)[0], recompute)


def _zero(space: SearchSpace, point: Point) -> int:
    """Its ZeRO stage, or the smallest if it is not one of those that are allowed."""
    return point.zero if point.zero in space.zero else min(space.zero)


def _cut(problem: Problem, plan: Plan, dice: random.Random) -> Plan | None:
    """One cut a layer earlier or later; of interleaved plans the other pattern."""
    point = plan.point
    if point.schedule == "interleaved":
        patterns = even_patterns(problem.layers, point.pp, point.interleave)
        return replace(plan, cuts=dice.choice(patterns))
    if point.pp == 1:
        return None
    place = dice.randrange(1, point.pp)
    cuts = list(plan.cuts)
    cuts[place] += dice.choice((-1, 1))
    rising = cuts[place - 1] < cuts[place] < cuts[place + 1]
    return replace(plan, cuts=tuple(cuts)) if rising else None


def _recomputed(space: SearchSpace, plan: Plan, dice: random.Random) -> Plan:
    """Another recomputation of one stage, or of all."""
    choice = dice.choice(space.recompute)
    if dice.random() < 0.5:
        return replace(plan, recompute=(choice,) * plan.point.pp)
    stage = dice.randrange(plan.point.pp)
    return replace(plan, recompute=(*plan.recompute[:stage], choice, *plan.recompute[stage + 1 :]))
