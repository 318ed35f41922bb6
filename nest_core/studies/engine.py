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
from nest_core.studies.solving import Stop, never
from nest_core.studies.study import Member, Study
from nest_core.studies.sweep import figures_of

__all__ = ["FAILED", "Answers", "Ended", "answers_of", "heed", "run"]

FAILED = "failed"
"""Status of a point whose worker found a defect, or died: it is computed again when asked again."""
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


@dataclass(eq=False, slots=True)
class _Task:
    """Points of one scenario: their keys, and what they turn."""

    member: Member
    points: list[tuple[str, dict[str, Any]]]
    tries: int = 0


def heed(stop: Any) -> None:
    """In a worker of its own process: end tasks early once an event is set."""
    global _stop
    _stop = stop.is_set


def answers_of(
    document: Mapping[str, Any], folder: Path | None, asked: Sequence[Mapping[str, Any]]
) -> list[Answer]:
    """What the search finds for a scenario under overrides, one after another.

    An answer has the fields of `nest_core.studies.points.Outcome`, plain JSON. Fewer than asked
    for where it was stopped.
    """
    prices, found = load_prices(), []
    for overrides in asked:
        if _stop():
            break
        try:
            scenario = resolve_scenario(document, overrides, folder)
            problem = scenario.problem()
            result = search(problem, scenario.space, time_limit_s=scenario.time_limit_s, stop=_stop)
            answer = figures_of(scenario, problem, result, prices)
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

    def add(self, task: _Task, found: Sequence[Answer]) -> None:
        """Keep what a task found: the first of its points, where it was stopped."""
        keyed = {key: answer for (key, _), answer in zip(task.points, found, strict=False)}
        self.answers.keep(keyed)
        self.computed += len(keyed)
        self.failed += sum(answer["status"] == FAILED for answer in found)
        self.tell(self.reused + self.computed, self.total)


def run(
    study: Study,
    answers: Answers,
    pool: Callable[[], AbstractContextManager[Executor]],
    workers: int,
    *,
    tell: Callable[[int, int], None],
    stop: Stop,
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
    """
    asked = dict(_asked(study))
    known = answers.known(asked)
    count = _Count(answers, len(asked), len(known), tell)
    tasks = deque(_tasks({key: asked[key] for key in asked if key not in known}, workers))
    suspects: deque[_Task] = deque()
    flying: dict[Future[list[Answer]], _Task] = {}
    tell(count.reused, count.total)
    with ExitStack() as opened:
        executor = opened.enter_context(pool()) if tasks else None
        while executor is not None and (tasks or suspects or flying) and not stop():
            # One by one after a death: whichever was in flight may have been the cause.
            while (suspects or tasks) and len(flying) < (1 if suspects else IN_FLIGHT * workers):
                task = (suspects or tasks).popleft()
                there = answers.known(key for key, _ in task.points)
                count.reused += len(there)
                task.points = [pair for pair in task.points if pair[0] not in there]
                if task.points:
                    flying[_submitted(executor, task)] = task
            done, _ = wait(flying, POLL_S, FIRST_COMPLETED)
            died: list[tuple[_Task, BaseException]] = []
            for future in done:
                task, error = flying.pop(future), future.exception()
                if error is None:
                    count.add(task, future.result())
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
    whole = count.reused + count.computed >= count.total
    return Ended(count.total, count.computed, count.reused, count.failed, whole)


def _submitted(executor: Executor, task: _Task) -> Future[list[Answer]]:
    turned = [overrides for _, overrides in task.points]
    try:
        return executor.submit(answers_of, task.member.document, task.member.folder, turned)
    except BrokenExecutor as error:  # a worker died while nothing was in flight
        broken: Future[list[Answer]] = Future()
        broken.set_exception(error)
        return broken


def _asked(study: Study) -> Iterator[tuple[str, tuple[Member, dict[str, Any]]]]:
    """Every answer that a study needs, by key."""
    for number in range(len(study)):
        overrides = study.overrides(number)
        for member in study.members:
            yield study.key(member, overrides), (member, overrides)


def _tasks(asked: Mapping[str, tuple[Member, dict[str, Any]]], workers: int) -> Iterator[_Task]:
    size = max(1, min(MOST_IN_TASK, math.ceil(len(asked) / (4 * workers))))
    by_member: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    members = {}
    for key, (member, overrides) in asked.items():
        members[id(member)] = member
        by_member.setdefault(id(member), []).append((key, overrides))
    for number, points in by_member.items():
        for first in range(0, len(points), size):
            yield _Task(members[number], points[first : first + size])
