"""Pins: what a plan is held to on each axis, in a few words that the address has too.

``any`` leaves an axis free; ``up to 8`` bounds it; ``exactly 8`` pins it; ``2 or 4`` and
``4 to 16`` are lists and ranges. A person may type any of these, or the number alone, which pins.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import parameter
from nest_studio.form.fields import Widget

__all__ = ["ANY", "DEGREES", "PINS", "Pin", "pin_words", "pinned_value"]

ANY = "any"
DEGREES = {
    "search.tp": "tp",
    "search.pp": "pp",
    "search.dp": "dp",
    "search.cp": "cp",
    "search.ep": "ep",
    "search.micro_batch_sequences": "micro-batch",
}
"""Axes of whole numbers, and what the form calls them."""
STEPS: Mapping[str, tuple[Any, ...]] = {
    "search.zero": (0, 1, 2, 3),
    "search.recompute": ("none", "selective", "full"),
}
"""Axes of few steps, the smallest first."""
PINS = {**DEGREES, "search.zero": "ZeRO", "search.recompute": "recompute"}
_USUAL = {"search.dp": 10, "search.pp": 6, "search.cp": 6, "search.ep": 6}
_RULE = "must be any, up to n, exactly n, n or m, or n to m"
_FORMS = (
    (re.compile(r"(?:exactly )?(\w+)"), lambda parts: parts[0]),
    (re.compile(r"(?:up to|at most|<=|≤) ?(\w+)"), lambda parts: {"max": parts[0]}),
    (re.compile(r"(\w+) to (\w+)"), lambda parts: {"min": parts[0], "max": parts[1]}),
)


@dataclass(frozen=True)
class Pin(Widget):
    """The field of a pin: texts that mean something on its axis.

    Parameters
    ----------
    key : str
        One of `PINS`.
    is_narrow : bool
        Whether its label leaves no room: pins stand in pairs.
    """

    key: str
    is_narrow: bool = False
    explains = True

    def fit(self, value: Any) -> tuple[Any] | None:
        """Return the text in its one spelling."""
        try:
            return self.shown(pinned_value(self.key, value)) if isinstance(value, str) else None
        except InputError:
            return None

    def shown(self, value: Any) -> tuple[Any] | None:
        """Return the text of what a file says."""
        words = pin_words(self.key, value)
        return None if words is None else (words,)

    def stated(self, value: Any) -> Any:
        """Return what a file says for the text; for ``any`` that the axis is free."""
        pinned = pinned_value(self.key, value)
        if pinned is not None:
            return pinned
        return list(STEPS[self.key]) if self.key in STEPS else {"min": 1}

    def draw(self, place: Any, label: str, standard: Any, **look: Any) -> Any:
        """Draw the pin; a text without a meaning is said below it and changes nothing."""
        raw = st.session_state.get(self.key)
        text, problem = self._read(standard if raw is None else raw, standard)
        if raw is not None and text != raw:
            st.session_state[self.key] = text
        options = tuple(dict.fromkeys((*_options(self.key), text, standard)))
        chosen = place.selectbox(
            label, options, options.index(standard), accept_new_options=True, **look
        )
        text, unread = self._read(
            chosen or standard, standard
        )  # only the widget sees what an address says
        if problem or unread:
            place.caption(f":red[{as_markdown(problem or unread)}]")
        return text

    def _read(self, raw: object, standard: str) -> tuple[str, str]:
        """Return a text in its one spelling, or the standard and why the text means nothing."""
        try:
            return pin_words(self.key, pinned_value(self.key, str(raw))) or standard, ""
        except InputError as error:
            return standard, str(error)


def pinned_value(key: str, text: str) -> Any:
    """Return what a scenario file says for a pin's text; None for ``any``.

    Raises
    ------
    InputError
        If the text means nothing, or a value that the axis does not have.

    Examples
    --------
    >>> pinned_value("search.tp", "up to 8"), pinned_value("search.tp", "8")
    ({'max': 8}, 8)
    >>> pinned_value("search.zero", "up to 1"), pinned_value("search.tp", "2 or 4")
    ([0, 1], [2, 4])
    """
    plain = " ".join(text.lower().split())
    if plain in ("", ANY):
        return None
    if " or " in plain:
        return [_degree(key, part, text) for part in plain.split(" or ")]
    for pattern, value_of in _FORMS:
        if match := pattern.fullmatch(plain):
            value = value_of([_degree(key, part, text) for part in match.groups()])
            if key not in STEPS or not isinstance(value, Mapping):
                return value
            steps = STEPS[key]
            return list(
                steps[steps.index(value.get("min", steps[0])) : steps.index(value["max"]) + 1]
            )
    raise _unread(key, text)


def pin_words(key: str, value: Any) -> str | None:
    """Return the text of what a file says; None where no text says it.

    Examples
    --------
    >>> pin_words("search.tp", {"max": 8}), pin_words("search.tp", None)
    ('up to 8', 'any')
    >>> pin_words("search.zero", [0, 1, 2, 3]), pin_words("search.zero", [0, 1])
    ('any', 'up to 1')
    """
    steps = STEPS.get(key)
    match value:
        case None:
            return ANY
        case [single]:
            return pin_words(key, single)
        case [*several] if steps and all(step in steps for step in several):
            chosen = tuple(step for step in steps if step in several)
            if chosen == steps:
                return ANY
            return f"up to {chosen[-1]}" if chosen == steps[: len(chosen)] else _joined(chosen)
        case [*several] if all(_is_degree(key, degree) for degree in several):
            return _joined(several)
        case {"max": high, **rest} if _is_degree(key, high) and rest.get("min", 1) == 1:
            return f"up to {high}"
        case {"min": 1, **rest} if not rest:
            return ANY
        case {"min": low, "max": high} if _is_degree(key, low) and _is_degree(key, high):
            return f"{low} to {high}"
    return f"exactly {value}" if _is_degree(key, value) else None


def _options(key: str) -> tuple[str, ...]:
    if key in STEPS:
        steps = STEPS[key]
        return (ANY, *(f"exactly {n}" for n in steps), *(f"up to {n}" for n in steps[1:-1]))
    powers = [2**n for n in range(_USUAL.get(key, 5) + 1)]
    return (ANY, *(f"exactly {n}" for n in powers), *(f"up to {n}" for n in powers[1:]))


def _degree(key: str, part: str, text: str) -> Any:
    value: Any = int(part) if part.isdecimal() else part
    if not _is_degree(key, value):
        if isinstance(value, int) and key in DEGREES:
            parameter(key).checked(value)  # says which bounds it has
        raise _unread(key, text)
    return value


def _is_degree(key: str, value: Any) -> bool:
    if key in STEPS:
        return any(type(step) is type(value) and step == value for step in STEPS[key])
    degree = parameter(key)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and (degree.low or 1) <= value <= (degree.high or value)


def _joined(values: Any) -> str:
    return " or ".join(map(str, values))


def _unread(key: str, text: str) -> InputError:
    steps = f" of {_joined(STEPS[key])}" if key in STEPS else ""
    return InputError(key, _RULE + steps, text, "write one of these")
