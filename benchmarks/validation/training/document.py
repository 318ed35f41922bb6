"""The training part of ``docs/validation.md``: what was predicted, how well, and what was not.

The document has five parts, each written by its own command; `joined` puts a part in its place and
leaves the others alone. `figures` reads back what a document promises, for the test that nothing
gets worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.validation.markdown import markdown_table
from benchmarks.validation.training.blind import left_out_section
from benchmarks.validation.training.few_shot import few_shot, few_shot_section
from benchmarks.validation.training.memory_reference import TABLE_6, compared
from benchmarks.validation.training.optima_document import OPTIMA_MARK
from benchmarks.validation.training.posterior import Evidence
from benchmarks.validation.training.regions import (
    REPORTED,
    RegionScore,
    Score,
    fitted,
    group_scores,
    region_scores,
    score,
)
from benchmarks.validation.training.scatter import Panel, scatter_svg
from benchmarks.validation.training.settings import SETTINGS_MARK
from nest_core.calibration.training.predict import Prediction
from nest_core.calibration.training.runs import MEMORY_KINDS, Run, Unread
from nest_core.documents.units import GIB

__all__ = [
    "FABRIC_MARK",
    "MARK",
    "MIXTURES_MARK",
    "PICTURE",
    "REPLAY_MARK",
    "figures",
    "joined",
    "memory_section",
    "picture",
    "training_part",
]

MARK = "<!-- written by `python -m benchmarks.validation regenerate training` from here on -->"
FABRIC_MARK = "<!-- written by `python -m benchmarks.validation regenerate fabric` from here on -->"
MIXTURES_MARK = (
    "<!-- written by `python -m benchmarks.validation regenerate mixtures` from here on -->"
)
REPLAY_MARK = "<!-- written by `python -m benchmarks.validation regenerate replay` from here on -->"
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

Rules: a prediction reads a run's configuration and nothing measured, and is priced under the
stack that the run had (`presets/stacks/`). What kernels reach starts from `presets/estimators/`
(fitted to the runs marked `calib15`, to those on one node of A100 and to single-layer times;
"not fitted" leaves these runs out) and was then fitted to all runs of quality A and B together
(`presets/validation/posterior.toml`), so errors outside "Sources left out" are of fitted rows. The
form of the model was chosen with all runs in view (`docs/method.md`, "Calibration"). What a row
does not state takes the same default everywhere (`nest_core/calibration/training/`).
"""


MIXTURES_APART = (
    "- *Too slow*, GPT-OSS-120B on H100 (AutoModel): the table leaves ep open and the example's "
    "configuration has 8 or 64. At 8 the weights of an eighth of the experts are gathered per "
    "micro-batch; at 64 the prediction is 4.83 s instead of 12.02, against 4.30 measured.",
    "- *Too slow*, Qwen3-235B-A22B on 64 GB200 in the container of 25.09: 13.2 of the predicted "
    "23.2 s are launches of kernels, against 14.7 measured. Later recipes leave them to CUDA "
    "graphs; what that one did is not known.",
    "- *Too fast* (Qwen3-30B-A3B, GPT-OSS-120B). Early containers of Megatron-Bridge, or recipes "
    "that later ones replaced: the same models on equal devices with the same batch took 29 s "
    "instead of 51 (Qwen3-30B-A3B on H100) and 2.5 instead of 4.0 (GPT-OSS-120B on GB300) in other "
    "containers, where the same predictions are 15 % too slow and 30 % too fast. Nothing that a "
    "row states tells such runs apart.",
)
"""Why mixtures are far off, from the rows' notes, siblings and predicted shares."""


