"""Loops over flows and the link groups that they cross, compiled.

A tree's tiers as arrays that compiled loops read.
"""

from collections import namedtuple
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from nest_core.documents.compiled import compiled
from nest_core.network.link_map import BoolArray, FloatArray, IntArray

__all__ = [
    "NO_TRUNKS",
    "Trunks",
    "Ways",
    "busiest",
    "climbs",
    "longest",
    "meets",
    "slowest",
    "spread",
    "trunks",
]


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
def busiest(
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
    link_group : (draws, crossings)

    Returns
    -------
    float array (draws, 2, owners)
    """
    worst = np.zeros((len(link_group), 2, owners))
    load = np.zeros(len(capacity))
    for draw in range(len(link_group)):
        load[:] = 0.0
        for k in range(len(flow)):
            load[link_group[draw, k]] += share[k] * volume[flow[k]]
        for k in range(len(flow)):
            at, sent = link_group[draw, k], flow[k]
            taken = max(load[at] / capacity[at], share[k] * volume[sent] / one_link[at])
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


Trunks = namedtuple("Trunks", "step first gate arc share")
"""Ways from elements where flows part to where they are together again, towards every target.

Attributes
----------
step : (targets * elements)
    The only next arc, else -1, or -2 less the number of the way; see `NextHops`.
first : (ways + 1,)
    Where its crossings begin in ``arc`` and ``share``.
gate : (ways,)
    Element where it ends.
"""


_NONE = np.zeros(0, np.int64)
NO_TRUNKS = Trunks(_NONE.astype(np.int32), _NONE, _NONE, _NONE, _NONE.astype(np.float64))


@compiled
def _longer(array: npt.NDArray[_T], size: int) -> npt.NDArray[_T]:
    """Return an array with room for more behind it."""
    result = np.empty(size, array.dtype)
    result[: len(array)] = array
    return result


@compiled
def _parted(
    hops: tuple[IntArray, IntArray, IntArray, FloatArray],
    row: int,
    here: int,
    goal: int,
    part: FloatArray,
    arc: IntArray,
    share: FloatArray,
    count: int,
) -> tuple[int, int]:
    """Walk all shortest paths from an element on until they are one again.

    Crossings go into ``arc`` and ``share``, from ``count`` on, which have room for all arcs.

    Parameters
    ----------
    hops : start, arcs, head, capacity
        See `nest_core.network.link_graph.NextHops`.
    row : int
        Where the target's hops begin.
    part : (elements,)
        Zeros, and zeros again afterwards.

    Returns
    -------
    Crossings in all, and the element where paths are one.
    """
    start, arcs, head, capacity = hops
    front = np.empty(1, np.int64)
    front[0], part[here] = here, 1.0
    while True:
        ahead = np.empty(len(part), np.int64)
        further = 0
        for at in front:
            flow, part[at] = part[at], 0.0  # paths of one length meet it at no other hop
            first, last = start[row + at], start[row + at + 1]
            total = 0.0
            for taken in arcs[first:last]:
                total += capacity[taken]
            for taken in arcs[first:last]:
                arc[count], share[count] = taken, flow * capacity[taken] / total
                onward = head[taken]
                if part[onward] == 0.0:
                    ahead[further] = onward
                    further += 1
                part[onward] += share[count]
                count += 1
        front = ahead[:further]
        if further < 2:
            gate = front[0] if further else goal
            part[gate] = 0.0
            return count, gate


@compiled
def trunks(
    hops: tuple[IntArray, IntArray, IntArray, FloatArray],
    targets: int,
    elements: int,
    is_switch: BoolArray,
    most: int,
) -> Trunks:
    """Return the ways on from all switches where flows part, with ``most`` crossings or so."""
    start, arcs, head, _ = hops
    step = np.full(targets * elements, -1, np.int32)
    way = np.zeros((elements, elements), np.int32)
    part = np.zeros(elements)
    room = 4 * len(head)
    arc, share = np.empty(room, np.int64), np.empty(room)
    first, gates = [0], [0]
    for row in range(0, targets * elements, elements):
        for at in range(elements):
            fan = start[row + at + 1] - start[row + at]
            if fan == 1:
                step[row + at] = arcs[start[row + at]]
            elif fan > 1 and is_switch[at] and first[-1] < most:
                if first[-1] + len(head) > room:
                    room *= 2
                    arc, share = _longer(arc, room), _longer(share, room)
                count, gate = _parted(hops, row, at, -1, part, arc, share, first[-1])
                if way[at, gate] == 0:  # for another target behind the same gate it is the same
                    way[at, gate] = len(first)
                    first.append(count)
                    gates.append(gate)
                step[row + at] = -1 - way[at, gate]
    return Trunks(step, np.array(first), np.array(gates)[1:], arc[: first[-1]], share[: first[-1]])


@compiled
def spread(
    hops: tuple[IntArray, IntArray, IntArray, FloatArray],
    known: Trunks,
    row: IntArray,
    elements: int,
    source: IntArray,
    target: IntArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return all shortest paths of flows, divided in proportion to capacity at each hop.

    Parameters
    ----------
    hops : see `_parted`
    known : Trunks
        Empty where they are not worth making.
    row : (flows,)
        Where the hops to each target begin.
    source, target : (flows,)

    Returns
    -------
    flow, arc : int array (crossings,)
    share : float array (crossings,)
    """
    start, arcs, head, _ = hops
    room = 16 * len(source) + 2 * len(head)
    flow, arc = np.empty(room, np.int64), np.empty(room, np.int64)
    share = np.empty(room)
    part = np.zeros(elements)
    count = 0
    for k in range(len(source)):
        here, begin = source[k], count
        while here != target[k]:
            if count + len(head) > room:
                room *= 2
                flow, arc, share = _longer(flow, room), _longer(arc, room), _longer(share, room)
            key = row[k] + here
            code = known.step[key] if len(known.step) else -1
            if code == -1 and start[key + 1] - start[key] == 1:
                code = arcs[start[key]]
            if code >= 0:
                arc[count], share[count] = code, 1.0
                here = head[code]
                count += 1
            elif code == -1:
                count, here = _parted(hops, row[k], here, target[k], part, arc, share, count)
            else:
                first, last = known.first[-2 - code], known.first[-1 - code]
                arc[count : count + last - first] = known.arc[first:last]
                share[count : count + last - first] = known.share[first:last]
                here = known.gate[-2 - code]
                count += last - first
        flow[begin:count] = k
    return flow[:count], arc[:count], share[:count]
