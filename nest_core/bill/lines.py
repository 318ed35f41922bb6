"""Lines of a bill: parts that were counted, with what a price list says about them.

A switch is the first listed one of the asked radix and rate; or one whose ports, broken out two,
four or eight ways, are those; else it is priced by capacity and marked as an estimate. So is a
card of a rate that is not listed. A twin-port module carries two link ends.

A link takes, of the listed cables that reach, the cheapest with both of its ends: copper and active
cables carry theirs, fibres take a transceiver per end. ``media`` of the price list narrows the
choice: ``"optical"`` to fibres, a kind of cable or of optics to that kind; links through an optical
switch are fibres whatever it says. What a tier names for itself (``[cabling.tiers]`` of the list,
``[optics]`` of the fabric) must reach its longest run; cables ``on_request`` are taken only where
they are named. A rate that is not listed takes the next faster module; faster than all, and only if
nothing else reaches, the fastest in proportion, marked as an estimate. Copper and active cables of
another rate are priced in proportion, also as estimates, and so is a single-port module where only
twin-port ones are listed.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from nest_core.bill.inventory import Inventory, LinkCount, SwitchCount
from nest_core.bill.prices import (
    NONE,
    CablePrice,
    PriceFigure,
    PriceRange,
    Prices,
    SwitchPrice,
    Transceiver,
)
from nest_core.documents import InputError, require

__all__ = [
    "NO_SOURCE",
    "BillLine",
    "CableRun",
    "Ends",
    "LinkTotal",
    "MediaChoice",
    "SwitchTotal",
    "Wired",
    "check_reach",
    "choose",
    "ends_for",
    "listed_switch",
    "origin",
    "priced_cards",
    "priced_links",
    "priced_switch",
    "with_owned",
]


@dataclass(frozen=True, slots=True)
class Ends:
    """What one end of a link plugs in.

    Parameters
    ----------
    module : Transceiver
    factor : float
        By which its price and power are multiplied: over 1 for rates beyond the listed ones.
    alone : bool
        Whether it stands for a module of one link at its price per link.
    estimate : bool
    """

    module: Transceiver
    factor: float
    alone: bool
    estimate: bool

    @property
    def item(self) -> str:
        """Return what to order."""
        return f"one link of {self.module.name}" if self.alone else self.module.name

    @property
    def links(self) -> int:
        """Return links that one module carries."""
        return 1 if self.alone else self.module.ports

    @property
    def share(self) -> float:
        """Return the share of the listed module's price and power, per module."""
        return self.factor / self.module.ports if self.alone else self.factor

    @property
    def price_usd(self) -> PriceRange:
        """Return one link end's: a module's price over the links that it carries, or nothing."""
        price = self.module.price_usd
        return NONE if price is None else (self.factor / self.module.ports) * price.range


@dataclass(frozen=True, slots=True)
class MediaChoice:
    """The cable of links of one length.

    Parameters
    ----------
    cable : CablePrice
    factor : float
        By which the listed cable's price and power are multiplied.
    lower, upper : Ends or None
        None where the cable carries its ends.
    reaches : bool
    """

    cable: CablePrice
    factor: float
    lower: Ends | None
    upper: Ends | None
    reaches: bool

    @property
    def stretched(self) -> bool:
        """Return whether the link is faster than what is listed."""
        return (
            max(self.factor, *[end.factor for end in (self.lower, self.upper) if end], 1.0)
            > 1 + _SAME
        )

    @property
    def estimate(self) -> bool:
        """Return whether the cable's own price is one."""
        return abs(self.factor - 1) > _SAME or "estimate" in (
            self.cable.price_usd.kind,
            self.cable.price_usd_per_m.kind,
        )

    def price_usd(self, metres: int) -> PriceRange:
        """Return one cable, without transceivers."""
        cable = self.cable
        return self.factor * (cable.price_usd.range + metres * cable.price_usd_per_m.range)

    def power_W(self) -> PriceRange:
        """Both ends of one cable, without transceivers."""
        per_end = self.cable.power_W_per_end
        return NONE if per_end is None else (2 * self.factor) * per_end.range

    def total_usd(self, metres: int) -> float:
        """Typical price with both ends."""
        ends = [end.price_usd.typical for end in (self.lower, self.upper) if end]
        return self.price_usd(metres).typical + sum(ends)


