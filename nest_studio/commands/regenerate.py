"""``nest-studio regenerate``: write again what the project keeps of its measurements.

For people who change the costs, in a checkout with the whole data beside it (``../shared/data``);
``nest-studio validate`` prints the same figures and writes nothing.

* ``regenerate collectives``: its part of ``docs/validation.md``; ``--fit`` fits the presets of
  ``presets/collectives`` again first, from the training half.
* ``regenerate training``: its part of ``docs/validation.md``, the picture and the error bands
  (``presets/validation/regions.toml``); ``--fit`` fits the families' parameters
  (``presets/estimators``) again first, from the rows that may be fitted.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nest_core.errors import InputError
from nest_studio.commands import validate_training
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.commands.validate import FILES, measured_collectives

if TYPE_CHECKING:
    from nest_core.hardware.collectives.library import Library
    from nest_core.hardware.collectives.measurements import Measurement
    from nest_core.measured.training.runs import Row, Unread

__all__ = ["coverage", "regenerate"]

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENT = CHECKOUT / "docs" / "validation.md"
BANDS = CHECKOUT / "presets" / "validation" / "regions.toml"


def regenerate(
    target: Annotated[str, typer.Argument(help="collectives or training.")],
    as_json: JsonFlag = False,
    fit: Annotated[bool, typer.Option("--fit", help="Fit the presets again first.")] = False,
    date: Annotated[str, typer.Option(help="Date of the fit, for its provenance.")] = "",
) -> None:
    """Write docs/validation.md, error bands and fitted presets again (in a checkout)."""
    parts: dict[str, Callable[[str | None], list[Path]]] = {
        "collectives": _collectives,
        "training": _training,
    }
    if target not in parts:
        rule = f"must be {' or '.join(parts)}"
        raise InputError("regenerate", rule, target, "name one of them")
    if not DOCUMENT.parent.is_dir():
        raise InputError("regenerate", "needs a checkout", "an installed package", "clone one")
    day = (date or datetime.datetime.now(tz=datetime.UTC).date().isoformat()) if fit else None
    files = [str(path) for path in parts[target](day)]
    emit({"files": files}, as_json, lambda fields: "\n".join(fields["files"]))


def _incomplete(target: str) -> InputError:
    return InputError(target, "needs the whole data", "the subset", "fetch the data")


def _known() -> str:
    return DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else "# Validation\n"


def _collectives(day: str | None) -> list[Path]:
    from nest_core.hardware.collectives.library import load_library
    from nest_core.measured.collectives.report import report
    from nest_core.measured.collectives.training import training_half
    from nest_core.measured.collectives.validation import compare, held_out, left_out_groups
    from nest_core.measured.training.document import joined

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
    from nest_core.hardware.collectives.library import KIND, curve_toml
    from nest_core.measured.collectives.report import notes
    from nest_core.measured.collectives.training import fit_library, training_half
    from nest_core.measured.collectives.validation import compare, held_out
    from nest_core.presets import load_toml, preset_path

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


def _training(day: str | None) -> list[Path]:
    from nest_core.measured.training.bands import bands_toml, measured_bands
    from nest_core.measured.training.document import PICTURE, joined, picture, training_part
    from nest_core.measured.training.predict import predict_rows
    from nest_core.presets import look_again

    folder, subset = validate_training.SHARED, validate_training.SUBSET
    if not (folder / validate_training.FILES[0]).is_file():
        raise _incomplete("training")
    rows, unread = validate_training.read_training(folder)
    files = [] if day is None else _fit_families(rows, day)
    predictions, without = predict_rows(rows)
    unread += without
    in_subset, _ = predict_rows(validate_training.read_training(subset)[0])
    source = f"{', '.join(validate_training.FILES)} (the whole data)"
    covered = coverage(unread, folder)
    part = training_part(predictions, unread, in_subset, covered, source)
    image = DOCUMENT.parent / PICTURE
    texts = {
        DOCUMENT: joined(_known(), training=part),
        image: picture(predictions),
        BANDS: bands_toml(measured_bands(predictions)),
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    look_again()
    return [*files, *texts]


def coverage(unread: Sequence[Unread], folder: Path) -> tuple[int, int]:
    """Rows of quality A that were predicted, and all of them."""
    import csv

    with (folder / validate_training.FILES[0]).open(encoding="utf-8", newline="") as file:
        sure = {row["id"] for row in csv.DictReader(file) if row["quality"] == "A"}
    return len(sure - {row.id for row in unread}), len(sure)


def _fit_families(rows: Sequence[Row], day: str) -> list[Path]:
    """Fit the families of accelerators, and write their presets."""
    from nest_core.files import read_text
    from nest_core.hardware import UNCALIBRATED
    from nest_core.measured.training.fit import (
        FREE,
        calibration_groups,
        family_toml,
        fit_family,
        pooled,
        read_layers,
    )
    from nest_core.presets import look_again, preset_path

    layers = read_layers(read_text(validate_training.SHARED / "layer_times.csv"))
    fitted, files = [], []
    for name in FREE:
        found = fit_family(name, calibration_groups(name, rows, layers))
        fitted.append(found.family)
        texts = {name: family_toml(found, day), UNCALIBRATED: pooled(fitted, day)}
        for family, text in texts.items():
            path = preset_path("estimators", f"{family}.toml")
            path.write_text(text, encoding="utf-8")
            files.append(path)
        look_again()
    return files
