"""Which cable and which transceivers a link takes, by its length and rate.

Of the listed cables that reach, the cheapest with both of its ends: copper and active cables
carry theirs, fibres take a transceiver per end. ``media`` of the price list narrows the choice:
``"optical"`` to fibres, a kind of cable or of optics to that kind; links through an optical switch
are fibres whatever it says. What a tier names for itself (``[cabling.tiers]`` of the list,
``[optics]`` of the fabric) must reach its longest run; cables ``on_request`` are taken only where
they are named. A rate that is not listed takes the next faster module; faster than all, and only
if nothing else reaches, the fastest in proportion, marked as an estimate. Copper and active cables
of another rate are priced in proportion, also as estimates, and so is a single-port module where
only twin-port ones are listed.
"""

from dataclasses import dataclass

from nest_core.bill.inventory import LinkCount
from nest_core.bill.prices import NONE, CablePrice, PriceRange, Prices, Transceiver
from nest_core.documents import InputError, require

__all__ = ["Ends", "MediaChoice", "check_reach", "choose", "ends_for"]

_SAME = 1e-6


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
