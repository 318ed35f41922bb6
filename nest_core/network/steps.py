"""A collective step by step: who sends what to whom, over which links, and the time so far.

The steps are those of the phases that `nest_core.network.collective.collective` prices, and take
the same seconds, so the last one ends at the price. A phase whose messages repeat (a ring's
``n - 1``) is as many equal steps; one that streams small chunks (a tree) is as many equal parts of
the stream as its first chunk makes hops. Where a stage waits for latencies apart from its bytes,
the wait is spread over its steps. Of groups that run at once, the slowest sets the time.

Units: bytes, seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nest_core.documents.errors import require
from nest_core.network.algorithms import Stage, algorithm_stages
from nest_core.network.collective import Concurrent, first_arrival, member_groups
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, IntArray, LinkMap
from nest_core.network.phases import IDEAL, Phase, check_size, price_phases

__all__ = ["MOST_STEPS", "CollectiveStep", "Steps", "steps"]

MOST_STEPS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveStep:
    """What one step sends, and what has been sent when it is over.

    Parameters
    ----------
    number : int
        From 1.
    stage : int
        Of the algorithm, from 0: the levels of a hierarchical one.
    source, target : int array (flows,)
        Devices.
    flow_bytes : float array (flows,)
        What each flow sends in this step.
    sent_bytes : float array (link groups,)
        What each link group has carried; under static ECMP the mean over hash draws.
    busy_s : float array (levels,)
        Seconds in which the busiest links that belong to each level send in this step.
    taken_s, seconds : float
        Of this step, and since the start.
    """

    number: int
    stage: int
    source: IntArray
    target: IntArray
    flow_bytes: FloatArray
    sent_bytes: FloatArray
    busy_s: FloatArray
    taken_s: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A collective from its start to its end.

    Parameters
    ----------
    network : Network
    op, algorithm : str
    size_bytes : float
        Per-rank input, for all-gather the per-rank output.
    groups : int array (groups, members)
    states : tuple of CollectiveStep
        After each step.
    """

    network: Network
    op: str
    algorithm: str
    size_bytes: float
    groups: IntArray
    states: tuple[CollectiveStep, ...]

    @property
    def seconds(self) -> float:
        """What the collective takes."""
        return self.states[-1].seconds

    def busy(self, count: int) -> FloatArray:
        """Share of the first so many steps in which the links of each level sent, (levels,)."""
        done = self.states[:count]
        return np.asarray(
            np.sum([step.busy_s for step in done], axis=0)
            / max(done[-1].seconds, np.finfo(np.float64).tiny)
        )


def steps(
    network: Network,
    op: str,
    algorithm: str,
    size_bytes: float,
    size: int,
    *,
    stride: int = 1,
    concurrent: Concurrent = "one",
) -> Steps:
    """Take a collective of a named algorithm apart; parameters as `collective` has them.

    Raises
    ------
    InputError
        Where the algorithm does not suit fabric or groups, or has more than `MOST_STEPS` steps.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> network = collapse(Hierarchical("one", (Tier("node", 8, 100e9, 1e-6),)))
    >>> ring = steps(network, "all_reduce", "ring", 800e6, 8)
    >>> len(ring.states), ring.states[0].taken_s, ring.seconds
    (14, 0.001001, 0.014014)
    """
    check_size(size_bytes)
    groups = member_groups(network.devices, size, stride=stride, concurrent=concurrent)
    stages = algorithm_stages(op, algorithm, network, groups)
    number = sum(_repeats(phase) for stage in stages for phase in stage)
    require(
        number <= MOST_STEPS,
        "algorithm",
        f"must not have more than {MOST_STEPS:,} steps",
        number,
        "use another algorithm, or smaller groups",
    )
    numbered = tuple(_numbered(network.link_map, _timed(network, stages, len(groups), size_bytes)))
    return Steps(network, op, algorithm, size_bytes, groups, numbered)


def _repeats(phase: Phase) -> int:
    """Return steps of a phase; none where it only waits."""
    return max(1, int(np.ceil(phase.steps.max(initial=0)))) if phase.volume.any() else 0


def _timed(
    network: Network, stages: list[Stage], count: int, size_bytes: float
) -> list[tuple[int, Phase, FloatArray, float]]:
    """Stage, phase, bytes of its flows in a step, and a step's seconds; one entry per step."""
    seconds = [
        [price_phases(network.link_map, [phase], count).seconds(size_bytes) for phase in stage]
        for stage in stages
    ]
    total = np.sum([stage_s for stage in seconds for stage_s in stage], axis=0)
    least = first_arrival(network, stages, count, IDEAL)
    slowest = int(np.maximum(total, least).argmax())
    # No message arrives before its own latency: what that adds falls into the last step.
    late = max(0.0, float(least[slowest] - total[slowest]))
    timed: list[tuple[int, Phase, FloatArray, float]] = []
    for number, (stage, times) in enumerate(zip(stages, seconds, strict=True)):
        repeats = [_repeats(phase) for phase in stage]
        waits = sum(float(t[slowest]) for t, n in zip(times, repeats, strict=True) if n == 0)
        for phase, time, n in zip(stage, times, repeats, strict=True):
            if n > 0:
                step_s = float(time[slowest]) / n + waits / sum(repeats)
                timed += [(number, phase, phase.volume * size_bytes / n, step_s)] * n
    if late:
        stage_number, phase, flow_bytes, step_s = timed[-1]
        timed[-1] = stage_number, phase, flow_bytes, step_s + late
    return timed


def _numbered(
    link_map: LinkMap, timed: list[tuple[int, Phase, FloatArray, float]]
) -> Iterator[CollectiveStep]:
    sent, now = np.zeros(len(link_map.capacity_Bps)), 0.0
    cached: dict[int, tuple[FloatArray, FloatArray]] = {}
    for number, (stage, phase, flow_bytes, taken) in enumerate(timed, 1):
        if id(phase) not in cached:
            cached[id(phase)] = _loads(link_map, phase, flow_bytes)
        loads, busy = cached[id(phase)]
        sent, now = sent + loads, now + taken
        yield CollectiveStep(
            number,
            stage,
            phase.source,
            phase.target,
            flow_bytes,
            sent,
            busy,
            taken,
            now,
        )


def _loads(
    link_map: LinkMap, phase: Phase, flow_bytes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bytes of every link group, and seconds of the busiest links by level."""
    loads = np.zeros(len(link_map.capacity_Bps))
    busy = np.zeros(int(link_map.tier.max()) + 1)
    for variant in range(link_map.variants):
        routes = link_map.routes(phase.source, phase.target, variant)
        crossing = flow_bytes[routes.flow] * routes.share
        here = np.bincount(routes.link_group, crossing, len(loads))
        took = np.divide(here, link_map.capacity_Bps, out=np.zeros_like(here), where=here > 0)
        np.maximum.at(took, routes.link_group, crossing / link_map.link_Bps[routes.link_group])
        level = np.zeros_like(busy)
        np.maximum.at(level, link_map.tier, took)
        loads += here / link_map.variants
        busy += level / link_map.variants
    return loads, busy
