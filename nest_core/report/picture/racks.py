"""Nodes and their devices: cells while there is room, then a bar a node, then bars of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nest_core.report.picture.aggregate import Cells, cells_of, tiles
from nest_core.report.picture.marks import Box, Mark, Stands, Words
from nest_core.report.picture.switches import cross
from nest_core.report.picture.text import text_width

__all__ = ["MIN_DOMAIN", "Area", "Column", "Paint", "Racks", "node_words", "plain"]

IntArray = npt.NDArray[np.int64]
Area = tuple[float, float, float, float]
"""Left, top, width, height."""
Column = tuple[float, float, range]
"""Left edge, width, and the rails of a column of devices."""
Paint = Callable[[Sequence[int]], str]
"""The look of some devices by their numbers, failed ones counted."""

MIN_DOMAIN = 17
"""Fewest devices of a node that is drawn as a rack of trays."""

_MAX_CELLS = 1536
_MIN_BAR = 5.5
_MIN_ROW = 6.5
_EDGE = 3.0


def plain(devices: Sequence[int]) -> str:
    """Return the look of devices that are all alike."""
    del devices
    return "device"


@dataclass(frozen=True, eq=False)
class Racks:
    """Draw the nodes of a fabric.

    Parameters
    ----------
    starts : int array (nodes + 1,)
        Number of the first device of every node.
    present : bool array (slots,)
        Whether each device is there.
    paint : callable
    has_switch : bool
        Whether a switch joins the devices of a node.
    per_host : int
        Devices of a host inside a node; 0: not given.
    """

    starts: IntArray
    present: npt.NDArray[np.bool_]
    paint: Paint = plain
    has_switch: bool = False
    per_host: int = 0

    @cached_property
    def _devices_before(self) -> IntArray:
        return np.concatenate([[0], np.cumsum(self.present)])

    @cached_property
    def _nodes_before(self) -> IntArray:
        counts = np.diff(self._devices_before[self.starts])
        return np.concatenate([[0], np.cumsum(counts > 0)])

    @property
    def has_cells(self) -> bool:
        """Whether there are few enough devices to draw each."""
        return len(self.present) <= _MAX_CELLS

    def slots(self, nodes: range) -> range:
        """Return the devices of consecutive nodes, failed ones counted."""
        return range(int(self.starts[nodes.start]), int(self.starts[nodes.stop]))

    def live_nodes(self, nodes: range) -> int:
        """Count the nodes that have a device."""
        return int(self._nodes_before[nodes.stop] - self._nodes_before[nodes.start])

    def live_devices(self, nodes: range) -> int:
        """Count the devices that are there."""
        slots = self.slots(nodes)
        return int(self._devices_before[slots.stop] - self._devices_before[slots.start])

    @staticmethod
    def frame(key: str, area: Area) -> Box:
        """Return the frame around nodes."""
        return Box(key, "frame", *area, radius=2.0)

    def side_by_side(self, nodes: range, area: Area, inside: str = "") -> list[Mark]:
        """Draw every node with its devices, its switch and its name."""
        left, top, width, height = area
        pitch = width / len(nodes)
        wide = min(150.0, pitch - min(10.0, 0.12 * pitch))
        return [
            mark
            for at, node in enumerate(nodes)
            for mark in self._tall_node(
                node, (left + (at + 0.5) * pitch - wide / 2, top, wide, height), inside
            )
        ]

    def _tall_node(self, node: int, area: Area, inside: str) -> list[Mark]:
        key, nodes = f"node {node}", range(node, node + 1)
        x, y, width, height = area
        devices = self.slots(nodes)
        if not self.live_devices(nodes):
            lost: Stands = (("node", 1), ("device", len(devices)))
            frame = Box(key, "frame gone", *area, inside, lost, radius=2.5)
            return [frame, *cross(frame)]
        domain = len(devices) >= MIN_DOMAIN
        look = "frame domain" if domain else "frame"
        marks: list[Mark] = [Box(key, look, *area, inside, (("node", 1),), radius=2.5)]
        named = height >= 60
        foot = y + height - (22 if named else 4)
        if named:
            word = f"rack {node}" if domain else key
            fits = (text for text in (word, str(node)) if text_width(text, 12) * 1.1 + 3 <= width)
            if text := next(fits, ""):
                marks.append(Words(text, "soft", x + width / 2, y + height - 7, 12, "middle", key))
        bar = 0.0
        if self.has_switch and len(devices) > 1 and height >= 44:
            bar = min(26.0, 0.12 * height) if domain else 9.0
            marks.append(
                Box(f"nvswitch {node}", "port", x + 4, foot - bar - 1, width - 8, bar, key)
            )
        room = (x + 4, y + 5, width - 8, foot - y - 5 - (bar + 4 if bar else 0))
        return [*marks, *self._cells(node, room, key)]

    def block(self, key: str, nodes: range, area: Area) -> list[Mark]:
        """Draw a frame with its nodes: with cells, as bars, or one box where there is no room."""
        x, y, width, height = area
        edge = min(_EDGE, 0.12 * width, 0.12 * height)
        inner = (x + edge, y + edge, width - 2 * edge, height - 2 * edge)
        frame: Mark = self.frame(key, area)
        columns = self._cell_columns(nodes, inner)
        if columns:
            places = _grid(len(nodes), columns, inner)
            cells = (
                self._node(node, place, key) for node, place in zip(nodes, places, strict=True)
            )
            return [frame, *(mark for marks in cells for mark in marks)]
        counts = self._bars(len(nodes), inner)
        if len(counts) == 1:
            return self.bar(key, nodes, area)
        places = _grid(len(counts), 1, inner)
        marks, first = [frame], nodes.start
        for count, place in zip(counts, places, strict=True):
            held = range(first, first + count)
            marks += self.bar(_node_key(held), held, place, key)
            first += count
        return marks

    def _cell_columns(self, nodes: range, area: Area) -> int:
        """Return the columns of nodes that give the largest cells; 0: cells have no room."""
        if not self.has_cells:
            return 0
        most = int(np.diff(self.starts[nodes.start : nodes.stop + 1]).max())
        best, result = 0.0, 0
        for columns in range(1, len(nodes) + 1):
            _, _, width, height = _grid(len(nodes), columns, area)[0]
            cells = cells_of(most, width, height)
            if cells and cells.each == 1:
                size = min(width / cells.columns, height / cells.rows)
                if size > best * 1.05:
                    best, result = size, columns
        return result

    def _bars(self, nodes: int, area: Area) -> tuple[int, ...]:
        """Return how many nodes every bar is."""
        rows = max(1, min(nodes, int(area[3] / _MIN_BAR)))
        total = len(self.starts) - 1
        if area[2] < _MIN_BAR or total * rows / nodes > _MAX_CELLS:
            return (nodes,)
        return (1,) * nodes if rows == nodes else tiles(nodes, 9.0 * min(rows, 8))

    def bar(self, key: str, nodes: range, area: Area, inside: str = "") -> list[Mark]:
        """Draw some nodes as one box; what has failed of them in its corner."""
        slots = self.slots(nodes)
        live, devices = self.live_nodes(nodes), self.live_devices(nodes)
        lost: Stands = tuple(
            entry
            for entry in (("node", len(nodes) - live), ("device", len(slots) - devices))
            if entry[1]
        )
        if not devices:
            box = Box(key, "device gone", *area, inside, lost)
            return [box, *cross(box)]
        stands = (("node", live), ("device", devices))
        box = Box(key, self.paint(slots), *area, inside, stands, radius=1.5)
        return [box, *_corner(box, lost)]

    def _node(self, node: int, area: Area, inside: str) -> list[Mark]:
        key, nodes = f"node {node}", range(node, node + 1)
        if len(self.slots(nodes)) == 1 or not self.live_devices(nodes):
            return self.bar(key, nodes, area, inside)
        return [Box(key, "node", *area, inside, (("node", 1),)), *self._cells(node, area, key)]

    def _cells(self, node: int, area: Area, key: str) -> list[Mark]:
        """Draw the devices of a node, one cell each, or all as one bar."""
        x, y, width, height = area
        nodes = range(node, node + 1)
        slots = self.slots(nodes)
        cells = cells_of(len(slots), width, height) if self.has_cells else None
        if self.per_host and len(slots) % self.per_host == 0 and self.has_cells:
            rows = len(slots) // self.per_host
            if height / rows >= 3 and width / self.per_host >= 3:
                cells = Cells(self.per_host, rows, 1)
        if cells is None or cells.each > 1:
            stands = (("device", self.live_devices(nodes)),)
            return [Box(f"devices of {key}", self.paint(slots), *area, key, stands)]
        across, down = width / cells.columns, height / cells.rows
        gap = 1.0 if across < 8 else 2.0
        marks: list[Mark] = []
        for at, number in enumerate(slots):
            row, column = divmod(at, cells.columns)
            look = self.paint((number,)) if self.present[number] else "device gone"
            place = (x + column * across + gap / 2, y + row * down)
            size = (across - gap, down - min(gap, 0.25 * down))
            box = Box(f"device {number}", look, *place, *size, key, (("device", 1),))
            marks += [box, *([] if self.present[number] else cross(box))]
        return marks

    def by_rail(
        self, key: str, nodes: range, area: Area, columns: Sequence[Column], rails: int
    ) -> list[Mark]:
        """Draw a frame with nodes as rows and rails as columns.

        Parameters
        ----------
        columns : sequence of Column
            At the leaves that the devices hang on.
        rails : int
            Of the fabric: device i of a node is on rail i modulo this.
        """
        x, y, width, height = area
        rows = self.rows(nodes, height)
        per_row, step = -(-len(nodes) // rows), (height - 4) / rows
        marks: list[Mark] = [self.frame(key, area)]
        for at in range(rows):
            held = nodes[at * per_row : (at + 1) * per_row]
            if held:
                place = (x + 1, y + 2 + at * step, width - 2, step)
                marks += self._rail_row(held, place, key, columns, rails)
        return marks

    def rows(self, nodes: range, height: float) -> int:
        """Return how many rows of equally many nodes fit a frame of `by_rail`."""
        most = max(1, int((height - 4) / _MIN_ROW))
        if len(nodes) <= most:
            return len(nodes)
        even = next((rows for rows in range(most, 0, -1) if len(nodes) % rows == 0), 1)
        return even if even > 1 else most

    def _rail_row(
        self, nodes: range, area: Area, inside: str, columns: Sequence[Column], rails: int
    ) -> list[Mark]:
        key, slots = _node_key(nodes), np.array(self.slots(nodes))
        per_node = len(slots) // len(nodes)
        rail_of = (slots - slots[0]) % per_node % rails
        live = self.live_nodes(nodes)
        if not live:
            return self.bar(key, nodes, area, inside)
        marks: list[Mark] = [Box(key, "node", *area, inside, (("node", live),))]
        cells: list[Box] = []
        for left, width, own in columns:
            on_rail = slots[(rail_of >= own.start) & (rail_of < own.stop)]
            devices = on_rail[self.present[on_rail]].tolist()
            if devices:
                name = f"device {devices[0]}" if len(devices) == 1 else f"rails {own} of {key}"
                place = (left, area[1] + 0.1 * area[3], width, 0.8 * area[3])
                stands = (("device", len(devices)),)
                cells.append(Box(name, self.paint(devices), *place, key, stands))
        lost = (("node", len(nodes) - live), ("device", len(slots) - self.live_devices(nodes)))
        return [*marks, *cells, *_corner(cells[-1], tuple(one for one in lost if one[1]))]


def node_words(marks: Sequence[Mark]) -> str:
    """Say how many nodes a box is; empty where every node has one."""
    stands = [entry for mark in marks if isinstance(mark, Box) for entry in mark.stands]
    most = max((count for name, count in stands if name == "node"), default=1)
    return f"a box is {most:,} nodes" if most > 1 else ""


def _node_key(nodes: range) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"node {nodes[0]}-{nodes[-1]}"


def _corner(box: Box, lost: Stands) -> list[Mark]:
    """Draw what has failed of a box in its corner."""
    if not lost:
        return []
    size = min(7.0, box.width, box.height)
    place = (box.x + box.width - size, box.y, size, size)
    corner = Box(f"failed of {box.key}", "device gone", *place, box.key, lost)
    return [corner, *cross(corner)]


def _grid(count: int, columns: int, area: Area) -> list[Area]:
    """Return equal places in rows of so many columns."""
    x, y, width, height = area
    across, down = width / columns, height / -(-count // columns)
    gaps = min(2.0, 0.25 * across), min(2.0, 0.25 * down)
    return [
        (x + at % columns * across, y + at // columns * down, across - gaps[0], down - gaps[1])
        for at in range(count)
    ]
