"""Days to train: tokens over tokens per second, with the plan's error band."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.costs import Report
from nest_core.errors import InputError
from nest_core.explain.validity import Span, seconds_span
from nest_core.measured.training.bands import Band
from nest_core.scenario import Scenario

__all__ = ["TOKENS_PER_PARAMETER", "Training", "training"]

TOKENS_PER_PARAMETER = 20.0
"""Where compute is best spent, about (Hoffmann et al. 2022, "Training Compute-Optimal Large
Language Models", table 3); models that are used a lot are trained on many times more."""

_DAY = 86_400.0


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
    band : tuple of float or None
        Days between which four of five runs of this kind would lie.
    device_days : float
        Of every device of the fabric.
    """

    tokens: float
    tokens_per_s: float
    iterations: float
    days: float
    band: Span | None
    device_days: float


def training(
    scenario: Scenario, report: Report, tokens: float, band: Band | None = None
) -> Training:
    """How long a plan trains on so many tokens.

    Raises
    ------
    InputError
        Unless ``tokens`` is a positive number.
    """
    if not 0 < tokens < float("inf"):
        raise InputError("tokens", "must be a positive number", tokens, "correct it")
    rate = report.samples_per_s * scenario.sequence
    days = tokens / rate / _DAY
    return Training(
        tokens=tokens,
        tokens_per_s=rate,
        iterations=tokens / (scenario.batch * scenario.sequence),
        days=days,
        band=seconds_span(band, days) if band else None,
        device_days=days * scenario.fabric.devices,
    )
