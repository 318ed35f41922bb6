"""Where the blocks of a torus stand, and the lines and stubs between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nest_core.picture.frame import Frame
from nest_core.picture.lattice import Blocks, Joint
from nest_core.picture.marks import Point
from nest_core.picture.oblique import Oblique, oblique
from nest_core.picture.rings import RINGS

__all__ = ["LONGEST_STUB", "Site", "apart", "fits", "key_of", "site_of", "stub"]

LONGEST_STUB = 15.0
_PITCH = (7.0, 36.0)
_STUB = 0.42
_CLEAR = 1.4


@dataclass(frozen=True, slots=True)
class Site:
    """Where blocks stand.

    Parameters
    ----------
    at : tuple of Point
        Middle of every block.
    steps : tuple of Point
        Along every axis.
    box : tuple of float
        Width of every block; those further back are smaller.
    back : tuple of float
        Of every block: 0 in front, 1 furthest back.
    """

    at: tuple[Point, ...]
    steps: tuple[Point, ...]
    box: tuple[float, ...]
    back: tuple[float, ...]


def _area(frame: Frame) -> tuple[float, float, float, float]:
    """Left, right, top and bottom of what blocks may fill, stubs and letters outside."""
    margin = 28.0 if frame.words else 10.0
    right = frame.right - (RINGS if frame.said == "full" else 0.0)
    return frame.left + margin, right - margin, frame.top + margin, frame.bottom - margin


def fits(counts: tuple[int, ...], frame: Frame) -> bool:
    left, right, top, bottom = _area(frame)
    if len(counts) == 2:
        return min((right - left) / max(counts), (bottom - top) / min(counts)) >= _PITCH[0]
    if max(counts) > 12:
        return False
    return _widest(_steps(counts, frame)[1]) >= (6.0 if frame.words else 4.0)


def _widest(steps: Oblique) -> float:
    """Side of a block that no line and no other block touches, wherever it is."""
    return min(16.0, 1.4 * (steps.clearance - _CLEAR), steps.apart - 1.5)


def _steps(counts: tuple[int, ...], frame: Frame) -> tuple[tuple[int, ...], Oblique]:
    """Which axes go right, up and back, the longest to the right; and their steps."""
    left, right, top, bottom = _area(frame)
    order = sorted(range(3), key=lambda axis: (-counts[axis], axis))
    sizes = counts[order[0]], counts[order[1]], counts[order[2]]
    return tuple(order), oblique(sizes, right - left - 12, bottom - top - 12)


def site_of(counts: tuple[int, ...], frame: Frame, planned: bool) -> Site:
    """Where blocks stand; those of a plan are larger."""
    left, right, top, bottom = _area(frame)
    order: tuple[int, ...] = (0, 1)
    if len(counts) == 2:
        pitch = min((right - left) / max(counts), (bottom - top) / min(counts), _PITCH[1])
        steps: tuple[Point, ...] = ((pitch, 0.0), (0.0, -pitch))
        if counts[1] > counts[0]:
            steps = steps[::-1]
        widest = min(16.0, max(3.2, (0.64 if planned else 0.46) * pitch))
    else:
        order, found = _steps(counts, frame)
        by_axis = dict(
            zip(order, (found.at(1, 0, 0), found.at(0, 1, 0), found.at(0, 0, 1)), strict=True)
        )
        steps = tuple(by_axis[axis] for axis in range(3))
        widest = _widest(found)
    places = [Blocks.place_in(counts, block) for block in range(math.prod(counts))]
    spots = [_sum(place, steps) for place in places]
    low_x, high_x = min(x for x, _ in spots), max(x for x, _ in spots)
    low_y, high_y = min(y for _, y in spots), max(y for _, y in spots)
    x, y = (left + right - low_x - high_x) / 2, (top + bottom - low_y - high_y) / 2
    deep = max(1, counts[order[2]] - 1) if len(counts) == 3 else 1
    back = tuple(place[order[2]] / deep if len(counts) == 3 else 0.0 for place in places)
    return Site(
        tuple((x + dx, y + dy) for dx, dy in spots),
        steps,
        tuple(widest * (1 - 0.2 * far) for far in back),
        back,
    )


def _sum(place: tuple[int, ...], steps: tuple[Point, ...]) -> Point:
    return (
        sum(n * step[0] for n, step in zip(place, steps, strict=True)),
        sum(n * step[1] for n, step in zip(place, steps, strict=True)),
    )


def apart(site: Site, joint: Joint) -> tuple[Point, Point]:
    """From the edge of one block to that of the other."""
    (ax, ay), (bx, by) = site.at[joint.a], site.at[joint.b]
    length = math.hypot(bx - ax, by - ay)
    dx, dy = (bx - ax) / length, (by - ay) / length
    one, other = (_reach(site, at, joint.axis) for at in (joint.a, joint.b))
    return (ax + dx * one, ay + dy * one), (bx - dx * other, by - dy * other)


def _reach(site: Site, block: int, axis: int) -> float:
    """From the middle of a block to its edge along an axis."""
    dx, dy = site.steps[axis]
    return site.box[block] / 2 * math.hypot(dx, dy) / max(abs(dx), abs(dy)) - 0.3


def stub(blocks: Blocks, site: Site, joint: Joint, block: int, way: int) -> tuple[Point, ...]:
    """What is drawn of a wrap at one of its ends; bent along the axis that it shifts."""
    x, y = site.at[block]
    step = site.steps[joint.axis]
    length = math.hypot(*step)
    dx, dy = way * step[0] / length, way * step[1] / length
    edge = _reach(site, block, joint.axis)
    long = min(LONGEST_STUB, max(6.0, _STUB * length))
    start, end = (x + dx * edge, y + dy * edge), (x + dx * (edge + long), y + dy * (edge + long))
    bent = [axis for axis, by in enumerate(blocks.torus.shifts[joint.axis]) if by]
    if not bent:
        return start, end
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    for axis in bent:
        other = site.steps[axis]
        share = way * 0.45 * long / math.hypot(*other)
        end = end[0] + share * other[0], end[1] + share * other[1]
    return start, middle, end


def key_of(blocks: Blocks, block: int) -> str:
    if blocks.single:
        return f"device {block}"
    return f"block {','.join(map(str, blocks.place(block)))}"
