"""Load per link and what the fabric is painted with: cells say what loads and placement say."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from nest_core.costs import price
from nest_core.costs.communication import CLASSES
from nest_core.costs.loads import link_loads
from nest_core.costs.parse import read_plan
from nest_core.documents.units import humanise_bytes, percent
from nest_core.report.figures.levels import linkload_figure
from nest_core.scenario import load_scenario

PLANS = {
    "clos": ("llama2-7b-64-h100", "dp=4,tp=4,pp=4,zero=1"),
    "sequences": ("llama2-7b-64-h100", "dp=4,cp=4,tp=2,pp=2,zero=1"),
    "idle devices": ("llama2-7b-64-h100", "dp=2,tp=4,pp=4"),
    "one device": ("bert-large-64-v100", "dp=1"),
    "torus": ("llama2-7b-64-tpu-torus", "dp=8,tp=2,pp=4,zero=1"),
    "experts": ("mixtral-8x7b-256-tpuv4like", "dp=32,tp=2,pp=4,ep=8,zero=1"),
    "many": ("llama3-70b-1024-h100", "dp=32,tp=8,pp=4,sp=true,zero=1,recompute=full"),
}
plans = pytest.mark.parametrize("case", PLANS)


@lru_cache
def found(case):
    name, text = PLANS[case]
    problem = load_scenario(name).problem()
    report = price(problem, read_plan(text, problem.layers, problem.network.devices))
    return problem.network, report, link_loads(problem, report)


@plans
def test_cells_are_shares_of_the_iteration(case):
    _, _, loads = found(case)
    picture = linkload_figure(loads)
    if not loads.bytes:
        assert picture.title == "Nothing is sent"
        return
    (cells,) = picture.plot.data
    names = [name for name in reversed(CLASSES) if name in loads.bytes]
    z = np.asarray(cells.z)
    assert z.shape == (2 * len(loads.tiers), len(names) + 1)
    for row, tier in enumerate(reversed(loads.tiers)):
        for busy, at in ((tier.busiest.users, 2 * row), (tier.mean_busy, 2 * row + 1)):
            expected = [100 * busy.get(name, 0.0) for name in names]
            assert z[at] == pytest.approx([*expected, sum(expected)])
        assert tier.busiest.link in cells.customdata[2 * row][0]
        carried = humanise_bytes(tier.busiest.load_bytes)
        assert cells.customdata[2 * row][-1].endswith(carried)
    assert len(set(cells.y)) == len(cells.y)


@plans
def test_the_title_names_the_busiest_tier(case):
    network, _, loads = found(case)
    title = linkload_figure(loads).title
    assert len(title) < 80
    if loads.bytes:
        worst = max(loads.tiers, key=lambda tier: tier.busiest.utilisation)
        assert percent(worst.busiest.utilisation) in title
        if network.torus is None:
            assert title.lower().startswith(network.levels[worst.level].name)


def test_without_a_plan_there_is_nothing():
    picture = linkload_figure(None)
    assert picture.title == "No plan sends anything"
    assert not picture.plot.data
