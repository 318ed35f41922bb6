"""Groups of ranks that communicate, and the numbers that ASTRA-sim knows them by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs.plan import Point
from nest_core.network.wires import IntArray

__all__ = ["Groups", "groups_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups by axis: tp, cp, ep, data (ranks with the same dense weights), expert_data, tied.

    Parameters
    ----------
    members : mapping of str to int array (groups, size)
        Ranks, in the order of their places on the axis.
    number : mapping of str to int array (ranks,)
        Number of every rank's group, from 1; 0 where it has none.
    """

    members: dict[str, IntArray]
    number: dict[str, IntArray]


def groups_of(point: Point) -> Groups:
    """All groups of a point with more than one member, numbered through."""
    ranks = point.layout.devices
    near = ranks[:, point.layout.nearest]
    split = near.reshape(point.pp, -1, point.ep, point.tp)
    found = {
        "tp": ranks.reshape(-1, point.tp),
        "cp": ranks.reshape(point.pp, point.dp, point.cp, point.tp)
        .transpose(0, 1, 3, 2)
        .reshape(-1, point.cp),
        "ep": split.transpose(0, 1, 3, 2).reshape(-1, point.ep),
        "data": near.transpose(0, 2, 1).reshape(-1, point.sharers),
        "expert_data": split.transpose(0, 2, 3, 1).reshape(-1, point.expert_sharers),
        "tied": np.stack([ranks[0].reshape(-1), ranks[-1].reshape(-1)], axis=1),
    }
    members, number, last = {}, {}, 0
    for axis, group in found.items():
        if group.shape[1] == 1 or (axis == "tied" and point.pp == 1):
            continue
        if axis in ("ep", "expert_data") and point.ep == 1:
            continue
        members[axis] = group
        own = np.zeros(ranks.size, dtype=np.int64)
        own[group] = last + 1 + np.arange(len(group))[:, None]
        number[axis] = own
        last += len(group)
    return Groups(members, number)
