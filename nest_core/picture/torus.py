"""Tori and meshes: a grid, or a block drawn obliquely, with every wrap as a stub at both its ends.

Two dimensions are a grid; three stand obliquely (`oblique`), so that every device is seen and no
line passes one that is not its end. Where devices have no room they are blocks (`lattice`), said,
and lines are as wide as their links. The axes are told apart by colour, direction and letter; a
wrap is dashed, of a twisted torus bent, because it comes back elsewhere. Right of it stands one
ring per axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.picture.ask import Ask
from nest_core.picture.frame import Frame, frame_of, framed
from nest_core.picture.lattice import AXES, Blocks, Joint, blocks_of
from nest_core.picture.marks import Band, Box, Drawn, Line, Mark, Point, Said, Stands, Swatch, Words
from nest_core.picture.marks import between
from nest_core.picture.oblique import Oblique, oblique
from nest_core.picture.rings import RINGS, rings
from nest_core.picture.clos_words import said_rate
from nest_core.topology import Torus

__all__ = ["torus_drawn"]

_MOST = {2: 640, 3: 343}
_PITCH = (7.0, 36.0)
_STUB = 0.42
_LONGEST_STUB = 15.0
_CLEAR = 1.4
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_CUBE = 4

Layered = tuple[float, Mark]
"""A mark and how far back it is: what is further back is painted first."""


@dataclass(frozen=True, slots=True)
class _Site:
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


def torus_drawn(fabric: Torus, ask: Ask) -> Drawn:
    """The picture of a torus or mesh."""
    title = _title(fabric)
    frame = frame_of(ask.width)
    blocks = blocks_of(fabric, _MOST[len(fabric.shape)], lambda counts: _fits(counts, frame))
    legend = _legend(blocks)
    words = title, _subtitle(blocks)
    site = _site(blocks.counts, frame)
    layers = [*_links(blocks, site, ask.parts), *_boxes(blocks, site, ask.parts)]
    layers.sort(key=lambda layered: -layered[0])
    marks = [mark for _, mark in layers]
    if frame.words:
        marks += _letters(blocks, site)
    if frame.said == "full":
        marks += rings(blocks, frame)
    return framed(frame, words, marks, _said(blocks, ask.parts, frame), legend)


def _area(frame: Frame) -> tuple[float, float, float, float]:
    """Left, right, top and bottom of what blocks may fill, stubs and letters outside."""
    margin = 28.0 if frame.words else 10.0
    right = frame.right - (RINGS if frame.said == "full" else 0.0)
    return frame.left + margin, right - margin, frame.top + margin, frame.bottom - margin


def _fits(counts: tuple[int, ...], frame: Frame) -> bool:
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


def _site(counts: tuple[int, ...], frame: Frame) -> _Site:
    left, right, top, bottom = _area(frame)
    if len(counts) == 2:
        pitch = min((right - left) / max(counts), (bottom - top) / min(counts), _PITCH[1])
        steps: tuple[Point, ...] = ((pitch, 0.0), (0.0, -pitch))
        if counts[1] > counts[0]:
            steps = steps[::-1]
        order, widest = (0, 1), min(14.0, max(3.2, 0.46 * pitch))
    else:
        order, found = _steps(counts, frame)
        by_axis = dict(zip(order, (found.at(1, 0, 0), found.at(0, 1, 0), found.at(0, 0, 1))))
        steps = tuple(by_axis[axis] for axis in range(3))
        widest = _widest(found)
    places = [Blocks.place_in(counts, block) for block in range(math.prod(counts))]
    spots = [_sum(place, steps) for place in places]
    low_x, high_x = min(x for x, _ in spots), max(x for x, _ in spots)
    low_y, high_y = min(y for _, y in spots), max(y for _, y in spots)
    x, y = (left + right - low_x - high_x) / 2, (top + bottom - low_y - high_y) / 2
    deep = max(1, counts[order[2]] - 1) if len(counts) == 3 else 1
    back = tuple(place[order[2]] / deep if len(counts) == 3 else 0.0 for place in places)
    return _Site(
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


def _links(blocks: Blocks, site: _Site, parts: Inventory) -> list[Layered]:
    joints, _ = blocks.joints
    most = max((joint.links for joint in joints), default=1)
    cubes = _has_cubes(parts)
    found: list[Layered] = []
    for joint in joints:
        back = max(site.back[joint.a], site.back[joint.b])
        width = (2.4 if blocks.single else 0.36 * min(site.box)) * (1 - 0.35 * back)
        width = max(1.0, width * joint.links / most)
        ends = _key(blocks, joint.a), _key(blocks, joint.b)
        stands = _stands(blocks, joint, cubes)
        look = f"link axis-{joint.axis}"
        fade = 1 - 0.35 * back
        if not joint.wraps:
            points = _apart(site, joint)
            found.append((back, Line(between(*ends), look, points, width, ends, stands, fade)))
            continue
        for block, way, own in ((joint.a, 1, stands), (joint.b, -1, ())):
            stub = _stub(blocks, site, joint, block, way)
            end = (_key(blocks, block),)
            line = Line(between(*ends), f"{look} wrap", stub, width, end, own, fade)
            found.append((site.back[block], line))
    return found


def _apart(site: _Site, joint: Joint) -> tuple[Point, Point]:
    """From the edge of one block to that of the other."""
    (ax, ay), (bx, by) = site.at[joint.a], site.at[joint.b]
    length = math.hypot(bx - ax, by - ay)
    dx, dy = (bx - ax) / length, (by - ay) / length
    one, other = (_reach(site, at, joint.axis) for at in (joint.a, joint.b))
    return (ax + dx * one, ay + dy * one), (bx - dx * other, by - dy * other)


def _reach(site: _Site, block: int, axis: int) -> float:
    """From the middle of a block to its edge along an axis."""
    dx, dy = site.steps[axis]
    return site.box[block] / 2 * math.hypot(dx, dy) / max(abs(dx), abs(dy)) - 0.3


def _stub(blocks: Blocks, site: _Site, joint: Joint, block: int, way: int) -> tuple[Point, ...]:
    """What is drawn of a wrap at one of its ends; bent along the axis that it shifts."""
    x, y = site.at[block]
    step = site.steps[joint.axis]
    length = math.hypot(*step)
    dx, dy = way * step[0] / length, way * step[1] / length
    edge = _reach(site, block, joint.axis)
    long = min(_LONGEST_STUB, max(6.0, _STUB * length))
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


def _stands(blocks: Blocks, joint: Joint, cubes: bool) -> Stands:
    if not cubes:
        return ((f"links {'wrap-around' if joint.wraps else 'neighbour'}", joint.links),)
    at = blocks.place(joint.a)[joint.axis] * blocks.side[joint.axis] + blocks.side[joint.axis]
    within = not joint.wraps and at % _CUBE
    return ((f"links {'cube' if within else 'between cubes'}", joint.links),)


def _boxes(blocks: Blocks, site: _Site, parts: Inventory) -> list[Layered]:
    _, inside = blocks.joints
    cubes = _has_cubes(parts)
    found: list[Layered] = []
    for block, (x, y) in enumerate(site.at):
        size, back = site.box[block], site.back[block]
        left, top = x - size / 2, y - size / 2
        present, places = int(blocks.present[block]), int(blocks.places[block])
        stands: Stands = (("device", present), ("node", present)) if present else ()
        if inside[block] and cubes:
            own = min(int(inside[block]), 144 * max(1, places // _CUBE**3))
            rest = int(inside[block]) - own
            stands += (("links cube", own), *((("links between cubes", rest),) if rest else ()))
        elif inside[block]:
            stands += (("links neighbour", int(inside[block])),)
        key = _key(blocks, block)
        if not blocks.single and len(blocks.side) == 3:
            found += [(back - 1e-6, face) for face in _faces(left, top, size)]
        if blocks.single and not present:
            stands = (("device", 1), ("node", 1))
        look = "device" if present == places else "device gone" if not present else "device part"
        radius = size / 2 if blocks.single and len(blocks.side) == 3 else 1.5
        box = Box(key, look, left, top, size, size, stands=stands, radius=radius)
        found.append((back - 1e-6, box))
        if present < places:
            lost = places - present
            gone: Stands = (("device", lost), ("node", lost)) if present else ()
            found += [(back - 2e-6, cross) for cross in _cross(left, top, size, gone)]
    return found


def _faces(x: float, y: float, size: float) -> list[Mark]:
    """Upper and right face of a cube whose front is a square."""
    dx, dy = 0.34 * size, -0.26 * size
    upper = (x, y), (x + dx, y + dy), (x + size + dx, y + dy), (x + size, y)
    right = (x + size, y), (x + size + dx, y + dy), (x + size + dx, y + size + dy), (x + size, y + size)
    return [Band("", "device top", upper), Band("", "device side", right)]


def _cross(x: float, y: float, size: float, stands: Stands) -> list[Mark]:
    end = size * 0.15
    far_x, far_y = x + size - end, y + size - end
    return [
        Line("", "gone cross", ((x + end, y + end), (far_x, far_y)), 1.5, (), stands),
        Line("", "gone cross", ((x + end, far_y), (far_x, y + end)), 1.5),
    ]


def _letters(blocks: Blocks, site: _Site) -> list[Mark]:
    """x, y and z where their axes end."""
    found: list[Mark] = []
    flat = len(blocks.counts) == 2
    ends = [count - 1 for count in blocks.counts]
    for axis, (dx, dy) in enumerate(site.steps):
        if blocks.torus.shape[axis] == 1:
            continue
        corner, way = [0] * len(ends), -1.0
        if flat:
            corner[axis], way = ends[axis], 1.0
        elif dx * dy:
            # The axis that goes back is named where it ends, at the lower right.
            corner = [0 if step[0] == 0 else end for step, end in zip(site.steps, ends, strict=True)]
            way = 1.0
        block = _block_at(corner, blocks.counts)
        x, y = site.at[block]
        length = math.hypot(dx, dy)
        far = way * (site.box[block] / 2 + _LONGEST_STUB + 8)
        at = x + dx / length * far, y + dy / length * far + 4
        found.append(Words(AXES[axis], f"bold axis-{axis}", *at, 13.0, "middle"))
    return found


def _block_at(place: list[int], counts: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(place, counts, order="F"))


def _key(blocks: Blocks, block: int) -> str:
    if blocks.single:
        return f"device {block}"
    return f"block {','.join(map(str, blocks.place(block)))}"


def _has_cubes(parts: Inventory) -> bool:
    return any(link.tier == "cube" for link in parts.links)


def _by(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in sizes)


def _called(fabric: Torus) -> str:
    kind = "torus" if any(fabric.wrap) else "mesh"
    return f"twisted {kind}" if fabric.twisted else kind


def _title(fabric: Torus) -> str:
    whole = replace(fabric, missing=())
    hops = int(whole.hops(np.zeros(1, np.int64), np.arange(whole.places)).max())
    links = sum(
        2 if size > 2 or any(shift) else size - 1
        for size, shift in zip(fabric.shape, fabric.shifts, strict=True)
    )
    up_to = "" if all(fabric.wrap) else "up to "
    article = "An" if str(fabric.shape[0]) in ("8", "11", "18") or fabric.shape[0] // 10 == 8 else "A"
    rate = said_rate(fabric.link_bandwidth_Bps)
    one = "link" if links == 1 else "links"
    return (
        f"{article} {_by(fabric.shape)} {_called(fabric)}: {up_to}{_NUMBERS[links]} {one} of {rate} "
        f"per device, at most {hops:,} hop{'s' if hops > 1 else ''}"
    )


def _subtitle(blocks: Blocks) -> str:
    torus = blocks.torus
    wraps = ", a wrap as two stubs" if any(torus.wrap) else ", nothing wraps"
    if blocks.single:
        return f"{torus.devices:,} devices; every device and every link drawn{wraps}"
    joints, _ = blocks.joints
    usual = max((joint.links for joint in joints), default=0)
    line = f"; a line between two is {usual:,} links" if usual else ""
    return f"{torus.devices:,} devices in {_tiled(blocks)}{line}{wraps}"


def _tiled(blocks: Blocks) -> str:
    whole = math.prod(blocks.side)
    full = int((blocks.places == whole).sum())
    rest = len(blocks.places) - full
    smaller = f" and {rest:,} smaller at the ends" if rest else ""
    return f"{full:,} blocks of {_by(blocks.side)}{smaller}"


def _legend(blocks: Blocks) -> list[Swatch]:
    rate = said_rate(blocks.torus.link_bandwidth_Bps)
    found = [Swatch("line", "link axis-0", f"link of {rate}" if blocks.single else f"links of {rate}")]
    if any(wraps for wraps in blocks.torus.wrap):
        where = "back further along another axis" if blocks.torus.twisted else "back at the other end"
        found.append(Swatch("line", "link axis-0 wrap", f"wrap: comes {where}"))
    what = "device" if blocks.single else f"block of {math.prod(blocks.side):,} devices"
    found.append(Swatch("box", "device", what))
    if blocks.torus.missing:
        found.append(Swatch("box", "device gone", "crossed: failed, its router forwards"))
    return found


def _said(blocks: Blocks, parts: Inventory, frame: Frame) -> list[Said]:
    torus = blocks.torus
    gone = torus.places - torus.devices
    of = f"{torus.devices:,} of {torus.places:,} devices" if gone else f"{torus.devices:,} devices"
    rows = [("device", torus.devices, of, (_by(torus.shape),), gone)]
    cubes = torus.places // _CUBE**3
    wraps = sum(joint.links for joint in blocks.joints[0] if joint.wraps)
    for link in parts.links:
        words = {
            "neighbour": ("links", "between neighbours"),
            "wrap-around": ("wraps", "one per ring" if not torus.twisted else "closing the short axes"),
            "cube": ("links", "within the cube" if cubes == 1 else f"within {cubes:,} cubes of 64"),
            "between cubes": ("wraps", "")
            if cubes == 1
            else ("links", f"between cubes, {wraps:,} of them wraps"),
        }[link.tier]
        below = (words[1],) if words[1] else ()
        rows.append((f"links {link.tier}", link.count, f"{link.count:,} {words[0]}", below, 0))
    for switch in parts.switches:
        head = f"{switch.count:,} optical switches"
        rows.append((switch.role, switch.count, head, ("which the links between cubes cross",), 0))
    rate = said_rate(torus.bisection_Bps())
    rows.append(("bisection", 0, rate, ("bisection, one way",), 0))
    room = frame.down / len(rows)
    found = [
        Said(what, count, head, below, frame.top + room * at, frame.top + room * (at + 1), lost)
        for at, (what, count, head, below, lost) in enumerate(rows)
    ]
    # Every device is a node of its own.
    return [*found, Said("node", torus.devices, "", (), frame.top, frame.bottom, gone)]
