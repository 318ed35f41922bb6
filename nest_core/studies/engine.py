"""Points of a study handed out to workers, and their answers kept as they come.

Workers are any `concurrent.futures.Executor`'s: processes of this machine, or a cluster's. What is
computed does not depend on them. A task is some points of one scenario, so that what neighbours
share is made once; a bounded number is in flight. A task whose worker died is tried again by
itself, twice: then its points have failed, and the study goes on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nest_core.bill.prices import load_prices
from nest_core.errors import InputError
from nest_core.planner import search
from nest_core.scenario import resolve_scenario
from nest_core.studies.failures import losses, worst_of
from nest_core.studies.solving import Stop, never
from nest_core.studies.study import Member, Study
from nest_core.studies.sweep import figures_of

__all__ = ["BEYOND", "FAILED", "Answers", "Ended", "answers_of", "heed", "run"]

FAILED = "failed"
"""Status of a point whose worker found a defect, died, or came to no end within a limit: it is
computed again when asked again.
"""
BEYOND = "beyond"
"""Status of a point that was planned within a limit, and has no plan there: nor is it kept."""
TRIES = 3
MOST_IN_TASK = 200
"""And at least 50, where every worker has four such tasks."""
IN_FLIGHT = 2
"""Tasks for every worker."""
POLL_S = 0.2

Answer = dict[str, Any]
_stop: Stop = never


class Answers(Protocol):
    """Where answers are kept, by the key of what they depend on."""

    def known(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Those that are there."""

    def keep(self, answers: Mapping[str, Answer]) -> None:
        """Keep some, for good once this returns."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a study's points.

    Parameters
    ----------
    points, computed, reused, failed : int
        All; computed now; found in the store; failed of all that were asked for.
    whole : bool
        False where it was stopped before its end.
    """

    points: int
    computed: int
    reused: int
    failed: int
    whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """The key of an answer, the point that first asks for it, and what that turns."""

    key: str
    number: int
    overrides: dict[str, Any]


@dataclass(eq=False, slots=True)
class _Task:
    """Points of one scenario."""

    member: Member
    points: list[_Point]
    failures: bool
    tries: int = 0


def heed(stop: Stop) -> None:
    """In a worker of its own process: end tasks early once this is true."""
    global _stop
    _stop = stop


def answers_of(
    document: Mapping[str, Any],
    folder: Path | None,
    asked: Sequence[Mapping[str, Any]],
    within_s: Sequence[float],
    failures: bool,
) -> list[Answer]:
    """What the search finds for a scenario under overrides, one after another.

    An answer has the fields of `nest_core.studies.points.Outcome`, plain JSON; where ``failures``
    are asked for, ``worst_loss`` as well: None where the fabric does not say its switches. A plan
    that takes longer than the limit of its point is not looked for. Fewer than asked for where it
    was stopped.
    """
    prices, found = load_prices(), []
    for overrides, limit in zip(asked, within_s, strict=True):
        if _stop():
            break
        try:
            scenario = resolve_scenario(document, overrides, folder)
            problem = scenario.problem()
            result = search(
                problem,
                scenario.space,
                time_limit_s=scenario.time_limit_s,
                within_s=limit,
                stop=_stop,
            )
            answer = figures_of(scenario, problem, result, prices)
            if result.best is None and limit < math.inf:  # of the limit, not of the scenario
                answer["status"] = BEYOND if result.certificate.proven else FAILED
            if failures and result.best is not None:
                lost = losses(document, overrides, folder, scenario, result.best, stop=_stop)
                worst = worst_of(lost)
                answer["worst_loss"] = worst[0] if worst else None
        except InputError as error:
            answer = {"status": "invalid", "reason": str(error)}
        except Exception as error:  # a defect costs its point, and says which
            answer = {"status": FAILED, "reason": f"{type(error).__name__}: {error}"[:500]}
        if _stop() and not answer.get("proven", True):
            break
        found.append(answer)
    return found


@dataclass(slots=True)
class _Count:
    """What is known so far."""

    answers: Answers
    total: int
    reused: int
    tell: Callable[[int, int], None]
    computed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, task: _Task, found: Sequence[Answer]) -> None:
        """Keep what a task found: the first of its points, where it was stopped."""
        pairs = zip(task.points, found, strict=False)
        keyed = {point.key: answer for point, answer in pairs}
        self.answers.keep(keyed)
        self.computed += len(keyed)
        self.failed += sum(answer["status"] == FAILED for answer in found)
        self.tell(self.known, self.total)

    @property
    def known(self) -> int:
        """Points whose fate is known."""
        return self.reused + self.computed + self.skipped


