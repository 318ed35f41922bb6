"""Two disjoint planes, as mirror images around the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nest_core.picture.clos import Sketch, inner, left_ratio, pod_layer
from nest_core.picture.clos_structure import Pod
from nest_core.picture.clos_tiers import fault_words
from nest_core.picture.clos_words import plural, said_nodes
from nest_core.picture.frame import frame_of, framed
from nest_core.picture.marks import Box, Drawn, Mark, Said, Swatch, Words

__all__ = ["mirrored"]

_NODES = 0.31


def mirrored(sketch: Sketch) -> Drawn:
    """Plane A above the nodes, plane B below them."""
    structure, frame = sketch.structure, frame_of(sketch.width)
    region = inner(frame, sketch)
    upper = replace(region, bottom=region.top + region.down / (2 - _NODES))
    (first,), (second,) = structure.pods(0), structure.pods(1)
    above = pod_layer(sketch, first, upper)
    below = pod_layer(sketch, second, upper, nodes=False)
    axis = sum(above.edges["node"]) / 2
    marks: list[Mark] = [*(_mirror(mark, axis) for mark in below.marks), *above.marks]
    if frame.words:
        boxes = {name: [*above.boxes[name], *below.boxes[name]] for name in above.boxes}
        marks += fault_words(structure, boxes, region)
    words = sketch.words("")
    said = _said(sketch, first, above.edges, above.tiles, axis)
    legend: tuple[Swatch, ...] = (
        Swatch("box", "switch", "switch"),
        Swatch("box", "mesh", "full mesh"),
    )
    if 1 < sketch.fabric.rails <= 8:
        legend = (Swatch("box", "rail-0", "leaf and devices of rail 0"), *legend)
    return framed(frame, words, marks, said, legend)


def _mirror(mark: Mark, axis: float) -> Mark:
    if isinstance(mark, Box):
        y = 2 * axis - mark.y - mark.height
        return replace(mark, y=y, head=mark.foot, foot=mark.head)
    if isinstance(mark, Words):
        return replace(mark, y=2 * axis - mark.y + 8.4, text=mark.text)
    return replace(mark, points=tuple((x, 2 * axis - y) for x, y in mark.points))


def _said(
    sketch: Sketch,
    pod: Pod,
    edges: Mapping[str, tuple[float, float]],
    tiles: Mapping[str, str],
    axis: float,
) -> list[Said]:
    """Plane A's words at its rows, plane B's shorter ones below; counts are of both."""
    fabric, counts = sketch.fabric, sketch.counts
    low, high = fabric.tier_names
    leaf, spine = pod.leaves[0], pod.spines[0]
    ratio, each = left_ratio(sketch, 1), f"{leaf.down} down, {leaf.up} up each"
    turned = {name: (2 * axis - b, 2 * axis - a) for name, (a, b) in edges.items()}
    found = [
        _half(sketch, high, 0, f"{spine.down:,} of {fabric.radix:,} ports each", edges),
        replace(_links(sketch, high, 0, edges), ratio=ratio),
        _half(sketch, low, 0, ", ".join(w for w in (each, tiles.get(low, "")) if w), edges),
        said_nodes(sketch.structure, counts, edges["node"], "", ""),
        _half(sketch, low, 1, "the NICs' second ports", turned),
        replace(_links(sketch, high, 1, turned), ratio=ratio),
        _half(sketch, high, 1, "no link from A to B", turned),
    ]
    low_links, gone = counts[f"links {low}"]
    found.insert(3, Said(f"links {low}", low_links, "", (), *edges["node"], gone=gone))
    return found


def _half(
    sketch: Sketch, name: str, plane: int, words: str, edges: Mapping[str, tuple[float, float]]
) -> Said:
    """One plane's switches of a tier."""
    count = _of_plane(sketch, name, plane)
    head = f"Plane {'AB'[plane]}: {count:,} {plural(name, count)}"
    return Said(name, count, head, (words,), *edges[name])


def _links(sketch: Sketch, name: str, plane: int, edges: Mapping[str, tuple[float, float]]) -> Said:
    pod = sketch.structure.pods(plane)[0]
    count = sketch.structure.pod_counts(pod)[f"links {name}"][0]
    return Said(f"links {name}", count, "", (f"{count:,} links",), *edges[f"links {name}"])


def _of_plane(sketch: Sketch, name: str, plane: int) -> int:
    """Switches of a tier and a plane that are there."""
    return sum(
        sketch.structure.pod_counts(pod).get(name, (0, 0))[0]
        for pod in sketch.structure.pods(plane)
    )
