"""The result of a study: a row for every point, and whether it meets the constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nest_core.studies.engine import Answers
from nest_core.studies.study import Study
from nest_core.units import to_gib

__all__ = ["row_of", "rows_of"]

_BATCH = 1000
_ONE: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = {
    "iteration_s": lambda one: one.get("iteration_s"),
    "tokens_per_s": lambda one: one.get("tokens_per_s"),
    "mfu": lambda one: one.get("mfu"),
    "bubble": lambda one: one.get("bubble"),
    "memory_GiB": lambda one: _over(one.get("memory_bytes"), 1.0, to_gib),
    "network_usd": lambda one: one.get("network_usd"),
    "network_kW": lambda one: _over(one.get("network_W"), 1e3),
    "tokens_per_s_per_network_usd": lambda one: _over(
        one.get("tokens_per_s"), one.get("network_usd")
    ),
    "tokens_per_s_per_network_W": lambda one: _over(one.get("tokens_per_s"), one.get("network_W")),
    "worst_loss": lambda one: one.get("worst_loss"),
}
"""A metric of one scenario's answer."""
_LARGEST = ("memory_GiB", "network_usd", "network_kW", "bubble", "worst_loss")
"""Of a mix the largest; rates are those of all its tokens, and the rest the mean over the time."""


def rows_of(study: Study, answers: Answers) -> Iterator[dict[str, Any]]:
    """Every point that has its answers, in order: its values, status, metrics, plan.

    ``meets`` says whether it has a plan and meets the constraints, ``reason`` why not.
    """
    for first in range(0, len(study), _BATCH):
        numbers = range(first, min(first + _BATCH, len(study)))
        keys = {n: [study.key(m, study.overrides(n)) for m in study.members] for n in numbers}
        known = answers.known(key for each in keys.values() for key in each)
        for number in numbers:
            if all(key in known for key in keys[number]):
                yield row_of(study, number, [known[key] for key in keys[number]])


def row_of(study: Study, number: int, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A point's row, from the answers of all members of its mix."""
    bad = next((one for one in found if one["status"] != "solved"), None)
    figures = {name: None if bad else _metric(study, name, found) for name in study.metrics}
    reason = bad.get("reason", "") if bad else _missed(study, found)
    return {
        "point": number,
        **study.values(number),
        "status": bad["status"] if bad else "solved",
        "gap": None if bad else max(one["gap"] for one in found),
        "meets": not reason,
        "reason": reason,
        **figures,
        "plan": "" if bad else "; ".join(one["words"] for one in found),
    }


def _metric(study: Study, name: str, found: Sequence[Mapping[str, Any]]) -> float | None:
    each = np.array([_ONE[name](one) for one in found], dtype=float)
    if np.isnan(each).any():
        return None
    if name in _LARGEST or len(each) == 1:
        return float(np.max(each))
    weights = np.array([member.weight for member in study.members])
    if name.startswith("tokens_per_s"):
        return float(1.0 / np.sum(weights / each))
    rates = np.array([one["tokens_per_s"] for one in found])
    return float(np.average(each, weights=weights / rates))


def _missed(study: Study, found: Sequence[Mapping[str, Any]]) -> str:
    """The first constraint that a point does not meet, and by how much."""
    for name, (least, most) in study.constraints.items():
        value = _metric(study, name, found)
        if value is None:
            return f"{name} is not known"
        if least is not None and value < least:
            return f"{name} is {value:.6g}, {least - value:.3g} under {least:g}"
        if most is not None and value > most:
            return f"{name} is {value:.6g}, {value - most:.3g} over {most:g}"
    return ""


def _over(
    value: float | None, by: float | None, then: Callable[[float], float] = float
) -> float | None:
    return then(value / by) if value is not None and by else None
