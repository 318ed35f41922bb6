"""What communication takes at least where the ranks of points sit, each layout placed once.

`nest_core.planner.transfer_bounds` knows little of tori, dragonflies, drawn graphs, hashed routes
and seatings. Here links are counted as prices count them, for points that nothing else excludes:
many share a layout, whatever their micro-batch, ZeRO stage and schedule.

Notes
-----
Each figure is the least over the positions of stages, and over the regimes of the communication
library, so that no cut and no size of message undercuts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from nest_core.network import BoolArray, FloatArray, IntArray, Kind, MessageTime
from nest_core.network.exchanges import counts_leaving, least_all_to_all
from nest_core.planner.points import Points, PointTable
from nest_core.planner.solver import Solver

__all__ = ["PlacedBounds"]

_Keys = Sequence[IntArray | FloatArray | BoolArray]


class PlacedBounds:
    """Lower bounds of points by the links of their own layouts.

    Parameters
    ----------
    points : Points
    solver : Solver
        Knows the links of every layout.
    """

    def __init__(self, points: Points, solver: Solver) -> None:
        self._points, self._solver = points, solver
        self._known: dict[tuple[float, ...], tuple[float, ...]] = {}
        self.exchanges = [MessageTime.nothing(1)]

    def transfers(self, columns: PointTable, boundary: FloatArray) -> FloatArray:
        """Seconds that one micro-batch is on its way between stages, (points,).

        Parameters
        ----------
        boundary : (points,)
            Bytes that a rank sends to the next stage.
        """
        v = columns.interleave

        def hops(which: int) -> tuple[float, float]:
            links_of_point = self._solver.links(self._points.point(int(columns.number[which])))
            seconds = links_of_point.forward.seconds(boundary[which])
            return float(seconds[1:].sum()), float(seconds[0])

        hop_s = self._by_layout(0, columns, [v > 1, boundary], hops)
        return np.asarray(2 * (v * hop_s[:, 0] + (v - 1) * hop_s[:, 1]))

    def dense(self, columns: PointTable) -> FloatArray:
        """Seconds per byte of what the ranks that share dense weights send, (points,)."""
        return self._gradients(1, "data", columns, [])

    def experts(self, columns: PointTable) -> FloatArray:
        """The same of those that share experts; their own groups only, see `Point`."""
        rows = self._points.rows
        wide = (rows.column("ep") * rows.column("etp"))[columns.row]
        return self._gradients(2, "expert_data", columns, [wide])

    @cached_property
    def _listed(self) -> bool:
        """Whether the price of an all-to-all needs a list of its flows that a bound spares."""
        return counts_leaving(self._solver.problem.network)

    def exchange(self, columns: PointTable) -> IntArray:
        """Which of ``exchanges`` all-to-alls of experts take at least, (points,); 0: unknown."""
        problem, rows = self._solver.problem, self._points.rows
        ep = rows.column("ep")[columns.row]
        if not (ep > 1).any() or problem.dispatch is not None or not self._listed:
            return np.zeros(len(columns), dtype=np.int64)

        def least(which: int) -> tuple[int]:
            point = self._points.point(int(columns.number[which]))
            if point.ep == 1:
                return (0,)
            groups, stage = self._solver.links(point).groups("ep")
            sending = problem.software.of_groups(problem.network, "all_to_all", groups)
            time = least_all_to_all(problem.network, groups, sending, stage)
            # The least over the stages of each regime.
            self.exchanges.append(
                MessageTime(
                    time.alpha_s.min(axis=1, keepdims=True),
                    time.beta_s_per_byte.min(axis=1, keepdims=True),
                )
            )
            return (len(self.exchanges) - 1,)

        wide = [ep, rows.column("etp")[columns.row]]
        return np.asarray(self._by_layout(3, columns, wide, least)[:, 0], dtype=np.int64)

    def _gradients(
        self, figure: int, axis: str, columns: PointTable, further: list[IntArray]
    ) -> FloatArray:
        def least(which: int) -> tuple[float]:
            point = self._points.point(int(columns.number[which]))
            kind: Kind = "reduce_scatter" if point.zero else "all_reduce"
            time = self._solver.links(point).time(axis, kind, point.instances)
            return (float(time.beta_s_per_byte.min()),)

        others: _Keys = [columns.zero > 0, columns.group, *further]
        return self._by_layout(figure, columns, others, least)[:, 0]

    def _by_layout(
        self,
        figure: int,
        columns: PointTable,
        further: _Keys,
        of: Callable[[int], tuple[float, ...]],
    ) -> FloatArray:
        """A figure of one point of each layout, and of what else it depends on, (points, ...)."""
        rows, row = self._points.rows, columns.row
        degrees = [rows.column("tp")[row], rows.column("cp")[row], rows.dp[row], rows.pp[row]]
        keys = np.stack([*degrees, *self._points.orders(columns), *further]).astype(np.float64)
        distinct, first, alike = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        columns_of_layout = []
        for key, which in zip(distinct.T.tolist(), first.tolist(), strict=True):
            if (figure, *key) not in self._known:
                self._known[figure, *key] = of(which)
            columns_of_layout.append(self._known[figure, *key])
        return np.array(columns_of_layout)[alike]
