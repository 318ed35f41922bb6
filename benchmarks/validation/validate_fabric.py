"""Target ``fabric [FILE.csv]``: one workload on two networks, ratios of times.

Without a file the published rows: they lie beside a checkout (``../shared/data``); without them the
small subset of the tests is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.validation.fabric.ratios import NetworkRatio, predict_ratios
from benchmarks.validation.validate_training import SHARED, SUBSET
from nest_core.calibration.training.runs import Unread
from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.documents.text import table

__all__ = ["FILE", "as_text", "fabric_table", "fabrics", "published_ratios"]

FILE = "fabric_ratios.csv"


def fabrics() -> dict[str, object]:
    """The published rows."""
    found, left = published_ratios()
    return _fields(found, left)


def published_ratios() -> tuple[list[NetworkRatio], list[Unread]]:
    """All published rows, or those of the tests.

    Raises
    ------
    InputError
        If there are none.
    """
    path = next((folder / FILE for folder in (SHARED, SUBSET) if (folder / FILE).is_file()), None)
    if path is None:
        remedy = "run this in a checkout, or validate a file of your own"
        raise InputError("fabric", "must have measurements", "none installed", remedy)
    return predict_ratios(read_text(path), FILE)


def fabric_table(text: str, path: Path) -> dict[str, object]:
    """A table that a person gives; its paths start where it lies."""
    return _fields(*predict_ratios(text, path.name, path.parent))


def _fields(found: Sequence[NetworkRatio], left: Sequence[Unread]) -> dict[str, object]:
    return {
        "rows": [
            {
                "id": row.id,
                "kind": row.kind,
                "confidence": row.confidence,
                "complete": row.complete,
                "measured_ratio": row.measured,
                "predicted_ratio": row.predicted,
                "interval": list(row.interval),
                "error": row.error,
                "anchored_ratio": row.anchored,
                "anchored_interval": row.anchored_interval and list(row.anchored_interval),
                "assumed": row.assumed,
            }
            for row in found
        ],
        "summary": {
            "measured": _summary([row for row in found if row.kind != "simulated"]),
            "simulated": _summary([row for row in found if row.kind == "simulated"]),
            "complete": _summary([row for row in found if row.complete]),
        },
        "skipped": [{"id": row.id, "reason": row.reason} for row in left],
    }


def _summary(rows: Sequence[NetworkRatio]) -> dict[str, object]:
    anchored = [abs(row.anchored / row.measured - 1) for row in rows if row.anchored is not None]
    return {
        "n": len(rows),
        "median_error": median(abs(row.error) for row in rows) if rows else None,
        "inside": sum(row.inside for row in rows),
        "anchored": len(anchored),
        "anchored_inside": sum(row.anchored_inside for row in rows),
        "anchored_median_error": median(anchored) if anchored else None,
    }


def as_text(fields: Mapping[str, Any]) -> str:
    """What people read: rows, their summary, and what was skipped."""
    head = ["row", "kind", "sure", "measured", "predicted", "10 to 90 %", "error", "from a"]
    rows = [
        [
            row["id"],
            row["kind"],
            row["confidence"],
            f"{row['measured_ratio']:.3f}",
            f"{row['predicted_ratio']:.3f}",
            "{:.3f} to {:.3f}".format(*row["interval"]),
            f"{row['error']:+z.1%}",
            "–" if row["anchored_ratio"] is None else f"{row['anchored_ratio']:.3f}",
        ]
        for row in fields["rows"]
    ]
    parts = [_sentence(fields["summary"])]
    if rows:
        parts.append(table(head, rows))
    if fields["skipped"]:
        reasons = [[item["id"], item["reason"]] for item in fields["skipped"]]
        parts.append(table(["skipped", "why"], reasons))
    return "\n\n".join(parts)


def _sentence(summary: Mapping[str, Mapping[str, Any]]) -> str:
    said = []
    for name, found in summary.items():
        if found["n"]:
            words = f"{name}: {found['n']} ratios, median error {found['median_error']:.1%}"
            words += f", {found['inside']} inside their intervals"
            if found["anchored"]:
                error = f"{found['anchored_median_error']:.1%}"
                words += f"; {error} of {found['anchored']} from the time on network a"
            said.append(words + ".")
    return " ".join(said) or "No ratio predicted."
