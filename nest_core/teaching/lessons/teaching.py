"""What lessons plan on: jobs on nodes under one spine, bare chains of layers, and even cuts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from nest_core.costs import LayerTable, Problem, StateBytes
from nest_core.documents.units import from_gbps_bytes, from_microseconds
from nest_core.fabric import Hierarchical, Tier
from nest_core.hardware import load_accelerator
from nest_core.hardware.stacks import default_stack, under
from nest_core.network import Network, collapse
from nest_core.scenario.job import Job
from nest_core.workload import load_model

__all__ = [
    "LEVEL_NAMES",
    "NODE_GBPS",
    "ORDER",
    "UPLINK_GBPS",
    "bare_chain",
    "even_cuts",
    "noded",
    "problem",
]

ORDER = ("tp", "cp", "dp", "pp")
"""Megatron-LM's."""

NODE_GBPS = 450.0
"""One H100 into NVLink 4, one direction."""
UPLINK_GBPS = 50.0
"""One NDR port for each device of a node, one direction; the node shares them."""

LEVEL_NAMES = ("same node", "other node")
"""Where two stages of a bare chain on nodes meet, by level."""

_NODE_US, _SPINE_US = 1.0, 5.0


def _fabric(devices: int, per_node: int, ratio: float) -> Hierarchical:
    """Nodes under one spine, oversubscribed ``ratio`` : 1."""
    node = Tier("node", per_node, from_gbps_bytes(NODE_GBPS), from_microseconds(_NODE_US))
    spine = Tier(
        "spine",
        devices // per_node,
        per_node * from_gbps_bytes(UPLINK_GBPS),
        from_microseconds(_SPINE_US),
        "child",
        ratio,
    )
    return Hierarchical(f"{devices} devices, {per_node} per node", (node, spine))


@cache
def noded(nodes: int, per_node: int, nic_GBps: float) -> Network:
    """Nodes under one leaf, a NIC of their own for all devices; GB/s in one direction."""
    node = Tier("node", per_node, from_gbps_bytes(NODE_GBPS), from_microseconds(_NODE_US))
    leaf = Tier("leaf", nodes, from_gbps_bytes(nic_GBps), from_microseconds(_SPINE_US))
    return collapse(Hierarchical(f"{nodes} nodes of {per_node}", (node, leaf)))


@cache
def problem(
    model: str,
    sequence: int,
    batch: int,
    devices: int,
    per_node: int,
    *,
    ratio: float = 1.0,
    imbalance: float = 1.0,
    overlap: bool = True,
) -> Problem:
    """A model on H100 with 80 GiB, bf16 and Adam.

    Parameters
    ----------
    model : str
        A preset.
    sequence, batch : int
        Tokens, sequences per iteration.
    devices, per_node : int
    ratio : float
        Oversubscription of the nodes' uplinks, down : up.
    imbalance : float
        Load of the hottest expert over the mean.
    overlap : bool
        Whether communication may hide behind compute, as fitted; else all of it is exposed.
    """
    device = load_accelerator("h100-80gb")
    stack = default_stack(device.family.name)
    job = Job(
        under(device, stack, "bf16"),
        stack,
        load_model(model),
        sequence,
        batch,
        "bf16",
        "adam",
        imbalance=imbalance,
        overlap="fitted" if overlap else "none",
    )
    return job.problem_on(_fabric(devices, per_node, ratio))


def bare_chain(
    network: Network,
    seconds: Sequence[float],
    forward: Sequence[float],
    boundary: Sequence[float],
    batch: int,
) -> Problem:
    """Layers that take time and hand data on, and nothing else; micro-batches of one.

    Parameters
    ----------
    network : Network
    seconds, forward : sequence of float, length L
        Forward and backward, and of it forward.
    boundary : sequence of float, length L + 1
        Data between neighbouring layers; zero at both ends.
    batch : int
    """
    layers = len(seconds)
    nothing, none = np.zeros(layers), np.zeros((3, layers))
    chain = LayerTable(
        compute_s=np.array(seconds, dtype=np.float64),
        forward_s=np.array(forward, dtype=np.float64),
        weight_s=nothing,
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=np.array(boundary, dtype=np.float64),
    )
    return Problem(
        network=network,
        table=lambda tp, sp, micro_batch, cp, ep, etp: chain,
        batch=batch,
        tokens=1,
        memory_bytes=float("inf"),
        reserved_bytes=0.0,
        state=StateBytes(0.0, 0.0, 0.0),
        update_Bps=1.0,
        model_flops=0.0,
        peak_flops=1.0,
    )


def even_cuts(layers: int, stages: int) -> tuple[int, ...]:
    """Cuts that give every stage as many blocks; embedding and head join the ends.

    Examples
    --------
    >>> even_cuts(10, 4)
    (0, 3, 5, 7, 10)
    """
    blocks = layers - 2
    return (0, *(1 + blocks * stage // stages for stage in range(1, stages)), layers)
