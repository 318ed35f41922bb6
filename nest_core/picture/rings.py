"""One ring per axis of a torus, beside its picture: how many there are, of how many devices.

A ring of more than eight is sketched with eight, which is said; a row that does not close is drawn
straight. The links that close a ring are dashed, as in the picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nest_core.picture.frame import TEXT, Frame
from nest_core.picture.lattice import AXES, Blocks
from nest_core.picture.marks import Box, Line, Mark, Point, Words
from nest_core.picture.text import wrapped

__all__ = ["RINGS", "rings"]

RINGS = 226.0
"""Width of the column."""

_RADIUS = 25.0
_DOTS = 8
_DOT = 7.0
_LEADING = 14.5


def rings(blocks: Blocks, frame: Frame) -> list[Mark]:
    """The column at the right edge of the frame."""
    axes = [axis for axis, size in enumerate(blocks.torus.shape) if size > 1]
    left = frame.right - RINGS + 8
    room = frame.down / len(axes)
    found: list[Mark] = []
    for row, axis in enumerate(axes):
        middle = frame.top + room * (row + 0.5)
        _, size, closing = blocks.lines(axis)
        shown = min(size, _DOTS)
        places = _places(left + _RADIUS + 4, middle, shown, closing > 0)
        found += _ring(axis, places, closing)
        head, *lines = _words(blocks, axis)
        if shown < size:
            lines.append(f"sketched with {shown}")
        found += _beside(left + 2 * _RADIUS + 20, middle, head, lines, frame)
    return found


def _places(x: float, y: float, dots: int, closed: bool) -> list[Point]:
    if not closed:
        step = 2 * _RADIUS / max(1, dots - 1)
        return [(x - _RADIUS + at * step, y) for at in range(dots)]
    turn = 2 * math.pi / dots
    return [
        (x + _RADIUS * math.sin(at * turn), y - _RADIUS * math.cos(at * turn)) for at in range(dots)
    ]


def _ring(axis: int, places: Sequence[Point], closing: int) -> list[Mark]:
    count = len(places)
    # Every turn of a twisted ring ends with a link that closes the axis.
    dashed = {(turn + 1) * count // closing - 1 for turn in range(closing)} if closing else set()
    found: list[Mark] = []
    for at in range(count if closing else count - 1):
        look = f"link axis-{axis} wrap" if at in dashed else f"link axis-{axis}"
        found.append(Line("", look, (places[at], places[(at + 1) % count]), 2.0))
    found += [
        Box("", "device dot", x - _DOT / 2, y - _DOT / 2, _DOT, _DOT, radius=_DOT / 2)
        for x, y in places
    ]
    return found


def _words(blocks: Blocks, axis: int) -> list[str]:
    torus = blocks.torus
    count, size, closing = blocks.lines(axis)
    wraps = count * closing
    links = torus.places // torus.shape[axis] * (torus.shape[axis] - 1)
    what = "ring" if closing else "row"
    head = f"{AXES[axis]}: {count:,} {what}{'s' if count > 1 else ''} of {size:,}"
    if not closing:
        return [head, f"{links:,} links, no wraps"]
    shift = [f"{by} further in {AXES[to]}" for to, by in enumerate(torus.shifts[axis]) if by]
    back = [f"a wrap comes back {' and '.join(shift)}"] if shift else []
    return [head, f"{links:,} links and {wraps:,} wraps", *back]


def _beside(x: float, middle: float, head: str, lines: list[str], frame: Frame) -> list[Mark]:
    room = frame.right - x
    heads = wrapped(head, room, TEXT, bold=True)
    below = [part for line in lines for part in wrapped(line, room, TEXT)]
    y = middle - _LEADING * (len(heads) + len(below)) / 2 + 11
    found: list[Mark] = []
    for look, texts in (("bold", heads), ("soft", below)):
        for text in texts:
            found.append(Words(text, look, x, y, TEXT))
            y += _LEADING
    return found
