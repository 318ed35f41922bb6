"""Tori and meshes in drawn graphs: which one a graph is, verified link by link.

A torus that was drawn, or read from another program's file, is a graph; what its rings can do is
known only of a torus. So a graph of equal links between devices (and routers that stand for
missing ones) is compared with every torus and mesh of two or three dimensions that has as many
places, links and neighbours. The first place goes to the first element that has its number of
neighbours, the places beside it are tried in every order, and each further place is then the one
element that its neighbours leave. The result counts only if every link of the torus is a link of
the graph and the graph has no other.

Complexity: O(shapes x places) for what is a torus, and for most that is none.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np

from nest_core.documents import summed
from nest_core.fabric.arrange import hops
from nest_core.fabric.checks import IntArray
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.graph import GraphFabric
from nest_core.fabric.torus import MAX_DIAMETER, Torus

__all__ = ["Lattice", "lattice_of", "torus_of"]

FEWEST = 3
"""Two devices and a link between them have no ring."""

MOST_NEIGHBOURS = 6

TRIED = 100_000
"""Places laid out in search of the order in which devices are listed, where some are missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The torus that a fabric is.

    Parameters
    ----------
    torus : Torus
        With the fabric's name, rate and latency; what stands for a router is missing.
    place : int array (devices,)
        Where in it every device of the fabric sits.
    routers : mapping of int to str
        What a drawing calls the routers at the other places.
    """

    torus: Torus
    place: IntArray
    routers: Mapping[int, str] = field(default_factory=dict)

    @property
    def elements(self) -> list[Any]:
        """What is at every place, as the fabric's ``explicit()`` calls it."""
        elements: list[Any] = [
            self.routers.get(at, ("router", at)) for at in range(self.torus.places)
        ]
        for device, at in enumerate(self.place.tolist()):
            elements[at] = device
        return elements

    @property
    def in_order(self) -> bool:
        """Whether the graph numbers its devices as the torus does."""
        return bool((np.diff(self.place) > 0).all())


def torus_of(fabric: Fabric) -> Torus | None:
    """Return the torus that a fabric is, drawn or not; None where it is none."""
    lattice = lattice_of(fabric)
    return None if lattice is None else lattice.torus


@singledispatch
def lattice_of(fabric: Fabric) -> Lattice | None:
    """Return the torus or mesh that a fabric is, drawn or not; None where it is none.

    Of several that a graph is (a torus of 4 x 4 is a mesh of 2 x 2 rings of four), the one in whose
    order the devices are listed, else the first found.

    Examples
    --------
    >>> from nest_core.fabric.graph import Element, Link
    >>> names = [f"chip {n}" for n in range(6)]
    >>> ring = [Link(a, b, 50e9) for a, b in zip(names, names[1:] + names[:1])]
    >>> chips = tuple(Element(name, "device") for name in names)
    >>> found = lattice_of(GraphFabric("six", chips, tuple(ring)))
    >>> found.torus.shape, found.torus.wrap
    ((6, 1), (True, False))
    """
    return None


@lattice_of.register
def _(fabric: Torus) -> Lattice | None:
    return Lattice(fabric, fabric.place_of())


