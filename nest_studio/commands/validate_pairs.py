"""``nest-studio validate pairs FILE.csv``: published experiments in which a setting was changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from statistics import median
from typing import Any

from nest_core.measured.training.pairs import predict_pairs
from nest_core.text import table

__all__ = ["as_text", "pairs_table"]

CLEAR = 0.05
"""What a measured ratio must differ from one by for the direction to count."""


def pairs_table(text: str, name: str) -> dict[str, object]:
    """Every pair of arms, measured beside predicted, and a summary of the strict ones."""
    pairs, left = predict_pairs(text, name)
    renamed = {
        "measured": "measured_ratio",
        "predicted": "predicted_ratio",
        "memory": "memory_ratio",
        "predicted_memory": "predicted_memory_ratio",
    }
    rows = [{renamed.get(key, key): value for key, value in asdict(pair).items()} for pair in pairs]
    strict = [pair for pair in pairs if pair.strict]
    clear = [pair for pair in strict if abs(pair.measured - 1) > CLEAR]
    memory = [
        abs(pair.predicted_memory / pair.memory - 1)
        for pair in strict
        if pair.memory is not None and pair.predicted_memory is not None
    ]
    return {
        "rows": rows,
        "strict": {
            "n": len(strict),
            "median_error": _median([abs(pair.predicted / pair.measured - 1) for pair in strict]),
            "clear": len(clear),
            "right": sum((pair.measured > 1) == (pair.predicted > 1) for pair in clear),
            "memory_median_error": _median(memory),
        },
        "skipped": [{"id": row.id, "reason": row.reason} for row in left],
    }


def _median(values: list[float]) -> float | None:
    return median(values) if values else None


def as_text(fields: Mapping[str, Any]) -> str:
    """What people read: pairs, their summary, and what was skipped."""
    head = ["group", "arm", "changed", "strict", "measured", "predicted", "memory", "predicted"]
    rows = [
        [
            row["group"],
            row["arm"],
            row["changed"],
            "yes" if row["strict"] else "",
            *(
                "–" if row[key] is None else f"{row[key]:.3f}"
                for key in (
                    "measured_ratio", "predicted_ratio", "memory_ratio", "predicted_memory_ratio"
                )
            ),
        ]
        for row in fields["rows"]
    ]  # fmt: skip
    strict, parts = fields["strict"], []
    said = f"{len(rows)} pairs predicted"
    if strict["n"]:
        said += (
            f", {strict['n']} of them strict (quality A, one setting): median error of the ratio "
            f"{strict['median_error']:.1%}, the faster arm right in {strict['right']} of "
            f"{strict['clear']} that differ by more than {CLEAR:.0%}"
        )
    parts.append(said + ".")
    if rows:
        parts.append(table(head, rows))
    if fields["skipped"]:
        reasons = [[item["id"], item["reason"]] for item in fields["skipped"]]
        parts.append(table(["skipped", "why"], reasons))
    return "\n\n".join(parts)
