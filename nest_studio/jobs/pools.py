"""Where studies compute: processes of this machine, or the workers of a Dask cluster."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from nest_core.documents.errors import InputError, require
from nest_studio.jobs.workers import end_with_server

__all__ = ["cluster", "cluster_size", "cores", "processes"]

PATIENCE_S = 10


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(count: int, stop: Any = None) -> ProcessPoolExecutor:
    """Return a pool of processes, which end with this one, however that ends.

    An interrupt is heard by this process alone; ``stop`` is an event that tells them to end early.
    """
    return ProcessPoolExecutor(
        count, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(stop,)
    )


def _begin(stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_server, daemon=True).start()
    if stop is not None:
        from nest_core.studies.engine import heed  # bills, which a plan does without

        heed(stop.is_set)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Return the workers of a Dask scheduler as an executor.

    Raises
    ------
    InputError
        If Dask is not installed, or no scheduler answers there.
    """
    with _client(address) as client:
        yield client.get_executor()


def cluster_size(address: str) -> int:
    """Threads of all its workers; errors as for `cluster`."""
    with _client(address) as client:
        threads = int(sum(client.nthreads().values()))
    require(
        threads,
        "--dask",
        "must name a scheduler that has workers",
        address,
        "start dask worker there",
    )
    return threads


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise InputError(
            "--dask", "needs Dask", address, "install nest-studio[dask], or leave it out"
        ) from error
    try:
        return Client(address, timeout=PATIENCE_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(
            "--dask",
            "must name a scheduler that answers, as tcp://HOST:PORT",
            address,
            "start dask scheduler, or correct the address",
        ) from error
