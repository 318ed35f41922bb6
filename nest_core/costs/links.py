"""Who sends to whom under a point's layout, and what a message then takes.

Times of one point and class of traffic: a member for each stage position, the slowest group (or
link) of the position, all groups of the class at once. Nothing here knows of layers or bytes.

==============  ===============================================================================
tp              ranks that share a layer's width
cp              ranks that share a sequence
etp             neighbours that share an expert's width
ep              every ``etp``-th of the ranks of a stage: they share the experts
data            all ``dp * cp`` ranks, or those of one instance: gradients and states of dense
                weights
expert_data     every ``ep * etp``-th of the ranks of a stage, or those of one instance: gradients
                and states of experts
replicas        ranks of different instances that hold the same shard of dense weights
expert_replicas the same of experts
tied            first and last stage, which hold copies of the embedding (one member)
==============  ===============================================================================

Where ZeRO shards over part of the data-parallel ranks, the copies are *instances*: equal runs of
those ranks, in the order in which they are numbered.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple, Self
from weakref import ref

import numpy as np

from nest_core.costs.layout import rank_mapping
from nest_core.costs.plan import Point
from nest_core.costs.problem import Problem
from nest_core.costs.software import Software, most_nodes
from nest_core.documents.presets import kept_within
from nest_core.network import (
    Dispatch,
    FloatArray,
    IntArray,
    Kind,
    MessageTime,
    Network,
    collectives_by,
    dispatched,
    message_time,
    transfers,
)

__all__ = ["Hops", "PlanLinks", "axis_groups", "group_times", "hop_times", "links"]

_ENTRIES, _MOST_BYTES = 2**15, 2**26
_REPLICAS = {"replicas": "data", "expert_replicas": "expert_data"}


class Hops(NamedTuple):
    """Flows between stages: devices, the receiving stage, and what each sends of the message."""

    source: IntArray
    target: IntArray
    receiver: IntArray
    share: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PlanLinks:
    """Message times of a point; collectives are priced when they are first asked for.

    ``forward[s]`` prices the link from stage ``s - 1`` to ``s``, in either direction; at
    ``s = 0`` that from the last stage, which exists where micro-batches go around.
    ``producer_level[s]`` is the level at which the two meet; -1 where there is no link.
    """

    network: Network
    software: Software
    point: Point
    forward: MessageTime
    producer_level: IntArray
    dispatch: Dispatch | None = None
    _found: dict[tuple[str, Kind, int, int, int], MessageTime] = field(default_factory=dict)

    def time(self, axis: str, kind: Kind, instances: int = 1) -> MessageTime:
        """Return what one call of a kind takes in an axis' groups, by bytes; see `Calls`."""
        key = self._key(axis, kind, instances)
        if key not in self._found:
            for measured_kind, time in self._measured(axis, kind, instances).items():
                self.put(axis, measured_kind, instances, time)
        return self._found[key]

    def put(self, axis: str, kind: Kind, instances: int, time: MessageTime) -> None:
        """Take a time for what `time` answers."""
        self._found[self._key(axis, kind, instances)] = time

    def _key(self, axis: str, kind: Kind, instances: int) -> tuple[str, Kind, int, int, int]:
        ep, etp = self.point.ep, self.point.etp
        canonical = _REPLICAS.get(axis, axis)
        parts = {"ep": (ep, etp), "etp": (1, etp), "expert_data": (ep * etp, 1)}.get(
            canonical, (1, 1)
        )
        return axis, kind, instances, *parts

    def of(self, point: Point) -> Self:
        """Those of a point whose ranks sit alike; what was priced for either is known to both."""
        return replace(self, point=point)

    def sharing(self, others: Self) -> Self:
        """Other transfers among the same ranks, with what was priced for these."""
        return replace(others, _found=self._found)

    def groups(self, axis: str, instances: int = 1) -> tuple[IntArray, IntArray]:
        """Devices of all groups of an axis (groups, members), and the stage of each."""
        devices = rank_mapping(self.network, self.point.layout, self.point.device_order)
        return axis_groups(devices, self.point, axis, instances)

    def hops(self) -> Hops:
        """Return what goes from stage to stage, from producers to consumers."""
        return placed_hops(self.network, self.point)

    @property
    def hop_ranks(self) -> int:
        """Ranks whose messages ``forward`` prices together."""
        return 1

    @property
    def tied_share(self) -> float:
        """What ends of a tied copy exchange, of what a rank holds of it."""
        return 1.0

    def _measured(self, axis: str, kind: Kind, instances: int) -> dict[Kind, MessageTime]:
        groups, stage = self.groups(axis, instances)
        return group_times(self.network, self.software, kind, groups, stage, self.dispatch)


def _content(network: Network, *rest: object) -> Hashable:
    """Return what times depend on: a fabric, which this does not keep, and who sends to whom."""
    parts: list[object] = [ref(network)]
    for entry in rest:
        if isinstance(entry, np.ndarray):
            parts += [entry.shape, blake2b(entry.tobytes(), digest_size=16).digest()]
        else:
            parts.append(entry)
    return tuple(parts)


def _times_bytes(times: dict[Kind, MessageTime]) -> int:
    return sum(2 * time.alpha_s.nbytes for time in times.values())