@lattice_of.register
@lru_cache(maxsize=32)
def _found(fabric: GraphFabric) -> Lattice | None:
    neighbours = _neighbours(fabric)
    if neighbours is None:
        return None
    best: Lattice | None = None
    routers = len(neighbours) - fabric.devices
    # Sorting is stable: first those whose first place has the neighbours that the first device has.
    for torus in sorted(
        _candidates(fabric, neighbours), key=lambda torus: _first(torus) != neighbours[0]
    ):
        # Neighbours are tried in the order of their numbers, which only routers upset.
        most = max(1, TRIED // len(neighbours)) if routers else 1
        for placed in itertools.islice(_placings(torus, neighbours, routers), most):
            lattice = _lattice(fabric, torus, placed)
            if lattice.in_order:
                return lattice
            best = best or lattice
    return best


def _neighbours(fabric: GraphFabric) -> list[list[int]] | None:
    """Of every element, devices first; None where no torus has such links."""
    roles = {element.id: element.role for element in fabric.elements}
    links, places = fabric.links, len(fabric.elements)
    alike = {(link.bandwidth_Bps, link.latency_s, link.count) for link in links}
    if len(alike) != 1 or next(iter(alike))[2] != 1 or "nic" in roles.values():
        return None
    if fabric.routing == "ecmp" or not FEWEST <= places <= len(links) + 1:
        return None
    routers = [element.id for element in fabric.elements if element.role == "switch"]
    number = {name: at for at, name in enumerate([*fabric.device_ids, *routers])}
    neighbours: list[list[int]] = [[] for _ in range(places)]
    for link in links:
        a, b = number[link.a], number[link.b]
        neighbours[a].append(b)
        neighbours[b].append(a)
    if max(map(len, neighbours)) > MOST_NEIGHBOURS:
        return None
    return [sorted(others) for others in neighbours] if _alike(neighbours) else None


def _alike(neighbours: Sequence[Sequence[int]]) -> bool:
    """Whether places see the same around them, as they do where all have as many neighbours."""
    if len(set(map(len, neighbours))) > 1:
        return True
    seen = {
        tuple(sorted(Counter(far for near in others for far in neighbours[near]).values()))
        for others in neighbours
    }
    return len(seen) == 1


def _candidates(fabric: GraphFabric, neighbours: Sequence[Sequence[int]]) -> Iterator[Torus]:
    """Tori with as many places, links and places of every number of neighbours."""
    places, links = len(neighbours), len(fabric.links)
    degrees = Counter(map(len, neighbours))
    first = fabric.links[0]
    for shape in _shapes(places):
        if sum(shape) > MAX_DIAMETER:
            continue
        long = [axis for axis, size in enumerate(shape) if size > 2]
        for closed in itertools.product((True, False), repeat=len(long)):
            wrap = [False] * len(shape)
            for axis, closes in zip(long, closed, strict=True):
                wrap[axis] = closes
            if links == _links(shape, wrap) and degrees == _degrees(shape, wrap):
                yield Torus(fabric.name, shape, tuple(wrap), first.bandwidth_Bps, first.latency_s)
        if set(degrees) == {6} and _twists(shape):
            yield Torus(fabric.name, shape, (True,) * 3, first.bandwidth_Bps, first.latency_s, True)


def _shapes(places: int) -> Iterator[tuple[int, ...]]:
    """Two or three sizes above 1, and the line."""
    yield (places, 1)
    yield from ((first, places // first) for first in _divisors(places))
    for first in _divisors(places):
        rest = places // first
        yield from ((first, second, rest // second) for second in _divisors(rest))


def _divisors(number: int) -> list[int]:
    """Those but 1 and the number itself, ascending."""
    low = [size for size in range(2, math.isqrt(number) + 1) if number % size == 0]
    return sorted({*low, *(number // size for size in low)})


def _links(shape: Sequence[int], wrap: Sequence[bool]) -> int:
    plane = math.prod(shape)
    return sum(
        plane // size * (size if closes else size - 1)
        for size, closes in zip(shape, wrap, strict=True)
    )


def _degrees(shape: Sequence[int], wrap: Sequence[bool]) -> Counter[int]:
    """How many places have how many neighbours."""
    degrees: Counter[int] = Counter({0: 1})
    for size, closes in zip(shape, wrap, strict=True):
        along = {2: size} if closes else {1: 2, 2: size - 2} if size > 1 else {0: 1}
        degrees = Counter(
            summed(
                (so_far + more, many * times)
                for (so_far, many), (more, times) in itertools.product(
                    degrees.items(), along.items()
                )
            )
        )
    return +degrees


def _first(torus: Torus) -> list[int]:
    """Places beside the first one, ascending, of a torus that is not twisted."""
    strides, stride = set(), 1
    for size, closes in zip(torus.shape, torus.wrap, strict=True):
        strides |= {stride} if size > 1 else set()
        strides |= {(size - 1) * stride} if closes else set()
        stride *= size
    return sorted(strides)


def _twists(shape: Sequence[int]) -> bool:
    short, middle, long = sorted(shape) if len(shape) == 3 else (0, 0, 0)
    return short >= 2 and long == 2 * short and middle in (short, long)


def _placings(
    torus: Torus, neighbours: Sequence[Sequence[int]], routers: int
) -> Iterator[list[int]]:
    """Elements at the places of a torus, in every way in which the graph is it."""
    ahead = _torus_neighbours(torus)
    near, order = sorted(ahead[0]), list(hops(dict(enumerate(map(sorted, ahead))), [0]))
    fitting = [at for at, others in enumerate(neighbours) if len(others) == len(near)]
    # The first place is the first device's, unless what is missing there is a router.
    firsts = fitting[:1] + [at for at in fitting[1:] if at >= len(neighbours) - routers]
    for first in firsts:
        for beside_first in itertools.permutations(neighbours[first]):
            fixed = dict(zip(near, beside_first, strict=True)) | {0: first}
            placing = _filled(fixed, order, ahead, neighbours)
            if placing is not None:
                yield placing


def _torus_neighbours(torus: Torus) -> list[set[int]]:
    """Of every place."""
    neighbours: list[set[int]] = [set() for _ in range(torus.places)]
    for a, b, *_ in torus.link_places():
        for place, other in zip(a.tolist(), b.tolist(), strict=True):
            neighbours[place].add(other)
            neighbours[other].add(place)
    return neighbours


def _filled(
    fixed: dict[int, int],
    order: Sequence[int],
    ahead: Sequence[set[int]],
    neighbours: Sequence[Sequence[int]],
) -> list[int] | None:
    """Go outwards: each place takes the element that is linked to what is there as it is."""
    at = dict(fixed)
    place_of = {element: place for place, element in at.items()}
    for place in order:
        reached = {at[other] for other in ahead[place] if other in at}
        if place in at:
            options: Sequence[int] = [at[place]]
        else:
            anchor = next(at[other] for other in ahead[place] if other in at)
            options = [element for element in neighbours[anchor] if element not in place_of]
        fits = (
            element
            for element in options
            if {other for other in neighbours[element] if other in place_of} == reached
        )
        element = next(fits, None)
        if element is None:
            return None
        at[place], place_of[element] = element, place
    # Every link was seen when the later of its ends was placed, and no others are there.
    return [at[place] for place in range(len(ahead))]


def _lattice(fabric: GraphFabric, torus: Torus, placed: Sequence[int]) -> Lattice:
    devices = fabric.devices
    place = np.empty(len(placed), dtype=np.int64)
    place[list(placed)] = np.arange(len(placed))
    missing = tuple(f"device {number}" for number in sorted(place[devices:].tolist()))
    surrounding = Torus(
        torus.name,
        torus.shape,
        torus.wrap,
        torus.link_bandwidth_Bps,
        torus.hop_latency_s,
        torus.twisted,
        missing=missing,
    )
    routers = [element.id for element in fabric.elements if element.role == "switch"]
    return Lattice(
        surrounding, place[:devices], dict(zip(place[devices:].tolist(), routers, strict=True))
    )
