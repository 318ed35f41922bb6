"""Memory of a stage, part by part. Equation: ``docs/method.md``, "Memory".

Weights, gradients and optimizer states are there all the time; activations are kept from forward
to backward, once for every micro-batch in flight; buffers live while one layer runs, and the
largest of a stage counts, or while the optimizer steps, when nothing is in flight. Beside tensors
there are what the allocator holds beyond them, the driver's context, and buffers of the
communication library. Bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.costs.passes import held
from nest_core.costs.plan import Point
from nest_core.costs.problem import LayerTable, Problem
from nest_core.costs.schedules import fullest_order
from nest_core.costs.stages import StageCosts
from nest_core.costs.zero import state_shares, whole_bytes

__all__ = ["BUFFERS", "Memory", "stage_memory"]

BUFFERS = ("working", "whole", "step", "fragmentation", "context", "communicators")
"""Parts of `Memory.buffers`: activations made again and gradients of activations; weights and
gradients of a layer that is whole; what the optimizer step needs beyond what the passes held; what
the allocator keeps; driver and context; buffers of the library's communicators."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device of a stage, at its fullest.

    ``buffers`` is the sum of `BUFFERS`; ``host`` is what the device's host holds of it instead.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    stash: float
    working: float
    whole: float
    step: float
    fragmentation: float
    context: float
    communicators: float
    host: float = 0.0

    @property
    def buffers(self) -> float:
        """What is neither a state nor kept for backward."""
        return self.working + self.whole + self.step + self.total - self.tensors

    @property
    def tensors(self) -> float:
        """What tensors hold."""
        states = self.weights + self.gradients + self.optimizer
        return states + self.activations + self.stash + self.working + self.whole + self.step

    @property
    def reserved(self) -> float:
        """What the allocator holds."""
        return self.tensors + self.fragmentation

    @property
    def total(self) -> float:
        """All of it."""
        return self.reserved + self.context + self.communicators


def stage_memory(
    problem: Problem,
    point: Point,
    table: LayerTable,
    costs: StageCosts,
    s: int,
    virtual_stages: Sequence[tuple[int, int]],
    c: int,
    *,
    is_replayed: bool = False,
) -> Memory:
    """Memory of position ``s`` with its virtual_stages of layers under recomputation ``c``.

    Where a plan ``is_replayed`` its passes are gone through, else each virtual stage counts as
    their mean.
    """
    layers = [layer for i, j in virtual_stages for layer in range(i, j)]
    dense = float(held(table, point)[layers].sum())
    experts = float(table.expert_parameters[layers].sum())
    weights, gradients, optimizer = (
        dense * common + experts * expert_shard
        for common, expert_shard in zip(
            state_shares(problem.acting_zero(point), point.shard_ranks, problem.state),
            state_shares(problem.acting_zero(point), point.expert_shard_ranks, problem.state),
            strict=True,
        )
    )
    fullest = layers[int(np.argmax(costs.peak[c, layers]))]
    gathered_bytes = float(whole_bytes(problem, point, table)[fullest])
    activations, peak = costs.held_by(virtual_stages, c).tolist()
    order = fullest_order(point, costs.micro_batches) if is_replayed else None
    stash = float(costs.activations(s, virtual_stages, c, order)) - activations
    passes = activations + stash + peak
    step = max(0.0, sum(float(costs.step[j] - costs.step[i]) for i, j in virtual_stages) - passes)
    tensors = weights + gradients + optimizer + passes + step
    return Memory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        stash=stash,
        working=peak - gathered_bytes,
        whole=gathered_bytes,
        step=step,
        fragmentation=problem.fragmentation * tensors,
        context=problem.context_bytes(point),
        communicators=point.communicators * problem.communicator_bytes,
        host=_on_host(problem, point, table, layers, float(costs.in_flight[s])),
    )


def _on_host(
    problem: Problem, point: Point, table: LayerTable, layers: Sequence[int], in_flight: float
) -> float:
    """Bytes that the host holds for a device."""
    shard, sharers = (
        n if problem.acting_zero(point) else 1
        for n in (point.shard_ranks, point.expert_shard_ranks)
    )
    elements = held(table, point)[layers].sum() / shard
    elements += table.expert_parameters[layers].sum() / sharers
    moved = 0.0 if table.host_bytes is None else in_flight * table.host_bytes[layers].sum()
    return float(problem.host_optimizer * elements + moved)
