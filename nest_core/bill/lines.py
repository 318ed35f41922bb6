"""Lines of a bill: parts that were counted, with what a price list says about them.

A switch is the first listed one of the asked radix and rate; or one whose ports, broken out two,
four or eight ways, are those; else it is priced by capacity and marked as an estimate. So is a
card of a rate that is not listed. A twin-port module carries two link ends.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from nest_core.bill.cabling import Ends, MediaChoice, choose
from nest_core.bill.inventory import Inventory, LinkCount, SwitchCount
from nest_core.bill.prices import NONE, PriceFigure, PriceRange, Prices, SwitchPrice

__all__ = [
    "NO_SOURCE",
    "BillLine",
    "CableRun",
    "LinkTotal",
    "SwitchTotal",
    "Wired",
    "listed_switch",
    "origin",
    "priced_cards",
    "priced_links",
    "priced_switch",
    "with_owned",
]

NO_SOURCE = "no source"
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of the bill.

    Parameters
    ----------
    part : {"switch", "nic", "transceiver", "cable", "scale-up switch"}
    item : str
        What to order.
    place : str
        Role of the switch, or tier of the links.
    count : int
    price_usd, power_W : PriceRange
        All of them together; the price without those owned.
    source : str
        Of the price, with its kind and date, and how many are owned.
    estimate : bool
        Whether price or count is an estimate.
    priced, powered : bool
        Whether a source states them; else they are 0 here.
    failures : PriceRange or None
        Expected per year, all of them together; None without a source.
    failures_source : str
    owned : int
        Of them, how many there are already.
    """

    part: str
    item: str
    place: str
    count: int
    price_usd: PriceRange
    power_W: PriceRange
    source: str
    estimate: bool
    priced: bool = True
    powered: bool = True
    failures: PriceRange | None = None
    failures_source: str = NO_SOURCE
    owned: int = 0

    @property
    def unit_usd(self) -> PriceRange:
        """Return the price of one that is bought, on average."""
        bought = self.count - self.owned
        return (1 / bought) * self.price_usd if bought else NONE


def with_owned(prices: Prices, lines: Iterable[BillLine]) -> Iterator[BillLine]:
    """Yield lines without the price of what is owned, taken in their order."""
    stock = Counter(
        {
            entry.name: entry.owned
            for kind in (prices.switch, prices.nic, prices.transceiver, prices.cable)
            for entry in kind
        }
    )
    for line in lines:
        owned = min(line.count, stock[line.item])
        stock[line.item] -= owned
        rest = (line.count - owned) / max(1, line.count)
        words = f"; {owned:,} of {line.count:,} are owned already" if owned else ""
        yield replace(
            line, owned=owned, price_usd=rest * line.price_usd, source=line.source + words
        )


@dataclass(frozen=True, slots=True)
class SwitchTotal:
    """Switches of one role; ports are those of all of them, at ``rate_Gbps``."""

    role: str
    item: str
    count: int
    ports: int
    rate_Gbps: float
    used: int
    free: int
    estimate: bool


@dataclass(frozen=True, slots=True)
class CableRun:
    """Cables of one kind in one tier.

    Parameters
    ----------
    kind, item : str
    count : int
    longest_m : int
    metres : int
        All of them together.
    latency_s : float
        Of the longest, one way.
    """

    kind: str
    item: str
    count: int
    longest_m: int
    metres: int
    latency_s: float


@dataclass(frozen=True, slots=True)
class LinkTotal:
    """Links of one tier and the cables that they take."""

    tier: str
    count: int
    rate_Gbps: float
    runs: tuple[CableRun, ...]


def origin(figure: PriceFigure | None) -> str:
    """Return where a figure comes from."""
    return f"{figure.kind}, {figure.date}: {figure.source}" if figure else NO_SOURCE


def _line(
    part: str,
    item: str,
    place: str,
    count: int,
    price: tuple[float, PriceFigure | None],
    power: tuple[float, PriceFigure | None],
    estimate: bool,
    failures: PriceFigure | None = None,
) -> BillLine:
    """Return a line whose price and power are so many times a listed figure; None: no source."""
    (price_times, price_figure), (power_times, power_figure) = price, power
    return BillLine(
        part,
        item,
        place,
        count,
        price_times * price_figure.range if price_figure else NONE,
        power_times * power_figure.range if power_figure else NONE,
        origin(price_figure),
        estimate,
        price_figure is not None,
        power_figure is not None,
        count * failures.range if failures else None,
        origin(failures),
    )


