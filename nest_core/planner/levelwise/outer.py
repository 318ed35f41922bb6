"""Outer points of the level-wise program: what is fixed before the recurrence, and bounds of it.

An outer point has an axis order, a data-parallel degree, a micro-batch and a width, or several for
stages of unequal widths. Its bound needs no table: compute alone, layer by layer.

Where stages may sit, and which levels lie between them.

A replica has ``R = D // d`` consecutive devices under the paper's order (replica by replica), or
every stage holds its ``d`` replicas side by side (Megatron-LM's order). In both a stage of width
``a`` starts only where none of its replicas straddles a group that would hold ``a`` devices; the
places left are *slots*, counted from the last stage as in the paper. A plan takes slots in
ascending order and may leave some out: those are its gaps, and the level of a link is the largest
that lies between two stages. Stages of *unequal* widths start at any device of a replica, under the
same rule; the paper's order alone has them (`Stretch`).

References
----------
NEST, MLSys 2026, Algorithm 1: ``k`` devices are used by the suffix, the producer starts there.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from nest_core.costs import DeviceOrder, Point, Problem, micro_batches
from nest_core.documents import grouped
from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, FloatArray, IntArray, Network
from nest_core.planner.frontier import lower_bounds
from nest_core.planner.layer_bounds import best_case
from nest_core.planner.space import Families, SearchSpace
from nest_core.planner.transfer_bounds import TransferBounds

__all__ = [
    "PAPER_ORDER",
    "Outer",
    "OuterPoints",
    "Slots",
    "Strategy",
    "Stretch",
    "slots",
    "stretch",
]


PAPER_ORDER = ("tp", "cp", "pp", "dp")


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Slots of one width and data-parallel degree.

    Parameters
    ----------
    order : tuple of str
        Axes, innermost first; replica by replica where ``dp`` is the last of them.
    devices : (slots, dp, width)
        Devices of every replica of a stage that sits there.
    level : (slots,)
        Level between a slot and the one before; 0 for the first.
    """

    order: tuple[str, ...]
    devices: IntArray
    level: IntArray

    def __len__(self) -> int:
        return len(self.devices)

    def device_order(self, taken: IntArray) -> DeviceOrder:
        """Devices of all ranks of a plan that takes some slots, its first stage's slot first."""
        placed = self.devices[taken]
        if self.order[-1] == "dp":
            placed = placed.swapaxes(0, 1)
        return _named(placed.reshape(-1))


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Consecutive devices of every replica, for stages of several widths.

    Parameters
    ----------
    widths : tuple of int
        Ascending.
    devices : (dp, R)
        Of every replica, from its last stage's end.
    level : (R,)
        Level between a device and the one before, in whichever replica it is the largest; 0 for
        the first.
    inner : (widths,)
        Level of the smallest group that holds a stage.
    ends : (widths, R)
        The device after a stage that starts here; -1 where it would straddle such a group.
    """

    widths: tuple[int, ...]
    devices: IntArray
    level: IntArray
    inner: IntArray
    ends: IntArray

    def device_order(self, starts: IntArray, widths: list[int]) -> DeviceOrder:
        """Devices of all ranks of a plan, its first stage's start and width first."""
        parts = [
            self.devices[:, start : start + width][:, ::-1]
            for start, width in zip(starts.tolist(), widths, strict=True)
        ]
        return _named(np.concatenate(parts, axis=1).reshape(-1))


def _named(ranks: IntArray) -> DeviceOrder:
    return "natural" if np.array_equal(ranks, np.arange(len(ranks))) else tuple(ranks.tolist())


def stretch(network: Network, dp: int, widths: tuple[int, ...]) -> Stretch:
    """Return the devices of a network whose blocks nest, replica by replica.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> tiers = (Tier("node", 4, 100e9, 1e-6), Tier("rack", 2, 50e9, 2e-6))
    >>> found = stretch(collapse(Hierarchical("two", tiers)), 1, (1, 3))
    >>> found.level.tolist(), found.ends[1].tolist()
    ([0, 0, 0, 0, 1, 0, 0, 0], [3, 4, -1, -1, 7, 8, -1, -1])
    """
    line, span = np.lexsort(network.nesting)[::-1], network.devices // dp
    rows = line[: dp * span].reshape(dp, span)
    level = np.zeros(span, dtype=np.int64)
    level[1:] = network.level(rows[:, :-1], rows[:, 1:]).max(axis=0)
    sizes = np.array([int(np.bincount(block).max()) for block in network.nesting])
    inner = np.array([int(np.argmax(sizes >= width)) for width in widths])
    ends = np.full((len(widths), span), -1, dtype=np.int64)
    for number, width in enumerate(widths):
        crossed = np.concatenate([[0], np.cumsum(level > inner[number])])
        start = np.arange(max(0, span - width + 1))
        fits = crossed[start + width] == crossed[start + 1]
        ends[number, start[fits]] = start[fits] + width
    return Stretch(widths, rows[::-1], level, inner, ends)


