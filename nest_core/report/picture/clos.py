"""Clos fabrics as rows: the top tier, spines, leaves and nodes, in panels that share their spines.

A panel is a pod, a rail that is a network of its own, or all of a fabric of two tiers. Panels that
have no room are drawn several at a time, and said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.fabric import Clos
from nest_core.report.picture.aggregate import Row
from nest_core.report.picture.ask import Ask, parts_of
from nest_core.report.picture.clos_layout import MAX_RAIL_COLOURS, ClosLayout, Panel
from nest_core.report.picture.clos_nodes import NodeRow
from nest_core.report.picture.clos_plan import Busy, busy_of, transfers
from nest_core.report.picture.clos_said import Saying, fault_words
from nest_core.report.picture.clos_structure import Structure
from nest_core.report.picture.clos_words import Counts, subtitle, title
from nest_core.report.picture.fabric_words import plural
from nest_core.report.picture.frame import Frame, frame_of, framed
from nest_core.report.picture.marks import Band, Box, Drawn, Mark, Stands, Words
from nest_core.report.picture.meshes import Mesh, mesh
from nest_core.report.picture.one_node import MOST_DEVICES, node_drawn
from nest_core.report.picture.racks import Paint, Racks, node_words
from nest_core.report.picture.stages import Span, Stages, stages_of
from nest_core.report.picture.switches import Placed, cross
from nest_core.report.picture.text import text_width

__all__ = ["clos_drawn"]

_BAR = 18.0
_MAX_BARS = 3


def clos_drawn(fabric: Clos, ask: Ask) -> Drawn:
    """Draw a Clos fabric."""
    if fabric.nodes == fabric.tiers == fabric.planes == 1 < fabric.slots <= MOST_DEVICES:
        return node_drawn(fabric, ask)
    structure = Structure(fabric, ask.parts.hall.per_rack, ask.slow)
    stages, paint = stages_of(ask, fabric.slots, fabric.as_built.devices)
    racks = Racks(
        np.arange(fabric.nodes + 1) * fabric.devices_per_node,
        structure.is_present,
        _rail_paint(fabric) if ask.plan is None else paint,
        fabric.interconnect == "switch",
        fabric.devices_per_host or 0,
    )
    busy = None if ask.loads is None else busy_of(structure, ask.loads)
    frame = frame_of(ask.width)
    layout = ClosLayout(structure, _inner(frame, fabric), racks.has_cells)
    drawing = _Drawing(layout, racks, stages, busy)
    form, marks = drawing.marks()
    counts = _counts(fabric, ask)
    tiled = drawing.tile_words | {"node": node_words(marks)}
    saying = Saying(structure, counts, layout.edges, tiled, busy)
    line = saying.line(form)
    words = title(structure), subtitle(structure, line)
    if ask.plan is not None:
        load = " Links: the redder, the longer they are busy." if busy else ""
        words = busy.finding if busy else ask.plan.finding, ask.plan.subtitle + load
    return framed(frame, words, marks, saying.rows(), saying.legend(ask.plan, line))


def _rail_paint(fabric: Clos) -> Paint:
    """Return the look of devices: the colour of the rail that all of them are on."""
    rails, per_node = fabric.rails, fabric.devices_per_node

    def look(devices: Sequence[int]) -> str:
        numbers = {number % per_node % rails for number in devices[: rails + 1]}
        coloured = 1 < rails <= MAX_RAIL_COLOURS and len(numbers) == 1
        return f"rail-{min(numbers)}" if coloured else "device"

    return look


def _counts(fabric: Clos, ask: Ask) -> Counts:
    """Return what is there and what has failed, by class of the bill."""
    here = _by_class(fabric, ask.parts)
    if not fabric.missing:
        return {name: (count, 0) for name, count in here.items()}
    whole = replace(fabric, missing=(), installed=0, devices=fabric.slots)
    return {
        name: (here[name], count - here[name])
        for name, count in _by_class(whole, parts_of(whole)).items()
    }


def _by_class(fabric: Clos, parts: Inventory) -> dict[str, int]:
    counts = {one.role: one.count for one in parts.switches}
    counts |= {f"links {one.tier}": one.count for one in parts.links}
    return counts | {"node": parts.nodes, "device": fabric.devices}


def _inner(frame: Frame, fabric: Clos) -> Frame:
    """Return the drawing without what words of failures and bars of planes may take."""
    bars = min(_MAX_BARS, fabric.planes - 1) * (_BAR if frame.words else 8.0)
    if not frame.words:
        return replace(frame, bottom=frame.bottom - bars)
    return replace(frame, top=frame.top + 10, bottom=frame.bottom - 18 - bars)


@dataclass(frozen=True)
class _Drawing:
    """The marks of rows that have their places."""

    layout: ClosLayout
    racks: Racks
    stages: Stages | None
    busy: Busy | None

    @property
    def structure(self) -> Structure:
        """What there is."""
        return self.layout.structure

    @property
    def fabric(self) -> Clos:
        """What is drawn."""
        return self.layout.fabric

    @property
    def loads(self) -> Mapping[str, str]:
        """Looks of links by the key of their lower end and ``up`` or ``down``."""
        return self.busy.looks if self.busy else {}

    @property
    def frame(self) -> Frame:
        """What is left to the rows."""
        return self.layout.frame

    @cached_property
    def tile_words(self) -> dict[str, str]:
        """What is drawn in tiles, by tier."""
        names = self.fabric.tier_names
        words = {names[0]: _tile_words(self.layout.leaves[0])}
        if self.fabric.tiers > 1:
            words[names[1]] = _tile_words(self.layout.spines[0])
        if self.layout.cores:
            words[names[2]] = _tile_words(self.layout.cores[0][2])
        if len(self.layout.panels[0].pod.numbers) > 1 and self.layout.has_frames:
            words["pod"] = f"drawn {len(self.layout.panels[0].pod.numbers)} at a time"
        return words

    def marks(self) -> tuple[str, list[Mark]]:
        """Return what a line between spines and leaves is, and all marks."""
        form, links, boxes = "mesh", list[Mark](), list[Mark]()
        if self.layout.has_frames:
            boxes += [
                mark
                for panel in self.layout.panels
                for mark in self.layout.panel_frame(panel).marks
            ]
        if self.fabric.kind == "rail_only":
            boxes += self._nothing()
        for links_up, frames, row in self.layout.cores:
            links += mesh(frames, row, links_up)[1]
            boxes += [mark for core in row for mark in core.marks]
        for panel, leaves, spines in zip(
            self.layout.panels, self.layout.leaves, self.layout.spines, strict=True
        ):
            if spines:
                form, lines = mesh(leaves, spines, self._mesh(panel))
                boxes += [*_shade(leaves, spines), *lines]
            boxes += [mark for switch in (*spines, *leaves) for mark in switch.marks]
        boxes += self._nodes()
        boxes += self._planes()
        if self.stages is not None:
            boxes += self._planned(self.stages, boxes)
        if self.frame.words:
            boxes += self._faults()
        return form, [*links, *boxes]

    def _mesh(self, panel: Panel) -> Mesh:
        name, pod = self.fabric.tier_names[1], panel.pod
        total = sum(leaf.up for leaf in pod.leaves)
        each = total / max(1, len(pod.leaves) * len(pod.spines))
        words = f"{total:,} links: {len(pod.leaves)} x {len(pod.spines)} pairs, {each:.3g} each"
        ups = {key.removesuffix(" up"): look for key, look in self.loads.items()}
        return Mesh(
            f"links {name}",
            pod.links,
            words if len(pod.numbers) == 1 else "",
            self.layout.unit,
            loads=ups,
            meshes=len(self.layout.panels),
        )

    def _nothing(self) -> list[Mark]:
        """An empty row where others have their common spines."""
        top, bottom = self.layout.edges["common"]
        left, right = self.frame.left + 2, self.frame.right - 2
        marks: list[Mark] = [Box("", "nothing", left, top, right - left, bottom - top, radius=4)]
        text = "no switch joins the rails"
        fits = text_width(text, 12.0) * 1.12 + 16 <= right - left
        if self.frame.words and bottom - top >= 16 and fits:
            place = (left + right) / 2, (top + bottom) / 2 + 4.2
            marks.append(Words(text, "soft", *place, 12.0, "middle"))
        return marks

    def _nodes(self) -> list[Mark]:
        top, bottom = self.layout.edges["node"]
        row = NodeRow(self.structure, self.racks, self.loads, top, bottom)
        feet = [self.layout.feet(panel) for panel in range(len(self.layout.panels))]
        if self.structure.has_rail_panels:
            return row.below_all(feet, self.frame.left, self.frame.right)
        marks: list[Mark] = []
        for panel, leaves in zip(self.layout.panels, feet, strict=True):
            marks += row.below(leaves, self.layout.leaf_row(panel).pitch)
        return marks

    def _planned(self, stages: Stages, marks: Sequence[Mark]) -> list[Mark]:
        """Draw a plan's brackets, tensor groups and transfers."""
        structure, per_node = self.structure, self.fabric.devices_per_node
        result: list[Mark] = []
        if len(self.layout.panels) == 1:
            feet = self.layout.feet(0)
            result += transfers(structure, stages, feet, self.layout.spines[0])
            name = structure.units[0].name
            name = name if name == "rack" else self.fabric.tier_names[0]
            spans = []
            for leaf, groups in feet:
                first, last = (structure.nodes_of(groups[at]).nodes for at in (0, -1))
                devices = range(first.start * per_node, last.stop * per_node)
                numbers = range(leaf.members[0].number, leaf.members[-1].number + 1)
                spans.append(Span(leaf.box.x, leaf.box.x + leaf.box.width, numbers, devices))
            if self.frame.words and self.fabric.rails == 1:
                result += stages.brackets(spans, name, self.frame.bottom + 3.5)
        return result + stages.outlines(marks, per_node)

    def _faults(self) -> list[Mark]:
        """Name failed and slow switches: above the first row, below the last one."""
        rows = [[box for row in self.layout.leaves for box in row]]
        rows.append([box for row in self.layout.spines for box in row])
        rows.append([box for _, _, row in self.layout.cores for box in row])
        rows = [row for row in rows if row]
        marks, taken = list[Mark](), list[tuple[float, float, float]]()
        for at, row in enumerate(rows):
            y = self.frame.top - 4 if 0 < at == len(rows) - 1 else self.frame.bottom + 13
            for box in row:
                for switch in box.members:
                    text = fault_words(self.structure, switch)
                    half = text_width(text, 12.0, bold=True) * 1.12 / 2
                    left, right = self.frame.left + half, self.frame.right - half
                    x = min(max(box.box.centre[0], left), right)
                    free = all(y != other or x - half > b or x + half < a for other, a, b in taken)
                    if text and free:
                        marks.append(Words(text, "alarm", x, y, anchor="middle", key=box.key))
                        taken.append((y, x - half - 4, x + half + 4))
        return marks

    def _planes(self) -> list[Mark]:
        """Draw a bar for every plane but the first; all of them are alike."""
        fabric, frame, marks = self.fabric, self.frame, list[Mark]()
        bars = min(_MAX_BARS, fabric.planes - 1)
        step = _BAR if frame.words else 8.0
        for bar in range(bars):
            last = fabric.planes if bar == bars - 1 else bar + 2
            here, gone = _planes_hold(self.structure, range(bar + 1, last))
            letters = [chr(65 + n) if n < 26 else str(n) for n in (bar + 1, last - 1)]
            key = f"plane {letters[0]}" if last == bar + 2 else f"plane {letters[0]}-{letters[1]}"
            y = frame.bottom + (20 if frame.words else 1) + bar * step
            box = Box(key, "frame", frame.left, y, frame.across, step - 3, "", here, radius=2)
            marks.append(box)
            if gone:
                place = (box.x, y, step - 3, step - 3)
                corner = Box(f"failed of {key}", "switch gone", *place, key, gone)
                marks += [corner, *cross(corner)]
            parts = ", ".join(f"{n:,} {plural(name, n)}" for name, n in here if "links" not in name)
            words = f"{key}: {parts}"
            for text in (f"{words}, links to every NIC as in plane A", words, key):
                if frame.words and text_width(text, 12.0) * 1.1 + 44 <= frame.across:
                    at = (frame.left + frame.right) / 2, y + 11.7
                    marks.append(Words(text, "soft", *at, 12, "middle", key))
                    break
        return marks


