"""Who sends what to whom among ``n`` members: schedules over the indices 0 .. n - 1.

A schedule says nothing about links; `flat` and `level_by_level` put it on the members of groups.
Volumes are bytes per byte of the buffer ``m``: the input of a reduce-scatter, an all-reduce or an
all-to-all, the message of a broadcast. An all-gather is a reduce-scatter backwards, so only one of
the two is written down.

From schedules to phases: a schedule on all members of groups at once, or level by level.

A *stage* is a list of phases that follow one another and that chunks of a buffer can pass
through while others are in another stage; level by level, every level is one.

References
----------
1. Thakur, Rabenseifner, Gropp: "Optimization of collective communication operations in MPICH",
   IJHPCA 19(1), 2005 (ring, recursive halving and doubling, pairwise exchange).
2. Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and
   scan", Parallel Computing 35(12), 2009; NCCL ``src/graph/trees.cc`` for its numbering.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from nest_core.documents.errors import require
from nest_core.network.groups import MOST_FLOWS, in_block_order, opening
from nest_core.network.link_map import FloatArray, IntArray
from nest_core.network.phases import Phase, merged

__all__ = [
    "MOST_FLOWS",
    "MOST_IN_ALL",
    "MemberColumns",
    "Schedule",
    "ScheduleStep",
    "Stage",
    "backwards",
    "chain",
    "columns",
    "direct",
    "double_tree",
    "flat",
    "halving",
    "latency_only",
    "level_by_level",
    "neighbours",
    "on_columns",
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
    edges = [ends for child, parent in _two_trees(n) for ends in ((child, parent), (parent, child))]
    return [together([_step(*ends, 1 / 2, steps) for ends in edges])]


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


Stage = list[Phase]


@dataclass(frozen=True, slots=True, eq=False)
class MemberColumns:
    """Members that hold the same shard, one from each of the blocks that a level joins.

    Parameters
    ----------
    members : int array (columns, fan)
    owner : int array (columns,)
        Group that they belong to.
    shard : float array (columns,)
        Part of the buffer that is theirs once the levels inside have scattered it.
    weight : float array (columns, fan)
        Members that stand behind each, per column of the block: 1 where blocks are equal.
    """

    members: IntArray
    owner: IntArray
    shard: FloatArray
    weight: FloatArray


def columns(groups: IntArray, nesting: tuple[IntArray, ...]) -> Iterator[list[MemberColumns]]:
    """Climb a hierarchy of blocks, innermost first; levels that join nothing are left out.

    Blocks may hold unequal numbers of a group's members: there are then as many columns as the
    largest of them has members, and members of smaller ones stand in several.

    Parameters
    ----------
    groups : int array (groups, members)
    nesting : tuple of int array (devices,)
        Block of every device, innermost first; blocks nest, the last one holds everything.

    Yields
    ------
    list of MemberColumns
        Of one level, by fan.
    """
    count, size = groups.shape
    member = in_block_order(groups, nesting)
    row = np.arange(count * size) // size
    start = np.arange(count * size)  # first place of every inner block; at first a member each
    for level in nesting:
        opens = opening(level[member], row)
        block_size = np.diff(np.append(start, count * size))
        fan = np.bincount((np.cumsum(opens) - 1)[start])
        first = np.cumsum(fan) - fan
        parts = []
        for width in np.unique(fan[fan > 1]):
            inner = first[fan == width][:, None] + np.arange(width)
            tall = block_size[inner].max(axis=1)
            which = np.repeat(np.arange(len(inner)), tall)
            offset = np.arange(len(which)) - np.repeat(np.cumsum(tall) - tall, tall)
            holds = block_size[inner[which]]
            place = start[inner[which]] + offset[:, None] % holds
            parts.append(
                MemberColumns(
                    member[place], row[place[:, 0]], 1.0 / tall[which], holds / tall[which][:, None]
                )
            )
        if parts:
            yield parts
        start = np.flatnonzero(opens)


def flat(groups: IntArray, schedule: Schedule) -> Stage:
    """Return a schedule among all members of every group, in the order given."""
    count, size = groups.shape
    even = MemberColumns(groups, np.arange(count), np.ones(count), np.ones(groups.shape))
    return on_columns([even], schedule, scattered=True) if size > 1 else []


def level_by_level(
    groups: IntArray, nesting: tuple[IntArray, ...], schedule: Schedule, *, scattered: bool = True
) -> list[Stage]:
    """Return a schedule among the members of columns, one stage per level, innermost first.

    ``scattered``: every level works on the shard that those inside have left; otherwise on as
    much as every member holds, as an all-to-all does.
    """
    return [on_columns(level, schedule, scattered=scattered) for level in columns(groups, nesting)]


def on_columns(level: list[MemberColumns], schedule: Schedule, *, scattered: bool) -> Stage:
    """Return a schedule among the members of every column of one level."""
    parts = [_placed(entry, schedule(entry.members.shape[1]), scattered) for entry in level]
    return [
        merged([phase for phase in together if phase is not None])
        for together in zip_longest(*parts)
    ]


def backwards(stage: Stage, *, turned: bool) -> Stage:
    """Return the phases in reverse order: an all-gather for a reduce-scatter.

    ``turned``: messages go the other way too, as where an exchange is undone; rings turn on.
    """
    return (
        [replace(phase, source=phase.target, target=phase.source) for phase in stage[::-1]]
        if turned
        else stage[::-1]
    )


def latency_only(phase: Phase, steps: npt.ArrayLike) -> Phase:
    """Return steps whose bytes another phase carries."""
    shape = phase.source.shape
    return replace(
        phase,
        volume=np.zeros(shape),
        steps=np.broadcast_to(np.asarray(steps, dtype=np.float64), shape),
    )


def _placed(entry: MemberColumns, steps: list[ScheduleStep], scattered: bool) -> list[Phase]:
    flows = [len(entry.members) * len(step.source) for step in steps]
    refuse_flows(max(flows, default=0), sum(flows))
    placed = []
    for step in steps:
        part = entry.shard[:, None] if scattered else entry.weight[:, step.source]
        shape = (len(entry.members), len(step.source))
        placed.append(
            Phase(
                entry.members[:, step.source].reshape(-1),
                entry.members[:, step.target].reshape(-1),
                np.repeat(entry.owner, len(step.source)),
                (step.volume * part).reshape(-1),
                np.broadcast_to(step.steps, shape).reshape(-1),
            )
        )
    return placed
