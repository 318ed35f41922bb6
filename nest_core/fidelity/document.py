"""The training part of ``docs/validation.md``: what was predicted, how well, and what was not.

The document has two parts, each written by its own command; `joined` puts a part in its place and
leaves the other alone. `figures` reads back what a document promises, for the test that nothing
gets worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from nest_core.fidelity.groups import Score, group_scores, score
from nest_core.fidelity.memory_section import memory_section
from nest_core.fidelity.predict import Prediction
from nest_core.fidelity.regions import REPORTED, RegionScore, fitted, region_scores
from nest_core.fidelity.runs import Unread
from nest_core.fidelity.scatter import Panel, scatter_svg

__all__ = ["MARK", "PICTURE", "collectives_part", "figures", "joined", "picture", "training_part"]

MARK = "<!-- written by `nest-studio regenerate training` from here on -->"
PICTURE = "images/validation-training.svg"
WHOLE, SUBSET = "All runs", "The subset of the tests"
LARGE = 10
"""Runs from which on the rank correlation of a group is promised."""

PROMISED_RANK, PROMISED_REGRET, PROMISED_COVERAGE = 0.85, 0.02, 0.95
WORST = 30
PANELS = (
    "Megatron-LM, several nodes of A100",
    "Megatron-LM, one node of A100",
    "A100 in NVIDIA's own clusters",
    "A100 in other clusters, Megatron-LM",
    "A100, FSDP and ZeRO 3",
    "H100, dense, Megatron-LM",
    "H100, dense, FSDP",
    "Mixtures of experts, calibrated devices",
    "Devices without calibration",
)

INTRODUCTION = """\
## Training runs

Measured iterations beside the price of the plan that was run. Errors are relative, predicted /
measured - 1; "mean error" is the mean of their absolute value, "bias" their mean, "regret" how
much longer the run predicted fastest of a group took than its fastest. Runs form a group when
source, model, devices, batch, sequence length and precision are the same.

