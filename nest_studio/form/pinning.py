"""Pins: what a plan is held to on each axis, in a few words that the address has too.

``any`` leaves an axis free; ``up to 8`` bounds it; ``exactly 8`` pins it; ``2 or 4`` and
``4 to 16`` are lists and ranges. A person may type any of these, or the number alone, which pins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import parameter
from nest_studio.form.fields import ADDRESS, help_of

__all__ = ["ANY", "DEGREES", "PINS", "Pin", "pin_field", "pin_words", "pinned_value"]

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
"""Axes of few steps, the least first."""
PINS = {**DEGREES, "search.zero": "ZeRO", "search.recompute": "recompute"}
_USUAL = {"search.dp": 10, "search.pp": 6, "search.cp": 6, "search.ep": 6}
_RULE = "must be any, up to n, exactly n, n or m, or n to m"
_FORMS = (
    (re.compile(r"(?:exactly )?(\w+)"), lambda found: found[0]),
    (re.compile(r"(?:up to|at most|<=|≤) ?(\w+)"), lambda found: {"max": found[0]}),
    (re.compile(r"(\w+) to (\w+)"), lambda found: {"min": found[0], "max": found[1]}),
)


@dataclass(frozen=True, slots=True)
class Pin:
    """The field of a pin: texts that it can mean something by."""

    key: str

    def held(self, value: Any) -> tuple[Any] | None:
        """The text in its one spelling."""
        if not isinstance(value, str):
            return None
        try:
            told = pin_words(self.key, pinned_value(self.key, value))
        except InputError:
            return None
        return None if told is None else (told,)


def pinned_value(key: str, text: str) -> Any:
    """What a scenario file says for a pin's text; None for ``any``.

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
    said = " ".join(text.lower().split())
    if said in ("", ANY):
        return None
    if " or " in said:
        return [_one(key, part, text) for part in said.split(" or ")]
    for pattern, made in _FORMS:
        if found := pattern.fullmatch(said):
            value = made([_one(key, part, text) for part in found.groups()])
            return _among(key, value) if key in STEPS and isinstance(value, Mapping) else value
    raise _unread(key, text)


def pin_words(key: str, value: Any) -> str | None:
    """The text of what a file says; None where no text says it.

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
        case [one]:
            return pin_words(key, one)
        case [*several] if steps and all(one in steps for one in several):
            listed = tuple(one for one in steps if one in several)
            if listed == steps:
                return ANY
            return f"up to {listed[-1]}" if listed == steps[: len(listed)] else _joined(listed)
        case [*several] if all(_is_degree(key, one) for one in several):
            return _joined(several)
        case {"max": most, **rest} if _is_degree(key, most) and rest.get("min", 1) == 1:
            return f"up to {most}"
        case {"min": 1, **rest} if not rest:
            return ANY
        case {"min": least, "max": most} if _is_degree(key, least) and _is_degree(key, most):
            return f"{least} to {most}"
    return f"exactly {value}" if _is_degree(key, value) else None


def pin_field(key: str, standard: str, place: Any = st) -> str:
    """Draw a pin; what it says. A text without a meaning is said beside it and changes nothing."""
    raw = st.session_state.get(key)
    told, problem = _read(key, raw, standard)
    if raw is not None and told != raw:
        st.session_state[key] = told
    options = _options(key)
    options += tuple(one for one in dict.fromkeys((told, standard)) if one not in options)
    chosen = place.selectbox(
        PINS[key],
        options,
        options.index(standard),
        key=key,
        bind=ADDRESS,
        accept_new_options=True,
        help=f"any, up to n, exactly n, n or m, n to m. {help_of(parameter(key))}",
    )
    told, unread = _read(key, chosen, standard)  # an address is told to the widget alone
    if problem or unread:
        place.caption(f":red[{as_markdown(problem or unread)}]")
    return told


def _read(key: str, raw: object, standard: str) -> tuple[str, str]:
    """A text in its one spelling, or the standard and why the text means nothing."""
    if raw is None:
        return standard, ""
    try:
        return pin_words(key, pinned_value(key, str(raw))) or standard, ""
    except InputError as error:
        return standard, str(error)


def _options(key: str) -> tuple[str, ...]:
    if key in STEPS:
        steps = STEPS[key]
        exact = [f"exactly {one}" for one in steps]
        return (ANY, *exact, *(f"up to {one}" for one in steps[1:-1]))
    powers = [2**n for n in range(_USUAL.get(key, 5) + 1)]
    return (ANY, *(f"exactly {n}" for n in powers), *(f"up to {n}" for n in powers[1:]))


def _one(key: str, part: str, text: str) -> Any:
    value: Any = int(part) if part.isdecimal() else part
    if not _is_degree(key, value):
        if isinstance(value, int) and key in DEGREES:
            parameter(key).checked(value)  # says which bounds it has
        raise _unread(key, text)
    return value


def _is_degree(key: str, value: Any) -> bool:
    if key in STEPS:
        return any(type(one) is type(value) and one == value for one in STEPS[key])
    of = parameter(key)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and (of.low or 1) <= value <= (of.high or value)


def _among(key: str, bounds: Mapping[str, Any]) -> list[Any]:
    """The steps between two."""
    steps = STEPS[key]
    first = steps.index(bounds.get("min", steps[0]))
    return list(steps[first : steps.index(bounds["max"]) + 1])


def _joined(values: Any) -> str:
    return " or ".join(map(str, values))


def _unread(key: str, text: str) -> InputError:
    steps = f" of {_joined(STEPS[key])}" if key in STEPS else ""
    return InputError(key, _RULE + steps, text, "write one of these")
