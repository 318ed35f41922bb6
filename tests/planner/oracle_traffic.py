"""What communication costs the stages of a plan, over concrete devices.

The first half of the oracle (``oracle.py``): every rank gets a device number, groups and transfers
are lists of those numbers, flows are counted group by group in dictionaries. Written from the
words of docs/method.md; imports nothing of the product and calls none of its functions: fabric and
curves are read by their field names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

from oracle_seatings import seatings

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
"""Columns of a curve's tables."""

Time = list[tuple[float, float]]
"""alpha, beta of every regime: x bytes take the least alpha + beta x."""

Flow = tuple[int, int, int, float, int]
"""Group, sender, receiver, bytes per byte of buffer, steps."""

Child = tuple[int, ...]
"""A child's address: numbers from the outermost level down to its own."""


class Choice(NamedTuple):
    """An outer point, field by field like the planner's."""

    tp: int
    sp: bool
    dp: int
    pp: int
    micro_batch: int
    zero: int
    order: tuple[str, ...]
    device_order: str = "natural"
    cp: int = 1
    ep: int = 1
    schedule: str = "1f1b"
    interleave: int = 1
    etp: int = 0
    zero_group: int = 0

    @property
    def copies(self) -> int:
        """How often all that ZeRO shards exists: groups side by side shard it anew."""
        return self.dp * self.cp // self.zero_group if self.zero_group else 1

    @property
    def expert_tensor(self) -> int:
        """Ranks that share an expert's width."""
        return self.etp or self.tp

    @property
    def width(self) -> int:
        """Devices of a stage of one replica."""
        return self.tp * self.cp

    @property
    def devices(self) -> int:
        """Devices that work."""
        return self.width * self.dp * self.pp


class Protocol(NamedTuple):
    """What a library adds to the links: seconds once and per step, parts of their bandwidth."""

    base_s: float = 0.0
    step_inside_s: float = 0.0
    step_outside_s: float = 0.0
    inside: float = 1.0
    outside: float = 1.0
    steps_inside: float | None = None


def opened(curve: Any, op: str, ranks: int, nodes: int) -> list[Protocol]:
    """Regimes of a curve: what each starts with, its own steps in a node, and what it reaches.

    A rank's own n-th crosses no link but is copied; in-network reduction moves 1 + 1/n of a
    message where a ring moves 2 (n - 1)/n, in two steps.
    """
    column = OPS.index(op)
    ring = {"all_reduce": 2 * (ranks - 1), "all_to_all": 1}.get(op, ranks - 1)
    switches = op == "all_reduce" and nodes == 1 and curve.in_network_from is not None
    found = []
    for regime in curve.regimes:
        reached = regime.efficiency[column]
        if regime.algorithm != "in_network":
            reached, steps = reached / (1 + curve.own_block[column] / (ranks - 1)), ring
        elif switches and ranks >= curve.in_network_from:
            reached, steps = reached * 2 * (ranks - 1) / (ranks + 1), 2
        else:
            continue
        found.append(Protocol(regime.base_s[column], regime.step_s, 0.0, reached, 1.0, steps))
    return found


def protocols(software: Any, op: str, ranks: int, nodes: int) -> list[Protocol]:
    """How a library may do a collective, or half an all-reduce, in a group on so many nodes.

    Between nodes the network's curve counts, and inside them the fastest that the node's reaches;
    a group that straddles nodes unevenly counts as one on more of them.
    """
    parts = 2 if op == "all_reduce" else 1
    if nodes == 1:
        if software.inside is None:
            return [Protocol()]
        return [
            one._replace(base_s=one.base_s / parts, steps_inside=one.steps_inside / parts)
            for one in opened(software.inside, op, ranks, 1)
        ]
    if software.between is None:
        return [Protocol()]
    nodes = next(number for number in range(nodes, ranks + 1) if ranks % number == 0)
    step, reached = 0.0, 1.0
    if software.inside is not None:
        node = opened(software.inside, op, ranks, nodes)
        step, reached = min(one.step_inside_s for one in node), max(one.inside for one in node)
    return [
        Protocol(
            one.base_s / parts, step, one.step_inside_s, reached, one.inside, ranks // nodes - 1
        )
        for one in opened(software.between, op, ranks, nodes)
    ]


