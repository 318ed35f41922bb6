"""Leaves, their spines above and their nodes below: a whole fabric of two tiers, or one pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nest_core.picture.aggregate import Row, mesh_form, row_of
from nest_core.picture.clos_structure import Nodes, Pod, Structure
from nest_core.picture.marks import Band, Line, Mark, Words, between
from nest_core.picture.meshes import Mesh, mesh
from nest_core.picture.racks import Racks
from nest_core.picture.switches import Placed, narrow_row, place, rectangle, units
from nest_core.picture.text import text_width

__all__ = ["Layer", "Region", "Tiers", "fault_words", "leaf_links", "pair_words", "row_said"]


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the drawing."""

    left: float
    right: float
    top: float
    bottom: float

    @property
    def across(self) -> float:
        """Width."""
        return self.right - self.left

    @property
    def down(self) -> float:
        """Height."""
        return self.bottom - self.top


@dataclass(frozen=True, slots=True)
class Layer:
    """Marks of some rows, and where the rows are.

    Parameters
    ----------
    marks : tuple of Mark
    edges : mapping of str to (float, float)
        Top and bottom of every tier and class of links, by its name in the bill.
    tiles : mapping of str to str
        What is drawn in tiles, in words.
    boxes : mapping of str to sequence of Placed
        Of every tier of switches.
    form : {"links", "pairs", "mesh"}
        What one line between two tiers of switches is.
    """

    marks: tuple[Mark, ...]
    edges: Mapping[str, tuple[float, float]]
    tiles: Mapping[str, str]
    boxes: Mapping[str, Sequence[Placed]]
    form: str = "mesh"


@dataclass(frozen=True, slots=True)
class Tiers:
    """Draws the rows of a pod.

    Parameters
    ----------
    structure : Structure
    racks : Racks
    counted : bool
        Whether marks stand for elements, or repeat others.
    loads : mapping of str to str
        Looks of links by the key of their lower end and ``up`` or ``down``.
    below : bool
        Whether the nodes are drawn.
    """

    structure: Structure
    racks: Racks
    counted: bool = True
    loads: Mapping[str, str] = field(default_factory=dict)
    below: bool = True

    def drawn(self, pod: Pod, region: Region) -> Layer:
        """Spines, mesh, leaves, bundles, racks."""
        names = self.structure.fabric.tier_names
        row = row_of(len(pod.leaves), region.left, region.right)
        unit = units(row, pod.leaves)
        heights = _heights(region.down, bool(pod.spines))
        top = region.top + heights.spine + heights.mesh
        edges = {names[0]: (top, top + heights.leaf)}
        leaves = place(pod.leaves, row, unit, edges[names[0]], self.counted)
        form, marks = "mesh", [mark for leaf in leaves for mark in leaf.marks]
        tiles = {names[0]: row.said()}
        boxes = {names[0]: leaves}
        if pod.spines:
            spines = self._spines(pod, row, unit, region, heights.spine)
            edges[names[1]] = (region.top, region.top + heights.spine)
            edges[f"links {names[1]}"] = (region.top + heights.spine, top)
            ups = {key.removesuffix(" up"): look for key, look in self.loads.items()}
            links = Mesh(
                f"links {names[1]}",
                pod.links,
                pair_words(pod, sum(leaf.up for leaf in pod.leaves)),
                unit,
                self.counted,
                loads=ups,
            )
            form, between_rows = mesh(leaves, spines, links)
            marks = [*_shade(leaves, spines), *between_rows, *marks]
            marks += [mark for spine in spines for mark in spine.marks]
            tiles[names[1]] = row_said(spines)
            boxes[names[1]] = spines
        start = top + heights.leaf
        edges[f"links {names[0]}"] = (start, start + heights.bundle)
        edges["node"] = (start + heights.bundle, region.bottom)
        marks += self._below(pod, leaves, row, edges["node"])
        return Layer(tuple(marks), edges, tiles, boxes, form)

    def _spines(
        self, pod: Pod, row: Row, unit: float, region: Region, height: float
    ) -> list[Placed]:
        """As wide as their capacity, centred above the leaves."""
        share = row.box / row.pitch
        ports = sum(spine.down for spine in pod.spines)
        ports = max(ports, sum(spine.up for spine in pod.spines))
        width = min(region.across, ports * unit / share)
        above = narrow_row(len(pod.spines), (region.left + region.right) / 2, width, share)
        edges = (region.top, region.top + height)
        return place(pod.spines, above, unit, edges, self.counted)

    def _below(
        self, pod: Pod, leaves: Sequence[Placed], row: Row, edges: tuple[float, float]
    ) -> list[Mark]:
        """The nodes under every leaf, and their links to it."""
        marks: list[Mark] = []
        at = 0
        top, bottom = edges
        for leaf in leaves:
            groups = pod.groups[at : at + len(leaf.members)]
            at += len(groups)
            under = _together([self.structure.nodes_of(group) for group in groups])
            x, width = leaf.box.centre[0], leaf.box.width
            if not self.below:
                pass
            elif len(groups) == 1 and self.racks.beside(under, row.pitch):
                half = max(width, 0.9 * row.box) / 2
                marks += self.racks.side_by_side(under, x - half, x + half, top, bottom)
            else:
                half = max(width, min(row.pitch - 2, row.box + 2)) / 2
                marks += self.racks.stacked(under, x - half, top, 2 * half, bottom - top)
            look = self.loads.get(f"{leaf.key} down", "bundle")
            beside = len(groups) == 1 and self.racks.beside(under, row.pitch)
            marks += leaf_links(self, leaf, under, (top, look), beside)
        return marks


