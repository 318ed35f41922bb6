"""Links between two rows of switches: singly, a line per pair, or one hatched area that is said.

Failed and slow links lie on top, whatever the form, and stand for what is gone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nest_core.report.picture.aggregate import line_width, mesh_form, opacity
from nest_core.report.picture.marks import Band, Box, Line, Mark, Point, Words, between
from nest_core.report.picture.switches import Placed, stub
from nest_core.report.picture.text import text_width

__all__ = ["Mesh", "arc", "mesh"]

_ARC = 12

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Mesh:
    """Links between two rows.

    Parameters
    ----------
    of : str
        Class of the bill (``"links spine"``).
    links : int array, shape (lower, upper)
        Between each switch of the lower row and each of the upper one, if nothing had failed.
    words : str
        What a mesh that is too dense for lines says.
    unit : float
        Room of one link.
    sound : int array, shape (lower, upper), optional
        Those that are left; else all but those of failed switches.
    loads : mapping of str to str
        Look of the links of a lower switch by its key, where they are coloured by load.
    meshes : int
        How many of the kind a picture has: they share its limits of lines.
    """

    of: str
    links: IntArray
    words: str
    unit: float
    sound: IntArray | None = None
    loads: Mapping[str, str] = field(default_factory=dict)
    meshes: int = 1


def mesh(lower: Sequence[Placed], upper: Sequence[Placed], links: Mesh) -> tuple[str, list[Mark]]:
    """All links between two rows, and how: singly, a line per pair, or one hatched area."""
    total = _by_box(links.links, lower, upper)
    left = links.links * _sound(lower, upper) if links.sound is None else links.sound
    sound = _by_box(left, lower, upper)
    top, bottom = upper[0].box.y + upper[0].box.height, lower[0].box.y
    form = mesh_form(
        int(total.sum()) * links.meshes,
        int((total > 0).sum()) * links.meshes,
        links.unit,
        bottom - top,
    )
    drawing = _Drawing(lower, upper, links, total, sound)
    if form == "mesh":
        return form, [*_hatched(drawing, top, bottom), *drawing.troubled()]
    return form, [*drawing.lines(form == "links"), *drawing.troubled()]


def _sound(lower: Sequence[Placed], upper: Sequence[Placed]) -> IntArray:
    below = np.array([not one.gone for box in lower for one in box.members], np.int64)
    above = np.array([not one.gone for box in upper for one in box.members], np.int64)
    return np.outer(below, above)


def _by_box(links: IntArray, lower: Sequence[Placed], upper: Sequence[Placed]) -> IntArray:
    rows = np.cumsum([0, *(len(box.members) for box in lower)])[:-1]
    columns = np.cumsum([0, *(len(box.members) for box in upper)])[:-1]
    result: IntArray = np.add.reduceat(np.add.reduceat(links, rows, 0), columns, 1)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Drawing:
    """Where lines between two rows end, and how they look."""

    lower: Sequence[Placed]
    upper: Sequence[Placed]
    mesh: Mesh
    total: IntArray
    sound: IntArray

    def ends(self, low: int, high: int, share: float = 0.5) -> tuple[Point, ...]:
        """Where links of a pair leave the lower box and enter the upper one."""
        below, above = self.lower[low], self.upper[high]
        before = self.total[low, :high].sum() + share * self.total[low, high]
        after = self.total[:low, high].sum() + share * self.total[low, high]
        (left, wide), (begin, length) = below.head, above.foot
        x = left + wide * before / max(1, self.total[low].sum())
        other = begin + length * after / max(1, self.total[:, high].sum())
        return (float(x), below.box.y), (float(other), above.box.y + above.box.height)

    def lines(self, singly: bool) -> list[Mark]:
        """What is in order: one line per link or per pair."""
        pairs = np.argwhere(self.total > 0).tolist()
        if singly:
            return [
                self.line(low, high, 1, (number + 0.5) / int(self.total[low, high]), 1.0)
                for low, high in pairs
                for number in range(int(self.sound[low, high]))
            ]
        ways = [self.ends(low, high) for low, high in pairs]
        length = sum(math.dist(way[-2], way[-1]) for way in ways) / len(ways)
        tall = ways[0][-2][1] - ways[0][-1][1]
        left = min(box.box.x for box in (*self.lower, *self.upper))
        right = max(box.box.x + box.box.width for box in (*self.lower, *self.upper))
        mean = float(np.mean(self.total[self.total > 0]))
        width = line_width(round(mean), self.mesh.unit) if mean >= 1 else 0.45
        grey = opacity((right - left) * tall, len(pairs), width, length)
        return [
            self.line(low, high, int(self.sound[low, high]), 0.5, grey)
            for low, high in pairs
            if self.sound[low, high]
        ]

    def line(self, low: int, high: int, count: int, share: float, grey: float) -> Line:
        """One link, or those of a pair."""
        below, above = self.lower[low], self.upper[high]
        look = self.mesh.loads.get(below.key, "")
        return Line(
            between(below.key, above.key),
            f"link {look}".strip(),
            self.ends(low, high, share),
            line_width(count, self.mesh.unit),
            (below.key, above.key),
            ((self.mesh.of, count),),
            grey,
        )

    def troubled(self) -> list[Mark]:
        """Failed and slow links, on top: at least a pixel wide."""
        gone, slow = list[Mark](), list[Mark]()
        lost = self.total - self.sound
        for low, high in np.argwhere(lost > 0).tolist():
            gone.append(self.trouble(low, high, "link gone", int(lost[low, high]), 0.8))
        for low, below in enumerate(self.lower):
            if len(below.members) > 1 or below.members[0].rate >= 1 or below.members[0].gone:
                continue
            for high in np.flatnonzero(self.sound[low]).tolist():
                slow.append(self.trouble(low, high, "link slow", 0, 1.0))
        return [*gone, *slow]

    def trouble(self, low: int, high: int, look: str, count: int, grey: float) -> Line:
        """A line over others; what is only slow is counted beneath it."""
        below, above = self.lower[low], self.upper[high]
        return Line(
            between(below.key, above.key),
            look,
            self.ends(low, high),
            max(1.0, line_width(1, self.mesh.unit)) if count else 1.4,
            (below.key, above.key),
            ((self.mesh.of, count),) if count else (),
            grey,
        )


def _hatched(drawing: _Drawing, top: float, bottom: float) -> list[Mark]:
    """One area between stubs of every switch, with its words on a plate."""
    reach = min(6.0, (bottom - top) / 6)
    marks: list[Mark] = [
        stub(box.foot, top, top + reach, ("bundle", (box.key,))) for box in drawing.upper
    ]
    for box in drawing.lower:
        look = drawing.mesh.loads.get(box.key, "bundle")
        marks.append(stub(box.head, bottom - reach, box.box.y, (look, (box.key,))))
    (left, _), (right, wide) = drawing.upper[0].foot, drawing.upper[-1].foot
    (start, _), (end, width) = drawing.lower[0].head, drawing.lower[-1].head
    corners = (
        (left, top + reach),
        (right + wide, top + reach),
        (end + width, bottom - reach),
        (start, bottom - reach),
    )
    mesh, count = drawing.mesh, int(drawing.sound.sum())
    stands = ((mesh.of, count),)
    marks.append(Band(mesh.of, "mesh", corners, (), stands))
    middle, y = (sum(x for x, _ in corners) / 4, (top + bottom) / 2)
    room = min(right + wide, end + width) - max(left, start)
    wide = text_width(mesh.words, 12.0) * 1.12 + 20
    if mesh.words and wide <= room and bottom - top - 2 * reach >= 22:
        marks.append(Box("", "plate", middle - wide / 2, y - 10, wide, 20, radius=10))
        marks.append(Words(mesh.words, "label", middle, y + 4.2, anchor="middle", key=mesh.of))
    return marks


def arc(start: float, end: float, y: float, rise: float) -> tuple[Point, ...]:
    """Return half an ellipse between two places at one height; it rises upwards.

    Examples
    --------
    >>> arc(0.0, 10.0, 5.0, 4.0)[6]
    (5.0, 1.0)
    """
    turns = [math.pi * step / _ARC for step in range(_ARC + 1)]
    return tuple(
        (
            round((start + end) / 2 + (start - end) / 2 * math.cos(turn), 6),
            round(y - rise * math.sin(turn), 6),
        )
        for turn in turns
    )
