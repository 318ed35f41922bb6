"""Nodes in a frame: a cell per device while there is room, then a bar per node or for several.

What a bar stands for is told, so that it can be said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nest_core.picture.aggregate import cells_of, tiles
from nest_core.picture.marks import Box, Mark, Stands
from nest_core.picture.racks import Paint, plain
from nest_core.picture.switches import cross

__all__ = ["Room", "cabinet"]

_MOST_CELLS = 1536
_BAR = 6.0
_MOST_BARS = 8
_EDGE = 3.0


@dataclass(frozen=True, slots=True)
class Room:
    """Where nodes stand, and how many there are in all of the picture.

    Parameters
    ----------
    x, y, width, height : float
    devices : int
        Of the whole picture: too many have no cell each.
    nodes : int
    """

    x: float
    y: float
    width: float
    height: float
    devices: int
    nodes: int


def cabinet(
    key: str,
    nodes: Sequence[tuple[int, range]],
    room: Room,
    here: Callable[[int], bool],
    paint: Paint = plain,
) -> tuple[list[Mark], int]:
    """The frame with its nodes, and the nodes that a bar stands for; 0 where devices are cells.

    Parameters
    ----------
    key : str
        Of the frame.
    nodes : sequence of (int, range)
        Number and devices of each, failed ones counted.
    here : callable
        Whether a device is there.
    """
    frame = Box(key, "frame", room.x, room.y, room.width, room.height, radius=2.0)
    edge = _edge(frame)
    width, height = room.width - 2 * edge, room.height - 2 * edge
    each = max(len(devices) for _, devices in nodes)
    columns = _columns(len(nodes), each, width, height) if room.devices <= _MOST_CELLS else 0
    if columns:
        return [frame, *_cells(frame, nodes, columns, here, paint)], 0
    rows = max(1, min(int(height / _BAR), len(nodes)))
    if rows < len(nodes) or room.nodes > _MOST_CELLS:
        counts = tiles(len(nodes), 9.0 * min(rows, _MOST_BARS))
        if room.nodes * len(counts) / max(1, len(nodes)) > _MOST_CELLS:
            counts = (len(nodes),)
    else:
        counts = (1,) * len(nodes)
    return [frame, *_bars(frame, nodes, counts, here, paint)], counts[0]


def _columns(nodes: int, each: int, width: float, height: float) -> int:
    """Columns of nodes with the largest cells; 0 where cells have no room."""
    best, found = 0.0, 0
    for columns in range(1, nodes + 1):
        across, down = width / columns - 2, height / -(-nodes // columns) - 2
        if across < 4:
            break
        cells = cells_of(each, across, down)
        if cells and cells.each == 1:
            least = min(across / cells.columns, down / cells.rows)
            if least > best:
                best, found = least, columns
    return found


def _cells(
    frame: Box,
    nodes: Sequence[tuple[int, range]],
    columns: int,
    here: Callable[[int], bool],
    paint: Paint,
) -> list[Mark]:
    edge = _edge(frame)
    across = (frame.width - 2 * edge) / columns
    down = (frame.height - 2 * edge) / -(-len(nodes) // columns)
    each = max(len(devices) for _, devices in nodes)
    found = cells_of(each, across - 2, down - 2)
    marks: list[Mark] = []
    for at, (number, devices) in enumerate(nodes):
        row, column = divmod(at, columns)
        x, y = frame.x + edge + column * across + 1, frame.y + edge + row * down + 1
        lost = not any(map(here, devices))
        node = f"node {number}"
        stands: Stands = (("node", 1),)
        look = "node gone" if lost else "node"
        marks.append(Box(node, look, x, y, across - 2, down - 2, frame.key, stands))
        if found is None:
            continue
        wide, high = (across - 2) / found.columns, (down - 2) / found.rows
        gap = 1.0 if wide < 8 else 2.0
        for slot, device in enumerate(devices):
            r, c = divmod(slot, found.columns)
            own = paint((device,)) if here(device) else "device gone"
            place = x + c * wide + gap / 2, y + r * high + gap / 2
            size = wide - gap, max(2.0, high - gap)
            box = Box(f"device {device}", own, *place, *size, node, (("device", 1),))
            marks += [box, *([] if here(device) else cross(box))]
    return marks


def _bars(
    frame: Box,
    nodes: Sequence[tuple[int, range]],
    counts: Sequence[int],
    here: Callable[[int], bool],
    paint: Paint,
) -> list[Mark]:
    edge = _edge(frame)
    down = (frame.height - 2 * edge) / len(counts)
    gap = min(2.0, 0.25 * down)
    marks: list[Mark] = []
    first = 0
    for at, count in enumerate(counts):
        some = nodes[first : first + count]
        devices = [device for _, own in some for device in own]
        alive = [device for device in devices if here(device)]
        left = sum(any(map(here, own)) for _, own in some)
        name = f"node {some[0][0]}" + (f"-{some[-1][0]}" if count > 1 else "")
        stands: Stands = (("node", left), ("device", len(alive)))
        look = paint(devices)
        if not alive:
            stands, look = (("node", count), ("device", len(devices))), "device gone"
        x, y, width = frame.x + edge, frame.y + edge + at * down, frame.width - 2 * edge
        bar = Box(name, look, x, y + gap / 2, width, down - gap, frame.key, stands)
        marks.append(bar)
        if alive and len(alive) < len(devices):
            lost: Stands = (("device", len(devices) - len(alive)), ("node", count - left))
            size = min(7.0, bar.height, bar.width)
            corner = Box(f"failed of {name}", "device gone", x, bar.y, size, size, name, lost)
            marks += [corner, *cross(corner)]
        elif not alive:
            marks += cross(bar)
        first += count
    return marks


def _edge(frame: Box) -> float:
    """Between a frame and what is in it."""
    return min(_EDGE, 0.12 * frame.width, 0.12 * frame.height)
