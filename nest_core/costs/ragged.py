"""Links of ragged plans, whose stages differ in width: every stage on its own devices.

Two rules take the place of "as if all others did what it does", which has no meaning here:

* The groups of an axis are those that every stage has under its own strategy; those that have
  equally many members as this stage's run at once, and carry its bytes.
* A tensor between stages of ``a`` and ``b`` ranks per replica is cut where either side cuts it. So
  a rank of the wider side sends or receives its share, and one of the narrower side several of
  them, ``1 / min(a, b)`` of the tensor in all.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nest_core.costs.layout import device_order, overlaps
from nest_core.costs.links import Hops, PlanLinks, axis_groups, hop_times, links
from nest_core.costs.plan import Plan, Point
from nest_core.costs.problem import Problem
from nest_core.network import IntArray, Kind, MessageTime, Network

__all__ = ["plan_links", "ragged_hops"]


def plan_links(problem: Problem, plan: Plan, point: Point) -> PlanLinks:
    """Links that the stages of a plan with one strategy, ``point``, are priced on."""
    if not plan.ragged:
        return links(problem, point)
    placed = _placed(problem.network, plan)
    forward, producer = hop_times(problem, ragged_hops(placed, point.dp))
    points = tuple(plan.stage_point(s) for s in range(point.pp))
    return RaggedLinks(
        problem.network,
        problem.software,
        point,
        forward,
        producer,
        problem.dispatch,
        points=points,
        placed=placed,
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RaggedLinks(PlanLinks):
    """What stages with the strategy ``point`` wait for; members of others say nothing.

    Parameters
    ----------
    points : tuple of Point
        By stage.
    placed : tuple of int array (dp * cp, tp)
        Devices of every stage.
    """

    points: tuple[Point, ...]
    placed: tuple[IntArray, ...]

    def groups(self, axis: str, instances: int = 1) -> tuple[IntArray, IntArray]:
        """Of all stages whose groups have as many members as the stage's own."""
        if axis == "tied":
            pairs = _pairs(self.placed[0], self.placed[-1], self.point.dp, 0)
            return np.stack([pairs.source, pairs.target], axis=1), pairs.receiver
        every = [
            axis_groups(
                devices[None], point, axis, instances if point == self.point else point.instances
            )[0]
            for devices, point in zip(self.placed, self.points, strict=True)
        ]
        size = every[self.points.index(self.point)].shape[1]
        alike = [s for s, ranks in enumerate(every) if ranks.shape[1] == size]
        stage = [np.full(len(every[s]), s) for s in alike]
        return np.concatenate([every[s] for s in alike]), np.concatenate(stage)

    def hops(self) -> Hops:
        """Flows between stages, each with its share of the whole tensor."""
        return ragged_hops(self.placed, self.point.dp)

    @property
    def hop_ranks(self) -> int:
        """A whole tensor: as many messages as the stage has ranks."""
        return self.point.tp * self.point.cp

    @property
    def tied_share(self) -> float:
        """The wider end's part, of what a rank of this stage holds."""
        return self.point.tp / max(self.points[0].tp, self.points[-1].tp)

    def _measured(self, axis: str, kind: Kind, instances: int) -> dict[Kind, MessageTime]:
        times = PlanLinks._measured(self, axis, kind, instances)
        members = 1 if axis == "tied" else len(self.points)
        return {measured_kind: _filled(time, members) for measured_kind, time in times.items()}


def _placed(network: Network, plan: Plan) -> tuple[IntArray, ...]:
    where = device_order(network, plan.point.device_order)
    return tuple(where[ranks] for ranks in plan.ranks)


def ragged_hops(placed: tuple[IntArray, ...], dp: int) -> Hops:
    """Flows between stages, each with its share of the whole tensor.

    ``placed`` are their devices, first stage first, replica by replica.
    """
    hops = enumerate(pairwise(placed), start=1)
    pairs = [_pairs(before, after, dp, s) for s, (before, after) in hops]
    return Hops(*(np.concatenate(columns) for columns in zip(*pairs, strict=True)))


def _pairs(before: IntArray, after: IntArray, dp: int, receiver: int) -> Hops:
    """Ranks of two stages that hold the same part of a tensor, replica by replica."""
    source, target = before.reshape(dp, -1), after.reshape(dp, -1)
    before_rank, after_rank, share = overlaps(source.shape[1], target.shape[1])
    flows = dp * len(share)
    return Hops(
        source[:, before_rank].reshape(-1),
        target[:, after_rank].reshape(-1),
        np.full(flows, receiver),
        np.tile(share, dp),
    )


def _filled(time: MessageTime, members: int) -> MessageTime:
    """As many members; those that are missing wait for nothing."""
    alpha = np.zeros((len(time.alpha_s), members))
    beta = np.zeros_like(alpha)
    alpha[:, : time.alpha_s.shape[1]] = time.alpha_s
    beta[:, : time.alpha_s.shape[1]] = time.beta_s_per_byte
    return MessageTime(alpha, beta)
