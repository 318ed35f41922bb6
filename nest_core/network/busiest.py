"""The busiest links of a plan or of a pattern: what they are called, how busy, and with what.

A link's utilisation is its bytes over its capacity, as a part of the time that the traffic takes.
What a link is follows from routing: where flows spread, all parallel links of one direction
together; where each has one path, a cable. Links of a tier that are as busy as one another, to
0.1 % of the busiest, are stated once.

What a collective waits for, in words: a link group and who shares it, or the latency.

Names of link groups: where they lead, in words.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest_core.documents.units import plural
from nest_core.network.dragonfly import DragonflyLinkMap
from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, IntArray, LinkMap
from nest_core.network.phases import Phase
from nest_core.network.torus import TorusLinkMap
from nest_core.network.tree import TreeLinkMap

__all__ = [
    "AS_BUSY",
    "BusyLink",
    "busiest_links",
    "busy_link",
    "describe",
    "link_group_name",
    "load_of",
]


def link_group_name(network: Network, link_group: int) -> str:
    """Where a link group leads, in words; devices and switches count from 0."""
    link_map = network.link_map
    if isinstance(link_map, TreeLinkMap):
        return _of_tree(network, link_map, link_group)
    if isinstance(link_map, TorusLinkMap):
        return _of_torus(link_map, link_group)
    if isinstance(link_map, DragonflyLinkMap):
        return link_map.name(link_group)
    if isinstance(link_map, GraphLinkMap):
        return _of_graph(link_map, link_group)
    return f"link {link_group:,}"


def _of_tree(network: Network, link_map: TreeLinkMap, link_group: int) -> str:
    inside = link_map.scale_up
    sizes = [0 if inside is None else len(inside.capacity_Bps)]
    sizes += [2 * tier.group_links * len(tier.capacity_Bps) for tier in link_map.tiers]
    starts = np.cumsum([0, *sizes])
    part = int(np.searchsorted(starts, link_group, side="right")) - 1
    at = link_group - int(starts[part])
    if inside is not None and part == 0:
        return f"a link inside node {at // inside.links_per_node:,}"
    tier = link_map.tiers[part - 1]
    number, down = divmod(at, 2)
    child, one_link = divmod(number, tier.group_links)
    above, below = network.levels[part - 1].name, _devices(np.flatnonzero(tier.child == child))
    link = f", link {one_link + 1:,} of {tier.group_links:,}" if tier.group_links > 1 else ""
    return f"{above} down to {below}{link}" if down else f"{below} up to {above}{link}"


def _devices(members: IntArray) -> str:
    if len(members) == 1:
        return f"device {members[0]:,}"
    if len(members) and members[-1] - members[0] == len(members) - 1:
        return f"devices {members[0]:,} to {members[-1]:,}"
    first = f" from {members[0]:,} on" if len(members) else ""
    return f"{len(members):,} devices{first}"


def _of_torus(link_map: TorusLinkMap, link_group: int) -> str:
    link, downwards = divmod(link_group, 2)
    place, axis = divmod(link, len(link_map.shape.shape))
    devices = np.flatnonzero(link_map.place == place)
    who = f"device {devices[0]:,}" if len(devices) else f"router {place:,}"
    return f"{who}, dimension {axis + 1}, {'down' if downwards else 'up'}wards"


def _of_graph(link_map: GraphLinkMap, link_group: int) -> str:
    arc, cable = link_map.cable(link_group)
    links = link_map.links
    ends = (links.elements[int(links.tail[arc])], links.elements[int(links.head[arc])])
    name = " to ".join(_element(end) for end in ends)
    return name if cable is None else f"{name}, cable {cable + 1:,} of {links.count[arc]:,}"


def _element(name: object) -> str:
    if isinstance(name, int):
        return f"device {name:,}"
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


MOST_LINKS = 8
AS_BUSY = 1e-3
"""Part of the busiest link's utilisation that links differ by which are as busy."""


@dataclass(frozen=True, slots=True)
class BusyLink:
    """A link, and those of its tier that are as busy.

    Parameters
    ----------
    link : str
    utilisation : float
        Part of the time that it is busy at its full rate.
    users : mapping of str to float
        By class of traffic, largest first; they add up to the utilisation.
    alike : int
        How many links of the tier are as busy, itself among them.
    load_bytes, capacity_Bps : float
    link_group : int
    """

    link: str
    utilisation: float
    users: Mapping[str, float]
    alike: int
    load_bytes: float
    capacity_Bps: float
    link_group: int

    @property
    def in_words(self) -> str:
        """Its name, and how many others are as busy."""
        others = f" and {plural(self.alike - 1, 'link')} like it" if self.alike > 1 else ""
        return f"{self.link}{others}"

    def to_json(self) -> dict[str, Any]:
        """Return an entry of ``busiest_links``."""
        return {
            "link": self.link,
            "utilisation": self.utilisation,
            "users": dict(self.users),
            "alike": self.alike,
            "load_bytes": self.load_bytes,
            "capacity_Bps": self.capacity_Bps,
        }


def load_of(
    link_map: LinkMap, phases: Iterable[Phase], buffer_bytes: float | FloatArray
) -> FloatArray:
    """Bytes on every link group, under one draw of the hash; shape (link groups,).

    ``buffer_bytes`` is that of all flows, or of each.
    """
    load = np.zeros(len(link_map.capacity_Bps))
    for phase in phases:
        sent = phase.volume * buffer_bytes
        live = np.flatnonzero(sent > 0)
        routes = link_map.routes(phase.source[live], phase.target[live])
        load += np.bincount(routes.link_group, routes.share * sent[live][routes.flow], len(load))
    return load


def busiest_links(
    network: Network, loads: Mapping[str, FloatArray], seconds: float, most: int = MOST_LINKS
) -> tuple[BusyLink, ...]:
    """Return the busiest links, the busiest first.

    Parameters
    ----------
    network : Network
    loads : mapping of str to float array (link groups,)
        Bytes by class of traffic.
    seconds : float
        That the traffic takes.
    most : int
        How many at most.
    """
    capacity = network.link_map.capacity_Bps
    total = np.sum([np.zeros(len(capacity)), *loads.values()], axis=0)
    carries = np.flatnonzero((total > 0) & (capacity > 0))
    if not len(carries) or seconds <= 0:
        return ()
    busy = total[carries] / capacity[carries] / seconds
    order = np.argsort(-np.round(busy / busy.max(), 9), kind="stable")  # sums are exact to so much
    carries, busy = carries[order], busy[order]
    steps = np.round(busy / busy.max() / AS_BUSY)
    _, first, alike = np.unique(
        np.stack([-steps, network.link_map.tier[carries]]),
        axis=1,
        return_index=True,
        return_counts=True,
    )
    return tuple(
        busy_link(network, loads, seconds, int(carries[at]), count)
        for at, count in zip(first[:most].tolist(), alike[:most].tolist(), strict=True)
    )


def busy_link(
    network: Network,
    loads: Mapping[str, FloatArray],
    seconds: float,
    link_group: int,
    alike: int = 1,
) -> BusyLink:
    """Return one link of a network, with its users."""
    capacity = float(network.link_map.capacity_Bps[link_group])
    sent = {name: float(load[link_group]) for name, load in loads.items() if load[link_group] > 0}
    users = {name: size / (capacity * seconds) for name, size in sent.items()}
    return BusyLink(
        link_group_name(network, link_group),
        sum(users.values()),
        dict(sorted(users.items(), key=lambda user: -user[1])),
        alike,
        sum(sent.values()),
        capacity,
        link_group,
    )


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
