"""``python -m benchmarks.validation regenerate``: write what the project keeps of measurements.

For people who change the costs, in a checkout with the whole data beside it (``../shared/data``);
``python -m benchmarks.validation`` prints the same figures and writes nothing.

* ``regenerate collectives``: its part of ``docs/validation.md``; ``--fit`` fits the presets of
  ``presets/collectives`` again first, from the training half.
* ``regenerate training``: its part of ``docs/validation.md``, the picture, and in
  ``presets/validation`` the error bands (``regions.toml``), how far memory scatters
  (``memory.toml``) and which shapes of plans were measured (``shapes.toml``); ``--fit`` fits the
  families' parameters (``presets/estimators``) again first, from the rows that may be fitted, and
  what is known of families and stacks (``presets/validation/posterior.toml``), from all.
* ``regenerate fabric``: its part of ``docs/validation.md``; nothing is fitted to it.
* ``regenerate settings``: its part of ``docs/validation.md``, and what settings were worth where
  they were measured (``presets/validation/settings.toml``).
* ``regenerate optima``: its part of ``docs/validation.md``, some 800 searches (minutes).
* ``regenerate mixtures``: its part of ``docs/validation.md``, some 50 searches (minutes).
* ``regenerate replay``: its part of ``docs/validation.md``, some 140 searches (minutes).
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.validation import (
    validate_fabric,
    validate_mixtures,
    validate_replay,
    validate_training,
)
from benchmarks.validation.collectives.curve_file import curve_toml
from benchmarks.validation.collectives.report import notes, report
from benchmarks.validation.collectives.training import fit_library, training_half
from benchmarks.validation.collectives.validation import compare, held_out, left_out_groups
from benchmarks.validation.fabric.document import fabric_part
from benchmarks.validation.replay.document import replay_part
from benchmarks.validation.training.bands import bands_toml, measured_bands
from benchmarks.validation.training.document import PICTURE, joined, picture, training_part
from benchmarks.validation.training.fit import (
    FREE,
    calibration_groups,
    family_toml,
    fit_family,
    pooled,
    read_layers,
)
from benchmarks.validation.training.memory_spread import measured_spreads, spreads_toml
from benchmarks.validation.training.optima import found_or_why, groups
from benchmarks.validation.training.optima_document import optima_part
from benchmarks.validation.training.pairs import predict_pairs
from benchmarks.validation.training.posterior import Evidence, evidence, posterior_toml, refit
from benchmarks.validation.training.settings import measured_settings, settings_part, settings_toml
from benchmarks.validation.training.shapes import measured_shapes, shapes_toml
from benchmarks.validation.validate_collectives import FILES, measured_collectives
from nest_core.calibration.training.predict import predict_rows
from nest_core.calibration.training.runs import MeasuredRow, Unread
from nest_core.documents.errors import InputError
from nest_core.documents.files import read_text
from nest_core.documents.presets import load_toml, look_again, preset_path
from nest_core.hardware import UNCALIBRATED
from nest_core.hardware.collectives.library import KIND, Library, load_library
from nest_core.hardware.collectives.measurements import Measurement
from nest_core.hardware.posterior import Posterior, load_posterior
from nest_studio.commands.output import JsonFlag, emit

__all__ = [
    "BANDS",
    "DOCUMENT",
    "SETTINGS",
    "collectives",
    "coverage",
    "fabric",
    "mixtures",
    "optima",
    "regenerate",
    "replay",
    "settings",
    "training",
]

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENT = CHECKOUT / "docs" / "validation.md"
BANDS = CHECKOUT / "presets" / "validation" / "regions.toml"
SETTINGS = CHECKOUT / "presets" / "validation" / "settings.toml"


def _incomplete(target: str) -> InputError:
    return InputError(target, "needs the whole data", "the subset", "fetch the data")


def _known() -> str:
    return DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else "# Validation\n"


def collectives(day: str | None) -> list[Path]:
    """Write its part of the document; fit the presets first if there is a day to date them."""
    rows, skipped, whole = measured_collectives()
    if not whole:
        raise _incomplete("collectives")
    library, files = load_library(), list[Path]()
    if day is not None:
        library, files = _fit_curves(rows, library, day)
    compared, without = compare(held_out(rows), library)
    source = f"{' and '.join(FILES)} (the whole data)"
    fitted = len(training_half(rows))
    left_out = left_out_groups(rows, library)
    text = report(compared, left_out, skipped + without, fitted, source)
    DOCUMENT.write_text(joined(_known(), collectives=text), encoding="utf-8")
    return [*files, DOCUMENT]


def _fit_curves(rows: list[Measurement], library: Library, day: str) -> tuple[Library, list[Path]]:
    """Fit the curves of collectives, and write the presets of the checkout."""
    library = fit_library(training_half(rows), library)
    compared, _ = compare(held_out(rows), library)
    source = f"{' and '.join(FILES)}, training half"
    files = []
    for curve in library.curves:
        provenance = notes(curve.name, rows, compared, library, source, day)
        if provenance is not None:
            path = preset_path(KIND, f"{curve.name}.toml")
            facts = str(load_toml(path).get("facts", ""))
            path.write_text(curve_toml(curve, provenance, facts), encoding="utf-8")
            files.append(path)
    return library, files


def training(day: str | None) -> list[Path]:
    """Write its part of the document, picture, bands and shapes; fit first if there is a day."""
    folder, subset = validate_training.SHARED, validate_training.SUBSET
    if not (folder / validate_training.FILES[0]).is_file():
        raise _incomplete("training")
    rows, unread = validate_training.read_training(folder)
    files = [] if day is None else [*_fit_families(rows, day), _fit_posterior(rows, day)]
    predictions, without = predict_rows(rows)
    unread += without
    in_subset, _ = predict_rows(validate_training.read_training(subset)[0])
    source = f"{', '.join(validate_training.FILES)} (the whole data)"
    covered = coverage(unread, folder)
    found = _evidence(rows, load_posterior())
    part = training_part(predictions, unread, in_subset, covered, source, found)
    image = DOCUMENT.parent / PICTURE
    texts = {
        DOCUMENT: joined(_known(), training=part),
        image: picture(predictions),
        BANDS: bands_toml(measured_bands(predictions)),
        BANDS.with_name("memory.toml"): spreads_toml(measured_spreads(predictions)),
        BANDS.with_name("shapes.toml"): shapes_toml(measured_shapes(predictions)),
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    look_again()
    return [*files, *texts]


def _fit_posterior(rows: Sequence[MeasuredRow], day: str) -> Path:
    """Fit what is known of families and stacks to all rows, and write it."""
    known, path = load_posterior(), preset_path("validation", "posterior.toml")
    for _ in range(ROUNDS):
        known = refit(_evidence(rows, known))
    source = f"{', '.join(validate_training.FILES)}, fitted on {day}"
    path.write_text(posterior_toml(known, source), encoding="utf-8")
    look_again()
    return path


def _evidence(rows: Sequence[MeasuredRow], known: Posterior) -> list[Evidence]:
    """Runs with their slopes at the posterior's centre, those that can be predicted."""
    with ProcessPoolExecutor() as workers:
        found = workers.map(partial(evidence, posterior=known), rows, chunksize=16)
        return [item for item in found if item is not None]


