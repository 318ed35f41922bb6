"""Cases under own costs: what the scenarios hold, and what their answers must satisfy."""

from __future__ import annotations

import math

import pytest

from nest_core.costs.price import price
from nest_core.paper.cases import FIGURES, Cell
from nest_core.paper.own import degrees, own_outcome, own_result, own_scenario


@pytest.mark.parametrize("cell", sorted({c for f in FIGURES.values() for c in f.cells}), ids=str)
def test_scenarios_are_the_paper_s(cell: Cell) -> None:
    scenario = own_scenario(cell.setup, cell.model, cell.devices, cell.micro_batch)
    space = scenario.space
    assert scenario.fabric.devices == cell.devices
    assert scenario.batch == 4096
    assert (space.micro_batch, space.cp, space.schedules) == ((cell.micro_batch,), (1,), ("1f1b",))
    assert space.idle_devices


@pytest.mark.parametrize("setup", ["tpuv4_fatTree", "h100_spineLeaf"])
def test_fabrics_have_the_paper_s_levels(setup: str) -> None:
    network = own_scenario(setup, "bert", 128, 1).problem().network
    assert network.devices == 128
    assert network.node_size == 8


def test_an_outcome_is_the_planner_s_and_none_is_ahead_of_it() -> None:
    cell = Cell("tpuv4_fatTree", "llama2", 64, 1)
    outcome = own_outcome(cell, ("manual", "phaze"))
    scenario = own_scenario(cell.setup, cell.model, cell.devices, cell.micro_batch)
    best = own_result(scenario).best
    assert best is not None
    assert outcome.ours == best.samples_per_s
    assert price(scenario.problem(), best.plan).samples_per_s == best.samples_per_s
    for rival in outcome.rivals.values():
        assert rival.as_published is None
        assert rival.as_published_reason
        assert rival.right_order is None or rival.right_order <= best.samples_per_s * (1 + 1e-9)


def test_degrees_in_the_paper_s_letters_multiply_to_the_devices() -> None:
    """Experts lie on data-parallel ranks in a framework; in the paper's letters they multiply."""
    best = own_result(own_scenario("tpuv4_fatTree", "mixtral", 64, 1)).best
    assert best is not None
    plan = degrees(best.plan)
    assert plan["e"] > 1
    assert plan["d"] * plan["e"] == best.plan.point.dp
    assert math.prod(plan[key] for key in "pdtec") == plan["devices_used"]
