"""Fabrics given level by level: columns of the outermost groups, a trapezoid per level in each.

Only what levels say is drawn: how many groups there are and what climbs out of them. How many
switches they are is not given, and said so. Groups that have no room are tiles.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nest_core.bill.inventory import BITS
from nest_core.documents.units import format_ratio
from nest_core.fabric import BoolArray, Hierarchical, IntArray, Tier
from nest_core.network import FloatArray
from nest_core.report.picture.aggregate import BoxRow, row_of, tile_words
from nest_core.report.picture.frame import TEXT, Frame, frame_of, stacked_edges
from nest_core.report.picture.marks import (
    Drawn,
    Mark,
    Swatch,
    TierLabel,
    Words,
    between,
    count_words,
    plural,
    rate_words,
    span_words,
    text_width,
)
from nest_core.report.picture.plan import (
    BoxSpan,
    DrawOptions,
    PlanOnDevices,
    framed_plan,
    lit,
    load_look,
    paint_of,
    tier_busy,
)
from nest_core.report.picture.racks import GroupColumns, NodeBoxes, Paint, node_words

__all__ = ["hierarchical_drawn"]

_MAX_COLUMNS = 64
_SAME = 0.01
_OVER = 1.1
_SUBTITLE = "devices, given as levels. Width is capacity: in at the foot, out at the head"


def hierarchical_drawn(fabric: Hierarchical, options: DrawOptions) -> Drawn:
    """Draw a hierarchy."""
    full = replace(fabric, missing=())
    frame = frame_of(options.width)
    row = row_of(
        full.groups[max(0, len(fabric.tiers) - 2)], frame.start, frame.end, max_boxes=_MAX_COLUMNS
    )
    stages, paint = paint_of(options, full.devices, fabric.place_of())
    drawing = _Hierarchy(fabric, full, options, frame, row, paint)
    marks, words = drawing.marks(stages), (_title(fabric), f"{fabric.devices:,} {_SUBTITLE}")
    labels = drawing.labels(node_words(marks))
    is_deep, failed = len(fabric.tiers) > 2, Swatch("box", "device gone", "crossed: failed")
    return framed_plan(
        options,
        words,
        marks,
        labels,
        [
            *([Swatch("funnel", "switch", "switches of a level")] if is_deep else []),
            Swatch("box", "device", "devices"),
            Swatch("box", "bundle", "links"),
            *([failed] if fabric.missing else []),
        ],
        drawing.busiest,
    )


@dataclass(frozen=True)
class _Hierarchy:
    """What levels hold column by column, and its marks.

    Parameters
    ----------
    fabric, full : Hierarchical
        As it is, and if nothing had failed.
    row : BoxRow
        Columns: groups of the level below the outermost.
    """

    fabric: Hierarchical
    full: Hierarchical
    options: DrawOptions
    frame: Frame
    row: BoxRow
    paint: Paint

    @property
    def top(self) -> int:
        """The outermost level."""
        return len(self.fabric.tiers) - 1

    @cached_property
    def column_of(self) -> IntArray:
        """Column of every device, failed ones counted."""
        columns = np.repeat(np.arange(len(self.row.counts)), self.row.counts)
        return np.asarray(columns[self.full.group_of(max(0, self.top - 1))], np.int64)

    def _columns_of(self, level: int) -> IntArray:
        """Return the column of every group of a level."""
        columns = np.zeros(self.full.groups[level], np.int64)
        columns[self.full.group_of(level)] = self.column_of
        return columns

    @cached_property
    def present(self) -> BoolArray:
        """Whether each device is present."""
        return np.isin(np.arange(self.full.devices), self.fabric.place_of())

    def _by_column(self, level: int, values: FloatArray) -> FloatArray:
        return np.bincount(
            self._columns_of(level - 1), values, minlength=len(self.row.counts)
        ).astype(np.float64)

    def _capacity(self, level: int) -> FloatArray:
        """Return what climbs into a level, bytes/s by column, nothing failed."""
        return self._by_column(level, self.full.capacity_Bps(level))

    def _links(self, level: int, fabric: Hierarchical) -> IntArray:
        """Return links into a level by column, as the bill counts them."""
        tier = fabric.tiers[level]
        parallel = round(tier.bandwidth_Bps * BITS / self.options.parts.links[level - 1].rate_Gbps)
        uplinks = fabric.uplinks(level) * (parallel / tier.oversubscription)
        return self._by_column(level, np.ceil(uplinks - 1e-6)).astype(np.int64)

    def _busy(self, level: int) -> FloatArray:
        """Return the busy share of the fullest link into a level, by column."""
        result = np.zeros(len(self.row.counts))
        if self.options.loads is not None:
            np.maximum.at(
                result, self.column_of[self.present], tier_busy(self.options.loads, level)
            )
        return result

    @cached_property
    def busiest(self) -> float:
        """The same of the fullest link of all."""
        return max(
            (float(self._busy(level).max()) for level in range(1, self.top + 1)), default=0.0
        )

    @cached_property
    def columns(self) -> GroupColumns:
        """Where everything stands."""
        starts = np.searchsorted(self.full.group_of(0), np.arange(self.full.groups[0] + 1)).astype(
            np.int64
        )
        counts = np.bincount(self._columns_of(0), minlength=len(self.row.counts))
        keys = [self._keys(level) for level in range(self.top)]
        nodes = [f"nodes of {key}" for key in (keys[-1] if keys else ("all",))]
        levels = range(1, self.top + 1)
        widths = np.stack([self._capacity(level) for level in levels] or [np.ones(1)])
        widths = np.maximum(widths * self.row.box / widths.max(), 1.0)
        return GroupColumns(
            self.frame,
            self.row,
            (tuple(nodes), *keys[1:], (self.fabric.tiers[-1].name,)),
            widths,
            self._edges(),
            np.cumsum([0, *counts]).tolist(),
            NodeBoxes(starts, self.present, self.paint),
        )

    def _keys(self, level: int) -> tuple[str, ...]:
        """Name the groups of a level in every column."""
        name, columns = self.fabric.tiers[level].name, self._columns_of(level)
        counts = np.bincount(columns, minlength=len(self.row.counts))
        numbers = BoxRow(tuple(counts.tolist()), (), 0.0, 0.0)
        return tuple(
            numbers.key(name, column, self.fabric.tiers[level].names)
            for column in range(len(counts))
        )

    def _edges(self) -> dict[str, tuple[float, float]]:
        """Edges of the switches of every level above the nodes, of its links, and of the nodes."""
        shares: list[tuple[str, float]] = []
        for level in range(self.top, 0, -1):
            is_top = level == self.top
            shares += [
                (f"tier {level}", 0.9 if is_top else 1.3),
                (f"links {level}", 2.6 if is_top else 1.3),
            ]
        shares.append(("nodes", 2.9))
        bottom = self.frame.bottom - (17 if self.has_names else 0)
        unit = (bottom - self.frame.top) / sum(share for _, share in shares)
        return stacked_edges(self.frame.top, [(name, share * unit) for name, share in shares])

    @property
    def has_names(self) -> bool:
        """Whether columns have their names below."""
        return self.frame.words and self.row.pitch >= 15 and self.top > 0

    def marks(self, stages: PlanOnDevices | None) -> list[Mark]:
        """Draw links first, then what they join."""
        columns, fabric = self.columns, self.fabric
        links, boxes = list[Mark](), list[Mark]()
        for level in range(1, self.top + 1):
            here, total = self._links(level, fabric), self._links(level, self.full)
            busy, of = self._busy(level), f"links {fabric.tiers[level].name}"
            for column, count in enumerate(here.tolist()):
                is_loaded = self.options.loads is not None
                look = load_look(float(busy[column]), self.busiest) if is_loaded else "bundle"
                links += columns.links(level, column, of, (count, int(total[column]) - count), look)
                if level < self.top:
                    boxes += self._switches(level, column)
        nodes = [mark for at in range(len(self.row.counts)) for mark in columns.nodes(at)]
        marks = [*links, *boxes, *nodes, *(columns.bar() if self.top else [])]
        if stages is not None:
            marks += [*self._transfers(stages), *stages.outlines(marks)]
        return [*marks, *(self._names(stages) if self.has_names else [])]

    def _switches(self, level: int, column: int) -> list[Mark]:
        count = int((self._columns_of(level) == column).sum())
        name = plural(self.fabric.tiers[level].name, count)
        lost = not self.present[self.column_of == column].any()
        texts = () if count == 1 else (f"{count:,} {name}", f"{count:,}")
        return self.columns.switches(level, column, texts, look="switch gone" if lost else "switch")

    def _transfers(self, stages: PlanOnDevices) -> Iterator[Mark]:
        """Light the first replica's way from stage to stage."""
        pairs = self.columns.crossings(stages.groups, self.column_of)
        for column in sorted({column for pair in pairs for column in pair}):
            for level in range(1, self.top + 1):
                upper, lower, _ = self.columns.way(level, column)
                ends = self.columns.ends(level, column)
                yield from lit(between(*ends), (lower, upper), ends)

    def _names(self, stages: PlanOnDevices | None) -> list[Mark]:
        """Name columns, or the stages that they hold."""
        row, y, half = self.row, self.frame.bottom, self.row.box / 2
        name = self.fabric.tiers[self.top - 1].name
        if stages is not None:
            devices = [
                np.flatnonzero(self.column_of == column).tolist()
                for column in range(len(row.counts))
            ]
            spans = [
                BoxSpan(x - half, x + half, range(first, first + count), members)
                for x, first, count, members in zip(
                    row.centres, row.first, row.counts, devices, strict=True
                )
            ]
            if marks := stages.brackets(spans, name, y - 14.5):
                return marks
        given = self.fabric.tiers[self.top - 1].names
        texts = [row.key(name, at, given) for at in range(len(row.counts))]
        if text_width(texts[-1], TEXT) * 1.1 + 6 > row.pitch:
            texts = [text.split()[-1] for text in texts]
        if max(text_width(text, TEXT) for text in texts) * 1.1 + 4 > row.pitch:
            return []
        keys = self._keys(self.top - 1)
        return [
            Words(text, "soft", x, y - 2, TEXT, "middle", key)
            for text, x, key in zip(texts, row.centres, keys, strict=True)
        ]

    def labels(self, nodes: str) -> list[TierLabel]:
        """Return the words of every level and its links, the outermost first."""
        fabric, labels = self.fabric, list[TierLabel]()
        for level in range(self.top, 0, -1):
            tier, below = fabric.tiers[level], fabric.tiers[level - 1]
            labels.append(self._tier_label(level))
            here = self._links(level, fabric)
            total = int(here.sum())
            lost = int(self._links(level, self.full).sum()) - total
            rate = rate_words(self.options.parts.links[level - 1].rate_Gbps / BITS)
            words = f"{count_words(total, lost, 'link')} of {rate}"
            if (
                level == self.top
                and not lost
                and not self.row.tiled
                and len(set(here.tolist())) == 1
            ):
                words += f", {int(here[0]):,} from each {below.name}"
            ratio = tier.oversubscription if level > 1 or tier.oversubscription != 1 else None
            edges = self.columns.edges[f"links {level}"]
            lines = tuple(filter(None, (words, self._true_ratio(level))))
            labels.append(TierLabel(f"links {tier.name}", total, "", lines, *edges, lost, ratio))
        return [*labels, *self._node_labels(nodes)]

    def _true_ratio(self, level: int) -> str:
        """Say what comes in to what goes out, where it is not what is stated."""
        if level < 2:
            return ""
        ratio = float(self._capacity(level - 1).sum() / self._capacity(level).sum())
        if abs(ratio / self.fabric.tiers[level].oversubscription - 1) < _SAME:
            return ""
        name = self.fabric.tiers[level - 1].name
        return f"{ratio:.3g} in, 1 out of a {name}" if ratio >= 1 else f"1 in, {1 / ratio:.3g} out"

    def _tier_label(self, level: int) -> TierLabel:
        tier, below = self.fabric.tiers[level], self.fabric.tiers[level - 1]
        count, edges = self.full.groups[level], self.columns.edges[f"tier {level}"]
        head, words = count_words(count, 0, tier.name), [_size(tier, below.name)]
        if level == self.top:
            head, words = f"{tier.name[:1].upper()}{tier.name[1:]}", ["switches not given"]
        elif level == self.top - 1:
            words.append(tile_words(self.row.counts))
        return TierLabel(f"groups {tier.name}", count, head, tuple(filter(None, words)), *edges)

    def _node_labels(self, nodes: str) -> list[TierLabel]:
        inner, present = self.fabric.tiers[0], self.options.parts.nodes
        top, bottom = self.columns.edges["nodes"]
        middle = (top + bottom) / 2
        gone, lost = self.full.groups[0] - present, self.full.devices - self.fabric.devices
        rate = (
            f"{rate_words(inner.link_bandwidth_Bps)} per device inside"
            f"{', assumed' if self.fabric.assumed_inside_Bps else ''}"
        )
        words = (_size(inner, "device"), *([nodes] if nodes else []))
        head = count_words(present, gone, inner.name)
        devices = count_words(self.fabric.devices, lost, "device")
        return [
            TierLabel("node", present, head, words, top, middle, gone),
            TierLabel("device", self.fabric.devices, devices, (rate,), middle, bottom, lost),
        ]


