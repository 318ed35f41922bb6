"""Lower bounds of outer points: what no plan of them can be faster than.

Every bound is admissible: it counts only the contention that is certain, and ignores tied copies
and the granularity of layers, so no plan of the point beats it (``docs/method.md``, "The
program"). Bounds of many points are computed at once, from `LayerBounds` entries: what one
micro-batch of a family takes at best-case communication.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.compiled import compiled
from nest_core.costs import Problem, acting_zero
from nest_core.costs.zero import traffic, update_seconds
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.planner.layer_bounds import LayerBounds
from nest_core.planner.transfer_bounds import TransferBounds, all_ports_Bps

__all__ = ["Bounds", "bounds"]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """``seconds <= iteration``, ``total <= sum(t_s)``, ``sync <= max(e_s)``; shape (points,)."""

    seconds: FloatArray
    total: FloatArray
    sync: FloatArray

    def chosen(self, which: IntArray | BoolArray | slice) -> Bounds:
        """Those of some points."""
        return Bounds(self.seconds[which], self.total[which], self.sync[which])


def bounds(
    problem: Problem,
    transfer_bounds: TransferBounds,
    entries: LayerBounds,
    entry: IntArray,
    dp: IntArray,
    cp: IntArray,
    owners: IntArray,
    apart: BoolArray,
    instances: IntArray,
    pp: IntArray,
    micro_batches: IntArray,
    zero: IntArray,
    rounds: FloatArray,
    transfers: FloatArray,
    beyond: tuple[FloatArray, FloatArray, FloatArray],
) -> Bounds:
    """Bound many points at once; all columns have shape (points,).

    Parameters
    ----------
    entry : index into ``entries``
    rounds : what divides the fill at most; see `Columns.rounds`
    owners : ranks that hold the same experts
    apart : whether experts are shared by other ranks than dense weights
    instances : copies of what ZeRO shards
    transfers : seconds that one micro-batch is on its way between stages at least
    beyond : seconds per byte that collectives of dense and of expert gradients, and those between
        instances, take at least to leave their blocks; see `beyond_instances`

    Notes
    -----
    A reduce-scatter among ``n`` ranks takes at least the latency of its fewest steps, and
    ``(1 - 1/n)`` of the buffer over all that one device can send through at once.
    """
    zero = acting_zero(zero, pp, problem.sharded_gradients)
    state, port = problem.state, all_ports_Bps(problem)
    sharers, divided = dp * cp, bool((instances > 1).any())
    if divided:
        sharers, owners = sharers // instances, owners // instances
    spread = np.maximum((1.0 - 1.0 / sharers) / port, beyond[0])
    spread_experts = np.maximum((1.0 - 1.0 / owners) / port, beyond[1])
    first = transfer_bounds.starts(zero, sharers)
    first_experts = np.zeros_like(first)
    if apart.any():
        first_experts = np.where(apart, transfer_bounds.starts(zero, owners), 0.0)
    sends = [traffic(stage, state) for stage in range(4)]
    shard, shard_experts = (np.where(zero >= 1, ranks, 1) for ranks in (sharers, owners))
    update = update_seconds(problem, 0, 1)
    bounds_by_pair = (entries.count, entries.dense, entries.experts)

    total, tallest = entries.within[entry], entries.tallest[entry]
    each = np.array([sum(found.step) for found in sends])[zero]
    often = (each > 0) & (np.maximum(sharers, owners) > 1)
    if often.any():
        number = np.array([float(len(found.step)) for found in sends])[zero]
        total, tallest = total.copy(), tallest.copy()
        total[often], tallest[often] = _loaded(
            *bounds_by_pair,
            entries.device,
            entries.cover,
            entries.host,
            problem.overlap.data,
            entry[often],
            (number * first)[often],
            (number * first_experts)[often],
            (each * spread)[often],
            (each * spread_experts)[often],
        )
    total = total + (1.0 - problem.overlap.transfer) * transfers
    bottleneck = np.maximum(total / pp, tallest)

    once = np.array([sum(found.sync) for found in sends])[zero]
    number = np.array([float(len(found.sync)) for found in sends])[zero]
    latency, latency_experts = number * first, number * first_experts
    sending, sending_experts = once * spread, once * spread_experts
    if divided:
        between = 2.0 * state.gradients * np.maximum((1.0 - 1.0 / instances) / port, beyond[2])
        meeting = 2.0 * transfer_bounds.starts(np.zeros_like(instances), instances)
        latency, latency_experts = (
            latency + meeting,
            latency_experts + np.where(apart, meeting, 0.0),
        )
        sending, sending_experts = (
            sending + between / sharers,
            sending_experts + between / owners,
        )
    sent, shown, alone = _synchronised(
        *bounds_by_pair,
        1.0 - problem.overlap.data,
        entry,
        latency,
        latency_experts,
        sending,
        sending_experts,
        update / shard,
        update / shard_experts,
    )
    left = (entries.count * entries.backward).sum(axis=1)[entry]
    # Interleaved stages hide it behind the pace of the slowest, which is not known yet.
    shown = shown + np.where(rounds == 1, problem.overlap.data * np.maximum(0.0, sent - left), 0)
    sync = np.maximum(shown / pp, alone)
    seconds = total / rounds + (micro_batches - 1.0 / rounds) * bottleneck + sync
    # A slower pace hides more, but costs more than that.
    paced = problem.overlap.data * np.maximum(0.0, sent / pp - np.maximum(bottleneck, left / pp))
    seconds = seconds + np.where(rounds == 1, 0.0, paced)
    return Bounds(seconds, total, sync)


@compiled
def _loaded(
    count: FloatArray,
    dense: FloatArray,
    experts: FloatArray,
    device: FloatArray,
    cover: FloatArray,
    host: FloatArray,
    saved: float,
    entry: IntArray,
    starts: FloatArray,
    starts_experts: FloatArray,
    spread: FloatArray,
    spread_experts: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Seconds of all layers with their traffic, and of the longest; each (points,).

    Parameters
    ----------
    count, dense, experts, device, cover, host : see `LayerBounds`
    saved : seconds saved per second of traffic that has cover
    entry, starts, starts_experts, spread, spread_experts : (points,)
        Of dense and of expert elements: seconds whatever their number, and per element.
    """
    points = len(entry)
    total, tallest = np.zeros(points), np.zeros(points)
    for p in range(points):
        e = entry[p]
        for k in range(count.shape[1]):
            if count[e, k] == 0:
                continue
            own, others = dense[e, k], experts[e, k]
            sent = own * spread[p] + others * spread_experts[p]
            if own > 0:
                sent += starts[p]
            if others > 0:
                sent += starts_experts[p]
            least = np.inf
            for c in range(device.shape[2]):
                shown = device[e, k, c] + sent - saved * min(sent, cover[e, k, c])
                least = min(least, max(shown, host[e, k, c]))
            total[p] += count[e, k] * least
            tallest[p] = max(tallest[p], least)
    return total, tallest


