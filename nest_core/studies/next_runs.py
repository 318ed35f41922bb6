"""Which runs narrow the choice of a plan most, and the experiment that settles oversubscription.

Plans that may be the fastest are the best few at the centre of what is known of parameters, and
those that win under some draws of it. Their log-times are jointly normal: slopes on the parameters
times the parameters' covariance, an error of the model that plans share as far as they are alike,
and what the cluster has in common. A run shows one of them but for what repeated runs differ by,
and so tells of all others [1]_. It is worth what the plan that is then expected to be fastest takes
less than the one that would be chosen without it, on average over its outcomes: never less than
nothing, and nothing where no outcome changes the choice. Runs are chosen one after the other, with
those before it given.

Nobody has published a training step at two oversubscription ratios with all else equal
(docs/validation.md, "What would settle oversubscription"). A cluster of one's own can: uplinks of
every leaf are switched off, as many at each, while nodes, ranks and software stay. `uplinks_off`
says what is predicted of one plan for every number that may remain. What the model does not know of
the cluster and of its kernels is the same in every step. So the ratio of two steps is surer than
either: its interval is that of the slopes' difference, with what repeated runs differ by on either
side.

References
----------
.. [1] Frazier, Powell and Dayanik 2009, "The knowledge-gradient policy for correlated normal
       beliefs", INFORMS Journal on Computing 21(4).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest_core.costs import Interval, Report, price
from nest_core.documents import InputError, plural, require
from nest_core.fabric import Clos, Fabric
from nest_core.network import FloatArray, clos_network
from nest_core.planner import search
from nest_core.scenario import ScenarioValues
from nest_core.studies.uncertainty import REPEATED_SD, alikeness, slopes, spread_of

__all__ = [
    "MOST_RUNS",
    "Beliefs",
    "NextRun",
    "NextRuns",
    "UplinkStep",
    "UplinksOff",
    "check_leaves",
    "chosen_runs",
    "next_runs",
    "uplinks_off",
]

MOST_RUNS = 50
BEST = 8
"""Points of least time at the centre among the candidates."""
DRAWS = 20
"""Draws of the parameters, the winners of which are candidates; searching them all takes no more
than the centre may."""
WORTH = 0.99
"""A winner takes at most this share of the time of any other candidate: nobody's model tells
plans apart that differ by less, and a search that need not is short."""
OUTCOMES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """What is thought of some plans' times.

    Parameters
    ----------
    centre : array (n,)
        Natural logarithms of seconds.
    covariance : array (n, n)
        Of the same.
    """

    centre: FloatArray
    covariance: FloatArray

    def regret_s(self, seen: Sequence[int], seed: int, *, noise: float = REPEATED_SD) -> float:
        """Return how much less a choice made after seeing some plans' runs takes on average, s.

        Parameters
        ----------
        seen : sequence of int
            Places of plans.
        seed : int
            Of outcomes; the same for every choice of ``seen``, so that they compare.
        noise : float
            Standard deviation of what repetitions of a run differ by.
        """
        if not seen:
            return 0.0
        rng = np.random.default_rng(seed)
        among = self.covariance[np.ix_(seen, seen)] + noise**2 * np.eye(len(seen))
        gain = np.linalg.solve(among, self.covariance[seen]).T
        off = rng.multivariate_normal(np.zeros(len(self.centre)), self.covariance, OUTCOMES)
        off = off[:, seen] + noise * rng.standard_normal((OUTCOMES, len(self.centre)))[:, seen]
        variance = np.diag(self.covariance) - np.einsum("ij,ji->i", gain, self.covariance[seen])
        expected = np.exp(self.centre + off @ gain.T + variance / 2.0)
        return float((expected[:, self.choice] - expected.min(axis=1)).mean())

    @property
    def choice(self) -> int:
        """The plan that is expected to take least."""
        return int((self.centre + np.diag(self.covariance) / 2.0).argmin())


def chosen_runs(
    beliefs: Beliefs, count: int, seed: int = 0, among: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """Return places of the plans to run, and the seconds by which each lessens the expected regret.

    Parameters
    ----------
    count : int
    seed : int
    among : collection of int, optional
        Places of plans that can be run; all without it.
    """
    open_ = sorted(range(len(beliefs.centre)) if among is None else among)
    chosen: list[tuple[int, float]] = []
    before = 0.0
    while open_ and len(chosen) < count:
        seen = [place for place, _ in chosen]
        values = [beliefs.regret_s([*seen, place], seed) for place in open_]
        best = int(np.argmax(values))
        chosen.append((open_.pop(best), max(0.0, values[best] - before)))
        before = max(before, values[best])
    return chosen


@dataclass(frozen=True, slots=True)
class NextRun:
    """A run that is worth its time.

    Parameters
    ----------
    report : Report
        Its plan, priced at the centre.
    expected_regret_removed_s : float
        Of an iteration: by how much less the plan that is then chosen takes, on average.
    """

    report: Report
    expected_regret_removed_s: float

    def to_json(self) -> dict[str, Any]:
        """Return its fields as the command line prints them."""
        return {
            "plan": self.report.plan.to_json(),
            "predicted_s": self.report.iteration_s,
            "expected_regret_removed_s": self.expected_regret_removed_s,
        }


@dataclass(frozen=True, slots=True)
class NextRuns:
    """Runs that narrow a choice, the most telling first.

    Parameters
    ----------
    runs : tuple of NextRun
    candidates : int
        Plans that the choice is between.
    draws : int
        Of the parameters, searched for candidates.
    expected_regret_s : float
        What knowing every plan's time would save of an iteration, on average.
    """

    runs: tuple[NextRun, ...]
    candidates: int
    draws: int
    expected_regret_s: float


def next_runs(
    scenario: ScenarioValues,
    count: int,
    runnable: Callable[[Report], bool] = lambda _: True,
    seed: int = 0,
) -> NextRuns:
    """Return the runs of a scenario's plans that narrow the choice between them most.

    Parameters
    ----------
    scenario : ScenarioValues
    count : int
        At most so many.
    runnable : callable (Report) -> bool
        Whether a plan can be run; those that cannot stay in the choice.
    seed : int

    Raises
    ------
    InputError
        If the number is out of bounds, or no plan fits.
    """
    require(
        1 <= count <= MOST_RUNS,
        "runs",
        f"must lie between 1 and {MOST_RUNS}",
        count,
        "give another",
    )
    problem = scenario.problem()
    spread = spread_of(scenario, problem)
    result = search(problem, scenario.space, top=BEST, time_limit_s=scenario.time_limit_s)
    if result.best is None:
        raise InputError("scenario", "must have a plan", result.reason, "change it")
    plans = [result.best.plan, *(report.plan for report in result.alternatives)]
    for row in spread.rows(DRAWS, seed):
        drawn = spread.draw(row).problem(scenario, problem.network)
        fastest = min(price(drawn, plan).iteration_s for plan in plans)
        again = search(
            drawn,
            scenario.space,
            time_limit_s=scenario.time_limit_s / DRAWS,
            effort=1.0 / DRAWS,
            within_s=WORTH * fastest,
        ).best
        plans += [again.plan] if again else []
    reports = [price(problem, plan) for plan in plans]
    along = slopes(scenario, problem.network, spread, reports)
    covariance = (
        along @ spread.joint @ along.T
        + spread.run_sd**2 * alikeness([report.plan for report in reports])
        + spread.source_sd**2
    )
    beliefs = Beliefs(np.log([report.iteration_s for report in reports]), covariance)
    among = [place for place, report in enumerate(reports) if runnable(report)]
    everything = beliefs.regret_s(range(len(reports)), seed, noise=1e-4)  # next to none
    return NextRuns(
        tuple(
            NextRun(reports[place], value)
            for place, value in chosen_runs(beliefs, count, seed, among)
        ),
        len(reports),
        DRAWS,
        everything,
    )


@dataclass(frozen=True, slots=True)
class UplinkStep:
    """A plan on leaves that have so many uplinks left.

    Parameters
    ----------
    remaining : int
        Uplinks of every leaf switch that stay switched on.
    oversubscription : float
        Down : up of a full leaf.
    interval : Interval
        Of one iteration.
    ratio : float
        Its time over that with all uplinks.
    ratio_interval : (float, float)
        Holds 80 % of ratios that are measured on one cluster.
    """

    remaining: int
    oversubscription: float
    interval: Interval
    ratio: float
    ratio_interval: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """Return its fields as the command line prints them."""
        return {
            "uplinks_left": self.remaining,
            "oversubscription": self.oversubscription,
            "predicted_s": self.interval.centre_s,
            "interval": [self.interval.low_s, self.interval.high_s],
            "ratio": self.ratio,
            "ratio_interval": list(self.ratio_interval),
        }


@dataclass(frozen=True, slots=True)
class UplinksOff:
    """The experiment with one plan.

    Parameters
    ----------
    report : Report
        The plan, with all uplinks.
    leaves, spines : int
        Leaf switches in place, and the switches that uplinks of one of them are spread over.
    steps : tuple of UplinkStep
        All uplinks first.
    """

    report: Report
    leaves: int
    spines: int
    steps: tuple[UplinkStep, ...]

    @property
    def crosses(self) -> bool:
        """Whether the plan notices that uplinks are gone."""
        return max(step.ratio for step in self.steps) > 1.0 + REPEATED_SD

    def kept(self, left: int) -> str:
        """Return how many links of a leaf to every spine stay on, in words."""
        per_spine, more = divmod(left, self.spines)
        links = plural(per_spine + bool(more), "link")
        return (
            f"{links} to {more} of {self.spines} spines, {per_spine or 'none'} to the others"
            if more
            else f"{links} to every spine"
        )


def check_leaves(fabric: Fabric) -> tuple[Clos, int]:
    """Return a fabric with leaves, and the uplinks of one; InputError for one without."""
    if not isinstance(fabric, Clos) or fabric.tiers < 2:
        raise InputError(
            "fabric",
            "must have leaf switches with uplinks to switch off, as a Clos of two or three tiers",
            f"a {fabric.noun}" + (" of one tier" if isinstance(fabric, Clos) else ""),
            "name another for the experiment",
        )
    return fabric, int(fabric.uplinks(1).max()) // fabric.planes


def uplinks_off(scenario: ScenarioValues, report: Report) -> UplinksOff:
    """Return what a plan is predicted to take by the number of uplinks that a leaf has left.

    Parameters
    ----------
    scenario : ScenarioValues
    report : Report
        A plan of it that fits, priced.

    Raises
    ------
    InputError
        If the fabric has no leaves whose uplinks can be counted.
    """
    fabric, most = check_leaves(scenario.fabric)
    along, seconds = [], []
    for remaining in range(most, 0, -1):
        problem = scenario.problem(report.plan.recompute, clos_network(fabric, remaining))
        spread = spread_of(scenario, problem)
        priced = price(problem, report.plan)
        along.append(slopes(scenario, problem.network, spread, (priced,))[0])
        seconds.append(priced.iteration_s)
    return UplinksOff(
        report,
        fabric.switch_counts()[fabric.tier_names[0]],
        max(fabric.sizing.spines),
        tuple(
            UplinkStep(
                most - index,
                fabric.switch_ports()[0].down / ((most - index) * fabric.link_ports[1]),
                Interval(
                    seconds[index],
                    _sd(along[index], spread.joint, spread.source_sd, spread.run_sd),
                ),
                seconds[index] / seconds[0],
                Interval(
                    1.0, _sd(along[index] - along[0], spread.joint, *(REPEATED_SD,) * 2)
                ).around(seconds[index] / seconds[0]),
            )
            for index in range(most)
        ),
    )


def _sd(along: np.ndarray[Any, Any], joint: np.ndarray[Any, Any], *more: float) -> float:
    return float(np.sqrt(along @ joint @ along + np.sum(np.square(more))))