def choose(prices: Prices, link: LinkCount, metres: int, named_media: str = "") -> MediaChoice:
    """Return the cheapest cable that reaches, or, if none does, the one that reaches furthest.

    Ties go to the first listed. ``named_media`` is what the tier asks for, if it does.
    """
    media = named_media or ("cheapest" if link.copper else prices.cabling.media)
    allowed = [cable for cable in prices.cable if _allowed(cable, media)]
    if link.cables_per_link > 1:  # an optical switch passes light on, nothing else
        fibres = [cable for cable in prices.cable if cable.optics and not cable.on_request]
        allowed = [cable for cable in allowed if cable.optics] or fibres or allowed
    options = [_option(prices, cable, link, metres) for cable in allowed]
    reaching = [option for option in options if option.reaches]
    return (
        min(reaching, key=lambda option: (option.stretched, option.total_usd(metres)))
        if reaching
        else max(options, key=lambda option: option.cable.reach_m.typical)
    )


def check_reach(prices: Prices, link: LinkCount, media: str, field: str) -> None:
    """Refuse what a tier names if it is not listed or does not reach the tier's longest run."""
    require(
        media in prices.media,
        field,
        "must be optical, cheapest or a listed kind of cable or optics",
        media,
        "pick " + ", ".join(prices.media),
    )
    reach = max((c.reach_m.typical for c in prices.cable if _allowed(c, media)), default=0.0)
    if link.longest_m <= reach:
        return
    far = {c.optics or c.kind: c.reach_m.typical for c in prices.cable}
    others = [f"{kind} ({m:g} m)" for kind, m in far.items() if m >= link.longest_m]
    raise InputError(
        field,
        f"must reach the {link.longest_m} m of the longest run to the {link.tier} tier",
        f"{media}, which reaches {reach:g} m",
        f"pick {', '.join(others)}, or stand the racks closer (floor.racks_per_row)"
        if others
        else "stand the racks closer (floor.racks_per_row)",
    )


def _allowed(cable: CablePrice, media: str) -> bool:
    offered = media == "cheapest" or (media == "optical" and cable.optics != "")
    return media in (cable.kind, cable.optics) or (offered and not cable.on_request)


def ends_for(prices: Prices, optics: str, rate_Gbps: float, place: str) -> Ends:
    """Return the transceiver for one end of a fibre.

    Parameters
    ----------
    optics : str
        ``"SR"``, ``"DR"``, ``"FR"``: what the fibre takes.
    place : {"nic", "switch", "chip"}
        Modules for that end first, then those for any, then the others' price per link.
    """
    fitting = [module for module in prices.transceiver if module.optics == optics]
    order = {place: 0, "any": 1}

    def rank(module: Transceiver) -> tuple[bool, float, int]:
        slower = module.rate_Gbps < rate_Gbps * (1 - _SAME)
        # The slowest that is fast enough, else the fastest.
        return slower, -module.rate_Gbps if slower else module.rate_Gbps, order.get(module.end, 2)

    module = min(fitting, key=rank)
    factor = max(1.0, rate_Gbps / module.rate_Gbps)
    foreign = order.get(module.end, 2) == 2
    figure = module.price_usd
    estimate = factor > 1 + _SAME or foreign or figure is None or figure.kind == "estimate"
    return Ends(
        module, factor if factor > 1 + _SAME else 1.0, foreign and module.ports > 1, estimate
    )


def _option(prices: Prices, cable: CablePrice, link: LinkCount, metres: int) -> MediaChoice:
    lower, upper = (
        ends_for(prices, cable.optics, link.rate_Gbps, place) if cable.optics else None
        for place in (link.lower, link.upper)
    )
    factor = 1.0 if cable.optics else link.rate_Gbps / cable.rate_Gbps
    return MediaChoice(cable, factor, lower, upper, metres <= cable.reach_m.typical)


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
