"""Which rule draws a Clos fabric: by its tiers, rails and planes."""

from __future__ import annotations

from dataclasses import replace

from nest_core.bill.inventory import Inventory
from nest_core.picture.ask import Ask, parts_of
from nest_core.picture.clos import Sketch, two_tiers
from nest_core.picture.clos_apart import rails_apart
from nest_core.picture.clos_plan import busy_of, stage_paint
from nest_core.picture.clos_planes import mirrored
from nest_core.picture.clos_pods import three_tiers
from nest_core.picture.clos_structure import Structure
from nest_core.picture.clos_words import Counts
from nest_core.picture.domains import domains_drawn, has_domains
from nest_core.picture.marks import Drawn
from nest_core.picture.one_node import MOST_DEVICES, node_drawn
from nest_core.picture.racks import Paint, Racks, plain
from nest_core.topology import Clos

__all__ = ["clos_drawn"]


def clos_drawn(fabric: Clos, ask: Ask) -> Drawn:
    """The picture of a Clos fabric."""
    structure = Structure(fabric, ask.parts.hall.per_rack, ask.slow)
    paint: Paint = plain if ask.plan is None else stage_paint(structure, ask.plan)
    sketch = Sketch(
        structure,
        _counts(fabric, ask),
        Racks(structure, paint),
        ask.width,
        ask.opened,
        ask.plan,
        None if ask.loads is None else busy_of(structure, ask.loads),
    )
    if fabric.nodes == fabric.tiers == fabric.planes == 1 < fabric.slots <= MOST_DEVICES:
        return node_drawn(fabric, ask)
    if has_domains(fabric, ask):
        return domains_drawn(sketch)
    if fabric.tiers == 3 and fabric.pods == "units" and fabric.kind != "rail_only":
        return three_tiers(sketch)
    if fabric.kind == "rail_only" or fabric.pods == "rails":
        return rails_apart(sketch)
    if fabric.planes == 2:
        return mirrored(sketch)
    return two_tiers(sketch)


def _counts(fabric: Clos, ask: Ask) -> Counts:
    """What there is and what has failed, by class of the bill."""
    here = _by_class(fabric, ask.parts)
    if not fabric.missing:
        return {name: (count, 0) for name, count in here.items()}
    whole = replace(fabric, missing=(), installed=0, devices=fabric.slots)
    return {
        name: (here[name], count - here[name])
        for name, count in _by_class(whole, parts_of(whole)).items()
    }


def _by_class(fabric: Clos, parts: Inventory) -> dict[str, int]:
    found = {one.role: one.count for one in parts.switches}
    found |= {f"links {one.tier}": one.count for one in parts.links}
    return found | {"node": parts.nodes, "device": fabric.devices}
