"""The whole bill: what a cluster costs to buy and to keep, line by line.

Lines are the accelerators with their servers, the network as `nest_core.bill.bill` counts it,
spares as the failure file holds them, and what ``[ownership]`` of the price list says of storage,
the hall, energy and staff:

    energy = power * mean draw * PUE * hours * $/kWh,

with the power of the nodes at most (their cards belong to the network's lines) and that of the
network. What no source states has no figure: its line says so and the total is without it, so a
total is a lower bound as long as ``missing`` names anything. US dollars of today, no interest, no
resale. Low and high ends add up as if they came together.
"""

import math
from dataclasses import dataclass, replace

from nest_core.bill.bill import Bill, bill
from nest_core.bill.inventory import servers_named
from nest_core.bill.lines import NO_SOURCE, BillLine, origin
from nest_core.bill.prices import NONE, Ownership, PriceFigure, PriceRange, Prices, Server
from nest_core.documents.failures import load_failures
from nest_core.documents.schema.failures import FailureFile, StatedFigure
from nest_core.fabric import Fabric

__all__ = [
    "HOURS_PER_YEAR",
    "Owned",
    "OwnedLine",
    "devices_of_node",
    "owned",
    "server_of",
    "with_server",
]

HOURS_PER_YEAR = 8766.0
"""Of 365.25 days."""

_NODES, _SPARES = "accelerators with servers", "spares"


@dataclass(frozen=True, slots=True)
class OwnedLine:
    """One line of the whole bill.

    Parameters
    ----------
    part : str
        Accelerators with servers, spares, storage, network, hall, energy or staff.
    name : str
    count : int
    unit : str
        What is counted.
    unit_usd, usd : PriceRange or None
        Of one, and of all over all years; None without a source.
    source : str
        Of the price, with its kind and date, or ``"no source"``.
    power_W : PriceRange or None
        The most that all of them draw; None where nothing states it.
    yearly : bool
        Whether it is paid year by year.
    failures : PriceRange or None
        Expected per year; None without a source.
    failures_source : str
    """

    part: str
    name: str
    count: int
    unit: str
    unit_usd: PriceRange | None
    usd: PriceRange | None
    source: str
    power_W: PriceRange | None = NONE
    yearly: bool = False
    failures: PriceRange | None = None
    failures_source: str = NO_SOURCE


@dataclass(frozen=True, slots=True)
class Owned:
    """A cluster's whole bill.

    Parameters
    ----------
    name, prices : str
        Of the fabric and of the price list.
    devices : int
    years : float
    lines : tuple of OwnedLine
    network : Bill
    spares : float
        Spare accelerators for one that computes.
    sold_share : float or None
        Of all hours; None where nobody said, which is all of them.
    assumed : tuple of str
        Sentences on what the figures rest on.
    checks : tuple of str
        What exceeds a limit or is not known, from the network's bill.
    """

    name: str
    prices: str
    devices: int
    years: float
    lines: tuple[OwnedLine, ...]
    network: Bill
    spares: float
    sold_share: float | None
    assumed: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def total_usd(self) -> PriceRange:
        """Return what has a source, bought and kept for all years."""
        return sum((line.usd for line in self.lines if line.usd), NONE)

    @property
    def missing(self) -> tuple[str, ...]:
        """Lines that no source prices."""
        return tuple(line.name for line in self.lines if line.usd is None)

    @property
    def power_W(self) -> PriceRange:
        """Return the most that nodes and network draw."""
        return sum((line.power_W for line in self.lines if line.power_W), NONE)

    @property
    def spare_nodes(self) -> int:
        """Return how many nodes stand by."""
        return sum(line.count for line in self.of(_SPARES))

    @property
    def device_usd(self) -> PriceRange | None:
        """Return an accelerator with its share of the server; None without a source."""
        nodes = self.of(_NODES)
        price = nodes[0].usd if nodes else None
        return None if price is None else (1 / self.devices) * price

    @property
    def besides_usd(self) -> PriceRange:
        """Return what is bought once beside accelerators, their servers and their spares."""
        return self._together(yearly=False)

    @property
    def yearly_usd(self) -> PriceRange:
        """Return what a year costs."""
        return (1 / self.years) * self._together(yearly=True)

    @property
    def usd_per_device_hour(self) -> PriceRange | None:
        """Return the price at the share of hours that is sold; None without one of accelerators."""
        if self.device_usd is None:
            return None
        share = self.sold_share or 1.0
        return (1 / (self.devices * self.years * HOURS_PER_YEAR * share)) * self.total_usd

    @property
    def failures_per_year(self) -> PriceRange:
        """Expected, of what has a source."""
        return sum((line.failures for line in self.lines if line.failures), NONE)

    def _together(self, *, yearly: bool) -> PriceRange:
        """Return what is paid so, without accelerators, servers and spares."""
        parts = (line for line in self.lines if line.part not in (_NODES, _SPARES))
        return sum((line.usd for line in parts if line.yearly == yearly and line.usd), NONE)

    def of(self, part: str) -> tuple[OwnedLine, ...]:
        """Return the lines of a part."""
        return tuple(line for line in self.lines if line.part == part)


