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
from pathlib import Path
from typing import Any

import numpy as np

from nest_core.documents import load_toml, named_file, require
from nest_core.documents.schema import checked
from nest_core.documents.schema.failures import CauseTable, FailureFile
from nest_core.documents.units import DAY_S
from nest_core.hardware.posterior import SHARE

__all__ = ["DEFAULT", "CauseRate", "cause_rates", "load_failures", "rate_span"]

DEFAULT = "llama3-405b"


def load_failures(
    name: str | Mapping[str, Any] = DEFAULT, folder: Path | None = None
) -> FailureFile:
    """Return published failure rates by name, or a file of one's own.

    A file may name another as its ``base``: it then states what of ``[recovery]`` differs, and its
    causes replace those of the base that strike the same, or all if it calls itself ``complete``.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    document = dict(name) if isinstance(name, Mapping) else _document(name, folder, "failures")
    base = document.pop("base", None)
    if base is not None:
        require(isinstance(base, str), "failures.base", "must be a preset's name", base, "name one")
        below = _document(base, None, "failures.base")
        require(
            "base" not in below, "failures.base", "must name a whole file", base, "name its base"
        )
        document = _merged(below, document)
    return checked(FailureFile, document, "failures.")


def _document(name: str, folder: Path | None, field: str) -> dict[str, Any]:
    return load_toml(named_file("failures", name, folder, field=field))


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return a file over its base; what is no list or table is left for the check to refuse."""
    merged = below | above
    causes, recovery = above.get("cause", []), above.get("recovery", {})
    if isinstance(causes, list) and all(isinstance(cause, dict) for cause in causes):
        struck = {str(cause.get("strikes")) for cause in causes}
        others = [
            cause
            for cause in below["cause"]
            if cause["strikes"] not in struck and above.get("complete") is not True
        ]
        merged["cause"] = [*causes, *others]
    if isinstance(recovery, dict):
        merged["recovery"] = below["recovery"] | recovery
    return merged


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
    from scipy.stats import gamma  # which takes longer to import than all of this

    certain = sum(rate.per_s for rate in rates if not rate.cause.counted)
    weights = np.array([rate.per_event for rate in rates if rate.cause.counted])
    events = np.array([rate.cause.events for rate in rates if rate.cause.counted]) + 0.5
    mean, variance = float(events @ weights), float(events @ weights**2)
    if not variance:
        return certain, certain
    ends = gamma.ppf([(1 - SHARE) / 2, (1 + SHARE) / 2], mean**2 / variance, scale=variance / mean)
    return certain + float(ends[0]), certain + float(ends[1])
