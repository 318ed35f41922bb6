"""Dragonflies: a column per group with its nodes, and an arc for every pair of groups.

A group is as wide at its foot as the links of its nodes, at its head as its global links. Groups
that have no room are tiles; what links the groups of a tile is counted with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from nest_core.fabric import Dragonfly
from nest_core.network import DragonflyLinkMap
from nest_core.report.picture.aggregate import BoxRow, opacity, row_of, tile_words
from nest_core.report.picture.frame import Frame, frame_of
from nest_core.report.picture.marks import (
    Drawn,
    Line,
    Mark,
    Point,
    Swatch,
    TierLabel,
    between,
    count_words,
    rate_words,
)
from nest_core.report.picture.plan import (
    DrawOptions,
    PlanOnDevices,
    framed_plan,
    lit,
    load_look,
    paint_of,
)
from nest_core.report.picture.racks import GroupColumns, NodeBoxes, Paint, node_words
from nest_core.report.picture.switches import arc

__all__ = ["dragonfly_drawn"]

_MAX_COLUMNS = 36
"""Most columns: every pair of them has a line."""
_MIN_WIDTH = 2.2


def dragonfly_drawn(fabric: Dragonfly, options: DrawOptions) -> Drawn:
    """Draw a dragonfly."""
    frame = frame_of(options.width)
    stages, paint = paint_of(options, fabric.devices, np.arange(fabric.devices))
    row = row_of(fabric.groups, frame.start, frame.end, max_boxes=_MAX_COLUMNS)
    drawing = _Groups(fabric, frame, row, paint)
    busy = _busy(fabric, options)
    busiest = float(busy.max())
    looks = {}
    if busiest:
        shares = np.maximum.reduceat(np.maximum.reduceat(busy, row.first, 0), row.first, 1)
        looks = {pair: load_look(float(shares[pair]), busiest) for pair in drawing.pairs}
    marks = [
        *drawing.arcs(looks),
        *drawing.columns_drawn(),
        *([] if stages is None else drawing.transfers(stages)),
    ]
    words, labels = (_title(fabric), _subtitle(fabric)), drawing.labels(node_words(marks))
    return framed_plan(
        options,
        words,
        marks,
        labels,
        [
            *([Swatch("line", "link", "links of two groups")] if fabric.groups > 1 else []),
            Swatch("funnel", "switch", "group: foot is its NICs, head its global links"),
            Swatch("box", "device", "device"),
        ],
        busiest,
    )


@dataclass(frozen=True)
class _Groups:
    """Where groups stand, and their marks."""

    fabric: Dragonfly
    frame: Frame
    row: BoxRow
    paint: Paint

    @cached_property
    def edges(self) -> dict[str, tuple[float, float]]:
        """Top and bottom of the arcs, the groups, the links of nodes, and the nodes."""
        top, down = self.frame.top, self.frame.down
        ends = top + 0.56 * down, top + 0.56 * down + min(20.0, 0.07 * down)
        below = ends[1] + 0.1 * down
        return {
            "links global": (top, ends[0]),
            "tier 1": ends,
            "links 1": (ends[1], below),
            "nodes": (below, self.frame.bottom),
        }

    @cached_property
    def columns(self) -> GroupColumns:
        """Where everything stands."""
        fabric, row = self.fabric, self.row
        nodes = fabric.routers_per_group * fabric.nodes_per_router
        foot = nodes * fabric.nics_per_node * fabric.nic_bandwidth_Bps
        head = fabric.links_per_pair * (fabric.groups - 1) * fabric.global_bandwidth_Bps
        room = row.box / max(foot, head) / max(row.counts)
        keys = tuple(row.key("group", at) for at in range(len(row.counts)))
        widths = np.maximum(_MIN_WIDTH, room * np.outer((foot, head), row.counts))
        return GroupColumns(
            self.frame,
            row,
            (tuple(f"nodes of {key}" for key in keys), keys),
            widths,
            self.edges,
            [nodes * first for first in (*row.first, fabric.groups)],
            NodeBoxes(
                np.arange(fabric.nodes + 1) * fabric.devices_per_node,
                np.ones(fabric.devices, bool),
                self.paint,
            ),
        )

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Every two columns."""
        return list(combinations(range(len(self.row.counts)), 2))

    def _way(self, a: int, b: int) -> tuple[Point, ...]:
        top, y = self.edges["links global"]
        start, end = self.row.centres[a], self.row.centres[b]
        span = (end - start) / max(self.row.pitch, self.frame.across - self.row.pitch)
        return arc(start, end, y, (y - top - 2) * min(1.0, 0.12 + 0.88 * span))

    def arcs(self, loads: Mapping[tuple[int, int], str]) -> Iterator[Mark]:
        """Draw the links between groups."""
        keys, counts = self.columns.keys[1], self.row.counts
        lines = max(1, len(self.pairs))
        width = min(1.6, max(0.6, 220.0 / lines))
        top, bottom = self.edges["links global"]
        across = self.frame.across
        shade = opacity(across * (bottom - top), lines, width, 0.5 * across)
        for a, b in self.pairs:
            ends, links = (keys[a], keys[b]), counts[a] * counts[b] * self.fabric.links_per_pair
            yield Line(
                between(*ends),
                f"link {loads.get((a, b), '')}".strip(),
                self._way(a, b),
                width,
                ends,
                (("links global", links),),
                max(shade, 0.5) if loads else shade,
            )

    def columns_drawn(self) -> Iterator[Mark]:
        """Draw groups, the links of their nodes, and these."""
        fabric, columns = self.fabric, self.columns
        routers = fabric.routers_per_group
        nics = routers * fabric.nodes_per_router * fabric.nics_per_node
        for column, (first, count) in enumerate(zip(self.row.first, self.row.counts, strict=True)):
            text = str(first) if count == 1 else f"{count:,}"
            holds = (
                ("router", count * routers),
                ("links local", count * routers * (routers - 1) // 2),
                ("links global", count * (count - 1) // 2 * fabric.links_per_pair),
            )
            stands = tuple(entry for entry in holds if entry[1])
            yield from (
                *columns.switches(1, column, (text,), stands),
                *columns.links(1, column, "links node", (count * nics, 0)),
                *columns.nodes(column),
            )

    def transfers(self, stages: PlanOnDevices) -> list[Mark]:
        """Light the first replica's way from stage to stage, where it leaves a group."""
        column_of = np.repeat(np.arange(len(self.row.counts)), self.row.counts)
        pairs = self.columns.crossings(stages.groups, column_of[self.fabric.group_of()])
        keys = self.columns.keys[1]
        return [
            mark
            for a, b in pairs
            for mark in lit(between(keys[a], keys[b]), self._way(a, b), (keys[a], keys[b]))
        ]

    def labels(self, nodes: str) -> list[TierLabel]:
        """Return the words of every row."""
        fabric = self.fabric
        a, p, h = fabric.routers_per_group, fabric.nodes_per_router, fabric.global_links_per_router
        per_pair, groups = fabric.links_per_pair, fabric.groups
        out, inside = per_pair * (groups - 1), a * (a - 1) // 2
        nics = fabric.nodes * fabric.nics_per_node
        ports = f"{p * fabric.nics_per_node} NICs, {a - 1} local, {min(h, out)} global"
        links = (
            f"{count_words(nics, 0, 'link')} of {rate_words(fabric.nic_bandwidth_Bps)} to routers"
        )
        size = f"of {fabric.devices_per_node:,} devices" if fabric.devices_per_node > 1 else ""
        above = f"{per_pair:,} per pair of groups; {out:,} leave each group"
        rows = [
            ("links global", per_pair * groups * (groups - 1) // 2, "global link", (above,)),
            ("group", groups, "group", (f"{a:,} routers each", tile_words(self.row.counts))),
            ("router", fabric.routers, "router", (f"of {fabric.radix} ports: {ports}",)),
            ("links local", groups * inside, "local link", (f"{inside:,} in each group",)),
            ("links node", nics, "", (links,)),
            ("node", fabric.nodes, "node", (size, nodes)),
            ("device", fabric.devices if size else 0, "device", ()),
        ]
        edges = {
            "links global": "links global",
            "links node": "links 1",
            "node": "nodes",
            "device": "nodes",
        }
        return [
            TierLabel(
                what,
                count,
                count_words(count, 0, name) if name else "",
                tuple(filter(None, words)),
                *self.edges[edges.get(what, "tier 1")],
            )
            for what, count, name, words in rows
            if count
        ]


def _busy(fabric: Dragonfly, options: DrawOptions) -> npt.NDArray[np.float64]:
    """Busy share of the fullest global link from one group to another, shape (groups, groups)."""
    groups, per_pair, loads = fabric.groups, fabric.links_per_pair, options.loads
    # Under an engine's tables cables are numbered otherwise.
    if not (loads and per_pair and isinstance(loads.network.link_map, DragonflyLinkMap)):
        return np.zeros((groups, groups))
    # Global links are the last of the link map, by group, group and link.
    ways = loads.busy[-groups * groups * per_pair :]
    ways = ways.reshape(groups, groups, per_pair).max(axis=2)
    return np.asarray(np.maximum(ways, ways.T))


def _title(fabric: Dragonfly) -> str:
    several = fabric.routers_per_group > 1
    local = "any two routers of a group one local link" if several else "each of one router"
    return (
        f"One group: {local.replace(' of a group', '')} apart"
        if fabric.groups == 1
        else f"Any two of {fabric.groups:,} groups are one global link apart, {local}"
    )


def _subtitle(fabric: Dragonfly) -> str:
    near, far = (rate_words(r) for r in (fabric.local_bandwidth_Bps, fabric.global_bandwidth_Bps))
    rates = f"all links of {near}" if near == far else f"local links of {near}, global of {far}"
    a, p, h = fabric.routers_per_group, fabric.nodes_per_router, fabric.global_links_per_router
    return f"{fabric.devices:,} devices; a = {a}, p = {p}, h = {h}; {rates}"
