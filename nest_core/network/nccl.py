"""Which algorithm NCCL would take: its tuner's constants, on this fabric's link loads.

NCCL estimates ``latency + bytes / bandwidth`` for each of its algorithms and protocols (LL, LL128,
Simple) and takes the least; the constants here are those of NVIDIA/nccl@5067397
``src/graph/tuning.cc``. The bandwidth is that of our own flows instead of its graph search, so
that sharing counts. In-node reduction (NVLS) starts at five devices, as AWS's tuner has it on
H200. Operations other than all-reduce run on rings, all-to-all on sends to all peers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nest_core.errors import InputError
from nest_core.network.algorithms import algorithm_phases
from nest_core.network.algorithms.strategies import reduces_in_node
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray
from nest_core.network.phases import price_phases

__all__ = ["NVLS_FROM", "nccl_choice"]

NVLS_FROM = 5
"""Smallest number of devices in a node for which NVLS is taken."""

US = 1e-6


@dataclass(frozen=True, slots=True)
class _Protocol:
    """One protocol: latencies in seconds, and the part of the bandwidth that it reaches."""

    ring_base: float
    tree_base: float
    ring_inside: float
    ring_between: float
    tree_inside: float
    tree_between: float
    ring_rate: float
    tree_rate_one_node: float
    tree_rate: float


_PROTOCOLS = (
    _Protocol(6.6e-6, 6.8e-6, 0.6e-6, 2.7e-6, 0.6e-6, 5.0e-6, 0.5, 0.92 / 3.8, 0.92 / 3.8),
    _Protocol(14e-6, 14e-6, 1.9e-6, 4.0e-6, 1.25e-6, 8.5e-6, 0.92, 0.92 * 7 / 9, 0.92 * 120 / 128),
    _Protocol(8.4e-6, 8.4e-6, 3.4e-6, 14e-6, 4.0e-6, 14e-6, 1.0, 0.92, 0.92),
)
"""LL, LL128 and Simple, over NVLink inside nodes."""

_NVLS_INSIDE, _NVLS_TREE_BETWEEN, _NVLS_RATE = 25 * US, 20.9 * US, 0.85


def nccl_choice(
    network: Network, op: str, size_bytes: float, groups: IntArray, *, in_network: bool
) -> str:
    """Name of the algorithm; ``in_network`` says whether the nodes' switches reduce.

    Raises
    ------
    InputError
        From the algorithms, where none of NCCL's suits.
    """
    if op in ("all_to_all", "point_to_point", "send_receive"):
        return "direct"
    ring = (
        "multi_rail"
        if _beta(network, op, "multi_rail", groups) < math.inf
        else ("chain" if op == "broadcast" else "ring")
    )
    if op != "all_reduce":
        return ring
    size = groups.shape[1]
    nodes = 1 if network.torus is not None else len(np.unique(network.node[groups[0]]))
    per_node = size / nodes
    beta = {name: _beta(network, op, name, groups) for name in (ring, "double_binary_tree")}
    depth = math.ceil(math.log2(nodes)) if nodes > 1 else 0
    times: dict[str, float] = {}
    for entry in _PROTOCOLS:
        between = 2 * (nodes - 1)
        latency = entry.ring_base + (2 * (size - 1) - between) * entry.ring_inside
        time = latency + between * entry.ring_between + size_bytes * beta[ring] / entry.ring_rate
        times[ring] = min(time, times.get(ring, math.inf))
        rate = entry.tree_rate_one_node if nodes == 1 else entry.tree_rate
        latency = 2 * ((per_node - 1) * entry.tree_inside + depth * entry.tree_between)
        time = entry.tree_base + latency + size_bytes * beta["double_binary_tree"] / rate
        times["double_binary_tree"] = min(time, times.get("double_binary_tree", math.inf))
    if in_network and per_node >= NVLS_FROM and reduces_in_node(network):
        name = "in_network" if nodes == 1 else "nvls_tree"
        latency = _NVLS_INSIDE + 2 * depth * _NVLS_TREE_BETWEEN
        times[name] = latency + size_bytes * _beta(network, op, name, groups) / _NVLS_RATE
    return min(times, key=lambda name: times[name])


def _beta(network: Network, op: str, algorithm: str, groups: IntArray) -> float:
    """Seconds per byte on the links; infinite where the algorithm does not suit."""
    try:
        phases = algorithm_phases(op, algorithm, network, groups)
    except InputError:
        return math.inf
    return float(price_phases(network.link_map, phases, len(groups)).beta_s_per_byte.max())