def server_of(accelerator: str, devices_per_node: int, prices: Prices) -> Server | None:
    """Return the listed server of an accelerator: a word of both names, and as many devices."""
    return next(
        (
            server
            for server in servers_named(accelerator, prices)
            if server.devices == devices_per_node
        ),
        None,
    )


def with_server(prices: Prices, accelerator: str, devices_per_node: int) -> Prices:
    """Return the list with an accelerator's listed server on its floor, if it has one.

    Where nodes have another number of devices, or are chips that are joined directly, each draws
    as much as one of that server does.
    """
    named = [server_of(accelerator, devices_per_node, prices), *servers_named(accelerator, prices)]
    server = next(filter(None, named), None)
    if prices.floor.server:
        return prices
    if server is None:  # its nodes are none of those that are listed
        return prices.model_copy(update={"server": []})
    return prices.model_copy(
        update={"floor": prices.floor.model_copy(update={"server": server.name})}
    )


def devices_of_node(fabric: Fabric, prices: Prices) -> int:
    """Return how many devices a node has; a drawing's nodes are counted."""
    return int(getattr(fabric, "devices_per_node", 0)) or -(
        -fabric.devices // bill(fabric, prices).nodes
    )


def owned(
    fabric: Fabric, prices: Prices, accelerator: str = "", *, failures: FailureFile | None = None
) -> Owned:
    """Return the whole bill of a cluster.

    Parameters
    ----------
    fabric : Fabric
    prices : Prices
    accelerator : str, optional
        Its name; without one the node is what the network's bill takes it for.
    failures : FailureFile, optional
        How often accelerators and hosts fail, and how many hosts stand by; that of scenarios which
        name none without it.

    Examples
    --------
    >>> from nest_core.bill.prices import load_prices
    >>> from nest_core.scenario import load_fabric
    >>> found = owned(load_fabric("dgx-superpod-h100"), load_prices(), "H100 80 GB")
    >>> found.lines[0].name, found.lines[0].count, found.missing
    ('DGX H100', 128, ('storage', 'staff'))
    """
    per_node = devices_of_node(fabric, prices)
    if accelerator:
        prices = with_server(prices, accelerator, per_node)
    network = bill(fabric, prices)
    server = _server(network, prices, accelerator, per_node)
    keep, failures = prices.ownership, failures or load_failures()
    price = _node_price(keep.device_usd, server, per_node if network.server != "chip" else 1)
    nodes = _nodes(fabric, network, server, price, keep, failures)
    spare = _spares(network, server, price, failures.recovery.spare_hosts)
    parts = (*nodes, spare, *(_bought(line) for line in network.lines))
    upkeep = _kept(fabric, prices, sum((line.power_W for line in parts if line.power_W), NONE))
    return Owned(
        name=network.name,
        prices=network.prices,
        devices=fabric.devices,
        years=keep.years.typical,
        lines=(*parts, *upkeep),
        network=network,
        spares=spare.count / max(network.nodes, 1),
        sold_share=keep.sold_share.typical if keep.sold_share else None,
        assumed=_assumed(keep, network, server, price, accelerator),
        checks=network.checks,
    )


def _server(network: Bill, prices: Prices, accelerator: str, per_node: int) -> Server | None:
    """Return the listed server that nodes are; none where the accelerator is another's."""
    listed = next((server for server in prices.server if server.name == network.server), None)
    is_own = listed is None or not accelerator or listed.name == prices.floor.server
    return listed if is_own else server_of(accelerator, per_node, prices)


def _node_price(
    device: PriceFigure | None, server: Server | None, per_node: int
) -> PriceFigure | None:
    """Return a node's: a person's own price of an accelerator, else that of a listed server."""
    if device is None:
        return server.price_usd if server else None
    ends = (server.devices if server else per_node) * device.range
    return device.model_copy(update={"low": ends.low, "typical": ends.typical, "high": ends.high})


