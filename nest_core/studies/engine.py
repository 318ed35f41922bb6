"""Points of a study handed out to workers, and their rows kept as they come.

Workers are any `concurrent.futures.Executor`'s: this process, processes of this machine, or a
cluster's. What is computed does not depend on them. A task is some points of one scenario, so that
what neighbours share is made once; a bounded number is in flight. A task whose worker died is tried
again by itself, twice: then its points have failed, and the study goes on.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

from nest_core.bill.ownership import owned
from nest_core.bill.prices import load_prices
from nest_core.documents import InputError, grouped
from nest_core.planner import search
from nest_core.reliability.goodput import estimate
from nest_core.scenario import Scenario
from nest_core.studies.failures import worst_failure
from nest_core.studies.rows import RowCache, StudyRow, planned_row
from nest_core.studies.solving import Stop, never
from nest_core.studies.study import EFFECTIVE, StudyPoint
from nest_core.studies.uncertainty import sureness_of

__all__ = [
    "SerialExecutor",
    "StudyProgress",
    "WorkerPool",
    "heed",
    "plan_points",
    "run",
]


class SerialExecutor(Executor):
    """Runs every task in this process while it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See `concurrent.futures.Executor.submit`; errors are raised here."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """Workers of a study; by default this process.

    Parameters
    ----------
    open : callable () -> context of Executor
        Called again where the executor broke.
    workers : int
        Tasks that it computes at a time.
    """

    open: Callable[[], AbstractContextManager[Executor]] = lambda: nullcontext(SerialExecutor())
    workers: int = 1

    @classmethod
    def of(cls, executor: Executor | None, workers: int = 1) -> Self:
        """Return the pool of an executor that its maker closes; this process without one."""
        return cls() if executor is None else cls(lambda: nullcontext(executor), workers)


TRIES = 3
MAX_IN_TASK = 200
"""And at least 50, where every worker has four such tasks."""
IN_FLIGHT = 2
"""Tasks for every worker."""
POLL_S = 0.2

_stop: Stop = never


@dataclass(slots=True)
class StudyProgress:
    """How far a study is, and in the end what became of its points.

    Parameters
    ----------
    points, reused, computed, failed, skipped : int
        All; read from the cache; computed now; failed of all; those of which no plan was needed.
    """

    points: int
    reused: int
    computed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def answered(self) -> int:
        """Points whose fate is known."""
        return self.reused + self.computed + self.skipped

    @property
    def complete(self) -> bool:
        """Whether it was not stopped before its end."""
        return self.answered >= self.points


@dataclass(eq=False, slots=True)
class _Task:
    """Points of one scenario."""

    points: list[StudyPoint]
    tries: int = 0


def heed(stop: Stop) -> None:
    """Make the tasks of this worker process end early once ``stop()`` is true."""
    global _stop
    _stop = stop


def plan_points(
    base: Scenario,
    overrides: Sequence[Mapping[str, Any]],
    within_s: Sequence[float],
    details: Sequence[str] = (),
    stop: Stop | None = None,
) -> list[StudyRow]:
    """Plan a scenario under overrides, one after another.

    Parameters
    ----------
    base : Scenario
    overrides : sequence of mapping
    within_s : sequence of float
        Seconds per iteration beyond which no plan is looked for, for each of them.
    details : sequence of str
        As of `StudyPoint`.
    stop : callable () -> bool, optional
        Without it what `heed` was given.

    Returns
    -------
    list of StudyRow
        Fewer than asked for where it was stopped.
    """
    prices, rows, stop = load_prices(), [], stop or _stop
    for changes, limit in zip(overrides, within_s, strict=True):
        if stop():
            break
        try:
            scenario = replace(base, overrides=changes)
            values = scenario.values
            problem = values.problem()
            result = search(
                problem,
                values.space,
                time_limit_s=values.time_limit_s,
                within_s=limit,
                stop=stop,
            )
            more: dict[str, Any] = {}
            if result.best is None and limit < math.inf:  # of the limit, not of the scenario
                more["status"] = "beyond" if result.certificate.proven else "failed"
            if "worst_loss" in details and result.best is not None:
                spares = owned(
                    values.fabric, prices, values.accelerator.name, failures=values.failures
                ).spare_nodes
                lost = worst_failure(values, result.best.plan, spares, stop=stop)
                more["worst_loss"] = lost.least_loss if lost else None
            if EFFECTIVE in details and result.best is not None:
                of = estimate(problem, values.fabric, result.best.plan, values.failures)
                more["effective_share"] = of.shares.effective
            if "interval" in details and result.best is not None:
                more["sureness"] = sureness_of(values, problem, result.best)
            row = planned_row(values, problem, result, prices, **more)
        except InputError as error:
            row = StudyRow("invalid", str(error))
        except Exception as error:  # a defect costs its point, and says which
            row = StudyRow("failed", f"{type(error).__name__}: {error}"[:500])
        if stop() and not row.proven and row.status != "invalid":
            break
        rows.append(row)
    return rows


def run(
    points: Iterable[StudyPoint],
    cache: RowCache,
    pool: WorkerPool | None = None,
    *,
    tell: Callable[[int, int], None] = lambda _, __: None,
    stop: Stop = never,
    within: Callable[[StudyPoint], float] = lambda _: math.inf,
    together: int = MAX_IN_TASK,
) -> StudyProgress:
    """Plan all points.

    Parameters
    ----------
    points : iterable of StudyPoint
        Those of one key are planned once.
    cache : RowCache
        What is there is not computed again, whoever put it there; asked anew for every task, so
        that two runs of one study share.
    pool : WorkerPool, optional
        This process without one, point by point.
    tell : callable (answered, all)
    stop : callable () -> bool
        Asked several times a second; what is there by then stays.
    within : callable (point) -> float, optional
        Seconds per iteration beyond which no plan is needed, 0 for none at all; asked before a
        point is handed out, which happens in order.
    together : int
        Points of a task at most.
    """
    pool = pool or WorkerPool()
    unique: dict[str, StudyPoint] = {}
    for point in points:
        unique.setdefault(point.key, point)
    stored = cache.get(unique)
    progress = StudyProgress(len(unique), len(stored))

    def keep(task: _Task, rows: Sequence[StudyRow]) -> None:
        """Store what a task found: the first of its points, where it was stopped."""
        keyed = {point.key: row for point, row in zip(task.points, rows, strict=False)}
        cache.put(keyed)
        progress.computed += len(keyed)
        progress.failed += sum(row.status == "failed" for row in rows)
        tell(progress.answered, progress.points)

    missing = [point for key, point in unique.items() if key not in stored]
    suspects: deque[_Task] = deque()
    flying: dict[Future[list[StudyRow]], _Task] = {}
    tell(progress.reused, progress.points)
    with ExitStack() as opened:
        executor = opened.enter_context(pool.open()) if missing else None
        serial = isinstance(executor, SerialExecutor)
        size = 1 if serial else max(1, min(together, math.ceil(len(missing) / (4 * pool.workers))))
        at_once = 1 if serial else IN_FLIGHT * pool.workers
        tasks = deque(_tasks(missing, size))
        while executor is not None and (tasks or suspects or flying) and not stop():
            # One by one after a death: whichever was in flight may have been the cause.
            while (suspects or tasks) and len(flying) < (1 if suspects else at_once):
                task = (suspects or tasks).popleft()
                stored = cache.get(point.key for point in task.points)
                progress.reused += len(stored)
                new = [point for point in task.points if point.key not in stored]
                limits = {point: within(point) for point in new}
                task.points = [point for point in new if limits[point] > 0.0]
                progress.skipped += len(new) - len(task.points)
                if task.points:
                    flying[
                        _submitted(
                            executor,
                            task,
                            [limits[point] for point in task.points],
                            stop if serial else None,
                        )
                    ] = task
            done, _ = wait(flying, POLL_S, FIRST_COMPLETED)
            died: list[tuple[_Task, BaseException]] = []
            for future in done:
                task, error = flying.pop(future), future.exception()
                if error is None:
                    rows = future.result()
                    keep(task, rows)
                    if len(rows) < len(task.points) and not stop():
                        tasks.extendleft(_rest(task, rows, keep))
                else:
                    died.append((task, error))
            broke = next((error for _, error in died if isinstance(error, BrokenExecutor)), None)
            if broke is not None:
                died += [(task, broke) for task in flying.values()]
                flying.clear()
                opened.close()
                executor = opened.enter_context(pool.open())
            for task, error in died:
                task.tries += 1
                if task.tries < TRIES:
                    suspects.append(task)
                    continue
                keep(
                    task,
                    [StudyRow("failed", f"its worker ended {TRIES} times ({type(error).__name__})")]
                    * len(task.points),
                )
        for future, task in flying.items():
            if not future.cancel() and future.exception() is None:  # waits: it was told to end
                keep(task, future.result())
    return progress


def _submitted(
    executor: Executor, task: _Task, within_s: Sequence[float], stop: Stop | None
) -> Future[list[StudyRow]]:
    first, overrides = task.points[0], [point.overrides for point in task.points]
    base = first.member.scenario
    try:
        return executor.submit(plan_points, base, overrides, within_s, first.details, stop)
    except BrokenExecutor as error:  # a worker died while nothing was in flight
        broken: Future[list[StudyRow]] = Future()
        broken.set_exception(error)
        return broken


def _rest(
    task: _Task, rows: Sequence[StudyRow], keep: Callable[[_Task, Sequence[StudyRow]], None]
) -> Iterator[_Task]:
    """Yield what a task that was cut short leaves; the point that it was at, if it came to none."""
    rest = task.points[len(rows) :]
    if not rows:
        keep(_Task(rest[:1]), [StudyRow("failed", "it takes longer than a task may here")])
        rest = rest[1:]
    if rest:
        yield _Task(rest)


def _tasks(points: Iterable[StudyPoint], size: int) -> Iterator[_Task]:
    """Yield points of every scenario, so many a task; of a mix, by turns for all its members."""
    by_member = grouped((point.member.name, point) for point in points)
    longest = max(map(len, by_member.values()), default=0)
    for first in range(0, longest, size):
        parts = (member_points[first : first + size] for member_points in by_member.values())
        yield from map(_Task, filter(None, parts))
