"""What the recurrence reads, from the costs of all choices and the seconds of hops.

Level-wise cost matrices: what the program reads of a network, level by level.

The links of a point have a member for every stage position. Here they have one for every level:
all slots are taken, and a level counts as the slowest position whose producer is there, a
collective as the slowest of all. Position 0 stands for the first stage, which has no producer,
position ``l + 1`` for one whose producer is at level ``l``; so `nest_core.costs.stage_costs` prices
levels as it prices positions.

The matrices assume that all slots and all replicas send at once; a plan that leaves slots out
may be faster than promised, and slower only through what levels do not say.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nest_core.costs import (
    PlanLinks,
    Point,
    Problem,
    StageCosts,
    hop_seconds,
    hop_times,
    links,
    ragged_hops,
)
from nest_core.network import FloatArray, IntArray, Kind, MessageTime
from nest_core.planner.levelwise.outer import Slots, Strategy, Stretch
from nest_core.planner.program import Choices, CostTables, cost_tables

__all__ = [
    "Hops",
    "LevelChoice",
    "LevelLinks",
    "level_links",
    "tables",
    "unequal_hops",
]


@dataclass(frozen=True, slots=True, eq=False)
class LevelLinks(PlanLinks):
    """Message times by level: ``forward[l + 1]`` is that of a link at level ``l``."""

    def _measured(self, axis: str, kind: Kind, instances: int) -> dict[Kind, MessageTime]:
        times = PlanLinks._measured(self, axis, kind, instances)
        members = 1 if axis == "tied" else len(self.producer_level)
        return {  # one member, with the slowest alpha and the slowest beta of all
            key: MessageTime(
                time.alpha_s.max(axis=1, keepdims=True),
                time.beta_s_per_byte.max(axis=1, keepdims=True),
            ).repeated(members)
            for key, time in times.items()
        }


def level_links(problem: Problem, point: Point, placed_slots: Slots) -> LevelLinks:
    """Matrices of a point's degrees; all its slots are taken.

    Parameters
    ----------
    point : Point
        Its ``pp`` and ``device_order`` are not read, nor what does not place ranks.
    """
    placed = Point(
        tp=point.tp,
        sp=False,
        dp=point.dp,
        pp=len(placed_slots),
        micro_batch=1,
        zero=0,
        order=placed_slots.order,
        device_order=placed_slots.device_order(np.arange(len(placed_slots))[::-1]),
        cp=point.cp,
        ep=point.ep,
        etp=point.etp,
    )
    shared = links(problem, placed)
    levels = len(problem.network.nesting)
    alpha = np.zeros((len(shared.forward.alpha_s), levels + 1))
    beta = np.zeros_like(alpha)
    for level in range(levels):
        met = np.flatnonzero(shared.producer_level == level)
        if len(met):
            alpha[:, level + 1] = shared.forward.alpha_s[:, met].max(axis=1)
            beta[:, level + 1] = shared.forward.beta_s_per_byte[:, met].max(axis=1)
    producer = np.arange(levels + 1) - 1
    forward = MessageTime(alpha, beta)
    return LevelLinks(
        problem.network, problem.software, placed, forward, producer, problem.dispatch
    )


def unequal_hops(problem: Problem, line: Stretch, x: int, y: int) -> MessageTime:
    """Hops between stages of two widths, as ``forward`` of `LevelLinks`; infinite where none meet.

    By bytes of the whole tensor. Stages of both widths take turns along all replicas, once
    beginning with either.
    """
    levels, hops = len(problem.network.nesting), []
    for turn in ((x, y), (y, x)):
        placed: list[IntArray] = []
        at = 0
        while True:
            number = turn[len(placed) % 2]
            free = np.flatnonzero(line.ends[number, at:] >= 0)
            if not len(free):
                break
            first = at + int(free[0])
            at = int(line.ends[number, first])
            placed.append(line.devices[:, first:at][:, ::-1])
        if len(placed) > 1:
            hops.append(hop_times(problem, ragged_hops(tuple(placed[::-1]), len(line.devices))))
    alpha, beta = np.zeros((2, len(hops[0][0].alpha_s) if hops else 1, levels + 1))
    for level in range(levels):
        sides = [(time, np.flatnonzero(met == level)) for time, met in hops]
        alpha[:, level + 1] = _most([time.alpha_s[:, here] for time, here in sides], 0.0)
        beta[:, level + 1] = _most([time.beta_s_per_byte[:, here] for time, here in sides], np.inf)
    return MessageTime(alpha, beta)


def _most(sides: list[FloatArray], none: float) -> FloatArray | float:
    """Return the largest value of every regime over all members; ``none`` without any."""
    maxima = [side.max(axis=1) for side in sides if side.shape[1]]
    return np.max(maxima, axis=0) if maxima else none


Hops = dict[tuple[int, int], tuple[MessageTime, int]]
"""By the numbers of both widths: times by level, and of how many parts of a tensor."""


class LevelChoice(NamedTuple):
    """A strategy with a ZeRO stage, of the width number ``x``, and its costs."""

    x: int
    strategy: Strategy
    point: Point
    shared: LevelLinks
    costs: StageCosts


def tables(
    problem: Problem, rows: IntArray, choices: list[LevelChoice], hops: Hops, rule: bool
) -> CostTables:
    """Return the arrays of all choices, each by every recomputation.

    Times over hops that there are not are infinite.

    Parameters
    ----------
    rows : int array
        Recomputations.
    rule : bool
        Whether of a recomputation's ZeRO stages the first that fits must be taken.
    """
    read = cost_tables(Choices.of([choice.costs for choice in choices], rows))
    arrive, retire = _hop_tables(problem, choices, hops)
    if rule:
        # Of a group only the first that fits may be taken: the least ZeRO of a recomputation.
        names = [choice.strategy for choice in choices]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        alike = np.array([numbers[name] for name in names])[read.strategy] * len(rows)
        read = read._replace(group=alike + np.tile(np.arange(len(rows)), len(choices)))
    return read._replace(arrive=arrive, retire=retire)


def _hop_tables(
    problem: Problem, choices: list[LevelChoice], hops: Hops
) -> tuple[FloatArray, FloatArray]:
    """Seconds to receive and to send, by the end of a hop, shape (choices, U, L + 1) each."""
    widths, levels = 1 + max(x for x, _ in hops), len(problem.network.nesting)
    shape = (len(choices), 1 + levels * widths, problem.layers + 1)
    arrive, retire = np.zeros(shape), np.zeros(shape)
    for number, choice in enumerate(choices):
        point = choice.point
        table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
        for y in range(widths):
            time, ranks = hops[choice.x, y]
            forward = MessageTime(
                time.alpha_s, time.beta_s_per_byte * (point.tp * point.cp / ranks)
            )
            come, go = hop_seconds(point, replace(choice.shared, forward=forward), table)
            arrive[number, 1 + y :: widths] = come[1:]
            retire[number, 1 + y :: widths] = go[:-1]
    return arrive, retire
