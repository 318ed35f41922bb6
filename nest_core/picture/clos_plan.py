"""A plan on a Clos fabric: stages on devices, brackets, one replica's transfers, loads of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nest_core.explain.loads import Loads
from nest_core.picture.clos_nodes import Foot
from nest_core.picture.clos_structure import Structure
from nest_core.picture.marks import Box, Line, Mark, Point, Words, between
from nest_core.picture.plan import Shown, load_look, stage_look, tier_busy
from nest_core.picture.switches import Placed
from nest_core.picture.text import text_width

__all__ = [
    "Busy",
    "brackets",
    "busy_of",
    "outlines",
    "transfers",
]


def brackets(
    structure: Structure, plan: Shown, leaves: Sequence[Foot], bottom: float
) -> list[Mark]:
    """Draw runs of racks of one stage, named below; none where a rack holds several."""
    runs: list[tuple[int, int, int]] = []
    for number, (_, groups) in enumerate(leaves):
        stage = _stage(structure, plan, groups)
        if stage is None:
            return []
        if runs and runs[-1][0] == stage:
            runs[-1] = (stage, runs[-1][1], number)
        else:
            runs.append((stage, number, number))
    if len(runs) > 4 * plan.stages:
        return []
    marks: list[Mark] = []
    for stage, first, last in runs:
        if stage >= 0:
            marks += _bracket(structure, plan, stage, (leaves[first][0], leaves[last][0]), bottom)
    return marks


def _stage(structure: Structure, plan: Shown, groups: Sequence[int]) -> int | None:
    """Return the one stage of all devices below some leaves; −1 if all are idle."""
    per_node = structure.fabric.devices_per_node
    first, last = structure.nodes_of(groups[0]).nodes, structure.nodes_of(groups[-1]).nodes
    present = structure.fabric.as_built.devices
    places = np.searchsorted(present, (first.start * per_node, last.stop * per_node))
    stages = np.unique(plan.stage[places[0] : places[1]])
    if len(stages) > 1:
        return None
    return int(stages[0]) if len(stages) else -1


def _bracket(
    structure: Structure, plan: Shown, stage: int, ends: tuple[Placed, Placed], bottom: float
) -> list[Mark]:
    first, last = ends
    left, right, y = first.box.x, last.box.x + last.box.width, bottom + 3.5
    look = f"{stage_look(stage, plan.stages)} bar"
    marks: list[Mark] = [Line(f"stage {stage + 1}", look, ((left, y), (right, y)), 2.5)]
    start, stop = first.members[0].number, last.members[-1].number
    name = structure.units[0].name
    name = f"{name}s" if name == "rack" else first.members[0].name
    span = f"{name} {start}-{stop}" if stop > start else f"{name.rstrip('s')} {start}"
    for text in (f"stage {stage + 1} {span}", f"stage {stage + 1}", f"{stage + 1}"):
        if text_width(text, 12.0) * 1.1 <= right - left:
            middle = (left + right) / 2
            key = f"stage {stage + 1}"
            return [*marks, Words(text, "label", middle, y + 13.5, anchor="middle", key=key)]
    return marks


def transfers(
    structure: Structure, plan: Shown, leaves: Sequence[Foot], spines: Sequence[Placed]
) -> list[Mark]:
    """Draw the first replica's way from stage to stage."""
    present, marks = structure.fabric.as_built.devices, list[Mark]()
    firsts = [int(present[group[0]]) for group in plan.group]
    for stage, pair in enumerate(pairwise(firsts)):
        ends = [_leaf(structure, leaves, device) for device in pair]
        if None not in ends and spines:
            spine = spines[(2 * stage + 1) * len(spines) // (2 * (len(firsts) - 1))]
            low, high = (end for end in ends if end is not None)
            marks += _way(low, high, spine)
    return marks


def outlines(structure: Structure, plan: Shown, marks: Sequence[Mark]) -> list[Mark]:
    """Outline the first replica's tensor groups."""
    present = structure.fabric.as_built.devices
    boxes = {mark.key: mark for mark in marks if isinstance(mark, Box) and mark.key}
    return [
        mark
        for group in plan.group
        for mark in _outline(boxes, structure, [int(present[device]) for device in group])
    ]


def _leaf(structure: Structure, leaves: Sequence[Foot], device: int) -> Placed | None:
    fabric = structure.fabric
    node, slot = divmod(device, fabric.devices_per_node)
    group = node // fabric.sizing.nodes_per_unit * fabric.rails + slot % fabric.rails
    return next((leaf for leaf, groups in leaves if group in groups), None)


def _way(low: Placed, high: Placed, spine: Placed) -> list[Mark]:
    """Up one leaf and down another; nothing where one leaf is both."""
    if low.key == high.key:
        return []
    middle, bottom = spine.box.centre[0], spine.box.y + spine.box.height
    marks: list[Mark] = []
    for leaf in (low, high):
        x, y = leaf.box.centre[0], leaf.box.y
        points: tuple[Point, ...] = ((x, y), (middle, bottom))
        keys = (leaf.key, spine.key)
        marks.append(Line(between(*keys), "cased", points, 4.5, keys))
        marks.append(Line(between(*keys), "lit", points, 2.8, keys))
    return marks


def _outline(boxes: Mapping[str, Box], structure: Structure, numbers: Sequence[int]) -> list[Mark]:
    """Around the cells of a tensor group, or the smallest box that holds them."""
    cells = [boxes[f"device {number}"] for number in numbers if f"device {number}" in boxes]
    if len(cells) != len(numbers):
        each = structure.fabric.devices_per_node
        node = f"node {numbers[0] // each}"
        cells = [boxes[node]] if node in boxes else []
    if not cells:
        return []
    left, top = min(c.x for c in cells) - 1, min(c.y for c in cells) - 1
    right = max(c.x + c.width for c in cells) + 1
    bottom = max(c.y + c.height for c in cells) + 1
    area = (left, top, right - left, bottom - top)
    inside = cells[0].inside or cells[0].key
    return [Box("", "cased", *area, inside), Box("", "lit", *area, inside)]


@dataclass(frozen=True, slots=True)
class Busy:
    """Loads of links as pictures have them.

    Parameters
    ----------
    looks : mapping of str to str
        Look by leaf and ``up`` or ``down``.
    words : mapping of str to str
        By class of links: how long they are busy.
    finding : str
    """

    looks: Mapping[str, str]
    words: Mapping[str, str]
    finding: str


def busy_of(structure: Structure, loads: Loads) -> Busy:
    """Busy shares of every leaf's links, both ways, from the loads that the plan is priced on."""
    fabric = structure.fabric
    leaf_of = fabric.group_of(1)
    groups = fabric.sizing.units * fabric.rails
    found = {}
    for way, level in (("down", 1), ("up", 2)):
        shares = np.zeros(groups)
        if level <= fabric.tiers:
            np.maximum.at(shares, leaf_of, tier_busy(loads, level))
        found[way] = shares
    busiest = max(float(shares.max()) for shares in found.values())
    looks = {
        f"{fabric.tier_names[0]} {group * fabric.planes + plane} {way}": load_look(share, busiest)
        for way, shares in found.items()
        for group, share in enumerate(shares.tolist())
        for plane in range(fabric.planes)
    }
    words = {f"links {fabric.tier_names[0]}": _said(found["down"], loads.iteration_s)}
    parts = [f"NIC links are busy {_percent(float(found['down'].max()))} of an iteration"]
    if fabric.tiers > 1:
        words[f"links {fabric.tier_names[1]}"] = _said(found["up"], loads.iteration_s)
        name = fabric.tier_names[0]
        parts.append(f"a {name}'s uplinks {_percent(float(found['up'].max()))}")
    return Busy(looks, words, ", ".join(parts))


def _percent(share: float) -> str:
    return f"{100 * share:.3g}\u00a0%"


def _said(shares: npt.NDArray[np.float64], seconds: float) -> str:
    """How long links are busy, least to most."""
    live = shares[shares > 0]
    if not len(live):
        return "idle"
    low, high = float(live.min()), float(live.max())
    unit, scale = ("ms", 1e3) if high * seconds < 1 else ("s", 1.0)
    least, most = f"{low * seconds * scale:.3g}", f"{high * seconds * scale:.3g}"
    span = most if least == most else f"{least} to {most}"
    return f"busy {span}\u00a0{unit}, up to {_percent(high)}"