def _nodes(
    fabric: Fabric,
    network: Bill,
    server: Server | None,
    price: PriceFigure | None,
    keep: Ownership,
    failures: FailureFile,
) -> list[OwnedLine]:
    """Accelerators with their servers; the cards' power is in the network's lines."""
    cards = sum((line.power_W for line in network.lines if line.part == "nic"), NONE)
    count = max(1, -(-fabric.devices // server.devices)) if server else network.nodes
    owned_nodes = min(count, keep.owned_nodes)
    parts = {"device": fabric.devices, "host": count}
    yearly = sum(
        365.25 * parts[cause.strikes] * cause.events / (cause.units * cause.days)
        for cause in failures.cause
        if cause.strikes in parts
    )
    estimate = network.nodes * network.node_power_W
    power = PriceRange(estimate, estimate, estimate)
    if server:  # what a vendor says that it draws, it draws with its cards
        node_W = (1e3 * count) * server.power_kW.range
        power = PriceRange(
            *(max(0.0, a - b) for a, b in zip(_ends(node_W), _ends(cards), strict=True))
        )
    return [
        OwnedLine(
            _NODES,
            server.name if server else network.server,
            count,
            f"node of {server.devices}" if server else "node",
            price.range if price else None,
            (count - owned_nodes) * price.range
            if price
            else NONE
            if count == owned_nodes
            else None,
            origin(price) + (f"; {owned_nodes:,} are owned already" if owned_nodes else ""),
            power,
            failures=PriceRange(yearly, yearly, yearly),
            failures_source=failures.source,
        )
    ]


def _spares(
    network: Bill, server: Server | None, price: PriceFigure | None, share: StatedFigure
) -> OwnedLine:
    """Nodes that stand by; they draw nothing here."""
    count = math.ceil(share.value * network.nodes - 1e-9)
    return OwnedLine(
        _SPARES,
        f"spare {server.name if server else network.server}",
        count,
        "node",
        price.range if price else None,
        count * price.range if price else None,
        f"{origin(price)}; how many: {share.source}" if price else NO_SOURCE,
    )


def _bought(line: BillLine) -> OwnedLine:
    """Return a line of the network's bill."""
    return OwnedLine(
        f"network, {line.place}" if line.part != "nic" else "network, node",
        line.item,
        line.count,
        line.part,
        line.unit_usd if line.priced else None,
        line.price_usd if line.priced else None,
        line.source,
        line.power_W if line.powered else None,
        failures=line.failures,
        failures_source=line.failures_source,
    )


def _kept(fabric: Fabric, prices: Prices, power: PriceRange) -> list[OwnedLine]:
    """Return storage, hall, energy and staff."""
    keep = prices.ownership
    kW = math.ceil(power.typical / 1e3 - 1e-9)
    staff = keep.staff_usd_per_year
    wages = keep.years.typical * staff.range if staff else None
    return [
        _flat("storage", "storage", fabric.devices, "device", keep.storage_usd_per_device),
        _flat("hall", "hall, power and cooling", kW, "kW", keep.hall_usd_per_kW),
        _energy(prices, power),
        replace(
            _flat("staff", "staff", 1, "cluster, all years", staff),
            unit_usd=wages,
            usd=wages,
            yearly=True,
        ),
    ]


def _flat(part: str, name: str, count: int, unit: str, figure: PriceFigure | None) -> OwnedLine:
    return OwnedLine(
        part,
        name,
        count,
        unit,
        figure.range if figure else None,
        count * figure.range if figure else None,
        origin(figure),
    )


def _energy(prices: Prices, power: PriceRange) -> OwnedLine:
    """Return energy at the mean draw, else at the most; without a PUE no site is known."""
    keep = prices.ownership
    name = f"energy of {keep.years.typical:g} years"
    if keep.price_usd_per_kWh is None or keep.pue is None:
        return OwnedLine("energy", name, 0, "kWh", None, None, NO_SOURCE, yearly=True)
    draw = keep.draw_share.range if keep.draw_share else PriceRange(1.0, 1.0, 1.0)
    hours = keep.years.typical * HOURS_PER_YEAR
    ends = zip(_ends(power), _ends(draw), _ends(keep.pue.range), strict=True)
    used = [watts / 1e3 * share * pue * hours for watts, share, pue in ends]
    price = keep.price_usd_per_kWh.range
    count = round(used[1])
    low, typical, high = used[0] * price.low, count * price.typical, used[2] * price.high
    source = f"{origin(keep.price_usd_per_kWh)}; PUE {keep.pue.typical:g}: {origin(keep.pue)}"
    return OwnedLine(
        "energy", name, count, "kWh", price, PriceRange(low, typical, high), source, yearly=True
    )


def _ends(value: PriceRange) -> tuple[float, float, float]:
    return value.low, value.typical, value.high


def _assumed(
    keep: Ownership,
    network: Bill,
    server: Server | None,
    price: PriceFigure | None,
    accelerator: str,
) -> tuple[str, ...]:
    name = server.name if server else accelerator or network.server
    sentences = {
        f"Kept for {keep.years.typical:g} years: {origin(keep.years)}.": True,
        f"Nodes are taken for a {name}; a scenario names its accelerator.": server
        and not accelerator,
        f"No listed server is a node of {name}.": server is None,
        "Accelerators have no price here, for no source states one: give yours "
        "(prices.ownership.device_usd), or read the break-even.": price is None,
        "Accelerators and servers share a line: the source has one price for both.": price,
        "Everything draws its most all the time: no source states a mean draw.": keep.draw_share
        is None,
        "Every hour is used: no source states the share that is sold.": keep.sold_share is None,
    }
    return tuple(sentence for sentence, holds in sentences.items() if holds)
