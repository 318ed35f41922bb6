"""The optima's part of ``docs/validation.md``: by class, why below 0.9, and whether they fit.

A class is a family of accelerators, dense or mixture, a software stack, one node or several.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import geometric_mean, median

from benchmarks.validation.markdown import markdown_table
from benchmarks.validation.training.optima import TIME_LIMIT_S, Optimum
from benchmarks.validation.training.posterior import source_name
from benchmarks.validation.training.regions import cell_of
from nest_core.calibration.training.machines import accelerator_of
from nest_core.calibration.training.predict import Prediction
from nest_core.calibration.training.runs import Unread
from nest_core.costs import Plan
from nest_core.costs.head_room import fits_chance

__all__ = ["OPTIMA_MARK", "optima_part"]

OPTIMA_MARK = "<!-- written by `python -m benchmarks.validation regenerate optima` from here on -->"

LOW = 0.9
"""A class whose median is less is explained."""

FACTORS = (
    "the error of the model",
    "better plans within the settings of the source",
    "settings that no run of the source has",
)

INTRODUCTION = """\
## Optima

Where runs were measured, the exact search chooses a plan of its own, from the default space, on the
machine and under the stack of the fastest run of the same model, accelerator, devices, batch,
sequence length and precision. *Ratio* is its predicted time over that run's measured one: below 1
it promises more than anybody measured there. A ratio is a product, which is what explains it:

* *model*: the measured plan's price over its time, what the model is off by (the posterior was
  fitted to these runs);
* *plan*: over that price the best plan within the settings of the source, which are the ZeRO
  stages, recomputation, sequence parallelism, schedules and kinds of parallelism that its runs
  under that stack use (above 1 where the measured plan does not fit with 95 % certainty, as every
  chosen one must);
* *settings*: the optimum over that, what settings add that no run of the source has, be it that its
  software lacked them or that nobody tried.

