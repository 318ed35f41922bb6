"""Alpa-E: one pipeline over a two-dimensional mesh, memory looked at afterwards.

**The original** cuts a model into stages and the cluster, seen as a mesh of nodes by devices per
node, into submeshes. For every stage and submesh an integer program picks how operators are
sharded with the least communication; a dynamic program over stages then minimises the latency of
the pipeline. All devices work in one pipeline, so data parallelism exists inside stages only. The
NEST paper's Alpa-E is Alpa with NEST's estimator in place of its profiler, and checks memory only
once a plan is there.

**Here** a stage is sharded ``dp`` by ``tp`` over its share of the mesh, with sequence and expert
parallelism and ZeRO among the shardings; stages get equal submeshes, parts of a row or whole rows.
For every pipeline depth, schedule, micro-batch and recomputation (a *setting*) the sharding and the
cuts of the layers are those of least latency on the mesh, memory unlimited. Only then is memory
looked at: settings are taken in the order of their latency, and the first whose plan fits is
Alpa-E's. So a plan that does not fit leads to a deeper pipeline, a smaller micro-batch or
recomputation, never to a sharding chosen for its memory. If no setting fits, the fastest stands,
with what it lacks. Ranks sit in the order tp, cp, dp, pp, and the plan is priced on the fabric. A
setting's cases are the shardings that go with it; bounds of their latency and the memory screen are
arrays over all cases, so that few are ever costed.

**Simplified**: operators of a layer are sharded alike, by the templates that all methods here use,
so the finer sharding that puts Alpa-E ahead by up to 3 % at 128 devices in the paper is not there;
submeshes of different shapes are not, and the costs of homogeneous layers give little reason for
them; recomputation is the same in all stages.

**Why that is fair to it**: both of its programs are exact here and joint, the gradient
synchronisation is part of the latency, the mesh has the fabric's own figures inside the node and
just outside it, the schedules are those of all methods, and depth, schedule, micro-batch and
recomputation, most of which its users set by hand, are swept.

References
----------
.. [1] Zheng et al., "Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep
   Learning", OSDI 2022, sections 4 and 5.
.. [2] NEST, MLSys 2026, sections 5.1 and 5.2.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from math import gcd
from operator import itemgetter

import numpy as np

from nest_core.costs import (
    DELAYS,
    Plan,
    Point,
    Problem,
    StageCosts,
    acting_zero,
    in_flight,
    layer_seconds,
    micro_batches,
    state_shares,
    traffic,
)
from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.planner import SearchSpace
from nest_core.planner.baselines.baseline import (
    Found,
    PlanPrices,
    default_order,
    even_choices,
    mesh,
    natural,
    row_length,
)
from nest_core.planner.points import Points, PointTable, rounds
from nest_core.planner.program import Choices, solve_point
from nest_core.planner.solver import lower_sync_bound, spared
from nest_core.planner.space import enumerate_rows

__all__ = [
    "AlpaCases",
    "find",
]

_SLACK = 1.0 + 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """One sharding of the layers at one micro-batch: sums over layers; rows: recomputations.

    ``total`` and ``tallest`` are seconds with what the ranks of a stage send one another;
    ``shown`` and ``shown_experts`` are elements of layers whose device takes longer than their
    host, so that what it does more is seen.
    """

    total: FloatArray
    tallest: FloatArray
    kept: FloatArray
    shown: FloatArray
    shown_experts: FloatArray
    dense: float
    experts: float


class AlpaCases:
    """All cases of a problem on its mesh.

    Parameters
    ----------
    prices : PlanPrices
        Of the problem on its mesh (`nest_core.planner.baselines.baseline.mesh`), with the device's
        memory.
    row : int
        Devices of a row.

    Attributes
    ----------
    number, choice, setting : (cases,)
        The point's place among `points`, the row of the recomputation, the number of the setting.
    bound : (cases,)
        No plan of the case has less latency on the mesh.
    hopeful : (settings,)
        Whether some case of a setting may fit into memory at all.
    """

    def __init__(self, prices: PlanPrices, space: SearchSpace, row: int) -> None:
        self.prices, view = prices, prices.problem
        narrowed = _narrowed(space)
        rows = enumerate_rows(view, narrowed)
        self._points = Points(view, narrowed, rows)
        stage = rows.column("tp") * rows.column("cp") * rows.dp
        shaped = (stage % row == 0) | (row % stage == 0)
        if not shaped.any():
            shaped[:] = True
        used = np.where(shaped, stage * rows.pp, 0)
        columns = self._points.columns(np.flatnonzero(used == used.max()))
        self._numbers = columns.number
        allowed, kinds = view.rows(space.recompute), len(view.recomputations)
        at = columns.row
        keys = [
            rows.pp[at],
            rows.micro_batch[at],
            columns.interleave,
            columns.stashing,
            columns.delay,
        ]
        settings, setting = np.unique(np.stack(keys).astype(np.int64), axis=1, return_inverse=True)
        bound, fits = self._columns(columns, rows.micro_batch[at] * 1_000_003 + rows.family[at])
        self.number = np.tile(np.arange(len(columns)), len(allowed))
        self.choice = np.repeat(allowed, len(columns))
        self.setting = np.tile(setting.reshape(-1), len(allowed)) * kinds + self.choice
        self.bound = bound[self.number, self.choice]
        self.hopeful = np.zeros(kinds * settings.shape[1], dtype=bool)
        np.logical_or.at(self.hopeful, self.setting, fits[self.number, self.choice])

    @property
    def points(self) -> list[Point]:
        """Every point of a case."""
        return [self._points.point(int(number)) for number in self._numbers]

    def point(self, case: int) -> Point:
        """Return the point of a case."""
        return self._points.point(int(self._numbers[self.number[case]]))

    def _columns(self, columns: PointTable, family: IntArray) -> tuple[FloatArray, BoolArray]:
        """Bound and memory screen of every point under every recomputation, (points, R)."""
        view, rows, at = self.prices.problem, self._points.rows, columns.row
        tp, cp, ep, etp = (rows.column(name)[at] for name in ("tp", "cp", "ep", "etp"))
        dp, pp = rows.dp[at], rows.pp[at]
        _, first, place = np.unique(family, return_index=True, return_inverse=True)
        families = [self._family(self._points.point(int(columns.number[index]))) for index in first]
        stacked = {
            name: np.array([getattr(entry, name) for entry in families])[place]
            for name in [field.name for field in fields(_Family)]
        }
        m = micro_batches(view.batch, dp, rows.micro_batch[at])
        zero = acting_zero(columns.zero, pp, view.sharded_gradients)
        sends = [traffic(stage, view.state) for stage in range(4)]
        step = np.array([sum(entry.step) for entry in sends])[zero]
        sync = np.array([sum(entry.sync) for entry in sends])[zero]
        # What copies of shards exchange is left out.
        sharers, owners = (n // columns.instances(dp * cp) for n in (dp * cp, rows.owners[at]))
        spread, spread_experts = _spread(view, tp, sharers), _spread(view, ep * etp, owners)
        exposed = 1.0 - view.overlap.data
        sent = (
            spread[:, None] * stacked["shown"] + spread_experts[:, None] * stacked["shown_experts"]
        )
        total = stacked["total"] + (exposed * step)[:, None] * sent
        once = spread * stacked["dense"] + spread_experts * stacked["experts"]
        once = exposed * sync * once / pp
        slowest = np.maximum(total / pp[:, None], stacked["tallest"])
        v = columns.rounds[:, None]
        bound = total / v + (m[:, None] - 1.0 / v) * slowest + once[:, None]

        static = stacked["dense"] * _held(view, zero, sharers)
        static += stacked["experts"] * _held(view, zero, owners)
        flying = self._flying(columns, pp, m)
        limit = view.tensor_bytes * _SLACK
        fits = static[:, None] + stacked["kept"] * flying[:, :1] <= pp[:, None] * limit
        fits &= (static / flying[:, 1])[:, None] + stacked["kept"] <= limit * flying[:, 2:]
        return bound, fits

    def _family(self, point: Point) -> _Family:
        """Return sums over the layers of a sharding.

        Every stage's groups look alike on the mesh, so one stage with as few replicas as expert
        parallelism needs tells what layers take; ZeRO and transfers between stages only add.
        """
        view = self.prices.problem
        expert_ranks = point.ep * point.etp
        least = expert_ranks // gcd(
            expert_ranks, point.tp * point.cp
        )  # replicas that experts are spread over
        alone = replace(point, dp=least, pp=1, zero=0, schedule="1f1b", interleave=1)
        table = view.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
        paired_share = np.ones(1) if view.overlap.experts else None  # at best
        alone_s = layer_seconds(view, alone, self.prices.solver.links(alone), table, paired_share)
        dense = table.parameters.copy()
        dense[-1] -= table.tied_parameters
        experts = table.expert_parameters
        busy = alone_s.total[0] - alone_s.offload <= alone_s.device[0] * _SLACK
        return _Family(
            total=alone_s.total[0].sum(axis=1),
            tallest=alone_s.total[0].max(axis=1),
            kept=table.kept_bytes.sum(axis=1),
            shown=np.where(busy, dense, 0.0).sum(axis=1),
            shown_experts=np.where(busy, experts, 0.0).sum(axis=1),
            dense=float(dense.sum()),
            experts=float(experts.sum()),
        )

    def _flying(self, columns: PointTable, pp: IntArray, m: IntArray) -> FloatArray:
        """Of the micro-batches ``f`` in flight at each position min, max and sum of 1/f."""
        keys = np.stack(
            [pp, m, columns.interleave, columns.stashing.astype(np.int64), columns.delay]
        )
        _, first, place = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        flights = (
            in_flight(self._points.point(int(columns.number[index])), int(m[index]))
            for index in first.tolist()
        )
        counts = [(flying.min(), flying.max(), (1.0 / flying).sum()) for flying in flights]
        return np.array(counts)[place.reshape(-1)]


def _narrowed(space: SearchSpace) -> SearchSpace:
    """Return what Alpa has of a space; GPipe takes as long as 1F1B and holds no less."""
    stashing = "gpipe" if space.plain == "1f1b" else ""
    return replace(
        space,
        cp=(min(space.cp),),
        orders=(default_order(space),),
        device_orders=(natural(space),),
        schedules=tuple(name for name in space.schedules if name != stashing),
    )


def _held(view: Problem, zero: IntArray, sharers: IntArray) -> FloatArray:
    """Bytes per parameter of weights, gradients and optimizer states."""
    kinds, which = np.unique(np.stack([zero, sharers]), axis=1, return_inverse=True)
    shares = [sum(state_shares(int(z), int(n), view.state)) for z, n in kinds.T]
    return np.array(shares, dtype=np.float64)[which.reshape(-1)]


def _spread(view: Problem, is_apart: IntArray, sharers: IntArray) -> FloatArray:
    """Lower bound, s per byte, of a collective over sharers of weights so far ``is_apart``.

    Each sends ``1 - 1/n`` of it through its own ports; a row, of which at most ``g`` ranks are of
    one group, sends ``1 - g/n`` of each of its groups' out.
    """
    network, software = view.network, view.software
    port = (network.link_map.all_ports_Bps or np.inf) * software.reach
    seconds = (1.0 - 1.0 / sharers) / port
    for row, egress_Bps in network.alike_egress:
        together = -(-row // is_apart)
        groups = row / together
        out = groups * (1.0 - together / sharers) / (egress_Bps * software.reach_outside)
        seconds = np.maximum(
            seconds, np.where((sharers > together) & (is_apart * sharers >= row), out, 0.0)
        )
    return np.asarray(seconds)


def find(problem: Problem, space: SearchSpace) -> Found:
    """Return the first setting, by the latency of its best plan on the mesh, that fits.

    Raises
    ------
    InputError
        If the space holds no valid point with the least context parallelism that it allows.
    """
    view, row = mesh(problem), row_length(problem.network)
    prices = PlanPrices(view, size=1 << 20)
    cases = AlpaCases(prices, space, row)
    origin = f"least latency on a mesh of {view.network.devices // row:,} x {row} devices"
    for plan in _by_latency(prices, cases, cases.hopeful):
        if not prices.overflow(plan):
            return Found(plan, f"{origin} that then fits")
    fastest = next(_by_latency(prices, cases, np.ones_like(cases.hopeful)))
    return Found(fastest, f"{origin}, memory aside")


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A case with bounds of its latency, of its stages' times added up and of its slowest sync."""

    lower_bound: float
    total: float
    sync: float


