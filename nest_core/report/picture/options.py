"""What a picture is asked to show, and where its counts come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from nest_core.bill.bill import inventory
from nest_core.bill.inventory import Inventory
from nest_core.bill.prices import Prices, load_prices
from nest_core.explain.loads import Loads
from nest_core.fabric import Fabric
from nest_core.report.picture.plan import PlanOnDevices

__all__ = ["DrawOptions", "parts_of"]


@lru_cache(maxsize=1)
def _prices() -> Prices:
    """The list that says how racks stand; a picture shows nothing else of it."""
    return load_prices()


def parts_of(fabric: Fabric) -> Inventory:
    """The inventory of a fabric."""
    return inventory(fabric, _prices())


@dataclass(frozen=True, slots=True, eq=False)
class DrawOptions:
    """What a picture is asked to show, beside the fabric.

    Parameters
    ----------
    width : float
        Pixels.
    parts : Inventory
        Of the fabric, where all counts that are said come from.
    slow : mapping of str to float
        Switches by their key (``"leaf 11"``) and the share of their links' rate that is left.
    plan : PlanOnDevices or None
        What devices do.
    loads : Loads or None
        What links carry.
    """

    width: float
    parts: Inventory
    slow: Mapping[str, float] = field(default_factory=dict)
    plan: PlanOnDevices | None = None
    loads: Loads | None = None
