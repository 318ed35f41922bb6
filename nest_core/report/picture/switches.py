"""Rows of switches, and the links between two rows.

A switch is as wide at its foot as its links down, at its head as its links up, in units of one
link's room: a row at 1 : 1 is a row of rectangles, an oversubscribed one of funnels. Positions and
widths are those of the fabric without failures, so that a failure moves nothing; a failed switch is
dashed and crossed, its links are dashed, and both stand for what is gone. Links are drawn singly, a
line per pair, or as one hatched area that is said; failed ones lie on top.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nest_core.fabric.checks import IntArray
from nest_core.report.picture.aggregate import BoxRow, line_width, mesh_form, opacity
from nest_core.report.picture.marks import (
    Band,
    Box,
    Line,
    Mark,
    Point,
    Words,
    between,
    centred,
    first_fitting,
    rectangle,
    text_width,
)

__all__ = [
    "DrawnSwitch",
    "Mesh",
    "Placed",
    "arc",
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
        Ports with links below and above if nothing had failed; a faster link has several.
    gone : bool
    look : str
        What it wears beside ``switch``.
    """

    name: str
    number: int
    down: int
    up: int
    gone: bool = False
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
    names = {
        box.key: _label(box, members)
        for box, members in zip(boxes, groups, strict=True)
        if not any(switch.gone for switch in members)
    }
    labels = names if all(names.values()) else {}
    result = []
    for box, members in zip(boxes, groups, strict=True):
        gone = [switch for switch in members if switch.gone]
        on: Sequence[Mark] = centred(box, labels.get(box.key, ""))
        if len(gone) == len(members):
            on = cross(box)
        elif gone:
            on = failed_corner(
                f"{gone[0].name} {gone[0].number}", "switch gone", box, ((gone[0].name, len(gone)),)
            )
        result.append(Placed(box, members, (box, *on)))
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
    return Box(
        f"{first.name} {first.number}" + ("" if first is last else f"-{last.number}"),
        f"switch {colour}".strip() if alive else "switch gone",
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
    texts = [f"{len(members):,}"] if len(members) > 1 else [box.key, str(members[0].number)]
    if room < _MIN_NAMED:
        texts = texts[-1:]
    return first_fitting(texts, room - 2)


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


_ARC = 12


@dataclass(frozen=True, eq=False)
class Mesh:
    """Links between two rows.

    Parameters
    ----------
    of : str
        Class of the bill (``"links spine"``).
    lower, upper : sequence of Placed
        The rows.
    links : int array, shape (lower switches, upper switches)
        Between every two switches, if nothing had failed.
    unit : float
        Room of one link.
    words : str
        What a mesh that is too dense for lines says.
    alive : int array, shape (lower switches, upper switches), optional
        Those that are left; else all but those of failed switches.
    loads : mapping of str to str
        Look of the links of a lower switch by its key, by that and the place of the upper one, or
        also by the number of the link, where they are coloured by load.
    meshes : int
        How many of the kind a picture has: they share its limits of lines.
    """

    of: str
    lower: Sequence[Placed]
    upper: Sequence[Placed]
    links: IntArray
    unit: float
    words: str = ""
    alive: IntArray | None = None
    loads: Mapping[str, str] = field(default_factory=dict)
    meshes: int = 1

    def _by_box(self, links: IntArray) -> IntArray:
        rows, columns = (
            np.cumsum([0, *(len(box.members) for box in row)])[:-1]
            for row in (self.lower, self.upper)
        )
        result: IntArray = np.add.reduceat(np.add.reduceat(links, rows, 0), columns, 1)
        return result

    @cached_property
    def total(self) -> IntArray:
        """Links between every two boxes, if nothing had failed."""
        return self._by_box(self.links)

    @cached_property
    def sound(self) -> IntArray:
        """Those that are left."""
        if self.alive is not None:
            return self._by_box(self.alive)
        below, above = (
            [not switch.gone for box in row for switch in box.members]
            for row in (self.lower, self.upper)
        )
        return self._by_box(self.links * np.outer(below, above))

    @property
    def edges(self) -> tuple[float, float]:
        """Top and bottom of the links."""
        return self.upper[0].box.y + self.upper[0].box.height, self.lower[0].box.y

    @cached_property
    def form(self) -> str:
        """Whether there is a line for every link or pair, or one hatched area."""
        top, bottom = self.edges
        limits = int(self.total.sum()) * self.meshes, int((self.total > 0).sum()) * self.meshes
        return mesh_form(*limits, self.unit, bottom - top)

    def marks(self) -> list[Mark]:
        """Draw all links, failed ones on top and at least a pixel wide."""
        lost, width = self.total - self.sound, max(1.0, line_width(1, self.unit))
        failed = [
            self._link((low, high), "link gone", 0.5, width, int(lost[low, high]), 0.8)
            for low, high in np.argwhere(lost > 0).tolist()
        ]
        return [*(self._hatched() if self.form == "mesh" else self._lines()), *failed]

    def _ends(self, low: int, high: int, share: float = 0.5) -> tuple[Point, Point]:
        """Where links of a pair leave the lower box and enter the upper one."""
        before = self.total[low, :high].sum() + share * self.total[low, high]
        after = self.total[:low, high].sum() + share * self.total[low, high]
        (start, wide), (begin, length) = self.lower[low].head, self.upper[high].foot
        x = start + wide * before / max(1, self.total[low].sum())
        other = begin + length * after / max(1, self.total[:, high].sum())
        top, bottom = self.edges
        return (float(x), bottom), (float(other), top)

    def _lines(self) -> list[Mark]:
        """Draw what is in order: one line per link or per pair."""
        pairs = np.argwhere(self.total > 0).tolist()
        if self.form == "links":
            return [
                self._line(low, high, 1, (number + 0.5) / int(self.total[low, high]), place=number)
                for low, high in pairs
                for number in range(int(self.sound[low, high]))
            ]
        length = sum(math.dist(*self._ends(low, high)) for low, high in pairs) / len(pairs)
        top, bottom = self.edges
        boxes = [placed.box for placed in (*self.lower, *self.upper)]
        across = max(box.x + box.width for box in boxes) - min(box.x for box in boxes)
        mean = float(np.mean(self.total[self.total > 0]))
        width = line_width(round(mean), self.unit) if mean >= 1 else 0.45
        grey = opacity(across * (bottom - top), len(pairs), width, length)
        return [
            self._line(low, high, int(self.sound[low, high]), 0.5, grey)
            for low, high in pairs
            if self.sound[low, high]
        ]

    def _line(
        self, low: int, high: int, count: int, share: float, grey: float = 1.0, place: int = -1
    ) -> Line:
        leaf = self.lower[low].key
        keys = (f"{leaf} {high} {place}", f"{leaf} {high}", leaf)
        look = f"link {next((self.loads[key] for key in keys if key in self.loads), '')}".strip()
        return self._link((low, high), look, share, line_width(count, self.unit), count, grey)

    def _link(
        self, pair: tuple[int, int], look: str, share: float, width: float, count: int, grey: float
    ) -> Line:
        ends = self.lower[pair[0]].key, self.upper[pair[1]].key
        stands = ((self.of, count),) if count else ()
        return Line(between(*ends), look, self._ends(*pair, share), width, ends, stands, grey)

    def _hatched(self) -> list[Mark]:
        """Draw one area between stubs of every switch, with its words on a plate."""
        top, bottom = self.edges
        reach = min(6.0, (bottom - top) / 6)
        stubs = [(box, box.foot, top, "bundle") for box in self.upper]
        stubs += [
            (box, box.head, bottom - reach, self.loads.get(box.key, "bundle")) for box in self.lower
        ]
        marks: list[Mark] = [
            Band("", look, rectangle(x, y, width, reach), (box.key,))
            for box, (x, width), y, look in stubs
        ]
        (start, _), (begin, length) = self.upper[0].foot, self.upper[-1].foot
        (first, _), (last, width) = self.lower[0].head, self.lower[-1].head
        corners = (
            (start, top + reach),
            (begin + length, top + reach),
            (last + width, bottom - reach),
            (first, bottom - reach),
        )
        marks.append(Band(self.of, "mesh", corners, (), ((self.of, int(self.sound.sum())),)))
        middle, y = sum(x for x, _ in corners) / 4, (top + bottom) / 2
        room = min(begin + length, last + width) - max(start, first)
        plate = text_width(self.words, 12.0) * 1.12 + 20
        if self.words and plate <= room and bottom - top - 2 * reach >= 22:
            marks += [
                Box("", "plate", middle - plate / 2, y - 10, plate, 20, radius=10),
                Words(self.words, "label", middle, y + 4.2, anchor="middle", key=self.of),
            ]
        return marks


def arc(start: float, end: float, y: float, rise: float) -> tuple[Point, ...]:
    """Return half an ellipse between two places at one height; it rises upwards.

    Examples
    --------
    >>> arc(0.0, 10.0, 5.0, 4.0)[6]
    (5.0, 1.0)
    """
    return tuple(
        (
            round((start + end) / 2 + (start - end) / 2 * math.cos(turn), 6),
            round(y - rise * math.sin(turn), 6),
        )
        for turn in [math.pi * step / _ARC for step in range(_ARC + 1)]
    )
