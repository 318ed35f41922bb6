"""The search space: which outer points exist, and what none of them can be faster than.

Every bound here is admissible: it ignores contention, tied copies and the granularity of
layers, so no plan of the point beats it. The bounds of all points are computed at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from nest_core.costs.plan import Point
from nest_core.costs.problem import LayerTable, Problem, prefix
from nest_core.costs.stages import gathered_bytes, traffic, update_seconds
from nest_core.errors import InputError
from nest_core.network.wires import FloatArray, IntArray

__all__ = ["ORDERS", "Bounds", "Points", "SearchSpace", "bounds", "enumerate_points"]

ORDERS = (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"))


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The choices on every axis; the planner takes their product and keeps what is valid.

    Parameters
    ----------
    tp, dp, pp, micro_batch, zero : tuple of int
    sp : tuple of bool
    recompute : tuple of str
    orders : tuple of axis orders
    device_orders : tuple of str
    idle_devices : bool
        Whether a plan may leave devices idle.
    """

    tp: tuple[int, ...]
    sp: tuple[bool, ...]
    dp: tuple[int, ...]
    pp: tuple[int, ...]
    micro_batch: tuple[int, ...]
    zero: tuple[int, ...] = (0, 1, 2, 3)
    recompute: tuple[str, ...] = ("none", "selective", "full")
    orders: tuple[tuple[str, ...], ...] = ORDERS
    device_orders: tuple[str, ...] = ("natural",)
    idle_devices: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Outer points as columns; ``order`` indexes pairs of axis and device order."""

    tp: IntArray
    sp: IntArray
    dp: IntArray
    pp: IntArray
    micro_batch: IntArray
    zero: IntArray
    order: IntArray
    orders: tuple[tuple[tuple[str, ...], str], ...]

    def __len__(self) -> int:
        return int(self.tp.shape[0])

    def point(self, index: int) -> Point:
        """One point as a value."""
        return Point(
            tp=int(self.tp[index]),
            sp=bool(self.sp[index]),
            dp=int(self.dp[index]),
            pp=int(self.pp[index]),
            micro_batch=int(self.micro_batch[index]),
            zero=int(self.zero[index]),
            order=self.orders[int(self.order[index])][0],
            device_order=self.orders[int(self.order[index])][1],
        )


def enumerate_points(problem: Problem, space: SearchSpace) -> Points:
    """All valid points, each layout and traffic once.

    ZeRO needs data parallelism, sequence parallelism needs tensor parallelism, and the order
    of two axes matters only where both are larger than one.

    Raises
    ------
    InputError
        If the pins leave no point; the sentence names the rule that removes the last one.
    """
    grid = np.meshgrid(
        np.array(space.tp), np.array(space.sp, dtype=np.int64), np.array(space.dp),
        np.array(space.pp), np.array(space.micro_batch), indexing="ij",
    )  # fmt: skip
    tp, sp, dp, pp, micro = (axis.reshape(-1).astype(np.int64) for axis in grid)
    devices, layers = problem.network.devices, problem.layers
    used = tp * dp * pp
    rules = (
        (used <= devices, "search.tp x search.dp x search.pp",
         f"must not exceed the fabric's {devices} devices", int(used.min()),
         "lower the smallest tp, dp or pp allowed"),
        (problem.batch % (dp * micro) == 0, "search.dp",
         f"times micro_batch_sequences must divide the batch of {problem.batch}",
         list(space.dp)[:8], "allow divisors of the batch"),
        (pp <= layers, "search.pp", f"must not exceed the model's {layers} layers",
         int(pp.min()), "lower pp"),
        ((used == devices) | np.bool_(space.idle_devices), "search.idle_devices",
         "must be true when no allowed tp x dp x pp equals the device count",
         space.idle_devices, "allow idle devices or other degrees"),
        ((sp == 0) | (tp > 1) | np.bool_(False in space.sp), "search.sp",
         "must allow false where tp is 1", list(space.sp), "add false"),
    )  # fmt: skip
    keep = np.ones(tp.shape, dtype=bool)
    for passes, field, rule, value, remedy in rules:
        keep &= passes
        if not keep.any():
            raise InputError(field, rule, value, remedy)
    keep &= (sp == 0) | (tp > 1)
    if not keep.any():
        raise InputError(
            "search.sp",
            "must allow false where tp is 1",
            list(space.sp),
            "add false or a larger tp",
        )
    columns = [axis[keep] for axis in (tp, sp, dp, pp, micro)]
    base = len(columns[0])
    zero = np.tile(np.array(space.zero, dtype=np.int64), base)
    columns = [np.repeat(axis, len(space.zero)) for axis in columns]
    smallest = min(space.zero)
    keep = (columns[2] > 1) | (zero == smallest)
    columns, zero = [axis[keep] for axis in columns], zero[keep]
    zero = np.where(columns[2] > 1, zero, 0)
    orders = tuple(itertools.product(space.orders, space.device_orders))
    count = len(orders)
    order = np.tile(np.arange(count, dtype=np.int64), len(zero))
    columns, zero = [np.repeat(axis, count) for axis in columns], np.repeat(zero, count)
    first = order < len(space.device_orders)
    keep = first | ((columns[2] > 1) & (columns[3] > 1))
    tp, sp, dp, pp, micro = (axis[keep] for axis in columns)
    return Points(tp, sp, dp, pp, micro, zero[keep], order[keep], orders)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Admissible lower bounds of all points, and the stacked tables that screening reads.

    ``seconds <= iteration``, ``total <= sum(t_s)``, ``sync <= max(e_s)``; shape (points,).
    ``table`` indexes the stacked arrays of `planner.program.covers`.
    """

    seconds: FloatArray
    total: FloatArray
    sync: FloatArray
    micro_batches: IntArray
    table: IntArray
    time: FloatArray
    hop: FloatArray
    parameters: FloatArray
    tied: FloatArray
    kept: FloatArray
    working: FloatArray
    per_parameter: FloatArray
    gathered: FloatArray


