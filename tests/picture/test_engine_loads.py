"""Loads of links under an engine's tables are drawn at the leaves, or said."""

from __future__ import annotations

import re

import pytest

from nest_core.costs import price
from nest_core.costs.loads import link_loads
from nest_core.costs.parse import read_plan
from nest_core.report.picture import picture
from nest_core.scenario import load_scenario


@pytest.mark.parametrize(
    ("fabric", "drawn"), [("h100-spine-leaf-64", True), ("dragonfly-1056", False)]
)
def test_the_busiest_link_under_an_engine_is_said(fabric, drawn):
    """A failure: 0 %, as the picture looked for links of a tree or a dragonfly of its own."""
    asked = (f'fabric="{fabric}"', 'fabric.routing="minhop"')
    devices = load_scenario("llama2-7b-64-h100", asked).fabric.devices
    batch = f"workload.global_batch_sequences={devices // 8 * 4}"
    scenario = load_scenario("llama2-7b-64-h100", (*asked, batch))
    problem = scenario.problem()
    plan = read_plan(f"dp={devices // 8},tp=8,zero=1,micro_batch=1", problem.layers, devices)
    loads = link_loads(problem, price(problem, plan))
    shown = picture(scenario.fabric, plan, loads=loads)
    share = float(re.search(r"busy ([\d.]+)", shown.title)[1]) / 100
    outer = max(tier.busiest.utilisation for tier in loads.tiers if tier.level)
    assert 0 < share == pytest.approx(outer, abs=6e-4)
    links = (mark for mark in shown.marks if getattr(mark, "ends", ()))
    assert any("load-5" in link.look for link in links) == drawn
