"""Alpa-E's cases: points of one pipeline over a mesh, by settings, with bounds of their latency.

A *setting* is what Alpa's users choose: depth, micro-batch, schedule with its virtual stages, and
recomputation. Its cases are the shardings that go with it. Bounds and the memory screen are arrays
over all cases, so that few are ever costed.
"""

from dataclasses import dataclass, fields, replace
from math import gcd

import numpy as np

from nest_core.costs import (
    Point,
    Problem,
    acting_zero,
    in_flight,
    micro_batches,
    state_shares,
)
from nest_core.costs.stages import layer_seconds
from nest_core.costs.zero import traffic
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.planner import SearchSpace
from nest_core.planner.baselines.choices import default_order, natural
from nest_core.planner.baselines.prices import PlanPrices
from nest_core.planner.points import Points, PointTable
from nest_core.planner.space import enumerate_rows

__all__ = ["AlpaCases"]

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
        Of the problem on its mesh (`nest_core.planner.baselines.blind.mesh`), with the device's
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
        busy = alone_s.device[0] >= table.launch_s
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
        counts = []
        for index in first.tolist():
            flying = in_flight(self._points.point(int(columns.number[index])), int(m[index]))
            counts.append([flying.min(), flying.max(), (1.0 / flying).sum()])
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
