"""How well few runs of a source tell what its others take.

A source stands for a person's own cluster. It is left out of the posterior; then some of its runs
are taken as measured, and the others predicted from both
(`nest_core.calibration.training.predict`, whose linear model this conditions on, as
`nest_core.calibration.training.calibration` does for a person's runs). Which runs are taken is
decided without any measured time: evenly over the source's runs in the order of how much of their
time matrix products are, so that they differ in what bounds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.validation.markdown import markdown_table
from benchmarks.validation.training.posterior import Evidence, Grouped, grouped_without
from nest_core.hardware.posterior import PARAMETERS

__all__ = ["COUNTS", "FewShot", "few_shot", "few_shot_section"]

COUNTS = (0, 3, 8)
"""Runs that are taken as measured."""
FEWEST_OTHERS = 5
"""A source counts if so many runs are left to be predicted."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FewShot:
    """A source with some of its runs known.

    Parameters
    ----------
    source : str
    known, predicted : int
        Runs.
    median : float
        Of the relative errors of those predicted, without sign.
    """

    source: str
    known: int
    predicted: int
    median: float


def few_shot(found: Sequence[Evidence]) -> list[FewShot]:
    """Every source with enough runs, with each number of `COUNTS` known.

    Parameters
    ----------
    found : sequence of Evidence
        Runs of quality C are neither taken nor predicted.
    """
    answers = []
    for group in grouped_without([item for item in found if item.run.quality != "C"]):
        if len(group.off) < max(COUNTS) + FEWEST_OTHERS:
            continue
        for count in COUNTS:
            known = evenly(group.items, count)
            others = np.setdiff1d(np.arange(len(group.off)), known)
            error = np.abs(np.expm1(-_left(group, known)[others]))
            answers.append(FewShot(group.source, count, len(others), float(np.median(error))))
    return answers


def evenly(items: Sequence[Evidence], count: int) -> list[int]:
    """Places of some runs, evenly in the order of their slopes on the efficiency of products."""
    place = PARAMETERS.index("gemm_efficiency")
    order = np.argsort([item.slopes[place] for item in items], kind="stable").tolist()
    return [order[(2 * step + 1) * len(order) // (2 * count)] for step in range(count)]


def _left(group: Grouped, known: Sequence[int]) -> FloatArray:
    """Measured logarithms less those predicted with some known."""
    if not known:
        return group.off
    among = group.covariance[np.ix_(known, known)]
    return np.asarray(
        group.off - group.covariance[:, known] @ np.linalg.solve(among, group.off[known])
    )


def few_shot_section(found: Sequence[FewShot]) -> list[str]:
    """Lines of Markdown: sources by the number of known runs, and the means of their medians."""
    by_source: dict[str, list[FewShot]] = {}
    for each in found:
        by_source.setdefault(each.source, []).append(each)
    means = [
        float(np.mean([each.median for each in found if each.known == count])) for count in COUNTS
    ]
    return [
        "Runs of a source that was left out as a whole, with some of its own taken as measured "
        "(chosen without their times, from those that products bound to those that they do not): "
        "the median error of its others, by the linear model. It is what `calibrate` may be "
        "expected to reach on a cluster of one's own; asked were 7% with 3 and 5% with 8.",
        "",
        *markdown_table(
            ["source", "runs", *(f"{count} known" for count in COUNTS)],
            [
                *(
                    [source, each[0].predicted, *(f"{one.median:.1%}" for one in each)]
                    for source, each in by_source.items()
                ),
                ["mean of the medians", "", *(f"{mean:.1%}" for mean in means)],
            ],
        ),
    ]