def slots(network: Network, order: tuple[str, ...], dp: int, width: int) -> Slots | None:
    """All slots of a network whose blocks nest; None if there is none.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> tiers = (Tier("node", 4, 100e9, 1e-6), Tier("rack", 2, 50e9, 2e-6))
    >>> found = slots(collapse(Hierarchical("two", tiers)), PAPER_ORDER, 1, 3)
    >>> found.devices[:, 0].tolist(), found.level.tolist()
    ([[5, 6, 7], [1, 2, 3]], [0, 1])
    """
    # From the far end, so that stages that leave no gap sit in the fabric's own order.
    line = np.lexsort(network.nesting)[::-1]
    between = np.zeros(network.devices, dtype=np.int64)
    between[1:] = network.level(line[:-1], line[1:])
    sizes = np.array([int(np.bincount(block).max()) for block in network.nesting])
    if width > sizes[-1]:
        return None
    most = int(np.argmax(sizes >= width))
    replicas, span = (dp, network.devices // dp) if order[-1] == "dp" else (1, network.devices)
    starts = _starts(between <= most, replicas, span, width)
    within = starts[:, None, None] + np.arange(replicas)[:, None] * span + np.arange(width)
    if replicas != dp:
        count = len(starts) // dp
        within = within[: count * dp].reshape(count, dp, width)
    if not len(within):
        return None
    devices = line[within[:, ::-1, ::-1]]
    level = np.zeros(len(devices), dtype=np.int64)
    level[1:] = network.level(devices[:-1], devices[1:]).max(axis=(1, 2))
    return Slots(order, devices, level)


@compiled
def _starts(close: BoolArray, replicas: int, span: int, width: int) -> IntArray:
    """Offsets at which no replica's stage leaves its group; ``close``: the one before is in it."""
    starts = np.empty(span // width, dtype=np.int64)
    count, at = 0, 0
    while at + width <= span:
        step = 0
        for replica in range(replicas):
            for place in range(1, width):
                if not close[replica * span + at + place]:
                    step = max(step, place)
        if step:
            at += step
        else:
            starts[count] = at
            count += 1
            at += width
    return starts[:count]


_FEW = 16
"""So many strategies of unequal widths are all tried; of more, two of each width, and widths from
a quarter of the best equal one to twice as much."""

Strategy = tuple[int, bool, int, int, int]
"""tp, sp, cp, ep, etp."""


@dataclass(frozen=True, slots=True)
class Outer:
    """What is fixed before the recurrence: the slots, the micro-batch, a bound of any promise.

    Several widths, each with its slots, are those of unequal stages.
    """

    bound: float
    slots: tuple[Slots, ...]
    widths: tuple[int, ...]
    dp: int
    micro_batch: int

    def point(self, strategy: Strategy, pp: int, state: tuple[int, int] = (0, 0)) -> Point:
        """With one of its strategies, so many stages, and a ZeRO stage with its group."""
        tp, sp, cp, ep, etp = strategy
        return Point(
            tp=tp,
            sp=sp,
            dp=self.dp,
            pp=pp,
            micro_batch=self.micro_batch,
            zero=state[0],
            order=self.slots[0].order,
            cp=cp,
            ep=ep,
            etp=etp,
            zero_group=state[1],
        )


class OuterPoints:
    """All outer points of a problem in a space."""

    def __init__(self, problem: Problem, space: SearchSpace) -> None:
        self._problem, self._space = problem, space
        self._lightest = cache(self._lightest_seconds)
        self._transfer_bounds, self._micros = TransferBounds(problem), np.unique(space.micro_batch)
        self._sent = cache(self._seconds_with_calls)

    def equal(self) -> Iterator[Outer]:
        """Of one width each, in the paper's order if the space has it."""
        space, problem = self._space, self._problem
        orders = [order for order in space.orders if order.index("cp") == 1]
        orders = [PAPER_ORDER] if PAPER_ORDER in orders else orders[:1]
        widths = sorted({tp * cp for tp, cp in itertools.product(space.tp, space.cp)})
        for order, dp, width in itertools.product(orders, space.dp, widths):
            if dp * width > problem.network.devices:
                continue
            groups_of_slots = slots(problem.network, order, dp, width)
            if groups_of_slots is None:
                continue
            light, heavy = self._lightest_of(width, dp)
            for micro_batch in space.micro_batch:
                if not problem.divides(dp, micro_batch):
                    continue
                m = micro_batches(problem.batch, dp, micro_batch)
                depths = np.arange(1, min(len(groups_of_slots), problem.layers) + 1)
                worst = np.maximum(light / depths, heavy)
                bound = float(((m + depths - 1) * worst).min()) * micro_batch
                yield Outer(bound, (groups_of_slots,), (width,), dp, micro_batch)

    def unequal(self, equal: Sequence[Outer], usual: int) -> Iterator[Outer]:
        """Of several widths, made of those of one in the paper's order.

        ``usual`` is the width of the best plan so far, 0 if there is none.
        """
        alike = grouped(
            ((outer.dp, outer.micro_batch), outer)
            for outer in sorted(equal, key=lambda outer: outer.widths)
            if outer.slots[0].order == PAPER_ORDER
        )
        for (dp, micro_batch), outers in alike.items():
            span = self._problem.network.devices // dp
            outers = [outer for outer in outers if outer.widths[0] + outers[0].widths[0] <= span]
            if usual and self.many([candidate.widths[0] for candidate in outers], dp):
                outers = [
                    candidate
                    for candidate in outers
                    if usual <= 4 * candidate.widths[0] <= 8 * usual
                ]
            widths = tuple(outer.widths[0] for outer in outers)
            if len(widths) < 2:
                continue
            m = micro_batches(self._problem.batch, dp, micro_batch)
            least_seconds = [self._least_of(width, dp) for width in widths]
            light = np.min(least_seconds, axis=0)
            share = np.min(
                [a * candidate for a, candidate in zip(widths, least_seconds, strict=True)], axis=0
            )
            depths = np.arange(2, min(span // widths[0], self._problem.layers) + 1)
            if not len(depths):
                continue
            worst = np.maximum(light.sum() / depths, max(light.max(), share.sum() / span))
            bound = float(((m + depths - 1) * worst).min()) * micro_batch
            yield Outer(bound, tuple(outer.slots[0] for outer in outers), widths, dp, micro_batch)

    def strategies(self, width: int, dp: int) -> list[Strategy]:
        """Ways to divide a stage's width: (tp, sp, cp, ep, etp)."""
        space = self._space
        return [
            (tp, sp, cp, ep, etp)
            for tp, sp, cp, ep in itertools.product(space.tp, space.sp, space.cp, space.ep)
            for etp in space.expert_tensor(tp, sp)
            if tp * cp == width and (tp > 1 or not sp) and width * dp % (ep * etp) == 0
        ]

    def many(self, widths: Sequence[int], dp: int) -> bool:
        """Whether widths have more strategies together than are all tried."""
        return sum(len(self.strategies(width, dp)) for width in widths) > _FEW

    def allowed(self, outer: Outer, stages: int) -> bool:
        """Whether a plan may have so many stages."""
        devices = self._problem.network.devices
        if len(outer.widths) > 1:  # stages that leave nobody idle are the recurrence's to find
            full = self._space.idle_devices or devices % outer.dp == 0
        else:
            full = self._space.idle_devices or stages * outer.dp * outer.widths[0] == devices
        return full and stages in self._space.pp

    def light(self, strategy: Strategy) -> FloatArray:
        """Compute of a sequence at least, layer by layer.

        That with all experts on every rank: to divide them adds communication, and leaves each
        rank as much to compute.
        """
        tp, sp, cp, _, etp = strategy
        return self._lightest((tp, sp, cp, 1, tp if etp == tp else 1))

    def least(self, strategy: Strategy, micro_batch: int) -> FloatArray:
        """Seconds of a micro-batch at least, layer by layer, its collectives at their best."""
        return np.asarray(self._sent(strategy)[int(np.searchsorted(self._micros, micro_batch))])

    def _seconds_with_calls(self, strategy: Strategy) -> FloatArray:
        problem, space = self._problem, self._space
        family = Families(*(np.array([int(degree)]) for degree in strategy))
        allowed = problem.rows(space.recompute)
        seconds = np.zeros((len(self._micros), problem.layers))
        for number, table, which, scale in lower_bounds(problem, family, self._micros):
            case = best_case(problem, space, self._transfer_bounds, family, number, table, scale)
            seconds[which] = case.seconds[:, allowed].min(axis=1)
        return seconds

    def _lightest_seconds(self, strategy: Strategy) -> FloatArray:
        return (
            np.zeros(self._problem.layers)
            if self._problem.lower_bound is None
            else self._problem.lower_bound(*strategy).compute_s
        )

    def _lightest_of(self, width: int, dp: int) -> tuple[float, float]:
        """Compute of a sequence in all layers, and in the largest, whatever the strategy."""
        loads = [self.light(strategy) for strategy in self.strategies(width, dp)]
        return (
            (float("inf"), float("inf"))
            if not loads
            else (
                min(float(load.sum()) for load in loads),
                min(float(load.max()) for load in loads),
            )
        )

    def _least_of(self, width: int, dp: int) -> FloatArray:
        """Return the same layer by layer, shape (L,)."""
        loads = [self.light(strategy) for strategy in self.strategies(width, dp)]
        return np.min(loads, axis=0) if loads else np.full(self._problem.layers, np.inf)
