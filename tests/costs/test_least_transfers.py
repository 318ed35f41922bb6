"""What transfers take at least, against what they take where a layout really puts them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from plain_chain import chain, problem

from nest_core.costs import Point
from nest_core.costs.links import links
from nest_core.network import collapse
from nest_core.planner.least import hop_seconds
from nest_core.topology import Hierarchical, Tier

BYTES = 1000.0

# A device sends 4 bytes/s, a node of 8 as much as one and a half, a rack of 32 half as much.
TIERS = (
    Tier("node", 8, 4.0, 1e-3),
    Tier("rack", 4, 6.0, 2e-3, "child"),
    Tier("all", 16, 2.0, 3e-3, "child"),
)
FABRIC = collapse(Hierarchical("racks", TIERS))

LAYOUTS = [
    (tp, dp, pp, order)
    for order in (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"))
    for tp in (1, 2, 3, 4, 8, 16)
    for dp in (1, 2, 3, 4, 8)
    for pp in (2, 3, 5, 8, 11, 13, 16)
    if tp * dp * pp <= 512
]


def told(tp: int, dp: int, pp: int, order: tuple[str, ...]) -> tuple[float, float, float, float]:
    """The least transfer and the sum of all forward ones, as bounded and as placed."""
    case = replace(problem(chain(pp)), network=FABRIC)
    point = Point(tp=tp, sp=True, dp=dp, pp=pp, micro_batch=1, zero=0, order=order)
    placed = links(case, point).forward.seconds(BYTES)[1:]
    outer = order.index("dp") > order.index("pp")
    apart = np.array([tp if outer else tp * dp])
    hops, forward = hop_seconds(
        case, np.array([BYTES]), apart, tp * dp // apart, np.array([pp]), np.array([True])
    )
    return float(hops.near[0]), float(forward[0]), float(placed.min()), float(placed.sum())


@pytest.mark.parametrize(("tp", "dp", "pp", "order"), LAYOUTS)
def test_no_transfer_takes_less_than_its_bound(tp, dp, pp, order):
    near, forward, least, total = told(tp, dp, pp, order)
    assert near <= least * (1 + 1e-12)
    assert forward <= total * (1 + 1e-12)


def test_where_stages_fill_nodes_evenly_the_bound_is_what_they_take():
    """But for latency: the bound knows the fabric's least."""
    tight = [
        (tp, dp, pp, order)
        for tp, dp, pp, order in LAYOUTS
        if 8 % tp == 0 and order.index("dp") > order.index("pp") and tp * pp % 32 == 0
    ]
    assert len(tight) > 5
    for layout in tight:
        _, forward, _, total = told(*layout)
        assert forward > 0.999 * total, layout