Runs say whether *model* is right; of *plan* and *settings* no run was measured. *Inside* counts
groups whose fastest run lies in the 80 % interval of the optimum, *as used* those where it lies as
near to the best plan within the settings of the source.
"""

REASONS = (
    (
        "megatron-lm-2021",
        "most of its runs recompute everything and shard nothing. Selective recomputation and "
        "sequence parallelism were published in 2022; the runs that have them, or recompute "
        "nothing (arXiv:2205.05198, arXiv:2401.10241), are the upper end of the class over "
        "several nodes.",
    ),
    (
        "a100, dense, megatron-lm-2021, one node",
        "every plan of vTrain's grid has two micro-batches or more, nearly all chosen ones one.",
    ),
    (
        "mixture of experts",
        "recomputation that a row leaves open is that of its recipe, where one is known. Chosen "
        "plans keep experts within nodes where runs spread them over several (MBRIDGE-049, "
        'MBRIDGE-092, MBRIDGE-138; "Expert degrees"). Where model is far below 1, containers were '
        'early ones ("Mixtures of experts more than 50 % off").',
    ),
)
"""What the tables do not say, of the classes whose names hold a word."""


def optima_part(
    results: Sequence[Optimum | Unread], predictions: Sequence[Prediction], source: str
) -> str:
    """The part's text.

    Parameters
    ----------
    results : sequence of Optimum or Unread
        Of all groups.
    predictions : sequence of Prediction
        All runs, for what their memory says.
    source : str
        What was read.
    """
    every = [item for item in results if isinstance(item, Optimum)]
    found = [item for item in every if item.best is not None]
    classes: dict[str, list[Optimum]] = {}
    for item in found:
        classes.setdefault(_class(item), []).append(item)
    ordered = sorted(classes.items())
    low = [(name, own) for name, own in ordered if median(o.ratio for o in own) < LOW]
    lines = [
        INTRODUCTION,
        f"Data: {source}.",
        "",
        *_in_all(every, found, [item for item in results if isinstance(item, Unread)]),
        "",
        "### By class",
        "",
        *markdown_table(
            [
                "family, model, stack, extent",
                "groups",
                "median",
                "lowest",
                "highest",
                "inside",
                "as used",
                "model",
                "plan",
                "settings",
            ],
            (_row(name, own) for name, own in [*ordered, ("all", found)] if own),
        ),
        "",
        "The last three are geometric means, whose product is that of the ratios.",
        "",
        f"### Classes below {LOW}",
        "",
        *(_explained(name, own) for name, own in low),
        *(f"- *{word}*: {why}" for word, why in REASONS if any(word in name for name, _ in low)),
        "",
        "### Whether optima fit",
        "",
        *_memory(found, predictions),
    ]
    return "\n".join(lines) + "\n"


def _class(item: Optimum) -> str:
    run = item.group.best.run
    _, _, model, _, extent = cell_of(item.group.best)
    return f"{accelerator_of(run.accelerator).family.name}, {model}, {run.stack}, {extent}"


def _in_all(
    every: Sequence[Optimum], found: Sequence[Optimum], without: Sequence[Unread]
) -> list[str]:
    """What became of all groups, and that the search contradicts no price."""
    runs = sum(item.group.runs for item in every)
    unproven = [item for item in found if not item.proven]
    nothing = [item.group.best.run.id for item in every if item.best is None]
    searched = [item for item in every if not item.outside]
    wrong = [item.group.best.run.id for item in searched if item.contradiction]
    reasons = Counter(reason for item in every for reason in item.outside)
    lines = [
        f"- {len(every)} groups of {runs} measured runs; {len(found)} have an optimum"
        + (f", {len(unproven)} of them unproven after {TIME_LIMIT_S:.0f} s" if unproven else "")
        + (f". No plan fits surely: {', '.join(nothing)}" if nothing else "")
        + ".",
        f"- The fastest run lies in the optimum's interval in {sum(o.inside for o in found)} of "
        f"{len(found)}, and in {sum(o.usual_inside for o in found)} where the plan keeps to the "
        "settings of the source.",
        f"- {len(searched)} measured plans are among those searched, and "
        + (f"{', '.join(wrong)} priced under the optimum: a defect." if wrong else "none of them ")
        + ("" if wrong else "is priced under the optimum. ")
        + "Others are not: "
        + ", ".join(f"{reason} {n}" for reason, n in reasons.most_common())
        + ".",
    ]
    return [*lines, *(f"- {row.id} is not searched: {row.reason}" for row in without)]


def _row(name: str, own: Sequence[Optimum]) -> list[object]:
    ratios = sorted(item.ratio for item in own)
    return [
        name,
        len(own),
        f"{median(ratios):.2f}",
        f"{ratios[0]:.2f}",
        f"{ratios[-1]:.2f}",
        sum(item.inside for item in own),
        sum(item.usual_inside for item in own),
        *(f"{factor:.2f}" for factor in _factors(own)),
    ]


def _factors(own: Iterable[Optimum]) -> list[float]:
    return [geometric_mean(values) for values in zip(*(item.parts for item in own), strict=True)]


def _explained(name: str, own: Sequence[Optimum]) -> str:
    """A class below `LOW`: its factors, what optima have that measured plans have not."""
    factors = _factors(own)
    parts = ", ".join(f"{factor:.2f} {word}" for factor, word in zip(factors, FACTORS, strict=True))
    beyond = Counter(setting for item in own for setting in item.beyond)
    moved = Counter(axis for item in own for axis in _moved(item))
    lowest = min(own, key=lambda item: (item.ratio, item.group.best.run.id))
    words = [f"- **{name}**, {median(o.ratio for o in own):.2f} in {len(own)}: {parts}."]
    if len(errors := _errors(own)) > 1:
        words.append(f"Error of the model by source: {', '.join(errors)}.")
    if beyond:
        words.append(f"No run of the source has: {_counted(beyond)}.")
    if moved:
        words.append(f"Measured and chosen plans differ in {_counted(moved)}.")
    words.append(
        f"Lowest: {lowest.group.best.run.id}, {lowest.ratio:.2f} = "
        f"{' x '.join(f'{part:.2f}' for part in lowest.parts)}, "
        f"{_plan(lowest.mine.plan)} measured, {_chosen(lowest)} chosen."
    )
    return " ".join(words)


def _errors(own: Iterable[Optimum]) -> list[str]:
    """What the model is off by, by source."""
    found: dict[str, list[float]] = {}
    for item in own:
        found.setdefault(source_name(item.group.best.run.source), []).append(item.parts[0])
    return [
        f"{name} {geometric_mean(errors):.2f} ({len(errors)})"
        for name, errors in sorted(found.items())
    ]


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{name} ({n})" for name, n in found.most_common(6))


def _moved(item: Optimum) -> list[str]:
    """Axes on which the optimum is another plan than the measured."""
    if item.best is None:
        return []
    mine, best = item.mine.plan, item.best.plan
    axes = {
        "tp": "tp",
        "pp": "pp",
        "cp": "cp",
        "ep": "ep",
        "micro_batch": "micro-batch",
        "interleave": "virtual stages",
    }
    found = [
        word
        for axis, word in axes.items()
        if getattr(mine.point, axis) != getattr(best.point, axis)
    ]
    if mine.point.zero != best.point.zero:
        found.append("ZeRO")
    return [*found, *(["recomputation"] if set(mine.recompute) != set(best.recompute) else [])]


def _chosen(item: Optimum) -> str:
    return _plan(item.best.plan) if item.best else "nothing"


def _plan(plan: Plan) -> str:
    point = plan.point
    degrees = [
        f"{name} {value}"
        for name, value in (
            ("tp", point.tp),
            ("pp", point.pp),
            ("virtual stages", point.interleave),
            ("cp", point.cp),
            ("ep", point.ep),
            ("dp", point.dp),
        )
        if value > 1
    ]
    again = " and ".join(dict.fromkeys(plan.recompute))
    return (
        f"({', '.join(degrees)}, micro-batch {point.micro_batch}, ZeRO {point.zero}, "
        f"{again} recomputed)"
    )


def _memory(found: Sequence[Optimum], predictions: Sequence[Prediction]) -> list[str]:
    """How many optima do not fit, by the spread of memory and by other sources' alone."""
    there = [_room(item) for item in found]
    own = [
        item.needed_bytes * item.memory.factor > room
        for item, room in zip(found, there, strict=True)
    ]
    others = [
        item.needed_bytes * item.group.others.factor > room
        for item, room in zip(found, there, strict=True)
    ]
    chance = [
        1.0 - fits_chance(item.needed_bytes, room, item.memory.sd)
        for item, room in zip(found, there, strict=True)
    ]
    share = [item.needed_bytes / room for item, room in zip(found, there, strict=True)]
    if not found:
        return ["No group has an optimum."]
    rows, missed, tried = _left_out(found, predictions)
    return [
        f"Optima hold {sum(share) / len(share):.0%} of memory on average, {max(share):.0%} at "
        f"most. The upper end of the memory's 80 % interval is over the device's in {sum(own)} of "
        f"{len(found)} (none by construction: plans fit with 95 % certainty), {sum(others)} where "
        "the interval is made from other sources; by the former they do not fit with a chance of "
        f"{sum(chance) / len(chance):.1%} on average.",
        "",
        "Sources left out: plans are chosen anew so that they fit surely by the memory of other "
        "sources alone, and every one is held against every error that the source's own rows have "
        "(measured over predicted bytes)"
        + (f": {missed / tried:.1%} do not fit." if tried else ": no source has both."),
        "",
        *markdown_table(
            ["source", "optima", "memory rows", "held of memory", "do not fit"],
            rows,
        ),
    ]


def _room(item: Optimum) -> float:
    return accelerator_of(item.group.best.run.accelerator).memory_bytes


def _left_out(
    found: Sequence[Optimum], predictions: Sequence[Prediction]
) -> tuple[list[list[object]], float, int]:
    """Lines by source; optima that do not fit, each an average over errors, of how many."""
    errors: dict[str, list[float]] = {}
    for prediction in predictions:
        if prediction.memory_error is not None:
            name = source_name(prediction.run.source)
            errors.setdefault(name, []).append(1.0 / (1.0 + prediction.memory_error))
    rows: list[list[object]] = []
    missed, tried = 0.0, 0
    for name, known in sorted(errors.items()):
        held = [
            item.needed_left_out_bytes / _room(item)
            for item in found
            if source_name(item.group.best.run.source) == name and item.needed_left_out_bytes
        ]
        if held:
            over = math.fsum(share * error > 1.0 for share in held for error in known) / len(known)
            missed, tried = missed + over, tried + len(held)
            mean = sum(held) / len(held)
            rows.append([name, len(held), len(known), f"{mean:.0%}", f"{over / len(held):.0%}"])
    return rows, missed, tried
