"""How often what a plan uses fails: counts of events over their exposure, times parts in use.

``rate = sum over causes of events / (units * days) * parts``. Counts are Poisson: with Jeffreys'
prior the rate of a cause is a gamma variate of shape ``events + 1/2``; the sum is taken for the
gamma variate of equal mean and variance. Rates that a source prints without counts are taken as
exact, which they are not.

A job fails for more reasons than its hosts do (software, the scheduler, whatever stops all ranks
at once): causes that strike ``job`` are counted per job, or per device of one, and no host is
repaired.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nest_core.documents.schema.failures import CauseTable, FailureFile
from nest_core.documents.units import DAY_S
from nest_core.hardware.posterior import SHARE

__all__ = ["CauseRate", "cause_rates", "rate_span"]


@dataclass(frozen=True, slots=True)
class CauseRate:
    """One cause under a plan.

    Parameters
    ----------
    cause : CauseTable
    parts : float
        Of what it strikes, in use; of a job one, or its devices over those that were watched.
    """

    cause: CauseTable
    parts: float

    @property
    def per_event(self) -> float:
        """Rate that one counted event stands for, 1/s."""
        return self.parts / (self.cause.units * self.cause.days * DAY_S)

    @property
    def per_s(self) -> float:
        """Failures per second of the plan's parts."""
        return self.cause.events * self.per_event


def cause_rates(file: FailureFile, parts: Mapping[str, float]) -> tuple[CauseRate, ...]:
    """Return the rate of every cause for a plan's parts, by what causes strike."""
    return tuple(
        CauseRate(
            cause,
            parts["device"] / cause.job_devices if cause.job_devices else parts[cause.strikes],
        )
        for cause in file.cause
    )


def rate_span(rates: tuple[CauseRate, ...]) -> tuple[float, float]:
    """Return between which failures per second lie in four cases of five, by the counts."""
    from scipy.special import gammaincinv  # not for every start

    certain = sum(rate.per_s for rate in rates if not rate.cause.counted)
    weights = np.array([rate.per_event for rate in rates if rate.cause.counted])
    events = np.array([rate.cause.events for rate in rates if rate.cause.counted]) + 0.5
    mean, variance = float(events @ weights), float(events @ weights**2)
    if not variance:
        return certain, certain
    ends = gammaincinv(mean**2 / variance, [(1 - SHARE) / 2, (1 + SHARE) / 2]) * variance / mean
    return certain + float(ends[0]), certain + float(ends[1])