def run(
    study: Study,
    answers: Answers,
    pool: Callable[[], AbstractContextManager[Executor]],
    workers: int,
    *,
    tell: Callable[[int, int], None],
    stop: Stop,
    within: Callable[[int, Member], float] = lambda _, __: math.inf,
    together: int = MOST_IN_TASK,
) -> Ended:
    """Answer all points of a study.

    Parameters
    ----------
    study : Study
    answers : Answers
        What is there is not computed again, whoever put it there; asked anew for every task, so
        that two runs of one study share.
    pool : callable () -> context of Executor
        Called again where one broke.
    workers : int
        That the pool has.
    tell : callable (answered, all)
    stop : callable () -> bool
        Asked several times a second; what is there by then stays.
    within : callable (point, member) -> float, optional
        Seconds per iteration beyond which no plan is needed, 0 for none at all; asked before a
        point is handed out, which happens in order.
    together : int
        Points of a task at most.
    """
    asked: dict[str, tuple[Member, _Point]] = {}
    for member, point in _asked(study):
        asked.setdefault(point.key, (member, point))
    known = answers.known(asked)
    count = _Count(answers, len(asked), len(known), tell)
    left = [pair for key, pair in asked.items() if key not in known]
    tasks = deque(_tasks(study, left, max(1, min(together, math.ceil(len(left) / (4 * workers))))))
    suspects: deque[_Task] = deque()
    flying: dict[Future[list[Answer]], _Task] = {}
    tell(count.reused, count.total)
    with ExitStack() as opened:
        executor = opened.enter_context(pool()) if tasks else None
        while executor is not None and (tasks or suspects or flying) and not stop():
            # One by one after a death: whichever was in flight may have been the cause.
            while (suspects or tasks) and len(flying) < (1 if suspects else IN_FLIGHT * workers):
                task = (suspects or tasks).popleft()
                there = answers.known(point.key for point in task.points)
                count.reused += len(there)
                new = [point for point in task.points if point.key not in there]
                limits = {point: within(point.number, task.member) for point in new}
                task.points = [point for point in new if limits[point] > 0.0]
                count.skipped += len(new) - len(task.points)
                if task.points:
                    limited = [limits[point] for point in task.points]
                    flying[_submitted(executor, task, limited)] = task
            done, _ = wait(flying, POLL_S, FIRST_COMPLETED)
            died: list[tuple[_Task, BaseException]] = []
            for future in done:
                task, error = flying.pop(future), future.exception()
                if error is None:
                    found = future.result()
                    count.add(task, found)
                    if len(found) < len(task.points) and not stop():
                        tasks.extendleft(_rest(task, found, count))
                else:
                    died.append((task, error))
            broke = next((each for _, each in died if isinstance(each, BrokenExecutor)), None)
            if broke is not None:
                died += [(task, broke) for task in flying.values()]
                flying.clear()
                opened.close()
                executor = opened.enter_context(pool())
            for task, error in died:
                task.tries += 1
                if task.tries < TRIES:
                    suspects.append(task)
                    continue
                why = f"its worker ended {TRIES} times ({type(error).__name__})"
                count.add(task, [{"status": FAILED, "reason": why}] * len(task.points))
        for future, task in flying.items():
            if not future.cancel() and future.exception() is None:  # waits: it was told to end
                count.add(task, future.result())
    whole = count.known >= count.total
    return Ended(count.total, count.computed, count.reused, count.failed, whole)


def _submitted(executor: Executor, task: _Task, within_s: Sequence[float]) -> Future[list[Answer]]:
    turned = [point.overrides for point in task.points]
    scenario = task.member.document, task.member.folder
    try:
        return executor.submit(answers_of, *scenario, turned, within_s, task.failures)
    except BrokenExecutor as error:  # a worker died while nothing was in flight
        broken: Future[list[Answer]] = Future()
        broken.set_exception(error)
        return broken


def _rest(task: _Task, found: Sequence[Answer], count: _Count) -> Iterator[_Task]:
    """What a task that was cut short has left; the point that it was at, if it came to none."""
    left = task.points[len(found) :]
    if not found:
        slow = _Task(task.member, left[:1], task.failures)
        count.add(slow, [{"status": FAILED, "reason": "it takes longer than a task may here"}])
        left = left[1:]
    if left:
        yield _Task(task.member, left, task.failures)


def _asked(study: Study) -> Iterator[tuple[Member, _Point]]:
    """Every answer that a study needs."""
    for number in range(len(study)):
        overrides = study.overrides(number)
        for member in study.members:
            yield member, _Point(study.key(member, overrides), number, overrides)


def _tasks(study: Study, asked: Sequence[tuple[Member, _Point]], size: int) -> Iterator[_Task]:
    """Points of every scenario, so many a task; of a mix, point by point for all its members."""
    by_member: dict[str, list[_Point]] = {member.name: [] for member in study.members}
    for member, point in asked:
        by_member[member.name].append(point)
    longest = max(map(len, by_member.values()), default=0)
    for first in range(0, longest, size):
        for member in study.members:
            if points := by_member[member.name][first : first + size]:
                yield _Task(member, points, study.failures)
