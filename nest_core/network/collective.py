"""Times of one collective: which groups take part, which algorithm runs, and what it waits for.

Messages are counted as nccl-tests counts them: ``size_bytes`` is the per-rank input, for
all-gather the per-rank output; the bus bandwidth is ``factor * size_bytes / time`` (nccl-tests
``PERFORMANCE.md``), so that it can be held against the rate of a port.

Buffers may pass in ``chunks`` through the stages of a level-by-level algorithm; stages that are
busy at the same time share the links.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from nest_core.documents.errors import InputError, require
from nest_core.network.algorithms import (
    ALGORITHMS,
    IN_NETWORK,
    MOST_FLOWS,
    Stage,
    algorithm_stages,
    check_op,
)
from nest_core.network.busiest import BusyLink, busiest_links, describe, load_of
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, IntArray
from nest_core.network.phases import IDEAL, Phase, Protocol, check_size, merged, price_phases
from nest_core.network.traffic import Kind, algorithms, by_algorithm, message_time

__all__ = [
    "KINDS",
    "AlgorithmCandidate",
    "CollectiveAnswer",
    "Concurrent",
    "bus_factor",
    "collective",
    "first_arrival",
    "member_groups",
]

Concurrent = Literal["one", "all"]

KINDS: dict[str, tuple[Kind, int]] = {
    "all_reduce": ("all_reduce", 2),
    "all_gather": ("reduce_scatter", 1),
    "reduce_scatter": ("reduce_scatter", 1),
    "all_to_all": ("all_to_all", 1),
}
"""Collectives that plans are made of: which call, and how many of them."""

MOST_CHUNKS = 1024

MOST_CROSSED = 100_000_000
"""Links that the flows of all algorithms cross; counting them takes about 4 s."""


@dataclass(frozen=True, slots=True)
class AlgorithmCandidate:
    """An algorithm and its time; None with the reason where it does not suit."""

    algorithm: str
    time_s: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CollectiveAnswer:
    """Time of a collective.

    Parameters
    ----------
    time_s : float
        Of the slowest group.
    bus_bandwidth_Bps : float
        As nccl-tests counts it.
    algorithm : str
    bottleneck : str
        What sets the time: a link group and who shares it, or the latency.
    level : str
        Name of the level that the bottleneck belongs to.
    candidates : tuple of AlgorithmCandidate
        All that were priced, fastest first, then those that do not suit.
    busiest : tuple of BusyLink
        Empty where there are too many flows to list.
    """

    time_s: float
    bus_bandwidth_Bps: float
    algorithm: str
    bottleneck: str
    level: str
    candidates: tuple[AlgorithmCandidate, ...]
    busiest: tuple[BusyLink, ...] = ()


def collective(
    network: Network,
    op: str,
    size_bytes: float,
    size: int,
    *,
    stride: int = 1,
    concurrent: Concurrent = "one",
    algorithm: str = "library",
    in_network: bool = False,
    chunks: int = 1,
    protocols: tuple[Protocol, ...] = IDEAL,
) -> CollectiveAnswer:
    """Time of a collective among ``size`` devices, ``stride`` apart.

    Parameters
    ----------
    op : str
        One of `OPS`.
    size_bytes : float
        Per-rank input, for all-gather the per-rank output.
    concurrent : {"one", "all"}
        The group that starts at device 0, or all groups that tile the fabric at once.
    algorithm : str
        A name, ``fastest``, ``hierarchical`` for the fastest of those that go level by level,
        or ``library`` for what communication libraries run, by which plans are priced
        (`nest_core.network.traffic`); where plans have no such message that is the fastest.
    in_network : bool
        Whether switches can reduce; lets ``fastest`` choose such algorithms.
    chunks : int
        Parts in which the buffer passes through a named algorithm's stages.
    protocols : tuple of Protocol
        What software adds; with ``library`` of one kind of call, see `Kind`.

    Raises
    ------
    InputError
        Where the fabric has no such groups, or a named algorithm does not suit them.
    """
    check_op(op)
    check_size(size_bytes)
    require(
        1 <= chunks <= MOST_CHUNKS,
        "chunks",
        f"must lie between 1 and {MOST_CHUNKS:,}",
        chunks,
        "use 1 for the whole buffer",
    )
    groups = member_groups(network.devices, size, stride=stride, concurrent=concurrent)
    if algorithm == "library" and op in KINDS:
        return _by_library(network, op, size_bytes, groups, protocols)
    names = _named(op, algorithm, in_network)

    @cache
    def stages_of(name: str) -> list[Stage]:
        return algorithm_stages(op, name, network, groups)

    candidates: list[AlgorithmCandidate] = []
    refusals: list[InputError] = []
    crossed = 0
    for name in names:
        try:
            stages = stages_of(name)
        except InputError as error:
            refusals.append(error)
            candidates.append(AlgorithmCandidate(name, None, str(error)))
            continue
        crossed += _crossed(network, stages)
        _refuse_crossings(crossed)  # the fastest of those that can be counted would be another
        seconds = _seconds(network, stages, len(groups), size_bytes, chunks, protocols)
        candidates.append(AlgorithmCandidate(name, seconds))
    timed = [entry for entry in candidates if entry.time_s is not None]
    if not timed:
        raise refusals[-1]
    timed.sort(key=lambda entry: entry.time_s or 0.0)
    skipped = [entry for entry in candidates if entry.time_s is None]
    run = stages_of(timed[0].algorithm)
    return _answer(
        network, op, size_bytes, groups, timed[0].time_s or 0.0, (*timed, *skipped), run, chunks
    )


def _by_library(
    network: Network,
    op: str,
    size_bytes: float,
    groups: IntArray,
    protocols: tuple[Protocol, ...],
) -> CollectiveAnswer:
    """Return what plans are priced by."""
    kind, parts = KINDS[op]
    names, (count, size) = algorithms(network, kind), groups.shape
    listed = kind != "all_to_all" or count * size * (size - 1) <= MOST_FLOWS
    if listed:
        listable = names if network.torus is not None else names[:1]
        stages = [algorithm_stages(op, name, network, groups) for name in listable]
        _refuse_crossings(sum(_crossed(network, of) for of in stages))
    ways = by_algorithm(network, kind, groups, protocols)
    time_s = parts * float(message_time(network, kind, groups, protocols).seconds(size_bytes).max())
    candidates = [
        AlgorithmCandidate(name, parts * float(way.seconds(size_bytes).max()))
        for name, way in ways.items()
    ]
    candidates.sort(key=lambda entry: entry.time_s or 0.0)
    best = candidates[0].algorithm
    run = algorithm_stages(op, best, network, groups) if listed else None
    return _answer(network, op, size_bytes, groups, time_s, tuple(candidates), run)


def _answer(
    network: Network,
    op: str,
    size_bytes: float,
    groups: IntArray,
    time_s: float,
    candidates: tuple[AlgorithmCandidate, ...],
    stages: list[Stage] | None,
    chunks: int = 1,
) -> CollectiveAnswer:
    """Return the answer of the first candidate; ``stages`` are its flows, None: too many."""
    count, size = groups.shape
    phrase, level = f"{count * size * (size - 1):,} flows at once", network.levels[-1].name
    busiest: tuple[BusyLink, ...] = ()
    if stages is not None:
        phrase, level = describe(network, stages, size_bytes / chunks)
        phases = itertools.chain.from_iterable(stages)
        loads = {op.replace("_", "-"): load_of(network.link_map, phases, size_bytes)}
        busiest = busiest_links(network, loads, time_s)
    bus = bus_factor(op, size) * size_bytes / time_s if time_s else 0.0
    best = candidates[0].algorithm
    return CollectiveAnswer(time_s, bus, best, phrase, level, candidates, busiest)


def _named(op: str, algorithm: str, in_network: bool) -> list[str]:
    """Return the algorithms that a name stands for."""
    algorithms = list(ALGORITHMS[op])
    if algorithm in ("fastest", "library"):
        return [name for name in algorithms if in_network or name not in IN_NETWORK]
    return (
        [name for name in algorithms if name.startswith("hierarchical")] or [algorithm]
        if algorithm == "hierarchical"
        else [algorithm]
    )


def member_groups(
    devices: int, size: int, *, stride: int = 1, concurrent: Concurrent = "one"
) -> IntArray:
    """Return groups {s, s + stride, ...}: the first, or all that tile the devices from 0 on.

    Returns
    -------
    int array (groups, size)

    Examples
    --------
    >>> member_groups(8, 2, stride=2, concurrent="all").tolist()
    [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    if not 2 <= size <= devices:
        require(devices != 1, "fabric", "must have two devices or more", 1, "name a larger fabric")
        raise InputError("size", f"must lie between 2 and {devices}", size, "choose a group size")
    require(stride >= 1, "stride", "must be at least 1", stride, "use 1 for neighbours")
    require(
        (size - 1) * stride < devices,
        "stride",
        f"must keep a group of {size} within the {devices} devices",
        stride,
        f"use at most {(devices - 1) // (size - 1)}",
    )
    first = np.arange(size) * stride
    if concurrent == "one":
        return first[None]
    tiles = devices // (size * stride)
    require(
        tiles != 0,
        "stride",
        f"must be such that {stride} groups of {size} fit into {devices} devices",
        stride,
        f"use at most {devices // size}, or one group",
    )
    starts = (np.arange(tiles)[:, None] * size * stride + np.arange(stride)).reshape(-1)
    return starts[:, None] + first


def _refuse_crossings(crossed: int) -> None:
    require(
        crossed <= MOST_CROSSED,
        "collective",
        f"must not cross more than about {MOST_CROSSED:,} links",
        crossed,
        "use smaller or fewer groups, or name one algorithm",
    )


def _crossed(network: Network, stages: list[Stage]) -> int:
    """About how many links all flows of an algorithm cross."""
    flows = [(phase.source, phase.target) for stage in stages for phase in stage]
    if network.torus is None:
        return len(network.levels) * sum(len(source) for source, _ in flows)
    hops = sum(int(network.link_map.level(*ends).sum()) + len(ends[0]) for ends in flows)
    return 2 * hops  # found one by one, which takes twice as long


def bus_factor(op: str, size: int) -> float:
    """Bus bandwidth over algorithm bandwidth (nccl-tests ``PERFORMANCE.md``)."""
    if op == "all_reduce":
        return 2 * (size - 1) / size
    return (size - 1) / size if op in ("all_gather", "reduce_scatter", "all_to_all") else 1.0


def _seconds(
    network: Network,
    stages: list[Stage],
    count: int,
    size_bytes: float,
    chunks: int,
    protocols: tuple[Protocol, ...],
) -> float:
    """Of the slowest group."""
    if chunks == 1:
        time = price_phases(
            network.link_map, [phase for stage in stages for phase in stage], count, protocols
        ).seconds(size_bytes)
        return float(np.maximum(time, first_arrival(network, stages, count, protocols)).max())
    ways = [
        _pipelined(network, stages, count, size_bytes, chunks, replace(entry, base_s=0.0))
        for entry in protocols
    ]
    return min(way + entry.base_s for way, entry in zip(ways, protocols, strict=True))


def first_arrival(
    network: Network, stages: list[Stage], count: int, protocols: tuple[Protocol, ...]
) -> FloatArray:
    """Seconds of every group before which none of its messages can have arrived.

    A message travels while others are sent, but not faster than its own latency.
    """
    total = np.zeros(count)
    for stage in stages:
        phases = [phase for phase in stage if phase.volume.any()]
        if any((phase.steps > 0).any() and (phase.steps < 1).any() for phase in phases):
            total += np.max([_travel(network, phase, count, protocols) for phase in phases], axis=0)
    return total


def _travel(
    network: Network, phase: Phase, count: int, protocols: tuple[Protocol, ...]
) -> FloatArray:
    alone = replace(phase, volume=0 * phase.volume, steps=np.ones(len(phase.source)))
    return price_phases(network.link_map, [alone], count, protocols).seconds(0.0)


def _pipelined(
    network: Network,
    stages: list[Stage],
    count: int,
    size_bytes: float,
    chunks: int,
    protocol: Protocol,
) -> float:
    """Chunks follow one another through the stages; seconds of the slowest group.

    A stage holds one chunk at a time and goes on as soon as the stage before has handed over; what
    it takes depends on the other stages that are busy meanwhile and share its links.
    """
    part = size_bytes / chunks
    alone = [price_phases(network.link_map, stage, count, (protocol,)) for stage in stages]
    sending = [float((time.beta_s_per_byte[0] * part).max()) for time in alone]
    waiting = [float(time.alpha_s[0].max()) for time in alone]

    @cache
    def taken(stage: int, other: int) -> float:
        """Part of a stage's slowest link that another takes while it sends alone."""
        flows = [
            replace(phase, owner=phase.owner + place * count)
            for place, number in enumerate((stage, other))
            for phase in stages[number]
        ]
        shared = price_phases(network.link_map, [merged(flows)], 2 * count, (protocol,))
        extra = shared.beta_s_per_byte[0, :count] - alone[stage].beta_s_per_byte[0]
        return float((extra * part).max()) / max(sending[other], 1e-300)

    @cache
    def pace(busy: tuple[int, ...]) -> FloatArray:
        times = []
        for stage in busy:
            others = [number for number in busy if number != stage]
            # While the others wait for latencies, this one has the links to itself.
            idle = math.prod(waiting[n] / max(sending[n] + waiting[n], 1e-300) for n in others)
            # Links are shared fairly: who meets another goes no slower than at half the rate.
            lost = [min(taken(stage, other), 0.5) for other in others]
            slower = 1.0 + (1.0 - idle) * sum(share / (1.0 - share) for share in lost)
            times.append(waiting[stage] + sending[stage] * slower)
        return np.array(times)

    now = 0.0
    done = [0] * len(stages)  # chunks that have left each stage
    remaining = np.ones(len(stages))  # share still to do of the chunk in each stage
    while done[-1] < chunks:
        ready = [chunks, *done[:-1]]
        busy = tuple(n for n in range(len(stages)) if done[n] < ready[n])
        speed = 1 / np.maximum(pace(busy), np.finfo(np.float64).tiny)
        passes = float((remaining[list(busy)] / speed).min())
        now += passes
        for place, n in enumerate(busy):
            remaining[n] -= passes * speed[place]
            if remaining[n] <= 1e-12:
                done[n] += 1
                remaining[n] = 1.0
    return now
