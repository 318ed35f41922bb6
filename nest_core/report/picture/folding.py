"""What of a drawn graph is alike, so that it is drawn once with "x k".

Elements stand in ranks by their hops from the nearest device; switches that join only devices,
inside their node, one rank below these. Links then join neighbouring ranks or lie within one, so
that no line need cross a box. From a rank on outwards every element is a box of its own; what is
below is folded where colour refinement (Weisfeiler and Leman 1968) finds no difference: the same
role and ports, and as many links of each rate to each of the others. The rank is the innermost with
which the drawing fits, so small drawings are drawn in full and large ones by what repeats.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from nest_core.fabric import Element, GraphFabric
from nest_core.fabric.arrange import heights, inner_switches

__all__ = ["Folded", "Join", "by_rank", "folded", "ranks_of"]


@dataclass(frozen=True, slots=True)
class Join:
    """Links between two boxes, or among the elements of one.

    Parameters
    ----------
    count : int
    capacity_Bps : float
        Of all of them, one direction.
    """

    count: int = 0
    capacity_Bps: float = 0.0


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph with what is alike in one box.

    Parameters
    ----------
    members : tuple of tuple of Element
        Of every box.
    rank : tuple of int
        Of every box; 0 holds the devices.
    joins : mapping of (int, int) to Join
        By two boxes, the one of the lower rank first.
    """

    members: tuple[tuple[Element, ...], ...]
    rank: tuple[int, ...]
    joins: Mapping[tuple[int, int], Join]


def ranks_of(fabric: GraphFabric) -> dict[str, int]:
    """Return hops of every element from the nearest device; −1: a switch inside a node.

    What hangs on no device stands one rank above the outermost.
    """
    neighbours: dict[str, list[str]] = {element.id: [] for element in fabric.elements}
    for link in fabric.links:
        neighbours[link.a].append(link.b)
        neighbours[link.b].append(link.a)
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
        widest = max(Counter(result.rank).values())
        if widest <= max_boxes and len(result.joins) <= max_joins:
            return result
    return None


def by_rank(fabric: GraphFabric) -> Folded:
    """Return one box per rank and role."""
    rank = ranks_of(fabric)
    return _in_boxes(fabric, rank, _numbered({e.id: (rank[e.id], e.role) for e in fabric.elements}))


def _in_boxes(fabric: GraphFabric, rank: Mapping[str, int], label: Mapping[str, int]) -> Folded:
    """Put elements of one label in one box."""
    boxes: dict[int, list[Element]] = defaultdict(list)
    for element in fabric.elements:
        boxes[label[element.id]].append(element)
    order = sorted(boxes, key=lambda box: rank[boxes[box][0].id])
    place = {box: at for at, box in enumerate(order)}
    joins: dict[tuple[int, int], Join] = defaultdict(Join)
    for link in fabric.links:
        a, b = sorted((place[label[link.a]], place[label[link.b]]))
        before, rate = joins[a, b], link.count * link.bandwidth_Bps
        joins[a, b] = Join(before.count + link.count, before.capacity_Bps + rate)
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
