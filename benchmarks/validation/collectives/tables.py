"""The reader of the two tables of measured collectives.

Two column sets are read, those of ``nccl_measured.csv`` (one node, from ai-dynamo/aiconfigurator)
and of ``collectives_measured.csv`` (published runs, one or several nodes). ``time_us`` in the files
becomes seconds.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.validation.collectives.network_text import UnknownNetwork, device_rate
from nest_core.documents.errors import InputError
from nest_core.documents.units import MICROSECOND
from nest_core.hardware.collectives.measurements import MAX_ROWS, OPS, Measurement, op_name

__all__ = ["Skipped", "half", "point_key", "read_table"]

MAX_DEVICES = 1_048_576

NCCL_COLUMNS = ("device", "op", "num_gpus", "total_bytes", "time_us")
RUN_COLUMNS = ("id", "accelerator", "collective", "gpus", "nodes", "size_bytes", "time_us")
TRAINING_COLUMNS = {"iter_time_s", "iteration_time_ms", "global_batch", "global_batch_seqs"}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that is not a measurement of this model, and why."""

    id: str
    reason: str


def point_key(measurement: Measurement) -> str:
    """Return what was measured, without the outcome: repeated runs of one point agree in it."""
    words = (
        measurement.accelerator,
        measurement.system,
        measurement.op,
        measurement.devices,
        measurement.nodes,
        int(measurement.bytes),
    )
    return "|".join(map(str, words))


def half(measurement: Measurement, seed: int) -> int:
    """Return 0 (fitted) or 1 (held out), by a hash of the seed and of what was measured.

    The same point falls into the same half in every file, whatever else the file holds, so a
    repeated run cannot be fitted once and tested once.
    """
    digest = hashlib.sha256(f"{seed}|{point_key(measurement)}".encode()).digest()
    return digest[0] & 1


def read_table(text: str, name: str) -> tuple[list[Measurement], list[Skipped]]:
    """Rows of a CSV with the columns of either measured table.

    Parameters
    ----------
    text : str
        The file.
    name : str
        What to call it in errors.

    Raises
    ------
    InputError
        If the columns are of neither table, there are too many rows, or a figure is not one.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="", restval="")
    try:
        columns = [column.strip() for column in reader.fieldnames or ()]
        reader.fieldnames = columns
        convert = _converter(columns, name)
        rows: list[Measurement] = []
        skipped: list[Skipped] = []
        for number, row in enumerate(reader, start=1):
            if number > MAX_ROWS:
                raise InputError(name, f"must have at most {MAX_ROWS:,} rows", "more", "split it")
            found = convert(row, number, name)
            if isinstance(found, Measurement):
                rows.append(found)
            else:
                skipped.append(found)
    except csv.Error as error:
        raise InputError(name, "must be a CSV file", str(error), "save it as CSV") from error
    return rows, skipped


def _converter(
    columns: Sequence[str], name: str
) -> Callable[[dict[str, str], int, str], Measurement | Skipped]:
    if len(set(columns)) != len(columns):
        raise InputError(name, "must name every column once", list(columns), "rename columns")
    if set(NCCL_COLUMNS) <= set(columns):
        return _nccl_row
    if set(RUN_COLUMNS) <= set(columns):
        return _run_row
    if TRAINING_COLUMNS & set(columns):
        remedy = "give a file with the columns of nccl_measured.csv or collectives_measured.csv"
        raise InputError(name, "must hold measured collectives", "a table of training runs", remedy)
    raise InputError(
        name,
        "must have the columns of nccl_measured.csv or collectives_measured.csv",
        ", ".join(columns) or "empty",
        f"name at least {', '.join(NCCL_COLUMNS)}",
    )


def _nccl_row(row: dict[str, str], number: int, name: str) -> Measurement | Skipped:
    version = row.get("nccl_version", "")
    words = (row["device"], version, row["op"], row["num_gpus"], row["total_bytes"])
    identity = "/".join(word.strip() for word in words if word)
    return _checked(
        identity,
        number,
        name,
        row["op"],
        row["device"],
        row["num_gpus"],
        "1",
        row["total_bytes"],
        row["time_us"],
        True,
        "",
        f"NCCL {version}",
    )


def _run_row(row: dict[str, str], number: int, name: str) -> Measurement | Skipped:
    return _checked(
        row["id"],
        number,
        name,
        row["collective"],
        row["accelerator"],
        row["gpus"],
        row["nodes"],
        row["size_bytes"],
        row["time_us"],
        "nvls off" not in row.get("nccl_algo", "").lower(),
        row.get("inter_link", ""),
        row.get("system", ""),
    )


def _checked(
    identity: str,
    number: int,
    name: str,
    op_text: str,
    accelerator: str,
    devices_text: str,
    nodes_text: str,
    bytes_text: str,
    time_text: str,
    in_network: bool,
    network: str,
    system: str,
) -> Measurement | Skipped:
    op = op_name(op_text)
    if op is None:
        return Skipped(identity, f"{op_text} is not one of {', '.join(OPS)}")
    if not bytes_text.strip() or not time_text.strip():
        return Skipped(identity, "states no message size or no time")
    where = f"{name} row {number}"
    devices = _count(devices_text, f"{where} devices")
    nodes = _count(nodes_text, f"{where} nodes")
    size = _positive(bytes_text, f"{where} bytes")
    seconds = _positive(time_text, f"{where} time_us") * MICROSECOND
    if devices < 2:
        return Skipped(identity, "has one device, which sends nothing")
    if devices % nodes:
        return Skipped(identity, f"spreads {devices} devices unevenly over {nodes} nodes")
    link = network.strip() if nodes > 1 else ""
    try:
        rate = device_rate(link, devices // nodes)
    except UnknownNetwork as error:
        return Skipped(identity, str(error))
    return Measurement(
        identity,
        op,
        accelerator.strip(),
        devices,
        nodes,
        size,
        seconds,
        in_network,
        link,
        rate,
        system,
    )


def _positive(text: str, field: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(field, "must be a positive number", text, "correct the row")
    return value


def _count(text: str, field: str) -> int:
    value = _positive(text, field)
    if value != int(value) or value > MAX_DEVICES:
        raise InputError(field, f"must be a whole number up to {MAX_DEVICES:,}", text, "correct it")
    return int(value)
