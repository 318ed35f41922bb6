"""Who works on what: jobs, two queues of them, and the workers of each.

What somebody waits for and what may take long have a queue each, and every queue two places, each
with a process. The first place is kept for what is quick: a job that takes longer there, while
another waits and the second place is taken, makes way, and is begun anew in the second, in turn.
"""

import atexit
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from nest_core.documents.presets import edition
from nest_studio.jobs.workers import (
    USUAL,
    Limits,
    Stopped,
    Worker,
    WorkerAnswer,
    WorkerCrash,
    WorkerDied,
)

__all__ = [
    "CANCELLED",
    "JobQueue",
    "Queue",
    "Task",
    "WorkerJob",
]

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


WORKERS = 2
TRIES = 2
"""A job whose worker died is tried so often."""
KEPT = 512
KEPT_BYTES = 64e6
"""Results are kept, the last ones first, as long as they and their keys have so few bytes."""
LOOKS_EVERY_S = 1.0
ABSENT_S = 10.0
"""A visitor who is away for longer has gone: a browser that lost its line comes back in less."""


class JobQueue:
    """Hands jobs to worker processes and remembers the last results.

    Parameters
    ----------
    workers : int
        Processes for each of the two queues, each started with its first job, or by `start`.
    limits : Limits
        What one job may take.
    present : callable (holder) -> bool
        Whether who wants jobs is still there.
    """

    def __init__(
        self,
        workers: int = WORKERS,
        limits: Limits = USUAL,
        present: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self.limits = limits
        self._each = workers
        self._present = present
        self._threads: list[threading.Thread] = []
        self._workers: dict[tuple[bool, int], Worker] = {}
        self._queues = {True: Queue(by_turns=False), False: Queue(by_turns=True)}
        self._jobs: OrderedDict[str, WorkerJob] = OrderedDict()
        self._wishes: dict[Hashable, dict[str, WorkerJob]] = {}
        self._absent: dict[Hashable, float] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        atexit.register(self.close)

    def start(self, function: Callable[..., Any]) -> None:
        """Have every new worker do something before its first job, which need not wait for it."""
        with self._changed:
            self._begin(function)

    def ask(
        self,
        key: str,
        function: Callable[..., Any],
        *args: Any,
        urgent: bool = True,
        wanted_by: tuple[Hashable, str] | None = None,
    ) -> WorkerJob:
        """Return the job of a key, old or new.

        Parameters
        ----------
        key : str
            Says everything that the result depends on.
        function : callable (\\*args, progress, stop)
            Importable without Streamlit. ``progress(share, words)`` tells how far it is;
            ``stop()`` is true once nobody wants the result: what it then returns is the result
            all the same, None for nothing.
        urgent : bool
            Whether somebody waits for it, as for a plan: all else has workers of its own. What
            they have not done when somebody comes to wait for it is begun anew by those for plans.
        wanted_by : (holder, place), optional
            Who wants it from now on, in place of what was wanted there.
        """
        with self._changed:
            job = self._jobs.get(key)
            if job is not None and urgent and not (job.urgent or job.done()):
                self._stop(job)  # else who waits would wait for workers that yield to others
            if job is None or key not in self._jobs:
                job = self._jobs[key] = WorkerJob(key, urgent)
                self._queues[urgent].put(Task(job, function, args), begun=False)
                self._begin()
                self._changed.notify_all()
            self._jobs.move_to_end(key)
            self._make_room()
            if wanted_by is not None:
                self._want(*wanted_by, job)
            return job

    def forget(self, key: str) -> None:
        """Begin anew when the key is asked for again; what is not done yet goes on."""
        with self._changed:
            if key in self._jobs and self._jobs[key].done():
                del self._jobs[key]

    def cancel(self, holder: Hashable, job: WorkerJob) -> WorkerJob:
        """Take a holder's wish for a job back, and return what the holder has of it.

        That is the job itself, which ends, if nobody else wants it; else one without a result.
        """
        with self._changed:
            for place, wish in tuple(self._wishes.get(holder, {}).items()):
                if wish is job:
                    self.give_up(holder, place)
            if not job._wanted:
                self._stop(job)
                return job
        mine = WorkerJob(job.key)
        mine.stop()
        mine.end(WorkerAnswer())
        return mine

    def give_up(self, holder: Hashable, place: str) -> None:
        """A holder wants nothing any more in a place."""
        with self._changed:
            wishes = self._wishes.get(holder, {})
            job = wishes.pop(place, None)
            if not wishes:
                self._wishes.pop(holder, None)
            if job is not None:
                job._wanted.discard((holder, place))
                if not job._wanted:
                    self._stop(job)

    def look(self, at: float) -> None:
        """Take back the wishes of those who have gone; ``at`` is a clock's time, seconds."""
        with self._changed:
            self._absent = {
                holder: self._absent.get(holder, at)
                for holder in self._wishes
                if not self._present(holder)
            }
            for holder, since in self._absent.items():
                if at > since + ABSENT_S:
                    for place in tuple(self._wishes[holder]):
                        self.give_up(holder, place)

    def close(self) -> None:
        """End all workers; what waits never begins."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
        for worker in self._workers.values():
            worker.end()

    def _want(self, holder: Hashable, place: str, job: WorkerJob) -> None:
        if self._wishes.get(holder, {}).get(place) is job:
            return
        if not job.done():
            job._wanted.add((holder, place))
        self.give_up(holder, place)
        if not job.done():
            self._wishes.setdefault(holder, {})[place] = job

    def _stop(self, job: WorkerJob) -> None:
        """Nobody wants it: it ends, and is begun anew when it is asked for again."""
        if job.done():
            return
        job.stop()
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]
        if any(queue.drop(job) for queue in self._queues.values()):
            job.end(WorkerAnswer())

    def _make_room(self) -> None:
        """Forget the oldest results, if there are too many or too large ones."""
        ended = [job for job in self._jobs.values() if job.done()]
        size = sum(job.takes for job in ended)
        for job in ended[:-1]:
            if len(self._jobs) <= KEPT and size <= KEPT_BYTES:
                return
            size -= job.takes
            del self._jobs[job.key]

    def _begin(self, first: Callable[..., Any] | None = None) -> None:
        """Start who serves."""
        if self._threads:
            return
        for urgent in self._queues:
            for place in range(self._each):
                self._threads.append(
                    threading.Thread(target=self._serve, args=(urgent, place, first), daemon=True)
                )
        self._threads.append(threading.Thread(target=self._look_on, daemon=True))
        for thread in self._threads:
            thread.start()

    def _look_on(self) -> None:
        while not self._closed.wait(LOOKS_EVERY_S):
            self.look(time.monotonic())

    def _serve(self, urgent: bool, place: int, first: Callable[..., Any] | None) -> None:
        """One place's work, job by job."""
        queue = self._queues[urgent]
        while True:
            self._make_ready(urgent, place, first)
            with self._changed:
                queue.taken.discard(place)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed.is_set() or queue.waits_for(place))
                if self._closed.is_set():
                    return
                task = queue.take(place)
                self._changed.notify_all()
            answer = self._answer(task, urgent, place)
            with self._changed:
                if answer is None and not task.job.stopped:
                    queue.put(task, begun=True)
                else:
                    self._end(task.job, answer or WorkerAnswer())

    def _make_ready(self, urgent: bool, place: int, first: Callable[..., Any] | None) -> None:
        """Have a new worker import before its first job, which another place takes meanwhile."""
        worker = self._workers.get((urgent, place))
        if first is None or self._closed.is_set() or (worker is not None and worker.alive):
            return
        with self._changed:
            self._queues[urgent].taken.add(place)
        self._answer(Task(WorkerJob("first"), first, ()), urgent, place)

    def _end(self, job: WorkerJob, answer: WorkerAnswer) -> None:
        job.end(answer)
        for holder, place in tuple(job._wanted):
            self.give_up(holder, place)

    def _answer(self, task: Task, urgent: bool, place: int) -> WorkerAnswer | None:
        """Return what the worker at a place brings; None where the task is to be taken up again."""
        if task.job.stopped:
            return WorkerAnswer()
        run = _Run(task.job, self._queues[urgent], place, self)
        task.tries += 1
        try:
            answer = self._worker(urgent, place).do(task.function, task.args, run)
        except WorkerDied:
            if task.tries < TRIES:
                task.job.words = "its worker process ended, it begins once more"
                return None
            return WorkerAnswer(
                error=WorkerCrash("its worker process ended twice, perhaps for want of memory")
            )
        except Exception as error:  # no worker to be had, or its task cannot be written
            return WorkerAnswer(error=error)
        if run.makes_way:
            task.tries -= 1
            task.job.words = "waiting: quicker searches go first"
            return None
        return answer

    def _worker(self, urgent: bool, place: int) -> Worker:
        """Return the worker of a place, which has read the presets as they are."""
        worker, now = self._workers.get((urgent, place)), edition()
        if worker is not None and worker.alive and worker.edition == now:
            return worker
        if worker is not None:
            worker.end()
        worker = self._workers[urgent, place] = Worker(not urgent, self.limits, now)
        return worker


@dataclass(slots=True)
class _Run:
    """What a job's worker is told, and tells."""

    job: WorkerJob
    queue: Queue
    place: int
    job_queue: JobQueue
    makes_way: bool = False
    since: float = field(default_factory=time.monotonic)

    def progress(self, share: float, words: str) -> None:
        self.job.share, self.job.words = share, words

    def must_stop(self) -> bool:
        """Whether nobody wants it any more, or it takes long in the place for what is quick."""
        quick_place = self.place == 0 and self.job_queue._each > 1
        if quick_place and time.monotonic() > self.since + self.job_queue.limits.quick_s:
            with self.job_queue._changed:
                self.makes_way = not self.job.stopped and self.queue.in_need_of(
                    self.job_queue._each
                )
        return self.job.stopped or self.makes_way
