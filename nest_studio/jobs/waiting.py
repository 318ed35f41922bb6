"""Work that takes longer than a page may: in worker processes, with progress and a way out.

A page asks for a task's result. Where it is at hand it comes back at once; else it is begun and the
page shows how far it is, with a button that takes the wish back. A job belongs to all sessions that
want it: it ends early only when the last of them has gone, has taken its wish back, or wants
something else. What was found is kept for everyone who asks again; what a job had found when it was
cancelled is no answer, and belongs to who cancelled it.
"""

import hashlib
import itertools
import json
import math
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from nest_core.costs.price import Report
from nest_core.documents import as_markdown, edition, plain
from nest_core.scenario import Scenario
from nest_studio.jobs.job_queue import CANCELLED, JobQueue, WorkerJob
from nest_studio.jobs.workers import Stopped, WorkerCrash, limits_of
from nest_studio.server.frames import OPEN_SOCKETS, SOCKET_HEADER

__all__ = [
    "JobQueue",
    "Stopped",
    "WorkerCrash",
    "WorkerJob",
    "forget",
    "given_up",
    "job_queue",
    "panel",
    "submitted",
    "wait_a_moment",
]

POLL_S = 0.25
MOMENT_S = 0.6
"""What takes no longer shows no progress."""
QUIET_S = 0.5
"""Edits that follow one another within so long are one request."""
LOOK_S = 0.05
MOST_CANCELLED = 8
"""So many cancelled jobs a session keeps."""
_VISITOR = "visitor"
_numbers = itertools.count()


@dataclass(eq=False)
class _Visitor:
    """One session, as long as it has its state."""

    number: int = field(default_factory=lambda: next(_numbers))
    cancelled: OrderedDict[str, WorkerJob] = field(default_factory=OrderedDict)
    """What it took back, by key, with what was found by then."""
    edits: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    """By place: what was asked last, when, and from when on it may begin."""
    socket: str = ""
    """The number of its web socket; empty where no server is, as in tests."""


_visitors: weakref.WeakValueDictionary[int, _Visitor] = weakref.WeakValueDictionary()


def _is_here(number: int) -> bool:
    """Whether a visitor's session still has its state and, on a server, a browser at its end."""
    visitor = _visitors.get(number)
    return visitor is not None and visitor.socket in ("", *OPEN_SOCKETS)


_queue: JobQueue | None = None
_opening = threading.Lock()


def job_queue() -> JobQueue:
    """The one of this server: no cache of Streamlit's holds it, for any visitor may clear those."""
    global _queue
    with _opening:
        if _queue is None:
            _queue = JobQueue(limits=limits_of(os.environ), present=_is_here)
        return _queue


def submitted(
    function: Callable[..., Any],
    *args: Any,
    urgent: bool = True,
    place: str = "",
    edited: bool = False,
) -> WorkerJob:
    """Return the job of a task, for this session; who asks for the same gets the same.

    Parameters
    ----------
    function, urgent
        As `JobQueue.ask` takes them.
    *args
        What the task is asked; with the presets, all that its result depends on.
    place : str
        What the session wanted here before, it now wants no more. Without a place it wants the
        job not more than before, as where another place has asked for it.
    edited : bool
        Whether people change what is asked here. The first change is asked at once; what follows
        within half a second waits until nothing has for half a second, and ends this run if
        something does.
    """
    visitor, key = _visitor(), _key(function, args)
    if edited:
        _settle(visitor, key, place)
    partial = visitor.cancelled.get(key)
    if partial is None:
        wanted_by = (visitor.number, place) if place else None
        return job_queue().ask(key, function, *args, urgent=urgent, wanted_by=wanted_by)
    if place:
        job_queue().give_up(visitor.number, place)
    return partial


def _settle(visitor: _Visitor, key: str, place: str) -> None:
    """Give up what was wanted in a place before, and wait while one edit follows another there."""
    now = time.monotonic()
    before, since, begins = visitor.edits.get(place, ("", -math.inf, now))
    if key != before:
        begins = now + QUIET_S if now < since + QUIET_S else now
        visitor.edits[place] = key, now, begins
        job_queue().give_up(visitor.number, place)
    _wait_until(begins, [Future()])


