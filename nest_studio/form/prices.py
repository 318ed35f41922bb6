"""The Bill and the Use of Compare's rail: prices that a person types over the shipped list's.

Every field is text: what stands in it in grey is the list's figure, with its source in the help;
"no source" is a field that nobody fills for you. What cannot be is said in one sentence below its
field, and figures stand as they were. All are in the address, in front of them ``bill.``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import streamlit as st

from nest_core.bill.own import OWN_PRICES, SOLD, OwnPrice, typed_number, typed_percent
from nest_core.bill.ownership import devices_of_node
from nest_core.bill.prices import load_prices
from nest_core.documents import as_markdown, preset_names, require
from nest_core.documents.failures import DEFAULT, load_failures
from nest_core.scenario import ScenarioValues
from nest_core.studies.ranking import MAX_LOSS
from nest_studio.components.show import told
from nest_studio.form.fields import OneOf, Text, fold, widget

__all__ = ["TypedPrices", "bill_and_use", "use_prices"]

T = TypeVar("T")
_OF = "bill."
_HOURS = f"{_OF}hours"
_OPTICS = f"{_OF}optics"
_MEDIA = "cabling.media"
_MAX_LOSS = f"{_OF}max_loss"
_TOKENS = f"{_OF}tokens"
_FAILURES = f"{_OF}failures"
_SPARES = f"{_OF}spare_hosts"
SPARES = "failures.recovery.spare_hosts.value"
_LAST = "bill as last read"


@dataclass(frozen=True, slots=True)
class TypedPrices:
    """What the rail asks for.

    Parameters
    ----------
    changes : mapping
        Of the price list, by dotted key.
    assumed : mapping
        As `Comparison.at` takes it.
    """

    changes: Mapping[str, float | str]
    assumed: Mapping[str, Any]


def bill_and_use(scenario: ScenarioValues | None) -> TypedPrices:
    """Draw both folds; ``scenario`` is the first one's, whose server has a price or none."""
    changes: dict[str, float | str] = {}
    listed, of = load_prices(), ("", 0)
    if scenario:
        of = scenario.accelerator.name, devices_of_node(scenario.fabric, listed)
    with fold("Bill", "fold-bill", opened=True) as summary:
        for start in (0, *range(1, len(OWN_PRICES), 2)):  # the first alone, the others in twos
            row = OWN_PRICES[start : start + 2 if start else 1]
            for column, price in zip(st.columns(len(row)), row, strict=True):
                changes |= _price(price, of, column)
        optics = widget(
            _OPTICS,
            OneOf(listed.media, empty=True),
            None,
            label="Optics and cables",
            marked=True,
            placeholder=f"as listed: {listed.cabling.media}",
            help="What links between switches are made of, wherever its reach and rate allow it; "
            "prices, watts and failures of each in the list.",
        )
        if optics is not None:
            changes[_MEDIA] = optics
        summary(f"{len(changes)} yours" if changes else "prices of 2026")
    with fold("Use", "fold-use", opened=True) as summary:
        first, second = st.columns(2)
        hours = _typed(
            _HOURS,
            first,
            "This model, %",
            "100",
            "Share of its hours in which the cluster trains this model; for the rest an "
            "accelerator is worth as much in every design.",
            lambda text: _number("This model", text, 0, 100, "0 to 100 %"),
        )
        changes |= _price(SOLD, of, second)
        tokens = _typed(
            _TOKENS,
            st,
            "Tokens of the training run",
            "20 per parameter",
            "Of which days and dollars are told: 15e12, or 1,400,000 M.",
            lambda text: _number("Tokens of the training run", text, 1, 1e18, "1 to 1e18"),
        )
        lost = _typed(
            _MAX_LOSS,
            st,
            "Worst single failure, %",
            f"{100 * MAX_LOSS:g}",
            "Of designs that tie, those whose worst single failure costs less of the throughput "
            "go first.",
            lambda text: _number("Worst single failure", text, 0, 100, "0 to 100 %"),
        )
        failures = _failures(scenario)
        summary("what it trains")
    assumed = {
        "hours": 1.0 if hours is None else hours / 100,
        "max_loss": MAX_LOSS if lost is None else lost / 100,
        "tokens": tokens,
        **failures,
    }
    return TypedPrices(changes, assumed)


