"""Rows of switches, and the links between two rows.

A switch is as wide at its foot as its links down, at its head as its links up, in units of one
link's room: a row at 1 : 1 is a row of rectangles, an oversubscribed one of funnels. Positions and
widths are those of the whole fabric, so that a failure moves nothing; a failed switch is dashed and
crossed, its links are dashed, and both stand for what is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nest_core.report.picture.aggregate import Row, row_of
from nest_core.report.picture.marks import Band, Box, Line, Mark, Point, Words
from nest_core.report.picture.text import text_width

__all__ = [
    "Placed",
    "Switch",
    "cross",
    "narrow_row",
    "place",
    "place_one",
    "rectangle",
    "stub",
    "units",
]

IntArray = npt.NDArray[np.int64]

_INSIDE = 60.0
_NUMBER = 14.0
_MIN_WIDTH = 2.2


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch as its row has it.

    Parameters
    ----------
    name : str
        Of its tier; with the number, its key.
    number, down, up : int
        Links below and above if nothing had failed.
    gone : bool
    rate : float
        Share of its links' rate that is left; 1 unless it is slow.
    look : str
        What it wears beside ``switch``.
    """

    name: str
    number: int
    down: int
    up: int
    gone: bool = False
    rate: float = 1.0
    look: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """A box of a row, and the switches that it is.

    Parameters
    ----------
    box : Box
    members : tuple of Switch
    marks : tuple of Mark
        The box and what stands on it.
    ports : (float, float) or None
        Left end and length of the part of its upper edge that links end on; None: all of it.
    """

    box: Box
    members: tuple[Switch, ...]
    marks: tuple[Mark, ...] = field(default=())
    ports: tuple[float, float] | None = None

    @property
    def key(self) -> str:
        """Of the box."""
        return self.box.key

    @property
    def head(self) -> tuple[float, float]:
        """Left end and length of the upper edge."""
        if self.ports is not None:
            return self.ports
        (left, _), (right, _), *_ = self.box.outline
        return left, right - left

    @property
    def foot(self) -> tuple[float, float]:
        """Left end and length of the lower edge."""
        *_, (right, _), (left, _) = self.box.outline
        return left, right - left


def units(row: Row, switches: Sequence[Switch]) -> float:
    """Room of one link where the widest box of a row fills its place."""
    widest, at = 1, 0
    for count in row.counts:
        members = switches[at : at + count]
        at += count
        ports = max(sum(switch.down for switch in members), sum(switch.up for switch in members))
        widest = max(widest, ports)
    return row.box / widest


def place(
    switches: Sequence[Switch],
    row: Row,
    unit: float,
    edges: tuple[float, float],
    inside: str = "",
) -> list[Placed]:
    """The boxes of a row.

    Parameters
    ----------
    unit : float
        Room of one link.
    edges : (float, float)
        Top and bottom.
    inside : str
        Key of the frame that they stand in.
    """
    boxes, at = [], 0
    for middle, count in zip(row.centres, row.counts, strict=True):
        members = tuple(switches[at : at + count])
        at += count
        boxes.append(place_one(members, middle, unit, edges, inside))
    return _all_or_none(boxes)


def _all_or_none(row: list[Placed]) -> list[Placed]:
    """Numbers only where all have room for theirs."""
    sound = [
        box for box in row if not any(switch.gone or switch.rate < 1 for switch in box.members)
    ]
    if all(any(isinstance(mark, Words) for mark in box.marks) for box in sound):
        return row
    return [
        replace(box, marks=tuple(mark for mark in box.marks if not isinstance(mark, Words)))
        for box in row
    ]


def place_one(
    members: tuple[Switch, ...],
    middle: float,
    unit: float,
    edges: tuple[float, float],
    inside: str = "",
) -> Placed:
    """One box of a row, around its middle; parameters as of `place`."""
    first, last, (top, bottom) = members[0], members[-1], edges
    number = str(first.number) if first is last else f"{first.number}-{last.number}"
    foot = unit * sum(switch.down for switch in members)
    head = unit * sum(switch.up for switch in members)
    if not head or not foot:
        head = foot = max(head, foot)
    width = max(head, foot, _MIN_WIDTH)
    alive = sum(not switch.gone for switch in members)
    rails = {switch.look for switch in members}
    look = "switch" + (f" {first.look}" if first.look and len(rails) == 1 else "")
    if not alive:
        look = "switch gone"
    elif any(switch.rate < 1 and not switch.gone for switch in members):
        look += " slow"
    box = Box(
        f"{first.name} {number}",
        look,
        middle - width / 2,
        top,
        width,
        bottom - top,
        inside,
        ((first.name, alive or len(members)),),
        head=None if head == foot else head,
        foot=None if head == foot else foot,
        radius=1.5 if head == foot and width >= 6 else 0.0,
    )
    marks: list[Mark] = [box]
    lost = len(members) - alive if alive else 0
    if not alive:
        marks += cross(box)
    elif lost:
        marks += _lost(box, members, lost)
    elif min(head, foot) >= _NUMBER and bottom - top >= 13:
        marks += _named(box, number, len(members), min(head, foot))
    return Placed(box, members, tuple(marks))


def _named(box: Box, number: str, count: int, room: float) -> list[Mark]:
    """Its name, its number, or how many it is: the longest that fits, where it wears no colour."""
    if box.look != "switch":
        return []
    x, y = box.centre
    texts = [box.key, number] if count == 1 else [f"{count:,}"]
    if room < _INSIDE and count == 1:
        texts = [number]
    for text in texts:
        if text_width(text, 12.0) * 1.1 + 2 <= room:
            return [Words(text, "label", x, y + 4.2, anchor="middle", key=box.key)]
    return []


def _lost(box: Box, members: Sequence[Switch], lost: int) -> list[Mark]:
    """Failed switches of a tile that has others: a crossed corner."""
    size = min(8.0, box.width, box.height)
    left = box.outline[1][0] - size if box.head is None else box.centre[0]
    gone = [switch for switch in members if switch.gone]
    corner = Box(
        f"{gone[0].name} {gone[0].number}",
        "switch gone",
        left,
        box.y,
        size,
        size,
        inside=box.key,
        stands=((members[0].name, lost),),
    )
    return [corner, *cross(corner)]


def cross(box: Box) -> list[Line]:
    """Two lines over what has failed."""
    x, y = box.centre
    reach = min(box.width, box.height) * 0.3, min(box.width * 1.2, box.height) * 0.3
    return [
        Line(
            "",
            "cross gone",
            ((x - reach[0], y + s * reach[1]), (x + reach[0], y - s * reach[1])),
            1.5,
        )
        for s in (1, -1)
    ]


def stub(
    edge: tuple[float, float], top: float, bottom: float, look: tuple[str, tuple[str, ...]]
) -> Band:
    """A short bundle at an edge; the pair is its look and the keys of its ends."""
    left, width = edge
    return Band("", look[0], rectangle(left, top, width, bottom - top), look[1])


def rectangle(x: float, y: float, width: float, height: float) -> tuple[Point, ...]:
    """Its four corners."""
    return ((x, y), (x + width, y), (x + width, y + height), (x, y + height))


def narrow_row(count: int, centre: float, width: float, pitch_share: float) -> Row:
    """A row as wide as its capacity, centred; boxes take ``pitch_share`` of their place."""
    row = row_of(count, centre - width / 2, centre + width / 2)
    return Row(row.counts, row.centres, row.pitch, row.pitch * pitch_share)
