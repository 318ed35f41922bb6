"""The own cost model once more, over concrete devices and plan by plan.

Written from the words of docs/method.md alone: every rank gets a device number, groups and
transfers are lists of those numbers, flows are counted group by group in dictionaries, and
every cut with every recomputation and strategy of every stage is priced. Plain Python on purpose;
it shares no code, no table and no shortcut with `nest_core.costs`, `nest_core.network` or
`nest_core.planner`, and imports nothing of them: fabric, problem and space are read by their field
names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby, pairwise, product
from typing import Any, NamedTuple

from oracle_layouts import SPLIT, V_SHAPED, Passes, chain, last_pass, layouts, most_held, turns
from oracle_traffic import Choice, LinkMap, Traffic, seconds

CHOICES = ("none", "selective", "full")
LEANEST = ("1f1b", "zb_h1", "zb_1p", "zb_2p", "gpipe")
ROUNDS = {"zb_h1": 1, "zb_1p": 1, "zb_2p": 2}
"""Zero-bubble schedules: passes ahead for each stage behind, late weights for each before."""
AXES = ("tp", "cp", "dp", "pp")

VirtualStages = tuple[tuple[int, int], ...]
"""First layer of each virtual stage of a stage, and the layer after its last."""


class Pick(NamedTuple):
    """What one stage does: the part of a point in which stages may differ."""

    tp: int
    sp: bool
    cp: int
    ep: int
    zero: int
    etp: int = 0
    zero_group: int = 0

    @property
    def sharing(self) -> tuple[bool, bool, int, int]:
        """How far ZeRO goes: not at all, over how few ranks, over all of them, at which stage."""
        return self.zero > 0, self.zero_group == 0, self.zero_group, self.zero


class Once(NamedTuple):
    """What a stage does once per iteration: seconds of all of it, and of what may hide; the part
    that hides, and what of a micro-batch is no backward pass without traffic."""

    whole: float
    may_hide: float
    share: float
    taken: float

    def shown(self, pace: float) -> float:
        """Seconds in which ``pace`` is what a micro-batch takes the stage, waiting included."""
        return self.whole - self.share * min(self.may_hide, max(pace - self.taken, 0.0))


class Layer(NamedTuple):
    """Seconds of a layer, how many of them its traffic leaves, and how many of its forward pass;
    and what comes on top if either pass of a stage begins with it.
    """

    seconds: float
    left: float
    ahead: float
    opening: float
    turning: float


class Worked(NamedTuple):
    """One stage whatever the others do: seconds per micro-batch, once, bytes per rank and host."""

    seconds: float
    once: Once
    memory: float
    host: float = 0.0
    weights: float = 0.0
    passes: Passes = ()
    travel: float = 0.0


class Stage(NamedTuple):
    """One stage: seconds per micro-batch, seconds once per iteration, bytes per rank and host."""

    seconds: float
    sync: float
    memory: float
    host: float = 0.0


class Option(NamedTuple):
    """One way to run a stage: strategy, recomputation, and what it takes."""

    pick: Pick
    recompute: str
    seconds: float
    once: Once
    weights: float = 0.0
    passes: Passes = ()
    travel: float = 0.0


class Whole(NamedTuple):
    """A plan: its cuts, and an option stage by stage."""

    cuts: tuple[int, ...]
    stages: tuple[Option, ...]

    @property
    def recompute(self) -> tuple[str, ...]:
        """Stage by stage."""
        return tuple(stage.recompute for stage in self.stages)

    @property
    def picks(self) -> tuple[Pick, ...]:
        """Stage by stage."""
        return tuple(stage.pick for stage in self.stages)

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def slowest(self) -> float:
        """Seconds of the slowest stage."""
        return max(stage.seconds for stage in self.stages)

    @property
    def sync(self) -> float:
        """Seconds once per iteration, of the stage that takes longest."""
        return max(
            syncs(
                self.cuts,
                [stage.seconds for stage in self.stages],
                [stage.once for stage in self.stages],
            )
        )


class Found(NamedTuple):
    """The best plan of a point that fits."""

    seconds: float
    choice: Choice
    cuts: tuple[int, ...]
    recompute: tuple[str, ...]
    picks: tuple[Pick, ...] = ()


class Priced(NamedTuple):
    """A plan's iteration time and its stages."""

    seconds: float
    stages: tuple[Stage, ...]


@dataclass
class Strategy:
    """One layer table as lists."""

    table: Any

    def __post_init__(self) -> None:
        names = (
            "compute_s",
            "forward_s",
            "weight_s",
            "replay_s",
            "launch_s",
            "parameters",
            "expert_parameters",
            "kept_bytes",
            "working_bytes",
            "boundary_bytes",
        )
        self.rows: dict[str, Any] = {name: getattr(self.table, name).tolist() for name in names}
        self.calls = {
            axis: (
                calls.kind,
                calls.number.tolist(),
                calls.bytes.tolist(),
                calls.replay_number.tolist(),
                calls.replay_bytes.tolist(),
            )
            for axis, calls in self.table.calls.items()
        }

    @cached_property
    def untied(self) -> list[float]:
        """Parameters when one stage holds the whole chain and the tied tensor exists once."""
        parameters = list(self.rows["parameters"])
        parameters[-1] -= self.table.tied_parameters
        return parameters

    def parameters(self, choice: Choice) -> list[float]:
        """Dense parameters layer by layer; in a V, too, one stage has both ends."""
        return (
            self.untied
            if choice.pp == 1 or choice.schedule in V_SHAPED
            else (self.rows["parameters"])
        )


