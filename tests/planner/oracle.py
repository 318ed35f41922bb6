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
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise, product
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

    @property
    def devices(self) -> int:
        """Devices that work."""
        return self.tp * self.dp * self.pp


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


@dataclass(frozen=True)
class Traffic:
    """What communication costs each stage position of one layout."""

    tensor: list[Time]
    data: list[Time]
    link: list[Time]
    """By receiving stage; the first stage has none."""
    tied: Time
    highest: int
    """The outermost level that any group or transfer climbs to; -1 without any."""


def place(choice: Choice) -> dict[tuple[int, int, int], int]:
    """Device of every (stage, replica, tensor rank), handed out one by one from 0."""
    sizes = {"tp": choice.tp, "cp": 1, "dp": choice.dp, "pp": choice.pp}
    outermost_first = list(reversed(choice.order))
    seats = {}
    for device, numbers in enumerate(product(*(range(sizes[axis]) for axis in outermost_first))):
        rank = dict(zip(outermost_first, numbers, strict=True))
        seats[rank["pp"], rank["dp"], rank["tp"]] = device
    return seats


def _by_stage(
    wires: Wires, groups: dict[int, list[list[int]]], software: Any, op: str
) -> list[Time]:
    """Half times of every stage's groups while the groups of all stages run."""
    everyone = [group for stage in sorted(groups) for group in groups[stage]]
    times = iter(half_times(wires, everyone, software, op))
    return [_slowest([next(times) for _ in groups[stage]]) for stage in sorted(groups)]


def measure(wires: Wires, choice: Choice, software: Any) -> Traffic:
    """Groups and transfers of a layout as lists of devices, and what they cost."""
    seats = place(choice)
    stages, replicas, ranks = range(choice.pp), range(choice.dp), range(choice.tp)
    tensor = {s: [[seats[s, d, t] for t in ranks] for d in replicas] for s in stages}
    data = {s: [[seats[s, d, t] for d in replicas] for t in ranks] for s in stages}
    pairs = [(s, d, t) for s in stages[1:] for d in replicas for t in ranks]
    transfers = [(seats[s - 1, d, t], seats[s, d, t]) for s, d, t in pairs]
    outside = bool(transfers) and nodes_of(wires, transfers) > 1
    protocols = software.transfers(outside)
    timed = list(zip(pairs, transfer_times(wires, transfers, protocols), strict=True))
    link = [_slowest([time for (s, _, _), time in timed if s == stage]) for stage in stages[1:]]
    ends = [[seats[0, d, t], seats[choice.pp - 1, d, t]] for d in replicas for t in ranks]
    talking = [*transfers, *(pair for groups in (tensor, data) for s in stages
               for group in groups[s] for pair in combinations(group, 2))]  # fmt: skip
    return Traffic(
        _by_stage(wires, tensor, software, "reduce_scatter" if choice.sp else "all_reduce"),
        _by_stage(wires, data, software, "reduce_scatter" if choice.zero else "all_reduce"),
        [[(0.0, 0.0)], *link],
        _slowest(half_times(wires, ends, software, "all_reduce"))
        if choice.pp > 1
        else [(0.0, 0.0)],
        max((wires.meeting(a, b) for a, b in talking), default=-1),
    )


class Lump(NamedTuple):
    """Sums over the layers of a stage under one recomputation choice."""

    seconds: float
    kept: float


@dataclass
class Strategy:
    """One layer table as lists, and sums over ranges of its layers."""

    table: Any
    lumps: dict[tuple[int, int, int], Lump] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = ("compute_s", "replay_s", "tp_halves", "tp_bytes", "tp_replay_halves",
                 "tp_replay_bytes", "parameters", "kept_bytes", "working_bytes",
                 "boundary_bytes")  # fmt: skip
        self.rows: dict[str, Any] = {name: getattr(self.table, name).tolist() for name in names}

    @cached_property
    def untied(self) -> list[float]:
        """Parameters when one stage holds the whole chain and the tied tensor exists once."""
        parameters = list(self.rows["parameters"])
        parameters[-1] -= self.table.tied_parameters
        return parameters

    def parameters(self, pp: int) -> list[float]:
        """Parameters layer by layer."""
        return self.untied if pp == 1 else self.rows["parameters"]

    def lump(self, first: int, end: int, c: int) -> Lump:
        """Compute and what is kept for backward of layers first to end - 1."""
        key = first, end, c
        if key not in self.lumps:
            rows, layers = self.rows, range(first, end)
            self.lumps[key] = Lump(
                math.fsum(rows["compute_s"][k] + rows["replay_s"][c][k] for k in layers),
                math.fsum(rows["kept_bytes"][c][k] for k in layers),
            )
        return self.lumps[key]


