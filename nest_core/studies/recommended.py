"""The plan that is expected to be the fastest, and how sure that is.

The exact optimum stands on parameters that are known within limits. So the search is run again
under some draws of them (`nest_core.studies.uncertainty`). The plans that win there and the optimum
itself are then priced under many more, and the one that is expected to take least is recommended.
What no parameter explains is an error of the model of its own for every plan, which plans share as
far as they are alike (`alikeness`). A plan wins no draw in which it does not fit.

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
from itertools import repeat
from typing import Any

import numpy as np

from nest_core.costs import Interval, Plan, Problem, Report, certainty_words, fits_chance, price
from nest_core.costs.shapes import measured_like
from nest_core.documents.errors import InputError
from nest_core.hardware.posterior import SHARE
from nest_core.network import FloatArray, Network
from nest_core.planner import search
from nest_core.scenario import ScenarioValues
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.uncertainty import ParameterSpread, alikeness, interval_of, spread_of

__all__ = [
    "MOST_DRAWS",
    "DrawResult",
    "LocalPrice",
    "Recommended",
    "RecommendedDifference",
    "RivalPlan",
    "cached_problem",
    "checked_draws",
    "difference",
    "local_price",
    "recommend",
    "recommended",
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


PRICED = 1024
"""Draws under which plans are priced; the first of them are searched."""
SURE = 0.9
"""Of the interval of a share of draws."""
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class RivalPlan:
    """A plan that was priced under all draws, beside the recommended one.

    Parameters
    ----------
    report : Report
        At the centre.
    expected_s : float
    slower : (float, float)
        Where `SHARE` of draws have its time over the recommended plan's, less 1.
    measured : int
        Runs of its shape, or one like it, on the accelerator's family under the stack.
    """

    report: Report
    expected_s: float
    slower: tuple[float, float]
    measured: int

    @property
    def equal(self) -> bool:
        """Whether the model cannot tell it from the recommended plan."""
        return self.slower[0] <= 0.0 <= self.slower[1]

    def to_json(self) -> dict[str, Any]:
        """Plan, seconds, and how much slower it is, as the command line prints them."""
        return {
            "plan": self.report.plan.to_json(),
            "expected_s": self.expected_s,
            "slower": list(self.slower),
            "measured": self.measured,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Recommended:
    """The plan that takes least on average over draws.

    Parameters
    ----------
    report : Report
        The plan, priced at the centre.
    expected_s : float
    interval : Interval
        Where its time will lie, as of any plan.
    fits : float
        The chance that every stage fits into memory, over draws of it.
    measured : int
        As of a `RivalPlan`.
    draws, proven : int
        Searched anew, and of those to the end.
    best, low, high : float
        Share of the searched draws that it wins, and the interval that `SURE` stands for.
    worst_regret : float
        Largest share of its time that another of the plans would have saved under some draw in
        which it fits.
    others : tuple of RivalPlan
        All other plans that were priced, the least expected time first.
    spread : ParameterSpread
    local : LocalPrice
    """

    report: Report
    expected_s: float
    interval: Interval
    fits: float
    measured: int
    draws: int
    proven: int
    best: float
    low: float
    high: float
    worst_regret: float
    others: tuple[RivalPlan, ...]
    spread: ParameterSpread
    local: LocalPrice

    @property
    def equals(self) -> tuple[RivalPlan, ...]:
        """Plans that the model cannot tell from it, the one measured most first."""
        return tuple(
            sorted((plan for plan in self.others if plan.equal), key=lambda plan: -plan.measured)
        )

    @property
    def in_words(self) -> str:
        """``Best in 73 % of 30 draws (59 to 84 %), largest regret seen 2.9 %, fits with …``."""
        return (
            f"Best in {100 * self.best:.0f} % of {self.draws} draws ({100 * self.low:.0f} to "
            f"{100 * self.high:.0f} %), largest regret seen {100 * self.worst_regret:.2g} %, "
            f"{certainty_words(self.fits)}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the field ``recommended`` of the command line's ``plan``."""
        return {
            "plan": self.report.plan.to_json(),
            "expected_s": self.expected_s,
            "interval": self.interval.to_json(),
            "fits": self.fits,
            "measured": self.measured,
            "best_in": {
                "draws": self.draws,
                "proven": self.proven,
                "best": self.best,
                "low": self.low,
                "high": self.high,
                "worst_regret": self.worst_regret,
            },
            "equals": [plan.to_json() for plan in self.equals],
            "words": self.in_words,
        }


