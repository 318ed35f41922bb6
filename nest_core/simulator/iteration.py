"""One iteration of a plan, event by event.

Programs of the stages (`nest_core.simulator.program`) become tasks of classes of devices, calls
become flows (`nest_core.simulator.messages`), and the engine says when each begins and ends. What
operators take, who sends what to whom and what may run side by side is read; what an iteration
takes follows, and is held against `nest_core.costs.price`, of which it uses no formula.

Units: seconds, bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.costs import Plan, Problem
from nest_core.costs.communication import CLASSES
from nest_core.costs.layout import device_order
from nest_core.costs.loads import Loads
from nest_core.costs.offload import offloaded
from nest_core.costs.schedules import MOST_PASSES, PassOrder
from nest_core.documents.errors import require
from nest_core.network import FloatArray, IntArray
from nest_core.network.link_map import runs
from nest_core.simulator.classes import Classes
from nest_core.simulator.engine import Tasks, run
from nest_core.simulator.messages import call_classes, engine_calls, first_of
from nest_core.simulator.program import COMPUTE, Program, programs
from nest_core.simulator.traffic import RoutedCalls, traffic_of

__all__ = [
    "CLASS_OF_AXIS",
    "Block",
    "Iteration",
    "drawn_seconds",
    "job_blocks",
    "job_tasks",
    "simulate",
    "stages_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """What every class of devices did, task by task.

    Parameters
    ----------
    problem : Problem
    plan : Plan
    order : PassOrder
        Of passes, stage by stage.
    programs : list of Program
        Of every stage.
    traffic : RoutedCalls
    classes : Classes
        Of devices, groups, flows and links.
    stage, entry, owner : int array (tasks,)
        Which entry of which stage's program, of which class of its devices or, of calls, groups.
    begins_s, ends_s : float array (tasks,)
        Infinite where no link leads to whom they send to.
    """

    problem: Problem
    plan: Plan
    order: PassOrder
    programs: list[Program]
    traffic: RoutedCalls
    classes: Classes
    stage: IntArray
    entry: IntArray
    owner: IntArray
    begins_s: FloatArray
    ends_s: FloatArray

    @property
    def seconds(self) -> float:
        """What it takes; of schedules whose iterations run into one another, of one stage."""
        return max(
            float(self.ends_s[self.stage == s].max()) - self.first_s(s)
            for s in range(self.plan.point.pp)
        )

    def first_s(self, stage: int) -> float:
        """Return when a stage's iteration begins."""
        if self.plan.point.schedule not in ("zb_1p", "zb_2p"):
            return 0.0
        return float(self.begins_s[self.stage == stage].min())

    def calls(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return tasks that are calls, the way of each, and bytes of its buffer; (calls,) each."""
        tasks, ways, sizes = [], [], []
        for s, program in enumerate(self.programs):
            mine = np.flatnonzero(self.stage == s)
            rows = program.row[self.entry[mine]]
            way, size = np.full(len(program.rows), -1), np.zeros(len(program.rows))
            for k, entry in enumerate(program.rows):
                if entry.call is not None:
                    way[k] = self.traffic.chosen[s, entry.call, entry.message]
                    size[k] = entry.size
            sends = way[rows] >= 0
            tasks.append(mine[sends])
            ways.append(way[rows][sends])
            sizes.append(size[rows][sends])
        return np.concatenate(tasks), np.concatenate(ways), np.concatenate(sizes)

    @property
    def loads(self) -> Loads:
        """Bytes on every link, by class of traffic."""
        network, classes, ways = self.problem.network, self.classes, self.traffic.ways
        sent = np.zeros((len(ways), int(classes.group.max(initial=-1)) + 1))
        tasks, of_way, size = self.calls()
        np.add.at(sent, (of_way, self.owner[tasks]), size)
        axes = {number: call.axis for (_, call, _), number in self.traffic.chosen.items()}
        links = len(network.link_map.capacity_Bps)
        by_class: dict[str, FloatArray] = {}
        for number, way in enumerate(ways):
            flow_bytes = way.volume * sent[number, classes.group[way.group]]
            name = CLASS_OF_AXIS.get(axes[number], axes[number])
            load = np.bincount(way.link, flow_bytes[way.flow] * way.share, links)
            by_class[name] = by_class.get(name, np.zeros(links)) + load
        present = {name: by_class[name] for name in CLASSES if name in by_class}
        return Loads(network, self.seconds, present)


CLASS_OF_AXIS = {
    "replicas": "data",
    "expert_replicas": "expert_data",
    "receive": "transfers",
    "return": "transfers",
}
"""Axes that are parts of another class of traffic (`nest_core.costs.communication.CLASSES`)."""


def simulate(
    problem: Problem,
    plan: Plan,
    *,
    draw: int = 0,
    is_whole: bool = False,
    pace: FloatArray | None = None,
) -> Iteration:
    """Play an iteration.

    Parameters
    ----------
    draw : int
        Of the fabric's hash, under static ECMP.
    is_whole : bool
        Whether every device, group and flow is followed by itself.
    pace : float array (devices,), optional
        Seconds that each device takes for a second of work; 1 of all without.

    Raises
    ------
    InputError
        If its layers have more than `MOST_PASSES` passes.
    """
    passes = 2 * problem.layers * plan.point.micro_batches(problem.batch)
    require(
        passes <= MOST_PASSES,
        "the iteration",
        f"must have at most {MOST_PASSES:,} passes of layers to be simulated",
        passes,
        "lower the batch or raise the micro-batch",
    )
    problem = offloaded(problem, plan.offload)
    order, stages = programs(problem, plan)
    traffic = traffic_of(problem, plan, stages, draw)
    link_map = problem.network.link_map
    stage_of = stages_of(problem, plan)
    pace = np.ones(len(stage_of)) if pace is None else pace
    label = np.unique(np.stack([stage_of, pace]), axis=1, return_inverse=True)[1].reshape(-1)
    classes = call_classes(traffic.groups, traffic.ways, label, link_map, is_whole=is_whole)
    calls, number = engine_calls(traffic.groups, traffic.ways, classes)
    blocks, edges = job_blocks(plan, order, stages, traffic, classes, number, stage_of)
    tasks = job_tasks(blocks, edges, stages, pace[first_of(classes.device)])
    capacity_Bps = link_map.capacity_Bps[first_of(classes.link)]
    begins_s, ends_s = run(tasks, calls, capacity_Bps, problem.overlap.slowdown)
    return Iteration(
        problem,
        plan,
        order,
        stages,
        traffic,
        classes,
        np.repeat(np.arange(len(blocks)), [len(block.entry) for block in blocks]),
        np.concatenate([block.entry for block in blocks]),
        np.concatenate([block.owner for block in blocks]),
        begins_s,
        ends_s,
    )


def stages_of(problem: Problem, plan: Plan) -> IntArray:
    """Return the stage of every device of a fabric; -1 of those that a plan leaves idle."""
    stage_of = np.full(problem.network.devices, -1)
    where = device_order(problem.network, plan.point.device_order)
    for s, ranks in enumerate(plan.ranks):
        stage_of[where[ranks]] = s
    return stage_of


def job_blocks(
    plan: Plan,
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
        plan, order, stages, blocks, _Senders(traffic, classes, stage_of, stage_classes)
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
        stage_classes = range(self.place.shape[1])
        return np.concatenate(
            [
                np.stack([self.tasks(source, at_class), self.tasks(target, at_class)], axis=1)
                for at_class in stage_classes
            ]
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Senders:
    """Who a group's members in other stages are."""

    traffic: RoutedCalls
    classes: Classes
    stage_of: IntArray
    stage_classes: list[_StageClasses]

    def of(self, s: int, axis: str) -> list[tuple[int, int, int]]:
        """Return groups by their place at a stage, and the stages and classes of other members."""
        members, example = self.traffic.groups.members, first_of(self.classes.group)
        senders = set()
        for place, group in enumerate(self.stage_classes[s].groups[axis].tolist()):
            for device in members.device[members.group == example[group]].tolist():
                stage = int(self.stage_of[device])
                if stage != s:
                    mine = self.stage_classes[stage].devices
                    at_class = int(np.searchsorted(mine, self.classes.device[device]))
                    senders.add((place, stage, at_class))
        return sorted(senders)


def _between(
    plan: Plan,
    order: PassOrder,
    stages: Sequence[Program],
    blocks: Sequence[Block],
    senders: _Senders,
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
            for place, stage, at_class in senders.of(s, axis):
                mine = (axes == axis) & (stage_at[other] == stage)
                sent = pass_at[way[mine], micro_batch[mine], other[mine]]
                source = blocks[stage].tasks(stages[stage].ends[sent], at_class)
                edges.append(np.stack([source, blocks[s].first[entry[mine]] + place], axis=1))
    tied = stages[0].closing + 1
    if stages[0].rows[stages[0].row[tied]].call is not None:
        last, program = blocks[-1], stages[-1]
        for place, _, at_class in senders.of(0, "tied"):
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


def drawn_seconds(problem: Problem, plan: Plan) -> FloatArray:
    """Return what an iteration takes under each draw of the fabric's hash, shape (draws,).

    One draw, unless flows are hashed (`nest_core.network.link_map.ECMP_DRAWS`). Quantiles of it say
    how an unlucky hash slows the plan down.
    """
    draws = range(problem.network.link_map.variants)
    return np.array([simulate(problem, plan, draw=draw).seconds for draw in draws])
