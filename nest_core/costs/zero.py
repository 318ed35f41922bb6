"""ZeRO: what is sharded, and what it sends (Rajbhandari et al. 2020, section 7).

Stage 1 shards the optimizer's states over the ranks that hold the same weights, stage 2 the
gradients too, stage 3 the weights too; PyTorch's fully sharded data parallelism is stage 3 (Zhao
et al. 2023). Dense weights are shared by ``dp * cp`` ranks, experts by
``tp * dp * cp / (ep * etp)``.

Sharded over part of them (Megatron-LM's instances of the distributed optimizer, PyTorch's hybrid
sharding, MiCS), there are several copies of the shards; gradients are reduce-scattered within each
and, once per iteration, all-reduced between them (Zhang et al. 2022, "MiCS", section 3.4).

What is sharded is whole for a moment, layer by layer: `gathered`. Stages are here as they act
(`nest_core.costs.plan.acting_zero`).
"""

from dataclasses import dataclass

import numpy as np

from nest_core.costs.plan import Point
from nest_core.costs.problem import LayerTable, Problem, StateBytes
from nest_core.network import FloatArray

__all__ = [
    "ZeroTraffic",
    "copy_seconds",
    "gathered",
    "state_shares",
    "step_share",
    "traffic",
    "update_seconds",
    "whole_bytes",
]


@dataclass(frozen=True, slots=True)
class ZeroTraffic:
    """Bytes per parameter of every reduce-scatter and all-gather.

    ``step`` once per micro-batch and layer, ``sync`` once per iteration and layer; ``between``
    once per iteration of every shard, where there are copies of it.
    """

    step: tuple[float, ...]
    sync: tuple[float, ...]
    between: tuple[float, ...] = ()


def traffic(zero: int, state: StateBytes) -> ZeroTraffic:
    """Return what a ZeRO stage sends: all-reduce at 0, and from 1 on reduce-scatter and all-gather.

    Stage 2 keeps no full gradient between micro-batches, so it reduces after each; stage 3
    also gathers the weights before the forward and the backward pass. A program that JAX
    partitions has gradients of whole batches only, and reduces each micro-batch's.
    """
    between = (state.gradients, state.gradients)
    if state.reduced:
        more = ((state.reduced,), (), (), (state.weights, state.weights))[zero]
        return ZeroTraffic(
            (state.reduced, *more), (state.weights,) if zero in (1, 2) else (), between
        )
    if zero == 0:
        return ZeroTraffic((), between)
    if zero == 1:
        return ZeroTraffic((), (state.gradients, state.weights), between)
    return (
        ZeroTraffic((state.gradients,), (state.weights,), between)
        if zero == 2
        else ZeroTraffic((state.gradients, state.weights, state.weights), (), between)
    )


def state_shares(zero: int, ranks: int, state: StateBytes) -> tuple[float, float, float]:
    """Bytes per parameter of weights, gradients and optimizer states, sharded over ``ranks``."""
    second = state.second_gradients if zero in state.second_stages else 0.0
    return (
        (state.weights - state.unheld) / (ranks if zero >= 3 else 1),
        (state.gradients + second) / (ranks if zero >= 2 else 1),
        state.optimizer / (ranks if zero >= 1 else 1),
    )


def step_share(zero: int, ranks: int, state: StateBytes) -> float:
    """Bytes per parameter that the optimizer step needs while it runs.

    Where XLA gathers the new weights under ZeRO 1 and 2, they stand beside those of before.
    """
    is_gathered = bool(state.reduced) and zero in (1, 2) and ranks > 1
    return state.temporary / (ranks if zero >= 1 else 1) + is_gathered * state.weights


def update_seconds(problem: Problem, zero: int, ranks: int) -> float:
    """Optimizer step per parameter: reads and writes states, reads gradients, writes weights.

    What is on the host is updated there, after its gradients came and before its weights go.
    """
    state, away = problem.state, problem.offload.optimizer
    here = 1.0 - away
    touched = 2 * state.optimizer + here * state.gradients + here * state.weights
    seconds = touched / problem.update_Bps
    if away:
        sent = away * (state.gradients + state.weights)
        seconds += (2 * problem.host_optimizer + 2 * sent) / problem.host_Bps
    return seconds / (ranks if zero >= 1 else 1)


def copy_seconds(problem: Problem, point: Point, table: LayerTable) -> FloatArray:
    """Seconds per micro-batch of a layer's copies of what ZeRO shards, shape (L,).

    Gradients are read in their own precision and written in that in which they are reduced, once;
    weights are copied out of what was gathered, once in each pass.
    """
    state, zero = problem.state, problem.acting_zero(point)
    gradients = (zero >= 2) * ("gradients" in problem.copies) * (state.weights + state.gradients)
    weights = (zero >= 3) * ("weights" in problem.copies) * 2 * 2 * state.weights
    elements = (point.shard_ranks > 1) * table.parameters
    elements = elements + (point.expert_shard_ranks > 1) * table.expert_parameters
    return np.asarray((gradients + weights) / problem.update_Bps * elements)


def gathered(zero: int, ranks: int, state: StateBytes) -> tuple[float, float]:
    """Bytes per parameter of the layer that runs, and of the one before it in the chain.

    Backward gives the gradients of a layer's weights in their own precision, whatever they are
    added up in. ZeRO 2 collects a layer's gradients for the reduce-scatter. At ZeRO 3 its weights
    are whole, and those of the layer whose backward comes next are fetched meanwhile, as PyTorch's
    fully sharded data parallelism does (Zhao et al. 2023, backward prefetching).

    Examples
    --------
    >>> state = StateBytes(weights=2.0, gradients=4.0, optimizer=12.0)
    >>> [gathered(zero, 8, state) for zero in range(4)]
    [(2.0, 0.0), (2.0, 0.0), (6.0, 0.0), (8.0, 2.0)]
    """
    if ranks == 1 or zero < 2:
        return state.weights, 0.0
    return (
        (state.weights + state.gradients, 0.0)
        if zero == 2
        else (2 * state.weights + state.gradients, state.weights)
    )


def whole_bytes(problem: Problem, point: Point, table: LayerTable) -> FloatArray:
    """Bytes of `gathered` while each layer runs, shape (L,).

    The layer before counts for the first of a stage too: other stages' layers are not known.
    """
    total = np.zeros(table.layers)
    for elements, ranks in (
        (table.parameters, point.shard_ranks),
        (table.expert_parameters, point.expert_shard_ranks),
    ):
        share, before = gathered(problem.acting_zero(point), ranks, problem.state)
        total += share * elements
        total[1:] += before * elements[:-1]
    return total