Rules: predictions read a run's configuration and nothing measured. Parameters
(`presets/estimators/`), one set for a family of accelerators, were fitted to the runs marked
`calib15`, to those on one node of A100 and to single-layer times alone; "not fitted" leaves these
runs out. The form of the model, and the share of attention with a bias (MPT), were chosen with
all runs in view, so no error here is blind (`docs/method.md`, "Calibration"). What a row does not
state takes the same default everywhere (`nest_core/fidelity/`).
"""


def training_part(
    predictions: Sequence[Prediction],
    unread: Sequence[Unread],
    subset: Sequence[Prediction],
    coverage: tuple[int, int],
    source: str,
) -> str:
    """The part's text.

    Parameters
    ----------
    predictions : sequence of Prediction
        All of them.
    unread : sequence of Unread
    subset : sequence of Prediction
        Of the rows that lie in the repository.
    coverage : (int, int)
        Rows of quality A that were predicted, and all of them.
    source : str
        What was read.
    """
    groups = group_scores(predictions)
    large = [group for group in groups if group.n >= LARGE]
    plural = [group for group in groups if group.n > 1]
    lines = [
        INTRODUCTION,
        f"Data: {source}. {len(predictions)} runs predicted, "
        f"{sum(item.outcome.seconds is not None for item in predictions)} of them with a measured "
        f"time, {len(unread)} rows not predicted.",
        "",
        f"![Predicted against measured iterations]({PICTURE})",
        "",
        f"### {WHOLE}",
        "",
        *_regions(region_scores(predictions)),
        "",
        "| over groups | promised | found |",
        "|---|---:|---:|",
        f"| rows of quality A predicted | at least {PROMISED_COVERAGE:.0%} "
        f"| {coverage[0]} of {coverage[1]} |",
        *_over_groups(large, plural),
        "",
        "### Memory",
        "",
        *memory_section(predictions),
        "",
        f"### Groups of {LARGE} runs and more",
        "",
        *_groups(large),
        "",
        f"### The {WORST} largest errors",
        "",
        *_worst(predictions),
        "",
        f"### {SUBSET}",
        "",
        "Rows of `tests/data/fidelity`, which every clone has; a test fails when a mean error of "
        "this table, or of the first, grows by more than a tenth.",
        "",
        *_regions(region_scores(subset)),
        "",
        "### Rows without a prediction",
        "",
        *([f"- {row.id}: {row.reason}" for row in unread] or ["None."]),
    ]
    return "\n".join(lines) + "\n"


def _regions(scores: Sequence[RegionScore]) -> list[str]:
    lines = [
        "| | promised | runs | mean error | not fitted | quality A | bias | 10 % | 90 % | worst |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for found in scores:
        promised = found.region.promised
        every = found.every
        lines.append(
            f"| {every.name} | {'–' if promised is None else f'{promised:.0%}'} | {every.n} "
            f"| {every.mape:.1%} | {_mean(found.unseen)} | {_mean(found.sure)} "
            f"| {every.bias:+.1%} | {every.p10:+.1%} | {every.p90:+.1%} | {every.worst:+.0%} |"
        )
    return lines


def _mean(found: Score | None) -> str:
    return "–" if found is None else f"{found.mape:.1%}"


def _over_groups(large: Sequence[Score], plural: Sequence[Score]) -> list[str]:
    ranks = [group.spearman for group in large if group.spearman is not None]
    lines = []
    if ranks:
        lines.append(
            f"| least rank correlation of the {len(ranks)} groups of {LARGE} runs and more "
            f"| {PROMISED_RANK} | {min(ranks):.3f} |"
        )
    for name, groups in ((f"{LARGE} runs and more", large), ("2 runs and more", plural)):
        if groups:
            regret = sum(group.regret for group in groups) / len(groups)
            lines.append(
                f"| mean regret of the {len(groups)} groups of {name} | {PROMISED_REGRET:.0%} "
                f"| {regret:.1%} |"
            )
    return lines


def _groups(groups: Iterable[Score]) -> list[str]:
    lines = ["| | runs | mean error | bias | rank correlation | regret |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for group in groups:
        rank = "–" if group.spearman is None else f"{group.spearman:.3f}"
        lines.append(
            f"| {group.name} | {group.n} | {group.mape:.1%} | {group.bias:+.1%} | {rank} "
            f"| {group.regret:.1%} |"
        )
    return lines


def _worst(predictions: Iterable[Prediction]) -> list[str]:
    measured = [(item, item.error) for item in predictions if item.error is not None]
    measured.sort(key=lambda pair: (-abs(pair[1]), pair[0].run.id))
    lines = ["| row | run | measured | predicted | error |", "|---|---|---:|---:|---:|"]
    for item, error in measured[:WORST]:
        run = item.run
        degrees = f"tp {run.tp}, pp {run.pp}, cp {run.cp}, ep {run.ep}, dp {run.dp}"
        lines.append(
            f"| {run.id} | {run.model}, {run.devices} x {run.accelerator}, {degrees} "
            f"| {item.outcome.seconds:.4g} s | {item.seconds:.4g} s | {error:+.0%} |"
        )
    return lines


def picture(predictions: Sequence[Prediction]) -> str:
    """Predicted against measured times of the kinds of runs in `PANELS`, as SVG."""
    panels = []
    by_name = {region.name: region for region in REPORTED}
    for name in PANELS:
        own = [item for item in predictions if by_name[name].holds(item)]
        points = [
            (item.outcome.seconds, item.seconds, fitted(item))
            for item in own
            if item.outcome.seconds is not None
        ]
        if points:
            found = score(name, own)
            panels.append(Panel(name, f"{found.n} runs, mean error {found.mape:.1%}", points))
    return scatter_svg(
        panels,
        "Predicted against measured seconds per iteration, both logarithmic; orange: runs that "
        "parameters may be fitted to.",
    )


def joined(document: str, *, collectives: str | None = None, training: str | None = None) -> str:
    """A document with one of its parts replaced.

    Examples
    --------
    >>> joined("# A\\n", training="## B\\n").splitlines() == ["# A", "", MARK, "", "## B"]
    True
    """
    first, _, second = document.partition(MARK)
    first = first.rstrip("\n") + "\n" if collectives is None else collectives
    second = second.strip("\n") if training is None else training.strip("\n")
    return f"{first}\n{MARK}\n\n{second}\n" if second else first


def collectives_part(document: str) -> str:
    """The part about collectives."""
    return document.partition(MARK)[0].rstrip("\n") + "\n"


def figures(document: str) -> Mapping[str, Mapping[str, float]]:
    """Mean errors that a document states: by table (`WHOLE`, `SUBSET`), by region."""
    found: dict[str, dict[str, float]] = {}
    heading = ""
    for line in document.partition(MARK)[2].splitlines():
        if line.startswith("### "):
            heading = line[4:]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if heading in (WHOLE, SUBSET) and len(cells) == 10 and re.fullmatch(r"[\d.]+%", cells[3]):
            found.setdefault(heading, {})[cells[0]] = float(cells[3].rstrip("%")) / 100
    return found
