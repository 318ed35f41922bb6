"""How surely a plan's time is known, and how surely one plan is faster than another.

The parameters of the accelerator under its stack and those of the network are known with a spread
(`nest_core.studies.draws`, which searches draws of them); what they make of a plan's time is their
slopes there. What no parameter explains is the spread between sources, that is between clusters and
between people who measure, and between the runs of one.

Two plans share parameters: what makes both slower says nothing of which is faster. Of their ratio
the variance is that of the difference of their slopes, a parameter of one name counted once; of
what the model errs by from run to run, less the more alike the plans are (`alikeness`), nothing for
one plan on two networks; and of what repeated runs differ by on either side, as in
`nest_core.studies.uplinks`. The spread between sources is no part of it, for one cluster measures
both. That is the paired interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs import Problem, Report
from nest_core.explain.interval import Interval
from nest_core.network import FloatArray
from nest_core.scenario import ScenarioValues
from nest_core.studies.draws import REPEATED_SD, Spread, alikeness, slopes, spread_of

__all__ = ["Sureness", "interval_of", "paired_sd", "sureness_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Sureness:
    """How a plan's time follows what is not known exactly.

    Parameters
    ----------
    report : Report
    spread : Spread
    along : (parameters,)
        Slopes of the time's logarithm along the logarithms of the spread's parameters.
    """

    report: Report
    spread: Spread
    along: FloatArray

    @property
    def interval(self) -> Interval:
        """Where the time will lie."""
        known = self.spread
        variance = self.along @ known.joint @ self.along + known.source_sd**2 + known.run_sd**2
        return Interval(self.report.iteration_s, float(np.sqrt(variance)))


def sureness_of(scenario: ScenarioValues, problem: Problem, report: Report) -> Sureness:
    """How surely a feasible report of a scenario is known; one price per uncertain parameter."""
    spread = spread_of(scenario, problem)
    (along,) = slopes(scenario, problem.network, spread, (report,))
    return Sureness(report, spread, along)


def interval_of(scenario: ScenarioValues, problem: Problem, report: Report) -> Interval:
    """The interval of a feasible report of a scenario.

    Parameters
    ----------
    scenario : ScenarioValues
    problem : Problem
        The scenario's.
    report : Report

    Notes
    -----
    One price per uncertain parameter.
    """
    return sureness_of(scenario, problem, report).interval


def paired_sd(first: Sureness, second: Sureness) -> float:
    """Standard deviation of the logarithm of the ratio of two plans' times on one cluster.

    Kernels are shared where both know them alike, as of one accelerator under one stack.
    """
    one, other = first.spread, second.spread
    count = len(one.kernels)
    alike = one.kernels == other.kernels and np.array_equal(one.covariance, other.covariance)
    mine, theirs = first.along[:count], second.along[: len(other.kernels)]
    if alike:
        apart = mine - theirs
        variance = float(apart @ one.covariance @ apart)
    else:
        variance = float(mine @ one.covariance @ mine + theirs @ other.covariance @ theirs)
    moved = _by_name(first), _by_name(second)
    for name in {**moved[0], **moved[1]}:
        variance += (moved[0].get(name, 0.0) - moved[1].get(name, 0.0)) ** 2
    shared = float(alikeness((first.report.plan, second.report.plan))[0, 1])
    variance += one.run_sd**2 + other.run_sd**2 - 2 * shared * one.run_sd * other.run_sd
    return float(np.sqrt(variance + 2 * REPEATED_SD**2))


def _by_name(one: Sureness) -> dict[str, float]:
    """How far a standard deviation of every network parameter moves the time."""
    along = one.along[len(one.spread.kernels) :].tolist()
    return {
        name: slope * sd for (_, name, sd), slope in zip(one.spread.network, along, strict=True)
    }
