"""Where every rank of a plan sits.

Ranks are numbered along the axes in ``order``, innermost first, and placed on consecutive
devices 0, 1, 2, …; the devices left over stay idle. ``("tp", "pp", "dp")`` is the paper's
placement (the stages of a replica side by side, replicas one after another), ``("tp", "dp",
"pp")`` Megatron-LM's (the replicas of a stage side by side).

Device orders: which device carries rank 0, 1, 2, …

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

Where ranks sit when stages differ in width: `Layout`, with tp and cp stage by stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nest_core.costs.layout.seatings import SEATING, seated
from nest_core.documents.errors import InputError, require
from nest_core.network import FloatArray, IntArray, Network, TorusShape

__all__ = [
    "AXES",
    "DEVICE_ORDERS",
    "MEGATRON_ORDER",
    "DeviceOrder",
    "Layout",
    "device_order",
    "overlaps",
    "places",
    "ragged_ranks",
    "rank_mapping",
    "ranks_in_nodes",
    "seatings_among",
]

MEGATRON_ORDER = ("tp", "cp", "dp", "pp")
"""Axes as Megatron-LM numbers its ranks, innermost first."""
AXES = MEGATRON_ORDER
"""The same in no order."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Coordinates of the devices in use.

    Parameters
    ----------
    tp, cp, dp, pp : int
        Degrees.
    order : tuple of str
        A permutation of `AXES`, innermost first.

    Examples
    --------
    >>> Layout(tp=2, cp=1, dp=2, pp=2, order=("tp", "pp", "cp", "dp")).devices
    array([[[0, 1],
            [4, 5]],
    <BLANKLINE>
           [[2, 3],
            [6, 7]]])
    """

    tp: int
    cp: int
    dp: int
    pp: int
    order: tuple[str, ...]

    @property
    def devices_used(self) -> int:
        """Number of devices that work."""
        return self.tp * self.cp * self.dp * self.pp

    def stride(self, axis: str) -> int:
        """Devices between neighbours on an axis."""
        step = 1
        for name in self.order:
            if name == axis:
                return step
            step *= int(getattr(self, name))
        raise KeyError(axis)

    @property
    def devices(self) -> IntArray:
        """Device of every rank, shape (pp, dp * cp, tp); dp * cp counts dp slowest."""
        tp = np.arange(self.tp) * self.stride("tp")
        cp = np.arange(self.cp) * self.stride("cp")
        dp = np.arange(self.dp) * self.stride("dp")
        pp = np.arange(self.pp) * self.stride("pp")
        replicas = (dp[:, None] + cp[None, :]).reshape(-1)
        return pp[:, None, None] + replicas[None, :, None] + tp[None, None, :]

    @property
    def nearest(self) -> IntArray:
        """Columns of the middle axis of `devices` in the order of their ranks, shape (dp * cp,).

        Examples
        --------
        >>> Layout(tp=1, cp=2, dp=2, pp=1, order=("tp", "dp", "cp", "pp")).nearest
        array([0, 2, 1, 3])
        """
        return np.argsort(self.devices[0, :, 0], kind="stable")

    def stage_of(self, devices: int) -> IntArray:
        """Stage of each of the fabric's devices; −1 where idle. Shape (devices,)."""
        result = np.full(devices, -1, dtype=np.int64)
        result[self.devices] = np.arange(self.pp)[:, None, None]
        return result


DEVICE_ORDERS = ("natural", "rail", "rack", "snake", "hilbert")

DeviceOrder = str | tuple[int, ...]
"""One of `DEVICE_ORDERS`, a seating's name, or the devices of ranks 0, 1, 2, … one by one."""


def seatings_among(orders: Sequence[str]) -> tuple[str, ...]:
    """Return the device orders that leave gaps where a fabric has holes."""
    return tuple(order for order in orders if SEATING.fullmatch(order))


@lru_cache(maxsize=32)
def rank_mapping(network: Network, layout: Layout, order: DeviceOrder) -> IntArray:
    """Device of every rank of a layout, shape (pp, dp * cp, tp).

    Raises
    ------
    InputError
        For an order of a person's own that leaves a rank without a device.
    """
    require(
        not isinstance(order, tuple) or len(order) >= layout.devices_used,
        "device_order",
        f"must place all {layout.devices_used} ranks",
        len(order),
        "give a device for every rank",
    )
    return np.asarray(device_order(network, order)[layout.devices])


