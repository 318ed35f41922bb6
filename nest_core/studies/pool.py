"""Who computes a study: an executor that is opened, and how many tasks it takes at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

__all__ = ["SerialExecutor", "WorkerPool"]


class SerialExecutor(Executor):
    """Runs every task in this process while it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See `concurrent.futures.Executor.submit`; errors are raised here."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _in_process() -> AbstractContextManager[Executor]:
    return nullcontext(SerialExecutor())


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

    open: Callable[[], AbstractContextManager[Executor]] = _in_process
    workers: int = 1

    @classmethod
    def of(cls, executor: Executor | None, workers: int = 1) -> WorkerPool:
        """Return the pool of an executor that its maker closes; this process without one."""
        return cls() if executor is None else cls(lambda: nullcontext(executor), workers)
