"""Clos fabrics as rows: the top tier, spines, leaves and nodes, in panels that share their spines.

A panel is a pod, a rail that is a network of its own, or all of a fabric of two tiers. Panels that
have no room are drawn several at a time, and said; planes but the first are one bar.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.costs.loads import Loads
from nest_core.fabric import Clos
from nest_core.report.picture.clos_layout import MAX_RAIL_COLOURS, ClosPanel, Structure
from nest_core.report.picture.clos_nodes import ClosNodes
from nest_core.report.picture.clos_words import ClosWords, Counts, title
from nest_core.report.picture.frame import Frame, frame_of
from nest_core.report.picture.marks import (
    Box,
    Drawn,
    Mark,
    Words,
    between,
    centred,
    first_fitting,
    plural,
    text_width,
)
from nest_core.report.picture.plan import (
    BoxSpan,
    DrawOptions,
    PlanOnDevices,
    framed_plan,
    lit,
    load_look,
    paint_of,
    parts_of,
    tier_busy,
)
from nest_core.report.picture.racks import NodeBoxes, Paint, node_words
from nest_core.report.picture.switches import DrawnSwitch, Mesh, Placed, failed_corner

__all__ = ["clos_drawn", "load_looks", "transfers"]


def transfers(
    structure: Structure, plan: PlanOnDevices, leaves: Sequence[Placed], spines: Sequence[Placed]
) -> Iterator[Mark]:
    """Draw the first replica's way from stage to stage."""
    groups = plan.groups
    for stage, pair in enumerate(pairwise(groups)):
        low, high = (_leaf(structure, leaves, group[0]) for group in pair)
        if low.key != high.key and spines:
            spine = spines[(2 * stage + 1) * len(spines) // (2 * (len(groups) - 1))]
            end = (spine.box.centre[0], spine.box.y + spine.box.height)
            for leaf in (low, high):
                yield from lit(
                    between(leaf.key, spine.key),
                    ((leaf.box.centre[0], leaf.box.y), end),
                    (leaf.key, spine.key),
                )


def _leaf(structure: Structure, leaves: Sequence[Placed], device: int) -> Placed:
    fabric = structure.fabric
    node, slot = divmod(device, fabric.devices_per_node)
    group = node // fabric.sizing.nodes_per_unit * fabric.rails + slot % fabric.rails
    return next(leaf for leaf in leaves if structure.group(leaf.members[-1]) >= group)


def load_looks(structure: Structure, loads: Loads) -> tuple[dict[str, str], float]:
    """Return the looks of links, and the largest busy share.

    By leaf and ``up`` or ``down``; also as `_single_shares` has them.
    """
    fabric = structure.fabric
    shares = np.zeros((2, fabric.sizing.units * fabric.rails))
    for level in range(1, min(fabric.tiers, 2) + 1):
        np.maximum.at(shares[level - 1], fabric.group_of(1), tier_busy(loads, level))
    busiest = float(shares.max())
    looks = {
        f"{fabric.tier_names[0]} {group * fabric.planes} {way}": load_look(share, busiest)
        for way, of_way in zip(("down", "up"), shares.tolist(), strict=True)
        for group, share in enumerate(of_way)
    }
    looks |= {
        f"{fabric.tier_names[0]} {place}": load_look(share, busiest)
        for place, share in _single_shares(structure, loads).items()
    }
    return looks, busiest


def _single_shares(structure: Structure, loads: Loads) -> dict[str, float]:
    """Return the busy shares of links that flows are bound to.

    By leaf, ``up`` and the place of a spine in its pod, of the fullest link of the pair; and by
    the number of each link of the pair.
    """
    from nest_core.network.tree import TreeLinkMap  # compiled kernels load with it

    fabric, link_map = structure.fabric, loads.network.link_map
    if fabric.routing == "adaptive" or fabric.tiers < 2 or not isinstance(link_map, TreeLinkMap):
        return {}
    tier = link_map.tiers[2]
    busy = loads.busy[link_map.tier == 2].reshape(len(tier.capacity_Bps), -1, 2).max(axis=2)
    shares: dict[str, float] = {}
    for child, group in set(zip(tier.child.tolist(), fabric.group_of(1).tolist(), strict=True)):
        for link, share in enumerate(busy[child].tolist()):
            spine, number = divmod(link, tier.parallel)
            pair = f"{group * fabric.planes} up {spine}"
            shares[pair] = max(shares.get(pair, 0.0), share)
            shares[f"{pair} {number}"] = share
    return shares


_BAR = 18.0


def clos_drawn(fabric: Clos, options: DrawOptions) -> Drawn:
    """Draw a Clos fabric."""
    structure = Structure(fabric, options.parts.hall.per_rack)
    plan, paint = paint_of(options, fabric.slots, fabric.as_built.devices)
    boxes = NodeBoxes(
        np.arange(fabric.nodes + 1) * fabric.devices_per_node,
        structure.is_present,
        _rail_paint(fabric) if options.plan is None else paint,
        fabric.scale_up,
        fabric.devices_per_host or 0,
    )
    looks, busiest = ({}, 0.0) if options.loads is None else load_looks(structure, options.loads)
    counts = _counts(fabric, options.parts)
    drawing = _ClosDrawing(
        structure, _inner(frame_of(options.width), fabric), boxes, looks, plan, counts
    )
    form, marks = drawing.marks()
    words = ClosWords(drawing, counts, form, node_words(marks))
    return framed_plan(
        options, (title(structure), words.subtitle), marks, words.rows(), words.legend(), busiest
    )


def _rail_paint(fabric: Clos) -> Paint:
    """Return the look of devices: the colour of the rail that all of them are on."""
    rails, per_node = fabric.rails, fabric.devices_per_node

    def look(devices: Sequence[int]) -> str:
        numbers = {number % per_node % rails for number in devices[: rails + 1]}
        coloured = 1 < rails <= MAX_RAIL_COLOURS and len(numbers) == 1
        return f"rail-{min(numbers)}" if coloured else "device"

    return look


def _counts(fabric: Clos, parts: Inventory) -> Counts:
    """Return what there is and what has failed, by class of the bill."""
    present = _by_class(fabric, parts)
    full = replace(fabric, missing=(), installed=0, devices=fabric.slots)
    total = _by_class(full, parts_of(full)) if fabric.missing else present
    return {name: (present[name], count - present[name]) for name, count in total.items()}


def _by_class(fabric: Clos, parts: Inventory) -> dict[str, int]:
    counts = {row.role: row.count for row in parts.switches}
    counts |= {f"links {row.tier}": row.count for row in parts.links}
    return counts | {"node": parts.nodes, "device": fabric.devices}


def _inner(frame: Frame, fabric: Clos) -> Frame:
    """Return the drawing without what words of failures and the bar of planes may take."""
    bar = 0.0 if fabric.planes == 1 else _BAR if frame.words else 8.0
    return (
        replace(frame, bottom=frame.bottom - bar)
        if not frame.words
        else replace(frame, top=frame.top + 10, bottom=frame.bottom - 18 - bar)
    )


@dataclass(frozen=True)
class _ClosDrawing(ClosNodes):
    """The marks of rows that have their places.

    Parameters
    ----------
    plan : PlanOnDevices or None
    counts : Counts
    """

    plan: PlanOnDevices | None
    counts: Counts

    def marks(self) -> tuple[str, list[Mark]]:
        """Return what a line between spines and leaves is, and all marks."""
        form, links, boxes = "mesh", list[Mark](), list[Mark]()
        for panel in self.panels if self.has_frames else ():
            boxes += self.panel_frame(panel).marks
        if self.fabric.kind == "rail_only":
            boxes += self._no_common_spine()
        for mesh in self.cores:
            links += mesh.marks()
            boxes += [mark for core in mesh.upper for mark in core.marks]
        for number, panel in enumerate(self.panels):
            leaves, spines = self.leaves[number], self.spines[number]
            if spines:
                mesh = self._mesh(number, panel)
                form = mesh.form
                boxes += mesh.marks()
            boxes += [mark for switch in (*spines, *leaves) for mark in switch.marks]
        boxes += self._nodes()
        if self.fabric.planes > 1:
            boxes += self._other_planes([*links, *boxes])
        if self.plan is not None:
            boxes += list(self._planned(self.plan, boxes))
        if self.frame.words:
            boxes += self._faults()
        return form, [*links, *boxes]

    def _mesh(self, number: int, panel: ClosPanel) -> Mesh:
        pod = panel.pod
        words = ""
        if len(pod.numbers) == 1:
            leaves, spines = pod.links.shape
            total = int(pod.links.sum())
            words = (
                f"{total:,} links: {leaves} x {spines} pairs, {total / (leaves * spines):.3g} each"
            )
        return Mesh(
            f"links {self.fabric.tier_names[1]}",
            self.leaves[number],
            self.spines[number],
            pod.links,
            self.unit * self.fabric.link_ports[min(1, self.fabric.tiers - 1)],
            words,
            loads={key.replace(" up", ""): look for key, look in self.loads.items()},
            meshes=len(self.panels),
        )

    def _no_common_spine(self) -> list[Mark]:
        """Draw an empty row where others have their common spines."""
        top, bottom = self.edges["common"]
        place = self.frame.start + 2, top, self.frame.across - 4, bottom - top
        box = Box("", "nothing", *place, radius=4)
        room = box.width - 16 if self.frame.words and box.height >= 16 else 0.0
        return [box, *centred(box, first_fitting(["no switch joins the rails"], room), "soft")]

    def _nodes(self) -> list[Mark]:
        if self.structure.has_rail_panels:
            return self.below_rails(self.leaves, (self.frame.start, self.frame.end))
        return [
            mark
            for panel, leaves in zip(self.panels, self.leaves, strict=True)
            for mark in self.below(leaves, panel.row.pitch)
        ]

    def _planned(self, plan: PlanOnDevices, marks: Sequence[Mark]) -> Iterator[Mark]:
        """Draw a plan's brackets, tensor groups and transfers."""
        structure, per_node = self.structure, self.fabric.devices_per_node
        if len(self.panels) == 1:
            leaves = self.leaves[0]
            yield from transfers(structure, plan, leaves, self.spines[0])
            if self.frame.words and self.fabric.rails == 1:
                name = "rack" if structure.unit_name == "rack" else self.fabric.tier_names[0]
                yield from plan.brackets(
                    [self._span(leaf.box, leaf.members) for leaf in leaves],
                    name,
                    self.frame.bottom + 3.5,
                )
        yield from plan.outlines(marks, per_node)

    def _span(self, box: Box, leaves: Sequence[DrawnSwitch]) -> BoxSpan:
        per_node = self.fabric.devices_per_node
        groups = [self.structure.group(leaf) for leaf in (leaves[0], leaves[-1])]
        first, last = (self.structure.nodes_of(group) for group in groups)
        devices = range(first.start * per_node, last.stop * per_node)
        return BoxSpan(
            box.x, box.x + box.width, range(leaves[0].number, leaves[-1].number + 1), devices
        )

    def _faults(self) -> Iterator[Mark]:
        """Name failed switches: those of the top row above it, others at the bottom."""
        frame = self.frame
        above, below = frame.top - 4, frame.bottom + 13
        rows = [
            *((leaves, below) for leaves in self.leaves),
            *((spines, below if self.cores else above) for spines in self.spines),
            *((mesh.upper, above) for mesh in self.cores),
        ]
        taken: list[tuple[float, float, float]] = []
        for row, y in rows:
            for placed in row:
                for switch in (member for member in placed.members if member.gone):
                    text = f"{switch.name} {switch.number} down"
                    half = text_width(text, 12.0, bold=True) * 1.12 / 2
                    x = max(placed.box.centre[0], frame.start + half)
                    x = min(x, frame.end - half)
                    if all(y != other or x - half > b or x + half < a for other, a, b in taken):
                        yield Words(text, "alarm", x, y, anchor="middle", key=placed.key)
                        taken.append((y, x - half - 4, x + half + 4))

    def _other_planes(self, marks: Sequence[Mark]) -> list[Mark]:
        """Draw all planes but the first as one bar: what of the bill is not drawn yet."""
        rest, gone = (
            Counter({name: count[at] for name, count in self.counts.items()}) for at in (0, 1)
        )
        for mark in marks:
            if not isinstance(mark, Words):
                (gone if "gone" in mark.look.split() else rest).subtract(dict(mark.stands))
        present, lost = (tuple(sorted((+counter).items())) for counter in (rest, gone))
        fabric, frame = self.fabric, self.frame
        letters = [chr(65 + at) if at < 26 else str(at) for at in (1, fabric.planes - 1)]
        key = f"plane {letters[0]}" if fabric.planes == 2 else f"planes {'-'.join(letters)}"
        y, height = frame.bottom + (20 if frame.words else 1), (_BAR if frame.words else 8.0) - 3
        box = Box(key, "frame", frame.start, y, frame.across, height, "", present, radius=2)
        parts = ", ".join(f"{n:,} {plural(name, n)}" for name, n in present if "links" not in name)
        words = f"{key}: {parts}"
        texts = (f"{words}, links to every NIC as in plane A", words, key) if frame.words else ()
        return [
            box,
            *(failed_corner(f"failed of {key}", "switch gone", box, lost) if lost else []),
            *centred(box, first_fitting(texts, frame.across - 44), "soft"),
        ]
