"""NEST's level-wise cost matrices: cells from the formulae, and beside what plans are priced at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nest_core as nest
from nest_core.costs import Calls, LayerTable, Plan, Point, Problem, StateBytes, price
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.planner.baselines.cost_matrices import cost_matrices
from nest_core.planner.baselines.nest import on_levels
from nest_core.planner.levelwise import PAPER_ORDER


def _problem(layers: int = 2) -> Problem:
    """Two nodes of four; a layer sends 8 bytes twice to its tensor-parallel ranks."""
    nothing, rows = np.zeros(layers), np.zeros((3, layers))
    edge = np.full(layers + 1, 6.0)
    edge[[0, -1]] = 0.0
    twice = np.full(layers, 2.0)
    table = LayerTable(
        compute_s=np.ones(layers),
        forward_s=nothing,
        weight_s=nothing,
        replay_s=rows,
        launch_s=rows,
        calls={"tp": Calls("reduce_scatter", twice, 8.0 * twice, rows, rows)},
        parameters=np.full(layers, 5.0),
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=rows,
        working_bytes=rows,
        boundary_bytes=edge,
    )
    tiers = (Tier("node", 4, 10.0, 0.5), Tier("rack", 2, 4.0, 1.0, "child"))
    return Problem(
        network=collapse(Hierarchical("two nodes", tiers)),
        table=lambda tp, sp, micro_batch, cp, ep, etp: table,
        batch=6,
        tokens=1,
        memory_bytes=float("inf"),
        reserved_bytes=0.0,
        state=StateBytes(2.0, 4.0, 12.0),
        update_Bps=1e3,
        model_flops=1.0,
        peak_flops=1.0,
    )


def test_cells_are_messages_times_what_a_level_gives_a_device():
    """Width 2, two stages, two replicas, three micro-batches, counted by hand.

    A node gives each device 10 bytes/s after half a second; from a node 4 bytes/s leave, shared
    by its four devices, after a second.
    """
    plan = Plan(Point(2, True, 2, 2, 1, 0, PAPER_ORDER), (0, 1, 2), ("none", "none"))
    found = cost_matrices(_problem(), plan).to_json()
    assert found["tp"] == pytest.approx(
        {"node": 3 * 2 * (0.5 + 4 / 10), "rack": 3 * 2 * (1.0 + 4 * 4 / 4)}
    )
    # Activations and gradients pass whole, as sequences are divided; a stage has one neighbour.
    assert found["pp"] == pytest.approx({"node": 3 * (0.5 + 6 / 10), "rack": 3 * (1.0 + 4 * 6 / 4)})
    # Five gradients of four bytes, reduced and gathered between two.
    assert found["dp"] == pytest.approx(
        {"node": 2 * (0.5 + 10 / 10), "rack": 2 * (1.0 + 4 * 10 / 4)}
    )


def test_shards_over_a_part_of_the_replicas_meet_nearer():
    """Eight replicas of one device, shards among four of them: a node holds a group."""
    point = Point(1, False, 8, 1, 1, 1, PAPER_ORDER, zero_group=4)
    plan = Plan(point, (0, 2), ("none",))
    problem = replace(_problem(), batch=8)
    parts, whole = (
        cost_matrices(problem, one)
        for one in (plan, replace(plan, point=replace(point, zero_group=0)))
    )
    assert parts.ranks["dp"] == 4
    assert parts.own_json()["dp"] == ["node"]
    assert whole.own_json()["dp"] == ["rack"]
    spent = price(on_levels(problem), plan).stages[0].communication_s
    assert parts.to_json()["dp"]["node"] == pytest.approx(spent)


def test_the_plans_own_cells_are_where_its_groups_end():
    plan = Plan(Point(2, True, 2, 2, 1, 0, PAPER_ORDER), (0, 1, 2), ("none", "none"))
    own = cost_matrices(_problem(), plan).own_json()
    assert own == {"tp": ["node"], "pp": ["node"], "dp": ["rack"]}


def test_a_group_that_is_larger_than_a_level_has_no_cell_there():
    plan = Plan(Point(8, True, 1, 1, 1, 0, PAPER_ORDER), (0, 2), ("none",))
    found = cost_matrices(_problem(), plan)
    assert found.to_json()["tp"]["node"] is None
    assert found.own_json() == {"tp": ["rack"]}


def test_levels_of_a_scenario_carry_its_matrices():
    found = nest.levels("h100-spine-leaf-64", "llama2-7b-64-h100").to_json()
    assert found["cost_matrices"].keys() == {"dp"}
    assert found["cost_matrices"]["dp"].keys() == {level["name"] for level in found["levels"]}
    assert found["level_wise_program"]["plan"]["dp"] == 64
    assert "cost_matrices" not in nest.levels("h100-spine-leaf-64").to_json()


@pytest.mark.check
def test_levels_say_of_the_program_s_plan_what_plan_says():
    """Cost matrices stood without how their plan was found, what it was to take, and takes."""
    scenario = nest.load("llama2-7b-64-h100").with_(**{"baselines.names": ["nest"]})
    (told,) = nest.plan(scenario).to_json()["baselines"]
    found = nest.levels("h100-spine-leaf-64", scenario)
    program = found.to_json()["level_wise_program"]
    for name in ("origin", "promised_s", "iteration_time_s"):
        assert program[name] == told[name], name
    promised, takes = (f"{told[name]:.4g} s" for name in ("promised_s", "iteration_time_s"))
    assert f"{told['origin']}; promised {promised}, takes {takes} on the fabric" in str(found)


@pytest.mark.check
def test_the_fabric_that_is_named_is_the_one_that_is_planned_on():
    """Rails are no blocks: units and all devices are joined by the spine alone."""
    here = nest.levels("dgx-superpod-h100", "llama2-7b-64-h100")
    assert here.network.devices == nest.load_fabric("dgx-superpod-h100").devices
    names = [level.name for level in here.program.matrices.levels]
    assert names == ["node", "spine, 256 devices", "spine"]
