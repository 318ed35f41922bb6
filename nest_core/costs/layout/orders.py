"""Device orders: which device carries rank 0, 1, 2, …

Ranks are numbered along the axes of a `Layout`; the device order says where the numbers sit.

* ``natural``: as the fabric numbers its devices.
* ``rack``: nodes, racks and pods one after another, whatever the fabric's numbering.
* ``rail``: within a rack or unit all devices of one slot, then of the next, so that
  neighbouring ranks share a rail and not a node.
* ``snake``: on a torus row by row, every second one backwards; neighbours stay one hop apart.
* ``hilbert``: on a torus along a Hilbert curve (Skilling, "Programming the Hilbert curve", AIP
  Conference Proceedings 707, 2004), so that any run of ranks is compact. Of shapes that are not
  equal powers of two, the part of the enclosing curve that lies inside.

A person's own order is the tuple of its devices, rank by rank (`nest_core.costs.placement`). Where
a fabric has holes, seatings are orders too (`nest_core.costs.layout.seatings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from nest_core.costs.layout.layout import Layout
from nest_core.costs.layout.seatings import SEATING, seated
from nest_core.documents.errors import InputError
from nest_core.network import IntArray, Network, TorusShape

__all__ = ["DEVICE_ORDERS", "DeviceOrder", "device_order", "rank_mapping", "seatings_among"]

DEVICE_ORDERS = ("natural", "rail", "rack", "snake", "hilbert")

DeviceOrder = str | tuple[int, ...]
"""One of `DEVICE_ORDERS`, a seating's name, or the devices of ranks 0, 1, 2, … one by one."""


def seatings_among(orders: Sequence[str]) -> tuple[str, ...]:
    """The device orders that leave gaps where a fabric has holes."""
    return tuple(order for order in orders if SEATING.fullmatch(order))


def rank_mapping(network: Network, layout: Layout, order: DeviceOrder) -> IntArray:
    """Device of every rank of a layout, shape (pp, dp * cp, tp).

    Raises
    ------
    InputError
        For an order of a person's own that leaves a rank without a device.
    """
    if isinstance(order, tuple) and len(order) < layout.devices_used:
        raise InputError(
            "device_order",
            f"must place all {layout.devices_used} ranks",
            len(order),
            "give a device for every rank",
        )
    return np.asarray(device_order(network, order)[layout.devices])


@lru_cache(maxsize=64)
def device_order(network: Network, order: DeviceOrder) -> IntArray:
    """Device of every rank number, shape (devices,): a permutation.

    Devices that a person's own order leaves out come last, as the fabric numbers them.

    Raises
    ------
    InputError
        For an order that is unknown, that the fabric has no meaning for, or of a person's own
        that names a device twice or one that there is not.
    """
    if isinstance(order, tuple):
        return _own(order, network.devices)
    if order == "natural":
        return np.arange(network.devices)
    if order == "rack":
        return np.lexsort(network.nesting)
    if order == "rail":
        return _by_slot(network)
    if SEATING.fullmatch(order):
        return seated(network, order)[0]
    if order not in DEVICE_ORDERS:
        raise InputError(
            "device_order", "must be one of the orders", order, "pick " + ", ".join(DEVICE_ORDERS)
        )
    if network.torus is None:
        raise InputError(
            "device_order",
            "must be natural, rail or rack unless the fabric is a torus",
            order,
            "pick natural",
        )
    place = network.torus.coordinates(network.place)
    return np.argsort(
        _snake(network.torus, place) if order == "snake" else _hilbert(place), kind="stable"
    )


def _own(order: tuple[int, ...], devices: int) -> IntArray:
    """A person's own order, completed by the devices that it leaves out."""
    taken: dict[int, int] = {}
    for rank, device in enumerate(order):
        if not 0 <= device < devices:
            raise InputError(
                f"device_order[{rank}]",
                f"must be one of the devices 0 to {devices - 1}",
                device,
                "correct it",
            )
        if device in taken:
            raise InputError(
                f"device_order[{rank}]",
                f"must differ from that of rank {taken[device]}",
                device,
                "give every rank a device of its own",
            )
        taken[device] = rank
    idle = np.setdiff1d(np.arange(devices), np.array(order, dtype=np.int64))
    return np.concatenate([np.array(order, dtype=np.int64), idle])


def _by_slot(network: Network) -> IntArray:
    """Devices sorted by unit, then slot in the node, then node."""
    node = network.node
    order = np.lexsort(network.nesting)
    opens = np.ones(network.devices, dtype=bool)
    opens[1:] = np.diff(node[order]) != 0
    first = np.maximum.accumulate(np.where(opens, np.arange(network.devices), 0))
    slot = np.empty(network.devices, dtype=np.int64)
    slot[order] = np.arange(network.devices) - first
    unit = network.nesting[min(1, len(network.nesting) - 1)]
    return np.lexsort((node, slot, unit, *network.nesting[2:]))


def _snake(shape: TorusShape, place: IntArray) -> IntArray:
    """Position of every place along the snake."""
    position = np.zeros(place.shape[1], dtype=np.int64)
    backwards = np.zeros(place.shape[1], dtype=np.int64)
    for axis in range(len(shape.shape) - 1, -1, -1):
        size = shape.shape[axis]
        along = np.where(backwards % 2 == 1, size - 1 - place[axis], place[axis])
        position = position * size + along
        backwards = backwards + place[axis]
    return position


def _hilbert(place: IntArray) -> IntArray:
    """Position of every place along the Hilbert curve of the enclosing cube."""
    axes = place.copy()
    dims = len(axes)
    bits = max(1, int(place.max()).bit_length())
    top = 1 << (bits - 1)
    bit = top
    while bit > 1:  # undo the excess turns, from the coarsest bit down
        lower = bit - 1
        for axis in range(dims):
            turned = (axes[axis] & bit) > 0
            exchange = np.where(turned, 0, (axes[0] ^ axes[axis]) & lower)
            axes[0] = np.where(turned, axes[0] ^ lower, axes[0] ^ exchange)
            axes[axis] = axes[axis] ^ exchange
        bit >>= 1
    for axis in range(1, dims):
        axes[axis] ^= axes[axis - 1]
    flip = np.zeros(axes.shape[1], dtype=np.int64)
    bit = top
    while bit > 1:
        flip = np.where((axes[dims - 1] & bit) > 0, flip ^ (bit - 1), flip)
        bit >>= 1
    axes ^= flip
    position = np.zeros(axes.shape[1], dtype=np.int64)
    for level in range(bits - 1, -1, -1):
        for axis in range(dims):
            position = position * 2 + ((axes[axis] >> level) & 1)
    return position
