"""Shadow prices: what one per cent more of a resource, or a step of head-room, is worth.

A shadow price is the relative gain of throughput per per cent of a level's bandwidth or of
device memory; the plan may change. It is a difference quotient at one per cent, so a price of 0
may hide a step further on. A step of head-room is the next certainty of fitting into memory. All
are searched anew, over the space of the plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.costs import NO_OFFLOAD, Plan, Problem, Report, price
from nest_core.costs.head_room import CERTAINTIES
from nest_core.network import Network
from nest_core.planner.frontier import Frontier
from nest_core.planner.search import SearchResult, search
from nest_core.planner.solver import Solver
from nest_core.planner.space import SearchSpace

__all__ = ["HeadRoom", "head_room_steps", "shadow_prices"]

_STEP = 0.01
_ROUNDING = 1e-9
_EVERY = 1 << 30
"""More points than there are."""


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


def shadow_prices(
    problem: Problem, space: SearchSpace, iteration_s: float, time_limit_s: float = float("inf")
) -> dict[str, float | None]:
    """Relative throughput gained per per cent of each resource.

    Parameters
    ----------
    iteration_s : float
        Of the best plan on the problem as it is.
    time_limit_s : float
        For all searches together; a price that could not be proven is None.

    Returns
    -------
    dict
        ``bandwidth.<level>`` and ``memory``; a torus has one bandwidth for all levels.
    """
    parts, at_hand = len(problem.network.levels) + 1, iteration_s * (1 + _ROUNDING)
    roomier = replace(problem, memory_bytes=problem.memory_bytes * (1 + _STEP))
    frontier, near = _shared(roomier, space), None
    if frontier is not None and not space.as_needed:
        # With one per cent more bandwidth a plan is at most that much faster: what takes longer
        # than the plan at hand by more is behind it then, too. Few points are left.
        near = search(
            roomier,
            space,
            top=_EVERY,
            time_limit_s=time_limit_s,
            within_s=at_hand * (1 + _STEP),
            frontier=frontier,
        )

    def gain(change: Problem, factor: float) -> float | None:
        points = frontier and frontier.eased(change, factor)
        if near is not None and points is not None:
            best = _fastest(points.solver, near, at_hand) if near.certificate.proven else None
        else:
            result = search(
                change,
                space,
                time_limit_s=time_limit_s / parts,
                effort=1.0 / parts,
                within_s=iteration_s,  # the plan at hand is no slower with more of a resource
                frontier=points,
            )
            best = result.best if result.certificate.proven else None
        return iteration_s / best.iteration_s - 1 if best else None

    prices = {
        f"bandwidth.{name}": gain(replace(problem, network=network), 1 + _STEP)
        for name, network in _faster(problem.network)
    }
    prices["memory"] = gain(roomier, 1.0)
    return prices


def _fastest(solver: Solver, near: SearchResult, cutoff: float) -> Report | None:
    """Return the best plan of the points of another search that takes at most ``cutoff``."""
    best: Plan | None = None
    for report in (near.best, *near.alternatives):
        prepared = solver.prepare(report.plan.point) if report else None
        if prepared is not None and prepared.lower_bound <= cutoff:
            seconds, plan = solver.solve(prepared, cutoff)
            if plan is not None and (best is None or seconds < cutoff * (1 - _ROUNDING)):
                best, cutoff = plan, seconds
    return price(solver.problem, best) if best else None


def head_room_steps(
    problem: Problem,
    space: SearchSpace,
    plans: Sequence[Report],
    time_limit_s: float = float("inf"),
) -> tuple[HeadRoom, ...]:
    """Return what the best plan takes as it must fit more or less surely.

    Parameters
    ----------
    plans : sequence of Report
        The best plan of the problem, proven, and others of the space that fit.
    time_limit_s : float
        For all searches together, in equal parts.

    Returns
    -------
    tuple of HeadRoom
        One for each of `CERTAINTIES`, the problem's own among them; empty where nothing is known
        of how far memory is from what is predicted.
    """
    if not problem.memory_spread:
        return ()
    frontier = _shared(problem, space)
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
        result = search(
            eased_problem,
            space,
            time_limit_s=time_limit_s / parts,
            effort=1.0 / parts,
            within_s=best_known_s,
            frontier=frontier and frontier.eased(eased_problem, 1.0),
        )
        proven = result.certificate.proven
        return HeadRoom(certainty, eased_problem.planned_bytes, result.best, proven)

    return tuple(step(certainty) for certainty in CERTAINTIES)


def _fits(report: Report, problem: Problem) -> bool:
    needed = max(stage.memory.total for stage in report.stages)
    return needed <= problem.planned_bytes * (1 + _ROUNDING)


def _shared(problem: Problem, space: SearchSpace) -> Frontier | None:
    """Bounds that hold for a problem with more of something, or less memory, too."""
    return None if space.mixed or space.offload != (NO_OFFLOAD,) else Frontier(problem, space)


def _faster(network: Network) -> list[tuple[str, Network]]:
    if network.torus is not None:
        return [("links", network.faster(0, 1 + _STEP))]
    return [
        (level.name, network.faster(index, 1 + _STEP)) for index, level in enumerate(network.levels)
    ]
