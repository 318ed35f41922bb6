"""How far predictions are from measurements, group by group.

Rows of one source, model, number of devices, batch, sequence length and precision form a group:
they differ in the plan alone, so a group asks what a planner is for, which plan is faster.
Errors are relative, ``predicted / measured - 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nest_core.fidelity.predict import Prediction
from nest_core.units import humanise

__all__ = ["Score", "group_name", "group_scores", "score", "spearman"]

FEWEST_RANKED = 3
"""A rank correlation of fewer rows says nothing."""


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of several predictions.

    Parameters
    ----------
    name : str
    n : int
    mape, bias, worst : float
        Mean of the absolute error, mean of the signed one, and the largest by magnitude.
    p10, p90 : float
        Quantiles of the signed error.
    spearman : float or None
        Rank correlation of predicted and measured times; None for fewer than three rows, or
        where all of either are equal.
    regret : float
        How much longer the row predicted fastest took than the fastest row.
    """

    name: str
    n: int
    mape: float
    bias: float
    worst: float
    p10: float
    p90: float
    spearman: float | None
    regret: float


def group_name(prediction: Prediction) -> str:
    """What the rows of a group share, in words."""
    run = prediction.run
    source = run.source or "no source"
    tokens = humanise(run.sequence) if run.sequence >= 10_000 else str(run.sequence)
    return (
        f"{run.model}, {run.devices} x {run.accelerator}, batch {run.batch}, {tokens} tokens, "
        f"{run.precision_name} ({source})"
    )


def group_scores(predictions: Iterable[Prediction]) -> list[Score]:
    """Scores of all groups with something measured, in the order of their first rows."""
    return [score(name, items) for name, items in _grouped(predictions, _key, group_name)]


def score(name: str, predictions: Iterable[Prediction]) -> Score:
    """Errors of predictions, of which at least one was measured."""
    pairs = [(item.seconds, item.outcome.seconds) for item in predictions]
    predicted = np.array([seconds for seconds, measured in pairs if measured is not None])
    measured = np.array([measured for _, measured in pairs if measured is not None])
    error = predicted / measured - 1
    low, high = np.quantile(error, (0.1, 0.9))
    return Score(
        name=name,
        n=len(error),
        mape=float(np.abs(error).mean()),
        bias=float(error.mean()),
        worst=float(error[np.abs(error).argmax()]),
        p10=float(low),
        p90=float(high),
        spearman=spearman(predicted, measured),
        regret=float(measured[predicted.argmin()] / measured.min() - 1),
    )


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """Rank correlation, ties sharing their mean rank; None where it has no meaning.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    one, two = _ranks(first), _ranks(second)
    spread = float(one.std() * two.std())
    if len(one) < FEWEST_RANKED or spread == 0.0:
        return None
    return round(float(((one - one.mean()) * (two - two.mean())).mean() / spread), 9)


def _ranks(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    order = np.sort(found)
    left, right = np.searchsorted(order, found), np.searchsorted(order, found, side="right")
    return np.asarray((left + right - 1) / 2, dtype=np.float64)


def _key(prediction: Prediction) -> Hashable:
    run = prediction.run
    return (
        run.source, run.model, run.accelerator, run.devices, run.batch, run.sequence,
        run.precision_name,
    )  # fmt: skip


def _grouped(
    predictions: Iterable[Prediction],
    key: Callable[[Prediction], Hashable],
    name: Callable[[Prediction], str],
) -> list[tuple[str, Sequence[Prediction]]]:
    found: dict[Hashable, list[Prediction]] = {}
    for item in predictions:
        if item.outcome.seconds is not None:
            found.setdefault(key(item), []).append(item)
    return [(name(items[0]), items) for items in found.values()]
