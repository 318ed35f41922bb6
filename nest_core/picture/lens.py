"""Lenses: a part of a picture drawn again where there is room for what it holds."""

from __future__ import annotations

from nest_core.picture.clos_structure import Pod, Structure
from nest_core.picture.clos_tiers import Region, Tiers
from nest_core.picture.marks import Band, Box, Line, Mark, Words
from nest_core.picture.racks import Paint, Racks
from nest_core.picture.text import text_width

__all__ = ["LENS_HEAD", "beam", "leaf_lens", "lens", "worst_leaf"]

LENS_HEAD = 24.0
"""Height of a lens's own title."""

_SIDE = 20.0
_STUB = 12.0


def lens(region: Region, title: str) -> list[Mark]:
    """The frame of a lens and its title, shortened to what fits."""
    frame = Box("", "lens", region.left, region.top, region.across, region.down, radius=4)
    words = title
    while words and text_width(words, 12.0, bold=True) * 1.1 > region.across - 20:
        words = words.rpartition(",")[0] or words.rpartition(" ")[0].rstrip(":")
    return [frame, Words(words, "bold", region.left + 10, region.top + 16)]


def beam(source: Box, region: Region) -> list[Mark]:
    """What leads from the opened box down to its lens."""
    bottom = source.y + source.height
    corners = (
        (source.x, bottom),
        (source.x + source.width, bottom),
        (region.right, region.top),
        (region.left, region.top),
    )
    opened = Box(
        "", "opened", source.x, source.y, source.width, source.height, source.key, radius=2.5
    )
    return [Band("", "beam", corners), opened]


def worst_leaf(structure: Structure, pod: Pod) -> int:
    """Place of the leaf that is worth a lens: one in trouble, else an unequal one, the last."""
    for at, leaf in enumerate(pod.leaves):
        nodes = structure.nodes_of(pod.groups[at]).nodes
        whole = int(structure.present[nodes.start : nodes.stop].sum())
        if leaf.gone or leaf.rate < 1 or whole < len(nodes) * structure.fabric.devices_per_node:
            return at
    return len(pod.leaves) - 1


def leaf_lens(structure: Structure, paint: Paint, pod: Pod, at: int, region: Region) -> list[Mark]:
    """One leaf with its nodes, every link drawn where there is room."""
    leaf, group = pod.leaves[at], pod.groups[at]
    under = structure.nodes_of(group)
    devices = int(structure.present[under.nodes.start : under.nodes.stop].sum())
    name = leaf.name.capitalize()
    alone = Pod(pod.number, (leaf,), (), (group,))
    racks = Racks(structure, paint, counted=False, side=_SIDE)
    inside = Region(
        region.left + 8, region.right - 8, region.top + LENS_HEAD + _STUB, region.bottom - 8
    )
    layer = Tiers(structure, racks, counted=False).drawn(alone, inside)
    title = f"{name} {leaf.number}: {len(under.nodes)} nodes, {devices:,} devices"
    marks = [*lens(region, title), *layer.marks]
    box = layer.boxes[leaf.name][0]
    left, width = box.head
    shown = min(leaf.up, 64)
    for number in range(shown):
        x = left + (number + 0.5) * width / shown
        points = ((x, inside.top), (x, inside.top - _STUB))
        marks.append(Line("", "link", points, min(2.0, max(0.6, 0.5 * width / shown))))
    return marks
