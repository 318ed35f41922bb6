"""Tasks of a plan: the entries of its stages' programs, once for each class that runs them.

Work of a stage is a task of each class of its devices, a call one of each class of groups. What
waits for what within a stage follows from its program, class by class; between stages from who
sends to whom.

Units: seconds, bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nest_core.costs.schedules import PassOrder
from nest_core.network import FloatArray, IntArray
from nest_core.network.link_map import runs
from nest_core.simulator.classes import Classes
from nest_core.simulator.engine import Tasks
from nest_core.simulator.entries import COMPUTE
from nest_core.simulator.messages import first_of
from nest_core.simulator.program import Program
from nest_core.simulator.traffic import RoutedCalls

__all__ = ["Block", "job_blocks", "job_tasks"]


def job_blocks(
    order: PassOrder,
    stages: Sequence[Program],
    traffic: RoutedCalls,
    classes: Classes,
    number: IntArray,
    stage_of: IntArray,
) -> tuple[list["Block"], IntArray]:
    """Return a plan's tasks stage by stage, and which wait for which, (edges, 2).

    ``classes`` and ``number`` may be of several plans, of which this is one.
    """
    stage_classes = [_StageClasses.of(traffic, classes, stage_of, s) for s in range(len(stages))]
    blocks, before = [], 0
    for s, program in enumerate(stages):
        blocks.append(Block.of(traffic, program, stage_classes[s], number, s, before))
        before += len(blocks[-1].entry)
    edges = [block.edges(program) for block, program in zip(blocks, stages, strict=True)]
    edges += _between(
        order, stages, blocks, partial(_senders, traffic, classes, stage_of, stage_classes)
    )
    return blocks, np.concatenate(edges)


@dataclass(frozen=True, slots=True, eq=False)
class _StageClasses:
    """Classes of a stage's devices, and where their calls are among those of their groups.

    Parameters
    ----------
    devices : int array (classes,)
        Number of every class.
    groups : dict of str to int array
        By axis the different classes of groups.
    place : dict of str to int array (classes,)
        Which of them each class of devices is in.
    """

    devices: IntArray
    groups: dict[str, IntArray]
    place: dict[str, IntArray]

    @classmethod
    def of(
        cls, traffic: RoutedCalls, classes: Classes, stage_of: IntArray, s: int
    ) -> "_StageClasses":
        """Return those of a stage."""
        mine = np.flatnonzero(stage_of == s)
        devices, first = np.unique(classes.device[mine], return_index=True)
        groups, place = {}, {}
        for axis, group_of in traffic.group_of.items():
            group = group_of[mine[first]]
            if (group >= 0).all():
                groups[axis], place[axis] = np.unique(classes.group[group], return_inverse=True)
        return cls(devices, groups, place)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Tasks of a stage: its entries in order, each once per class of devices or of groups.

    Parameters
    ----------
    first : int array (entries,)
        Number of the first task of every entry.
    place : int array (axes, classes)
        Which task of an entry a class of devices waits for, by `axis` of the entry.
    axis : int array (entries,)
    entry, call, owner : int array (tasks,)
    """

    first: IntArray
    place: IntArray
    axis: IntArray
    entry: IntArray
    call: IntArray
    owner: IntArray

    @classmethod
    def of(
        cls,
        traffic: RoutedCalls,
        program: Program,
        stage_classes: _StageClasses,
        number: IntArray,
        s: int,
        before: int,
    ) -> "Block":
        """Return those of a stage, numbered from ``before`` on; ``number`` is of `engine_calls`."""
        axes = ["", *stage_classes.groups]
        owners = [stage_classes.devices, *stage_classes.groups.values()]
        place = np.stack([np.arange(len(stage_classes.devices)), *stage_classes.place.values()])
        row_axis = np.array([axes.index(row.call.axis if row.call else "") for row in program.rows])
        calls = np.full((len(program.rows), max(map(len, owners))), -1)
        for k, row in enumerate(program.rows):
            if row.call is not None:
                mine = owners[row_axis[k]]
                calls[k, : len(mine)] = number[traffic.chosen[s, row.call, row.message], mine]
        axis = row_axis[program.row]
        counts = np.array([len(mine) for mine in owners])[axis]
        entry, position = runs(np.zeros(len(counts), np.int64), counts)
        padded = np.zeros((len(owners), max(map(len, owners))), np.int64)
        for k, mine in enumerate(owners):
            padded[k, : len(mine)] = mine
        return cls(
            before + np.cumsum(counts) - counts,
            place,
            axis,
            entry,
            calls[program.row[entry], position],
            padded[axis[entry], position],
        )

    def tasks(self, entries: IntArray, at_class: int | IntArray) -> IntArray:
        """Return the tasks of entries that a class of devices waits for."""
        return np.asarray(self.first[entries] + self.place[self.axis[entries], at_class])

    def edges(self, program: Program) -> IntArray:
        """Return which tasks wait for which of the same stage, (edges, 2)."""
        source, target = program.edges.T
        return np.concatenate(
            [
                np.stack([self.tasks(source, at_class), self.tasks(target, at_class)], axis=1)
                for at_class in range(self.place.shape[1])
            ]
        )


