"""The reader of tables of measured training runs.

Three column sets are read:

* ``train_measurements.csv``: published runs, everything in columns of its own (`RUN_COLUMNS`);
* ``megatron_a100_multinode.csv`` and ``megatron_a100_singlenode.csv`` (`MEGATRON_COLUMNS`), where
  `MEGATRON` says what their source leaves to be known.

What a row says is read by `nest_core.calibration.training.rows`. One that cannot be read is skipped
with its reason, a file that is no table of training runs refused.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence

from nest_core.calibration.training.cells import (
    MEMORY_KIND,
    MEMORY_STAGE,
    MEMORY_UNIT,
    NotNumber,
    decide,
    figure,
)
from nest_core.calibration.training.rows import Unusable, run_of
from nest_core.calibration.training.runs import MeasuredOutcome, MeasuredRow, Unread
from nest_core.documents import GB, GIB, InputError, require

__all__ = [
    "MEGATRON",
    "MEGATRON_COLUMNS",
    "RUN_COLUMNS",
    "is_training",
    "measured_figure",
    "read_cells",
    "read_runs",
    "row_of",
]

MAX_ROWS = 10_000

RUN_COLUMNS = ("model", "layers", "hidden", "heads", "seq_len", "accelerator", "gpus", "tp", "pp")
"""A table with these is one of published runs; the others may be missing."""

MEGATRON_COLUMNS = (
    "gpus",
    "global_batch",
    "micro_batch",
    "hidden",
    "heads",
    "layers",
    "seq_len",
    "tp",
    "dp",
    "pp",
)
"""A table with these, and none of accelerators, is one of Megatron-LM on A100."""

MEGATRON: Mapping[str, str] = {
    "source": "VIA-Research/vTrain",
    "accelerator": "A100-80GB",
    "gpus_per_node": "8",
    "inter_bw_GBps_per_gpu": "12.5",  # four ports of 200 Gbit/s for the eight devices of a node
    "vocab": "51200",
    "gated_mlp": "0",
    "precision": "fp16-mixed",
    "recompute": "full",
    "seq_parallel": "0",
    "dist_opt_or_zero": "none",
}
"""What holds for every row of the Megatron-LM tables, as their source describes the cluster."""


def is_training(columns: Sequence[str]) -> bool:
    """Return whether a table's columns are those of training runs."""
    names = {column.strip() for column in columns}
    return set(RUN_COLUMNS) <= names or set(MEGATRON_COLUMNS) <= names


def read_runs(text: str, name: str, prefix: str = "") -> tuple[list[MeasuredRow], list[Unread]]:
    """Return rows of a CSV with the columns of one of the three tables.

    Parameters
    ----------
    text : str
        The file.
    name : str
        What to call it in errors.
    prefix : str
        Before the numbers of rows that have no ``id``.

    Raises
    ------
    InputError
        If it is no CSV, its columns are of no such table, or there are too many rows.
    """
    rows: list[MeasuredRow] = []
    unread: list[Unread] = []
    for cells in read_cells(text, name, prefix):
        identity = cells["id"]
        try:
            rows.append(row_of(cells, identity))
        except Unusable as error:
            unread.append(Unread(identity, str(error)))
    return rows, unread


def read_cells(text: str, name: str, prefix: str = "") -> Iterator[dict[str, str]]:
    """Yield rows of such a CSV as cells that `row_of` takes, each with an ``id``.

    Parameters and errors are those of `read_runs`.
    """
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""), restkey="", restval="")
    try:
        columns = [column.strip() for column in reader.fieldnames or ()]
        reader.fieldnames = columns
        convert = _converter(columns, name)
        for number, cells in enumerate(reader, start=1):
            require(
                number <= MAX_ROWS, name, f"must have at most {MAX_ROWS:,} rows", "more", "split it"
            )
            yield {
                **convert(cells),
                "id": (cells.get("id") or "").strip() or f"{prefix}row {number}",
            }
    except csv.Error as error:
        raise InputError(name, "must be a CSV file", str(error), "save it as CSV") from error


def row_of(cells: Mapping[str, str], identity: str) -> MeasuredRow:
    """Return one row with columns of ``train_measurements.csv``; see `run_of`."""
    return MeasuredRow(run_of(cells, identity), _outcome(cells))


def _converter(columns: Sequence[str], name: str) -> Callable[[dict[str, str]], dict[str, str]]:
    require(
        len(set(columns)) == len(columns),
        name,
        "must name every column once",
        list(columns),
        "rename columns",
    )
    if set(RUN_COLUMNS) <= set(columns):
        return dict
    if set(MEGATRON_COLUMNS) <= set(columns):
        return _megatron_cells
    raise InputError(
        name,
        "must have the columns of train_measurements.csv or megatron_a100_multinode.csv",
        ", ".join(columns) or "empty",
        f"name at least {', '.join(RUN_COLUMNS)}",
    )


def _megatron_cells(cells: Mapping[str, str]) -> dict[str, str]:
    size = cells.get("params_billion", "").strip()
    model = f"GPT-{size}B" if size else f"GPT-{cells['layers']}x{cells['hidden']}"
    return {**cells, **{"global_batch_seqs": cells["global_batch"], "model": model}, **MEGATRON}


def _outcome(cells: Mapping[str, str]) -> MeasuredOutcome:
    seconds = measured_figure(cells.get("iter_time_s", ""))
    if seconds is None:
        milliseconds = measured_figure(cells.get("iteration_time_ms", ""))
        seconds = None if milliseconds is None else milliseconds / 1e3
    memory = measured_figure(cells.get("mem_GB_per_gpu", ""))
    if memory is None:
        return MeasuredOutcome(seconds)
    notes = cells.get("notes") or ""
    unit = GIB if decide(MEMORY_UNIT, notes) == "GiB" else GB
    counted = decide(MEMORY_KIND, f"{notes} {cells.get('source') or ''}")
    first = decide(MEMORY_STAGE, notes) == "first"
    return MeasuredOutcome(
        seconds, memory * unit, counted or "unstated", "first" if first else "fullest"
    )


def measured_figure(text: str) -> float | None:
    """Return a positive measured figure; anything else counts as not measured."""
    try:
        value = figure(text)
    except NotNumber:
        return None
    return value if value is not None and value > 0 else None
