"""Drawn and imported graphs: ranked by hops from their devices, what is alike folded and counted.

Elements stand in ranks by their hops from the nearest device; switches that join only devices,
inside their node, one rank below these. Lines then join neighbouring rows, or go round above the
row that they stay in, so that none crosses a box; their width is capacity. From a rank on outwards
every element is a box of its own; what is below is folded where colour refinement (Weisfeiler and
Leman 1968) finds no difference: the same role and ports, and as many links of each rate to each of
the others. The rank is the innermost with which the drawing fits, so small drawings are drawn in
full and large ones by what repeats ("x k"). What is too irregular to fold is a row of its own for
every rank, with its counts and a hatched area for its links. A graph that is a torus is drawn as
one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nest_core.bill.counts_drawn import DrawnTiers, drawn_tiers
from nest_core.costs.loads import Loads
from nest_core.documents import grouped, summed
from nest_core.fabric import Element, GraphFabric, heights, inner_switches, lattice_of, node_name
from nest_core.network import GraphLinkMap
from nest_core.report.picture.aggregate import MAX_PAIRS, MIN_PITCH, gap, opacity
from nest_core.report.picture.frame import Frame, frame_of
from nest_core.report.picture.grids import torus_drawn
from nest_core.report.picture.marks import (
    Band,
    Box,
    Drawn,
    Line,
    Mark,
    Point,
    Swatch,
    TierLabel,
    between,
    centred,
    count_words,
    first_fitting,
    plural,
    rate_words,
)
from nest_core.report.picture.plan import DrawOptions, framed_plan, load_look, paint_of, stage_ink
from nest_core.report.picture.racks import Paint
from nest_core.report.picture.switches import arc

__all__ = ["Folded", "by_rank", "folded", "graph_drawn", "ranks_of"]

_MAX_BOX = 120.0
_MAX_HEIGHT = 30.0
_MAX_LINE = 7.0


def graph_drawn(fabric: GraphFabric, options: DrawOptions) -> Drawn:
    """Draw a graph."""
    lattice = lattice_of(fabric)
    if lattice is not None:
        return torus_drawn(lattice.torus, options)
    frame = frame_of(options.width)
    alike = folded(fabric, int(frame.across / MIN_PITCH), MAX_PAIRS)
    stages, paint = paint_of(options, fabric.devices, np.arange(fabric.devices))
    rows = _Rows(fabric, alike or by_rank(fabric), frame, alike is not None, paint, options.loads)
    busiest = max(rows.busy.values(), default=0.0)
    marks = [*rows.lines(busiest), *rows.boxes_drawn()]
    if stages is not None:
        marks += stages.outlines(marks)
    labels = list(rows.labels(options.parts.nodes))
    is_joined = any(element.role != "device" for element in fabric.elements)
    return framed_plan(
        options,
        rows.words,
        marks,
        labels,
        [
            Swatch("box", "device", "device"),
            *([Swatch("box", "switch", "switch or NIC")] if is_joined else []),
            Swatch("line", "link", "links"),
        ],
        busiest,
    )


@dataclass(frozen=True)
class _Rows:
    """The boxes of a folded graph in rows.

    Parameters
    ----------
    is_regular : bool
        Whether boxes hold what is alike; else all of a rank.
    """

    fabric: GraphFabric
    boxes: Folded
    frame: Frame
    is_regular: bool
    paint: Paint
    loads: Loads | None

    @cached_property
    def tiers(self) -> DrawnTiers:
        """What the bill calls links and switches."""
        return drawn_tiers(self.fabric)

    @cached_property
    def box_of(self) -> dict[str, int]:
        """Box of every element."""
        return {
            element.id: at for at, members in enumerate(self.boxes.members) for element in members
        }

    def _pair(self, a: str, b: str) -> tuple[int, int]:
        """Return the boxes of two elements, the lower number first."""
        first, last = sorted((self.box_of[a], self.box_of[b]))
        return first, last

    @cached_property
    def busy(self) -> dict[tuple[int, int], float]:
        """Busy share of the fullest link between two boxes."""
        link_map = None if self.loads is None else self.loads.network.link_map
        if self.loads is None or not isinstance(link_map, GraphLinkMap):
            return {}
        links = link_map.links
        shares = np.maximum.reduceat(self.loads.busy, link_map.first_group)
        names = [  # those of other kinds as `as_graph` names them
            self.fabric.device_ids[n] if isinstance(n, int) else node_name(n)
            for n in links.elements
        ]
        busy = grouped(
            (self._pair(names[a], names[b]), share)
            for a, b, share in zip(links.tail, links.head, shares.tolist(), strict=True)
        )
        return {pair: max(shares_of_pair) for pair, shares_of_pair in busy.items()}

    @cached_property
    def edges(self) -> dict[int, tuple[float, float]]:
        """Upper and lower edge of the boxes of every rank, the outermost first."""
        ranks = sorted(set(self.boxes.rank), reverse=True)
        rank, top, bottom = self.boxes.rank, self.frame.top, self.frame.bottom
        has_arcs = any(rank[a] == rank[b] == ranks[0] for a, b in self.boxes.joins if a != b)
        if len(ranks) == 1:
            middle = top + 0.62 * (bottom - top)
            return {ranks[0]: (middle, middle + min(_MAX_HEIGHT, (bottom - top) / 2.2))}
        top += 26.0 if has_arcs else 0.0  # room above the outermost for its own links
        height = min(_MAX_HEIGHT, (bottom - top) / (2.2 * len(ranks)))
        step = (bottom - top - height) / (len(ranks) - 1)
        return {at: (top + n * step, top + n * step + height) for n, at in enumerate(ranks)}

    @cached_property
    def places(self) -> dict[int, tuple[float, float]]:
        """Middle and width of every box: in a rank by the means of their neighbours' places."""
        neighbours = grouped(ends for a, b in self.boxes.joins for ends in ((a, b), (b, a)))
        share: dict[int, float] = {}
        places = {}
        for rank in sorted(self.edges, key=abs):
            boxes = [box for box, at in enumerate(self.boxes.rank) if at == rank]
            means = {}
            for at, box in enumerate(boxes):
                near = [share[other] for other in neighbours.get(box, ()) if other in share]
                means[box] = sum(near) / len(near) if near else (at + 0.5) / len(boxes)
            pitch = self.frame.across / len(boxes)
            width = min(_MAX_BOX, pitch - gap(pitch))
            for at, box in enumerate(sorted(boxes, key=means.__getitem__)):
                share[box] = (at + 0.5) / len(boxes)
                places[box] = self.frame.start + (at + 0.5) * pitch, width
        return places

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.fabric.device_ids)}

    def key(self, box: int) -> str:
        """Return the name of the element, or of the first of those that are folded and how many.

        Devices have their number, as everywhere; others the name that they were drawn with.
        """
        first, *others = self.boxes.members[box]
        name = f"device {self._numbers[first.id]}" if first.role == "device" else first.id
        return f"{name} and {len(others)} alike" if others else name

    @cached_property
    def stands(self) -> dict[tuple[int, int], Counter[str]]:
        """Links of the bill between two boxes, or within one."""
        tiers = self.tiers.links
        counts = grouped(
            (self._pair(link.a, link.b), (f"links {tiers[link.a, link.b]}", link.count))
            for link in self.fabric.links
            if (link.a, link.b) in tiers
        )
        return {pair: Counter(summed(entries)) for pair, entries in counts.items()}

    def lines(self, busiest: float) -> Iterator[Mark]:
        """Draw the links between boxes, the widest on top."""
        joins = {pair: rate for pair, rate in self.boxes.joins.items() if pair[0] != pair[1]}
        most = max(joins.values(), default=1.0)
        area = self.frame.across * self.frame.down
        is_crowded = len(joins) > 64
        strength = opacity(area, len(joins), 1.5, self.frame.down / 3) if is_crowded else 0.85
        for (a, b), rate in sorted(joins.items(), key=lambda item: (item[1], item[0])):
            stands = tuple(sorted(self.stands.get((a, b), Counter()).items()))
            ends = self.key(a), self.key(b)
            (ax, wide), (bx, width) = self.places[a], self.places[b]
            low, high = self.edges[self.boxes.rank[a]][0], self.edges[self.boxes.rank[b]][1]
            points: tuple[Point, ...] = (ax, low), (bx, high)
            if self.boxes.rank[a] == self.boxes.rank[b]:
                points = arc(
                    ax, bx, low, min(0.85 * self._room_above(low), 8 + 0.35 * abs(bx - ax))
                )
            elif not self.is_regular:
                area_of = (
                    *((bx - width / 2, high), (bx + width / 2, high)),
                    (ax + wide / 2, low),
                    (ax - wide / 2, low),
                )
                yield Band(between(*ends), "mesh", area_of, (), stands)
                continue
            thick = max(0.8, min(_MAX_LINE, 0.8 * wide, 0.8 * width) * rate / most)
            load = "" if self.loads is None else load_look(self.busy.get((a, b), 0.0), busiest)
            look = f"link {load}".strip()
            yield Line(between(*ends), look, points, thick, ends, stands, strength)

    def _room_above(self, top: float) -> float:
        return top - max(
            (bottom for _, bottom in self.edges.values() if bottom < top), default=self.frame.top
        )

    def boxes_drawn(self) -> Iterator[Mark]:
        """Draw boxes with their words."""
        for box, members in enumerate(self.boxes.members):
            (x, width), (top, bottom) = self.places[box], self.edges[self.boxes.rank[box]]
            stands = Counter(self.stands.get((box, box), Counter()))
            for element in members:
                what = self.tiers.switches.get(element.id)
                if what is not None or element.role == "device":
                    stands[what or "device"] += element.count
            look = (
                self.paint([self._numbers[element.id] for element in members])
                if members[0].role == "device"
                else "switch"
            )
            ink = stage_ink(look) if look.startswith("stage-") else ""
            place, entries = (x - width / 2, top, width), tuple(sorted(stands.items()))
            mark = Box(self.key(box), look, *place, bottom - top, stands=entries, radius=2)
            yield mark
            if self.frame.words and bottom - top >= 15:
                yield from centred(mark, first_fitting(_names(members), width - 4), ink)

    @cached_property
    def words(self) -> tuple[str, str]:
        """Title and subtitle."""
        ranks = sum(rank > 0 for rank in self.edges)
        links = sum(link.count for link in self.fabric.links)
        title = f"{self.fabric.devices:,} devices joined by {links:,} direct links"
        if any(element.role != "device" for element in self.fabric.elements):
            tiers = f"in {ranks} {plural('rank', ranks)} above them" if ranks else "among them"
            devices = count_words(self.fabric.devices, 0, "device")
            title = f"{devices}, drawn, and what joins them {tiers}"
        fold = "; x: boxes alike" if any(len(box) > 1 for box in self.boxes.members) else ""
        return title, (
            f"Rows by hops from devices; a line's width is capacity{fold}"
            if self.is_regular
            else "Too irregular to draw every link: counts per rank; hatched areas are links"
        )

    def labels(self, nodes: int) -> Iterator[TierLabel]:
        """Yield rows and the links below them, from the top."""
        elements = summed(
            (
                (rank, self.tiers.switches.get(element.id, element.role), element.role),
                element.count,
            )
            for rank, members in zip(self.boxes.rank, self.boxes.members, strict=True)
            for element in members
        )
        links: dict[tuple[int, str], Counter[float]] = defaultdict(Counter)
        for link in self.fabric.links:
            rank = max(self.boxes.rank[box] for box in self._pair(link.a, link.b))
            tier = self.tiers.links.get((link.a, link.b), "")
            links[rank, f"links {tier}" if tier else "inside"][link.bandwidth_Bps] += link.count
        lower = [
            *[top for top, _ in self.edges.values()][1:],
            max(bottom for _, bottom in self.edges.values()) + 20,
        ]
        for (rank, (top, bottom)), below in zip(self.edges.items(), lower, strict=True):
            for (of, what, role), count in elements.items():
                if of != rank:
                    continue
                is_tier = role == "switch" and what.startswith("tier ")
                name = "switch" if is_tier else "NIC" if what == "nic" else what
                in_nodes = role == "device" and nodes < self.fabric.devices
                words: tuple[str, ...] = (
                    (f"in {nodes:,} nodes",) if in_nodes else ("inside nodes",) if rank < 0 else ()
                )
                yield TierLabel(what, count, count_words(count, 0, name), words, top, bottom)
            for (at, what), rates in links.items():
                if at == rank:
                    words = tuple(
                        f"{count_words(count, 0, 'link')} of {rate_words(rate)}"
                        + ", assumed"
                        * (what == "inside" and self.fabric.assumed_inside_Bps == rate)
                        for rate, count in sorted(rates.items())
                    )
                    yield TierLabel(what, rates.total(), "", words, bottom, below)
        yield TierLabel("node", nodes, "", (), self.frame.top, self.frame.bottom)


