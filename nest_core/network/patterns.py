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
from nest_core.fabric.lattice import lattice_of
from nest_core.network.busiest import BusyLink, busiest_links, load_of
from nest_core.network.dragonfly import DragonflyLinkMap
from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, IntArray
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
    "shift_loads",
    "traffic",
]

Pattern = Literal["dp_ring", "dp_hier", "pp"]
Direction = Literal["fwd", "fwdbwd"]
PATTERNS = ("dp_ring", "dp_hier", "pp")
DIRECTIONS = ("fwd", "fwdbwd")
NAMES = {"dp_ring": "rings", "dp_hier": "hierarchical reductions", "pp": "pipeline transfers"}
"""What uses the links."""
EXPLICIT_DEVICES = 1024
MOST_SHIFTED = 4096


@dataclass(frozen=True, slots=True)
class PatternTraffic:
    """What a pattern takes.

    Parameters
    ----------
    time_s : float
        As the planner prices it.
    explicit_time_s : float or None
        Of the same flows over the fabric's explicit link graph; None where there is none to walk.
    contention_free_s : float
        Each flow alone on its path.
    busiest : tuple of BusyLink
        Of those that the planner counts; under static ECMP of one draw of the hash.
    """

    time_s: float
    explicit_time_s: float | None
    contention_free_s: float
    busiest: tuple[BusyLink, ...]


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


def shift_loads(network: Network) -> tuple[dict[str, FloatArray], float]:
    """Bytes on every link group where all devices send to those 1, 2, 4, ... on, and the seconds.

    One distance after the other, as the steps of rings, halving and pipelines do; none on larger
    fabrics than `MOST_SHIFTED`, where the routes alone take long.
    """
    device, link_map = np.arange(network.devices), network.link_map
    loads, seconds = {}, 0.0
    distance = 1 if network.devices <= MOST_SHIFTED else network.devices
    while distance < network.devices:
        source, ones = np.roll(device, distance), np.ones(len(device))
        phase = Phase(source, device, np.zeros_like(device), ones, ones)
        loads[f"shift by {distance:,}"] = load_of(link_map, [phase], 1.0)
        seconds += float(price_phases(link_map, [phase], 1).beta_s_per_byte[0, 0])
        distance *= 2
    return loads, seconds


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
        What ``network`` was collapsed from, for its explicit link graph: up to 1,024 devices, and
        not of twisted tori.
    """
    check_size(size)
    phases = pattern_phases(network, pattern, replica, stage, directions)
    explicit = None if fabric is None else _explicit(fabric, network)
    time = _seconds(network, phases, size)
    loads = {NAMES[pattern]: load_of(network.link_map, phases, size)}
    return PatternTraffic(
        time,
        None if explicit is None else _seconds(explicit, phases, size),
        _alone(network, phases, size),
        busiest_links(network, loads, time),
    )


def _seconds(network: Network, phases: list[Phase], size: float) -> float:
    return float(price_phases(network.link_map, phases, 1).seconds(size)[0])


def _explicit(fabric: Fabric, network: Network) -> Network | None:
    """Return the network of a fabric's link graph; all but trees count every link anyway."""
    if fabric.devices > EXPLICIT_DEVICES or getattr(fabric, "twisted", False):
        return None
    if isinstance(network.link_map, GraphLinkMap | DragonflyLinkMap) or lattice_of(fabric):
        return network
    from nest_core.network.clusters import graph_network  # scipy: few ask for explicit links

    return graph_network(fabric.explicit(), fabric.routing, fabric.ecmp_seed)


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
