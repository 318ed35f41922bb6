"""Studies in this process: an executor without workers, and answers that nobody keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from typing import Any

from nest_core.studies.engine import Answer

__all__ = ["Held", "Here"]


class Here(Executor):
    """This process as an executor: what is submitted is done at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As every executor's."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Held(dict[str, Answer]):
    """Answers by their keys, as long as this lives (`nest_core.studies.engine.Answers`)."""

    def known(self, keys: Iterable[str]) -> dict[str, Answer]:
        """Those that are there."""
        return {key: self[key] for key in keys if key in self}

    def keep(self, answers: Mapping[str, Answer]) -> None:
        """Keep some."""
        self.update(answers)
