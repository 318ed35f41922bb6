"""Tori and meshes as grids: one of two dimensions, or the layers of three side by side.

Every wrap, and every link from a layer to the next, is a stub at both its ends. Where devices have
no room they are blocks (`lattice`), said, and lines are as wide as their links. The axes are told
apart by colour, direction and letter; a wrap is dashed, of a twisted torus bent, because it comes
back elsewhere. On a plan, neighbours of one tensor group are joined by a bar, and one replica's way
from stage to stage is lit link by link, as it is routed: dimension by dimension.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.fabric import Torus
from nest_core.network import TorusShape
from nest_core.report.picture.frame import TEXT, Frame, frame_of
from nest_core.report.picture.lattice import AXES, CUBE, Joint, LatticeBlocks, blocks_of
from nest_core.report.picture.marks import (
    Box,
    Drawn,
    Line,
    Mark,
    Point,
    Stands,
    Swatch,
    TierLabel,
    Words,
    between,
    count_words,
    rate_words,
    text_width,
)
from nest_core.report.picture.plan import (
    DrawOptions,
    PlanOnDevices,
    framed_plan,
    lit,
    load_look,
    paint_of,
)
from nest_core.report.picture.racks import Paint
from nest_core.report.picture.switches import cross

__all__ = ["torus_drawn", "torus_labels", "torus_legend", "torus_subtitle", "torus_title"]


_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def _by(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in sizes)


def torus_title(fabric: Torus) -> str:
    """Return what the fabric is, how many links a device has, and how far it is at most."""
    hops = TorusShape(fabric.shape, fabric.wrap, fabric.shifts).diameter
    links = sum(
        2 if size > 2 or any(shift) else size - 1
        for size, shift in zip(fabric.shape, fabric.shifts, strict=True)
    )
    first = str(fabric.shape[0])
    article = "An" if first.startswith("8") or first in ("11", "18") else "A"
    kind = f"{'twisted ' if fabric.twisted else ''}{'torus' if any(fabric.wrap) else 'mesh'}"
    up_to = "" if all(fabric.wrap) else "up to "
    words = f"{up_to}{_NUMBERS[links]} link{'' if links == 1 else 's'}"
    return (
        f"{article} {_by(fabric.shape)} {kind}: {words} of "
        f"{rate_words(fabric.link_bandwidth_Bps)} per device, at most {count_words(hops, 0, 'hop')}"
    )


def torus_subtitle(blocks: LatticeBlocks) -> str:
    """Return how many devices there are, and what a line is."""
    torus = blocks.torus
    layers = ", as is a link between layers" if len(torus.shape) > 2 else ""
    wraps = f"; {'a wrap is two stubs' if any(torus.wrap) else 'nothing wraps'}{layers}"
    if blocks.single:
        return f"{torus.devices:,} devices; every device and every link drawn{wraps}"
    full = int((blocks.places == math.prod(blocks.side)).sum())
    rest = len(blocks.places) - full
    smaller = f" and {rest:,} smaller at the ends" if rest else ""
    usual = max(blocks.joints.values(), default=0)
    line = f"; a line is {usual:,} links" if usual else ""
    return (
        f"{torus.devices:,} devices in {full:,} blocks of {_by(blocks.side)}{smaller}{line}{wraps}"
    )


def torus_legend(blocks: LatticeBlocks) -> list[Swatch]:
    """Return the entries of the legend."""
    torus, devices = blocks.torus, math.prod(blocks.side)
    rate = f"link{'' if blocks.single else 's'} of {rate_words(torus.link_bandwidth_Bps)}"
    back = "further along another axis" if torus.twisted else "at the other end"
    what = "device" if blocks.single else f"block of {devices:,} devices"
    entries = [
        (True, Swatch("line", "link axis-0", rate)),
        (any(torus.wrap), Swatch("line", "link axis-0 wrap", f"wrap: comes back {back}")),
        (True, Swatch("box", "device", what)),
        (bool(torus.missing), Swatch("box", "device gone", "crossed: failed, its router forwards")),
    ]
    return [swatch for is_drawn, swatch in entries if is_drawn]


def torus_labels(blocks: LatticeBlocks, parts: Inventory, frame: Frame) -> list[TierLabel]:
    """Return what there is, one below the other."""
    torus = blocks.torus
    gone, cubes = torus.places - torus.devices, torus.places // CUBE**3
    wraps = sum(links for joint, links in blocks.joints.items() if joint.wraps)
    closing = "closing the short axes" if torus.twisted else "one per ring"
    words = {
        "neighbour": ("links", "between neighbours"),
        "wrap-around": ("wraps", closing),
        "cube": ("links", "within the cube" if cubes == 1 else f"within {cubes:,} cubes of 64"),
        "between cubes": ("wraps", "")
        if cubes == 1
        else ("links", f"between cubes, {wraps:,} of them wraps"),
    }
    devices = count_words(torus.devices, gone, "device")
    across = "which the links between cubes cross"
    rows = [
        ("device", torus.devices, devices, _by(torus.shape), gone),
        *(
            (f"links {link.tier}", link.count, f"{link.count:,} {name}", below, 0)
            for link in parts.links
            for name, below in (words[link.tier],)
        ),
        *(
            (switch.role, switch.count, f"{switch.count:,} optical switches", across, 0)
            for switch in parts.switches
        ),
        ("bisection", 0, rate_words(torus.bisection_Bps()), "bisection, one way", 0),
    ]
    room = frame.down / len(rows)
    tops = [frame.top + room * at for at in range(len(rows))]
    return [
        *(
            TierLabel(what, count, head, (below,) if below else (), top, top + room, lost)
            for top, (what, count, head, below, lost) in zip(tops, rows, strict=True)
        ),
        # Every device is a node of its own.
        TierLabel("node", torus.devices, "", (), frame.top, frame.bottom, gone),
    ]


_MAX_BLOCKS = {2: 640, 3: 512}
_MIN_PITCH, _MAX_PITCH = 7.0, 44.0
_GAP = 1.3
"""Between two layers, in pitches."""
_STUB, _LAYER_STUB, _MAX_STUB = 0.42, 0.26, 15.0
_WAYS = ((1.0, 0.0), (0.0, -1.0), (math.sqrt(0.5), -math.sqrt(0.5)))
"""Directions of the axes that go right, up, and from layer to layer."""


def torus_drawn(fabric: Torus, options: DrawOptions) -> Drawn:
    """Draw a torus or mesh."""
    frame = frame_of(options.width)
    blocks = blocks_of(
        fabric,
        _MAX_BLOCKS[len(fabric.shape)],
        lambda counts: _layout(counts, frame)[0] >= _MIN_PITCH,
    )
    grid = _Grid(blocks, frame, options.parts, options.plan is not None)
    busy = {} if options.loads is None else blocks.busiest(options.loads.busy)
    busiest = max(busy.values(), default=0.0)
    words = torus_title(fabric), torus_subtitle(blocks)
    stages, paint = paint_of(options, fabric.places, fabric.place_of())
    marks = [
        *grid.links({joint: load_look(share, busiest) for joint, share in busy.items()}),
        *([] if stages is None else grid.bars(stages)),
        *grid.boxes(paint),
        *([] if stages is None else grid.numbers(stages) + grid.transfers(stages)),
        *(grid.letters() if frame.words else []),
    ]
    return framed_plan(
        options,
        words,
        marks,
        torus_labels(blocks, options.parts, frame),
        torus_legend(blocks),
        busiest,
    )


def _order(counts: tuple[int, ...]) -> list[int]:
    """Axes that go right, up, and from layer to layer, the longest first."""
    return sorted(range(len(counts)), key=lambda axis: (-counts[axis], axis))


def _layout(counts: tuple[int, ...], frame: Frame) -> tuple[float, int]:
    """Pixels between two blocks, and layers side by side."""
    across, high, deep = (*(counts[axis] for axis in _order(counts)), 1)[:3]
    margin = 56.0 if frame.words else 16.0  # of stubs and letters
    options = []
    for columns in range(1, deep + 1):
        wide = columns * (across + _GAP) - _GAP
        tall = -(-deep // columns) * (high + _GAP) - _GAP
        pitch = min((frame.across - margin) / wide, (frame.down - margin) / tall, _MAX_PITCH)
        options.append((pitch, columns))
    # A last row that is as long as the others is worth smaller steps.
    return max(options, key=lambda option: (option[0] * (1.0 if deep % option[1] else 1.3), option))


@dataclass(frozen=True)
class _Grid:
    """Where the blocks of a torus stand, and their marks."""

    blocks: LatticeBlocks
    frame: Frame
    parts: Inventory
    is_planned: bool

    @cached_property
    def order(self) -> list[int]:
        """Axes that go right, up, and from layer to layer."""
        return _order(self.blocks.counts)

    @cached_property
    def pitch(self) -> float:
        """Between two blocks."""
        return _layout(self.blocks.counts, self.frame)[0]

    @cached_property
    def size(self) -> float:
        """Width of a block; that of a plan is larger."""
        return min(16.0, max(3.2, (0.64 if self.is_planned else 0.46) * self.pitch))

    def _way(self, axis: int) -> Point:
        return _WAYS[self.order.index(axis)]

    def _is_layered(self, axis: int) -> bool:
        """Whether an axis goes from layer to layer."""
        return axis in self.order[2:]

    @cached_property
    def at(self) -> tuple[Point, ...]:
        """Middle of every block."""
        counts, (pitch, columns) = self.blocks.counts, _layout(self.blocks.counts, self.frame)
        places = self.blocks.coordinates
        right, up, *others = self.order
        layer = places[:, others[0]] if others else np.zeros(len(places), np.int64)
        x = (places[:, right] + layer % columns * (counts[right] + _GAP)) * pitch
        y = (layer // columns * (counts[up] + _GAP) - places[:, up]) * pitch
        x += (self.frame.start + self.frame.end - x.min() - x.max()) / 2
        y += (self.frame.top + self.frame.bottom - y.min() - y.max()) / 2
        return tuple(zip(x.tolist(), y.tolist(), strict=True))

    def key(self, block: int) -> str:
        """Of a device, or of a block of several."""
        place = ",".join(map(str, self.blocks.coordinates[block]))
        return f"device {block}" if self.blocks.single else f"block {place}"

    def _ends(self, joint: Joint) -> str:
        return between(self.key(joint.a), self.key(joint.b))

    def ways(self, joint: Joint) -> list[tuple[tuple[Point, ...], tuple[str, ...]]]:
        """Points and ends of what is drawn of a joint: a line, or a stub at both its ends."""
        a, b = self.key(joint.a), self.key(joint.b)
        if joint.wraps or self._is_layered(joint.axis):
            return [(self._stub(joint, joint.a, 1), (a,)), (self._stub(joint, joint.b, -1), (b,))]
        (ax, ay), (bx, by) = self.at[joint.a], self.at[joint.b]
        share = (self.size / 2 - 0.3) / math.hypot(bx - ax, by - ay)
        dx, dy = (bx - ax) * share, (by - ay) * share
        return [(((ax + dx, ay + dy), (bx - dx, by - dy)), (a, b))]

    def _stub(self, joint: Joint, block: int, way: int) -> tuple[Point, ...]:
        """One end of a link; that of a wrap is bent along the axis that it shifts."""
        (x, y), (dx, dy) = self.at[block], self._way(joint.axis)
        edge = way * (self.size / 2 / max(abs(dx), abs(dy)) - 0.3)
        share = _LAYER_STUB if self._is_layered(joint.axis) or not joint.wraps else _STUB
        reach = way * min(_MAX_STUB, max(3.0, share * self.pitch))
        points = [(x + dx * part, y + dy * part) for part in (edge, edge + reach / 2, edge + reach)]
        shifts = self.blocks.torus.shifts[joint.axis] if joint.wraps else ()
        if not any(shifts):
            return points[0], points[2]
        for axis, shift in enumerate(shifts):
            if shift:
                bent, (ex, ey) = 0.45 * reach, self._way(axis)
                points[2] = points[2][0] + bent * ex, points[2][1] + bent * ey
        return tuple(points)

    def links(self, loads: Mapping[Joint, str]) -> Iterator[Mark]:
        """Draw lines between blocks."""
        most = max(self.blocks.joints.values(), default=1)
        widest = 2.4 if self.blocks.single else 0.36 * self.size
        for joint, links in self.blocks.joints.items():
            width = max(1.0, widest * links / most)
            look = f"link {loads.get(joint, f'axis-{joint.axis}')}{' wrap' if joint.wraps else ''}"
            stands: Stands = ((f"links {self._tier(joint)}", links),)
            for points, ends in self.ways(joint):
                yield Line(self._ends(joint), look, points, width, ends, stands)
                stands = ()

    @cached_property
    def _has_cubes(self) -> bool:
        return any(link.tier == "cube" for link in self.parts.links)

    def _tier(self, joint: Joint) -> str:
        """Class of the bill that the links of a joint are."""
        if not self._has_cubes:
            return "wrap-around" if joint.wraps else "neighbour"
        last = self.blocks.coordinates[joint.a][joint.axis] + 1
        is_within = not joint.wraps and last * self.blocks.side[joint.axis] % CUBE
        return "cube" if is_within else "between cubes"

    def boxes(self, paint: Paint) -> Iterator[Mark]:
        """Draw devices, or blocks of them."""
        blocks, size = self.blocks, self.size
        for block, (x, y) in enumerate(self.at):
            present, lost = int(blocks.present[block]), int(blocks.places[block])
            lost -= present
            look = paint(np.flatnonzero(blocks.of == block).tolist())
            look = "device gone" if not present else f"{look} part" if lost else look
            count = present or lost
            inside, cubes = int(blocks.inside[block]), int(blocks.places[block]) // CUBE**3
            within = min(inside, 144 * max(1, cubes)) if self._has_cubes else 0
            beyond = "links between cubes" if self._has_cubes else "links neighbour"
            links = (("links cube", within), (beyond, inside - within))
            stands = (("device", count), ("node", count), *(entry for entry in links if entry[1]))
            box = Box(
                self.key(block),
                look,
                *(x - size / 2, y - size / 2, size, size),
                stands=stands,
                radius=1.5,
            )
            yield box
            if lost:
                first, *others = cross(box)
                gone: Stands = (("device", lost), ("node", lost))
                yield from (replace(first, stands=gone if present else ()), *others)

    def letters(self) -> Iterator[Mark]:
        """Name the axes where they end, and the layers above them."""
        counts = self.blocks.counts
        far = self.size / 2 + _MAX_STUB + 8
        for axis in self.order[:2]:
            if self.blocks.torus.shape[axis] > 1:
                x, y = self.at[self._block({axis: counts[axis] - 1})]
                dx, dy = self._way(axis)
                at = x + dx * far, y + dy * far + 4
                yield Words(AXES[axis], f"bold axis-{axis}", *at, 13.0, "middle")
        for axis in self.order[2:]:
            right = self.order[0]
            for layer in range(counts[axis]):
                x, y = self.at[self._block({right: (counts[right] - 1) // 2, axis: layer})]
                text = f"{AXES[axis]} {layer * self.blocks.side[axis]}"
                if 1.15 * text_width(text, TEXT, bold=True) < (counts[right] + 1) * self.pitch:
                    below = y + self.size / 2 + min(_MAX_STUB, 0.5 * self.pitch) + 10
                    yield Words(text, f"bold axis-{axis}", x, below, TEXT, "middle")

    def _block(self, place: Mapping[int, int]) -> int:
        """Return the block at a place by axis; 0 along others."""
        counts = self.blocks.counts
        return int(
            np.ravel_multi_index(
                [place.get(axis, 0) for axis in range(len(counts))], counts, order="F"
            )
        )

    def bars(self, stages: PlanOnDevices) -> list[Mark]:
        """Draw bars between devices of one tensor group that are neighbours."""
        tensor, width = stages.tensor, 0.6 * self.size
        return [
            Line(self._ends(joint), f"{stages.paint((joint.a,))} bar", points, width, ends)
            for joint in (self.blocks.joints if self.blocks.single else ())
            if tensor[joint.a] >= 0 and tensor[joint.a] == tensor[joint.b]
            for points, ends in self.ways(joint)
            if len(ends) == 2
        ]

    def numbers(self, stages: PlanOnDevices) -> list[Mark]:
        """Number the blocks of one stage."""
        of, size = self.blocks.of, self.size
        return [
            mark
            for block, place in enumerate(self.at)
            for mark in stages.number(
                np.flatnonzero(of == block).tolist(), place, size, self.key(block)
            )
        ]

    def transfers(self, stages: PlanOnDevices) -> list[Mark]:
        """Light the first replica's way from stage to stage."""
        passed = {
            joint
            for group, following in pairwise(stages.groups)
            for start, end in zip(group, following, strict=False)
            for joint in self.blocks.way(start, end)
        }
        return [
            mark
            for joint in self.blocks.joints
            if joint in passed
            for points, ends in self.ways(joint)
            for mark in lit(self._ends(joint), points, ends)
        ]
