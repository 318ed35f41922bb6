"""Loops over flows and the link groups that they cross, compiled.

A tree's tiers as arrays that compiled loops read.
"""

from collections import namedtuple
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from nest_core.documents.compiled import compiled
from nest_core.network.link_map import BoolArray, FloatArray, IntArray

__all__ = ["Ways", "busiest", "climbs", "loaded", "longest", "meets", "slowest", "spread"]


_T = TypeVar("_T", bound=np.generic)
Ways = namedtuple("Ways", "child group leaves_by offset group_links parallel links rank")
"""Uplinks of every device at every tier; see `TreeTier`.

Attributes
----------
child, group : (tiers, devices)
leaves_by : (tiers,)
    The tier by which a flow leaves its device, where it meets its peer.
offset : (tiers,)
    Number of the tier's first link group.
group_links, parallel : (tiers,)
links, rank : (tiers, devices)
    Of the device's child, and the device among those of its child.
"""


@compiled
def slowest(of_owners: FloatArray, team: IntArray, teams: int) -> FloatArray:
    """Return the largest value among a team's owners, shape (protocols, teams)."""
    result = np.zeros((of_owners.shape[0], teams))
    for protocol in range(of_owners.shape[0]):
        for owner in range(len(team)):
            value = of_owners[protocol, owner]
            if value > result[protocol, team[owner]]:
                result[protocol, team[owner]] = value
    return result


@compiled
def loaded(
    load: FloatArray, flow: IntArray, link_group: IntArray, share: FloatArray, volume: FloatArray
) -> None:
    """Add flows to the load of link groups under every draw, shape (draws, link groups)."""
    for draw in range(len(link_group)):
        for k in range(len(flow)):
            load[draw, link_group[draw, k]] += share[k] * volume[flow[k]]


@compiled
def busiest(
    load: FloatArray,
    flow: IntArray,
    link_group: IntArray,
    share: FloatArray,
    volume: FloatArray,
    owner: IntArray,
    capacity: FloatArray,
    one_link: FloatArray,
    outside: BoolArray,
    owners: int,
) -> FloatArray:
    """Per owner the longest that one of its crossings takes inside nodes and outside.

    Parameters
    ----------
    load : (draws, link groups)
        Of these flows and of all that run beside them.
    link_group : (draws, crossings)

    Returns
    -------
    float array (draws, 2, owners)
    """
    worst = np.zeros((len(link_group), 2, owners))
    for draw in range(len(link_group)):
        for k in range(len(flow)):
            at, sent = link_group[draw, k], flow[k]
            taken = max(load[draw, at] / capacity[at], share[k] * volume[sent] / one_link[at])
            side = 1 if outside[at] else 0
            worst[draw, side, owner[sent]] = max(worst[draw, side, owner[sent]], taken)
    return worst


