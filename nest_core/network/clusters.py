"""Levels of an arbitrary link graph: devices that see the rest alike, grouped step by step.

1. *Distance.* Devices within a distance of one another form a group; all distances at which
   something merges give a nested chain (single linkage: the minimum spanning tree of the
   distances, found on the boundaries of one multi-source Dijkstra search as Mehlhorn 1988
   does). The distance is that of routing: NICs, then forwarding devices, then hops.
2. *Use.* A link, and the element behind it, belongs to the innermost level some of whose
   shortest paths cross it. An element that only one group's paths cross is that group's inside.
3. *Bandwidth.* The uplink of a child is the minimum cut between it, inside included, and all
   other children, over the links of this level and whatever lies beyond them. A level states
   the child with the least per device.
4. *Cuts.* Where the minimum cuts between the children of a group (all pairs, by Gusfield's
   tree) over the links used so far fall into at least two groups of several that hold together
   better than with one another, those are a level of their own, and the steps begin again. In a
   star the cut of two children is the lesser uplink, which leaves one such group at most: a
   star is never split.

A graph drawn from a hierarchy or a folded Clos fabric gives back its groups and bandwidths. What
levels cannot say (rails, tori) stays in the links, which price everything; `collapse_error`
says how much that is.

References
----------
K. Mehlhorn, "A faster approximation algorithm for the Steiner problem in graphs", Inf. Process.
Lett. 27 (1988). D. Gusfield, "Very simple methods for all pairs network flow analysis", SIAM J.
Comput. 19(1), 1990.

Meshed nodes of drawn graphs: devices that are linked to one another and not to a switch.

Where every node is one and all are alike, slot by slot and link by link, their insides are those
of `ScaleUpLinkMap`, as in fabrics that are picked: a flow spreads evenly over its shortest paths,
and collectives may send to all others at once over the links of each device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree

from nest_core.documents import summed
from nest_core.fabric import ROLES, Routing
from nest_core.network.cuts import Cuts, separate
from nest_core.network.forwarding import Forwarding, TabledLinkMap
from nest_core.network.graph import GraphLinkMap
from nest_core.network.groups import numbered
from nest_core.network.levels import Level, Network
from nest_core.network.link_graph import (
    DEVICE,
    NIC,
    SWITCH,
    TABLE,
    Links,
    NextHops,
    read_links,
    tables,
)
from nest_core.network.link_map import (
    ECMP_DRAWS,
    FloatArray,
    IntArray,
    ScaleUpLinkMap,
    runs,
    scale_up_link_map,
)
from nest_core.network.twins import Twins, inside_parts, reduced

__all__ = ["graph_network", "meshed_nodes"]

FEW = 16
"""Devices of a node whose shortest paths are few enough to be listed; rings and meshes have few.

