"""Tori and meshes as grids: one of two dimensions, or the layers of three side by side.

Every wrap, and every link from a layer to the next, is a stub at both its ends. Where devices have
no room they are blocks (`lattice`), said, and lines are as wide as their links. The axes are told
apart by colour, direction and letter; a wrap is dashed, of a twisted torus bent, because it comes
back elsewhere. On a plan, neighbours of one tensor group are joined by a bar, and one replica's way
from stage to stage is lit link by link, as it is routed: dimension by dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.fabric import Torus
from nest_core.report.picture.frame import TEXT, Frame, frame_of, framed
from nest_core.report.picture.grid_words import (
    torus_legend,
    torus_said,
    torus_subtitle,
    torus_title,
)
from nest_core.report.picture.lattice import AXES, CUBE, Blocks, Joint, blocks_of
from nest_core.report.picture.marks import (
    Box,
    Drawn,
    Line,
    Mark,
    Point,
    Stands,
    Words,
    between,
)
from nest_core.report.picture.options import DrawOptions
from nest_core.report.picture.plan import load_look
from nest_core.report.picture.racks import Paint
from nest_core.report.picture.stages import Stages, legend_of, lit, load_words, stages_of
from nest_core.report.picture.switches import cross
from nest_core.report.picture.text import text_width

__all__ = ["torus_drawn"]

_MAX_BLOCKS = {2: 640, 3: 512}
_MIN_PITCH, _MAX_PITCH = 7.0, 44.0
_GAP = 1.3
"""Between two layers, in pitches."""
_STUB, _LAYER_STUB, _MAX_STUB = 0.42, 0.26, 15.0


def torus_drawn(fabric: Torus, options: DrawOptions) -> Drawn:
    """Draw a torus or mesh."""
    frame = frame_of(options.width)
    most_blocks = _MAX_BLOCKS[len(fabric.shape)]
    blocks = blocks_of(fabric, most_blocks, lambda counts: _pitch(counts, frame) >= _MIN_PITCH)
    grid = _Grid(blocks, frame, options.parts, options.plan is not None)
    busy = {} if options.loads is None else blocks.busiest(options.loads.busy)
    most = max(busy.values(), default=0.0)
    words = load_words(options, (torus_title(fabric), torus_subtitle(blocks)), most)
    stages, paint = stages_of(options, fabric.places, fabric.place_of())
    looks = {joint: load_look(share, most) for joint, share in busy.items()}
    marks = [*grid.links(looks), *([] if stages is None else grid.bars(stages))]
    marks += grid.boxes(paint)
    if stages is not None:
        marks += grid.numbers(stages) + grid.transfers(stages)
    if frame.words:
        marks += grid.letters()
    legend = legend_of(options, most, torus_legend(blocks), marks)
    return framed(frame, words, marks, torus_said(blocks, options.parts, frame), legend)


def _area(frame: Frame) -> tuple[float, float, float, float]:
    """Left, top, width and height of what blocks may fill, stubs and letters outside."""
    margin = 28.0 if frame.words else 8.0
    return (
        frame.start + margin,
        frame.top + margin,
        frame.across - 2 * margin,
        frame.down - 2 * margin,
    )


def _order(counts: tuple[int, ...]) -> list[int]:
    """Axes that go right, up, and from layer to layer, the longest first."""
    return sorted(range(len(counts)), key=lambda axis: (-counts[axis], axis))


def _layout(counts: tuple[int, ...], frame: Frame) -> tuple[float, int]:
    """Pixels between two blocks, and layers side by side."""
    across, high, *layers = (counts[axis] for axis in _order(counts))
    deep = layers[0] if layers else 1
    _, _, width, height = _area(frame)
    options = []
    for columns in range(1, deep + 1):
        rows = -(-deep // columns)
        wide = columns * (across + _GAP) - _GAP
        tall = rows * (high + _GAP) - _GAP
        options.append((min(width / wide, height / tall, _MAX_PITCH), columns))
    # A last row that is as long as the others is worth smaller steps.
    return max(options, key=lambda option: (option[0] * (1.0 if deep % option[1] else 1.3), option))


def _pitch(counts: tuple[int, ...], frame: Frame) -> float:
    return _layout(counts, frame)[0]


@dataclass(frozen=True)
class _Grid:
    """Where the blocks of a torus stand, and their marks."""

    blocks: Blocks
    frame: Frame
    parts: Inventory
    planned: bool

    @cached_property
    def pitch(self) -> float:
        """Between two blocks."""
        return _pitch(self.blocks.counts, self.frame)

    @cached_property
    def size(self) -> float:
        """Width of a block; that of a plan is larger."""
        return min(16.0, max(3.2, (0.64 if self.planned else 0.46) * self.pitch))

    @cached_property
    def steps(self) -> tuple[Point, ...]:
        """Along every axis; towards the next layer, the direction of its stubs."""
        ways = ((1.0, 0.0), (0.0, -1.0), (0.7, -0.7))
        order = _order(self.blocks.counts)
        return tuple(
            (self.pitch * ways[order.index(axis)][0], self.pitch * ways[order.index(axis)][1])
            for axis in range(len(order))
        )

    @cached_property
    def at(self) -> tuple[Point, ...]:
        """Middle of every block."""
        counts = self.blocks.counts
        order, (pitch, columns) = _order(counts), _layout(counts, self.frame)
        places = np.array([self.blocks.place(block) for block in range(math.prod(counts))])
        layer = places[:, order[2]] if len(order) > 2 else np.zeros(len(places), np.int64)
        x = (places[:, order[0]] + layer % columns * (counts[order[0]] + _GAP)) * pitch
        y = (layer // columns * (counts[order[1]] + _GAP) - places[:, order[1]]) * pitch
        left, top, width, height = _area(self.frame)
        x += left + width / 2 - (x.min() + x.max()) / 2
        y += top + height / 2 - (y.min() + y.max()) / 2
        return tuple(zip(x.tolist(), y.tolist(), strict=True))

    @cached_property
    def layered(self) -> int:
        """The axis that goes from layer to layer; −1: none."""
        return _order(self.blocks.counts)[2] if len(self.blocks.counts) > 2 else -1

    def key(self, block: int) -> str:
        """Of a device, or of a block of several."""
        if self.blocks.single:
            return f"device {block}"
        return f"block {','.join(map(str, self.blocks.place(block)))}"

    def ways(self, joint: Joint) -> list[tuple[tuple[Point, ...], tuple[str, ...]]]:
        """Points and ends of what is drawn of a joint: a line, or a stub at both its ends."""
        a, b = self.key(joint.a), self.key(joint.b)
        if joint.wraps or joint.axis == self.layered:
            return [(self._stub(joint, joint.a, 1), (a,)), (self._stub(joint, joint.b, -1), (b,))]
        (ax, ay), (bx, by) = self.at[joint.a], self.at[joint.b]
        share = (self.size / 2 - 0.3) / math.hypot(bx - ax, by - ay)
        dx, dy = (bx - ax) * share, (by - ay) * share
        return [(((ax + dx, ay + dy), (bx - dx, by - dy)), (a, b))]

    def _stub(self, joint: Joint, block: int, way: int) -> tuple[Point, ...]:
        """One end of a link; that of a wrap is bent along the axis that it shifts."""
        (x, y), step = self.at[block], self.steps[joint.axis]
        length = math.hypot(*step)
        dx, dy = way * step[0] / length, way * step[1] / length
        edge = self.size / 2 / max(abs(dx), abs(dy)) - 0.3
        share = _STUB if joint.wraps and joint.axis != self.layered else _LAYER_STUB
        long = min(_MAX_STUB, max(3.0, share * length))
        start, end = (
            (x + dx * edge, y + dy * edge),
            (x + dx * (edge + long), y + dy * (edge + long)),
        )
        shifts = self.blocks.torus.shifts[joint.axis] if joint.wraps else ()
        bent = [axis for axis, by in enumerate(shifts) if by]
        if not bent:
            return start, end
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        for axis in bent:
            other = self.steps[axis]
            share = way * 0.45 * long / math.hypot(*other)
            end = end[0] + share * other[0], end[1] + share * other[1]
        return start, middle, end

    def links(self, loads: dict[Joint, str]) -> list[Mark]:
        """Lines between blocks."""
        joints, _ = self.blocks.joints
        most = max((joint.links for joint in joints), default=1)
        widest = 2.4 if self.blocks.single else 0.36 * self.size
        marks: list[Mark] = []
        for joint in joints:
            width = max(1.0, widest * joint.links / most)
            look = f"link {loads.get(joint, f'axis-{joint.axis}')}{' wrap' if joint.wraps else ''}"
            key, stands = between(self.key(joint.a), self.key(joint.b)), self._stands(joint)
            for points, ends in self.ways(joint):
                marks.append(Line(key, look, points, width, ends, stands))
                stands = ()
        return marks

    def _stands(self, joint: Joint) -> Stands:
        if not _has_cubes(self.parts):
            return ((f"links {'wrap-around' if joint.wraps else 'neighbour'}", joint.links),)
        side = self.blocks.side[joint.axis]
        at = (self.blocks.place(joint.a)[joint.axis] + 1) * side
        within = not joint.wraps and at % CUBE
        return ((f"links {'cube' if within else 'between cubes'}", joint.links),)

    def boxes(self, paint: Paint) -> list[Mark]:
        """Devices, or blocks of them."""
        blocks, marks, size = self.blocks, list[Mark](), self.size
        for block, (x, y) in enumerate(self.at):
            present, places = int(blocks.present[block]), int(blocks.places[block])
            stands = self._holds(block)
            if not present:
                stands += (("device", places), ("node", places))
            look = paint(np.flatnonzero(blocks.of == block).tolist())
            if present < places:
                look = f"{look} part" if present else "device gone"
            place = (x - size / 2, y - size / 2, size, size)
            box = Box(self.key(block), look, *place, stands=stands, radius=1.5)
            marks.append(box)
            if present < places:
                lost: Stands = (("device", places - present), ("node", places - present))
                first, *others = cross(box)
                marks += [replace(first, stands=lost if present else ()), *others]
        return marks

    def _holds(self, block: int) -> Stands:
        """Devices of a block and the links between them."""
        inside = int(self.blocks.joints[1][block])
        present, places = int(self.blocks.present[block]), int(self.blocks.places[block])
        stands: Stands = (("device", present), ("node", present)) if present else ()
        if not inside or not _has_cubes(self.parts):
            return stands + ((("links neighbour", inside),) if inside else ())
        within = min(inside, 144 * max(1, places // CUBE**3))
        rest = inside - within
        return (
            *stands,
            ("links cube", within),
            *((("links between cubes", rest),) if rest else ()),
        )

    def letters(self) -> list[Mark]:
        """Name the axes where they end, and the layers above them."""
        marks, counts = list[Mark](), self.blocks.counts
        far = self.size / 2 + _MAX_STUB + 8
        for axis in _order(counts)[:2]:
            if self.blocks.torus.shape[axis] > 1:
                corner = [0] * len(counts)
                corner[axis] = counts[axis] - 1
                x, y = self.at[self._block(corner)]
                dx, dy = self.steps[axis]
                place = x + dx / self.pitch * far, y + dy / self.pitch * far + 4
                marks.append(Words(AXES[axis], f"bold axis-{axis}", *place, 13.0, "middle"))
        for layer in range(counts[self.layered] if self.layered >= 0 else 0):
            corner = [(count - 1) // 2 for count in counts]
            corner[self.layered], corner[_order(counts)[1]] = layer, 0
            x, y = self.at[self._block(corner)]
            text = f"{AXES[self.layered]} {layer * self.blocks.side[self.layered]}"
            if (
                1.15 * text_width(text, TEXT, bold=True)
                < (counts[_order(counts)[0]] + 1) * self.pitch
            ):
                below = y + self.size / 2 + min(_MAX_STUB, 0.5 * self.pitch) + 10
                marks.append(Words(text, f"bold axis-{self.layered}", x, below, TEXT, "middle"))
        return marks

    def _block(self, place: list[int]) -> int:
        return int(np.ravel_multi_index(place, self.blocks.counts, order="F"))

    def bars(self, stages: Stages) -> list[Mark]:
        """Bars between devices of one tensor group that are neighbours."""
        if not self.blocks.single:
            return []
        tensor, marks = stages.tensor(), list[Mark]()
        for joint in self.blocks.joints[0]:
            if tensor[joint.a] < 0 or tensor[joint.a] != tensor[joint.b]:
                continue
            for points, ends in self.ways(joint):
                if len(ends) == 2:
                    look = f"{stages.paint((joint.a,))} bar"
                    marks.append(Line(between(*ends), look, points, 0.6 * self.size, ends))
        return marks

    def numbers(self, stages: Stages) -> list[Mark]:
        """Number the blocks of one stage."""
        marks: list[Mark] = []
        for block, place in enumerate(self.at):
            devices = np.flatnonzero(self.blocks.of == block).tolist()
            marks += stages.number(devices, place, self.size, self.key(block))
        return marks

    def transfers(self, stages: Stages) -> list[Mark]:
        """Light the first replica's way from stage to stage."""
        passed: set[tuple[int, int, int, bool]] = set()
        for group, following in pairwise(stages.groups()):
            for start, end in zip(group, following, strict=False):
                passed |= self.blocks.way(start, end)
        marks: list[Mark] = []
        for joint in self.blocks.joints[0]:
            if (joint.axis, joint.a, joint.b, joint.wraps) in passed:
                key = between(self.key(joint.a), self.key(joint.b))
                for points, ends in self.ways(joint):
                    marks += lit(key, points, ends)
        return marks


def _has_cubes(parts: Inventory) -> bool:
    return any(link.tier == "cube" for link in parts.links)