def _failures(scenario: ScenarioValues | None) -> dict[str, Any]:
    """Draw whose failures days are with, and how many hosts stand by; return the overrides."""
    name = widget(
        _FAILURES,
        OneOf(preset_names("failures"), empty=True),
        None,
        label="Failures",
        marked=True,
        placeholder="as the scenarios",
        help="Whose counted failures, spares and repairs days and dollars are with; a scenario "
        f"that names none has those of {DEFAULT}.",
    )
    share = (
        scenario.failures if scenario and not name else load_failures(name or DEFAULT)
    ).recovery.spare_hosts
    spares = _typed(
        _SPARES,
        st,
        "Spare nodes, %",
        f"{100 * share.value:.4g}",
        f"Over those in use, bought and standing by: {share.source}.",
        lambda text: _number("Spare nodes", text, 0, 100, "0 to 100 %"),
    )
    overrides = {"failures": name, SPARES: None if spares is None else spares / 100}
    return {key: value for key, value in overrides.items() if value is not None}


def use_prices(inputs: Mapping[str, Any]) -> None:
    """Have the fields say what a notebook's cell asked for, for callbacks."""
    prices = dict(inputs.get("prices") or {})
    if inputs.get("device_usd") is not None:
        prices[OWN_PRICES[0].key] = inputs["device_usd"]
    for price in (*OWN_PRICES, SOLD):
        st.session_state[f"{_OF}{price.name}"] = _typed_text(prices.get(price.key), price.scale)
    st.session_state[_OPTICS] = prices.get(_MEDIA)
    assumed = dict(inputs.get("assumed") or {})
    st.session_state[_FAILURES] = assumed.get("failures")
    for key, name, scale in (
        (_HOURS, "hours", 100),
        (_MAX_LOSS, "max_loss", 100),
        (_TOKENS, "tokens", 1),
        (_SPARES, SPARES, 100),
    ):
        st.session_state[key] = _typed_text(assumed.get(name), scale)


def _typed_text(value: float | None, scale: float) -> str:
    """Return what a person types for a value; percent below 1 have their sign."""
    sign = " %" if value and scale == 100 and value < 0.01 else ""
    return "" if value is None else f"{value * scale:.10g}{sign}"


def _price(price: OwnPrice, of: tuple[str, int], place: Any) -> dict[str, float]:
    """Return what a field changes; what it last changed while it has what cannot be.

    ``of`` is the accelerator's name and how many a node has.
    """
    listed, source = price.listed(*of)
    label = price.title if price.unit == "1" else f"{price.title}, {price.unit}"
    return (
        _typed(
            f"{_OF}{price.name}",
            place,
            label,
            listed or "no source",
            source or "No public source states it: empty until you have one.",
            price.read,
        )
        or {}
    )


def _number(label: str, text: str, low: float, high: float, bounds: str) -> float | None:
    """Return the number that a text says; None for an empty one."""
    if not text.strip():
        return None
    number = (typed_percent if bounds.endswith("%") else typed_number)(label, text)
    require(low <= number <= high, label, f"must be from {bounds}", text.strip(), "change it")
    return number


def _typed(
    key: str, place: Any, label: str, placeholder: str, about: str, read: Callable[[str], T]
) -> T | None:
    """Return what a field means; below it why it means nothing, and then what it last did."""
    text = widget(
        key,
        Text(),
        "",
        place=place,
        label=label,
        marked=True,
        placeholder=placeholder,
        help=as_markdown(about),
        max_chars=40,
    )
    values: dict[str, Any] = st.session_state.setdefault(_LAST, {})
    with told(place.error):
        values[key] = read(text)
    return values.get(key)
