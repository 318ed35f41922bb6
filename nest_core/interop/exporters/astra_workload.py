"""What every rank does in one iteration, as a Chakra trace for ASTRA-sim.

A pass of a micro-batch over a virtual stage is a transfer in, a compute node with the seconds that
the plan was priced with, the collectives of each axis, and a transfer out. Nodes wait in the order
of the schedule; transfers out wait for nothing else, so that no order of the links can block. The
iteration ends with gradient synchronisation and the optimizer step.

Collectives of one kind and axis in one pass are one node with their bytes added up, which leaves
their number out; what the price hides behind compute is not hidden. Sizes are those that
ASTRA-sim's rings expect: of all-reduce, reduce-scatter and all-to-all what one rank puts in, of
all-gather what it puts in too (a part).

Passes run in the order that `nest_core.costs.schedules` prices.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest_core.costs import (
    BETWEEN,
    Calls,
    LayerTable,
    PassOrder,
    Plan,
    Point,
    Problem,
    axis_groups,
    traffic,
    update_layers,
)
from nest_core.interop.exporters import chakra
from nest_core.interop.exporters.values import fields_where
from nest_core.network import IntArray

__all__ = ["Groups", "WorkloadPass", "groups_of", "passes", "stage_nodes", "trace", "workload"]


@dataclass(frozen=True, slots=True)
class WorkloadPass:
    """One pass of one micro-batch over one virtual stage.

    Parameters
    ----------
    forward : bool
    micro_batch : int
    virtual_stage : int
        Along the whole pipeline: stage ``s`` holds virtual_stages ``s``, ``s + pp``, …
    """

    forward: bool
    micro_batch: int
    virtual_stage: int


def passes(point: Point, micro_batches: int, stage: int) -> list[WorkloadPass]:
    """Return the passes of a stage, first to last.

    Examples
    --------
    >>> point = Point(1, False, 1, 2, 1, 0, ("tp", "cp", "dp", "pp"))
    >>> [("FB"[not p.forward], p.micro_batch) for p in passes(point, 2, 0)]
    [('F', 0), ('F', 1), ('B', 0), ('B', 1)]
    """
    order = PassOrder.of(point, micro_batches)
    rows = np.stack([order.way[stage], order.micro_batch[stage], order.virtual_stage[stage]], 1)
    return [
        WorkloadPass(way == 0, micro_batch, chunk * point.pp + stage)
        for way, micro_batch, chunk in rows.tolist()
    ]


_AXES = ("tp", "cp", "etp", "ep", "data", "replicas", "expert_data", "expert_replicas", "tied")


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups by axis, as in `nest_core.costs.links`.

    Parameters
    ----------
    members : mapping of str to int array (groups, size)
        Ranks, in the order of their places on the axis.
    number : mapping of str to int array (ranks,)
        Number of every rank's group, from 1; 0 where it has none.
    """

    members: dict[str, IntArray]
    number: dict[str, IntArray]


def groups_of(point: Point) -> Groups:
    """Return all groups of a point with more than one member, numbered through."""
    ranks = point.layout.devices
    members, number, last = {}, {}, 0
    for axis in _AXES:
        group, _ = axis_groups(ranks, point, axis, point.instances)
        lacks = {
            "tied": point.pp == 1,
            "etp": point.etp == point.tp,
            **dict.fromkeys(("ep", "expert_data", "expert_replicas"), not point.experts_apart),
        }
        if group.shape[1] == 1 or lacks.get(axis):
            continue
        members[axis] = group
        group_numbers = np.zeros(ranks.size, dtype=np.int64)
        group_numbers[group] = last + 1 + np.arange(len(group))[:, None]
        number[axis] = group_numbers
        last += len(group)
    return Groups(members, number)


MICROSECOND = 1e-6


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One node of a stage, before ranks give it peers and groups.

    Parameters
    ----------
    name : str
    kind : int
        See `nest_core.interop.exporters.chakra`.
    micros : int
        Of a compute node.
    size : int
        Bytes of a transfer or collective.
    op : int
        Of a collective.
    axis : str
        Of a collective's group.
    hop : int
        Stages from here to the peer of a transfer, round the pipeline.
    tag : int
    """

    name: str
    kind: int
    micros: int = 0
    size: int = 0
    op: int = 0
    axis: str = ""
    hop: int = 0
    tag: int = 0


def workload(problem: Problem, plan: Plan) -> list[list[TraceStep]]:
    """Return every stage's steps in one iteration, of a plan that divides all layers alike."""
    point = plan.point
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    builder = _Builder(problem, plan, table)
    return [builder.stage(stage) for stage in range(point.pp)]