class LinkMap:
    """Devices at the leaves of a tree; every child, or every device, hangs on one link."""

    def __init__(self, tiers: Sequence[Any], missing: Sequence[str] = ()) -> None:
        self.levels = range(len(tiers))
        sizes = [tier.group_size for tier in reversed(tiers)]
        gone = {f"device {number}" for number in range(math.prod(sizes))} & set(missing)
        self.address = [
            place
            for number, place in enumerate(product(*(range(size) for size in sizes)))
            if f"device {number}" not in gone
        ]
        self.seatings = seatings(self.address, [tier.name for tier in tiers])
        self.latency = [tier.latency_s for tier in tiers]
        self.link = [tier.bandwidth_Bps / tier.oversubscription for tier in tiers]
        self.own = [tier.uplink_per == "device" for tier in tiers]

    def numbered(self, order: str) -> list[int]:
        """The devices that carry ranks 0, 1, 2, …: node by node, or slot by slot of a rack."""
        devices = list(range(len(self.address)))
        if order in self.seatings:
            seats = self.seatings[order]
            return seats + [device for device in devices if device not in seats]
        if order == "rail" and len(self.levels) > 1:
            places = [(*racks, slot, node) for *racks, node, slot in self.address]
            devices.sort(key=lambda device: places[device])
        return devices

    def child(self, level: int, device: int) -> Child:
        """The child of a level that holds a device; below level 0 it is the device."""
        return self.address[device][: len(self.levels) - level]

    def port(self, level: int, device: int) -> Child:
        """Who owns the uplink that the device's traffic into a level takes."""
        return self.address[device] if self.own[level] else self.child(level, device)

    def block(self, level: int, device: int) -> Child:
        """The group of a level that holds a device."""
        return self.child(level, device)[:-1]

    def path(self, meeting: int) -> range:
        """The levels whose uplinks a flow takes: from the outermost port that a device owns on."""
        owned = [level for level in range(meeting + 1) if self.own[level]]
        return range(owned[-1] if owned else 0, meeting + 1)

    def meeting(self, a: int, b: int) -> int:
        """The innermost level whose group holds both."""
        return next(at for at in self.levels if self.block(at, a) == self.block(at, b))


def at_once(
    link_map: LinkMap, flows: Sequence[Flow], protocol: Protocol, owners: int
) -> list[list[float]]:
    """Alpha and beta of every group while all flows run."""
    load: Counter[tuple[str, int, Child]] = Counter()
    for _, sender, receiver, volume, _ in flows:
        for level in link_map.path(link_map.meeting(sender, receiver)):
            load["out", level, link_map.port(level, sender)] += volume
            load["in", level, link_map.port(level, receiver)] += volume
    result = [[0.0, 0.0] for _ in range(owners)]
    for group, sender, receiver, _, steps in flows:
        meeting = link_map.meeting(sender, receiver)
        added = protocol.step_outside_s if meeting else protocol.step_inside_s
        if protocol.steps_inside is not None and not meeting:
            steps = protocol.steps_inside
        slowest = max(
            max(
                load["out", level, link_map.port(level, sender)],
                load["in", level, link_map.port(level, receiver)],
            )
            / link_map.link[level]
            / (protocol.outside if level else protocol.inside)
            for level in link_map.path(meeting)
        )
        times = result[group]
        times[0] = max(times[0], steps * (link_map.latency[meeting] + added))
        times[1] = max(times[1], slowest)
    return result


def in_turn(
    link_map: LinkMap, phases: Sequence[Sequence[Flow]], protocol: Protocol, owners: int
) -> list[tuple[float, float]]:
    """Alpha and beta of every group after phases that follow one another."""
    total = [[protocol.base_s, 0.0] for _ in range(owners)]
    for flows in phases:
        for times, (alpha, beta) in zip(
            total, at_once(link_map, flows, protocol, owners), strict=True
        ):
            times[0] += alpha
            times[1] += beta
    return [(alpha, beta) for alpha, beta in total]


def in_chunks(
    link_map: LinkMap, phases: Sequence[Sequence[Flow]], protocol: Protocol, owners: int
) -> list[tuple[float, float]]:
    """The same where chunks follow one another: all phases send at once, their starts add up."""
    starts = in_turn(link_map, phases, protocol, owners)
    every = at_once(link_map, [flow for flows in phases for flow in flows], protocol, owners)
    return [(alpha, beta) for (alpha, _), (_, beta) in zip(starts, every, strict=True)]


def transfer_times(
    link_map: LinkMap, transfers: Sequence[tuple[int, int]], offered: Sequence[Protocol]
) -> list[Time]:
    """Point-to-point transfers that all run at once."""
    flows = [(number, a, b, 1.0, 1) for number, (a, b) in enumerate(transfers)]
    regimes = [in_turn(link_map, [flows], protocol, len(flows)) for protocol in offered]
    return [list(times) for times in zip(*regimes, strict=True)]


