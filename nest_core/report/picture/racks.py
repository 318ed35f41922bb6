"""Nodes and their devices, and groups of them as columns with their switches above.

Nodes have cells while there is room, then are a bar each, then bars of several. A box of a column
is all switches of a level in it, as wide at its foot as what comes in, at its head as what goes
out, so that an oversubscribed level is a funnel and a generous one a flare.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from nest_core.fabric import BoolArray, IntArray, ScaleUp
from nest_core.report.picture.aggregate import BoxRow, cells_of, tiles
from nest_core.report.picture.frame import Frame
from nest_core.report.picture.marks import (
    Box,
    Line,
    Mark,
    Point,
    Stands,
    band,
    between,
    centred,
    first_fitting,
)
from nest_core.report.picture.switches import arc, cross, failed_corner

__all__ = [
    "MIN_DOMAIN",
    "Area",
    "GroupColumns",
    "NodeBoxes",
    "Paint",
    "RailColumn",
    "node_words",
    "plain",
]

Area = tuple[float, float, float, float]
"""Left, top, width, height."""
RailColumn = tuple[float, float, range]
"""Left edge, width, and the rails of a column of devices."""
Paint = Callable[[Sequence[int]], str]
"""The look of some devices by their numbers, failed ones counted."""

MIN_DOMAIN = 17
"""Fewest devices of a node that is drawn as a rack of trays."""

_MAX_CELLS = 1536
_MIN_BAR = 5.5
_MIN_ROW = 6.5
_EDGE = 3.0
_MAX_NODE = 150.0
_MIN_ARCS = 90.0
"""Least width of a node that shows the direct links between its devices."""


def plain(devices: Sequence[int]) -> str:
    """Return the look of devices that are all alike."""
    del devices
    return "device"


@dataclass(frozen=True, eq=False)
class NodeBoxes:
    """Draw the nodes of a fabric.

    Parameters
    ----------
    starts : int array (nodes + 1,)
        Number of the first device of every node.
    present : bool array (slots,)
        Whether each device is present.
    paint : callable
    inside : ScaleUp or None
        What joins the devices of a node, where it is drawn.
    per_host : int
        Devices of a host inside a node; 0: not given.
    """

    starts: IntArray
    present: BoolArray
    paint: Paint = plain
    inside: ScaleUp | None = None
    per_host: int = 0

    @property
    def has_cells(self) -> bool:
        """Whether there are few enough devices to draw each."""
        return len(self.present) <= _MAX_CELLS

    def slots(self, nodes: range) -> range:
        """Return the devices of consecutive nodes, failed ones counted."""
        return range(int(self.starts[nodes.start]), int(self.starts[nodes.stop]))

    def live(self, nodes: range) -> tuple[int, int]:
        """Count the nodes that have a device, and the devices that are present."""
        slots = self.slots(nodes)
        firsts = self.starts[nodes.start : nodes.stop] - slots.start
        counts = np.add.reduceat(self.present[slots.start : slots.stop].astype(np.int64), firsts)
        return int((counts > 0).sum()), int(counts.sum())

    def _lost(self, nodes: range) -> Stands:
        """Return the nodes and devices that have failed."""
        live, devices = self.live(nodes)
        lost = ("node", len(nodes) - live), ("device", len(self.slots(nodes)) - devices)
        return tuple(entry for entry in lost if entry[1])

    def side_by_side(self, nodes: range, area: Area, inside: str = "") -> list[Mark]:
        """Draw every node with its devices, what joins them, and its name."""
        x, top, width, height = area
        pitch = width / len(nodes)
        wide = min(_MAX_NODE if len(self.starts) > 2 else width, pitch - min(10.0, 0.12 * pitch))
        places = [
            (x + (at + 0.5) * pitch - wide / 2, top, wide, height) for at in range(len(nodes))
        ]
        return [
            mark
            for node, place in zip(nodes, places, strict=True)
            for mark in self._tall_node(node, place, inside)
        ]

    def framed(self, key: str, nodes: range, area: Area) -> list[Mark]:
        """Draw a frame with every node in it."""
        x, y, width, height = area
        return [
            Box(key, "frame", *area, radius=2.0),
            *self.side_by_side(nodes, (x + 3, y + 3, width - 6, height - 6), key),
        ]

    def _tall_node(self, node: int, area: Area, inside: str) -> list[Mark]:
        key, nodes = f"node {node}", range(node, node + 1)
        x, y, width, height = area
        devices, (live, _) = self.slots(nodes), self.live(nodes)
        if not live:
            return self._bar(key, nodes, area, inside)
        domain = len(devices) >= MIN_DOMAIN
        look = "frame domain" if domain else "frame"
        marks: list[Mark] = [Box(key, look, *area, inside, (("node", 1),), radius=2.5)]
        bottom = y + height - (22 if height >= 60 else 4)
        if height >= 60:
            texts = f"rack {node}" if domain else key, str(node)
            marks += centred(
                Box(key, "", x, y + height - 20, width, 17.6),
                first_fitting(texts, width - 3),
                "soft",
            )
        below, has_arcs = 0.0, False
        if self.inside is not None and len(devices) > 1 and height >= 44:
            if self.inside.interconnect == "switch":
                below = min(26.0, 0.12 * height) if domain else 9.0
                marks.append(
                    Box(
                        f"nvswitch {node}",
                        "port",
                        *(x + 4, bottom - below - 1),
                        width - 8,
                        below,
                        key,
                    )
                )
                below += 4
            elif width >= _MIN_ARCS and height >= 60:
                has_arcs, below = True, 0.55 * (bottom - y)
        cells = self._cells(node, (x + 4, y + 5, width - 8, bottom - y - 5 - below), key)
        return [*marks, *(self._arcs(cells, below) if has_arcs else []), *cells]

    def _arcs(self, cells: Sequence[Mark], room: float) -> Iterator[Mark]:
        """Draw the direct links between the devices of a node, as wide as what they carry."""
        boxes = [mark for mark in cells if isinstance(mark, Box)]
        if self.inside is None or len(boxes) < self.inside.devices or boxes[0].y < boxes[-1].y:
            return
        links = self.inside.links()
        most = max((rate for _, _, rate in links), default=1.0)
        for a, b, rate in links:
            (start, y), (end, _) = boxes[a].centre, boxes[b].centre
            ends = boxes[a].key, boxes[b].key
            if not any("gone" in boxes[at].look for at in (a, b)):
                deep = (room - 4) * (0.16 + 0.8 * (b - a) / (len(boxes) - 1))
                points = arc(start, end, y + boxes[a].height / 2, -deep)
                width = max(0.8, 2.4 * rate / most)
                yield Line(between(*ends), "link", points, width, ends, opacity=0.8)

    def block(self, key: str, nodes: range, area: Area) -> list[Mark]:
        """Draw a frame with its nodes: with cells, as bars, or one box where there is no room."""
        x, y, width, height = area
        edge = min(_EDGE, 0.12 * width, 0.12 * height)
        inner = (x + edge, y + edge, width - 2 * edge, height - 2 * edge)
        frame = Box(key, "frame", *area, radius=2.0)
        columns = self._cell_columns(nodes, inner)
        if columns:
            cells = zip(nodes, _grid(len(nodes), columns, inner), strict=True)
            return [frame, *(m for node, place in cells for m in self._node(node, place, key))]
        counts = self._bars(len(nodes), inner)
        if len(counts) == 1:
            return self._bar(key, nodes, area)
        parts = (range(*ends) for ends in pairwise(accumulate(counts, initial=nodes.start)))
        return [
            frame,
            *(
                mark
                for members, place in zip(parts, _grid(len(counts), 1, inner), strict=True)
                for mark in self._bar(_node_key(members), members, place, key)
            ),
        ]

    def _cell_columns(self, nodes: range, area: Area) -> int:
        """Return the columns of nodes that give the largest cells; 0: cells have no room."""
        if not self.has_cells:
            return 0
        most = int(np.diff(self.starts[nodes.start : nodes.stop + 1]).max())
        best, result = 0.0, 0
        for columns in range(1, len(nodes) + 1):
            _, _, width, height = _grid(len(nodes), columns, area)[0]
            cells = cells_of(most, width, height)
            if cells:
                size = min(width / cells[0], height / cells[1])
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

    def _bar(self, key: str, nodes: range, area: Area, inside: str = "") -> list[Mark]:
        """Draw some nodes as one box; what has failed of them in its corner."""
        (live, devices), lost = self.live(nodes), self._lost(nodes)
        if not devices:
            box = Box(key, "device gone", *area, inside, lost)
            return [box, *cross(box)]
        box = Box(
            key,
            self.paint(self.slots(nodes)),
            *area,
            inside,
            (("node", live), ("device", devices)),
            radius=1.5,
        )
        return [box, *(_failed(box, lost) if lost else [])]

    def _node(self, node: int, area: Area, inside: str) -> list[Mark]:
        key, nodes = f"node {node}", range(node, node + 1)
        if len(self.slots(nodes)) == 1 or not self.live(nodes)[0]:
            return self._bar(key, nodes, area, inside)
        return [Box(key, "node", *area, inside, (("node", 1),)), *self._cells(node, area, key)]

    def _cells(self, node: int, area: Area, key: str) -> list[Mark]:
        """Draw the devices of a node, one cell each, or all as one bar."""
        x, y, width, height = area
        nodes = range(node, node + 1)
        slots = self.slots(nodes)
        cells = cells_of(len(slots), width, height) if self.has_cells else None
        if cells and self.per_host and len(slots) % self.per_host == 0:
            rows = len(slots) // self.per_host
            if height / rows >= 3 and width / self.per_host >= 3:
                cells = self.per_host, rows
        if cells is None:
            return [
                Box(
                    f"devices of {key}",
                    self.paint(slots),
                    *area,
                    key,
                    (("device", self.live(nodes)[1]),),
                )
            ]
        across, down = width / cells[0], height / cells[1]
        gap = 1.0 if across < 8 else 2.0
        marks: list[Mark] = []
        for at, number in enumerate(slots):
            row, column = divmod(at, cells[0])
            look = self.paint((number,)) if self.present[number] else "device gone"
            place = (x + column * across + gap / 2, y + row * down)
            box = Box(
                f"device {number}",
                look,
                *place,
                *(across - gap, down - min(gap, 0.25 * down)),
                key,
                (("device", 1),),
            )
            marks += [box, *([] if self.present[number] else cross(box))]
        return marks

    def by_rail(
        self, key: str, nodes: range, area: Area, columns: Sequence[RailColumn], rails: int
    ) -> list[Mark]:
        """Draw a frame with nodes as rows and rails as columns.

        Parameters
        ----------
        columns : sequence of RailColumn
            At the leaves that the devices hang on.
        rails : int
            Of the fabric: device i of a node is on rail i modulo this.
        """
        x, y, width, height = area
        most = max(1, int((height - 4) / _MIN_ROW))
        even = (rows for rows in range(min(most, len(nodes)), 1, -1) if len(nodes) % rows == 0)
        rows = next(even, min(most, len(nodes)))
        per_row, step = -(-len(nodes) // rows), (height - 4) / rows
        parts = [nodes[first : first + per_row] for first in range(0, len(nodes), per_row)]
        places = [(x + 1, y + 2 + at * step, width - 2, step) for at in range(len(parts))]
        return [
            Box(key, "frame", *area, radius=2.0),
            *(
                mark
                for members, place in zip(parts, places, strict=True)
                for mark in self._rail_row(members, place, key, columns, rails)
            ),
        ]

    def _rail_row(
        self, nodes: range, area: Area, inside: str, columns: Sequence[RailColumn], rails: int
    ) -> list[Mark]:
        key, slots = _node_key(nodes), np.array(self.slots(nodes))
        rail_of = np.arange(len(slots)) % (len(slots) // len(nodes)) % rails
        live, lost = self.live(nodes)[0], self._lost(nodes)
        if not live:
            return self._bar(key, nodes, area, inside)
        marks: list[Mark] = [Box(key, "node", *area, inside, (("node", live),))]
        for start, width, on_rails in columns:
            on_column = slots[(rail_of >= on_rails.start) & (rail_of < on_rails.stop)]
            devices = on_column[self.present[on_column]].tolist()
            if devices:
                name = f"device {devices[0]}" if len(devices) == 1 else f"rails {on_rails} of {key}"
                place = (start, area[1] + 0.1 * area[3], width, 0.8 * area[3])
                box = Box(name, self.paint(devices), *place, key, (("device", len(devices)),))
                marks.append(box)
        return [*marks, *(_failed(box, lost) if lost else [])]


def node_words(marks: Sequence[Mark]) -> str:
    """Say how many nodes a box is; empty where every node has one."""
    stands = [entry for mark in marks if isinstance(mark, Box) for entry in mark.stands]
    most = max((count for name, count in stands if name == "node"), default=1)
    return f"a box is {most:,} nodes" if most > 1 else ""


def _node_key(nodes: range) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"node {nodes[0]}-{nodes[-1]}"


def _failed(box: Box, lost: Stands) -> list[Mark]:
    return failed_corner(f"failed of {box.key}", "device gone", box, lost)


def _grid(count: int, columns: int, area: Area) -> list[Area]:
    """Return equal places in rows of so many columns."""
    x, y, width, height = area
    across, down = width / columns, height / -(-count // columns)
    gaps = min(2.0, 0.25 * across), min(2.0, 0.25 * down)
    return [
        (x + at % columns * across, y + at // columns * down, across - gaps[0], down - gaps[1])
        for at in range(count)
    ]


_MIN_NODES = 26.0


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """Draw groups side by side.

    Parameters
    ----------
    frame : Frame
    row : BoxRow
        The columns.
    keys : tuple of tuple of str
        Of the boxes of every level by column, the nodes first.
    widths : float array (levels, columns)
        Pixels of the links out of every level, the nodes first.
    edges : mapping of str to (float, float)
        Top and bottom of the switches (``"tier 1"``) and links (``"links 1"``) of every level, and
        of the nodes.
    node_ends : sequence of int
        Nodes before every column, and all.
    boxes : NodeBoxes
    """

    frame: Frame
    row: BoxRow
    keys: tuple[tuple[str, ...], ...]
    widths: npt.NDArray[np.float64]
    edges: Mapping[str, tuple[float, float]]
    node_ends: Sequence[int]
    boxes: NodeBoxes

    def nodes(self, column: int) -> list[Mark]:
        """Draw the nodes of a column."""
        top, bottom = self.edges["nodes"]
        width = max(self.widths[0, column], min(self.row.box, _MIN_NODES))
        nodes = range(self.node_ends[column], self.node_ends[column + 1])
        area = (self.row.centres[column] - width / 2, top, width, bottom - top)
        return self.boxes.block(self.keys[0][column], nodes, area)

    def switches(
        self,
        level: int,
        column: int,
        texts: Sequence[str],
        stands: Stands = (),
        look: str = "switch",
    ) -> list[Mark]:
        """Draw the switches of a level in a column, with the longest text that has room."""
        key, x = self.keys[level][column], self.row.centres[column]
        top, bottom = self.edges[f"tier {level}"]
        foot, head = self.widths[level - 1, column], self.widths[level, column]
        width = max(foot, head)
        box = Box(key, look, x - width / 2, top, width, bottom - top, "", stands, head, foot)
        if look != "switch":
            return [box, *cross(box)]
        room = (foot + head) / 2 - 2 if self.frame.words and bottom - top >= 16 else 0.0
        return [box, *centred(box, first_fitting(texts, room))]

    def bar(self) -> list[Mark]:
        """Draw the switches that join all columns."""
        (key,), top = self.keys[-1], self.edges[f"tier {len(self.keys) - 1}"]
        width = float(self.widths[-1].sum())
        x = (self.frame.start + self.frame.end - width) / 2
        return [Box(key, "switch", x, top[0], width, top[1] - top[0])]

    def way(self, level: int, column: int) -> tuple[Point, Point, float]:
        """Return the upper and lower middle of the links into a level, and their width."""
        top, bottom = self.edges[f"links {level}"]
        x, width = self.row.centres[column], float(self.widths[level - 1, column])
        upper = x
        if level == len(self.keys) - 1 and len(self.keys[-1]) == 1:  # a bar joins all columns
            ends = np.cumsum(self.widths[level - 1])
            upper = (self.frame.start + self.frame.end - ends[-1] - width) / 2 + ends[column]
        return (float(upper), top), (x, bottom), width

    def links(
        self, level: int, column: int, of: str, counts: tuple[int, int], look: str = "bundle"
    ) -> Iterator[Mark]:
        """Draw the links into a level from a column, what has failed of them at the right.

        Parameters
        ----------
        counts : (int, int)
            What there is, and what has failed.
        """
        (x, top), (below, bottom), width = self.way(level, column)
        edges = (below - width / 2, bottom, width), (x - width / 2, top, width)
        return band(of, self.ends(level, column), edges, counts, look)

    def ends(self, level: int, column: int) -> tuple[str, str]:
        """Return the keys of what links into a level join."""
        upper = self.keys[level]
        return self.keys[level - 1][column], upper[column if len(upper) > 1 else 0]

    def crossings(
        self, groups: Sequence[Sequence[int]], column_of: npt.NDArray[np.int64]
    ) -> list[tuple[int, int]]:
        """Return the columns between which the first replica sends from stage to stage."""
        columns = [int(column_of[group[0]]) for group in groups]
        return [(min(pair), max(pair)) for pair in pairwise(columns) if pair[0] != pair[1]]