@dataclass(frozen=True, slots=True)
class _Heights:
    spine: float
    mesh: float
    leaf: float
    bundle: float


def _shade(lower: Sequence[Placed], upper: Sequence[Placed]) -> list[Mark]:
    """A funnel behind links that lead to less capacity than there is below."""
    (left, _), (right, wide) = upper[0].foot, upper[-1].foot
    (start, _), (end, width) = lower[0].foot, lower[-1].foot
    if right + wide - left > 0.9 * (end + width - start):
        return []
    top, bottom = upper[0].box.y + upper[0].box.height, lower[0].box.y
    corners = ((left, top), (right + wide, top), (end + width, bottom), (start, bottom))
    return [Band("", "shade", corners)]


def _heights(down: float, spines: bool) -> _Heights:
    switch = min(18.0, max(6.0, 0.055 * down))
    bundle = min(40.0, max(6.0, 0.11 * down))
    racks = min(118.0, max(20.0, 0.31 * down))
    if not spines:
        return _Heights(0.0, 0.0, switch, min(2.5 * bundle, down - switch - racks))
    return _Heights(switch, down - 2 * switch - bundle - racks, switch, bundle)


def _together(units: Sequence[Nodes]) -> Nodes:
    """The nodes of several leaves as those of one tile."""
    first, last = units[0], units[-1]
    if first is last:
        return first
    return replace(first, nodes=range(first.nodes.start, last.nodes.stop), last=last.number)


def leaf_links(
    tiers: Tiers, leaf: Placed, under: Nodes, place: tuple[float, str], beside: bool
) -> list[Mark]:
    """The links between a leaf and its nodes: singly, a band per node, or one band.

    Parameters
    ----------
    place : (float, str)
        Top of the nodes, and the look of the links.
    beside : bool
        Whether the nodes stand side by side.
    """
    structure, (bottom, look) = tiers.structure, place
    per_node, top = structure.links_per_node, leaf.box.y + leaf.box.height
    of = f"links {leaf.members[0].name}"
    left, width = leaf.foot
    alive = sum(not one.gone for one in leaf.members) / len(leaf.members)
    total = sum(one.down for one in leaf.members)
    here = structure.nodes_left(under.nodes)
    left_over = round(here * per_node * alive)
    if not alive:
        stands = ((of, total),) if tiers.counted else ()
        ends, area = (under.key, leaf.key), rectangle(left, top, width, bottom - top)
        return [Band(between(*ends), "gone link", area, ends, stands)]
    form = mesh_form(total, len(under.nodes), width / total, bottom - top)
    if beside and form == "links" and look == "bundle":
        return _single(tiers, leaf, under, bottom)
    if beside:
        return _per_node(tiers, leaf, under, place)
    rate = leaf.members[0].rate if len(leaf.members) == 1 else 1.0
    if rate < 1:
        look = "bundle slow"
        left, width = left + width * (1 - rate) / 2, width * rate
    stands = ((of, left_over),) if tiers.counted else ()
    ends = (under.key, leaf.key)
    area = rectangle(left, top, width, bottom - top)
    marks: list[Mark] = [Band(between(*ends), look, area, ends, stands)]
    if left_over < total and tiers.counted:
        x = left + width - 1
        lost = ((of, total - left_over),)
        marks.append(Line(between(*ends), "link gone", ((x, bottom), (x, top)), 1.0, ends, lost))
    return marks


