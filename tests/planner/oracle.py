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

Time = tuple[float, float]
"""alpha, beta: a collective or a transfer of x bytes takes alpha + beta x."""

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
    """Devices at the leaves of a tree; every child hangs on one bundle of links."""

    def __init__(self, tiers: Sequence[Any]) -> None:
        self.levels = range(len(tiers))
        sizes = [tier.group_size for tier in reversed(tiers)]
        self.address = list(product(*(range(size) for size in sizes)))
        self.latency = [tier.latency_s for tier in tiers]
        self.capacity: list[float] = []
        self.alone: list[float] = []
        below = 1
        for tier in tiers:
            link = tier.bandwidth_Bps / tier.oversubscription
            links = below if tier.uplink_per == "device" else 1
            self.capacity.append(links * link)
            self.alone.append(max(link, links * link / below))
            below *= tier.group_size

    def child(self, level: int, device: int) -> Child:
        """The child of a level that holds a device; below level 0 it is the device."""
        return self.address[device][: len(self.levels) - level]

    def block(self, level: int, device: int) -> Child:
        """The group of a level that holds a device."""
        return self.child(level, device)[:-1]

    def meeting(self, a: int, b: int) -> int:
        """The innermost level whose group holds both."""
        return next(at for at in self.levels if self.block(at, a) == self.block(at, b))

    def per_byte(self, level: int, flows: int) -> float:
        """Seconds per byte through one bundle that so many flows share."""
        return max(1 / self.alone[level], flows / self.capacity[level])


def transfer_times(wires: Wires, transfers: Sequence[tuple[int, int]]) -> list[Time]:
    """Point-to-point transfers that all run at once."""
    leaving: Counter[tuple[int, Child]] = Counter()
    entering: Counter[tuple[int, Child]] = Counter()
    for sender, receiver in transfers:
        for level in range(wires.meeting(sender, receiver) + 1):
            leaving[level, wires.child(level, sender)] += 1
            entering[level, wires.child(level, receiver)] += 1
    times = []
    for sender, receiver in transfers:
        meeting = wires.meeting(sender, receiver)
        slowest = max(
            wires.per_byte(
                level,
                max(
                    leaving[level, wires.child(level, sender)],
                    entering[level, wires.child(level, receiver)],
                ),
            )
            for level in range(meeting + 1)
        )
        times.append((wires.latency[meeting], slowest))
    return times


def _fans(wires: Wires, group: Sequence[int], level: int) -> list[int]:
    """How many children the group occupies in each block of a level that it occupies."""
    children: dict[Child, set[Child]] = {}
    for device in group:
        children.setdefault(wires.block(level, device), set()).add(wires.child(level, device))
    return [len(found) for found in children.values()]


def half_times(wires: Wires, groups: Sequence[Sequence[int]]) -> list[Time]:
    """A reduce-scatter (or an all-gather) in every group, all at once."""
    fans = [[_fans(wires, group, level) for level in wires.levels] for group in groups]
    alpha, beta = [0.0] * len(groups), [0.0] * len(groups)
    for level in wires.levels:
        busy = [number for number in range(len(groups)) if max(fans[number][level]) > 1]
        members: Counter[tuple[int, Child]] = Counter(
            (below, wires.child(below, device))
            for number in busy
            for device in groups[number]
            for below in range(level + 1)
        )
        for number in busy:
            most = max(fans[number][level])
            shard = math.prod(1 / min(fans[number][below]) for below in range(level))
            slowest = max(
                wires.per_byte(below, members[below, wires.child(below, device)])
                for device in groups[number]
                for below in range(level + 1)
            )
            alpha[number] += math.ceil(math.log2(most)) * wires.latency[level]
            beta[number] += (most - 1) / most * shard * slowest
    return list(zip(alpha, beta, strict=True))


def _slowest(times: Sequence[Time]) -> Time:
    """The slowest alpha and the slowest beta, which need not be the same group's."""
    return max(alpha for alpha, _ in times), max(beta for _, beta in times)


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


def _by_stage(wires: Wires, groups: dict[int, list[list[int]]]) -> list[Time]:
    """Half times of every stage's groups while the groups of all stages run."""
    everyone = [group for stage in sorted(groups) for group in groups[stage]]
    times = iter(half_times(wires, everyone))
    return [_slowest([next(times) for _ in groups[stage]]) for stage in sorted(groups)]


