"""The nodes below the leaves of a Clos fabric, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nest_core.report.picture.aggregate import mesh_form
from nest_core.report.picture.clos_structure import Structure
from nest_core.report.picture.marks import Band, Line, Mark, Stands, between
from nest_core.report.picture.racks import MIN_DOMAIN, Column, Racks
from nest_core.report.picture.switches import Placed, rectangle

__all__ = ["Foot", "NodeRow"]

_MIN_NODE = 40.0
"""Least room of a node that stands beside others."""
_MIN_RACK = 26.0
"""The same of a scale-up domain, which is as high as a rack."""

Foot = tuple[Placed, tuple[int, ...]]
"""A box of leaves, and the numbers of their groups."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """Draw the nodes below leaves.

    Parameters
    ----------
    structure : Structure
    racks : Racks
    loads : mapping of str to str
        Looks of links by the key of their upper end and ``down``.
    top, bottom : float
        Of the nodes.
    """

    structure: Structure
    racks: Racks
    loads: Mapping[str, str]
    top: float
    bottom: float

    def below_all(self, panels: Sequence[Sequence[Foot]], left: float, right: float) -> list[Mark]:
        """Draw all nodes in one frame below rails that are networks of their own."""
        rails, nodes = self.structure.fabric.rails, range(self.structure.fabric.nodes)
        columns: list[Column] = []
        marks: list[Mark] = []
        for panel in panels:
            (first, groups), (last, _) = panel[0], panel[-1]
            on_rails = {group % rails for _, own in panel for group in own}
            x, end = first.box.x, last.box.x + last.box.width
            columns.append((x, end - x, range(min(on_rails), max(on_rails) + 1)))
            for leaf, groups in panel:
                marks += self._down_links(leaf, groups, "nodes")
        area = (left, self.top, right - left, self.bottom - self.top)
        return [*marks, *self.racks.by_rail("nodes", nodes, area, columns, rails)]

    def below(self, leaves: Sequence[Foot], pitch: float) -> list[Mark]:
        """Draw the nodes of every unit below its leaves.

        Parameters
        ----------
        pitch : float
            Between two boxes of leaves.
        """
        marks: list[Mark] = []
        for feet in self._units(leaves):
            marks += self._unit(feet, pitch)
        return marks

    def _units(self, leaves: Sequence[Foot]) -> Iterator[list[Foot]]:
        """Boxes of leaves that have their nodes in common."""
        rails, feet = self.structure.fabric.rails, list[Foot]()
        for leaf, groups in leaves:
            feet.append((leaf, groups))
            if groups[-1] % rails == rails - 1:
                yield feet
                feet = []

    def _unit(self, feet: Sequence[Foot], pitch: float) -> list[Mark]:
        structure, rails = self.structure, self.structure.fabric.rails
        (first, groups), (last, last_groups) = feet[0], feet[-1]
        under = structure.nodes_of(groups[0]), structure.nodes_of(last_groups[-1])
        nodes = range(under[0].nodes.start, under[1].nodes.stop)
        span = f"-{under[1].number}" if under[1].number > under[0].number else ""
        key = f"{under[0].name} {under[0].number}{span}"
        room = pitch * len(feet)
        middle = (first.box.x + last.box.x + last.box.width) / 2
        width = max(last.box.x + last.box.width - first.box.x, min(room - 2, 0.9 * room))
        area = (middle - width / 2, self.top, width, self.bottom - self.top)
        domain = structure.fabric.devices_per_node >= MIN_DOMAIN and self.racks.has_cells
        wide = width / len(nodes) >= (_MIN_RACK if domain else _MIN_NODE)
        if wide and rails == 1 and len(feet) == 1:
            links = self._beside(first, nodes, area)
            return [*links, *self.racks.side_by_side(nodes, area)]
        marks = [mark for leaf, own in feet for mark in self._down_links(leaf, own, key)]
        if wide and domain:
            frame = self.racks.frame(key, area)
            inner = (area[0] + 3, self.top + 3, width - 6, area[3] - 6)
            return [*marks, frame, *self.racks.side_by_side(nodes, inner, key)]
        columns = self._columns(feet)
        if rails > 1 and columns and not domain:
            return [*marks, *self.racks.by_rail(key, nodes, area, columns, rails)]
        return [*marks, *self.racks.block(key, nodes, area)]

    def _columns(self, feet: Sequence[Foot]) -> list[Column]:
        """Where devices of every rail stand: below their leaf, or in equal parts of a tile."""
        rails = self.structure.fabric.rails
        if len(feet) == 1:
            (leaf, _) = feet[0]
            each = leaf.box.width / rails
            if each < 3:
                return [(leaf.box.x + 1, leaf.box.width - 2, range(rails))]
            return [
                (leaf.box.x + rail * each + 0.5, each - 1, range(rail, rail + 1))
                for rail in range(rails)
            ]
        columns = []
        for leaf, groups in feet:
            on = [group % rails for group in groups]
            if len({group // rails for group in groups}) > 1:
                return []
            columns.append((leaf.box.x, leaf.box.width, range(on[0], on[-1] + 1)))
        return columns

    def _down_links(self, leaf: Placed, groups: Sequence[int], key: str) -> list[Mark]:
        """Draw the links from leaves down to a frame of nodes, and what of them is gone."""
        structure, of = self.structure, f"links {leaf.members[0].name}"
        here = sum(
            self.racks.live_nodes(structure.nodes_of(group).nodes) * structure.links_per_node
            for member, group in zip(leaf.members, groups, strict=True)
            if not member.gone
        )
        left, width = leaf.foot
        top, total = leaf.box.y + leaf.box.height, sum(member.down for member in leaf.members)
        colour = leaf.members[0].look if leaf.members[0].look in leaf.box.look.split() else ""
        look = self.loads.get(f"{leaf.key} down", f"{colour} bundle".strip())
        rate = leaf.members[0].rate if len(leaf.members) == 1 else 1.0
        if rate < 1:
            look, left, width = "bundle slow", left + width * (1 - rate) / 2, width * rate
        ends = (key, leaf.key)
        lost: Stands = ((of, total - here),)
        area = rectangle(left, top, width, self.top - top)
        if not here:
            return [Band(between(*ends), "gone link", area, ends, lost)]
        marks: list[Mark] = [Band(between(*ends), look, area, ends, ((of, here),))]
        if total > here:
            x = left + width - 0.5
            points = ((x, self.top), (x, top))
            marks.append(Line(between(*ends), "link gone", points, 1.0, ends, lost))
        return marks

    def _beside(self, leaf: Placed, nodes: range, area: tuple[float, ...]) -> list[Mark]:
        """Draw the links to nodes that stand side by side: singly, or as a band each."""
        per_node, (start, foot) = self.structure.links_per_node, leaf.foot
        top, of = leaf.box.y + leaf.box.height, f"links {leaf.members[0].name}"
        total, pitch = per_node * len(nodes), area[2] / len(nodes)
        look = self.loads.get(f"{leaf.key} down", "bundle")
        form = mesh_form(total, len(nodes), foot / total, self.top - top)
        singly = form == "links" and look == "bundle" and not leaf.members[0].gone
        rate, marks = leaf.members[0].rate, list[Mark]()
        for at, node in enumerate(nodes):
            middle, ends = area[0] + (at + 0.5) * pitch, (f"node {node}", leaf.key)
            live = self.racks.live_nodes(range(node, node + 1)) and not leaf.members[0].gone
            if singly:
                inner = 0.66 * pitch
                for number in range(per_node):
                    x = middle - inner / 2 + (number + 0.5) * inner / per_node
                    high = start + (at * per_node + number + 0.5) * foot / total
                    width = min(2.0, max(0.8, 0.8 * foot / total))
                    line = "link" if live else "link gone"
                    points = ((x, self.top), (high, top))
                    marks.append(Line(between(*ends), line, points, width, ends, ((of, 1),)))
                continue
            high = start + (at + 0.5) * foot / len(nodes)
            half = max(0.5, 0.45 * foot / len(nodes) * rate)
            corners = (
                (high - half, top),
                (high + half, top),
                (middle + half, self.top),
                (middle - half, self.top),
            )
            own = "link gone" if not live else "bundle slow" if rate < 1 else look
            marks.append(Band(between(*ends), own, corners, ends, ((of, per_node),)))
        return marks
