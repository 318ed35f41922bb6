"""How far the elements of a graph are from its devices, and which switches serve devices alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from nest_core.fabric.checks import LinkGraph

__all__ = ["heights", "hops", "inner_switches"]

K = TypeVar("K", bound=Hashable)


def hops(
    graph: Mapping[K, Iterable[K]] | LinkGraph,
    sources: Iterable[K],
    enters: Callable[[K], bool] | None = None,
) -> dict[K, int]:
    """Return the links between every element and the nearest source, in the order of reaching it.

    Parameters
    ----------
    graph : mapping of element to its neighbours
    sources : iterable of element
    enters : callable, optional
        Whether an element that is no source is reached at all; else all are.
    """
    result = dict.fromkeys(sources, 0)
    order = list(result)
    for name in order:
        for other in graph[name]:
            if other not in result and (enters is None or enters(other)):
                result[other] = result[name] + 1
                order.append(other)
    return result


def heights(graph: Mapping[K, Iterable[K]] | LinkGraph, devices: Iterable[K]) -> dict[K, int]:
    """Return the links between every element and the nearest device.

    What no device reaches is one above all.
    """
    result = hops(graph, devices)
    above = max(result.values(), default=-1) + 1
    return result | {name: above for name in graph if name not in result}


def inner_switches(graph: Mapping[K, Collection[K]] | LinkGraph, devices: Collection[K]) -> set[K]:
    """Return what has devices alone beside it, as a server's own switch has."""
    ends = set(devices)
    return {
        name for name in graph if name not in ends and graph[name] and ends.issuperset(graph[name])
    }
