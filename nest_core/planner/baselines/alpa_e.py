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
with what it lacks. Ranks sit in the order tp, cp, dp, pp, and the plan is priced on the fabric.

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
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from nest_core.costs import DELAYS, Plan, Point, Problem, StageCosts
from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, FloatArray
from nest_core.planner import SearchSpace
from nest_core.planner.baselines.alpa_cases import AlpaCases
from nest_core.planner.baselines.baseline import Found
from nest_core.planner.baselines.blind import mesh, row_length
from nest_core.planner.baselines.choices import even_choices
from nest_core.planner.baselines.prices import PlanPrices
from nest_core.planner.points import rounds
from nest_core.planner.program import Choices, solve_point
from nest_core.planner.solver import lower_sync_bound, spared

__all__ = ["find"]


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
