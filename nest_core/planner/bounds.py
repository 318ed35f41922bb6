"""Lower bounds of outer points: what no plan of them can be faster than.

Every bound is admissible: it counts only the contention that is certain, and ignores tied copies
and the granularity of layers, so no plan of the point beats it (``docs/method.md``, "The
program"). Bounds of many points are computed at once, from `LayerBounds` entries: what one
micro-batch of a family takes at best-case communication.

What communication takes at least where the ranks of points sit, each layout placed once.

`nest_core.planner.transfer_bounds` knows little of tori, dragonflies, drawn graphs and hashed
routes. Here links are counted as prices count them, for points that nothing else excludes:
many share a layout, whatever their micro-batch, ZeRO stage and schedule.

Notes
-----
Each figure is the least over the positions of stages, and over the regimes of the communication
library, so that no cut and no size of message undercuts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.costs import Problem, acting_zero, update_seconds
from nest_core.costs import traffic as zero_traffic
from nest_core.documents.compiled import compiled
from nest_core.network import (
    BoolArray,
    FloatArray,
    IntArray,
    Kind,
    MessageTime,
    counts_leaving,
    least_all_to_all,
)
from nest_core.planner.layer_bounds import LayerBounds
from nest_core.planner.node_bounds import RankColumns
from nest_core.planner.points import Points, PointTable
from nest_core.planner.solver import Solver
from nest_core.planner.transfer_bounds import TransferBounds, all_ports_Bps

__all__ = ["Bounds", "PlacedBounds", "PointColumns", "bounds"]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """``seconds <= iteration``, ``total <= sum(t_s)``, ``sync <= max(e_s)``; shape (points,)."""

    seconds: FloatArray
    total: FloatArray
    sync: FloatArray

    def chosen(self, which: IntArray | BoolArray | slice) -> Bounds:
        """Those of some points."""
        return Bounds(self.seconds[which], self.total[which], self.sync[which])


@dataclass(frozen=True, slots=True, eq=False)
class PointColumns:
    """What bounds depend on, of many points; every array has shape (points,).

    Parameters
    ----------
    entry : int array
        Index into the bounds of layers.
    ranks : RankColumns
        Degrees; in which order axes are placed is not asked here.
    micro_batches, zero : int arrays
        ``zero`` as the plan names it.
    expert_sharers : int array
        Ranks that hold the same experts.
    instances : int array
        Copies of what ZeRO shards.
    rounds : float array
        What divides the fill at most; see `Columns.rounds`.
    transfer_s : float array
        Seconds that one micro-batch is on its way between stages at least.
    leaving : tuple of three float arrays
        Seconds per byte that collectives of dense and of expert gradients, and those between
        instances, take at least to leave their blocks; see `beyond_instances`.
    """

    entry: IntArray
    ranks: RankColumns
    micro_batches: IntArray
    zero: IntArray
    expert_sharers: IntArray
    instances: IntArray
    rounds: FloatArray
    transfer_s: FloatArray
    leaving: tuple[FloatArray, FloatArray, FloatArray]


def bounds(
    problem: Problem, transfer_bounds: TransferBounds, layers: LayerBounds, points: PointColumns
) -> Bounds:
    """Return what no plan of a point is faster than, of many points at once.

    Parameters
    ----------
    problem : Problem
    transfer_bounds : TransferBounds
    layers : LayerBounds
        Of all families and micro-batches that points have.
    points : PointColumns

    Notes
    -----
    An iteration takes ``sum(t_s) / v + (m - 1/v) max(t_s) + max(e_s)`` for stage loads ``t_s``,
    exposed synchronisations ``e_s``, ``m`` micro-batches and ``v`` virtual stages. Every term has
    its bound here: the sum from best-case layers, the largest from the mean over stages and from
    the longest layer, synchronisation from latency and bytes. A reduce-scatter among ``n`` ranks
    takes at least the latency of its fewest steps, and ``(1 - 1/n)`` of the buffer over all that
    one device can send through at once, or over what its block lets out.
    """
    entry, rounds, instances, ranks = points.entry, points.rounds, points.instances, points.ranks
    # Where one tensor-parallel group holds all experts, the ranks that share dense weights are
    # those that share experts, and wait for latency once.
    pp, experts_apart, owners = ranks.pp, ranks.ep != 1, points.expert_sharers
    zero = acting_zero(points.zero, pp, problem.sharded_gradients)
    state, port = problem.state, all_ports_Bps(problem)
    sharers, divided = ranks.dp * ranks.cp, bool((instances > 1).any())
    if divided:
        sharers, owners = sharers // instances, owners // instances
    # A reduce-scatter among n ranks moves (1 - 1/n) of the buffer past each device's own ports,
    # and what leaves a block past its egress. Both hold of every algorithm that prices know, so
    # the larger of the two does (docs/method.md, "What exact means").
    spread = np.maximum((1.0 - 1.0 / sharers) / port, points.leaving[0])
    spread_experts = np.maximum((1.0 - 1.0 / owners) / port, points.leaving[1])
    first = transfer_bounds.starts(zero, sharers)
    first_experts = np.zeros_like(first)
    if experts_apart.any():
        first_experts = np.where(experts_apart, transfer_bounds.starts(zero, owners), 0.0)
    sends = [zero_traffic(stage, state) for stage in range(4)]
    shard, shard_experts = (np.where(zero >= 1, number, 1) for number in (sharers, owners))
    update = update_seconds(problem, 0, 1)
    layer_elements = (layers.count, layers.dense, layers.experts)

    total, tallest = layers.within[entry], layers.tallest[entry]
    per_step = np.array([sum(traffic.step) for traffic in sends])[zero]
    often = (per_step > 0) & (np.maximum(sharers, owners) > 1)
    if often.any():
        number = np.array([float(len(traffic.step)) for traffic in sends])[zero]
        total, tallest = total.copy(), tallest.copy()
        total[often], tallest[often] = _loaded(
            *layer_elements,
            layers.device,
            layers.cover,
            layers.host,
            problem.overlap.data,
            entry[often],
            (number * first)[often],
            (number * first_experts)[often],
            (per_step * spread)[often],
            (per_step * spread_experts)[often],
        )
    total = total + (1.0 - problem.overlap.transfer) * points.transfer_s
    # max(t) >= sum(t) / pp, as the largest of pp loads is no less than their mean; and layers do
    # not divide, so some stage holds the longest one whole and is no shorter (docs/method.md, "The
    # program", "Bounds").
    bottleneck = np.maximum(total / pp, tallest)

    once = np.array([sum(traffic.sync) for traffic in sends])[zero]
    number = np.array([float(len(traffic.sync)) for traffic in sends])[zero]
    latency, latency_experts = number * first, number * first_experts
    sending, sending_experts = once * spread, once * spread_experts
    if divided:
        # Instances of shards exchange the gradients of a shard: an all-reduce, twice the bytes of
        # a reduce-scatter and twice its latency, each over the 1/sharers that one rank holds of
        # them.
        between = (
            2.0 * state.gradients * np.maximum((1.0 - 1.0 / instances) / port, points.leaving[2])
        )
        meeting = 2.0 * transfer_bounds.starts(np.zeros_like(instances), instances)
        latency, latency_experts = (
            latency + meeting,
            latency_experts + np.where(experts_apart, meeting, 0.0),
        )
        sending, sending_experts = (
            sending + between / sharers,
            sending_experts + between / owners,
        )
    sent, exposed, largest = _synchronised(
        *layer_elements,
        1.0 - problem.overlap.data,
        entry,
        latency,
        latency_experts,
        sending,
        sending_experts,
        update / shard,
        update / shard_experts,
    )
    free = (layers.count * layers.free).sum(axis=1)[entry]
    # Interleaved stages hide it behind the pace of the slowest, which is not known yet.
    exposed = exposed + np.where(
        rounds == 1, problem.overlap.data * np.maximum(0.0, sent - free), 0
    )
    # max(e) for the same two reasons as max(t): the mean over stages, and the layer that sends
    # most. Both leave out tied copies, which only the ends of the chain exchange.
    sync = np.maximum(exposed / pp, largest)
    # The iteration is sum(t) / v + (m - 1/v) max(t) + max(e). As m >= 1/v every coefficient is
    # positive, so three lower bounds of the three terms give one of the whole.
    seconds = total / rounds + (points.micro_batches - 1.0 / rounds) * bottleneck + sync
    # A slower pace hides more, but costs more than that: at a pace of T stages hide on average no
    # more than max(T, free / pp) of what they send once. A second more of pace adds
    # m - 1/v >= 1 seconds above and saves `overlap.data` <= 1 here, so the least pace,
    # `bottleneck`, bounds the sum (docs/method.md, "The program", "Bounds").
    paced = problem.overlap.data * np.maximum(0.0, sent / pp - np.maximum(bottleneck, free / pp))
    return Bounds(seconds + np.where(rounds == 1, 0.0, paced), total, sync)


@compiled
def _sent(
    shared: float,
    routed: float,
    starts: float,
    starts_experts: float,
    spread: float,
    spread_experts: float,
) -> float:
    """Seconds of a layer's gradients: a start where there is something to send, and its bytes."""
    seconds = shared * spread + routed * spread_experts
    if shared > 0:
        seconds += starts
    if routed > 0:
        seconds += starts_experts
    return seconds


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
            shared, routed = dense[e, k], experts[e, k]
            sent = _sent(shared, routed, starts[p], starts_experts[p], spread[p], spread_experts[p])
            least = np.inf
            for c in range(device.shape[2]):
                # Traffic hides behind its own layer alone, so layers add up; the launches of the
                # host run beside both. `cover` is the most that there may be to hide behind: more
                # hides, never less.
                busy = device[e, k, c] + sent - saved * min(sent, cover[e, k, c])
                least = min(least, max(busy, host[e, k, c]))
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
            shared, routed = dense[e, k], experts[e, k]
            sent = _sent(shared, routed, starts[p], starts_experts[p], spread[p], spread_experts[p])
            # What is sent once may hide behind any pass of the stage, so no layer on its
            # own says how much does: only the part that never hides is certain of one layer.
            least = exposed * sent + shared * update[p] + routed * update_experts[p]
            traffic[p] += count[e, k] * sent
            total[p] += count[e, k] * least
            tallest[p] = max(tallest[p], least)
    return traffic, total, tallest


