"""One group of a dragonfly: its routers on a ring, every local link, their nodes and global links.

All of it repeats what the picture's ring stands for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nest_core.picture.aggregate import tiles
from nest_core.picture.frame import TEXT
from nest_core.picture.marks import Band, Box, Line, Mark, Point, Words, between
from nest_core.picture.racks import Paint, plain
from nest_core.picture.text import text_width, wrapped
from nest_core.topology import Dragonfly

__all__ = ["group_lens"]

_KEY = "lens"
_LARGEST = 13.5
_NAMED = 9.6
_REACH = (20.0, 30.0)
"""From the edge of a router to its nodes, as there is room."""
_NODE = 7.0
_MOST_LINKS = 300


def group_lens(
    fabric: Dragonfly,
    left: float,
    right: float,
    top: float,
    bottom: float,
    paint: Paint = plain,
) -> list[Mark]:
    """Group 0 in a frame."""
    devices = fabric.devices // fabric.groups
    words = _words(fabric, right - left - 24)
    head = f"Group 0 of {fabric.groups:,}: {devices:,} device{'' if devices == 1 else 's'}"
    marks: list[Mark] = [Box(_KEY, "lens", left, top, right - left, bottom - top, radius=4)]
    marks.append(Words(_cut(head, right - left - 24), "bold", left + 12, top + 19, TEXT))
    low = bottom - 10 - 15 * len(words)
    for at, line in enumerate(words):
        marks.append(Words(line, "soft", left + 12, low + 12 + 15 * at, TEXT))
    room = min(right - left - 16, low - top - 30) / 2
    centre = (left + right) / 2, (top + 26 + low) / 2
    return marks + _routers(fabric, centre, room, paint)


def _cut(text: str, room: float) -> str:
    return text if text_width(text, TEXT, bold=True) <= room else text.partition(":")[0]


def _words(fabric: Dragonfly, room: float) -> list[str]:
    a, p, h = fabric.routers_per_group, fabric.nodes_per_router, fabric.global_links_per_router
    lit = min(h, fabric.links_per_pair * (fabric.groups - 1))
    node = "device" if fabric.devices_per_node == 1 else "node"
    lines = []
    if a > 1:
        links = a * (a - 1) // 2
        every = ": every router to every router" if links > 1 else " between two routers"
        lines.append(f"{links:,} local link{'s' if links > 1 else ''}{every}")
    shared = "" if p <= _fan(fabric) else ", drawn as one box"
    nodes = f"{p:,} {node}{'s' if p > 1 else ''}{shared}"
    lines.append(f"{nodes} and {lit:,} global link{'' if lit == 1 else 's'} per router")
    return [part for line in lines for part in wrapped(line, room, TEXT)]


def _fan(fabric: Dragonfly) -> int:
    """Nodes of a router that are drawn singly."""
    return max(1, 72 // fabric.routers_per_group)


def _routers(fabric: Dragonfly, centre: Point, room: float, paint: Paint) -> list[Mark]:
    reach = min(_REACH[1], max(_REACH[0], 0.24 * room))
    ring = room - reach - _NODE - 2
    counts = tiles(fabric.routers_per_group, 2 * math.pi * ring)
    count = len(counts)
    pitch = 2 * math.pi * ring / count
    size = min(_LARGEST, max(2.3, 0.36 * pitch))
    ring -= size
    places = [_spot(centre, ring, _turn(at, count)) for at in range(count)]
    keys = [f"router {at}" for at in range(count)]
    marks: list[Mark] = []
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    rates = fabric.local_bandwidth_Bps, fabric.global_bandwidth_Bps, fabric.nic_bandwidth_Bps
    local, out, port = (max(0.7, 1.8 * rate / max(rates)) for rate in rates)
    if len(pairs) > _MOST_LINKS:
        disc = tuple(_spot(centre, 0.8 * ring, 2 * math.pi * turn / 48) for turn in range(48))
        marks.append(Band("", "mesh", disc))
        pairs = []
    seen = min(0.8, max(0.2, 40 / max(1, len(pairs))))
    for a, b in pairs:
        points = _between(places[a], places[b], size)
        ends = f"lens {keys[a]}", f"lens {keys[b]}"
        marks.append(Line(between(keys[a], keys[b]), "link", points, local, ends, opacity=seen))
    for at, place in enumerate(places):
        fan = _Fan(place, _turn(at, count), size, 2 * math.pi / count, reach)
        marks += _around(fabric, at, fan, (out, port), paint)
        box = Box(
            f"lens {keys[at]}",
            "switch",
            place[0] - size,
            place[1] - size,
            2 * size,
            2 * size,
            _KEY,
            radius=size,
        )
        marks.append(box)
        if size >= _NAMED and counts[at] == 1:
            marks.append(Words(f"r{at}", "", place[0], place[1] + 4.2, TEXT, "middle"))
    return marks


def _turn(at: int, count: int) -> float:
    return 2 * math.pi * (at + 0.5) / count


def _spot(centre: Point, radius: float, turn: float) -> Point:
    return centre[0] + radius * math.cos(turn), centre[1] - radius * math.sin(turn)


def _between(a: Point, b: Point, size: float) -> tuple[Point, Point]:
    """From edge to edge of two discs."""
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    dx, dy = (b[0] - a[0]) / length * size, (b[1] - a[1]) / length * size
    return (a[0] + dx, a[1] + dy), (b[0] - dx, b[1] - dy)


@dataclass(frozen=True, slots=True)
class _Fan:
    """What leads outwards from a router: where it is, which way, and how much of the ring."""

    place: Point
    turn: float
    size: float
    share: float
    reach: float


def _around(
    fabric: Dragonfly, router: int, fan: _Fan, widths: tuple[float, float], paint: Paint
) -> list[Mark]:
    """Global links, then nodes, on a fan."""
    key = f"router {router}"
    lit = min(fabric.global_links_per_router, fabric.links_per_pair * (fabric.groups - 1))
    nodes = fabric.nodes_per_router if fabric.nodes_per_router <= _fan(fabric) else 1
    lines = min(lit, _fan(fabric))
    total = nodes + lines
    spread = min(2.4, max(fan.share * 1.45, 0.3))
    each = fabric.devices_per_node * (fabric.nodes_per_router // nodes)
    first = router * fabric.nodes_per_router * fabric.devices_per_node
    marks: list[Mark] = []
    for at in range(total):
        angle = fan.turn + (0.0 if total == 1 else spread * (at / (total - 1) - 0.5))
        start = _spot(fan.place, fan.size, angle)
        if at < lines:
            end = _spot(fan.place, fan.size + 0.62 * fan.reach, angle)
            marks.append(Line("", "link opened", (start, end), widths[0], (f"lens {key}",)))
            continue
        far = fan.size + fan.reach - (_NODE if total > 6 and at % 2 else 0)
        x, y = _spot(fan.place, far, angle)
        name, begin = f"lens node {key} {at - lines}", first + (at - lines) * each
        look = paint(range(begin, begin + each))
        marks.append(Line("", "link", (start, (x, y)), widths[1], (f"lens {key}", name)))
        marks.append(Box(name, look, x - _NODE / 2, y - _NODE / 2, _NODE, _NODE, _KEY, radius=1.5))
    return marks
