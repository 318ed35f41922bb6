"""Price lists: what switches, cards, transceivers and cables cost and draw, and on what floor.

A list is a TOML file (``presets/prices``). Every figure in it is a range with its source, its
date and a kind: ``"vendor"``, ``"third-party"``, ``"estimate"`` or ``"recalled"``. A person's list
may name another as its ``base`` and state only what differs: tables are merged key by key, entries
of lists by their names. Rates are Gb/s of one port, one direction; lengths metres, powers watts
(kW where a key says so), prices US dollars.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from nest_core.documents import InputError, assign, load_toml, named_file, require, setting
from nest_core.documents.schema import SchemaTable, checked, label

__all__ = [
    "CablePrice",
    "Floor",
    "Nic",
    "Ownership",
    "PriceFigure",
    "PriceRange",
    "Prices",
    "Server",
    "SwitchPrice",
    "Transceiver",
    "load_prices",
    "prices_of",
]

DEFAULT = "2026"
BASE = "prices.base"

_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Amount = Annotated[float, Field(ge=0, le=1e9)]
_Rate = Annotated[float, Field(ge=1e-6, le=1e9)]
_Ports = Annotated[int, Field(ge=1, le=100_000)]
_Owned = Annotated[
    int, Field(ge=0, le=1_000_000_000), label("owned already", "They cost nothing and draw power.")
]


@dataclass(frozen=True, slots=True)
class PriceRange:
    """Low, typical and high; sums and multiples are taken end by end.

    Examples
    --------
    >>> 2 * PriceRange(1, 2, 4) + PriceRange(1, 1, 1)
    PriceRange(low=3, typical=5, high=9)
    """

    low: float
    typical: float
    high: float

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.low + other.low, self.typical + other.typical, self.high + other.high
        )

    def __rmul__(self, factor: float) -> Self:
        return type(self)(factor * self.low, factor * self.typical, factor * self.high)


NONE = PriceRange(0.0, 0.0, 0.0)


class PriceFigure(SchemaTable):
    """A figure with its ends, where it comes from and of when; ends default to the typical."""

    typical: _Amount
    low: _Amount | None = None
    high: _Amount | None = None
    kind: Literal["vendor", "third-party", "estimate", "recalled", "own", "second-hand"]
    date: _Name
    source: _Name

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        ends = self.range
        if not ends.low <= ends.typical <= ends.high:
            raise ValueError("low <= typical <= high")
        return self

    @property
    def range(self) -> PriceRange:
        """Return low, typical and high."""
        return PriceRange(
            self.typical if self.low is None else self.low,
            self.typical,
            self.typical if self.high is None else self.high,
        )


class Limit(PriceFigure):
    """A figure that is never 0."""

    typical: Annotated[float, Field(ge=1e-3, le=1e9)]


_Price = Annotated[PriceFigure, label("price")]
_Power = Annotated[PriceFigure, label("power")]


class _PricedPart(SchemaTable):
    """What is bought by the piece for links of a rate; some may be owned."""

    name: _Name
    rate_Gbps: _Rate
    price_usd: _Price
    owned: _Owned = 0


class SwitchPrice(_PricedPart):
    """``[[switch]]``: a packet switch."""

    text: str = ""
    ports: _Ports
    rack_units: _Ports
    power_W: _Power
    latency_ns: PriceFigure | None = None
    failures_per_year: PriceFigure | None = None


class OpticalSwitch(SchemaTable):
    """``[optical_switch]``: one fibre per port; of its ports, ``used_ports`` serve racks."""

    name: _Name
    ports: _Ports
    used_ports: _Ports
    rack_units: _Ports
    price_usd_per_port: PriceFigure
    power_W: _Power


class Nic(_PricedPart):
    """``[[nic]]``."""

    power_W: _Power


class Transceiver(SchemaTable):
    """``[[transceiver]]``: a module of ``ports`` links of ``rate_Gbps`` each.

    What no source states is absent: the bill says so.
    """

    name: _Name
    optics: _Name
    end: Literal["switch", "nic", "any"]
    ports: _Ports
    rate_Gbps: _Rate
    price_usd: _Price | None = None
    power_W: _Power | None = None
    failures_per_year: PriceFigure | None = None
    owned: _Owned = 0


class CablePrice(_PricedPart):
    """``[[cable]]``: with its ends, or, where ``optics`` names them, between transceivers.

    One ``on_request`` is taken only where a tier or the whole list names its kind.
    """

    kind: _Name
    optics: str = ""
    reach_m: PriceFigure
    price_usd_per_m: Annotated[PriceFigure, label("and per m", unit="$")]
    power_W_per_end: PriceFigure | None = None
    latency_ns_per_m: PriceFigure
    failures_per_year: PriceFigure | None = None
    on_request: bool = False


class Server(SchemaTable):
    """``[[server]]``: power and height of a node, for racks; its price, for what it trains."""

    name: _Name
    devices: _Ports
    rack_units: _Ports
    power_kW: PriceFigure
    price_usd: PriceFigure | None = None


class Floor(SchemaTable):
    """``[floor]``: racks, rows and cable runs."""

    server: str = ""
    nodes_per_rack: _Ports | None = None
    device_power_kW: PriceFigure
    chip_power_kW: PriceFigure
    chips_per_rack: PriceFigure
    rack_power_limit_kW: Annotated[Limit, label("rack power limit", "Of a rack with nodes.")]
    rack_units: Limit
    rack_width_m: PriceFigure
    row_pitch_m: PriceFigure
    racks_per_row: PriceFigure
    in_rack_m: PriceFigure
    rise_m: PriceFigure
    slack_m: PriceFigure
    unknown_m: PriceFigure


class _Cabling(SchemaTable):
    media: Annotated[
        _Name,
        label(
            "cabling",
            "Optics at every length, the cheapest that reaches, or one kind throughout.",
        ),
    ] = "optical"
    tiers: dict[_Name, _Name] = Field(default={}, max_length=64)


class _PerRate(SchemaTable):
    price_usd_per_Gbps: PriceFigure
    power_W_per_Gbps: PriceFigure
    rack_units: _Ports = 1


class _Unlisted(SchemaTable):
    switch: _PerRate
    nic: _PerRate


_Entries = Field(min_length=1, max_length=500)
_Share = Annotated[float, Field(ge=1e-3, le=1)]


class Share(PriceFigure):
    """A figure of at most 1."""

    typical: _Share
    low: _Share | None = None
    high: _Share | None = None


class Factor(PriceFigure):
    """A figure of at least 1."""

    typical: Annotated[float, Field(ge=1, le=100)]
    low: Annotated[float, Field(ge=1, le=100)] | None = None


class Years(PriceFigure):
    """How long something is kept."""

    typical: Annotated[float, Field(ge=0.1, le=50)]


class Ownership(SchemaTable):
    """``[ownership]``: what keeping a cluster costs; what no source states is absent."""

    years: Annotated[Years, label("years", "How long it is kept.", "years")]
    pue: Annotated[
        Factor | None, label("PUE", "Power of the site over power of what computes.", "1")
    ] = None
    price_usd_per_kWh: Annotated[PriceFigure | None, label("energy", unit="$ per kWh")] = None
    draw_share: Annotated[
        Share | None, label("mean draw", "Over the most that is drawn; empty: all of it.", "share")
    ] = None
    hall_usd_per_kW: Annotated[
        PriceFigure | None, label("hall", "Space, power and cooling.", "$ per kW")
    ] = None
    owned_nodes: Annotated[_Owned, label("nodes owned already", unit="nodes")] = 0
    device_usd: Annotated[
        PriceFigure | None,
        label("accelerator with its share of the server", "Over that of a listed server.", "$"),
    ] = None
    storage_usd_per_device: Annotated[PriceFigure | None, label("storage", unit="$ per device")] = (
        None
    )
    staff_usd_per_year: Annotated[PriceFigure | None, label("staff", unit="$ per year")] = None
    sold_share: Annotated[
        Share | None, label("share that is sold", "Of all hours; empty: all of them.", "share")
    ] = None


class Prices(SchemaTable):
    """A checked price list."""

    version: Literal[1] = Field(alias="schema")
    name: _Name
    cabling: _Cabling = _Cabling()
    switch: Annotated[list[SwitchPrice], _Entries]
    optical_switch: OpticalSwitch
    nic: Annotated[list[Nic], _Entries]
    transceiver: Annotated[list[Transceiver], _Entries]
    cable: Annotated[list[CablePrice], _Entries]
    server: Annotated[list[Server], _Entries]
    unlisted: _Unlisted
    ownership: Ownership
    floor: Floor

    @property
    def media(self) -> tuple[str, ...]:
        """Return what ``[cabling]`` and a fabric's ``[optics]`` may name."""
        optics = [cable.optics for cable in self.cable if cable.optics]
        return (
            "optical",
            "cheapest",
            *dict.fromkeys((*[cable.kind for cable in self.cable], *optics)),
        )


