"""Bounds by the links of a point's own layout, and those of families without divided experts."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.planner.frontier import Frontier
from nest_core.scenario import load_scenario

_LINKS = "bandwidth_GBps = 50.0, latency_us = 0.6"
_SMALL = {
    "dragonfly": "{kind = 'dragonfly', routing = 'ecmp', dragonfly = {routers_per_group = 4, "
    "nodes_per_router = 2, global_links_per_router = 2, groups = 3, devices_per_node = 1, "
    "local_bandwidth_GBps = 50.0, global_bandwidth_GBps = 25.0, hop_latency_us = 0.6}}",
    "dragonfly with nodes": "{kind = 'dragonfly', dragonfly = {routers_per_group = 4, "
    "nodes_per_router = 2, global_links_per_router = 2, groups = 3, devices_per_node = 4, "
    "local_bandwidth_GBps = 50.0, global_bandwidth_GBps = 25.0, hop_latency_us = 0.6}, "
    "intra_node = {bandwidth_GBps = 450.0, latency_us = 0.5}}",
    "hashed Clos": "{kind = 'rail_optimised', routing = 'ecmp', clos = {devices = 64, "
    "devices_per_node = 8, nics_per_node = 8, nic_bandwidth_GBps = 50.0, radix = 16, tiers = 2, "
    "oversubscription = [2.0], hop_latency_us = 0.6}, "
    "intra_node = {bandwidth_GBps = 450.0, latency_us = 0.5}}",
    "holes": "{kind = 'leaf_spine', missing = ['node 3'], clos = {devices = 64, "
    "devices_per_node = 8, nics_per_node = 8, nic_bandwidth_GBps = 50.0, radix = 32, tiers = 2, "
    "oversubscription = [2.0], hop_latency_us = 0.6}, "
    "intra_node = {bandwidth_GBps = 450.0, latency_us = 0.5}}",
    "torus": "{kind = 'torus', torus = {shape = [4, 6], wrap = [true, false], "
    "link_bandwidth_GBps = 50.0, hop_latency_us = 1.0}}",
    "odd hierarchy": "{kind = 'hierarchical', level = ["
    "{name = 'node', group_size = 3, uplink_per = 'device', bandwidth_GBps = 450.0, "
    "latency_us = 0.5}, {name = 'rack', group_size = 7, uplink_per = 'child', "
    "bandwidth_GBps = 50.0, latency_us = 2.0}]}",
}


@pytest.mark.parametrize("model", ["llama2-7b", "mixtral-8x7b"])
@pytest.mark.parametrize("kind", list(_SMALL))
@pytest.mark.sampled(4)
def test_no_plan_of_a_point_beats_its_placed_bound(kind, model):
    """Random points of every kind of fabric that has no bounds of its own, all axes open."""
    scenario = load_scenario(
        "llama2-7b-64-h100",
        [f"fabric={_SMALL[kind]}", f"workload.model='{model}'", "search={}"],
    )
    frontier = Frontier(scenario.problem(), scenario.space)
    draw, tight = np.random.default_rng(len(kind)), 0
    for number in draw.integers(len(frontier), size=25).tolist():
        bound = frontier.bound_of(number)
        prepared = frontier.prepared(number)
        seconds, _ = frontier.solver.solve(prepared, float("inf"))
        assert bound <= seconds * (1 + 1e-12), frontier.points.point(number)
        tight += bound > 0.5 * seconds
    assert tight  # not by being loose


@pytest.mark.parametrize("model", ["mixtral-8x7b", "gpt-oss-120b", "deepseek-v3"])
@pytest.mark.sampled(3)
def test_dividing_experts_spares_no_layer_anything(model):
    """Under every degree a layer takes at least what it takes with all experts on every rank."""
    scenario = load_scenario(
        "llama2-7b-64-h100",
        ["search={}", f"workload.model='{model}'"],
    )
    problem, dice = scenario.problem(), np.random.default_rng(1)
    frontier_rows = Frontier(problem, scenario.space).rows
    families = frontier_rows.families
    plain, which = families.without_experts()
    for family in dice.choice(len(families), size=min(40, len(families)), replace=False).tolist():
        own = problem.lower_bound(*families.one(family))
        whole = problem.lower_bound(*plain.one(int(which[family])))
        for field in ("compute_s", "replay_s", "launch_s"):
            least, found = getattr(whole, field), getattr(own, field)
            assert (least <= found * (1 + 1e-12)).all(), (families.one(family), field)
        for axis, calls in whole.calls.items():
            for field in ("number", "bytes", "replay_number", "replay_bytes"):
                found = getattr(own.calls[axis], field)
                assert (getattr(calls, field) <= found * (1 + 1e-12)).all(), (axis, field)
        _, _, _, ep, etp = families.one(family)
        _, _, _, _, held = plain.one(int(which[family]))
        least, found = whole.expert_parameters * held, own.expert_parameters * ep * etp
        assert (least <= found * (1 + 1e-12)).all()  # biases of experts are not divided
        assert (own.parameters == whole.parameters).all()
        assert (own.boundary_bytes == whole.boundary_bytes).all()
