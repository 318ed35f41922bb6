"""One iteration of a plan, event by event.

Programs of the stages (`nest_core.simulator.program`) become tasks of classes of devices, calls
become flows (`nest_core.simulator.messages`), and the engine says when each begins and ends. What
operators take, who sends what to whom and what may run side by side is read; what an iteration
takes follows, and is held against `nest_core.costs.price`, of which it uses no formula.

Units: seconds, bytes.
"""

from dataclasses import dataclass

import numpy as np

from nest_core.costs import MOST_PASSES, PassOrder, Plan, Problem, device_order, offloaded
from nest_core.costs.communication import CLASSES
from nest_core.costs.loads import Loads
from nest_core.documents.errors import require
from nest_core.network import FloatArray, IntArray
from nest_core.simulator.classes import Classes
from nest_core.simulator.engine import run
from nest_core.simulator.messages import call_classes, engine_calls, first_of
from nest_core.simulator.program import Program, programs
from nest_core.simulator.tasks import job_blocks, job_tasks
from nest_core.simulator.traffic import RoutedCalls, traffic_of

__all__ = [
    "CLASS_OF_AXIS",
    "Iteration",
    "drawn_seconds",
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
    blocks, edges = job_blocks(order, stages, traffic, classes, number, stage_of)
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


FEWEST_DRAWS, CHEAP_TASKS = 4, 600_000
"""Draws of an iteration that has more tasks; as many are played in about a second."""


def drawn_seconds(problem: Problem, iteration: Iteration) -> FloatArray:
    """Return what a plan takes under draws of the fabric's hash, shape (draws,).

    All draws where one is cheap, else a few; its own where nothing is hashed.
    Quantiles of it say how an unlucky hash slows the plan down.
    """
    draws = problem.network.link_map.variants
    draws = draws if len(iteration.begins_s) <= CHEAP_TASKS else min(draws, FEWEST_DRAWS)
    if draws == 1:
        return np.array([iteration.seconds])
    return np.array([simulate(problem, iteration.plan, draw=draw).seconds for draw in range(draws)])