@lru_cache(maxsize=128)
def ranks_in_nodes(network: Network, order: str) -> tuple[int, int]:
    """Return the fewest and the most ranks that a node has, of those that an order seats.

    0 and 0 where ranks of other nodes come between those of one.

    Examples
    --------
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> from nest_core.network import collapse
    >>> tiers = (Tier("node", 6, 100e9, 1e-6), Tier("rack", 3, 50e9, 2e-6))
    >>> network = collapse(Hierarchical("six", tiers))
    >>> [ranks_in_nodes(network, order) for order in ("natural", "4 per node", "rail")]
    [(6, 6), (4, 4), (0, 0)]
    """
    node = network.node[device_order(network, order)[: places(network, order)]]
    if not _are_whole(node):
        return 0, 0
    ranks = np.bincount(node)
    return int(ranks[ranks > 0].min()), int(ranks.max())


@lru_cache(maxsize=128)
def places(network: Network, order: str) -> int:
    """Return how many ranks an order has a place for: all, but in a seating what it takes.

    Those go on with what they leave out where that parts no node.
    """
    if not SEATING.fullmatch(order):
        return network.devices
    devices, taken = seated(network, order)
    return network.devices if _are_whole(network.node[devices]) else taken


def _are_whole(node: IntArray) -> bool:
    """Whether the ranks of every node follow one another."""
    return 1 + int((node[1:] != node[:-1]).sum()) == len(np.unique(node))


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
    require(
        order in DEVICE_ORDERS,
        "device_order",
        "must be one of the orders",
        order,
        "pick " + ", ".join(DEVICE_ORDERS),
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
    """Return a person's own order, completed by the devices that it leaves out."""
    taken: dict[int, int] = {}
    for rank, device in enumerate(order):
        require(
            0 <= device < devices,
            f"device_order[{rank}]",
            f"must be one of the devices 0 to {devices - 1}",
            device,
            "correct it",
        )
        require(
            device not in taken,
            f"device_order[{rank}]",
            f"must differ from that of rank {taken.get(device)}",
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


def ragged_ranks(
    degrees: Sequence[tuple[int, int]], dp: int, order: tuple[str, ...]
) -> tuple[IntArray, ...]:
    """Rank numbers of every stage, each of shape (dp * cp, tp), dp slowest.

    Parameters
    ----------
    degrees : sequence of (tp, cp)
        By stage.
    order : tuple of str
        A permutation of `AXES` that begins with tp and cp.

    Examples
    --------
    >>> [stage.tolist() for stage in ragged_ranks([(2, 1), (1, 1)], 2, ("tp", "cp", "pp", "dp"))]
    [[[0, 1], [3, 4]], [[2], [5]]]
    >>> [stage.tolist() for stage in ragged_ranks([(2, 1), (1, 1)], 2, ("tp", "cp", "dp", "pp"))]
    [[[0, 1], [2, 3]], [[4], [5]]]
    """
    widths = [tp * cp for tp, cp in degrees]
    by_replica = order[-1] == "dp"
    groups, before = [], 0
    for (tp, cp), width in zip(degrees, widths, strict=True):
        step = sum(widths) if by_replica else width
        first = before if by_replica else before * dp
        inside = np.arange(width).reshape(cp, tp)
        if order[0] == "cp":
            inside = np.arange(width).reshape(tp, cp).T
        groups.append(((first + step * np.arange(dp))[:, None, None] + inside).reshape(dp * cp, tp))
        before += width
    return tuple(groups)


def overlaps(before: int, after: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Pieces of a whole that one side holds in ``before`` equal parts, the other in ``after``.

    Returns
    -------
    part on the left, part on the right, share of the whole; each of shape (pieces,)

    Examples
    --------
    >>> [column.tolist() for column in overlaps(4, 2)]
    [[0, 1, 2, 3], [0, 0, 1, 1], [0.25, 0.25, 0.25, 0.25]]
    """
    common = int(np.lcm(before, after))
    edges = np.union1d(
        np.arange(0, common, common // before), np.arange(0, common, common // after)
    )
    share = np.diff(np.append(edges, common)) / common
    return edges // (common // before), edges // (common // after), share
