"""Work that takes longer than a page may: in worker processes, with progress and a way out.

A page asks for a result by a key. Where it is at hand it comes back at once; else it is ordered
and the page shows how far it is, with a button that stops it. Workers are processes, so that a
long search holds up nobody else's page; they import `nest_core` only. What they found is kept for
everyone who asks again.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import math
import multiprocessing
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import streamlit as st

__all__ = ["Desk", "Job", "Lost", "Stopped", "desk", "there", "waiting", "wanted"]

WORKERS = 2
KEPT = 512
POLL_S = 0.5
MOMENT_S = 1.0
"""What takes no longer shows no progress."""
PATIENCE_S = 2.0
"""A worker that does not hear that it should stop is ended after so long."""


class Stopped(Exception):
    """The job was stopped and has no result."""


class Lost(Exception):
    """The worker process ended before it had a result, perhaps for want of memory."""


@dataclass(slots=True)
class Job:
    """One piece of work.

    Parameters
    ----------
    key : str
        Says everything that its result depends on.
    share : float
        How much of it is done, 0 to 1.
    words : str
        What it is at.
    """

    key: str
    share: float = 0.0
    words: str = "waiting for a worker; after an installation it compiles for seconds"
    began: float = field(default_factory=time.monotonic)
    _result: Any = None
    _error: Exception | None = None
    _wanted: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def ended(self) -> bool:
        """Whether it has a result, failed, or was stopped."""
        return self._ended.is_set()

    @property
    def stopped(self) -> bool:
        """Whether somebody asked it to end."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask it to end without a result."""
        self._stop.set()

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended after so long."""
        return self._ended.wait(timeout_s)

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


_Order = tuple[Job, Callable[..., Any], tuple[Any, ...]]


class Desk:
    """Hands jobs to worker processes and remembers the last results.

    The first worker takes what is urgent only, so that nobody's plan waits for another's sweep; the
    others take the rest, and what is urgent while the first is busy, at a lower priority of the
    operating system. What is not urgent is taken newest and oldest by turns.

    Parameters
    ----------
    workers : int
        Processes, each started with its first job. A single one takes everything.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self._most = workers
        self._hands: list[threading.Thread] = []
        self._workers: list[_Worker] = []
        self._urgent: deque[_Order] = deque()
        self._other: deque[_Order] = deque()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._changed = threading.Condition()
        self._first_is_free = True
        self._newest = False
        self._closed = False
        atexit.register(self.close)

    def ask(self, key: str, function: Callable[..., Any], *args: Any, urgent: bool = True) -> Job:
        """The job of a key, old or new; one whose worker was lost is begun anew.

        Parameters
        ----------
        key : str
            Says everything that the result depends on.
        function : callable (\\*args, progress, stop)
            Importable without Streamlit. ``progress(share, words)`` tells how far it is;
            ``stop()`` is true once nobody wants the result: what it then returns is the result
            all the same, None for nothing.
        urgent : bool
            Whether somebody waits for it, as for a plan: it goes before all that is not.
        """
        with self._changed:
            job = self._jobs.get(key)
            if job is None or isinstance(job._error, Lost):
                job = self._jobs[key] = Job(key)
                (self._urgent if urgent else self._other).append((job, function, args))
                while len(self._hands) < self._most:
                    place = len(self._hands)
                    hand = threading.Thread(target=self._serve, args=(place,), daemon=True)
                    self._hands.append(hand)
                    hand.start()
                self._changed.notify_all()
            self._jobs.move_to_end(key)
            while len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)
            return job

    def forget(self, key: str) -> None:
        """Begin anew when the key is asked for again, as after a stop; for callbacks."""
        with self._changed:
            self._jobs.pop(key, None)

    def want(self, jobs: Sequence[Job], instead: Sequence[Job] = ()) -> None:
        """A session wants these jobs in place of others.

        What no session wants any more is stopped, and begun anew when it is asked for again: what
        a search found that nobody waited for is no answer.
        """
        with self._changed:
            for job in jobs:
                job._wanted += 1
            for job in instead:
                job._wanted -= 1
                if job._wanted == 0 and not job.ended:
                    job.stop()
                    if self._jobs.get(job.key) is job:
                        del self._jobs[job.key]

    def close(self) -> None:
        """End all workers; what waits never begins."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.end()

    def _serve(self, place: int) -> None:
        """One worker's work, job by job."""
        worker: _Worker | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waits_for(place))
                if self._closed:
                    return
                urgent = self._urgent and (place == 0 or not self._first_is_free)
                job, function, args = self._urgent.popleft() if urgent else self._not_urgent()
                if place == 0:
                    self._first_is_free = False
                    self._changed.notify_all()
            try:
                if job._stop.is_set():
                    raise Stopped
                if worker is None or not worker.alive:
                    worker = _Worker(lower=place > 0)
                    self._workers = [*(one for one in self._workers if one.alive), worker]
                job._result = worker.do(job, function, args)
            except Exception as error:  # whoever asks for the result gets it
                job._error = error
            finally:
                job._ended.set()
                if place == 0:
                    with self._changed:  # others decide by it what they take
                        self._first_is_free = True

    def _not_urgent(self) -> _Order:
        """The newest and the oldest by turns.

        With more orders than can be done the oldest are about to be given up for others: taken in
        their order, all come too late; the newest alone, and who waits gets nothing.
        """
        while len(self._other) > 1 and self._other[0][0].stopped:
            given_up = self._other.popleft()[0]
            given_up._error = Stopped()
            given_up._ended.set()
        self._newest = not self._newest
        return self._other.pop() if self._newest else self._other.popleft()

    def _waits_for(self, place: int) -> bool:
        """Whether there is something for a worker to do: the first, if it is free, takes plans."""
        if place == 0:
            return bool(self._urgent or (self._most == 1 and self._other))
        return bool(self._other or (self._urgent and not self._first_is_free))


