"""What a plan takes under many draws, from a few of its prices.

Terms of an iteration add up, and most depend on one parameter each. So its time is taken as a sum
over parameters of a parabola in the logarithm of the factor, through the price at the centre and
those `STEP` standard deviations to either side: ``1 + 2 n`` prices for ``n`` parameters. Where
two parameters decide together which of two terms is hidden, it is an approximation; tests hold it
against `price`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs import Plan, price
from nest_core.network import FloatArray, Network
from nest_core.scenario import Scenario
from nest_core.studies.draws import Spread

__all__ = ["LocalPrice", "local_price"]

STEP = 1.75
"""Standard deviations: nine draws in ten lie within."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalPrice:
    """Seconds of a plan by the deviations of ``n`` parameters.

    Parameters
    ----------
    centre_s : float
    slopes, curves : (n,)
        Seconds per deviation, and per its square.
    """

    centre_s: float
    slopes: FloatArray
    curves: FloatArray

    def seconds(self, rows: FloatArray) -> FloatArray:
        """At deviations (draws, n), as `Spread.rows` gives them."""
        return np.asarray(self.centre_s + rows @ self.slopes + np.square(rows) @ self.curves)


def local_price(scenario: Scenario, plan: Plan, spread: Spread, network: Network) -> LocalPrice:
    """A plan's time around the scenario's centre.

    Parameters
    ----------
    network : Network
        The scenario's fabric, collapsed.
    """

    def seconds(row: FloatArray) -> float:
        return price(spread.draw(row).problem(scenario, network), plan).iteration_s

    steps = STEP * spread.sd
    nothing, slopes, curves = np.zeros((3, len(steps)))
    centre = seconds(nothing)
    for index, step in enumerate(steps.tolist()):
        if step:
            aside = nothing.copy()
            aside[index] = step
            more, less = seconds(aside), seconds(-aside)
            slopes[index] = (more - less) / (2 * step)
            curves[index] = (more + less - 2 * centre) / (2 * step**2)
    return LocalPrice(centre, slopes, curves)
