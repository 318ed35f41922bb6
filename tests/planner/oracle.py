"""The own cost model once more, over concrete devices and plan by plan.

Written from the words of docs/method.md alone: every rank gets a device number, groups and
transfers are lists of those numbers, flows are counted bundle by bundle in dictionaries, and
every cut with every recomputation is priced. Plain Python on purpose; it shares no code, no
table and no shortcut with `nest_core.costs`, `nest_core.network` or `nest_core.planner`, and
imports nothing of them: fabric, problem and space are read by their field names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, permutations, product
from typing import Any, NamedTuple

CHOICES = ("none", "selective", "full")

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

    @property
    def devices(self) -> int:
        """Devices that work."""
        return self.tp * self.cp * self.dp * self.pp


class Stage(NamedTuple):
    """One stage: seconds per micro-batch, seconds once per iteration, bytes per rank."""

    seconds: float
    sync: float
    memory: float


class Found(NamedTuple):
    """The best plan of a point that fits."""

    seconds: float
    choice: Choice
    cuts: tuple[int, ...]
    recompute: tuple[str, ...]


class Priced(NamedTuple):
    """A plan's iteration time and its stages."""

    seconds: float
    stages: tuple[Stage, ...]


Whole = tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...], tuple[float, ...]]
"""A plan: cuts, and recomputation, load and synchronisation stage by stage."""


class Wires:
    """Devices at the leaves of a tree; every child, or every device, hangs on one link."""

    def __init__(self, tiers: Sequence[Any]) -> None:
        self.levels = range(len(tiers))
        sizes = [tier.group_size for tier in reversed(tiers)]
        self.address = list(product(*(range(size) for size in sizes)))
        self.latency = [tier.latency_s for tier in tiers]
        self.link = [tier.bandwidth_Bps / tier.oversubscription for tier in tiers]
        self.own = [tier.uplink_per == "device" for tier in tiers]

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


def at_once(wires: Wires, flows: Sequence[Flow], protocol: Any, owners: int) -> list[list[float]]:
    """Alpha and beta of every group while all flows run."""
    load: Counter[tuple[str, int, Child]] = Counter()
    for _, sender, receiver, volume, _ in flows:
        for level in wires.path(wires.meeting(sender, receiver)):
            load["out", level, wires.port(level, sender)] += volume
            load["in", level, wires.port(level, receiver)] += volume
    result = [[0.0, 0.0] for _ in range(owners)]
    for group, sender, receiver, _, steps in flows:
        meeting = wires.meeting(sender, receiver)
        added = protocol.step_outside_s if meeting else protocol.step_inside_s
        if protocol.steps_inside is not None and not meeting:
            steps = protocol.steps_inside
        slowest = max(
            max(
                load["out", level, wires.port(level, sender)],
                load["in", level, wires.port(level, receiver)],
            )
            / wires.link[level]
            / (protocol.outside if level else protocol.inside)
            for level in wires.path(meeting)
        )
        times = result[group]
        times[0] = max(times[0], steps * (wires.latency[meeting] + added))
        times[1] = max(times[1], slowest)
    return result


def in_turn(
    wires: Wires, phases: Sequence[Sequence[Flow]], protocol: Any, owners: int
) -> list[tuple[float, float]]:
    """Alpha and beta of every group after phases that follow one another."""
    total = [[protocol.base_s, 0.0] for _ in range(owners)]
    for flows in phases:
        for times, (alpha, beta) in zip(
            total, at_once(wires, flows, protocol, owners), strict=True
        ):
            times[0] += alpha
            times[1] += beta
    return [(alpha, beta) for alpha, beta in total]


def transfer_times(
    wires: Wires, transfers: Sequence[tuple[int, int]], protocols: Sequence[Any]
) -> list[Time]:
    """Point-to-point transfers that all run at once."""
    flows = [(number, a, b, 1.0, 1) for number, (a, b) in enumerate(transfers)]
    regimes = [in_turn(wires, [flows], protocol, len(flows)) for protocol in protocols]
    return [list(times) for times in zip(*regimes, strict=True)]


def one_ring(groups: Sequence[Sequence[int]]) -> list[list[Flow]]:
    """Every member passes n-ths of the buffer to the next, n - 1 times."""
    return [[
        (number, a, group[(at + 1) % len(group)], (len(group) - 1) / len(group), len(group) - 1)
        for number, group in enumerate(groups)
        for at, a in enumerate(group)
    ]]  # fmt: skip


