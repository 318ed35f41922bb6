"""Rows of switches.

A switch is as wide at its foot as its links down, at its head as its links up, in units of one
link's room: a row at 1 : 1 is a row of rectangles, an oversubscribed one of funnels. Positions and
widths are those of the fabric without failures, so that a failure moves nothing; a failed switch is
dashed and crossed, its links are dashed, and both stand for what is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nest_core.report.picture.aggregate import BoxRow
from nest_core.report.picture.marks import Box, Line, Mark, Words
from nest_core.report.picture.text import text_width

__all__ = [
    "DrawnSwitch",
    "Placed",
    "cross",
    "failed_corner",
    "place",
    "room_of_link",
]

_MIN_NAMED = 60.0
_MIN_NUMBERED = 14.0
_MIN_WIDTH = 2.2


@dataclass(frozen=True, slots=True)
class DrawnSwitch:
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
    members : tuple of DrawnSwitch
    marks : tuple of Mark
        The box and what stands on it.
    ports : (float, float) or None
        Left end and length of the part of its upper edge that links end on; None: all of it.
    """

    box: Box
    members: tuple[DrawnSwitch, ...]
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
        (start, _), (end, _), *_ = self.box.outline
        return start, end - start

    @property
    def foot(self) -> tuple[float, float]:
        """Left end and length of the lower edge."""
        *_, (end, _), (start, _) = self.box.outline
        return start, end - start


def room_of_link(row: BoxRow, switches: Sequence[DrawnSwitch]) -> float:
    """Return the room of one link where the widest box of a row fills its place."""
    ports = (
        max(sum(switch.down for switch in members), sum(switch.up for switch in members))
        for members in row.split(switches)
    )
    return row.box / max(1, *ports)


def place(
    switches: Sequence[DrawnSwitch],
    row: BoxRow,
    unit: float,
    edges: tuple[float, float],
    inside: str = "",
) -> list[Placed]:
    """Return the boxes of a row; they have labels where all of them have room for theirs.

    Parameters
    ----------
    unit : float
        Room of one link.
    edges : (float, float)
        Top and bottom.
    inside : str
        Key of the frame that they stand in.
    """
    groups = row.split(switches)
    boxes = [
        _box(members, middle, unit, edges, inside)
        for members, middle in zip(groups, row.centres, strict=True)
    ]
    labels = {
        box.key: _label(box, members)
        for box, members in zip(boxes, groups, strict=True)
        if not any(switch.gone or switch.rate < 1 for switch in members)
    }
    if not all(labels.values()):
        labels = {}
    result = []
    for box, members in zip(boxes, groups, strict=True):
        marks: list[Mark] = [box]
        gone = [switch for switch in members if switch.gone]
        if len(gone) == len(members):
            marks += cross(box)
        elif gone:
            key = f"{gone[0].name} {gone[0].number}"
            marks += failed_corner(key, "switch gone", box, ((gone[0].name, len(gone)),))
        elif box.key in labels:
            x, y = box.centre
            marks.append(Words(labels[box.key], "label", x, y + 4.2, anchor="middle", key=box.key))
        result.append(Placed(box, members, tuple(marks)))
    return result


def _box(
    members: Sequence[DrawnSwitch],
    middle: float,
    unit: float,
    edges: tuple[float, float],
    inside: str,
) -> Box:
    first, last, (top, bottom) = members[0], members[-1], edges
    foot = unit * sum(switch.down for switch in members)
    head = unit * sum(switch.up for switch in members)
    if not head or not foot:
        head = foot = max(head, foot)
    width = max(head, foot, _MIN_WIDTH)
    alive = sum(not switch.gone for switch in members)
    colour = first.look if len({switch.look for switch in members}) == 1 else ""
    slow = "slow" if any(switch.rate < 1 and not switch.gone for switch in members) else ""
    return Box(
        f"{first.name} {first.number}" + ("" if first is last else f"-{last.number}"),
        " ".join(f"switch {colour} {slow}".split()) if alive else "switch gone",
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


def _label(box: Box, members: Sequence[DrawnSwitch]) -> str:
    """Return the longest of name, number or count that fits a box that wears no colour."""
    room = min(box.head or box.width, box.foot or box.width)
    if box.look != "switch" or room < _MIN_NUMBERED or box.height < 13:
        return ""
    number = str(members[0].number)
    texts = [f"{len(members):,}"] if len(members) > 1 else [box.key, number]
    fits = (text for text in texts if text_width(text, 12.0) * 1.1 + 2 <= room)
    return next((text for text in fits if text != box.key or room >= _MIN_NAMED), "")


def failed_corner(key: str, look: str, box: Box, stands: tuple[tuple[str, int], ...]) -> list[Mark]:
    """Draw what has failed of a box in its corner."""
    size = min(8.0, box.width, box.height)
    x = box.centre[0] if box.head is not None else box.x + box.width - size
    corner = Box(key, look, x, box.y, size, size, box.key, stands)
    return [corner, *cross(corner)]


def cross(box: Box) -> list[Line]:
    """Return two lines over what has failed."""
    x, y = box.centre
    reach = min(box.width, box.height) * 0.3, min(box.width * 1.2, box.height) * 0.3
    return [
        Line("", "cross gone", ((x - reach[0], y + s), (x + reach[0], y - s)), 1.5)
        for s in (reach[1], -reach[1])
    ]
