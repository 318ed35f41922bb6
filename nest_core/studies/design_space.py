"""The fabrics that a design study may buy: every one that its choices make, with its whole bill.

A number of devices, what a node is, its NICs, their rate and the switches' radix are a size
(`same_size.Size`); every family makes one fabric of it, a Clos one for every `same_size.Shape`
(ratios, tiers, how it comes to a ratio), and each is cabled in every way that is asked for.

Where more devices come later, every way of a choice to grow is followed phase by phase. It grows
within its family, ratios, nodes, NICs and switches. It is built as small as every phase allows, or
from the start with the tiers of the last one, which costs more now and recables less. What is paid
in a phase is what its bill counts more of than was ever bought. A link is recabled where the cable
schedule of the next phase has none between the same two ends: counted, and no part of any price,
for no source states the hours that it takes.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nest_core.bill.cables import cable_schedule
from nest_core.bill.ownership import Owned, owned
from nest_core.bill.prices import Prices
from nest_core.documents import GB, InputError, format_ratio, humanise_rate
from nest_core.documents.schema.failures import FailureFile
from nest_core.documents.schema.study import DesignTable
from nest_core.fabric import Clos, Dragonfly, Fabric, Hierarchical, Tier
from nest_core.fabric.same_size import (
    KINDS,
    TIERS,
    FabricShape,
    Size,
    same_size,
    size_of,
    with_scale_up,
)
from nest_core.studies.study import Study
from nest_core.studies.whole_bill import scenario_prices

__all__ = [
    "Bought",
    "Design",
    "GrowthPath",
    "GrowthPhase",
    "Refused",
    "design_space",
    "non_blocking",
    "ways_to_grow",
]


@dataclass(frozen=True, slots=True)
class Bought:
    """What decides how fast a design can be: no topology of it beats a non-blocking one.

    Parameters
    ----------
    size : Size
        Its devices, NICs and switches.
    accelerator : str
        Preset; empty: the scenario's.
    """

    size: Size
    accelerator: str = ""

    def changes(self, fabric: Fabric) -> dict[str, Any]:
        """Return overrides of a scenario that make it one on a fabric of this."""
        accelerator = {"accelerator": self.accelerator} if self.accelerator else {}
        return {**accelerator, "fabric": fabric.document()}


@dataclass(frozen=True, slots=True)
class Build:
    """How a fabric is built of a size.

    Parameters
    ----------
    family : str
        Of `same_size.KINDS`.
    shape : FabricShape
        Where it is a Clos.
    optics : tuple of (str, str)
        Kinds of cable by tier; those of the price list where it is silent.
    """

    family: str
    shape: FabricShape
    optics: tuple[tuple[str, str], ...]

    def of(self, size: Size) -> Fabric:
        """Return the fabric.

        Raises
        ------
        InputError
            If it does not exist at this size, or has no such tiers to cable.
        """
        fabric = same_size(size, self.family, self.shape)
        if not self.optics:
            return fabric
        if not isinstance(fabric, Clos | Dragonfly):
            raise InputError(
                "design.optics", "must name tiers", self.optics[0][0], f"a {fabric.noun} has none"
            )
        return replace(fabric, optics=self.optics)


@dataclass(frozen=True, slots=True)
class Design:
    """A fabric that can be bought.

    Parameters
    ----------
    name : str
    fabric : Fabric
    bought : Bought
    build : Build
    accelerator : str
        Its name, as bills have it.
    price_usd : float
        What the goal pays: the whole bill's, typical (nodes, network, what years of keeping them
        cost), or the network's alone where the goal is tokens per dollar of it.
    power_W : float
        Of nodes and network.
    owned : Owned
        Its bill.
    """

    name: str
    fabric: Fabric
    bought: Bought
    build: Build
    accelerator: str
    price_usd: float
    power_W: float
    owned: Owned

    @property
    def changes(self) -> dict[str, Any]:
        """Overrides of a scenario that make it one on this."""
        return self.bought.changes(self.fabric)


Refused = dict[str, str]
"""A design that does not exist or breaks a limit, ``name``, and ``reason``, as rows have them."""


def design_space(study: Study) -> tuple[list[Design], list[Refused]]:
    """Return what a study may buy, and what not.

    Raises
    ------
    InputError
        If the study has no design, its scenario's fabric does not say its NICs, or nothing meets
        the limits: then the nearest is named, and by how much it misses.
    """
    table = study.design
    if table is None:
        raise InputError("design", "is required", "missing", "add [design], or use sweep")
    if unknown := [name for name in table.families if name not in KINDS]:
        raise InputError(
            "design.families",
            "must be topologies of a size",
            unknown[0],
            "pick " + ", ".join(KINDS),
        )
    prices = scenario_prices(study.members[0].scenario)
    failures = study.members[0].scenario.failures
    names: dict[str, str] = {}
    designs: list[Design] = []
    refused: list[Refused] = []
    built: set[tuple[str, Fabric]] = set()
    for words, bought, build in _choices(table, study, names, refused):
        name = _name(table, build, None, words)
        try:
            fabric = build.of(bought.size)
            name = _name(table, build, fabric, words)
            if (bought.accelerator, fabric) in built:  # as a torus: no switches of a radix
                continue
            built.add((bought.accelerator, fabric))
            bill = owned(fabric, prices, names[bought.accelerator], failures=failures)
        except InputError as error:
            refused.append({"name": name, "reason": str(error)})
            continue
        all_usd = table.goal != "tokens_per_network_usd"
        price = (bill.total_usd if all_usd else bill.network.price_usd).typical
        accelerator, power_W = names[bought.accelerator], bill.power_W.typical
        designs.append(Design(name, fabric, bought, build, accelerator, price, power_W, bill))
    designs, unpriced = _comparable(designs)
    reasons = [_excess(table, design) for design in designs]
    if designs and all(reasons):
        raise _nothing(table, designs)
    pairs = list(zip(designs, reasons, strict=True))
    dear = [{"name": design.name, "reason": reason} for design, reason in pairs if reason]
    return [design for design, reason in pairs if not reason], refused + unpriced + dear


def non_blocking(size: Size) -> Fabric:
    """Return what no fabric of a size beats: one switch that every node reaches at full rate.

    A node's NICs are one link, whichever of its devices send.
    """
    nics = size.nics_per_node * size.nic_bandwidth_Bps
    return Hierarchical(
        name="non-blocking",
        tiers=(
            Tier("node", size.devices_per_node, size.intra_bandwidth_Bps, size.intra_latency_s),
            Tier("switch", size.nodes, nics, size.hop_latency_s, "child"),
        ),
    )


def _choices(
    table: DesignTable, study: Study, names: dict[str, str], refused: list[Refused]
) -> Iterator[tuple[str, Bought, Build]]:
    """Yield what is bought, how it is built, and what of the first tells it from others.

    ``names`` is given the accelerators' names by their presets, ``refused`` what has no size.
    """
    sized = itertools.product(
        table.nodes,
        table.devices or table.phases[:1] or (None,),
        table.nics_per_node or (None,),  # None: the scenario's own
        table.nic_GBps or (None,),
        table.radix or (None,),
    )
    bases: dict[str, Size] = {}
    for node, devices, nics, rate, radix in sized:
        preset = node.accelerator or ""
        if preset not in bases:
            change = {"accelerator": preset} if preset else {}
            scenario = replace(study.members[0].scenario, overrides=change).values
            bases[preset] = size_of(scenario.fabric)
            names[preset] = scenario.accelerator.name
        base = bases[preset]
        words = f", {devices:,} devices" if devices and table.devices else ""
        if len(table.nodes) > 1:
            words += f", nodes of {node.devices_per_node or base.devices_per_node} {names[preset]}"
        try:
            size = replace(base, devices=devices) if devices else base
            size = with_scale_up(size, node.devices_per_node) if node.devices_per_node else size
            inside = node.scale_up_GBps
            size = replace(
                size,
                nics_per_node=node.nics_per_node or nics or size.nics_per_node,
                nic_bandwidth_Bps=rate * GB if rate else size.nic_bandwidth_Bps,
                radix=radix or size.radix,
                intra_bandwidth_Bps=inside * GB if inside else size.intra_bandwidth_Bps,
            )
        except InputError as error:
            refused += (
                {"name": f"{family}{words}", "reason": str(error)} for family in table.families
            )
            continue
        rated = humanise_rate(size.nic_bandwidth_Bps)
        words += f", {size.nics_per_node} NICs of {rated}, radix {size.radix}"
        yield from (
            (words, Bought(size, preset), Build(family, shape, tuple(optics.items())))
            for family in table.families
            for shape, optics in itertools.product(_shapes(table, family), table.optics)
        )


def _shapes(table: DesignTable, family: str) -> Iterator[FabricShape]:
    """Yield how a family may be built."""
    if family not in TIERS:
        yield FabricShape()
        return
    yield from (
        FabricShape((leaf, pod), tiers, way)
        for tiers, leaf, pod, way in itertools.product(
            _tiers(table, family), table.ratios, table.outer_ratios, table.oversubscribe
        )
    )


def _tiers(table: DesignTable, family: str) -> Sequence[int]:
    """Of the numbers that are asked for those that a family may have; if none, it is refused."""
    return [count for count in table.tiers if count in TIERS[family]] or table.tiers or [0]


def _name(table: DesignTable, build: Build, fabric: Fabric | None, words: str) -> str:
    """Return a design's name: its family, what else of its build others do not share, its size."""
    name, shape = build.family, build.shape
    if build.family in TIERS:
        ratios: tuple[float, ...] = shape.ratios
        way = shape.oversubscribe
        if isinstance(fabric, Clos):  # which may have fewer tiers, or come to 1:1 either way
            ratios, way = fabric.oversubscription or (1.0,), fabric.oversubscribe
        distinct = ratios if len(table.outer_ratios) > 1 else ratios[:1]
        name += " " + " and ".join(format_ratio(ratio, 6) for ratio in distinct)
        name += f" in {shape.tiers} tiers" if len(_tiers(table, build.family)) > 1 else ""
        name += " by a split radix" if way == "split_radix" else ""
    return name + words + "".join(f", {tier} {kind}" for tier, kind in build.optics)