_Keys = Sequence[IntArray | FloatArray | BoolArray]


class PlacedBounds:
    """Lower bounds of points by the links of their own layouts.

    Parameters
    ----------
    points : Points
    solver : Solver
        Knows the links of every layout.
    """

    def __init__(self, points: Points, solver: Solver) -> None:
        self._points, self._solver = points, solver
        self._known: dict[tuple[float, ...], tuple[float, ...]] = {}
        self.exchanges, self._exchange_of = [MessageTime.nothing(1)], dict[bytes, int]()

    def transfers(self, columns: PointTable, boundary: FloatArray) -> FloatArray:
        """Seconds that one micro-batch is on its way between stages, (points,).

        Parameters
        ----------
        boundary : (points,)
            Bytes that a rank sends to the next stage.
        """

        def hops(which: int) -> tuple[float, float]:
            links_of_point = self._solver.links(self._points.point(int(columns.number[which])))
            seconds = links_of_point.forward.seconds(boundary[which])
            return float(seconds[1:].sum()), float(seconds[0])

        hop_s = self._by_layout(0, columns, [columns.around > 0, boundary], hops)
        return np.asarray(2 * (columns.interleave * hop_s[:, 0] + columns.around * hop_s[:, 1]))

    def dense(self, columns: PointTable) -> FloatArray:
        """Seconds per byte of what the ranks that share dense weights send, (points,)."""
        return self._gradients(1, "data", columns, [])

    def experts(self, columns: PointTable) -> FloatArray:
        """Return the same of those that share experts; their own groups only, see `Point`."""
        rows = self._points.rows.chosen(columns.row)
        return self._gradients(
            2, "expert_data", columns, [(rows.column("ep") * rows.column("etp"))]
        )

    def exchange(self, columns: PointTable) -> IntArray:
        """Which of ``exchanges`` all-to-alls of experts take at least, (points,); 0: unknown."""
        problem, rows = self._solver.problem, self._points.rows.chosen(columns.row)
        ep = rows.column("ep")
        is_counted = problem.dispatch is None and counts_leaving(problem.network)
        if not is_counted or not (ep > 1).any():
            return np.zeros(len(columns), dtype=np.int64)

        def least(which: int) -> tuple[int]:
            point = self._points.point(int(columns.number[which]))
            if point.ep == 1:
                return (0,)
            groups, stage = self._solver.links(point).groups("ep")
            sending = problem.software.of_groups(problem.network, "all_to_all", groups)
            time = least_all_to_all(problem.network, groups, sending, stage)
            # Latency and seconds per byte are minima over stages on their own: a line through both
            # is under that of every stage, whatever bytes are sent.
            line = [
                part.min(axis=1, keepdims=True) for part in (time.alpha_s, time.beta_s_per_byte)
            ]
            key = b"".join(part.tobytes() for part in line)
            if key not in self._exchange_of:
                self._exchange_of[key] = len(self.exchanges)
                self.exchanges.append(MessageTime(*line))
            return (self._exchange_of[key],)

        wide = [ep, rows.column("etp")]
        return np.asarray(self._by_layout(3, columns, wide, least)[:, 0], dtype=np.int64)

    def _gradients(
        self, figure: int, axis: str, columns: PointTable, further: list[IntArray]
    ) -> FloatArray:
        def least(which: int) -> tuple[float]:
            point = self._points.point(int(columns.number[which]))
            kind: Kind = "reduce_scatter" if point.zero else "all_reduce"
            time = self._solver.links(point).time(axis, kind, point.instances)
            return (float(time.beta_s_per_byte.min()),)

        others: _Keys = [columns.zero > 0, columns.group, *further]
        return self._by_layout(figure, columns, others, least)[:, 0]

    def _by_layout(
        self,
        figure: int,
        columns: PointTable,
        further: _Keys,
        of: Callable[[int], tuple[float, ...]],
    ) -> FloatArray:
        """Return a figure of one point of each layout, and of what else it depends on, (points,
        ...).
        """
        rows = self._points.rows.chosen(columns.row)
        # Links know neither micro-batch nor schedule: points that agree on degrees, orders and
        # `further` share every figure of their layout, so one of them is placed for all.
        degrees = [rows.column("tp"), rows.column("cp"), rows.dp, rows.pp]
        keys = np.stack([*degrees, *self._points.orders(columns), *further]).astype(np.float64)
        distinct, first, alike = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        columns_of_layout = []
        for key, which in zip(distinct.T.tolist(), first.tolist(), strict=True):
            if (figure, *key) not in self._known:
                self._known[figure, *key] = of(which)
            columns_of_layout.append(self._known[figure, *key])
        return np.array(columns_of_layout)[alike]
