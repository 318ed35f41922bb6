"""What it is worth to know one thing before a design is chosen.

That is what the goal is expected to cost less if the choice may follow it: the expected value of
partial perfect information (Howard 1966, "Information value theory", IEEE Transactions on Systems
Science and Cybernetics 2(1)), over choosing what is expected to cost least. That of a price is the
same for a firm quote. Prices are as likely below as above the typical one, evenly on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.explain.uncertain import how_measured, parameter_in_words
from nest_core.network import FloatArray
from nest_core.studies.stakes import Stakes

__all__ = ["Information", "information"]

DRAWS = 2000
QUADRATURE = 9
"""Values of what is known, for each of which the rest is drawn."""
WORTH = 1e-4
"""Of the goal's cost: what is worth less is noise of the draws."""


@dataclass(frozen=True, slots=True)
class Information:
    """What it is worth to know one thing before the choice.

    Parameters
    ----------
    name : str
    measure : str
        How one comes to know it.
    worth : float
        Share of the goal's cost that is expected to be saved.
    """

    name: str
    measure: str
    worth: float


def information(
    stakes: Stakes, seed: int
) -> tuple[float, tuple[float, ...], tuple[Information, ...]]:
    """Regret of choosing now, how often each is best, and what it is worth to know one thing."""
    rng = np.random.default_rng(seed)
    count = len(stakes.parameters)
    theta = rng.multivariate_normal(np.zeros(count), stakes.covariance, DRAWS, method="eigh")
    errors = np.stack(
        [
            rng.multivariate_normal(np.zeros(len(stakes.names)), each, DRAWS, method="eigh")
            for each in stakes.errors
        ],
        axis=2,
    )
    places = {part: rng.uniform(-1.0, 1.0, DRAWS) for part in stakes.parts}
    shifts = {part: stakes.shift(part, at) for part, at in places.items()}
    paid = stakes.price + sum(shifts.values(), np.zeros((DRAWS, len(stakes.names))))

    def costs(moved: FloatArray, price: FloatArray) -> FloatArray:
        logs = np.einsum("nmp,dp->dnm", stakes.slopes, moved) + errors
        return stakes.cost((stakes.seconds * np.exp(logs)) @ stakes.weights, price)

    everything = costs(theta, paid)
    expected = everything.mean(axis=0)
    now = float(expected.min())
    regret = 1.0 - float(everything.min(axis=1).mean()) / now
    wins = np.bincount(everything.argmin(axis=1), minlength=len(stakes.names)) / DRAWS
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE)
    even, even_weights = np.polynomial.legendre.leggauss(QUADRATURE)
    found = []
    for number, (name, device) in enumerate(stakes.parameters):
        variance = stakes.covariance[number, number]
        if variance == 0.0 or not stakes.slopes[:, :, number].any():
            continue
        along = stakes.covariance[:, number] / variance
        known = [
            costs(theta + np.outer(np.sqrt(variance) * node - theta[:, number], along), paid)
            for node in nodes
        ]
        worth = _worth(known, weights / weights.sum(), now)
        found.append(Information(parameter_in_words(name, device), how_measured(name), worth))
    for part in stakes.parts:
        known = [costs(theta, paid - shifts[part] + stakes.shift(part, node)) for node in even]
        worth = _worth(known, even_weights / even_weights.sum(), now)
        found.append(Information(f"the price of {part}", f"get a firm quote for {part}", worth))
    worthy = [one for one in found if one.worth > WORTH]
    worthy.sort(key=lambda one: -one.worth)
    return regret, tuple(wins.tolist()), tuple(worthy)


def _worth(known: Sequence[FloatArray], weights: FloatArray, now: float) -> float:
    """Share of the cost that is saved where the choice may follow what is known."""
    expected = np.array([each.mean(axis=0) for each in known])
    without = float((weights @ expected).min())
    return float(without - weights @ expected.min(axis=1)) / now
