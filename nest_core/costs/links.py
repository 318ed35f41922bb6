"""Who sends to whom under a point's layout, and what a message then takes.

Times of one point and class of traffic: a member for each stage position, the slowest group (or
link) of the position, all groups of the class at once. Nothing here knows of layers or bytes.

==============  ===============================================================================
tp              ranks that share a layer's width
cp              ranks that share a sequence
etp             neighbours that share an expert's width
ep              every ``etp``-th of the ranks of a stage: they share the experts
data            all ``dp * cp`` ranks: gradients and states of dense weights
expert_data     every ``ep * etp``-th of the ranks of a stage: gradients and states of experts
tied            first and last stage, which hold copies of the embedding (one member)
==============  ===============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nest_core.costs.plan import Point
from nest_core.costs.problem import Problem
from nest_core.costs.software import Software, most_nodes
from nest_core.layout import rank_mapping
from nest_core.network import IntArray, Kind, MessageTime, Network, message_time, transfers
from nest_core.network.traffic import collectives_by

__all__ = ["Links", "axis_groups", "group_times", "links"]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Message times of a point; collectives are priced when they are first asked for.

    ``forward[s]`` prices the link from stage ``s - 1`` to ``s``, in either direction; at
    ``s = 0`` that from the last stage, which exists under the interleaved schedule only.
    ``producer_level[s]`` is the level at which the two meet; -1 where there is no link.
    """

    network: Network
    software: Software
    point: Point
    forward: MessageTime
    producer_level: IntArray
    _found: dict[tuple[str, Kind], MessageTime] = field(default_factory=dict)

    def time(self, axis: str, kind: Kind) -> MessageTime:
        """What one call of a kind takes in an axis' groups, by bytes; see `Calls`."""
        key = axis, kind
        if key not in self._found:
            self._found.update(self._measured(axis, kind))
        return self._found[key]

    def _measured(self, axis: str, kind: Kind) -> dict[tuple[str, Kind], MessageTime]:
        devices = rank_mapping(self.network, self.point.layout, self.point.device_order)
        groups, stage = axis_groups(devices, self.point, axis)
        found = group_times(self.network, self.software, kind, groups, stage)
        return {(axis, each): time for each, time in found.items()}


def group_times(
    network: Network, software: Software, kind: Kind, groups: IntArray, team: IntArray
) -> dict[Kind, MessageTime]:
    """One call of a kind in all groups at once, by team; also of kinds that are counted with it.

    Parameters
    ----------
    groups : (groups, members)
    team : (groups,)
        Groups that wait for one another: a member of the time for each.
    """
    if groups.shape[1] == 1:
        return {kind: MessageTime.nothing(int(team.max()) + 1)}
    if kind in ("ring", "all_to_all"):
        sending = software.of_groups(network, kind, groups)
        return {kind: message_time(network, kind, groups, sending, team)}
    both: tuple[Kind, ...] = ("all_reduce", "reduce_scatter")
    libraries = [software.of_groups(network, each, groups) for each in both]
    found = collectives_by(network, groups, libraries, team)
    return dict(zip(both, found, strict=True))


def links(problem: Problem, point: Point) -> Links:
    """Place a point's ranks, and count who shares which link between its stages."""
    network, software = problem.network, problem.software
    pp = point.pp
    producer = np.full(pp, -1, dtype=np.int64)
    if pp == 1:
        return Links(network, software, point, MessageTime.nothing(1), producer)
    devices = rank_mapping(network, point.layout, point.device_order)
    last = pp if point.interleave > 1 else pp - 1  # whether the last stage feeds the first
    source = devices[:last].reshape(-1)
    target = np.roll(devices, -1, axis=0)[:last].reshape(-1)
    receiver = np.repeat(np.arange(1, last + 1) % pp, devices[0].size)
    outside = most_nodes(network, np.stack([source, target], axis=1)) > 1
    sending = software.transfers(outside, meshed=network.meshed_nodes)
    forward = transfers(network, source, target, sending, receiver)
    np.maximum.at(producer, receiver, network.level(source, target))
    return Links(network, software, point, forward, producer)


def axis_groups(devices: IntArray, point: Point, axis: str) -> tuple[IntArray, IntArray]:
    """Groups (groups, members) of an axis, and the stage that each belongs to.

    ``devices`` has shape (pp, dp * cp, tp).
    """
    pp, sharers, tp = devices.shape
    if axis == "tp":
        groups = devices.reshape(-1, tp)
    elif axis == "cp":
        by_sequence = devices.reshape(pp, point.dp, point.cp, tp)
        groups = by_sequence.transpose(0, 1, 3, 2).reshape(-1, point.cp)
    elif axis == "data":
        near = devices[:, point.layout.nearest]
        groups = near.transpose(0, 2, 1).reshape(-1, sharers)
    elif axis == "tied":
        groups = np.stack([devices[0].reshape(-1), devices[-1].reshape(-1)], axis=1)
        return groups, np.zeros(len(groups), dtype=np.int64)
    else:
        near = devices[:, point.layout.nearest].reshape(pp, -1, point.ep, point.etp)
        places = {"etp": (0, 1, 2, 3), "ep": (0, 1, 3, 2), "expert_data": (0, 2, 3, 1)}[axis]
        groups = near.transpose(places).reshape(-1, near.shape[places[-1]])
    return groups, np.repeat(np.arange(pp), len(groups) // pp)
