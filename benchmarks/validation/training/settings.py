"""What a setting was worth where it was measured, from a table of arms.

An *effect* is a setting and a direction: `EFFECTS` gives every arm a degree of it, and a pair
counts with the ratio of throughputs of the arm of the higher degree over the other; pairs of equal
degree say nothing of it. ``presets/validation/settings.toml`` holds for each effect the least and
the largest ratio, by whether a source says all of its plan (quality A), how many of those changed
one setting alone (*clean*), and the groups they are of.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.validation.markdown import markdown_table
from benchmarks.validation.training.pairs import CLEAR, PROXIES, Pair, is_strict, read_arms, scored
from nest_core.calibration.training.bands import Setting
from nest_core.calibration.training.reading import measured_figure
from nest_core.calibration.training.runs import Unread

__all__ = [
    "EFFECTS",
    "SETTINGS_MARK",
    "measured_settings",
    "settings_part",
    "settings_toml",
]

SETTINGS_MARK = (
    "<!-- written by `python -m benchmarks.validation regenerate settings` from here on -->"
)

UNSOUND = re.compile(r"olmo762|marin7981|titan4153|titan1207")
"""Groups left out: FSDP slower than any traffic explains, tokens dropped, a process group that
sends nothing, kernels with a known defect."""

Span = tuple[float, float]
Cells = Mapping[str, str]
Degree = Callable[[Cells], float | None]


def _number(column: str) -> Degree:
    return lambda cells: measured_figure(cells.get(column, ""))


def _ordered(column: str, *patterns: str) -> Degree:
    """The place of the last pattern that a cell matches; an empty cell is at the first."""

    def degree(cells: Cells) -> float | None:
        text = cells.get(column, "").lower()
        found = [place for place, pattern in enumerate(patterns) if re.search(pattern, text)]
        return float(found[-1]) if found else None

    return degree


def _modules(cells: Cells) -> float | None:
    """How many modules run again; of what is no list of them, nothing."""
    listed = re.match(r"selective:\[?([a-z_,]*)\]?$", cells.get("recompute", ""))
    if listed is None:
        return 0.0 if cells.get("recompute") == "none" else None
    return float(len([name for name in listed[1].split(",") if name]))


def _dispatch(*, by_proxy: bool) -> Degree:
    """Copies to every expert, once per node, once per NVLink domain, through a proxy or not."""
    order = _ordered("dispatcher", "all-?to-?all", "deepep", "hybrid-?ep")

    def degree(cells: Cells) -> float | None:
        place = order(cells)
        if by_proxy:
            return (
                1.0 if PROXIES.search(cells.get("dispatcher", "")) else 0.0 if place == 0 else None
            )
        return None if PROXIES.search(cells.get("dispatcher", "")) else place

    return degree


@dataclass(frozen=True, slots=True)
class Effect:
    """A setting in a direction.

    Parameters
    ----------
    name : str
        In words, what the arm of the higher degree has.
    key : str
        Dotted key of the field that offers it; empty: no file has one.
    changed : str
        Pattern of column ``changed``.
    degree : callable
        How much of it an arm has; None: that is not said.
    """

    name: str
    key: str
    changed: str
    degree: Degree


EFFECTS = (
    Effect(
        "expert overlap",
        "workload.expert_overlap",
        r"ep_overlap( turned off)?",
        _ordered("overlap_flags", "none", "moe"),
    ),
    Effect("DeepEP or HybridEP", "workload.dispatch", "dispatcher", _dispatch(by_proxy=False)),
    Effect(
        "DeepEP through a proxy on the host (EFA)",
        "workload.dispatch",
        "dispatcher",
        _dispatch(by_proxy=True),
    ),
    Effect(
        "8 bits instead of 16",
        "workload.precision",
        "precision",
        _ordered("precision_recipe", "bf16", "fp8|float8"),
    ),
    Effect(
        "full recomputation",
        "search.recompute",
        "recompute",
        _ordered("recompute", "none|selective:|sac default", "^full"),
    ),
    Effect("modules recomputed", "search.recompute", "recompute", _modules),
    Effect(
        "larger micro-batches",
        "search.micro_batch_sequences",
        "micro_batch",
        _number("micro_batch"),
    ),
    Effect(
        "interleaved or zero-bubble schedules",
        "search.schedule",
        "pp_schedule",
        _ordered("vp_layout", "1f1b", "interleaved", "zb|zerobubble"),
    ),
    Effect("ZeRO 3 (FSDP) on 64 devices over 8", "search.zero", "gpus .*", _number("gpus")),
    Effect("more tensor parallelism", "search.tp", "tp", _number("tp")),
    Effect("CUDA graphs of layers", "", "cuda_graphs", _ordered("cuda_graphs", "none", "te ")),
    Effect("torch.compile", "", "torch_compile", _ordered("other", "eager", "torch.compile")),
)


def measured_settings(text: str, name: str) -> list[Setting]:
    """What each of `EFFECTS` was worth in a table of arms; those that it has nothing of left out.

    Raises
    ------
    InputError
        If it is no table of arms.
    """
    arms = read_arms(text, name)
    settings = []
    for effect in EFFECTS:
        pairs = [
            (cells, sign)
            for (group, _), cells in arms.items()
            if (sign := _direction(effect, cells, arms.get((group, cells["compare_to"]))))
        ]
        if pairs:
            settings.append(_measured(effect, pairs))
    return settings


def _direction(effect: Effect, cells: Cells, base: Cells | None) -> int:
    """1 where an arm has more of an effect than what it is compared with, -1 where it has less;
    0 where the pair says nothing of it."""
    if base is None or UNSOUND.search(cells["group"]):
        return 0
    if not re.fullmatch(effect.changed, cells["changed"].strip()):
        return 0
    here, there = effect.degree(cells), effect.degree(base)
    if here is None or there is None or _ratio(cells, "ratio_throughput", 1) is None:
        return 0
    return (here > there) - (here < there)


def _measured(effect: Effect, pairs: Sequence[tuple[Cells, int]]) -> Setting:
    speeds = [
        (cells.get("quality") == "A", _ratio(cells, "ratio_throughput", sign))
        for cells, sign in pairs
    ]
    sure = [ratio for known, ratio in speeds if known and ratio]
    others = [ratio for known, ratio in speeds if not known and ratio]
    memory = [ratio for cells, sign in pairs if (ratio := _ratio(cells, "ratio_memory", sign))]
    return Setting(
        effect.name,
        effect.key,
        _span(sure),
        len(sure),
        sum(is_strict(cells) for cells, _ in pairs),
        _span(others),
        len(others),
        _span(memory),
        tuple(dict.fromkeys(cells["group"] for cells, _ in pairs)),
    )


def _ratio(cells: Cells, column: str, sign: int) -> float | None:
    """A ratio in the direction of an effect; None where none is stated."""
    ratio = measured_figure(cells.get(column, ""))
    return float(ratio**sign) if ratio and ratio > 0 else None


def _span(ratios: Sequence[float]) -> Span | None:
    return (round(min(ratios), 4), round(max(ratios), 4)) if ratios else None


def settings_toml(settings: Iterable[Setting]) -> str:
    """The text of the shipped file."""
    lines = [
        "# Written by `python -m benchmarks.validation regenerate settings`; do not edit. Ratios",
        "# are of throughput, with a setting over without; `others` are of experiments that",
        "# leave out part of a plan.",
    ]
    for one in settings:
        spans = {"ratios": one.ratios, "others": one.others, "memory": one.memory}
        lines += [
            "",
            "[[setting]]",
            f"name = {json.dumps(one.name)}",
            f"key = {json.dumps(one.key)}",
            *(f"{key} = {list(span)}" for key, span in spans.items() if span is not None),
            f"n = {one.n}",
            f"clean = {one.clean}",
            f"n_others = {one.n_others}",
            f"groups = {json.dumps(list(one.groups))}",
        ]
    return "\n".join(lines) + "\n"


INTRODUCTION = """\
## Settings

