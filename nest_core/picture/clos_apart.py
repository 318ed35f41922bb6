"""Rails that are networks of their own: every plane ends in its own spines.

Rail-only fabrics join the planes nowhere, and an empty dashed row says so. Where the pods of three
tiers are of one rail each, the planes' spines climb to a common row of core switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.picture.aggregate import line_width, row_of
from nest_core.picture.clos import Sketch, inner, left_ratio, other_planes
from nest_core.picture.clos_grid import Grid, rail_look
from nest_core.picture.clos_rails import Rails
from nest_core.picture.clos_structure import Pod
from nest_core.picture.clos_tiers import Region, fault_words
from nest_core.picture.clos_words import inside, said_links, said_nodes, said_tier
from nest_core.picture.frame import frame_of, framed
from nest_core.picture.marks import Box, Drawn, Line, Mark, Said, Swatch, Words, between
from nest_core.picture.racks import Racks
from nest_core.picture.switches import Placed, cross, narrow_row, place
from nest_core.picture.text import text_width

__all__ = ["rails_apart"]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Edges of the common row, of what is between it and the planes, of planes and nodes."""

    top: tuple[float, float]
    planes: tuple[float, float]
    nodes: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _End:
    """What a plane ends in.

    Parameters
    ----------
    frame : Box
        Around the spines of the rail.
    spines : tuple of Placed
    """

    frame: Box
    spines: tuple[Placed, ...]


def rails_apart(sketch: Sketch) -> Drawn:
    """Planes with buses to their own spines."""
    frame, structure = frame_of(sketch.width), sketch.structure
    region = inner(frame, sketch)
    pods = structure.pods()
    whole = _merged(pods)
    rails = Rails(structure, Racks(structure, sketch.racks.paint), slot=(0.38, 0.92))
    cored = sketch.fabric.kind == "rail_optimised"
    count = sketch.fabric.rails
    spined = sketch.fabric.tiers > 1
    rows = _rows(region, cored)
    ending = _ending(region.across, count, cored) if spined else 0.0
    grid, units = rails.grid(whole, region, ending)
    leaves, _, marks = rails.leaves(whole, grid, units, rows.planes, rows.nodes[0])
    planes = rails.planes(grid, region, rows.planes)
    unit, ends = rails.room(whole, grid), list[_End]()
    if spined:
        area = (grid.right + 8, region.right - (4.0 * count + 4 if cored else 2))
        ends = [_end(sketch, pods, rail, (area, rows.planes), unit) for rail in range(count)]
    marks = [*planes, *marks, *_buses(sketch, leaves, ends, grid, rows.planes)]
    marks += [m for end in ends for m in (end.frame, *(s for p in end.spines for s in p.marks))]
    marks += rails.nodes(grid, units, rows.nodes)
    boxes = {"leaf": leaves, "spine": [one for end in ends for one in end.spines]}
    if cored:
        cores, lines = _cores(sketch, pods, ends, region, rows, unit)
        marks += lines
        boxes["core"] = cores
    else:
        marks += _nothing(sketch, region, rows.top, frame.words)
    if spined and not cored and sketch.fabric.tiers == 3:
        marks += _own_cores(sketch, ends, region.right - 2)
    marks += other_planes(sketch, region)
    if frame.words:
        marks += fault_words(structure, boxes, region)
    words = sketch.words("")
    row = rails.row_words(grid, units, rows.nodes)
    return framed(
        frame, words, marks, _said(sketch, pods, (rows, grid, row), cored), _legend(sketch)
    )


def _merged(pods: Sequence[Pod]) -> Pod:
    """All leaves as those of one pod, in the order of their groups."""
    pairs = ((g, leaf) for pod in pods for g, leaf in zip(pod.groups, pod.leaves, strict=True))
    held = sorted(pairs, key=lambda pair: pair[0])
    return Pod(0, tuple(leaf for _, leaf in held), (), tuple(group for group, _ in held))


def _rows(region: Region, cored: bool) -> _Rows:
    top, down = region.top, region.down
    nodes = region.bottom - 0.3 * down
    planes = nodes - 0.05 * down
    if cored:
        high = min(18.0, max(6.0, 0.05 * down))
        return _Rows((top, top + high), (top + 0.24 * down, planes), (nodes, region.bottom))
    high = min(30.0, 0.1 * down)
    return _Rows((top, top + high), (top + high + 0.05 * down, planes), (nodes, region.bottom))


def _ending(across: float, rails: int, cored: bool) -> float:
    """Width of the planes' ends, so that their spines have the room of their leaves' links."""
    share = 1.05 / rails
    return max(26.0, across * share / (1 + share)) + (4.0 * rails if cored else 0.0) + 10.0