Place = tuple[int, str, int]
"""What says which part of a node differs from rank to rank: its kind, axis and hop."""


def stage_nodes(steps: list[TraceStep], dimensions: int) -> list[tuple[Place, bytes, bytes]]:
    """Return of every node what the ranks of a stage share: before and behind what they do not.

    Parameters
    ----------
    dimensions : int
        Of the network, all of which a collective may use.
    """
    nodes, chain = [], tuple[int, ...]()
    every = {"involved_dim": {"values": [True] * dimensions}} if dimensions > 4 else {}
    for identifier, step in enumerate(steps):
        first: dict[str, Any] = {"is_cpu_op": False}
        last: dict[str, Any] = {"comm_size": step.size, "comm_tag": step.tag}
        if step.kind == chakra.COLLECTIVE:
            first |= {"comm_type": step.op, "comm_size": step.size}
            last = every  # up to four are assumed
        elif step.kind == chakra.COMPUTE:
            last = {}
        head = chakra.node(identifier, step.name, step.kind, chain, step.micros, first)
        nodes.append(((step.kind, step.axis, step.hop), head, chakra.attributes(last)))
        if step.kind != chakra.SEND:
            chain = (identifier,)
    return nodes


def trace(
    nodes: list[tuple[Place, bytes, bytes]],
    rank: int,
    groups: Groups,
    peer: Callable[[int, int], int],
    npu: IntArray,
) -> bytes:
    """Return the trace of one rank.

    Parameters
    ----------
    nodes : list
        `stage_nodes` of its stage.
    peer : callable (rank, hop) -> rank
        The rank at the same place of another stage.
    npu : int array (ranks,)
        ASTRA-sim's number of every rank.
    """
    middles = {}
    for place in {place for place, _, _ in nodes}:
        kind, axis, hop = place
        ends = (int(npu[rank]), int(npu[peer(rank, hop)]))
        source, target = ends if kind == chakra.SEND else ends[::-1]
        middles[place] = chakra.attributes(
            {"pg_name": str(int(groups.number[axis][rank]))}
            if axis
            else fields_where(hop, comm_src=source, comm_dst=target)
        )
    return chakra.metadata() + b"".join(
        [chakra.delimited(head + middles[place] + tail) for place, head, tail in nodes]
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Builder:
    problem: Problem
    plan: Plan
    table: LayerTable

    def stage(self, stage: int) -> list[TraceStep]:
        """Return steps of a stage, in the order in which they are issued."""
        point = self.plan.point
        works = passes(point, point.micro_batches(self.problem.batch), stage)
        recompute = self.plan.recompute[stage]
        steps = (step for work in works for step in self._pass(work, recompute))
        return [*steps, *self._finish(stage)]

    def _span(self, virtual_stage: int) -> slice:
        return slice(self.plan.cuts[virtual_stage], self.plan.cuts[virtual_stage + 1])

    def _pass(self, work: WorkloadPass, recompute: str) -> list[TraceStep]:
        span, table = self._span(work.virtual_stage), self.table
        layers = np.arange(span.start, span.stop)
        again = self.problem.layer_rows(recompute, ((span.start, span.stop),)), layers
        name = f"{'F' if work.forward else 'B'}{work.micro_batch}.{work.virtual_stage}"
        forward = float(table.forward_s[span].sum())
        both = float(table.compute_s[span].sum() + table.replay_s[again].sum())
        steps = self._transfer(chakra.RECEIVE, work, name)
        if self.plan.point.zero >= 3:
            steps += self._sharing(chakra.ALL_GATHER, self.problem.state.weights, span, name)
        steps.append(_compute(name, forward if work.forward else both - forward))
        for axis, calls in table.calls.items():
            if getattr(self.plan.point, axis) > 1:
                steps += self._calls(axis, calls, span, again, work.forward, name)
        zero = self.problem.acting_zero(self.plan.point)
        step = traffic(zero, self.problem.state).step
        if not work.forward and step:
            op = chakra.REDUCE_SCATTER if zero else chakra.ALL_REDUCE
            steps += self._sharing(op, step[0], span, name)
        return steps + self._transfer(chakra.SEND, work, name)

    def _calls(
        self,
        axis: str,
        calls: Calls,
        span: slice,
        again: tuple[IntArray, IntArray],
        forward: bool,
        name: str,
    ) -> list[TraceStep]:
        """Return steps of one axis: half of its bytes for either pass, the replayed for backward.

        ``again``: rows and layers of tables.
        """
        size = float(calls.bytes[span].sum()) / 2
        if not forward:
            size += float(calls.replay_bytes[again].sum())
        members = getattr(self.plan.point, axis)
        if calls.kind == "all_reduce":
            return _collective(name, chakra.ALL_REDUCE, size / 2, axis)
        if calls.kind == "all_to_all":
            return _collective(name, chakra.ALL_TO_ALL, size, axis)
        if calls.kind == "ring":
            return _collective(name, chakra.ALL_GATHER, size / members, axis)
        return [
            *_collective(name, chakra.ALL_GATHER, size / 2 / members, axis),
            *_collective(name, chakra.REDUCE_SCATTER, size / 2, axis),
        ]

    def _sharing(
        self, op: int, per_parameter: float, span: slice, name: str, *, between: bool = False
    ) -> Iterator[TraceStep]:
        """Yield a collective over the ranks that share dense weights, and one over experts'.

        ``between`` those that hold the same shard of them.
        """
        point, table = self.plan.point, self.table
        dense = float(table.parameters[span].sum())
        experts = float(table.expert_parameters[span].sum())
        if span.stop == table.layers and point.pp == 1:
            dense -= table.tied_parameters  # the first layer's
        if not point.experts_apart:
            dense, experts = dense + experts, 0.0
        for axis, members, elements in (
            ("data", point.shard_ranks, dense),
            ("expert_data", point.expert_shard_ranks, experts),
        ):
            if between and point.instances > 1:
                yield from _collective(name, op, per_parameter * elements / members, BETWEEN[axis])
            elif members > 1 and not between:
                size = per_parameter * elements / (members if op == chakra.ALL_GATHER else 1)
                yield from _collective(name, op, size, axis)

    def _transfer(self, kind: int, work: WorkloadPass, name: str) -> list[TraceStep]:
        """Return a transfer, whose tag says micro-batch, edge of the chain and direction.

        Tensor-parallel ranks that hold all tokens send a part each, and gather what arrives.
        """
        point, cuts = self.plan.point, self.plan.cuts
        onwards = work.forward == (kind == chakra.SEND)
        edge = work.virtual_stage + onwards
        if edge in (0, len(cuts) - 1) or point.pp == 1:
            return []
        parts = point.tp if point.tp > 1 and not point.sp else 1
        size = float(self.table.boundary_bytes[cuts[edge]]) / parts
        tag = (work.micro_batch * len(cuts) + edge) * 2 + (not work.forward)
        what, hop = "send" if kind == chakra.SEND else "receive", 1 if onwards else -1
        steps = [TraceStep(f"{name} {what}", kind, size=_whole(size), hop=hop, tag=tag)]
        if parts > 1 and kind == chakra.RECEIVE:
            steps += _collective(name, chakra.ALL_GATHER, size, "tp")
        return steps

    def _finish(self, stage: int) -> Iterator[TraceStep]:
        """Yield the steps for gradients, weights and states, once per iteration."""
        plan, state = self.plan, self.problem.state
        virtual_stages = range(stage, len(plan.cuts) - 1, plan.point.pp)
        zero = self.problem.acting_zero(plan.point)
        once = traffic(zero, state).sync
        update = 0.0
        layers = update_layers(self.problem, plan.point, self.table)
        layers = np.broadcast_to(layers, (plan.point.pp, self.table.layers))
        for virtual_stage in virtual_stages:
            span = self._span(virtual_stage)
            update += float(layers[stage, span].sum())
            if len(once) == 2:  # gradients, then weights
                op = chakra.REDUCE_SCATTER if zero else chakra.ALL_REDUCE
                yield from self._sharing(op, once[0], span, f"G{virtual_stage}")
            yield from self._sharing(
                chakra.ALL_REDUCE, state.gradients, span, f"S{virtual_stage}", between=True
            )
        if plan.point.pp > 1 and self.table.tied_parameters and stage in (0, plan.point.pp - 1):
            size = self.table.tied_parameters * state.gradients
            yield from _collective("tied", chakra.ALL_REDUCE, size, "tied")
        yield _compute("update", update)
        if plan.point.zero in (1, 2):
            for virtual_stage in virtual_stages:
                yield from self._sharing(
                    chakra.ALL_GATHER, once[-1], self._span(virtual_stage), f"W{virtual_stage}"
                )


def _compute(name: str, seconds: float) -> TraceStep:
    return TraceStep(name, chakra.COMPUTE, micros=max(1, round(seconds / MICROSECOND)))


def _collective(name: str, op: int, size: float, axis: str) -> list[TraceStep]:
    """Return one collective, or none of nothing."""
    return (
        []
        if size < 1.0
        else [TraceStep(f"{name} {axis}", chakra.COLLECTIVE, size=_whole(size), op=op, axis=axis)]
    )


def _whole(size: float) -> int:
    return max(1, round(size))
