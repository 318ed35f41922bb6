"""The plan that is expected to be the fastest, and how sure that is.

The exact optimum stands on parameters that are known within limits. So the search is run again
under some draws of them (`nest_core.studies.draws`). The plans that win there and the optimum
itself are then priced under many more, and the one that is expected to take least is recommended.
What no parameter explains is an error of the model of its own for every plan, which plans share as
far as they are alike (`alikeness`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np

from nest_core.costs import Plan, Report, price
from nest_core.costs.problem import Problem
from nest_core.errors import InputError
from nest_core.explain.interval import Interval
from nest_core.hardware.posterior import SHARE
from nest_core.network import FloatArray
from nest_core.planner import search
from nest_core.scenario import Scenario
from nest_core.studies.draws import Spread, spread_of
from nest_core.studies.interval import interval_of
from nest_core.studies.local_price import LocalPrice, local_price
from nest_core.studies.solving import Stop, Tell, never, silent

__all__ = [
    "MOST_DRAWS",
    "Contender",
    "Difference",
    "Recommended",
    "Won",
    "alikeness",
    "checked_draws",
    "difference",
    "recommend",
    "recommended",
    "search_draws",
]

PRICED = 1024
"""Draws under which plans are priced; the first of them are searched."""
MOST_DRAWS = 1000
SURE = 0.9
"""Of the interval of a share of draws."""
_AT_ONCE, _POLL_S, _ROUNDING = 3, 0.1, 1e-12
ALIKE = 0.8
"""Correlation of the model's errors on plans that differ on one of `AXES`."""
AXES = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "zero", "schedule", "interleave")


@dataclass(frozen=True, slots=True)
class Won:
    """The best plan of one draw.

    Parameters
    ----------
    draw : int
        Its number.
    plan : Plan
    iteration_s : float
        By `price` under the draw.
    known_s : float
        What the optimum at the centre takes there.
    proven : bool
        Whether the search came to its end.
    """

    draw: int
    plan: Plan
    iteration_s: float
    known_s: float
    proven: bool


@dataclass(frozen=True, slots=True, eq=False)
class Contender:
    """A plan that was priced under all draws, beside the recommended one.

    Parameters
    ----------
    report : Report
        At the centre.
    expected_s : float
    slower : (float, float)
        Where `SHARE` of draws have its time over the recommended plan's, less 1.
    local : LocalPrice
    """

    report: Report
    expected_s: float
    slower: tuple[float, float]
    local: LocalPrice

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
        The chance that every stage fits into memory: 1 or 0, as memory is not drawn.
    draws, proven : int
        Searched anew, and of those to the end.
    best, low, high : float
        Share of the searched draws that it wins, and the interval that `SURE` stands for.
    worst_regret : float
        Largest share of its time that another of the plans would have saved under some draw.
    others : tuple of Contender
        All other plans that were priced, the least expected time first.
    spread : Spread
    local : LocalPrice
    """

    report: Report
    expected_s: float
    interval: Interval
    fits: float
    draws: int
    proven: int
    best: float
    low: float
    high: float
    worst_regret: float
    others: tuple[Contender, ...]
    spread: Spread
    local: LocalPrice

    @property
    def equals(self) -> tuple[Contender, ...]:
        """Plans that the model cannot tell from it, the least expected time first."""
        return tuple(one for one in self.others if one.equal)

    @property
    def in_words(self) -> str:
        """``Best in 73 % of 30 draws (59 to 84 %), largest regret seen 2.9 %``."""
        return (
            (
                f"Best in {self.best:.0%} of {self.draws} draws ({100 * self.low:.0f} to "
                f"{self.high:.0%}), largest regret seen {100 * self.worst_regret:.2g} %"
            )
            .replace("%", " %")
            .replace("  %", " %")
        )

    def to_json(self) -> dict[str, Any]:
        """The field ``recommended`` of the command line's ``plan``."""
        return {
            "plan": self.report.plan.to_json(),
            "expected_s": self.expected_s,
            "interval": self.interval.to_json(),
            "fits": self.fits,
            "best_in": {
                "draws": self.draws,
                "proven": self.proven,
                "best": self.best,
                "low": self.low,
                "high": self.high,
                "worst_regret": self.worst_regret,
            },
            "equals": [one.to_json() for one in self.equals],
            "words": self.in_words,
        }


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


