"""Fabrics wired rail by rail: rails as coloured planes, their leaves where units meet them.

A unit is a column, a rail a tinted strip, a leaf stands where they meet: a staircase, so that what
leads down to the nodes passes no other leaf. Rail-optimised: all leaves climb to the same grey
spines on top. Rails apart: every strip ends in its own spines, and a bus of all its leaves' uplinks
grows towards them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nest_core.picture.clos_grid import COLOURS, Grid, grid_of, rail_look
from nest_core.picture.clos_structure import Nodes, Pod, Structure
from nest_core.picture.clos_tiers import Layer, Region, pair_words, row_said
from nest_core.picture.marks import Band, Box, Line, Mark, Stands, Words, between
from nest_core.picture.meshes import Mesh, mesh
from nest_core.picture.racks import Racks, plain
from nest_core.picture.switches import Placed, Switch, narrow_row, place, place_one, rectangle
from nest_core.picture.text import text_width

__all__ = ["Rails"]

_LABEL = 42.0


@dataclass(frozen=True, slots=True)
class _Rows:
    """Tops and bottoms."""

    spines: tuple[float, float]
    mesh: tuple[float, float]
    planes: tuple[float, float]
    nodes: tuple[float, float]


def _rows(region: Region, spines: bool) -> _Rows:
    top, down = region.top, region.down
    switch = min(18.0, max(6.0, 0.05 * down))
    above = switch + (max(50.0, 0.19 * down) if down > 200 else 0.22 * down) if spines else 0.0
    nodes = 0.31 * down
    bundle = 0.06 * down
    return _Rows(
        (top, top + switch),
        (top + switch, top + above),
        (top + above, region.bottom - nodes - bundle),
        (region.bottom - nodes, region.bottom),
    )


@dataclass(frozen=True, slots=True)
class Rails:
    """Draws leaves, nodes and planes of a pod, or of a whole fabric of two tiers.

    Parameters
    ----------
    structure : Structure
    racks : Racks
    counted : bool
        Whether marks stand for elements, or repeat others.
    labels : bool
        Whether rails and units are named.
    loads : mapping of str to str
        Looks of links by the key of their lower end.
    slot : (float, float)
        Part of a plane's height that its leaves take.
    below : bool
        Whether the nodes are drawn.
    """

    structure: Structure
    racks: Racks
    counted: bool = True
    labels: bool = True
    loads: Mapping[str, str] = field(default_factory=dict)
    slot: tuple[float, float] = (0.18, 0.82)
    below: bool = True

    def drawn(self, pod: Pod, region: Region) -> Layer:
        """Common spines, mesh, planes with leaves, nodes."""
        rows = _rows(region, bool(pod.spines))
        names = self.structure.fabric.tier_names
        grid, units = self.grid(pod, region)
        leaves, order, marks = self.leaves(pod, grid, units, rows.planes, rows.nodes[0])
        marks = [*self.planes(grid, region, rows.planes), *marks]
        share = grid.box * len(grid.rails) / grid.pitch
        unit = self.room(pod, grid)
        ports = sum(spine.down for spine in pod.spines)
        width = min(grid.right - grid.left, ports * unit / share)
        middle = (grid.left + grid.right) / 2
        above = narrow_row(len(pod.spines), middle, width, share)
        spines = place(pod.spines, above, unit, rows.spines, self.counted)
        total = sum(leaf.up for leaf in pod.leaves)
        links = Mesh(
            f"links {names[1]}",
            pod.links[order],
            pair_words(pod, total),
            unit,
            self.counted,
            loads={key.removesuffix(" up"): look for key, look in self.loads.items()},
        )
        form, lines = mesh(leaves, spines, links)
        marks = [*marks[: len(grid.rails)], *lines, *marks[len(grid.rails) :]]
        marks += [mark for box in spines for mark in box.marks]
        marks += self.nodes(grid, units, rows.nodes) if self.below else []
        edges = {
            names[1]: rows.spines,
            f"links {names[1]}": rows.mesh,
            names[0]: (rows.planes[0], (rows.planes[0] + rows.planes[1]) / 2),
            f"links {names[0]}": ((rows.planes[0] + rows.planes[1]) / 2, rows.nodes[0]),
            "node": rows.nodes,
        }
        tiles_said = {names[0]: grid.said, names[1]: row_said(spines)}
        tiles_said["node"] = self.row_words(grid, units, rows.nodes)
        return Layer(tuple(marks), edges, tiles_said, {names[0]: leaves, names[1]: spines}, form)

    def grid(self, pod: Pod, region: Region, right: float = 0.0) -> tuple[Grid, list[int]]:
        """Columns, and the numbers of the units."""
        units = sorted({group // self.structure.fabric.rails for group in pod.groups})
        left = region.left + (_LABEL if self.named(region) else 0.0)
        return grid_of(self.structure, len(units), left, region.right - right), units

    def named(self, region: Region) -> bool:
        """Whether every rail has room for its name."""
        rails = self.structure.fabric.rails
        return self.labels and rails <= COLOURS and 0.38 * region.down / rails >= 13

    def room(self, pod: Pod, grid: Grid) -> float:
        """Of one link."""
        most = max(max(leaf.down, leaf.up) for leaf in pod.leaves)
        return grid.box / (most * max(grid.units) * max(grid.rails))

    def planes(self, grid: Grid, region: Region, edges: tuple[float, float]) -> list[Mark]:
        """A tinted strip per rail, and its name."""
        top, bottom = edges
        step, rails = (bottom - top) / len(grid.rails), self.structure.fabric.rails
        strips: list[Mark] = []
        names: list[Mark] = []
        for rail in range(len(grid.rails)):
            look = f"{rail_look(rail, rails) or 'shade'} plane"
            area = rectangle(
                grid.left - 4, top + rail * step + 1, region.right - grid.left + 4, step - 2
            )
            strips.append(Band(f"rail {rail}", look, area))
            if self.named(region):
                y = top + (rail + 0.5) * step + 4.2
                text = f"rail {rail}"
                names.append(Words(text, "label", grid.left - 8, y, 12, "end", f"rail {rail}"))
        return [*strips, *names]

    def leaves(
        self,
        pod: Pod,
        grid: Grid,
        units: Sequence[int],
        edges: tuple[float, float],
        bottom: float,
    ) -> tuple[list[Placed], list[int], list[Mark]]:
        """Leaves as a staircase and what leads down from them; places in the pod's order."""
        where = {leaf: number for number, leaf in enumerate(pod.groups)}
        unit_room = self.room(pod, grid)
        found: list[Placed] = []
        order: list[int] = []
        bands: list[Mark] = []
        boxes: list[Mark] = []
        for tile, rail, inside, groups in self._tiles(grid, units):
            held = [where[group] for group in groups if group in where]
            members = tuple(pod.leaves[at] for at in held)
            if not members:
                continue
            placed = self._leaf(members, grid, (tile, rail, inside), edges, unit_room)
            found.append(placed)
            order += held
            boxes += placed.marks
            bands += self._down_links(placed, groups, bottom)
        return found, order, [*bands, *boxes]

    def _tiles(
        self, grid: Grid, units: Sequence[int]
    ) -> list[tuple[int, int, list[int], list[int]]]:
        """Tile of units, tile of rails, its units, and its groups."""
        rails, found, start = self.structure.fabric.rails, [], 0
        for tile, several in enumerate(grid.units):
            inside = list(units[start : start + several])
            start += several
            first = 0
            for number, wide in enumerate(grid.rails):
                groups = [u * rails + r for u in inside for r in range(first, first + wide)]
                first += wide
                found.append((tile, number, inside, groups))
        return found

    def _leaf(
        self,
        members: tuple[Switch, ...],
        grid: Grid,
        where: tuple[int, int, list[int]],
        edges: tuple[float, float],
        unit: float,
    ) -> Placed:
        tile, rail, inside = where
        top, bottom = edges
        step, rails = (bottom - top) / len(grid.rails), self.structure.fabric.rails
        y = top + (rail + self.slot[0]) * step
        look = rail_look(rail, rails)
        dressed = tuple(replace(one, look=look) for one in members)
        high = (y, y + (self.slot[1] - self.slot[0]) * step)
        placed = place_one(dressed, grid.middle(tile, rail), unit, high, self.counted)
        if len(members) > 1:
            span = f"{inside[0]}-{inside[-1]}" if len(inside) > 1 else f"{inside[0]}"
            key = f"{members[0].name} of rail {rail}, unit {span}"
            box = replace(placed.box, key=key)
            rest = tuple(
                replace(mark, inside=key) if isinstance(mark, Box) and mark.inside else mark
                for mark in placed.marks[1:]
                if not isinstance(mark, Words)
            )
            placed = replace(placed, box=box, marks=(box, *rest))
        return replace(placed, rise=y - top)

    def _down_links(self, leaf: Placed, groups: Sequence[int], bottom: float) -> list[Mark]:
        """From a leaf down to the nodes, and what of it is gone."""
        structure, of = self.structure, f"links {leaf.members[0].name}"
        here = sum(
            structure.nodes_left(structure.nodes_of(group).nodes) * structure.links_per_node
            for one, group in zip(leaf.members, groups, strict=False)
            if not one.gone
        )
        left, width = leaf.foot
        top, total = leaf.box.y + leaf.box.height, sum(one.down for one in leaf.members)
        if leaf.members[0].rate < 1 and len(leaf.members) == 1:
            left, width = left + width / 4, width / 2
        look = self.loads.get(f"{leaf.key} down", f"{leaf.members[0].look} bundle".strip())
        ends = (self.unit_key(groups), leaf.key)
        marks: list[Mark] = []
        for said, count in ((look, here), ("link gone", total - here)):
            if not count:
                continue
            stands: Stands = ((of, count),) if self.counted else ()
            area = rectangle(left, top, width, bottom - top)
            if said == "link gone" and here:
                x = left + width - 0.5
                points = ((x, bottom), (x, top))
                marks.append(Line(between(*ends), said, points, 1.0, ends, stands))
            else:
                marks.append(Band(between(*ends), said, area, ends, stands))
        return marks

    def unit_key(self, groups: Sequence[int]) -> str:
        """Of the frame of nodes under some leaves."""
        first = self.structure.nodes_of(groups[0]).number
        last = self.structure.nodes_of(groups[-1]).number
        return f"unit {first}" if first == last else f"unit {first}-{last}"

    def row_words(self, grid: Grid, units: Sequence[int], edges: tuple[float, float]) -> str:
        """What a row of a unit's frame is."""
        nodes = sum(len(self.structure.units[u].nodes) for u in units[: grid.units[0]])
        rows = _row_count(nodes, _most_rows(edges, self.labels))
        each = -(-nodes // rows)
        return "a row is a node" if each == 1 else f"a row is {each} nodes"

    def nodes(self, grid: Grid, units: Sequence[int], edges: tuple[float, float]) -> list[Mark]:
        """Nodes as rows and rails as columns, unit by unit."""
        marks: list[Mark] = []
        start = 0
        for tile, several in enumerate(grid.units):
            inside = units[start : start + several]
            start += several
            marks += self._unit(grid, tile, [self.structure.units[u] for u in inside], edges)
        return marks

    def _unit(
        self, grid: Grid, tile: int, held: Sequence[Nodes], edges: tuple[float, float]
    ) -> list[Mark]:
        top, bottom = edges
        named = self.labels and bottom - top >= 44
        foot = bottom - (16 if named else 0)
        first, last = held[0].nodes.start, held[-1].nodes.stop
        span = f"{held[0].number}" if len(held) == 1 else f"{held[0].number}-{held[-1].number}"
        key, x = f"unit {span}", grid.unit_left(tile)
        marks: list[Mark] = [Box(key, "frame", x, top, grid.wide, bottom - top, radius=2.5)]
        if named:
            marks += self._unit_name(key, x + grid.wide / 2, bottom, grid, last - first)
        nodes = range(first, last)
        room = foot - top - 4
        rows = _row_count(len(nodes), _most_rows(edges, self.labels))
        each, per_row = room / rows, -(-len(nodes) // rows)
        for row in range(rows):
            own = nodes[row * per_row : (row + 1) * per_row]
            if own:
                marks += self._row(grid, tile, own, (top + 2 + row * each, each), key)
        return marks

    def _unit_name(
        self, key: str, middle: float, bottom: float, grid: Grid, nodes: int
    ) -> list[Mark]:
        devices = nodes * self.structure.fabric.devices_per_node
        texts = (f"{key}: {nodes:,} nodes, {devices:,} devices", key, key.split()[-1])
        for text in texts:
            if text_width(text, 12.0) * 1.1 <= grid.wide - 4:
                return [Words(text, "soft", middle, bottom - 4.5, anchor="middle", key=key)]
        return []

    def _row(
        self,
        grid: Grid,
        tile: int,
        nodes: range,
        place: tuple[float, float],
        unit: str,
    ) -> list[Mark]:
        structure, (y, tall) = self.structure, place
        each, rails = structure.fabric.devices_per_node, structure.fabric.rails
        alive = [node for node in nodes if structure.present[node]]
        name = f"node {nodes[0]}" if len(nodes) == 1 else f"node {nodes[0]}-{nodes[-1]}"
        wide, left = grid.wide - 4, grid.unit_left(tile) + 2
        lost = len(nodes) - len(alive)
        stands: Stands = (("node", len(alive) or lost),) if self.counted else ()
        look = "node" if alive else "frame gone"
        cells = [Box(name, look, left, y, wide, tall, unit, stands)]
        first = 0
        for rail, several in enumerate(grid.rails):
            numbers = [
                node * each + slot
                for node in alive
                for slot in range(each)
                if first <= slot % rails < first + several
                and node * each + slot in structure.devices
            ]
            first += several
            if not numbers:
                continue
            painted = self.racks.paint(numbers)
            own = rail_look(rail, rails) or "device"
            box = (grid.middle(tile, rail) - grid.box / 2, y + 0.1 * tall, grid.box, 0.8 * tall)
            key = f"device {numbers[0]}" if len(numbers) == 1 else f"rail {rail} of {name}"
            stands = (("device", len(numbers)),) if self.counted else ()
            look = own if self.racks.paint is plain else painted
            cells.append(Box(key, look, *box, name, stands))
        missing = len(nodes) * each - sum(int(structure.present[node]) for node in nodes)
        if missing:
            cells.append(self._missing(cells[-1], lost if alive else 0, missing))
        return list(cells)

    def _missing(self, cell: Box, nodes: int, devices: int) -> Box:
        """The corner of a row's last cell that says what of the row has failed."""
        size = min(6.0, cell.height, cell.width)
        stands: Stands = (("node", nodes), ("device", devices)) if self.counted else ()
        place = (cell.x + cell.width - size, cell.y, size, size)
        return Box(f"failed in {cell.key}", "device gone", *place, cell.key, stands)


def _most_rows(edges: tuple[float, float], labels: bool) -> int:
    room = edges[1] - edges[0] - 4 - (16 if labels and edges[1] - edges[0] >= 44 else 0)
    return max(1, int(room / 6.5))


def _row_count(nodes: int, most: int) -> int:
    """Rows of equally many nodes, as many as fit."""
    if nodes <= most:
        return nodes
    even = next((rows for rows in range(most, 0, -1) if nodes % rows == 0), 1)
    return even if even > 1 else most
