"""Studies that run in this studio: on its worker processes, behind what somebody waits for.

A run belongs to the study, not to who began it: whoever opens the study sees it, and it goes on
when they leave, for its answers are kept for all, until it ends or somebody cancels it. The server
may end at any time: what was answered is in the store, and to run again is to go on.
"""

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from nest_core.documents.errors import require
from nest_core.studies import engine
from nest_core.studies.engine import WorkerPool
from nest_core.studies.rows import RowCache
from nest_core.studies.solving import Stop, Tell
from nest_core.studies.study import Study
from nest_studio.jobs.job_queue import JobQueue, WorkerJob

__all__ = ["QueueExecutor", "StudyRun", "begin", "running", "swept"]

TOGETHER = 8
"""Points of a task: it makes way for what somebody waits for, and then is begun anew."""
MOST = 2
"""Studies that run at a time."""

KEPT = 16
"""Studies whose last run is remembered."""
_numbers = itertools.count()

Work = Callable[[WorkerPool, RowCache, Callable[[int, int], None], Stop], Any]


class QueueExecutor(Executor):
    """The studio's worker processes as an executor; its tasks come after what somebody waits for.

    Parameters
    ----------
    queue : JobQueue
    """

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> WorkerJob:
        """See `concurrent.futures.Executor.submit`; what ends early keeps what it has found."""
        key = f"task of a study {next(_numbers)}"
        job = self._queue.ask(key, in_worker, fn, args, kwargs, urgent=False)
        job.add_done_callback(lambda _: self._queue.forget(key))
        return job


def in_worker(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    progress: Tell,
    stop: Stop,
) -> Any:
    """Run a task of a study in a worker: it hears when it is to end."""
    engine.heed(stop)
    return function(*args, **kwargs)


@dataclass(eq=False, slots=True)
class StudyRun:
    """One run of a study.

    Parameters
    ----------
    answered, points : int
        So far, and in all; 0 until it is known.
    cache : RowCache
        Where its rows are kept, failures of this run among them.
    result : object or None
        What its work came to, once it has ended.
    error : Exception or None
        Why it came to nothing.
    """

    cache: RowCache
    began: float = field(default_factory=time.monotonic)
    answered: int = 0
    points: int = 0
    first: int = -1
    result: Any = None
    error: Exception | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def ended(self) -> bool:
        """Return whether it runs no more."""
        return self._ended.is_set()

    @property
    def cancelled(self) -> bool:
        """Return whether it was told to end."""
        return self._stop.is_set()

    @property
    def left_s(self) -> float | None:
        """Return seconds to its end at the pace so far; None before there is one."""
        done = self.answered - self.first
        return (
            (time.monotonic() - self.began) / done * (self.points - self.answered)
            if self.first >= 0 and done > 0
            else None
        )

    def cancel(self) -> None:
        """Have it end; what was answered stays."""
        self._stop.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end, and return whether it has come in time."""
        return self._ended.wait(timeout_s)

    def tell(self, answered: int, points: int) -> None:
        """How far it is."""
        if self.first < 0:
            self.first = answered
        self.answered, self.points = answered, points

    def _work(self, queue: JobQueue, work: Work) -> None:
        try:
            self.result = work(
                WorkerPool.of(QueueExecutor(queue)), self.cache, self.tell, self._stop.is_set
            )
        except Exception as error:  # crosses to whoever looks
            self.error = error
        self._ended.set()


_runs: dict[str, StudyRun] = {}
_lock = threading.Lock()


def running(key: str) -> StudyRun | None:
    """Return the last run of a study in this server; ``key`` stands for its content."""
    return _runs.get(key)


def begin(key: str, queue: JobQueue, cache: RowCache, work: Work) -> StudyRun:
    """Begin a study, or go on with it; one that runs is returned.

    Parameters
    ----------
    key : str
    queue : JobQueue
    cache : RowCache
    work : callable (pool, cache, tell, stop)
        What it computes; called in a thread of its own.

    Raises
    ------
    InputError
        If `MOST` others run.
    """
    with _lock:
        before = _runs.get(key)
        if before is not None and not before.ended:
            return before
        busy = sum(not run.ended for run in _runs.values())
        require(
            busy < MOST,
            "study",
            f"must wait: at most {MOST} run at a time here",
            busy,
            "cancel one",
        )
        _runs.pop(key, None)
        past = [name for name, run in _runs.items() if run.ended]
        for name in past[: max(0, len(_runs) + 1 - KEPT)]:
            del _runs[name]
        run = _runs[key] = StudyRun(cache)
        threading.Thread(target=run._work, args=(queue, work), daemon=True).start()
        return run


def swept(study: Study) -> Work:
    """Return the work of a study with axes."""
    return lambda pool, cache, tell, stop: engine.run(
        study.points(), cache, pool, tell=tell, stop=stop, together=TOGETHER
    )
