"""Fabrics given level by level: columns of the outermost groups, a trapezoid per level in each.

Only what levels say is drawn: how many groups there are and what climbs out of them. A trapezoid is
all switches of a level in its column, as wide at its foot as what comes in, at its head as what
goes out, so that an oversubscribed level is a funnel and a generous one a flare. How many switches
they are is not given, and said so. Columns are the outermost groups that number 2 to 64, else tiles
of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from nest_core.bill.inventory import BITS
from nest_core.fabric import Hierarchical
from nest_core.report.picture.aggregate import row_of
from nest_core.report.picture.ask import Ask
from nest_core.report.picture.fabric_words import count_words, plural, said_rate
from nest_core.report.picture.frame import TEXT, Frame, frame_of, framed
from nest_core.report.picture.hierarchical_levels import (
    Levels,
    legend_entries,
    subtitle_of,
    title_of,
)
from nest_core.report.picture.marks import (
    Band,
    Box,
    Drawn,
    Mark,
    Point,
    Said,
    Stands,
    Words,
    between,
)
from nest_core.report.picture.one_node import node_drawn
from nest_core.report.picture.plan import load_look
from nest_core.report.picture.racks import Paint, Racks, node_words
from nest_core.report.picture.stages import Span, Stages, legend_of, lit, load_words, stages_of
from nest_core.report.picture.switches import cross
from nest_core.report.picture.text import text_width

__all__ = ["hierarchical_drawn"]

_MAX_COLUMNS = 64
_SAME = 0.01


def hierarchical_drawn(fabric: Hierarchical, ask: Ask) -> Drawn:
    """Draw a hierarchy."""
    whole = replace(fabric, missing=())
    top = len(fabric.tiers) - 1
    if not top:
        return node_drawn(fabric, ask)
    at = next((t for t in range(top - 1, -1, -1) if 2 <= whole.groups[t] <= _MAX_COLUMNS), top - 1)
    frame = frame_of(ask.width)
    row = row_of(whole.groups[at], frame.left, frame.right, max_boxes=_MAX_COLUMNS)
    levels = Levels(fabric, ask, row, at)
    sketch = _Sketch(levels, frame, *stages_of(ask, whole.devices, fabric.place_of()))
    words = load_words(ask, (title_of(fabric), subtitle_of(fabric)), levels.busiest)
    marks = sketch.marks()
    legend = legend_of(ask, levels.busiest, legend_entries(fabric, at), marks)
    return framed(frame, words, marks, sketch.said(node_words(marks)), legend)


@dataclass(frozen=True, slots=True)
class _Place:
    """The switches of a level in a column, or all of a level above the columns.

    Parameters
    ----------
    key : str
    x : float
        Middle.
    foot, head : float
        Widths.
    """

    key: str
    x: float
    foot: float
    head: float


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
    def has_names(self) -> bool:
        """Whether columns have their names below."""
        return self.frame.words and self.levels.row.pitch >= 15

    @property
    def top(self) -> int:
        """The outermost level."""
        return len(self.levels.fabric.tiers) - 1

    @cached_property
    def rows(self) -> dict[str, tuple[float, float]]:
        """Edges of the switches of every level above the nodes, of its links, and of the nodes."""
        shares: list[tuple[str, float]] = []
        for level in range(self.top, 0, -1):
            shares.append((f"tier {level}", 0.9 if level == self.top else 1.3))
            shares.append((f"links {level}", 2.6 if level == self.levels.at + 1 else 1.3))
        shares.append(("nodes", 2.9))
        bottom = self.frame.bottom - (17 if self.has_names else 0)
        unit = (bottom - self.frame.top) / sum(share for _, share in shares)
        rows, y = {}, self.frame.top
        for name, share in shares:
            rows[name] = (y, y + share * unit)
            y += share * unit
        return rows

    @cached_property
    def unit(self) -> float:
        """Pixels of one byte/s."""
        levels = range(1, self.top + 1)
        widest = max(float(self.levels.capacity(level).max()) for level in levels)
        return self.levels.row.box / widest

    def place(self, level: int, column: int) -> _Place:
        """Where the switches of a level are that serve a column; level 0: the nodes."""
        levels = self.levels
        if level > levels.at:
            middle = (self.frame.left + self.frame.right) / 2
            wide = float(self._fan.sum())
            return _Place(levels.fabric.tiers[level].name, middle, wide, wide)
        x = levels.row.centres[column]
        head = max(1.0, float(levels.capacity(level + 1)[column]) * self.unit)
        if not level:
            return _Place(f"nodes of {self.key(levels.at, column)}", x, head, head)
        foot = max(1.0, float(levels.capacity(level)[column]) * self.unit)
        return _Place(self.key(level, column), x, foot, head)

    @cached_property
    def _fan(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Widths of what climbs from every column to the level that joins them."""
        return np.maximum(self.levels.capacity(self.levels.at + 1) * self.unit, 0.6)

    def key(self, level: int, column: int) -> str:
        """Name the groups of a level in a column."""
        name = self.levels.fabric.tiers[level].name
        numbers = np.flatnonzero(self.levels.columns_of(level) == column)
        first, last = int(numbers[0]), int(numbers[-1])
        return f"{name} {first}" if first == last else f"{name} {first}-{last}"

    def marks(self) -> list[Mark]:
        """Links first, then what they join."""
        links: list[Mark] = []
        boxes: list[Mark] = []
        for column in range(len(self.levels.row.counts)):
            boxes += self._nodes(column)
            for level in range(1, self.levels.at + 1):
                boxes += self._switches(level, column)
            for level in range(1, self.levels.at + 2):
                links += self._links(level, column)
        for level in range(self.levels.at + 1, self.top + 1):
            boxes += self._switches(level, -1)
            links += self._links(level, -1) if level > self.levels.at + 1 else []
        marks = [*links, *boxes]
        if self.stages is not None:
            marks += self._transfers(self.stages) + self.stages.outlines(marks)
        return [*marks, *(self._column_names() if self.has_names else [])]

    def _nodes(self, column: int) -> list[Mark]:
        place = self.place(0, column)
        width = max(place.foot, min(self.levels.row.box, 26.0))
        top, bottom = self.rows["nodes"]
        node_of = self.levels.whole.group_of(0)[self.levels.column_of == column]
        nodes = range(int(node_of[0]), int(node_of[-1]) + 1)
        return self.racks.block(place.key, nodes, (place.x - width / 2, top, width, bottom - top))

    def _switches(self, level: int, column: int) -> list[Mark]:
        levels, place = self.levels, self.place(level, column)
        top, bottom = self.rows[f"tier {level}"]
        width = max(place.foot, place.head)
        area = (place.x - width / 2, top, width, bottom - top)
        if column < 0:
            return [Box(place.key, "switch", *area)]
        lost = not levels.present[levels.column_of == column].any()
        look = "switch gone" if lost else "switch"
        box = Box(place.key, look, *area, "", (), place.head, place.foot)
        count, room = int(levels.groups(level)[column]), (place.foot + place.head) / 2
        if lost or count == 1 or not self.frame.words or bottom - top < 16:
            return [box, *(cross(box) if lost else [])]
        text = f"{count:,} {plural(levels.fabric.tiers[level].name, count)}"
        fits = (t for t in (text, f"{count:,}") if text_width(t, TEXT) * 1.1 + 4 <= room)
        y = (top + bottom) / 2 + (4 if place.foot > place.head else 6)
        words = (Words(t, "", place.x, y, TEXT, "middle", place.key) for t in fits)
        return [box, *[*words][:1]]

    def _way(self, level: int, column: int) -> tuple[Point, Point, float]:
        """Upper and lower middle of the links into a level from a column, and their width."""
        top, bottom = self.rows[f"links {level}"]
        upper, lower = self.place(level, column), self.place(level - 1, column)
        if level != self.levels.at + 1 or column < 0:
            return (upper.x, top), (lower.x, bottom), upper.foot
        before, width = float(self._fan[:column].sum()), float(self._fan[column])
        return (upper.x - upper.foot / 2 + before + width / 2, top), (lower.x, bottom), width

    def _ends(self, level: int, column: int) -> tuple[str, str]:
        return self.place(level - 1, column).key, self.place(level, column).key

    def _links(self, level: int, column: int) -> list[Mark]:
        """Draw the links into a level from a column, −1: all; what is gone of them at the right."""
        levels, name = self.levels, self.levels.fabric.tiers[level].name
        counts = levels.links(level, levels.whole), levels.links(level, levels.fabric)
        whole, here = (int(of.sum() if column < 0 else of[column]) for of in counts)
        (x, top), (below, bottom), width = self._way(level, column)
        look, ends = "bundle", self._ends(level, column)
        if levels.ask.loads is not None:
            busy = levels.busy(level)
            look = load_look(float(busy.max() if column < 0 else busy[column]), levels.busiest)
        marks: list[Mark] = []
        start = 0.0
        for part, count in ((look, here), ("bundle gone", whole - here)):
            if count:
                end = start + count / whole
                left, right = (start - 0.5) * width, (end - 0.5) * width
                area = (
                    (x + left, top),
                    (x + right, top),
                    (below + right, bottom),
                    (below + left, bottom),
                )
                stands: Stands = ((f"links {name}", count),)
                marks.append(Band(between(*ends), part, area, ends, stands))
                start = end
        return marks

    def _transfers(self, stages: Stages) -> list[Mark]:
        """Light the first replica's way from stage to stage."""
        columns = [int(self.levels.column_of[group[0]]) for group in stages.groups()]
        crossing = {c for pair in pairwise(columns) if pair[0] != pair[1] for c in pair}
        marks: list[Mark] = []
        for column in sorted(crossing):
            for level in range(1, self.levels.at + 2):
                upper, lower, _ = self._way(level, column)
                ends = self._ends(level, column)
                marks += lit(between(*ends), (lower, upper), ends)
        return marks

    def _column_names(self) -> list[Mark]:
        levels, row = self.levels, self.levels.row
        name, y = levels.fabric.tiers[levels.at].name, self.frame.bottom
        if self.stages is not None:
            spans, half = [], row.box / 2
            for at, x in enumerate(row.centres):
                numbers = range(row.first[at], row.first[at] + row.counts[at])
                devices = np.flatnonzero(levels.column_of == at).tolist()
                spans.append(Span(x - half, x + half, numbers, devices))
            if marks := self.stages.brackets(spans, name, y - 14.5):
                return marks
        longest = f"{name} {len(row.counts) - 1}"
        is_whole = text_width(longest, TEXT) * 1.1 + 6 <= row.pitch
        if row.tiled or text_width(str(len(row.counts)), TEXT) * 1.1 + 4 > row.pitch:
            return []
        texts = (f"{name} {at}" if is_whole else str(at) for at in range(len(row.counts)))
        return [
            Words(text, "soft", x, y - 2, TEXT, "middle", self.key(levels.at, at))
            for at, (text, x) in enumerate(zip(texts, row.centres, strict=True))
        ]

    def said(self, nodes: str) -> list[Said]:
        """Words of every level and its links, the outermost first."""
        levels, fabric = self.levels, self.levels.fabric
        result: list[Said] = []
        for level in range(len(fabric.tiers) - 1, 0, -1):
            tier, below = fabric.tiers[level], fabric.tiers[level - 1]
            result.append(self._said_tier(level))
            total = int(levels.links(level, fabric).sum())
            lost = int(levels.links(level, levels.whole).sum()) - total
            rate = said_rate(levels.ask.parts.links[level - 1].rate_Gbps / BITS)
            words = [f"{count_words(total, lost, 'link')} of {rate}"]
            if level == levels.at + 1 and not lost:
                each = np.unique(levels.links(level, fabric) // np.array(levels.row.counts))
                if len(each) == 1 and not levels.row.tiled:
                    words = [f"{words[0]}, {int(each[0]):,} from each {below.name}"]
            words += self._true_ratio(level)
            ratio = tier.oversubscription if level > 1 or tier.oversubscription != 1 else None
            edges = self.rows[f"links {level}"]
            result.append(Said(f"links {tier.name}", total, "", tuple(words), *edges, lost, ratio))
        return [*result, *self._said_nodes(nodes)]

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
        head = count_words(count, 0, tier.name)
        return Said(f"groups {tier.name}", count, head, (of, *tiled), *edges)

    def _said_nodes(self, nodes_drawn: str) -> list[Said]:
        fabric, whole, parts = self.levels.fabric, self.levels.whole, self.levels.ask.parts
        top, bottom = self.rows["nodes"]
        inner, nodes = fabric.tiers[0], whole.groups[0]
        lost = whole.devices - fabric.devices
        size = f"of {inner.group_size:,} {plural('device', inner.group_size)}"
        if inner.group_sizes:
            size = f"of {min(inner.group_sizes):,} to {max(inner.group_sizes):,} devices"
        rate = f"{said_rate(inner.link_bandwidth_Bps)} per device inside"
        gone = nodes - parts.nodes
        devices = count_words(fabric.devices, lost, "device")
        middle = (top + bottom) / 2
        head = count_words(parts.nodes, gone, inner.name)
        tiled = (nodes_drawn,) if nodes_drawn else ()
        return [
            Said("node", parts.nodes, head, (size, *tiled), top, middle, gone),
            Said("device", fabric.devices, devices, (rate,), middle, bottom, lost),
        ]
