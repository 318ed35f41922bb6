"""Published experiments in which a setting was changed: measured beside predicted ratios.

A table of arms (`ARM_COLUMNS`) names for each the arm it is compared with. Both are read as runs
(`benchmarks.validation.training.arms`) and priced as all runs are; their ratio leaves out what both
share: the cluster, the software, how well the kernels of that model run. Settings that no cost
describes (graphs of kernels, fused kernels, binding of processes, libraries) are left out with
the reason, and so are arms that do not say what was run.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.validation.training.arms import arm_run
from nest_core.calibration.training.predict import Prediction, predict_rows
from nest_core.calibration.training.reading import MAX_ROWS, measured_figure
from nest_core.calibration.training.rows import Unusable
from nest_core.calibration.training.runs import MeasuredOutcome, MeasuredRow, Unread
from nest_core.documents.errors import InputError

__all__ = [
    "ARM_COLUMNS",
    "CLEAR",
    "PROXIES",
    "Arms",
    "Pair",
    "PairScore",
    "is_pairs",
    "is_strict",
    "predict_pairs",
    "read_arms",
    "scored",
]

ARM_COLUMNS = ("group", "arm", "compare_to", "changed", "model", "accelerator", "gpus", "tp", "pp")
"""A table with these is one of arms."""

CLEAR = 0.05
"""What a measured ratio must differ from one by for the direction to count."""

UNPRICED = re.compile(
    r".*(kernel|fusion|binding|version|connections|backend|symm_mem|implementation|delay|chunking"
    r"|scheme|allocator|hardware)|optimizer|hybrid_?sharding_?impl",
    re.I,
)
"""Column ``changed``, part by part: kernels, libraries, releases and processes, which no cost
describes. Of everything else costs say whether they see it: two arms that they cannot tell apart
are left out (`_alike`)."""

GROUPED = re.compile(r"(moe_?)?(grouped_?(gemm|mm)|gmm|expert_?gemm)(_?backend)?", re.I)
"""Those of them that are a cost: how products of experts are launched."""

PROXIES = re.compile("uccl|nvshmem", re.I)
"""Column ``dispatcher``: DeepEP through a proxy on the host, where NICs take no orders of GPUs."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An arm beside the one it is compared with.

    Parameters
    ----------
    group, arm, compare_to, changed : str
        As written.
    strict : bool
        Whether quality is A and one setting was changed.
    measured, predicted : float
        Ratio of throughputs per device; above 1 this arm is faster.
    memory, predicted_memory : float or None
        Ratio of memory; None where it was not measured.
    """

    group: str
    arm: str
    compare_to: str
    changed: str
    strict: bool
    measured: float
    predicted: float
    memory: float | None
    predicted_memory: float | None


@dataclass(frozen=True, slots=True)
class PairScore:
    """How well strict pairs are predicted.

    Parameters
    ----------
    n : int
    median_error : float
        Of the ratio of throughputs.
    clear, right : int
        Pairs that differ by more than `CLEAR`, and how many of them have the faster arm right.
    memory_median_error : float or None
        None where no memory was measured.
    """

    n: int
    median_error: float
    clear: int
    right: int
    memory_median_error: float | None


def scored(pairs: Sequence[Pair]) -> PairScore | None:
    """The score of those that are strict; None if none is."""
    strict = [pair for pair in pairs if pair.strict]
    if not strict:
        return None
    clear = [pair for pair in strict if abs(pair.measured - 1) > CLEAR]
    memory = [
        abs(pair.predicted_memory / pair.memory - 1)
        for pair in strict
        if pair.memory is not None and pair.predicted_memory is not None
    ]
    return PairScore(
        len(strict),
        median(abs(pair.predicted / pair.measured - 1) for pair in strict),
        len(clear),
        sum((pair.measured > 1) == (pair.predicted > 1) for pair in clear),
        median(memory) if memory else None,
    )


def is_pairs(columns: Sequence[str]) -> bool:
    """Whether a table's columns are those of arms."""
    return set(ARM_COLUMNS) <= {column.strip() for column in columns}


Arms = dict[tuple[str, str], dict[str, str]]
"""Cells by group and arm."""