def measure(wires: Wires, choice: Choice) -> Traffic:
    """Groups and transfers of a layout as lists of devices, and what they cost."""
    seats = place(choice)
    stages, replicas, ranks = range(choice.pp), range(choice.dp), range(choice.tp)
    tensor = {s: [[seats[s, d, t] for t in ranks] for d in replicas] for s in stages}
    data = {s: [[seats[s, d, t] for d in replicas] for t in ranks] for s in stages}
    pairs = [(s, d, t) for s in stages[1:] for d in replicas for t in ranks]
    transfers = [(seats[s - 1, d, t], seats[s, d, t]) for s, d, t in pairs]
    timed = list(zip(pairs, transfer_times(wires, transfers), strict=True))
    link = [_slowest([time for (s, _, _), time in timed if s == stage]) for stage in stages[1:]]
    ends = [[seats[0, d, t], seats[choice.pp - 1, d, t]] for d in replicas for t in ranks]
    talking = [*transfers, *(pair for groups in (tensor, data) for s in stages
               for group in groups[s] for pair in combinations(group, 2))]  # fmt: skip
    return Traffic(
        _by_stage(wires, tensor),
        _by_stage(wires, data),
        [(0.0, 0.0), *link],
        _slowest(half_times(wires, ends)) if choice.pp > 1 else (0.0, 0.0),
        max((wires.meeting(a, b) for a, b in talking), default=-1),
    )


class Lump(NamedTuple):
    """Sums over the layers of a stage under one recomputation choice."""

    seconds: float
    halves: float
    bytes: float
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
        """Compute, collectives and what is kept for backward of layers first to end - 1."""
        key = first, end, c
        if key not in self.lumps:
            rows, layers = self.rows, range(first, end)
            self.lumps[key] = Lump(
                math.fsum(rows["compute_s"][k] + rows["replay_s"][c][k] for k in layers),
                math.fsum(rows["tp_halves"][k] + rows["tp_replay_halves"][c][k] for k in layers),
                math.fsum(rows["tp_bytes"][k] + rows["tp_replay_bytes"][c][k] for k in layers),
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
        nothing = (0, 0.0)
        sharing = choice.dp > 1
        self.each_micro_batch = (nothing, nothing, (1, g), (3, g + 2 * w))[choice.zero]
        self.once = ((2, 2 * g), (2, g + w), (1, w), nothing)[choice.zero] if sharing else nothing
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
        alpha, beta = self.traffic.link[position]
        return alpha + beta * self.strategy.rows["boundary_bytes"][boundary]

    def _seconds(self, position: int, first: int, end: int, c: int) -> float:
        lump = self.strategy.lump(first, end, c)
        tp_alpha, tp_beta = self.traffic.tensor[position]
        seconds = lump.seconds + tp_alpha * lump.halves + tp_beta * lump.bytes
        halves, per_parameter = self.each_micro_batch
        dp_alpha, dp_beta = self.traffic.data[position]
        for layer in range(first, end):
            seconds += dp_alpha * halves + dp_beta * per_parameter * self.parameters[layer]
        if position > 0:
            seconds += self._hop(position, first)
        if position < self.choice.pp - 1:
            seconds += self._hop(position + 1, end)
        return seconds

    def _sync(self, position: int, first: int, end: int) -> float:
        choice, state = self.choice, self.problem.state
        held = sum(self.parameters[first:end])
        halves, per_parameter = self.once
        alpha, beta = self.traffic.data[position]
        touched = held * (2 * state.optimizer + state.gradients + state.weights)
        update = touched / self.problem.update_Bps / (choice.dp if choice.zero >= 1 else 1)
        seconds = alpha * halves + beta * per_parameter * held + update
        tied = self.strategy.table.tied_parameters
        if choice.pp > 1 and tied > 0 and position in (0, choice.pp - 1):
            alpha, beta = self.traffic.tied
            seconds += 2 * (alpha + beta * tied * state.gradients)
        return seconds

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
        self._traffic: dict[tuple[int, int, int, tuple[str, ...]], Traffic] = {}
        self.layers = len(self.strategy(1, False, 1).rows["compute_s"])

    def strategy(self, tp: int, sp: bool, micro_batch: int) -> Strategy:
        """The layer table of one strategy."""
        key = tp, sp, micro_batch
        if key not in self._strategies:
            self._strategies[key] = Strategy(self.problem.table(*key))
        return self._strategies[key]

    def traffic(self, choice: Choice) -> Traffic:
        """What communication costs the stages of a point."""
        key = choice.tp, choice.dp, choice.pp, choice.order
        if key not in self._traffic:
            self._traffic[key] = measure(self.wires, choice)
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
