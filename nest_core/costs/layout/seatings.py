"""Seatings: device orders that leave gaps where a fabric has holes.

Ranks on consecutive devices straddle nodes as soon as one node has a device less, or as many as no
degree divides. A seating takes from every block of a level (a node, a rack; on a torus a row) what
its rule says. Devices that it leaves out come last, as the fabric numbers them.

* ``8 per node``: the first 8 devices of every node that has as many; other nodes are skipped.
* ``multiples of 4 per node``: of every node the most devices that are a multiple of 4, the fullest
  nodes of the fullest racks first. Multiples of 1 are all devices, whole nodes first.

Which seatings a fabric has follows from its blocks alone: none where the blocks of every level are
equally large and the size of a node is a power of two.
"""

import re
from functools import lru_cache

import numpy as np

from nest_core.documents.errors import InputError, require
from nest_core.network import BoolArray, IntArray, Network

__all__ = ["SEATING", "Seated", "seated", "seatings"]

SEATING = re.compile(r"(?P<multiples>multiples of )?(?P<count>[1-9]\d{0,6}) per (?P<level>.+)")
"""Names of seatings."""

_SMALL = 16
"""Of nodes of at most so many devices every number is tried, of larger ones some."""

Seated = tuple[IntArray, int]
"""Devices in the order of ranks, shape (devices,), and how many of them are not left out."""


@lru_cache(maxsize=64)
def seatings(network: Network) -> tuple[str, ...]:
    """Names of a fabric's seatings, those of the most devices first; no two place ranks alike.

    Examples
    --------
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> from nest_core.network import collapse
    >>> tiers = (Tier("node", 4, 100e9, 1e-6), Tier("rack", 3, 50e9, 2e-6))
    >>> seatings(collapse(Hierarchical("whole", tiers)))
    ()
    >>> seatings(collapse(Hierarchical("hole", tiers, missing=("device 1",))))[:3]
    ('multiples of 1 per node', 'multiples of 2 per node', 'multiples of 3 per node')
    """
    sizes = [np.unique(np.bincount(block)[block]) for block in network.nesting[:-1]]
    uneven = [len(named_orders) > 1 for named_orders in sizes]
    odd = bool(sizes) and network.torus is None and bool((sizes[0] & (sizes[0] - 1)).any())
    if not any(uneven) and not odd:
        return ()
    rules: list[str] = []
    for index, name in enumerate(_level_names(network)):
        if index == 0:
            numbers = _of_node(sizes[0])
            rules += [f"multiples of {number} per {name}" for number in numbers]
            rules += [f"{number} per {name}" for number in numbers]
        elif uneven[index]:
            rules += [f"{number} per {name}" for number in _of_block(sizes[index], sizes[0])]
    named_orders: dict[bytes, tuple[int, str]] = {}
    for rule in rules:
        order, taken = seated(network, rule)
        if (order[:taken] != np.arange(taken)).any():
            named_orders.setdefault(order[:taken].tobytes(), (-taken, rule))
    return tuple(rule for _, rule in sorted(named_orders.values(), key=lambda entry: entry[0]))


@lru_cache(maxsize=128)
def seated(network: Network, name: str) -> Seated:
    """Return the device order of a seating, and how many devices it does not leave out.

    Raises
    ------
    InputError
        If the fabric has no such level, or none of its blocks as many devices.
    """
    read, levels = SEATING.fullmatch(name), _level_names(network)
    every = (*levels, *(f"level {index}" for index in range(len(levels))))  # in plans of old
    if read is None or read["level"] not in every:
        raise InputError(
            "device_order",
            "must seat so many devices per level of the fabric",
            name,
            "name one of " + ", ".join(levels) if levels else "pick natural: it has one level",
        )
    index, count = every.index(read["level"]) % len(levels), int(read["count"])
    block = network.nesting[index]
    size = np.bincount(block)[block]
    usable = size // count * count if read["multiples"] else np.where(size >= count, count, 0)
    sits = _place_in(block) < usable
    require(
        sits.any(), "device_order", "must seat a device", name, f"name at most {int(size.max())}"
    )
    devices = np.arange(network.devices)
    order = _fullest_first(network, index, sits) if read["multiples"] else devices[sits]
    return np.concatenate([order, devices[~sits]]), int(sits.sum())


def _level_names(network: Network) -> tuple[str, ...]:
    """Return what blocks are called, level by level but for the last, which is the whole fabric."""
    inner = len(network.nesting) - 1
    if network.torus is not None:
        return ("row", "plane")[:inner]
    names = [level.name for level in network.levels[1:]]
    aligned = len(network.levels) == len(network.nesting)
    outer = [names[index] if aligned else f"level {index + 1}" for index in range(inner - 1)]
    return ("node", *outer)[:inner]


def _of_node(sizes: IntArray) -> list[int]:
    most = int(sizes.max())
    few = range(1, min(most, _SMALL if most <= _SMALL else _SMALL // 2) + 1)
    return sorted(
        {*few, *[2**bit for bit in range(most.bit_length())], *sizes.tolist()}, reverse=True
    )


def _of_block(sizes: IntArray, nodes: IntArray) -> list[int]:
    """Whole nodes, and powers of two, that fit into blocks of any of the sizes."""
    node = int(nodes.max())
    multiples = {size // node * node for size in sizes.tolist()}
    powers = {2 ** (size.bit_length() - 1) for size in sizes.tolist()}
    return sorted((multiples | powers) - {0}, reverse=True)


def _place_in(block: IntArray) -> IntArray:
    """How many devices of its block come before each device."""
    order = np.argsort(block, kind="stable")
    first = np.searchsorted(block[order], block[order])
    place = np.empty_like(order)
    place[order] = np.arange(len(block)) - first
    return place


def _fullest_first(network: Network, index: int, sits: BoolArray) -> IntArray:
    """Those who sit, by blocks of a level and those around it, the fullest first."""
    keys = [np.arange(network.devices)]
    for block in network.nesting[index:]:
        keys += [block, -np.bincount(block, weights=sits)[block]]
    order = np.lexsort(keys)
    return np.asarray(order[sits[order]])
