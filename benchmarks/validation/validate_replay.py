"""Target ``replay``: plans in closed form beside the same iterations played event by event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.validation.replay.agreement import Agreement, cases, compared
from benchmarks.validation.replay.document import summary
from nest_core.documents.text import table

__all__ = ["agreements", "as_text", "replays"]


def agreements() -> list[Agreement]:
    """Search, price and play all plans; some minutes."""
    return [compared(case) for case in cases()]


def replays() -> dict[str, object]:
    """All rows, and how many of them agree."""
    rows = agreements()
    names = ["plans", "overlap", "number", "near", "median", "largest"]
    return {
        "rows": [
            asdict(row) | {"difference": row.difference, "is_near": row.is_near} for row in rows
        ],
        "summary": [dict(zip(names, cells, strict=True)) for cells in summary(rows)],
    }


def as_text(fields: Mapping[str, Any]) -> str:
    """What people read: how many agree, and those that do not."""
    parts = [table(list(fields["summary"][0]), [list(row.values()) for row in fields["summary"]])]
    far = [
        [row["name"], row["overlap"], row["plan"], f"{row['difference']:+.2%}"]
        for row in fields["rows"]
        if not row["is_near"]
    ]
    if far:
        parts.append(table(["further off", "overlap", "plan", "difference"], far))
    return "\n\n".join(parts)
