"""What drawings of the lessons are made of, and boards: SVG from pure functions, in pixels.

Colours of text and paper are the page's own (``currentColor``, translucent greys), so one drawing
serves light and dark. Text is never under 12 px; on a wall it is 16 px. A `Board` is a program that
places stages, at one of its steps: devices above, the table of its cells below.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from nest_core.report.figures.style import LIMIT, TIME_COLOURS

__all__ = [
    "CASING",
    "COMPUTE",
    "IDLE",
    "MOVES",
    "PALE",
    "PAPER",
    "PART",
    "TEXT_PX",
    "Anchor",
    "Board",
    "BoardCell",
    "BoardDevice",
    "DeviceLook",
    "Hop",
    "LessonDrawing",
    "Pen",
    "board_drawing",
    "load_colour",
    "number",
]

MOVES, PALE, CASING = TIME_COLOURS["communication"], "#F3D08A", "#A36F00"
PART, COMPUTE, PAPER = TIME_COLOURS["recomputation"], TIME_COLOURS["compute"], "var(--bg, Canvas)"
IDLE = "rgba(128, 132, 138, 0.55)"
_PANEL, _GRID = "rgba(128, 132, 138, 0.09)", "rgba(128, 132, 138, 0.2)"
_LINE, _SWITCH = "rgba(128, 132, 138, 0.45)", "#6B747D"

TEXT_PX = {False: 13, True: 16}
"""Size of text: on a page, and on a wall."""

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class LessonDrawing:
    """An SVG with the words around it; see `nest_core.report.figures.style.Chart`.

    Parameters
    ----------
    title, subtitle, reading : str
    svg : str
        As wide as it was asked for.
    """

    title: str
    subtitle: str
    reading: str
    svg: str


def number(value: float) -> str:
    """Return a length with up to two decimals.

    Examples
    --------
    >>> number(3.0), number(2.345)
    ('3', '2.35')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def load_colour(load: float) -> str:
    """Return the colour of a link that sends so large a share of the time."""
    return _LINE if load <= 0 else PALE if load < 0.5 else MOVES