def _hops_bytes(hops: tuple[MessageTime, IntArray]) -> int:
    return 2 * hops[0].alpha_s.nbytes + hops[1].nbytes


@kept_within(_ENTRIES, _MOST_BYTES, _times_bytes, _content)
def group_times(
    network: Network,
    software: Software,
    kind: Kind,
    groups: IntArray,
    team: IntArray,
    dispatch: Dispatch | None = None,
) -> dict[Kind, MessageTime]:
    """One call of a kind in all groups at once, by team; also of kinds that are counted with it.

    Parameters
    ----------
    groups : (groups, members)
    team : (groups,)
        Groups that wait for one another: a member of the time for each.
    dispatch : Dispatch, optional
        How all-to-alls of experts go; None: to every rank on its own.
    """
    if groups.shape[1] == 1:
        return {kind: MessageTime.nothing(int(team.max()) + 1)}
    if kind == "all_to_all" and dispatch is not None:
        sending = software.of_groups(network, kind, groups)
        return {kind: dispatched(network, groups, dispatch, sending, team)}
    if kind in ("ring", "all_to_all"):
        sending = software.of_groups(network, kind, groups)
        return {kind: message_time(network, kind, groups, sending, team)}
    both: tuple[Kind, ...] = ("all_reduce", "reduce_scatter")
    nodes, meshed = most_nodes(network, groups), network.meshed_nodes
    libraries = [
        software.collectives(phases, groups.shape[1], nodes, meshed=meshed) for phases in both
    ]
    return dict(zip(both, collectives_by(network, groups, libraries, team), strict=True))


def links(problem: Problem, point: Point) -> PlanLinks:
    """Place a point's ranks, and count who shares which link between its stages."""
    network, software, dispatch = problem.network, problem.software, problem.dispatch
    if point.pp == 1:
        none = MessageTime.nothing(1)
        return PlanLinks(network, software, point, none, np.full(1, -1, dtype=np.int64), dispatch)
    hops = hop_times(problem, placed_hops(network, point))
    return PlanLinks(network, software, point, *hops, dispatch)


def hop_times(problem: Problem, hops: Hops) -> tuple[MessageTime, IntArray]:
    """``forward`` and ``producer_level`` of `PlanLinks`."""
    return _hop_times(problem.network, problem.software, *hops)


@kept_within(_ENTRIES, _MOST_BYTES, _hops_bytes, _content)
def _hop_times(
    network: Network,
    software: Software,
    source: IntArray,
    target: IntArray,
    receiver: IntArray,
    share: FloatArray,
) -> tuple[MessageTime, IntArray]:
    outside = most_nodes(network, np.stack([source, target], axis=1)) > 1
    sending = software.transfers(outside, meshed=network.meshed_nodes)
    forward = transfers(network, source, target, sending, receiver, share)
    producer = np.full(int(receiver.max()) + 1, -1, dtype=np.int64)
    np.maximum.at(producer, receiver, network.level(source, target))
    return forward, producer


def placed_hops(network: Network, point: Point) -> Hops:
    """Return what goes from stage to stage where all have one width."""
    pp = point.pp
    devices = rank_mapping(network, point.layout, point.device_order)
    last = pp if point.around else pp - 1  # whether the last stage feeds the first
    source = devices[:last].reshape(-1)
    target = np.roll(devices, -1, axis=0)[:last].reshape(-1)
    receiver = np.repeat(np.arange(1, last + 1) % pp, devices[0].size)
    return Hops(source, target, receiver, np.ones(len(source)))


def axis_groups(
    devices: IntArray, point: Point, axis: str, instances: int = 1
) -> tuple[IntArray, IntArray]:
    """Return groups (groups, members) of an axis, and the stage that each belongs to.

    Parameters
    ----------
    devices : (pp, dp * cp, tp)
    axis : str
        Of the table above.
    instances : int
        Into how many the ranks that share weights are divided.
    """
    pp, sharers, tp = devices.shape
    if axis == "tp":
        groups = devices.reshape(-1, tp)
    elif axis == "cp":
        by_sequence = devices.reshape(pp, point.dp, point.cp, tp)
        groups = by_sequence.transpose(0, 1, 3, 2).reshape(-1, point.cp)
    elif axis == "data":
        groups = devices[:, point.layout.nearest].transpose(0, 2, 1).reshape(-1, sharers)
    elif axis == "tied":
        groups = np.stack([devices[0].reshape(-1), devices[-1].reshape(-1)], axis=1)
        return groups, np.zeros(len(groups), dtype=np.int64)
    elif axis in _REPLICAS:
        groups, _ = axis_groups(devices, point, _REPLICAS[axis])
        groups = groups.reshape(len(groups), instances, -1).swapaxes(1, 2).reshape(-1, instances)
    else:
        near = devices[:, point.layout.nearest].reshape(pp, -1, point.ep, point.etp)
        places = {"etp": (0, 1, 2, 3), "ep": (0, 1, 3, 2), "expert_data": (0, 2, 3, 1)}[axis]
        groups = near.transpose(places).reshape(-1, near.shape[places[-1]])
    if axis in _REPLICAS.values():
        groups = groups.reshape(len(groups) * instances, -1)
    return groups, np.repeat(np.arange(pp), len(groups) // pp)
