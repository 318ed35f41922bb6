"""The nodes below the leaves of a Clos fabric, and the links between them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nest_core.report.picture.aggregate import mesh_form
from nest_core.report.picture.clos_layout import ClosLayout
from nest_core.report.picture.marks import Line, Mark, band, between
from nest_core.report.picture.racks import MIN_DOMAIN, RailColumn
from nest_core.report.picture.switches import Placed

__all__ = ["ClosNodes"]

Edges = tuple[tuple[float, float], tuple[float, float]]
"""Left end and length of the upper and lower edge of links."""

_MIN_NODE = 40.0
"""Least room of a node that stands beside others."""
_MIN_RACK = 26.0
"""The same of a scale-up domain, which is as high as a rack."""


@dataclass(frozen=True)
class ClosNodes(ClosLayout):
    """Draw the nodes below leaves.

    Parameters
    ----------
    loads : mapping of str to str
        Looks of links by the key of their upper end and ``up`` or ``down``.
    """

    loads: Mapping[str, str]

    def below_rails(
        self, panels: Sequence[Sequence[Placed]], edges: tuple[float, float]
    ) -> list[Mark]:
        """Draw all nodes in one frame below rails that are networks of their own."""
        structure, (x, end) = self.structure, edges
        columns = [self._column(leaves) for leaves in panels]
        marks = [
            mark for leaves in panels for leaf in leaves for mark in self._links_down(leaf, "nodes")
        ]
        nodes = range(structure.fabric.nodes)
        top, bottom = self.edges["node"]
        return [
            *marks,
            *self.boxes.by_rail(
                "nodes", nodes, (x, top, end - x, bottom - top), columns, structure.fabric.rails
            ),
        ]

    def below(self, leaves: Sequence[Placed], pitch: float) -> list[Mark]:
        """Draw the nodes of every unit below its leaves.

        Parameters
        ----------
        pitch : float
            Between two boxes of leaves.
        """
        return [mark for unit in self._units(leaves) for mark in self._unit(unit, pitch)]

    def _groups(self, leaf: Placed) -> list[int]:
        return [self.structure.group(member) for member in leaf.members]

    def _column(self, leaves: Sequence[Placed]) -> RailColumn:
        """Return the column of the rails that some leaves are."""
        first, last = leaves[0].box, leaves[-1].box
        rails = self.structure.fabric.rails
        numbers = {group % rails for leaf in leaves for group in self._groups(leaf)}
        return first.x, last.x + last.width - first.x, range(min(numbers), max(numbers) + 1)

    def _units(self, leaves: Sequence[Placed]) -> Iterator[list[Placed]]:
        """Boxes of leaves that have their nodes in common."""
        rails, unit = self.structure.fabric.rails, list[Placed]()
        for leaf in leaves:
            unit.append(leaf)
            if self._groups(leaf)[-1] % rails == rails - 1:
                yield unit
                unit = []

    def _unit(self, leaves: Sequence[Placed], pitch: float) -> list[Mark]:
        structure, rails = self.structure, self.structure.fabric.rails
        first, last = leaves[0].box, leaves[-1].box
        groups = [group for leaf in leaves for group in self._groups(leaf)]
        nodes = range(structure.nodes_of(groups[0]).start, structure.nodes_of(groups[-1]).stop)
        number, end = groups[0] // rails, groups[-1] // rails
        key = f"{structure.unit_name} {number}" + (f"-{end}" if end > number else "")
        room = pitch * len(leaves)
        width = max(last.x + last.width - first.x, min(room - 2, 0.9 * room))
        x = (first.x + last.x + last.width - width) / 2
        top, bottom = self.edges["node"]
        area = (x, top, width, bottom - top)
        domain = structure.fabric.devices_per_node >= MIN_DOMAIN and self.boxes.has_cells
        is_wide = width / len(nodes) >= (_MIN_RACK if domain else _MIN_NODE)
        if is_wide and len(groups) == 1:
            return [
                *self._links_to_each(leaves[0], nodes, area),
                *self.boxes.side_by_side(nodes, area),
            ]
        marks = [mark for leaf in leaves for mark in self._links_down(leaf, key)]
        if is_wide and (domain or structure.fabric.nodes == 1):
            return [*marks, *self.boxes.framed(key, nodes, area)]
        columns = [] if rails == 1 or domain else self._columns(leaves)
        return (
            [*marks, *self.boxes.by_rail(key, nodes, area, columns, rails)]
            if columns
            else [*marks, *self.boxes.block(key, nodes, area)]
        )

    def _columns(self, leaves: Sequence[Placed]) -> list[RailColumn]:
        """Where devices of every rail stand: below their leaf, or in equal parts of a tile."""
        rails = self.structure.fabric.rails
        if len(leaves) > 1:
            spans = [{group // rails for group in self._groups(leaf)} for leaf in leaves]
            is_apart = all(len(units) == 1 for units in spans)
            return [self._column((leaf,)) for leaf in leaves] if is_apart else []
        box = leaves[0].box
        part = box.width / rails
        if part < 3:
            return [(box.x + 1, box.width - 2, range(rails))]
        return [
            (box.x + rail * part + 0.5, part - 1, range(rail, rail + 1)) for rail in range(rails)
        ]

    def _links_down(self, leaf: Placed, key: str) -> Iterator[Mark]:
        """Draw the links from leaves down to a frame of nodes."""
        structure = self.structure
        nodes = sum(
            self.boxes.live(structure.nodes_of(structure.group(member)))[0]
            for member in leaf.members
            if not member.gone
        )
        total = sum(member.down for member in leaf.members)
        here = nodes * structure.links_per_node
        return self._band(leaf, key, (leaf.foot, leaf.foot), here, total)

    def _links_to_each(self, leaf: Placed, nodes: range, area: tuple[float, ...]) -> Iterator[Mark]:
        """Draw the links to nodes that stand side by side, a band each."""
        x, width = leaf.foot[0], leaf.foot[1] / len(nodes)
        pitch, links = area[2] / len(nodes), self.structure.links_per_node
        for at, node in enumerate(nodes):
            live = 0 if leaf.members[0].gone else self.boxes.live(range(node, node + 1))[0]
            lower = area[0] + (at + 0.5) * pitch - 0.45 * width, 0.9 * width
            edges = (x + (at + 0.05) * width, 0.9 * width), lower
            key, room = f"node {node}", self.edges["node"][0] - leaf.box.y - leaf.box.height
            form = mesh_form(links * len(nodes), len(nodes), width / links, room)
            if form == "links" and live and leaf.box.look == "switch" and not self.loads:
                yield from self._singly(leaf, key, edges, links)
            else:
                yield from self._band(leaf, key, edges, live * links, links)

    def _singly(self, leaf: Placed, key: str, edges: Edges, links: int) -> list[Mark]:
        """Draw a line for every link to a node."""
        (above, wide), (below, _) = edges
        top, ends = leaf.box.y + leaf.box.height, (key, leaf.key)
        width, stands = min(2.0, 0.7 * wide / links), ((f"links {leaf.members[0].name}", 1),)
        return [
            Line(
                between(*ends),
                "link",
                ((below + x, self.edges["node"][0]), (above + x, top)),
                width,
                ends,
                stands,
            )
            for x in [(number + 0.5) / links * wide for number in range(links)]
        ]

    def _band(
        self,
        leaf: Placed,
        key: str,
        edges: Edges,
        here: int,
        total: int,
    ) -> Iterator[Mark]:
        """Draw links from a part of a leaf's foot as one band, and what of them is gone."""
        first = leaf.members[0]
        colour = first.look if first.look in leaf.box.look.split() else ""
        look = self.loads.get(f"{leaf.key} down", f"{colour} bundle".strip())
        upper, lower = edges
        top = leaf.box.y + leaf.box.height
        places = (lower[0], self.edges["node"][0], lower[1]), (upper[0], top, upper[1])
        return band(f"links {first.name}", (key, leaf.key), places, (here, total - here), look)
