"""Fabrics whose devices leave their nodes by one way each: far fewer shortest paths to table.

Where every device has one NIC and every NIC one switch, all traffic between nodes goes from the
sender over its NIC to that switch, its gate, and from the target's gate down. What lies between is
the same for all devices behind the same two gates, so that the shortest paths are those inside each
node and those between gates: for 8,192 devices on 8,192 NICs and 256 leaves some 10^5 next hops, in
place of 10^8.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nest_core.network.link_graph import DEVICE, NIC, TABLE, Links, NextHops, next_hops
from nest_core.network.link_map import FloatArray, IntArray

__all__ = ["Gates", "find_gates"]


@dataclass(frozen=True, slots=True, eq=False)
class Gates:
    """Next hops inside what hangs together without NICs: nodes, and the switches between them.

    Parameters
    ----------
    part : int array (devices,)
        Node of every device.
    gate : int array (devices,)
        The switch by which it leaves its node.
    up, down : int array (devices, 2)
        Arcs to the gate, and from it.
    away_s : float array (devices,)
        One way between a device and its gate.
    place : int array (elements,)
        Of every element in its part.
    row : int array (elements,)
        Where the hops towards a device or gate begin, from each place of its part.
    start, arc : see `nest_core.network.link_graph.NextHops`
    latency_s : float array (keys,)
        Along the first path.
    """

    part: IntArray
    gate: IntArray
    up: IntArray
    down: IntArray
    away_s: FloatArray
    place: IntArray
    row: IntArray
    start: IntArray
    arc: IntArray
    latency_s: FloatArray

    def between(self, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
        """Return the ends of flows inside one part: the gates of those that leave their nodes."""
        stays = self.part[source] == self.part[target]
        leaving, entering = (np.where(stays, end, self.gate[end]) for end in (source, target))
        return leaving, entering


def find_gates(links: Links) -> Gates | None:
    """Return the gates of a link graph; None where devices may leave their nodes by several ways,
    or forward for others.
    """
    size, devices = len(links.elements), links.devices
    is_nic = links.role == NIC
    up = np.flatnonzero((links.tail < devices) & is_nic[links.head])
    out = np.flatnonzero(is_nic[links.tail] & (links.role[links.head] != DEVICE))
    if not np.array_equal(links.tail[up], np.arange(devices)):
        return None
    if not np.array_equal(links.tail[out], np.flatnonzero(is_nic)):
        return None
    part, nic = links.node(), links.head[up]
    node, beyond = part[:devices], part[links.head[out]]
    owner = np.zeros(size, np.int64)
    owner[nic] = node
    if (beyond != beyond[0]).any() or (node == beyond[0]).any() or (owner[nic] != node).any():
        return None
    gate = links.head[out][np.searchsorted(links.tail[out], nic)]
    ends = (np.arange(devices), nic, gate, nic, np.arange(devices))
    number = links.tail * size + links.head  # arcs are sorted so
    ways = [np.searchsorted(number, a * size + b) for a, b in pairwise(ends)]
    if len(np.unique(gate)) * int((part == beyond[0]).sum()) > TABLE:
        return None
    place, row = np.zeros(size, np.int64), np.zeros(size, np.int64)
    is_target = np.zeros(size, np.bool_)
    is_target[:devices] = is_target[gate] = True
    by_part = np.argsort(part, kind="stable")
    inside = np.flatnonzero(~is_nic[links.tail] & ~is_nic[links.head])
    inside = inside[np.argsort(part[links.tail[inside]], kind="stable")]
    tables: list[NextHops] = []
    arcs: list[IntArray] = []
    for number in np.unique(np.append(node, beyond[0])):
        members = _equal(by_part, part, number)
        inner = _equal(inside, part[links.tail], number)
        place[members] = np.arange(len(members))
        part_links = Links(
            tuple(members.tolist()),
            len(members),
            links.role[members],
            place[links.tail[inner]],
            place[links.head[inner]],
            links.bandwidth_Bps[inner],
            links.count[inner],
            links.latency_s[inner],
        )
        targets = np.flatnonzero(is_target[members])
        table = next_hops(part_links, targets)
        begin = sum(len(entry.start) - 1 for entry in tables)
        row[members[targets]] = begin + np.arange(len(targets)) * len(members)
        tables.append(table)
        arcs.append(inner[table.arc])
    fans = np.concatenate([np.diff(table.start) for table in tables])
    return Gates(
        node,
        gate,
        np.stack(ways[:2], axis=1),
        np.stack(ways[2:], axis=1),
        links.latency_s[ways[0]] + links.latency_s[ways[1]],
        place,
        row,
        np.concatenate([[0], np.cumsum(fans)]),
        np.concatenate(arcs),
        np.concatenate([table.latency_s for table in tables]),
    )


def _equal(order: IntArray, values: IntArray, value: int) -> IntArray:
    """Return those of some indices, in the order of their values, that have one value."""
    first, last = np.searchsorted(values[order], [value, value + 1])
    return order[first:last]