def training_part(
    predictions: Sequence[Prediction],
    unread: Sequence[Unread],
    subset: Sequence[Prediction],
    coverage: tuple[int, int],
    source: str,
    found: Sequence[Evidence],
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
    found : sequence of Evidence
        The measured runs with their slopes at the posterior's centre.
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
        "### Sources left out",
        "",
        *left_out_section(found, predictions),
        "",
        "### Few runs of one's own",
        "",
        *few_shot_section(few_shot(found)),
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
        "### Mixtures of experts more than 50 % off",
        "",
        *MIXTURES_APART,
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
    return markdown_table(
        [
            "",
            "promised",
            "runs",
            "mean error",
            "not fitted",
            "quality A",
            "bias",
            "10 %",
            "90 %",
            "worst",
        ],
        (_region_row(found, found.every) for found in scores),
    )


def _region_row(found: RegionScore, every: Score) -> list[object]:
    promised = found.region.promised
    return [
        every.name,
        "–" if promised is None else f"{promised:.0%}",
        every.n,
        f"{every.mape:.1%}",
        _mean(found.unseen),
        _mean(found.sure),
        f"{every.bias:+z.1%}",
        f"{every.p10:+z.1%}",
        f"{every.p90:+z.1%}",
        f"{every.worst:+z.0%}",
    ]


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
    return markdown_table(
        ["", "runs", "mean error", "bias", "rank correlation", "regret"],
        (
            [
                group.name,
                group.n,
                f"{group.mape:.1%}",
                f"{group.bias:+z.1%}",
                "–" if group.spearman is None else f"{group.spearman:.3f}",
                f"{group.regret:.1%}",
            ]
            for group in groups
        ),
    )


def _worst(predictions: Iterable[Prediction]) -> list[str]:
    measured = [(item, item.error) for item in predictions if item.error is not None]
    measured.sort(key=lambda pair: (-abs(pair[1]), pair[0].run.id))
    return markdown_table(
        ["row", "run", "measured", "predicted", "error"],
        (
            [
                item.run.id,
                _run_words(item.run),
                f"{item.outcome.seconds:.4g} s",
                f"{item.seconds:.4g} s",
                f"{error:+z.0%}",
            ]
            for item, error in measured[:WORST]
        ),
        words=2,
    )


def _run_words(run: Run) -> str:
    degrees = ", ".join(
        f"{axis} {getattr(run.point, axis)}" for axis in ("tp", "pp", "cp", "ep", "dp")
    )
    return f"{run.model}, {run.devices} x {run.accelerator}, {degrees}"


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


def joined(
    document: str,
    *,
    collectives: str | None = None,
    training: str | None = None,
    fabric: str | None = None,
    settings: str | None = None,
    optima: str | None = None,
    mixtures: str | None = None,
    replay: str | None = None,
) -> str:
    """A document with one of its parts replaced.

    Examples
    --------
    >>> joined("# A\\n", training="## B\\n").splitlines() == ["# A", "", MARK, "", "## B"]
    True
    """
    rest, _, seventh = document.partition(REPLAY_MARK)
    rest, _, sixth = rest.partition(MIXTURES_MARK)
    rest, _, fifth = rest.partition(OPTIMA_MARK)
    rest, _, fourth = rest.partition(SETTINGS_MARK)
    rest, _, third = rest.partition(FABRIC_MARK)
    first, _, second = rest.partition(MARK)
    text = first.rstrip("\n") + "\n" if collectives is None else collectives
    for mark, old, new in (
        (MARK, second, training),
        (FABRIC_MARK, third, fabric),
        (SETTINGS_MARK, fourth, settings),
        (OPTIMA_MARK, fifth, optima),
        (MIXTURES_MARK, sixth, mixtures),
        (REPLAY_MARK, seventh, replay),
    ):
        part = (old if new is None else new).strip("\n")
        text += f"\n{mark}\n\n{part}\n" if part else ""
    return text


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


FAR = 0.2

MEMORY_INTRODUCTION = """\
Bytes on the device that a source read (the fullest, or the first stage where it says so), \
compared with what it counted: what tensors held (also where it does not say), what the allocator \
held, or what the driver showed, with its context and the communicators' buffers. The allocator's \
share is one constant (`FRAGMENTATION` of `nest_core.hardware.memory_rules`; XLA has none), the \
mean of what SimuMax's rows state beside the figure compared here. No other number was fitted, \
but these errors are not blind: which of a framework's buffers are counted \
(`nest_core/calibration/training/runs.py`), and that unstated memory is what tensors hold, was \
decided with these rows in view. Promised: mean error 6%, worst 20%."""

RESERVED = ("reserved", "device")
"""Kinds of sources that count memory which no tensor has."""


def memory_section(predictions: Iterable[Prediction]) -> list[str]:
    """Lines of Markdown: by source, rows that are far off, closed forms, the paper's table 6."""
    rows = [(item, error) for item in predictions if (error := item.memory_error) is not None]
    return [
        MEMORY_INTRODUCTION,
        "",
        *_by_source(rows),
        "",
        *_far(rows),
        "",
        *_closed_forms(),
        "",
        *_table_6(),
    ]


def _by_source(rows: Sequence[tuple[Prediction, float]]) -> list[str]:
    found: dict[tuple[str, str], list[float]] = {}
    for item, error in rows:
        key = item.run.source.partition(" sec ")[0], item.outcome.memory_kind
        found.setdefault(key, []).append(error)
    groups = [(source, MEMORY_KINDS[kind], errors) for (source, kind), errors in found.items()]
    for name, wanted in (("all that tensors held", False), ("all that was reserved", True)):
        among = [error for item, error in rows if (item.outcome.memory_kind in RESERVED) is wanted]
        groups.append((name, "", among))
    groups.append(("all", "", [error for _, error in rows]))
    return markdown_table(
        ["source", "counted", "runs", "mean error", "bias", "worst"],
        (
            [
                source,
                counted,
                len(errors),
                f"{sum(map(abs, errors)) / len(errors):.1%}",
                f"{sum(errors) / len(errors):+z.1%}",
                f"{max(errors, key=abs):+z.0%}",
            ]
            for source, counted, errors in groups
            if errors
        ),
        words=2,
    )


def _far(rows: Sequence[tuple[Prediction, float]]) -> list[str]:
    far = [
        f"- {item.run.id}: {item.run.model}, {item.comparable_bytes / GIB:.1f} GiB against "
        f"{(item.outcome.memory_bytes or 0.0) / GIB:.1f} GiB ({error:+z.0%})"
        for item, error in rows
        if abs(error) > FAR
    ]
    return [f"Further off than {FAR:.0%}:", "", *far] if far else [f"None is {FAR:.0%} off."]


def _closed_forms() -> list[str]:
    """Of Korthikanti et al. 2022."""
    found: dict[str, list[float]] = {}
    for entry in compared():
        found.setdefault(entry.figure, []).append(entry.error)
    rows = (
        [
            figure,
            len(errors),
            f"{sum(map(abs, errors)) / len(errors):.2%}",
            f"{max(errors, key=abs):+z.2%}",
        ]
        for figure, errors in found.items()
    )
    return [
        "Figures that follow from formulas, for GPTs of 22B, 175B, 530B and 1T "
        "(arXiv:2205.05198, figures 1 and 7): states at 18 bytes per parameter, activations of "
        "the first stage, and what variants keep of a layer.",
        "",
        *markdown_table(["figure", "models", "mean error", "worst"], rows),
    ]


def _table_6() -> list[str]:
    return [
        "Table 6 of NEST's paper, shown only: it does not print the configurations behind these "
        "figures, so nothing here can be compared with them.",
        "",
        *markdown_table(
            ["model", "Alpa's executables, GB", "the paper's estimate, GB", "its error"],
            (
                [model, f"{alpa:g}", f"{nest:g}", f"{nest / alpa - 1:+z.0%}"]
                for model, alpa, nest in TABLE_6
            ),
        ),
    ]