def _size(tier: Tier, name: str) -> str:
    """Say how many parts a group of a level has."""
    sizes = tier.group_sizes or (tier.group_size,)
    return f"of {span_words(sizes)} {plural(name, max(sizes))}"


def _title(fabric: Hierarchical) -> str:
    tiers = fabric.tiers
    shares = [_shares(fabric, level) for level in range(len(tiers))]
    rates = [
        f"{'' if np.ptp(share) <= _SAME * share.max() else 'at least '}{rate_words(share.min())}"
        for share in shares
    ]
    worst = max(range(len(tiers)), key=lambda level: tiers[level].oversubscription)
    if worst and tiers[worst].oversubscription > _OVER:
        between_groups = f"between {plural(tiers[worst - 1].name, 2)}"
        of = f" of its {rate_words(shares[1].max())}" if worst > 1 else ""
        ratio = format_ratio(tiers[worst].oversubscription)
        return f"{ratio} {between_groups}: a device keeps {rates[worst]}{of} there"
    parts = [
        f"{rates[level]} {'at the' if level else 'in its'} {tiers[level].name}"
        for level in range(len(rates))
        if level < 2 or rates[level] != rates[level - 1]
    ]
    return f"A device has {', '.join(parts)}"


def _shares(fabric: Hierarchical, level: int) -> FloatArray:
    """Return what a device of every group has into a level where all send, bytes/s."""
    children = fabric.group_of(level - 1) if level else np.arange(fabric.devices)
    members = np.bincount(children, minlength=fabric.groups[level - 1] if level else 0)
    return np.asarray(fabric.capacity_Bps(level)[members > 0] / members[members > 0])
