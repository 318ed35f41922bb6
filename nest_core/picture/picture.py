"""A fabric as a picture, drawn by its kind's own rule.

What a kind looks like is a function that `drawn` dispatches to by type: one module per kind and one
``register`` below. Counts are those of the inventory; positions follow from the kind's structure
and from the width alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, singledispatch

from nest_core.bill.bill import inventory
from nest_core.bill.inventory import Inventory
from nest_core.bill.prices import Prices, load_prices
from nest_core.errors import InputError
from nest_core.picture.marks import Drawn
from nest_core.topology import Fabric

__all__ = ["Ask", "drawn", "picture"]

LEAST_WIDTH = 160.0
MOST_WIDTH = 4096.0


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What a picture is asked to show, beside the fabric.

    Parameters
    ----------
    width : float
        Pixels.
    parts : Inventory
        Of the fabric, where all counts that are said come from.
    """

    width: float
    parts: Inventory


@lru_cache(maxsize=1)
def _prices() -> Prices:
    """The list that says how racks stand; a picture shows nothing else of it."""
    return load_prices()


@singledispatch
def drawn(fabric: Fabric, ask: Ask) -> Drawn:
    """Draw a fabric of any kind that registers how.

    Raises
    ------
    InputError
        For a kind that nothing is registered for.
    """
    del ask
    raise InputError("kind", "must be one that has a picture", fabric.kind, "draw its link graph")


def picture(fabric: Fabric, *, width: float = 900.0) -> Drawn:
    """The picture of a fabric.

    Parameters
    ----------
    fabric : Fabric
    width : float
        Pixels; the height follows.

    Raises
    ------
    InputError
        For a width out of range.
    """
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise InputError(
            "width", f"must be {LEAST_WIDTH:.0f} to {MOST_WIDTH:.0f} pixels", width, "change it"
        )
    return drawn(fabric, Ask(width, inventory(fabric, _prices())))
