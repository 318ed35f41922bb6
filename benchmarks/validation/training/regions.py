"""Kinds of runs whose errors are reported together, and what is promised of each.

Two divisions. `REPORTED` are the kinds that the documentation names, some of them with the
promised mean error. *Cells* are finer and do not overlap: accelerator, how the model is divided,
dense or mixture, width of the products, one node or several. The error band beside a predicted
figure comes from the cell that the scenario falls into (`nest_core.calibration.training.bands`).

Rows of one source, model, number of devices, batch, sequence length and precision form a *group*:
they differ in the plan alone, so a group asks what a planner is for, which plan is faster. Errors
are relative, ``predicted / measured - 1``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.validation.ranks import spearman
from nest_core.calibration.training.bands import cell, kind_of
from nest_core.calibration.training.machines import machine_of
from nest_core.calibration.training.predict import Prediction
from nest_core.documents.units import humanise

__all__ = [
    "REPORTED",
    "Region",
    "RegionScore",
    "Score",
    "cell_of",
    "cells",
    "group_name",
    "group_scores",
    "region_scores",
    "score",
]


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


def _key(prediction: Prediction) -> Hashable:
    run = prediction.run
    return (
        run.source,
        run.model,
        run.accelerator,
        run.devices,
        run.batch,
        run.sequence,
        run.precision_name,
    )


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


NVIDIA_CLUSTERS = re.compile(r"nvidia|arxiv:2205\.05198|arxiv:2104\.04473", re.I)
"""Sources that measured on NVIDIA's own machines: its repositories, and the two papers of its
Megatron-LM group."""

VTRAIN = re.compile(r"vtrain", re.I)
CALIBRATION = ("calib15",)
"""Marks of rows that parameters may be fitted to; so may all single-node runs of Megatron-LM."""


@dataclass(frozen=True, slots=True)
class Region:
    """A kind of runs.

    Parameters
    ----------
    name : str
    promised : float or None
        Mean absolute error at most; None where nothing is promised.
    holds : callable (Prediction) -> bool
    """

    name: str
    promised: float | None
    holds: Callable[[Prediction], bool]


@dataclass(frozen=True, slots=True)
class RegionScore:
    """A region's errors.

    Parameters
    ----------
    region : Region
    every : Score
        Its regret is the mean over the region's groups of several rows.
    unseen : Score or None
        Of the rows that no parameter was fitted to.
    sure : Score or None
        Of the rows of quality A.
    """

    region: Region
    every: Score
    unseen: Score | None
    sure: Score | None


def _name(prediction: Prediction) -> str:
    return machine_of(prediction.run.accelerator).name


def _calibrated(prediction: Prediction) -> bool:
    return prediction.calibrated


def _nodes(prediction: Prediction) -> int:
    run = prediction.run
    per_node = run.per_node or machine_of(run.accelerator).per_node
    return -(-run.devices // per_node)


def _megatron(prediction: Prediction) -> bool:
    return prediction.run.framework == "megatron"


def _dense(prediction: Prediction) -> bool:
    return prediction.run.experts == 1


def _vtrain(prediction: Prediction) -> bool:
    return VTRAIN.search(prediction.run.source) is not None


def _nvidia(prediction: Prediction) -> bool:
    return NVIDIA_CLUSTERS.search(prediction.run.source) is not None


REPORTED = (
    Region("Megatron-LM, several nodes of A100", 0.07, lambda p: _vtrain(p) and _nodes(p) > 1),
    Region(
        "Megatron-LM across nodes, TP 16",
        0.20,
        lambda p: _vtrain(p) and _nodes(p) > 1 and p.run.point.tp == 16,
    ),
    Region("Megatron-LM, one node of A100", 0.06, lambda p: _vtrain(p) and _nodes(p) == 1),
    Region(
        "A100 in NVIDIA's own clusters",
        0.04,
        lambda p: _name(p) == "A100" and _nvidia(p) and _megatron(p) and not _vtrain(p),
    ),
    Region(
        "A100 in other clusters, Megatron-LM",
        None,
        lambda p: _name(p) == "A100" and _megatron(p) and not _nvidia(p) and not _vtrain(p),
    ),
    Region(
        "A100, FSDP and ZeRO 3",
        None,
        lambda p: _name(p) == "A100" and not _megatron(p),
    ),
    Region(
        "H100, dense, Megatron-LM",
        0.06,
        lambda p: _name(p) == "H100" and _dense(p) and _megatron(p),
    ),
    Region(
        "H100, dense, FSDP",
        0.08,
        lambda p: _name(p) == "H100" and _dense(p) and p.run.framework == "fsdp",
    ),
    Region(
        "H100, dense, JAX",
        None,
        lambda p: _name(p) == "H100" and _dense(p) and p.run.framework == "jax",
    ),
    Region(
        "Mixtures of experts, calibrated devices",
        0.15,
        lambda p: _calibrated(p) and not _dense(p),
    ),
    Region("Mixtures of experts, every device", None, lambda p: not _dense(p)),
    Region("Devices without calibration", 0.25, lambda p: not _calibrated(p)),
    Region(
        "Devices without calibration, dense",
        None,
        lambda p: not _calibrated(p) and _dense(p),
    ),
)
"""In the order of the documentation; a run may be in several."""


def fitted(prediction: Prediction) -> bool:
    """Whether parameters may have been fitted to a run."""
    if prediction.run.subset in CALIBRATION:
        return True
    return _vtrain(prediction) and _nodes(prediction) == 1


def region_scores(predictions: Iterable[Prediction]) -> list[RegionScore]:
    """Errors of every region that has measured rows."""
    measured = [item for item in predictions if item.outcome.seconds is not None]
    found = []
    for region in REPORTED:
        own = [item for item in measured if region.holds(item)]
        if own:
            unseen = [item for item in own if not fitted(item)]
            sure = [item for item in own if item.run.quality == "A"]
            found.append(
                RegionScore(
                    region,
                    _score(region, own),
                    _score(region, unseen) if unseen else None,
                    _score(region, sure) if sure else None,
                )
            )
    return found


def _score(region: Region, items: Sequence[Prediction]) -> Score:
    regrets = [group.regret for group in group_scores(items) if group.n > 1]
    regret = sum(regrets) / len(regrets) if regrets else 0.0
    return replace(score(region.name, items), regret=regret)


def cell_of(prediction: Prediction) -> tuple[str, str, str, str, str]:
    """The cell of a run."""
    run = prediction.run
    kind = kind_of(run.point.zero, run.point.pp)
    return cell(_name(prediction), kind, run.experts, run.precision, _nodes(prediction) == 1)


def cells(predictions: Iterable[Prediction]) -> dict[tuple[str, ...], list[Prediction]]:
    """Measured runs by cell, sorted."""
    found: dict[tuple[str, ...], list[Prediction]] = {}
    for item in predictions:
        if item.outcome.seconds is not None:
            found.setdefault(cell_of(item), []).append(item)
    return dict(sorted(found.items()))
