"""Fabrics given level by level: columns of the outermost groups, a trapezoid per level in each.

Only what levels say is drawn: how many groups there are and what climbs out of them. A trapezoid is
all switches of a level in its column, as wide at its foot as what comes in, at its head as what
goes out, so that an oversubscribed level is a funnel and a generous one a flare. How many switches
they are is not given, and said so. Columns are the outermost groups that number 2 to 64, else tiles
of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from nest_core.bill.inventory import BITS
from nest_core.picture.aggregate import Row, row_of
from nest_core.picture.ask import Ask
from nest_core.picture.clos_words import plural, said_rate
from nest_core.picture.frame import TEXT, Frame, frame_of, framed
from nest_core.picture.hierarchical_levels import Levels, legend_entries, subtitle_of, title_of
from nest_core.picture.marks import (
    Band,
    Box,
    Drawn,
    Line,
    Mark,
    Point,
    Said,
    Stands,
    Words,
    between,
)
from nest_core.picture.one_node import node_drawn
from nest_core.picture.plan import load_look, stage_look
from nest_core.picture.racks import Paint, Racks
from nest_core.picture.stages import Stages, legend_of, lit, load_words, stages_of
from nest_core.picture.switches import cross
from nest_core.picture.text import text_width
from nest_core.topology import Hierarchical

__all__ = ["hierarchical_drawn"]

_MOST_COLUMNS = 64
_SAME = 0.01


def hierarchical_drawn(fabric: Hierarchical, ask: Ask) -> Drawn:
    """The picture of a hierarchy."""
    whole = replace(fabric, missing=())
    top = len(fabric.tiers) - 1
    if not top:
        return node_drawn(fabric, ask)
    at = next((t for t in range(top - 1, -1, -1) if 2 <= whole.groups[t] <= _MOST_COLUMNS), top - 1)
    frame = frame_of(ask.width)
    row = _row(whole.groups[max(at, 0)], frame)
    levels = Levels(fabric, ask, row, max(at, 0))
    sketch = _Sketch(levels, frame, *stages_of(ask, whole.devices, fabric.place_of()))
    words = load_words(ask, (title_of(fabric), subtitle_of(fabric)), levels.busiest)
    marks = [*sketch.marks(), *sketch.transfers()]
    legend = legend_of(ask, levels.busiest, legend_entries(fabric, at), marks)
    return framed(frame, words, marks, sketch.said(), legend)


def _row(count: int, frame: Frame) -> Row:
    row = row_of(count, frame.left, frame.right)
    if len(row.counts) <= _MOST_COLUMNS:
        return row
    size = next(
        s for s in range(2, count + 1) if -(-count // s) <= _MOST_COLUMNS and count % s == 0
    )
    return _tiled(count, size, frame)


def _tiled(count: int, size: int, frame: Frame) -> Row:
    pitch = frame.across / (count // size)
    centres = tuple(frame.left + (at + 0.5) * pitch for at in range(count // size))
    return Row((size,) * (count // size), centres, pitch, pitch - min(18.0, max(2.0, 0.16 * pitch)))


@dataclass(frozen=True)
class _Sketch:
    """The drawing: rows from the top, each with its upper and lower edge."""

    levels: Levels
    frame: Frame
    stages: Stages | None
    paint: Paint

    @cached_property
    def racks(self) -> Racks:
        """How nodes are drawn."""
        node_of = self.levels.whole.group_of(0)
        starts = np.searchsorted(node_of, np.arange(self.levels.whole.groups[0] + 1))
        return Racks(starts.astype(np.int64), self.levels.present, self.paint)

    @cached_property
    def names(self) -> bool:
        """Whether columns have their names below."""
        return self.frame.words and self.levels.row.pitch >= 15

    @cached_property
    def rows(self) -> dict[str, tuple[float, float]]:
        """Edges of the switches of every level above the nodes, of its links, and of the nodes."""
        top = len(self.levels.fabric.tiers) - 1
        shares: list[tuple[str, float]] = []
        for level in range(top, 0, -1):
            shares.append((f"tier {level}", 0.9 if level == top else 1.3))
            shares.append((f"links {level}", 2.6 if level == self.levels.at + 1 else 1.3))
        shares.append(("nodes", 2.9))
        bottom = self.frame.bottom - (17 if self.names else 0)
        unit = (bottom - self.frame.top) / sum(share for _, share in shares)
        found, y = {}, self.frame.top
        for name, share in shares:
            found[name] = (y, y + share * unit)
            y += share * unit
        return found

    @cached_property
    def unit(self) -> float:
        """Pixels of one byte/s."""
        top = len(self.levels.fabric.tiers) - 1
        widest = max(
            (float(self.levels.capacity(level).max()) for level in range(1, top + 1)), default=1.0
        )
        return self.levels.row.box / widest

    def key(self, level: int, column: int) -> str:
        """Of the switches of a level in a column."""
        name = self.levels.fabric.tiers[level].name
        numbers = np.flatnonzero(self.levels.columns_of(level) == column)
        first, last = int(numbers[0]), int(numbers[-1])
        return f"{name} {first}" if first == last else f"{name} {first}-{last}"

    def marks(self) -> list[Mark]:
        """Bands first, then what they join."""
        bands: list[Mark] = []
        boxes: list[Mark] = []
        for column, x in enumerate(self.levels.row.centres):
            boxes += self._nodes(column, x)
            for level in range(1, self.levels.at + 1):
                boxes += self._switches(level, column, x)
                bands += self._column_links(level, column, x)
        bands += self._fan()
        boxes += self._tops()
        return [*bands, *boxes, *self._column_names()]

    def _nodes(self, column: int, x: float) -> list[Mark]:
        levels = self.levels
        foot = float(levels.capacity(1)[column]) * self.unit
        width = max(foot, min(levels.row.box, 26.0))
        top, bottom = self.rows["nodes"]
        node_of = levels.whole.group_of(0)[levels.column_of == column]
        nodes = range(int(node_of[0]), int(node_of[-1]) + 1)
        area = (x - width / 2, top, width, bottom - top)
        return self.racks.block(self._block(column), nodes, area)

    def _block(self, column: int) -> str:
        return f"nodes of {self.key(self.levels.at, column)}"

    def _below(self, level: int, column: int) -> str:
        return self.key(level - 1, column) if level > 1 else self._block(column)

    def _switches(self, level: int, column: int, x: float) -> list[Mark]:
        levels = self.levels
        foot = max(1.0, float(levels.capacity(level)[column]) * self.unit)
        head = max(1.0, float(levels.capacity(level + 1)[column]) * self.unit)
        top, bottom = self.rows[f"tier {level}"]
        width = max(foot, head)
        lost = not levels.present[levels.column_of == column].any()
        key = self.key(level, column)
        look = "switch gone" if lost else "switch"
        box = Box(key, look, x - width / 2, top, width, bottom - top, "", (), head, foot)
        marks: list[Mark] = [box, *(cross(box) if lost else [])]
        count = int(levels.groups(level)[column])
        text = f"{count:,} {plural(levels.fabric.tiers[level].name, count)}"
        for words in (text, f"{count:,}"):
            fits = text_width(words, TEXT) * 1.1 + 4 <= (foot + head) / 2 and bottom - top >= 16
            if count > 1 and self.frame.words and fits and not lost:
                middle = (top + bottom) / 2 + (2 if foot > head else 4)
                marks.append(Words(words, "", x, middle + 2, TEXT, "middle", key))
                break
        return marks

    def _column_links(self, level: int, column: int, x: float) -> list[Mark]:
        wide = max(1.0, float(self.levels.capacity(level)[column]) * self.unit)
        top, bottom = self.rows[f"links {level}"]
        upper, lower = self.key(level, column), self._below(level, column)
        points = _band((x, top), wide, (x, bottom), wide)
        return self._band(level, column, points, (lower, upper))

    def _band(
        self, level: int, column: int, points: tuple[Point, ...], ends: tuple[str, str]
    ) -> list[Mark]:
        levels, name = self.levels, self.levels.fabric.tiers[level].name
        whole = int(levels.links(level, levels.whole)[column])
        here = int(levels.links(level, levels.fabric)[column])
        key = " | ".join(ends)
        stands: Stands = ((f"links {name}", here),)
        look = "bundle"
        if levels.ask.loads is not None:
            look = load_look(float(levels.busy(level)[column]), levels.busiest)
        if here == whole:
            return [Band(key, look, points, ends, stands)]
        gone: Stands = ((f"links {name}", whole - here),)
        if not here:
            return [Band(key, "bundle gone", points, ends, gone)]
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = points
        share = (whole - here) / whole
        inner = bx - share * (bx - ax), by, cx - share * (cx - dx), cy
        lost = ((inner[0], by), (bx, by), (cx, cy), (inner[2], cy))
        left = ((ax, ay), (inner[0], by), (inner[2], cy), (dx, dy))
        return [Band(key, look, left, ends, stands), Band(key, "bundle gone", lost, ends, gone)]

    def _fan(self) -> list[Mark]:
        """From every column to the level that joins them, side by side there."""
        levels, level = self.levels, self.levels.at + 1
        top, bottom = self.rows[f"links {level}"]
        wide = np.maximum(levels.capacity(level) * self.unit, 0.6)
        x = (self.frame.left + self.frame.right - float(wide.sum())) / 2
        marks: list[Mark] = []
        for column, foot in enumerate(levels.row.centres):
            own = float(wide[column])
            ends = self._below(level, column), levels.fabric.tiers[level].name
            points = _band((x + own / 2, top), own, (foot, bottom), own)
            marks += self._band(level, column, points, ends)
            x += own
        return marks

    def _tops(self) -> list[Mark]:
        levels = self.levels
        middle = (self.frame.left + self.frame.right) / 2
        wide = float(np.maximum(levels.capacity(levels.at + 1) * self.unit, 0.6).sum())
        marks: list[Mark] = []
        for level in range(levels.at + 1, len(levels.fabric.tiers)):
            top, bottom = self.rows[f"tier {level}"]
            name = levels.fabric.tiers[level].name
            box = Box(name, "switch", middle - wide / 2, top, wide, bottom - top)
            marks.append(box)
            if level > levels.at + 1:
                upper, lower = self.rows[f"links {level}"]
                here = int(levels.links(level, levels.fabric).sum())
                below = levels.fabric.tiers[level - 1].name
                points = _band((middle, upper), wide, (middle, lower), wide)
                stands: Stands = ((f"links {name}", here),)
                marks.append(Band(f"{below} | {name}", "bundle", points, (below, name), stands))
        return marks

    def transfers(self) -> list[Mark]:
        """The first replica's way from stage to stage, and its groups outlined."""
        if self.stages is None:
            return []
        levels, marks = self.levels, list[Mark]()
        groups = self.stages.groups()
        columns = [int(levels.column_of[group[0]]) for group in groups]
        crossing = {c for pair in pairwise(columns) if pair[0] != pair[1] for c in pair}
        fan = {mark.key: mark for mark in self._fan() if isinstance(mark, Band)}
        for column in sorted(crossing):
            x = levels.row.centres[column]
            for level in range(1, levels.at + 1):
                top, bottom = self.rows[f"links {level}"]
                ends = self._below(level, column), self.key(level, column)
                marks += lit(between(*ends), ((x, bottom), (x, top)), ends)
            ends = self._below(levels.at + 1, column), levels.fabric.tiers[levels.at + 1].name
            (a, top), (b, _), (c, bottom), (d, _) = fan[between(*ends)].points
            marks += lit(between(*ends), (((c + d) / 2, bottom), ((a + b) / 2, top)), ends)
        return marks + self._outlines(groups)

    def _outlines(self, groups: Sequence[Sequence[int]]) -> list[Mark]:
        """Around the cells of a tensor group, or the bar that holds them."""
        marks: list[Mark] = []
        for group in groups:
            column = int(self.levels.column_of[group[0]])
            cells = [
                mark
                for mark in self._nodes(column, self.levels.row.centres[column])
                if isinstance(mark, Box) and mark.key in {f"device {at}" for at in group}
            ]
            if len(cells) == len(group):
                left, top = min(c.x for c in cells) - 1, min(c.y for c in cells) - 1
                right = max(c.x + c.width for c in cells) + 1
                bottom = max(c.y + c.height for c in cells) + 1
                area = left, top, right - left, bottom - top
                marks += [Box("", look, *area, cells[0].inside) for look in ("cased", "lit")]
        return marks

    def _column_names(self) -> list[Mark]:
        levels, row = self.levels, self.levels.row
        if not self.names or row.tiled:
            return []
        name = levels.fabric.tiers[levels.at].name
        if self.stages is not None:
            named = self._stage_names(self.stages)
            if named:
                return named
        longest = f"{name} {len(row.counts) - 1}"
        whole = text_width(longest, TEXT) * 1.1 + 6 <= row.pitch
        if not whole and text_width(str(len(row.counts)), TEXT) * 1.1 + 4 > row.pitch:
            return []
        return [
            Words(
                f"{name} {at}" if whole else str(at),
                "soft",
                x,
                self.frame.bottom - 2,
                TEXT,
                "middle",
                self.key(levels.at, at),
            )
            for at, x in enumerate(row.centres)
        ]

    def _stage_names(self, stages: Stages) -> list[Mark]:
        """A bracket below every run of columns of one stage; none where a column has several."""
        levels, marks = self.levels, list[Mark]()
        own = [
            stages.one(np.flatnonzero(levels.column_of == column).tolist())
            for column in range(len(levels.row.counts))
        ]
        if min(own) < 0:
            return []
        half, y = levels.row.box / 2, self.frame.bottom - 14
        for stage in dict.fromkeys(own):
            columns = [at for at, one in enumerate(own) if one == stage]
            if columns[-1] - columns[0] + 1 != len(columns):
                return []
            left = levels.row.centres[columns[0]] - half
            right = levels.row.centres[columns[-1]] + half
            look = f"{stage_look(stage, stages.plan.stages)} bar"
            marks.append(Line(f"stage {stage + 1}", look, ((left, y), (right, y)), 2.5))
            for text in (f"stage {stage + 1}", str(stage + 1)):
                if text_width(text, TEXT) * 1.1 <= right - left:
                    at = (left + right) / 2, self.frame.bottom - 1
                    marks.append(Words(text, "label", *at, TEXT, "middle", f"stage {stage + 1}"))
                    break
        return marks

    def said(self) -> list[Said]:
        """Words of every level and its links, the outermost first."""
        levels, fabric = self.levels, self.levels.fabric
        found: list[Said] = []
        for level in range(len(fabric.tiers) - 1, 0, -1):
            tier, below = fabric.tiers[level], fabric.tiers[level - 1]
            found.append(self._said_tier(level))
            total = int(levels.links(level, fabric).sum())
            lost = int(levels.links(level, levels.whole).sum()) - total
            rate = said_rate(levels.ask.parts.links[level - 1].rate_Gbps / BITS)
            of = f"{total:,} of {total + lost:,}" if lost else f"{total:,}"
            words = [f"{of} {plural('link', total + lost)} of {rate}"]
            if level == levels.at + 1 and not lost:
                each = np.unique(levels.links(level, fabric) // np.array(levels.row.counts))
                if len(each) == 1 and not levels.row.tiled:
                    words = [f"{words[0]}, {int(each[0]):,} from each {below.name}"]
            words += self._true_ratio(level)
            ratio = tier.oversubscription if level > 1 or tier.oversubscription != 1 else None
            edges = self.rows[f"links {level}"]
            found.append(Said(f"links {tier.name}", total, "", tuple(words), *edges, lost, ratio))
        return [*found, *self._said_nodes()]

    def _true_ratio(self, level: int) -> list[str]:
        """What comes in to what goes out, where it is not what is stated."""
        if level < 2:
            return []
        into = float(self.levels.capacity(level - 1).sum())
        ratio = into / float(self.levels.capacity(level).sum())
        stated = self.levels.fabric.tiers[level].oversubscription
        if abs(ratio / stated - 1) < _SAME:
            return []
        name = self.levels.fabric.tiers[level - 1].name
        return [
            f"{ratio:.3g} in, 1 out of a {name}" if ratio >= 1 else f"1 in, {1 / ratio:.3g} out"
        ]

    def _said_tier(self, level: int) -> Said:
        fabric, whole = self.levels.fabric, self.levels.whole
        tier, below = fabric.tiers[level], fabric.tiers[level - 1]
        count = whole.groups[level]
        edges = self.rows[f"tier {level}"]
        if level == len(fabric.tiers) - 1:
            name = f"{tier.name[:1].upper()}{tier.name[1:]}"
            return Said(f"groups {tier.name}", count, name, ("switches not given",), *edges)
        of = f"of {tier.group_size:,} {plural(below.name, tier.group_size)}"
        if tier.group_sizes:
            of = f"of {min(tier.group_sizes):,} to {max(tier.group_sizes):,} {below.name}s"
        tiled = (
            (self.levels.row.said(),) if self.levels.row.tiled and level == self.levels.at else ()
        )
        head = f"{count:,} {plural(tier.name, count)}"
        return Said(f"groups {tier.name}", count, head, (of, *tiled), *edges)

    def _said_nodes(self) -> list[Said]:
        fabric, whole, parts = self.levels.fabric, self.levels.whole, self.levels.ask.parts
        top, bottom = self.rows["nodes"]
        inner, nodes = fabric.tiers[0], whole.groups[0]
        lost = whole.devices - fabric.devices
        size = f"of {inner.group_size:,} {plural('device', inner.group_size)}"
        if inner.group_sizes:
            size = f"of {min(inner.group_sizes):,} to {max(inner.group_sizes):,} devices"
        rate = f"{said_rate(inner.link_bandwidth_Bps)} per device inside"
        gone = nodes - parts.nodes
        of = f"{parts.nodes:,} of {nodes:,}" if gone else f"{nodes:,}"
        devices = f"{fabric.devices:,} of {whole.devices:,}" if lost else f"{fabric.devices:,}"
        middle = (top + bottom) / 2
        head = f"{of} {plural(inner.name, nodes)}"
        tiled = (self.levels.row.said(),) if self.levels.row.tiled and self.levels.at == 0 else ()
        return [
            Said("node", parts.nodes, head, (size, *tiled), top, middle, gone),
            Said("device", fabric.devices, f"{devices} devices", (rate,), middle, bottom, lost),
        ]


def _band(upper: Point, above: float, lower: Point, below: float) -> tuple[Point, ...]:
    return (
        (upper[0] - above / 2, upper[1]),
        (upper[0] + above / 2, upper[1]),
        (lower[0] + below / 2, lower[1]),
        (lower[0] - below / 2, lower[1]),
    )
