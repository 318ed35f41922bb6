"""When a part of a picture is drawn element by element, and when several are drawn as one.

Sizes are pixels. An aggregate is always said: every function returns how many elements each box,
cell or line is. The rules are those of ``docs/figures.md``, "Fabrics".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeVar

__all__ = [
    "LINE_SHARE",
    "MAX_LINES",
    "MAX_PAIRS",
    "MIN_BOX",
    "MIN_PITCH",
    "BoxRow",
    "cells_of",
    "line_width",
    "mesh_form",
    "opacity",
    "row_of",
    "spread",
    "tile_words",
    "tiles",
]

MIN_BOX = 4.5
"""Narrowest box of one element."""
MIN_PITCH = 9.0
"""Least distance of the middles of two tiles."""
MAX_LINES = 256
"""Most links that are drawn singly."""
MAX_PAIRS = 640
"""Most pairs that are drawn with a line each."""
MIN_BAND = 50.0
"""Least height of a band with a line per pair."""
MIN_LINK = 2.5
"""Least room of a link that is drawn singly."""
LINE_SHARE = 0.8
"""Share of a link's room that its line takes."""
_MIN_CELL = 3.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BoxRow:
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

    def split(self, elements: Sequence[T]) -> list[tuple[T, ...]]:
        """Return the elements of each box."""
        pairs = zip(self.first, self.counts, strict=True)
        return [tuple(elements[first : first + count]) for first, count in pairs]

    def key(self, name: str, at: int, given: Sequence[str] = ()) -> str:
        """Return the key of a box: its element's name and number, or its first and last one."""
        first, count = self.first[at], self.counts[at]
        if given:
            return " to ".join(dict.fromkeys((given[first], given[first + count - 1])))
        return f"{name} {first}" if count == 1 else f"{name} {first}-{first + count - 1}"


def tile_words(counts: Sequence[int]) -> str:
    """Say how many tiles of how many elements; empty where every element has its box.

    Examples
    --------
    >>> tile_words(tiles(100, 90.0))
    '10 tiles of 10'
    """
    usual = counts[0]
    if usual == 1:
        return ""
    full = sum(count == usual for count in counts)
    rest = "" if full == len(counts) else f", 1 of {counts[-1]:,}"
    return f"{full:,} tile{'s' if full > 1 else ''} of {usual:,}{rest}"


def row_of(
    count: int,
    left: float,
    right: float,
    structure: Sequence[int] = (),
    max_boxes: int = 0,
) -> BoxRow:
    """Place ``count`` elements between two edges, each with a box of its own or in tiles.

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
    centres = tuple(left + (at + 0.5) * pitch for at in range(len(counts)))
    return BoxRow(counts, centres, pitch, pitch - gap(pitch))


def gap(pitch: float) -> float:
    """Return the space between two boxes."""
    return min(18.0, max(2.0, 0.16 * pitch))


def tiles(
    count: int, width: float, structure: Sequence[int] = (), max_boxes: int = 0
) -> tuple[int, ...]:
    """Return elements per box, all alike but perhaps the last.

    Examples
    --------
    >>> tiles(4, 100.0), tiles(64, 100.0), tiles(23, 100.0)
    ((1, 1, 1, 1), (8, 8, 8, 8, 8, 8, 8, 8), (3, 3, 3, 3, 3, 3, 3, 2))
    """
    pitch = width / count
    limit = max_boxes or count
    if pitch - gap(pitch) >= MIN_BOX and count <= limit:
        return (1,) * count
    min_size = math.ceil(count / max(1, min(limit, int(width / MIN_PITCH))))
    structural = (size for size in sorted(structure) if size >= min_size and count % size == 0)
    divisors = (size for size in range(min_size, 2 * min_size) if count % size == 0)
    size = next(structural, 0) or next(divisors, min_size)
    full, rest = divmod(count, size)
    return (size,) * full + ((rest,) if rest else ())


def cells_of(devices: int, width: float, height: float) -> tuple[int, int] | None:
    """Return columns and rows of a node's cells, one device each; None where they have no room.

    One row if cells are wide enough, else two, else as many as are needed and fit.
    """
    for rows in range(1, devices + 1):
        columns = -(-devices // rows)
        if height / rows < _MIN_CELL:
            return None
        if width / columns >= _MIN_CELL + 1.0:
            return columns, rows
    return None


def mesh_form(
    links: int, pairs: int, unit: float, height: float
) -> Literal["links", "pairs", "mesh"]:
    """Return whether links of a band are drawn singly, pair by pair, or as one hatched area.

    Parameters
    ----------
    unit : float
        Room of one link.
    height : float
        Of the band.
    """
    if unit >= MIN_LINK and links <= MAX_LINES:
        return "links"
    return "pairs" if pairs <= MAX_PAIRS and height >= MIN_BAND else "mesh"


def line_width(links: int, unit: float) -> float:
    """Return the width of a line that stands for some links."""
    width = max(0.45, links * unit * LINE_SHARE)
    return min(2.0, width) if links == 1 else width


def opacity(area: float, lines: int, width: float, length: float) -> float:
    """Return the opacity that gives all meshes one grey; ``length`` is the mean of their lines."""
    return min(0.85, max(0.14, 0.55 * area / (lines * width * length)))


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Return where things of some sizes stand: near where they should, none upon another.

    Down from the low end, then up from the high one: what is pushed keeps its order.

    Examples
    --------
    >>> spread([0.0, 1.0, 9.0], [4.0, 4.0, 4.0], 0.0, 12.0)
    [0.0, 4.0, 8.0]
    """
    places, at = list[float](), low
    for place, size in zip(wanted, sizes, strict=True):
        places.append(max(place, at))
        at = places[-1] + size
    for number in reversed(range(len(places))):
        high = places[number] = min(places[number], high - sizes[number])
    return places
