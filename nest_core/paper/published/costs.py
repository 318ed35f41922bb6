"""The published cost model: load and memory of a stage, synchronisation, time per batch.

Units are the instance's: layer times in its own unit, transfer times as bytes over bytes
per second plus a latency, added to the former as they stand; sizes in bytes.

The quirks of the artifact are kept, because its tables have them:

* milliseconds of compute and seconds of transfer are added without conversion;
* a level's bandwidth for transfers is at most that of the level inside it, yet
  synchronisation uses the bandwidths as given;
* a transfer beyond the innermost level counts twice, latency included;
* every edge from outside a stage crosses the one boundary towards the neighbouring
  stage, however far its other end is, and parallel transfers do not share the link;
* the recomputed forward pass is priced with the backward latencies, and the last stage
  recomputes nothing;
* parameters count twice (weights and gradients); the optimizer has no state with SGD;
* under recomputation a stage stashes what enters it, edge by edge, else all activations;
* only the first replica is placed, so its boundary levels stand for all of them;
* the all-reduce halves the parameters per step inside the innermost level and then
  climbs the tree with all of them, adding what the inner levels cost again and again.

References
----------
NEST, MLSys 2026, and its artifact scai-tech/Nest (MIT), whose solver these rules follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from nest_core.paper.published.instance import Instance
from nest_core.paper.published.layers import Layers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

__all__ = [
    "BATCH_SEQUENCES",
    "StageTables",
    "boundary_levels",
    "exceeds",
    "group_sizes",
    "synchronisation_levels",
    "synchronisation_terms",
    "time_per_batch",
]

BATCH_SEQUENCES = 4096
"""Sequences in the published tables' batch: throughput is this over the time per batch.

