"""The training side of ``python -m benchmarks.validation``.

* ``validate training``: every measured run beside the price of its plan. The data lie beside a
  checkout (``../shared/data``); without them the small subset of the tests is used.
* ``validate FILE.csv`` for a table with the columns of ``train_measurements.csv`` or
  ``megatron_a100_*.csv``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.validation.training.recipes import with_recipe
from benchmarks.validation.training.regions import (
    RegionScore,
    Score,
    fitted,
    group_scores,
    region_scores,
)
from nest_core.calibration.training import read_runs
from nest_core.calibration.training.predict import Prediction, predict_rows, spread
from nest_core.calibration.training.runs import MeasuredRow, Unread
from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.documents.text import table
from nest_core.hardware.posterior import WIDTH, load_posterior

__all__ = ["FILES", "SHARED", "SUBSET", "as_text", "read_training", "training", "training_table"]

CHECKOUT = Path(__file__).resolve().parents[2]
SHARED = CHECKOUT.parent / "shared" / "data"
SUBSET = CHECKOUT / "tests" / "data" / "fidelity"
FILES = (
    "train_measurements.csv",
    "megatron_a100_multinode.csv",
    "megatron_a100_singlenode.csv",
    "mlperf_dev.csv",
)


def training() -> dict[str, object]:
    """Everything that was measured, beside what the costs predict."""
    folder = SHARED if (SHARED / FILES[0]).is_file() else SUBSET
    rows, unread = read_training(folder)
    predictions, without = predict_rows(rows)
    source = f"{', '.join(FILES)} ({_extent(folder)})"
    return _fields(predictions, [*unread, *without]) | {"data": source}


def _extent(folder: Path) -> str:
    return "the whole data" if folder == SHARED else "the subset of the tests"


def training_table(text: str, name: str) -> dict[str, object]:
    """A table that a person gives."""
    rows, unread = read_runs(text, name)
    predictions, without = predict_rows(map(with_recipe, rows))
    return _fields(predictions, [*unread, *without])


def read_training(folder: Path) -> tuple[list[MeasuredRow], list[Unread]]:
    """The measured training runs of a folder, and the rows that are none.

    Raises
    ------
    InputError
        If the folder lacks the tables.
    """
    if not (folder / FILES[0]).is_file():
        remedy = "run this in a checkout, or validate a file of your own"
        raise InputError("training", "must have measurements", "none installed", remedy)
    rows: list[MeasuredRow] = []
    unread: list[Unread] = []
    for name in FILES:
        prefix = name.removeprefix("megatron_a100_").removesuffix(".csv") + " "
        more, without = read_runs(read_text(folder / name), name, prefix)
        rows += map(with_recipe, more)
        unread += without
    return rows, unread


def _fields(predictions: Sequence[Prediction], unread: Sequence[Unread]) -> dict[str, object]:
    return {
        "rows": [
            {
                "id": item.run.id,
                "measured_s": item.outcome.seconds,
                "predicted_s": item.seconds,
                **_interval(item),
                "error": item.error,
                "stack": item.run.stack,
                "measured_memory_bytes": item.outcome.memory_bytes,
                "predicted_memory_bytes": item.memory_bytes,
                "memory_counted": None if item.memory_error is None else item.outcome.memory_kind,
                "memory_error": item.memory_error,
                "quality": item.run.quality,
                "fitted": fitted(item),
                "assumed": list(item.run.assumed),
            }
            for item in predictions
        ],
        "groups": [_score(group) for group in group_scores(predictions)],
        "skipped": [{"id": row.id, "reason": row.reason} for row in unread],
        "regions": [_region(found) for found in region_scores(predictions)],
    }


def _interval(item: Prediction) -> dict[str, float]:
    """Where four of five such runs lie."""
    width = WIDTH * spread(item.run, load_posterior())
    return {
        "low_s": item.seconds * math.exp(-width),
        "high_s": item.seconds * math.exp(width),
    }


def _score(found: Score) -> dict[str, object]:
    return {
        "name": found.name,
        "n": found.n,
        "mape": found.mape,
        "bias": found.bias,
        "spearman": found.spearman,
        "regret": found.regret,
    }


def _region(found: RegionScore) -> dict[str, object]:
    return _score(found.every) | {
        "p10": found.every.p10,
        "p90": found.every.p90,
        "worst": found.every.worst,
        "promised": found.region.promised,
        "unseen_mape": None if found.unseen is None else found.unseen.mape,
        "quality_a_mape": None if found.sure is None else found.sure.mape,
    }


def as_text(fields: Mapping[str, Any]) -> str:
    """What people read: kinds of runs, groups of several runs, and what was skipped."""
    head = ["runs", "rows", "mean error", "bias", "rank correlation", "regret"]
    parts = [table(head, [_line(item) for item in fields["regions"]])] if fields["regions"] else []
    several = [item for item in fields["groups"] if item["n"] > 2]
    if several:
        parts.append(table(["group", *head[1:]], [_line(item) for item in several]))
    if fields["skipped"]:
        reasons = [[item["id"], item["reason"]] for item in fields["skipped"]]
        parts.append(table(["skipped", "why"], reasons))
    counted = sum(item["error"] is not None for item in fields["rows"])
    text = f"{len(fields['rows'])} runs predicted, {counted} of them measured.\n\n"
    return text + "\n\n".join(parts)


def _line(item: Mapping[str, Any]) -> list[object]:
    rank = "–" if item["spearman"] is None else f"{item['spearman']:.3f}"
    errors = (
        f"{item[key]:+z.1%}" if key == "bias" else f"{item[key]:.1%}" for key in ("mape", "bias")
    )
    return [_short(item["name"]), item["n"], *errors, rank, f"{item['regret']:.1%}"]


def _short(name: str, most: int = 110) -> str:
    return name if len(name) <= most else name[: most - 3] + "..."
