"""The Bill and the Use of Compare's rail: prices that a person types over the shipped list's.

Every field is text: what stands in it in grey is the list's figure, with its source in the help;
"no source" is a field that nobody fills for you. What cannot be is said in one sentence below its
field, and figures stand as they were. All are in the address, in front of them ``bill.``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.bill.own import OWN_PRICES, SOLD, OwnPrice, typed_number
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.scenario import ScenarioValues
from nest_studio.form.fields import ADDRESS, Choice, Text, settle
from nest_studio.form.folds import fold, put_back

__all__ = ["ORDERS_BY", "Typed", "bill_and_use", "use_prices"]

_OF = "bill."
_HOURS = f"{_OF}hours"
_OPTICS = f"{_OF}optics"
_MEDIA = "cabling.media"
_ORDER = f"{_OF}order"
_TOKENS = f"{_OF}tokens"
_LAST = "bill as last read"
AS_LISTED = "as listed"
ORDERS_BY: Mapping[str, str] = {
    AS_LISTED: "",
    "$ per M tokens": "price",
    "days to train": "days",
    "worst single failure": "failure",
}
"""Orders of the designs below the first, by what they are called in the core."""


@dataclass(frozen=True, slots=True)
class Typed:
    """What the rail asks for.

    Parameters
    ----------
    changes : mapping
        Of the price list, by dotted key.
    hours : float
        Share of the hours that train this model.
    tokens : float or None
        Of the training run.
    order : str
        Of the designs, as `ordered` takes it; empty: as listed.
    """

    changes: Mapping[str, float | str]
    hours: float
    tokens: float | None
    order: str


def bill_and_use(scenario: ScenarioValues | None) -> Typed:
    """Draw both folds; ``scenario`` is the first one's, whose server has a price or none."""
    changes: dict[str, float | str] = {}
    with fold("Bill", "fold-bill", opened=True) as summary:
        for row in _rows(OWN_PRICES):
            for place, one in zip(st.columns(len(row)), row, strict=True):
                with place:
                    changes |= _price(one, scenario)
        changes |= _optics()
        summary(f"{len(changes)} yours" if changes else "prices of 2026")
    with fold("Use", "fold-use", opened=True) as summary:
        left, right = st.columns(2)
        with left:
            hours = _hours()
        with right:
            changes |= _price(SOLD, scenario)
        tokens = _tokens()
        settle(_ORDER, Choice(tuple(ORDERS_BY)))
        order = st.selectbox(
            "Order by",
            tuple(ORDERS_BY),
            key=_ORDER,
            bind=ADDRESS,
            help="The first stays what others are read against; ties are said in the table.",
        )
        summary("what it trains")
    return Typed(changes, hours, tokens, ORDERS_BY[order])


def use_prices(inputs: Mapping[str, Any]) -> None:
    """Have the fields say what a notebook's cell asked for, for callbacks."""
    asked = dict(inputs.get("prices") or {})
    if inputs.get("device_usd") is not None:
        asked[OWN_PRICES[0].key] = inputs["device_usd"]
    for one in (*OWN_PRICES, SOLD):
        value = asked.get(one.key)
        st.session_state[_key(one)] = "" if value is None else f"{value * one.scale:.10g}"
    st.session_state[_OPTICS] = asked.get(_MEDIA)


def _rows(every: Sequence[OwnPrice]) -> list[Sequence[OwnPrice]]:
    """The first alone, the others in twos."""
    return [every[:1], *(every[at : at + 2] for at in range(1, len(every), 2))]


def _key(one: OwnPrice) -> str:
    return f"{_OF}{one.name}"


def _price(one: OwnPrice, scenario: ScenarioValues | None) -> dict[str, float]:
    """What a field changes; what it last changed while it holds what cannot be."""
    accelerator = scenario.accelerator.name if scenario else ""
    per_node = int(getattr(scenario.fabric, "devices_per_node", 0)) if scenario else 0
    shown, source = one.listed(accelerator, per_node)
    unit = "" if one.unit == "1" else f", {one.unit}"
    text = _text(
        _key(one),
        f"{one.title}{unit}",
        shown or "no source",
        source or "No public source states it: empty until you have one.",
    )
    return _read(_key(one), lambda: one.read(text)) or {}


def _text(key: str, label: str, placeholder: str, about: str) -> str:
    settle(key, Text())
    with put_back(key, {key: ""}):
        return (
            st.text_input(
                label,
                "",
                key=key,
                bind=ADDRESS,
                placeholder=placeholder,
                help=as_markdown(about),
                max_chars=40,
            )
            or ""
        )


def _read(key: str, read: Any) -> Any:
    """What a text means; below the field why it means nothing, and then what it last meant."""
    kept: dict[str, Any] = st.session_state.setdefault(_LAST, {})
    try:
        kept[key] = read()
    except InputError as error:
        st.error(as_markdown(error))
    return kept.get(key)


def _optics() -> dict[str, str]:
    media = load_prices().media
    settle(_OPTICS, Choice(media, empty=True))
    with put_back(_OPTICS, {_OPTICS: None}):
        picked = st.selectbox(
            "Optics and cables",
            media,
            index=None,
            key=_OPTICS,
            bind=ADDRESS,
            placeholder=f"as listed: {load_prices().cabling.media}",
            help="What links between switches are made of, wherever its reach and rate allow it; "
            "prices, watts and failures of each in the list.",
        )
    return {} if picked is None else {_MEDIA: picked}


def _hours() -> float:
    text = _text(
        _HOURS,
        "This model, %",
        "100",
        "Share of its hours in which the cluster trains this model; for the rest an accelerator "
        "is worth as much in every design.",
    )

    def read() -> float:
        share = typed_number("This model", text) / 100 if text.strip() else 1.0
        if not 0 <= share <= 1:
            raise InputError("This model", "must be from 0 to 100 %", text.strip(), "change it")
        return share

    found: float | None = _read(_HOURS, read)
    return 1.0 if found is None else found


def _tokens() -> float | None:
    text = _text(
        _TOKENS,
        "Tokens of the training run",
        "20 per parameter",
        "Of which days and dollars are told: 15e12, or 1,400,000 M.",
    )

    def read() -> float | None:
        if not text.strip():
            return None
        count = typed_number("Tokens of the training run", text)
        if not 1 <= count <= 1e18:
            raise InputError(
                "Tokens of the training run", "must be from 1 to 1e18", text.strip(), "change it"
            )
        return count

    found: float | None = _read(_TOKENS, read)
    return found