def load_prices(
    name: str = DEFAULT, settings: Sequence[str] = (), folder: Path | None = None
) -> Prices:
    """Return a price list by its name, or a file of one's own.

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
        _change(document, *setting(text))
    return _checked(document)


def prices_of(
    amounts: str | Mapping[str, Any] | None,
    changes: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Prices:
    """Return the price list that a scenario's ``prices`` means.

    Parameters
    ----------
    amounts : str, mapping or None
        A list's name or file, or its tables, over the ``base`` that they name, else the default.
    changes : mapping, optional
        Dotted keys to values, over it.
    folder : Path, optional
        As `load_prices` takes it.
    """
    if isinstance(amounts, Mapping):
        tables = dict(amounts)
        base = tables.pop("base", DEFAULT)
        require(
            isinstance(base, str), BASE, "must be the name of a whole list", base, "name a preset"
        )
        document = _merged(_document(base, folder), tables)
    else:
        document = _document(amounts or DEFAULT, folder)
    for key, value in (changes or {}).items():
        _change(document, key, value)
    return _checked(document)


def _change(document: dict[str, Any], key: str, value: Any) -> None:
    assign(document, key, value)
    if key.endswith(".typical"):  # a new figure, without the old one's ends and source
        figure = key.removesuffix("typical")
        for end in ("low", "high"):
            _drop(document, figure + end)
        for name, replacement in (("kind", "own"), ("date", "now"), ("source", "set by hand")):
            assign(document, figure + name, replacement)


def _checked(document: dict[str, Any]) -> Prices:
    prices = checked(Prices, document, "prices.")
    _check(prices)
    return prices


def _document(name: str, folder: Path | None, field: str = "prices") -> dict[str, Any]:
    document = load_toml(named_file("prices", name, folder, field=field))
    base = document.pop("base", None)
    if base is None:
        return document
    require(
        field != BASE and isinstance(base, str),
        BASE,
        "must be the name of a whole list",
        base,
        "name a preset",
    )
    return dict(_merged(_document(base, None, BASE), document))


def _merged(base: Any, change: Any) -> Any:
    """Merge tables key by key, lists of named entries by name, new ones first; replace the rest."""
    if isinstance(base, dict) and isinstance(change, dict):
        # A figure's ends belong to its typical value: a new one starts without them.
        if "typical" in change:
            return change
        return base | {
            key: _merged(base[key], value) if key in base else value
            for key, value in change.items()
        }
    if _named(base) and _named(change):
        base_of = {entry["name"]: entry for entry in base}
        merged = [_merged(base_of.get(entry["name"], {}), entry) for entry in change]
        changed = {entry["name"] for entry in change}
        return merged + [entry for entry in base if entry["name"] not in changed]
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
    """Check rules between figures that pydantic's types do not state."""
    for kind in ("switch", "nic", "transceiver", "cable", "server"):
        names = [entry.name for entry in getattr(prices, kind)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"prices.{kind}", "must name each entry once", twice, "rename one")
    optics = {module.optics for module in prices.transceiver}
    for cable in prices.cable:
        require(
            not cable.optics or cable.optics in optics,
            f"prices.cable {cable.name}",
            "must have optics that a transceiver has",
            cable.optics,
            "list the transceiver",
        )
    media = {"media": prices.cabling.media}
    media |= {f"tiers.{tier}": kind for tier, kind in prices.cabling.tiers.items()}
    for key, kind in media.items():
        require(
            kind in prices.media,
            f"prices.cabling.{key}",
            "must be optical, cheapest or a listed kind of cable or optics",
            kind,
            "pick " + ", ".join(prices.media),
        )
    require(
        prices.cabling.media != "optical" or any(cable.optics for cable in prices.cable),
        "prices.cable",
        'must list one with optics for media = "optical"',
        "none",
        "add one",
    )
    floor = prices.floor
    require(
        not floor.server or floor.server in {server.name for server in prices.server},
        "prices.floor.server",
        "must be a listed server",
        floor.server,
        "pick " + ", ".join(server.name for server in prices.server),
    )
    for name in ("racks_per_row", "chips_per_rack"):
        count = getattr(floor, name).typical
        require(
            count >= 1 and count == int(count),
            f"prices.floor.{name}.typical",
            "must be a whole number of at least 1",
            count,
            "correct the figure",
        )
    optical = prices.optical_switch
    require(
        optical.used_ports <= optical.ports,
        "prices.optical_switch.used_ports",
        f"must be at most {optical.ports}, its ports",
        optical.used_ports,
        "correct one of them",
    )
