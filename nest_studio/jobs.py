"""Work that takes longer than a page may: in worker processes, with progress and a way out.

A page asks for a result by a key. Where it is at hand it comes back at once; else it is ordered
and the page shows how far it is, with a button that stops it. Workers are processes, so that a
long search holds up nobody else's page; they import `nest_core` only. What they found is kept for
everyone who asks again.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import multiprocessing
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import streamlit as st

__all__ = ["Desk", "Job", "Lost", "Stopped", "desk", "waiting"]

WORKERS = 2
KEPT = 64
POLL_S = 0.25
PATIENCE_S = 2.0
"""A worker that does not hear that it should stop is ended after so long."""


class Stopped(Exception):
    """The job was stopped before it had a result."""


class Lost(Exception):
    """The worker process ended before it had a result, perhaps for want of memory."""


@dataclass(slots=True)
class Job:
    """One piece of work.

    Parameters
    ----------
    share : float
        How much of it is done, 0 to 1.
    words : str
        What it is at.
    """

    share: float = 0.0
    words: str = "waiting for a free worker"
    began: float = field(default_factory=time.monotonic)
    _result: Any = None
    _error: Exception | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def ended(self) -> bool:
        """Whether it has a result, failed, or was stopped."""
        return self._ended.is_set()

    def stop(self) -> None:
        """Ask it to end without a result."""
        self._stop.set()

    def result(self, timeout_s: float | None = None) -> Any:
        """What it found.

        Raises
        ------
        TimeoutError
            If it is not there in time.
        Stopped, Lost
            If it was stopped, or its worker was lost.
        Exception
            What the function raised.
        """
        if not self._ended.wait(timeout_s):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._result


class Desk:
    """Hands jobs to worker processes and remembers the last results.

    Parameters
    ----------
    workers : int
        Processes; started when first needed.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self._hands = ThreadPoolExecutor(workers, thread_name_prefix="jobs")
        self._own = threading.local()
        self._workers: list[_Worker] = []
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        atexit.register(self.close)

    def ask(self, key: str, function: Callable[..., Any], *args: Any) -> Job:
        """The job of a key, old or new; one that was stopped or failed is begun anew.

        Parameters
        ----------
        key : str
            Says everything that the result depends on.
        function : callable (\\*args, progress, stop)
            Importable without Streamlit. ``progress(share, words)`` tells how far it is;
            ``stop()`` is true once nobody wants the result.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None or (job.ended and job._error is not None):
                job = Job()
                self._jobs[key] = job
                self._hands.submit(self._do, job, function, args)
            self._jobs.move_to_end(key)
            while len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)
            return job

    def close(self) -> None:
        """End all workers."""
        self._hands.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.end()

    def _do(self, job: Job, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            if job._stop.is_set():
                raise Stopped
            worker: _Worker | None = getattr(self._own, "worker", None)
            if worker is None or not worker.alive:
                worker = self._own.worker = _Worker()
                with self._lock:
                    self._workers = [*(one for one in self._workers if one.alive), worker]
            job._result = worker.do(job, function, args)
        except Exception as error:  # whoever asks for the result gets it
            job._error = error
        finally:
            job._ended.set()


class _Worker:
    """One process and the line to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._stop = context.Event()
        self._process = context.Process(target=_work, args=(theirs, self._stop), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def end(self) -> None:
        self._process.kill()
        self._process.join()

    def do(self, job: Job, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        self._stop.clear()
        self._line.send((function, args))
        told = float("inf")
        while True:
            if job._stop.is_set() and told == float("inf"):
                self._stop.set()
                told = time.monotonic()
            if time.monotonic() > told + PATIENCE_S:
                self.end()
                raise Stopped
            if not self._line.poll(0.05):
                continue
            try:
                kind, value = self._line.recv()
            except (EOFError, OSError):
                raise Lost from None
            if kind == "progress":
                job.share, job.words = value
            elif job._stop.is_set():
                raise Stopped
            elif kind == "error":
                raise value
            else:
                return value


def _work(line: Connection, stop: Any) -> None:
    """What a worker process does until its line closes."""
    last = -math.inf

    def progress(share: float, words: str) -> None:
        nonlocal last
        if time.monotonic() > last + 0.1:
            line.send(("progress", (share, words)))
            last = time.monotonic()

    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            function, args = line.recv()
            last = -math.inf
            try:
                answer = "done", function(*args, progress=progress, stop=stop.is_set)
            except Exception as error:  # crosses to whoever asked
                answer = "error", error
            line.send(answer)


@st.cache_resource(show_spinner=False)
def desk() -> Desk:
    """The one of this server."""
    return Desk()


def waiting(job: Job, what: str, *, key: str) -> bool:
    """Whether a job still runs; then its progress and a button to stop it stand here.

    The page runs again when the job ends. ``what`` says what is computed, ``key`` tells this
    place from others on the page.
    """
    if job.ended:
        return False

    @st.fragment(run_every=POLL_S)
    def progress() -> None:
        if job.ended:
            st.rerun()
        elapsed = time.monotonic() - job.began
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.progress(min(job.share, 1.0), f"{what}: {job.words} ({elapsed:.0f} s)")
        if right.button("Cancel", key=f"stop-{key}", width="stretch"):
            job.stop()

    progress()
    return True
