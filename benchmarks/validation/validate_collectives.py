"""Measured collectives: the shipped curves beside measured rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.validation.collectives.curve_file import curve_toml
from benchmarks.validation.collectives.errors import SEED, Compared, Group, summarise
from benchmarks.validation.collectives.tables import Skipped, half, read_table
from benchmarks.validation.collectives.training import UNSEEN, training_half
from benchmarks.validation.collectives.validation import (
    compare,
    held_out,
    held_out_groups,
    left_out_groups,
)
from nest_core.calibration.collectives.fit import fit_curve, fit_own, fit_problem
from nest_core.calibration.collectives.nccl_log import LogFacts, read_log
from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.documents.text import table
from nest_core.hardware.collectives.curves import Curve
from nest_core.hardware.collectives.library import load_library
from nest_core.hardware.collectives.measurements import OPS, Measurement

__all__ = [
    "FILES",
    "as_text",
    "collective_log",
    "collective_table",
    "collectives",
    "measured_collectives",
]

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = (CHECKOUT.parent / "shared" / "data", CHECKOUT / "tests" / "data" / "calibration")
FILES = ("nccl_measured.csv", "collectives_measured.csv")
ENOUGH_ROWS = 8
"""With fewer, half of them say nothing about the other half."""


def measured_collectives() -> tuple[list[Measurement], list[Skipped], bool]:
    """The measured collectives at hand, rows that were skipped, and whether these are all data.

    Raises
    ------
    InputError
        If neither the whole data nor the subset of the tests is there.
    """
    folder = next((path for path in DATA if (path / FILES[0]).is_file()), None)
    if folder is None:
        remedy = "run this in a checkout, or validate a file of your own"
        raise InputError("collectives", "must have measurements", "none installed", remedy)
    rows: list[Measurement] = []
    skipped: list[Skipped] = []
    for name in FILES:
        more, without = read_table(read_text(folder / name), name)
        rows += more
        skipped += without
    return rows, skipped, folder == DATA[0]


def collectives() -> dict[str, object]:
    """The shipped curves on the measured rows that no fit saw."""
    rows, skipped, whole = measured_collectives()
    library = load_library()
    compared, without = compare(held_out(rows), library)
    groups = [group for named in held_out_groups(compared).values() for group in named]
    fields = _fields(compared, groups, skipped + without)
    fields["left_out"] = [_group(group) for group in left_out_groups(rows, library)]
    source = f"{' and '.join(FILES)} ({'the whole data' if whole else 'the subset of the tests'})"
    return fields | {"data": source, "fitted_rows": len(training_half(rows))}


def collective_table(text: str, name: str) -> dict[str, object]:
    """The shipped curves on a table that a person gives."""
    rows, skipped = read_table(text, name)
    compared, without = compare(rows, load_library())
    large = [item for item in compared if item.large]
    groups = [summarise("all", compared)] if compared else []
    groups += [summarise("64 KiB and more", large)] if large else []
    for curve in sorted({item.curve for item in large}):
        groups.append(summarise(curve, [item for item in large if item.curve == curve]))
    for op in OPS:
        own = [item for item in large if item.row.op == op]
        groups += [summarise(op, own)] if own else []
    return _fields(compared, groups, [*skipped, *without])


def collective_log(text: str, name: str, facts: LogFacts, link_rate: float) -> dict[str, object]:
    """A log of nccl-tests, fitted on top of the shipped curve."""
    rows, library, rate = read_log(text, name, facts), load_library(), link_rate or None
    own = fit_own(rows, library, rate)
    samples, prior, seconds = fit_problem(rows, library, rate)

    def against(curve: Curve, chosen: Sequence[Measurement]) -> list[Compared]:
        return [Compared(row, curve.name, seconds(curve, row)) for row in chosen]

    compared = against(own.curve, rows)
    before, after = summarise("shipped", against(prior, rows)), summarise("fitted", compared)
    is_tested = [half(row, SEED) == 1 for row in rows]
    tested = [row for row, held_back in zip(rows, is_tested, strict=True) if held_back]
    held_out_errors = None
    if len(rows) >= ENOUGH_ROWS and 0 < len(tested) < len(rows):
        fitted = [s for s, held_back in zip(samples, is_tested, strict=True) if not held_back]
        held_out_errors = summarise("held out", against(fit_curve(fitted, prior), tested))
    kept = {
        "status": "fitted to a log of nccl-tests",
        "source": name,
        "prior": own.prior,
        "rows_fitted": len(rows),
        "median_error": after.median,
    }
    fields = _fields(compared, [before, after], [])
    fields["fit"] = {
        "prior": own.prior,
        "regimes": [
            {
                "name": regime.name,
                "algorithm": regime.algorithm,
                "base_s": regime.base_s,
                "step_s": regime.step_s,
                "efficiency": regime.efficiency,
            }
            for regime in own.curve.regimes
        ],
        "held_out": _group(held_out_errors) if held_out_errors else None,
        "toml": curve_toml(own.curve, kept, f"those of {own.prior}"),
    }
    return fields


def _fields(
    compared: list[Compared], groups: list[Group], skipped: list[Skipped]
) -> dict[str, object]:
    return {
        "rows": [
            {
                "id": item.row.id,
                "measured_s": item.row.seconds,
                "predicted_s": item.predicted_s,
                "error": item.error,
                "op": item.row.op,
                "bytes": item.row.bytes,
                "curve": item.curve,
                "fitted": half(item.row, SEED) == 0 and item.row.accelerator not in UNSEEN,
            }
            for item in compared
        ],
        "groups": [_group(group) for group in groups],
        "skipped": [{"id": row.id, "reason": row.reason} for row in skipped],
    }


def _group(group: Group) -> dict[str, object]:
    return {
        "name": group.name,
        "n": group.n,
        "median": group.median,
        "p90": group.p90,
        "mape": group.mape,
        "bias": group.bias,
        "spearman": group.spearman,
        "regret": None,
    }


def as_text(fields: Mapping[str, Any]) -> str:
    """What people read: groups of rows, what was skipped, and a fit's preset."""
    groups = [*fields["groups"], *fields.get("left_out", ())]
    rows = [
        [item["name"], item["n"], *(f"{item[key]:.1%}" for key in ("median", "p90", "bias"))]
        for item in groups
    ]
    text = table(["group", "rows", "median", "90 %", "bias"], rows)
    if fields["skipped"]:
        reasons = [[item["id"], item["reason"]] for item in fields["skipped"]]
        text += "\n\n" + table(["skipped", "why"], reasons)
    if "fit" in fields:
        text += f"\n\n{fields['fit']['toml']}"
    return f"Data: {fields['data']}\n\n{text}" if "data" in fields else text
