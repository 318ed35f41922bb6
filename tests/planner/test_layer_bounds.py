"""Families at best-case communication, layer by layer, against the layers of placed points.

Whole plans hide a bound that is too high: another layer, cut or position makes up for it. Here
nothing lies in between.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joint_instances import joint_instance

from nest_core.costs import Overlap
from nest_core.planner.frontier import Frontier

POINTS = 60
OVERLAP = Overlap("fitted", tp=0.3, pp=0.5, dp=0.9, slowdown=0.1, experts=True)
"""Passes are paired, which hides more of the all-to-alls of experts."""


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(3)
def test_no_layer_beats_its_best_case(seed):
    """Points with experts divided come first, if there are any."""
    instance = joint_instance(seed)
    problem, space = replace(instance.problem, overlap=OVERLAP), instance.space
    frontier = Frontier(problem, space.offloading(space.offload[0]))
    allowed = frontier.allowed
    divided = np.repeat(frontier.rows.column("ep") > 1, np.diff(frontier.points.first))
    draw = np.random.default_rng(seed).permutation(len(frontier))
    for number in draw[np.argsort(~divided[draw], kind="stable")][:POINTS].tolist():
        point = frontier.points.point(number)
        row = int(np.searchsorted(frontier.points.first, number, side="right")) - 1
        columns = frontier.points.columns(np.array([row]))
        columns = columns.chosen(columns.number == number)
        (entry,), known, which = frontier._spread(columns)
        costs = frontier.solver.costs(point)
        found = np.diff(costs.time[:, allowed], axis=2)
        least = np.diff(entry.time[allowed], axis=1)
        slack = 1e-9 * found.max()  # differences of sums
        assert (least <= found + slack).all(), point
        limits = frontier._bound_points(known, which, columns)
        if point.interleave == 1:  # else transfers come more often than `prepare` counts
            assert limits.total[0] <= frontier.solver.prepare(point).total * (1 + 1e-9), point
