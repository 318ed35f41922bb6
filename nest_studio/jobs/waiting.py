"""Work that takes longer than a page may: in worker processes, with progress and a way out.

A page asks for a task's result. Where it is at hand it comes back at once; else it is begun and the
page shows how far it is, with a button that takes the wish back. A job belongs to all sessions that
want it: it ends early only when the last of them has gone, has taken its wish back, or wants
something else. What was found is kept for everyone who asks again; what a job had found when it was
cancelled is no answer, and belongs to who cancelled it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import streamlit as st

from nest_core.costs.price import Report
from nest_core.documents.presets import edition
from nest_core.documents.quoting import as_markdown
from nest_core.documents.text import plain
from nest_core.scenario import Scenario
from nest_studio.jobs.job_queue import JobQueue
from nest_studio.jobs.queued import CANCELLED, Job
from nest_studio.jobs.workers import Stopped, WorkerCrash, limits_of
from nest_studio.server.frames import OPEN_SOCKETS, SOCKET_HEADER

__all__ = [
    "Job",
    "JobQueue",
    "Stopped",
    "WorkerCrash",
    "awaited",
    "forget",
    "given_up",
    "job_queue",
    "submitted",
    "there",
    "waiting",
]

POLL_S = 0.5
MOMENT_S = 1.0
"""What takes no longer shows no progress."""
MOST_CANCELLED = 8
"""So many cancelled jobs a session keeps."""
Found = TypeVar("Found")
_VISITOR = "visitor"
_numbers = itertools.count()


@dataclass(eq=False)
class _Visitor:
    """One session, as long as it has its state."""

    number: int = field(default_factory=lambda: next(_numbers))
    cancelled: OrderedDict[str, Job] = field(default_factory=OrderedDict)
    """What it took back, by key, with what was found by then."""
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
    function: Callable[..., Any], *args: Any, urgent: bool = True, place: str = ""
) -> Job:
    """The job of a task, for this session; who asks for the same gets the same.

    Parameters
    ----------
    function, urgent
        As `JobQueue.ask` takes them.
    *args
        What the task is asked; with the presets, all that its result depends on.
    place : str
        What the session wanted here before, it now wants no more. Without a place it wants the
        job not more than before, as where another place has asked for it.
    """
    visitor, key = _visitor(), _key(function, args)
    own = visitor.cancelled.get(key)
    if own is None:
        wanted_by = (visitor.number, place) if place else None
        return job_queue().ask(key, function, *args, urgent=urgent, wanted_by=wanted_by)
    if place:
        job_queue().give_up(visitor.number, place)
    return own


def awaited(
    function: Callable[..., Found],
    *args: Any,
    what: str,
    key: str,
    place: str = "",
    urgent: bool = True,
) -> Found | None:
    """What a task comes to; None while it is not `there`, which stands here.

    Errors that the task raises are raised here; the other parameters are those of `submitted` and
    `there`.
    """
    job = submitted(function, *args, urgent=urgent, place=place)
    return cast(Found, job.result(0)) if there(job, what, key=key) else None


def given_up(place: str) -> None:
    """This session wants nothing here any more."""
    job_queue().give_up(_visitor().number, place)


def forget(job: Job) -> None:
    """Begin anew when its key is asked for again, as after a cancel; for callbacks."""
    if _visitor().cancelled.pop(job.key, None) is None:
        job_queue().forget(job.key)


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
        left.progress(min(job.share, 1.0), as_markdown(f"{what}: {job.words} ({elapsed:.0f} s)"))
        if right.button("Cancel", key=f"stop-{key}", width="stretch"):
            _cancel(job)
            st.rerun()

    progress()
    return True


def there(job: Job, what: str, *, key: str) -> bool:
    """Whether a job has something to show; else its progress stands here, or how to run it again.

    What a cancelled job has found is shown, with a way to go on. Errors that the job's function
    raised are not shown: `Job.result` raises them.
    """
    if waiting(job, what, key=key):
        return False
    if job.late:
        st.info(
            as_markdown(
                f"{what} took {job_queue().limits.in_words}, the most that this studio gives"
            )
            + " one request: what was found by then is shown. The command line gives it more."
        )
    if not (job.stopped or job.without):
        return True
    left, right = st.columns([6, 1], vertical_alignment="center")
    label = "Run"
    if job.without == CANCELLED:
        said = f"{what}: cancelled."
    elif job.without:
        said = f"{what} has no result: {job.without}."
    else:
        said, label = f"{what} was cancelled: what was found by then is shown.", "Continue"
    left.info(as_markdown(said))
    right.button(label, on_click=forget, args=(job,), key=f"run-{key}", width="stretch")
    return not job.without


def _key(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Stands for a task and what it is asked, by content: drawn fabrics have megabytes."""
    said = hashlib.sha256()
    for one in args:
        text = one if isinstance(one, str) else json.dumps(one, sort_keys=True, default=_content)
        said.update(f"{len(text)} {text}".encode("utf-8", "surrogatepass"))
    return f"{edition()} {function!r} {said.hexdigest()}"


def _content(value: Any) -> Any:
    """What tells values apart that JSON has no form for; a priced plan is one of its scenario's."""
    if isinstance(value, Scenario):
        return value.key
    return plain(value.plan.to_json()) if isinstance(value, Report) else repr(value)


def _cancel(job: Job) -> None:
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
