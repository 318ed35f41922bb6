"""Lines of a bill: parts that were counted, with what a price list says about them.

A switch is the first listed one of the asked radix and rate; or one whose ports, broken out two,
four or eight ways, are those; else it is priced by capacity and marked as an estimate. So is a
card of a rate that is not listed. A twin-port module carries two link ends.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

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
    "priced_cards",
    "priced_links",
    "priced_switch",
    "told",
]

NO_SOURCE = "no source"
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of the bill.

    Parameters
    ----------
    part : {"switch", "nic", "transceiver", "cable"}
    item : str
        What to order.
    place : str
        Role of the switch, or tier of the links.
    count : int
    price_usd, power_W : PriceRange
        All of them together.
    source : str
        Of the price, with its kind and date.
    estimate : bool
        Whether price or count is an estimate.
    priced, powered : bool
        Whether a source states them; else they are 0 here.
    failures : PriceRange or None
        Expected per year, all of them together; None without a source.
    failures_source : str
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

    @property
    def unit_usd(self) -> PriceRange:
        """One of them, on average."""
        return (1 / self.count) * self.price_usd if self.count else NONE


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


def told(figure: PriceFigure | None) -> str:
    """Where a figure comes from."""
    return f"{figure.kind}, {figure.date}: {figure.source}" if figure else NO_SOURCE


def _failing(figure: PriceFigure | None, count: int) -> PriceRange | None:
    return None if figure is None else count * figure.range


def priced_switch(prices: Prices, count: SwitchCount) -> tuple[SwitchTotal, BillLine, int]:
    """What a role's switches are, their line, and the rack units of one."""
    if count.optical:
        optical = prices.optical_switch
        share = count.used / (optical.ports * count.count)
        line = BillLine(
            "switch",
            optical.name,
            count.role,
            count.count,
            count.used * optical.price_usd_per_port.range,
            (count.count * share) * optical.power_W.range,
            told(optical.price_usd_per_port),
            True,
        )
        return _total(count, optical.name), line, optical.rack_units
    listed = listed_switch(prices, count)
    if listed is None:
        return _by_capacity(prices, count)
    switch, _ = listed
    line = BillLine(
        "switch",
        switch.name,
        count.role,
        count.count,
        count.count * switch.price_usd.range,
        count.count * switch.power_W.range,
        told(switch.price_usd),
        count.estimate or switch.price_usd.kind == "estimate",
        failures=_failing(switch.failures_per_year, count.count),
        failures_source=told(switch.failures_per_year),
    )
    return _total(count, switch.name), line, switch.rack_units


def listed_switch(prices: Prices, count: SwitchCount) -> tuple[SwitchPrice, int] | None:
    """The listed switch that a role's are, and in how many each of its ports is broken out."""
    as_they_are = ((switch, 1) for switch in prices.switch)
    broken_out = ((switch, ways) for switch in prices.switch for ways in (2, 4, 8))
    for switch, ways in (*as_they_are, *broken_out):
        if _fits(switch.ports, switch.rate_Gbps, count, ways):
            return switch, ways
    return None


def _fits(ports: int, rate_Gbps: float, count: SwitchCount, ways: int) -> bool:
    same_rate = math.isclose(rate_Gbps, ways * count.rate_Gbps, rel_tol=_SAME)
    return ports * ways == count.ports and same_rate


def _by_capacity(prices: Prices, count: SwitchCount) -> tuple[SwitchTotal, BillLine, int]:
    rule = prices.unlisted.switch
    capacity = count.ports * count.rate_Gbps
    line = BillLine(
        "switch",
        f"{count.ports} x {count.rate_Gbps:.4g}G, not listed",
        count.role,
        count.count,
        (count.count * capacity) * rule.price_usd_per_Gbps.range,
        (count.count * capacity) * rule.power_W_per_Gbps.range,
        told(rule.price_usd_per_Gbps),
        True,
    )
    return _total(count, ""), line, rule.rack_units


def _total(count: SwitchCount, item: str) -> SwitchTotal:
    ports = count.count * count.ports
    return SwitchTotal(
        count.role,
        item,
        count.count,
        ports,
        count.rate_Gbps,
        count.used,
        ports - count.used,
        count.estimate,
    )


def priced_cards(prices: Prices, parts: Inventory) -> list[BillLine]:
    if not parts.nics:
        return []
    rate = parts.nic_rate_Gbps
    listed = [nic for nic in prices.nic if math.isclose(nic.rate_Gbps, rate, rel_tol=_SAME)]
    if listed:
        nic = listed[0]
        price, power = nic.price_usd, nic.power_W
        return [
            BillLine(
                "nic",
                nic.name,
                "node",
                parts.nics,
                parts.nics * price.range,
                parts.nics * power.range,
                told(price),
                price.kind == "estimate",
            )
        ]
    rule = prices.unlisted.nic
    return [
        BillLine(
            "nic",
            f"{rate:.4g}G card, not listed",
            "node",
            parts.nics,
            (parts.nics * rate) * rule.price_usd_per_Gbps.range,
            (parts.nics * rate) * rule.power_W_per_Gbps.range,
            told(rule.price_usd_per_Gbps),
            True,
        )
    ]


@dataclass(frozen=True, slots=True)
class Wired:
    """One tier's cables: its total, its lines, its optical ends and what does not reach."""

    total: LinkTotal
    lines: list[BillLine]
    ends: int
    checks: list[str]


def priced_links(prices: Prices, link: LinkCount, media: str = "") -> Wired:
    """A tier's cables; ``media`` is the kind that the tier asks for, if it does."""
    by_cable: dict[str, list[tuple[int, int, MediaChoice]]] = defaultdict(list)
    checks: list[str] = []
    for metres, count in link.metres:
        choice = choose(prices, link, metres, media)
        by_cable[choice.cable.name].append((metres, count, choice))
        if not choice.reaches:
            checks = [_out_of_reach(link, choice)]
    lines: list[BillLine] = []
    runs: list[CableRun] = []
    modules: dict[str, tuple[Ends, int]] = {}
    for name, pieces in by_cable.items():
        choice = pieces[0][2]
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
                told(choice.cable.price_usd),
                choice.estimate,
                failures=_failing(choice.cable.failures_per_year, cables),
                failures_source=told(choice.cable.failures_per_year),
            )
        )
        delay = choice.cable.latency_ns_per_m.typical * longest * 1e-9
        runs.append(CableRun(choice.cable.kind, name, cables, longest, total_m, delay))
        for end in (choice.lower, choice.upper):
            if end:
                before = modules.get(end.item, (end, 0))[1]
                links = sum(count for _, count, _ in pieces)
                modules[end.item] = (end, before + links)
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
    price, power = module.price_usd, module.power_W
    return BillLine(
        "transceiver",
        end.item,
        link.tier,
        count,
        (count * end.share) * price.range if price else NONE,
        (count * end.share) * power.range if power else NONE,
        told(price),
        end.estimate,
        priced=price is not None,
        powered=power is not None,
        failures=_failing(module.failures_per_year, count),
        failures_source=told(module.failures_per_year),
    )


def _out_of_reach(link: LinkCount, choice: MediaChoice) -> str:
    beyond = sum(count for metres, count in link.metres if metres > choice.cable.reach_m.typical)
    return (
        f"{beyond:,} links to the {link.tier} tier are up to {link.longest_m} m long, beyond the "
        f"{choice.cable.reach_m.typical:g} m of {choice.cable.name}: stand the racks closer "
        "(floor.racks_per_row, floor.row_pitch_m) or allow other cables (cabling.media)."
    )
