"""Seconds of forward and backward passes, layer by layer, and what hides behind them.

A layer's communication hides behind its own compute only, and a pass takes the longer of what its
device and its host need. Equations: ``docs/method.md``, "Time".
"""

from dataclasses import dataclass

import numpy as np

from nest_core.costs.links import PlanLinks
from nest_core.costs.offload import exposed_seconds
from nest_core.costs.plan import Point
from nest_core.costs.problem import AXES_OF_CALLS, LayerTable, Problem, condensed
from nest_core.costs.schedules import paired
from nest_core.costs.zero import copy_seconds, traffic
from nest_core.documents.compiled import compiled
from nest_core.network import FloatArray, Kind

__all__ = [
    "BETWEEN",
    "LayerSeconds",
    "beside_passes",
    "buckets",
    "held",
    "layer_seconds",
    "pairs_passes",
    "pass_seconds",
    "pass_work",
    "sharded_seconds",
    "with_launches",
]


@dataclass(frozen=True, slots=True, eq=False)
class LayerSeconds:
    """Seconds per micro-batch of every layer at every position, shape (pp, R, L).

    ``device`` is compute, replay and what communication costs; ``total`` with the host's
    launches and ``offload`` (L,), the waiting for copies to and from the host; ``free`` what of
    it, without those, is left when its communication has run from end to end, ``ahead`` (pp, L)
    that of the forward pass. ``opening`` and
    ``turning`` (pp, L) are seconds more of the layer that a forward or a backward pass begins
    with, as no layer before it hides what it waits for.
    """

    device: FloatArray
    total: FloatArray
    free: FloatArray
    ahead: FloatArray
    offload: FloatArray
    opening: FloatArray
    turning: FloatArray

    def size_bytes(self) -> int:
        """Return what they take in memory, about."""
        return 3 * self.device.nbytes


def pairs_passes(problem: Problem, point: Point) -> bool:
    """Whether forward passes run beside backward passes, which hide experts' all-to-alls; see
    `paired`."""
    alone = point.pp == 1 and point.schedule != "gpipe"
    return problem.overlap.experts and (alone or point.schedule in ("interleaved", "dualpipev"))


def layer_seconds(
    problem: Problem,
    point: Point,
    shared: PlanLinks,
    table: LayerTable,
    paired_share: FloatArray | None = None,
) -> LayerSeconds:
    """Return what the layers of a point take, pipeline transfers left out.

    Parameters
    ----------
    paired_share : (pp,), optional
        Share of forward passes that run beside a backward pass, in place of the schedule's.
    """
    overlap = problem.overlap
    table, times = condensed(table)
    work = pass_work(table, copy_seconds(problem, point, table))
    if paired_share is None and pairs_passes(problem, point):
        paired_share = paired(point, point.micro_batches(problem.batch))
    inside = np.zeros((point.pp, *table.replay_s.shape))
    again, experts = np.zeros_like(inside), np.zeros_like(inside)
    for axis in AXES_OF_CALLS:
        if axis in table.calls and getattr(point, axis) > 1:
            calls = table.calls[axis]
            time = shared.time(axis, calls.kind)
            once = experts if axis == "ep" and paired_share is not None else inside
            _add_calls(
                time.alpha_s, time.beta_s_per_byte, calls.number[None], calls.bytes[None], once
            )
            replays = calls.replay_number, calls.replay_bytes
            _add_calls(time.alpha_s, time.beta_s_per_byte, *replays, again)
    passes, cover = pass_seconds(work, inside, again, overlap.within)
    if paired_share is not None:
        share = overlap.experts_saved(paired_share[:, None, None])
        passes, cover = beside_passes(passes, cover, experts, share)
    passes, cover, first = _with_shards(problem, point, shared, table, passes, cover)
    busy, waiting = with_launches(passes, table), exposed_seconds(problem, table)
    free = busy - passes + cover
    device, total, free_s, ahead, first = (
        np.repeat(array, times, axis=-1)
        for array in (passes.sum(0), busy.sum(0) + waiting, free.sum(0), free[0, :, 0], first)
    )
    return LayerSeconds(device, total, free_s, ahead, np.repeat(waiting, times), *first)


