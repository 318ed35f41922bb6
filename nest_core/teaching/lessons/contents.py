"""What every device holds while a collective runs: parts of its buffer, and how far they are.

The moves follow the order in which the schedules of `nest_core.network.algorithms` hand parts on;
that they send the flows and bytes of the priced steps is tested.
"""

from dataclasses import dataclass

import numpy as np

from nest_core.documents.errors import InputError, require
from nest_core.network import BoolArray, IntArray, Steps
from nest_core.network.algorithms.schedules import columns

__all__ = ["Contents", "Move", "contents", "moves"]


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Parts of the buffers of all devices, before the first step and after each.

    Parameters
    ----------
    added : int array (steps + 1, devices, parts)
        Devices whose values a part adds up; of an all-to-all 1 where the block has arrived.
    just : bool array (steps + 1, devices, parts)
        Whether the step before brought it.
    full : int
        What a part has at the end.
    """

    added: IntArray
    just: BoolArray
    full: int


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Parts that go from one device to another in one step; added up there, or put in place."""

    source: int
    target: int
    parts: IntArray
    adds: bool


def contents(steps: Steps) -> Contents:
    """Follow the parts of the buffers through a collective of one group.

    Parameters
    ----------
    steps : Steps
        An all-reduce by ``ring``, ``hierarchical_ring`` or ``double_binary_tree``, or a
        ``pairwise`` all-to-all.

    Raises
    ------
    InputError
        For other algorithms, and for blocks of unequal size.
    """
    if steps.algorithm == "double_binary_tree":
        return _streamed(steps)
    devices, size = steps.network.devices, steps.groups.shape[1]
    exchange = steps.op == "all_to_all"
    now = np.zeros((devices, size), dtype=np.int64)
    now[steps.groups[0]] = np.eye(size, dtype=np.int64) if exchange else 1
    added, just = [now], [np.zeros(now.shape, dtype=bool)]
    for entries in moves(steps):
        before, now = now, now.copy()
        fresh = np.zeros(now.shape, dtype=bool)
        for move in entries:
            now[move.target, move.parts] = before[move.source, move.parts] + (
                before[move.target, move.parts] if move.adds else 0
            )
            fresh[move.target, move.parts] = True
        added.append(now)
        just.append(fresh)
    return Contents(np.array(added), np.array(just), 1 if exchange else size)


def moves(steps: Steps) -> list[list[Move]]:
    """Step by step, which parts go where; see `contents`."""
    group = steps.groups[0]
    if steps.algorithm == "pairwise":
        size = len(group)
        return [
            [
                Move(int(group[i]), int(group[(i + distance) % size]), np.array([i]), adds=False)
                for i in range(size)
            ]
            for distance in range(1, size)
        ]
    if steps.algorithm == "ring":
        levels = [[group]]
    elif steps.algorithm == "hierarchical_ring":
        levels = [
            [row for entry in level for row in entry.members]
            for level in columns(steps.groups, steps.network.nesting)
        ]
    else:
        raise InputError(
            "algorithm",
            "must be one whose parts can be followed: ring, hierarchical_ring, pairwise",
            steps.algorithm,
            "choose one",
        )
    require(
        not any(len({len(row) for row in level}) > 1 for level in levels),
        "groups",
        "must fill equal blocks",
        "unequal ones",
        "use whole nodes",
    )
    return _rings(levels, len(group))


def _rings(levels: list[list[IntArray]], size: int) -> list[list[Move]]:
    """Scatter level by level and gather back, round the rings of every level."""
    blocks_of = {
        int(device): np.arange(size) for level in levels for row in level for device in row
    }
    scatter: list[list[Move]] = []
    back: list[list[Move]] = []
    for level in levels:
        turns = range(len(level[0]) - 1)
        blocks = [np.split(blocks_of[int(row[0])], len(row)) for row in level]
        scatter += [_turned(level, blocks, turn + 1, adds=True) for turn in turns]
        back = [*(_turned(level, blocks, turn, adds=False) for turn in turns), *back]
        for row, parts in zip(level, blocks, strict=True):
            blocks_of.update({int(device): part for device, part in zip(row, parts, strict=True)})
    return [*scatter, *back]


def _turned(
    level: list[IntArray], blocks: list[list[IntArray]], late: int, *, adds: bool
) -> list[Move]:
    """One step round all rings of a level: everyone hands on the block so many before its own."""
    return [
        Move(int(row[i]), int(row[(i + 1) % len(row)]), parts[(i - late) % len(row)], adds)
        for row, parts in zip(level, blocks, strict=True)
        for i in range(len(row))
    ]


def _streamed(steps: Steps) -> Contents:
    """Small chunks follow one another along the trees: as many parts as steps, one after another.

    A part is on its way while its step lasts, and after it every device has it added up.
    """
    count, size = len(steps.states), steps.groups.shape[1]
    shape = (count + 1, steps.network.devices, count)
    added, just = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    ago = np.arange(count + 1)[:, None, None] - np.arange(count)
    added[:, steps.groups[0]], just[:, steps.groups[0]] = np.where(ago > 0, size, 1), ago == 1
    return Contents(added, just, size)