def priced_switch(prices: Prices, count: SwitchCount) -> tuple[SwitchTotal, BillLine, int]:
    """Return what a role's switches are, their line, and the rack units of one."""
    boxes, ports = count.count, count.count * count.ports
    item, label, failures, estimate = "", "", None, True
    if count.optical:
        optical = prices.optical_switch
        item, units = optical.name, optical.rack_units
        price: tuple[float, PriceFigure] = count.used, optical.price_usd_per_port
        power: tuple[float, PriceFigure] = boxes * (count.used / ports), optical.power_W
    elif listed := listed_switch(prices, count):
        switch, _ = listed
        item, units, failures = switch.name, switch.rack_units, switch.failures_per_year
        price, power = (boxes, switch.price_usd), (boxes, switch.power_W)
        estimate = count.estimate or switch.price_usd.kind == "estimate"
    else:  # priced by capacity
        rule, capacity = prices.unlisted.switch, boxes * (count.ports * count.rate_Gbps)
        label, units = f"{count.ports} x {count.rate_Gbps:.4g}G, not listed", rule.rack_units
        price, power = (capacity, rule.price_usd_per_Gbps), (capacity, rule.power_W_per_Gbps)
    total = SwitchTotal(
        count.role,
        item,
        boxes,
        ports,
        count.rate_Gbps,
        count.used,
        ports - count.used,
        count.estimate,
    )
    line = _line("switch", item or label, count.role, boxes, price, power, estimate, failures)
    return total, line, units


def listed_switch(prices: Prices, count: SwitchCount) -> tuple[SwitchPrice, int] | None:
    """Return the listed switch that a role's are, and in how many each port is broken out."""
    fitting = (
        (switch, way)
        for ways in ((1,), (2, 4, 8))  # as they are before any that is broken out
        for switch, way in itertools.product(prices.switch, ways)
        if switch.ports * way == count.ports
        and math.isclose(switch.rate_Gbps, way * count.rate_Gbps, rel_tol=_SAME)
    )
    return next(fitting, None)


def priced_cards(prices: Prices, parts: Inventory) -> list[BillLine]:
    """Return the line of the network cards; none where there are none."""
    if not parts.nics:
        return []
    rate, nics = parts.nic_rate_Gbps, parts.nics
    for nic in prices.nic:
        if math.isclose(nic.rate_Gbps, rate, rel_tol=_SAME):
            price, power = (nics, nic.price_usd), (nics, nic.power_W)
            estimate = nic.price_usd.kind == "estimate"
            return [_line("nic", nic.name, "node", nics, price, power, estimate)]
    rule = prices.unlisted.nic
    item, total = f"{rate:.4g}G card, not listed", nics * rate
    by_price, by_power = (total, rule.price_usd_per_Gbps), (total, rule.power_W_per_Gbps)
    return [_line("nic", item, "node", nics, by_price, by_power, True)]


@dataclass(frozen=True, slots=True)
class Wired:
    """One tier's cables: its total, its lines, its optical ends and what does not reach."""

    total: LinkTotal
    lines: list[BillLine]
    ends: int
    checks: list[str]


def priced_links(prices: Prices, link: LinkCount, media: str = "") -> Wired:
    """Return a tier's cables; ``media`` is the kind that the tier asks for, if it does."""
    by_cable: dict[str, list[tuple[int, int, MediaChoice]]] = defaultdict(list)
    checks: list[str] = []
    for metres, count in link.metres:
        choice = choose(prices, link, metres, media)
        by_cable[choice.cable.name].append((metres, count, choice))
        if not choice.reaches:
            reach = choice.cable.reach_m.typical
            beyond = sum(count for metres, count in link.metres if metres > reach)
            checks = [
                f"{beyond:,} links to the {link.tier} tier are up to {link.longest_m} m long, "
                f"beyond the {reach:g} m of {choice.cable.name}: stand the racks closer "
                "(floor.racks_per_row, floor.row_pitch_m) or allow other cables (cabling.media)."
            ]
    lines: list[BillLine] = []
    runs: list[CableRun] = []
    modules: dict[str, tuple[Ends, int]] = {}
    for name, pieces in by_cable.items():
        choice = pieces[0][2]
        failures = choice.cable.failures_per_year
        cables = link.cables_per_link * sum(count for _, count, _ in pieces)
        longest = max(metres for metres, _, _ in pieces)
        total_m = link.cables_per_link * sum(metres * count for metres, count, _ in pieces)
        price = sum(
            (
                (link.cables_per_link * count) * choice.price_usd(metres)
                for metres, count, _ in pieces
            ),
            NONE,
        )
        lines.append(
            BillLine(
                "cable",
                name,
                link.tier,
                cables,
                price,
                cables * choice.power_W(),
                origin(choice.cable.price_usd),
                choice.estimate,
                failures=cables * failures.range if failures else None,
                failures_source=origin(failures),
            )
        )
        delay = choice.cable.latency_ns_per_m.typical * longest * 1e-9
        runs.append(CableRun(choice.cable.kind, name, cables, longest, total_m, delay))
        for end in (choice.lower, choice.upper):
            if end:
                links = sum(count for _, count, _ in pieces)
                modules[end.item] = (end, modules.get(end.item, (end, 0))[1] + links)
    fitted = [_module_line(link, end, count) for end, count in modules.values()]
    return Wired(
        LinkTotal(link.tier, link.count, link.rate_Gbps, tuple(runs)),
        fitted + lines,
        sum(count for _, count in modules.values()),
        checks,
    )


def _module_line(link: LinkCount, end: Ends, links: int) -> BillLine:
    module = end.module
    count = -(-links // end.links)
    price, power = (count * end.share, module.price_usd), (count * end.share, module.power_W)
    return _line(
        "transceiver",
        end.item,
        link.tier,
        count,
        price,
        power,
        end.estimate,
        module.failures_per_year,
    )