Without NICs and switches so many are taken as one node, if two links join any two.
"""


def meshed_nodes(links: Links) -> tuple[ScaleUpLinkMap, IntArray] | None:
    """Return the insides of a graph's nodes, and the arc of each of their links.

    None unless all nodes are of devices alone, alike, with direct links and of one latency.
    Arcs are listed as `ScaleUpLinkMap` numbers links: node by node.
    """
    node = _node(links)
    if node is None:
        return None
    size = np.bincount(node)
    if size[0] < 2 or (size != size[0]).any():
        return None
    order = np.argsort(node, kind="stable")
    slot = np.empty(links.devices, dtype=np.int64)
    slot[order] = np.arange(links.devices) % size[0]
    inside = np.flatnonzero((links.role[links.tail] == DEVICE) & (links.role[links.head] == DEVICE))
    if len(inside) == 0 or np.ptp(links.latency_s[inside]) > 0:
        return None
    a, b = slot[links.tail[inside]], slot[links.head[inside]]
    where = np.lexsort((b, a, node[links.tail[inside]]))
    inside, a, b = inside[where], a[where], b[where]
    node_links, rest = divmod(len(inside), len(size))
    if size[0] > FEW and node_links not in (2 * size[0], size[0] * (size[0] - 1)):
        return None
    rows = np.stack([a, b, links.capacity_Bps[inside]])
    if rest or not (rows.reshape(3, len(size), -1) == rows[:, None, :node_links]).all():
        return None
    pairs = [(int(a), int(b), rate) for a, b, rate in rows[:, :node_links].T.tolist()]
    once = [(low, high, width) for low, high, width in pairs if low < high]
    link_map = scale_up_link_map(node, slot, int(size[0]), once)
    # Links are numbered pair by pair, there and back.
    number = {(low, high): at for at, (low, high, _) in enumerate(pairs)}
    both_ways = [at for low, high, _ in once for at in (number[low, high], number[high, low])]
    return link_map, np.asarray(inside.reshape(len(size), node_links)[:, both_ways].reshape(-1))


def _node(links: Links) -> IntArray | None:
    """Node of every device, (devices,), where nodes are known and hold devices alone."""
    part = links.node()
    number, node = np.unique(part[: links.devices], return_inverse=True)
    if not (links.role == NIC).any():
        return node if len(links.role) == links.devices <= FEW and _within_two(links) else None
    switches = part[links.devices :][links.role[links.devices :] != NIC]
    return None if np.isin(switches, number).any() else node


def _within_two(links: Links) -> bool:
    joined = np.eye(links.devices, dtype=np.int64)
    joined[links.tail, links.head] = 1
    return bool((joined @ joined > 0).all())


TARGETS = 1024
_HOST = re.compile("gpu|npu|device|host", re.IGNORECASE)
"""Words in the names of hosts, which readers give to the switches inside them."""
_FABRIC = re.compile("leaf|spine|^tor$|edge|core|access|aggreg", re.IGNORECASE)
"""Words in the names of switches that are in no node: devices on them are nodes of their own."""


def graph_network(
    graph: nx.Graph[Any],
    routing: Routing = "adaptive",
    seed: int = 0,
    forwards: Callable[[TabledLinkMap], Forwarding] | None = None,
) -> Network:
    """Return the network of a link graph: levels to read, and its links to price.

    Parameters
    ----------
    graph : networkx.Graph
        As `nest_core.network.graph.read_links` takes it.
    routing, seed
        As `GraphLinkMap` takes them; ECMP is the mean of its draws.
    forwards : callable (TabledLinkMap) -> Forwarding, optional
        Follows forwarding tables over its link groups.

    Examples
    --------
    >>> import networkx as nx
    >>> star = nx.Graph()
    >>> star.add_nodes_from(range(4), role="device")
    >>> star.add_node("hub", role="switch")
    >>> for device in range(4):
    ...     star.add_edge(device, "hub", bandwidth_Bps=50e9, count=1, latency_s=1e-6)
    >>> [(level.name, level.group_size) for level in graph_network(star).levels]
    [('hub', 4)]
    """
    links = read_links(graph)
    nesting = _by_distance(links)
    while True:
        use = _use(links, nesting)
        cuts = (
            Cuts.between(links, use.arc_level <= k, use.inside(k - 1), nesting[k])
            for k in range(len(nesting))
        )
        finer = ((k, parts) for k, parts in enumerate(map(separate, cuts)) if parts is not None)
        k, parts = next(finer, (0, None))
        if parts is None:
            break
        child = nesting[k - 1] if k else np.arange(links.devices)
        nesting = (*nesting[:k], numbered(parts[child])[0], *nesting[k:])
    draws = ECMP_DRAWS if routing == "ecmp" else 1
    arc_level = np.minimum(use.arc_level, len(nesting) - 1)
    meshed = meshed_nodes(links)
    scale_up, inside = (None, None) if meshed is None else meshed
    of_fabric = _FABRIC.search(_name(links, use, nesting, 0)) is not None
    alone = of_fabric and not (links.role == NIC).any()
    fields = (links, nesting, arc_level, routing, seed, draws, None, scale_up, inside, bool(alone))
    if forwards is None:
        link_map = GraphLinkMap(*fields)
    else:
        tabled = TabledLinkMap(*fields)
        link_map = replace(tabled, forwarding=forwards(tabled))
    latency = _latencies(links, link_map, len(nesting))
    levels = tuple(_level(links, use, nesting, k, latency[k]) for k in range(len(nesting)))
    return Network(links.devices, levels, link_map, nesting)


def _by_distance(links: Links) -> tuple[IntArray, ...]:
    """Nested groups of devices by single linkage, innermost first; the last is everything."""
    if links.devices == 1:
        return (np.zeros(1, np.int64),)
    size = len(links.elements)
    # Half of what entering either end costs: the same sums, but undirected.
    enter = np.zeros(size)
    enter[links.head] = links.weight - 1.0
    weight = 1.0 + (enter[links.tail] + enter[links.head]) / 2
    matrix = csr_array((weight, (links.tail, links.head)), shape=(size, size))
    near, _, owner = dijkstra(
        matrix, indices=np.arange(links.devices), min_only=True, return_predecessors=True
    )
    a, b = owner[links.tail].astype(np.int64), owner[links.head].astype(np.int64)
    distinct = (a != b) & (a >= 0) & (b >= 0)
    length = (near[links.tail] + weight + near[links.head])[distinct]
    key = a[distinct] * links.devices + b[distinct]
    order = np.lexsort((length, key))
    key, first = np.unique(key[order], return_index=True)
    shape = (links.devices, links.devices)
    tree = minimum_spanning_tree(
        csr_array((length[order][first], np.divmod(key, links.devices)), shape=shape)
    ).tocoo()
    nesting = []
    for limit in np.unique(tree.data):
        some = tree.data <= limit
        joined = csr_array((tree.data[some], (tree.row[some], tree.col[some])), shape=shape)
        nesting.append(numbered(connected_components(joined, directed=False)[1])[0])
    return tuple(nesting)


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """Who crosses what.

    ``arc_level`` (arcs,) is the innermost level whose paths cross an arc, the number of levels
    where none does; ``owner[k]`` (elements,) the group of level ``k`` whose paths alone cross
    an element, else −1.
    """

    arc_level: IntArray
    owner: tuple[IntArray, ...]
    devices: int

    def inside(self, level: int) -> IntArray:
        """Group that an element belongs to, −1 for none; below level 0 a device is its own."""
        if level >= 0:
            return self.owner[level]
        alone = np.full(len(self.owner[0]), -1, np.int64)
        alone[: self.devices] = np.arange(self.devices)
        return alone


def _use(links: Links, nesting: tuple[IntArray, ...]) -> _Use:
    """Follow shortest paths between parts that stand for all that are like them."""
    steps, table = reduced(links, nesting)
    groups = [nesting]
    for step in steps:
        links = step.links
        groups.append(tuple(group[step.stays[: links.devices]] for group in groups[-1]))
    every = tables(links, np.arange(links.devices), TABLE // 4) if table is None else [table]
    use = _followed(links, groups.pop(), every)
    for step, nesting in zip(reversed(steps), reversed(groups), strict=True):
        use = _of_all(use, step, nesting)
    return use


def _of_all(use: _Use, step: Twins, nesting: tuple[IntArray, ...]) -> _Use:
    """Return the use of a graph from that of the smaller one which stands for it.

    What the group of one part owns, groups of like parts own in these.
    """
    element, arc = step.first(step.elements), step.first(step.arcs)
    module, owners = step.elements.module, []
    for small, group in zip(use.owner, nesting, strict=True):
        first, alone = inside_parts(group, module)
        owner = small[np.searchsorted(step.stays, element)]
        moves = (owner >= 0) & (module >= 0) & alone[owner]
        moves &= module[first[owner]] == module[element]
        owner[moves] = group[step.elements.at(first[owner[moves]], module[moves])]
        owners.append(owner)
    return _Use(use.arc_level[np.searchsorted(step.kept_arc, arc)], tuple(owners), len(nesting[0]))


def _followed(links: Links, nesting: tuple[IntArray, ...], tables: Iterable[NextHops]) -> _Use:
    """Follow all shortest paths within every group of every level, target by target."""
    size = len(links.elements)
    arc_level = np.full(len(links.tail), len(nesting))
    lowest = [np.full(size, size, np.int64) for _ in nesting]
    highest = [np.full(size, -1, np.int64) for _ in nesting]
    for table in tables:
        targets = np.flatnonzero(table.column >= 0)
        slot = np.empty(len(targets) * size, np.int64)
        for k in range(len(nesting) - 1, -1, -1):
            group = nesting[k]
            row, device = np.nonzero(group[targets][:, None] == group[None, :])
            seen = np.zeros(len(targets) * size, np.bool_)
            front = row * size + device
            while len(front):
                seen[front] = True
                first, fan = table.start[front], table.start[front + 1] - table.start[front]
                entry, place = runs(first, fan)
                arc = table.arc[place]
                arc_level[arc] = np.minimum(arc_level[arc], k)
                ahead = front[entry] // size * size + links.head[arc]
                ahead = ahead[~seen[ahead]]
                slot[ahead] = np.arange(len(ahead))
                front = ahead[slot[ahead] == np.arange(len(ahead))]  # each once
            row, element = np.divmod(np.flatnonzero(seen), size)
            np.minimum.at(lowest[k], element, group[targets[row]])
            np.maximum.at(highest[k], element, group[targets[row]])
    # Sorted so, every arc stands at the place of its other direction.
    arc_level = np.minimum(arc_level, arc_level[np.lexsort((links.tail, links.head))])
    owner = tuple(np.where(low == high, low, -1) for low, high in zip(lowest, highest, strict=True))
    for inside, group in zip(owner, nesting, strict=True):
        inside[: links.devices] = group  # also of devices that forward for others
    return _Use(arc_level, owner, links.devices)


def _latencies(links: Links, link_map: GraphLinkMap, levels: int) -> FloatArray:
    """Largest latency between devices that meet at each level, shape (levels,).

    From every device to at most 1,024 targets, evenly chosen; to fewer in larger graphs.
    """
    worst = np.zeros(levels)
    every = np.arange(links.devices)
    # So many that one table of next hops serves them all.
    targets = max(1, min(links.devices, TARGETS, TABLE // len(links.elements) // 8))
    chosen = np.unique(np.linspace(0, links.devices - 1, targets, dtype=int))
    for some in np.array_split(chosen, max(1, len(chosen) * links.devices // TABLE)):
        source, target = np.tile(every, len(some)), np.repeat(some, links.devices)
        met = link_map.level(source, target)
        distinct = met >= 0
        np.maximum.at(worst, met[distinct], link_map.latency_s(source[distinct], target[distinct]))
    return worst


def _level(
    links: Links, use: _Use, nesting: tuple[IntArray, ...], k: int, latency_s: float
) -> Level:
    """Return what people read of a level: its largest group and its worst child."""
    inside = use.inside(k - 1)
    beyond = (inside[links.tail] < 0) & (inside[links.head] < 0)
    climbs = (use.arc_level <= k) | (beyond & (use.arc_level < len(nesting)))
    cuts = Cuts.between(links, climbs, inside, np.zeros(links.devices, np.int64))
    group = np.zeros(len(cuts.size), np.int64)
    group[inside[: links.devices]] = nesting[k]
    uplinks = np.where(np.bincount(group)[group] > 1, cuts.uplinks_Bps(), np.inf)
    child = int(np.argmin(uplinks / cuts.size))
    capacity = float(uplinks[child])
    if not np.isfinite(capacity):  # one device alone: what it could send
        capacity = float(links.capacity_Bps.sum()) / 2 or 1.0
    leaves = (inside[links.tail] == child) & (inside[links.head] != child) & climbs
    rates = np.unique(links.bandwidth_Bps[leaves])
    count = capacity / rates[0] if len(rates) == 1 else 1.0
    if abs(count - round(count)) > 1e-9 * count:
        count = 1.0
    return Level(
        name=_name(links, use, nesting, k),
        kind="nested",
        group_size=int(np.bincount(nesting[k]).max()),
        groups=int(nesting[k].max()) + 1,
        links=round(count),
        link_bandwidth_Bps=capacity / round(count),
        latency_s=float(latency_s),
        child_size=int(cuts.size[child]),
    )


def _name(links: Links, use: _Use, nesting: tuple[IntArray, ...], k: int) -> str:
    """Return the word in the names of switches new at a level that most of its devices share.

    Of several that of the switches farthest from devices: a group may have its leaves and the
    spines between them. A node is called so, not after its hosts. Above nodes tiers of switches
    without such a word are leaf, spine and core; what nothing new joins has its number.
    """
    size = len(links.elements)
    arcs = csr_array((np.ones(len(links.tail)), (links.tail, links.head)), shape=(size, size))
    away = dijkstra(arcs, indices=np.arange(links.devices), unweighted=True, min_only=True)
    names = [""]
    for level, within in enumerate(use.owner[: k + 1]):
        inner = use.owner[0] if level else np.full_like(within, -1)
        fresh: dict[int, dict[str, float]] = {}
        for index in np.flatnonzero((within >= 0) & (inner < 0) & (links.role == SWITCH)):
            new_words = _words(links.elements[index])
            if new_words and not {*names} & {*new_words}:
                in_group = fresh.setdefault(int(within[index]), {})
                in_group |= {word: max(away[index], in_group.get(word, 0.0)) for word in new_words}
        devices = np.bincount(nesting[level])[list(fresh)].tolist()
        shares = summed(
            (word, count)
            for count, in_group in zip(devices, fresh.values(), strict=True)
            for word in in_group
        )
        last = dict(pair for in_group in fresh.values() for pair in in_group.items())
        most = (word for word, share in shares.items() if 2 * share > sum(devices))
        name = max(most, key=lambda word: (shares[word], last[word]), default="")
        of_inner = (within[links.tail] >= 0) & (links.role[links.tail] == SWITCH)
        is_host = _HOST.match(name) or (links.role[links.head[of_inner]] == DEVICE).all()
        if not level and len(nesting) > 1 and (not name or is_host):
            # Devices that a bridge joins are fewer than hang together without NICs.
            nodes = len(np.unique(links.node()[: links.devices]))
            name = "node" if nodes in (1, len(np.unique(nesting[0]))) else "island"
        new = links.role[(within >= 0) & (use.owner[max(level - 1, 0)] < 0)] == SWITCH
        roles = ROLES[level - 1 : level] if names[1:2] == ["node"] and new.any() else ()
        names.append(name or next((role for role in roles if role not in names), ""))
    return names[-1] or f"level {k}"


def _words(element: object) -> list[str]:
    """Return the words in a name: IBLEAF in A09-P1-IBLEAF-04; initials and numbers are none."""
    return (
        [part for part in element if isinstance(part, str)][:1]
        if isinstance(element, tuple)
        else re.findall(r"[^\W\d_]{3,}", str(element))
    )
