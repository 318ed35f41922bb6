"""Traffic of a placement, all of it at once, as the planner prices it and as links carry it.

A replica is ``K`` contiguous devices. Two patterns of pipelines and two of data parallelism:

* ``pp``: stages of ``S`` contiguous devices; every device ``j`` sends to ``j + S`` inside its
  replica. With ``S = K`` a stage holds all replicas side by side, and ``j`` sends to ``j + K``
  throughout. ``fwdbwd`` sends gradients back at the same time.
* ``dp_ring``: groups ``{g, g + K, g + 2K, …}`` for ``g = 0 .. K - 1``, each one ring all-reduce
  in index order; ``dp_hier``: the same groups, level by level over nodes and the groups above.

Every pattern is one set of flows per phase; its time is that of the slowest flow, under static
ECMP the mean of it over the hash draws. Bytes are what a device sends (``pp``) or holds (``dp``).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nest_core.documents.errors import InputError, require
from nest_core.fabric.fabric import Fabric
from nest_core.network.explicit import EXPLICIT_DEVICES, LinkLoad, explicit_loads
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray
from nest_core.network.phases import Phase, check_size, price_phases
from nest_core.network.traffic import hierarchical_reduce_scatter, ring_reduce_scatter

__all__ = [
    "DIRECTIONS",
    "PATTERNS",
    "Direction",
    "Pattern",
    "PatternTraffic",
    "data_parallel_groups",
    "pattern_phases",
    "pipeline_flows",
    "traffic",
]

Pattern = Literal["dp_ring", "dp_hier", "pp"]
Direction = Literal["fwd", "fwdbwd"]
PATTERNS = ("dp_ring", "dp_hier", "pp")
DIRECTIONS = ("fwd", "fwdbwd")
BUSIEST = 8


@dataclass(frozen=True, slots=True)
class PatternTraffic:
    """What a pattern takes.

    Parameters
    ----------
    time_s : float
        As the planner prices it.
    explicit_time_s : float or None
        From the loads of the explicit link graph; None where there is none to walk.
    contention_free_s : float
        Each flow alone on its path.
    busiest : tuple of LinkLoad
        The busiest links of the explicit graph.
    """

    time_s: float
    explicit_time_s: float | None
    contention_free_s: float
    busiest: tuple[LinkLoad, ...]


def pipeline_flows(
    devices: int, replica: int, stage: int, directions: Direction = "fwd"
) -> tuple[IntArray, IntArray]:
    """Senders and receivers of every stage of every replica.

    Examples
    --------
    >>> source, target = pipeline_flows(8, 4, 2)
    >>> list(zip(source.tolist(), target.tolist()))
    [(0, 2), (1, 3), (4, 6), (5, 7)]
    """
    _check(devices, replica)
    _check_directions(directions)
    require(
        1 <= stage <= replica and replica % stage == 0,
        "stage",
        f"must be a number of devices that divides the replica's {replica}",
        stage,
        "use a divisor, or the replica itself for stages that hold all replicas",
    )
    device = np.arange(devices)
    stays = device + replica < devices if stage == replica else device % replica + stage < replica
    source = device[stays]
    target = source + stage
    return (
        (source, target)
        if directions == "fwd"
        else (np.concatenate([source, target]), np.concatenate([target, source]))
    )


def data_parallel_groups(devices: int, replica: int) -> IntArray:
    """Devices with equal place in their replicas, shape (replica, devices / replica)."""
    _check(devices, replica)
    return np.arange(devices).reshape(-1, replica).T


def pattern_phases(
    network: Network,
    pattern: Pattern,
    replica: int,
    stage: int | None = None,
    directions: Direction = "fwd",
) -> list[Phase]:
    """Phases of a pattern, one owner; an all-reduce is a reduce-scatter and an all-gather.

    Raises
    ------
    InputError
        For an unknown pattern, replicas that do not divide the devices, or stages that do not
        divide the replica.
    """
    require(
        pattern in PATTERNS,
        "pattern",
        "must be dp_ring, dp_hier or pp",
        pattern,
        "pick one of them",
    )
    _check_directions(directions)
    if pattern == "pp":
        if stage is None:
            raise InputError("stage", "must be given for pp", None, "say how many devices it has")
        source, target = pipeline_flows(network.devices, replica, stage, directions)
        ones = np.ones(len(source))
        return [Phase(source, target, np.zeros(len(source), np.int64), ones, ones)]
    groups = data_parallel_groups(network.devices, replica)
    if groups.shape[1] == 1:
        return []
    phases = (
        ring_reduce_scatter(groups)
        if pattern == "dp_ring"
        else hierarchical_reduce_scatter(network, groups)
    )
    return [
        replace(
            phase, owner=np.zeros_like(phase.owner), steps=2 * phase.steps, volume=2 * phase.volume
        )
        for phase in phases
    ]


def traffic(
    network: Network,
    pattern: Pattern,
    replica: int,
    stage: int | None,
    size: float,
    directions: Direction = "fwd",
    fabric: Fabric | None = None,
) -> PatternTraffic:
    """Time of a pattern of ``size`` bytes.

    Parameters
    ----------
    fabric : Fabric or None
        What ``network`` was collapsed from, for the explicit link loads: up to 1,024 devices,
        and not on twisted tori, whose routes no graph search picks alone.
    """
    check_size(size)
    phases = pattern_phases(network, pattern, replica, stage, directions)
    time = price_phases(network.link_map, phases, 1).seconds(size)[0]
    seconds, busiest = _explicit(fabric, phases, size, network.link_map.variants)
    return PatternTraffic(float(time), seconds, _alone(network, phases, size), busiest)


def _explicit(
    fabric: Fabric | None, phases: list[Phase], size: float, draws: int
) -> tuple[float | None, tuple[LinkLoad, ...]]:
    if fabric is None or fabric.devices > EXPLICIT_DEVICES or getattr(fabric, "twisted", False):
        return None, ()
    flows = [
        list(
            zip(
                p.source.tolist(),
                p.target.tolist(),
                (p.volume * size).tolist(),
                p.steps.tolist(),
                strict=True,
            )
        )
        for p in phases
    ]
    results = [explicit_loads(fabric, flows, draw) for draw in range(draws)]
    return sum(entry.time_s for entry in results) / draws, results[0].links[:BUSIEST]


def _alone(network: Network, phases: list[Phase], size: float) -> float:
    """Every flow as if no other were there."""
    link_map, seconds = network.link_map, 0.0
    for phase in phases:
        routes = link_map.routes(phase.source, phase.target)
        moved = routes.share * phase.volume[routes.flow] * size
        one_link = np.minimum(link_map.link_Bps, link_map.capacity_Bps)[routes.link_group]
        started = phase.steps * routes.latency_s
        seconds += float((moved / one_link).max(initial=0.0) + started.max(initial=0.0))
    return seconds


def _check_directions(directions: str) -> None:
    require(
        directions in DIRECTIONS,
        "directions",
        "must be fwd or fwdbwd",
        directions,
        "pick one of them",
    )


def _check(devices: int, replica: int) -> None:
    require(
        1 <= replica <= devices and devices % replica == 0,
        "replica",
        f"must be a number of devices that divides the fabric's {devices:,}",
        replica,
        "use a divisor",
    )
