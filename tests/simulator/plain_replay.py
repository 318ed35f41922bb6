"""An iteration once more, in plain Python: every device, every message, one after another.

Written from the rules that `nest_core.simulator.program` and docs/method.md state, for groups of
two at most on a flat fabric: a member sends half of a buffer to the other, a latency before.
Shares no code with the product, and imports nothing of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

Key = tuple[object, ...]


@dataclass(frozen=True)
class Toy:
    """Layers on devices numbered tp first, then cp, dp, pp; lists are per layer, both passes.

    Shares are 1 or 0: a kind of call has a stream of its own, or runs among the work. Of what runs
    again ``again`` has the seconds, ``tensor_again`` and ``context_again`` the bytes. Experts are
    shared by the ranks that share the weights, whose number is two at most.
    """

    cuts: tuple[int, ...]
    compute: list[float]
    forward: list[float]
    weight: list[float]
    again: list[float]
    launch: list[float]
    tensor_bytes: list[float]
    weights: list[float]
    boundary: list[float]
    context_bytes: list[float]
    expert_bytes: list[float]
    tensor_again: list[float]
    context_again: list[float]
    host_bytes: list[float]
    tied: float = 0.0
    tp: int = 1
    cp: int = 1
    dp: int = 1
    pp: int = 1
    m: int = 1
    v: int = 1
    zero: int = 0
    schedule: str = "1f1b"
    tp_share: int = 0
    pp_share: int = 0
    dp_share: int = 0
    rate: float = 1.0
    latency: float = 0.0
    host_rate: float = 1.0


@dataclass
class Task:
    """Work of some seconds, or messages (from, to, bytes) that leave after a latency."""

    seconds: float = 0.0
    sends: list[tuple[int, int, float]] = field(default_factory=list)
    after: set[Key] = field(default_factory=set)


class Replay:
    """All tasks of a toy, and when they end."""

    def __init__(self, toy: Toy) -> None:
        self.toy = toy
        self.tasks: dict[Key, Task] = defaultdict(Task)
        self.last: dict[tuple[int, str], Key] = {}
        for s in range(toy.pp):
            for d in range(toy.dp):
                for r in range(toy.cp):
                    for t in range(toy.tp):
                        self.device(s, d, r, t)

    # Tasks.

    def number(self, s: int, d: int, r: int, t: int) -> int:
        return ((s * self.toy.dp + d) * self.toy.cp + r) * self.toy.tp + t

    def issue(self, device: int, stream: str, key: Key, after: Iterable[Key] = ()) -> Key:
        """Put a task on a stream, behind what is there."""
        self.tasks[key].after |= set(after)
        if (device, stream) in self.last:
            self.tasks[key].after.add(self.last[device, stream])
        self.last[device, stream] = key
        return key

    def work(self, device: int, stream: str, name: Key, seconds: float, after: set[Key]) -> Key:
        key = (device, *name)
        self.tasks[key].seconds = seconds
        return self.issue(device, stream, key, after)

    def call(
        self, device: int, stream: str, name: Key, group: list[int], size: float, after: set[Key]
    ) -> set[Key]:
        """Half a buffer to the other; nothing for a group of one."""
        if len(group) < 2 or size <= 0:
            return set()
        key = ("call", *group, *name)
        one, other = group
        self.tasks[key].sends = [(one, other, size / 2), (other, one, size / 2)]
        self.tasks[key].seconds = self.toy.latency
        return {self.issue(device, stream, key, after)}

    # A device.

    def device(self, s: int, d: int, r: int, t: int) -> None:
        toy, me = self.toy, self.number(s, d, r, t)
        tensor = [self.number(s, d, r, n) for n in range(toy.tp)]
        context = [self.number(s, d, n, t) for n in range(toy.cp)]
        data = [self.number(s, n, k, t) for n in range(toy.dp) for k in range(toy.cp)]
        groups = {"tp": tensor, "cp": context, "ep": data}
        mine = [layer for c in range(s, toy.pp * toy.v, toy.pp) for layer in self.span(c)]
        dense = list(toy.weights)
        if toy.pp == 1:  # the head is the embedding
            dense[-1] -= toy.tied
        fresh: dict[int, set[Key]] = {}
        if toy.zero == 1 and toy.dp_share:
            for layer in mine:
                name = ("new", layer)
                fresh[layer] = self.call(me, "data", name, data, dense[layer], set())
        order = self.order(s)
        reduces_at = "W" if toy.schedule == "zb_h1" else "B"
        for way, k, c in order:
            received = self.receive((s, d, r, t), way, k, c)
            start = self.work(me, "compute", ("start", way, k, c), 0.0, received)
            behind, gate = {start}, {start}
            late: list[tuple[Key, float, set[Key]]] = []
            layers = self.span(c) if way == "F" else reversed(self.span(c))
            for layer in layers:
                gathered: set[Key] = set()
                if toy.zero == 3 and way in "FB":
                    stream = "data" if toy.dp_share else "compute"
                    name = ("gather", way, k, layer)
                    gathered = self.call(me, stream, name, data, dense[layer], behind)
                self.reduce(me, data, late)
                behind, waits = gate, gate | gathered
                if way == "F":
                    waits |= fresh.pop(layer, set())
                gate = self.layer(me, groups, way, (k, layer), start, waits)
                late = []
                if toy.zero == 3 and way == "B":
                    late.append((("reduce", k, layer), dense[layer], gate))
                if toy.zero < 3 and way == reduces_at and k == toy.m - 1:
                    late += [
                        (("once", n, layer), dense[layer], gate)
                        for n in range(2 if toy.zero == 0 else 1)
                        if toy.dp_share
                    ]
            self.reduce(me, data, late)
            self.work(me, "compute", ("end", way, k, c), 0.0, gate)
        waits = {key for (device, _), key in self.last.items() if device == me}
        self.work(me, "compute", ("closing",), 0.0, waits)
        if toy.tied and toy.pp > 1 and s in (0, toy.pp - 1):
            ends = [self.number(0, d, r, t), self.number(toy.pp - 1, d, r, t)]
            for _ in self.call(me, "compute", ("tied",), ends, 2 * toy.tied, set()):
                self.tasks["call", *ends, "tied"].seconds = 2 * toy.latency
        if not toy.dp_share:
            for layer in mine:
                for n in range((2, 1, 0, 0)[toy.zero]):
                    self.call(me, "compute", ("once", n, layer), data, dense[layer], set())
            for layer in mine:
                if toy.zero == 1:
                    self.call(me, "compute", ("new", layer), data, dense[layer], set())

    def layer(
        self, me: int, groups: dict[str, list[int]], way: str, name: Key, start: Key, gate: set[Key]
    ) -> set[Key]:
        """Work, and calls beside it or behind it; what recomputes goes first."""
        toy, layer = self.toy, int(str(name[-1]))
        split = toy.schedule == "zb_h1"
        whole, ahead = toy.compute[layer], toy.forward[layer]
        sent = {
            "tp": toy.tensor_bytes[layer] / 2,
            "cp": toy.context_bytes[layer] / 2,
            "ep": toy.expert_bytes[layer] / 2,
        }
        once_more = {"tp": toy.tensor_again[layer], "cp": toy.context_again[layer]}
        launch_s, copy_s = toy.launch[layer] / 2, toy.host_bytes[layer] / toy.host_rate
        steps: dict[str, list[tuple[str, float, dict[str, float], float, float]]] = {
            "F": [("F", ahead, sent, launch_s, copy_s)],
            "W": [("W", toy.weight[layer], {}, 0.0, 0.0)],
            "B": [
                ("R", toy.again[layer], once_more, 0.0, 0.0),
                ("B", whole - ahead - toy.weight[layer] * split, sent, launch_s, copy_s),
            ],
        }
        for step, seconds, calls, launch, copies in steps[way]:
            over: set[Key] = set()
            if seconds > 0:
                over.add(self.work(me, "compute", (step, *name), seconds, gate))
            stream = "layer" if toy.tp_share else "compute"
            for axis, size in calls.items():
                over |= self.call(me, stream, (axis, step, *name), groups[axis], size, gate)
            if launch > 0:
                waits = {start} if toy.pp > 1 else set()
                over.add(self.work(me, "host", ("launch", step, *name), launch, waits))
            if copies > 0:
                over.add(self.work(me, "copies", ("copy", step, *name), copies, gate))
            gate = over or gate
        return gate

    def reduce(self, me: int, data: list[int], late: list[tuple[Key, float, set[Key]]]) -> None:
        for name, size, gate in late:
            stream = "data" if self.toy.dp_share else "compute"
            self.call(me, stream, name, data, size, gate)

    def receive(self, at: tuple[int, int, int, int], way: str, k: int, c: int) -> set[Key]:
        """What another stage sends when its pass ends; parts are gathered on arrival."""
        toy, me, (s, d, r, t) = self.toy, self.number(*at), at
        other = c + {"F": -1, "B": 1, "W": 0}[way]
        if way == "W" or not 0 <= other < toy.pp * toy.v:
            return set()
        size = toy.boundary[self.span(c)[0] if way == "F" else self.span(c)[-1] + 1]
        source = self.number(other % toy.pp, d, r, t)
        stream = ("receive" if way == "F" else "return") if toy.pp_share else "compute"
        key = ("call", me, "transfer", way, k, c)
        self.tasks[key].seconds = toy.latency
        self.tasks[key].sends = [(source, me, size / toy.tp)]
        received = {self.issue(me, stream, key, {(source, "end", way, k, other)})}
        tensor = [self.number(s, d, r, n) for n in range(toy.tp)]
        return self.call(me, stream, ("arrived", way, k, c), tensor, size, received) or received

    def span(self, c: int) -> range:
        return range(self.toy.cuts[c], self.toy.cuts[c + 1])

    def order(self, s: int) -> list[tuple[str, int, int]]:
        """Passes of a stage: way, micro-batch, place in the chain."""
        toy, pp, m, v = self.toy, self.toy.pp, self.toy.m, self.toy.v
        if toy.schedule == "zb_h1":
            rounds = [(k - (pp - 1 - s), 0, "F", k) for k in range(m)]
            rounds += [(k, 1, "B", k) for k in range(m)] + [(k + s, 2, "W", k) for k in range(m)]
            return [(way, k, s) for _, _, way, k in sorted(rounds)]
        parts = [range(first, min(first + pp, m)) for first in range(0, m, pp)]
        if v == 1:
            parts = [range(m)]
        forth = [("F", k, n * pp + s) for part in parts for n in range(v) for k in part]
        back = [("B", k, n * pp + s) for part in parts for n in reversed(range(v)) for k in part]
        ahead = pp - s - 1 if v == 1 else 2 * (pp - s - 1) + (v - 1) * pp
        ahead = len(forth) if toy.schedule == "gpipe" else min(ahead, len(forth))
        result = forth[:ahead]
        for one, other in zip(forth[ahead:], back, strict=False):
            result += [one, other]
        return result + back[len(forth) - ahead :]

    # Time.

    def seconds(self) -> float:
        """When the last task ends."""
        waits = {key: len(task.after) for key, task in self.tasks.items()}
        follow = defaultdict(list)
        for key, task in self.tasks.items():
            for before in task.after:
                follow[before].append(key)
        ready = [key for key, count in waits.items() if not count]
        clocks: dict[Key, float] = {}
        flows: list[tuple[Key, int, int, float]] = []
        now, over = 0.0, 0
        while True:
            while ready:
                key = ready.pop()
                clocks[key] = now + self.tasks[key].seconds
            rates = self.rates([(a, b) for _, a, b, _ in flows])
            sending = {key for key, *_ in flows}
            ends = [end for key, end in clocks.items() if key not in sending]
            ends += [now + left / rate for (*_, left), rate in zip(flows, rates, strict=True)]
            if not ends:
                assert over == len(self.tasks), "tasks wait for one another"
                return now
            before, now = now, min(ends)
            flows = [
                (key, a, b, left - rate * (now - before))
                for (key, a, b, left), rate in zip(flows, rates, strict=True)
            ]
            flows = [flow for flow in flows if flow[3] > 1e-9 * self.toy.rate]
            still = {key for key, *_ in flows}
            for key in [key for key, end in clocks.items() if end <= now + 1e-12 * now]:
                if key not in sending and self.tasks[key].sends:
                    flows += [(key, a, b, size) for a, b, size in self.tasks[key].sends]
                elif key not in still:
                    del clocks[key]
                    over += 1
                    for other in follow[key]:
                        waits[other] -= 1
                        if not waits[other]:
                            ready.append(other)

    def rates(self, pairs: list[tuple[int, int]]) -> list[float]:
        """All rates rise together until a device's port is full, out or in."""
        result: dict[int, float] = {}
        while len(result) < len(pairs):
            shares = {}
            for way in range(2):
                for port in {pair[way] for pair in pairs}:
                    on = [n for n, pair in enumerate(pairs) if pair[way] == port]
                    free = self.toy.rate - sum(result.get(n, 0.0) for n in on)
                    still = [n for n in on if n not in result]
                    if still:
                        shares[way, port] = free / len(still), still
            level, _ = min(shares.values())
            for share, still in shares.values():
                if share <= level * (1 + 1e-9):
                    result |= dict.fromkeys(still, level)
        return [result[n] for n in range(len(pairs))]
