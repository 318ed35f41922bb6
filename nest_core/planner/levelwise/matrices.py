"""Level-wise cost matrices: what the program reads of a network, level by level.

The links of a point have a member for every stage position. Here they have one for every level:
all slots are taken, and a level counts as the slowest position whose producer is there, a
collective as the slowest of all. Position 0 stands for the first stage, which has no producer,
position ``l + 1`` for one whose producer is at level ``l``; so `nest_core.costs.stage_costs` prices
levels as it prices positions.

The matrices assume that all slots and all replicas send at once; a plan that leaves slots out
may be faster than promised, and slower only through what levels do not say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs import Point, Problem, links
from nest_core.costs.stages import Links
from nest_core.network import Kind, MessageTime
from nest_core.planner.levelwise.slots import Slots

__all__ = ["LevelLinks", "level_links"]


@dataclass(frozen=True, slots=True, eq=False)
class LevelLinks(Links):
    """Message times by level: ``forward[l + 1]`` is that of a link at level ``l``."""

    def _measured(self, axis: str, kind: Kind, instances: int) -> dict[Kind, MessageTime]:
        found = Links._measured(self, axis, kind, instances)
        members = 1 if axis == "tied" else len(self.producer_level)
        return {each: _slowest(time).repeated(members) for each, time in found.items()}


def level_links(problem: Problem, point: Point, found: Slots) -> LevelLinks:
    """Matrices of a point's degrees; all its slots are taken.

    Parameters
    ----------
    point : Point
        Its ``pp`` and ``device_order`` are not read, nor what does not place ranks.
    """
    placed = Point(
        tp=point.tp,
        sp=False,
        dp=point.dp,
        pp=len(found),
        micro_batch=1,
        zero=0,
        order=found.order,
        device_order=found.device_order(np.arange(len(found))[::-1]),
        cp=point.cp,
        ep=point.ep,
        etp=point.etp,
    )
    shared = links(problem, placed)
    levels = len(problem.network.nesting)
    alpha = np.zeros((len(shared.forward.alpha_s), levels + 1))
    beta = np.zeros_like(alpha)
    for level in range(levels):
        met = np.flatnonzero(shared.producer_level == level)
        if len(met):
            alpha[:, level + 1] = shared.forward.alpha_s[:, met].max(axis=1)
            beta[:, level + 1] = shared.forward.beta_s_per_byte[:, met].max(axis=1)
    producer = np.arange(levels + 1) - 1
    forward = MessageTime(alpha, beta)
    return LevelLinks(
        problem.network, problem.software, placed, forward, producer, problem.dispatch
    )


def _slowest(time: MessageTime) -> MessageTime:
    """One member, with the slowest alpha and the slowest beta of all."""
    return MessageTime(
        time.alpha_s.max(axis=1, keepdims=True), time.beta_s_per_byte.max(axis=1, keepdims=True)
    )
