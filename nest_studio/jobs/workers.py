"""Worker processes: one function at a time, with progress, a way out, and limits.

A worker imports `nest_core` and this module, no Streamlit. It ends with its server, whatever ended
that; it ends when a function does not hear that it should stop, takes more time than a function may
or more memory. Every way in which it can fail to bring a result is an exception of the job's.

Studies compute in pools: of processes of this machine, or of the workers of a Dask cluster.
"""

import contextlib
import gc
import math
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

from nest_core.documents.errors import InputError, require
from nest_studio.server import system

__all__ = [
    "USUAL",
    "Limits",
    "Stopped",
    "Worker",
    "WorkerCrash",
    "WorkerDied",
    "cluster",
    "cluster_size",
    "cores",
    "end_with_server",
    "limits_of",
    "processes",
]

POLL_S = 0.1
PATIENCE_S = 0.5
"""A worker that does not hear that it should stop is ended after so long."""
START_S = 60.0
"""What a worker may take to start and to import what a job needs."""
LONGEST_WORDS = 200
GIB = 2**30
MINUTES_VARIABLE = "NEST_STUDIO_REQUEST_MINUTES"
MEMORY_VARIABLE = "NEST_STUDIO_REQUEST_GIB"


class Stopped(Exception):
    """The job was stopped and has no result."""


class WorkerCrash(Exception):
    """The job has no result and would have none if it ran again; the message says why."""


class WorkerDied(Exception):
    """The worker process ended before it had a result."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one job may take, whatever it asks for.

    Parameters
    ----------
    seconds : float
        From its begin. Then it is told to stop, and what it has found by then is its result.
    memory_bytes : float
        What its worker may hold beyond what its modules took.
    kept_bytes : float
        A worker that holds more after a job is replaced: what it keeps it would not give back.
    quick_s : float
        What takes longer makes way for what may be shorter.
    """

    seconds: float = 300.0
    memory_bytes: float = 3.0 * GIB
    kept_bytes: float = 0.75 * GIB
    quick_s: float = 3.0

    @property
    def in_words(self) -> str:
        """Return the limit of time, to be read."""
        return f"{self.seconds / 60:.3g} minutes" if self.seconds > 90 else f"{self.seconds:.3g} s"


USUAL = Limits()


def limits_of(environment: Mapping[str, str]) -> Limits:
    """Return the limits that whoever started the server has set.

    Raises
    ------
    InputError
        If one is no number above 0.
    """
    limits = []
    for name, usual in (
        (MINUTES_VARIABLE, USUAL.seconds / 60),
        (MEMORY_VARIABLE, USUAL.memory_bytes / GIB),
    ):
        text = environment.get(name, str(usual))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        require(
            0 < number < math.inf,
            name,
            "must be a number above 0",
            text,
            "leave it out or set another",
        )
        limits.append(number)
    return Limits(60 * limits[0], GIB * limits[1])


class Heard(Protocol):
    """What a worker reports to while it works."""

    def progress(self, share: float, words: str) -> None:
        """How far it is."""

    def must_stop(self) -> bool:
        """Return whether nobody wants the result any more, or others go first."""


@dataclass(slots=True)
class WorkerAnswer:
    """What a worker brought back."""

    value: Any = None
    error: Exception | None = None
    size: int = 0
    """Bytes that the value took on the line."""
    late: bool = False
    """Whether it was told to stop at the limit of time."""


