"""What of a drawn graph is alike, so that it is drawn once with "x k".

Elements stand in ranks by their hops from the nearest device; switches that join only devices,
inside their node, one rank below these. Links then join neighbouring ranks or lie within one, so
that no line need cross a box. From a rank on outwards every element is told apart; what is below
is folded where colour refinement (Weisfeiler and Leman 1968) tells nothing apart: the same role
and ports, and as many links of each rate to each of the others. The rank is the innermost with
which the drawing fits, so small drawings are drawn whole and large ones by what repeats.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from nest_core.fabric import Element, GraphFabric
from nest_core.fabric.hops import heights, inner_switches

__all__ = ["Folded", "Join", "by_rank", "folded", "ranks_of"]


@dataclass(frozen=True, slots=True)
class Join:
    """Links between two boxes, or among the elements of one.

    Parameters
    ----------
    a, b : int
        Boxes, the one of the lower rank first.
    count : int
    bandwidth_Bps : float
        One link, one direction.
    """

    a: int
    b: int
    count: int
    bandwidth_Bps: float


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph with what is alike in one box.

    Parameters
    ----------
    members : tuple of tuple of Element
        Of every box.
    rank : tuple of int
        Of every box; 0 holds the devices.
    joins : tuple of Join
    """

    members: tuple[tuple[Element, ...], ...]
    rank: tuple[int, ...]
    joins: tuple[Join, ...]

    @property
    def widest(self) -> int:
        """Boxes in the rank that has most of them."""
        return max(Counter(self.rank).values())


def ranks_of(fabric: GraphFabric) -> dict[str, int]:
    """Hops of every element from the nearest device; −1: a switch inside a node.

    What hangs on no device stands one rank above the outermost.
    """
    beside: dict[str, list[str]] = {element.id: [] for element in fabric.elements}
    for link in fabric.links:
        beside[link.a].append(link.b)
        beside[link.b].append(link.a)
    rank = heights(beside, fabric.device_ids)
    within = inner_switches(beside, fabric.device_ids)
    first = {name for name, at in rank.items() if at == 1}
    if within < first:
        rank |= dict.fromkeys((name for name in within if _elsewhere(name, beside, within)), -1)
    return rank


def _elsewhere(name: str, beside: Mapping[str, list[str]], within: set[str]) -> bool:
    """Whether a device of a switch has another way, by something that leads outwards."""
    return any(
        far not in within and any(beside[end] != [far] for end in beside[far])
        for near in beside[name]
        for far in beside[near]
        if far != name
    )


def folded(fabric: GraphFabric, widest: int, most_joins: int) -> Folded | None:
    """The graph folded as little as the limits allow; None where it is too irregular for them.

    Parameters
    ----------
    widest : int
        Boxes that a row has room for.
    most_joins : int
        Lines that a drawing has room for.
    """
    rank = ranks_of(fabric)
    for apart in sorted(set(rank.values()) | {max(rank.values()) + 1}):
        result = _folded_below(fabric, rank, apart)
        if result.widest <= widest and len(result.joins) <= most_joins:
            return result
    return None


def _folded_below(fabric: GraphFabric, rank: Mapping[str, int], apart: int) -> Folded:
    """Elements of rank ``apart`` and further out told apart, what is below folded."""
    colour: dict[str, Hashable] = {
        element.id: (element.id,)
        if rank[element.id] >= apart
        else (rank[element.id], element.role, element.radix, element.count)
        for element in fabric.elements
    }
    return _in_boxes(fabric, rank, _refined(fabric, _numbered(colour)))


def by_rank(fabric: GraphFabric) -> Folded:
    """Return one box per rank and role."""
    rank = ranks_of(fabric)
    roles = sorted({element.role for element in fabric.elements})
    label = {e.id: rank[e.id] * len(roles) + roles.index(e.role) for e in fabric.elements}
    return _in_boxes(fabric, rank, label)


def _in_boxes(fabric: GraphFabric, rank: Mapping[str, int], label: Mapping[str, int]) -> Folded:
    """Put elements of one label in one box."""
    boxes: dict[int, list[Element]] = defaultdict(list)
    for element in fabric.elements:
        boxes[label[element.id]].append(element)
    order = sorted(boxes, key=lambda box: rank[boxes[box][0].id])
    place = {box: at for at, box in enumerate(order)}
    joins: Counter[tuple[int, int, float]] = Counter()
    for link in fabric.links:
        a, b = sorted((place[label[link.a]], place[label[link.b]]))
        joins[a, b, link.bandwidth_Bps] += link.count
    return Folded(
        tuple(tuple(boxes[box]) for box in order),
        tuple(rank[boxes[box][0].id] for box in order),
        tuple(Join(a, b, count, rate) for (a, b, rate), count in sorted(joins.items())),
    )


def _refined(fabric: GraphFabric, number: dict[str, int]) -> dict[str, int]:
    """Colours split until elements of one colour see the same colours beside them."""
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
    """Colours by the order in which they come first."""
    numbers: dict[Hashable, int] = {}
    return {name: numbers.setdefault(result, len(numbers)) for name, result in colour.items()}
