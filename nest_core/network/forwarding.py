"""Link map of InfiniBand subnets: flows follow the forwarding tables of the switches, port by port.

Inside nodes flows spread as under adaptive routing. A flow that leaves its node takes the NICs that
its device hangs on, divides evenly over the ports of the end that has more of them, the first with
the first, and goes where the tables send the first address of the receiver's port. Every cable is a
link group of its own in each direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nest_core.documents.compiled import compiled
from nest_core.documents.errors import InputError, require
from nest_core.fabric.subnet import NO_PORT, SubnetSwitch
from nest_core.network.graph import GraphLinkMap
from nest_core.network.link_graph import DEVICE, NIC, Links
from nest_core.network.link_map import (
    BoolArray,
    FloatArray,
    IntArray,
    Routes,
    joined,
    rank_within,
    runs,
)

__all__ = ["Forwarding", "Subnet", "TabledLinkMap"]

Int32Array = npt.NDArray[np.int32]
NOWHERE, ROUND, ELSEWHERE = -1, -2, -3
"""In place of the hops of a route: it ends at a switch, loops, or ends at another port."""


@dataclass(frozen=True, slots=True, eq=False)
class Subnet:
    """Switches of a link graph, and the cables on their ports.

    Parameters
    ----------
    element : int array (switches,)
        Of the graph.
    guid : tuple of int
    switch, port, end, lid : int array (cables,)
        Number of the switch, its port, the element at the other end (−1: not of the graph), and
        the address of that end, 0 for a switch; sorted by switch, then port.
    """

    element: IntArray
    guid: tuple[int, ...]
    switch: IntArray
    port: IntArray
    end: IntArray
    lid: IntArray

    @property
    def peer(self) -> IntArray:
        """Number of the switch at the other end of every cable, −1 for anything else, (cables,)."""
        number = np.full(int(max(self.element.max(), self.end.max(), 0)) + 1, -1)
        number[self.element] = np.arange(len(self.element))
        return np.where(self.end >= 0, number[self.end], -1)

    def nic_cables(self, links: Links) -> IntArray:
        """Return the cables that end at NICs: the ports that flows go to."""
        return np.flatnonzero((self.end >= 0) & (links.role[self.end] == NIC))


@dataclass(frozen=True, slots=True, eq=False)
class Forwarding:
    """Tables that have been followed from every switch to every port of a NIC.

    Parameters
    ----------
    group : int array (switches, ports of NICs)
        Link group that leads on; −1 where none does.
    ahead : int array (link groups + 1,)
        Switch that a link group leads to; −1 for what is none.
    latency_s : float array (link groups,)
    hops : int
        Link groups from a switch to a NIC, at most.
    first : int array (devices + 1,)
        Where the ways out of every device begin in what follows.
    outward, upward, inward, entry, column : int array (ways,)
        Link groups from device to NIC, from there to a switch, and back to the device; the number
        of that switch, and of the NIC's port.
    hub : int array (devices,)
        The switch inside the node where one joins all of its devices, else −1.
    rising, falling : int array (devices,)
        Link groups to it and back.
    """

    group: Int32Array
    ahead: IntArray
    latency_s: FloatArray
    hops: int
    first: IntArray
    outward: IntArray
    upward: IntArray
    inward: IntArray
    entry: IntArray
    column: IntArray
    hub: IntArray
    rising: IntArray
    falling: IntArray


# Without slots, as the class it extends.
@dataclass(frozen=True, eq=False)
class TabledLinkMap(GraphLinkMap):
    """Cables as link groups of their own; flows between nodes follow tables.

    Parameters
    ----------
    forwarding : Forwarding
    """

    forwarding: Forwarding | None = None

    @cached_property
    def port_Bps(self) -> float:
        """All links of a device inside its node, or all out of it: a flow divides over NICs."""
        return self._ports_Bps(by_side=True)

    def _copies(self, outside: BoolArray) -> IntArray:
        """Return the cables of every arc between NICs and switches, else one."""
        links = self.links
        cable = outside & (links.role[links.tail] != DEVICE) & (links.role[links.head] != DEVICE)
        return np.where(cable, links.count, 1)

    def routes(self, source: IntArray, target: IntArray, variant: int = 0) -> Routes:
        """Return what the tables say between nodes, and shortest paths inside them."""
        outside = self.node[source] != self.node[target]
        if self._has_hubs:
            crossed, latency = self._by_tables(source, target)
            return Routes(*crossed, latency, outside)
        latency, parts = np.zeros(len(source)), []
        for is_outside in (True, False):
            flow = np.flatnonzero(outside == is_outside)
            if len(flow):
                if is_outside:
                    crossed, latency[flow] = self._by_tables(source[flow], target[flow])
                else:
                    inner = super().routes(source[flow], target[flow], variant)
                    crossed = inner.flow, inner.link_group, inner.share
                    latency[flow] = inner.latency_s
                parts.append((flow[crossed[0]], *crossed[1:]))
        return Routes(*joined(parts), latency, outside)

    def latency_s(self, source: IntArray, target: IntArray) -> FloatArray:
        """One way along the slowest part of the route, shape of ``source``."""
        outside = (self.node[source] != self.node[target]) | self._has_hubs
        latency = np.zeros(len(source))
        latency[outside] = self._by_tables(source[outside], target[outside])[1]
        latency[~outside] = super().latency_s(source[~outside], target[~outside])
        return latency

    @property
    def _has_hubs(self) -> bool:
        return self.forwarding is not None and bool(self.forwarding.hub[0] >= 0)

    def apart(self, groups: IntArray) -> bool:
        """Whether groups stay in nodes and share nothing there: equal ports on their switch."""
        way = self.forwarding
        if way is None or not self._has_hubs or np.bincount(groups.reshape(-1)).max() > 1:
            return False
        rates = self.capacity_Bps[np.concatenate([way.rising, way.falling])]
        hub = way.hub[groups]
        return bool((hub == hub[:, :1]).all()) and np.ptp(rates) == 0

    def _by_tables(
        self, source: IntArray, target: IntArray
    ) -> tuple[tuple[IntArray, IntArray, FloatArray], FloatArray]:
        """Return flow, link group and share of every crossing, and the latency of every flow."""
        way = self.forwarding
        if way is None:
            raise TypeError("a link map by tables needs them")
        flow, group, share, seconds = followed(
            (way.group, way.ahead, way.latency_s),
            way.hops,
            way.first,
            (way.outward, way.upward, way.inward, way.entry, way.column),
            (way.hub, way.rising, way.falling),
            np.ascontiguousarray(source),
            np.ascontiguousarray(target),
        )
        return (flow, group, share), seconds


def stated_subnet(links: Links, switches: Sequence[SubnetSwitch]) -> Subnet:
    """Return the subnet that a fabric states, its elements those of the graph."""
    number = {name: place for place, name in enumerate(links.elements)}
    rows = [
        (place, port, number.get(end, -1), lid)
        for place, entry in enumerate(switches)
        for port, lid, end in sorted(entry.ports)
    ]
    element = np.array([number[entry.switch] for entry in switches])
    return Subnet(element, tuple(entry.guid for entry in switches), *np.array(rows).T)


def stated_ports(switches: Sequence[SubnetSwitch], lids: IntArray) -> IntArray:
    """Return the port of every switch to some addresses by its own table, (switches, lids)."""
    ports = np.full((len(switches), int(lids.max(initial=0)) + 1), NO_PORT, np.uint8)
    for row, entry in zip(ports, switches, strict=True):
        table = entry.forwards()[: len(row)]
        row[: len(table)] = table
    return ports[:, lids].astype(np.int64)


def forwarding_of(link_map: GraphLinkMap, subnet: Subnet, ports: IntArray) -> Forwarding:
    """Follow tables.

    Parameters
    ----------
    link_map : GraphLinkMap
        Whose link groups the cables are.
    ports : int array (switches, ports of NICs)
        Of every switch towards every port of a NIC in the order of `Subnet.nic_cables`.

    Raises
    ------
    InputError
        If they do not lead from everywhere to everywhere.
    """
    links, size = link_map.links, len(link_map.links.elements)
    key = links.tail * size + links.head
    bundle = subnet.element[subnet.switch] * size + np.maximum(subnet.end, 0)
    copy = rank_within(bundle)
    arc = np.minimum(np.searchsorted(key, bundle), len(key) - 1)
    group = np.where(subnet.end >= 0, link_map.first_group[arc] + copy, -1)
    nic = subnet.nic_cables(links)
    up = np.searchsorted(key, subnet.end[nic] * size + subnet.element[subnet.switch[nic]])
    upward = link_map.first_group[up] + copy[nic]
    at = np.full((len(subnet.element), 256), -1)
    at[subnet.switch, subnet.port] = np.where(subnet.end >= 0, np.arange(len(subnet.end)), -1)
    cable = at[np.arange(len(at))[:, None], ports].astype(np.int32)
    hops = resolved(cable, subnet.peer, nic)
    _check_reached(links, subnet, nic, hops)
    ahead = np.full(len(link_map.capacity_Bps) + 1, -1)
    ahead[group] = subnet.peer
    out = np.flatnonzero((links.role[links.tail] == DEVICE) & (links.role[links.head] == NIC))
    order = np.lexsort((subnet.lid[nic], subnet.end[nic]))
    nics, start, count = np.unique(subnet.end[nic][order], return_index=True, return_counts=True)
    place = np.searchsorted(nics, links.head[out])
    lost = np.setdiff1d(np.arange(links.devices), links.tail[out])
    require(
        not len(lost) and np.isin(links.head[out], nics).all(),
        "routing",
        "must be adaptive, shortest_path or ecmp where devices have no NICs on switches",
        "tables",
        "choose one of them, or draw the NICs",
    )
    which, column = runs(start[place], count[place])
    back = np.searchsorted(key, links.head[out] * size + links.tail[out])
    first = np.concatenate([[0], np.cumsum(np.bincount(links.tail[out][which]))])
    column = order[column]
    part = links.node()
    inner = np.flatnonzero((links.tail < links.devices) & (part[links.tail] == part[links.head]))
    is_star = np.array_equal(links.tail[inner], np.arange(links.devices))
    is_star &= len(np.unique(links.head[inner])) == len(np.unique(part[: links.devices]))
    hub = links.head[inner] if is_star else np.full(links.devices, -1)
    falling = np.searchsorted(key, links.head[inner] * size + links.tail[inner])
    return Forwarding(
        np.append(group, -1)[cable].astype(np.int32), ahead,
        links.latency_s[link_map.arc], int(hops.max()), first,
        link_map.first_group[out][which], upward[column], link_map.first_group[back][which],
        subnet.switch[nic][column], column, hub, link_map.first_group[inner],
        link_map.first_group[falling],
    )  # fmt: skip


def _check_reached(links: Links, subnet: Subnet, nic: IntArray, hops: Int32Array) -> None:
    entries = np.unique(subnet.switch[nic])
    lost = np.argwhere(hops[entries] < 0)
    if not len(lost):
        return
    entry, column = entries[lost[0, 0]], lost[0, 1]
    how = {NOWHERE: "ends at a switch", ROUND: "goes round in a loop", ELSEWHERE: "ends elsewhere"}
    ends = [links.elements[at] for at in (subnet.element[entry], subnet.end[nic[column]])]
    raise InputError(
        "forwarding",
        f"must not have a way that {how[int(hops[entry, column])]}",
        f"{ends[0]} to {subnet.lid[nic[column]]:#06x} ({ends[1]})",
        "read topology and tables of one subnet, dumped at one time",
    )


@compiled
def resolved(cable: Int32Array, peer: IntArray, goal: IntArray) -> Int32Array:
    """Return hops from every switch along tables.

    Parameters
    ----------
    cable : int array (switches, columns)
        That a switch sends on by; −1 for none.
    peer : int array (cables,)
        Switch at its other end, −1 for anything else.
    goal : int array (columns,)
        Cable that ends where the column's address is.
    """
    switches, columns = cable.shape
    hops = np.zeros((switches, columns), np.int32)
    for begin in range(switches):
        for column in range(columns):
            at, steps = begin, 0
            while at >= 0 and 0 <= steps <= switches:
                onward = cable[at, column]
                if onward < 0:
                    steps = -1  # NOWHERE
                    break
                steps, at = steps + 1, peer[onward]
            if at >= 0 and steps > switches:
                steps = -2  # ROUND
            elif steps > 0 and onward != goal[column]:
                steps = -3  # ELSEWHERE
            hops[begin, column] = steps
    return hops


@compiled
def followed(
    tables: tuple[Int32Array, IntArray, FloatArray],
    hops: int,
    first: IntArray,
    ways: tuple[IntArray, IntArray, IntArray, IntArray, IntArray],
    inside: tuple[IntArray, IntArray, IntArray],
    source: IntArray,
    target: IntArray,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return flow, link group and share of every crossing, and the latency of every flow.

    Arrays are those of `Forwarding`.
    """
    group, ahead, latency_s = tables
    outward, upward, inward, entry, column = ways
    hub, rising, falling = inside
    room = 2 * len(source)
    for k in range(len(source)):
        out, back = first[source[k] + 1] - first[source[k]], first[target[k] + 1] - first[target[k]]
        room += (3 + hops) * max(out, back)
    flow, crossed = np.empty(room, np.int64), np.empty(room, np.int64)
    share, seconds = np.empty(room), np.zeros(len(source))
    count = 0
    for k in range(len(source)):
        here, goal = source[k], target[k]
        begin, parts = count, 1
        if hub[here] >= 0 and hub[here] == hub[goal]:
            crossed[count], crossed[count + 1], count = rising[here], falling[goal], count + 2
            seconds[k] = latency_s[rising[here]] + latency_s[falling[goal]]
        else:
            out, back = first[here + 1] - first[here], first[goal + 1] - first[goal]
            parts = max(out, back)
            for part in range(parts):
                start, end = first[here] + part % out, first[goal] + part % back
                at, to, total = entry[start], column[end], 0.0
                crossed[count], crossed[count + 1], count = outward[start], upward[start], count + 2
                while at >= 0:
                    crossed[count] = group[at, to]
                    total += latency_s[crossed[count]]
                    at, count = ahead[crossed[count]], count + 1
                crossed[count], count = inward[end], count + 1
                taken = (
                    latency_s[outward[start]] + latency_s[upward[start]] + latency_s[inward[end]]
                )
                seconds[k] = max(seconds[k], taken + total)
        share[begin:count] = 1.0 / parts
        flow[begin:count] = k
    return flow[:count], crossed[:count], share[:count], seconds
