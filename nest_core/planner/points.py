"""The points of rows, numbered: as columns for bounds, or one by one as values.

A row (`nest_core.planner.space`) stands for its states (ZeRO stages with their groups) by its
schedules by its orders, the last fastest. Points are decoded from their numbers and never all
written down.

A function of whole numbers over long columns, called once for every number that occurs.

Rows in the order of their bounds.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from nest_core.costs import (
    AXES,
    DELAYS,
    LATE,
    REPLAYED,
    V_SHAPED,
    Point,
    Problem,
    device_order,
    micro_batches,
    places,
    ranks_in_nodes,
    seatings_among,
)
from nest_core.network import BoolArray, FloatArray, IntArray, Network
from nest_core.planner.space import PLAIN, Rows, SearchSpace

__all__ = ["PointQueue", "PointTable", "Points", "each", "slices"]


@dataclass(frozen=True, slots=True, eq=False)
class PointTable:
    """Points of some rows as columns: what bounds need of them.

    Parameters
    ----------
    number, row : (points,)
        The point's number, and its row.
    zero, group, interleave : (points,)
        ``group`` as ``zero_group`` of a `Point`.
    stashing : (points,)
        Whether the schedule is GPipe, which keeps all micro-batches in flight.
    delay : (points,)
        See `LATE`; 0 for schedules that do not delay W.
    around : (points,)
        See `Point.around`.
    rounds : (points,)
        What divides the fill of 1F1B at most, see `rounds`.
    outer, parted, natural : (points,)
        Whether ``dp``, and whether ``cp``, lies outside ``pp``; whether ranks sit in the fabric's
        own order.
    most, alike : (points,)
        Ranks in a row that a node has at most, see `ranks_in_nodes`; whether all have as many.
    device_order : (points,)
        Which of the space's device orders it has.
    """

    number: IntArray
    row: IntArray
    zero: IntArray
    group: IntArray
    interleave: IntArray
    stashing: BoolArray
    delay: IntArray
    around: IntArray
    rounds: FloatArray
    outer: BoolArray
    parted: BoolArray
    natural: BoolArray
    most: IntArray
    alike: BoolArray
    device_order: IntArray

    def __len__(self) -> int:
        return len(self.number)

    def instances(self, sharers: IntArray) -> IntArray:
        """Return copies of what ZeRO shards where so many ranks hold the same weights,
        (points,).
        """
        return np.where(self.group > 0, sharers // np.maximum(self.group, 1), 1)

    def chosen(self, which: IntArray | BoolArray | slice) -> Self:
        """Return some of them."""
        return type(self)(*(getattr(self, field.name)[which] for field in fields(self)))


def slices(rows: int, at_once: int = 1 << 20) -> list[slice]:
    """Return parts of so many rows whose columns are made together: there may be millions."""
    return [slice(start, start + at_once) for start in range(0, rows, at_once)]


class Points:
    """The points of rows: how many each has, and each of them by its number.

    The points of a row are its states by its schedules by its orders, the last fastest.
    """

    def __init__(self, problem: Problem, space: SearchSpace, rows: Rows) -> None:
        self.space, self.rows = space, rows
        self.network = problem.network
        self.batch, self.layers = problem.batch, problem.layers
        families, batches = rows.families, rows.batches
        depths, depth = np.unique(batches.pp, return_inverse=True)
        self._schedules = [
            self._valid_schedules(pp, rounds=rounds, deep=deep)
            for pp in depths.tolist()
            for rounds in (False, True)
            for deep in (False, True)
        ]
        m = micro_batches(self.batch, batches.dp, batches.micro_batch)
        # Of every batch.
        self._schedule = 4 * depth + 2 * (m % batches.pp == 0) + (m >= 2 * batches.pp)
        # Which axes are wider than one: of every family, and of every batch.
        self._wide = (
            8 * (families.tp > 1) + 4 * (families.cp > 1),
            2 * (batches.dp > 1) + (batches.pp > 1),
        )
        parts = slices(len(rows))
        keys = (np.unique(_state_keys(space, rows.chosen(part))) for part in parts)
        self._state_keys = np.unique(np.concatenate(list(keys)))
        self._states = [_states(space, key) for key in self._state_keys.tolist()]
        # Without seatings all plans have the same device orders, whatever devices they use.
        self._seated = bool(seatings_among(space.device_orders))
        used = (np.unique(self._devices_used(rows.chosen(part))) for part in parts)
        self._used = np.unique(np.concatenate(list(used)))
        self._orders, self._orders_of_used = _distinct_orders(
            problem.network, space, self._used.tolist()
        )
        self._tables = (
            _padded(self._states, zero="i8", group="i8"),
            _padded(
                [
                    [
                        (
                            v,
                            name == "gpipe",
                            LATE.get(name, 0),
                            0 if name in V_SHAPED else v - 1,
                            self._rounds(name, v),
                        )
                        for name, v in entries
                    ]
                    for entries in self._schedules
                ],
                interleave="i8",
                stashing="?",
                delay="i8",
                around="i8",
                rounds="f8",
            ),
            _padded(
                [[self._layout(*entry) for entry in entries] for entries in self._orders],
                outer="?",
                parted="?",
                natural="?",
                most="i8",
                alike="?",
                device_order="i8",
            ),
        )
        # The most `rounds` that each batch allows; 1 without interleaving or zero-bubble.
        self.deepest: FloatArray = np.maximum(self._tables[1]["rounds"].max(axis=1), 1.0)[
            self._schedule
        ]
        counts = np.concatenate(
            [np.prod(self._counts(rows.chosen(part)), axis=0, dtype=np.int32) for part in parts]
        )
        narrow = np.uint32 if counts.sum(dtype=np.int64) < 2**32 else np.int64
        self.first: IntArray = np.zeros(len(rows) + 1, dtype=narrow)
        np.cumsum(counts, dtype=narrow, out=self.first[1:])

    def _devices_used(self, part: Rows) -> IntArray:
        return part.devices_used if self._seated else np.full(len(part), self.network.devices)

    def _kinds(self, part: Rows) -> tuple[IntArray, IntArray, IntArray]:
        """Which list of states, of schedules and of orders each of some rows has."""
        state = np.searchsorted(self._state_keys, _state_keys(self.space, part))
        kind = self._orders_of_used[np.searchsorted(self._used, self._devices_used(part))]
        wide = self._wide[0][part.family] + self._wide[1][part.batch]
        return state, self._schedule[part.batch], kind + wide

    def _counts(self, part: Rows) -> list[IntArray]:
        """How many states, schedules and orders each of some rows has."""
        lists: tuple[Sequence[Sequence[object]], ...] = (
            self._states,
            self._schedules,
            self._orders,
        )
        return [
            np.array([len(entries) for entries in options])[kind]
            for options, kind in zip(lists, self._kinds(part), strict=True)
        ]

    def __len__(self) -> int:
        return int(self.first[-1])

    def sizes(self, rows: IntArray) -> IntArray:
        """Return how many points each of some rows has."""
        return (self.first[rows + 1] - self.first[rows]).astype(np.int64)

    def row(self, number: int) -> int:
        """Return the row of a point."""
        # Of the columns' own type: else all of them would be converted for one point.
        return int(np.searchsorted(self.first, self.first.dtype.type(number), side="right")) - 1

    def _rounds(self, name: str, interleave: int) -> float:
        """See `rounds`; replayed stages wait for what the replay alone says."""
        return (
            float("inf")
            if interleave > 1 and (self.space.layouts == "uneven" or name in REPLAYED)
            else float(rounds(interleave, DELAYS.get(name, 0)))
        )

    def _layout(
        self, axes: tuple[str, ...], device_order: str
    ) -> tuple[bool, bool, bool, int, bool, int]:
        """Return what `PointTable` has of an order."""
        dp, cp, pp = (axes.index(axis) for axis in ("dp", "cp", "pp"))
        fewest, most = ranks_in_nodes(self.network, device_order)
        index = self.space.device_orders.index(device_order)
        return dp > pp, cp > pp, device_order == "natural", most, fewest == most > 0, index

    def columns(self, rows: IntArray) -> PointTable:
        """All points of some rows."""
        sizes = self.sizes(rows)
        row, part = np.repeat(rows, sizes), self.rows.chosen(rows)
        local = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        state_index, kind, alike = (np.repeat(kinds, sizes) for kinds in self._kinds(part))
        _, per_schedule, per_order = (np.repeat(counts, sizes) for counts in self._counts(part))
        rest, order = np.divmod(local, per_order)
        state, schedule = np.divmod(rest, per_schedule)
        return PointTable(
            number=self.first[row] + local,
            row=row,
            **{
                name: table[name][place]
                for table, place in zip(
                    self._tables,
                    ((state_index, state), (kind, schedule), (alike, order)),
                    strict=True,
                )
                for name in table.dtype.names
            },
        )

    def orders(self, columns: PointTable) -> tuple[IntArray, IntArray]:
        """Which order places the ranks of points: of which list, and which of it."""
        part, local = self.rows.chosen(columns.row), columns.number - self.first[columns.row]
        return self._kinds(part)[2], local % self._counts(part)[2]

    def point(self, number: int) -> Point:
        """One point as a value."""
        row, families = self.row(number), self.rows.families
        part = self.rows.chosen(np.array([row]))
        state_index, kind, alike = (int(kinds[0]) for kinds in self._kinds(part))
        rest, order = divmod(number - int(self.first[row]), len(self._orders[alike]))
        state, which = divmod(rest, len(self._schedules[kind]))
        zero, group = self._states[state_index][state]
        family = int(part.family[0])
        axes, device_order = self._orders[alike][order]
        schedule, virtual_stages = self._schedules[kind][which]
        return Point(
            tp=int(families.tp[family]),
            sp=bool(families.sp[family]),
            dp=int(part.dp[0]),
            pp=int(part.pp[0]),
            micro_batch=int(part.micro_batch[0]),
            zero=zero,
            order=axes,
            device_order=device_order,
            cp=int(families.cp[family]),
            ep=int(families.ep[family]),
            schedule=schedule,
            interleave=virtual_stages,
            etp=int(families.etp[family]),
            zero_group=group,
        )

    def _valid_schedules(self, pp: int, *, rounds: bool, deep: bool) -> tuple[tuple[str, int], ...]:
        """Schedules, virtual stages; ``rounds``: ``pp`` divides a replica's micro-batches, and
        ``deep``: those are two for each stage.
        """
        space = self.space
        schedules: list[tuple[str, int]] = []
        for name in dict.fromkeys(space.schedules):
            if name in PLAIN:
                if pp > 1 or name == space.plain:
                    schedules.append((name, 1))
            elif name in V_SHAPED:
                if (deep or name == "zbv") and space.interleaves(self.layers, pp, 2):
                    schedules.append((name, 2))
            elif rounds:
                schedules += [
                    (name, v)
                    for v in dict.fromkeys(space.interleave)
                    if space.interleaves(self.layers, pp, v)
                ]
        return tuple(schedules)


def rounds(interleave: IntArray | int, delay: IntArray | int) -> FloatArray:
    """Return what divides the fill of 1F1B at most: virtual stages, or what delayed W takes from
    it.

    W takes a third of a micro-batch at most, so that ``t - (1 + c) W``, for which every other
    stage makes the slowest wait, is at least ``(2 - c) / 3`` of ``t``.

    Examples
    --------
    >>> rounds(np.array([1, 4, 1, 1]), np.array([0, 0, 1, 2]))
    array([ 1.,  4.,  3., inf])
    """
    return np.asarray(np.maximum(interleave, np.array([1.0, 3.0, np.inf])[delay]), dtype=np.float64)


def _padded(ragged: Sequence[Sequence[tuple[Any, ...]]], **columns: str) -> Any:
    """Return lists of records of different lengths as one array, filled with zeros."""
    widest = max(map(len, ragged), default=1)
    table: Any = np.zeros((len(ragged), widest), dtype=list(columns.items()))
    for place, entries in enumerate(ragged):
        table[place, : len(entries)] = list(entries)
    return table


def _state_keys(space: SearchSpace, part: Rows) -> IntArray:
    """Return what the ZeRO stages of rows, with their groups, depend on; see `_states`."""
    piped = part.pp > 1
    return np.asarray(
        np.where(part.shared, 1 + piped, 0)
        if space.zero_groups == (0,)  # then all that share weights are alike
        else (part.dp * part.column("cp") << 31 | part.owners) << 1 | piped
    )


def _states(space: SearchSpace, key: int) -> tuple[tuple[int, int], ...]:
    """Return ZeRO stages with their groups of rows with a key."""
    if space.zero_groups == (0,):
        return space.states(key, 2, 2) if key else ((0, 0),)
    return space.states(1 + (key & 1), key >> 32, key >> 1 & 2**31 - 1)


_Orders = tuple[tuple[tuple[str, ...], str], ...]


def _distinct_orders(
    network: Network, space: SearchSpace, used: Sequence[int]
) -> tuple[list[_Orders], IntArray]:
    """Orders that place ranks differently, the first of each, by kinds of rows, and the first kind
    of every number of devices, to which `AXES` that are wider than one add as binary digits, the
    first the highest.
    """
    placed = [_distinct_placements(network, space, count) for count in used]
    kinds = list(dict.fromkeys(placed))
    wider = [
        set(itertools.compress(AXES, wide))
        for wide in itertools.product((False, True), repeat=len(AXES))
    ]
    orders = [
        tuple(itertools.product(space.orders_among(axes), kept_orders))
        for kept_orders in kinds
        for axes in wider
    ]
    return orders, np.array([kinds.index(wide_axes) * 2 ** len(AXES) for wide_axes in placed])


def _distinct_placements(network: Network, space: SearchSpace, used: int) -> tuple[str, ...]:
    """Device orders of plans that use so many devices; of seatings those that have a place for
    every rank, and put ranks on other devices than any before."""
    seatings = seatings_among(space.device_orders)
    fitting = [order for order in space.device_orders if places(network, order) >= used]
    distinct: list[str] = []
    met: set[bytes] = set()
    for order in fitting or space.device_orders:
        devices = device_order(network, order)[:used].tobytes() if seatings else b""
        if order not in seatings or devices not in met:
            distinct.append(order)
            met.add(devices)
    return tuple(distinct)


def each(keys: IntArray, of: Callable[[int], float]) -> FloatArray:
    """``of`` every key, shape (keys,); keys are not negative.

    Examples
    --------
    >>> each(np.array([3, 1, 3]), lambda key: 10.0 * key)
    array([30., 10., 30.])
    """
    occurring = np.flatnonzero(np.bincount(keys))
    table = np.zeros(int(occurring.max(initial=-1)) + 1)
    table[occurring] = [of(key) for key in occurring.tolist()]
    return np.asarray(table[keys])


class PointQueue:
    """Rows in the order of their bounds; only as many as are asked for are sorted.

    Parameters
    ----------
    low : (rows,)
        Bounds, seconds.
    """

    def __init__(self, low: FloatArray) -> None:
        self.low = low
        self._left: IntArray | None = None
        self._sorted = False
        self._least = float(low.min(initial=np.inf))

    @property
    def least(self) -> float:
        """No row that was not taken yet holds a faster point."""
        return self._least

    def raised(self, rows: IntArray, low: FloatArray) -> FloatArray:
        """Return bounds of rows, and take them into account: they hold for later queues, too."""
        self.low[rows] = np.maximum(self.low[rows], low)
        return self.low[rows]

    def left(self, cutoff: float) -> IntArray:
        """Return the rows not taken yet that could hold the best."""
        remaining = np.arange(len(self.low)) if self._left is None else self._left
        return np.asarray(remaining[self.low[remaining] <= cutoff])

    def take(self, size: int, cutoff: float) -> IntArray:
        """Return the next rows that could hold the best, at most ``size``; empty when none is
        left.
        """
        if self._left is None:  # the first few need no sorting of all
            size = min(size, len(self.low))
            nearest = np.argpartition(self.low, size - 1)[:size]
            taken = nearest[np.argsort(self.low[nearest], kind="stable")]
            remaining = np.ones(len(self.low), dtype=bool)
            remaining[taken] = False
            self._keep(np.flatnonzero(remaining))
            return np.asarray(taken[self.low[taken] <= cutoff])
        if not self._sorted:
            near = self._left[self.low[self._left] <= cutoff]
            self._left = near[np.argsort(self.low[near], kind="stable")]
            self._sorted = True
        taken = self._left[:size]
        self._keep(self._left[size:])
        return np.asarray(taken[self.low[taken] <= cutoff])

    def _keep(self, remaining: IntArray) -> None:
        """Return what is left to take."""
        self._left, self._least = remaining, float(self.low[remaining].min(initial=np.inf))