def _wait_until(ends: float, jobs: Sequence[Future[Any]]) -> None:
    """Wait for jobs until a time; the run ends here once its visitor asks for another."""
    while (left_s := ends - time.monotonic()) > 0 and wait(jobs, min(left_s, LOOK_S)).not_done:
        _visitor()


def given_up(place: str) -> None:
    """Want nothing here any more, as this session."""
    job_queue().give_up(_visitor().number, place)


def forget(job: WorkerJob) -> None:
    """Begin anew when its key is asked for again, as after a cancel; for callbacks."""
    if _visitor().cancelled.pop(job.key, None) is None:
        job_queue().forget(job.key)


def wait_a_moment(jobs: Sequence[WorkerJob]) -> None:
    """Wait for jobs until they were asked for so long ago as a page may go without a word."""
    _wait_until(MOMENT_S + max((job.began for job in jobs), default=0.0), jobs)


def panel(job: WorkerJob, what: str, *, key: str) -> Any:
    """Return a job's result; what stands in its place or beside it is drawn here.

    While it is awaited, that is its progress and a way out, and the page runs again once it has
    ended. Where it was cancelled, failed or ran out of time, it is why, and a way to run it again.

    Parameters
    ----------
    job : WorkerJob
    what : str
        What is computed.
    key : str
        Tells this place from others on the page.

    Returns
    -------
    object or None
        None where there is nothing to show.

    Raises
    ------
    InputError
        And whatever else the job's function raised.
    """
    wait_a_moment([job])
    if not job.done():
        _wait(job, what, key)
        return None
    if job.late:
        st.info(
            as_markdown(
                f"{what} took {job_queue().limits.in_words}, the most that this studio gives"
            )
            + " one request: what was found by then is shown. The command line gives it more."
        )
    if job.stopped or job.without:
        _say_partial(job, what, key)
    return None if job.without else job.result(0)


def _wait(job: WorkerJob, what: str, key: str) -> None:
    """Show how far a job is, until it has ended and the page runs again."""

    @st.fragment(run_every=POLL_S)
    def progress() -> None:
        _visitor()
        if job.done():
            st.rerun()
        elapsed = time.monotonic() - job.began
        bar, way_out = st.columns([6, 1], vertical_alignment="center")
        bar.progress(min(job.share, 1.0), as_markdown(f"{what}: {job.words} ({elapsed:.0f} s)"))
        if way_out.button("Cancel", key=f"stop-{key}", width="stretch"):
            _cancel(job)
            st.rerun()

    progress()


def _say_partial(job: WorkerJob, what: str, key: str) -> None:
    """Say that a job has no result or not all of it, beside a way to run it again."""
    if job.without == CANCELLED:
        words = f"{what}: cancelled."
    elif job.without:
        words = f"{what} has no result: {job.without}."
    else:
        words = f"{what} was cancelled: what was found by then is shown."
    message, way_on = st.columns([6, 1], vertical_alignment="center")
    message.info(as_markdown(words))
    label = "Run" if job.without else "Continue"
    way_on.button(label, on_click=forget, args=(job,), key=f"run-{key}", width="stretch")


def _key(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Stands for a task and what it is asked, by content: drawn fabrics have megabytes."""
    digest = hashlib.sha256()
    for arg in args:
        text = arg if isinstance(arg, str) else json.dumps(arg, sort_keys=True, default=_content)
        digest.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass"))
    return f"{edition()} {function!r} {digest.hexdigest()}"


def _content(value: Any) -> Any:
    """What tells values apart that JSON has no form for; a priced plan is one of its scenario's."""
    if isinstance(value, Scenario):
        return value.key
    return plain(value.plan.to_json()) if isinstance(value, Report) else repr(value)


def _cancel(job: WorkerJob) -> None:
    """Take this session's wish back."""
    visitor = _visitor()
    visitor.cancelled[job.key] = job_queue().cancel(visitor.number, job)
    while len(visitor.cancelled) > MOST_CANCELLED:
        visitor.cancelled.popitem(last=False)


def _visitor() -> _Visitor:
    """Return this session, and note at which web socket it is: a line may break and come back."""
    visitor: _Visitor | None = st.session_state.get(_VISITOR)
    if visitor is None:
        visitor = st.session_state[_VISITOR] = _Visitor()
        _visitors[visitor.number] = visitor
    visitor.socket = st.context.headers.get(SOCKET_HEADER, "")
    return visitor