@dataclass(slots=True)
class Worker:
    """One process and the line to it.

    Parameters
    ----------
    lower : bool
        Whether it yields to others' work, as far as the system knows priorities.
    limits : Limits
        What every job may take.
    edition : str
        Which presets it read: it keeps what it has read.
    """

    lower: bool
    limits: Limits
    edition: str = ""
    _line: Connection = field(init=False)
    _stop: Any = field(init=False)
    _process: Any = field(init=False)
    _ending: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._stop = context.Event()
        self._process = context.Process(
            target=_work,
            args=(
                theirs,
                self._stop,
                self.lower,
                self.limits.memory_bytes if system.REFUSES_MEMORY else math.inf,
            ),
            daemon=True,
        )
        self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        """Return whether the process still runs."""
        return bool(self._process.is_alive())

    def end(self) -> None:
        """End the process; who waits for it and who closes the queue may both ask for it."""
        with self._ending:
            self._process.kill()
            self._process.join()
            self._line.close()

    def do(self, function: Callable[..., Any], args: tuple[Any, ...], heard: Heard) -> WorkerAnswer:
        """Have a function done; returns when it is, or cannot be.

        Raises
        ------
        Died
            If the process ended on its own.
        """
        self._stop.clear()
        try:
            self._line.send((function, args))
            answer = self._answer(heard)
        except (EOFError, OSError):
            self.end()
            raise WorkerDied from None
        if self.alive and system.held_bytes(self._process.pid) > self.limits.kept_bytes:
            self.end()
        return answer

    def _answer(self, heard: Heard) -> WorkerAnswer:
        ends, stopped_at, late = time.monotonic() + self.limits.seconds + START_S, math.inf, False
        most_bytes = math.inf
        while True:
            now = time.monotonic()
            if stopped_at == math.inf and (heard.must_stop() or now > ends):
                self._stop.set()
                stopped_at, late = now, now > ends
            if now > stopped_at + PATIENCE_S:
                self.end()
                return self._too_long() if late else WorkerAnswer()
            if most_bytes < math.inf and system.held_bytes(self._process.pid) > most_bytes:
                self.end()
                return WorkerAnswer(error=_too_much(self.limits.memory_bytes))
            if not self._line.poll(POLL_S):
                continue
            received = self._line.recv_bytes()
            kind, value = pickle.loads(received)
            if kind == "begun":
                ends = time.monotonic() + self.limits.seconds
                if not system.REFUSES_MEMORY:
                    most_bytes = system.held_bytes(self._process.pid) + self.limits.memory_bytes
            elif kind == "progress":
                heard.progress(*value)
            elif kind == "error":
                return WorkerAnswer(error=value, late=late)
            else:
                answer = WorkerAnswer(value, size=len(received), late=late)
                return self._too_long() if late and value is None else answer

    def _too_long(self) -> WorkerAnswer:
        return WorkerAnswer(error=_refusal(f"it takes more than {self.limits.in_words}"))


def _refusal(why: str) -> WorkerCrash:
    return WorkerCrash(f"{why}, the most that this studio gives one request")


def _too_much(memory_bytes: float) -> WorkerCrash:
    return _refusal(f"it takes more than {memory_bytes / GIB:.3g} GiB")


def _work(line: Connection, stop: Any, lower: bool, memory_bytes: float) -> None:
    """What a worker process does until its line closes."""
    threading.Thread(target=end_with_server, daemon=True).start()
    if lower:
        system.yield_to_others()
    last, limited = -math.inf, memory_bytes == math.inf

    def progress(share: float, words: str) -> None:
        nonlocal last
        if time.monotonic() > last + 0.1:
            line.send(("progress", (share, words)))
            last = time.monotonic()

    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            function, args = line.recv()  # imports what it needs
            if not limited:
                system.refuse_memory_beyond(memory_bytes)
                limited = True
            line.send(("begun", None))
            last = -math.inf
            try:
                answer = "done", function(*args, progress=progress, stop=stop.is_set)
            except MemoryError:
                answer = "error", _too_much(memory_bytes)
            except Exception as error:  # crosses to whoever asked
                answer = "error", error
            line.send_bytes(_written(*answer))
            del function, args, answer
            if not gc.get_freeze_count():  # what is imported by now stays: no job collects it again
                gc.collect()
                gc.freeze()


def _written(kind: str, value: Any) -> bytes:
    """An answer as bytes that can be read again, else an error that says why there is none."""
    try:
        text = pickle.dumps((kind, value))
        if kind == "error":  # many exceptions can be written and not read
            pickle.loads(text)
    except Exception as error:  # whatever an object does when it is written
        why = f"its answer ({_named(value)}) cannot be handed over: {_named(error)}"
        return pickle.dumps(("error", WorkerCrash(why)))
    return text


def _named(value: Any) -> str:
    """Return an object's type, and an error's words as far as it has any."""
    name = type(value).__name__
    if not isinstance(value, Exception):
        return name
    try:
        return f"{name}: {value}"[:LONGEST_WORDS]
    except Exception:  # whatever an object does when it is to be read
        return name


def end_with_server() -> None:
    """End this process when the one that started it has ended, in whatever way."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


CONNECT_S = 10


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
        return Client(address, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(
            "--dask",
            "must name a scheduler that answers, as tcp://HOST:PORT",
            address,
            "start dask scheduler, or correct the address",
        ) from error