def _frames(leaf: Placed, under: Nodes) -> list[tuple[int, float, float]]:
    """Node, middle and width of its frame, where nodes stand side by side below a leaf."""
    left, width = leaf.box.x, leaf.box.width
    pitch = width / len(under.nodes)
    return [(node, left + (at + 0.5) * pitch, pitch) for at, node in enumerate(under.nodes)]


def _single(tiers: Tiers, leaf: Placed, under: Nodes, bottom: float) -> list[Mark]:
    """One line per link, straight down."""
    structure, top = tiers.structure, leaf.box.y + leaf.box.height
    per_node, of = structure.links_per_node, f"links {leaf.members[0].name}"
    start, foot = leaf.foot
    marks: list[Mark] = []
    total = per_node * len(under.nodes)
    for at, (node, middle, pitch) in enumerate(_frames(leaf, under)):
        inner = 0.8 * pitch
        look = "link" if structure.present[node] else "link gone"
        for number in range(per_node):
            x = middle - inner / 2 + (number + 0.5) * inner / per_node
            high = start + (at * per_node + number + 0.5) * foot / total
            if leaf.head is None or foot > 0.98 * leaf.box.width:
                high = x
            ends = (f"node {node}", leaf.key)
            points = ((x, bottom), (high, top))
            width = min(2.0, max(0.8, 0.8 * foot / total))
            stands = ((of, 1),) if tiers.counted else ()
            marks.append(Line(between(*ends), look, points, width, ends, stands))
    return marks


def _per_node(tiers: Tiers, leaf: Placed, under: Nodes, place: tuple[float, str]) -> list[Mark]:
    """A band per node."""
    structure, (bottom, look) = tiers.structure, place
    per_node, top = structure.links_per_node, leaf.box.y + leaf.box.height
    start, foot = leaf.foot
    each = foot / len(under.nodes)
    marks: list[Mark] = []
    for at, (node, middle, _) in enumerate(_frames(leaf, under)):
        ends, high = (f"node {node}", leaf.key), start + (at + 0.5) * each
        half = max(0.5, 0.45 * each * leaf.members[0].rate)
        area = (
            (high - half, top),
            (high + half, top),
            (middle + half, bottom),
            (middle - half, bottom),
        )
        here = look if leaf.members[0].rate >= 1 else "bundle slow"
        if not structure.present[node]:
            here = "link gone"
        stands = ((f"links {leaf.members[0].name}", per_node),) if tiers.counted else ()
        marks.append(Band(between(*ends), here, area, ends, stands))
    return marks


def pair_words(pod: Pod, links: int) -> str:
    """What the mesh between leaves and spines is."""
    pairs = f"{len(pod.leaves)} x {len(pod.spines)} pairs"
    each = links / max(1, len(pod.leaves) * len(pod.spines))
    return f"{links:,} links: {pairs}, {each:.3g} each"


def row_said(boxes: Sequence[Placed]) -> str:
    """Tiles of a row in words."""
    counts = tuple(len(box.members) for box in boxes)
    return Row(counts, (0.0,) * len(counts), 1.0, 1.0).said()


def fault_words(
    structure: Structure, boxes: Mapping[str, Sequence[Placed]], region: Region
) -> list[Mark]:
    """Names of failed and slow switches: above the first row, below the last one."""
    rows = list(boxes.values())
    found: list[Mark] = []
    taken: list[tuple[float, float, float]] = []
    for number, row in enumerate(rows):
        top = number == len(rows) - 1 and len(rows) > 1
        y = region.top - 4 if top else region.bottom + 13
        for box in row:
            for one in box.members:
                text = _fault(structure, one.gone, one.rate, f"{one.name} {one.number}")
                if not text:
                    continue
                half = text_width(text, 12.0, bold=True) * 1.12 / 2
                x = min(max(box.box.centre[0], region.left + half), region.right - half)
                if all(y != other or x - half > b or x + half < a for other, a, b in taken):
                    found.append(Words(text, "alarm", x, y, anchor="middle", key=box.key))
                    taken.append((y, x - half - 4, x + half + 4))
    return found


def _fault(structure: Structure, gone: bool, rate: float, key: str) -> str:
    if gone:
        return f"{key} down"
    if rate < 1:
        each = structure.fabric.link_bandwidth_Bps * rate / 1e9
        share = "half rate" if rate == 0.5 else f"{rate:.2g} of its rate"
        return f"{key} at {share}: {each:.3g} GB/s a link"
    return ""
