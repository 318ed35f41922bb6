"""A scenario searched anew, and plans priced, under draws of what is not known exactly.

Every draw is searched exactly, among the plans that fit as surely as plans must and that fit in it.

What one plan takes under many draws follows from a few of its prices. Terms of an iteration add up,
and most depend on one parameter each. So its time is taken as a sum over parameters of a parabola
in the logarithm of the factor, through the price at the centre and those `STEP` standard deviations
to either side: ``1 + 2 n`` prices for ``n`` parameters. Those that matter by themselves (`MATTERS`)
are moved in pairs too, as what a link carries and what of it is hidden multiply. Where a third
decides which term is the longest, it is an approximation; tests hold it against `price`.
"""

import itertools
from collections.abc import Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nest_core.costs import Plan, Problem, price
from nest_core.documents.errors import InputError
from nest_core.network import FloatArray, Network
from nest_core.planner import search
from nest_core.scenario import ScenarioValues
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.uncertainty import ParameterSpread, spread_of

__all__ = [
    "MOST_DRAWS",
    "DrawResult",
    "LocalPrice",
    "cached_problem",
    "checked_draws",
    "local_price",
    "search_draws",
    "search_in_pool",
]

MOST_DRAWS = 1000
_AT_ONCE, _POLL_S = 3, 0.1
STEP = 1.75
"""Standard deviations: nine draws in ten lie within."""
MATTERS = 5e-4
"""Share of the time that a parameter moves by a step, from which on its pairs are priced."""


@dataclass(frozen=True, slots=True)
class DrawResult:
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
    """Return a number of draws.

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
    optimum: Plan,
    numbers: Sequence[int],
    *,
    seed: int = 0,
    progress: Tell = silent,
    stop: Stop = never,
) -> tuple[DrawResult, ...]:
    """Search a scenario anew under some draws.

    Parameters
    ----------
    problem : Problem
        The scenario's.
    optimum : Plan
        The optimum at the centre: what it takes under a draw shortens the search.
    numbers : sequence of int
        Which draws of the seed, from 0.
    progress, stop : callable, optional
        As studies take them; once stopped, the draws that were searched are returned.
    """
    draws = spread_of(scenario, problem).draws(max(numbers) + 1, seed)
    won: list[DrawResult] = []
    for place, number in enumerate(numbers):
        progress(place / len(numbers), f"draw {place + 1} of {len(numbers)}")
        drawn = draws[number].problem(scenario, problem.network)
        report = price(drawn, optimum)
        known_s = report.iteration_s if report.feasible else float("inf")
        result = search(
            drawn,
            scenario.space,
            time_limit_s=scenario.time_limit_s,
            within_s=known_s,
            stop=stop,
        )
        if stop():
            break
        best, proven = result.best, result.certificate.proven
        if best is not None:
            won.append(DrawResult(number, best.plan, best.iteration_s, known_s, proven))
        else:
            won.append(
                DrawResult(number, optimum if report.feasible else None, known_s, known_s, proven)
            )
    return tuple(won)


def search_in_pool(
    pool: Executor,
    scenario: ScenarioValues,
    optimum: Plan,
    draws: int,
    *,
    seed: int = 0,
    progress: Tell = silent,
    stop: Stop = never,
) -> tuple[DrawResult, ...]:
    """Return the first draws, searched by the processes of a pool; see `search_draws`."""
    # In runs of a few, so that none waits long for the last.
    runs = [range(first, min(first + _AT_ONCE, draws)) for first in range(0, draws, _AT_ONCE)]
    futures = [pool.submit(_searched_run, scenario, optimum, run, seed) for run in runs]
    pending = set(futures)
    while pending and not stop():
        progress(1 - len(pending) / len(futures), f"draws searched in {len(futures)} parts")
        _, pending = wait(pending, timeout=_POLL_S)
    for future in pending:
        future.cancel()
    return tuple(
        result for future in futures if future not in pending for result in future.result()
    )


def _searched_run(
    scenario: ScenarioValues, optimum: Plan, numbers: range, seed: int
) -> tuple[DrawResult, ...]:
    return search_draws(scenario, cached_problem(scenario), optimum, numbers, seed=seed)


@lru_cache(maxsize=1)
def cached_problem(scenario: ScenarioValues) -> Problem:
    """Return that of the scenario a process last worked on."""
    return scenario.problem()


@dataclass(frozen=True, slots=True, eq=False)
class LocalPrice:
    """Seconds of a plan by the deviations of ``n`` parameters.

    Parameters
    ----------
    centre_s : float
    slopes : (n,)
        Seconds per deviation.
    curves : (n, n)
        Per product of two of them, half above and half below the diagonal.
    """

    centre_s: float
    slopes: FloatArray
    curves: FloatArray

    def seconds(self, rows: FloatArray) -> FloatArray:
        """At deviations (draws, n), as `ParameterSpread.rows` gives them."""
        return np.asarray(
            self.centre_s + rows @ self.slopes + ((rows @ self.curves) * rows).sum(axis=1)
        )


def local_price(
    scenario: ScenarioValues, plan: Plan, spread: ParameterSpread, network: Network
) -> LocalPrice:
    """Return a plan's time around the scenario's centre.

    Parameters
    ----------
    network : Network
        The scenario's fabric, collapsed.
    """

    def seconds(row: FloatArray) -> float:
        return price(spread.draw(row).problem(scenario, network), plan).iteration_s

    steps = np.diag(STEP * spread.sd)
    centre = seconds(np.zeros(len(steps)))
    more, less = np.full((2, len(steps)), centre)
    for k in np.flatnonzero(spread.sd).tolist():
        more[k], less[k] = seconds(steps[k]), seconds(-steps[k])
    slopes, curves = (more - less) / 2, np.diag(more + less - 2 * centre) / 2
    matter = np.flatnonzero(np.abs(slopes) > MATTERS * centre).tolist()
    for k, j in itertools.combinations(matter, 2):
        both = seconds(steps[k] - steps[j]) + seconds(steps[j] - steps[k])
        single_moves = more[k] + less[k] + more[j] + less[j] - 2 * centre
        curves[k, j] = curves[j, k] = (single_moves - both) / 4
    unit = np.where(spread.sd > 0, STEP * spread.sd, 1.0)
    return LocalPrice(centre, slopes / unit, curves / np.outer(unit, unit))
