"""What a collective waits for, in words: a bundle of links and who shares it, or the latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.network.levels import Network
from nest_core.network.phases import Phase
from nest_core.network.wires import IntArray

__all__ = ["describe"]


@dataclass(frozen=True, slots=True)
class _Wait:
    """The slowest bundle of a phase, or its longest latency."""

    latency_s: float
    steps: float
    latency_level: int
    seconds_per_byte: float
    flows: int
    capacity_Bps: float
    lane_limited: bool
    tier: int


def describe(network: Network, stages: list[list[Phase]], size_bytes: float) -> tuple[str, str]:
    """A phrase and the level's name. Cost: one look at the routes of every phase."""
    waits = [_wait(network, phase) for stage in stages for phase in stage if len(phase.source)]
    if not waits:
        return "nothing to send", network.levels[0].name
    latency = sum(wait.latency_s for wait in waits)
    transfer = sum(wait.seconds_per_byte for wait in waits) * size_bytes
    if latency > transfer:
        longest = max(waits, key=lambda wait: wait.latency_s)
        name = network.levels[longest.latency_level].name
        steps = round(sum(wait.steps for wait in waits))
        return f"latency: {steps:,} steps, most of it at level {name}", name
    slowest = max(waits, key=lambda wait: wait.seconds_per_byte)
    name = network.levels[slowest.tier].name
    return f"{_links(network, slowest, name)}: {_sharing(slowest)}", name


def _links(network: Network, wait: _Wait, name: str) -> str:
    if network.torus is not None:
        return "torus links"
    if getattr(network.wires, "interior", None) is not None and wait.tier == 0:
        return f"links inside {name}"
    return (
        f"ports into {name}"
        if network.levels[wait.tier].child_size == 1
        else f"uplinks into {name}"
    )


def _sharing(wait: _Wait) -> str:
    rate = f"{wait.capacity_Bps / 1e9:.4g} GB/s"
    if wait.lane_limited:
        return f"a flow can draw {rate} from one of them"
    if wait.flows == 1:
        return f"one flow has {rate}"
    return f"{wait.flows:,} flows share {rate}"


def _wait(network: Network, phase: Phase) -> _Wait:
    wires = network.wires
    routes = wires.routes(phase.source, phase.target, 0)
    latency = phase.steps * routes.latency_s
    slow = int(np.argmax(latency))
    level = _level(network, phase.source[slow : slow + 1], phase.target[slow : slow + 1])
    moved = routes.share * phase.volume[routes.flow]
    load = np.bincount(routes.bundle, moved, minlength=len(wires.capacity_Bps))
    shared = load[routes.bundle] / wires.capacity_Bps[routes.bundle]
    alone = moved / wires.lane_Bps[routes.bundle]
    worst = int(np.argmax(np.maximum(shared, alone)))
    bundle = int(routes.bundle[worst])
    limited = bool(alone[worst] > shared[worst] * (1 + 1e-9))
    return _Wait(
        latency_s=float(latency[slow]),
        steps=float(phase.steps[slow]),
        latency_level=level,
        seconds_per_byte=float(max(shared[worst], alone[worst])),
        flows=int(np.count_nonzero((routes.bundle == bundle) & (moved > 0))),
        capacity_Bps=float((wires.lane_Bps if limited else wires.capacity_Bps)[bundle]),
        lane_limited=limited,
        tier=int(wires.tier[bundle]),
    )


def _level(network: Network, source: IntArray, target: IntArray) -> int:
    return int(np.clip(network.wires.level(source, target)[0], 0, len(network.levels) - 1))
