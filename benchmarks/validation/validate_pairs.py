"""Target ``pairs FILE.csv``: published experiments in which a setting was changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.validation.training.pairs import CLEAR, predict_pairs, scored
from nest_core.documents.text import table

__all__ = ["as_text", "pairs_table"]

NONE_STRICT = {
    "n": 0, "median_error": None, "clear": 0, "right": 0, "memory_median_error": None,
}  # fmt: skip


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
    found = scored(pairs)
    return {
        "rows": rows,
        "strict": asdict(found) if found else NONE_STRICT,
        "skipped": [{"id": row.id, "reason": row.reason} for row in left],
    }


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
