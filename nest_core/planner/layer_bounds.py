"""Families at best-case communication: what their layers take and hold.

What the innermost collectives take at least on a torus: those of one block of ranks, alone.

Where tensor and context parallelism are the innermost axes and ranks sit in the fabric's own
order, the groups of either are those of whole blocks of ``tp * cp`` devices, one after another,
whatever the other degrees.

Notes
-----
No plan beats this bound. All groups of a class send at once, so a block's own flows are among
those that share its links, and a link's load only grows with the others; routes do not depend on
load. A stage waits for the slowest of its groups, hence for each of its blocks, and no block is
faster than the fastest of all, alone. That holds for every regime's seconds before the first byte
and per byte, each, and therefore for the best regime at any size. On a torus regimes do not
depend on where a group sits, and a route is given by its moves: blocks whose members lie alike,
seen from their first, are translations of one another and take the same, so that one of a kind
is placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache

import numpy as np

from nest_core.costs import (
    MEGATRON_ORDER,
    LayerTable,
    Point,
    Problem,
    beside_passes,
    condensed,
    links,
    pass_seconds,
    pass_work,
    with_launches,
)
from nest_core.network import FloatArray, IntArray, Kind, MessageTime, TorusShape
from nest_core.planner.space import Families, SearchSpace
from nest_core.planner.transfer_bounds import TransferBounds, call_bound

__all__ = ["BestCase", "BlockBounds", "LayerBounds", "best_case", "layer_bounds", "untied"]


class BlockBounds:
    """Lower bounds of collectives inside blocks, each placed once.

    Parameters
    ----------
    problem : Problem
    space : SearchSpace
    """

    def __init__(self, problem: Problem, space: SearchSpace) -> None:
        self._problem = problem
        self._known = (
            problem.network.torus is not None
            and set(space.device_orders) == {"natural"}
            and all(order[:2] == MEGATRON_ORDER[:2] for order in space.orders)
        )
        self._least = cache(self._least_in_blocks)

    def seconds(
        self, axis: str, kind: Kind, width: tuple[int, int], size: FloatArray
    ) -> FloatArray:
        """Return the least seconds of one call in blocks of ``width`` (tp, cp), by bytes.

        0 where nothing is known: on other fabrics, of blocks wider than the fabric, and of experts.
        """
        tp, cp = width
        fits = tp * cp <= self._problem.network.devices
        if not self._known or not fits or axis not in ("tp", "cp"):
            return np.zeros_like(size)
        return np.asarray(
            self._least(axis, kind, tp, cp if axis == "cp" else 1)
            .along(size.ndim)
            .seconds(size[None])[0]
        )

    def _least_in_blocks(self, axis: str, kind: Kind, tp: int, cp: int) -> MessageTime:
        """One member: the least of every block, regime by regime."""
        network = self._problem.network
        every = np.arange(network.devices // (tp * cp) * tp * cp).reshape(-1, tp * cp)
        if network.torus is not None:
            every = _distinct(network.torus, network.place, every)
        alone = [
            links(
                self._problem,
                Point(tp, False, 1, 1, 1, 0, MEGATRON_ORDER, tuple(block), cp),
            ).time(axis, kind)
            for block in every.tolist()
        ]
        return MessageTime(
            np.min([time.alpha_s for time in alone], axis=0),
            np.min([time.beta_s_per_byte for time in alone], axis=0),
        )


def _distinct(shape: TorusShape, place: IntArray, blocks: IntArray) -> IntArray:
    """One block of each kind, (kinds, members): of those that are translations of one another."""
    moves = shape.moves(place[blocks[:, :1]], place[blocks])
    kind = moves.transpose(1, 0, 2).reshape(len(blocks), -1)
    _, first = np.unique(kind, axis=0, return_index=True)
    return np.asarray(blocks[np.sort(first)])


@dataclass(frozen=True, slots=True, eq=False)
class LayerBounds:
    """What layers take and hold at best-case communication, entry by entry.

    Attributes
    ----------
    within, tallest : (entries,)
        Seconds of all layers, and of the longest, under the lightest recomputation.
    boundary : (entries,)
        Lower bound of the bytes that a rank sends to the next stage.
    count : (entries, runs)
        Layers of every run of equal ones; 0 fills up.
    dense, experts : (entries, runs)
        Elements of one layer.
    device, cover : (entries, runs, choices)
        Seconds of one layer without its host and without data-parallel traffic, and those that
        such traffic can hide behind at most.
    host : (entries, runs, choices)
        Seconds of its launches.
    free : (entries, runs)
        Seconds that what it sends once per iteration can hide behind at most.
    """

    within: FloatArray
    tallest: FloatArray
    boundary: FloatArray
    count: FloatArray
    dense: FloatArray
    experts: FloatArray
    device: FloatArray
    cover: FloatArray
    host: FloatArray
    free: FloatArray

    def of(self, which: IntArray, parts: FloatArray) -> LayerBounds:
        """Return some entries, whose experts are divided among ``parts`` times as many ranks
        each.
        """
        chosen = {field.name: getattr(self, field.name)[which] for field in fields(self)}
        return LayerBounds(**{**chosen, "experts": chosen["experts"] / parts[:, None]})

    @classmethod
    def joined(cls, parts: Sequence[LayerBounds]) -> LayerBounds:
        """Entries of several, one after another."""
        runs = max(part.count.shape[1] for part in parts)

        def filled(values: FloatArray) -> FloatArray:
            if values.ndim == 1 or values.shape[1] == runs:
                return values
            room = [(0, 0), (0, runs - values.shape[1]), *[(0, 0)] * (values.ndim - 2)]
            return np.pad(values, room)

        return cls(
            *(
                np.ascontiguousarray(
                    np.concatenate([filled(getattr(part, field.name)) for part in parts])
                )
                for field in fields(cls)
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class BestCase:
    """A family's table at one or more multiples of its seconds and bytes, at its best.

    Parameters
    ----------
    family : int
    table : LayerTable
    scale : (n,)
        Multiples: 1 for the table of a micro-batch itself, its sequences for a table of lower
        bounds.
    device, cover, busy : (n, 3, runs)
        Seconds of one layer of every run of equal ones without its host, those in which nothing
        is sent, and with its host.
    seconds : (n, 3, L)
        Of every layer, with its host.
    """

    family: int
    table: LayerTable
    scale: FloatArray
    device: FloatArray
    cover: FloatArray
    busy: FloatArray
    seconds: FloatArray


def layer_bounds(
    families: Families,
    cases: Iterable[BestCase],
    allowed: IntArray,
    *,
    exact: bool = True,
) -> LayerBounds:
    """Entries of cases, one for each of their multiples.

    Parameters
    ----------
    allowed : (choices,)
        Rows of tables whose recomputation may be used.
    exact : bool
        Whether tables are those of micro-batches; under lower bounds there may be more to hide
        behind.
    """
    return LayerBounds.joined([_entries(families, case, allowed, exact=exact) for case in cases])


def _entries(families: Families, case: BestCase, allowed: IntArray, *, exact: bool) -> LayerBounds:
    table, times = condensed(case.table)
    scale, n = case.scale, len(case.scale)
    tp, sp = int(families.tp[case.family]), bool(families.sp[case.family])
    lightest = case.seconds[:, allowed].min(axis=1)
    share = tp if tp > 1 and not sp else 1  # ranks that hold the same send a part each

    def every(values: FloatArray) -> FloatArray:
        return np.broadcast_to(values, (n, *values.shape))

    def known(values: FloatArray) -> FloatArray:
        return values if exact else np.full_like(values, np.inf)

    # What is free to hide behind is a difference, so the bound of a longer layer is no bound of
    # it: under tables of lower bounds `known` says infinity, and everything hides.
    free = case.busy - case.device + case.cover
    return LayerBounds(
        within=lightest.sum(axis=1),
        tallest=lightest.max(axis=1),
        boundary=scale * _smallest_boundary(case.table) / share,
        count=every(times.astype(np.float64)),
        dense=every(untied(table)),
        experts=every(table.expert_parameters),
        device=case.device[:, allowed].transpose(0, 2, 1),
        cover=known(case.cover[:, allowed].transpose(0, 2, 1)),
        host=every(table.launch_s[allowed].T),
        free=known(free[:, allowed].max(axis=1)),
    )


def untied(table: LayerTable) -> FloatArray:
    """Dense elements per layer without the last layer's tied copy, shape (L,)."""
    dense = table.parameters.copy()
    dense[-1] -= table.tied_parameters
    return dense


