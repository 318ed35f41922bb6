"""A fabric as a picture, drawn by its kind's own rule.

What a kind looks like is a function that `drawn` dispatches to by type: one module per kind and one
``register`` below. Counts are those of the inventory; positions follow from the kind's structure
and from the width alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

from nest_core.costs import Plan
from nest_core.documents.errors import InputError
from nest_core.explain.loads import Loads
from nest_core.fabric import Clos, Dragonfly, Fabric, GraphFabric, Hierarchical, Torus
from nest_core.network import collapse
from nest_core.report.picture.clos import clos_drawn
from nest_core.report.picture.dragonfly import dragonfly_drawn
from nest_core.report.picture.drawn_graph import graph_drawn
from nest_core.report.picture.grids import torus_drawn
from nest_core.report.picture.hierarchical import hierarchical_drawn
from nest_core.report.picture.marks import Drawn
from nest_core.report.picture.options import DrawOptions, parts_of
from nest_core.report.picture.plan import plan_on_devices

__all__ = ["drawn", "picture"]

LEAST_WIDTH = 160.0
MOST_WIDTH = 4096.0


@singledispatch
def drawn(fabric: Fabric, options: DrawOptions) -> Drawn:
    """Draw a fabric of any kind that registers how.

    Raises
    ------
    InputError
        For a kind that nothing is registered for.
    """
    del options
    raise InputError("kind", "must be one that has a picture", fabric.kind, "draw its link graph")


drawn.register(Clos, clos_drawn)
drawn.register(Dragonfly, dragonfly_drawn)
drawn.register(GraphFabric, graph_drawn)
drawn.register(Hierarchical, hierarchical_drawn)
drawn.register(Torus, torus_drawn)


def picture(
    fabric: Fabric,
    plan: Plan | None = None,
    *,
    width: float = 900.0,
    loads: Loads | None = None,
    slow: Mapping[str, float] | None = None,
) -> Drawn:
    """The picture of a fabric, and of a plan on it.

    Parameters
    ----------
    fabric : Fabric
    plan : Plan, optional
        Its stages colour the devices.
    width : float
        Pixels; the height follows.
    loads : Loads, optional
        Of the plan; they colour the links.
    slow : mapping of str to float, optional
        Switches by their key (``"leaf 11"``) and the share of their links' rate that is left.

    Raises
    ------
    InputError
        For a width out of range.
    """
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise InputError(
            "width", f"must be {LEAST_WIDTH:.0f} to {MOST_WIDTH:.0f} pixels", width, "change it"
        )
    stages = None
    if plan is not None:
        stages = plan_on_devices(loads.network if loads else collapse(fabric), plan)
    return drawn(fabric, DrawOptions(width, parts_of(fabric), slow or {}, stages, loads))
