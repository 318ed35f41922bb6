"""Rates beside a reference on one cluster: what the difference will be, and how surely.

Of two plans the logarithm of the ratio of times is known as `nest_core.studies.uncertainty` says:
what both share cancels. A mix sums such ratios, whose errors share the parameters of kernels and
network; what one model errs by from run to run says nothing of another's. The sum of lognormals is
taken for one with its mean and its variance (Fenton and Wilkinson): of one model that is exact, and
of several within a percentage point where each is known within some 10 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, exp, log, sqrt

import numpy as np

from nest_core.costs.interval import Span
from nest_core.hardware.posterior import WIDTH
from nest_core.studies.uncertainty import Sureness, paired_sd

__all__ = ["PairedRate", "paired_mix", "paired_rate"]


@dataclass(frozen=True, slots=True)
class PairedRate:
    """A rate over the reference's, both on one cluster.

    Parameters
    ----------
    ratio : float
        As predicted: the median.
    sd : float
        Standard deviation of its logarithm; 0 for the reference itself.
    """

    ratio: float
    sd: float

    def around(self, rate: float) -> Span:
        """Return between which rates one lies in four cases of five, if this is its median."""
        width = exp(WIDTH * self.sd)
        return rate / width, rate * width

    @property
    def span(self) -> Span:
        """Between which differences it lies in four cases of five."""
        low, high = self.around(self.ratio)
        return low - 1, high - 1

    def chance_above(self, ratio: float) -> float:
        """Return the probability that it is more than so many times the reference."""
        off = log(self.ratio / ratio)
        return float(off > 0) if not self.sd else 0.5 * (1 + erf(off / self.sd / sqrt(2)))


def paired_rate(ratio: float, this: Sureness | None, reference: Sureness | None) -> PairedRate:
    """Return the ratio of two rates; of the reference to itself it is known."""
    return PairedRate(ratio, 0.0 if this is reference else paired_sd(this, reference))


def paired_mix(
    ratios: Sequence[float],
    weights: Sequence[float],
    pairs: Sequence[tuple[Sureness | None, Sureness | None]],
) -> PairedRate:
    """Return the weighted sum of the ratios of several models' rates.

    The sum of log-normals is taken as the log-normal of its mean and variance (Fenton 1960): a
    probability is right to 0.02.

    Parameters
    ----------
    ratios, weights : sequence of float
        Of the models; weights sum to 1.
    pairs : sequence of (Sureness, Sureness)
        Of every model's plan, and of its reference's.
    """
    alone = [paired_rate(*entry) for entry in zip(ratios, *zip(*pairs, strict=True), strict=True)]
    moves = [
        {name: a.moves.get(name, 0.0) - b.moves.get(name, 0.0) for name in (*a.moves, *b.moves)}
        if a and b
        else {}
        for a, b in pairs
    ]
    covariance = np.array(
        [[sum(f.get(n, 0.0) * m for n, m in g.items()) for g in moves] for f in moves]
    )
    np.fill_diagonal(covariance, [rate.sd**2 for rate in alone])
    means = np.array(weights) * ratios * np.exp(np.diag(covariance) / 2)
    variance = float(np.log1p(means @ np.expm1(covariance) @ means / means.sum() ** 2))
    return PairedRate(float(means.sum()) * exp(-variance / 2), sqrt(max(variance, 0.0)))
