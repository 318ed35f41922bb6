"""Prices that a person types: read from text, checked one by one against the price list's rules.

A field is a figure of the shipped list (`nest_core.bill.prices`); what is typed replaces its
typical value and drops its ends. What no source states has no figure in the list, and its field is
empty. Shares are typed in percent.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from nest_core.bill.ownership import server_of
from nest_core.bill.prices import PriceFigure, Prices, load_prices, prices_of
from nest_core.documents import InputError, require

__all__ = ["OWN_PRICES", "SOLD", "OwnPrice", "typed_number", "typed_percent"]


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """One figure of the price list that a person may type.

    Parameters
    ----------
    name : str
        Of the field in ``[ownership]``.
    title, unit : str
    scale : float
        What is typed over what the list holds.
    """

    name: str
    title: str
    unit: str
    scale: float = 1.0

    @property
    def key(self) -> str:
        """Dotted, of its typical figure."""
        return f"ownership.{self.name}.typical"

    def listed(self, accelerator: str = "", devices_per_node: int = 0) -> tuple[str, str]:
        """Return the listed figure as one would type it, and its source; empty if none is."""
        prices = _shipped()
        figure: PriceFigure | None = getattr(prices.ownership, self.name)
        share = 1.0
        if figure is None and self.name == "device_usd" and accelerator:
            server = server_of(accelerator, devices_per_node, prices)
            if server is not None and server.price_usd is not None:
                figure, share = server.price_usd, 1.0 / server.devices
        if figure is None:
            return "", ""
        value = figure.typical * share * self.scale
        text = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
        return text, f"{figure.kind}, {figure.date}: {figure.source}"

    def read(self, text: str) -> dict[str, float]:
        """Return what a typed text changes of the list, by dotted key; nothing where it is blank.

        Raises
        ------
        InputError
            For what is no number, or none that the figure may be.

        Examples
        --------
        >>> OWN_PRICES[0].read("$30,000")
        {'ownership.device_usd.typical': 30000.0}
        """
        if not text.strip():
            return {}
        value = (typed_percent if self.unit == "%" else typed_number)(self.title, text)
        require(
            self.unit != "%" or 0 <= value <= 100,
            self.title,
            "must be from 0 to 100 %",
            text.strip(),
            "change it",
        )
        # Halls, storage and staff may be another budget's; the others nobody has for nothing.
        require(
            value != 0 or self.name not in ("device_usd", "price_usd_per_kWh"),
            self.title,
            "must be above 0",
            text.strip(),
            "type what it costs, or leave it empty for the list's",
        )
        amounts = {self.key: value / self.scale}
        try:
            prices_of(None, amounts)
        except InputError as error:
            bound = re.compile(r"\d+\.\d+$")  # in the unit that was typed
            rule = bound.sub(lambda number: f"{self.scale * float(number[0]):,g}", error.rule)
            raise InputError(self.title, rule, text.strip(), error.remedy) from error
        return amounts


def typed_number(title: str, text: str) -> float:
    """Return a number as people write it: ``$30,000``, ``30 k``, ``95 %``.

    Raises
    ------
    InputError
        For anything else.
    """
    bare = text.strip().removeprefix("$").removesuffix("%").replace(",", "").strip()
    times = {"k": 1e3, "M": 1e6}.get(bare[-1:], 1.0)
    try:
        value = float(bare[:-1] if times > 1 else bare)
    except ValueError:
        raise InputError(title, "must be a number", text.strip(), "write it in digits") from None
    return value * times


def typed_percent(title: str, text: str) -> float:
    """Return a number of percent; one below 1 needs its sign, for it reads as a share as well.

    Raises
    ------
    InputError
        For anything else.

    Examples
    --------
    >>> typed_percent("Spare nodes", "8.3"), typed_percent("Spare nodes", "0.5 %")
    (8.3, 0.5)
    """
    value = typed_number(title, text)
    require(
        "%" in text or not 0 < value < 1,
        title,
        "must be in percent",
        text.strip(),
        f"write {100 * value:g} % for the share, or {value:g} %",
    )
    return value


OWN_PRICES: tuple[OwnPrice, ...] = (
    OwnPrice("device_usd", "Accelerator with server share", "$"),
    OwnPrice("price_usd_per_kWh", "Electricity", "$/kWh"),
    OwnPrice("pue", "PUE", "1"),
    OwnPrice("years", "Kept for", "years"),
    OwnPrice("hall_usd_per_kW", "Hall", "$/kW"),
    OwnPrice("storage_usd_per_device", "Storage", "$ each"),
    OwnPrice("staff_usd_per_year", "Staff", "$/year"),
    OwnPrice("draw_share", "Mean draw", "%", 100.0),
)
"""What a person may set, the most disputed first."""

SOLD = OwnPrice("sold_share", "Hours sold", "%", 100.0)


@lru_cache(maxsize=1)
def _shipped() -> Prices:
    return load_prices()