def recommend(
    scenario: ScenarioValues,
    problem: Problem,
    optimum: Plan,
    draws: int,
    *,
    seed: int = 0,
    pool: Executor | None = None,
    progress: Tell = silent,
    stop: Stop = never,
) -> Recommended | None:
    """Search some draws anew, and recommend; the same whoever does it.

    Parameters
    ----------
    optimum : Plan
        The optimum at the centre.
    draws : int
        To be searched.
    pool : Executor, optional
        Whose processes search and price; this one without it.
    stop : callable, optional
        Once true, what was searched by then counts; None where that is nothing.
    """
    results = (
        search_draws(
            scenario, problem, optimum, range(draws), seed=seed, progress=progress, stop=stop
        )
        if pool is None
        else search_in_pool(pool, scenario, optimum, draws, seed=seed, progress=progress, stop=stop)
    )
    return (
        recommended(scenario, problem, optimum, results, seed=seed, pool=pool) if results else None
    )


def _local(scenario: ScenarioValues, plan: Plan) -> LocalPrice:
    problem = cached_problem(scenario)
    return local_price(scenario, plan, spread_of(scenario, problem), problem.network)


def recommended(
    scenario: ScenarioValues,
    problem: Problem,
    optimum: Plan,
    won: Sequence[DrawResult],
    *,
    seed: int = 0,
    pool: Executor | None = None,
) -> Recommended:
    """Return the plan of least expected time among winners of draws and the centre's optimum.

    Parameters
    ----------
    problem : Problem
        The scenario's.
    optimum : Plan
        The optimum; of equal plans it is taken.
    won : sequence of DrawResult
        At least one draw.
    pool : Executor, optional
        Whose processes price the plans.
    """
    spread = spread_of(scenario, problem)
    winners = [result.plan for result in won]
    plans = list(dict.fromkeys((optimum, *(plan for plan in winners if plan is not None))))
    reports = [price(problem, plan) for plan in plans]
    local = (
        [local_price(scenario, plan, spread, problem.network) for plan in plans]
        if pool is None
        else list(pool.map(_local, repeat(scenario), plans))
    )
    rows = spread.rows(PRICED, seed)
    modelled = np.stack([result.seconds(rows) for result in local])
    expected = modelled.mean(axis=1)
    chosen = int(expected.argmin())
    seconds = modelled * np.exp(_errors(plans, spread, seed))
    needed = np.array([[report.fullest_bytes] for report in reports])
    errors = np.exp(problem.memory_spread * spread.memory(PRICED, seed))
    fits = needed * errors <= problem.memory_bytes  # (plans, draws)
    regret = (
        1.0
        - np.where(fits, seconds, np.inf).min(axis=0)[fits[chosen]] / seconds[chosen, fits[chosen]]
    )
    family, stack = scenario.accelerator.family.name, scenario.stack.name
    measured = [measured_like(family, stack, plan) for plan in plans]
    slower = [_inner(plan_seconds / seconds[chosen] - 1.0) for plan_seconds in seconds]
    others = [
        RivalPlan(reports[k], float(expected[k]), slower[k], measured[k])
        for k in np.argsort(expected, kind="stable").tolist()
        if k != chosen
    ]
    draws, wins = len(won), winners.count(plans[chosen])
    low, high = _share_interval(wins, draws)
    return Recommended(
        report=reports[chosen],
        expected_s=float(expected[chosen]),
        interval=interval_of(scenario, problem, reports[chosen]),
        fits=fits_chance(
            reports[chosen].fullest_bytes, problem.memory_bytes, problem.memory_spread
        ),
        measured=measured[chosen],
        draws=draws,
        proven=sum(result.proven for result in won),
        best=wins / draws,
        low=low,
        high=high,
        worst_regret=float(regret.max(initial=0.0)),
        others=tuple(others),
        spread=spread,
        local=local[chosen],
    )


