"""Jobs, and how they wait: what visitors asked for, and a queue for the workers of one kind."""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from nest_studio.jobs.workers import Stopped, WorkerAnswer, WorkerCrash

__all__ = ["CANCELLED", "Queue", "Task", "WorkerJob"]

CANCELLED = "cancelled"


class WorkerJob(Future[Any]):
    """One piece of work; its result is what its function found.

    Parameters
    ----------
    key : str
        Says everything that its result depends on.
    urgent : bool
        Whether it is done by workers that yield to nobody.

    Attributes
    ----------
    share : float
        How much of it is done, 0 to 1.
    words : str
        What it is at.
    began : float
        When it was asked for, by the clock of `time.monotonic`.
    late : bool
        Whether it was told to stop at the limit of time: there may be more to find.
    size : int
        What its result took on the line, bytes.
    """

    def __init__(self, key: str, urgent: bool = True) -> None:
        super().__init__()
        self.key, self.urgent = key, urgent
        self.share = 0.0
        self.words = "waiting for a worker; after an installation it compiles for seconds"
        self.began = time.monotonic()
        self.late = False
        self.size = 0
        self._wanted: set[tuple[Hashable, str]] = set()
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        """Return whether it was asked to end."""
        return self._stop.is_set()

    @property
    def partial(self) -> bool:
        """Return whether there may have been more to find: it was told to stop before its end."""
        return self.late or self.stopped

    @property
    def takes(self) -> int:
        """Return what is kept with it, bytes: a key may hold a drawn fabric."""
        return self.size + len(self.key)

    @property
    def without(self) -> str:
        """Return why it has neither a result nor an error of its function's; empty if it has."""
        error = self.exception() if self.done() else None
        crash = str(error) if isinstance(error, WorkerCrash) else ""
        return CANCELLED if isinstance(error, Stopped) else crash

    def stop(self) -> None:
        """Ask it to end; what it has found by then is its result."""
        self._stop.set()

    def cancel(self) -> bool:
        """As `stop`: it ends by itself, and soon."""
        self.stop()
        return False

    def end(self, answer: WorkerAnswer) -> None:
        """Take its result, or why there is none; the first stands."""
        if self.done():
            return
        self.late, self.size = answer.late, answer.size
        if answer.error is not None:
            self.set_exception(answer.error)
        elif self.stopped and answer.value is None:
            self.set_exception(Stopped())
        else:
            self.set_result(answer.value)


@dataclass(slots=True)
class Task:
    """A job with what is to be done."""

    job: WorkerJob
    function: Callable[..., Any]
    args: tuple[Any, ...]
    tries: int = 0


class Queue:
    """What waits for one pair of places, and which of them are taken.

    The first place takes what was not begun yet, others what was and made way. Of what was not
    begun, the oldest goes first, or the newest and the oldest by turns: with more jobs than can
    be done the oldest are about to be given up for others. Taken in turn, all come too
    late; the newest alone, and who waits gets nothing.
    """

    def __init__(self, *, by_turns: bool) -> None:
        self._new: deque[Task] = deque()
        self._begun: deque[Task] = deque()
        self._by_turns = by_turns
        self._newest = False
        self.taken: set[int] = set()

    def put(self, task: Task, *, begun: bool) -> None:
        (self._begun if begun else self._new).append(task)

    def drop(self, job: WorkerJob) -> bool:
        """Take a job out, and return whether it waited here."""
        for tasks in (self._new, self._begun):
            for task in tasks:
                if task.job is job:
                    tasks.remove(task)
                    return True
        return False

    def waits_for(self, place: int) -> bool:
        """Return whether there is something to do at a place: the first that is free takes it."""
        return bool(self._new or self._begun) and self.taken.issuperset(range(place))

    def in_need_of(self, places: int) -> bool:
        """Return whether something was not begun yet for want of a place."""
        return bool(self._new) and len(self.taken) == places

    def take(self, place: int) -> Task:
        self.taken.add(place)
        if self._begun and (place or not self._new):
            return self._begun.popleft()
        self._newest = self._by_turns and not self._newest
        return self._new.pop() if self._newest else self._new.popleft()
