"""The oracle for plans whose stages differ in width: every rank on its own device.

Written from the words of docs/method.md, "Unequal widths"; imports nothing of the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise, product

from oracle import Oracle, Pick, Priced, Pricer, Stage, syncs
from oracle_traffic import (
    Choice,
    Time,
    Traffic,
    at_once,
    half_times,
    nodes_of,
    protocols,
    slowest,
)


def numbers(pick: Pick, order: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Context- and tensor-parallel rank of a stage's devices, one after another."""
    if order[0] == "tp":
        yield from product(range(pick.cp), range(pick.tp))
    else:
        yield from ((c, t) for t, c in product(range(pick.tp), range(pick.cp)))


def seats(
    devices: Sequence[int], picks: Sequence[Pick], dp: int, order: Sequence[str]
) -> dict[tuple[int, int, int, int], int]:
    """Device of stage, data-, context- and tensor-parallel rank, handed out one by one."""
    stages = range(len(picks))
    if order[-1] == "dp":
        blocks = [(s, d) for d, s in product(range(dp), stages)]
    else:
        blocks = list(product(stages, range(dp)))
    free = iter(devices)
    return {(s, d, c, t): next(free) for s, d in blocks for c, t in numbers(picks[s], order)}


def shared_parts(left: int, right: int) -> dict[tuple[int, int], float]:
    """Which part on either side holds how much of a whole, crumb by crumb."""
    crumbs = left * right
    held: dict[tuple[int, int], float] = {}
    for crumb in range(crumbs):
        pair = crumb // right, crumb // left
        held[pair] = held.get(pair, 0.0) + 1 / crumbs
    return held


class RaggedTraffic(Traffic):
    """What communication costs the stages that do what ``choice`` says, among all the others."""

    def __init__(self, oracle: Oracle, choice: Choice, picks: Sequence[Pick]) -> None:
        self.link_map, self.software = oracle.link_map, oracle.problem.software
        self.choice, self.picks, self.dispatch = choice, picks, oracle.problem.dispatch
        self.rank_mapping = seats(
            self.link_map.numbered(choice.device_order), picks, choice.dp, choice.order
        )
        self.stages = range(choice.pp)
        self.links = self._links()
        self._found: dict[tuple[str, str, int], list[Time]] = {}

    def groups(self, axis: str, copies: int = 1) -> dict[int, list[list[int]]]:
        """Of the stages whose groups have as many members as the choice's own."""
        every = {s: self._of(axis, s, pick, copies) for s, pick in enumerate(self.picks)}
        mine = next(s for s in self.stages if self.picks[s] == self._pick)
        members = len(every[mine][0])
        return {s: every[s] if len(every[s][0]) == members else [] for s in self.stages}

    @property
    def _pick(self) -> Pick:
        choice = self.choice
        return Pick(*(getattr(choice, name) for name in Pick._fields))

    def _of(self, axis: str, stage: int, pick: Pick, copies: int) -> list[list[int]]:
        """The groups of one stage, as the plain oracle has them."""
        alone = object.__new__(Traffic)
        alone.choice = self.choice._replace(**pick._asdict())
        alone.rank_mapping = self.rank_mapping
        alone.stages, alone.ranks = [stage], range(pick.tp)
        alone.sharers = list(product(range(self.choice.dp), range(pick.cp)))
        if pick != self._pick:
            copies = alone.choice.copies if "data" in axis else 1
        return Traffic.groups(alone, axis, copies)[stage]

    def time(self, axis: str, kind: str, copies: int = 1) -> list[Time]:
        """By stage; nothing where a stage has other groups."""
        if (axis, kind, copies) not in self._found:
            groups = self.groups(axis, copies)
            times = iter(self._at_once([one for s in self.stages for one in groups[s]], kind))
            self._found[axis, kind, copies] = [
                slowest([next(times) for _ in groups[s]]) if groups[s] else [(0.0, 0.0)]
                for s in self.stages
            ]
        return self._found[axis, kind, copies]

    def _flows(self, first: int, second: int) -> list[tuple[int, int, float]]:
        """Sender, receiver and share of the tensor, between two stages."""
        wide = [self.picks[s].tp * self.picks[s].cp for s in (first, second)]
        ranks = [
            [(c, t) for c, t in product(range(self.picks[s].cp), range(self.picks[s].tp))]
            for s in (first, second)
        ]
        return [
            (
                self.rank_mapping[(first, d, *ranks[0][a])],
                self.rank_mapping[(second, d, *ranks[1][b])],
                share,
            )
            for d in range(self.choice.dp)
            for (a, b), share in shared_parts(*wide).items()
        ]

    def _links(self) -> dict[int, Time]:
        """By receiving stage, per byte of what one rank of the choice's stage holds."""
        if self.choice.pp == 1:
            return {}
        hops = [(s, *flow) for s in self.stages[1:] for flow in self._flows(s - 1, s)]
        nodes = min(2, nodes_of(self.link_map, [(a, b) for _, a, b, _ in hops]))
        offered = protocols(self.software, "all_to_all", 2, nodes)
        flows = [(number, a, b, share, 1) for number, (_, a, b, share) in enumerate(hops)]
        found: dict[int, Time] = {}
        timed = [
            [(entry.base_s + alpha, beta) for alpha, beta in at_once(
                self.link_map, flows, entry, len(flows)
            )]
            for entry in offered
        ]  # fmt: skip
        for stage in self.stages[1:]:
            here = [number for number, hop in enumerate(hops) if hop[0] == stage]
            found[stage] = [
                (
                    max(times[number][0] for number in here),
                    max(times[number][1] for number in here) * self.choice.width,
                )
                for times in timed
            ]
        return found

    @cached_property
    def tied(self) -> Time:
        """Half an all-reduce of the wider end's parts, all pairs at once."""
        pairs = [[a, b] for a, b, _ in self._flows(0, self.choice.pp - 1)]
        part = self.choice.tp / max(self.picks[0].tp, self.picks[-1].tp)
        times = slowest(half_times(self.link_map, pairs, self.software, "all_reduce"))
        return [(alpha, beta * part) for alpha, beta in times]


def price_ragged(
    oracle: Oracle,
    choice: Choice,
    cuts: Sequence[int],
    recompute: Sequence[str],
    picks: Sequence[Pick],
) -> Priced:
    """One whole plan, every stage on its own devices."""
    spans = list(pairwise(cuts))
    stages = []
    for position, (name, pick) in enumerate(zip(recompute, picks, strict=True)):
        own = choice._replace(**pick._asdict())
        table = oracle.strategy(pick.tp, pick.sp, choice.micro_batch, pick.cp, pick.ep, pick.etp)
        pricer = Pricer(oracle.problem, own, RaggedTraffic(oracle, own, picks), table)
        stages.append(pricer.stage(position, (spans[position],), oracle.row(name)))
    loads = [one.seconds for one in stages]
    once = syncs(cuts, loads, [one.once for one in stages])
    found = tuple(
        Stage(one.seconds, sync, one.memory) for one, sync in zip(stages, once, strict=True)
    )
    seconds = oracle.seconds(choice, loads, once, [one.weights for one in stages])
    return Priced(seconds + sum(one.travel for one in stages), found)