class _Worker:
    """One process and the line to it."""

    def __init__(self, *, lower: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, theirs = context.Pipe()
        self._stop = context.Event()
        self._process = context.Process(target=_work, args=(theirs, self._stop, lower), daemon=True)
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
        try:
            self._line.send((function, args))
            kind, value = self._answer(job)
        except (EOFError, OSError):
            self.end()
            raise Lost from None
        if kind == "error":
            raise value
        if value is None and job._stop.is_set():
            raise Stopped
        return value

    def _answer(self, job: Job) -> tuple[str, Any]:
        """What the worker says at the end."""
        told = math.inf
        while True:
            if job._stop.is_set() and told == math.inf:
                self._stop.set()
                told = time.monotonic()
            if time.monotonic() > told + PATIENCE_S:
                self.end()
                return "done", None
            if not self._line.poll(0.05):
                continue
            kind, value = self._line.recv()
            if kind != "progress":
                return kind, value
            job.share, job.words = value


def _work(line: Connection, stop: Any, lower: bool) -> None:
    """What a worker process does until its line closes."""
    if lower and hasattr(os, "nice"):
        os.nice(10)
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
            if not gc.get_freeze_count():  # what is imported by now stays: no job collects it again
                gc.collect()
                gc.freeze()


@st.cache_resource(show_spinner=False)
def desk() -> Desk:
    """The one of this server."""
    return Desk()


def wanted(slot: str, *jobs: Job) -> None:
    """This session wants these jobs, and no more those that it wanted here before."""
    desk().want(jobs, st.session_state.get(slot, ()))
    st.session_state[slot] = jobs


def waiting(job: Job, what: str, *, key: str) -> bool:
    """Whether a job still runs after a moment; then its progress and a way out stand here.

    The page runs again when the job ends. ``what`` says what is computed, ``key`` tells this
    place from others on the page.
    """
    until = time.monotonic() + MOMENT_S
    while not job.ended and time.monotonic() < until:
        st.session_state["awaited"] = what  # Streamlit stops a run only where it touches this
        job.wait(0.05)
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


def there(job: Job, what: str, *, key: str) -> bool:
    """Whether a job has something to show; else its progress stands here, or how to run it again.

    Errors that the job raised are not shown: `Job.result` raises them.
    """
    if waiting(job, what, key=key):
        return False
    if not isinstance(job._error, (Stopped, Lost)):
        return True
    left, right = st.columns([6, 1], vertical_alignment="center")
    why = "cancelled" if isinstance(job._error, Stopped) else "its worker process ended early"
    left.info(f"{what}: {why}.")
    right.button("Run", on_click=desk().forget, args=(job.key,), key=f"run-{key}", width="stretch")
    return False
