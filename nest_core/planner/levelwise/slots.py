"""Where stages may sit, and which levels lie between them.

A replica has ``R = D // d`` consecutive devices under the paper's order (replica by replica), or
every stage holds its ``d`` replicas side by side (Megatron-LM's order). In both a stage of width
``a`` starts only where none of its replicas straddles a group that would hold ``a`` devices; the
places left are *slots*, counted from the last stage as in the paper. A plan takes slots in
ascending order and may leave some out: those are its gaps, and the level of a link is the largest
that lies between two stages. Stages of *unequal* widths start at any device of a replica, under the
same rule; the paper's order alone has them (`Stretch`).

References
----------
NEST, MLSys 2026, Algorithm 1: ``k`` devices are used by the suffix, the producer starts there.
"""

from dataclasses import dataclass

import numpy as np

from nest_core.costs.layout import DeviceOrder
from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, IntArray, Network

__all__ = ["PAPER_ORDER", "Slots", "Stretch", "slots", "stretch"]

PAPER_ORDER = ("tp", "cp", "pp", "dp")


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Slots of one width and data-parallel degree.

    Parameters
    ----------
    order : tuple of str
        Axes, innermost first; replica by replica where ``dp`` is the last of them.
    devices : (slots, dp, width)
        Devices of every replica of a stage that sits there.
    level : (slots,)
        Level between a slot and the one before; 0 for the first.
    """

    order: tuple[str, ...]
    devices: IntArray
    level: IntArray

    def __len__(self) -> int:
        return len(self.devices)

    def device_order(self, taken: IntArray) -> DeviceOrder:
        """Devices of all ranks of a plan that takes some slots, its first stage's slot first."""
        placed = self.devices[taken]
        if self.order[-1] == "dp":
            placed = placed.swapaxes(0, 1)
        return _named(placed.reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Consecutive devices of every replica, for stages of several widths.

    Parameters
    ----------
    widths : tuple of int
        Ascending.
    devices : (dp, R)
        Of every replica, from its last stage's end.
    level : (R,)
        Level between a device and the one before, in whichever replica it is the largest; 0 for
        the first.
    inner : (widths,)
        Level of the smallest group that holds a stage.
    ends : (widths, R)
        The device after a stage that starts here; -1 where it would straddle such a group.
    """

    widths: tuple[int, ...]
    devices: IntArray
    level: IntArray
    inner: IntArray
    ends: IntArray

    def device_order(self, starts: IntArray, widths: list[int]) -> DeviceOrder:
        """Devices of all ranks of a plan, its first stage's start and width first."""
        parts = [
            self.devices[:, start : start + width][:, ::-1]
            for start, width in zip(starts.tolist(), widths, strict=True)
        ]
        return _named(np.concatenate(parts, axis=1).reshape(-1))


def _named(ranks: IntArray) -> DeviceOrder:
    return "natural" if np.array_equal(ranks, np.arange(len(ranks))) else tuple(ranks.tolist())


def stretch(network: Network, dp: int, widths: tuple[int, ...]) -> Stretch:
    """Return the devices of a network whose blocks nest, replica by replica.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> tiers = (Tier("node", 4, 100e9, 1e-6), Tier("rack", 2, 50e9, 2e-6))
    >>> found = stretch(collapse(Hierarchical("two", tiers)), 1, (1, 3))
    >>> found.level.tolist(), found.ends[1].tolist()
    ([0, 0, 0, 0, 1, 0, 0, 0], [3, 4, -1, -1, 7, 8, -1, -1])
    """
    line, span = np.lexsort(network.nesting)[::-1], network.devices // dp
    rows = line[: dp * span].reshape(dp, span)
    level = np.zeros(span, dtype=np.int64)
    level[1:] = network.level(rows[:, :-1], rows[:, 1:]).max(axis=0)
    sizes = np.array([int(np.bincount(block).max()) for block in network.nesting])
    inner = np.array([int(np.argmax(sizes >= width)) for width in widths])
    ends = np.full((len(widths), span), -1, dtype=np.int64)
    for number, width in enumerate(widths):
        crossed = np.concatenate([[0], np.cumsum(level > inner[number])])
        start = np.arange(max(0, span - width + 1))
        fits = crossed[start + width] == crossed[start + 1]
        ends[number, start[fits]] = start[fits] + width
    return Stretch(widths, rows[::-1], level, inner, ends)


def slots(network: Network, order: tuple[str, ...], dp: int, width: int) -> Slots | None:
    """All slots of a network whose blocks nest; None if there is none.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> tiers = (Tier("node", 4, 100e9, 1e-6), Tier("rack", 2, 50e9, 2e-6))
    >>> found = slots(collapse(Hierarchical("two", tiers)), PAPER_ORDER, 1, 3)
    >>> found.devices[:, 0].tolist(), found.level.tolist()
    ([[5, 6, 7], [1, 2, 3]], [0, 1])
    """
    # From the far end, so that stages that leave no gap sit in the fabric's own order.
    line = np.lexsort(network.nesting)[::-1]
    between = np.zeros(network.devices, dtype=np.int64)
    between[1:] = network.level(line[:-1], line[1:])
    sizes = np.array([int(np.bincount(block).max()) for block in network.nesting])
    if width > sizes[-1]:
        return None
    most = int(np.argmax(sizes >= width))
    replicas, span = (dp, network.devices // dp) if order[-1] == "dp" else (1, network.devices)
    starts = _starts(between <= most, replicas, span, width)
    within = starts[:, None, None] + np.arange(replicas)[:, None] * span + np.arange(width)
    if replicas != dp:
        count = len(starts) // dp
        within = within[: count * dp].reshape(count, dp, width)
    if not len(within):
        return None
    devices = line[within[:, ::-1, ::-1]]
    level = np.zeros(len(devices), dtype=np.int64)
    level[1:] = network.level(devices[:-1], devices[1:]).max(axis=(1, 2))
    return Slots(order, devices, level)


@compiled
def _starts(close: BoolArray, replicas: int, span: int, width: int) -> IntArray:
    """Offsets at which no replica's stage leaves its group; ``close``: the one before is in it."""
    starts = np.empty(span // width, dtype=np.int64)
    count, at = 0, 0
    while at + width <= span:
        step = 0
        for replica in range(replicas):
            for place in range(1, width):
                if not close[replica * span + at + place]:
                    step = max(step, place)
        if step:
            at += step
        else:
            starts[count] = at
            count += 1
            at += width
    return starts[:count]
