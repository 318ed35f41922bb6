"""Groups of a plan's devices, and the way in which each of their calls is run.

Units: seconds, bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from nest_core.costs import Plan, Problem, most_nodes, plan_links
from nest_core.network import FloatArray, IntArray, Phase
from nest_core.simulator.classes import Members
from nest_core.simulator.entries import Call
from nest_core.simulator.messages import CallGroups, Way, collective_ways, undisturbed_seconds, way
from nest_core.simulator.program import Program

__all__ = ["RoutedCalls", "traffic_of"]


@dataclass(frozen=True, slots=True, eq=False)
class RoutedCalls:
    """Who sends with whom, and how.

    Parameters
    ----------
    groups : CallGroups
        Of all axes.
    group_of : dict of str to int array (devices,)
        By axis the group that a device waits for; -1 where it has none.
    ways : tuple of Way
        All that some call takes.
    chosen : dict of (stage, Call, bytes of a message) to int
        Which of them.
    """

    groups: CallGroups
    group_of: dict[str, IntArray]
    ways: tuple[Way, ...]
    chosen: dict[tuple[int, Call, float], int]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Groups of an axis that have equally many members, of some stages.

    ``phase`` is of transfers: flows of one message, its owners numbered as ``ranks`` are.
    """

    axis: str
    stages: tuple[int, ...]
    ranks: IntArray
    stage: IntArray
    phase: Phase | None = None

    @property
    def members(self) -> tuple[IntArray, IntArray]:
        """Groups, from 0, and devices that belong to them."""
        count, size = self.ranks.shape
        group, device = np.repeat(np.arange(count), size), self.ranks.reshape(-1)
        if self.phase is not None:
            group = np.append(group, self.phase.owner)
            device = np.append(device, self.phase.source)
        return group, device

    def ways(self, problem: Problem, call: Call, first: int, draw: int) -> list[Way]:
        """Return what their library chooses from."""
        if call.kind != "transfer":
            return collective_ways(problem, call.kind, self.ranks, first, draw)
        network, phase = problem.network, cast(Phase, self.phase)
        outside = most_nodes(network, np.stack([phase.source, phase.target], axis=1)) > 1
        return [
            way(network.link_map, [phase], protocol, first, draw)
            for protocol in problem.software.transfers(outside, meshed=network.meshed_nodes)
        ]


def traffic_of(problem: Problem, plan: Plan, stages: Sequence[Program], draw: int) -> RoutedCalls:
    """Return the traffic of a plan's programs.

    Parameters
    ----------
    draw : int
        Of the fabric's hash, under static ECMP.
    """
    sizes: dict[tuple[int, Call], set[float]] = {}
    for s, program in enumerate(stages):
        for entry in program.rows:
            if entry.call is not None:
                sizes.setdefault((s, entry.call), set()).add(entry.message)
    axes = sorted({call.axis for _, call in sizes})
    parts = [part for axis in axes for part in _parts(problem, plan, axis)]
    first = np.cumsum([0, *(len(part.ranks) for part in parts)])
    members, none = [part.members for part in parts], np.zeros(0, np.int64)
    groups = CallGroups(
        Members(
            np.concatenate(
                [none, *(group + n for (group, _), n in zip(members, first, strict=False))]
            ),
            np.concatenate([none, *(device for _, device in members)]),
        ),
        np.concatenate(
            [none, *(axes.index(part.axis) * len(stages) + part.stage for part in parts)]
        ),
    )
    group_of = {axis: np.full(problem.network.devices, -1) for axis in axes}
    for part, n in zip(parts, first, strict=False):
        group_of[part.axis][part.ranks] = np.arange(n, n + len(part.ranks))[:, None]
    ways: list[Way] = []
    chosen: dict[tuple[int, Call, float], int] = {}
    for part, n in zip(parts, first.tolist(), strict=False):
        for call in sorted({call for _, call in sizes if call.axis == part.axis}):
            wanted = [(s, size) for s in part.stages for size in sizes.get((s, call), ())]
            if wanted:
                number = np.zeros(n + len(part.ranks), np.int64)
                number[n:] = part.stage
                options = part.ways(problem, call, n, draw)
                picks = _fastest(problem, groups, options, number, wanted)
                for (s, size), pick in zip(wanted, picks, strict=True):
                    chosen[s, call, size] = len(ways) + sorted(set(picks)).index(pick)
                ways += [options[pick] for pick in sorted(set(picks))]
    return RoutedCalls(groups, group_of, tuple(ways), chosen)


def _fastest(
    problem: Problem,
    groups: CallGroups,
    options: list[Way],
    stage: IntArray,
    wanted: list[tuple[int, float]],
) -> list[int]:
    """Return which way is fastest for messages of stages while nothing else is on the links."""
    if len(options) == 1:
        return [0] * len(wanted)
    link_map = problem.network.link_map
    times = [undisturbed_seconds(groups, option, link_map, stage) for option in options]
    return [
        int(np.argmin([first[s] + per_byte[s] * size for first, per_byte in times]))
        for s, size in wanted
    ]


def _parts(problem: Problem, plan: Plan, axis: str) -> Iterator[_Part]:
    points = [plan.stage_point(s) for s in range(plan.point.pp)]
    if axis in ("receive", "return"):
        yield _transfers(problem, plan, axis)
        return
    for point in dict.fromkeys(points):
        ranks, stage = plan_links(problem, plan, point).groups(axis, point.instances)
        stages = tuple(s for s, at in enumerate(points) if at == point)
        mine = np.isin(stage, stages)
        if mine.any() and ranks.shape[1] > 1:
            yield _Part(axis, stages, ranks[mine], stage[mine])


def _transfers(problem: Problem, plan: Plan, axis: str) -> _Part:
    """Return messages between stages: what each receiving device waits for."""
    points = [plan.stage_point(s) for s in range(plan.point.pp)]
    links = plan_links(problem, plan, points[0])
    hops = links.hops()
    source, target, receiver = hops.source, hops.target, hops.receiver
    if axis == "return":
        source, target, receiver = target, source, (receiver - 1) % len(points)
    ranks, first, owner = np.unique(target, return_index=True, return_inverse=True)
    copies = np.array([plan_links(problem, plan, point).hop_ranks for point in points])
    volume: FloatArray = hops.share * copies[receiver]
    phase = Phase(source, target, owner, volume, np.ones(len(owner)))
    return _Part(axis, tuple(range(len(points))), ranks[:, None], receiver[first], phase)
