"""Drawn and imported graphs: ranked by hops from their devices, what is alike folded and counted.

Devices stand in one row, switches that only join devices below them, everything else above by its
hops (`folding`). Lines join neighbouring rows, or go round above the row that they stay in, so that
none crosses a box; their width is capacity. What is too irregular to fold is a row of its own for
every rank, with its counts and a hatched area for its links. A graph that is a torus is drawn as
one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nest_core.bill.counts_drawn import DrawnTiers, drawn_tiers
from nest_core.explain.loads import Loads
from nest_core.fabric import Element, GraphFabric
from nest_core.fabric.lattice import lattice_of
from nest_core.network import GraphLinkMap
from nest_core.report.picture.aggregate import MAX_PAIRS, MIN_PITCH, gap, opacity
from nest_core.report.picture.fabric_words import count_words, plural, rate_words
from nest_core.report.picture.folding import Folded, by_rank, folded
from nest_core.report.picture.frame import TEXT, Frame, frame_of, framed
from nest_core.report.picture.grids import torus_drawn
from nest_core.report.picture.marks import (
    Band,
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
)
from nest_core.report.picture.meshes import arc
from nest_core.report.picture.options import DrawOptions
from nest_core.report.picture.plan import load_look
from nest_core.report.picture.racks import Paint
from nest_core.report.picture.stages import legend_of, load_words, stage_ink, stages_of
from nest_core.report.picture.text import text_width

__all__ = ["graph_drawn"]

_WIDEST_BOX = 120.0
_HIGH = 30.0
_WIDEST_LINE = 7.0


def graph_drawn(fabric: GraphFabric, options: DrawOptions) -> Drawn:
    """The picture of a drawn graph."""
    lattice = lattice_of(fabric)
    if lattice is not None:
        return torus_drawn(lattice.torus, options)
    frame = frame_of(options.width)
    result = folded(fabric, int(frame.across / MIN_PITCH), MAX_PAIRS)
    stages, paint = stages_of(options, fabric.devices, np.arange(fabric.devices))
    sketch = _Sketch(
        fabric, result or by_rank(fabric), frame, result is not None, paint, options.loads
    )
    most = max(sketch.busy.values(), default=0.0)
    words = load_words(options, sketch.words, most)
    marks = sketch.marks()
    if stages is not None:
        marks += stages.outlines(marks)
    legend = legend_of(options, most, _legend(fabric), marks)
    return framed(frame, words, marks, sketch.said(options), legend)


@dataclass(frozen=True)
class _Sketch:
    """The boxes of a folded graph in rows.

    Parameters
    ----------
    regular : bool
        Whether boxes hold what is alike; else all of a rank.
    """

    fabric: GraphFabric
    boxes: Folded
    frame: Frame
    regular: bool
    paint: Paint
    loads: Loads | None

    @cached_property
    def tiers(self) -> DrawnTiers:
        """What the bill calls links and switches."""
        return drawn_tiers(self.fabric)

    @cached_property
    def box_of(self) -> dict[str, int]:
        """Box of every element."""
        return {one.id: at for at, own in enumerate(self.boxes.members) for one in own}

    @cached_property
    def busy(self) -> dict[tuple[int, int], float]:
        """Busy share of the fullest link between two boxes."""
        link_map = None if self.loads is None else self.loads.network.link_map
        if self.loads is None or not isinstance(link_map, GraphLinkMap):
            return {}
        links = link_map.links
        copies = links.count if link_map.routing == "ecmp" else np.ones_like(links.count)
        shares = np.maximum.reduceat(self.loads.busy, np.cumsum([0, *copies[:-1]]))
        names = [self.fabric.device_ids[n] if isinstance(n, int) else n for n in links.elements]
        result: dict[tuple[int, int], float] = defaultdict(float)
        for a, b, share in zip(links.tail, links.head, shares.tolist(), strict=True):
            pair = sorted((self.box_of[names[a]], self.box_of[names[b]]))
            key = pair[0], pair[1]
            result[key] = max(result[key], share)
        return dict(result)

    @cached_property
    def rows(self) -> dict[int, tuple[float, float]]:
        """Upper and lower edge of the boxes of every rank."""
        ranks = sorted(set(self.boxes.rank), reverse=True)
        arcs = self._arcs
        # A rank with links of its own has room above it for them, even the outermost.
        top = self.frame.top + (26.0 if ranks[0] in arcs and len(ranks) > 1 else 0.0)
        bottom = self.frame.bottom
        high = min(_HIGH, (bottom - top) / (2.2 * len(ranks)))
        if len(ranks) == 1:
            middle = top + 0.62 * (bottom - top)
            return {ranks[0]: (middle, middle + high)}
        step = (bottom - top - high) / (len(ranks) - 1)
        return {rank: (top + at * step, top + at * step + high) for at, rank in enumerate(ranks)}

    @cached_property
    def _arcs(self) -> set[int]:
        rank = self.boxes.rank
        return {
            rank[one.a] for one in self.boxes.joins if rank[one.a] == rank[one.b] and one.a != one.b
        }

    @cached_property
    def order(self) -> dict[int, list[int]]:
        """Boxes of every rank from left to right, by the means of their neighbours' places."""
        rows: dict[int, list[int]] = defaultdict(list)
        for box, rank in enumerate(self.boxes.rank):
            rows[rank].append(box)
        beside: dict[int, list[int]] = defaultdict(list)
        for one in self.boxes.joins:
            beside[one.a].append(one.b)
            beside[one.b].append(one.a)
        share: dict[int, float] = {}
        for rank in sorted(rows, key=abs):
            own = rows[rank]
            even = {box: (at + 0.5) / len(own) for at, box in enumerate(own)}
            near = {box: [share[o] for o in beside[box] if o in share] for box in own}
            means = {box: sum(of) / len(of) if of else even[box] for box, of in near.items()}
            own.sort(key=means.__getitem__)
            share |= {box: (at + 0.5) / len(own) for at, box in enumerate(own)}
        return dict(rows)

    @cached_property
    def places(self) -> dict[int, tuple[float, float]]:
        """Middle and width of every box."""
        places: dict[int, tuple[float, float]] = {}
        for boxes in self.order.values():
            pitch = self.frame.across / len(boxes)
            width = min(_WIDEST_BOX, pitch - gap(pitch))
            middles = (self.frame.start + (at + 0.5) * pitch for at in range(len(boxes)))
            places |= {box: (x, width) for box, x in zip(boxes, middles, strict=True)}
        return places

    def key(self, box: int) -> str:
        """The element, or the first of those that are folded and how many."""
        own = self.boxes.members[box]
        name = self.name(own[0])
        return name if len(own) == 1 else f"{name} and {len(own) - 1} alike"

    def name(self, element: Element) -> str:
        """Devices by their number, as everywhere; others as they were drawn."""
        if element.role == "device":
            return f"device {self._number[element.id]}"
        return element.id

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.fabric.device_ids)}

    def marks(self) -> list[Mark]:
        """Links, then boxes with their words."""
        return [*self._lines(), *self._boxes()]

    @cached_property
    def stands(self) -> dict[tuple[int, int], Stands]:
        """Links of the bill between two boxes, or within one."""
        counts: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        for link in self.fabric.links:
            tier = self.tiers.links.get((link.a, link.b))
            if tier is not None:
                a, b = sorted((self.box_of[link.a], self.box_of[link.b]))
                counts[a, b][f"links {tier}"] += link.count
        return {pair: tuple(sorted(count.items())) for pair, count in counts.items()}

    def _lines(self) -> list[Mark]:
        pairs: dict[tuple[int, int], float] = defaultdict(float)
        for one in self.boxes.joins:
            if one.a != one.b:
                pairs[one.a, one.b] += one.count * one.bandwidth_Bps
        most = max(pairs.values(), default=1.0)
        seen = 0.85
        if len(pairs) > 64:
            seen = opacity(
                self.frame.across * self.frame.down, len(pairs), 1.5, self.frame.down / 3
            )
        most_busy = max(self.busy.values(), default=0.0)
        result: list[Mark] = []
        for (a, b), capacity in sorted(pairs.items(), key=lambda item: item[1]):
            own = self.stands.get((a, b), ())
            ends = self.key(a), self.key(b)
            if not self.regular and self.boxes.rank[a] != self.boxes.rank[b]:
                result.append(Band(between(*ends), "mesh", self._area(a, b), (), own))
                continue
            room = 0.8 * min(self.places[a][1], self.places[b][1])
            width = max(0.8, min(_WIDEST_LINE, room) * capacity / most)
            points = self._way(a, b)
            look = "link"
            if self.loads is not None:
                look += f" {load_look(self.busy.get((a, b), 0.0), most_busy)}"
            result.append(Line(between(*ends), look, points, width, ends, own, seen))
        return result

    def _way(self, a: int, b: int) -> tuple[Point, ...]:
        (ax, _), (bx, _) = self.places[a], self.places[b]
        low, high = self.rows[self.boxes.rank[a]], self.rows[self.boxes.rank[b]]
        if self.boxes.rank[a] != self.boxes.rank[b]:
            return (ax, low[0]), (bx, high[1])
        room = 0.85 * self._room_above(self.boxes.rank[a])
        rise = min(room, 8 + 0.35 * abs(bx - ax))
        return arc(ax, bx, low[0], rise)

    def _room_above(self, rank: int) -> float:
        top = self.rows[rank][0]
        above = [low for _, low in self.rows.values() if low < top]
        return top - max(above, default=self.frame.top)

    def _area(self, a: int, b: int) -> tuple[Point, ...]:
        (ax, aw), (bx, bw) = self.places[a], self.places[b]
        low, high = self.rows[self.boxes.rank[a]][0], self.rows[self.boxes.rank[b]][1]
        return (bx - bw / 2, high), (bx + bw / 2, high), (ax + aw / 2, low), (ax - aw / 2, low)

    def _boxes(self) -> list[Mark]:
        result: list[Mark] = []
        for box, own in enumerate(self.boxes.members):
            x, width = self.places[box]
            top, bottom = self.rows[self.boxes.rank[box]]
            stands = Counter(dict(self.stands.get((box, box), ())))
            for element in own:
                if element.role == "device":
                    stands["device"] += 1
                elif element.id in self.tiers.switches:
                    stands[self.tiers.switches[element.id]] += element.count
            look = "switch"
            if own[0].role == "device":
                look = self.paint([self._number[one.id] for one in own])
            key = self.key(box)
            entries: Stands = tuple(sorted(stands.items()))
            result.append(
                Box(key, look, x - width / 2, top, width, bottom - top, "", entries, radius=2)
            )
            label = self._label(own, width - 4)
            if label and self.frame.words and bottom - top >= 15:
                result.append(
                    Words(label, self._ink(look), x, (top + bottom) / 2 + 4.2, TEXT, "middle", key)
                )
        return result

    @staticmethod
    def _ink(look: str) -> str:
        """Of words on a box: what is read on its colour."""
        return stage_ink(look) if look.startswith("stage-") else ""

    def _label(self, own: Sequence[Element], room: float) -> str:
        """What fits: the name with how many there are, or the number alone."""
        count = sum(element.count for element in own)
        word = own[0].id if len(own) == 1 else _word(own)
        several = f"{word} x {count:,}" if count > 1 else word
        last = own[0].id.rpartition(" ")[2]
        short = f"x {count:,}" if count > 1 else last if last.isdigit() else ""
        return next((t for t in (several, short) if t and text_width(t, TEXT) * 1.1 <= room), "")

    @cached_property
    def words(self) -> tuple[str, str]:
        """Title and subtitle."""
        ranks = sorted(rank for rank in set(self.boxes.rank) if rank > 0)
        switches = sum(one.count for one in self.fabric.elements if one.role == "switch")
        devices = self.fabric.devices
        if not switches:
            title = f"{devices:,} devices joined by {len(self.fabric.links):,} direct links"
        else:
            tiers = (
                f"in {len(ranks)} {plural('rank', len(ranks))} above them"
                if ranks
                else "among them"
            )
            title = f"{count_words(devices, 0, 'device')}, drawn, and what joins them {tiers}"
        if not self.regular:
            return (
                title,
                "Too irregular to draw every link: counts per rank; hatched areas are links",
            )
        alike = any(len(own) > 1 for own in self.boxes.members)
        fold = "; x: boxes alike" if alike else ""
        return title, f"Rows by hops from devices; a line's width is capacity{fold}"

    def said(self, options: DrawOptions) -> list[TierLabel]:
        """Rows and the links between them, from the top."""
        result: list[TierLabel] = []
        ranks = sorted(self.rows, reverse=True)
        for at, rank in enumerate(ranks):
            top, bottom = self.rows[rank]
            result += self._said_row(rank, top, bottom, options)
            lower = self.rows[ranks[at + 1]][0] if at + 1 < len(ranks) else bottom + 20
            result += self._said_links(rank, bottom, lower)
        return [
            *result,
            TierLabel("node", options.parts.nodes, "", (), self.frame.top, self.frame.bottom),
        ]

    def _said_row(
        self, rank: int, top: float, bottom: float, options: DrawOptions
    ) -> list[TierLabel]:
        counts: Counter[tuple[str, str]] = Counter()
        for box, at in enumerate(self.boxes.rank):
            if at == rank:
                for element in self.boxes.members[box]:
                    what = self.tiers.switches.get(element.id, element.role)
                    counts[what, element.role] += element.count
        result = []
        for (what, role), count in counts.items():
            is_tier = role == "switch" and what.startswith("tier ")
            head = count_words(count, 0, "switch" if is_tier else "NIC" if what == "nic" else what)
            below: tuple[str, ...] = ()
            if role == "device" and options.parts.nodes < self.fabric.devices:
                below = (f"in {options.parts.nodes:,} nodes",)
            result.append(TierLabel(what, count, head, below, top, bottom))
        return result

    def _said_links(self, rank: int, top: float, bottom: float) -> list[TierLabel]:
        """Links between a rank and the one below it, and those within the rank below."""
        counts: dict[str, Counter[float]] = defaultdict(Counter)
        ranks = sorted(self.rows)
        below = ranks[ranks.index(rank) - 1] if rank != ranks[0] else None
        for link in self.fabric.links:
            ends = {self.boxes.rank[self.box_of[end]] for end in (link.a, link.b)}
            here = ends == {rank, below} or (len(ends) == 1 and ends == {rank})
            if here:
                tier = self.tiers.links.get((link.a, link.b), "")
                counts[f"links {tier}" if tier else "inside"][link.bandwidth_Bps] += link.count
        return [
            TierLabel(
                what,
                sum(rates.values()),
                "",
                tuple(
                    f"{count_words(n, 0, 'link')} of {rate_words(r)}"
                    for r, n in sorted(rates.items())
                ),
                top,
                bottom,
            )
            for what, rates in counts.items()
        ]


def _word(own: Sequence[Element]) -> str:
    """What all names begin with, else the role."""
    first = {one.id.rstrip("0123456789.-_ ") for one in own}
    word = min(first) if len(first) == 1 else ""
    return word or ("NIC" if own[0].role == "nic" else own[0].role)


def _legend(fabric: GraphFabric) -> list[Swatch]:
    switch = [Swatch("box", "switch", "switch or NIC")]
    has = any(one.role != "device" for one in fabric.elements)
    return [
        Swatch("box", "device", "device"),
        *(switch if has else []),
        Swatch("line", "link", "links"),
    ]