ROUNDS = 2
"""Of linearising at the centre and solving; a third moves no effect by a hundredth."""


def settings(day: str | None) -> list[Path]:
    """Write its part of the document, and what settings were worth; there is nothing to fit.

    Raises
    ------
    InputError
        If there is no data.
    """
    del day
    file = validate_training.SHARED / "ab_pairs.csv"
    if not file.is_file():
        raise _incomplete("settings")
    text = read_text(file)
    found = measured_settings(text, file.name)
    part = settings_part(found, *predict_pairs(text, file.name), f"{file.name} (the whole data)")
    DOCUMENT.write_text(joined(_known(), settings=part), encoding="utf-8")
    SETTINGS.write_text(settings_toml(found), encoding="utf-8")
    look_again()
    return [DOCUMENT, SETTINGS]


def optima(day: str | None) -> list[Path]:
    """Write its part of the document; there is nothing to fit.

    Raises
    ------
    InputError
        If there is no data.
    """
    del day
    folder = validate_training.SHARED
    if not (folder / validate_training.FILES[0]).is_file():
        raise _incomplete("optima")
    predictions, _ = predict_rows(validate_training.read_training(folder)[0])
    with ProcessPoolExecutor() as workers:
        found = list(workers.map(found_or_why, groups(predictions)))
    source = f"{', '.join(validate_training.FILES)} (the whole data)"
    part = optima_part(found, predictions, source)
    DOCUMENT.write_text(joined(_known(), optima=part), encoding="utf-8")
    return [DOCUMENT]


