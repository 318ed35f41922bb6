"""Clos fabrics of two tiers, drawn whole; where the others' rules begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nest_core.picture.aggregate import row_of
from nest_core.picture.clos_plan import Busy, StagePaint, brackets, stage_legend, transfers
from nest_core.picture.clos_rails import Rails
from nest_core.picture.clos_structure import Pod, Structure
from nest_core.picture.clos_tiers import Layer, Region, Tiers, fault_words
from nest_core.picture.clos_words import (
    Counts,
    plural,
    said_links,
    said_nodes,
    said_rate,
    said_tier,
    subtitle,
    title,
)
from nest_core.picture.frame import Frame, frame_of, framed
from nest_core.picture.lens import beam, leaf_lens, worst_leaf
from nest_core.picture.marks import Box, Drawn, Mark, Said, Stands, Swatch, Words
from nest_core.picture.plan import Shown
from nest_core.picture.racks import Racks
from nest_core.picture.switches import cross
from nest_core.picture.text import text_width
from nest_core.topology import Clos

__all__ = ["Sketch", "inner", "left_ratio", "line_words", "other_planes", "pod_layer", "two_tiers"]


@dataclass(frozen=True, slots=True)
class Sketch:
    """A Clos fabric about to be drawn.

    Parameters
    ----------
    structure : Structure
    counts : Counts
    racks : Racks
    width : float
    opened : str
        Key of the pod or the unit that the lens shows; empty: the first one that is in trouble.
    plan : Shown or None
    busy : Busy or None
    """

    structure: Structure
    counts: Counts
    racks: Racks
    width: float
    opened: str = ""
    plan: Shown | None = None
    busy: Busy | None = None

    @property
    def loads(self) -> Mapping[str, str]:
        """Looks of links by their lower end and ``up`` or ``down``."""
        return self.busy.looks if self.busy else {}

    def words(self, line: str) -> tuple[str, str]:
        """Title and subtitle; of a plan, where there is one."""
        if self.plan is None:
            return title(self.structure), subtitle(self.structure, line)
        load = " Links: the redder, the longer they are busy." if self.busy else ""
        return self.busy.finding if self.busy else self.plan.finding, self.plan.subtitle + load

    @property
    def fabric(self) -> Clos:
        """What is drawn."""
        return self.structure.fabric

    @property
    def one_link(self) -> str:
        """One link's rate in words."""
        return said_rate(self.fabric.link_bandwidth_Bps)


def pod_layer(
    sketch: Sketch, pod: Pod, region: Region, counted: bool = True, nodes: bool = True
) -> Layer:
    """One pod, or a whole fabric of two tiers, by rows or by rails."""
    racks = Racks(sketch.structure, sketch.racks.paint, counted)
    if sketch.fabric.rails > 1:
        return Rails(sketch.structure, racks, counted, loads=sketch.loads, below=nodes).drawn(
            pod, region
        )
    return Tiers(sketch.structure, racks, counted, loads=sketch.loads, below=nodes).drawn(
        pod, region
    )


