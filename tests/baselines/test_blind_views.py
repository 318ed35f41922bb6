"""Networks as blind methods see them: as many devices, no levels but the ones they know."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from small_problems import small_problem

from nest_core.costs import Plan, Point, price
from nest_core.documents.presets import preset_names
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.planner import ORDERS
from nest_core.planner.baselines.baseline import flat, mesh, rank_mappings, row_length
from nest_core.scenario import load_fabric, load_scenario

SEEDS = range(14)


def plan_of(problem, order, device_order="natural") -> Plan:
    """Two stages of two replicas of two ranks, or as much of that as there is room for."""
    devices = problem.network.devices
    tp, dp, pp = (2, 2, 2) if devices >= 8 else (1, 2, 2)
    point = Point(tp, False, dp, pp, 1, 1, order, device_order)
    half = problem.layers // 2
    return Plan(point, (0, half, problem.layers), ("none", "full"))


@pytest.mark.parametrize("seed", SEEDS)
def test_on_the_flat_network_it_does_not_matter_where_ranks_sit(seed):
    """Any two placements take equally long; on the fabric some do not."""
    problem = flat(small_problem(seed).problem)
    assert len(problem.network.levels) == 1
    orders = [("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"), ("pp", "dp", "cp", "tp")]
    times = {price(problem, plan_of(problem, order)).iteration_s for order in orders}
    assert max(times) == pytest.approx(min(times), rel=1e-12)


def test_the_flat_bandwidth_is_the_geometric_mean_of_the_levels():
    """Doubling any one of l levels multiplies it by the l-th root of two."""
    problem = small_problem(2).problem
    levels = problem.network.levels
    before = flat(problem).network.levels[0].bandwidth_Bps
    for index in range(len(levels)):
        wider = problem.network.faster(index, 2.0)
        after = flat(_with(problem, wider)).network.levels[0].bandwidth_Bps
        assert after / before == pytest.approx(2 ** (1 / len(levels)))


def _with(problem, network):
    return replace(problem, network=network)


@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_every_fabric_has_both_views(name):
    """As many devices; the mesh has whole rows, equal figures within and between them."""
    fabric = load_fabric(name)
    scenario = load_scenario("llama2-7b-64-h100")
    network = collapse(fabric)
    problem = _with(scenario.problem(), network)
    assert flat(problem).network.devices == network.devices
    view, row = mesh(problem).network, row_length(network)
    assert view.devices == network.devices
    assert network.devices % row == 0
    assert len(view.levels) == (1 if row == network.devices else 2)
    assert view.levels[0].bandwidth_Bps == pytest.approx(network.levels[0].bandwidth_Bps)
    first = np.arange(network.devices)
    inside = first // row == 0
    met = view.level(np.zeros_like(first), first)
    assert (met[inside][1:] == 0).all()
    assert (met[~inside] == 1).all()


def test_a_mesh_does_not_see_beyond_the_level_outside_the_node():
    """Oversubscribing the spine changes the fabric's times and not the mesh's."""
    base = load_scenario("llama3-70b-1024-h100").problem()
    tight = load_scenario("llama3-70b-1024-h100-4to1").problem()
    assert base.network.levels[-1].bandwidth_Bps > tight.network.levels[-1].bandwidth_Bps
    shown = [
        [(level.bandwidth_Bps, level.latency_s) for level in mesh(entry).network.levels]
        for entry in (base, tight)
    ]
    assert shown[0] == shown[1]
    assert not math.isclose(
        flat(base).network.levels[0].bandwidth_Bps, flat(tight).network.levels[0].bandwidth_Bps
    )


@pytest.mark.parametrize(("sizes", "row"), [((4, 2), 2), ((6, 4), 2), ((3, 2), 1), ((4, 4), 4)])
def test_rows_of_unequal_nodes_divide_all_of_them(sizes, row):
    """And no longer row does."""
    tiers = (
        Tier("node", 0, 100e9, 1e-6, group_sizes=sizes),
        Tier("all", len(sizes), 10e9, 2e-6),
    )
    network = collapse(Hierarchical("unequal", tiers))
    assert row_length(network) == row
    assert mesh(
        _with(load_scenario("llama2-7b-64-h100").problem(), network)
    ).network.devices == sum(sizes)


def test_seatings_are_all_placements_that_differ():
    """Axes of degree one do not make a difference; every device order does."""
    small = small_problem(2)
    space = replace(
        small.space,
        orders=(*ORDERS, ("tp", "dp", "cp", "pp")),
        device_orders=("natural", "rack"),
    )
    plan = plan_of(small.problem, ORDERS[0])
    found = rank_mappings(space, plan)
    assert [(p.point.order, p.point.device_order) for p in found] == [
        (order, host_mapping) for order in ORDERS for host_mapping in ("natural", "rack")
    ]
    assert {replace(p, point=plan.point) for p in found} == {plan}
