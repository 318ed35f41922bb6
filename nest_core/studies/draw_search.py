"""A scenario searched anew under draws of what is not known exactly.

Every draw is searched exactly, among the plans that fit as surely as plans must and that fit in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import lru_cache

from nest_core.costs import Plan, price
from nest_core.costs.problem import Problem
from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.scenario import ScenarioValues
from nest_core.studies.draws import spread_of
from nest_core.studies.solving import Stop, Tell, never, silent

__all__ = ["MOST_DRAWS", "Won", "checked_draws", "kept_problem", "search_draws", "searched"]

MOST_DRAWS = 1000
_AT_ONCE, _POLL_S = 3, 0.1


@dataclass(frozen=True, slots=True)
class Won:
    """The best plan of one draw.

    Parameters
    ----------
    draw : int
        Its number.
    plan : Plan or None
        None where no plan that fits there was found.
    iteration_s : float
        By `price` under the draw; infinite without a plan.
    known_s : float
        What the optimum at the centre takes there; infinite where it does not fit.
    proven : bool
        Whether the search came to its end.
    """

    draw: int
    plan: Plan | None
    iteration_s: float
    known_s: float
    proven: bool


def checked_draws(count: object, name: str = "draws") -> int:
    """A number of draws.

    Raises
    ------
    InputError
        If it is none from 0 to `MOST_DRAWS`.
    """
    if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MOST_DRAWS:
        return count
    raise InputError(name, f"must lie between 0 and {MOST_DRAWS:,}", count, "give another number")


def search_draws(
    scenario: ScenarioValues,
    problem: Problem,
    known: Plan,
    numbers: Sequence[int],
    *,
    seed: int = 0,
    progress: Tell = silent,
    stop: Stop = never,
) -> tuple[Won, ...]:
    """Search a scenario anew under some draws.

    Parameters
    ----------
    problem : Problem
        The scenario's.
    known : Plan
        The optimum at the centre: what it takes under a draw shortens the search.
    numbers : sequence of int
        Which draws of the seed, from 0.
    progress, stop : callable, optional
        As studies take them; once stopped, the draws that were searched are returned.
    """
    spread = spread_of(scenario, problem)
    draws = spread.draws(max(numbers) + 1, seed)
    won: list[Won] = []
    for place, number in enumerate(numbers):
        progress(place / len(numbers), f"draw {place + 1} of {len(numbers)}")
        drawn = draws[number].problem(scenario, problem.network)
        report = price(drawn, known)
        known_s = report.iteration_s if report.feasible else float("inf")
        found = search(
            drawn,
            scenario.space,
            time_limit_s=scenario.time_limit_s,
            within_s=known_s,
            stop=stop,
        )
        if stop():
            break
        best, proven = found.best, found.certificate.proven
        if best is not None:
            won.append(Won(number, best.plan, best.iteration_s, known_s, proven))
        else:
            won.append(Won(number, known if report.feasible else None, known_s, known_s, proven))
    return tuple(won)


def searched(
    pool: Executor,
    scenario: ScenarioValues,
    known: Plan,
    draws: int,
    *,
    seed: int = 0,
    progress: Tell = silent,
    stop: Stop = never,
) -> tuple[Won, ...]:
    """The first draws, searched by the processes of a pool; see `search_draws`."""
    # In runs of a few, so that none waits long for the last.
    runs = [range(first, min(first + _AT_ONCE, draws)) for first in range(0, draws, _AT_ONCE)]
    futures = [pool.submit(_searched_run, scenario, known, run, seed) for run in runs]
    pending = set(futures)
    while pending and not stop():
        progress(1 - len(pending) / len(futures), f"draws searched in {len(futures)} parts")
        _, pending = wait(pending, timeout=_POLL_S)
    for future in pending:
        future.cancel()
    return tuple(one for future in futures if future not in pending for one in future.result())


def _searched_run(
    scenario: ScenarioValues, known: Plan, numbers: range, seed: int
) -> tuple[Won, ...]:
    return search_draws(scenario, kept_problem(scenario), known, numbers, seed=seed)


@lru_cache(maxsize=1)
def kept_problem(scenario: ScenarioValues) -> Problem:
    """That of the scenario a process last worked on."""
    return scenario.problem()
