"""Uplinks switched off: what is left is priced as a fabric that was built with as many."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from nest_core.costs import price
from nest_core.costs.parse import parse_plan
from nest_core.documents.errors import InputError
from nest_core.scenario import load_fabric, load_scenario
from nest_core.studies.next_runs import check_leaves, uplinks_off
from nest_core.studies.uncertainty import interval_of
from nest_studio.cli import run

JOB = (
    'fabric="h100-spine-leaf-1024-4to1"', "fabric.clos.devices=128",
    "workload.global_batch_sequences=128", 'search.recompute=["full"]',
)  # fmt: skip


@pytest.fixture(scope="module", params=["adaptive", "ecmp"])
def crossing(request):
    """A scenario and a plan that sends across its leaves, which have eight uplinks each."""
    asked = load_scenario("llama2-7b-64-h100", (*JOB, f'fabric.routing="{request.param}"'))
    problem = asked.problem()
    plan = parse_plan({"dp": 128, "zero": 3, "micro_batch": 1, "recompute": "full"}, problem.layers)
    report = price(problem, plan)
    return asked, report, uplinks_off(asked, report)


@pytest.mark.sampled(2)
def test_a_step_is_what_a_fabric_with_as_many_uplinks_takes(crossing):
    """By sizing, which knows nothing of switching off: a ratio that leaves as many."""
    asked, report, found = crossing
    assert [step.remaining for step in found.steps] == list(range(8, 0, -1))
    assert found.crosses
    for step in found.steps:
        if step.remaining % 4 and asked.fabric.routing == "ecmp":
            continue  # sizing takes other spines, over which flows hash otherwise
        built = replace(
            asked, fabric=replace(asked.fabric, oversubscription=(32 / step.remaining,))
        )
        again = price(built.problem(), report.plan)
        assert step.interval.centre_s == pytest.approx(again.iteration_s, rel=1e-9)
        assert step.oversubscription == pytest.approx(32 / step.remaining)
        expected = interval_of(built, built.problem(), again)
        assert step.interval.spread == pytest.approx(expected.spread, rel=1e-6)


def test_a_ratio_is_surer_than_a_time(crossing):
    steps = crossing[2].steps
    assert [step.ratio for step in steps] == sorted(step.ratio for step in steps)
    assert steps[0].ratio == 1.0
    for step in steps:
        low, high = step.ratio_interval
        assert low < step.ratio < high
        assert high / low < step.interval.high_s / step.interval.low_s


def test_as_many_links_stay_as_are_left(crossing):
    found = crossing[2]
    for step in found.steps:
        kept = re.fullmatch(
            r"(\d+) links? to (?:every|(\d+) of \d+) spines?(?:, (\d+|none) to the others)?",
            found.kept(step.remaining),
        )
        some = int(kept[2] or found.spines)
        others = 0 if kept[3] in (None, "none") else int(kept[3])
        assert int(kept[1]) * some + others * (found.spines - some) == step.remaining


@pytest.mark.parametrize(
    ("name", "said"),
    [("torus-16x16", "a torus"), ("nest-fat-tree-64", "hierarchy"), ("drawn-8", "graph")],
)
def test_fabrics_without_uplinks_are_refused(name, said):
    with pytest.raises(InputError, match=f"leaf switches with uplinks.*{said}"):
        check_leaves(load_fabric(name))


def test_the_command_writes_the_array_and_its_predictions(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sets = [word for line in (*JOB, "search.tp=[8]", "search.pp=[2]") for word in ("--set", line)]
    asked = ["next", "llama2-7b-64-h100", "--experiment", "uplinks", *sets]
    assert run([*asked, "--to", "slurm", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    script = (tmp_path / fields["files"]["uplinks.sbatch"]).read_text()
    assert "#SBATCH --array=1-8%1\n#SBATCH --hold\n" in script
    for step in fields["steps"]:
        assert step.keys() >= {"uplinks_left", "predicted_s", "interval", "ratio", "keep"}
        row = re.search(rf"^# +{step['uplinks_left']}  .*$", script, re.M)[0]
        assert f"{step['predicted_s']:.4g}" in row
        assert step["keep"] in row
    assert run(["next", "llama2-7b-64-tpu-torus", "--experiment", "uplinks"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run(["next", "llama2-7b-64-h100", "--experiment", "spines"]) == 2
    assert "--experiment" in capsys.readouterr().err
    assert run([*asked, "--runs", "3"]) == 2
    assert capsys.readouterr().err.startswith("--runs has no part in an experiment")