def _by_latency(prices: PlanPrices, cases: AlpaCases, wanted: BoolArray) -> Iterator[Plan]:
    """Return the fastest plan of each wanted setting, settings by their fastest.

    Best first: a case waits with its rough bound, then with a closer one, then with its latency.
    What leaves the queue with its latency is the fastest of its setting, unless a plan of that
    setting left before, and no setting that is still waiting has a faster one.
    """
    queue: list[tuple[float, int, _Bounded | Plan | None]] = [
        (bound, case, None)
        for case, (bound, wait) in enumerate(
            zip(cases.bound.tolist(), wanted[cases.setting].tolist(), strict=True)
        )
        if wait
    ]
    heapq.heapify(queue)
    settled: set[int] = set()
    while queue:
        bound, case, state = heapq.heappop(queue)
        setting = int(cases.setting[case])
        if setting in settled:
            continue
        if isinstance(state, Plan):
            settled.add(setting)
            yield state
            continue
        point, c = cases.point(case), int(cases.choice[case])
        if state is None:
            closer = _bounded(prices.solver.costs(point), point, c)
            heapq.heappush(queue, (max(bound, closer.lower_bound), case, closer))
        else:
            latency, plan = _cut(prices, point, c, state)
            heapq.heappush(queue, (latency, case, plan))


