"""The points of a search, opened row by row in the order of their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs import DELAYS, LayerTable, Point, Problem, micro_batches, prefix
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.planner.bounds import Bounds, PlacedBounds, PointColumns, bounds
from nest_core.planner.layer_bounds import BlockBounds, LayerBounds, best_case, layer_bounds, untied
from nest_core.planner.node_bounds import RankColumns, node_ranks
from nest_core.planner.points import PointQueue, Points, PointTable, rounds, slices
from nest_core.planner.screening import FamilyTable, Screen
from nest_core.planner.solver import Prepared, Solver
from nest_core.planner.space import Families, SearchSpace, as_raised, divides, enumerate_rows
from nest_core.planner.transfer_bounds import TransferBounds, beyond_blocks, beyond_instances

__all__ = ["PLACED", "REFINED", "ROUGH", "Frontier", "Opened", "lower_bounds"]

_ONE = np.ones(1)
_REFINED = 32
_MOST_PLACED = 256
_SAMPLED = 32
ROUGH, REFINED, PLACED = range(3)
"""Stages of `Opened` points."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """Points that could still be the best, in the order of their bounds.

    Parameters
    ----------
    columns : PointTable
    limits : Bounds
    stage : int
        What the bounds know: `ROUGH`; that layers do not divide (`REFINED`, see `Frontier.refine`);
        and where ranks sit (`PLACED`, see `Frontier.place`).
    points, misfit : int
        Points of the opened rows, and those that no cut fits into memory, where that was looked at.
    """

    columns: PointTable
    limits: Bounds
    stage: int
    points: int = 0
    misfit: int = 0

    def __len__(self) -> int:
        return len(self.columns)

    def chosen(self, which: IntArray | BoolArray | slice) -> Opened:
        """Return some of them."""
        return replace(self, columns=self.columns.chosen(which), limits=self.limits.chosen(which))

    @classmethod
    def sorted(
        cls, columns: PointTable, limits: Bounds, stage: int, points: int = 0, misfit: int = 0
    ) -> Opened:
        """Points in the order of their bounds."""
        order = np.argsort(limits.seconds, kind="stable")
        return cls(columns.chosen(order), limits.chosen(order), stage, points, misfit)


def lower_bounds(
    problem: Problem, families: Families, micros: IntArray
) -> Iterator[tuple[int, LayerTable, IntArray, FloatArray]]:
    """Family, table, which micro-batches it stands for, and what multiplies it for each.

    One table per family where the problem has lower bounds, else one for every micro-batch.
    """
    for family in range(len(families)):
        tp, sp, cp, ep, etp = families.one(family)
        if problem.lower_bound is not None:
            table = problem.lower_bound(tp, sp, cp, ep, etp)
            yield family, table, np.arange(len(micros)), micros.astype(np.float64)
            continue
        yield from (
            (family, problem.table(tp, sp, micro, cp, ep, etp), np.array([place]), _ONE)
            for place, micro in enumerate(micros.tolist())
        )


_Key = tuple[int, int, int, bool]
"""Family and micro-batch, how far experts lie apart, which of `PlacedBounds.exchanges` they
have, and whether the table is exact."""


class Frontier:
    """Rows by their bounds, and the points of those that are opened.

    Parameters
    ----------
    problem : Problem
    space : SearchSpace

    Raises
    ------
    InputError
        If the space holds no valid point.
    """

    def __init__(self, problem: Problem, space: SearchSpace) -> None:
        self.problem, self.space = problem, (space := space.seated_on(problem.network))
        self.allowed = problem.rows(space.recompute)
        self.solver = Solver(
            problem, self.allowed, as_needed=space.as_needed, layouts=space.layouts
        )
        self.rows = enumerate_rows(problem, space)
        self.points = Points(problem, space, self.rows)
        batches = self.rows.batches
        self._micros, self._micro = np.unique(batches.micro_batch, return_inverse=True)
        self._m = micro_batches(problem.batch, batches.dp, batches.micro_batch)
        # Tables are made for whole rows at once, but where experts can be divided in many ways.
        without_experts, _ = self.rows.families.without_experts()
        self._exact = problem.lower_bound is None or len(without_experts) == len(self.rows.families)
        self._bound_for(problem)
        self._lower: LayerBounds | None = (lower := self._lower_bounds())
        self.queue = PointQueue(self._alone(lower))

    def __len__(self) -> int:
        return len(self.points)

    def of(self, problem: Problem, factor: float = 1.0) -> Frontier:
        """Return the same points, none taken yet, of a problem that differs in memory or network.

        Bounds of rows hold for it, too, as nothing takes less than ``1 / factor`` of its time
        here; what does not depend on memory is shared.
        """
        other = copy(self)
        if problem.network is self.problem.network:
            other.problem, other.solver = problem, self.solver.of(problem)
            other.screen = Screen(problem, self.rows, self.allowed)
        else:
            other._bound_for(problem)
            other._lower = None
        other.queue = PointQueue(self.queue.low if factor == 1.0 else self.queue.low / factor)
        return other

    def under_1f1b(self) -> Frontier:
        """Return the same points, none taken yet, without those of other schedules."""
        other = copy(self)
        other.space, other.points = replace(self.space, schedules=("1f1b",)), copy(self.points)
        other.points.deepest = np.ones_like(self.points.deepest)
        low = self.queue.low if self._lower is None else other._alone(self._lower)
        other.queue = PointQueue(np.maximum(low, self.queue.low))
        return other

    def _bound_for(self, problem: Problem) -> None:
        """Take a problem whose points these are, with nothing known of it yet."""
        space, self.problem = self.space, problem
        self.solver = Solver(
            problem, self.allowed, as_needed=space.as_needed, layouts=space.layouts
        )
        self.screen = Screen(problem, self.rows, self.allowed)
        self._entries: dict[_Key, tuple[FamilyTable, LayerBounds]] = {}
        self._transfer_bounds = TransferBounds(problem)
        self._blocks = BlockBounds(problem, space)
        self._placed, self._placings = PlacedBounds(self.points, self.solver), 0
        self._prepared: dict[int, float] = {}

    def open(self, rows: IntArray, cutoff: float) -> Opened:
        """Return the points of rows that may come in under the cutoff, or fit at all."""
        points = int(self.points.sizes(rows).sum())
        rows = np.sort(rows)
        if self._lower is not None:  # exact tables are made for what this leaves alone
            low = self._bound_rows(self._lower, self._pair(rows), rows)
            rows = rows[self.queue.raised(rows, low) <= cutoff]
        if not len(rows):
            return Opened(self.points.columns(rows), Bounds(*np.zeros((3, 0))), ROUGH, points)
        pairs, entry = np.unique(self._pair(rows), return_inverse=True)
        entries_of_pairs, bounds_by_pair = self._pairs(
            (pair, 0, 0, self._exact) for pair in pairs.tolist()
        )
        near = self.queue.raised(rows, self._bound_rows(bounds_by_pair, entry, rows)) <= cutoff
        rows, entry = rows[near], entry[near]
        columns = self.points.columns(rows)
        part = self.rows.chosen(columns.row)
        allowed = columns.rounds <= self.points.deepest[part.batch]
        if self.space.replaces_gpipe:
            allowed &= ~columns.stashing | (part.pp == 1)
        columns = columns.chosen(allowed)
        place = np.searchsorted(rows, columns.row)
        limits = self._bound_points(bounds_by_pair, at := entry[place], columns)
        least = np.full(len(rows), np.inf)
        np.minimum.at(least, place, limits.seconds)
        self.queue.raised(rows, least)
        near = limits.seconds <= cutoff
        columns, limits, at = columns.chosen(near), limits.chosen(near), at[near]
        limits, fits = self._covered(entries_of_pairs, at, columns, limits, cutoff)
        misfit = int((~fits).sum()) if cutoff == float("inf") else 0
        return Opened.sorted(columns.chosen(fits), limits.chosen(fits), ROUGH, points, misfit)

    def refine(self, opened: Opened, first: int, cutoff: float) -> tuple[Opened, int]:
        """Return `refined` of some opened points from ``first`` on, and how many those were."""
        part = opened.chosen(slice(first, first + _REFINED))
        return self.refined(part, cutoff), len(part)

    def refined(self, opened: Opened, cutoff: float) -> Opened:
        """Return opened points under bounds that know the longest stage.

        Those that cannot come in under the cutoff are left out.
        """
        columns, limits = opened.columns, opened.limits
        entries, _, entry = self._spread(columns)
        m, v = self._micro_batches(columns.row), columns.rounds
        low = (limits.seconds - limits.sync - limits.total / v) / np.maximum(m - 1.0 / v, 1.0 / m)
        least = self.screen.longest(
            entries,
            entry,
            columns,
            m,
            np.maximum(low, limits.total / self.rows.chosen(columns.row).pp),
            self._cap(columns, m, limits, cutoff),
        )
        fits = least < float("inf")
        longest = (m - 1.0 / v) * np.where(fits, least, 0.0)
        seconds = np.where(columns.interleave == 1, limits.total / v + longest + limits.sync, 0.0)
        limits = Bounds(np.maximum(limits.seconds, seconds), limits.total, limits.sync)
        near = fits & (limits.seconds <= cutoff)
        return Opened.sorted(columns.chosen(near), limits.chosen(near), REFINED)

    def place(self, opened: Opened, first: int, cutoff: float) -> tuple[Opened, int]:
        """Return the same of refined points under bounds that know where their ranks sit.

        More at once the more there were: few are placed in vain where few are needed.
        """
        size = min(max(1, self._placings // 8), _MOST_PLACED)
        self._placings += size
        part = opened.chosen(slice(first, first + size))
        return self.placed(part, cutoff), len(part)

    def placed(self, opened: Opened, cutoff: float) -> Opened:
        """Return all of some refined points as `place` does."""
        prepared = [self._prepared.get(number, 0.0) for number in opened.columns.number.tolist()]
        opened = opened.chosen(np.array(prepared) <= cutoff)
        if not len(opened):
            return opened
        columns, limits = opened.columns, opened.limits
        nothing = np.zeros(len(columns))
        placed = nothing, nothing, nothing
        for with_experts in (False, True):
            experts_apart = self.rows.chosen(columns.row).reach != 1
            if with_experts and not experts_apart.any():
                break
            _, bounds_by_pair, entry = self._spread(columns)
            dense = self._placed.dense(columns)
            placed_experts = self._placed.experts(columns) if with_experts else np.zeros(1)
            experts = np.where(experts_apart, placed_experts, dense)
            transfers = self._placed.transfers(columns, bounds_by_pair.boundary[entry])
            placed = transfers, dense, experts
            limits = self._raised(limits, columns, bounds_by_pair, entry, placed)
            near = limits.seconds <= cutoff
            columns, limits = columns.chosen(near), limits.chosen(near)
            placed = transfers[near], dense[near], experts[near]
        if len(columns) and (exchange := self._placed.exchange(columns)).any():
            _, bounds_by_pair, entry = self._spread(columns, exchange)
            limits = self._raised(limits, columns, bounds_by_pair, entry, placed)
            near = limits.seconds <= cutoff
            columns, limits = columns.chosen(near), limits.chosen(near)
        return Opened.sorted(columns, limits, PLACED)

    def sample(self, cutoff: float) -> Opened:
        """Placed points of many kinds, the most promising first: of every depth and order of
        replicas and stages the one with the least bound.

        Bounds know the least of where ranks sit, and the first points that they point to may be
        far from the best.
        """
        low, pp = self.queue.low, self.rows.batches.pp[self.rows.batch]
        least = np.full(int(pp.max()) + 1, cutoff)
        np.minimum.at(least, pp, low)
        near = np.flatnonzero((low == least[pp]) & (low <= cutoff))
        near = near[np.argsort(low[near], kind="stable")]
        _, first = np.unique(pp[near], return_index=True)
        opened = self.open(near[np.sort(first)[:_SAMPLED]], cutoff)
        columns = opened.columns
        kinds = self.rows.chosen(columns.row).pp << 1 | columns.outer
        _, first = np.unique(kinds, return_index=True)
        picked = replace(opened.chosen(np.sort(first)[:_SAMPLED]), stage=REFINED)
        return self.placed(picked, cutoff) if len(picked) else picked

    def _raised(
        self,
        limits: Bounds,
        columns: PointTable,
        bounds: LayerBounds,
        entry: IntArray,
        placed: tuple[FloatArray, FloatArray, FloatArray],
    ) -> Bounds:
        """Bounds of refined points with what is known of their layouts.

        The longest stage stays as long where all else takes longer.
        """
        refined = self._bound_points(bounds, entry, columns, placed)
        total, sync = np.maximum(limits.total, refined.total), np.maximum(limits.sync, refined.sync)
        more = (total - limits.total) + (sync - limits.sync)
        plain = columns.rounds == 1
        seconds = np.maximum(refined.seconds, limits.seconds + np.where(plain, more, 0.0))
        return Bounds(seconds, total, sync)

    def _spread(
        self, columns: PointTable, exchange: IntArray | None = None
    ) -> tuple[list[FamilyTable], LayerBounds, IntArray]:
        """Entries of points that know how far apart experts lie, and which is whose."""
        placed = np.zeros_like(columns.row) if exchange is None else exchange
        keys = np.stack([self._pair(columns.row), self._apart(columns), placed])
        keys, entry = np.unique(keys, axis=1, return_inverse=True)
        entries, low = self._pairs((*key, True) for key in keys.T.tolist())
        return entries, low, entry

    def prepare(self, opened: Opened, index: int) -> Prepared:
        """Stage costs of an opened point."""
        prepared = self.solver.prepare(
            self.points.point(number := int(opened.columns.number[index])),
            total=float(opened.limits.total[index]),
            sync=float(opened.limits.sync[index]),
        )
        self._prepared[number] = prepared.lower_bound
        return prepared

    def prepared(self, number: int) -> Prepared:
        """Stage costs of any point."""
        return self.solver.prepare(self.points.point(number))

    def needed(self, point: Point) -> bool:
        """Whether the rule of the space leaves the point in: a ZeRO stage that nothing replaces."""
        if not self.space.as_needed or not point.shared:
            return True
        states = as_raised(self.space.states(point.pp, point.sharers, point.expert_sharers))
        less = states[: states.index((point.zero, point.zero_group))]
        prepared = (
            self.solver.prepare(replace(point, zero=zero, zero_group=group)) for zero, group in less
        )
        return not any(self.solver.solve(candidate, float("inf"))[1] for candidate in prepared)

    def bound_of(self, number: int) -> float:
        """Return the bound that a point had by itself."""
        row = np.array([self.points.row(number)])
        columns = self.points.columns(row)
        columns = columns.chosen(columns.number == number)
        _, layer_bounds_of_pair = self._entry((int(self._pair(row)[0]), 0, 0, True))
        limits = self._bound_points(layer_bounds_of_pair, np.zeros(1, dtype=np.int64), columns)
        placed = self.placed(Opened(columns, limits, REFINED), float("inf"))
        return max(float(placed.limits.seconds[0]), float(self.queue.low[row[0]]))

    def leanest(self) -> tuple[float, Point | None]:
        """Bytes of tensors that are enough for some point, and that point, to 1e-4.

        Lower bounds for stages in one piece, of micro-batches that go with the same degrees
        the smallest; uneven blocks may do with less when interleaved. None where nothing else is
        allowed.
        """
        if not self.space.plain:
            return 0.0, None
        rows = self._smallest_micro_batches()
        pairs, entry = np.unique(self._pair(rows), return_inverse=True)
        entries, _ = self._pairs((pair, 0, 0, True) for pair in pairs.tolist())
        part = self.rows.chosen(rows)
        sharers, owners, shared = part.dp * part.column("cp"), part.owners, part.shared
        states = [
            (np.arange(len(rows))[at], stage, np.where(sharers[at] == group, 0, group))
            for group, stages, at in self._states(sharers, owners, shared)
            for stage in dict.fromkeys(stages)
        ]
        which = np.concatenate([at for at, _, _ in states])
        count, row, entry = len(which), rows[which], entry[which]
        ones = np.ones(count, dtype=np.int64)
        columns = PointTable(
            number=np.arange(count),
            row=row,
            zero=np.concatenate([np.where(shared[at], stage, 0) for at, stage, _ in states]),
            group=np.concatenate([group for _, _, group in states]),
            interleave=ones,
            stashing=np.full(count, self.space.plain == "gpipe"),
            delay=(delay := np.full(count, DELAYS.get(self.space.plain, 0))),
            around=0 * ones,
            rounds=rounds(ones, delay),
            outer=ones == 1,
            parted=ones == 1,
            natural=ones == 1,
            most=0 * ones,
            alike=ones == 0,
            device_order=0 * ones,
        )
        m = self._micro_batches(row)

        def fitting(limit: float) -> IntArray:
            part = columns.chosen(chosen)
            cap = np.full(len(part), np.inf)
            return chosen[self.screen.fits(entries, entry[chosen], part, m[chosen], cap, limit)]

        low, chosen = 0.0, np.arange(count)
        high = max(2 * self.problem.tensor_bytes, 1.0)
        while not len(fits := fitting(high)):
            low, high = high, 2 * high
        chosen = fits
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            if len(fits := fitting(middle)):
                high, chosen = middle, fits
            else:
                low = middle
        first = int(chosen[0])
        point = self.points.point(int(self.points.first[row[first]]))
        return high, replace(
            point, zero=int(columns.zero[first]), zero_group=int(columns.group[first])
        )

    def _smallest_micro_batches(self) -> IntArray:
        rows, batches = self.rows, self.rows.batches
        _, depth = np.unique(np.stack([batches.dp, batches.pp]), axis=1, return_inverse=True)
        keys = rows.family.astype(np.int64) * len(depth) + depth[rows.batch]
        order = np.argsort(batches.micro_batch[rows.batch], kind="stable")
        return np.asarray(order[np.unique(keys[order], return_index=True)[1]])

    def _lower_bounds(self) -> LayerBounds:
        """Of every family at every micro-batch.

        Where the problem has lower bounds, those of families whose experts are all on every rank:
        to divide them adds communication, and leaves each rank as much to compute.
        """
        families, micros = self.rows.families, self._micros
        exact = self.problem.lower_bound is None
        plain, which = families.without_experts() if not exact else (families, slice(None))
        cases = (
            best_case(
                self.problem,
                self.space,
                self._transfer_bounds,
                plain,
                family,
                table,
                scale,
                blocks=self._blocks,
            )
            for family, table, _, scale in lower_bounds(self.problem, plain, micros)
        )
        bounds_of_plain = layer_bounds(
            plain, cases, self.problem.bounding(self.allowed), exact=exact
        )
        every = np.arange(len(plain) * len(micros)).reshape(len(plain), -1)[which].reshape(-1)
        # Without division a rank holds all experts; divided, it holds, sends and updates a part.
        parts = (families.ep * families.etp) / (plain.ep * plain.etp)[which]
        return bounds_of_plain.of(every, np.repeat(parts, len(micros)))

    def _pair(self, rows: IntArray | slice) -> IntArray:
        """Family and micro-batch of rows as one number."""
        family, batch = self.rows.family[rows], self.rows.batch[rows]
        return family * len(self._micros) + self._micro[batch]

    def _alone(self, lower: LayerBounds) -> FloatArray:
        return np.concatenate([self._bound_alone(lower, part) for part in slices(len(self.rows))])

    def _bound_alone(self, lower: LayerBounds, part: slice) -> FloatArray:
        """Bound rows by their layers alone: there may be millions, of which few could be the best.

        It is a part of every other bound: those know what synchronisation and transfers add.
        """
        pair, rows = self._pair(part), self.rows.chosen(part)
        rounds, total = self.points.deepest[rows.batch], lower.within[pair]
        longest = np.maximum(total / rows.pp, lower.tallest[pair])
        return total / rounds + (self._micro_batches(part) - 1.0 / rounds) * longest

    def _table(self, family: int, micro: int) -> LayerTable:
        tp, sp, cp, ep, etp = self.rows.families.one(family)
        return self.problem.table(tp, sp, micro, cp, ep, etp)

    def _apart(self, columns: PointTable) -> IntArray:
        """How far apart the experts of a group lie at least, where pipelines lie in between.

        0 where that is no further than a family's own; no further than the largest block.
        """
        rows = self.rows.chosen(columns.row)
        tp, cp, ep, etp = (rows.column(name) for name in ("tp", "cp", "ep", "etp"))
        largest = max((block for block, _ in self.problem.network.egress_rates), default=0)
        distance = np.minimum(tp * rows.pp, largest)
        alone = (cp == 1) & (ep > 1) & (etp == tp)
        return np.where(columns.outer & columns.natural & alone, distance, 0)

    def _pairs(self, keys: Iterable[_Key]) -> tuple[list[FamilyTable], LayerBounds]:
        """Return tables and joined bounds of families at micro-batches."""
        entries = [self._entry(key) for key in keys]
        return [table for table, _ in entries], LayerBounds.joined([low for _, low in entries])

    def _entry(self, key: _Key) -> tuple[FamilyTable, LayerBounds]:
        if key not in self._entries:
            self._entries[key] = self._bound_pair(*key)
        return self._entries[key]

    def _bound_pair(
        self, pair: int, distance: int, exchange: int, exact: bool
    ) -> tuple[FamilyTable, LayerBounds]:
        """Bound by the family's lower bounds; ``exact``: by the table of the micro-batch itself."""
        family, micro = divmod(pair, len(self._micros))
        # One table for all micro-batches is cheap and loose; the exact one needs the graph split
        # and priced for its sequences, so only rows that could win ask for it.
        families, times = self.rows.families, float(self._micros[micro])
        if exact or self.problem.lower_bound is None:
            table, times = self._table(family, int(times)), 1.0
        else:
            table = self.problem.lower_bound(*families.one(family))
        case = best_case(
            self.problem,
            self.space,
            self._transfer_bounds,
            families,
            family,
            table,
            np.array([times]),
            distance,
            self._blocks,
            self._placed.exchanges[exchange] if exchange else None,
        )
        low = layer_bounds(families, [case], self.problem.bounding(self.allowed), exact=exact)
        return FamilyTable(
            float(low.boundary[0]),
            prefix(case.seconds[0]),
            prefix(untied(table)),
            prefix(table.expert_parameters),
            table.tied_parameters,
            prefix(table.kept_bytes * times),
            table.working_bytes * times,
        ), low

    def _bound_rows(
        self, bounds_by_pair: LayerBounds, entry: IntArray, rows: IntArray
    ) -> FloatArray:
        """Of every row, whatever its ZeRO stage and group, schedule and order."""
        part = self.rows.chosen(rows)
        tp, cp, dp, pp = part.column("tp"), part.column("cp"), part.dp, part.pp
        reach, owners, shared = part.reach, part.owners, part.shared
        m = self._micro_batches(rows)
        natural = np.full(len(rows), set(self.space.device_orders) == {"natural"})
        fewest, most_ranks = node_ranks(self.problem.network, self.space.device_orders)
        most = np.full(len(rows), most_ranks)
        alike = (most == fewest) & (most > 0)
        ways = {
            (axes.index("dp") > axes.index("pp"), axes.index("cp") > axes.index("pp"))
            for axes in self.space.orders
        }
        outers = [
            (np.full(len(rows), dp_out), np.full(len(rows), cp_out)) for dp_out, cp_out in ways
        ]
        hops = [
            self.screen.hops(
                bounds_by_pair.boundary[entry], rows, outer, parted, natural, most, alike
            )[1]
            for outer, parted in outers
        ]
        # A row holds points of all axis orders: the least over orders bounds them all. Forward and
        # backward are the same hops, so one of them counts twice.
        transfers = 2 * np.min(hops, axis=0)
        deepest, least = self.points.deepest[part.batch], np.full(len(rows), np.inf)
        for group, stages, at in self._states(dp * cp, owners, shared):
            instances = dp[at] * cp[at] // group if group else np.ones_like(dp[at])
            dense = experts = between = np.zeros(len(instances))
            by_order = [
                RankColumns(
                    tp[at],
                    cp[at],
                    reach[at],
                    dp[at],
                    pp[at],
                    outer[at],
                    parted[at],
                    natural[at],
                    most[at],
                    alike[at],
                    np.full(len(instances), -1),
                    self.space.device_orders,
                )
                for outer, parted in outers
            ]
            if not group:  # in groups it counts for opened points only
                leaving = [beyond_blocks(self.problem, ranks) for ranks in by_order]
                dense, experts = (np.min(part, axis=0) for part in zip(*leaving, strict=True))
            for stage in stages:
                columns = PointColumns(
                    entry=entry[at],
                    ranks=by_order[0],
                    micro_batches=m[at],
                    zero=np.where(shared[at], stage, 0),
                    expert_sharers=owners[at],
                    instances=instances,
                    rounds=deepest[at],
                    transfer_s=transfers[at],
                    leaving=(dense, experts, between),
                )
                seconds = bounds(
                    self.problem, self._transfer_bounds, bounds_by_pair, columns
                ).seconds
                least[at] = np.minimum(least[at], seconds)
        return least

    def _states(
        self, sharers: IntArray, owners: IntArray, shared: BoolArray
    ) -> Iterator[tuple[int, tuple[int, ...], IntArray | slice]]:
        """Return groups of ZeRO's, the stages that go with each, and which of some rows have it."""
        space, every = self.space, slice(None)
        if 0 in space.zero_groups:
            yield 0, space.zero, every
        else:  # what shards nothing
            yield 0, (0,), every if 0 in space.zero else np.flatnonzero(~shared)
        for group in dict.fromkeys(space.zero_groups):
            if group:
                stages = tuple(stage for stage in space.zero if stage)
                parts = divides(group, sharers, owners)
                # A group of all is the state of all, where that is allowed.
                parts &= (sharers > group) | (0 not in space.zero_groups)
                yield group, stages, np.flatnonzero(parts)

    def _bound_points(
        self,
        bounds_by_pair: LayerBounds,
        entry: IntArray,
        columns: PointTable,
        placed: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    ) -> Bounds:
        """Bounds of points.

        Parameters
        ----------
        placed : (points,) each, optional
            `PlacedBounds` of transfers, of dense and of expert gradients.
        """
        row, part = columns.row, self.rows.chosen(columns.row)
        tp, cp, dp, pp = part.column("tp"), part.column("cp"), part.dp, part.pp
        instances = columns.instances(dp * cp)
        ranks = RankColumns(
            tp,
            cp,
            part.reach,
            dp,
            pp,
            columns.outer,
            columns.parted,
            columns.natural,
            columns.most,
            columns.alike,
            columns.device_order,
            self.space.device_orders,
        )
        leaving = beyond_instances(self.problem, ranks, instances)
        m = self._micro_batches(row)
        hops, forward = self.screen.hops(
            bounds_by_pair.boundary[entry],
            row,
            columns.outer,
            columns.parted,
            columns.natural,
            columns.most,
            columns.alike,
        )
        # v times along the pipeline, and between two rounds once from the last stage to the first:
        # any transfer at best, as nothing says how far those two are apart.
        transfers = 2 * (columns.interleave * forward + columns.around * hops.near)
        if placed is not None:
            transfers = np.maximum(transfers, placed[0])
            dense, experts, between = leaving
            leaving = np.maximum(dense, placed[1]), np.maximum(experts, placed[2]), between
        return bounds(
            self.problem,
            self._transfer_bounds,
            bounds_by_pair,
            PointColumns(
                entry=entry,
                ranks=ranks,
                micro_batches=m,
                zero=columns.zero,
                expert_sharers=part.owners,
                instances=instances,
                rounds=columns.rounds,
                transfer_s=transfers,
                leaving=leaving,
            ),
        )

    def _covered(
        self,
        entries: list[FamilyTable],
        entry: IntArray,
        columns: PointTable,
        limits: Bounds,
        cutoff: float,
    ) -> tuple[Bounds, BoolArray]:
        """Which points could come in under the cutoff, or fit; see `covers` and `divided`."""
        m = self._micro_batches(columns.row)
        cap = self._cap(columns, m, limits, cutoff)
        fits = self.screen.fits(entries, entry, columns, m, cap, self.problem.tensor_bytes)
        uneven = self.space.layouts == "uneven"
        least = self.screen.interleaved(
            entries, entry, columns, m, limits.sync, cutoff, uneven=uneven
        )
        tighter = Bounds(np.maximum(limits.seconds, least), limits.total, limits.sync)
        return tighter, fits & (least <= cutoff) & (least < float("inf"))

    def _micro_batches(self, row: IntArray | slice) -> IntArray:
        return self._m[self.rows.batch[row]]

    def _cap(self, columns: PointTable, m: IntArray, limits: Bounds, cutoff: float) -> FloatArray:
        """Seconds that a stage may take at most where a plan comes in under the cutoff."""
        if cutoff == float("inf"):
            return np.full(len(m), np.inf)
        # From sum(t) / v + (m - 1/v) max(t) + max(e) <= cutoff, solved for max(t) with the bounds
        # of the sum and of synchronisation in place of themselves; m - 1/v = 0 leaves the sum
        # alone.
        room, share = cutoff - limits.sync, 1.0 / columns.rounds
        times = np.where(m > share, m - share, 1.0)
        return np.asarray(
            np.where(m > share, (room - limits.total * share) / times, room) * (1 + 1e-12)
        )
