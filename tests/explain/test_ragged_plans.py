"""Everything that reads plans reads those whose stages differ in width; exporters refuse them."""

from __future__ import annotations

import pytest

from nest_core.costs import Plan, Point, StageStrategy, price
from nest_core.costs.loads import link_loads
from nest_core.costs.placement import rank_mapping_of
from nest_core.interop.exporters import TARGETS, ExportRefused, export_plan
from nest_core.report.explain.summary import plan_in_words
from nest_core.report.picture import picture, to_svg
from nest_core.scenario import load_scenario

WIDTHS = (8, 8, 8, 8, 8, 8, 8, 2, 6)


@pytest.fixture(scope="module")
def case():
    """GPT-3 175B on 64 H100, as the level-wise program cuts it, about."""
    scenario = load_scenario("gpt3-175b-64-h100")
    problem = scenario.problem()
    strategies = tuple(StageStrategy(width, True, 1, 1, 0) for width in WIDTHS)
    point = strategies[0].within(Point(8, True, 1, 9, 2, 0, ("tp", "cp", "pp", "dp")))
    plan = Plan(point, (0, 11, 23, 35, 47, 59, 71, 85, 89, 98), ("full",) * 9, strategies)
    return scenario, problem, price(problem, plan)


@pytest.mark.parametrize("target", TARGETS)
def test_exporters_refuse_unequal_widths_in_one_sentence(case, target):
    scenario, _, report = case
    with pytest.raises(
        ExportRefused, match="must give every stage as many devices, as no framework"
    ):
        export_plan(target, scenario, report)


def test_words_placement_and_figures_know_each_stage_by_its_own_devices(case):
    scenario, problem, report = case
    words = plan_in_words(report, scenario.batch, 64)
    assert "devices per stage 8, 8, 8, 8, 8, 8, 8, 2, 6" in words
    assert "all 64 devices used" in words
    seats = rank_mapping_of(problem.network, report.plan)
    assert [int((seats.pp == stage).sum()) for stage in range(9)] == list(WIDTHS)
    loads = link_loads(problem, report)
    assert 0 < loads.busy.max() <= 1
    assert "stage 9" in to_svg(picture(scenario.fabric, report.plan, loads=loads))
