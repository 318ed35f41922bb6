"""Traffic of a placement, all of it at once, as the planner prices it and as links carry it.

A replica is ``K`` contiguous devices. Two patterns of pipelines and two of data parallelism:

* ``pp``: stages of ``S`` contiguous devices; every device ``j`` sends to ``j + S`` inside its
  replica. With ``S = K`` a stage holds all replicas side by side, and ``j`` sends to ``j + K``
  throughout. ``fwdbwd`` sends gradients back at the same time.
* ``dp_ring``: groups ``{g, g + K, g + 2K, …}`` for ``g = 0 .. K - 1``, each one ring all-reduce
  in index order; ``dp_hier``: the same groups, level by level over nodes and the groups above.

Every pattern is one set of flows per phase; its time is that of the slowest flow, under static
ECMP the mean of it over the hash draws. Bytes are what a device sends (``pp``) or holds (``dp``).

How far levels alone are from the links beneath them.

The same traffic is priced twice: on the network's links, and on a tree that knows only its
levels: every child of a level has one uplink group of that level's capacity, from which one
device draws at most `Level.single_flow_Bps`. A torus has a level per hop; of those beyond
`REMOTE_HOPS` the tree knows one, as NEST (MLSys 2026, appendix B.2) does.
The worst relative difference over the placements that a planner makes is the *collapse error*:
0 for hierarchies and Clos fabrics of equal groups, and an honest figure for tori, rails,
dragonflies and drawn graphs. Plans are priced on the links and do not carry it.

Placements: groups of contiguous devices and of devices a stride apart that cover the fabric
(sizes and strides: powers of four and whole blocks of the nesting), reduced by a ring and level
by level; pipelines with stages of every such size, and the first of their senders alone. Latency
counts as part of a message of 1 GiB, so that bandwidth rules. Over 16,384 devices one size, the
middle one, stands for all, and rings for collectives; of a link graph over 1,024 devices so do
1,024 devices, evenly spread.
"""

from collections.abc import Iterator
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
from nest_core.network.tree import TreeLinkMap, TreeTier

__all__ = [
    "DIRECTIONS",
    "PATTERNS",
    "REMOTE_HOPS",
    "Direction",
    "Pattern",
    "PatternTraffic",
    "block_levels",
    "collapse_error",
    "data_parallel_groups",
    "levels_only",
    "pattern_phases",
    "pipeline_flows",
    "shift_loads",
    "traffic",
]

MESSAGE = 2.0**30
FEW_DEVICES = 16_384
FEW_DRAWN = 1024
REMOTE_HOPS = 3
"""From so many hops on a torus has one level, the paper's "remote"; it prints no threshold."""


def levels_only(network: Network) -> Network:
    """Return the network as its levels say: a tree with one uplink group per child.

    A block of the nesting is priced by its level, on fabrics whose levels do not nest by the
    level at which its farthest devices meet; there an uplink is what its devices have of the
    level. One flow draws what one device may, or more where every link of the level lets it, but
    of a bundle no more than it has on its way there.
    """
    link_map, devices = network.link_map, np.arange(network.devices)
    nested = all(level.kind == "nested" for level in network.levels)
    tiers: list[TreeTier] = []
    child, within, port = devices, -1, np.inf
    for group, number in zip(network.nesting, block_levels(network), strict=True):
        level = network.levels[number]
        size = np.bincount(child)
        capacity = np.full(len(size), level.capacity_Bps)
        if not nested:
            capacity = level.bandwidth_Bps * np.maximum(size, 1.0)
        group_links = link_map.link_Bps[(link_map.tier > within) & (link_map.tier <= number)]
        most = max(level.single_flow_Bps, min(port, float(group_links.min(initial=np.inf))))
        if nested:  # into bundles further out it comes through what is inside of them
            port = min(port, most)
        one_link = np.minimum(most, capacity)
        owned = nested and level.links == level.child_size
        tiers.append(TreeTier(child, group, capacity, one_link, level.latency_s, owned))
        child, within = group, number
    return replace(network, link_map=TreeLinkMap(tuple(tiers)), torus=None)


