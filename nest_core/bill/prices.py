"""Price lists: what switches, cards, transceivers and cables cost and draw, and on what floor.

A list is a TOML file (``presets/prices``). Every figure in it is a range with its source, its
date and a kind: ``"vendor"``, ``"third-party"``, ``"estimate"`` or ``"recalled"``. A person's list
may name another as its ``base`` and state only what differs: tables are merged key by key, entries
of lists by their names. Rates are Gb/s of one port, one direction; lengths metres, powers watts
(kW where a key says so), prices US dollars.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nest_core.errors import InputError
from nest_core.overrides import assign, setting
from nest_core.presets import load_toml, named_file
from nest_core.schema import checked, label

__all__ = [
    "Cable",
    "Figure",
    "Floor",
    "Nic",
    "Prices",
    "Range",
    "Server",
    "Switch",
    "Transceiver",
    "load_prices",
]

DEFAULT = "2026"
BASE = "prices.base"

_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Amount = Annotated[float, Field(ge=0, le=1e9)]
_Rate = Annotated[float, Field(ge=1e-6, le=1e9)]
_Ports = Annotated[int, Field(ge=1, le=100_000)]


@dataclass(frozen=True, slots=True)
class Range:
    """Low, typical and high; sums and multiples are taken end by end.

    Examples
    --------
    >>> 2 * Range(1, 2, 4) + Range(1, 1, 1)
    Range(low=3, typical=5, high=9)
    """

    low: float
    typical: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.typical + other.typical, self.high + other.high)

    def __rmul__(self, factor: float) -> Range:
        return Range(factor * self.low, factor * self.typical, factor * self.high)


NONE = Range(0.0, 0.0, 0.0)


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Figure(_Table):
    """A figure with its ends, where it comes from and of when; ends default to the typical."""

    typical: _Amount
    low: _Amount | None = None
    high: _Amount | None = None
    kind: Literal["vendor", "third-party", "estimate", "recalled", "own"]
    date: _Name
    source: _Name

    @property
    def range(self) -> Range:
        """Low, typical and high."""
        return Range(
            self.typical if self.low is None else self.low,
            self.typical,
            self.typical if self.high is None else self.high,
        )


class Limit(Figure):
    """A figure that is never 0."""

    typical: Annotated[float, Field(ge=1e-3, le=1e9)]


_Price = Annotated[Figure, label("price")]
_Power = Annotated[Figure, label("power")]


class Switch(_Table):
    """``[[switch]]``: a packet switch."""

    name: _Name
    text: str = ""
    ports: _Ports
    rate_Gbps: _Rate
    rack_units: _Ports
    price_usd: _Price
    power_W: _Power
    latency_ns: Figure | None = None


class OpticalSwitch(_Table):
    """``[optical_switch]``: one fibre per port; of its ports, ``used_ports`` serve racks."""

    name: _Name
    ports: _Ports
    used_ports: _Ports
    rack_units: _Ports
    price_usd_per_port: Figure
    power_W: _Power


class Nic(_Table):
    """``[[nic]]``."""

    name: _Name
    rate_Gbps: _Rate
    price_usd: _Price
    power_W: _Power


class Transceiver(_Table):
    """``[[transceiver]]``: a module of ``ports`` links of ``rate_Gbps`` each."""

    name: _Name
    optics: _Name
    end: Literal["switch", "nic", "any"]
    ports: _Ports
    rate_Gbps: _Rate
    price_usd: _Price
    power_W: _Power


class Cable(_Table):
    """``[[cable]]``: with its ends, or, where ``optics`` names them, between transceivers."""

    name: _Name
    kind: _Name
    optics: str = ""
    rate_Gbps: _Rate
    reach_m: Figure
    price_usd: _Price
    price_usd_per_m: Annotated[Figure, label("and per m", unit="$")]
    power_W_per_end: Figure | None = None
    latency_ns_per_m: Figure


class Server(_Table):
    """``[[server]]``: power and height of a node, for racks; its price, for what it trains."""

    name: _Name
    devices: _Ports
    rack_units: _Ports
    power_kW: Figure
    price_usd: Figure | None = None


class Floor(_Table):
    """``[floor]``: racks, rows and cable runs."""

    server: str = ""
    nodes_per_rack: _Ports | None = None
    device_power_kW: Figure
    chip_power_kW: Figure
    chips_per_rack: Figure
    rack_power_limit_kW: Annotated[Limit, label("rack power limit", "Of a rack with nodes.")]
    rack_units: Figure
    rack_width_m: Figure
    row_pitch_m: Figure
    racks_per_row: Figure
    in_rack_m: Figure
    rise_m: Figure
    slack_m: Figure
    unknown_m: Figure


class _Cabling(_Table):
    media: Annotated[
        _Name,
        label(
            "cabling",
            "Optics at every length, the cheapest that reaches, or one kind throughout.",
        ),
    ] = "optical"


class _PerRate(_Table):
    price_usd_per_Gbps: Figure
    power_W_per_Gbps: Figure
    rack_units: _Ports = 1


class _Unlisted(_Table):
    switch: _PerRate
    nic: _PerRate


_Entries = Field(min_length=1, max_length=500)


class Prices(_Table):
    """A checked price list."""

    version: Literal[1] = Field(alias="schema")
    name: _Name
    cabling: _Cabling = _Cabling()
    switch: Annotated[list[Switch], _Entries]
    optical_switch: OpticalSwitch
    nic: Annotated[list[Nic], _Entries]
    transceiver: Annotated[list[Transceiver], _Entries]
    cable: Annotated[list[Cable], _Entries]
    server: Annotated[list[Server], _Entries]
    unlisted: _Unlisted
    floor: Floor


def load_prices(
    name: str = DEFAULT, settings: Sequence[str] = (), folder: Path | None = None
) -> Prices:
    """A price list by its name, or a file of one's own.

    Parameters
    ----------
    name : str
        Preset in ``presets/prices``, or, given a folder, path to a TOML file, whole or with a
        preset as its ``base``.
    settings : sequence of str
        ``KEY=VALUE`` with dotted keys, over anything in it (``floor.racks_per_row.typical=20``);
        a new typical figure loses the ends of the old one.
    folder : Path, optional
        Where a relative path starts; without it the name must be a preset's.

    Raises
    ------
    InputError
        For files that cannot be read and figures that cannot be.
    """
    document = _document(name, folder)
    for text in settings:
        key, value = setting(text)
        assign(document, key, value)
        if key.endswith(".typical"):  # a new figure, without the old one's ends and source
            figure = key.removesuffix("typical")
            for end in ("low", "high"):
                _drop(document, figure + end)
            for name, own in (("kind", "own"), ("date", "now"), ("source", "set by hand")):
                assign(document, figure + name, own)
    prices = checked(Prices, document, "prices.")
    _check(prices)
    return prices


def _document(name: str, folder: Path | None, field: str = "prices") -> dict[str, Any]:
    document = load_toml(named_file("prices", name, folder, field=field))
    base = document.pop("base", None)
    if base is None:
        return document
    if field == BASE or not isinstance(base, str):
        raise InputError(BASE, "must be the name of a whole list", base, "name a preset")
    merged: dict[str, Any] = _merged(_document(base, None, BASE), document)
    return merged


def _merged(base: Any, change: Any) -> Any:
    """Tables key by key; lists of named entries by name, new ones in front; the rest replaced."""
    if isinstance(base, dict) and isinstance(change, dict):
        # A figure's ends belong to its typical value: a new one starts without them.
        if "typical" in change:
            return copy.deepcopy(change)
        return base | {
            key: _merged(base[key], value) if key in base else value
            for key, value in change.items()
        }
    if _named(base) and _named(change):
        known = {entry["name"]: entry for entry in base}
        merged = [_merged(known.get(entry["name"], {}), entry) for entry in change]
        told = {entry["name"] for entry in change}
        return merged + [entry for entry in base if entry["name"] not in told]
    return change


def _drop(document: Any, key: str) -> None:
    *tables, last = key.split(".")
    for part in tables:
        document = document[int(part) if isinstance(document, list) else part]
    document.pop(last, None)


def _named(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in value
    )


def _check(prices: Prices) -> None:
    """Rules between figures that pydantic's types do not state."""
    for field, figure in _figures("prices", prices):
        found = figure.range
        if not found.low <= found.typical <= found.high:
            raise InputError(
                field,
                "must have low <= typical <= high",
                [found.low, found.typical, found.high],
                "put the ends in order",
            )
    for kind in ("switch", "nic", "transceiver", "cable", "server"):
        names = [entry.name for entry in getattr(prices, kind)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"prices.{kind}", "must name each entry once", twice, "rename one")
    optics = {module.optics for module in prices.transceiver}
    for cable in prices.cable:
        if cable.optics and cable.optics not in optics:
            raise InputError(
                f"prices.cable {cable.name}",
                "must have optics that a transceiver has",
                cable.optics,
                "list the transceiver",
            )
    media = ("optical", "cheapest", *dict.fromkeys(cable.kind for cable in prices.cable))
    if prices.cabling.media not in media:
        raise InputError(
            "prices.cabling.media",
            "must be optical, cheapest or a listed kind of cable",
            prices.cabling.media,
            "pick " + ", ".join(media),
        )
    if prices.cabling.media == "optical" and not any(cable.optics for cable in prices.cable):
        raise InputError(
            "prices.cable", 'must list one with optics for media = "optical"', "none", "add one"
        )
    floor = prices.floor
    if floor.server and floor.server not in {server.name for server in prices.server}:
        raise InputError(
            "prices.floor.server",
            "must be a listed server",
            floor.server,
            "pick " + ", ".join(server.name for server in prices.server),
        )
    for name in ("rack_units", "rack_power_limit_kW"):
        if getattr(floor, name).typical <= 0:
            raise InputError(
                f"prices.floor.{name}.typical", "must be above 0", 0, "correct the figure"
            )
    for name in ("racks_per_row", "chips_per_rack"):
        count = getattr(floor, name).typical
        if count < 1 or count != int(count):
            raise InputError(
                f"prices.floor.{name}.typical",
                "must be a whole number of at least 1",
                count,
                "correct the figure",
            )
    optical = prices.optical_switch
    if optical.used_ports > optical.ports:
        raise InputError(
            "prices.optical_switch.used_ports",
            f"must be at most {optical.ports}, its ports",
            optical.used_ports,
            "correct one of them",
        )


def _figures(path: str, table: BaseModel) -> list[tuple[str, Figure]]:
    found: list[tuple[str, Figure]] = []
    for name in type(table).model_fields:
        value = getattr(table, name)
        for part in value if isinstance(value, list) else [value]:
            label = f"{path}.{name}"
            if isinstance(value, list) and hasattr(part, "name"):
                label += f" {part.name}"
            if isinstance(part, Figure):
                found.append((label, part))
            elif isinstance(part, BaseModel):
                found += _figures(label, part)
    return found
