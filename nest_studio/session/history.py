"""Steps that can be taken back and made again: of a form, a drawn fabric, a list of scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["STEPS", "History"]

STEPS = 100
"""Steps that are kept."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class History(Generic[T]):
    """A value with the values before it, and those that were taken back.

    Parameters
    ----------
    present : T
    past : tuple of T
        Oldest first.
    future : tuple of T
        The next first.
    """

    present: T
    past: tuple[T, ...] = ()
    future: tuple[T, ...] = ()

    def changed(self, value: T) -> History[T]:
        """Return the history with one more step, after which nothing is to be made again."""
        return History(value, (*self.past, self.present)[-STEPS:])

    def undone(self) -> History[T]:
        """Return the history one step before; itself at the first."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.present, *self.future))

    def redone(self) -> History[T]:
        """Return the history after the step that was taken back last; itself where none was."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.present), self.future[1:])