def _names(members: Sequence[Element]) -> list[str]:
    """Return what a box may be called, the longest first: with how many there are, or a number."""
    count = sum(element.count for element in members)
    stems = {element.id.rstrip("0123456789.-_ ") for element in members}
    role = "NIC" if members[0].role == "nic" else members[0].role
    word = members[0].id if len(members) == 1 else min(stems) if len(stems) == 1 else role
    if count > 1:
        return [f"{word or role} x {count:,}", f"x {count:,}"]
    last = members[0].id.rpartition(" ")[2]
    return [word, last if last.isdigit() else ""]


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph with what is alike in one box.

    Parameters
    ----------
    members : tuple of tuple of Element
        Of every box.
    rank : tuple of int
        Of every box; 0 holds the devices.
    joins : mapping of (int, int) to float
        Bytes/s of all links between two boxes, the one of the lower rank first, one direction; or
        among the elements of one.
    """

    members: tuple[tuple[Element, ...], ...]
    rank: tuple[int, ...]
    joins: Mapping[tuple[int, int], float]


def ranks_of(fabric: GraphFabric) -> dict[str, int]:
    """Return hops of every element from the nearest device; −1: a switch inside a node.

    What hangs on no device stands one rank above the outermost.
    """
    neighbours: dict[str, list[str]] = {element.id: [] for element in fabric.elements}
    neighbours |= grouped(
        ends for link in fabric.links for ends in ((link.a, link.b), (link.b, link.a))
    )
    rank = heights(neighbours, fabric.device_ids)
    inner = inner_switches(neighbours, fabric.device_ids)
    if inner < {name for name, at in rank.items() if at == 1}:
        for name in inner:
            # Inside a node only where its devices have another way, which leads outwards.
            beyond = {far for near in neighbours[name] for far in neighbours[near]} - inner
            if any(neighbours[end] != [far] for far in beyond for end in neighbours[far]):
                rank[name] = -1
    return rank


def folded(fabric: GraphFabric, max_boxes: int, max_joins: int) -> Folded | None:
    """Return the graph folded as little as the limits allow; None where it is too irregular.

    Parameters
    ----------
    max_boxes : int
        Boxes that a row has room for.
    max_joins : int
        Lines that a drawing has room for.
    """
    rank = ranks_of(fabric)
    for outer in sorted(set(rank.values()) | {max(rank.values()) + 1}):
        colour: dict[str, Hashable] = {
            element.id: (element.id,)
            if rank[element.id] >= outer
            else (rank[element.id], element.role, element.radix, element.count)
            for element in fabric.elements
        }
        result = _in_boxes(fabric, rank, _refined(fabric, _numbered(colour)))
        if max(Counter(result.rank).values()) <= max_boxes and len(result.joins) <= max_joins:
            return result
    return None


def by_rank(fabric: GraphFabric) -> Folded:
    """Return one box per rank and role."""
    rank = ranks_of(fabric)
    return _in_boxes(fabric, rank, _numbered({e.id: (rank[e.id], e.role) for e in fabric.elements}))


def _in_boxes(fabric: GraphFabric, rank: Mapping[str, int], label: Mapping[str, int]) -> Folded:
    """Put elements of one label in one box."""
    boxes = grouped((label[element.id], element) for element in fabric.elements)
    order = sorted(boxes, key=lambda box: rank[boxes[box][0].id])
    place = {box: at for at, box in enumerate(order)}
    ends = [(place[label[link.a]], place[label[link.b]], link) for link in fabric.links]
    joins = summed(((min(a, b), max(a, b)), link.count * link.bandwidth_Bps) for a, b, link in ends)
    members = tuple(tuple(boxes[box]) for box in order)
    return Folded(members, tuple(rank[box[0].id] for box in members), joins)


def _refined(fabric: GraphFabric, number: dict[str, int]) -> dict[str, int]:
    """Split colours until elements of one colour have neighbours of the same colours."""
    while True:
        seen: dict[str, Counter[Hashable]] = {name: Counter() for name in number}
        for link in fabric.links:
            seen[link.a][number[link.b], link.bandwidth_Bps] += link.count
            seen[link.b][number[link.a], link.bandwidth_Bps] += link.count
        finer = _numbered({name: (number[name], frozenset(seen[name].items())) for name in number})
        if len(set(finer.values())) == len(set(number.values())):
            return number
        number = finer


def _numbered(colour: Mapping[str, Hashable]) -> dict[str, int]:
    """Number colours by the order in which they come first."""
    numbers: dict[Hashable, int] = {}
    return {name: numbers.setdefault(result, len(numbers)) for name, result in colour.items()}