def _end(
    sketch: Sketch,
    pods: Sequence[Pod],
    rail: int,
    place_of: tuple[tuple[float, float], tuple[float, float]],
    unit: float,
) -> _End:
    """The spines of one rail at the end of its plane."""
    rails, ((left, right), edges) = sketch.fabric.rails, place_of
    own = [pod for pod in pods if pod.groups and pod.groups[0] % rails == rail]
    spines = tuple(spine for pod in own for spine in pod.spines)
    step = (edges[1] - edges[0]) / rails
    top = edges[0] + rail * step
    most = sum(max(spine.down, spine.up) for spine in spines)
    share = min(0.86, most * unit / (right - left - 4)) if most else 0.5
    if sketch.fabric.tiers == 3 and sketch.fabric.kind == "rail_only":
        right = left + 0.6 * (right - left)
    span = share / 0.86 * (right - left - 4)
    middle = (left + right) / 2
    row = row_of(len(spines), middle - span / 2, middle + span / 2)
    room = min(unit, share * (right - left - 4) / max(1, most))
    look = rail_look(rail, rails)
    dressed = [replace(spine, look=look) for spine in spines]
    high = (top + 0.14 * step, top + 0.86 * step)
    key = f"{spines[0].name} of rail {rail}"
    placed = [_within(one, key) for one in place(dressed, row, room, high)]
    first, last = placed[0].box, placed[-1].box
    across = last.x + last.width - first.x + 2
    box = Box(key, "node", first.x - 1, high[0] - 1, across, high[1] - high[0] + 2)
    return _End(box, tuple(placed))


def _within(placed: Placed, key: str) -> Placed:
    """The same box, nested."""
    box = replace(placed.box, inside=key)
    return replace(placed, box=box, marks=(box, *placed.marks[1:]))


def _buses(
    sketch: Sketch,
    leaves: Sequence[Placed],
    ends: Sequence[_End],
    grid: Grid,
    edges: tuple[float, float],
) -> list[Mark]:
    """Uplinks of every leaf along its plane, one beneath the other: a bus that grows."""
    if not ends:
        return []
    step = (edges[1] - edges[0]) / len(grid.rails)
    width = min(2.2, 0.26 * step / len(grid.units))
    of, marks = f"links {sketch.fabric.tier_names[1]}", list[Mark]()
    for number, leaf in enumerate(leaves):
        tile, rail = divmod(number, len(grid.rails))
        end = ends[rail]
        y = edges[0] + rail * step + 0.06 * step + (tile + 0.5) * width
        x = leaf.box.centre[0]
        points = ((x, leaf.box.y), (x, y), (end.frame.x, y))
        keys = (leaf.key, end.frame.key)
        total = sum(one.up for one in leaf.members)
        sound = sum(one.up for one in leaf.members if not one.gone)
        spines = [one for box in end.spines for one in box.members]
        here = sound * sum(not one.gone for one in spines) // len(spines)
        if here:
            slow = any(one.rate < 1 for one in leaf.members)
            look = "link slow" if slow else "bus link"
            marks.append(Line(between(*keys), look, points, width, keys, ((of, here),)))
        if total > here:
            lost = ((of, total - here),)
            marks.append(Line(between(*keys), "link gone", points, 1.0, keys, lost))
    return marks


def _cores(
    sketch: Sketch,
    pods: Sequence[Pod],
    ends: Sequence[_End],
    region: Region,
    rows: _Rows,
    unit: float,
) -> tuple[list[Placed], list[Mark]]:
    """The common row, and the risers that lead to it from the ends of all planes."""
    structure = sketch.structure
    name, cores = sketch.fabric.tier_names[2], structure.cores()
    ports = sum(core.down for core in cores)
    width = min(region.across - 40, ports * unit / 0.84)
    row = narrow_row(len(cores), (region.left + region.right) / 2, width, 0.84)
    placed = place(cores, row, min(unit, 0.84 * width / ports), rows.top)
    rails, marks = len(ends), list[Mark]()
    links, sound = structure.core_links(), structure.core_sound()
    rail_of = np.array([pod.groups[0] % rails for pod in pods])
    starts = np.cumsum([0, *(len(box.members) for box in placed)])[:-1]
    for rail, end in enumerate(ends):
        x = region.right - 4.0 * (rails - rail)
        y, level = end.frame.centre[1], rows.planes[0]
        total = np.add.reduceat(links[rail_of == rail].sum(axis=0), starts)
        left = np.add.reduceat(sound[rail_of == rail].sum(axis=0), starts)
        for at, box in enumerate(placed):
            begin, length = box.foot
            points = (
                (end.frame.x + end.frame.width, y),
                (x, y),
                (x, level),
                (begin + length * (rail + 0.5) / rails, box.box.y + box.box.height),
            )
            keys = (end.frame.key, box.key)
            for look, count in (("link", left[at]), ("link gone", total[at] - left[at])):
                if count:
                    stands = ((f"links {name}", int(count)),)
                    wide = min(1.2, line_width(int(count), unit))
                    marks.append(Line(between(*keys), look, points, wide, keys, stands, 0.3))
    return placed, [*marks, *(mark for box in placed for mark in box.marks)]