def two_tiers(sketch: Sketch) -> Drawn:
    """Spines, mesh, leaves, bundles and racks in rows."""
    structure = sketch.structure
    (pod,) = structure.pods()
    frame = frame_of(sketch.width)
    region = inner(frame, sketch)
    rows, below = _with_lens(sketch, pod, frame, region)
    layer = pod_layer(sketch, pod, rows)
    line = line_words(layer.form, pod.leaves[0].up // max(1, len(pod.spines)), sketch.one_link)
    words = sketch.words(line)
    legend = _legend(sketch, pod, line)
    marks = [*layer.marks, *other_planes(sketch, region), *planned(sketch, pod, layer, rows)]
    if below is not None:
        marks += _opened_leaf(sketch, pod, layer, below)
    if frame.words:
        marks += fault_words(structure, layer.boxes, rows)
    said = _said(sketch, pod, layer.edges, layer.tiles)
    leaves = layer.boxes[sketch.fabric.tier_names[0]]
    opens = tuple(leaf.box.key for leaf in leaves) if below is not None else ()
    return replace(framed(frame, words, marks, said, legend), opens=opens)


def _with_lens(
    sketch: Sketch, pod: Pod, frame: Frame, region: Region
) -> tuple[Region, Region | None]:
    """Room of the rows, and below it that of a lens where leaves are drawn in tiles."""
    tiled = row_of(len(pod.leaves), region.left, region.right).tiled
    if not tiled or frame.said != "full" or sketch.fabric.rails > 1 or _bars(sketch.fabric):
        return region, None
    rows = replace(region, bottom=region.top + 0.54 * region.down)
    right = region.left + min(440.0, region.across)
    return rows, Region(region.left, right, rows.bottom + 34, region.bottom + 14)


def _opened_leaf(sketch: Sketch, pod: Pod, layer: Layer, region: Region) -> list[Mark]:
    """The leaf that is asked for, in trouble or unequal, with its nodes."""
    structure, name = sketch.structure, sketch.fabric.tier_names[0]
    keys = [f"{leaf.name} {leaf.number}" for leaf in pod.leaves]
    asked = sketch.opened.partition("-")[0]
    at = keys.index(asked) if asked in keys else worst_leaf(structure, pod)
    box = next(box.box for box in layer.boxes[name] if pod.leaves[at] in box.members)
    lensed = leaf_lens(structure, sketch.racks.paint, pod, at, region)
    return [*beam(box, region)[1:], *lensed]


def planned(sketch: Sketch, pod: Pod, layer: Layer, region: Region) -> list[Mark]:
    """A plan's brackets, tensor groups and transfers on drawn rows."""
    plan, paint, names = sketch.plan, sketch.racks.paint, sketch.fabric.tier_names
    if plan is None or not isinstance(paint, StagePaint):
        return []
    marks = transfers(sketch.structure, plan, pod, layer)
    if sketch.width >= 300 and sketch.fabric.rails == 1:
        marks += brackets(sketch.structure, paint, pod, layer.boxes[names[0]], region)
    return marks


def line_words(form: str, each: int, one_link: str) -> str:
    """What one line of a mesh is; empty where none is drawn."""
    count = 1 if form == "links" else each
    return "" if form == "mesh" else f"{count} link{'s' if count > 1 else ''} of {one_link}"


_BAR = 18.0
_MOST_BARS = 3


def inner(frame: Frame, sketch: Sketch) -> Region:
    """The drawing without what words of failures and bars of further planes may take."""
    bars = _bars(sketch.fabric) * (_BAR if frame.words else 8.0)
    if not frame.words:
        return Region(frame.left, frame.right, frame.top, frame.bottom - bars)
    return Region(frame.left, frame.right, frame.top + 10, frame.bottom - 18 - bars)


def _bars(fabric: Clos) -> int:
    """Planes that have a bar instead of a drawing; the last bar is all that are left."""
    two_drawn = fabric.planes == 2 and fabric.tiers == 2 and fabric.kind != "rail_only"
    return 0 if two_drawn else min(_MOST_BARS, fabric.planes - 1)


def other_planes(sketch: Sketch, region: Region) -> list[Mark]:
    """A bar for every plane but the first, which is drawn; all of them are alike."""
    bars, fabric, marks = _bars(sketch.fabric), sketch.fabric, list[Mark]()
    if not bars:
        return []
    named = sketch.width >= 300
    step = _BAR if named else 8.0
    for bar in range(bars):
        last = fabric.planes if bar == bars - 1 else bar + 2
        here, gone = _planes_hold(sketch.structure, range(bar + 1, last))
        letters = [chr(65 + plane) if plane < 26 else str(plane) for plane in (bar + 1, last - 1)]
        key = f"plane {letters[0]}" if last == bar + 2 else f"plane {letters[0]}-{letters[1]}"
        y = region.bottom + (20 if named else 1) + bar * step
        box = Box(key, "frame", region.left, y, region.across, step - 3, "", here, radius=2)
        marks.append(box)
        if gone:
            size = step - 3
            corner = Box(f"failed of {key}", "switch gone", box.x, y, size, size, key, gone)
            marks += [corner, *cross(corner)]
        parts = ", ".join(f"{n:,} {plural(name, n)}" for name, n in here if "links" not in name)
        for text in (f"{key}: {parts}, links to every NIC as in plane A", f"{key}: {parts}", key):
            if named and text_width(text, 12.0) * 1.1 + 24 <= region.across:
                middle = (region.left + region.right) / 2
                marks.append(Words(text, "soft", middle, y + 11.7, 12, "middle", key))
                break
    return marks


def _planes_hold(structure: Structure, planes: range) -> tuple[Stands, Stands]:
    """Switches and links of some planes, and those that have failed."""
    fabric = structure.fabric
    total: dict[str, list[int]] = {}
    for plane in planes:
        counts = [structure.pod_counts(pod) for pod in structure.pods(plane)]
        if fabric.tiers == 3:
            counts += [structure.top_counts(top, plane) for top in range(structure.tops)]
        for held in counts:
            for name, (here, gone) in held.items():
                if name not in ("node", "device"):
                    entry = total.setdefault(name, [0, 0])
                    entry[0], entry[1] = entry[0] + here, entry[1] + gone
    found = tuple((name, entry[0]) for name, entry in total.items())
    return found, tuple((name, lost) for name, (_, lost) in total.items() if lost)


def _legend(sketch: Sketch, pod: Pod, links: str) -> tuple[Swatch, ...]:
    if sketch.plan is not None:
        ramp = (Swatch("ramp", "", "links, idle to busiest"),) if sketch.busy else ()
        return (*stage_legend(sketch.plan), *ramp)
    entries = [Swatch("line", "link", links)] if links else []
    if 1 < sketch.fabric.rails <= 8:
        entries.insert(0, Swatch("box", "rail-0", "leaf and devices of rail 0"))
        entries.append(Swatch("box", "switch", "spine, common to all rails"))
        entries += [] if links else [Swatch("box", "mesh", "full mesh, too many lines to draw")]
    elif any(leaf.up and leaf.up != leaf.down for leaf in pod.leaves):
        entries.append(Swatch("funnel", "switch", "leaf: foot is down, head is up capacity"))
    else:
        entries.append(Swatch("box", "switch", "switch; its width is its links"))
    if not 1 < sketch.fabric.rails <= 8:
        entries.append(Swatch("box", "device", "device"))
    if sketch.structure.gone:
        entries.insert(0, Swatch("line", "link gone", "gone"))
    if sketch.structure.slow:
        entries.insert(0, Swatch("line", "link slow", "slow"))
    return tuple(entries)


def _said(
    sketch: Sketch,
    pod: Pod,
    edges: Mapping[str, tuple[float, float]],
    tiles: Mapping[str, str],
) -> list[Said]:
    structure, counts, names = sketch.structure, sketch.counts, sketch.fabric.tier_names
    leaf, found = pod.leaves[0], list[Said]()
    if pod.spines:
        spine = pod.spines[0]
        ports = f"{spine.down:,} of {sketch.fabric.radix:,} ports each"
        tiled = tuple(word for word in (tiles.get(names[1], ""), ports) if word)
        found.append(said_tier(names[1], counts, tiled, edges[names[1]]))
        each = leaf.up // len(pod.spines)
        words = f": every {names[0]} to every {names[1]}, x {each}"
        if len(pod.spines) == 1:
            words = f", {leaf.up} from each {names[0]}"
        ratio = left_ratio(sketch, 1)
        found.append(said_links(names[1], counts, words, edges[f"links {names[1]}"], ratio))
    down = f"{leaf.down} down, {leaf.up} up each" if leaf.up else f"{leaf.down} ports down"
    rails = ""
    if sketch.fabric.rails > 1:
        units = len(structure.units)
        rails = f"{sketch.fabric.rails} rails x {units} unit{'s' if units > 1 else ''}"
    tiled = tuple(word for word in (rails, tiles.get(names[0], ""), down) if word)
    found.append(said_tier(names[0], counts, tiled, edges[names[0]]))
    words = f", {leaf.down} to a {names[0]}" if len(pod.leaves) > 1 else ""
    found.append(said_links(names[0], counts, words, edges[f"links {names[0]}"]))
    if sketch.busy:
        found = [with_load(one, sketch.busy) for one in found]
    found.append(_nodes(sketch, edges["node"], tiles.get("node", "")))
    return found


def with_load(one: Said, busy: Busy) -> Said:
    """The same words, and how long the links are busy."""
    if one.what not in busy.words:
        return one
    number = one.words[0].partition(" link")[0]
    words = (f"{number} links, {busy.words[one.what]}",)
    return replace(one, words=words)


def _nodes(sketch: Sketch, edges: tuple[float, float], row: str) -> Said:
    """What stands below the leaves."""
    structure, counts, names = sketch.structure, sketch.counts, sketch.fabric.tier_names
    under = structure.units[0]
    head = ""
    if sketch.fabric.rails > 1:
        words = f"{len(under.nodes)} in a unit; {row}, a column is its rail"
        return said_nodes(structure, counts, edges, head, words)
    several = f"{len(under.nodes)} under a {names[0]}; " if len(structure.units) > 1 else ""
    if under.name == "rack":
        head = f"{len(structure.units):,} rack{'s' if len(structure.units) > 1 else ''}"
        several = f"of {len(under.nodes)} nodes; "
    return said_nodes(structure, counts, edges, head, several.strip("; "))


def left_ratio(sketch: Sketch, height: int) -> float:
    """Oversubscription above a height of what is left: links below over links above."""
    fabric = sketch.fabric
    lower, upper = fabric.tier_names[height - 1], fabric.tier_names[height]
    tier = fabric.switch_tiers[height]
    (below, gone), (here, lost) = sketch.counts[f"links {lower}"], sketch.counts[f"links {upper}"]
    return tier.oversubscription * (below / (below + gone)) * ((here + lost) / here)
