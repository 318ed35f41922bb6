"""``nest-studio sweep``: every point of a study planned, on this machine's cores or a cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.documents.errors import InputError
from nest_studio.commands.output import JsonFlag, emit

if TYPE_CHECKING:
    from nest_core.studies.engine import WorkerPool
    from nest_core.studies.study import Study

__all__ = ["DaskOption", "WorkersOption", "opened_pool", "progress", "shared_event", "sweep"]

WorkersOption = Annotated[
    int | None, typer.Option(min=1, max=4096, help="Processes; standard: one per core.")
]
DaskOption = Annotated[
    str | None, typer.Option(help="Scheduler of a Dask cluster instead, tcp://HOST:PORT.")
]


def sweep(
    study: Annotated[str, typer.Argument(help="Study: a preset or a TOML file.")],
    workers: WorkersOption = None,
    dask: DaskOption = None,
    output: Annotated[
        Path | None, typer.Option(help="Result: a .parquet or .csv file; standard: STUDY.parquet.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Plan every point of a study; killed or stopped, the same command goes on where it was."""
    from nest_core.studies.engine import run
    from nest_core.studies.rows import rows_of
    from nest_core.studies.study import load_study
    from nest_studio.commands.watching import interrupts
    from nest_studio.session.store import Database, StoredAnswers, database_url

    began = time.monotonic()
    loaded = load_study(study, Path())
    if loaded.design is not None:
        raise InputError("study", "must have axes", study, "use nest-studio design for a [design]")
    file = output or Path(f"{Path(study).stem}.parquet")
    write = _writer(loaded, file)
    answers = StoredAnswers(Database(database_url()))
    with interrupts(shared_event()) as stop, progress(loaded.name) as tell:
        pool = opened_pool(stop, workers, dask)
        ended = run(loaded.points(), answers, pool, tell=tell, stop=stop.is_set)
    rows = list(rows_of(loaded, answers))
    write(rows)
    fields = {
        "points": len(loaded),
        "computed": ended.computed,
        "reused": ended.reused,
        "failed": ended.failed,
        "rows": len(rows),
        "whole": ended.complete,
        "output": str(file),
        "wall_s": time.monotonic() - began,
    }
    emit(fields, as_json, _as_text)


def _as_text(found: Mapping[str, Any]) -> str:
    line = (
        f"{found['rows']:,} of {found['points']:,} points in {found['output']}: "
        f"{found['computed']:,} computed, {found['reused']:,} reused, {found['failed']:,} failed, "
        f"{found['wall_s']:.1f} s"
    )
    return line if found["whole"] else f"{line}\nStopped: the same command goes on from here."


def _writer(study: Study, file: Path) -> Callable[[list[dict[str, Any]]], None]:
    """Return what writes rows to a file, once it is known that it will be able to.

    Raises
    ------
    InputError
        For another ending, or a folder that cannot be written to.
    """
    from nest_core import __version__
    from nest_core.documents.files import write_file
    from nest_core.documents.quoting import csv_text
    from nest_core.studies.rows import to_parquet

    if file.suffix not in (".parquet", ".csv"):
        raise InputError("--output", "must end in .parquet or .csv", str(file), "rename it")
    if not file.absolute().parent.is_dir():
        raise InputError("--output", "must lie in a folder that exists", str(file), "make it")

    def write(rows: list[dict[str, Any]]) -> None:
        if file.suffix == ".csv":
            columns = list(rows[0]) if rows else []
            table = csv_text(columns, [list(row.values()) for row in rows])
            write_file(file, table, "--output")
            return
        write_file(file, to_parquet(study, rows, __version__), "--output")

    return write


def shared_event() -> Any:
    """Return an event that processes share."""
    import multiprocessing

    return multiprocessing.get_context("spawn").Event()


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Who is told how far it is: a bar on the terminal with the time to its end."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None)
        yield lambda answered, total: bar.update(task, completed=answered, total=total)


def opened_pool(stop: Any, workers: int | None, dask: str | None) -> WorkerPool:
    """Return the workers that the options name."""
    from nest_core.studies.engine import WorkerPool
    from nest_studio.jobs.pools import cluster, cluster_size, cores, processes

    if dask is not None:
        return WorkerPool(partial(cluster, dask), cluster_size(dask))
    count = workers or cores()
    return WorkerPool(partial(processes, count, stop), count)
