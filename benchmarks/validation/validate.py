"""``python -m benchmarks.validation``: predictions beside measurements.

* ``validate collectives``: the shipped curves on the measured rows that no fit saw. The data lie
  beside a checkout (``../shared/data``); without them the small subset of the tests is used.
* ``validate FILE.csv``: the shipped curves on a table with the columns of ``nccl_measured.csv`` or
  ``collectives_measured.csv``. ``fitted`` says whether a row's point was in the training half.
* ``validate training`` and ``validate FILE.csv`` of training runs: `validate_training`.
* ``validate pairs FILE.csv`` of experiments in which a setting was changed: `validate_pairs`.
* ``validate mixtures``: expert degrees chosen beside those that were run: `validate_mixtures`.
* ``validate fabric [FILE.csv]`` of experiments on two networks: `validate_fabric`.
* ``validate replay``: plans in closed form beside their replays: `validate_replay`.
* ``validate LOG.txt``: the output of nccl-tests. Its rows are fitted on top of the shipped curve;
  ``fit`` holds regimes, errors before and after, and the text of a preset to keep.

Nothing is written: ``python -m benchmarks.validation regenerate`` writes what the project keeps of
measurements.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from nest_core.documents.errors import InputError
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["validate"]

GIGA = 1e9


def validate(
    target: Annotated[
        str,
        typer.Argument(
            help="collectives, training, mixtures, pairs, fabric, replay, a CSV file or a log."
        ),
    ],
    file: Annotated[str, typer.Argument(help="After pairs or fabric: a CSV file.")] = "",
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
    from benchmarks.validation import (
        validate_collectives,
        validate_fabric,
        validate_mixtures,
        validate_pairs,
        validate_replay,
        validate_training,
    )
    from nest_core.calibration.collectives.nccl_log import LogFacts, is_log
    from nest_core.calibration.training import is_training
    from nest_core.documents.files import read_text
    from nest_core.hardware.collectives.measurements import op_name

    if bool(file) != (target == "pairs") and target != "fabric":
        raise InputError(
            "FILE",
            "must stand after pairs, may after fabric, and after nothing else",
            file or "missing",
            "write validate pairs FILE.csv",
        )
    if target == "fabric" and not file:
        emit(validate_fabric.fabrics(), as_json, validate_fabric.as_text)
        return
    if target == "collectives":
        emit(validate_collectives.collectives(), as_json, validate_collectives.as_text)
        return
    if target == "mixtures":
        emit(validate_mixtures.mixtures(), as_json, validate_mixtures.as_text)
        return
    if target == "replay":
        emit(validate_replay.replays(), as_json, validate_replay.as_text)
        return
    if target == "training":
        emit(validate_training.training(), as_json, validate_training.as_text)
        return
    path = Path(file or target)
    text = read_text(path)
    if target == "fabric":
        emit(validate_fabric.fabric_table(text, path), as_json, validate_fabric.as_text)
    elif file:
        emit(validate_pairs.pairs_table(text, path.name), as_json, validate_pairs.as_text)
    elif is_log(text):
        facts = LogFacts(
            (op_name(op) or op) or None,
            accelerator,
            devices or None,
            nodes or None,
            network,
            _rate(network_rate, "network-rate"),
        )
        rate = _rate(link_rate, "link-rate")
        fields = validate_collectives.collective_log(text, path.name, facts, rate)
        emit(fields, as_json, validate_collectives.as_text)
    elif is_training(_columns(text)):
        fields = validate_training.training_table(text, path.name)
        emit(fields, as_json, validate_training.as_text)
    else:
        fields = validate_collectives.collective_table(text, path.name)
        emit(fields, as_json, validate_collectives.as_text)


def _columns(text: str) -> list[str]:
    """What a table's first line names; nothing where the reader of tables says what is wrong."""
    first, _, _ = text.lstrip("\ufeff").partition("\n")
    try:
        return next(csv.reader([first]), [])
    except csv.Error:
        return []


def _rate(gigabytes: float, option: str) -> float:
    if not 0 <= gigabytes <= 1e6:
        raise InputError(f"--{option}", "must be positive", gigabytes, "give GB/s per device")
    return gigabytes * GIGA
