"""Dragonflies: groups on a ring with a bent line for the links of every pair, and one group opened.

The groups are what the wiring has; a ring shows that all of them are alike. Lines bend towards the
middle, so that none passes a third group. One group is opened in a lens: its routers on a ring of
their own with their local links, nodes and global links, which have the accent in both parts. Where
lines or groups have no room, groups are tiles, and only the links of the opened one are drawn, over
a hatched disc that stands for the others; both are said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nest_core.picture.aggregate import LEAST_BOX, LEAST_PITCH, MOST_PAIRS, opacity, tiles
from nest_core.picture.ask import Ask
from nest_core.picture.clos_words import said_rate
from nest_core.picture.frame import TEXT, Frame, frame_of, framed
from nest_core.picture.group_lens import group_lens
from nest_core.picture.marks import (
    Band,
    Box,
    Drawn,
    Line,
    Mark,
    Point,
    Said,
    Stands,
    Swatch,
    Words,
    between,
)
from nest_core.picture.plan import load_look
from nest_core.picture.stages import Stages, legend_of, lit, load_words, stages_of
from nest_core.topology import Dragonfly

__all__ = ["dragonfly_drawn"]

_LARGEST = 13.5
_NUMBERED = 8.4
_LENS_SHARE = 0.44
_LEAST_LENS = 210.0
_STEPS = 9
_BENT = 0.9
"""How far towards the middle a line is drawn."""


@dataclass(frozen=True, slots=True)
class _Ring:
    """Groups, or tiles of them, on a circle.

    Parameters
    ----------
    centre : Point
    radius, box : float
        Of the circle, and of a group.
    counts : tuple of int
        Groups of every box.
    """

    centre: Point
    radius: float
    box: float
    counts: tuple[int, ...]

    def at(self, index: int, inward: float = 0.0) -> Point:
        """Middle of a box, or a point ``inward`` of it; the first one right, then upwards."""
        turn = 2 * math.pi * index / len(self.counts)
        far = self.radius - inward
        return self.centre[0] + far * math.cos(turn), self.centre[1] - far * math.sin(turn)

    def key(self, index: int) -> str:
        """Its groups."""
        first = sum(self.counts[:index])
        last = first + self.counts[index] - 1
        return f"group {first}" if first == last else f"group {first}-{last}"


def dragonfly_drawn(fabric: Dragonfly, ask: Ask) -> Drawn:
    """The picture of a dragonfly."""
    frame = frame_of(ask.width)
    lens = frame.across * _LENS_SHARE if frame.said == "full" else 0.0
    lens = 0.0 if lens < _LEAST_LENS * 0.95 else lens
    ring = _ring(fabric, frame, frame.right - lens - (18 if lens else 0))
    stages, paint = stages_of(ask, fabric.devices, np.arange(fabric.devices))
    busy = _busy(fabric, ask)
    most = float(busy.max())
    words = load_words(ask, (_title(fabric), _subtitle(fabric)), most)
    marks: list[Mark] = []
    if lens:
        marks += _beam(ring, frame, frame.right - lens)
    loads = {} if ask.loads is None else _looks(ring, busy, most)
    marks += _chords(fabric, ring, loads, opened=ask.plan is None)
    marks += _groups(fabric, ring, frame, stages)
    if stages is not None:
        marks += _transfers(fabric, ring, stages)
    if lens:
        region = frame.right - lens, frame.right, frame.top, frame.bottom
        marks += group_lens(fabric, *region, paint)
    legend = legend_of(ask, most, _legend(fabric, ask.width), marks)
    return framed(frame, words, marks, _said(fabric, ring, frame), legend)


def _ring(fabric: Dragonfly, frame: Frame, right: float) -> _Ring:
    across, down = right - frame.left, frame.down
    centre = (frame.left + right) / 2, (frame.top + frame.bottom) / 2
    radius = min(across, down) / 2 - 2
    outer = 2 * math.pi * (radius - _LARGEST)
    counts = tiles(fabric.groups, outer)
    # A ring of two is none: the boxes stay apart on a wide one.
    pitch = outer / len(counts)
    box = min(_LARGEST, max(LEAST_BOX / 2, (pitch - 2) / 2, (LEAST_PITCH - 3) / 2 * (pitch > 9)))
    return _Ring(centre, radius - box, box, counts)


def _busy(fabric: Dragonfly, ask: Ask) -> npt.NDArray[np.float64]:
    """Busy share of the fullest global link from one group to another, shape (groups, groups)."""
    groups, each = fabric.groups, fabric.links_per_pair
    if ask.loads is None or not each:
        return np.zeros((groups, groups))
    # Global links are the last of the link map, by group, group and link.
    ways = ask.loads.busy[-groups * groups * each :].reshape(groups, groups, each).max(axis=2)
    return np.asarray(np.maximum(ways, ways.T))


def _looks(ring: _Ring, busy: npt.NDArray[np.float64], most: float) -> dict[tuple[int, int], str]:
    """Looks of the lines between two boxes by what is on their fullest link."""
    starts = np.cumsum([0, *ring.counts])[:-1]
    shares = np.maximum.reduceat(np.maximum.reduceat(busy, starts, 0), starts, 1)
    return {
        (a, b): load_look(float(shares[a, b]), most)
        for a in range(len(starts))
        for b in range(a + 1, len(starts))
    }


def _transfers(fabric: Dragonfly, ring: _Ring, stages: Stages) -> list[Mark]:
    """The first replica's way from stage to stage, where it leaves a group."""
    box_of = np.repeat(np.arange(len(ring.counts)), ring.counts)[fabric.group_of()]
    marks: list[Mark] = []
    for here, there in pairwise(stages.groups()):
        a, b = sorted((int(box_of[here[0]]), int(box_of[there[0]])))
        if a != b:
            ends = ring.key(a), ring.key(b)
            marks += lit(between(*ends), _bent(ring, a, b), ends)
    return marks