def by_level(wires: Wires, groups: Sequence[Sequence[int]]) -> list[list[Flow]]:
    """Members that hold the same shard in neighbouring children exchange, level by level."""
    phases: list[list[Flow]] = []
    shard = [1.0] * len(groups)
    for level in wires.levels:
        phase: list[Flow] = []
        for number, group in enumerate(groups):
            blocks: dict[Child, dict[Child, list[int]]] = {}
            for device in sorted(group):
                children = blocks.setdefault(wires.block(level, device), {})
                children.setdefault(wires.child(level, device), []).append(device)
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


def nodes_of(wires: Wires, groups: Sequence[Sequence[int]]) -> int:
    """The most innermost blocks that any of the groups spans."""
    return max(len({wires.block(0, device) for device in group}) for group in groups)


def half_times(wires: Wires, groups: Sequence[Sequence[int]], software: Any, op: str) -> list[Time]:
    """A reduce-scatter (or an all-gather) in every group, all at once, both ways to do it."""
    if len(groups[0]) == 1:
        return [[(0.0, 0.0)] for _ in groups]
    protocols = software.halves(op, len(groups[0]), nodes_of(wires, groups))
    regimes = [
        in_turn(wires, phases, protocol, len(groups))
        for phases in (one_ring(groups), by_level(wires, groups))
        for protocol in protocols
    ]
    return [list(times) for times in zip(*regimes, strict=True)]


def _slowest(times: Sequence[Time]) -> Time:
    """Per regime the slowest alpha and the slowest beta, which need not be one group's."""
    return [
        (max(alpha for alpha, _ in regime), max(beta for _, beta in regime))
        for regime in zip(*times, strict=True)
    ]


def seconds(time: Time, size: float) -> float:
    """A message of ``size`` bytes in its best regime."""
    return min(alpha + beta * size for alpha, beta in time)


def ring_times(wires: Wires, groups: Sequence[Sequence[int]], software: Any) -> list[Time]:
    """An n-th of the buffer to the next member, n - 1 times one after another."""
    n = len(groups[0])
    flows = [
        (number, a, group[(at + 1) % n], 1 / n, 1)
        for number, group in enumerate(groups)
        for at, a in enumerate(group)
    ]
    protocols = software.transfers(nodes_of(wires, groups) > 1)
    regimes = [in_turn(wires, [flows], protocol, len(groups)) for protocol in protocols]
    return [[((n - 1) * a, (n - 1) * b) for a, b in times] for times in zip(*regimes, strict=True)]


def exchange_times(wires: Wires, groups: Sequence[Sequence[int]], software: Any) -> list[Time]:
    """An n-th of the buffer to every other member, all at once."""
    n = len(groups[0])
    flows = [
        (number, a, b, 1 / n, 1)
        for number, group in enumerate(groups)
        for a, b in permutations(group, 2)
    ]
    protocols = software.halves("all_to_all", n, nodes_of(wires, groups))
    regimes = [in_turn(wires, [flows], protocol, len(groups)) for protocol in protocols]
    return [list(times) for times in zip(*regimes, strict=True)]


Seat = tuple[int, int, int, int]
"""Stage, data-parallel, context-parallel and tensor-parallel rank."""


def place(choice: Choice) -> dict[Seat, int]:
    """Device of every rank, handed out one by one from 0."""
    sizes = {"tp": choice.tp, "cp": choice.cp, "dp": choice.dp, "pp": choice.pp}
    outermost_first = list(reversed(choice.order))
    seats = {}
    for device, numbers in enumerate(product(*(range(sizes[axis]) for axis in outermost_first))):
        rank = dict(zip(outermost_first, numbers, strict=True))
        seats[rank["pp"], rank["dp"], rank["cp"], rank["tp"]] = device
    return seats