def read_arms(text: str, name: str) -> Arms:
    """A table of arms, whatever their cells hold.

    Raises
    ------
    InputError
        If it is no such table.
    """
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""), restkey="", restval="")
    arms: Arms = {}
    try:
        reader.fieldnames = columns = [column.strip() for column in reader.fieldnames or ()]
        if not is_pairs(columns):
            raise InputError(
                name,
                "must have the columns of arms",
                ", ".join(columns) or "empty",
                f"name at least {', '.join(ARM_COLUMNS)}",
            )
        for row in reader:
            key = row["group"], row["arm"]
            if key in arms or len(arms) == MAX_ROWS:
                raise InputError(
                    name,
                    f"must name every arm of a group once, {MAX_ROWS:,} at most",
                    "/".join(key),
                    "rename or split",
                )
            arms[key] = row
    except csv.Error as error:
        raise InputError(name, "must be a CSV file", str(error), "save it as CSV") from error
    return arms


def is_strict(cells: Mapping[str, str]) -> bool:
    """Whether an arm says all that it ran, and changes one setting."""
    return cells.get("quality") == "A" and cells.get("purity") == "one"


def predict_pairs(text: str, name: str) -> tuple[list[Pair], list[Unread]]:
    """Every pair of arms predicted, or listed with the reason why not.

    Parameters
    ----------
    text : str
        A CSV with the columns of arms.
    name : str
        What to call it in errors.

    Raises
    ------
    InputError
        If it is no such table.
    """
    arms = read_arms(text, name)
    found: dict[tuple[str, str], Prediction] = {}
    refused: dict[tuple[str, str], str] = {}
    pairs: list[Pair] = []
    left: list[Unread] = []
    for (group, arm), cells in arms.items():
        if not cells["compare_to"]:
            continue
        base = (group, cells["compare_to"])
        reason = _unpriced(cells, arms.get(base))
        for key in ((group, arm), base):
            if not reason and key not in found:
                reason = refused.get(key, "") or _price(arms[key], key, found)
                refused |= {key: reason} if reason else {}
        if not reason and _alike(found[group, arm], found[base]):
            reason = f"changes {cells['changed']} in a way that no cost describes"
        if reason:
            left.append(Unread(f"{group}/{arm}", reason))
        else:
            pairs.append(_pair(cells, found[group, arm], found[base]))
    return pairs, left


def _alike(arm: Prediction, base: Prediction) -> bool:
    """Whether costs see no difference."""
    return replace(arm.run, id=base.run.id, precision_name=base.run.precision_name) == base.run


def _unpriced(cells: Mapping[str, str], base: Mapping[str, str] | None) -> str:
    """Why a pair cannot be predicted, whatever its arms are; empty if it can."""
    if base is None:
        return f"is compared with {cells['compare_to']!r}, which its group lacks"
    for part in re.split(r"\s*[+,;]\s*", cells["changed"].strip()):
        if UNPRICED.match(part) and not GROUPED.fullmatch(part):
            return f"changes {part}, which no cost describes"
    if measured_figure(cells.get("ratio_throughput", "")) is None:
        return "states no ratio of throughput"
    if any(PROXIES.search(each.get("dispatcher", "")) for each in (cells, base)):
        return "sends tokens through a proxy on the host, which has no price"
    return ""


def _price(
    cells: Mapping[str, str], key: tuple[str, str], found: dict[tuple[str, str], Prediction]
) -> str:
    """Price an arm into `found`; why that cannot be, or nothing."""
    try:
        run = arm_run(cells)
    except (Unusable, InputError) as error:
        return str(error)
    done, left = predict_rows([MeasuredRow(run, MeasuredOutcome())])
    if left:
        return left[0].reason
    found[key] = done[0]
    return ""


def _pair(cells: Mapping[str, str], arm: Prediction, against: Prediction) -> Pair:
    measured = measured_figure(cells["ratio_throughput"])
    assert measured is not None
    memory = measured_figure(cells.get("ratio_memory", ""))
    kind = "allocated" if cells.get("peak_allocated_GB") else "reserved"
    ours, theirs = (dict(one.counted_bytes)[kind] for one in (arm, against))
    return Pair(
        cells["group"],
        cells["arm"],
        cells["compare_to"],
        cells["changed"],
        is_strict(cells),
        measured,
        _rate(arm) / _rate(against),
        memory,
        ours / theirs if memory is not None else None,
    )


def _rate(item: Prediction) -> float:
    """Tokens per second and device."""
    return item.run.batch * item.run.sequence / (item.seconds * item.run.devices)
