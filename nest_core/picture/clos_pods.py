"""Clos fabrics of three tiers: the top switches, every pod small, one of them in a lens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.picture.aggregate import Row, row_of
from nest_core.picture.clos import (
    Sketch,
    inner,
    left_ratio,
    line_words,
    other_planes,
    pod_layer,
    with_load,
)
from nest_core.picture.clos_plan import stage_legend
from nest_core.picture.clos_structure import Pod
from nest_core.picture.clos_tiers import Layer, Region, fault_words
from nest_core.picture.clos_words import plural, said_links, said_nodes, said_tier
from nest_core.picture.frame import Frame, frame_of, framed
from nest_core.picture.lens import LENS_HEAD, beam, leaf_lens, lens, worst_leaf
from nest_core.picture.marks import Band, Box, Drawn, Mark, Said, Stands, Swatch, Words
from nest_core.picture.meshes import Mesh, mesh
from nest_core.picture.switches import Placed, Switch, cross, narrow_row, place, rectangle
from nest_core.picture.text import text_width

__all__ = ["three_tiers"]


def three_tiers(sketch: Sketch) -> Drawn:
    """Core row, mesh, pods as small pictures; below 640 pixels without the lens."""
    frame = frame_of(sketch.width)
    region, structure = inner(frame, sketch), sketch.structure
    pods = structure.pods()
    rows = _rows(sketch, region, frame.said == "full")
    row = row_of(len(pods), region.left, region.right)
    unit = _unit(row, pods)
    small = _Small(sketch, unit, row.box)
    places = small.placed(pods, row, rows.pods)
    cores = _cores(sketch, row, unit, region, rows.cores)
    form, links = _core_mesh(sketch, places, cores, unit)
    marks: list[Mark] = [*links, *(m for box in (*cores, *places) for m in box.marks)]
    edges = {sketch.fabric.tier_names[2]: rows.cores, "pod": rows.pods}
    edges[f"links {sketch.fabric.tier_names[2]}"] = (rows.cores[1], rows.pods[0])
    if frame.said == "full":
        opened = _opened(sketch, pods)
        lenses, layer = _lenses(sketch, pods, opened, places, rows.lens)
        marks += lenses
        edges |= dict(layer.edges)
    marks += other_planes(sketch, region)
    if frame.words:
        marks += fault_words(structure, {"pods": places, "top": cores}, region)
    dealt = structure.core_links()
    each = int(dealt.max()) * len(cores[0].members) * row.counts[0]
    line = line_words(form, each, sketch.one_link) if dealt.min() == dealt.max() else ""
    words = sketch.words(f"{line}, pod to core" if line else "")
    said = _said(sketch, pods, edges, cores, row)
    shown = framed(frame, words, marks, said, _legend(sketch, frame))
    opens = tuple(place.box.key for place in places) if frame.said == "full" else ()
    return replace(shown, opens=opens)


@dataclass(frozen=True, slots=True)
class _Rows:
    cores: tuple[float, float]
    pods: tuple[float, float]
    lens: Region


def _rows(sketch: Sketch, region: Region, full: bool) -> _Rows:
    top, down = region.top, region.down
    if not full:
        core = max(6.0, 0.06 * down)
        pods = top + 0.48 * down
        return _Rows((top, top + core), (pods, region.bottom), region)
    pods = top + 16 + max(52.0, 0.16 * down)
    bottom = pods + 58
    rest = Region(
        region.left,
        region.right,
        bottom + 20,
        region.bottom + (14 if sketch.fabric.planes == 1 else 0),
    )
    return _Rows((top, top + 16), (pods, bottom), rest)


def _unit(row: Row, pods: Sequence[Pod]) -> float:
    """Room of one link in the row of pods."""
    widest, at = 1, 0
    for count in row.counts:
        members = pods[at : at + count]
        at += count
        down = sum(leaf.down for pod in members for leaf in pod.leaves)
        widest = max(widest, down, sum(pod.uplinks for pod in members))
    return (row.box - 4) / widest


def _cores(
    sketch: Sketch, row: Row, unit: float, region: Region, edges: tuple[float, float]
) -> list[Placed]:
    """The top row, as wide as its capacity."""
    cores = sketch.structure.cores()
    share = row.box / row.pitch
    width = min(region.across, sum(core.down for core in cores) * unit / share)
    above = narrow_row(len(cores), (region.left + region.right) / 2, width, share)
    return place(cores, above, unit, edges)


def _core_mesh(
    sketch: Sketch, places: Sequence[Placed], cores: Sequence[Placed], unit: float
) -> tuple[str, list[Mark]]:
    structure = sketch.structure
    links = structure.core_links()
    name = sketch.fabric.tier_names[2]
    total = f"{int(links.sum()):,} links"
    if int(links.min()) == int(links.max()):
        words = f"{total}: every pod to every {name} switch, {int(links.max())} each"
    else:
        words = f"{total}, dealt to the {name} switches in turn"
    sound = structure.core_sound()
    return mesh(places, cores, Mesh(f"links {name}", links, words, unit, sound=sound))


@dataclass(frozen=True, slots=True)
class _Small:
    """Pods as small pictures.

    Parameters
    ----------
    sketch : Sketch
    unit : float
        Room of one link.
    width : float
        Of a full frame.
    """

    sketch: Sketch
    unit: float
    width: float

    def placed(self, pods: Sequence[Pod], row: Row, edges: tuple[float, float]) -> list[Placed]:
        """One frame per pod, or per tile of pods."""
        found, at = [], 0
        for number, count in enumerate(row.counts):
            members = pods[at : at + count]
            found.append(self._one(members, row.key("pod", number), row.centres[number], edges))
            at += count
        return found

    def _one(
        self, pods: Sequence[Pod], key: str, middle: float, edges: tuple[float, float]
    ) -> Placed:
        top, bottom = edges
        left, width = middle - self.width / 2, self.width
        here, gone = self._stands(pods)
        frame = Box(key, "frame", left, top, width, bottom - top, stands=here, radius=2)
        marks: list[Mark] = [frame, *self._inside(pods, frame)]
        if gone:
            size = min(8.0, width / 2)
            corner = Box(
                f"failed of {key}", "switch gone", left + width - size, top, size, size, key, gone
            )
            marks += [corner, *cross(corner)]
        name, _, number = key.partition(" ")
        text = number if len(pods) == 1 else f"{len(pods):,}"
        if bottom - top >= 46 and text_width(text, 12.0) * 1.1 + 2 <= width:
            marks.append(Words(text, "soft", middle, bottom - 4, anchor="middle", key=key))
        up = sum(pod.uplinks for pod in pods)
        switches = tuple(
            Switch(name, pod.number, sum(leaf.down for leaf in pod.leaves), pod.uplinks)
            for pod in pods
        )
        reach = up * self.unit
        return Placed(frame, switches, tuple(marks), (middle - reach / 2, reach))

    def _stands(self, pods: Sequence[Pod]) -> tuple[Stands, Stands]:
        total: dict[str, list[int]] = {}
        for pod in pods:
            for name, (here, gone) in self.sketch.structure.pod_counts(pod).items():
                entry = total.setdefault(name, [0, 0])
                entry[0] += here
                entry[1] += gone
        found = tuple((name, entry[0]) for name, entry in total.items())
        return found, tuple((name, lost) for name, (_, lost) in total.items() if lost)

    def _inside(self, pods: Sequence[Pod], frame: Box) -> list[Mark]:
        """Spines, mesh, leaves and devices as four stripes; they repeat what the frame counts."""
        unit = self.unit
        middle, room = frame.centre[0], frame.height - (16 if frame.height >= 46 else 4)
        y, step = frame.y + 3, room / 10
        up = unit * sum(pod.uplinks for pod in pods)
        across = unit * sum(leaf.up for pod in pods for leaf in pod.leaves)
        down = unit * sum(leaf.down for pod in pods for leaf in pod.leaves)
        marks: list[Mark] = [_stripe(frame.key, middle, (y, 2 * step), up, across)]
        area = rectangle(middle - across / 2, y + 2 * step, across, 2 * step)
        marks.append(Band("", "mesh", area))
        marks.append(_stripe(frame.key, middle, (y + 4 * step, 1.8 * step), across, down))
        start, tall = y + 6.4 * step, room - 6.4 * step - 3
        rails = self.sketch.fabric.rails
        if 1 < rails <= 8 and down / rails >= 2:
            return marks + _rail_stripes(frame.key, middle - down / 2, down, (start, tall), rails)
        return marks + self._devices(pods, frame.key, (middle - down / 2, start, down, tall))

    def _devices(
        self, pods: Sequence[Pod], inside: str, place: tuple[float, float, float, float]
    ) -> list[Mark]:
        """One block, or with a plan one for every run of leaves of one stage."""
        structure, (left, top, down, tall) = self.sketch.structure, place
        each, paint = structure.fabric.devices_per_node, self.sketch.racks.paint
        if self.sketch.plan is None:
            return [Box("", "device", left, top, down, tall, inside)]
        leaves = [(leaf, g) for pod in pods for leaf, g in zip(pod.leaves, pod.groups, strict=True)]
        marks: list[Box] = []
        for leaf, group in leaves:
            nodes = structure.nodes_of(group).nodes
            look = paint(range(nodes.start * each, nodes.stop * each))
            width = leaf.down * self.unit
            if marks and marks[-1].look == look:
                marks[-1] = replace(marks[-1], width=marks[-1].width + width)
            else:
                marks.append(Box("", look, left, top, width, tall, inside))
            left += width
        return list(marks)


def _stripe(
    inside: str, middle: float, edges: tuple[float, float], head: float, foot: float
) -> Box:
    width = max(head, foot)
    shape = (None, None) if abs(head - foot) < 0.01 else (head, foot)
    top, tall = edges
    return Box("", "switch", middle - width / 2, top, width, tall, inside, (), *shape)


def _rail_stripes(
    inside: str, left: float, width: float, edges: tuple[float, float], rails: int
) -> list[Mark]:
    each, (top, tall) = width / rails, edges
    return [
        Box("", f"rail-{rail}", left + rail * each, top, each - 0.6, tall, inside)
        for rail in range(rails)
    ]


def _opened(sketch: Sketch, pods: Sequence[Pod]) -> int:
    """The pod that is asked for; else one with faults, else an unequal one, else the first."""
    names, asked = [f"pod {pod.number}" for pod in pods], sketch.opened.partition("-")[0]
    if asked in names:
        return names.index(asked)
    usual = len(pods[0].leaves)
    for number, pod in enumerate(pods):
        counts = sketch.structure.pod_counts(pod)
        if pod.faulty or any(gone for _, gone in counts.values()):
            return number
    return next((n for n, pod in enumerate(pods) if len(pod.leaves) != usual), 0)


def _lenses(
    sketch: Sketch, pods: Sequence[Pod], opened: int, places: Sequence[Placed], region: Region
) -> tuple[list[Mark], Layer]:
    """The opened pod, and one of its leaves beside it where there is room."""
    structure, pod = sketch.structure, pods[opened]
    beside = region.across >= 640 and sketch.fabric.rails == 1
    edge = region.right - 218 if beside else region.right
    here = Region(region.left, edge, region.top, region.bottom)
    devices = structure.pod_counts(pod)["device"][0]
    alike = ", all alike" if len({len(one.leaves) for one in pods}) == 1 else ""
    alike = alike if not structure.gone and not structure.slow else ""
    inside = Region(here.left + 10, here.right - 10, here.top + LENS_HEAD + 4, here.bottom - 8)
    layer = pod_layer(sketch, pod, inside, counted=False)
    box = next(one.box for one in places if any(m.number == pod.number for m in one.members))
    marks = beam(box, here)
    marks += lens(here, f"Pod {pod.number} of {len(pods)}{alike}: {devices:,} devices")
    marks += layer.marks
    if beside:
        there = Region(region.right - 202, region.right, region.top, region.bottom)
        at = worst_leaf(structure, pod)
        marks += leaf_lens(structure, sketch.racks.paint, pod, at, there)
    return marks, layer


def _legend(sketch: Sketch, frame: Frame) -> tuple[Swatch, ...]:
    if sketch.plan is not None:
        ramp = (Swatch("ramp", "", "links, idle to busiest"),) if sketch.busy else ()
        return (*stage_legend(sketch.plan), *ramp)
    entries = [Swatch("box", "switch", "switches"), Swatch("box", "device", "devices")]
    if frame.said == "full":
        entries.append(Swatch("box", "opened", "opened below; any pod opens"))
    entries.append(Swatch("box", "mesh", "full mesh, too many lines to draw"))
    if sketch.structure.gone:
        entries.insert(0, Swatch("line", "link gone", "gone"))
    return tuple(entries)


def _said(
    sketch: Sketch,
    pods: Sequence[Pod],
    edges: dict[str, tuple[float, float]],
    cores: Sequence[Placed],
    row: Row,
) -> list[Said]:
    structure, counts, fabric = sketch.structure, sketch.counts, sketch.fabric
    low, middle, high = fabric.tier_names
    rest = edges["pod"]
    ports = max(core.down for box in cores for core in box.members)
    tiled = Row(tuple(len(box.members) for box in cores), (), 1.0, 1.0).said()
    words = tiled or f"{ports:,} of {fabric.radix:,} ports each"
    links = structure.core_links()
    even = int(links.min()) == int(links.max())
    each = f": each pod to each switch, x {int(links.max())}" if even else ", dealt in turn"
    sizes = sorted({len(pod.leaves) * pod.leaves[0].down for pod in pods}, reverse=True)
    count = structure.pod_counts(pods[0])["device"]
    holds = f"{sum(count):,} devices each" if len(sizes) == 1 else "of unequal size"
    first = pods[0]
    spine, leaf = first.spines[0], first.leaves[0]
    ratios = left_ratio(sketch, 2), left_ratio(sketch, 1)
    inside = f"{len(first.spines)} in a pod, {spine.down}\u00a0down, {spine.up}\u00a0up"
    below = f"{len(first.leaves)} in a pod, {leaf.down}\u00a0down, {leaf.up}\u00a0up"
    tiles = tuple(word for word in (row.said(), holds) if word)
    several = f"{len(pods)} {plural('pod', len(pods))}"
    found = [
        said_tier(high, counts, (words,), edges[high]),
        said_links(high, counts, each, edges[f"links {high}"], ratios[0]),
        Said("pod", len(pods), several, tiles, *rest),
        said_tier(middle, counts, (inside,), edges.get(middle, rest)),
        said_links(middle, counts, "", edges.get(f"links {middle}", rest), ratios[1]),
        said_tier(low, counts, (below,), edges.get(low, rest)),
        said_links(low, counts, "", edges.get(f"links {low}", rest)),
        said_nodes(structure, counts, edges.get("node", rest), "", ""),
    ]
    return [with_load(one, sketch.busy) for one in found] if sketch.busy else found
