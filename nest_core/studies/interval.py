"""How surely a plan's time is known.

The parameters of the accelerator under its stack and those of the network are known with a spread
(`nest_core.studies.draws`, which searches draws of them); what they make of a plan's time is their
slopes there. What no parameter explains is the spread between sources, that is between clusters and
between people who measure, and between the runs of one.
"""

from __future__ import annotations

import numpy as np

from nest_core.costs import Problem, Report
from nest_core.explain.interval import Interval
from nest_core.scenario import Scenario
from nest_core.studies.draws import slopes, spread_of

__all__ = ["interval_of"]


def interval_of(scenario: Scenario, problem: Problem, report: Report) -> Interval:
    """The interval of a feasible report of a scenario.

    Parameters
    ----------
    scenario : Scenario
    problem : Problem
        The scenario's.
    report : Report

    Notes
    -----
    One price per uncertain parameter.
    """
    spread = spread_of(scenario, problem)
    (along,) = slopes(scenario, problem.network, spread, (report,))
    variance = along @ spread.joint @ along + spread.source_sd**2 + spread.run_sd**2
    return Interval(report.iteration_s, float(np.sqrt(variance)))
