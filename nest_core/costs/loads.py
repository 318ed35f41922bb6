"""What every link of the fabric carries in one iteration of a plan, by class of traffic.

The plan's own messages (`nest_core.costs.stages` says which there are, and how large) are sent
along the routes that they are priced on: each collective by the algorithm that is fastest for its
size, links by their way there and back. A message of a replayed layer counts again.

A link's *busy* share is its bytes over its capacity, as a part of the iteration: what it would
take at the links' full rate. Communication libraries reach less, latencies come on top, and a link
may wait between the parts of one collective, so that communication takes longer than its busiest
link is busy, except where it hides behind compute.

Under static ECMP one draw of the hash stands for all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from nest_core.costs import LayerTable, Plan, Point, Problem, Report
from nest_core.costs.communication import CLASSES
from nest_core.costs.passes import BETWEEN, buckets
from nest_core.costs.problem import AXES_OF_CALLS
from nest_core.costs.ragged import plan_links
from nest_core.costs.stages import met
from nest_core.costs.zero import traffic
from nest_core.documents import summed
from nest_core.network import (
    AS_BUSY,
    BusyLink,
    FloatArray,
    IntArray,
    Kind,
    Network,
    Phase,
    Protocol,
    busiest_links,
    busy_link,
    dispatch_phases,
    exchange,
    load_of,
    price_phases,
    reduce_scatters,
    ring,
    tree_all_reduce,
    trees,
)

__all__ = ["Loads", "TierLoad", "algorithms_of", "link_loads"]

Sends = Mapping[int, Mapping[float, float]]
"""By stage: how often a message of so many bytes is sent per iteration."""


@dataclass(frozen=True, slots=True)
class TierLoad:
    """The links of one tier.

    Parameters
    ----------
    level : int
        Of the network, whose traffic they carry first; 0 is the innermost.
    links : int
        Link groups, each direction its own.
    busiest : BusyLink
    mean_busy : mapping of str to float
        By class, of all groups on the mean, as a share of the iteration.
    """

    level: int
    links: int
    busiest: BusyLink
    mean_busy: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Bytes on every link group of a network in one iteration.

    Parameters
    ----------
    network : Network
    iteration_s : float
    bytes : mapping of str to float array (link groups,)
        By class, in the order of `CLASSES`; those without traffic are left out.
    """

    network: Network
    iteration_s: float
    bytes: Mapping[str, FloatArray]

    @property
    def busy(self) -> FloatArray:
        """Share of the iteration that every link group is busy, shape (link groups,)."""
        capacity = self.network.link_map.capacity_Bps
        total = np.sum([np.zeros(len(capacity)), *self.bytes.values()], axis=0)
        result = np.zeros(len(capacity))
        np.divide(total, capacity * self.iteration_s, out=result, where=capacity > 0)
        return result

    @property
    def busiest(self) -> tuple[BusyLink, ...]:
        """The busiest links, and which traffic uses them."""
        return busiest_links(self.network, self.bytes, self.iteration_s)

    @property
    def tiers(self) -> tuple[TierLoad, ...]:
        """Links tier by tier, innermost first; tiers without a link are left out."""
        tier, capacity = self.network.link_map.tier, self.network.link_map.capacity_Bps
        full = np.where(capacity > 0, capacity * self.iteration_s, np.inf)
        busy = self.busy
        tiers = []
        for level in range(len(self.network.levels)):
            here = np.flatnonzero((tier == level) & (capacity > 0))
            if not len(here):
                continue
            worst = int(here[busy[here].argmax()])
            alike = int(np.count_nonzero(busy[here] >= (1 - AS_BUSY) * busy[worst]))
            tiers.append(
                TierLoad(
                    level=level,
                    links=len(here),
                    busiest=busy_link(self.network, self.bytes, self.iteration_s, worst, alike),
                    mean_busy={
                        name: float((of[here] / full[here]).mean())
                        for name, of in self.bytes.items()
                    },
                )
            )
        return tuple(tiers)