def one_ring(groups: Sequence[Sequence[int]]) -> list[list[Flow]]:
    """Every member passes n-ths of the buffer to the next, n - 1 times."""
    return [
        [
            (number, a, group[(at + 1) % len(group)], (len(group) - 1) / len(group), len(group) - 1)
            for number, group in enumerate(groups)
            for at, a in enumerate(group)
        ]
    ]


def rails(link_map: LinkMap, groups: Sequence[Sequence[int]]) -> list[list[Flow]]:
    """A ring per member that a node has, on its part: inside nodes, and at once between them.

    Where nodes hold unequally many members, or one has all or each one, or groups differ, there is
    one ring only.
    """
    seated = [sorted(group, key=lambda one: (link_map.block(0, one), one)) for group in groups]
    n = len(groups[0])
    at_nodes = {
        tuple(
            at
            for at in range(1, n)
            if link_map.block(0, group[at]) != link_map.block(0, group[at - 1])
        )
        for group in seated
    }
    cuts = list(min(at_nodes)) if len(at_nodes) == 1 else []
    held = cuts[0] if cuts else n
    if held in (1, n) or n % held or cuts != list(range(held, n, held)):
        return one_ring(groups)
    part, inside, between = (n - 1) / n / held, [], []
    for number, group in enumerate(seated):
        for at, device in enumerate(group):
            first = at - at % held
            neighbour = group[first + (at + 1) % held]
            inside.append((number, device, neighbour, part * (held - 1), n - n // held))
            between.append((number, device, group[(at + held) % n], part, n // held - 1))
    return [inside, between]


def by_level(link_map: LinkMap, groups: Sequence[Sequence[int]]) -> list[list[Flow]]:
    """Members that hold the same shard in neighbouring children exchange, level by level."""
    phases: list[list[Flow]] = []
    shard = [1.0] * len(groups)
    for level in link_map.levels:
        phase: list[Flow] = []
        for number, group in enumerate(groups):
            blocks: dict[Child, dict[Child, list[int]]] = {}
            for device in sorted(group):
                children = blocks.setdefault(link_map.block(level, device), {})
                children.setdefault(link_map.child(level, device), []).append(device)
            most = max(len(children) for children in blocks.values())
            volume = (most - 1) / most * shard[number]
            for children in blocks.values():
                ring = list(children.values())
                for at, members in enumerate(ring):
                    following = ring[(at + 1) % len(ring)]
                    for ordinal, device in enumerate(members):
                        target = following[ordinal % len(following)]
                        if len(ring) > 1:
                            steps = math.ceil(math.log2(most))
                            phase.append((number, device, target, volume, steps))
            shard[number] /= min(len(children) for children in blocks.values())
        phases.append(phase)
    return phases


def nodes_of(link_map: LinkMap, groups: Sequence[Sequence[int]]) -> int:
    """The most innermost blocks that any of the groups spans."""
    return max(len({link_map.block(0, device) for device in group}) for group in groups)


def half_times(
    link_map: LinkMap, groups: Sequence[Sequence[int]], software: Any, op: str
) -> list[Time]:
    """A reduce-scatter (or an all-gather) in every group, all at once, every way to do it."""
    if len(groups[0]) == 1:
        return [[(0.0, 0.0)] for _ in groups]
    offered = protocols(software, op, len(groups[0]), nodes_of(link_map, groups))
    regimes = [
        run(link_map, phases, protocol, len(groups))
        for run, phases in (
            (in_turn, one_ring(groups)),
            (in_chunks, rails(link_map, groups)),
            (in_turn, by_level(link_map, groups)),
        )
        for protocol in offered
    ]
    return [list(times) for times in zip(*regimes, strict=True)]


def slowest(times: Sequence[Time]) -> Time:
    """Per regime the slowest alpha and the slowest beta, which need not be one group's."""
    return [
        (max(alpha for alpha, _ in regime), max(beta for _, beta in regime))
        for regime in zip(*times, strict=True)
    ]


def seconds(time: Time, size: float) -> float:
    """A message of ``size`` bytes in its best regime."""
    return min(alpha + beta * size for alpha, beta in time)


def ring_times(link_map: LinkMap, groups: Sequence[Sequence[int]], software: Any) -> list[Time]:
    """An n-th of the buffer to the next member, n - 1 times one after another."""
    n = len(groups[0])
    flows = [
        (number, a, group[(at + 1) % n], 1 / n, 1)
        for number, group in enumerate(groups)
        for at, a in enumerate(group)
    ]
    offered = protocols(software, "all_to_all", 2, min(2, nodes_of(link_map, groups)))
    regimes = [in_turn(link_map, [flows], protocol, len(groups)) for protocol in offered]
    return [[((n - 1) * a, (n - 1) * b) for a, b in times] for times in zip(*regimes, strict=True)]


def exchange_times(link_map: LinkMap, groups: Sequence[Sequence[int]], software: Any) -> list[Time]:
    """An n-th of the buffer to every other member, all at once."""
    n = len(groups[0])
    flows = [
        (number, a, b, 1 / n, 1)
        for number, group in enumerate(groups)
        for a, b in permutations(group, 2)
    ]
    offered = protocols(software, "all_to_all", n, nodes_of(link_map, groups))
    regimes = [in_turn(link_map, [flows], protocol, len(groups)) for protocol in offered]
    return [list(times) for times in zip(*regimes, strict=True)]


@cache
def chosen(dispatch: Any, block: int) -> float:
    """The part of all that tokens may choose in which one of the first experts is."""
    each = dispatch.experts // dispatch.groups
    ways = [
        min(picked) < block
        for groups in combinations(range(dispatch.groups), dispatch.top_groups)
        for picked in combinations(
            [group * each + at for group in groups for at in range(each)], dispatch.top_k
        )
    ]
    return sum(ways) / len(ways)


def dispatch_times(
    link_map: LinkMap, groups: Sequence[Sequence[int]], software: Any, dispatch: Any
) -> list[Time]:
    """One copy of every token to each node that wants it, handed on there to who wants it."""
    n = len(groups[0])

    def copies(ranks: int) -> float:
        return chosen(dispatch, ranks * dispatch.experts // n) / dispatch.top_k

    between: list[Flow] = []
    inside: list[Flow] = []
    for number, group in enumerate(groups):
        nodes: dict[Child, list[int]] = {}
        for device in group:
            nodes.setdefault(link_map.block(0, device), []).append(device)
        for home, members in nodes.items():
            for slot, device in enumerate(members):
                for node, others in nodes.items():
                    relay = device if node == home else others[slot % len(others)]
                    if node != home:
                        between.append((number, device, relay, copies(len(others)), 1))
                    inside += [
                        (number, relay, other, copies(1), 1) for other in others if other != relay
                    ]
    offered = protocols(software, "all_to_all", n, nodes_of(link_map, groups))
    regimes = [in_chunks(link_map, [between, inside], one, len(groups)) for one in offered]
    return [list(times) for times in zip(*regimes, strict=True)]


Place = tuple[int, int, int, int]
"""Stage, data-parallel, context-parallel and tensor-parallel rank."""


def place(link_map: LinkMap, choice: Choice) -> dict[Place, int]:
    """Device of every rank, handed out one by one in the device order."""
    sizes = {"tp": choice.tp, "cp": choice.cp, "dp": choice.dp, "pp": choice.pp}
    outermost_first = list(reversed(choice.order))
    rank_mapping = {}
    ranks = product(*(range(sizes[axis]) for axis in outermost_first))
    for device, numbers in zip(link_map.numbered(choice.device_order), ranks, strict=False):
        rank = dict(zip(outermost_first, numbers, strict=True))
        rank_mapping[rank["pp"], rank["dp"], rank["cp"], rank["tp"]] = device
    return rank_mapping


class Traffic:
    """What communication costs each stage position of one layout, counted when it is asked for."""

    def __init__(
        self, link_map: LinkMap, choice: Choice, software: Any, dispatch: Any = None
    ) -> None:
        self.link_map, self.choice, self.software = link_map, choice, software
        self.dispatch = dispatch
        self.rank_mapping = place(link_map, choice)
        self.stages, self.ranks = range(choice.pp), range(choice.tp)
        inner_first = [axis for axis in choice.order if axis in ("dp", "cp")]
        pairs = list(product(range(choice.dp), range(choice.cp)))
        outer, inner = (("dp", "cp").index(axis) for axis in reversed(inner_first))
        self.sharers = sorted(pairs, key=lambda pair: (pair[outer], pair[inner]))
        self.links = self._links()
        self._found: dict[tuple[str, str, int], list[Time]] = {}

    def groups(self, axis: str, copies: int = 1) -> dict[int, list[list[int]]]:
        """The groups of an axis, stage by stage; those that share weights in parts side by side.

        "data between" and "expert_data between" are ranks with one place in all of the parts.
        """
        choice, rank_mapping, near = self.choice, self.rank_mapping, self.sharers
        # For experts the ranks of a stage are counted anew: those that share an expert's width
        # side by side, next to them those with the other experts, then the copies of all that.
        flat = [(d, c, t) for d, c in near for t in self.ranks]
        wide, many = choice.expert_tensor, choice.ep
        cells = [flat[at : at + wide * many] for at in range(0, len(flat), wide * many)]
        rows = {
            "tp": [[(d, c, t) for t in self.ranks] for d, c in near],
            "cp": [
                [(d, c, t) for c in range(choice.cp)] for d in range(choice.dp) for t in self.ranks
            ],
            "etp": [cell[at : at + wide] for cell in cells for at in range(0, len(cell), wide)],
            "ep": [cell[part::wide] for cell in cells for part in range(wide)],
            "data": [[(d, c, t) for d, c in near] for t in self.ranks],
            "expert_data": [[cell[place] for cell in cells] for place in range(wide * many)],
        }[axis.removesuffix(" between")]
        if axis.endswith("between"):
            rows = [
                row[at :: len(row) // copies] for row in rows for at in range(len(row) // copies)
            ]
        elif copies > 1:
            size = len(rows[0]) // copies
            rows = [row[at : at + size] for row in rows for at in range(0, len(row), size)]
        return {
            s: [[rank_mapping[s, d, c, t] for d, c, t in row] for row in rows] for s in self.stages
        }

    def time(self, axis: str, kind: str, copies: int = 1) -> list[Time]:
        """By stage, what a call of a kind takes while the groups of all stages run."""
        if (axis, kind, copies) not in self._found:
            groups = self.groups(axis, copies)
            everyone = [group for stage in self.stages for group in groups[stage]]
            times = iter(self._at_once(everyone, kind))
            self._found[axis, kind, copies] = [
                slowest([next(times) for _ in groups[stage]]) for stage in self.stages
            ]
        return self._found[axis, kind, copies]

    def _at_once(self, groups: Sequence[Sequence[int]], kind: str) -> list[Time]:
        if len(groups[0]) == 1:
            return [[(0.0, 0.0)] for _ in groups]
        if kind == "ring":
            return ring_times(self.link_map, groups, self.software)
        if kind == "all_to_all" and self.dispatch is not None:
            return dispatch_times(self.link_map, groups, self.software, self.dispatch)
        if kind == "all_to_all":
            return exchange_times(self.link_map, groups, self.software)
        op = {"all_reduce": "all_reduce", "reduce_scatter": "reduce_scatter"}[kind]
        return half_times(self.link_map, groups, self.software, op)

    def _pairs(self) -> list[tuple[int, int, int]]:
        """Receiving stage, sender and receiver of every pipeline transfer."""
        if self.choice.pp == 1:
            return []
        around = self.choice.schedule in ("interleaved", "interleaved_zb")
        into = self.stages if around else self.stages[1:]
        return [
            (s, self.rank_mapping[(s - 1) % self.choice.pp, d, c, t], self.rank_mapping[s, d, c, t])
            for s in into
            for d, c in self.sharers
            for t in self.ranks
        ]

    def _links(self) -> dict[int, Time]:
        """By receiving stage; the first has one when the last stage feeds it."""
        pairs = self._pairs()
        if not pairs:
            return {}
        transfers = [(a, b) for _, a, b in pairs]
        nodes = min(2, nodes_of(self.link_map, transfers))
        offered = protocols(self.software, "all_to_all", 2, nodes)
        timed = transfer_times(self.link_map, transfers, offered)
        by_stage: dict[int, list[Time]] = {}
        for (stage, _, _), time in zip(pairs, timed, strict=True):
            by_stage.setdefault(stage, []).append(time)
        return {stage: slowest(times) for stage, times in by_stage.items()}

    @cached_property
    def tied(self) -> Time:
        """Half an all-reduce between the first and the last stage, all pairs at once."""
        last = self.choice.pp - 1
        ends = [
            [self.rank_mapping[0, d, c, t], self.rank_mapping[last, d, c, t]]
            for d, c in self.sharers
            for t in self.ranks
        ]
        return slowest(half_times(self.link_map, ends, self.software, "all_reduce"))

    @property
    def highest(self) -> int:
        """The outermost level that any group or transfer climbs to; -1 without any."""
        talking = [(a, b) for _, a, b in self._pairs()]
        for axis in ("tp", "data"):
            for groups in self.groups(axis).values():
                talking += [pair for group in groups for pair in combinations(group, 2)]
        return max((self.link_map.meeting(a, b) for a, b in talking), default=-1)