class Pricer:
    """Prices the stages of one outer point."""

    def __init__(
        self,
        problem: Any,
        choice: Choice,
        traffic: Traffic,
        strategy: Strategy,
        offload: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.problem, self.choice = problem, choice
        self.activations_away, self.optimizer_away = offload
        self.traffic, self.strategy = traffic, strategy
        self.dense = strategy.parameters(choice)
        self.experts = strategy.rows["expert_parameters"]
        # Ranks among which weights are sharded once; as many more hold a copy of all that.
        owners = choice.dp * choice.cp * choice.tp // (choice.ep * choice.expert_tensor)
        self.sharers = choice.dp * choice.cp // choice.copies
        self.expert_sharers = owners // choice.copies
        self.micro_batches = math.ceil(problem.batch / (choice.dp * choice.micro_batch))
        w, g = problem.state.weights, problem.state.gradients
        # Under a pipeline gradients stay whole until the last micro-batch, as at stage 1, unless
        # software reduces them after each.
        whole = choice.zero == 2 and choice.pp > 1 and not problem.sharded_gradients
        zero = self.zero = 1 if whole else choice.zero
        self.each_micro_batch = ((), (), (g,), (g,))[zero]
        self.each_pass = (w,) if zero == 3 else ()
        self.once = ((g, g), (g,), (), ())[zero]
        self.renewed = (w,) if zero in (1, 2) else ()
        self.whole = (w, w, w + g, w + g + w)[zero]
        self.fetched = w if zero == 3 else 0.0
        self.memo: dict[tuple[int, VirtualStages, int, bool], Worked] = {}
        self.layers: dict[tuple[int, int, int], Layer] = {}

    def stage(
        self, position: int, virtual_stages: VirtualStages, c: int, uneven: bool = False
    ) -> Worked:
        """Time and memory of one stage, whatever the other cuts are but for their evenness."""
        key = position, virtual_stages, c, uneven
        if key not in self.memo:
            self.memo[key] = Worked(
                self._passes(position, virtual_stages, c)[0],
                self._once(position, virtual_stages, c),
                self._memory(position, virtual_stages, c, uneven),
                self._on_host(position, virtual_stages),
                math.fsum(self.strategy.rows["weight_s"][slice(*virtual_stages[0])]),
                self._each(position, virtual_stages, c) if uneven else (),
                self._passes(position, virtual_stages, c)[2],
            )
        return self.memo[key]

    def _ways(self, virtual_stages: VirtualStages, c: int) -> list[tuple[int, int]]:
        """Layers with the row of tables that they run by; of block:n the first n as under full."""
        method, _, count = self.problem.recomputations[c].partition(":")
        full = len(self.problem.recomputations) - 1
        plain = {"block": 0, "uniform": full}.get(method, c)
        found = []
        for first, end in virtual_stages:
            left = int(count) if method == "block" else 0
            for layer in range(first, end):
                found.append((layer, full if left else plain))
                left -= bool(left) and self._again(layer)
        return found

    def _away(self, layer: int) -> float:
        """Bytes that a layer leaves on the host from forward to backward; nothing is recomputed."""
        share = self.activations_away if self._again(layer) else 0.0
        return share * self.strategy.rows["kept_bytes"][0][layer] if share else 0.0

    def _again(self, layer: int) -> bool:
        """Whether full recomputation runs a layer again."""
        return self.strategy.rows["replay_s"][-1][layer] > 0

    def _activations(
        self, virtual_stages: VirtualStages, c: int, beside: dict[int, float]
    ) -> tuple[float, float]:
        """Bytes kept for a micro-batch, and the most of what is there while a layer runs.

        ``beside``: bytes layer by layer that no recomputation changes.
        """
        rows = self.strategy.rows
        method, _, count = self.problem.recomputations[c].partition(":")
        ways = self._ways(virtual_stages, c)
        if method != "uniform":
            away = {layer: self._away(layer) for layer, _ in ways}
            kept = math.fsum(rows["kept_bytes"][row][layer] - away[layer] for layer, row in ways)
            return kept, max(
                rows["working_bytes"][row][layer]
                + beside[layer]
                + 2 * away[layer]
                + self._forward(layer, row, away[layer])
                for layer, row in ways
            )
        kept = high = 0.0
        for first, end in virtual_stages:
            blocks = [layer for layer in range(first, end) if self._again(layer)]
            for layer in set(range(first, end)) - set(blocks):
                kept += rows["kept_bytes"][0][layer]
                here = rows["working_bytes"][0][layer] + beside[layer]
                high = max(high, here + self._forward(layer, 0, 0.0))
            for start in range(0, len(blocks), int(count)):
                chunk = blocks[start : start + int(count)]
                entry = rows["kept_bytes"][-1][chunk[0]]
                kept += entry
                for last, layer in enumerate(chunk):
                    made = math.fsum(rows["kept_bytes"][0][each] for each in chunk[: last + 1])
                    here = rows["working_bytes"][0][layer] + beside[layer]
                    here += self._forward(layer, 0, 0.0)
                    high = max(high, made - entry + here)
        return kept, high

    def _forward(self, layer: int, row: int, away: float) -> float:
        """Bytes that a forward pass keeps of a layer while the backward pass beside it runs one.

        The head and the loss, the last layer, have no other pass beside them.
        """
        kept = self.strategy.rows["kept_bytes"]
        turns = self._beside and self.choice.schedule not in V_SHAPED
        return kept[row][layer] - away if turns and layer < len(kept[row]) - 1 else 0.0

    @property
    def _beside(self) -> bool:
        """Whether forward passes run beside another micro-batch's backward passes."""
        alone = self.choice.pp == 1 and self.choice.schedule != "gpipe"
        some = alone or self.choice.schedule in ("interleaved", "dualpipev")
        return self.problem.overlap.experts and some

    def _first_alone(self, position: int) -> int:
        """Passes forward before the first that has a backward pass beside it."""
        pp, v = self.choice.pp, self.choice.interleave
        return 2 * (pp - 1 - position) + (v - 1) * pp + 1

    def _inside(self, position: int, layer: int, c: int) -> tuple[float, float, float]:
        """Seconds of a layer's traffic in both passes, and in what runs again; and of what experts
        send where passes run beside it.
        """
        total = repeated = experts = 0.0
        for axis, (kind, number, size, again, again_size) in self.strategy.calls.items():
            time = self.traffic.time(axis, kind)[position]
            if number[layer]:
                took = number[layer] * seconds(time, size[layer] / number[layer])
                if axis == "ep" and self._beside:
                    experts += took
                else:
                    total += took
            if again[c][layer]:
                repeated += again[c][layer] * seconds(time, again_size[c][layer] / again[c][layer])
        return total, repeated, experts

    def _experts_hide(self, position: int) -> float:
        """Share: as within layers, or, for passes with others beside them, as gradients do."""
        overlap, passes = self.problem.overlap, self.micro_batches * self.choice.interleave
        others = max(0, passes - self._first_alone(position)) / passes
        if self.choice.schedule in V_SHAPED:
            together = [[way for way, _, _ in group] for group in self._turns(position)]
            others = sum("F" in ways and "B" in ways for ways in together) / passes
        return overlap.tp + others * max(0.0, overlap.dp - overlap.tp)

    def _turns(self, position: int) -> Any:
        choice = self.choice
        return turns(
            choice.schedule,
            choice.pp,
            position,
            self.micro_batches,
            choice.interleave,
            beside=False,
        )

    def _data(self, position: int, layer: int, sizes: Sequence[float]) -> float:
        kind = "reduce_scatter" if self.zero else "all_reduce"
        total = 0.0
        for axis, ranks, held in self._buckets(layer):
            if ranks > 1 and held > 0:
                time = self.traffic.time(axis, kind, self.choice.copies)[position]
                total += sum(seconds(time, size * held) for size in sizes)
        return total

    def _between(self, position: int, layer: int) -> float:
        """What a layer's shards of gradients take to be added up over all copies."""
        total = 0.0
        if self.choice.copies > 1:
            for axis, ranks, held in self._buckets(layer):
                if held > 0:
                    time = self.traffic.time(f"{axis} between", "all_reduce", self.choice.copies)
                    shard = self.problem.state.gradients * held / ranks
                    total += 2 * seconds(time[position], shard)
        return total

    def _buckets(self, layer: int) -> list[tuple[str, int, float]]:
        if self.choice.ep == 1 and self.choice.expert_tensor == self.choice.tp:
            return [("data", self.sharers, self.dense[layer] + self.experts[layer])]
        return [
            ("data", self.sharers, self.dense[layer]),
            ("expert_data", self.expert_sharers, self.experts[layer]),
        ]

    def _layer(self, position: int, layer: int, c: int) -> Layer:
        """Follow both passes of a layer, class of traffic by class.

        What one class hides behind is no longer there for the next.
        """
        key = position, layer, c
        if key in self.layers:
            return self.layers[key]
        rows, overlap, m = self.strategy.rows, self.problem.overlap, self.micro_batches
        forward, again = rows["forward_s"][layer], rows["replay_s"][c][layer]
        backward = rows["compute_s"][layer] - forward
        inside, repeated, experts = self._inside(position, layer, c)
        whole, gained = 1.0 - overlap.slowdown, overlap.tp * (1.0 - overlap.slowdown)
        left = [
            forward - gained * min(inside / 2, forward),
            backward - gained * min(inside / 2, backward) + again - gained * min(repeated, again),
        ]
        sent = [inside / 2, inside / 2 + repeated]
        spent = [sent[0] + left[0], sent[1] + left[1]]
        # Experts hide behind passes of other micro-batches, either way.
        hidden = whole * self._experts_hide(position) * min(experts, sum(left))
        left = [one * (1.0 - hidden / (sum(left) or 1.0)) for one in left]
        spent = [one + (experts - hidden) / 2 for one in spent]
        # Weights are gathered for either pass; who begins with this layer has nothing before it.
        # Gradients go on while the next micro-batch runs forward, but for the last.
        gained = whole * overlap.dp
        gathered = self._data(position, layer, self.each_pass)
        reduced = self._data(position, layer, self.each_micro_batch)
        behind = [min(gathered, one) for one in left]
        usable = [(left[0] - behind[0]) * (m - 1) / m, left[1] - behind[1]]
        hidden = gained * min(reduced, sum(usable))
        first = [gained * one for one in behind]
        for way in (0, 1):
            spent[way] += gathered - first[way] + (reduced - hidden) / 2
            left[way] -= first[way] + hidden * usable[way] / (sum(usable) or 1.0)
        launched = rows["launch_s"][0][layer] / 2
        waits = [
            max(0.0, host - one)
            for host, one in zip(
                (launched, rows["launch_s"][c][layer] - launched), spent, strict=True
            )
        ]
        copying = 0.0
        if away := self._away(layer):
            for compute in (forward, rows["compute_s"][layer] - forward):
                copying += max(0.0, away / self.problem.host_Bps - compute)
        ahead = left[0] + waits[0] if c == 0 else self._layer(position, layer, 0).ahead
        if c:
            first = [*self._layer(position, layer, 0)[3:]]
        self.layers[key] = Layer(
            sum(spent) + sum(waits) + copying, sum(left) + sum(waits), ahead, *first
        )
        return self.layers[key]

    def _hops(self, position: int, virtual_stages: VirtualStages, back: int = -1) -> float:
        """A virtual stage waits for activations unless it is first, for gradients unless last.

        ``back``: of the virtual stages the one that lies on a V's way back.
        """
        edges, pp = self.strategy.rows["boundary_bytes"], self.choice.pp
        layers = len(edges) - 1
        copies = 1 if self.choice.sp else self.choice.tp  # each sends a part of what all hold
        total = 0.0
        for number, (first, end) in enumerate(virtual_stages):
            before, after = (end, first) if number == back else (first, end)
            for boundary, link in ((before, position), (after, (position + 1) % pp)):
                turn = self.choice.schedule in V_SHAPED and link == 0 and boundary == after
                if 0 < boundary < layers and not (turn and position == pp - 1):
                    total += seconds(self.traffic.links[link], edges[boundary] / copies)
                    if copies > 1 and edges[boundary] > 0:
                        gather = self.traffic.time("tp", "reduce_scatter")[position]
                        total += seconds(gather, edges[boundary])
        return total

    def _passes(
        self, position: int, virtual_stages: VirtualStages, c: int
    ) -> tuple[float, float, float]:
        """Seconds of a micro-batch, how many of them all its traffic leaves, and how many a
        transfer is under way beside them.
        """
        layers = [self._layer(position, layer, row) for layer, row in self._ways(virtual_stages, c)]
        works = math.fsum(layer.seconds for layer in layers)
        left = math.fsum(layer.left for layer in layers)
        for first, end in virtual_stages:
            works += self._layer(position, first, 0).opening
            works += self._layer(position, end - 1, 0).turning
        hops = self._hops(position, virtual_stages, self._back)
        hidden = self._travels * min(hops, left)
        return works + hops - hidden, left - hidden, hidden

    @property
    def _travels(self) -> float:
        """Share of transfers that hide: none where a stage is one micro-batch ahead of the next."""
        overlap, choice = self.problem.overlap, self.choice
        is_ahead = choice.schedule == "gpipe" or ROUNDS.get(choice.schedule, choice.interleave) > 1
        return overlap.pp * (1 - overlap.slowdown) * is_ahead

    @property
    def _back(self) -> int:
        return 1 if self.choice.schedule in V_SHAPED else -1

    def _each(self, position: int, virtual_stages: VirtualStages, c: int) -> Passes:
        """Every virtual stage's passes.

        Without recomputation what is no compute falls into both alike; what that adds is backward.
        """
        rows, found = self.strategy.rows, []
        each = zip(
            virtual_stages,
            self._shared(position, virtual_stages, 0),
            self._shared(position, virtual_stages, c),
            strict=True,
        )
        for (first, end), plain, both in each:
            bare = math.fsum(rows["compute_s"][first:end]) + math.fsum(
                rows["replay_s"][0][first:end]
            )
            forward = math.fsum(rows["forward_s"][first:end]) + (plain - bare) / 2
            late = math.fsum(rows["weight_s"][first:end])
            late *= self.choice.schedule in SPLIT
            found.append((forward, both - forward - late, late))
        return found

    def _shared(self, position: int, virtual_stages: VirtualStages, c: int) -> list[float]:
        """Seconds of a micro-batch; what hides of transfers is shared as they are."""
        ways = [self._ways((span,), c) for span in virtual_stages]
        inside = [[self._layer(position, layer, row) for layer, row in span] for span in ways]
        hops = [
            self._hops(position, (span,), 0 if number == self._back else -1)
            for number, span in enumerate(virtual_stages)
        ]
        left = math.fsum(one.left for layers in inside for one in layers)
        sent = math.fsum(hops)
        saved = self._travels * min(sent, left)
        return [
            math.fsum(one.seconds for one in layers)
            + self._layer(position, first, 0).opening
            + self._layer(position, end - 1, 0).turning
            + (hop - saved * hop / sent if sent else 0.0)
            for layers, hop, (first, end) in zip(inside, hops, virtual_stages, strict=True)
        ]

    def _once(self, position: int, virtual_stages: VirtualStages, c: int) -> Once:
        choice, state, overlap = self.choice, self.problem.state, self.problem.overlap
        works, left, _ = self._passes(position, virtual_stages, c)
        total = sent = reduced = renewed = ahead = 0.0
        for layer in (layer for first, end in virtual_stages for layer in range(first, end)):
            for held, ranks in ((self.dense, self.sharers), (self.experts, self.expert_sharers)):
                touched = held[layer] * (2 * state.optimizer + state.gradients + state.weights)
                touched /= ranks if self.zero >= 1 else 1
                away = self.optimizer_away
                total += (1 - away) * touched / self.problem.update_Bps
                if away:
                    ways = held[layer] / (ranks if self.zero >= 1 else 1)
                    ways *= state.gradients + state.weights
                    total += away * (ways + touched) / self.problem.host_Bps
            gradients = self._data(position, layer, self.once) + self._between(position, layer)
            weights = self._data(position, layer, self.renewed)
            sent += gradients + weights
            # Nothing is left to hide the first layer's gradients, and its weights are awaited.
            if layer != virtual_stages[0][0]:
                reduced, renewed = reduced + gradients, renewed + weights
            ahead += self._layer(position, layer, 0).ahead
        total += sent
        tied = self.strategy.table.tied_parameters
        apart = choice.pp > 1 and choice.schedule not in V_SHAPED
        if apart and tied > 0 and position in (0, choice.pp - 1):
            total += 2 * seconds(self.traffic.tied, tied * state.gradients)
        split = choice.schedule in (*ROUNDS, *SPLIT)
        hides = 0.0 if split else overlap.dp * (1 - overlap.slowdown)
        total -= hides * min(renewed, ahead)
        return Once(total, reduced, hides, works - left + ahead)

    def _in_flight(self, position: int) -> float:
        """Micro-batches of this stage whose activations are held."""
        pp, v, m = self.choice.pp, self.choice.interleave, self.micro_batches
        if self.choice.schedule == "gpipe":
            return m
        if self.choice.schedule == "1f1b":
            return min(m, pp - position)
        if self.choice.schedule in ROUNDS:
            return min(
                m - self._late(position), ROUNDS[self.choice.schedule] * (pp - 1 - position) + 1
            )
        return min(m * v, 2 * (pp - position - 1) + (v - 1) * pp + 1) / v

    def _late(self, position: int) -> float:
        """Micro-batches whose backward pass is over and whose gradients of weights are not."""
        return min(self.micro_batches - 1, ROUNDS.get(self.choice.schedule, 0) * position)

    def _memory(self, position: int, virtual_stages: VirtualStages, c: int, uneven: bool) -> float:
        state, rows = self.problem.state, self.strategy.rows
        layers = [layer for first, end in virtual_stages for layer in range(first, end)]
        total = stepping = 0.0
        peaks = dict.fromkeys(layers, 0.0)
        for held, whole, ranks in (
            (self.dense, rows["parameters"], self.sharers),
            (self.experts, self.experts, self.expert_sharers),
        ):
            z1, z2, z3 = (ranks if self.zero >= least else 1 for least in (1, 2, 3))
            here = 1 - self.optimizer_away
            states = (state.weights - state.unheld) / z3 + here * state.optimizer / z1
            second = state.second_gradients if self.zero in (1, 2) else 0.0
            states += (state.gradients + second) / z2
            elements = sum(held[layer] for layer in layers)
            total += elements * states
            stepping += elements * here * state.temporary / z1
            for layer in layers:
                alone = ranks == 1
                peaks[layer] += (state.weights if alone else self.whole) * whole[layer]
                if layer and not alone:
                    peaks[layer] += self.fetched * whole[layer - 1]
        kept, high = self._activations(virtual_stages, c, peaks)
        again = math.fsum(rows["kept_bytes"][0][layer] for layer in layers)
        held = self._in_flight(position) * kept
        if uneven:
            each = [self._activations((span,), c, peaks)[0] for span in virtual_stages]
            plain = [math.fsum(rows["kept_bytes"][0][first:end]) for first, end in virtual_stages]
            held = most_held(
                self.choice.schedule,
                self.choice.pp,
                position,
                self.micro_batches,
                each,
                plain,
            )
        passes = held + high
        passes += self._late(position) * again
        tensors = total + max(passes, stepping)
        held = tensors * (1 + self.problem.fragmentation) + self.problem.reserved_bytes
        held += self.problem.bucket_bytes if self.zero in (1, 2) else 0.0
        return held + self._groups() * self.problem.communicator_bytes

    def _groups(self) -> int:
        """Groups that a rank talks in: all ranks, along axes, of the same weights, a replica's."""
        tp, cp, ep = self.choice.tp, self.choice.cp, self.choice.ep
        etp = self.choice.etp or tp
        groups = [tp, cp, self.choice.pp, ep, cp * self.choice.dp, tp * self.choice.pp]
        groups.append(tp * cp * self.choice.dp * self.choice.pp)
        if ep > 1 or etp != tp:
            groups += [etp, tp * cp * self.choice.dp // (ep * etp)]
        return len([ranks for ranks in groups if ranks > 1])

    def _on_host(self, position: int, virtual_stages: VirtualStages) -> float:
        """Bytes that a rank's host holds of it: of micro-batches in flight, and of the states."""
        layers = [layer for first, end in virtual_stages for layer in range(first, end)]
        total = self._in_flight(position) * math.fsum(self._away(layer) for layer in layers)
        for held, ranks in ((self.dense, self.sharers), (self.experts, self.expert_sharers)):
            states = self.optimizer_away * self.problem.state.optimizer
            total += states * sum(held[layer] for layer in layers) / (ranks if self.zero else 1)
        return total


class Oracle:
    """Every plan of a problem over a space, priced.

    Parameters
    ----------
    fabric : nest_core.fabric.Hierarchical
        What ``problem.network`` was collapsed from.
    problem : nest_core.costs.Problem
    space : nest_core.planner.SearchSpace
    offload : tuple of float
        Shares of activations and of the optimizer that every plan leaves on the host.
    """

    def __init__(
        self, fabric: Any, problem: Any, space: Any, offload: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        self.problem, self.space, self.offload = problem, space, offload
        self.link_map = LinkMap(fabric.tiers, fabric.missing)
        self.devices = len(self.link_map.address)
        self._strategies: dict[tuple[int, bool, int, int, int, int], Strategy] = {}
        self._traffic: dict[Choice, Traffic] = {}
        self._pricers: dict[Choice, Pricer] = {}
        self.layers = len(self.strategy(1, False, 1).rows["compute_s"])

    def strategy(
        self, tp: int, sp: bool, micro_batch: int, cp: int = 1, ep: int = 1, etp: int = 0
    ) -> Strategy:
        """The layer table of one strategy."""
        key = tp, sp, micro_batch, cp, ep, etp or tp
        if key not in self._strategies:
            self._strategies[key] = Strategy(self.problem.table(*key))
        return self._strategies[key]

    def traffic(self, choice: Choice) -> Traffic:
        """What communication costs the stages of a point."""
        key = choice._replace(
            sp=False,
            micro_batch=1,
            zero=0,
            zero_group=0,
            schedule=choice.schedule if choice.interleave > 1 else "",
        )
        if key not in self._traffic:
            problem = self.problem
            self._traffic[key] = Traffic(self.link_map, choice, problem.software, problem.dispatch)
        return self._traffic[key]

    def pricer(self, choice: Choice) -> Pricer:
        """Prices stages of a point."""
        if choice not in self._pricers:
            strategy = self.strategy(
                choice.tp, choice.sp, choice.micro_batch, choice.cp, choice.ep, choice.etp
            )
            self._pricers[choice] = Pricer(
                self.problem, choice, self.traffic(choice), strategy, self.offload
            )
        return self._pricers[choice]

    # --- which plans there are ----------------------------------------------------------------

    def _strategies_of(self, dp: int, pp: int) -> list[Pick]:
        """Every valid strategy; with one rank to shard over all ZeRO stages are one, named 0.

        With a pipeline 1 and 2 are one, named 1 where that is allowed. ZeRO shards over all, or
        over groups of neighbours, several and of several, that leave as many copies of experts.
        """
        found = []
        for pick in self._whole_strategies_of(dp, pp):
            sharers = dp * pick.cp
            owners = sharers * pick.tp // (pick.ep * pick.etp)
            groups = {0 if size == sharers else size for size in self.space.zero_groups}
            found += [
                pick._replace(zero_group=size)
                for size in (sorted(groups) if pick.zero else (0,))
                if size == 0
                or (size > 1 and sharers % size == 0 and owners % (sharers // size) == 0)
            ]
        return found

    def _whole_strategies_of(self, dp: int, pp: int) -> list[Pick]:
        space = self.space
        least = min(space.zero)
        alike = pp > 1 and 1 in space.zero and not space.sharded_gradients
        return [
            Pick(tp, sp, cp, ep, zero if copies > 1 else 0, etp or tp)
            for tp, sp, cp, ep, zero, etp in product(
                space.tp, space.sp, space.cp, space.ep, space.zero, space.etp or (0,)
            )
            if (tp > 1 or not sp)
            and (etp in (0, tp) or (sp and tp % etp == 0))
            and dp * cp * tp % (ep * (etp or tp)) == 0
            and ((copies := max(dp * cp, dp * cp * tp // (ep * (etp or tp)))) > 1 or zero == least)
            and not (alike and copies > 1 and zero == 2)
        ]

    def _schedules_of(self, pp: int, micro_batches: int) -> Iterator[tuple[str, int]]:
        """Schedules and virtual stages per stage; without a pipeline 1F1B and GPipe are one."""
        space = self.space
        plain = [name for name in space.schedules if name not in ("interleaved", *SPLIT)]
        alone = next((name for name in LEANEST if name in plain), "")
        for schedule in space.schedules:
            if schedule in plain:
                if pp > 1 or schedule == alone:
                    yield schedule, 1
            elif (
                pp > 1
                and {
                    "interleaved": micro_batches % pp == 0,
                    "interleaved_zb": micro_batches % pp == 0,
                    "zbv": True,
                    "dualpipev": micro_batches >= 2 * pp,
                }[schedule]
            ):
                for v in (2,) if schedule in V_SHAPED else space.interleave:
                    uneven = space.layouts == "uneven" and pp * v <= self.layers
                    if v > 1 and (uneven or any(evenly(self.layers, pp * v))):
                        yield schedule, v

    def _orders_of(self, dp: int, pp: int, picks: Sequence[Pick]) -> list[tuple[str, ...]]:
        """Orders that differ in axes wider than one for some strategy, the first of each kind."""
        kinds: dict[Any, tuple[str, ...]] = {}
        for order in self.space.orders:
            wide = [{"tp": pick.tp, "cp": pick.cp, "dp": dp, "pp": pp} for pick in picks]
            kind = tuple(tuple(axis for axis in order if degree[axis] > 1) for degree in wide)
            kinds.setdefault(kind, order)
        return list(kinds.values())

    def _device_orders_of(self, devices: int) -> list[str]:
        """Device orders; where seatings are, each that places ranks on other devices.

        A seating has as many ranks as seats, or more where what it leaves are whole nodes.
        """
        if self.space.seating == "consecutive":
            return list(self.space.device_orders)
        distinct: dict[tuple[int, ...], str] = {}
        for order in (*self.space.device_orders, *self.link_map.seatings):
            seats = self.link_map.seatings.get(order, self.link_map.numbered(order))
            rest = sorted(set(range(self.problem.network.devices)) - set(seats))
            nodes = [self.link_map.address[device][:-1] for device in [*seats, *rest]]
            parted = len([*groupby(nodes)]) > len(set(nodes))
            if devices <= len(seats) or not parted:
                distinct.setdefault(tuple([*seats, *rest][:devices]), order)
        return list(distinct.values())

    def choices(self) -> Iterator[Choice]:
        """Every valid point; where stages may differ it bears its first strategy."""
        space = self.space
        for dp, pp, micro_batch in product(space.dp, space.pp, space.micro_batch):
            batch = self.problem.batch
            uneven = batch % (dp * micro_batch) > 0
            if uneven and not (
                self.problem.pad_batch and dp <= batch and micro_batch <= math.ceil(batch / dp)
            ):
                continue
            schedules = list(self._schedules_of(pp, math.ceil(batch / (dp * micro_batch))))
            families: dict[Any, list[Pick]] = {}
            for pick in self._strategies_of(dp, pp):
                families.setdefault(pick.tp * pick.cp if space.mixed else pick, []).append(pick)
            for picks in families.values():
                devices = picks[0].tp * picks[0].cp * dp * pp
                if devices > self.devices or (not space.idle_devices and devices < self.devices):
                    continue
                orders = self._orders_of(dp, pp, picks)
                for (schedule, v), order, device_order in product(
                    schedules, orders, self._device_orders_of(devices)
                ):
                    if pp * v <= self.layers:
                        tp, sp, cp, ep, zero, etp, zero_group = picks[0]
                        yield Choice(
                            tp,
                            sp,
                            dp,
                            pp,
                            micro_batch,
                            zero,
                            order,
                            device_order,
                            cp,
                            ep,
                            schedule,
                            v,
                            etp,
                            zero_group,
                        )

    def picks(self, choice: Choice) -> list[Pick]:
        """What each stage of a point may do."""
        if self.space.mixed:
            every = self._strategies_of(choice.dp, choice.pp)
            return [pick for pick in every if pick.tp * pick.cp == choice.width]
        return [Pick(*(getattr(choice, name) for name in Pick._fields))]

    def cuts(self, choice: Choice) -> Iterator[tuple[int, ...]]:
        """All cuts of the chain, but into the layouts that are open where stages have several."""
        if choice.interleave > 1:
            parts = choice.pp * choice.interleave
            even = list(evenly(self.layers, parts))
            yield from even
            if self.space.layouts == "uneven":
                yield from (cuts for cuts in layouts(self.layers, parts) if cuts not in even)
            return
        for inner in combinations(range(1, self.layers), choice.pp - 1):
            yield (0, *inner, self.layers)

    def count(self, choice: Choice) -> int:
        """Plans of a point, whether they fit or not."""
        ways = len(self.picks(choice)) * len(self.space.recompute)
        return sum(1 for _ in self.cuts(choice)) * ways**choice.pp

    # --- what they take -----------------------------------------------------------------------

    def row(self, recompute: str) -> int:
        """Where tables hold what a recomputation takes."""
        return list(self.problem.recomputations).index(recompute)

    def price(
        self,
        choice: Choice,
        cuts: Sequence[int],
        recompute: Sequence[str],
        picks: Sequence[Pick] = (),
    ) -> Priced:
        """One whole plan; each stage as if all others did what it does."""
        virtual_stages = list(pairwise(cuts))
        stages = []
        for position, name in enumerate(recompute):
            own = choice._replace(**picks[position]._asdict()) if picks else choice
            spans = self.spans(choice, virtual_stages, position)
            stages.append(
                self.pricer(own).stage(position, spans, self.row(name), self.uneven(choice, cuts))
            )
        loads = [one.seconds for one in stages]
        once = syncs(cuts, loads, [one.once for one in stages])
        found = tuple(
            Stage(one.seconds, sync, one.memory, one.host)
            for one, sync in zip(stages, once, strict=True)
        )
        weights, passes = [one.weights for one in stages], [one.passes for one in stages]
        filled = sum(one.travel for one in stages)
        return Priced(self.seconds(choice, loads, once, weights, passes) + filled, found)

    def spans(
        self, choice: Choice, virtual_stages: Sequence[tuple[int, int]], position: int
    ) -> VirtualStages:
        """Virtual stages of a stage."""
        places = chain(choice.schedule, choice.pp, position, choice.interleave)
        return tuple(virtual_stages[place] for place in places)

    def uneven(self, choice: Choice, cuts: Sequence[int]) -> bool:
        """Whether a plan's passes are replayed: in a V, or of virtual stages that are not equal."""
        even = tuple(cuts) in evenly(self.layers, len(cuts) - 1)
        return choice.schedule in SPLIT or (choice.interleave > 1 and not even)

    def seconds(
        self,
        choice: Choice,
        loads: Sequence[float],
        once: Sequence[float],
        weights: Sequence[float],
        passes: Sequence[Passes] = (),
    ) -> float:
        """Iteration time of one plan; zero-bubble, of the stage that all the others make wait.

        With virtual stages that are not equal, when the last of the ``passes`` is over.
        """
        m = math.ceil(self.problem.batch / (choice.dp * choice.micro_batch))
        if any(passes):
            beside = self.problem.overlap.experts
            return last_pass(choice.schedule, m, passes, beside=beside) + max(once)
        others = choice.pp - 1
        if choice.schedule in ROUNDS and others:
            late = min(m - 1, ROUNDS[choice.schedule] * others) / others
            wait = [
                load - weight - late * weight for load, weight in zip(loads, weights, strict=True)
            ]
            ends = [m * loads[s] + sum(wait[:s]) + sum(wait[s + 1 :]) for s in range(choice.pp)]
            return max(ends) + max(once)
        slowest = max(loads)
        fill = (sum(loads) - slowest) / choice.interleave
        return m * slowest + fill + max(once)

    def plans(self, choice: Choice, *, memory: float | None = None) -> Iterator[Whole]:
        """Every plan of a point that fits: cuts times what each stage does.

        ``memory`` replaces the problem's; a stage that does not fit is in no plan.
        """
        limit = self.problem.memory_bytes if memory is None else memory
        if self.space.as_needed and not self.space.mixed:
            own = Pick(*(getattr(choice, name) for name in Pick._fields))
            below = [
                choice._replace(**pick._asdict())
                for pick in self._strategies_of(choice.dp, choice.pp)
                if pick.sharing < own.sharing
                and pick._replace(zero=own.zero, zero_group=own.zero_group) == own
            ]
            if any(next(self._whole(one, limit), None) is not None for one in below):
                return
        yield from self._whole(choice, limit)

    def _whole(self, choice: Choice, limit: float) -> Iterator[Whole]:
        fitting: dict[tuple[int, VirtualStages, bool], list[Option]] = {}
        for cuts in self.cuts(choice):
            uneven = self.uneven(choice, cuts)
            virtual_stages = list(pairwise(cuts))
            rows = []
            for position in range(choice.pp):
                key = position, self.spans(choice, virtual_stages, position), uneven
                if key not in fitting:
                    fitting[key] = self._options(choice, *key, limit)
                rows.append(fitting[key])
            for stages in product(*rows):
                yield Whole(cuts, stages)

    def _options(
        self,
        choice: Choice,
        position: int,
        virtual_stages: VirtualStages,
        uneven: bool,
        limit: float,
    ) -> list[Option]:
        """What a stage may do that fits; as needed, of each width the first that does.

        Recomputation is raised first, then ZeRO.
        """
        found: dict[Any, list[Option]] = {}
        for pick in sorted(self.picks(choice), key=lambda pick: pick.sharing):
            pricer = self.pricer(choice._replace(**pick._asdict()))
            for name in self.problem.recomputations:
                stage = pricer.stage(position, virtual_stages, self.row(name), uneven)
                if name in self.space.recompute and stage.memory <= limit:
                    option = Option(
                        pick,
                        name,
                        stage.seconds,
                        stage.once,
                        stage.weights,
                        stage.passes,
                        stage.travel,
                    )
                    found.setdefault(pick._replace(zero=0, zero_group=0), []).append(option)
        rows = found.values()
        return [option for row in rows for option in (row[:1] if self.space.as_needed else row)]

    def best(self, choice: Choice, *, memory: float | None = None) -> Found | None:
        """The best plan of a point that fits."""
        fastest, least = None, math.inf
        for plan in self.plans(choice, memory=memory):
            _, _, loads, once, weights, passes, travels = zip(*plan.stages, strict=True)
            told = self.seconds(choice, loads, syncs(plan.cuts, loads, once), weights, passes)
            told += sum(travels)
            if told < least:
                fastest, least = plan, told
        if fastest is None:
            return None
        return Found(least, choice, fastest.cuts, fastest.recompute, fastest.picks)

    def ranking(self, *, memory: float | None = None) -> list[Found]:
        """The best plan of every point that has one, best first.

        Times that agree to 1e-12 are equal: the fewest devices come first, then the
        shallowest pipeline, then the smallest widths.
        """
        found = [self.best(choice, memory=memory) for choice in self.choices()]
        return rank([plan for plan in found if plan is not None])


def every_offload(fabric: Any, problem: Any, space: Any) -> list[Oracle]:
    """An oracle for each that the space has.

    Activations leave only where none is recomputed, and where gradients of weights are not late.
    """
    found = []
    for offload in space.offload:
        own = space
        if offload.activations:
            schedules = tuple(name for name in space.schedules if name not in ROUNDS)
            own = replace(space, recompute=("none",), schedules=schedules)
        found.append(Oracle(fabric, problem, own, (offload.activations, offload.optimizer)))
    return found


def syncs(cuts: Sequence[int], loads: Sequence[float], once: Sequence[Once]) -> list[float]:
    """Seconds once per iteration, stage by stage; interleaved, at the pace of the slowest."""
    chunked = len(cuts) - 1 > len(loads)
    paces = [max(loads)] * len(loads) if chunked else loads
    return [one.shown(pace) for one, pace in zip(once, paces, strict=True)]


def evenly(layers: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Even virtual stages: of the blocks, with embedding and head at the ends, or of all layers."""
    blocks = layers - 2
    if blocks and blocks % parts == 0:
        yield (0, *range(1 + blocks // parts, layers - 1, blocks // parts), layers)
    if layers % parts == 0:
        yield tuple(range(0, layers + 1, layers // parts))


def rank(plans: Sequence[Found]) -> list[Found]:
    """Best first, ties in the documented order."""
    submitted = sorted(plans, key=lambda plan: plan.seconds)
    ranked: list[Found] = []
    while submitted:
        limit = submitted[0].seconds * (1 + 1e-12)
        equal = [plan for plan in submitted if plan.seconds <= limit]
        submitted = submitted[len(equal) :]
        ranked += sorted(equal, key=preference)
    return ranked


def preference(plan: Found) -> tuple[int, int, Choice]:
    """Fewest devices, shallowest pipeline, smallest widths."""
    return plan.choice.devices, plan.choice.pp, plan.choice