An instance file says how many micro-batches there are, not how many sequences each holds
(Mixtral's files have 1,024 for the same 4,096 sequences), so the figure is not derived.
"""

_Kind = Literal["forward", "backward", "recomputed", "resident", "stash"]

# Of a limit, so that a need that equals it but for the rounding of sums still fits;
# less than a byte for every memory up to a terabyte.
_ROUNDING = 1e-12

# Optimizer bytes per parameter byte.
_EXTRA_STATES = {"SGD": 0.0, "Adam": 6.0}


def exceeds(need_bytes: FloatArray | float, limit_bytes: float) -> NDArray[np.bool_]:
    """Return whether memory does not suffice, beyond the rounding of sums."""
    return np.asarray(need_bytes) > limit_bytes * (1 + _ROUNDING)


def group_sizes(instance: Instance) -> IntArray:
    """Return devices in one group of each level, innermost first; the last entry is D."""
    return np.cumprod(np.array(instance.devices_per_level, dtype=np.int64))


def boundary_levels(instance: Instance, stage_devices: int, stages: int) -> list[int]:
    """Return the level between neighbouring stages, by position from the end.

    Stages sit on consecutive devices, the last one on devices 0 .. a-1, so position k
    (1 is the last stage) starts at device (k-1) a.

    Parameters
    ----------
    instance : Instance
    stage_devices : int
        Devices a of one stage.
    stages : int
        Number of stages.

    Returns
    -------
    list of int
        ``stages + 1`` entries: entry k is the innermost level whose group holds the first
        devices of positions k and k+1. The first and the last entry stand for neighbours
        that do not exist; the artifact prices them at level 0.
    """
    sizes = group_sizes(instance)[:, None]
    starts = np.arange(stages, dtype=np.int64) * stage_devices
    return [0, *(starts[1:] // sizes != starts[:-1] // sizes).sum(axis=0).tolist(), 0]


def synchronisation_levels(instance: Instance, degrees: IntArray, stride: IntArray) -> IntArray:
    """Return smallest number of levels whose group holds devices 0, stride, .., (d-1) stride."""
    return np.searchsorted(group_sizes(instance), (degrees - 1) * stride, side="right") + 1


def synchronisation_terms(instance: Instance, halvings: int, levels: int) -> tuple[float, float]:
    """Return the all-reduce of P bytes as ``fixed + per_byte * P``.

    Parameters
    ----------
    instance : Instance
    halvings : int
        floor(log2 d) for d replicas: steps inside the innermost level, the q-th of which
        sends P / 2^q.
    levels : int
        Levels that the replicas span (`synchronisation_levels`).

    Returns
    -------
    fixed, per_byte : float
    """
    fixed = halvings * instance.latencies[0]
    per_byte = sum(0.5**step for step in range(halvings)) / instance.bandwidths[0]
    lower_fixed = lower_per_byte = 0.0
    for level in range(1, levels):
        fixed += 2 * instance.latencies[level] + lower_fixed
        per_byte += 2 / instance.bandwidths[level] + lower_per_byte
        lower_fixed += fixed
        lower_per_byte += per_byte
    return fixed, per_byte


def time_per_batch(
    instance: Instance,
    max_load: float,
    stages: int,
    data_parallel: int,
    stride: int,
    parameters: float,
) -> float:
    """Return the time per batch of a placed pipeline.

    ``max load * (ceil(B / d) + s - 1) + sync``, the latter for `parameters` bytes over
    `data_parallel` replicas whose first devices lie `stride` apart.
    """
    slots = -(-instance.micro_batches // data_parallel) + stages - 1
    levels = synchronisation_levels(instance, np.array([data_parallel]), np.array([stride]))
    fixed, per_byte = synchronisation_terms(
        instance, data_parallel.bit_length() - 1, int(levels[0])
    )
    return max_load * slots + fixed + per_byte * parameters


@dataclass(frozen=True, slots=True)
class _EdgeTables:
    """What crosses a stage's borders, for every stage at once.

    ``incoming[i, v]``: largest edge into layer v from before layer i; ``outgoing[u, j]``:
    largest edge from layer u to layer j or later; -inf where there is none.
    ``entering[i, v]``: bytes of all edges into layer v from before layer i.
    """

    incoming: FloatArray
    outgoing: FloatArray
    entering: FloatArray

    @classmethod
    def of(cls, layers: Layers) -> _EdgeTables:
        count = len(layers.forward)
        incoming = np.full((count, count), -np.inf)
        outgoing = np.full((count, count + 1), -np.inf)
        entering = np.zeros((count, count))
        for source, target, size in layers.edges:
            cut = slice(source + 1, target + 1)  # stages that begin, or end, between the two
            np.maximum(incoming[cut, target], size, out=incoming[cut, target])
            np.maximum(outgoing[source, cut], size, out=outgoing[source, cut])
            entering[cut, target] += size
        return cls(incoming, outgoing, entering)


class StageTables:
    """Loads and memory of all stages of one tensor width.

    Tables have shape (span, layers): entry [w-1, i] belongs to the stage of w layers that
    begins with layer i, and is infinite where the chain ends before. They are made when
    first asked for and kept, so an instance of this class grows but never changes its
    answers.

    Parameters
    ----------
    instance : Instance
    layers : Layers
        One of the instance's widths.

    Notes
    -----
    A table costs O(span * layers) time and memory. Times are accumulated layer by layer
    rather than taken as differences of prefix sums, so that short stages of chains with
    one very slow layer keep their digits.
    """

    def __init__(self, instance: Instance, layers: Layers) -> None:
        self.layers = layers
        self.count = len(layers.forward)
        self._instance = instance
        self._forward_latency = np.array(layers.forward)
        self._backward_latency = np.array(layers.backward)
        self._edges = _EdgeTables.of(layers)
        self._transfer_bandwidth = np.minimum.accumulate(np.array(instance.bandwidths))
        parameters = np.array(layers.parameters)
        activations = np.array(layers.activations)
        resident = (2 + _EXTRA_STATES[instance.optimizer]) * parameters + activations
        self.parameters = _prefix_sums(parameters)
        self._activations = _prefix_sums(activations)
        self._resident = _prefix_sums(resident)
        self._work = _prefix_sums(self._forward_latency + self._backward_latency)
        self._tables: dict[tuple[_Kind, int], FloatArray] = {}

    def span(self, memory: float = np.inf, load: float = np.inf) -> int:
        """Return the longest stage whose layers alone respect both limits."""
        longest = self.count
        # The slack keeps a limit that is met exactly, up to rounding, inside.
        for sums, limit in ((self._resident, memory), (self._work, load)):
            if np.isfinite(limit):
                reach = np.searchsorted(sums, sums + limit * (1 + 1e-9), side="right")
                longest = min(longest, int((reach - 1 - np.arange(self.count + 1)).max()))
        return longest

    def loads(self, position: int, span: int, producer: int, consumer: int) -> FloatArray:
        """Return load (forward + backward of one micro-batch) of all stages of up to `span` layers.

        Parameters
        ----------
        position : int
            Position of the stage from the end; 1 is the last stage, which recomputes nothing.
        span : int
            Longest stage asked for.
        producer, consumer : int
            Levels towards the stages before and after.
        """
        backward: _Kind = "recomputed" if self._instance.recompute and position > 1 else "backward"
        return self._table("forward", producer, span) + self._table(backward, consumer, span)

    def memory(self, position: int, span: int) -> FloatArray:
        """Return bytes of all stages of up to `span` layers, ``2P + O + A + (s - 1) S``."""
        resident = self._table("resident", 0, span)
        return (
            resident if position == 1 else resident + (position - 1) * self._table("stash", 0, span)
        )

    def following(self, behind: FloatArray, span: int) -> FloatArray:
        """Return what stands behind every stage, of what begins with each layer (or none)."""
        return np.lib.stride_tricks.sliding_window_view(
            np.concatenate((behind[1:], np.full(span, np.inf))), self.count
        )[:span]

    def _table(self, kind: _Kind, level: int, span: int) -> FloatArray:
        table = self._tables.get((kind, level))
        if table is None or len(table) < span:
            table = self._tables[kind, level] = self._make(kind, level, span)
        return table[:span]

    def _make(self, kind: _Kind, level: int, span: int) -> FloatArray:
        match kind:
            case "forward":
                return self._forward(level, span)
            case "backward":
                return self._backward(level, span)
            case "recomputed":
                return np.maximum(
                    2 * self._backward(None, span), self._table("backward", level, span)
                )
            case "resident":
                return self._differences(self._resident, span, np.inf)
            case "stash":
                return self._stash(span)

    def _transfer(self, sizes: FloatArray, level: int) -> FloatArray:
        once: FloatArray = sizes / self._transfer_bandwidth[level] + self._instance.latencies[level]
        return once if level == 0 else 2 * once

    def _forward(self, level: int, span: int) -> FloatArray:
        table = np.full((span, self.count), np.inf)
        finish = np.zeros(self.count)
        for offset in range(span):
            arrival = self._transfer(np.diagonal(self._edges.incoming, offset), level)
            finish = np.maximum(finish[: len(arrival)], arrival) + self._forward_latency[offset:]
            table[offset, : len(finish)] = finish
        return table

    def _backward(self, level: int | None, span: int) -> FloatArray:
        """Backward pass; without a level, its compute alone."""
        table = np.full((span, self.count), np.inf)
        finish = np.zeros(self.count + 1)
        for offset in range(span):
            finish = finish[1:]
            if level is not None:
                finish = np.maximum(
                    finish, self._transfer(np.diagonal(self._edges.outgoing, offset + 1), level)
                )
            finish = finish + self._backward_latency[: len(finish)]
            table[offset, : len(finish)] = finish
        return table

    def _stash(self, span: int) -> FloatArray:
        if not self._instance.recompute:
            return self._differences(self._activations, span, 0.0)
        table = np.zeros((span, self.count))
        total = np.zeros(self.count)
        for offset in range(span):
            entering = np.diagonal(self._edges.entering, offset)
            total = total[: len(entering)] + entering
            table[offset, : len(total)] = total
        return table

    def _differences(self, sums: FloatArray, span: int, beyond: float) -> FloatArray:
        table = np.full((span, self.count), beyond)
        for offset in range(span):
            width = offset + 1
            table[offset, : self.count + 1 - width] = sums[width:] - sums[:-width]
        return table


def _prefix_sums(values: FloatArray) -> FloatArray:
    return np.concatenate(([0.0], np.cumsum(values)))
