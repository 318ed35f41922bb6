"""The busiest links of a plan or of a pattern: what they are called, how busy, and with what.

A link's utilisation is its bytes over its capacity, as a part of the time that the traffic takes.
What a link is follows from routing: where flows spread, all parallel links of one direction
together; where each has one path, a cable. Links of a tier that are as busy as one another, to
0.1 % of the busiest, are stated once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest_core.documents.units import plural
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, LinkMap
from nest_core.network.link_names import link_group_name
from nest_core.network.phases import Phase

__all__ = ["AS_BUSY", "BusyLink", "busiest_links", "busy_link", "load_of"]

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
    """

    link: str
    utilisation: float
    users: Mapping[str, float]
    alike: int
    load_bytes: float
    capacity_Bps: float

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
    network: Network, loads: Mapping[str, FloatArray], seconds: float
) -> tuple[BusyLink, ...]:
    """Return the busiest links, at most eight, the busiest first.

    Parameters
    ----------
    network : Network
    loads : mapping of str to float array (link groups,)
        Bytes by class of traffic.
    seconds : float
        That the traffic takes.
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
        for at, count in zip(first[:MOST_LINKS].tolist(), alike[:MOST_LINKS].tolist(), strict=True)
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
    )