def alikeness(plans: Sequence[Plan]) -> FloatArray:
    """Correlation of the model's errors on plans, (plans, plans).

    `ALIKE` for every axis on which two differ, multiplied: 1 for plans that differ on none. The
    value is that of the grids of Megatron-LM on A100s over several nodes
    (``docs/method.md``, "How sure").
    """
    points = [plan.point for plan in plans]
    found = np.ones((len(plans), len(plans)))
    for axis in AXES:
        values = np.array([str(getattr(point, axis)) for point in points])
        found *= np.where(values[:, None] == values, 1.0, ALIKE)
    return found


def search_draws(
    scenario: Scenario,
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
    rows = spread.rows(max(numbers) + 1, seed)
    won: list[Won] = []
    for place, number in enumerate(numbers):
        progress(place / len(numbers), f"draw {place + 1} of {len(numbers)}")
        drawn = spread.draw(rows[number]).problem(scenario, problem.network)
        known_s = price(drawn, known).iteration_s
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
        if best is None:
            won.append(Won(number, known, known_s, known_s, proven))
        else:
            won.append(Won(number, best.plan, best.iteration_s, known_s, proven))
    return tuple(won)


def recommend(
    scenario: Scenario,
    problem: Problem,
    known: Plan,
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
    known : Plan
        The optimum at the centre.
    draws : int
        To be searched.
    pool : Executor, optional
        Whose processes search and price; this one without it.
    stop : callable, optional
        Once true, what was searched by then counts; None where that is nothing.
    """
    if pool is None:
        found = search_draws(
            scenario, problem, known, range(draws), seed=seed, progress=progress, stop=stop
        )
    else:
        found = _in_pool(pool, (scenario, known), draws, seed, progress, stop)
    return recommended(scenario, problem, known, found, seed=seed, pool=pool) if found else None


def _in_pool(
    pool: Executor,
    asked: tuple[Scenario, Plan],
    draws: int,
    seed: int,
    progress: Tell,
    stop: Stop,
) -> tuple[Won, ...]:
    """Draws in runs of a few, so that none waits long for the last."""
    runs = [range(first, min(first + _AT_ONCE, draws)) for first in range(0, draws, _AT_ONCE)]
    futures = [pool.submit(_searched_run, *asked, run, seed) for run in runs]
    pending = set(futures)
    while pending and not stop():
        progress(1 - len(pending) / len(futures), f"draws searched in {len(futures)} parts")
        _, pending = wait(pending, timeout=_POLL_S)
    for future in pending:
        future.cancel()
    return tuple(one for future in futures if future not in pending for one in future.result())


def _searched_run(scenario: Scenario, known: Plan, numbers: range, seed: int) -> tuple[Won, ...]:
    return search_draws(scenario, _problem(scenario), known, numbers, seed=seed)


def _local(scenario: Scenario, plan: Plan) -> LocalPrice:
    problem = _problem(scenario)
    return local_price(scenario, plan, spread_of(scenario, problem), problem.network)


@lru_cache(maxsize=1)
def _problem(scenario: Scenario) -> Problem:
    """That of the scenario a process last worked on."""
    return scenario.problem()


def recommended(
    scenario: Scenario,
    problem: Problem,
    known: Plan,
    won: Sequence[Won],
    *,
    seed: int = 0,
    pool: Executor | None = None,
) -> Recommended:
    """The plan of least expected time among the winners of draws and the optimum at the centre.

    Parameters
    ----------
    problem : Problem
        The scenario's.
    known : Plan
        The optimum; of equal plans it is taken.
    won : sequence of Won
        At least one draw.
    pool : Executor, optional
        Whose processes price the plans.
    """
    spread = spread_of(scenario, problem)
    plans = list(dict.fromkeys((known, *(one.plan for one in won))))
    reports = [price(problem, plan) for plan in plans]
    local = (
        [local_price(scenario, plan, spread, problem.network) for plan in plans]
        if pool is None
        else list(pool.map(_local, repeat(scenario), plans))
    )
    rows = spread.rows(PRICED, seed)
    modelled = np.stack([one.seconds(rows) for one in local])
    expected = modelled.mean(axis=1)
    chosen = int(expected.argmin())
    seconds = modelled * np.exp(_errors(plans, spread, seed))
    regret = 1.0 - seconds.min(axis=0) / seconds[chosen]
    slower = [_inner(each / seconds[chosen] - 1.0) for each in seconds]
    others = [
        Contender(reports[k], float(expected[k]), slower[k], local[k])
        for k in np.argsort(expected, kind="stable").tolist()
        if k != chosen
    ]
    draws = len(won)
    wins = sum(one.plan == plans[chosen] for one in won)
    low, high = _share_interval(wins, draws)
    return Recommended(
        report=reports[chosen],
        expected_s=float(expected[chosen]),
        interval=interval_of(scenario, problem, reports[chosen]),
        fits=float(reports[chosen].feasible),
        draws=draws,
        proven=sum(one.proven for one in won),
        best=wins / draws,
        low=low,
        high=high,
        worst_regret=float(regret.max()),
        others=tuple(others),
        spread=spread,
        local=local[chosen],
    )


@dataclass(frozen=True, slots=True)
class Difference:
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
        """Its fields, and the share that the interval stands for."""
        return {
            "centre": self.centre,
            "low": self.low,
            "high": self.high,
            "share": SHARE,
            "slower": self.slower,
        }


def difference(base: Recommended, other: Recommended, *, seed: int = 0) -> Difference:
    """How much longer another scenario takes than a base, parameters drawn together.

    What both share, as kernels of the same accelerator, cancels; so does the model's error as far
    as the plans are alike, and that of the cluster.
    """
    errors = _errors([base.report.plan, other.report.plan], base.spread, seed)
    first, second = (
        one.local.seconds(one.spread.rows(PRICED, seed)) * np.exp(error)
        for one, error in zip((base, other), errors, strict=True)
    )
    apart = second / first - 1.0
    low, high = _inner(apart)
    return Difference(float(np.median(apart)), low, high, float((apart > 0.0).mean()))


def _errors(plans: Sequence[Plan], spread: Spread, seed: int) -> FloatArray:
    """Errors of the model on each plan, (plans, draws), as logarithms of factors."""
    rng = np.random.default_rng([seed, 1])
    sizes, ways = np.linalg.eigh(alikeness(plans))
    root = ways * np.sqrt(np.where(sizes > _ROUNDING, sizes, 0.0))  # plans may be alike on all axes
    return np.asarray(spread.run_sd * root @ rng.standard_normal((len(plans), PRICED)))


def _inner(values: FloatArray) -> tuple[float, float]:
    """Between what `SHARE` of values lie."""
    low, high = np.quantile(values, [(1 - SHARE) / 2, (1 + SHARE) / 2]).tolist()
    return low, high


def _share_interval(wins: int, draws: int) -> tuple[float, float]:
    """Jeffreys' interval of a share (Brown, Cai and DasGupta 2001, section 4.3)."""
    from scipy.special import betaincinv  # not for every start

    tail = (1 - SURE) / 2
    low = betaincinv(wins + 0.5, draws - wins + 0.5, tail) if wins else 0.0
    high = betaincinv(wins + 0.5, draws - wins + 0.5, 1 - tail) if wins < draws else 1.0
    return float(low), float(high)
