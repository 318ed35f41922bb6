"""Bounds of blocks on tori: no group of any plan is faster than its block alone."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs import Point, links
from nest_core.planner.layer_bounds import BlockBounds
from nest_core.scenario import load_scenario

SHAPES = ("[4, 4, 4]", "[4, 6]", "[3, 5, 2]", "[8, 3]")
SIZES = np.array([0.0, 1e3, 1e6, 1e9])


@pytest.mark.parametrize("wrap", ["true", "false"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sampled(2)
def test_no_placed_group_beats_its_block(shape, wrap):
    """Every axis and kind, under random degrees, both orders and any number of idle devices."""
    wraps = [wrap == "true"] * shape.count(",") + [True]
    torus = f"{{shape = {shape}, wrap = {str(wraps).lower()}, link_bandwidth_GBps = 50.0, "
    fabric = f"{{kind = 'torus', torus = {torus}hop_latency_us = 1.0}}}}"
    scenario = load_scenario("llama2-7b-64-h100", [f"fabric={fabric}", "search={}"])
    problem, dice = scenario.problem(), np.random.default_rng(len(shape))
    bounds, exact = BlockBounds(problem, scenario.space), 0
    for _ in range(40):
        tp, cp, dp, pp = (int(dice.choice([1, 2, 3, 4])) for _ in range(4))
        if tp * cp * dp * pp > problem.network.devices:
            continue
        order = scenario.space.orders[int(dice.integers(len(scenario.space.orders)))]
        point = Point(tp, False, dp, pp, 1, 0, order, cp=cp)
        placed = links(problem, point)
        for axis, kind in (
            ("tp", "all_reduce"),
            ("tp", "reduce_scatter"),
            ("cp", "ring"),
            ("cp", "reduce_scatter"),
        ):
            if getattr(point, axis) > 1:
                least = bounds.seconds(axis, kind, (tp, cp), SIZES)
                taken = placed.time(axis, kind).along(1).seconds(SIZES).min(axis=0)
                assert (least <= taken * (1 + 1e-12)).all(), (point, axis, kind)
                exact += bool((least[1:] > 0.99 * taken[1:]).all())
    assert exact  # not by being loose


def test_nothing_is_known_of_other_device_orders():
    """Blocks that a curve may lay out otherwise have no bound."""
    scenario = load_scenario(
        "llama2-7b-64-h100", ["fabric='torus-16x16'", "search={device_order=['natural', 'snake']}"]
    )
    bounds = BlockBounds(scenario.problem(), scenario.space)
    assert not bounds.seconds("tp", "all_reduce", (4, 1), SIZES).any()