@dataclass(frozen=True, slots=True)
class RecommendedDifference:
    """How much longer one scenario's recommended plan takes than another's, under shared draws.

    Parameters
    ----------
    centre, low, high : float
        Its time over the other's, less 1: in the middle, and where `SHARE` of draws have it.
    slower : float
        Share of draws in which it takes longer.
    """

    centre: float
    low: float
    high: float
    slower: float

    @property
    def in_words(self) -> str:
        """``12 % slower (8.1 to 16 %), in 99 % of draws``, or that it cannot be told."""
        span = f"{100 * self.low:+.2g} to {100 * self.high:+.2g} %"
        if self.low <= 0.0 <= self.high:
            return f"cannot be told apart ({span}; slower in {100 * self.slower:.0f} % of draws)"
        more, share = ("slower", self.slower) if self.low > 0 else ("faster", 1 - self.slower)
        return f"{abs(100 * self.centre):.2g} % {more} ({span}), in {100 * share:.0f} % of draws"

    def to_json(self) -> dict[str, float]:
        """Return its fields, and the share that the interval stands for."""
        return {
            "centre": self.centre,
            "low": self.low,
            "high": self.high,
            "share": SHARE,
            "slower": self.slower,
        }


def difference(base: Recommended, other: Recommended, *, seed: int = 0) -> RecommendedDifference:
    """Return how much longer another scenario takes than a base, parameters drawn together.

    What both share, as kernels of the same accelerator, cancels; so does the model's error as far
    as the plans are alike, and that of the cluster.
    """
    errors = _errors([base.report.plan, other.report.plan], base.spread, seed)
    first, second = (
        recommendation.local.seconds(recommendation.spread.rows(PRICED, seed)) * np.exp(error)
        for recommendation, error in zip((base, other), errors, strict=True)
    )
    ratio = second / first - 1.0
    low, high = _inner(ratio)
    return RecommendedDifference(float(np.median(ratio)), low, high, float((ratio > 0.0).mean()))


def _errors(plans: Sequence[Plan], spread: ParameterSpread, seed: int) -> FloatArray:
    """Return errors of the model on each plan, (plans, draws), as logarithms of factors."""
    rng = np.random.default_rng([seed, 1])
    sizes, ways = np.linalg.eigh(alikeness(plans))
    root = ways * np.sqrt(np.where(sizes > _ROUNDING, sizes, 0.0))  # plans may be alike on all axes
    return np.asarray(spread.run_sd * root @ rng.standard_normal((len(plans), PRICED)))


def _inner(values: FloatArray) -> tuple[float, float]:
    """Return between what `SHARE` of values lie."""
    low, high = np.quantile(values, [(1 - SHARE) / 2, (1 + SHARE) / 2]).tolist()
    return low, high


def _share_interval(wins: int, draws: int) -> tuple[float, float]:
    """Return Jeffreys' interval of a share (Brown, Cai and DasGupta 2001, section 4.3)."""
    from scipy.special import betaincinv  # not for every start

    tail = (1 - SURE) / 2
    low = betaincinv(wins + 0.5, draws - wins + 0.5, tail) if wins else 0.0
    high = betaincinv(wins + 0.5, draws - wins + 0.5, 1 - tail) if wins < draws else 1.0
    return float(low), float(high)
