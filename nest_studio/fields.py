"""What the fields of forms take: the one place where a value from outside becomes a form's.

Links, notebooks and comparisons set widgets by key, and a browser sends what its last controls
held, which those drawn now need not have. Whatever it is, `settle` lets a widget see only what its
field takes, and `said` hands a callback nothing else. The bounds that widgets show are these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import streamlit as st

__all__ = ["Choice", "Field", "Number", "Several", "said", "settle"]


class Field(Protocol):
    """What a widget takes."""

    def held(self, value: Any) -> tuple[Any] | None:
        """The value as the widget holds it, in a tuple; None where it cannot hold it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some options; None too where it may be empty."""

    options: Sequence[Any]
    empty: bool = False

    def held(self, value: Any) -> tuple[Any] | None:
        """The option."""
        if value is None:
            return (None,) if self.empty else None
        return next(((one,) for one in self.options if _same(one, value)), None)


@dataclass(frozen=True, slots=True)
class Several:
    """Some of the options, each once; a single one counts as a list of it."""

    options: Sequence[Any]
    most: int | None = None

    def held(self, value: Any) -> tuple[Any] | None:
        """The list."""
        listed = list(value) if isinstance(value, list | tuple) else [value]
        known = all(any(_same(one, entry) for one in self.options) for entry in listed)
        if not known or len(set(listed)) < len(listed) or len(listed) > (self.most or len(listed)):
            return None
        return (listed,)


@dataclass(frozen=True, slots=True)
class Number:
    """A number from ``least`` to ``most``, whole where they are; None too where it may be empty."""

    least: float
    most: float
    empty: bool = False

    def held(self, value: Any) -> tuple[Any] | None:
        """The number, of the type of its bounds."""
        if value is None:
            return (None,) if self.empty else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not self.least <= value <= self.most:  # NaN lies nowhere
            return None
        kind = type(self.least)
        return (kind(value),) if kind(value) == value else None


def settle(key: str, field: Field) -> None:
    """Forget what the session holds under a widget's key if its field cannot; before drawing it."""
    if key in st.session_state and field.held(st.session_state[key]) is None:
        del st.session_state[key]


def said(key: str, field: Field) -> Any:
    """What a widget says, for callbacks; None where it is gone, or holds what it cannot."""
    held = field.held(st.session_state.get(key))
    return held[0] if held else None


def _same(option: Any, value: Any) -> bool:
    """Equal and of one type: 1 is neither True nor 1.0 here."""
    return type(option) is type(value) and bool(option == value)
