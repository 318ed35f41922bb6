"""Methods with the axes that they have in the paper."""

from __future__ import annotations

import pytest

from nest_core.api.answer import answer
from nest_core.planner.baselines import NAMES, evaluate_baselines
from nest_core.planner.baselines.baseline import paper_space
from nest_core.scenario import load_scenario

LACKS = {
    "manual": {"sp", "cp", "zero"},
    "phaze": {"sp", "cp", "zero"},
    "alpa_e": {"sp", "cp"},
    "mist": {"sp", "cp", "ep"},
    "mcmc": set(),
    "nest": set(),
}  # NEST's tables 1 and 2, read by hand


SMALL = "llama2-7b-64-h100"
# In their own spaces four of the six choose here what they lack in the paper.
EXPERTS = (
    "workload.model='mixtral-8x7b'",
    "workload.global_batch_sequences=64",
    "accelerator.memory_GiB=40",
    "search.tp=[1, 2, 4]",
    "search.pp=[1, 2, 4]",
    "search.micro_batch_sequences=[1, 2]",
)


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        (SMALL, EXPERTS),
        pytest.param(SMALL, (), marks=pytest.mark.check),
        pytest.param("mixtral-8x7b-256-tpuv4like", (), marks=pytest.mark.check),
    ],
    ids=["experts", "dense", "preset"],
)
@pytest.mark.check
def test_a_method_chooses_only_what_it_has_in_the_paper(name, sets):
    scenario = load_scenario(name, sets)
    found = evaluate_baselines(
        scenario.problem(), scenario.space, scenario.model, tuple(NAMES), as_in_paper=True
    )
    for entry in found:
        plan = entry.report.plan
        point = plan.point
        strategies = plan.strategies or (point,)
        chosen = {
            "sp": any(one.sp for one in strategies),
            "cp": max(one.cp for one in strategies) > 1,
            "ep": max(one.ep for one in strategies) > 1,
            "zero": max(one.zero for one in strategies) > 0,
        }
        assert {axis for axis, used in chosen.items() if used}.isdisjoint(LACKS[entry.name])
        assert point.schedule == "1f1b"
        assert set(plan.recompute) <= {"none", "full"}


def test_what_a_method_lacks_is_one_everywhere():
    space = load_scenario(SMALL, EXPERTS).space
    assert len(space.ep) > 1
    for name, lacks in LACKS.items():
        narrowed = paper_space(name, space)
        assert all(set(getattr(narrowed, axis)) <= {0, 1} for axis in lacks)
        assert (narrowed.ep == space.ep) == ("ep" not in lacks)


def test_what_a_scenario_pins_goes_before_the_paper():
    space = load_scenario(SMALL, ["search.zero=3", "search.sp=true"]).space
    for name in NAMES:
        narrowed = paper_space(name, space)
        assert (narrowed.zero, narrowed.sp) == ((3,), (True,))
    assert paper_space("phaze", space).recompute == ("none", "full")


def test_a_scenario_says_which_space_its_baselines_have():
    sets = [
        'baselines.names=["phaze"]',
        "workload.global_batch_sequences=256",
        "search.sp=[false, true]",
    ]
    speeds = {}
    for space in ("own", "paper"):
        found = answer(load_scenario("llama3-70b-1024-h100", [*sets, f'baselines.space="{space}"']))
        (rival,) = found.baselines
        speeds[space] = rival.report.samples_per_s
        assert found.result.best.samples_per_s >= rival.report.samples_per_s
    assert speeds["paper"] < 0.95 * speeds["own"]
