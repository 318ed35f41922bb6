"""Days to train: tokens over tokens per second, with what failures take and the plan's interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nest_core.costs import Interval, Report, Span
from nest_core.documents import DAY_S, require
from nest_core.reliability.process import LOSSES, effective_shares
from nest_core.scenario import ScenarioValues

if TYPE_CHECKING:
    from nest_core.documents.schema.failures import FailureFile
    from nest_core.network import Network
    from nest_core.reliability.goodput import GoodputEstimate

__all__ = ["DAY_S", "TOKENS_PER_PARAMETER", "Training", "training", "usual_tokens"]

TOKENS_PER_PARAMETER = 20.0
"""Where compute is best spent, about (Hoffmann et al. 2022, "Training Compute-Optimal Large
Language Models", table 3); models that are used a lot are trained on many times more."""
_LEAST = 1e-300
"""Effective share of a run that never ends; days are a number still."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training run with failures.

    Parameters
    ----------
    tokens : float
    tokens_per_s : float
        Of the whole job while it trains.
    iterations : float
    devices : int
        Of the whole fabric.
    interval : Interval
        Of the iteration time.
    goodput : GoodputEstimate
        What failures leave of the time.
    """

    tokens: float
    tokens_per_s: float
    iterations: float
    devices: int
    interval: Interval
    goodput: GoodputEstimate

    @property
    def effective_share(self) -> float:
        """Share of the time that is training and not lost."""
        return max(self.goodput.shares.effective, _LEAST)

    def effective_tokens_per_s(self, failures: float = 1.0) -> float:
        """Return tokens over the whole time, failures and all.

        Parameters
        ----------
        failures : float
            How often everything fails, over what was counted; saves are as far apart.
        """
        shares = effective_shares(self.goodput.process.scaled(failures))
        return self.tokens_per_s * max(shares.effective, _LEAST)

    @property
    def days_without_failures(self) -> float:
        """Days of training alone."""
        return self.tokens / self.tokens_per_s / DAY_S

    @property
    def days(self) -> float:
        """Days from the first token to the last."""
        return self.days_without_failures / self.effective_share

    def under(self, failures: FailureFile, tokens: float) -> Training:
        """Return the same plan's run on so many tokens with other failures."""
        _require_tokens(tokens)
        return replace(
            self,
            tokens=tokens,
            iterations=self.iterations * (tokens / self.tokens),
            goodput=self.goodput.under(failures),
        )

    def days_with(self, spares: int) -> float:
        """Return days with so many spare hosts beside those of the fabric that the plan leaves."""
        goodput = self.goodput
        process = replace(goodput.process, spares=goodput.idle_hosts + spares)
        return self.days_without_failures / max(effective_shares(process).effective, _LEAST)

    @property
    def spares(self) -> int:
        """Spare hosts beside those of the fabric that the plan leaves."""
        return self.goodput.process.spares - self.goodput.idle_hosts

    @property
    def span(self) -> Span:
        """Days between which it will lie in four cases of five.

        The interval of the plan's time and that of the counted failures are independent.
        """
        share, (low, high) = self.effective_share, self.goodput.span
        times = self.interval.around(1.0)
        faster, slower = (
            math.exp(math.hypot(math.log(end), math.log(max(other, _LEAST) / share)))
            for end, other in zip(times, (high, low), strict=True)
        )
        return self.days / faster, self.days * slower

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """Days by what they go into, training first; they add up to `days`."""
        losses = zip(LOSSES, self.goodput.shares.losses, strict=True)
        return (
            ("training", self.days_without_failures),
            *((cause, share * self.days) for cause, share in losses),
        )

    @property
    def device_days(self) -> float:
        """Of every device of the fabric."""
        return self.days * self.devices


def usual_tokens(scenario: ScenarioValues) -> float:
    """Of a training run where nobody says how many."""
    return TOKENS_PER_PARAMETER * scenario.model.parameters


def _require_tokens(tokens: float) -> None:
    require(0 < tokens < float("inf"), "tokens", "must be a positive number", tokens, "correct it")


def training(
    scenario: ScenarioValues,
    report: Report,
    tokens: float | None,
    interval: Interval,
    network: Network | None = None,
) -> Training:
    """How long a plan trains on so many tokens; failures are in closed form.

    Parameters
    ----------
    scenario : ScenarioValues
    report : Report
    tokens : float or None
        None: 20 per parameter.
    interval : Interval
        Of the report's time.
    network : Network, optional
        The scenario's fabric, collapsed, where it was.

    Raises
    ------
    InputError
        Unless ``tokens`` is a positive number, or if the failures break a rule with this plan.
    """
    from nest_core.reliability.goodput import estimate  # which counts parts as bills do

    count = usual_tokens(scenario) if tokens is None else tokens
    _require_tokens(count)
    problem = scenario.problem(report.plan.recompute, network)
    return Training(
        tokens=count,
        tokens_per_s=report.samples_per_s * scenario.sequence,
        iterations=count / (scenario.batch * scenario.sequence),
        devices=scenario.fabric.devices,
        interval=interval,
        goodput=estimate(problem, scenario.fabric, report.plan, scenario.failures),
    )