def _with_shards(
    problem: Problem,
    point: Point,
    shared: PlanLinks,
    table: LayerTable,
    passes: FloatArray,
    cover: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `pass_seconds` with what data-parallel ranks send of every micro-batch, and what
    either pass takes longer that begins with a layer, (2, pp, L).

    ZeRO 3 gathers a layer's weights before either pass, while the layer before runs. Gradients
    are reduced while what follows runs, the forward pass of the next micro-batch too.
    """
    first = np.zeros((2, point.pp, table.layers))
    zero, m = problem.acting_zero(point), point.micro_batches(problem.batch)
    step, saved = traffic(zero, problem.state).step, problem.overlap.data
    if not step or not point.shared:
        return passes, cover, first
    usable = cover
    if zero == 3:
        gathers = sharded_seconds(point, shared, table, step[1:2])[None, :, None]
        behind, step = np.minimum(gathers, cover), step[:1]
        passes, first = passes + gathers - saved * behind, saved * behind[:, :, 0]
        usable, cover = cover - behind, cover - saved * behind
    # The forward pass of the first micro-batch hides none of them.
    usable = usable * np.array([(m - 1) / m, 1.0]).reshape(2, 1, 1, 1)
    reductions = sharded_seconds(point, shared, table, step)[:, None]
    passes, remaining = beside_passes(passes, usable, reductions, saved)
    return passes, cover - (usable - remaining), first


def pass_work(table: LayerTable, copies_s: FloatArray | float = 0.0) -> tuple[FloatArray, ...]:
    """Return seconds of computing forward (L,), again (R, L) and backward (L,)."""
    return table.forward_s, table.replay_s, table.compute_s - table.forward_s + copies_s


def pass_seconds(
    work: tuple[FloatArray, ...], inside: FloatArray, again: FloatArray, saved: float
) -> tuple[FloatArray, FloatArray]:
    """Return seconds of a layer's forward and backward pass, and those in which nothing is sent,
    each of shape (2, ..., R, L).

    Traffic hides behind what its own pass computes.

    Parameters
    ----------
    work : forward, again, backward
        See `pass_work`.
    inside, again : (..., R, L)
        Seconds of collectives of both passes, half of them in either; of what runs again.
    """
    forward, replay, backward = work
    half = inside / 2
    back = saved * (np.minimum(half, backward) + np.minimum(again, replay))
    hidden = np.stack([saved * np.minimum(half, forward), back])
    computed = np.stack(
        [np.broadcast_to(work_s, half.shape) for work_s in (forward, backward + replay)]
    )
    return computed + np.stack([half, half + again]) - hidden, computed - hidden


def beside_passes(
    passes: FloatArray, cover: FloatArray, sent: FloatArray, saved: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the same with traffic that no pass waits for, which hides behind either."""
    both = cover.sum(axis=0)
    hidden = saved * np.minimum(sent, both)
    return passes + (sent - hidden) / 2, cover * (
        1.0 - hidden / np.maximum(both, np.finfo(np.float64).tiny)
    )


def with_launches(passes: FloatArray, table: LayerTable) -> FloatArray:
    """Return seconds of both passes (2, n, R, L), of which each waits for its host."""
    launch_s = np.broadcast_to(table.launch_s[0] / 2, table.launch_s.shape)
    host_s = np.stack([launch_s, table.launch_s - launch_s])
    return np.asarray(np.maximum(passes, host_s[:, None]))


def held(table: LayerTable, point: Point) -> FloatArray:
    """Dense elements per layer; a tied copy is the embedding where one stage holds both."""
    elements = table.parameters.copy()
    if not point.ends_apart:
        elements[-1] -= table.tied_parameters
    return elements


BETWEEN = {"data": "replicas", "expert_data": "expert_replicas"}
"""Axes of ranks that hold the same shard, by the axes along which shards are divided."""


def buckets(point: Point, table: LayerTable) -> list[tuple[str, int, FloatArray]]:
    """Axes, the ranks of one shard group each, and elements layer by layer."""
    dense, experts = held(table, point), table.expert_parameters
    if not point.experts_apart:
        return [("data", point.shard_ranks, dense + experts)]
    return [
        ("data", point.shard_ranks, dense),
        ("expert_data", point.expert_shard_ranks, experts),
    ]


def sharded_seconds(
    point: Point,
    shared: PlanLinks,
    table: LayerTable,
    per_parameter: tuple[float, ...],
    *,
    between: bool = False,
) -> FloatArray:
    """Seconds of every layer's data-parallel collectives, shape (pp, L).

    ``between``: of those that reduce the copies of its shards.
    """
    kind: Kind = "reduce_scatter" if point.zero and not between else "all_reduce"
    seconds, sizes = np.zeros((point.pp, table.layers)), np.array(per_parameter, dtype=np.float64)
    for axis, ranks, elements in buckets(point, table):
        if (ranks > 1 or between) and elements.any():
            time = shared.time(BETWEEN[axis] if between else axis, kind, point.instances)
            part = elements / ranks if between else elements
            _add_sent(time.alpha_s, time.beta_s_per_byte, part, sizes, seconds)
    return seconds


@compiled
def _least(alpha: FloatArray, beta: FloatArray, member: int, size: float) -> float:
    """Return `MessageTime.seconds` of one member and size."""
    least = np.inf
    for regime in range(len(alpha)):
        # Where there is no way none still take none.
        sends = size > 0 or not np.isinf(beta[regime, member])
        moved = beta[regime, member] * size if sends else 0.0
        least = min(least, alpha[regime, member] + moved)
    return least


@compiled
def _add_calls(
    alpha: FloatArray, beta: FloatArray, number: FloatArray, size: FloatArray, seconds: FloatArray
) -> None:
    """Add those of ``number`` equal messages with ``size`` bytes in all to (pp, R, L).

    ``number`` and ``size`` have shape (R, L), or (1, L) where all recomputations send them.
    """
    for s in range(len(seconds)):
        for c in range(seconds.shape[1]):
            row = min(c, len(number) - 1)
            for layer in range(number.shape[1]):
                once = number[row, layer] if number[row, layer] > 0 else 1.0
                taken = _least(alpha, beta, s, size[row, layer] / once)
                seconds[s, c, layer] += number[row, layer] * taken


@compiled
def _add_sent(
    alpha: FloatArray,
    beta: FloatArray,
    elements: FloatArray,
    per_parameter: FloatArray,
    seconds: FloatArray,
) -> None:
    """Add seconds of a collective of every size per parameter to (pp, L)."""
    for s in range(len(seconds)):
        for layer in range(len(elements)):
            taken = 0.0
            for size in per_parameter:
                taken += _least(alpha, beta, s, size * elements[layer])
            seconds[s, layer] += taken if elements[layer] > 0 else 0.0
