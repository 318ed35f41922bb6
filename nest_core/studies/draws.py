"""Draws of what is not known exactly: a scenario as it may be, with all else the same.

What a scenario states is the centre. A draw moves the parameters of
`nest_core.hardware.posterior` away from it, as far and as jointly as their posterior lets them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs.problem import Problem
from nest_core.hardware.posterior import adjusted
from nest_core.hardware.stacks import known_of
from nest_core.network import FloatArray, Network
from nest_core.scenario import Scenario

__all__ = ["Draw", "Spread", "drawn_problem", "spread_of"]


@dataclass(frozen=True, slots=True)
class Draw:
    """How far parameters lie from their centre, as logarithms of factors.

    Parameters
    ----------
    parameters : tuple of str
        See `nest_core.hardware.posterior.PARAMETERS`.
    values : tuple of float
    """

    parameters: tuple[str, ...]
    values: tuple[float, ...]

    def on(self, scenario: Scenario) -> Scenario:
        """The scenario as it is under this draw."""
        factors = dict(zip(self.parameters, np.exp(self.values).tolist(), strict=True))
        return replace(scenario, accelerator=adjusted(scenario.accelerator, factors))


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """How surely the parameters of a scenario are known.

    Parameters
    ----------
    parameters : tuple of str
    covariance : (n, n)
        Of the logarithms of their factors.
    run_sd : float
        Of the logarithm of a time: between the runs of one source. What all plans on a cluster
        share says nothing of which is faster.
    """

    parameters: tuple[str, ...]
    covariance: FloatArray
    run_sd: float

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of each parameter, (n,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def rows(self, count: int, seed: int) -> FloatArray:
        """Deviations from the centre, (count, n); of the same seed the first ones stay the same."""
        rng = np.random.default_rng(seed)
        nothing = np.zeros(len(self.parameters))
        return rng.multivariate_normal(nothing, self.covariance, count, method="eigh")

    def draw(self, row: FloatArray) -> Draw:
        """One row of deviations as a draw."""
        return Draw(self.parameters, tuple(row.tolist()))


def spread_of(scenario: Scenario) -> Spread:
    """What is known of a scenario's accelerator under its stack, and of its network."""
    known = known_of(scenario.accelerator, scenario.stack)
    run_sd = known.experts_sd if scenario.model.experts > 1 else known.run_sd
    return Spread(known.parameters, known.covariance, run_sd)


def drawn_problem(scenario: Scenario, draw: Draw, network: Network) -> Problem:
    """The arrays that a scenario's plans are priced from under a draw.

    Parameters
    ----------
    network : Network
        The scenario's fabric, collapsed; a draw that leaves the fabric alone shares it.
    """
    drawn = draw.on(scenario)
    return drawn.problem(network=network if drawn.fabric is scenario.fabric else None)