@compiled
def _synchronised(
    count: FloatArray,
    dense: FloatArray,
    experts: FloatArray,
    exposed: float,
    entry: IntArray,
    starts: FloatArray,
    starts_experts: FloatArray,
    spread: FloatArray,
    spread_experts: FloatArray,
    update: FloatArray,
    update_experts: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Seconds of all layers' traffic that comes once; of all layers, and of the longest, with the
    optimizer step and as much hidden as may be; each (points,).

    Parameters
    ----------
    count, dense, experts : see `LayerBounds`
    exposed : part of the traffic that never hides
    entry, starts, starts_experts, spread, spread_experts, update, update_experts : (points,)
        As for `_loaded`; ``update`` is the optimizer's, per element.
    """
    points = len(entry)
    traffic, total, tallest = np.zeros(points), np.zeros(points), np.zeros(points)
    for p in range(points):
        e = entry[p]
        for k in range(count.shape[1]):
            if count[e, k] == 0:
                continue
            own, others = dense[e, k], experts[e, k]
            sent = own * spread[p] + others * spread_experts[p]
            if own > 0:
                sent += starts[p]
            if others > 0:
                sent += starts_experts[p]
            least = exposed * sent + own * update[p] + others * update_experts[p]
            traffic[p] += count[e, k] * sent
            total[p] += count[e, k] * least
            tallest[p] = max(tallest[p], least)
    return traffic, total, tallest
