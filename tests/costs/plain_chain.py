"""A small chain on a flat fabric, every figure plain; tests change what they are about."""

from __future__ import annotations

from typing import Any

import numpy as np

from nest_core.costs import LayerTable, Plan, Point, Problem, StateBytes
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse

ORDER = ("tp", "cp", "dp", "pp")


def chain(layers: int = 4, **changed: Any) -> LayerTable:
    """Layers of three seconds, one of them forward, that send and hold nothing."""
    nothing, none = np.zeros(layers), np.zeros((3, layers))
    fields: dict[str, Any] = {
        "compute_s": np.full(layers, 3.0),
        "forward_s": np.full(layers, 1.0),
        "weight_s": np.full(layers, 0.75),
        "replay_s": none,
        "launch_s": none,
        "calls": {},
        "parameters": nothing,
        "expert_parameters": nothing,
        "tied_parameters": 0.0,
        "kept_bytes": none,
        "working_bytes": none,
        "boundary_bytes": np.zeros(layers + 1),
    }
    return LayerTable(**(fields | changed))


def problem(table: LayerTable, devices: int = 8, batch: int = 8, **changed: Any) -> Problem:
    """One byte takes one second between any two devices, nothing else takes time."""
    fields: dict[str, Any] = {
        "network": collapse(Hierarchical("flat", (Tier("node", devices, 1.0, 0.0),))),
        "table": lambda tp, sp, micro_batch, cp, ep, etp: table,
        "batch": batch,
        "tokens": 1,
        "memory_bytes": 1e9,
        "reserved_bytes": 0.0,
        "state": StateBytes(1.0, 1.0, 2.0),
        "update_Bps": 1e30,
        "model_flops": 1.0,
        "peak_flops": 1.0,
    }
    return Problem(**(fields | changed))


def plan(cuts: tuple[int, ...] = (0, 4), recompute: str = "none", **changed: Any) -> Plan:
    """One device, one micro-batch at a time, unless told otherwise."""
    fields: dict[str, Any] = {
        "tp": 1,
        "sp": False,
        "dp": 1,
        "pp": 1,
        "micro_batch": 1,
        "zero": 0,
        "order": ORDER,
    }
    point = Point(**(fields | changed))
    return Plan(point, cuts, (recompute,) * point.pp)