@compiled
def longest(
    owner: IntArray,
    turn: IntArray,
    steps: FloatArray,
    latency_s: FloatArray,
    outside: BoolArray,
    turns: int,
    owners: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Most steps, their latencies in all and one latency; each (turns, 2, owners)."""
    shape = (turns, 2, owners)
    most, total, lone = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for k in range(len(owner)):
        at, side, of = turn[k], 1 if outside[k] else 0, owner[k]
        most[at, side, of] = max(most[at, side, of], steps[k])
        total[at, side, of] = max(total[at, side, of], steps[k] * latency_s[k])
        lone[at, side, of] = max(lone[at, side, of], latency_s[k])
    return most, total, lone


@compiled
def meets(group: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """Return the innermost tier at which devices share a group; -1 for a device and itself,
    (flows,).
    """
    met = np.full(len(source), -1, dtype=np.int64)
    for flow in range(len(source)):
        a, b = source[flow], target[flow]
        if a != b:
            tier = 0
            while tier < len(group) - 1 and group[tier, a] != group[tier, b]:
                tier += 1
            met[flow] = tier
    return met


@compiled
def climbs(
    ways: Ways,
    source: IntArray,
    target: IntArray,
    met: IntArray,
    lowest: int,
    up_hash: IntArray,
    down_hash: IntArray,
) -> tuple[IntArray, IntArray]:
    """Crossings of flows from tier ``lowest`` up to where they meet, in order.

    Hashes of the flows, (draws, flows), fix the link on the way up and down; if empty, the target
    does. Returns the flow of every crossing, and the link groups under every draw.
    """
    count = 0
    for flow in range(len(source)):
        if met[flow] >= 0:
            count += 2 * max(0, met[flow] + 1 - max(lowest, ways.leaves_by[met[flow]]))
    flows = np.empty(count, dtype=np.int64)
    draws = len(up_hash)
    link_groups = np.empty((draws, count), dtype=np.int64)
    hashes = up_hash.shape[1] > 0
    at = 0
    for flow in range(len(source)):
        if met[flow] < 0:
            continue
        a, b = source[flow], target[flow]
        for tier in range(max(lowest, ways.leaves_by[met[flow]]), met[flow] + 1):
            group_links, parallel = ways.group_links[tier], ways.parallel[tier]
            flows[at] = flows[at + 1] = flow
            for draw in range(draws):
                up, down = ways.child[tier, a], ways.child[tier, b]
                if group_links > 1:
                    key = up_hash[draw, flow] if hashes else ways.rank[tier, b]
                    one_link = key % ways.links[tier, a]
                    other = one_link
                    if hashes and parallel > 1:
                        other = one_link // parallel * parallel + down_hash[draw, flow] % parallel
                    up = up * group_links + one_link
                    down = down * group_links + other % ways.links[tier, b]
                link_groups[draw, at] = ways.offset[tier] + 2 * up
                link_groups[draw, at + 1] = ways.offset[tier] + 2 * down + 1
            at += 2
    return flows, link_groups


@compiled
def _longer(array: npt.NDArray[_T], size: int) -> npt.NDArray[_T]:
    """Return an array with room for more behind it."""
    result = np.empty(size, array.dtype)
    result[: len(array)] = array
    return result


@compiled
def spread(
    hops: tuple[IntArray, IntArray, IntArray, FloatArray],
    row: IntArray,
    place: IntArray,
    source: IntArray,
    target: IntArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return all shortest paths of flows, divided in proportion to capacity at each hop.

    Where paths meet in one element, all of the flow is there, whatever was rounded on the way.

    Parameters
    ----------
    hops : start, arcs, head, capacity
        See `nest_core.network.link_graph.NextHops`.
    row : (flows,)
        Where the hops towards each target begin.
    place : (elements,)
        Which of them is an element's.
    source, target : (flows,)

    Returns
    -------
    flow, arc : int array (crossings,)
    share : float array (crossings,)
    """
    start, arcs, head, capacity = hops
    room = 16 * len(source) + 2 * len(head)
    flow, arc = np.empty(room, np.int64), np.empty(room, np.int64)
    share = np.empty(room)
    part = np.zeros(len(place))
    front, ahead = np.empty(len(place), np.int64), np.empty(len(place), np.int64)
    count = 0
    for k in range(len(source)):
        front[0], width = source[k], 1
        while width > 1 or (width == 1 and front[0] != target[k]):
            if width == 1:
                part[front[0]] = 1.0
            if count + len(head) > room:
                room *= 2
                flow, arc, share = _longer(flow, room), _longer(arc, room), _longer(share, room)
            further = 0
            for at in front[:width]:
                # Paths of one length meet an element at no other of their hops.
                arriving, part[at] = part[at], 0.0
                first, last = start[row[k] + place[at]], start[row[k] + place[at] + 1]
                total = 0.0
                for taken in arcs[first:last]:
                    total += capacity[taken]
                for taken in arcs[first:last]:
                    flow[count], arc[count] = k, taken
                    share[count] = arriving * capacity[taken] / total
                    onward = head[taken]
                    if part[onward] == 0.0:
                        ahead[further] = onward
                        further += 1
                    part[onward] += share[count]
                    count += 1
            front, ahead, width = ahead, front, further
        part[target[k]] = 0.0
    return flow[:count], arc[:count], share[:count]
