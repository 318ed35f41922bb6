"""A program that places stages, at one of its steps: devices above, the table of its cells below.

The lessons on levels and on NEST's program say what stands where (a `Board`); this draws it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from nest_core.report.figures.style import LIMIT
from nest_core.teaching.drawings.drawing import (
    CASING,
    COMPUTE,
    MOVES,
    PALE,
    TEXT_PX,
    LessonDrawing,
    Pen,
    number,
)

__all__ = [
    "Board",
    "BoardCell",
    "BoardDevice",
    "DeviceLook",
    "Hop",
    "board_drawing",
    "units_in_words",
]

_NODES = 2
_ROW, _NAMES = 24.0, 236.0
_TOP, _TALL = 88.0, 48.0
_FILLS = {"new": COMPUTE, "placed": "#74AED3"}


DeviceLook = Literal["", "new", "placed", "producer", "idle"]


class BoardDevice(NamedTuple):
    """Words on a device and below it; ``look`` says what the stage there is."""

    words: str
    look: DeviceLook
    caption: str


class Hop(NamedTuple):
    """Units of data that go from one device to another, to a layer, in so many seconds."""

    source: int
    target: int
    units: float
    layer: int
    seconds: float


class BoardCell(NamedTuple):
    """A cell of the table: its value, empty before it is filled, and whether it is of this step."""

    words: str
    look: Literal["", "new", "read"]


@dataclass(frozen=True, slots=True)
class Board:
    """What stands where.

    Parameters
    ----------
    title, subtitle, reading : str
    devices : tuple of BoardDevice
        Of the devices of two nodes.
    hops : tuple of Hop
    columns, rows : tuple of str
        Headings of the table.
    cells : mapping of (int, int) to BoardCell
        By row and column; others cannot occur.
    """

    title: str
    subtitle: str
    reading: str
    devices: tuple[BoardDevice, ...]
    hops: tuple[Hop, ...]
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: Mapping[tuple[int, int], BoardCell]


def units_in_words(count: float) -> str:
    """Return a number of units of data."""
    return f"{count:g} unit{'' if count == 1 else 's'}"


def board_drawing(board: Board, width: float, *, wall: bool) -> LessonDrawing:
    """Draw a step of a program.

    Parameters
    ----------
    board : Board
    width : float
        Pixels.
    wall : bool
        Whether text has a projector's size.
    """
    pen = Pen(TEXT_PX[wall])
    node_width = (width - 16) / _NODES
    per_node = len(board.devices) // _NODES
    step = (node_width - 12) / per_node
    pen.switch(20, 4, width - 40, 28, "rack")
    for node in range(_NODES):
        pen.panel(2 + node * (node_width + 12), 76, node_width, 96)
    places = [
        12 + device // per_node * (node_width + 12) + device % per_node * step
        for device in range(len(board.devices))
    ]
    for hop in board.hops:
        near = hop.source // per_node == hop.target // per_node
        ends = (places[hop.source] + step / 2 - 4, places[hop.target] + step / 2 - 4)
        _hop(pen, hop, ends, near=near)
    for x, device in zip(places, board.devices, strict=True):
        _device(pen, device, x, step - 8)
    height = _table(pen, board, width)
    svg = pen.svg(width, height, board.title)
    return LessonDrawing(board.title, board.subtitle, board.reading, svg)


def _device(pen: Pen, device: BoardDevice, x: float, wide: float) -> None:
    pen.frame(x, _TOP, wide, _TALL)
    if device.look in _FILLS:
        pen.rect(x, _TOP, wide, _TALL, _FILLS[device.look])
    if device.look == "producer":
        outline = f"M{number(x)} {number(_TOP)}h{number(wide)}v{number(_TALL)}h{number(-wide)}Z"
        pen.path(outline, line=LIMIT, width=2)
    on, quiet = device.look == "new", device.look == "idle"
    pen.text(x + wide / 2, _TOP + _TALL / 2 + 6, device.words, on=on, quiet=quiet)
    pen.text(x + wide / 2, _TOP + _TALL + 22, device.caption, quiet=True)


def _hop(pen: Pen, hop: Hop, ends: tuple[float, float], *, near: bool) -> None:
    """Draw data between two stages: over the node's own links, or up to the rack and down."""
    start, end = ends
    units = units_in_words(hop.units)
    tooltip = f"{units} to layer {hop.layer}: {hop.seconds:g} s"
    if near:
        curve = f"M{number(start)} 88Q{number((start + end) / 2)} 62 {number(end)} 85"
        pen.path(curve, line=MOVES, width=8, told=tooltip)
        pen.head(end, _TOP, up=False, colour=CASING, size=5)
        pen.text((start + end) / 2, 70, f"{hop.units:g}", bold=True)
        return
    for x, up in ((start, True), (end, False)):
        pen.line((x, x), (32, _TOP), MOVES, 4, told=tooltip)
        pen.head(x, 32 if up else _TOP, up=up, colour=MOVES, size=6)
    pen.text(start + 10, 56, f"{units}, {hop.seconds:g} s", anchor="start", bold=True)


def _table(pen: Pen, board: Board, width: float) -> float:
    """Draw the cells, and return where they end."""
    top = 204.0
    wide = (width - _NAMES) / len(board.columns)
    for column, words in enumerate(board.columns):
        pen.text(_NAMES + (column + 0.5) * wide, top, words, quiet=True)
    for row, name in enumerate(board.rows):
        pen.text(0, top + 27 + row * _ROW, name, anchor="start")
    for (row, column), cell in board.cells.items():
        x, y = _NAMES + column * wide, top + 10 + row * _ROW
        pen.frame(x + 2, y + 1, wide - 4, _ROW - 3)
        if cell.look and cell.words:
            fill, line = (COMPUTE, "") if cell.look == "new" else (PALE, MOVES)
            pen.rect(x + 2, y + 1, wide - 4, _ROW - 3, fill, line=line)
        if cell.look == "read" and cell.words:
            pen.dark(x + wide / 2, y + 17, cell.words)
        else:
            new = cell.look == "new"
            pen.text(x + wide / 2, y + 17, cell.words, bold=new, on=new)
    return top + 18 + len(board.rows) * _ROW
