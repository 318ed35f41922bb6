"""What a plan takes under many draws, from a few of its prices.

Terms of an iteration add up, and most depend on one parameter each. So its time is taken as a sum
over parameters of a parabola in the logarithm of the factor, through the price at the centre and
those `STEP` standard deviations to either side: ``1 + 2 n`` prices for ``n`` parameters. Those that
matter by themselves (`MATTERS`) are moved in pairs too, as what a link carries and what of it is
hidden multiply. Where a third decides which term is the longest, it is an approximation; tests hold
it against `price`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from nest_core.costs import Plan, price
from nest_core.network import FloatArray, Network
from nest_core.scenario import ScenarioValues
from nest_core.studies.draws import Spread

__all__ = ["LocalPrice", "local_price"]

STEP = 1.75
"""Standard deviations: nine draws in ten lie within."""
MATTERS = 5e-4
"""Share of the time that a parameter moves by a step, from which on its pairs are priced."""


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
        """At deviations (draws, n), as `Spread.rows` gives them."""
        curved = ((rows @ self.curves) * rows).sum(axis=1)
        return np.asarray(self.centre_s + rows @ self.slopes + curved)


def local_price(
    scenario: ScenarioValues, plan: Plan, spread: Spread, network: Network
) -> LocalPrice:
    """A plan's time around the scenario's centre.

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
        apart = more[k] + less[k] + more[j] + less[j] - 2 * centre
        curves[k, j] = curves[j, k] = (apart - both) / 4
    unit = np.where(spread.sd > 0, STEP * spread.sd, 1.0)
    return LocalPrice(centre, slopes / unit, curves / np.outer(unit, unit))
