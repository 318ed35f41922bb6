"""``nest-studio validate``: predictions beside measurements.

* ``validate collectives``: the shipped curves on the measured rows that no fit saw. The data lie
  beside a checkout (``../shared/data``); without them the small subset of the tests is used.
* ``validate FILE.csv``: the shipped curves on a table with the columns of ``nccl_measured.csv`` or
  ``collectives_measured.csv``. ``fitted`` says whether a row's point was in the training half.
* ``validate training`` and ``validate FILE.csv`` of training runs: `validate_training`.
* ``validate LOG.txt``: the output of nccl-tests. Its rows are fitted on top of the shipped curve;
  ``fit`` holds regimes, errors before and after, and the text of a preset to keep.

Nothing is written: ``nest-studio regenerate`` writes what the project keeps of measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.errors import InputError
from nest_core.text import table
from nest_studio.commands import validate_training
from nest_studio.commands.output import JsonFlag, emit

if TYPE_CHECKING:
    from nest_core.hardware.collectives.measurements import Measurement, Skipped
    from nest_core.measured.collectives.nccl_log import LogFacts
    from nest_core.measured.collectives.validation import Compared, Group

__all__ = ["FILES", "measured_collectives", "validate"]

CHECKOUT = Path(__file__).resolve().parents[2]
DATA = (CHECKOUT.parent / "shared" / "data", CHECKOUT / "tests" / "data" / "calibration")
FILES = ("nccl_measured.csv", "collectives_measured.csv")
GIGA = 1e9


def validate(
    target: Annotated[
        str, typer.Argument(help="collectives, training, a CSV file or an nccl-tests log.")
    ],
    as_json: JsonFlag = False,
    op: Annotated[str, typer.Option(help="A log's collective.")] = "",
    accelerator: Annotated[str, typer.Option(help="A log's accelerator.")] = "",
    devices: Annotated[int, typer.Option(help="A log's devices.", min=0)] = 0,
    nodes: Annotated[int, typer.Option(help="A log's nodes.", min=0)] = 0,
    link_rate: Annotated[float, typer.Option(help="GB/s of a device's links, one way.")] = 0.0,
    network: Annotated[str, typer.Option(help="Kind of network between a log's nodes.")] = "",
    network_rate: Annotated[float, typer.Option(help="GB/s of a device's network port.")] = 0.0,
) -> None:
    """Compare predicted with measured times, of collectives and of training runs."""
    if target == "collectives":
        emit(_collectives(), as_json, _as_text)
        return
    if target == "training":
        emit(validate_training.training(), as_json, validate_training.as_text)
        return
    from nest_core.files import read_text
    from nest_core.measured.collectives.nccl_log import LogFacts, is_log

    path = Path(target)
    text = read_text(path)
    if is_log(text):
        from nest_core.hardware.collectives.measurements import op_name

        facts = LogFacts(
            (op_name(op) or op) or None,
            accelerator,
            devices or None,
            nodes or None,
            network,
            _rate(network_rate, "network-rate"),
        )
        emit(_log(text, path.name, facts, _rate(link_rate, "link-rate")), as_json, _as_text)
    elif _of_training(text):
        fields = validate_training.training_table(text, path.name)
        emit(fields, as_json, validate_training.as_text)
    else:
        emit(_table(text, path.name), as_json, _as_text)


def _of_training(text: str) -> bool:
    """Whether a table's first line names the columns of training runs."""
    import csv

    from nest_core.measured.training import is_training

    first, _, _ = text.lstrip("\ufeff").partition("\n")
    try:
        columns = next(csv.reader([first]), [])
    except csv.Error:  # the reader of tables says what is wrong
        return False
    return is_training(columns)


def _rate(gigabytes: float, option: str) -> float:
    if not 0 <= gigabytes <= 1e6:
        raise InputError(f"--{option}", "must be positive", gigabytes, "give GB/s per device")
    return gigabytes * GIGA


def measured_collectives() -> tuple[list[Measurement], list[Skipped], bool]:
    """The measured collectives at hand, rows that were skipped, and whether these are all data.

    Raises
    ------
    InputError
        If neither the whole data nor the subset of the tests is there.
    """
    from nest_core.files import read_text
    from nest_core.hardware.collectives.measurements import read_table

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


def _collectives() -> dict[str, object]:
    from nest_core.hardware.collectives.library import load_library
    from nest_core.measured.collectives.training import training_half
    from nest_core.measured.collectives.validation import (
        compare,
        held_out,
        held_out_groups,
        left_out_groups,
    )

    rows, skipped, whole = measured_collectives()
    library = load_library()
    compared, without = compare(held_out(rows), library)
    groups = [group for named in held_out_groups(compared).values() for group in named]
    fields = _fields(compared, groups, skipped + without)
    fields["left_out"] = [_group(group) for group in left_out_groups(rows, library)]
    source = f"{' and '.join(FILES)} ({'the whole data' if whole else 'the subset of the tests'})"
    return fields | {"data": source, "fitted_rows": len(training_half(rows))}


def _table(text: str, name: str) -> dict[str, object]:
    from nest_core.hardware.collectives.library import load_library
    from nest_core.hardware.collectives.measurements import OPS, read_table
    from nest_core.measured.collectives.validation import compare, summarise

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


def _log(text: str, name: str, facts: LogFacts, link_rate: float) -> dict[str, object]:
    from nest_core.hardware.collectives.library import curve_toml, load_library
    from nest_core.measured.collectives.nccl_log import read_log
    from nest_core.measured.collectives.own import fit_own

    rows = read_log(text, name, facts)
    own = fit_own(rows, load_library(), link_rate or None)
    kept = {
        "status": "fitted to a log of nccl-tests",
        "source": name,
        "prior": own.prior,
        "rows_fitted": len(rows),
        "median_error": own.after.median,
    }
    held_out = _group(own.held_out) if own.held_out else None
    fields = _fields(list(own.compared), [own.before, own.after], [])
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
        "held_out": held_out,
        "toml": curve_toml(own.curve, kept, f"those of {own.prior}"),
    }
    return fields


def _fields(
    compared: list[Compared], groups: list[Group], skipped: list[Skipped]
) -> dict[str, object]:
    from nest_core.hardware.collectives.measurements import half
    from nest_core.measured.collectives.training import SEED, UNSEEN

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


def _as_text(fields: Mapping[str, Any]) -> str:
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
