"""Days to train: tokens over tokens per second, with the plan's interval."""

from dataclasses import dataclass

from nest_core.costs import Interval, Report, Span
from nest_core.documents.errors import require
from nest_core.documents.units import DAY_S
from nest_core.scenario import ScenarioValues

__all__ = ["DAY_S", "TOKENS_PER_PARAMETER", "Training", "training", "usual_tokens"]

TOKENS_PER_PARAMETER = 20.0
"""Where compute is best spent, about (Hoffmann et al. 2022, "Training Compute-Optimal Large
Language Models", table 3); models that are used a lot are trained on many times more."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training run without interruptions.

    Parameters
    ----------
    tokens : float
    tokens_per_s : float
        Of the whole job.
    iterations : float
    days : float
    span : tuple of float
        Days between which it will lie in four cases of five.
    device_days : float
        Of every device of the fabric.
    """

    tokens: float
    tokens_per_s: float
    iterations: float
    days: float
    span: Span
    device_days: float


def usual_tokens(scenario: ScenarioValues) -> float:
    """Of a training run where nobody says how many."""
    return TOKENS_PER_PARAMETER * scenario.model.parameters


def training(
    scenario: ScenarioValues, report: Report, tokens: float, interval: Interval
) -> Training:
    """How long a plan trains on so many tokens.

    Raises
    ------
    InputError
        Unless ``tokens`` is a positive number.
    """
    require(
        0 < tokens < float("inf"),
        "tokens",
        "must be a positive number",
        tokens,
        "correct it",
    )
    rate = report.samples_per_s * scenario.sequence
    days = tokens / rate / DAY_S
    return Training(
        tokens=tokens,
        tokens_per_s=rate,
        iterations=tokens / (scenario.batch * scenario.sequence),
        days=days,
        span=interval.around(days),
        device_days=days * scenario.fabric.devices,
    )
