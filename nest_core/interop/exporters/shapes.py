"""What other allocations than the planned one cost: the table that a job carries with it.

A scheduler seldom gives the nodes that were drawn. Level by level, from the host outwards, the
table says which nodes of a plan must stay below one switch, and what an iteration takes longer
where some of these groups are cut. `nest_core.interop.exporters.place_job` reads it inside the job.

A group is no larger than it must be: of the divisors of a level's groups the smallest is taken
whose pieces cost nothing to move elsewhere. Groups that are cut are priced as any plan is, with
their nodes dealt one by one to all switches below which no whole group lies.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nest_core.costs import Plan, Problem, Report, price
from nest_core.interop.exporters.values import HostMapping, host_mapping
from nest_core.interop.formats.slurm import given_names
from nest_core.interop.formats.trees import host_groups
from nest_core.network import IntArray
from nest_core.scenario import ScenarioValues

__all__ = ["allocation_shapes"]

SAME = 1e-3
"""Relative difference below which a group costs nothing to divide."""
STEP = 4
"""Ratio of the numbers of cut groups that are priced."""
OTHERS = 3
"""Plans that are priced beside the planned one where every group is cut."""
NAMES = ("leaf or block", "switch above")


def allocation_shapes(
    scenario: ScenarioValues, report: Report, others: Sequence[Plan] = ()
) -> dict[str, Any]:
    """Return the table of a priced plan, as `place_job.place` reads it.

    Parameters
    ----------
    others : sequence of Plan
        Plans that may lose less where every group is cut.

    Returns
    -------
    dict
        ``nodes``; ``ranks``: node and device of every rank; ``paths``: by name of host the groups
        above it, outermost first, where the fabric names its hosts; ``levels``, innermost first:
        ``{name, groups: group of every node, losses: [{cut, loss}], other: {loss, plan} or None}``,
        losses relative, that of the other plan where all groups are cut.
    """
    problem = scenario.problem(report.plan.recompute)
    mapping = host_mapping(problem.network, report.plan.point)
    used = mapping.used_hosts
    shapes: dict[str, Any] = {
        "nodes": len(used),
        "ranks": np.stack([np.searchsorted(used, mapping.hosts), mapping.slots], 1).tolist(),
        "paths": {},
        "levels": [],
    }
    if not scenario.fabric.switched:
        return shapes
    tree = host_groups(scenario.fabric, "a job")
    # A launcher's host may be a part of what the fabric calls one.
    first = mapping.by_host[np.cumsum(mapping.host_sizes) - mapping.host_sizes]
    rows = [group[tree.host_of[first]] for group in tree.groups]
    names = given_names(scenario.fabric, len(first))
    shapes["paths"] = {
        name: [f"{row[host]}" for row in rows[::-1]] for host, name in enumerate(names)
    }
    pricing = _Pricing(problem, report, mapping)
    for name, row in zip(NAMES, (row for row in rows if row.max()), strict=False):
        if level := pricing.level(row, others):
            shapes["levels"].append({"name": name} | level)
    return shapes


@dataclass(frozen=True, slots=True, eq=False)
class _Pricing:
    """Prices of a plan whose nodes lie elsewhere on its fabric."""

    problem: Problem
    report: Report
    mapping: HostMapping

    def level(self, group_of: IntArray, others: Sequence[Plan]) -> dict[str, Any] | None:
        """Return groups of nodes that must stay together, and losses; None where none must."""
        used = self.mapping.used_hosts
        drawn = group_of[used]
        every = np.arange(len(used))
        largest = math.gcd(*np.unique(drawn, return_counts=True)[1].tolist())
        for size in (size for size in range(1, largest + 1) if largest % size == 0):
            if self.loss(self.dealt(group_of, every, size)) <= SAME:
                break
        else:
            size = len(used)
        if size == 1:
            return None
        groups = np.unique([drawn, _within(drawn) // size], axis=1, return_inverse=True)[1]
        count = int(groups.max()) + 1
        counts = sorted({count, *(STEP**power for power in range(1, 12) if STEP**power < count)})
        losses: list[dict[str, Any]] = []
        for cut in counts:
            # Of switches far apart, so that what is dealt comes to lie far apart.
            chosen = np.linspace(0, count - 1, cut).astype(np.int64)
            order = self.dealt(group_of, np.flatnonzero(np.isin(groups, chosen)), 1)
            losses.append({"cut": cut, "loss": self.loss(order)})
        ranked = [
            (self.loss(order, other), other.words)
            for other in others[:OTHERS]
            if other.devices_used == self.report.plan.devices_used
        ]
        other = dict(zip(("loss", "plan"), min(ranked), strict=True)) if ranked else None
        return {"groups": groups.tolist(), "losses": losses, "other": other}

    def dealt(self, group_of: IntArray, nodes: IntArray, size: int) -> IntArray:
        """Return hosts of all nodes, some of them dealt in pieces to what no other node holds."""
        hosts = self.mapping.used_hosts.copy()
        staying = np.delete(hosts, nodes)
        free = np.setdiff1d(
            np.flatnonzero(self.mapping.host_sizes >= self.mapping.per_host.max()), staying
        )
        group, within = group_of[free], _within(group_of[free])
        dealt = free[np.lexsort((within % size, group, within // size))]
        hosts[nodes] = dealt[: len(nodes)]
        return hosts

    def loss(self, hosts: IntArray, of: Plan | None = None) -> float:
        """Return by how much an iteration of a plan is slower than the planned one, relative."""
        mapping, plan = self.mapping, of or self.report.plan
        starts = np.cumsum(mapping.host_sizes) - mapping.host_sizes
        place = starts[hosts[np.searchsorted(mapping.used_hosts, mapping.hosts)]] + mapping.slots
        order = tuple(mapping.by_host[place].tolist())
        moved = replace(plan, point=replace(plan.point, device_order=order))
        return price(self.problem, moved).iteration_s / self.report.iteration_s - 1.0


def _within(groups: IntArray) -> IntArray:
    """Return the place of every member within its group, in order."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    place = np.empty(len(groups), dtype=np.int64)
    place[order] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place
