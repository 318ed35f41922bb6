"""How widely a predicted training time spreads under the posterior of measured runs.

``presets/validation/posterior.toml`` holds what measured runs say of kernels, links and software
(`nest_core.hardware.posterior`); it is fitted by ``benchmarks/validation``. A prediction is
linearised at the posterior's centre, in the logarithms of time and of the factors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nest_core.calibration.training.machines import accelerator_of
from nest_core.calibration.training.predict import predict, problem_of
from nest_core.calibration.training.runs import Run
from nest_core.costs import Plan, price
from nest_core.hardware.posterior import PARAMETERS, Knowledge, Posterior
from nest_core.hardware.stacks import load_stack

__all__ = ["knowledge_of", "slopes_of", "spread"]

FloatArray = npt.NDArray[np.float64]


STEP = 0.05
"""Of a logarithm, for derivatives."""


def spread(run: Run, posterior: Posterior, plan: Plan | None = None) -> float:
    """Return the standard deviation of the logarithm of a run's time, for a source not seen yet.

    Parameters
    ----------
    run, posterior
    plan : Plan, optional
        Another than the run's.
    """
    knowledge = knowledge_of(run, posterior)
    _, slopes = slopes_of(run, knowledge, plan)
    run_sd = knowledge.experts_sd if run.experts > 1 else knowledge.run_sd
    return float(
        np.sqrt(slopes @ knowledge.covariance @ slopes + knowledge.source_sd**2 + run_sd**2)
    )


def knowledge_of(run: Run, posterior: Posterior) -> Knowledge:
    """Return what the posterior holds of a run's family, framework and stack."""
    stack = load_stack(run.stack)
    return posterior.of(accelerator_of(run.accelerator).family.name, stack.framework, stack.name)


def slopes_of(run: Run, knowledge: Knowledge, plan: Plan | None = None) -> tuple[float, FloatArray]:
    """Return the logarithm of a run's predicted time, and its slopes by those of the factors."""

    def predicted(values: FloatArray) -> float:
        factors = knowledge.factors(values)
        if plan is None:
            report = predict(run, factors=factors)
        else:
            report = price(problem_of(run, accelerator_of(run.accelerator), factors), plan)
        return float(np.log(report.iteration_s))

    here = predicted(knowledge.centre)
    steps = STEP * np.eye(len(PARAMETERS))
    return here, np.array([(here - predicted(knowledge.centre - step)) / STEP for step in steps])