def _comparable(designs: list[Design]) -> tuple[list[Design], list[Refused]]:
    """Return those whose accelerators have a price, if any have: else a bill is no bill."""
    unpriced = [design for design in designs if design.owned.device_usd is None]
    if len(unpriced) == len(designs):
        return designs, []
    why = (
        "no source prices its accelerators with servers, while others of the study have a price: "
        "give prices.ownership.device_usd"
    )
    priced = [design for design in designs if design.owned.device_usd is not None]
    return priced, [{"name": design.name, "reason": why} for design in unpriced]


def _limits(table: DesignTable, design: Design) -> Iterator[tuple[str, float | None, float, str]]:
    """Yield every limit with its value for a design and its unit."""
    network = design.owned.network
    runs = [run.longest_m for total in network.links for run in total.runs]
    yield "max_usd", table.max_usd, design.owned.total_usd.typical, "$"
    yield "max_kW", table.max_kW, design.power_W / 1e3, "kW"
    yield "max_racks", table.max_racks, network.racks + network.network_racks, "racks"
    yield "max_cable_m", table.max_cable_m, max(runs, default=0), "m of the longest cable"


def _excess(table: DesignTable, design: Design) -> str:
    """Return which limit a design breaks, and by how much; empty where none."""
    for _, limit, value, unit in _limits(table, design):
        if limit is not None and value > limit:
            enough = math.ceil(value)  # a limit that allows it
            return (
                f"{enough:,} {unit}, {enough - limit:,.6g} {unit} over the limit of {limit:,.10g}"
            )
    return ""


