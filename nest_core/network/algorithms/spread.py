"""From schedules to phases: a schedule on all members of groups at once, or level by level.

A *stage* is a list of phases that follow one another and that chunks of a buffer can pass
through while others are in another stage; level by level, every level is one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from nest_core.network.algorithms.schedules import Schedule, ScheduleStep, refuse_flows
from nest_core.network.groups import in_block_order, opening
from nest_core.network.link_map import FloatArray, IntArray
from nest_core.network.phases import Phase, merged

__all__ = [
    "MemberColumns",
    "Stage",
    "backwards",
    "columns",
    "flat",
    "latency_only",
    "level_by_level",
    "on_columns",
]

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
