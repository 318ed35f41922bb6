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
    "Flows",
    "Links",
    "Ways",
    "add_seconds",
    "busiest",
    "climbs",
    "loaded",
    "longest",
    "meets",
    "ring_level",
    "slowest",
    "spread",
    "tallied",
]


_T = TypeVar("_T", bound=np.generic)
Flows = namedtuple("Flows", "source target owner volume steps turn")
"""Fields of `nest_core.network.phases.Phase`, each (flows,)."""
Links = namedtuple("Links", "capacity one_link outside")
"""Of every link group; see `nest_core.network.link_map.LinkMap`."""
Ways = namedtuple("Ways", "child group leaves_by latency_s offset group_links parallel links rank")
"""Uplinks of every device at every tier; see `TreeTier`.

Attributes
----------
child, group : (tiers, devices)
leaves_by, latency_s : (tiers,)
    The tier by which a flow leaves its device, where it meets its peer, and its latency there.
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
def add_seconds(
    columns: FloatArray,
    waits: tuple[FloatArray, FloatArray, FloatArray],
    worst: FloatArray,
    alpha: FloatArray,
    beta: FloatArray,
) -> None:
    """Add what flows of one phase take to the latency and the seconds per byte of their owners.

    Parameters
    ----------
    columns : (7, protocols)
        Fields of `nest_core.network.phases.Protocol`; NaN for the algorithm's own steps.
    waits : of `longest`
    worst : (draws, 2, owners)
        Of `busiest`.
    alpha, beta : (draws, protocols, owners)
    """
    steps, latency, lone = waits
    for p in range(columns.shape[1]):
        for turn in range(len(steps)):
            for owner in range(worst.shape[2]):
                taken = 0.0
                for side in range(2):  # inside nodes and outside
                    step, fixed = columns[1 + side, p], columns[5 + side, p]
                    first = latency[turn, side, owner] + steps[turn, side, owner] * step
                    if not np.isnan(fixed):
                        once = step if steps[turn, side, owner] > 0 else 0.0
                        first = fixed * (lone[turn, side, owner] + once)
                    taken = max(taken, first)
                for draw in range(len(alpha)):
                    alpha[draw, p, owner] += taken
        for draw in range(len(beta)):
            for owner in range(worst.shape[2]):
                near, far = worst[draw, 0, owner], worst[draw, 1, owner]
                beta[draw, p, owner] += max(near / columns[3, p], far / columns[4, p])


@compiled
def loaded(
    load: FloatArray, flow: IntArray, link_group: IntArray, share: FloatArray, volume: FloatArray
) -> None:
    """Add flows to the load of link groups, (link groups,)."""
    for k in range(len(flow)):
        load[link_group[k]] += share[k] * volume[flow[k]]


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
    """Per owner the longest that one of its crossings takes inside nodes and outside, (2, owners).

    Parameters
    ----------
    load : (link groups,)
        Of these flows and of all that run beside them.
    """
    worst = np.zeros((2, owners))
    for k in range(len(flow)):
        at, sent = link_group[k], flow[k]
        taken = max(load[at] / capacity[at], share[k] * volume[sent] / one_link[at])
        side = 1 if outside[at] else 0
        worst[side, owner[sent]] = max(worst[side, owner[sent]], taken)
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
def _meet(group: IntArray, a: int, b: int) -> int:
    """Return the innermost tier at which devices share a group; -1 for a device and itself."""
    if a == b:
        return -1
    tier = 0
    while tier < len(group) - 1 and group[tier, a] != group[tier, b]:
        tier += 1
    return tier


@compiled
def meets(group: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """Return the same of every flow, (flows,)."""
    met = np.empty(len(source), dtype=np.int64)
    for flow in range(len(source)):
        met[flow] = _meet(group, source[flow], target[flow])
    return met


@compiled
def _uplinks(
    ways: Ways, tier: int, a: int, b: int, up_hash: int, down_hash: int
) -> tuple[int, int]:
    """Return the link groups of a flow from ``a`` to ``b`` at a tier, up and down.

    Hashes fix the link on the way up and down; below 0 the target does.
    """
    group_links, parallel = ways.group_links[tier], ways.parallel[tier]
    up, down = ways.child[tier, a], ways.child[tier, b]
    if group_links > 1:
        one_link = (up_hash if up_hash >= 0 else ways.rank[tier, b]) % ways.links[tier, a]
        other = one_link
        if up_hash >= 0 and parallel > 1:
            other = one_link // parallel * parallel + down_hash % parallel
        up = up * group_links + one_link
        down = down * group_links + other % ways.links[tier, b]
    return ways.offset[tier] + 2 * up, ways.offset[tier] + 2 * down + 1


@compiled
def tallied(
    ways: Ways,
    flows: Flows,
    hashes: tuple[IntArray, IntArray],
    load: FloatArray,
    links: Links,
    owners: int,
    adds: bool,
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], FloatArray]:
    """Return `longest` and `busiest` of flows that take no way but the uplinks of a tree.

    Parameters
    ----------
    hashes : of `climbs`, (draws, flows) or (draws, 0) each
    load : (draws, link groups)
    adds : bool
        Whether the flows are added to it first.
    """
    source, target, owner, volume, steps, turn = flows
    count, turns = len(source), 0
    met, latency_s = np.empty(count, dtype=np.int64), np.zeros(count)
    for k in range(count):
        met[k] = _meet(ways.group, source[k], target[k])
        turns = max(turns, turn[k] + 1)
        if met[k] >= 0:
            latency_s[k] = ways.latency_s[met[k]]
    waits = longest(owner, turn, steps, latency_s, met > 0, turns, owners)
    worst = np.zeros((len(load), 2, owners))
    crossed = np.empty(2 * count * len(ways.group), dtype=np.int64)
    up_hash, down_hash = hashes
    is_hashed = up_hash.shape[1] > 0
    for draw in range(len(load)):
        at = 0
        for k in range(count):
            up, down = -1, -1
            if is_hashed:
                up, down = up_hash[draw, k], down_hash[draw, k]
            for tier in range(ways.leaves_by[met[k]] if met[k] >= 0 else 0, met[k] + 1):
                way = _uplinks(ways, tier, source[k], target[k], up, down)
                crossed[at], crossed[at + 1] = way
                at += 2
                if adds:
                    load[draw, way[0]] += volume[k]
                    load[draw, way[1]] += volume[k]
        at = 0
        for k in range(count):
            for _ in range(ways.leaves_by[met[k]] if met[k] >= 0 else 0, met[k] + 1):
                for link in crossed[at : at + 2]:
                    taken = load[draw, link] / links.capacity[link]
                    if not taken > 0.0 or links.one_link[link] < links.capacity[link]:
                        taken = max(taken, volume[k] / links.one_link[link])
                    side = 1 if links.outside[link] else 0
                    worst[draw, side, owner[k]] = max(worst[draw, side, owner[k]], taken)
                at += 2
    return waits, worst


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

    Hashes of the flows, (flows,), fix the link on the way up and down; if empty, the target does.
    Returns the flow of every crossing, and its link group.
    """
    flows = np.empty(2 * len(source) * len(ways.group), dtype=np.int64)
    link_groups, at = np.empty_like(flows), 0
    for flow in range(len(source)):
        if met[flow] < 0:
            continue
        up, down = -1, -1
        if len(up_hash) > 0:
            up, down = up_hash[flow], down_hash[flow]
        for tier in range(max(lowest, ways.leaves_by[met[flow]]), met[flow] + 1):
            flows[at] = flows[at + 1] = flow
            way = _uplinks(ways, tier, source[flow], target[flow], up, down)
            link_groups[at], link_groups[at + 1] = way
            at += 2
    return flows[:at].copy(), link_groups[:at].copy()