def _nothing(table: DesignTable, designs: list[Design]) -> InputError:
    def worst(design: Design) -> tuple[float, str, float]:
        """Return by what factor it misses the limit that it misses most."""
        return max(
            (value / limit, name, limit)
            for name, limit, value, _ in _limits(table, design)
            if limit is not None
        )

    nearest = min(designs, key=worst)
    _, field, limit = worst(nearest)
    return InputError(
        f"design.{field}",
        "must leave one design",
        limit,
        f"raise it: nearest is {nearest.name} with {_excess(table, nearest)}",
    )


SMALL, ROOM = "as small as it can be", "with the tiers of the last phase"


@dataclass(frozen=True, slots=True)
class GrowthPhase:
    """One phase of a way.

    Parameters
    ----------
    devices, tiers : int
        Tiers of switches; 0 where the fabric does not say.
    paid_usd : float
        In this phase, typical; what is paid by the year is no part of it.
    links, recabled : int
        Of the fabric, and of the phase before those that end elsewhere.
    """

    devices: int
    tiers: int
    paid_usd: float
    links: int
    recabled: int


@dataclass(frozen=True, slots=True)
class GrowthPath:
    """A design and how it grows.

    Parameters
    ----------
    design, how : str
    phases : tuple of GrowthPhase
        As far as it exists.
    reason : str
        Why it does not reach the last phase; empty where it does.
    regret_usd : float
        What is paid in the first phase beyond the cheapest way that is in question, lost if
        growth does not come.
    """

    design: str
    how: str
    phases: tuple[GrowthPhase, ...]
    reason: str
    regret_usd: float = 0.0

    @property
    def total_usd(self) -> float:
        """Paid over its phases."""
        return sum(phase.paid_usd for phase in self.phases)

    @property
    def recabled(self) -> int:
        """Links that are moved on the way."""
        return sum(phase.recabled for phase in self.phases)


