"""Nodes and their devices: cells while there is room, then a bar a node, then a block a rack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nest_core.picture.aggregate import Cells, cells_of
from nest_core.picture.clos_structure import Nodes, Structure
from nest_core.picture.marks import Box, Mark, Stands, Words
from nest_core.picture.switches import cross
from nest_core.picture.text import text_width

__all__ = ["MOST_CELLS", "Paint", "Racks", "plain"]

Paint = Callable[[Sequence[int]], str]
"""The look of some devices by their numbers, failed ones counted."""

MOST_CELLS = 1536
"""Most devices, and most nodes, that have a mark each."""

_LEAST_ROW = 5.5


def plain(devices: Sequence[int]) -> str:
    """Every device alike."""
    del devices
    return "device"


@dataclass(frozen=True, slots=True)
class Racks:
    """How the nodes of a fabric are drawn.

    Parameters
    ----------
    structure : Structure
    paint : callable
    counted : bool
        Whether they stand for elements, or repeat others.
    side : float
        Least room of a node that stands beside others.
    """

    structure: Structure
    paint: Paint = plain
    counted: bool = True
    side: float = 40.0

    def beside(self, under: Nodes, pitch: float) -> bool:
        """Whether nodes stand side by side, each with a frame of its own."""
        return pitch / len(under.nodes) >= self.side

    def side_by_side(
        self, under: Nodes, left: float, right: float, top: float, bottom: float
    ) -> list[Mark]:
        """Every node with devices, ports, its switch and its name."""
        pitch = (right - left) / len(under.nodes)
        wide = pitch - min(10.0, 0.12 * pitch)
        marks: list[Mark] = []
        for at, node in enumerate(under.nodes):
            x = left + (at + 0.5) * pitch - wide / 2
            marks += self._whole_node(node, x, top, wide, bottom - top)
        return marks

    def _whole_node(self, node: int, x: float, y: float, width: float, height: float) -> list[Mark]:
        key, fabric = f"node {node}", self.structure.fabric
        gone = not self.structure.present[node]
        stands: Stands = (("node", 1),) if self.counted else ()
        if gone and self.counted:
            stands = (("node", 1), ("device", fabric.devices_per_node))
        look = "frame gone" if gone else "frame"
        frame = Box(key, look, x, y, width, height, stands=stands, radius=2.5)
        if gone:
            return [frame, *cross(frame)]
        marks: list[Mark] = [frame]
        named = height >= 60
        switched = fabric.interconnect == "switch" and fabric.devices_per_node > 1 and height >= 44
        foot = y + height - (22 if named else 4)
        if named:
            fits = (text for text in (key, str(node)) if text_width(text, 12) * 1.1 + 3 <= width)
            if text := next(fits, ""):
                marks.append(Words(text, "soft", x + width / 2, y + height - 7, 12, "middle", key))
        tall = foot - y - 5 - (13 if switched else 0)
        marks += self._cells(node, x + 4, y + 5, width - 8, tall, key)
        if switched:
            bar = Box(f"nvswitch {node}", "switch", x + 4, foot - 10, width - 8, 9, inside=key)
            marks.append(bar)
        return marks

    def stacked(self, under: Nodes, x: float, y: float, width: float, height: float) -> list[Mark]:
        """A frame with its nodes one above the other, or a block where there is no room."""
        devices = self.structure.fabric.devices_per_node
        columns = self._columns(len(under.nodes), width, height)
        each = (height - 3) / -(-len(under.nodes) // columns)
        across = (width - 3) / columns
        gap = 1.0 if each < 8 else 2.0
        cells = cells_of(devices, across - 1, each - gap)
        if self.counted and cells and self.structure.fabric.slots > MOST_CELLS:
            bars = self.structure.fabric.nodes <= MOST_CELLS
            cells = Cells(1, 1, devices) if bars and each - gap >= 2.5 else None
        if cells is None:
            return self._block(under, x, y, width, height)
        frame = Box(under.key, "frame", x, y, width, height, radius=1.5)
        marks: list[Mark] = [frame]
        for at, node in enumerate(under.nodes):
            row, column = divmod(at, columns)
            place = (x + 2 + column * across, y + 2 + row * each, across - 1, each - gap)
            marks += self._node(node, place, under.key, cells)
        return marks

    def _columns(self, nodes: int, width: float, height: float) -> int:
        """Columns of nodes: one, or as many as make room for a bar each, if they have any."""
        if (height - 3) / nodes >= _LEAST_ROW:
            return 1
        columns = -(-nodes // max(1, int((height - 3) / _LEAST_ROW)))
        return columns if (width - 3) / columns >= _LEAST_ROW else 1

    def _block(self, under: Nodes, x: float, y: float, width: float, height: float) -> list[Mark]:
        """One box for all nodes; what has failed of it in its corner."""
        each = self.structure.fabric.devices_per_node
        nodes = self.structure.nodes_left(under.nodes)
        lost, devices = len(under.nodes) - nodes, self.structure.devices_left(under.nodes)
        numbers = range(under.nodes.start * each, under.nodes.stop * each)
        stands: Stands = (("node", nodes), ("device", devices)) if self.counted else ()
        marks: list[Mark] = [
            Box(under.key, self.paint(numbers), x, y, width, height, stands=stands, radius=1.5)
        ]
        if lost or devices < nodes * each:
            missing = len(under.nodes) * each - devices
            stands = (("node", lost), ("device", missing)) if self.counted else ()
            size = min(7.0, width, height)
            corner = Box(
                f"failed of {under.key}", "device gone", x, y, size, size, under.key, stands
            )
            marks += [corner, *cross(corner)]
        return marks

    def _node(
        self, node: int, place: tuple[float, float, float, float], rack: str, cells: Cells
    ) -> list[Mark]:
        x, y, width, height = place
        key, each = f"node {node}", self.structure.fabric.devices_per_node
        if not self.structure.present[node]:
            failed: Stands = (("node", 1), ("device", each)) if self.counted else ()
            box = Box(key, "device gone", x, y, width, height, rack, failed)
            return [box, *cross(box)]
        if cells.each > 1 or each == 1:
            count = int(self.structure.present[node])
            stands: Stands = (("node", 1), ("device", count)) if self.counted else ()
            numbers = range(node * each, (node + 1) * each)
            marks: list[Mark] = [Box(key, self.paint(numbers), x, y, width, height, rack, stands)]
            if count < each:
                stands = (("device", each - count),) if self.counted else ()
                size = min(6.0, width, height)
                marks.append(Box(f"failed of {key}", "device gone", x, y, size, size, key, stands))
            return marks
        stands = (("node", 1),) if self.counted else ()
        frame: Mark = Box(key, "node", x, y, width, height, rack, stands)
        return [frame, *self._cells(node, x, y, width, height, key)]

    def _cells(
        self, node: int, x: float, y: float, width: float, height: float, key: str
    ) -> list[Mark]:
        """The devices of a node, one cell each."""
        each = self.structure.fabric.devices_per_node
        found = cells_of(each, width, height)
        if found is None or found.each > 1:
            count = int(self.structure.present[node])
            stands = (("device", count),) if self.counted else ()
            numbers = range(node * each, (node + 1) * each)
            bar = Box(f"devices of {key}", self.paint(numbers), x, y, width, height, key, stands)
            return [bar]
        across, down = width / found.columns, height / found.rows
        gap = 1.0 if across < 8 else 2.0
        marks: list[Mark] = []
        for slot in range(each):
            row, column = divmod(slot, found.columns)
            number = node * each + slot
            here = number in self.structure.devices
            stands = (("device", 1),) if self.counted else ()
            marks.append(
                Box(
                    f"device {number}",
                    self.paint((number,)) if here else "device gone",
                    x + column * across + gap / 2,
                    y + row * down,
                    across - gap,
                    down - min(gap, 0.25 * down),
                    key,
                    stands,
                )
            )
        return marks
