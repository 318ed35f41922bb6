"""Calls of a plan as flows on links: who sends to whom, and by which algorithm.

A library runs a collective by the algorithm and the protocol that are fastest for its size while
nothing else is on the links; a `Way` is one of those. A protocol that reaches a part of a link's
bandwidth takes up the rest of it as well, so that protocols which meet on a link share it.

Units: seconds, bytes, bytes/s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nest_core.costs import Problem
from nest_core.costs.loads import algorithms_of
from nest_core.network import FloatArray, IntArray, Kind, LinkMap, Phase, Protocol
from nest_core.network.phases import columns_of
from nest_core.simulator.classes import Classes, Flows, Members, classes_of
from nest_core.simulator.engine import Calls, Tasks, run

__all__ = [
    "CallGroups",
    "Way",
    "call_classes",
    "collective_ways",
    "engine_calls",
    "first_of",
    "undisturbed_seconds",
    "way",
]


@dataclass(frozen=True, slots=True, eq=False)
class CallGroups:
    """Groups of devices that run calls together, of all classes of traffic.

    Parameters
    ----------
    members : Members
    label : int array (groups,)
        What tells groups apart: class of traffic and stage.
    """

    members: Members
    label: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """An algorithm under a protocol, in all groups of a class of traffic at once.

    Parameters
    ----------
    base_s : float
        That passes once per call.
    phase, turn, group : int array (flows,)
        Latencies of the turns of a phase add up; of flows in one turn the longest counts.
    wait_s, volume, most_Bps : float array (flows,)
        Latency before bytes flow; bytes per byte of the buffer; most that the flow has.
    flow, link : int array (crossings,)
    share, weight : float array (crossings,)
        Bytes on the link, and what they take of its bandwidth, per byte of the flow.
    """

    base_s: float
    phase: IntArray
    turn: IntArray
    group: IntArray
    wait_s: FloatArray
    volume: FloatArray
    most_Bps: FloatArray
    flow: IntArray
    link: IntArray
    share: FloatArray
    weight: FloatArray


def collective_ways(
    problem: Problem, kind: Kind, ranks: IntArray, first_group: int, draw: int
) -> list[Way]:
    """Return the ways that a library has for one kind of call.

    Parameters
    ----------
    ranks : int array (groups, members)
    first_group : int
        Number of their first group among all.
    draw : int
        Of the fabric's hash, under static ECMP.
    """
    link_map = problem.network.link_map
    return [
        way(link_map, phases, protocol, first_group, draw)
        for phases, protocols in algorithms_of(problem, kind, ranks)
        for protocol in protocols
    ]


def way(
    link_map: LinkMap, phases: Sequence[Phase], protocol: Protocol, first_group: int, draw: int
) -> Way:
    """Put phases on the links."""
    fields = columns_of((protocol,))[:, 0]
    inside, outside = fields[[5, 1]], fields[[6, 2]]  # steps, NaN: the algorithm's, and a step's
    columns, crossings, before = [], [], 0
    for number, phase in enumerate(phases):
        routes = link_map.routes(phase.source, phase.target, draw)
        reached = np.where(link_map.outside, protocol.outside, protocol.inside)[routes.link_group]
        one_link = link_map.link_Bps[routes.link_group] * reached / routes.share
        most = np.full(len(phase.source), np.inf)
        np.minimum.at(most, routes.flow, one_link)
        steps, step_s = np.where(routes.outside, outside[:, None], inside[:, None])
        times = np.where(np.isnan(steps) | (phase.steps == 0), phase.steps, steps)
        turn = np.zeros(len(most), np.int64) if phase.turn is None else phase.turn
        # What crosses no link is sent to itself.
        volume = np.where(np.isinf(most), 0.0, phase.volume)
        wait_s = times * (routes.latency_s + step_s)
        group = phase.owner + first_group
        columns.append((np.full(len(most), number), turn, group, wait_s, volume, most))
        crossing = routes.flow + before, routes.link_group, routes.share, routes.share / reached
        crossings.append(crossing)
        before += len(most)
    per_flow = map(np.concatenate, zip(*columns, strict=True))
    return Way(protocol.base_s, *per_flow, *map(np.concatenate, zip(*crossings, strict=True)))


def call_classes(
    groups: CallGroups,
    ways: Sequence[Way],
    device_label: npt.NDArray[np.generic],
    link_map: LinkMap,
    *,
    is_whole: bool = False,
) -> Classes:
    """Return classes of all that takes part in some ways, their flows one way after another.

    Parameters
    ----------
    device_label : (devices,)
        What tells devices apart: their stage, or how fast they are.
    """
    flow_labels = (
        _way_numbers(ways),
        *(_joined(ways, name) for name in ("phase", "turn", "wait_s", "volume", "most_Bps")),
    )
    flows = Flows(
        _joined(ways, "group"),
        _flow_numbers(ways),
        _joined(ways, "link"),
        np.asarray(_joined(ways, "weight"), np.float64),
    )
    labels = ((device_label,), (groups.label,), flow_labels, (link_map.capacity_Bps,))
    return classes_of(groups.members, flows, labels, is_whole=is_whole)


def _way_numbers(ways: Sequence[Way]) -> IntArray:
    """Return the way of every flow, one way after another."""
    return np.repeat(np.arange(len(ways)), [len(way.phase) for way in ways])


def _flow_numbers(ways: Sequence[Way]) -> IntArray:
    """Return the flow of every crossing, numbered so."""
    first = np.cumsum([0, *(len(way.phase) for way in ways)])
    parts = [way.flow + before for way, before in zip(ways, first, strict=False)]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _joined(ways: Sequence[Way], name: str) -> npt.NDArray[Any]:
    arrays = [getattr(way, name) for way in ways]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def engine_calls(
    groups: CallGroups, ways: Sequence[Way], classes: Classes
) -> tuple[Calls, IntArray]:
    """Return the calls of every way in every class of groups, and their numbers.

    Returns
    -------
    Calls
    int array (ways, group classes)
        Number of each call; -1 where a class runs no such.
    """
    of_way = _way_numbers(ways)
    group, phase, turn = (_joined(ways, name) for name in ("group", "phase", "turn"))
    group_class = classes.group[group]
    stands_in = first_of(classes.group)[group_class] == group
    number = np.full((len(ways), int(classes.group.max(initial=-1)) + 1), -1)
    number[of_way[stands_in], group_class[stands_in]] = 0
    number[number == 0] = np.arange(np.count_nonzero(number == 0))
    way_of, class_of = np.nonzero(number >= 0)
    phases = np.array([int(way.phase.max()) + 1 for way in ways], np.int64)
    first_phase = np.cumsum([0, *phases[way_of]])
    at = first_phase[number[of_way, group_class]] + phase
    waits = np.zeros((first_phase[-1], int(turn.max(initial=0)) + 1))
    np.maximum.at(waits, (at[stands_in], turn[stands_in]), _joined(ways, "wait_s")[stands_in])
    latency_s = waits.sum(axis=1)
    latency_s[first_phase[:-1]] += np.array([way.base_s for way in ways], np.float64)[way_of]
    # Flows phase by phase, one of each class; their crossings in the same order.
    example = first_of(classes.flow)
    order = np.argsort(at[example], kind="stable")
    place = np.argsort(order)
    link, weight, crossing = _crossings(ways, classes)
    by_flow = np.argsort(place[crossing], kind="stable")
    members = [
        np.unique(classes.device[groups.members.device[groups.members.group == first]])
        for first in first_of(classes.group)[class_of].tolist()
    ]
    calls = Calls(
        first_phase,
        latency_s,
        np.searchsorted(at[example][order], np.arange(first_phase[-1] + 1)),
        _joined(ways, "volume")[example][order],
        _joined(ways, "most_Bps")[example][order],
        np.searchsorted(place[crossing][by_flow], np.arange(len(order) + 1)),
        link[by_flow],
        weight[by_flow],
        np.cumsum([0, *map(len, members)]),
        np.concatenate([np.zeros(0, np.int64), *members]),
    )
    return calls, number


def _crossings(ways: Sequence[Way], classes: Classes) -> tuple[IntArray, FloatArray, IntArray]:
    """Return link classes, what all flows of a class put on one of their links, and that class."""
    flow, link = _flow_numbers(ways), _joined(ways, "link")
    stands_in = first_of(classes.link)[classes.link[link]] == link
    links = int(classes.link.max()) + 1
    key = classes.flow[flow[stands_in]] * links + classes.link[link[stands_in]]
    pairs, which = np.unique(key, return_inverse=True)
    weight = np.bincount(which, _joined(ways, "weight")[stands_in])
    return pairs % links, np.asarray(weight), pairs // links


def first_of(classes: IntArray) -> IntArray:
    """Return the first member of every class."""
    return np.unique(classes, return_index=True)[1]


def undisturbed_seconds(
    groups: CallGroups, entry: Way, link_map: LinkMap, stage: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return what one call in all groups at once takes: seconds, and seconds per byte, by stage.

    Parameters
    ----------
    stage : int array (groups,)
        Of all groups.
    """
    classes = call_classes(groups, [entry], np.zeros(1 + groups.members.device.max()), link_map)
    calls, number = engine_calls(groups, [entry], classes)
    count = number.max() + 1
    once, none = np.ones(count), np.zeros(count, np.int64)
    capacity_Bps = link_map.capacity_Bps[first_of(classes.link)]
    taken = []
    for size, times in ((0 * once, once), (once, 0 * once)):
        tasks = Tasks(
            once, np.arange(count), size, times, none, none > 0, none, np.append(none, 0), none[:0]
        )
        ends = run(tasks, calls, capacity_Bps, 0.0)[1]
        mine = np.unique(entry.group)
        by_stage = np.zeros(int(stage.max()) + 1)
        np.maximum.at(by_stage, stage[mine], ends[number[0, classes.group[mine]]])
        taken.append(by_stage)
    return taken[0], taken[1]