def ways_to_grow(study: Study, designs: Sequence[Design]) -> tuple[GrowthPath, ...]:
    """Return the ways of some designs of a study with phases; without phases none.

    Limits hold in the first phase, in which a design is bought.
    """
    table = study.design
    if table is None or len(table.phases) < 2:
        return ()
    prices = scenario_prices(study.members[0].scenario)
    failures = study.members[0].scenario.failures
    ways = [way for design in designs for way in _ways(design, table.phases, prices, failures)]
    least = min((way.phases[0].paid_usd for way in ways), default=0.0)
    return tuple(replace(way, regret_usd=way.phases[0].paid_usd - least) for way in ways)


def _ways(
    design: Design, devices: Sequence[int], prices: Prices, failures: FailureFile
) -> Iterator[GrowthPath]:
    fabrics, reason = [design.fabric], ""
    for count in devices[1:]:
        try:
            fabrics.append(design.build.of(replace(design.bought.size, devices=count)))
        except InputError as error:
            reason = f"none of {count:,} devices: {error}"
            break
    small = tuple(_phases(fabrics, design.accelerator, prices, failures))
    yield GrowthPath(design.name, SMALL, small, reason)
    last = fabrics[-1]
    if isinstance(last, Clos) and len({phase.tiers for phase in small}) > 1:
        try:
            roomy = [replace(last, devices=fabric.devices) for fabric in fabrics]
        except InputError:
            return  # fewer devices than a fabric of so many tiers can have
        phases = tuple(_phases(roomy, design.accelerator, prices, failures))
        yield GrowthPath(design.name, ROOM, phases, reason)


def _phases(
    fabrics: Sequence[Fabric], accelerator: str, prices: Prices, failures: FailureFile
) -> Iterator[GrowthPhase]:
    bought: Counter[tuple[str, str]] = Counter()
    before: Counter[tuple[str, str]] = Counter()
    for fabric in fabrics:
        bill = owned(fabric, prices, accelerator, failures=failures)
        links = Counter((cable.a, cable.b) for cable in cable_schedule(fabric, prices).cables)
        tiers = fabric.tiers if isinstance(fabric, Clos) else 0
        moved, before = (before - links).total(), links
        yield GrowthPhase(fabric.devices, tiers, _paid(bill, bought), links.total(), moved)


def _paid(bill: Owned, bought: Counter[tuple[str, str]]) -> float:
    """Return what a bill has more of than was bought; ``bought`` then has it."""
    counts: Counter[tuple[str, str]] = Counter()
    unit_usd: dict[tuple[str, str], float] = {}
    for line in bill.lines:
        if line.usd is None or not line.count or line.yearly:
            continue
        key = line.unit, line.name
        counts[key] += line.count
        unit_usd[key] = line.usd.typical / line.count
    paid = sum(count * unit_usd[key] for key, count in (counts - bought).items())
    bought |= counts  # the larger of both, in place
    return paid
