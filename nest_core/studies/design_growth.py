"""What to buy now where more devices come later: every way of a choice to grow, phase by phase.

A design grows within its family, ratios, nodes, NICs and switches. It is built as small as every
phase allows, or from the start with the tiers of the last one, which costs more now and recables
less. What is paid in a phase is what its bill counts more of than was ever bought. A link is
recabled where the cable schedule of the next phase has none between the same two ends: counted, and
no part of any price, for no source states the hours that it takes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nest_core.bill.cables import cable_schedule
from nest_core.bill.ownership import Owned, owned
from nest_core.bill.prices import Prices
from nest_core.documents.errors import InputError
from nest_core.fabric import Clos, Fabric
from nest_core.studies.design_space import Design
from nest_core.studies.study import Study
from nest_core.studies.whole_bill import scenario_prices

__all__ = ["GrowthPath", "GrowthPhase", "ways_to_grow"]

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
    ways = [way for design in designs for way in _ways(design, table.phases, prices)]
    least = min((way.phases[0].paid_usd for way in ways), default=0.0)
    return tuple(replace(way, regret_usd=way.phases[0].paid_usd - least) for way in ways)


def _ways(design: Design, devices: Sequence[int], prices: Prices) -> Iterator[GrowthPath]:
    fabrics, reason = [design.fabric], ""
    for count in devices[1:]:
        try:
            fabrics.append(design.build.of(replace(design.bought.size, devices=count)))
        except InputError as error:
            reason = f"none of {count:,} devices: {error}"
            break
    small = tuple(_phases(fabrics, design.accelerator, prices))
    yield GrowthPath(design.name, SMALL, small, reason)
    last = fabrics[-1]
    if isinstance(last, Clos) and len({phase.tiers for phase in small}) > 1:
        try:
            roomy = [replace(last, devices=fabric.devices) for fabric in fabrics]
        except InputError:
            return  # fewer devices than a fabric of so many tiers can have
        yield GrowthPath(
            design.name, ROOM, tuple(_phases(roomy, design.accelerator, prices)), reason
        )


def _phases(fabrics: Sequence[Fabric], accelerator: str, prices: Prices) -> Iterator[GrowthPhase]:
    bought: Counter[tuple[str, str]] = Counter()
    before: Counter[tuple[str, str]] = Counter()
    for fabric in fabrics:
        bill = owned(fabric, prices, accelerator)
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