class Pricer:
    """Prices the stages of one outer point."""

    def __init__(self, problem: Any, choice: Choice, traffic: Traffic, strategy: Strategy) -> None:
        self.problem, self.choice = problem, choice
        self.traffic, self.strategy = traffic, strategy
        self.parameters = strategy.parameters(choice.pp)
        self.micro_batches = problem.batch // (choice.dp * choice.micro_batch)
        w, g = problem.state.weights, problem.state.gradients
        sharing = choice.dp > 1
        self.each_micro_batch = ((), (), (g,), (g, w, w))[choice.zero] if sharing else ()
        self.once = ((g, g), (g, w), (w,), ())[choice.zero] if sharing else ()
        self.gathered = (0.0, 0.0, g, g + w)[choice.zero] if sharing else 0.0
        self.memo: dict[tuple[int, int, int, int], Stage] = {}

    def stage(self, position: int, first: int, end: int, c: int) -> Stage:
        """Time and memory of one stage, whatever the other cuts are."""
        key = position, first, end, c
        if key not in self.memo:
            self.memo[key] = Stage(
                self._seconds(position, first, end, c),
                self._sync(position, first, end),
                self._memory(position, first, end, c),
            )
        return self.memo[key]

    def _hop(self, position: int, boundary: int) -> float:
        return seconds(self.traffic.link[position], self.strategy.rows["boundary_bytes"][boundary])

    def _tensor(self, position: int, layer: int, c: int) -> float:
        rows, time = self.strategy.rows, self.traffic.tensor[position]
        total = 0.0
        for halves, size in (
            (rows["tp_halves"][layer], rows["tp_bytes"][layer]),
            (rows["tp_replay_halves"][c][layer], rows["tp_replay_bytes"][c][layer]),
        ):
            total += halves * seconds(time, size / halves) if halves else 0.0
        return total

    def _data(self, position: int, layer: int, halves: Sequence[float]) -> float:
        held, time = self.parameters[layer], self.traffic.data[position]
        return sum(seconds(time, size * held) for size in halves) if held > 0 else 0.0

    def _seconds(self, position: int, first: int, end: int, c: int) -> float:
        total = self.strategy.lump(first, end, c).seconds
        for layer in range(first, end):
            total += self._tensor(position, layer, c)
            total += self._data(position, layer, self.each_micro_batch)
        if position > 0:
            total += self._hop(position, first)
        if position < self.choice.pp - 1:
            total += self._hop(position + 1, end)
        return total

    def _sync(self, position: int, first: int, end: int) -> float:
        choice, state = self.choice, self.problem.state
        held = sum(self.parameters[first:end])
        touched = held * (2 * state.optimizer + state.gradients + state.weights)
        total = touched / self.problem.update_Bps / (choice.dp if choice.zero >= 1 else 1)
        total += sum(self._data(position, layer, self.once) for layer in range(first, end))
        tied = self.strategy.table.tied_parameters
        if choice.pp > 1 and tied > 0 and position in (0, choice.pp - 1):
            total += 2 * seconds(self.traffic.tied, tied * state.gradients)
        return total

    def _memory(self, position: int, first: int, end: int, c: int) -> float:
        choice, state, rows = self.choice, self.problem.state, self.strategy.rows
        z1, z2, z3 = (choice.dp if choice.zero >= least else 1 for least in (1, 2, 3))
        states = state.weights / z3 + state.gradients / z2 + state.optimizer / z1
        in_flight = min(self.micro_batches, choice.pp - position)
        peak = max(
            rows["working_bytes"][c][k] + self.gathered * rows["parameters"][k]
            for k in range(first, end)
        )
        kept = in_flight * self.strategy.lump(first, end, c).kept
        return sum(self.parameters[first:end]) * states + kept + peak + self.problem.reserved_bytes

    def seconds(self, stages: Sequence[Stage]) -> float:
        """Iteration time of the stages of one plan."""
        loads = [stage.seconds for stage in stages]
        sync = max(stage.sync for stage in stages)
        return sum(loads) + (self.micro_batches - 1) * max(loads) + sync


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
        self._strategies: dict[tuple[int, bool, int], Strategy] = {}
        self._traffic: dict[tuple[Any, ...], Traffic] = {}
        self.layers = len(self.strategy(1, False, 1).rows["compute_s"])

    def strategy(self, tp: int, sp: bool, micro_batch: int) -> Strategy:
        """The layer table of one strategy."""
        key = tp, sp, micro_batch
        if key not in self._strategies:
            self._strategies[key] = Strategy(self.problem.table(*key))
        return self._strategies[key]

    def traffic(self, choice: Choice) -> Traffic:
        """What communication costs the stages of a point."""
        key = choice.tp, choice.dp, choice.pp, choice.order, choice.sp, choice.zero > 0
        if key not in self._traffic:
            self._traffic[key] = measure(self.wires, choice, self.problem.software)
        return self._traffic[key]

    def pricer(self, choice: Choice) -> Pricer:
        """Prices stages of a point."""
        strategy = self.strategy(choice.tp, choice.sp, choice.micro_batch)
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
        stages = tuple(
            pricer.stage(position, first, end, CHOICES.index(name))
            for position, ((first, end), name) in enumerate(
                zip(pairwise(cuts), recompute, strict=True)
            )
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
                    priced = [(c, pricer.stage(position, first, end, c)) for c in allowed]
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
