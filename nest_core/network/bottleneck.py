"""What a collective waits for, in words: a link group and who shares it, or the latency."""

from dataclasses import dataclass

import numpy as np

from nest_core.network.levels import Network
from nest_core.network.link_names import link_group_name
from nest_core.network.phases import Phase

__all__ = ["describe"]


@dataclass(frozen=True, slots=True)
class _Wait:
    """The slowest link group of a phase, or its longest latency."""

    latency_s: float
    steps: float
    latency_level: int
    seconds_per_byte: float
    flows: int
    capacity_Bps: float
    link_limited: bool
    link_group: int


def describe(network: Network, stages: list[list[Phase]], size_bytes: float) -> tuple[str, str]:
    """Return a phrase and the level's name. Cost: one look at the routes of every phase."""
    waits = [_wait(network, phase) for stage in stages for phase in stage if len(phase.source)]
    if not waits:
        return "nothing to send", network.levels[0].name
    latency = sum(wait.latency_s for wait in waits)
    transfer = sum(wait.seconds_per_byte for wait in waits) * size_bytes
    if latency > transfer:
        level = network.levels[max(waits, key=lambda wait: wait.latency_s).latency_level]
        steps = round(sum(wait.steps for wait in waits))
        return f"latency: {steps:,} steps, most of it at {level.where}", level.name
    slowest = max(waits, key=lambda wait: wait.seconds_per_byte)
    name = network.levels[int(network.link_map.tier[slowest.link_group])].name
    return f"{link_group_name(network, slowest.link_group)}: {_sharing(slowest)}", name


def _sharing(wait: _Wait) -> str:
    rate = f"{wait.capacity_Bps / 1e9:.4g} GB/s"
    if wait.link_limited:
        return f"a flow can draw {rate} from one of them"
    return f"one flow has {rate}" if wait.flows == 1 else f"{wait.flows:,} flows share {rate}"


def _wait(network: Network, phase: Phase) -> _Wait:
    link_map = network.link_map
    routes = link_map.routes(phase.source, phase.target, 0)
    latency = phase.steps * routes.latency_s
    slow = int(np.argmax(latency))
    turn = np.zeros(len(latency), dtype=np.int64) if phase.turn is None else phase.turn
    turns = (np.flatnonzero(turn == number) for number in np.unique(turn))
    longest = [at[latency[at].argmax()] for at in turns]
    level = link_map.level(phase.source[slow : slow + 1], phase.target[slow : slow + 1])[0]
    moved = routes.share * phase.volume[routes.flow]
    load = np.bincount(routes.link_group, moved, minlength=len(link_map.capacity_Bps))
    shared = load[routes.link_group] / link_map.capacity_Bps[routes.link_group]
    alone = moved / link_map.link_Bps[routes.link_group]
    worst = int(np.argmax(np.maximum(shared, alone)))
    link_group = int(routes.link_group[worst])
    limited = bool(alone[worst] > shared[worst] * (1 + 1e-9))
    return _Wait(
        latency_s=float(latency[longest].sum()),
        steps=float(phase.steps[longest].sum()),
        latency_level=int(np.clip(level, 0, len(network.levels) - 1)),
        seconds_per_byte=float(max(shared[worst], alone[worst])),
        flows=int(np.count_nonzero((routes.link_group == link_group) & (moved > 0))),
        capacity_Bps=float((link_map.link_Bps if limited else link_map.capacity_Bps)[link_group]),
        link_limited=limited,
        link_group=link_group,
    )