def link_loads(problem: Problem, report: Report) -> Loads:
    """Count what a plan sends over every link.

    Parameters
    ----------
    problem : Problem
        That the report was priced on.
    report : Report
        Of a plan whose stages may have strategies of their own: each then sends what it would if
        all had that one, as it is priced.
    """
    plan = report.plan
    counter = _Counter(problem, plan)
    points = [plan.stage_point(s) for s in range(plan.point.pp)]
    for point in dict.fromkeys(points):
        mine = [s for s, at in enumerate(points) if at == point]
        _count_calls(counter, report, point, mine)
        _count_shards(counter, report, point, mine)
        _count_hops(counter, report, point, mine)
    _count_tied(counter, plan)
    present = {name: counter.loads[name] for name in CLASSES if name in counter.loads}
    return Loads(problem.network, report.iteration_s, present)


class _Counter:
    """Adds messages up, link by link."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem, self.plan = problem, plan
        self.links = cache(partial(plan_links, problem, plan))
        self.loads: dict[str, FloatArray] = {}

    def collective(self, name: str, point: Point, axis: str, kind: Kind, sends: Sends) -> None:
        """Count collectives of the groups of an axis."""
        network = self.problem.network
        groups, stage = self.links(point).groups(axis, point.instances)
        if groups.shape[1] == 1 or not any(sends.values()):
            return
        ways = list(algorithms_of(self.problem, kind, groups))
        sizes = np.array(sorted({size for of in sends.values() for size in of}))
        chosen = np.zeros((int(stage.max()) + 1, len(sizes)), dtype=np.int64)
        if len(ways) > 1:
            seconds = [
                price_phases(network.link_map, way, len(groups), by, stage).along(1).seconds(sizes)
                for way, by in ways
            ]
            chosen = np.argmin(seconds, axis=0)
        for number, (way, _) in enumerate(ways):
            total = np.zeros(len(chosen))
            for s, of in sends.items():
                picked = chosen[s] == number
                total[s] = sum(of.get(size, 0.0) * size for size in sizes[picked].tolist())
            for phase in way:
                self.flows(name, phase, total[stage[phase.owner]])

    def flows(self, name: str, phase: Phase, buffer_bytes: FloatArray) -> None:
        """Count the flows of a phase; ``buffer_bytes`` has shape (flows,)."""
        load = load_of(self.problem.network.link_map, [phase], buffer_bytes)
        if load.any():
            self.loads[name] = self.loads.get(name, 0.0) + load


def algorithms_of(
    problem: Problem, kind: Kind, ranks: IntArray
) -> Iterator[tuple[list[Phase], tuple[Protocol, ...]]]:
    """Yield what a collective's library chooses from, as `nest_core.costs.links` prices it.

    Each algorithm's flows in all groups, ``ranks`` (groups, members), and the protocols that run
    it.
    """
    network, size = problem.network, ranks.shape[1]
    protocols = problem.software.of_groups(network, kind, ranks)
    if kind == "ring":
        yield [ring(ranks, volume=(size - 1) / size, steps=size - 1)], protocols
    elif kind == "all_to_all" and problem.dispatch is not None:
        yield dispatch_phases(network, ranks, problem.dispatch), protocols
    elif kind == "all_to_all":
        yield [exchange(ranks, volume=1.0 / size, steps=1.0)], protocols
    else:
        for algorithm in reduce_scatters(network).values():
            yield algorithm(network, ranks), protocols
        if along := trees(network, protocols):
            yield tree_all_reduce(network, ranks), along


def _table(problem: Problem, point: Point) -> LayerTable:
    return problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)


def _layers(virtual_stages: tuple[tuple[int, int], ...]) -> IntArray:
    return np.concatenate([np.arange(i, j) for i, j in virtual_stages])


def _count_calls(counter: _Counter, report: Report, point: Point, mine: list[int]) -> None:
    """Return collectives inside layers, per micro-batch."""
    table, m = _table(counter.problem, point), point.micro_batches(counter.problem.batch)
    for axis in AXES_OF_CALLS:
        if axis not in table.calls or getattr(point, axis) == 1:
            continue
        calls = table.calls[axis]
        sends: dict[int, dict[float, float]] = {}
        for s in mine:
            stage = report.stages[s]
            layers = _layers(stage.virtual_stages)
            choice = counter.problem.layer_rows(stage.recompute, stage.virtual_stages)
            once = _equal(calls.number[layers], calls.bytes[layers], m)
            again = _equal(
                calls.replay_number[choice, layers], calls.replay_bytes[choice, layers], m
            )
            sends[s] = summed((*once.items(), *again.items()))
        counter.collective(axis, point, axis, calls.kind, sends)


def _equal(number: FloatArray, total: FloatArray, times: float) -> dict[float, float]:
    """Messages by size: ``number`` equal ones of ``total`` bytes, layer by layer."""
    return summed(
        (size / count, count * times)
        for count, size in zip(number.tolist(), total.tolist(), strict=True)
        if count > 0 and size > 0
    )


def _count_shards(counter: _Counter, report: Report, point: Point, mine: list[int]) -> None:
    """Gradients and weights among the ranks that share them, per micro-batch and iteration."""
    problem = counter.problem
    table, m = _table(problem, point), point.micro_batches(problem.batch)
    kind: Kind = "reduce_scatter" if point.zero else "all_reduce"
    sent = traffic(problem.acting_zero(point), problem.state)
    within = [(size, float(m)) for size in sent.step] + [(size, 1.0) for size in sent.sync]
    between = [(size, 1.0) for size in sent.between]
    for axis, ranks, elements in buckets(point, table):
        sends = _shards_sent(report, mine, elements, within)
        counter.collective(axis, point, axis, kind, sends)
        if point.instances > 1:
            sends = _shards_sent(report, mine, elements / ranks, between)
            counter.collective(axis, point, BETWEEN[axis], "all_reduce", sends)


def _shards_sent(
    report: Report, mine: list[int], elements: FloatArray, sizes: list[tuple[float, float]]
) -> dict[int, dict[float, float]]:
    """Messages of some stages by their bytes; ``sizes`` per parameter, and how often."""
    of_stage = {s: elements[_layers(report.stages[s].virtual_stages)] for s in mine}
    return {
        s: summed(
            (size * count, times) for size, times in sizes for count in counts[counts > 0].tolist()
        )
        for s, counts in of_stage.items()
    }


def _count_hops(counter: _Counter, report: Report, point: Point, mine: list[int]) -> None:
    """Activations and their gradients between stages, per micro-batch."""
    pp = point.pp
    if pp == 1:
        return
    problem = counter.problem
    table, m = _table(problem, point), point.micro_batches(problem.batch)
    alike = point.tp > 1 and not point.sp  # see `nest_core.costs.stages`
    boundary = table.boundary_bytes
    received = np.zeros(pp)
    gathered: dict[int, dict[float, float]] = {}
    for s in mine:
        ends = met(point, np.array(report.stages[s].virtual_stages))
        received[s] = m * boundary[ends[:, 0]].sum()
        # In a V the last stage hands over to itself.
        used = ends[:, : 1 if point.is_v_shaped and s == pp - 1 else 2].reshape(-1)
        gathered[s] = _equal(np.sign(boundary[used]), boundary[used], m)
    shared = counter.links(point)
    hops = shared.hops()
    sent = received[hops.receiver] * shared.hop_ranks / (point.tp if alike else 1)
    once = np.ones(len(sent))
    for source, target in ((hops.source, hops.target), (hops.target, hops.source)):
        counter.flows("transfers", Phase(source, target, hops.receiver, hops.share, once), sent)
    if alike:
        counter.collective("transfers", point, "tp", "reduce_scatter", gathered)


def _count_tied(counter: _Counter, plan: Plan) -> None:
    """Return the two copies of a tied embedding, once per iteration."""
    problem, point = counter.problem, plan.stage_point(0)
    size = _table(problem, point).tied_parameters * problem.state.gradients
    size *= counter.links(point).tied_share
    if point.ends_apart and size > 0:
        counter.collective("tied", point, "tied", "all_reduce", {0: {size: 2.0}})