@compiled
def ring_level(
    member: IntArray,
    block: IntArray,
    size: int,
    child: IntArray,
    start: IntArray,
    shard: FloatArray,
    direct: bool,
) -> tuple[tuple[IntArray, IntArray, IntArray, IntArray, FloatArray], IntArray, IntArray, IntArray]:
    """Return neighbours in the blocks that one level joins, and its own blocks.

    Parameters
    ----------
    member, block : (places,)
        One group of ``size`` after another, each in the order of the blocks of all levels.
    child : (places,), start : (inner blocks,)
        Number of the inner block of every place, and where each of them starts.
    shard : (groups,)
        Part of the buffer that the levels inside have left.
    direct : bool
        Whether every member has all others as neighbours, not the next.

    Returns
    -------
    flows : source, target, owner, fan, shard
        Fields of `nest_core.network.groups.BlockRing`.
    outer : (places,), outer_start : (blocks,)
        As ``child`` and ``start`` of this level's blocks.
    least : (groups,)
        Inner blocks of that of a group's blocks that has fewest.
    """
    places, groups = len(member), len(member) // size
    outer, outer_start = np.empty(places, dtype=np.int64), np.empty(len(start), dtype=np.int64)
    blocks = 0
    for row in range(groups):
        for p in range(row * size, (row + 1) * size):
            if p == row * size or block[p] != block[p - 1]:
                outer_start[blocks] = p
                blocks += 1
            outer[p] = blocks - 1
    first = np.zeros(blocks + 1, dtype=np.int64)  # inner block
    for c in range(len(start)):
        first[outer[start[c]] + 1] += 1
    most, least = np.zeros(groups, dtype=np.int64), np.full(groups, places)
    for o in range(blocks):
        row, fan = outer_start[o] // size, first[o + 1]
        most[row], least[row] = max(most[row], fan), min(least[row], fan)
        first[o + 1] += first[o]
    reach, count = int(most.max()) if direct else 2, 0
    for p in range(places):
        count += min(reach, first[outer[p] + 1] - first[outer[p]]) - 1
    ends = np.empty((4, count), dtype=np.int64)
    part, at = np.empty(count), 0
    for stride in range(1, reach):
        for row in range(groups):
            for p in range(row * size, (row + 1) * size):
                o, c = outer[p], child[p]
                fan = first[o + 1] - first[o]
                if fan <= stride:
                    continue
                neighbour = c + stride if c + stride < first[o + 1] else c + stride - fan
                end = start[neighbour + 1] if neighbour + 1 < len(start) else places
                place = p - start[c]
                if place >= end - start[neighbour]:
                    place %= end - start[neighbour]
                ends[0, at], ends[1, at] = member[p], member[start[neighbour] + place]
                ends[2, at], ends[3, at], part[at] = row, most[row], shard[row]
                at += 1
    return (ends[0], ends[1], ends[2], ends[3], part), outer, outer_start[:blocks], least


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