def best_case(
    problem: Problem,
    space: SearchSpace,
    transfer_bounds: TransferBounds,
    families: Families,
    family: int,
    table: LayerTable,
    scale: FloatArray,
    levels: int = 0,
    blocks: BlockBounds | None = None,
    exchange: MessageTime | None = None,
) -> BestCase:
    """Seconds of every layer at best-case communication.

    Experts of a group are at least ``levels`` devices apart, and never closer than ``etp``.
    ``blocks`` knows more where all stages have the family's degrees; ``exchange``: what
    the all-to-all of experts takes at least where ranks sit.
    """
    # Under every plan of the family: kernels and launches are the table's own, and each call takes
    # the largest of its lower bounds. Where communication overlaps, the seconds of a layer grow
    # with what it sends, so sending less bounds sending more. Tables of lower bounds (`scale` of
    # several sequences) leave out tiles and waves, which only lengthen kernels (docs/method.md,
    # "The program", "Bounds").
    brief, times = condensed(table)
    width = (int(families.tp[family]), int(families.cp[family]))
    inside = np.zeros((len(scale), *brief.replay_s.shape))
    again, experts = np.zeros_like(inside), np.zeros_like(inside)
    for axis, calls in brief.calls.items():
        n = int(getattr(families, axis)[family])
        if n > 1:
            stride = 1 if axis in ("tp", "etp") else int(families.tp[family])
            if axis == "ep":
                stride = max(int(families.etp[family]), levels)
            for number, total in (
                (calls.number, calls.bytes),
                (calls.replay_number, calls.replay_bytes),
            ):
                if not number.any():
                    continue
                # Calls of a layer are counted, not listed: one of mean size stands for each, as in
                # prices.
                mean_bytes = np.divide(total, number, out=np.zeros_like(total), where=number > 0)
                size = mean_bytes * scale[:, None, None]
                least = call_bound(
                    problem, transfer_bounds, axis, calls.kind, n, stride, size, space.device_orders
                )
                if axis == "ep" and exchange is not None:
                    least = np.maximum(least, exchange.along(size.ndim).seconds(size[None])[0])
                if blocks is not None:
                    least = np.maximum(least, blocks.seconds(axis, calls.kind, width, size))
                if number is not calls.number:
                    again += number * least
                elif axis == "ep" and problem.overlap.experts:
                    experts += number * least
                else:
                    inside += number * least
    work = tuple(seconds * scale[:, None, None] for seconds in pass_work(brief))
    passes, cover = pass_seconds(work, inside + experts, again, problem.overlap.within)
    if problem.overlap.experts:
        # Where nothing runs beside a pass, it leaves the most to hide behind.
        plain, spare = pass_seconds(work, inside, again, problem.overlap.within)
        passes, _ = beside_passes(plain, spare, experts, problem.overlap.experts_saved(np.ones(())))
    busy, device = with_launches(passes, brief).sum(axis=0), passes.sum(axis=0)
    seconds = np.repeat(busy, times, axis=2)
    return BestCase(family, table, scale, device, cover.sum(axis=0), busy, seconds)


def _smallest_boundary(table: LayerTable) -> float:
    inner = table.boundary_bytes[1:-1]
    return float(inner.min()) if inner.size else 0.0