def _planes_hold(structure: Structure, planes: range) -> tuple[Stands, Stands]:
    """Return switches and links of some planes, and those that have failed."""
    total: dict[str, tuple[int, int]] = {}
    for plane in planes:
        counts = [structure.pod_counts(pod) for pod in structure.pods(plane)]
        if structure.fabric.tiers == 3:
            counts += [structure.top_counts(top, plane) for top in range(structure.tops)]
        for name, (here, gone) in (entry for count in counts for entry in count.items()):
            before = total.get(name, (0, 0))
            total[name] = before[0] + here, before[1] + gone
    left = tuple((name, here) for name, (here, _) in total.items())
    return left, tuple((name, gone) for name, (_, gone) in total.items() if gone)


def _shade(lower: Sequence[Placed], upper: Sequence[Placed]) -> list[Mark]:
    """Draw a funnel behind links that lead to less capacity than there is below."""
    (left, _), (right, wide) = upper[0].foot, upper[-1].foot
    (start, _), (end, width) = lower[0].foot, lower[-1].foot
    if right + wide - left > 0.9 * (end + width - start):
        return []
    top, bottom = upper[0].box.y + upper[0].box.height, lower[0].box.y
    corners = ((left, top), (right + wide, top), (end + width, bottom), (start, bottom))
    return [Band("", "shade", corners)]


def _tile_words(boxes: Sequence[Placed]) -> str:
    counts = tuple(len(box.members) for box in boxes)
    return Row(counts, (0.0,) * len(counts), 1.0, 1.0).said()
