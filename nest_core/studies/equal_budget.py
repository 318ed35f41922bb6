"""As much fabric as a budget buys: the same design with another number of nodes, solved anew.

The budget is for the network alone: its typical price or power (`nest_core.bill.bill`);
accelerators and servers are no part of it. A Clos grows or shrinks by whole nodes, a hierarchy by
whole groups of its outermost level; radix, ratios, link rates and numbers of tiers stay. Torus,
dragonfly and drawn fabrics are what they are: they fit or do not. Elements that failed are
put back. The job stays the same, its global batch too; what the new plan leaves idle is paid for.

The largest size is found by bisection from the present one, as if a larger fabric never cost less.
That is nearly so (whole spines come in steps); what is returned never exceeds the budget.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Literal

from nest_core.bill.bill import Bill, bill
from nest_core.bill.prices import Prices
from nest_core.costs.price import Report
from nest_core.documents import InputError, format_money, humanise_power
from nest_core.documents.schema import in_labels
from nest_core.fabric import Clos, Fabric, Hierarchical
from nest_core.scenario import Scenario, ScenarioValues
from nest_core.studies.solving import solve

__all__ = ["MAX_DEVICES", "AtBudget", "Budget", "at_budget", "spent"]

MAX_DEVICES = 32_768
"""Larger fabrics are not tried."""

Kind = Literal["price", "power"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What a network may cost or draw.

    Parameters
    ----------
    kind : {"price", "power"}
    value : float
        US dollars or watts.
    """

    kind: Kind
    value: float

    @property
    def words(self) -> str:
        """The amount with its unit."""
        return format_money(self.value) if self.kind == "price" else humanise_power(self.value)


@dataclass(frozen=True, slots=True)
class AtBudget:
    """The largest fabric of a design within a budget, and what the job reaches on it.

    Parameters
    ----------
    budget : Budget
    devices : int
        0 where nothing fits.
    network : Bill or None
        Of it.
    tokens_per_s : float or None
    report : Report or None
    note : str
        Why there is no plan or no larger fabric; empty if nothing is to be said.
    """

    budget: Budget
    devices: int
    network: Bill | None = None
    tokens_per_s: float | None = None
    report: Report | None = None
    note: str = ""

    @property
    def spent(self) -> float | None:
        """What its network takes of the budget; None where nothing fits."""
        return spent(self.network, self.budget.kind) if self.network else None


@dataclass(frozen=True, slots=True)
class _Scaling:
    """A fabric with another number of its outermost parts, each of ``size`` devices.

    ``sized`` gives the fabric of so many parts, ``settings`` the overrides that ask for it.
    """

    parts: int
    size: int
    sized: Callable[[int], Fabric]
    settings: Callable[[int], dict[str, Any]]


def spent(network: Bill, kind: Kind) -> float:
    """Return what counts against a budget: typical US dollars or watts."""
    return (network.price_usd if kind == "price" else network.power_W).typical


def at_budget(
    scenario: Scenario,
    budget: Budget,
    prices: Prices,
    *,
    stop: Callable[[], bool] | None = None,
) -> AtBudget:
    """Scale a scenario's fabric to a budget and solve the job on it.

    Parameters
    ----------
    scenario : Scenario
    budget : Budget
    prices : Prices
    stop : callable, optional
        See `search`.
    """
    fabric = scenario.values.fabric
    scaling = _scaling(fabric)
    if scaling is None:
        if spent(bill(fabric, prices), budget.kind) > budget.value:
            return AtBudget(budget, 0, note="it cannot be scaled, and costs more")
        return _solved(budget, scenario.values, prices, stop, "it cannot be scaled: as it is")
    max_parts = MAX_DEVICES // scaling.size

    def cost(parts: int) -> float:
        try:
            return spent(bill(scaling.sized(parts), prices), budget.kind)
        except InputError:  # more than its switches have ports for
            return float("inf")

    parts = _largest(lambda count: cost(count) <= budget.value, scaling.parts, max_parts)
    if parts == 0:
        return AtBudget(budget, 0, note="not even its smallest size is within budget")
    note = ""
    if parts == max_parts:
        note = f"fabrics of more than {MAX_DEVICES:,} devices are not tried"
    elif cost(parts + 1) == float("inf"):
        note = "its switches have no ports for more; another tier would"
    settings = {**scenario.overrides, **scaling.settings(parts)}
    try:
        sized = replace(scenario, overrides=settings).values
    except InputError as error:  # a degree that is pinned needs more devices
        return AtBudget(
            budget,
            parts * scaling.size,
            bill(scaling.sized(parts), prices),
            note=in_labels(str(error)),
        )
    return _solved(budget, sized, prices, stop, note)


def _solved(
    budget: Budget,
    scenario: ScenarioValues,
    prices: Prices,
    stop: Callable[[], bool] | None,
    note: str,
) -> AtBudget:
    solved = solve(scenario, scenario.problem(), stop=stop)
    best = solved.best
    return AtBudget(
        budget,
        scenario.fabric.devices,
        bill(scenario.fabric, prices),
        best.samples_per_s * scenario.sequence if best else None,
        best,
        solved.reason or note,
    )


@singledispatch
def _scaling(fabric: Fabric) -> _Scaling | None:
    """Return how a fabric is scaled; None where it is what it is."""
    return None


@_scaling.register
def _(fabric: Clos) -> _Scaling | None:
    size = fabric.devices_per_node
    return _Scaling(
        fabric.nodes,
        size,
        lambda nodes: replace(fabric, devices=nodes * size, installed=0, missing=()),
        lambda nodes: {"fabric.clos.devices": nodes * size, "fabric.missing": []},
    )


@_scaling.register
def _(fabric: Hierarchical) -> _Scaling | None:
    if any(tier.group_sizes for tier in fabric.tiers):
        return None
    *inner, outer = fabric.tiers
    return _Scaling(
        outer.group_size,
        math.prod(tier.group_size for tier in inner),
        lambda groups: replace(
            fabric, tiers=(*inner, replace(outer, group_size=groups)), missing=()
        ),
        lambda groups: {f"fabric.level.{len(inner)}.group_size": groups, "fabric.missing": []},
    )


def _largest(fits: Callable[[int], bool], start: int, limit: int) -> int:
    """Return the largest count up to ``limit`` that fits, 0 if none does.

    Examples
    --------
    >>> [_largest(lambda n: n <= 37, start, 64) for start in (1, 37, 50)]
    [37, 37, 37]
    """
    low, high = 0, min(start, limit)
    while high <= limit and fits(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
