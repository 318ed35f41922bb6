"""A plan on a picture of its fabric: stages, brackets and loads are those that it is priced by."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from clos_specs import clos
from properties import everything_wrong, lines_wrong

from nest_core.costs import price
from nest_core.costs.loads import link_loads
from nest_core.costs.parse import read_plan
from nest_core.costs.placement import rank_mapping_of
from nest_core.report.picture import Box, Line, Words, picture
from nest_core.report.picture.plan import load_look, plan_on_devices, stage_look, tier_busy
from nest_core.scenario import load_scenario

PLANS = {
    "small": ("llama2-7b-64-h100", "dp=4,tp=4,pp=4,zero=1"),
    "idle devices": ("llama2-7b-64-h100", "dp=2,tp=4,pp=4"),
    "large": ("llama3-70b-1024-h100", "dp=32,tp=8,pp=4,sp=true,zero=1,recompute=full"),
}


@lru_cache
def found(name):
    scenario, text = PLANS[name]
    asked = load_scenario(scenario)
    problem = asked.problem()
    report = price(problem, read_plan(text, problem.layers, problem.network.devices))
    return asked.fabric, problem.network, report.plan, link_loads(problem, report)


@pytest.mark.parametrize("width", [448, 900])
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_breaks_no_rule(name, width):
    fabric, _, plan, loads = found(name)
    assert not everything_wrong(picture(fabric, plan, width=width, loads=loads), fabric)


@pytest.mark.parametrize("name", PLANS)
def test_every_device_has_the_colour_of_its_stage(name):
    fabric, network, plan, _ = found(name)
    stage = rank_mapping_of(network, plan).pp
    looks = {
        int(mark.key.split()[1]): mark.look
        for mark in picture(fabric, plan).marks
        if isinstance(mark, Box) and mark.key.startswith("device ")
    }
    assert len(looks) == network.devices
    expected = {
        device: "idle" if s < 0 else stage_look(int(s), plan.point.pp)
        for device, s in enumerate(stage.tolist())
    }
    assert looks == expected


def test_brackets_name_the_racks_of_every_stage():
    fabric, _, plan, _ = found("large")
    texts = [mark.text for mark in picture(fabric, plan).marks if isinstance(mark, Words)]
    assert [text for text in texts if text.startswith("stage ") and "rack" in text] == [
        "stage 1 racks 0-7",
        "stage 2 racks 8-15",
        "stage 3 racks 16-23",
        "stage 4 racks 24-31",
    ]


def test_transfers_lead_from_the_leaf_of_a_stage_to_that_of_the_next():
    fabric, network, plan, _ = found("large")
    drawn = picture(fabric, plan)
    lit = [m for m in drawn.marks if isinstance(m, Line) and m.look == "lit" and m.ends]
    group = plan_on_devices(network, plan).groups
    leaf = fabric.group_of(1)
    leaves = [int(leaf[members[0]]) for members in group]
    ends = [f"leaf {number}" for here in pairwise(leaves) for number in here]
    assert [mark.ends[0] for mark in lit] == ends
    assert not lines_wrong(drawn)


def test_links_are_coloured_by_the_loads_that_the_plan_is_priced_by():
    fabric, network, plan, loads = found("large")
    drawn = picture(fabric, plan, loads=loads)
    leaf = fabric.group_of(1)
    down, up = (
        np.array([tier_busy(loads, level)[leaf == n].max() for n in range(32)]) for level in (1, 2)
    )
    tiers = {tier.level: tier for tier in loads.tiers}
    assert down.max() == pytest.approx(tiers[1].busiest.utilisation)
    assert up.max() == pytest.approx(tiers[2].busiest.utilisation)
    busiest = max(down.max(), up.max())
    for mark in drawn.marks:
        if isinstance(mark, Line) and mark.stands and mark.stands[0][0] == "links spine":
            number = int(mark.ends[0].split()[1])
            assert mark.look == f"link {load_look(float(up[number]), float(busiest))}"
    assert f"leaf {100 * down.max():.3g}\u00a0%" in drawn.title
    assert f"{100 * up.max():.3g}" in drawn.title
    assert network is loads.network


def test_above_a_thousand_devices_racks_have_the_colour():
    fabric = clos(16384, 64, 3)
    _, _, plan, _ = found("large")
    racks = [mark for mark in picture(fabric, plan).marks if mark.key.startswith("rack ")]
    looks = [mark.look for mark in racks if isinstance(mark, Box)]
    assert looks[:4] == [stage_look(stage, 4) for stage in range(4)]
    assert set(looks[4:]) == {"idle"}


def test_a_plan_says_how_far_its_groups_reach():
    fabric, _, plan, _ = found("large")
    drawn = picture(fabric, plan)
    assert drawn.title.startswith("Tensor traffic stays in the node; ")
    assert drawn.title.endswith("crosses the spine")
    assert "replica 1 of 32" in drawn.subtitle


@pytest.mark.parametrize("routing", ["shortest_path", "ecmp"])
def test_where_flows_are_bound_to_links_each_pair_has_its_own_colour(routing):
    scenario = load_scenario("llama2-7b-64-h100", [f'fabric.routing="{routing}"'])
    problem, fabric = scenario.problem(), scenario.fabric
    plan = read_plan("dp=8,tp=4,pp=2,zero=1", problem.layers, fabric.devices)
    loads = link_loads(problem, price(problem, plan))
    link_map = problem.network.link_map
    tier = link_map.tiers[2]
    busy = loads.busy[link_map.tier == 2].reshape(len(tier.capacity_Bps), -1, 2).max(axis=2)
    drawn = picture(fabric, plan, loads=loads)
    lines = [m for m in drawn.marks if isinstance(m, Line) and ("links spine", 1) in m.stands]
    leaf, spines = fabric.group_of(1), busy.shape[1] // tier.parallel
    overall = max(tier_busy(loads, level).max() for level in (1, 2))
    before: Counter[tuple[str, ...]] = Counter()
    for mark in lines:
        group, spine = (int(end.split()[1]) for end in mark.ends)
        child = tier.child[np.flatnonzero(leaf == group)[0]]
        share = busy[child].reshape(spines, -1)[spine, before[mark.ends]]
        before[mark.ends] += 1
        assert mark.look == f"link {load_look(float(share), float(overall))}"
    assert len({mark.look for mark in lines}) > 1 or routing == "shortest_path"
