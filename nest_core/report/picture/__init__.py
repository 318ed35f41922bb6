"""Pictures of fabrics, drawn by rule: what each kind looks like, from 8 to 131,072 devices.

What a kind looks like is a function: one module per kind and one line below. Counts are those of
the inventory; positions follow from the kind's structure and from the width alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nest_core.costs import Plan
from nest_core.costs.loads import Loads
from nest_core.documents.errors import require
from nest_core.fabric import Clos, Dragonfly, Fabric, GraphFabric, Hierarchical, Torus, as_graph
from nest_core.network import collapse
from nest_core.report.picture.clos import clos_drawn
from nest_core.report.picture.dragonfly import dragonfly_drawn
from nest_core.report.picture.drawn_graph import graph_drawn
from nest_core.report.picture.frame import untitled
from nest_core.report.picture.grids import torus_drawn
from nest_core.report.picture.hierarchical import hierarchical_drawn
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Swatch, TierLabel, Words
from nest_core.report.picture.plan import DrawOptions, parts_of, plan_on_devices
from nest_core.report.picture.svg import to_svg

__all__ = [
    "Band",
    "Box",
    "DrawOptions",
    "Drawn",
    "Line",
    "Mark",
    "Swatch",
    "TierLabel",
    "Words",
    "picture",
    "to_svg",
    "untitled",
]

_MIN_WIDTH = 160.0
_MAX_WIDTH = 4096.0


_KINDS: Mapping[type[Fabric], Callable[[Any, DrawOptions], Drawn]] = {
    Clos: clos_drawn,
    Dragonfly: dragonfly_drawn,
    GraphFabric: graph_drawn,
    Hierarchical: hierarchical_drawn,
    Torus: torus_drawn,
}
"""How each kind of fabric is drawn; others are as their elements and links."""


def picture(
    fabric: Fabric,
    plan: Plan | None = None,
    *,
    width: float = 900.0,
    loads: Loads | None = None,
) -> Drawn:
    """Return the picture of a fabric, and of a plan on it.

    Parameters
    ----------
    fabric : Fabric
    plan : Plan, optional
        Its stages colour the devices.
    width : float
        Pixels; the height follows.
    loads : Loads, optional
        Of the plan; they colour the links.

    Raises
    ------
    InputError
        For a width out of range, and for over 16,384 devices of a kind without a rule of its own.
    """
    require(
        _MIN_WIDTH <= width <= _MAX_WIDTH,
        "width",
        f"must be {_MIN_WIDTH:.0f} to {_MAX_WIDTH:.0f} pixels",
        width,
        "change it",
    )
    stages = (
        None
        if plan is None
        else plan_on_devices(loads.network if loads else collapse(fabric), plan)
    )
    shape = fabric if isinstance(fabric, tuple(_KINDS)) else as_graph(fabric)
    draw = next(draw for kind, draw in _KINDS.items() if isinstance(shape, kind))
    return draw(shape, DrawOptions(width, parts_of(shape), stages, loads))