def _own_cores(sketch: Sketch, ends: Sequence[_End], right: float) -> list[Mark]:
    """The third tier of every rail, beyond its spines: one box that says how many."""
    structure, name, marks = sketch.structure, sketch.fabric.tier_names[2], list[Mark]()
    for rail, end in enumerate(ends):
        cores = structure.cores(rail)
        live = sum(not core.gone for core in cores)
        links, total = int(structure.core_sound(rail).sum()), int(structure.core_links(rail).sum())
        frame = end.frame
        left, middle = frame.x + frame.width + 8, frame.centre[1]
        key = f"{name} {cores[0].number}-{cores[-1].number}"
        box = Box(
            key, "switch", left, frame.y + 1, right - left, frame.height - 2, "", ((name, live),)
        )
        keys, gone = (frame.key, key), len(cores) - live
        points = ((frame.x + frame.width, middle), (left, middle))
        stands = ((f"links {name}", links),)
        marks += [box, Line(between(*keys), "bus link", points, 2.2, keys, stands)]
        if gone or total > links:
            lost = ((name, gone), (f"links {name}", total - links))
            size = min(6.0, box.width, box.height)
            corner = Box(f"failed of {key}", "switch gone", left, box.y, size, size, key, lost)
            marks += [corner, *cross(corner)]
        text = f"{len(cores):,}"
        if box.height >= 13 and text_width(text, 12.0) * 1.1 <= box.width:
            marks.append(Words(text, "label", box.centre[0], middle + 4.2, 12, "middle", key))
    return marks


def _nothing(sketch: Sketch, region: Region, edges: tuple[float, float], words: bool) -> list[Mark]:
    """An empty row where others have their common spines."""
    top, bottom = edges
    left, right = region.left + 2, region.right - 2
    marks: list[Mark] = [Box("", "nothing", left, top, right - left, bottom - top, radius=4)]
    text = f"no switch joins the rails: from rail to rail through {inside(sketch.fabric)}"
    for said in (text, "no switch joins the rails"):
        if words and bottom - top >= 16 and text_width(said, 12.0) * 1.12 + 16 <= right - left:
            middle = (left + right) / 2
            return [*marks, Words(said, "soft", middle, (top + bottom) / 2 + 4.2, 12, "middle")]
    return marks


def _legend(sketch: Sketch) -> tuple[Swatch, ...]:
    entries = [Swatch("line", "bus link", "uplinks of a rail's leaves, more where they join")]
    if sketch.fabric.rails <= 8:
        entries.insert(0, Swatch("box", "rail-0", "leaf, spine and devices of rail 0"))
    if sketch.structure.gone:
        entries.append(Swatch("line", "link gone", "gone"))
    return tuple(entries)


def _said(
    sketch: Sketch, pods: Sequence[Pod], words_of: tuple[_Rows, Grid, str], cored: bool
) -> list[Said]:
    structure, counts, fabric = sketch.structure, sketch.counts, sketch.fabric
    names, rails = fabric.tier_names, fabric.rails
    rows, grid, row = words_of
    top, bottom = rows.planes
    third = (bottom - top) / 3
    found: list[Said] = []
    if cored:
        links = (rows.top[1], top)
        found.append(said_tier(names[2], counts, (), rows.top))
        ratio = left_ratio(sketch, 2)
        found.append(said_links(names[2], counts, ", all rails to all", links, ratio))
    else:
        found.append(Said("common", 0, "No common spine", (), *rows.top))
    if fabric.tiers == 3 and not cored:
        found.append(said_tier(names[2], counts, (), (top, top + third)))
        found.append(said_links(names[2], counts, "", (top, top + third), left_ratio(sketch, 2)))
    units = len(structure.units)
    leaf = pods[0].leaves[0]
    if fabric.tiers > 1:
        each = sum(len(pod.spines) for pod in pods) // rails
        words = (f"{rails} rails, {each} spine{'s' if each > 1 else ''} each",)
        found.append(said_tier(names[1], counts, words, (top, top + third)))
        ratio = left_ratio(sketch, 1)
        edges = (top + third, top + 2 * third)
        found.append(said_links(names[1], counts, "", edges, ratio))
    wide = (f"{rails} rails x {units} unit{'s' if units > 1 else ''}", grid.said)
    down = f"{leaf.down} down, {leaf.up} up each" if leaf.up else f"{leaf.down} ports down"
    said = tuple(word for word in (*wide, down) if word)
    found.append(said_tier(names[0], counts, said, (top + third, top + 2 * third)))
    each_leaf = f", {leaf.down} to a {names[0]}"
    found.append(said_links(names[0], counts, each_leaf, (bottom - third, rows.nodes[0])))
    under = f"{len(structure.units[0].nodes)} in a unit; {row}, a column is its rail"
    found.append(said_nodes(structure, counts, rows.nodes, "", under))
    return found