def _chords(
    fabric: Dragonfly, ring: _Ring, loads: dict[tuple[int, int], str], opened: bool
) -> list[Mark]:
    """The global links, those of the opened group last; all alike where a plan is shown."""
    count, each = len(ring.counts), fabric.links_per_pair
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    shown = [pair for pair in pairs if len(pairs) <= MOST_PAIRS or pair[0] == 0]
    rest = sum(ring.counts[a] * ring.counts[b] for a, b in pairs) - sum(
        ring.counts[a] * ring.counts[b] for a, b in shown
    )
    found: list[Mark] = []
    if rest:
        disc = tuple(
            _spot(ring.centre, 0.7 * ring.radius, 2 * math.pi * turn / 48) for turn in range(48)
        )
        found.append(Band("", "mesh", disc, (), (("links global", rest * each),)))
    width = min(1.0, max(0.6, 220.0 / max(1, len(shown))))
    area = math.pi * ring.radius**2
    faint = opacity(area, max(1, len(shown)), width, 1.35 * ring.radius)
    for a, b in sorted(shown, key=lambda pair: pair[0] == 0):
        ends = ring.key(a), ring.key(b)
        stands: Stands = (("links global", ring.counts[a] * ring.counts[b] * each),)
        look, thick, seen = ("link", width, faint)
        if loads:
            look, seen = f"link {loads[a, b]}", max(faint, 0.5)
        elif a == 0 and opened:
            look, thick, seen = "link opened", 1.6, 1.0
        line = Line(between(*ends), look, _bent(ring, a, b), thick, ends, stands, seen)
        found.append(line)
    return found


def _spot(centre: Point, radius: float, turn: float) -> Point:
    return centre[0] + radius * math.cos(turn), centre[1] - radius * math.sin(turn)


def _bent(ring: _Ring, a: int, b: int) -> tuple[Point, ...]:
    """From the inner edge of one group to that of another, bent towards the middle."""
    start, end = ring.at(a, ring.box), ring.at(b, ring.box)
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    control = tuple(at + _BENT * (to - at) for at, to in zip(middle, ring.centre, strict=True))
    found = []
    for step in range(_STEPS + 1):
        t = step / _STEPS
        parts = (1 - t) ** 2, 2 * t * (1 - t), t**2
        found.append(
            (
                parts[0] * start[0] + parts[1] * control[0] + parts[2] * end[0],
                parts[0] * start[1] + parts[1] * control[1] + parts[2] * end[1],
            )
        )
    return tuple(found)


def _groups(fabric: Dragonfly, ring: _Ring, frame: Frame, stages: Stages | None) -> list[Mark]:
    found: list[Mark] = []
    names: list[Mark] = []
    routers = fabric.routers_per_group
    nodes = routers * fabric.nodes_per_router
    first = 0
    for index, count in enumerate(ring.counts):
        x, y = ring.at(index)
        own: Stands = (
            ("device", count * nodes * fabric.devices_per_node),
            ("node", count * nodes),
            ("router", count * routers),
            ("links node", count * nodes * fabric.nics_per_node),
        )
        local = count * routers * (routers - 1) // 2
        inner = count * (count - 1) // 2 * fabric.links_per_pair
        own += ((("links local", local),) if local else ()) + (
            (("links global", inner),) if inner else ()
        )
        look = "group opened" if index == 0 and frame.said == "full" else "group"
        size = 2 * ring.box
        each = nodes * fabric.devices_per_node
        devices = range(first * each, (first + count) * each)
        if stages is not None:
            look = f"{stages.paint(devices)} round"
        box = Box(
            ring.key(index), look, x - ring.box, y - ring.box, size, size, "", own, radius=ring.box
        )
        found.append(box)
        if frame.words and ring.box >= _NUMBERED and count == 1:
            if stages is not None and stages.one(devices) >= 0:
                names += stages.number(devices, (x, y), size, ring.key(index))
                first += count
                continue
            bold = "bold" if look == "group opened" else "soft"
            names.append(Words(str(first), bold, x, y + 4.2, TEXT, "middle", ring.key(index)))
        first += count
    return found + names


