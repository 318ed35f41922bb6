"""When a part of a picture is drawn element by element, and when several are drawn as one.

Sizes are pixels. An aggregate is always said: every function returns how many elements each box,
cell or line is. The rules are those of ``docs/figures.md``, "Fabrics".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

__all__ = [
    "LEAST_BOX",
    "LEAST_PITCH",
    "LINE_SHARE",
    "MOST_LINES",
    "MOST_PAIRS",
    "Cells",
    "Row",
    "cells_of",
    "line_width",
    "mesh_form",
    "opacity",
    "row_of",
    "tiles",
]

LEAST_BOX = 4.5
"""Narrowest box of one element."""
LEAST_PITCH = 9.0
"""Least distance of the middles of two tiles."""
MOST_LINES = 256
"""Most links that are drawn singly."""
MOST_PAIRS = 640
"""Most pairs that are drawn with a line each."""
LEAST_BAND = 50.0
"""Least height of a band with a line per pair."""
LEAST_LINK = 2.5
"""Least room of a link that is drawn singly."""
LINE_SHARE = 0.8
"""Share of a link's room that its line takes."""
_LEAST_CELL = 3.0
_LEAST_BAR = 4.0


@dataclass(frozen=True, slots=True)
class Row:
    """Boxes side by side, of one element or several each.

    Parameters
    ----------
    counts : tuple of int
        Elements of each box.
    centres : tuple of float
        Middle of each box.
    pitch, box : float
        Distance of two middles, and width that a box may have.
    """

    counts: tuple[int, ...]
    centres: tuple[float, ...]
    pitch: float
    box: float

    @property
    def tiled(self) -> bool:
        """Whether boxes are several elements."""
        return any(count > 1 for count in self.counts)

    @property
    def first(self) -> tuple[int, ...]:
        """Number of the first element of each box."""
        return (0, *accumulate(self.counts))[:-1]

    def key(self, name: str, at: int, offset: int = 0) -> str:
        """Key of a box: its element's name and number, or its first and last one."""
        start = self.first[at] + offset
        last = start + self.counts[at] - 1
        return f"{name} {start}" if last == start else f"{name} {start}-{last}"

    def said(self) -> str:
        """How many tiles of how many elements; empty where every element has its box.

        Examples
        --------
        >>> row_of(100, 0.0, 90.0).said()
        '10 tiles of 10'
        """
        if not self.tiled:
            return ""
        usual = self.counts[0]
        full = sum(count == usual for count in self.counts)
        rest = "" if full == len(self.counts) else f", 1 of {self.counts[-1]:,}"
        return f"{full:,} tile{'s' if full > 1 else ''} of {usual:,}{rest}"


def row_of(
    count: int,
    left: float,
    right: float,
    structure: Sequence[int] = (),
    max_boxes: int = 0,
) -> Row:
    """Where ``count`` elements stand between two edges, each with a box of its own or in tiles.

    Parameters
    ----------
    structure : sequence of int
        Sizes that tiles should have first: those of the group's own parts.
    max_boxes : int
        Most boxes; 0: as many as have room.
    """
    width = right - left
    counts = tiles(count, width, structure, max_boxes)
    pitch = width / len(counts)
    box = pitch - gap(pitch)
    centres = tuple(left + (at + 0.5) * pitch for at in range(len(counts)))
    return Row(counts, centres, pitch, box)


def gap(pitch: float) -> float:
    """Between two boxes."""
    return min(18.0, max(2.0, 0.16 * pitch))


def tiles(
    count: int, width: float, structure: Sequence[int] = (), max_boxes: int = 0
) -> tuple[int, ...]:
    """Elements per box, all alike but perhaps the last.

    Examples
    --------
    >>> tiles(4, 100.0), tiles(64, 100.0), tiles(23, 100.0)
    ((1, 1, 1, 1), (8, 8, 8, 8, 8, 8, 8, 8), (3, 3, 3, 3, 3, 3, 3, 2))
    """
    pitch = width / count
    limit = max_boxes or count
    if pitch - gap(pitch) >= LEAST_BOX and count <= limit:
        return (1,) * count
    least = math.ceil(count / max(1, min(limit, int(width / LEAST_PITCH))))
    own = (size for size in sorted(structure) if size >= least and count % size == 0)
    divisors = (size for size in range(least, 2 * least) if count % size == 0)
    size = next(own, 0) or next(divisors, least)
    full, rest = divmod(count, size)
    return (size,) * full + ((rest,) if rest else ())


@dataclass(frozen=True, slots=True)
class Cells:
    """How the devices of one node are drawn.

    Parameters
    ----------
    columns, rows : int
        Of cells, one device each; a bar is one cell for all of a node.
    each : int
        Devices of a cell.
    """

    columns: int
    rows: int
    each: int


def cells_of(devices: int, width: float, height: float) -> Cells | None:
    """Cells of a node of some devices in so much room, a bar, or None if even a bar is too low.

    One row if cells are wide enough, else two, else as many as are needed and fit.
    """
    for rows in range(1, devices + 1):
        columns = -(-devices // rows)
        if height / rows < _LEAST_CELL:
            break
        if width / columns >= _LEAST_CELL + 1.0:
            return Cells(columns, rows, 1)
    return Cells(1, 1, devices) if height >= _LEAST_BAR and width >= _LEAST_CELL else None


def mesh_form(
    links: int, pairs: int, unit: float, height: float
) -> Literal["links", "pairs", "mesh"]:
    """Whether links of a band are drawn singly, pair by pair, or as one hatched area.

    Parameters
    ----------
    unit : float
        Room of one link.
    height : float
        Of the band.
    """
    if unit >= LEAST_LINK and links <= MOST_LINES:
        return "links"
    if pairs <= MOST_PAIRS and height >= LEAST_BAND:
        return "pairs"
    return "mesh"


def line_width(links: int, unit: float) -> float:
    """Of a line that stands for some links."""
    width = max(0.45, links * unit * LINE_SHARE)
    return min(2.0, width) if links == 1 else width


def opacity(area: float, lines: int, width: float, length: float) -> float:
    """With which all meshes have the same grey: ``length`` is the mean of the lines' lengths."""
    return min(0.85, max(0.14, 0.55 * area / (lines * width * length)))
