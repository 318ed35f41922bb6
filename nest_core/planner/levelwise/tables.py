"""What the recurrence reads, from the costs of all choices and the seconds of hops."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nest_core.costs import Point, Problem, StageCosts
from nest_core.costs.stages import hop_seconds
from nest_core.network import FloatArray, IntArray, MessageTime
from nest_core.planner.levelwise.limits import LimitTables, longest_by_method, longest_in_memory
from nest_core.planner.levelwise.matrices import LevelLinks
from nest_core.planner.levelwise.outer import Strategy

__all__ = ["Hops", "LevelChoice", "longest_by_memory", "tables"]

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
) -> LimitTables:
    """Arrays of all choices, each by every recomputation.

    Parameters
    ----------
    rows : int array
        Recomputations.
    rule : bool
        Whether of a recomputation's ZeRO stages the first that fits must be taken.
    """
    costs = [choice.costs for choice in choices]
    strategy = np.repeat(np.arange(len(costs)), len(rows))

    # Of a group only the first that fits may be taken: the least ZeRO of a recomputation.
    names = [choice.strategy for choice in choices]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    alike = np.array([numbers[name] for name in names])[strategy] * len(rows)
    alike += np.tile(np.arange(len(rows)), len(costs))
    arrive, retire = _hop_tables(problem, choices, hops)
    return LimitTables(
        time=_by_row(costs, rows, "time"),
        free=_by_row(costs, rows, "free"),
        forward=_stacked(costs, "forward"),
        arrive=arrive,
        retire=retire,
        saved=costs[0].transfer_saved,
        sync=np.ascontiguousarray(_stacked(costs, "sync")[:, 0]),
        once=np.ascontiguousarray(_stacked(costs, "once")[:, 0]),
        tied=np.ascontiguousarray(_stacked(costs, "sync_base")[:, 0]),
        spared=costs[0].once_saved,
        strategy=strategy,
        group=alike if rule else np.arange(len(strategy)),
        width=np.array([choice.x for choice in choices])[strategy],
        whole_time=np.ascontiguousarray(_stacked(costs, "time")[:, 0, -1]),
        whole_free=np.ascontiguousarray(_stacked(costs, "free")[:, 0, -1]),
        heads=np.tile(costs[0].heads[rows], (len(costs), 1)),
    )


def longest_by_memory(rows: IntArray, choices: list[LevelChoice], flights: int) -> IntArray:
    """Memory as in `nest_core.planner.levelwise.recurrence.Longest`."""
    costs = [choice.costs for choice in choices]
    strategy = np.repeat(np.arange(len(costs)), len(rows))
    memory = longest_in_memory(
        _stacked(costs, "static"),
        _by_row(costs, rows, "kept"),
        _by_row(costs, rows, "peak"),
        _stacked(costs, "step"),
        strategy,
        np.array([cost_of_choice.limit for cost_of_choice in costs]),
        flights,
    )
    for o, (g, c) in enumerate(zip(strategy, np.tile(rows, len(costs)), strict=True)):
        cost = costs[g]
        if cost.by_method(c):
            longest_by_method(
                cost.static,
                cost.kept[[0, -1]],
                cost.peak[[0, -1]],
                cost.step,
                cost.again,
                cost.heads[c],
                cost.chunks[c],
                cost.limit,
                memory[:, o],
            )
    return memory


def _stacked(costs: list[StageCosts], name: str) -> FloatArray:
    """An array of all costs."""
    return np.stack([getattr(entry, name) for entry in costs])


def _by_row(costs: list[StageCosts], rows: IntArray, name: str) -> FloatArray:
    """The same by recomputation, a row for each choice."""
    stacked = _stacked(costs, name)  # time and free have positions, which are alike
    stacked = stacked[:, 0] if stacked.ndim == 4 else stacked
    return np.ascontiguousarray(stacked[:, rows].reshape(-1, stacked.shape[-1]))


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
            share = point.tp * point.cp / ranks
            forward = MessageTime(time.alpha_s, time.beta_s_per_byte * share)
            come, go = hop_seconds(point, replace(choice.shared, forward=forward), table)
            arrive[number, 1 + y :: widths] = come[1:]
            retire[number, 1 + y :: widths] = go[:-1]
    return arrive, retire