def _bounded(costs: StageCosts, point: Point, c: int) -> _Bounded:
    """Bounds: every layer and transfer at the position where it is cheapest."""
    pp, v, m = point.pp, point.interleave, costs.micro_batches
    layer_s = np.diff(costs.time[:, c], axis=1).min(axis=0)
    hops = costs.arrive[1:, 1:-1].min(axis=1, initial=np.inf).sum()
    hops += costs.retire[:-1, 1:-1].min(axis=1, initial=np.inf).sum()
    total = float(layer_s.sum() + (1.0 - costs.transfer_saved) * hops)
    sync = lower_sync_bound((costs,), np.array([c]), hidden=v > 1)
    slowest = max(total / pp, float(layer_s.max()))
    if v == 1:
        slowest = float(_slowest(layer_s, pp, slowest))
    share = 1.0 / float(rounds(v, DELAYS.get(point.schedule, 0)))
    return _Bounded(total * share + (m - share) * slowest + sync, total, sync)


@compiled
def _slowest(layer_s: FloatArray, stages: int, low: float) -> float:
    """Seconds that the slowest of so many stages of whole layers takes at least, from below."""
    high = layer_s.sum()
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        used, load = 1, 0.0
        for layer in layer_s:
            if load + layer > middle:
                used, load = used + 1, 0.0
            load += layer
        if used > stages:
            low = middle
        else:
            high = middle
    return low


def _cut(prices: PlanPrices, point: Point, c: int, bounded: _Bounded) -> tuple[float, Plan]:
    """Cuts of least latency, whatever the stages hold; even cuts are where it starts from."""
    costs, recompute = prices.solver.costs(point), (prices.problem.recomputations[c],) * point.pp
    starts = [Plan(point, cuts, recompute) for cuts in even_choices(prices.problem, point)]
    least, even = min(((prices.seconds(plan), plan) for plan in starts), key=itemgetter(0))
    if point.schedule == "interleaved":
        return least, even
    choices = Choices.of((replace(costs, limit=math.inf),), np.array([c]))
    total = max(0.0, bounded.total - spared((costs,)))
    best_s, cuts, _ = solve_point(choices, total, bounded.sync, least)
    return (
        (least, even) if best_s >= least else (best_s, Plan(point, tuple(cuts.tolist()), recompute))
    )
