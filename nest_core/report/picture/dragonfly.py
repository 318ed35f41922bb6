"""Dragonflies: a column per group with its routers and nodes, and an arc for every pair of groups.

A group is as wide at its foot as the links of its nodes, at its head as its global links. Groups
that have no room are tiles; what links the groups of a tile is counted with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nest_core.fabric import Dragonfly
from nest_core.report.picture.aggregate import Row, opacity, row_of
from nest_core.report.picture.ask import Ask
from nest_core.report.picture.fabric_words import count_words, said_rate
from nest_core.report.picture.frame import TEXT, Frame, frame_of, framed
from nest_core.report.picture.marks import (
    Band,
    Box,
    Drawn,
    Line,
    Mark,
    Point,
    Said,
    Swatch,
    Words,
    between,
)
from nest_core.report.picture.meshes import arc
from nest_core.report.picture.plan import load_look
from nest_core.report.picture.racks import Paint, Racks, node_words
from nest_core.report.picture.stages import Stages, legend_of, lit, load_words, stages_of
from nest_core.report.picture.switches import rectangle
from nest_core.report.picture.text import text_width

__all__ = ["dragonfly_drawn"]

_MAX_COLUMNS = 36
"""Most columns: every pair of them has a line."""


def dragonfly_drawn(fabric: Dragonfly, ask: Ask) -> Drawn:
    """Draw a dragonfly."""
    frame = frame_of(ask.width)
    stages, paint = stages_of(ask, fabric.devices, np.arange(fabric.devices))
    sketch = _Sketch(fabric, frame, paint)
    busy = _busy(fabric, ask)
    most = float(busy.max())
    words = load_words(ask, (_title(fabric), _subtitle(fabric)), most)
    marks = sketch.arcs({} if ask.loads is None else sketch.looks(busy, most))
    marks += sketch.columns()
    if stages is not None:
        marks += sketch.transfers(stages)
    legend = legend_of(ask, most, _legend(fabric), marks)
    return framed(frame, words, marks, sketch.said(node_words(marks)), legend)


@dataclass(frozen=True)
class _Sketch:
    """Where groups stand, and their marks."""

    fabric: Dragonfly
    frame: Frame
    paint: Paint

    @cached_property
    def row(self) -> Row:
        """Groups, or tiles of them, side by side."""
        frame = self.frame
        return row_of(self.fabric.groups, frame.left, frame.right, max_boxes=_MAX_COLUMNS)

    @cached_property
    def edges(self) -> dict[str, tuple[float, float]]:
        """Top and bottom of the arcs, the groups, the links of nodes, and the nodes."""
        top, down = self.frame.top, self.frame.down
        switch = min(20.0, 0.07 * down)
        ends = top + 0.56 * down, top + 0.56 * down + switch, top + 0.66 * down + switch
        return {
            "links global": (top, ends[0]),
            "group": (ends[0], ends[1]),
            "links node": (ends[1], ends[2]),
            "node": (ends[2], self.frame.bottom),
        }

    def key(self, column: int) -> str:
        """Name the groups of a column."""
        return self.row.key("group", column)

    def looks(self, busy: npt.NDArray[np.float64], most: float) -> dict[tuple[int, int], str]:
        """Return the looks of the lines between two columns by what is on their fullest link."""
        starts = np.array(self.row.first)
        shares = np.maximum.reduceat(np.maximum.reduceat(busy, starts, 0), starts, 1)
        return {(a, b): load_look(float(shares[a, b]), most) for a, b in self._pairs}

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        count = len(self.row.counts)
        return [(a, b) for a in range(count) for b in range(a + 1, count)]

    def _way(self, a: int, b: int) -> tuple[Point, ...]:
        y, top = self.edges["group"][0], self.edges["links global"][0]
        ends = self.row.centres[a], self.row.centres[b]
        span = (ends[1] - ends[0]) / max(self.row.pitch, self.frame.across - self.row.pitch)
        return arc(*ends, y, (y - top - 2) * min(1.0, 0.12 + 0.88 * span))

    def arcs(self, loads: dict[tuple[int, int], str]) -> list[Mark]:
        """Draw the links between groups."""
        pairs, marks = self._pairs, list[Mark]()
        width = min(1.6, max(0.6, 220.0 / max(1, len(pairs))))
        area = self.frame.across * (self.edges["group"][0] - self.frame.top)
        faint = opacity(area, max(1, len(pairs)), width, 0.5 * self.frame.across)
        for a, b in pairs:
            ends, counts = (self.key(a), self.key(b)), self.row.counts
            stands = (("links global", counts[a] * counts[b] * self.fabric.links_per_pair),)
            look = f"link {loads.get((a, b), '')}".strip()
            seen = max(faint, 0.5) if loads else faint
            marks.append(Line(between(*ends), look, self._way(a, b), width, ends, stands, seen))
        return marks

    def columns(self) -> list[Mark]:
        """Draw groups, the links of their nodes, and these."""
        fabric, marks = self.fabric, list[Mark]()
        racks = Racks(
            np.arange(fabric.nodes + 1) * fabric.devices_per_node,
            np.ones(fabric.devices, bool),
            self.paint,
        )
        nodes = fabric.routers_per_group * fabric.nodes_per_router
        feet = nodes * fabric.nics_per_node * fabric.nic_bandwidth_Bps
        heads = fabric.links_per_pair * (fabric.groups - 1) * fabric.global_bandwidth_Bps
        room = self.row.box / max(feet, heads) / max(self.row.counts)
        for column, (count, x) in enumerate(zip(self.row.counts, self.row.centres, strict=True)):
            foot, head = max(2.2, room * feet * count), max(2.2, room * heads * count)
            top, bottom = self.edges["group"]
            key, width = self.key(column), max(foot, head)
            place = (x - width / 2, top, width, bottom - top)
            marks.append(Box(key, "switch", *place, "", self._holds(count), head, foot))
            text = str(self.row.first[column]) if count == 1 else f"{count:,}"
            if self.frame.words and text_width(text, TEXT) * 1.1 + 2 <= min(foot, head):
                marks.append(Words(text, "", x, (top + bottom) / 2 + 4.2, TEXT, "middle", key))
            first = self.row.first[column] * nodes
            nodes_below = range(first, first + count * nodes)
            below, ends = self.edges["node"], (f"nodes of {key}", key)
            stands = (("links node", len(nodes_below) * fabric.nics_per_node),)
            area = rectangle(x - foot / 2, bottom, foot, below[0] - bottom)
            marks.append(Band(between(*ends), "bundle", area, ends, stands))
            wide = max(foot, min(self.row.box, 26.0))
            block = (x - wide / 2, below[0], wide, below[1] - below[0])
            marks += racks.block(ends[0], nodes_below, block)
        return marks

    def _holds(self, count: int) -> tuple[tuple[str, int], ...]:
        """Routers of some groups, and the links among them."""
        routers = self.fabric.routers_per_group
        holds = (
            ("router", count * routers),
            ("links local", count * routers * (routers - 1) // 2),
            ("links global", count * (count - 1) // 2 * self.fabric.links_per_pair),
        )
        return tuple(entry for entry in holds if entry[1])

    def transfers(self, stages: Stages) -> list[Mark]:
        """Light the first replica's way from stage to stage, where it leaves a group."""
        column_of = np.repeat(np.arange(len(self.row.counts)), self.row.counts)
        columns = column_of[self.fabric.group_of()]
        marks: list[Mark] = []
        for group, following in pairwise(stages.groups()):
            a, b = sorted((int(columns[group[0]]), int(columns[following[0]])))
            if a != b:
                ends = self.key(a), self.key(b)
                marks += lit(between(*ends), self._way(a, b), ends)
        return marks

    def said(self, nodes: str) -> list[Said]:
        """Return the words of every row."""
        fabric = self.fabric
        a, p, h = fabric.routers_per_group, fabric.nodes_per_router, fabric.global_links_per_router
        each, groups = fabric.links_per_pair, fabric.groups
        out, inside = each * (groups - 1), a * (a - 1) // 2
        nics = fabric.nodes * fabric.nics_per_node
        tiled = (self.row.said(),) if self.row.tiled else ()
        ports = f"{p * fabric.nics_per_node} NICs, {a - 1} local, {min(h, out)} global"
        rate = f" of {said_rate(fabric.nic_bandwidth_Bps)} to routers"
        links = count_words(nics, 0, "link") + rate
        size = (f"of {fabric.devices_per_node:,} devices",) if fabric.devices_per_node > 1 else ()
        result = [
            self._said("links global", each * groups * (groups - 1) // 2, "global link",
                       f"{each:,} per pair of groups; {out:,} leave each group"),
            self._said("group", groups, "group", f"{a:,} routers each", *tiled),
            self._said("router", fabric.routers, "router", f"of {fabric.radix} ports: {ports}",
                       edges="group"),
            self._said("links local", groups * inside, "local link", f"{inside:,} in each group",
                       edges="group"),
            Said("links node", nics, "", (links,), *self.edges["links node"]),
            self._said("node", fabric.nodes, "node", *size, *([nodes] if nodes else [])),
        ]  # fmt: skip
        if fabric.devices_per_node > 1:
            result.append(self._said("device", fabric.devices, "device", edges="node"))
        return [row for row in result if row.count]

    def _said(self, what: str, count: int, name: str, *words: str, edges: str = "") -> Said:
        return Said(what, count, count_words(count, 0, name), words, *self.edges[edges or what])


def _busy(fabric: Dragonfly, ask: Ask) -> npt.NDArray[np.float64]:
    """Busy share of the fullest global link from one group to another, shape (groups, groups)."""
    groups, each = fabric.groups, fabric.links_per_pair
    if ask.loads is None or not each:
        return np.zeros((groups, groups))
    # Global links are the last of the link map, by group, group and link.
    ways = ask.loads.busy[-groups * groups * each :].reshape(groups, groups, each).max(axis=2)
    return np.asarray(np.maximum(ways, ways.T))


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


def _legend(fabric: Dragonfly) -> Sequence[Swatch]:
    return [
        *([Swatch("line", "link", "links of two groups")] if fabric.groups > 1 else []),
        Swatch("funnel", "switch", "group: foot is its NICs, head its global links"),
        Swatch("box", "device", "device"),
    ]
