"""The fabrics that a design study may buy: every one that its choices make, with its whole bill.

A choice of NICs per node, their rate and the switches' radix is a size (`same_size.Size`); every
family makes one fabric of it, a Clos one for every ratio of its innermost tier.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nest_core.bill.ownership import owned
from nest_core.errors import InputError
from nest_core.scenario import Scenario, resolve_scenario
from nest_core.schema.study import DesignTable
from nest_core.studies.study import Study
from nest_core.studies.whole_bill import scenario_prices
from nest_core.topology import Clos, Fabric, Hierarchical
from nest_core.topology.hierarchical import Tier
from nest_core.topology.same_size import KINDS, Size, same_size, size_of
from nest_core.units import GB, humanise_rate

__all__ = ["Design", "Refused", "design_space", "non_blocking"]


@dataclass(frozen=True, slots=True)
class Design:
    """A fabric that can be bought.

    Parameters
    ----------
    name : str
    fabric : Fabric
    size : Size
        Its NICs and switches.
    price_usd, power_W : float
        The whole bill's, typical: nodes, network, and what years of keeping them cost.
    missing : tuple of str
        Lines of the bill that no source prices.
    """

    name: str
    fabric: Fabric
    size: Size
    price_usd: float
    power_W: float
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A design that does not exist, or that the limits do not allow; ``reason`` says why."""

    name: str
    reason: str


def design_space(study: Study) -> tuple[list[Design], list[Refused]]:
    """What a study may buy, and what not.

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
        hint = "pick " + ", ".join(KINDS)
        raise InputError("design.families", "must be topologies of a size", unknown[0], hint)
    member = study.members[0]
    scenario = resolve_scenario(member.document, {}, member.folder)
    prices = scenario_prices(member.document, {}, member.folder)
    found: list[Design] = []
    refused: list[Refused] = []
    for name, size, fabric, reason in _made(table, scenario):
        if fabric is None:
            refused.append(Refused(name, reason))
            continue
        try:
            bill = owned(fabric, prices, scenario.accelerator.name)
        except InputError as error:
            refused.append(Refused(name, str(error)))
            continue
        price, power = bill.total_usd.typical, bill.power_W.typical
        found.append(Design(name, fabric, size, price, power, bill.missing))
    dear = [Refused(one.name, said) for one in found if (said := _over(table, one))]
    if found and len(dear) == len(found):
        raise _nothing(table, found)
    return [one for one in found if not _over(table, one)], refused + dear


def non_blocking(size: Size) -> Fabric:
    """What no fabric of a size is faster than: one switch that every node reaches at full rate.

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


def _made(table: DesignTable, scenario: Scenario) -> Iterator[tuple[str, Size, Fabric | None, str]]:
    """Name, size, and the fabric or why there is none."""
    base = size_of(scenario.fabric)
    nics = table.nics_per_node or [base.nics_per_node]
    rates = [rate * GB for rate in table.nic_GBps or []] or [base.nic_bandwidth_Bps]
    for count, rate, radix in itertools.product(nics, rates, table.radix or [base.radix]):
        size = replace(base, nics_per_node=count, nic_bandwidth_Bps=rate, radix=radix)
        said = f"{count} NICs of {humanise_rate(rate)}, radix {radix}"
        for one in same_size(size, table.families):
            if not isinstance(one.fabric, Clos) or not one.fabric.oversubscription:
                yield f"{one.kind}, {said}", size, one.fabric, one.reason
                continue
            for ratio in dict.fromkeys(table.ratios):
                name = f"{one.kind} {ratio:g}:1, {said}"
                tiers = (ratio, *one.fabric.oversubscription[1:])
                try:
                    yield name, size, replace(one.fabric, oversubscription=tiers), ""
                except InputError as error:
                    yield name, size, None, str(error)


def _over(table: DesignTable, one: Design) -> str:
    """Which limit a design breaks, and by how much; empty where none."""
    for limit, value, unit in (
        (table.max_usd, one.price_usd, "$"),
        (table.max_kW, one.power_W / 1e3, "kW"),
    ):
        if limit is not None and value > limit:
            return (
                f"{value:,.6g} {unit}, {value - limit:,.3g} {unit} over the limit of {limit:,.6g}"
            )
    return ""


def _nothing(table: DesignTable, found: list[Design]) -> InputError:
    def excess(one: Design) -> float:
        limits = ((table.max_usd, one.price_usd), (table.max_kW, one.power_W / 1e3))
        return max(value / limit for limit, value in limits if limit is not None)

    nearest = min(found, key=excess)
    field = "max_usd" if table.max_usd is not None else "max_kW"
    value: Any = getattr(table, field)
    return InputError(
        f"design.{field}",
        "must leave one design",
        value,
        f"raise it: nearest is {nearest.name} with {_over(table, nearest)}",
    )