def block_levels(network: Network) -> tuple[int, ...]:
    """Return the level of every block of the nesting: its own, or where its farthest devices meet.

    On a torus that is `REMOTE_HOPS` at most: who is far from somebody there is near to others, and
    rings, which most traffic is, go from neighbour to neighbour.
    """
    nested = all(level.kind == "nested" for level in network.levels)
    if nested and len(network.levels) == len(network.nesting):
        return tuple(range(len(network.nesting)))
    result = []
    for group in network.nesting:
        members = np.flatnonzero(group == group[0])
        far = int(network.link_map.level(np.full(len(members), members[0]), members).max())
        result.append(max(0, far if network.torus is None else min(far, REMOTE_HOPS - 1)))
    return tuple(result)


def collapse_error(network: Network) -> float:
    """Worst relative difference between pricing by levels alone and on the links.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> tiers = (Tier("node", 8, 900e9, 1e-7), Tier("rack", 4, 50e9, 2e-7))
    >>> collapse_error(collapse(Hierarchical("two", tiers)))
    0.0
    """
    if network.devices == 1:
        return 0.0
    tree = levels_only(network)
    seconds = (
        (_seconds(network, phases), _seconds(tree, phases)) for phases in _placements(network)
    )
    worst = max((abs(level / link - 1.0) for link, level in seconds if link), default=0.0)
    return float(worst) if worst > 1e-9 else 0.0


def _seconds(network: Network, phases: list[Phase]) -> float:
    time: FloatArray = price_phases(network.link_map, phases, 1).seconds(MESSAGE)
    return float(time[0])


def _placements(network: Network) -> Iterator[list[Phase]]:
    """Phases of every sampled placement, one owner each."""
    every = np.arange(network.devices)
    if isinstance(network.link_map, GraphLinkMap) and len(every) > FEW_DRAWN:
        every = np.linspace(0, len(every) - 1, FEW_DRAWN).astype(np.int64)
    devices = len(every)
    sizes = _sizes(network, devices)
    many = network.devices > min(FEW_DEVICES, devices)
    for size in sizes:
        for stride in sizes if many else [1, *sizes]:
            count = devices // (size * stride)
            if count == 0:
                continue
            groups = every[: count * size * stride].reshape(count, size, stride).swapaxes(1, 2)
            rows: IntArray = groups.reshape(-1, size)
            algorithms = [ring_reduce_scatter(rows)]
            if not many:
                algorithms.append(hierarchical_reduce_scatter(network, rows))
            yield from ([replace(p, owner=0 * p.owner) for p in phases] for phases in algorithms)
        if size < devices:
            source, target, ones = every[:-size], every[size:], np.ones(devices - size)
            for flows in (slice(None), slice(1)):
                sent = ones[flows]
                yield [Phase(source[flows], target[flows], 0 * source[flows], sent, sent)]


def _sizes(network: Network, devices: int) -> list[int]:
    """Group sizes and strides: powers of four, and the blocks of the nesting."""
    powers = {4**k for k in range(1, 10)} | {2}
    blocks = {int(np.bincount(group).max()) for group in network.nesting}
    sizes = sorted(size for size in powers | blocks if 1 < size <= devices)
    return [sizes[len(sizes) // 2]] if network.devices > min(FEW_DEVICES, devices) else sizes


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
    time = _pattern_seconds(network, phases, size)
    loads = {NAMES[pattern]: load_of(network.link_map, phases, size)}
    return PatternTraffic(
        time,
        None if explicit is None else _pattern_seconds(explicit, phases, size),
        _alone(network, phases, size),
        busiest_links(network, loads, time),
    )


def _pattern_seconds(network: Network, phases: list[Phase], size: float) -> float:
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
