"""Shadow prices: what one per cent more of a resource, or a step of head-room, is worth.

A shadow price is the relative gain of throughput per per cent of a level's bandwidth or of
device memory; the plan may change. It is a difference quotient at one per cent, so a price of 0
may hide a step further on. A step of head-room is the next certainty of fitting into memory. All
are searched anew, over the space of the plan.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs import CERTAINTIES, NO_OFFLOAD, Problem, Report, price
from nest_core.network import Network
from nest_core.planner.frontier import Frontier
from nest_core.planner.mixed import MixedFrontier
from nest_core.planner.points import slices
from nest_core.planner.search import Leading, search
from nest_core.planner.space import SearchSpace

__all__ = ["HeadRoom", "Neighbours", "head_room_steps", "shadow_prices", "shared_frontier"]

_STEP = 0.01
_ROUNDING = 1e-9
_ROWS = 4096
"""Opened together."""
_WORK, _OPENED, _REFINED, _PLACED, _STRATEGY = 6e7, 2.0, 50.0, 500.0, 1000.0
"""Microseconds of one core, about, that may be worked, and that steps take for a point and for
each strategy that its stages choose from."""


@dataclass(frozen=True, slots=True)
class HeadRoom:
    """The best plan among those that fit with a certainty.

    Parameters
    ----------
    certainty : float
    planned_bytes : float
        That such a plan may be predicted to hold.
    best : Report or None
        None where none fits, or the time limit was over.
    proven : bool
    """

    certainty: float
    planned_bytes: float
    best: Report | None
    proven: bool

    def to_json(self, iteration_s: float) -> dict[str, object]:
        """Return what it takes, beside the time of the plan that it is compared with."""
        seconds = self.best.iteration_s if self.best and self.proven else None
        return {
            "certainty": self.certainty,
            "planned_bytes": self.planned_bytes,
            "iteration_time_s": seconds,
            "difference": None if seconds is None else seconds / iteration_s - 1,
            "plan": self.best.plan.to_json() if self.best and self.proven else None,
            "proven": self.proven,
        }


def shared_frontier(problem: Problem, space: SearchSpace) -> Frontier | MixedFrontier | None:
    """Return a frontier of which several searches can share what they know of points.

    None where an offload changes the problem.
    """
    if space.offload != (NO_OFFLOAD,):
        return None
    return MixedFrontier(problem, space) if space.mixed else Frontier(problem, space)


class Neighbours:
    """Points that come near the best plan's time, with as much memory as any price asks for.

    With one per cent more bandwidth a plan is at most that much faster: what takes longer than
    the best by more is behind it then, too. Few points are left.

    Parameters
    ----------
    problem : Problem
    space : SearchSpace
    iteration_s : float
        Of the best plan.
    time_limit_s : float
    frontier : Frontier, optional
        As `shared_frontier`, where one is at hand; what its searches know is known here.

    Attributes
    ----------
    points : tuple of int or None
        Their numbers.
        None where they are too many to be looked at, or the rule of the space is as needed.
    """

    def __init__(
        self,
        problem: Problem,
        space: SearchSpace,
        iteration_s: float,
        time_limit_s: float = float("inf"),
        frontier: Frontier | MixedFrontier | None = None,
    ) -> None:
        self.frontier = frontier or shared_frontier(problem, space)
        self.points: tuple[int, ...] | None = None
        if self.frontier is not None and not space.as_needed:
            eased = [replace(problem, certainty=certainty) for certainty in CERTAINTIES]
            most = max([_roomier(problem), *eased], key=lambda entry: entry.planned_bytes)
            cutoff = iteration_s * (1 + _ROUNDING) * (1 + _STEP)
            self.points = _within(self.frontier.of(most), cutoff, time_limit_s)

    def best(self, problem: Problem, cutoff: float) -> Report | None:
        """Return the best plan of a problem with more of something that takes at most so long."""
        if self.frontier is None or self.points is None:
            return None
        leading, frontier = Leading(1, cutoff), self.frontier.of(problem)
        for number in self.points:
            prepared = frontier.prepared(number)
            if prepared.lower_bound <= leading.cutoff:
                seconds, plan = frontier.solver.solve(prepared, leading.cutoff)
                if plan is not None:
                    leading.offer(seconds, plan)
        return price(problem, leading.found[0][1]) if leading.found else None


def _within(
    frontier: Frontier | MixedFrontier, cutoff: float, time_limit_s: float
) -> tuple[int, ...] | None:
    """Return numbers of points of which a plan takes at most so long.

    None if too much is to be looked at. All are bounded together: with a time to beat at hand
    nothing is gained by their order.
    """
    began, work, numbers = time.perf_counter(), 0.0, []
    rows = np.sort(frontier.queue.left(cutoff))
    for part in slices(len(rows), _ROWS):
        opened = frontier.open(rows[part], cutoff)
        work += _OPENED * opened.points
        for nearer, cost in ((frontier.refined, _REFINED), (frontier.placed, _PLACED)):
            work += cost * len(opened)
            opened = nearer(opened, cutoff) if len(opened) else opened
        for index, number in enumerate(opened.columns.number.tolist()):
            if work > _WORK or time.perf_counter() - began > time_limit_s:
                return None
            prepared = frontier.prepare(opened, index)
            work += _STRATEGY * len(prepared.strategies)
            is_near = prepared.lower_bound <= cutoff
            if is_near and frontier.solver.solve(prepared, cutoff)[1] is not None:
                numbers.append(number)
    is_done = work <= _WORK and time.perf_counter() - began <= time_limit_s
    return tuple(numbers) if is_done else None


def shadow_prices(
    problem: Problem,
    space: SearchSpace,
    iteration_s: float,
    time_limit_s: float = float("inf"),
    near: Neighbours | None = None,
) -> dict[str, float | None]:
    """Relative throughput gained per per cent of each resource.

    Parameters
    ----------
    iteration_s : float
        Of the best plan on the problem as it is.
    time_limit_s : float
        For all searches together; a price that could not be proven is None.
    near : Neighbours, optional
        Of the best plan, where they are at hand.

    Returns
    -------
    dict
        ``bandwidth.<level>`` and ``memory``; a torus has one bandwidth for all levels.
    """
    parts = len(problem.network.levels) + 1
    near = near or Neighbours(problem, space, iteration_s, time_limit_s)

    def gain(change: Problem, factor: float) -> float | None:
        if near.frontier is not None and not space.as_needed:
            best = near.best(change, iteration_s * (1 + _ROUNDING))
        else:
            result = search(
                change,
                space,
                time_limit_s=time_limit_s / parts,
                effort=1.0 / parts,
                within_s=iteration_s,  # the plan at hand is no slower with more of a resource
                frontier=near.frontier and near.frontier.of(change, factor),
            )
            best = result.best if result.certificate.proven else None
        return iteration_s / best.iteration_s - 1 if best else None

    prices = {
        f"bandwidth.{name}": gain(replace(problem, network=network), 1 + _STEP)
        for name, network in _faster(problem.network)
    }
    prices["memory"] = gain(_roomier(problem), 1.0)
    return prices


def head_room_steps(
    problem: Problem,
    space: SearchSpace,
    plans: Sequence[Report],
    time_limit_s: float = float("inf"),
    near: Neighbours | None = None,
) -> tuple[HeadRoom, ...]:
    """Return what the best plan takes as it must fit more or less surely.

    Parameters
    ----------
    plans : sequence of Report
        The best plan of the problem, proven, and others of the space that fit.
    time_limit_s : float
        For all searches together, in equal parts.
    near : Neighbours, optional
        Of the best plan, where they are at hand.

    Returns
    -------
    tuple of HeadRoom
        One for each of `CERTAINTIES`, the problem's own among them; empty where nothing is known
        of how far memory is from what is predicted.
    """
    if not problem.memory_spread:
        return ()
    near = near or Neighbours(problem, space, plans[0].iteration_s, time_limit_s)
    parts = len(CERTAINTIES) - 1

    def step(certainty: float) -> HeadRoom:
        eased_problem = replace(problem, certainty=certainty)
        fitting = [plan for plan in plans if _fits(plan, eased_problem)]
        # Fewer plans fit more surely: the best of all is the best of those, where it is one. As
        # needed, other plans are allowed then, and some are not where more fit.
        among = (
            certainty > problem.certainty and not space.as_needed and _fits(plans[0], eased_problem)
        )
        if among or certainty == problem.certainty:
            return HeadRoom(certainty, eased_problem.planned_bytes, plans[0], proven=True)
        best_known_s = min((plan.iteration_s for plan in fitting), default=float("inf"))
        if space.as_needed and certainty < problem.certainty:
            best_known_s = float("inf")
        elif certainty < problem.certainty and near.points is not None:
            best = near.best(eased_problem, best_known_s)
            return HeadRoom(certainty, eased_problem.planned_bytes, best, proven=True)
        result = search(
            eased_problem,
            space,
            time_limit_s=time_limit_s / parts,
            effort=1.0 / parts,
            within_s=best_known_s,
            frontier=near.frontier and near.frontier.of(eased_problem),
        )
        return HeadRoom(
            certainty, eased_problem.planned_bytes, result.best, result.certificate.proven
        )

    return tuple(step(certainty) for certainty in CERTAINTIES)


def _fits(report: Report, problem: Problem) -> bool:
    return report.fullest_bytes <= problem.planned_bytes * (1 + _ROUNDING)


def _roomier(problem: Problem) -> Problem:
    return replace(problem, memory_bytes=problem.memory_bytes * (1 + _STEP))


def _faster(network: Network) -> list[tuple[str, Network]]:
    if network.torus is not None:
        return [("links", network.faster(0, 1 + _STEP))]
    return [
        (level.name, network.faster(index, 1 + _STEP)) for index, level in enumerate(network.levels)
    ]