def _senders(
    traffic: RoutedCalls,
    classes: Classes,
    stage_of: IntArray,
    stage_classes: list[_StageClasses],
    s: int,
    axis: str,
) -> list[tuple[int, int, int]]:
    """Return groups by their place at a stage, and the stages and classes of other members."""
    members, example = traffic.groups.members, first_of(classes.group)
    senders = set()
    for place, group in enumerate(stage_classes[s].groups[axis].tolist()):
        for device in members.device[members.group == example[group]].tolist():
            stage = int(stage_of[device])
            if stage != s:
                mine = stage_classes[stage].devices
                senders.add((place, stage, int(np.searchsorted(mine, classes.device[device]))))
    return sorted(senders)


def _between(
    order: PassOrder,
    stages: Sequence[Program],
    blocks: Sequence[Block],
    senders: Callable[[int, str], list[tuple[int, int, int]]],
) -> list[IntArray]:
    """Return which tasks wait for which of other stages: transfers, and tied weights."""
    edges = []
    numbers = order.placed.size
    pass_at = np.full((2, int(order.micro_batch.max()) + 1, numbers), -1)
    stage_at = np.empty(numbers, np.int64)
    for s in range(len(stages)):
        stage_at[order.placed[s]] = s
        for way in range(2):
            mine = np.flatnonzero(order.way[s] == way)
            chain = order.placed[s, order.virtual_stage[s, mine]]
            pass_at[way, order.micro_batch[s, mine], chain] = mine
    for s, program in enumerate(stages):
        entry, at = program.receives.T
        way, micro_batch = order.way[s, at], order.micro_batch[s, at]
        other = order.placed[s, order.virtual_stage[s, at]] + np.where(way == 0, -1, 1)
        axes = np.array([program.rows[row].call.axis for row in program.row[entry]])
        for axis in np.unique(axes).tolist():
            for place, stage, at_class in senders(s, axis):
                mine = (axes == axis) & (stage_at[other] == stage)
                sent = pass_at[way[mine], micro_batch[mine], other[mine]]
                source = blocks[stage].tasks(stages[stage].ends[sent], at_class)
                edges.append(np.stack([source, blocks[s].first[entry[mine]] + place], axis=1))
    tied = stages[0].closing + 1
    if stages[0].rows[stages[0].row[tied]].call is not None:
        last, program = blocks[-1], stages[-1]
        for place, _, at_class in senders(0, "tied"):
            task = blocks[0].first[tied] + place
            ends = (last.tasks(np.array([program.closing + k]), at_class)[0] for k in range(2))
            edges.append(np.array([[next(ends), task], [task, next(ends)]]))
    return edges


def job_tasks(
    blocks: Sequence[Block], edges: IntArray, stages: Sequence[Program], pace: FloatArray
) -> Tasks:
    """Return what the engine runs; ``pace`` of classes of devices is that of `simulate`."""
    columns = []
    for block, program in zip(blocks, stages, strict=True):
        rows = [
            (
                row.seconds,
                row.size,
                row.times,
                row.stream != COMPUTE and row.call is not None,
                row.stream == COMPUTE,
            )
            for row in program.rows
        ]
        columns.append(np.array(rows)[program.row[block.entry]])
    seconds, size, times, is_hidden, is_compute = np.concatenate(columns).T.copy()
    call = np.concatenate([block.call for block in blocks])
    owner = np.concatenate([block.owner for block in blocks])
    count = len(call)
    order = np.argsort(edges[:, 0], kind="stable")
    paced = (call < 0) & (is_compute > 0)
    seconds[paced] *= pace[owner[paced]]
    return Tasks(
        seconds,
        call,
        size,
        times,
        np.where(call < 0, owner, -1),
        is_hidden > 0,
        np.bincount(edges[:, 1], minlength=count),
        np.searchsorted(edges[order, 0], np.arange(count + 1)),
        np.ascontiguousarray(edges[order, 1]),
    )
