"""What the fields of forms take: the one place where a value from outside becomes a form's.

Links, notebooks and comparisons set widgets by key, and a browser sends what its last controls
held, which those drawn now need not have. Whatever it is, `settle` lets a widget see only what its
field takes, and `said` hands a callback nothing else. The bounds that widgets show are these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Protocol

import streamlit as st

from nest_core.documents.schema import Parameter
from nest_core.documents.units import capital
from nest_core.explain.settings import worth_of

__all__ = [
    "ADDRESS",
    "Choice",
    "Edits",
    "Field",
    "Number",
    "Several",
    "Text",
    "choice_of",
    "field_of",
    "help_of",
    "hold",
    "label_of",
    "number_of",
    "one_of",
    "said",
    "settle",
    "upload",
]

ADDRESS: Any = "query-params"
"""What binds a widget to the address."""


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


@dataclass(frozen=True, slots=True)
class Text:
    """Text, or None."""

    def held(self, value: Any) -> tuple[Any] | None:
        """The text."""
        return (value,) if value is None or isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Edits:
    """Edits of a table of so many rows, as Streamlit's editor tells them, by its columns' fields.

    Rows are added and deleted only in one that ``grows``.
    """

    rows: int
    columns: Mapping[str, Field]
    grows: bool = False

    def held(self, value: Any) -> tuple[Any] | None:
        """The edits."""
        if not isinstance(value, Mapping):
            return None
        changed, added, gone = (
            value.get(part) for part in ("edited_rows", "added_rows", "deleted_rows")
        )
        if not isinstance(changed, Mapping) or not isinstance(added, list):
            return None
        place = Number(0, self.rows - 1)
        if not isinstance(gone, list) or not all(map(place.held, (*changed, *gone))):
            return None
        fits = all(map(self._row, (*changed.values(), *added)))
        return (value,) if fits and (self.grows or not (added or gone)) else None

    def _row(self, cells: Any) -> bool:
        return isinstance(cells, Mapping) and all(
            name in self.columns and self.columns[name].held(cell) for name, cell in cells.items()
        )


def field_of(of: Parameter, *, empty: bool = False) -> Field:
    """What a widget of a parameter takes."""
    if of.choices or of.kind is bool:
        return Choice(of.options)
    return Number(of.low or of.kind(0), of.high or of.kind(0), empty)


def label_of(of: Parameter) -> str:
    """What a widget of a parameter is called."""
    return capital(of.title)


def help_of(of: Parameter) -> str:
    """What a parameter does, and what it was worth where it was measured."""
    return f"{of.text} {worth_of(of.key)}".strip()


def number_of(
    of: Parameter, value: Any, step: float, *, key: str = "", place: Any = st, **look: Any
) -> Any:
    """A number of a parameter, bound to the address under its key or another.

    ``look`` goes to the widget, and over what the catalogue says.
    """
    said_of = {"label": label_of(of), "help": f"{of.allowed}. {help_of(of)}", "bind": ADDRESS}
    return place.number_input(
        min_value=of.low,
        max_value=of.high,
        value=value,
        step=of.kind(step),
        key=key or of.key,
        **(said_of | look),
    )


def choice_of(of: Parameter, standard: Any, *, key: str = "", **look: Any) -> Any:
    """One of a parameter's choices, likewise."""
    return st.selectbox(
        label_of(of),
        of.options,
        of.options.index(standard),
        key=key or of.key,
        bind=ADDRESS,
        help=help_of(of),
        **look,
    )


def settle(key: str, field: Field) -> None:
    """Forget what the session holds under a widget's key if its field cannot; before drawing it."""
    if key in st.session_state and field.held(st.session_state[key]) is None:
        del st.session_state[key]


def said(key: str, field: Field) -> Any:
    """What a widget says, for callbacks; None where it is gone, or holds what it cannot."""
    held = field.held(st.session_state.get(key))
    return held[0] if held else None


def hold(key: str, value: Any) -> None:
    """Have the session hold a value, for callbacks."""
    st.session_state[key] = value


def one_of(
    place: Any, label: str, options: Sequence[Any], default: Any, key: str, **look: Any
) -> Any:
    """One of some options in a row; the default too where an address leaves its word out."""
    settle(key, Choice(options))
    chosen = place.segmented_control(
        label, options, default=default, required=True, key=key, **look
    )
    return default if chosen is None else chosen


def upload(value: Any) -> Any:
    """The file that an uploader says; None also where the server does not have it, or no more."""
    return value if isinstance(value, BytesIO) else None


def _same(option: Any, value: Any) -> bool:
    """Equal and of one type: 1 is neither True nor 1.0 here."""
    return type(option) is type(value) and bool(option == value)
