"""One failed switch: never a gain, priced as the command prices it, and what goes with a leaf."""

from __future__ import annotations

import json
from functools import cache

import pytest

from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.solving import lose_one, losses
from nest_studio.cli import run as command

JOB = "llama2-7b-64-h100"
FEW = {
    "search.tp": [1, 4, 8],
    "search.pp": [1, 2],
    "search.cp": 1,
    "search.zero": [1, 3],
    "search.recompute": "none",
    "search.schedule": "1f1b",
    "search.micro_batch_sequences": [1, 2],
}
FABRICS = (
    "h100-spine-leaf-1024-4to1",
    "dgx-superpod-h100",
    "rail-only-1024",
    "a100-fat-tree-512",
    "mi300x-mesh-64",
    "gb200-nvl72-rails",
)


@cache
def solved(fabric, *missing):
    """Document, overrides, scenario and best plan of a small job on a fabric."""
    document, _ = scenario_document(JOB)
    overrides = FEW | {"fabric": fabric}
    if missing:
        overrides["fabric.missing"] = list(missing)
    scenario = Scenario(document, overrides).values
    return document, overrides, scenario, search(scenario.problem(), scenario.space).best


@cache
def lost(fabric, *missing):
    document, overrides, _, best = solved(fabric, *missing)
    return losses(Scenario(document, overrides), best)


@pytest.mark.parametrize("fabric", FABRICS)
def test_losing_a_switch_never_helps_and_planning_anew_never_hurts(fabric):
    found = lost(fabric)
    assert [loss.tier for loss in found] == list(solved(fabric)[2].fabric.tier_names[:2])
    for loss in found:
        if loss.replanned is not None:
            assert loss.replanned >= -1e-9
        if loss.same_plan is not None:
            assert loss.same_plan >= -1e-9
            assert loss.replanned <= loss.same_plan + 1e-12
        assert loss.missing or loss.note.startswith(f"Without {loss.tier} 0: ")


def test_the_kept_plan_costs_what_the_command_says(capsys, tmp_path):
    _, overrides, _, best = solved("h100-spine-leaf-1024-4to1")
    spine = lost("h100-spine-leaf-1024-4to1")[1]
    assert spine.missing == ("spine 0",)
    assert spine.same_plan > 0.01
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(best.plan.to_json()))
    sets = overrides | {"fabric.missing": ["spine 0"]}
    sets["baselines.names"] = []
    options = [
        part for key, value in sets.items() for part in ("--set", f"{key}={json.dumps(value)}")
    ]
    assert command(["price", JOB, "--plan", str(plan), *options, "--json"]) == 0
    there = json.loads(capsys.readouterr().out)
    expected = 1 - there["samples_per_s"] / best.samples_per_s
    assert spine.same_plan == pytest.approx(expected, rel=1e-9)
    again = 1 - best.iteration_s / there["best_iteration_time_s"]
    assert spine.replanned == pytest.approx(again, rel=1e-9)


def test_a_leaf_that_alone_joins_nodes_takes_them_along():
    """Four nodes of eight devices hang on a leaf of 32 ports down."""
    leaf = lost("h100-spine-leaf-1024-4to1")[0]
    assert leaf.missing == ("leaf 0", "node 0", "node 1", "node 2", "node 3")
    assert leaf.devices == 1024 - 32
    assert leaf.note.startswith("4 nodes lose their only leaf")


@pytest.mark.parametrize("fabric", ["dgx-superpod-h100", "hpn-dual-plane"])
def test_a_leaf_of_a_rail_or_a_plane_takes_no_device(fabric):
    _, _, scenario, _ = solved(fabric)
    leaf = lost(fabric)[0]
    assert leaf.missing == ("leaf 0",)
    assert leaf.devices == scenario.fabric.devices
    assert leaf.same_plan is not None
    assert leaf.note == ""


def test_a_plan_that_needs_all_devices_cannot_stay_without_some():
    _, _, _, best = solved("h100-spine-leaf-1024-4to1")
    leaf = lost("h100-spine-leaf-1024-4to1")[0]
    assert best.plan.point.devices_used == 1024
    assert leaf.same_plan is None
    assert "the plan needs 1,024 devices, 992 are left" in leaf.note
    assert leaf.replanned is not None
    used = int(
        leaf.note.partition("the new plan uses ")[2].partition(" of 992")[0].replace(",", "")
    )
    assert used < 992


def test_what_the_batch_loses_is_not_laid_to_the_switch(capsys):
    """The command plans the same leaf lost with a batch cut as the devices are."""
    name = "h100-spine-leaf-1024-4to1"
    _, overrides, scenario, best = solved(name)
    leaf, spine = lost(name)
    point = best.plan.point
    replicas = leaf.devices // (point.devices_used // point.dp)
    cut = scenario.batch * replicas // point.dp
    sets = overrides | {
        "fabric.missing": list(leaf.missing),
        "workload.global_batch_sequences": cut,
    }
    options = [
        part for key, value in sets.items() for part in ("--set", f"{key}={json.dumps(value)}")
    ]
    assert command(["plan", JOB, *options, "--json"]) == 0
    freed = json.loads(capsys.readouterr().out)["samples_per_s"]
    alone = 1 - freed / best.samples_per_s
    assert leaf.replanned > alone > 0, "a premise: the batch does not divide"
    assert leaf.by_switch == pytest.approx(alone, rel=1e-9)
    assert leaf.by_switch + leaf.by_batch == pytest.approx(leaf.replanned)
    assert spine.by_batch == 0.0, "no device is lost"


@pytest.mark.parametrize("fabric", FABRICS)
def test_parts_of_a_loss_add_up(fabric):
    for loss in lost(fabric):
        if loss.replanned is None:
            assert loss.by_switch is None
        else:
            assert 0 <= loss.by_batch <= loss.replanned + 1e-12
            assert loss.by_switch + loss.by_batch == pytest.approx(loss.replanned)


def test_a_rail_that_is_lost_is_reached_over_the_others():
    """Its devices hand what they send to their neighbours, so the plan may stay, and is slower."""
    leaf = lost("rail-only-1024")[0]
    assert leaf.devices == 1024
    assert leaf.note == ""
    assert 0 < leaf.replanned <= leaf.same_plan < 1


def test_the_only_spine_cannot_be_lost():
    """Two leaves under one spine: without it nothing joins them."""
    leaf, spine = lost("h100-spine-leaf-64")
    assert leaf.missing
    assert spine.missing == ()
    assert spine.same_plan is spine.replanned is None
    assert spine.note.startswith("Without spine 0: missing must leave a path between the nodes")


def test_what_is_missing_already_is_not_lost_again():
    found = lost(
        "h100-spine-leaf-1024-4to1", "spine 0", "leaf 0", "node 0", "node 1", "node 2", "node 3"
    )
    leaf, spine = found
    assert spine.missing == ("spine 1",)
    assert leaf.missing == ("leaf 1", "node 4", "node 5", "node 6", "node 7")
    assert leaf.devices == 1024 - 64


@pytest.mark.parametrize("fabric", ["torus-16x16", "dragonfly-1056", "v100-pods-64", "drawn-8"])
def test_other_kinds_do_not_say_which_switches_they_have(fabric):
    document, overrides, _, best = solved(fabric)
    assert losses(Scenario(document, overrides), best) == ()
    with pytest.raises(InputError, match="fabric must be a Clos"):
        lose_one(Scenario(document, overrides), best, "spine")