class Traffic:
    """What communication costs each stage position of one layout, counted when it is asked for."""

    def __init__(self, wires: Wires, choice: Choice, software: Any) -> None:
        self.wires, self.choice, self.software = wires, choice, software
        self.seats = place(choice)
        self.stages, self.ranks = range(choice.pp), range(choice.tp)
        inner_first = [axis for axis in choice.order if axis in ("dp", "cp")]
        pairs = list(product(range(choice.dp), range(choice.cp)))
        outer, inner = (("dp", "cp").index(axis) for axis in reversed(inner_first))
        self.sharers = sorted(pairs, key=lambda pair: (pair[outer], pair[inner]))
        self.links = self._links()
        self._found: dict[tuple[str, str], list[Time]] = {}

    def groups(self, axis: str) -> dict[int, list[list[int]]]:
        """The groups of an axis, stage by stage."""
        choice, seats, near = self.choice, self.seats, self.sharers
        cells = [near[at : at + choice.ep] for at in range(0, len(near), choice.ep)]
        rows = {
            "tp": [[(d, c, t) for t in self.ranks] for d, c in near],
            "cp": [
                [(d, c, t) for c in range(choice.cp)] for d in range(choice.dp) for t in self.ranks
            ],
            "ep": [[(d, c, t) for d, c in cell] for cell in cells for t in self.ranks],
            "data": [[(d, c, t) for d, c in near] for t in self.ranks],
            "expert_data": [
                [(*cell[place], t) for cell in cells]
                for place in range(choice.ep)
                for t in self.ranks
            ],
        }[axis]
        return {s: [[seats[s, d, c, t] for d, c, t in row] for row in rows] for s in self.stages}

    def time(self, axis: str, kind: str) -> list[Time]:
        """By stage, what a call of a kind takes while the groups of all stages run."""
        if (axis, kind) not in self._found:
            groups = self.groups(axis)
            everyone = [group for stage in self.stages for group in groups[stage]]
            times = iter(self._at_once(everyone, kind))
            self._found[axis, kind] = [
                _slowest([next(times) for _ in groups[stage]]) for stage in self.stages
            ]
        return self._found[axis, kind]

    def _at_once(self, groups: Sequence[Sequence[int]], kind: str) -> list[Time]:
        if len(groups[0]) == 1:
            return [[(0.0, 0.0)] for _ in groups]
        if kind == "ring":
            return ring_times(self.wires, groups, self.software)
        if kind == "all_to_all":
            return exchange_times(self.wires, groups, self.software)
        op = {"reduce": "all_reduce", "halves": "reduce_scatter"}[kind]
        return half_times(self.wires, groups, self.software, op)

    def _pairs(self) -> list[tuple[int, int, int]]:
        """Receiving stage, sender and receiver of every pipeline transfer."""
        if self.choice.pp == 1:
            return []
        into = self.stages if self.choice.interleave > 1 else self.stages[1:]
        return [
            (s, self.seats[(s - 1) % self.choice.pp, d, c, t], self.seats[s, d, c, t])
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
        protocols = self.software.transfers(nodes_of(self.wires, transfers) > 1)
        timed = transfer_times(self.wires, transfers, protocols)
        by_stage: dict[int, list[Time]] = {}
        for (stage, _, _), time in zip(pairs, timed, strict=True):
            by_stage.setdefault(stage, []).append(time)
        return {stage: _slowest(times) for stage, times in by_stage.items()}

    @cached_property
    def tied(self) -> Time:
        """Half an all-reduce between the first and the last stage, all pairs at once."""
        last = self.choice.pp - 1
        ends = [
            [self.seats[0, d, c, t], self.seats[last, d, c, t]]
            for d, c in self.sharers
            for t in self.ranks
        ]
        return _slowest(half_times(self.wires, ends, self.software, "all_reduce"))

    @property
    def highest(self) -> int:
        """The outermost level that any group or transfer climbs to; -1 without any."""
        talking = [(a, b) for _, a, b in self._pairs()]
        for axis in ("tp", "data"):
            for groups in self.groups(axis).values():
                talking += [pair for group in groups for pair in combinations(group, 2)]
        return max((self.wires.meeting(a, b) for a, b in talking), default=-1)


@dataclass
class Strategy:
    """One layer table as lists."""

    table: Any

    def __post_init__(self) -> None:
        names = ("compute_s", "forward_s", "replay_s", "launch_s", "parameters",
                 "expert_parameters", "kept_bytes", "working_bytes", "boundary_bytes")  # fmt: skip
        self.rows: dict[str, Any] = {name: getattr(self.table, name).tolist() for name in names}
        self.calls = {
            axis: (calls.kind, calls.number.tolist(), calls.bytes.tolist(),
                   calls.replay_number.tolist(), calls.replay_bytes.tolist())
            for axis, calls in self.table.calls.items()
        }  # fmt: skip

    @cached_property
    def untied(self) -> list[float]:
        """Parameters when one stage holds the whole chain and the tied tensor exists once."""
        parameters = list(self.rows["parameters"])
        parameters[-1] -= self.table.tied_parameters
        return parameters

    def parameters(self, pp: int) -> list[float]:
        """Dense parameters layer by layer."""
        return self.untied if pp == 1 else self.rows["parameters"]


Chunks = tuple[tuple[int, int], ...]
"""First layer of each chunk of a stage, and the layer after its last."""


class Pricer:
    """Prices the stages of one outer point."""

    def __init__(self, problem: Any, choice: Choice, traffic: Traffic, strategy: Strategy) -> None:
        self.problem, self.choice = problem, choice
        self.traffic, self.strategy = traffic, strategy
        self.dense = strategy.parameters(choice.pp)
        self.experts = strategy.rows["expert_parameters"]
        self.sharers = choice.dp * choice.cp
        self.expert_sharers = self.sharers // choice.ep
        self.micro_batches = problem.batch // (choice.dp * choice.micro_batch)
        w, g = problem.state.weights, problem.state.gradients
        self.each_micro_batch = ((), (), (g,), (g, w, w))[choice.zero]
        self.once = ((g, g), (g, w), (w,), ())[choice.zero]
        self.whole = (w, w, w + g, w + g + w)[choice.zero]
        self.fetched = w if choice.zero == 3 else 0.0
        self.memo: dict[tuple[int, Chunks, int], Stage] = {}
        self.layers: dict[tuple[int, int, int], float] = {}

    def stage(self, position: int, chunks: Chunks, c: int) -> Stage:
        """Time and memory of one stage, whatever the other cuts are."""
        key = position, chunks, c
        if key not in self.memo:
            self.memo[key] = Stage(
                self._seconds(position, chunks, c),
                self._sync(position, chunks),
                self._memory(position, chunks, c),
            )
        return self.memo[key]

    def _cost(self, time: float, cover: float, share: float) -> float:
        """Exposed communication, and the compute that the hidden part slows down."""
        hidden = share * min(time, cover)
        return time - hidden + self.problem.overlap.slowdown * hidden

    def _inside(self, position: int, layer: int, c: int) -> float:
        total = 0.0
        for axis, (kind, number, size, again, again_size) in self.strategy.calls.items():
            time = self.traffic.time(axis, kind)[position]
            for count, amount in ((number[layer], size[layer]),
                                  (again[c][layer], again_size[c][layer])):  # fmt: skip
                total += count * seconds(time, amount / count) if count else 0.0
        return total

    def _data(self, position: int, layer: int, halves: Sequence[float]) -> float:
        kind = "halves" if self.choice.zero else "reduce"
        buckets = [("data", self.sharers, self.dense[layer]),
                   ("expert_data", self.expert_sharers, self.experts[layer])]  # fmt: skip
        if self.choice.ep == 1:
            buckets = [("data", self.sharers, self.dense[layer] + self.experts[layer])]
        total = 0.0
        for axis, ranks, held in buckets:
            if ranks > 1 and held > 0:
                time = self.traffic.time(axis, kind)[position]
                total += sum(seconds(time, size * held) for size in halves)
        return total

    def _layer(self, position: int, layer: int, c: int) -> float:
        key = position, layer, c
        if key not in self.layers:
            rows, overlap = self.strategy.rows, self.problem.overlap
            compute = rows["compute_s"][layer] + rows["replay_s"][c][layer]
            device = compute + self._cost(self._inside(position, layer, c), compute, overlap.tp)
            sharded = self._data(position, layer, self.each_micro_batch)
            device += self._cost(sharded, compute, overlap.dp)
            host = rows["launch_s"][c][layer]
            self.layers[key] = max(device, host)
        return self.layers[key]

    def _hops(self, position: int, chunks: Chunks) -> float:
        """A chunk waits for activations unless it opens the chain, for gradients unless last."""
        edges, pp = self.strategy.rows["boundary_bytes"], self.choice.pp
        chain = len(edges) - 1
        copies = 1 if self.choice.sp else self.choice.tp  # each sends a part of what all hold
        total = 0.0
        for first, end in chunks:
            for boundary, link in ((first, position), (end, (position + 1) % pp)):
                if 0 < boundary < chain:
                    total += seconds(self.traffic.links[link], edges[boundary] / copies)
                    if copies > 1 and edges[boundary] > 0:
                        gather = self.traffic.time("tp", "halves")[position]
                        total += seconds(gather, edges[boundary])
        return total

    def _seconds(self, position: int, chunks: Chunks, c: int) -> float:
        works = math.fsum(
            self._layer(position, layer, c) for first, end in chunks for layer in range(first, end)
        )
        return works + self._cost(self._hops(position, chunks), works, self.problem.overlap.pp)

    def _sync(self, position: int, chunks: Chunks) -> float:
        choice, state, rows = self.choice, self.problem.state, self.strategy.rows
        total = 0.0
        for layer in (layer for first, end in chunks for layer in range(first, end)):
            for held, ranks in ((self.dense, self.sharers), (self.experts, self.expert_sharers)):
                touched = held[layer] * (2 * state.optimizer + state.gradients + state.weights)
                total += touched / self.problem.update_Bps / (ranks if choice.zero >= 1 else 1)
            backward = rows["compute_s"][layer] - rows["forward_s"][layer]
            sent = self._data(position, layer, self.once)
            total += self._cost(sent, backward, self.problem.overlap.dp)
        tied = self.strategy.table.tied_parameters
        if choice.pp > 1 and tied > 0 and position in (0, choice.pp - 1):
            total += 2 * seconds(self.traffic.tied, tied * state.gradients)
        return total

    def _in_flight(self, position: int) -> float:
        """Micro-batches of this stage whose activations are held."""
        pp, v, m = self.choice.pp, self.choice.interleave, self.micro_batches
        if self.choice.schedule == "gpipe":
            return m
        if self.choice.schedule == "1f1b":
            return min(m, pp - position)
        return min(m * v, 2 * (pp - position - 1) + (v - 1) * pp + 1) / v

    def _memory(self, position: int, chunks: Chunks, c: int) -> float:
        choice, state, rows = self.choice, self.problem.state, self.strategy.rows
        layers = [layer for first, end in chunks for layer in range(first, end)]
        total = stepping = 0.0
        peaks = {layer: rows["working_bytes"][c][layer] for layer in layers}
        for held, whole, ranks in (
            (self.dense, rows["parameters"], self.sharers),
            (self.experts, self.experts, self.expert_sharers),
        ):
            z1, z2, z3 = (ranks if choice.zero >= least else 1 for least in (1, 2, 3))
            states = state.weights / z3 + state.optimizer / z1
            states += (state.gradients + state.own_gradients) / z2
            elements = sum(held[layer] for layer in layers)
            total += elements * states
            stepping += elements * state.temporary / z1
            for layer in layers:
                alone = ranks == 1
                peaks[layer] += (state.weights if alone else self.whole) * whole[layer]
                if layer and not alone:
                    peaks[layer] += self.fetched * whole[layer - 1]
        kept = math.fsum(rows["kept_bytes"][c][layer] for layer in layers)
        passes = self._in_flight(position) * kept + max(peaks.values())
        tensors = total + max(passes, stepping)
        return tensors * (1 + self.problem.fragmentation) + self.problem.reserved_bytes

    def seconds(self, stages: Sequence[Stage]) -> float:
        """Iteration time of the stages of one plan."""
        loads = [stage.seconds for stage in stages]
        slowest, sync = max(loads), max(stage.sync for stage in stages)
        fill = (sum(loads) - slowest) / self.choice.interleave
        return self.micro_batches * slowest + fill + sync


class Oracle:
    """Every plan of a problem over a space, priced.

    Parameters
    ----------
    fabric : nest_core.topology.Hierarchical
        What ``problem.network`` was collapsed from.
    problem : nest_core.costs.Problem
    space : nest_core.planner.SearchSpace
    """

    def __init__(self, fabric: Any, problem: Any, space: Any) -> None:
        self.problem, self.space = problem, space
        self.wires = Wires(fabric.tiers)
        self.devices = len(self.wires.address)
        self._strategies: dict[tuple[int, bool, int, int, int], Strategy] = {}
        self._traffic: dict[tuple[Any, ...], Traffic] = {}
        self.layers = len(self.strategy(1, False, 1).rows["compute_s"])

    def strategy(self, tp: int, sp: bool, micro_batch: int, cp: int = 1, ep: int = 1) -> Strategy:
        """The layer table of one strategy."""
        key = tp, sp, micro_batch, cp, ep
        if key not in self._strategies:
            self._strategies[key] = Strategy(self.problem.table(*key))
        return self._strategies[key]

    def traffic(self, choice: Choice) -> Traffic:
        """What communication costs the stages of a point."""
        key = choice._replace(sp=False, micro_batch=1, zero=0, schedule="")
        if key not in self._traffic:
            self._traffic[key] = Traffic(self.wires, choice, self.problem.software)
        return self._traffic[key]

    def pricer(self, choice: Choice) -> Pricer:
        """Prices stages of a point."""
        strategy = self.strategy(choice.tp, choice.sp, choice.micro_batch, choice.cp, choice.ep)
        return Pricer(self.problem, choice, self.traffic(choice), strategy)

    def choices(self) -> Iterator[Choice]:
        """Every valid point.

        Without data parallelism all ZeRO stages are one, named 0; the order of axes counts
        where both axes are wider than one.
        """
        space = self.space
        least = min(space.zero)
        for tp, sp, dp, pp, micro_batch, zero, order in product(
            space.tp, space.sp, space.dp, space.pp, space.micro_batch, space.zero, space.orders
        ):
            choice = Choice(tp, sp, dp, pp, micro_batch, zero if dp > 1 else 0, order)
            valid = (
                choice.devices <= self.devices
                and (space.idle_devices or choice.devices == self.devices)
                and pp <= self.layers
                and self.problem.batch % (dp * micro_batch) == 0
                and (tp > 1 or not sp)
                and (dp > 1 or zero == least)
                and (order == space.orders[0] or (dp > 1 and pp > 1))
            )
            if valid:
                yield choice

    def price(self, choice: Choice, cuts: Sequence[int], recompute: Sequence[str]) -> Priced:
        """One whole plan."""
        pricer = self.pricer(choice)
        chunks = list(pairwise(cuts))
        stages = tuple(
            pricer.stage(position, tuple(chunks[position :: choice.pp]), CHOICES.index(name))
            for position, name in enumerate(recompute)
        )
        return Priced(pricer.seconds(stages), stages)

    def plans(self, choice: Choice, *, memory: float | None = None) -> Iterator[Whole]:
        """Every plan of a point that fits: all cuts times all recomputations.

        ``memory`` replaces the problem's; a stage that does not fit is in no plan.
        """
        limit = self.problem.memory_bytes if memory is None else memory
        pricer = self.pricer(choice)
        allowed = [CHOICES.index(name) for name in self.space.recompute]
        fitting: dict[tuple[int, int, int], list[tuple[int, float, float]]] = {}
        for inner in combinations(range(1, self.layers), choice.pp - 1):
            cuts = (0, *inner, self.layers)
            rows = []
            for position, (first, end) in enumerate(pairwise(cuts)):
                key = position, first, end
                if key not in fitting:
                    priced = [(c, pricer.stage(position, ((first, end),), c)) for c in allowed]
                    fitting[key] = [(c, s.seconds, s.sync) for c, s in priced if s.memory <= limit]
                rows.append(fitting[key])
            for stages in product(*rows):
                yield cuts, *zip(*stages, strict=True)

    def best(self, choice: Choice, *, memory: float | None = None) -> Found | None:
        """The best plan of a point that fits."""
        waiting = self.problem.batch // (choice.dp * choice.micro_batch) - 1
        best: tuple[float, tuple[int, ...], tuple[int, ...]] = (math.inf, (), ())
        for cuts, used, loads, syncs in self.plans(choice, memory=memory):
            seconds = sum(loads) + waiting * max(loads) + max(syncs)
            if seconds < best[0]:
                best = seconds, cuts, used
        if not best[1]:
            return None
        return Found(best[0], choice, best[1], tuple(CHOICES[c] for c in best[2]))

    def ranking(self, *, memory: float | None = None) -> list[Found]:
        """The best plan of every point that has one, best first.

        Times that agree to 1e-12 are equal: the fewest devices come first, then the
        shallowest pipeline, then the smallest widths.
        """
        found = [self.best(choice, memory=memory) for choice in self.choices()]
        return rank([plan for plan in found if plan is not None])


def rank(plans: Sequence[Found]) -> list[Found]:
    """Best first, ties in the documented order."""
    ordered = sorted(plans, key=lambda plan: plan.seconds)
    ranked: list[Found] = []
    while ordered:
        limit = ordered[0].seconds * (1 + 1e-12)
        equal = [plan for plan in ordered if plan.seconds <= limit]
        ordered = ordered[len(equal) :]
        ranked += sorted(equal, key=preference)
    return ranked


def preference(plan: Found) -> tuple[int, int, Choice]:
    """Fewest devices, shallowest pipeline, smallest widths."""
    return plan.choice.devices, plan.choice.pp, plan.choice
