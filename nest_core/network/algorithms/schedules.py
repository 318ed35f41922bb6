"""Who sends what to whom among ``n`` members: schedules over the indices 0 .. n - 1.

A schedule says nothing about links; `spread` puts it on the members of groups, at once or
level by level. Volumes are bytes per byte of the buffer ``m``: the input of a reduce-scatter,
an all-reduce or an all-to-all, the message of a broadcast. An all-gather is a reduce-scatter
backwards, so only one of the two is written down.

References
----------
1. Thakur, Rabenseifner, Gropp: "Optimization of collective communication operations in MPICH",
   IJHPCA 19(1), 2005 (ring, recursive halving and doubling, pairwise exchange).
2. Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and
   scan", Parallel Computing 35(12), 2009; NCCL ``src/graph/trees.cc`` for its numbering.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nest_core.documents.errors import require
from nest_core.network.groups import MOST_FLOWS
from nest_core.network.link_map import FloatArray, IntArray

__all__ = [
    "MOST_FLOWS",
    "MOST_IN_ALL",
    "Schedule",
    "ScheduleStep",
    "chain",
    "direct",
    "double_tree",
    "halving",
    "neighbours",
    "onwards",
    "pairwise",
    "refuse_flows",
    "ring",
    "ring_all_to_all",
    "ring_bidirectional",
    "shift",
    "together",
    "tree",
    "tree_depth",
    "tree_edges",
]

MOST_IN_ALL = 10_000_000
"""Flows of an algorithm, one after another; counting them then takes about 10 s."""


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleStep:
    """Messages that run at once between members, all arrays of shape (messages,).

    Parameters
    ----------
    source, target : int array
        Indices of members.
    volume : float array
        Bytes per byte of the buffer; of all repetitions where a message repeats.
    steps : float array
        Latencies paid one after another.
    """

    source: IntArray
    target: IntArray
    volume: FloatArray
    steps: FloatArray


Schedule = Callable[[int], list[ScheduleStep]]
"""Steps among so many members."""


def shift(n: int, stride: int, volume: float, steps: float) -> ScheduleStep:
    """Every member sends to the one ``stride`` places on."""
    index = np.arange(n)
    return _step(index, (index + stride) % n, volume, steps)


def ring(n: int) -> list[ScheduleStep]:
    """Reduce-scatter: ``n - 1`` steps round one ring, an n-th of the buffer in each."""
    return [shift(n, 1, (n - 1) / n, n - 1)]


def ring_bidirectional(n: int) -> list[ScheduleStep]:
    """Reduce-scatter on two counter-rotating rings, half of the buffer on each."""
    return [together([shift(n, 1, (n - 1) / n / 2, n - 1), shift(n, -1, (n - 1) / n / 2, n - 1)])]


def direct(n: int) -> list[ScheduleStep]:
    """Everybody sends an n-th to everybody at once: an all-to-all, or a reduce-scatter."""
    refuse_flows(n * (n - 1), n * (n - 1))
    index = np.arange(n)
    return [
        _step(
            np.repeat(index, n - 1), ((index[:, None] + index[None, 1:]) % n).reshape(-1), 1 / n, 1
        )
    ]


def pairwise(n: int) -> list[ScheduleStep]:
    """All-to-all, one peer at a time: in step ``r`` to the member ``r`` places on."""
    refuse_flows(n, n * (n - 1))
    return [shift(n, stride, 1 / n, 1) for stride in range(1, n)]


def ring_all_to_all(n: int) -> list[ScheduleStep]:
    """All-to-all round one ring: what is meant for distance ``r`` is handed on ``r`` times."""
    return [shift(n, 1, (n - 1) / 2, n * (n - 1) / 2)]


def neighbours(n: int) -> list[ScheduleStep]:
    """Everybody sends the buffer to the next member and receives one (nccl-tests' sendrecv)."""
    return [shift(n, 1, 1, 1)]


def onwards(n: int) -> list[ScheduleStep]:
    """Every member but the last sends the buffer to the next one."""
    index = np.arange(n - 1)
    return [_step(index, index + 1, 1, 1)]


def chain(n: int) -> list[ScheduleStep]:
    """Broadcast in small chunks from member to member."""
    index = np.arange(n - 1)
    return [_step(index, index + 1, 1, n - 1)]


def tree(n: int) -> list[ScheduleStep]:
    """Broadcast in small chunks down a binary tree; an inner member sends everything twice."""
    child, parent = tree_edges(n)
    return [_step(parent, child, 1, tree_depth(n))]


def double_tree(n: int) -> list[ScheduleStep]:
    """All-reduce in small chunks, up and down two binary trees, half of the buffer on each.

    A leaf of one tree is an inner member of the other, so every member sends and receives the
    buffer twice (reference 2).
    """
    steps = 2 * tree_depth(n)
    parts = []
    for child, parent in _two_trees(n):
        parts += [_step(child, parent, 1 / 2, steps), _step(parent, child, 1 / 2, steps)]
    return [together(parts)]


def refuse_flows(at_once: int, in_all: int) -> None:
    """Raise where flows are too many to count one by one."""
    for flows, most, how in ((at_once, MOST_FLOWS, " at once"), (in_all, MOST_IN_ALL, "")):
        require(
            flows <= most,
            "algorithm",
            f"must not need more than {most:,} flows{how}",
            flows,
            "use a hierarchical one, or smaller or fewer groups",
        )


def tree_depth(n: int) -> int:
    """Levels below the root."""
    return math.ceil(math.log2(n))


def tree_edges(n: int) -> tuple[IntArray, IntArray]:
    """Children and their parents in NCCL's binary tree, which is in order and rooted at 0.

    Examples
    --------
    >>> child, parent = tree_edges(6)
    >>> dict(zip(child.tolist(), parent.tolist()))
    {1: 2, 2: 4, 3: 2, 4: 0, 5: 4}
    """
    child = np.arange(1, n)
    bit = child & -child
    parent = (child ^ bit) | (bit << 1)
    return child, np.where(parent < n, parent, child ^ bit)


def _two_trees(n: int) -> list[tuple[IntArray, IntArray]]:
    """Return the tree and its complement: mirrored where ``n`` is even, else shifted by one."""
    child, parent = tree_edges(n)
    return (
        [(child, parent), (n - 1 - child, n - 1 - parent)]
        if n % 2 == 0
        else [(child, parent), ((child + 1) % n, (parent + 1) % n)]
    )


def halving(n: int, *, far: bool = False) -> list[ScheduleStep]:
    """Reduce-scatter by recursive halving: half of the buffer to the nearest member first.

    Where ``n`` is not a power of two, the members above the largest power of two that fits first
    hand their whole input to a neighbour and in the end receive their part from it (reference 1,
    section 4.4). ``far``: half of the buffer goes over distance ``n / 2`` first.
    """
    power = 1 << (n.bit_length() - 1)
    spare = n - power
    rank = np.arange(power)
    # Of the first 2 * spare members the odd ones step aside; their neighbours keep two parts.
    member = np.where(rank < spare, 2 * rank, rank + spare)
    part = np.where(rank < spare, 2 / n, 1 / n)
    aside = 2 * np.arange(spare)
    rounds = power.bit_length() - 1
    steps = [_step(aside + 1, aside, 1, 1)] if spare else []
    decided = 0
    for number in range(rounds):
        stride = power >> (number + 1) if far else 1 << number
        decided |= stride
        peer = rank ^ stride
        wanted = np.bincount(rank & decided, part, minlength=power)[peer & decided]
        steps.append(_step(member, member[peer], wanted, 1))
    return [*steps, _step(aside, aside + 1, 1 / n, 1)] if spare else steps


def _step(
    source: IntArray, target: IntArray, volume: npt.ArrayLike, steps: npt.ArrayLike
) -> ScheduleStep:
    shape = source.shape
    return ScheduleStep(
        source,
        target,
        np.broadcast_to(np.asarray(volume, dtype=np.float64), shape),
        np.broadcast_to(np.asarray(steps, dtype=np.float64), shape),
    )


def together(parts: list[ScheduleStep]) -> ScheduleStep:
    """Return steps that run at once, as one."""
    return ScheduleStep(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.volume for part in parts]),
        np.concatenate([part.steps for part in parts]),
    )
