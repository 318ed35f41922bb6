"""Fabrics without elements that failed, by the names that people give these.

What a fabric counts (devices, nodes, switches by their tier) is named with its number from 0, as in
``missing``: ``leaf 3``. Of a Clos also a ``rail`` (its leaves in every unit) and a ``plane`` (its
switches in every tier). Nodes whose only leaves failed go with them. Elements and links of a drawn
graph are named as they are drawn (``sw3``, ``sw3 to sw7``); of parallel links one fails.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import singledispatch

import numpy as np

from nest_core.documents.errors import InputError
from nest_core.fabric.asbuilt import switches_per_plane
from nest_core.fabric.clos import Clos
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.graph import GraphFabric

__all__ = ["counted_element", "element_kinds", "no_such", "without"]

_COUNTED = re.compile(r"(.*?[^\W\d_])[\W_]*(\d{1,9})")
_ALSO_CALLED = {"gpu": "device", "tpu": "device", "server": "node", "host": "node"}


def element_kinds(fabric: Fabric) -> dict[str, int]:
    """Return how many elements of each kind may fail, numbers counting those that have already."""
    kinds = dict(fabric.element_counts)
    if isinstance(fabric, Clos):
        kinds |= {"rail": fabric.rails} if fabric.rails > 1 else {}
        kinds |= {"plane": fabric.planes} if fabric.planes > 1 else {}
    return kinds


def counted_element(name: str, kinds: dict[str, int]) -> str | None:
    """Return an element's name as files have it; None for what is no kind and number.

    Examples
    --------
    >>> counted_element("GPU3", {"device": 8}), counted_element("leaf 9", {"leaf": 8})
    ('device 3', None)
    """
    match = _COUNTED.fullmatch(name.strip().lower())
    if match is None:
        return None
    kind, number = _ALSO_CALLED.get(match[1], match[1]), int(match[2])
    return f"{kind} {number}" if number < kinds.get(kind, 0) else None


def no_such(name: str, kinds: dict[str, int], others: Iterable[str] = ()) -> InputError:
    """Return the error that a fabric has no such element, with the nearest that it has."""
    match = _COUNTED.fullmatch(name.strip().lower())
    kind, number = (match[1], int(match[2])) if match else (name.strip().lower(), 0)
    near = difflib.get_close_matches(_ALSO_CALLED.get(kind, kind), kinds, 1, 0.6)
    names = [f"{of} {min(number, kinds[of] - 1)}" for of in near]
    names += difflib.get_close_matches(name, [*others], 1, 0.0)
    names += [f"{of} 0" for of in kinds]
    return InputError(
        "element", "must be one of the fabric", name, f'the nearest named is "{names[0]}"'
    )


@singledispatch
def without(fabric: Fabric, elements: Sequence[str]) -> Fabric:
    """Return a fabric without some of its elements.

    Raises
    ------
    InputError
        For what it has not, and for what is left without a device or without a path.
    """
    return replace(fabric, missing=(*fabric.missing, *_counted(fabric, elements)))


@without.register
def _(fabric: Clos, elements: Sequence[str]) -> Clos:
    missing = [*fabric.missing]
    for element in _counted(fabric, elements):
        kind, number = element.rsplit(" ", 1)
        is_counted = kind in fabric.element_counts
        missing += [element] if is_counted else _switches(fabric, kind, int(number))
    leaves, size = fabric.rails * fabric.planes, fabric.sizing.nodes_per_unit
    for unit in range(fabric.sizing.units):
        numbers = range(unit * leaves, (unit + 1) * leaves)
        if {f"{fabric.tier_names[0]} {number}" for number in numbers} <= {*missing}:
            nodes = range(unit * size, min((unit + 1) * size, fabric.nodes))
            missing += [f"node {node}" for node in nodes]
    every = tuple(dict.fromkeys(missing))
    return replace(fabric, devices=fabric.slots, installed=0, missing=every)


@without.register
def _(fabric: GraphFabric, elements: Sequence[str]) -> GraphFabric:
    ids, links = [element.id for element in fabric.elements], list(fabric.links)
    gone = {name for name in elements if name in ids}
    for name in (name for name in elements if name not in gone):
        ends = {*name.split(" to ")}
        at = next((n for n, link in enumerate(links) if {link.a, link.b} == ends), None)
        if at is None:
            raise no_such(name, {}, [*ids, *(f"{link.a} to {link.b}" for link in links)])
        links[at] = replace(links[at], count=links[at].count - 1)
    return replace(
        fabric,
        elements=tuple(element for element in fabric.elements if element.id not in gone),
        links=tuple(link for link in links if link.count and not gone & {link.a, link.b}),
    )


def _counted(fabric: Fabric, elements: Sequence[str]) -> list[str]:
    """Return elements as files have them, once each is known to be there."""
    kinds, names = element_kinds(fabric), []
    for name in elements:
        element = counted_element(name, kinds)
        if element is None:
            raise no_such(name, kinds)
        names.append(element)
    return names


def _switches(fabric: Clos, kind: str, number: int) -> list[str]:
    """Return the leaves of a rail, or the switches of a plane."""
    names = []
    tiers = zip(fabric.tier_names, switches_per_plane(fabric), strict=True)
    for tier, per_group in [*tiers][: 1 if kind == "rail" else None]:
        group = np.repeat(np.arange(len(per_group)), per_group * fabric.planes)
        first = np.cumsum(per_group * fabric.planes) - per_group * fabric.planes
        plane = (np.arange(len(group)) - first[group]) // per_group[group]
        of = plane if kind == "plane" else group % fabric.rails
        names += [f"{tier} {switch}" for switch in np.flatnonzero(of == number).tolist()]
    return names