Published experiments in which one setting was changed, or few: throughput per device with it over
without, measured beside the price of both arms. *Clean* are experiments that say all of their plan
and change one setting alone. Ratios leave out what both arms share, but not what the setting does
to software that no cost describes. Nothing is fitted to these experiments.
"""


def settings_part(
    settings: Sequence[Setting], pairs: Sequence[Pair], left: Sequence[Unread], source: str
) -> str:
    """The document's part: what settings were worth, and every pair that was predicted."""
    effects = [
        [
            one.name,
            _in_figures(one.ratios),
            one.n,
            one.clean,
            _in_figures(one.others),
            one.n_others,
            _in_figures(one.memory),
            len(one.groups),
        ]
        for one in settings
    ]
    rows = [
        [
            f"{pair.group}/{pair.arm}",
            pair.changed,
            "yes" if pair.strict else "",
            f"{pair.measured:.2f}",
            f"{pair.predicted:.2f}",
            "–" if pair.memory is None else f"{pair.memory:.2f}",
            "–" if pair.predicted_memory is None else f"{pair.predicted_memory:.2f}",
        ]
        for pair in pairs
    ]
    reasons = Counter(re.sub(r": .*", "", row.reason) for row in left)
    return "\n".join(
        [
            INTRODUCTION,
            f"Data: {source}. {_in_all(pairs)}",
            "",
            "### What settings were worth",
            "",
            *markdown_table(
                ["setting", "measured", "experiments", "clean", "plan not all stated",
                 "experiments", "memory", "groups"],
                effects,
            ),
            "",
            "### Pairs, measured beside predicted",
            "",
            *markdown_table(
                ["pair", "changed", "clean", "measured", "predicted", "memory", "predicted"], rows
            ),
            "",
            "### Pairs without a prediction",
            "",
            *markdown_table(["why", "pairs"], [[why, n] for why, n in reasons.most_common()]),
        ]
    )  # fmt: skip


def _in_all(pairs: Sequence[Pair]) -> str:
    found = scored(pairs)
    if found is None:
        return f"{len(pairs)} pairs predicted, none of them clean."
    return (
        f"{len(pairs)} pairs predicted. Of the {found.n} clean ones the median error of the ratio "
        f"is {found.median_error:.1%}; the faster arm is right in {found.right} of {found.clear} "
        f"that differ by more than {CLEAR:.0%}."
    )


def _in_figures(span: Span | None) -> str:
    if span is None:
        return "–"
    low, high = (f"{ratio:.2f}" for ratio in span)
    return low if low == high else f"{low} to {high}"
