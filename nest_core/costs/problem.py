"""What a planning problem is: the arrays that costs are computed from.

A `Problem` holds everything that a plan's price depends on, and nothing about how plans are
searched. It is built from a scenario (`nest_core.scenario`) or directly from arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nest_core.costs.software import WIRES_ALONE, Software
from nest_core.network import Network
from nest_core.network.wires import FloatArray

__all__ = ["RECOMPUTE", "LayerTable", "Problem", "StateBytes"]

RECOMPUTE = ("none", "selective", "full")


@dataclass(frozen=True, slots=True, eq=False)
class LayerTable:
    """Per-layer figures of one strategy, on one rank, for one micro-batch.

    ``L`` layers; rows of three are in the order of `RECOMPUTE`. A *half* is a reduce-scatter
    or an all-gather; an all-reduce is two halves.

    Parameters
    ----------
    compute_s : (L,)
        Forward and backward.
    replay_s : (3, L)
        Extra forward work under recomputation.
    tp_halves, tp_bytes : (L,)
        Collectives in the tensor-parallel group, both passes: number of halves, and their
        buffer bytes added up.
    tp_replay_halves, tp_replay_bytes : (3, L)
    parameters : (L,)
        Elements.
    tied_parameters : float
        Elements of the last layer that are a copy of the first layer's.
    kept_bytes : (3, L)
        From forward to backward.
    working_bytes : (3, L)
        Re-materialised while the layer's backward runs.
    boundary_bytes : (L + 1,)
        Sent between layers ``i - 1`` and ``i``; zero at both ends.
    """

    compute_s: FloatArray
    replay_s: FloatArray
    tp_halves: FloatArray
    tp_bytes: FloatArray
    tp_replay_halves: FloatArray
    tp_replay_bytes: FloatArray
    parameters: FloatArray
    tied_parameters: float
    kept_bytes: FloatArray
    working_bytes: FloatArray
    boundary_bytes: FloatArray

    @property
    def layers(self) -> int:
        """Length of the chain."""
        return int(self.compute_s.shape[0])


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes per parameter held by the training state, before any sharding."""

    weights: float
    gradients: float
    optimizer: float


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A fabric, a workload and a device, ready to be priced.

    Parameters
    ----------
    network : Network
    table : callable (tp, sp, micro_batch) -> LayerTable
        Must be pure; called once per strategy.
    batch : int
        Sequences per iteration.
    tokens : int
        Per sequence.
    memory_bytes, reserved_bytes : float
        Device memory, and what of it is taken before the first tensor.
    state : StateBytes
    update_Bps : float
        Memory bandwidth that the optimizer step reaches.
    model_flops : float
        Of one sequence, forward and backward, without recomputation; 0 if unknown.
    peak_flops : float
        Of one device.
    software : Software
        What the communication library adds to the wires.
    """

    network: Network
    table: Callable[[int, bool, int], LayerTable]
    batch: int
    tokens: int
    memory_bytes: float
    reserved_bytes: float
    state: StateBytes
    update_Bps: float
    model_flops: float
    peak_flops: float
    software: Software = WIRES_ALONE

    @property
    def layers(self) -> int:
        """Length of the chain."""
        return self.table(1, False, 1).layers


def prefix(values: FloatArray) -> FloatArray:
    """Prefix sums along the last axis with a leading zero."""
    result = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=result[..., 1:])
    return result
