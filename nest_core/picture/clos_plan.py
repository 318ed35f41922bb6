"""A plan on a Clos fabric: stages on devices, brackets, one replica's transfers, loads of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nest_core.explain.loads import Loads
from nest_core.picture.clos_structure import Pod, Structure
from nest_core.picture.clos_tiers import Layer, Region
from nest_core.picture.marks import Box, Line, Mark, Point, Swatch, Words, between
from nest_core.picture.plan import Shown, load_look, stage_look, tier_busy
from nest_core.picture.switches import Placed
from nest_core.picture.text import text_width

__all__ = [
    "Busy",
    "StagePaint",
    "brackets",
    "busy_of",
    "stage_legend",
    "stage_paint",
    "transfers",
]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class StagePaint:
    """The look of devices by their numbers, failed ones counted.

    Parameters
    ----------
    shown : Shown
    place : int array (slots,)
        Of every number among the devices present; −1 where it has failed.
    """

    shown: Shown
    place: IntArray

    def __call__(self, devices: Sequence[int]) -> str:
        """Their stage, if they share one."""
        places = self.place[list(devices)]
        return self.shown.look(places[places >= 0].tolist())


def stage_paint(structure: Structure, plan: Shown) -> StagePaint:
    """Colours for a fabric's devices."""
    present = structure.fabric.as_built.devices
    place = np.full(structure.fabric.slots, -1, np.int64)
    place[present] = np.arange(len(present))
    return StagePaint(plan, place)


def stage_legend(plan: Shown) -> tuple[Swatch, ...]:
    """First and last stage."""
    ends = (0, plan.stages - 1) if plan.stages > 1 else (0,)
    entries = [Swatch("box", stage_look(at, plan.stages), f"stage {at + 1}") for at in ends]
    if plan.stages > 2:
        entries.insert(1, Swatch("box", stage_look(plan.stages // 2, plan.stages), "…"))
    if plan.stages > 1:
        entries.append(Swatch("line", "lit", "replica 1, its transfers"))
    if (plan.stage < 0).any():
        entries.append(Swatch("box", "idle", "idle"))
    return tuple(entries)


def brackets(
    structure: Structure, paint: StagePaint, pod: Pod, leaves: Sequence[Placed], region: Region
) -> list[Mark]:
    """Runs of racks of one stage, named below; none where a rack holds several."""
    runs: list[tuple[int, int, int]] = []
    at = 0
    for number, leaf in enumerate(leaves):
        groups = pod.groups[at : at + len(leaf.members)]
        at += len(groups)
        stage = _stage(structure, paint, groups)
        if stage is None:
            return []
        if runs and runs[-1][0] == stage:
            runs[-1] = (stage, runs[-1][1], number)
        else:
            runs.append((stage, number, number))
    if len(runs) > 4 * paint.shown.stages:
        return []
    marks: list[Mark] = []
    for stage, first, last in runs:
        if stage >= 0:
            marks += _bracket(structure, paint.shown, stage, (leaves[first], leaves[last]), region)
    return marks


def _stage(structure: Structure, paint: StagePaint, groups: Sequence[int]) -> int | None:
    """The one stage of all devices below some leaves; −1 if all are idle."""
    each = structure.fabric.devices_per_node
    first, last = structure.nodes_of(groups[0]).nodes, structure.nodes_of(groups[-1]).nodes
    places = paint.place[first.start * each : last.stop * each]
    found = np.unique(paint.shown.stage[places[places >= 0]])
    if len(found) > 1:
        return None
    return int(found[0]) if len(found) else -1


def _bracket(
    structure: Structure, plan: Shown, stage: int, ends: tuple[Placed, Placed], region: Region
) -> list[Mark]:
    first, last = ends
    left, right, y = first.box.x, last.box.x + last.box.width, region.bottom + 3.5
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


def transfers(structure: Structure, plan: Shown, pod: Pod, layer: Layer) -> list[Mark]:
    """The first replica's tensor groups, outlined, and its way from stage to stage."""
    names = structure.fabric.tier_names
    present = structure.fabric.as_built.devices
    boxes = {mark.key: mark for mark in layer.marks if isinstance(mark, Box) and mark.key}
    leaves, spines = layer.boxes[names[0]], layer.boxes.get(names[1] if len(names) > 1 else "", ())
    marks: list[Mark] = []
    held = [[int(present[device]) for device in group] for group in plan.group]
    for stage, (here, there) in enumerate(pairwise(held)):
        ends = [_leaf(structure, pod, leaves, numbers[0]) for numbers in (here, there)]
        if None not in ends and spines:
            spine = spines[(2 * stage + 1) * len(spines) // (2 * (len(held) - 1))]
            low, high = (end for end in ends if end is not None)
            marks += _way(low, high, spine)
    for numbers in held:
        marks += _outline(boxes, structure, numbers)
    return marks


def _leaf(structure: Structure, pod: Pod, leaves: Sequence[Placed], device: int) -> Placed | None:
    fabric = structure.fabric
    node, slot = divmod(device, fabric.devices_per_node)
    unit = node // fabric.sizing.nodes_per_unit
    group, at = unit * fabric.rails + slot % fabric.rails, 0
    for leaf in leaves:
        held = pod.groups[at : at + len(leaf.members)]
        at += len(leaf.members)
        if group in held:
            return leaf
    return None


def _way(low: Placed, high: Placed, spine: Placed) -> list[Mark]:
    """Up one leaf and down another; nothing where one leaf is both."""
    if low.key == high.key:
        return []
    middle, bottom = spine.box.centre[0], spine.box.y + spine.box.height
    marks: list[Mark] = []
    for leaf in (low, high):
        x, y = leaf.box.centre[0], leaf.box.y
        points: tuple[Point, ...] = ((x, y), (middle, bottom))
        if leaf.rise:
            points = ((x, y), (x, y - leaf.rise), (middle, bottom))
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