class Pen:
    """Collects the marks of one drawing.

    Parameters
    ----------
    text_px : int
        Size of all text.
    """

    def __init__(self, text_px: int) -> None:
        self._marks: list[str] = []
        self.text_px = text_px

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        line: str = "",
        radius: float = 0.0,
        tooltip: str = "",
    ) -> None:
        """Draw a box; ``tooltip`` is what pointing at it says."""
        self._put(
            "rect",
            tooltip,
            x=x,
            y=y,
            width=max(width, 0),
            height=max(height, 0),
            fill=fill,
            stroke=line,
            rx=radius or "",
        )

    def panel(self, x: float, y: float, width: float, height: float, radius: float = 0.0) -> None:
        """Draw what holds others: a node, a device, a cell."""
        self.rect(x, y, width, height, _PANEL, line=_LINE, radius=radius)

    def switch(self, x: float, y: float, width: float, height: float, name: str) -> None:
        """Draw a switch with its name."""
        self.rect(x, y, width, height, _SWITCH, radius=2)
        self.text(x + width / 2, y + height / 2 + 0.35 * self.text_px, name, bold=True, on=True)

    def track(self, x: float, y: float, width: float, height: float) -> None:
        """Where time has not come to."""
        self.rect(x, y, width, height, _GRID)

    def line(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        colour: str,
        width: float,
        *,
        dashed: bool = False,
        tooltip: str = "",
    ) -> None:
        """Draw a straight line."""
        self._put(
            "line",
            tooltip,
            x1=x[0],
            y1=y[0],
            x2=x[1],
            y2=y[1],
            stroke=colour,
            stroke_width=width,
            stroke_dasharray="2 3" if dashed else "",
        )

    def path(
        self, d: str, *, fill: str = "none", line: str = "", width: float = 1.0, tooltip: str = ""
    ) -> None:
        """Draw a path by SVG's own commands."""
        self._put("path", tooltip, d=d, fill=fill, stroke=line, stroke_width=width if line else "")

    def head(self, x: float, y: float, *, up: bool, colour: str, size: float) -> None:
        """Draw the head of an arrow whose tip is at a place."""
        back = y + size * 1.6 if up else y - size * 1.6
        self.path(
            f"M{number(x)} {number(y)}L{number(x - size)} {number(back)}"
            f"L{number(x + size)} {number(back)}Z",
            fill=colour,
        )

    def chevron(self, tip: tuple[float, float], turn: tuple[float, float], size: float) -> None:
        """Which way something goes; ``turn`` is the direction, of length one."""
        (x, y), (right, down) = tip, turn
        back = x - size / 2 * right, y - size / 2 * down
        sides = [
            (back[0] - side * size * down, back[1] + side * size * right) for side in (-1.0, 1.0)
        ]
        a, b, c = (
            f"{number(p[0])} {number(p[1])}"
            for p in (sides[0], (x + size / 2 * right, y + size / 2 * down), sides[1])
        )
        self.path(f"M{a}L{b}L{c}", line=CASING, width=1.6)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: Anchor = "middle",
        bold: bool = False,
        quiet: bool = False,
        on: bool = False,
        dark: bool = False,
    ) -> None:
        """Write words, if there are any; ``on`` a dark mark, ``dark`` on a pale one."""
        if words:
            self._put(
                "text",
                words=words,
                x=x,
                y=y,
                fill="#FFFFFF" if on else "#1B1F24" if dark else "currentColor",
                text_anchor="" if anchor == "start" else anchor,
                font_weight="600" if bold else "",
                opacity="0.78" if quiet else "",
            )

    def svg(self, width: float, height: float, label: str) -> str:
        """All marks; ``label`` is what is read out."""
        size = f'width="{number(width)}" height="{number(height)}"'
        return (
            f'<svg {size} viewBox="0 0 {number(width)} {number(height)}" role="img" '
            f'aria-label="{html.escape(label)}" font-size="{self.text_px}" '
            'style="display: block; max-width: 100%; height: auto; '
            'font-variant-numeric: tabular-nums">' + "".join(self._marks) + "</svg>"
        )

    def _put(self, tag: str, tooltip: str = "", words: str = "", **attributes: float | str) -> None:
        """Add a mark; attributes that are empty are left out."""
        opened = tag + "".join(
            f' {name.replace("_", "-")}="{value if isinstance(value, str) else number(value)}"'
            for name, value in attributes.items()
            if value != ""
        )
        inside = f"<title>{html.escape(tooltip)}</title>" if tooltip else html.escape(words)
        self._marks.append(f"<{opened}>{inside}</{tag}>" if inside else f"<{opened}/>")


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
        pen.panel(2 + node * (node_width + 12), 76, node_width, 96, 4)
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
    return LessonDrawing(
        board.title,
        board.subtitle,
        board.reading,
        pen.svg(width, _table(pen, board, width), board.title),
    )


def _device(pen: Pen, device: BoardDevice, x: float, wide: float) -> None:
    pen.panel(x, _TOP, wide, _TALL)
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
    units = f"{hop.units:g} unit{'' if hop.units == 1 else 's'}"
    tooltip = f"{units} to layer {hop.layer}: {hop.seconds:g} s"
    if near:
        curve = f"M{number(start)} 88Q{number((start + end) / 2)} 62 {number(end)} 85"
        pen.path(curve, line=MOVES, width=8, tooltip=tooltip)
        pen.head(end, _TOP, up=False, colour=CASING, size=5)
        pen.text((start + end) / 2, 70, f"{hop.units:g}", bold=True)
        return
    for x, up in ((start, True), (end, False)):
        pen.line((x, x), (32, _TOP), MOVES, 4, tooltip=tooltip)
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
        pen.panel(x + 2, y + 1, wide - 4, _ROW - 3)
        if cell.look and cell.words:
            fill, line = (COMPUTE, "") if cell.look == "new" else (PALE, MOVES)
            pen.rect(x + 2, y + 1, wide - 4, _ROW - 3, fill, line=line)
        on, dark = cell.look == "new", cell.look == "read"
        pen.text(x + wide / 2, y + 17, cell.words, bold=on or dark, on=on, dark=dark)
    return top + 18 + len(board.rows) * _ROW