def _beam(ring: _Ring, frame: Frame, left: float) -> list[Mark]:
    x, y = ring.at(0)
    points = (x, y - ring.box), (left, frame.top), (left, frame.bottom), (x, y + ring.box)
    return [Band("", "beam", points)]


def _title(fabric: Dragonfly) -> str:
    local = "any two routers of a group one local link"
    if fabric.routers_per_group == 1:
        local = "each of one router"
    if fabric.groups == 1:
        return f"One group: {local.replace(' of a group', '')} apart"
    return f"Any two of {fabric.groups:,} groups are one global link apart, {local}"


def _subtitle(fabric: Dragonfly) -> str:
    near, far = (said_rate(r) for r in (fabric.local_bandwidth_Bps, fabric.global_bandwidth_Bps))
    rates = f"all links of {near}" if near == far else f"local links of {near}, global of {far}"
    a, p, h = fabric.routers_per_group, fabric.nodes_per_router, fabric.global_links_per_router
    return f"{fabric.devices:,} devices; a = {a}, p = {p}, h = {h}; {rates}"


def _legend(fabric: Dragonfly, width: float) -> Sequence[Swatch]:
    if width < 640:
        return [Swatch("line", "link opened", "links of group 0"), Swatch("box", "group", "group")]
    out = fabric.links_per_pair * (fabric.groups - 1)
    opened = [Swatch("line", "link opened", f"the {out:,} global links of the opened group")]
    return [
        *(opened if out else ()),
        Swatch("line", "link", "other links"),
        Swatch("box", "device", "node" if fabric.devices_per_node > 1 else "device"),
    ]


def _said(fabric: Dragonfly, ring: _Ring, frame: Frame) -> list[Said]:
    a, p, h = fabric.routers_per_group, fabric.nodes_per_router, fabric.global_links_per_router
    each, groups = fabric.links_per_pair, fabric.groups
    many = a * p * fabric.devices_per_node
    lit, nics = min(h, each * (groups - 1)), fabric.nodes * fabric.nics_per_node
    tiled = "" if len(ring.counts) == groups else f"drawn as {len(ring.counts)} tiles"
    rows: list[tuple[str, int, str, tuple[str, ...]]] = [
        ("group", groups, _many(groups, "group"), (f"{a:,} routers, {many:,} devices each", tiled)),
        (
            "links global",
            each * groups * (groups - 1) // 2,
            _many(each * groups * (groups - 1) // 2, "global link"),
            (f"{each:,} per pair of groups; {each * (groups - 1):,} leave each group",),
        ),
        (
            "links local",
            groups * a * (a - 1) // 2,
            _many(groups * a * (a - 1) // 2, "local link"),
            (f"{a * (a - 1) // 2:,} in each group",),
        ),
        (
            "router",
            fabric.routers,
            _many(fabric.routers, "router"),
            (
                f"of {fabric.radix} ports: {p * fabric.nics_per_node} NICs, {a - 1} local, "
                f"{lit} global",
            ),
        ),
        (
            "node",
            fabric.nodes,
            _many(fabric.nodes, "node"),
            (f"of {fabric.devices_per_node:,} devices",) if fabric.devices_per_node > 1 else (),
        ),
        ("device", fabric.devices, _many(fabric.devices, "device"), ()),
        (
            "links node",
            nics,
            "",
            (f"{_many(nics, 'link')} of {said_rate(fabric.nic_bandwidth_Bps)} to routers",),
        ),
    ]
    if fabric.devices_per_node == 1:
        rows[4] = ("node", fabric.nodes, "", ())
    rows = [row for row in rows if row[1]]
    room = frame.down / len(rows)
    return [
        Said(
            what,
            count,
            head,
            tuple(line for line in below if line),
            frame.top + room * at,
            frame.top + room * (at + 1),
        )
        for at, (what, count, head, below) in enumerate(rows)
    ]


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
