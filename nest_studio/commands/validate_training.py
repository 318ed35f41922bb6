"""The training side of ``nest-studio validate``.

* ``validate training``: every measured run beside the price of its plan. The data lie beside a
  checkout (``../shared/data``); without them the small subset of the tests is used. With the whole
  data and a checkout, its part of ``docs/validation.md``, the picture and the error bands
  (``presets/validation/regions.toml``) are written again; ``--fit`` fits the families'
  parameters (``presets/estimators``) again first, from the rows that may be fitted.
* ``validate FILE.csv`` for a table with the columns of ``train_measurements.csv`` or
  ``megatron_a100_*.csv``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nest_core.errors import InputError
from nest_studio.commands.output import table

if TYPE_CHECKING:
    from nest_core.fidelity.groups import Score
    from nest_core.fidelity.predict import Prediction
    from nest_core.fidelity.regions import RegionScore
    from nest_core.fidelity.runs import Row, Unread

__all__ = ["as_text", "training", "training_table"]

CHECKOUT = Path(__file__).resolve().parents[2]
SHARED = CHECKOUT.parent / "shared" / "data"
SUBSET = CHECKOUT / "tests" / "data" / "fidelity"
FILES = ("train_measurements.csv", "megatron_a100_multinode.csv", "megatron_a100_singlenode.csv")
DOCUMENT = CHECKOUT / "docs" / "validation.md"
BANDS = CHECKOUT / "presets" / "validation" / "regions.toml"


def training(fit: bool = False, date: str = "") -> dict[str, object]:
    """Everything that was measured; writes the documents where the whole data are at hand.

    Parameters
    ----------
    fit : bool
        Whether to fit the families' parameters first; needs the whole data.
    date : str
        Of the fit, for its provenance; empty: today.
    """
    from nest_core.fidelity.predict import predict_rows

    folder = next((path for path in (SHARED, SUBSET) if (path / FILES[0]).is_file()), None)
    if folder is None:
        remedy = "run this in a checkout, or validate a file of your own"
        raise InputError("training", "must have measurements", "none installed", remedy)
    whole = folder == SHARED
    rows, unread = _read(folder)
    if fit:
        if not whole:
            raise InputError("--fit", "must have the whole data", "the subset", "fetch the data")
        _fit(rows, date)
    predictions, without = predict_rows(rows)
    unread += without
    source = f"{', '.join(FILES)} ({'the whole data' if whole else 'the subset of the tests'})"
    if whole and DOCUMENT.parent.is_dir():
        _write(predictions, unread, _coverage(rows, unread, folder), source)
    return _fields(predictions, unread) | {"data": source}


def _fit(rows: Sequence[Row], date: str) -> None:
    """Fit the families and write their presets."""
    import datetime

    from nest_core.fidelity.fit import (
        FREE,
        calibration_groups,
        family_toml,
        fit_family,
        pooled,
        read_layers,
    )
    from nest_core.fidelity.machines import accelerator_of
    from nest_core.hardware import UNCALIBRATED, load_family
    from nest_core.presets import preset_path, read_text

    day = date or datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    layers = read_layers(read_text(SHARED / "layer_times.csv"))
    fitted = []
    for name in FREE:
        found = fit_family(name, calibration_groups(name, rows, layers))
        fitted.append(found.family)
        texts = {name: family_toml(found, day), UNCALIBRATED: pooled(fitted, day)}
        for family, text in texts.items():
            preset_path("estimators", f"{family}.toml").write_text(text, encoding="utf-8")
        load_family.cache_clear()
        accelerator_of.cache_clear()


def training_table(text: str, name: str) -> dict[str, object]:
    """A table that a person gives."""
    from nest_core.fidelity import read_runs
    from nest_core.fidelity.predict import predict_rows

    rows, unread = read_runs(text, name)
    predictions, without = predict_rows(rows)
    return _fields(predictions, [*unread, *without])


def _read(folder: Path) -> tuple[list[Row], list[Unread]]:
    from nest_core.fidelity import read_runs
    from nest_core.presets import read_text

    rows: list[Row] = []
    unread: list[Unread] = []
    for name in FILES:
        prefix = name.removeprefix("megatron_a100_").removesuffix(".csv") + " "
        more, without = read_runs(read_text(folder / name), name, prefix)
        rows += more
        unread += without
    return rows, unread


def _coverage(rows: Sequence[Row], unread: Sequence[Unread], folder: Path) -> tuple[int, int]:
    """Rows of quality A that were predicted, and all of them."""
    import csv

    with (folder / FILES[0]).open(encoding="utf-8", newline="") as file:
        sure = {row["id"] for row in csv.DictReader(file) if row["quality"] == "A"}
    return len(sure - {row.id for row in unread}), len(sure)


def _write(
    predictions: Sequence[Prediction],
    unread: Sequence[Unread],
    coverage: tuple[int, int],
    source: str,
) -> None:
    from nest_core.fidelity.bands import bands_toml, load_bands, measured_bands
    from nest_core.fidelity.document import PICTURE, joined, picture, training_part
    from nest_core.fidelity.predict import predict_rows

    subset, _ = predict_rows(_read(SUBSET)[0]) if SUBSET.is_dir() else ([], [])
    part = training_part(predictions, unread, subset, coverage, source)
    known = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else "# Validation\n"
    DOCUMENT.write_text(joined(known, training=part), encoding="utf-8")
    image = DOCUMENT.parent / PICTURE
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_text(picture(predictions), encoding="utf-8")
    BANDS.parent.mkdir(parents=True, exist_ok=True)
    BANDS.write_text(bands_toml(measured_bands(predictions)), encoding="utf-8")
    load_bands.cache_clear()


def _fields(predictions: Sequence[Prediction], unread: Sequence[Unread]) -> dict[str, object]:
    from nest_core.fidelity.groups import group_scores
    from nest_core.fidelity.regions import fitted, region_scores

    return {
        "rows": [
            {
                "id": item.run.id,
                "measured_s": item.outcome.seconds,
                "predicted_s": item.seconds,
                "error": item.error,
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
        f"{item[key]:+.1%}" if key == "bias" else f"{item[key]:.1%}" for key in ("mape", "bias")
    )
    return [_short(item["name"]), item["n"], *errors, rank, f"{item['regret']:.1%}"]


def _short(name: str, most: int = 110) -> str:
    return name if len(name) <= most else name[: most - 3] + "..."