def bounds(problem: Problem, points: Points, allowed: IntArray) -> Bounds:
    """Bound every point at once.

    Notes
    -----
    A reduce-scatter among ``n`` ranks takes at least ``log2(n)`` of the smallest latency and
    ``(1 - 1/n)`` of the buffer over all that one device can send through at once, because the
    levels' fan-ins multiply to at least ``n`` and protocols only add to wires.
    """
    span = int(points.micro_batch.max()) + 1
    keys, table = np.unique(
        (2 * points.tp + points.sp) * span + points.micro_batch, return_inverse=True
    )
    widths, micro = keys // (2 * span), keys % span
    tables = [
        problem.table(int(t), bool(s), int(b))
        for t, s, b in zip(widths, keys // span % 2, micro, strict=True)
    ]
    network = problem.network
    latency = network.wires.least_latency_s
    time = np.stack(
        [
            _best_case_time(problem, entry, int(t), bool(s))
            for entry, t, s in zip(tables, widths, keys // span % 2, strict=True)
        ]
    )
    port = (network.wires.port_Bps or float("inf")) * problem.software.reach  # 0: one device
    hop = np.array([latency + _smallest_boundary(entry) / port for entry in tables])
    sizes = np.stack([_untied(entry) for entry in tables])
    state = problem.state
    m = problem.batch // (points.dp * points.micro_batch)

    scatter = np.maximum((1.0 - 1.0 / points.dp) / port, _beyond_blocks(problem, points))
    sends = [traffic(int(z), state) for z in range(4)]
    step = np.array([sum(entry.step) for entry in sends])[points.zero] * scatter
    sync = np.array([sum(entry.sync) for entry in sends])[points.zero] * scatter
    sync = sync + update_seconds(problem, 0, 1) / np.where(points.zero >= 1, points.dp, 1)

    lightest = np.diff(time[:, allowed, :], axis=2).min(axis=1)
    within, tallest = lightest.sum(axis=1), lightest.max(axis=1)
    parameters = sizes.sum(axis=1)
    total = within[table] + 2 * (points.pp - 1) * hop[table] + step * parameters[table]
    largest = np.maximum(parameters[table] / points.pp, sizes.max(axis=1)[table])
    sync_bound = sync * largest
    bottleneck = np.maximum(total / points.pp, tallest[table])
    return Bounds(
        seconds=total + (m - 1) * bottleneck + sync_bound,
        total=total,
        sync=sync_bound,
        micro_batches=m,
        table=table,
        time=time,
        hop=hop,
        parameters=prefix(sizes),
        tied=np.array([entry.tied_parameters for entry in tables]),
        kept=prefix(np.stack([entry.kept_bytes for entry in tables])),
        working=np.stack([entry.working_bytes for entry in tables]),
        per_parameter=_shares(points, problem),
        gathered=np.where(
            points.dp > 1, np.array([gathered_bytes(z, state) for z in range(4)])[points.zero], 0.0
        ),
    )


def _beyond_blocks(problem: Problem, points: Points) -> FloatArray:
    """Seconds per byte that data-parallel halves take at least to leave their blocks.

    A node, or a leaf, whose devices all work sends, for each of its groups, the sums of all
    shards that belong elsewhere: ``1 - g/n`` of the buffer where ``g`` of the group's ``n``
    members sit in it. Members are a stride apart, so at most ``g = ceil(block / stride)`` do,
    and a block holds at least ``block / g`` groups.
    """
    network = problem.network
    found = np.zeros(len(points))
    if network.torus is not None:
        return found
    natural = np.array([name == "natural" for _, name in points.orders])[points.order]
    outer = np.array([axes.index("dp") > axes.index("pp") for axes, _ in points.orders])
    stride = np.where(natural, points.tp * np.where(outer[points.order], points.pp, 1), 1)
    for block, way_out in network.exits:
        together = -(-block // stride)
        leaves = (points.tp * points.dp * points.pp >= block) & (points.dp > together)
        rate = together * way_out * problem.software.reach_outside
        found = np.maximum(found, np.where(leaves, (1 - together / points.dp) * block / rate, 0.0))
    return found


def _shares(points: Points, problem: Problem) -> FloatArray:
    state = problem.state
    weights = state.weights / np.where(points.zero >= 3, points.dp, 1)
    gradients = state.gradients / np.where(points.zero >= 2, points.dp, 1)
    optimizer = state.optimizer / np.where(points.zero >= 1, points.dp, 1)
    return np.asarray(weights + gradients + optimizer, dtype=np.float64)


def _best_case_time(problem: Problem, table: LayerTable, tp: int, sp: bool) -> FloatArray:
    per_layer = table.compute_s + table.replay_s
    if tp > 1:
        network = problem.network
        node = network.devices if network.torus is not None else network.node_size
        may = (not node or tp <= node, network.torus is None and len(network.nesting) > 1)
        lines = problem.software.least(
            "reduce_scatter" if sp else "all_reduce", tp, may, network.wires.least_latency_s,
            meshed=network.meshed_nodes,
        )  # fmt: skip
        per_byte = (1.0 - 1.0 / tp) / network.wires.port_Bps
        for halves, size in (
            (table.tp_halves, table.tp_bytes),
            (table.tp_replay_halves, table.tp_replay_bytes),
        ):
            each = per_byte * size / np.maximum(halves, 1.0)
            quickest = np.min([starts + each / reach for starts, reach in lines], axis=0)
            per_layer = per_layer + halves * quickest
    return prefix(per_layer)


def _smallest_boundary(table: LayerTable) -> float:
    inner = table.boundary_bytes[1:-1]
    return float(inner.min()) if inner.size else 0.0


def _untied(table: LayerTable) -> FloatArray:
    sizes = table.parameters.copy()
    sizes[-1] -= table.tied_parameters
    return sizes