def mixtures(day: str | None) -> list[Path]:
    """Write its part of the document; there is nothing to fit.

    Raises
    ------
    InputError
        If there is no data.
    """
    del day
    if not (validate_training.SHARED / validate_training.FILES[0]).is_file():
        raise _incomplete("mixtures")
    part = validate_mixtures.mixtures_part(validate_mixtures.mixtures())
    DOCUMENT.write_text(joined(_known(), mixtures=part), encoding="utf-8")
    return [DOCUMENT]


def replay(day: str | None) -> list[Path]:
    """Write its part of the document; there is nothing to fit."""
    del day
    part = replay_part(validate_replay.agreements())
    DOCUMENT.write_text(joined(_known(), replay=part), encoding="utf-8")
    return [DOCUMENT]


POOLED = (UNCALIBRATED, "blackwell", "cdna", "gaudi", "tpu", "volta")
"""Families without measurements of single kernels: they start from the means of the others."""


def fabric(day: str | None) -> list[Path]:
    """Write its part of the document; nothing is fitted."""
    del day
    if not (validate_training.SHARED / validate_fabric.FILE).is_file():
        raise _incomplete("fabric")
    part = fabric_part(*validate_fabric.published_ratios())
    DOCUMENT.write_text(joined(_known(), fabric=part), encoding="utf-8")
    return [DOCUMENT]


def coverage(unread: Sequence[Unread], folder: Path) -> tuple[int, int]:
    """Rows of quality A that were predicted, and all of them."""
    with (folder / validate_training.FILES[0]).open(encoding="utf-8", newline="") as file:
        sure = {row["id"] for row in csv.DictReader(file) if row["quality"] == "A"}
    return len(sure - {row.id for row in unread}), len(sure)


def _fit_families(rows: Sequence[MeasuredRow], day: str) -> list[Path]:
    """Fit the families of accelerators, and write their presets."""
    layers = read_layers(read_text(validate_training.SHARED / "layer_times.csv"))
    fitted, files = [], []
    for name in FREE:
        found = fit_family(name, calibration_groups(name, rows, layers))
        fitted.append(found.family)
        texts = {name: family_toml(found, day)} | dict.fromkeys(POOLED, pooled(fitted, day))
        for family, text in texts.items():
            path = preset_path("estimators", f"{family}.toml")
            path.write_text(text, encoding="utf-8")
            files.append(path)
        look_again()
    return files


PARTS = {
    "collectives": collectives,
    "training": training,
    "fabric": fabric,
    "settings": settings,
    "optima": optima,
    "mixtures": mixtures,
    "replay": replay,
}


def regenerate(
    target: Annotated[str, typer.Argument(help=f"One of {', '.join(PARTS)}.")],
    as_json: JsonFlag = False,
    fit: Annotated[bool, typer.Option("--fit", help="Fit the presets again first.")] = False,
    date: Annotated[str, typer.Option(help="Date of the fit, for its provenance.")] = "",
) -> None:
    """Write docs/validation.md, error bands and fitted presets again."""
    if target not in PARTS:
        rule = f"must be one of {', '.join(PARTS)}"
        raise InputError("regenerate", rule, target, "name one of them")
    if fit and target not in ("collectives", "training"):
        raise InputError("--fit", "must stand after collectives or training", target, "drop it")
    day = (date or datetime.datetime.now(tz=datetime.UTC).date().isoformat()) if fit else None
    files = [str(path) for path in PARTS[target](day)]
    emit({"files": files}, as_json, lambda fields: "\n".join(fields["files"]))
