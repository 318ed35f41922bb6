"""The search space: which outer points exist, and what none of them can be faster than.

Every bound here is admissible: it ignores contention, tied copies and the granularity of
layers, so no plan of the point beats it. The bounds of all points are computed at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nest_core.costs.overlap import cost
from nest_core.costs.plan import Point
from nest_core.costs.problem import LayerTable, Problem, prefix
from nest_core.costs.zero import gathered, state_shares, step_share, traffic, update_seconds
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
    stepping: FloatArray
    whole: FloatArray
    fetched: FloatArray


def bounds(problem: Problem, points: Points, allowed: IntArray) -> Bounds:
    """Bound every point at once.

    Notes
    -----
    A reduce-scatter among ``n`` ranks takes at least ``log2(n)`` of the smallest latency and
    ``(1 - 1/n)`` of the buffer over all that one device can send through at once, because the
    levels' fan-ins multiply to at least ``n`` and protocols only add to wires. Of a second sent
    ``1 - saved`` shows at least, whatever the cover; of all layers' traffic all but what their
    cover in all can save. The longer of device and host is convex in what
    the device does, so its slope at the least bounds what more of it adds.
    """
    span = int(points.micro_batch.max()) + 1
    keys, table = np.unique(
        (2 * points.tp + points.sp) * span + points.micro_batch, return_inverse=True
    )
    widths, micro = keys // (2 * span), keys % span
    tables = [
        problem.table(int(t), bool(s), int(b), 1, 1)
        for t, s, b in zip(widths, keys // span % 2, micro, strict=True)
    ]
    network = problem.network
    latency = network.wires.least_latency_s
    fast = [_best_case(problem, entry, int(t)) for entry, t in zip(tables, widths, strict=True)]
    time = prefix(np.stack([seconds for seconds, _ in fast]))
    port = (network.wires.port_Bps or float("inf")) * problem.software.reach  # 0: one device
    parts = np.where(keys // span % 2 == 1, 1, widths)  # alike ranks send a part each
    smallest = np.array([_smallest_boundary(entry) for entry in tables])
    hop = latency + smallest / parts / port
    sizes = np.stack([_untied(entry) for entry in tables])
    # Of a second that ZeRO adds to a layer's device so much counts at least.
    slope = np.stack([shown[allowed].min(axis=0) for _, shown in fast])
    state = problem.state
    m = problem.batch // (points.dp * points.micro_batch)

    scatter = np.maximum((1.0 - 1.0 / points.dp) / port, _beyond_blocks(problem, points))
    sends = [traffic(int(z), state) for z in range(4)]
    step = np.array([sum(entry.step) for entry in sends])[points.zero] * scatter
    sync = np.array([sum(entry.sync) for entry in sends])[points.zero] * scatter
    update = update_seconds(problem, 0, 1) / np.where(points.zero >= 1, points.dp, 1)
    saved = problem.overlap.data
    backward = np.array([(entry.compute_s - entry.forward_s).sum() for entry in tables])
    busy = np.array([(entry.compute_s + entry.replay_s.max(axis=0)).sum() for entry in tables])

    lightest = np.diff(time[:, allowed, :], axis=2).min(axis=1)
    within, tallest = lightest.sum(axis=1), lightest.max(axis=1)
    parameters = sizes.sum(axis=1)
    exposed = 1.0 - problem.overlap.transfer
    total = within[table] + 2 * exposed * (points.pp - 1) * hop[table]
    total = total + np.maximum(
        (1.0 - saved) * step * (slope * sizes).sum(axis=1)[table],
        slope.min(axis=1)[table] * cost(step * parameters[table], busy[table], saved),
    )
    shown = cost(sync * parameters[table], backward[table], saved) + update * parameters[table]
    tallest_sync = ((1.0 - saved) * sync + update) * sizes.max(axis=1)[table]
    sync_bound = np.maximum(shown / points.pp, tallest_sync)
    bottleneck = np.maximum(total / points.pp, tallest[table])
    shards = np.array([gathered(zero, 2, state) for zero in range(4)])
    own, before = shards[np.where(points.dp > 1, points.zero, 0)].T
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
        per_parameter=_shares(points, lambda zero, dp: sum(state_shares(zero, dp, state))),
        stepping=_shares(points, lambda zero, dp: step_share(zero, dp, state)),
        whole=own,
        fetched=before,
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


def _shares(points: Points, share: Callable[[int, int], float]) -> FloatArray:
    """Bytes per parameter of every point, from its ZeRO stage and data-parallel degree."""
    kinds, which = np.unique(np.stack([points.zero, points.dp]), axis=1, return_inverse=True)
    shares = [share(int(zero), int(dp)) for zero, dp in kinds.T]
    return np.array(shares, dtype=np.float64)[which.reshape(-1)]


def _best_case(problem: Problem, table: LayerTable, tp: int) -> tuple[FloatArray, FloatArray]:
    """Seconds of every layer, (3, L), and their slope against what its device does."""
    compute = table.compute_s + table.replay_s
    inside = np.zeros_like(compute)
    calls = table.calls.get("tp")
    if tp > 1 and calls and calls.kind in ("reduce", "halves"):
        network = problem.network
        node = network.devices if network.torus is not None else network.node_size
        may = (not node or tp <= node, network.torus is None and len(network.nesting) > 1)
        lines = problem.software.least(
            "all_reduce" if calls.kind == "reduce" else "reduce_scatter", tp, may,
            network.wires.least_latency_s, meshed=network.meshed_nodes,
        )  # fmt: skip
        per_byte = (1.0 - 1.0 / tp) / network.wires.port_Bps
        for number, size in (
            (calls.number, calls.bytes),
            (calls.replay_number, calls.replay_bytes),
        ):
            each = per_byte * size / np.where(number > 0, number, 1.0)
            inside = inside + number * np.min(
                [starts + each / reach for starts, reach in lines], axis=0
            )
    device = compute + cost(inside, compute, problem.overlap.within)
    return np.maximum(device, table.launch_s), (device >= table.launch_s).astype(np.float64)


def _smallest_boundary(table: LayerTable) -> float:
    inner = table.boundary_bytes[1:-1]
    return float(inner.min()) if inner.size else 0.0


def _untied(table: LayerTable) -> FloatArray:
    sizes = table.parameters + table.expert_parameters
    sizes[-1] -= table.tied_parameters
    return sizes
