"""Fabrics under a budget: the set that no other beats, against all of them planned one by one."""

from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import replace

import pytest
from inline import Inline
from studies import CLUSTER, written

from nest_core.documents.errors import InputError
from nest_core.fabric.same_size import KINDS
from nest_core.planner import search
from nest_core.studies.design_search import search_designs
from nest_core.studies.design_space import design_space, non_blocking
from nest_core.studies.engine import WorkerPool
from nest_core.studies.rows import StudyRow
from nest_core.studies.study import load_study
from nest_studio.session.store import Database, StoredAnswers

LONG = CLUSTER.replace("1024", "2048").replace("gpt3-1.3b", "llama2-7b")
MIX = """[[mix]]
scenario = "cluster.toml"
weight = 3

[[mix]]
scenario = "long.toml"
"""


def study_of(folder, families, ratios=(1.0,), more="", base='scenario = "cluster.toml"'):
    text = f"""
schema = 1
name = "Small space"
{base}

[design]
families = {list(families)}
ratios = {list(ratios)}
tokens_T = 1.0
{more}
"""
    return load_study(str(written(folder, text, long=LONG)), folder)


def answer(study, folder):
    answers = StoredAnswers(Database(f"sqlite:///{folder}/store.sqlite"))
    return search_designs(study, answers, WorkerPool.of(Inline()))


def days_of(study, changes):
    """Of a trillion tokens in the parts of the mix."""
    seconds = 0.0
    for member in study.members:
        scenario = replace(member.scenario, overrides=changes).values
        best = search(scenario.problem(), scenario.space).best
        seconds += 1e12 * member.weight / (scenario.sequence * best.samples_per_s)
    return seconds / 86_400


def drawn(seed):
    """A space of a handful of designs."""
    dice = random.Random(seed)
    families = dice.sample(KINDS, dice.randint(1, 4))
    ratios = sorted(dice.sample([1.0, 1.5, 2.0, 4.0, 7.0], dice.randint(1, 3)))
    nics = dice.choice([[8], [4, 8], [2, 8]])
    more = f"nics_per_node = {nics}\nradix = {dice.choice([[32], [64], [32, 64]])}"
    if dice.random() < 0.5:
        more += '\ntiers = [2, 3]\noversubscribe = ["remove_uplinks", "split_radix"]'
    if dice.random() < 0.3:
        more += '\ngoal = "tokens_per_network_usd"'
    if dice.random() < 0.3:
        more += '\noptics = [{}, { leaf = "MMF" }]'
    if dice.random() < 0.3:
        more += '\n[[design.nodes]]\n[[design.nodes]]\naccelerator = "h200-141gb"\n'
    return families, ratios, more, MIX if seed % 2 else 'scenario = "cluster.toml"'


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.check) for n in range(8, 24))]
)
@pytest.mark.sampled(4)
def test_the_set_is_that_of_brute_force(tmp_path, seed):
    study = study_of(tmp_path, *drawn(seed))
    found = answer(study, tmp_path)
    designs, refused = design_space(study)
    every = {one.name: (one.price_usd, one.power_W, days_of(study, one.changes)) for one in designs}
    unbeaten = {
        name
        for name, mine in every.items()
        if not any(
            all(a <= b for a, b in zip(other, mine, strict=True)) and other != mine
            for other in every.values()
        )
    }
    assert {one.design.name for one in found.pareto} == unbeaten
    for one in found.pareto:
        assert one.days == pytest.approx(every[one.design.name][2], rel=1e-12)
    proof = found.certificate
    assert proof.proven
    assert proof.planned + proof.bounded + proof.infeasible == proof.designs
    assert proof.designs == len(designs) + len(refused)


def test_a_ratio_decides_how_many_tiers_are_needed(tmp_path):
    """96 leaves of 32 NICs need a third tier at radix 64; 64 of 48, which have 16 uplinks, two."""
    more = 'devices = [3072]\noversubscribe = ["remove_uplinks", "split_radix"]'
    designs, refused = design_space(
        study_of(tmp_path, ("spine-leaf", "rail-only"), (1.0, 3.0), more)
    )
    found = {one.name.partition(", ")[0]: one.fabric.switch_counts() for one in designs}
    assert found == {
        "spine-leaf 3:1 by a split radix": {"leaf": 64, "spine": 16},
        "rail-only 1:1": {"leaf": 96, "spine": 64},
        "rail-only 3:1": {"leaf": 96, "spine": 88},
        "rail-only 3:1 by a split radix": {"leaf": 64, "spine": 16},
    }
    assert [one["name"].partition(", ")[0] for one in refused] == [
        "spine-leaf 1:1",
        "spine-leaf 1:1 by a split radix",
        "spine-leaf 3:1",
    ]
    assert "96 leaves exceed radix 64" in refused[0]["reason"]


def test_tiers_are_those_asked_for_of_the_families_that_may_have_them(tmp_path):
    families = ("spine-leaf", "rail-optimised", "fat-tree", "torus")
    designs, _ = design_space(study_of(tmp_path, families, more="tiers = [2, 3]"))
    assert [one.name.partition(", ")[0] for one in designs] == [
        "spine-leaf 1:1",
        "rail-optimised 1:1 in 2 tiers",
        "rail-optimised 1:1 in 3 tiers",
        "fat-tree 1:1",
        "torus",
    ]
    _, refused = design_space(study_of(tmp_path, families, more="tiers = [3]"))
    assert "tiers must be 2 for a spine-leaf, but is 3: leave it out." in refused[0]["reason"]


def test_what_no_design_can_be_is_said_of_the_last(tmp_path):
    bound = "[constraints]\nworst_loss = { max = 1e-6 }"
    with pytest.raises(InputError) as error:
        answer(study_of(tmp_path, ("rail-only",), more=bound), tmp_path)
    assert "but is 'none of 1': rail-only 1:1, 8 NICs" in str(error.value)
    assert str(error.value).endswith("over 1e-06.")


class Late(Inline):
    """Workers whose search ends without a plan on every torus."""

    def __init__(self, status):
        super().__init__()
        self.status = status

    def submit(self, function, base, asked, *more):
        rows = super().submit(function, base, asked, *more).result()
        future = Future()
        future.set_result(
            [
                StudyRow(self.status, "made up") if turned["fabric"]["kind"] == "torus" else row
                for turned, row in zip(asked, rows, strict=True)
            ]
        )
        return future


@pytest.mark.parametrize("status", ["time limit", "failed"])
def test_a_design_whose_search_came_to_no_end_is_of_unknown_fate(tmp_path, status):
    study = study_of(tmp_path, ("rail-only", "torus"))
    answers = StoredAnswers(Database(f"sqlite:///{tmp_path}/store.sqlite"))
    found = search_designs(study, answers, WorkerPool.of(Late(status)))
    proof = found.certificate
    assert (proof.planned, proof.infeasible, proof.left) == (1, 0, 1)
    assert not proof.proven


def test_bounds_leave_designs_out(tmp_path):
    families = ("spine-leaf", "fat-tree", "rail-optimised")
    study = study_of(tmp_path, families, (1.0, 2.0, 4.0), "nics_per_node = [1, 2, 8]")
    assert answer(study, tmp_path).certificate.bounded > 0


@pytest.mark.check
def test_no_fabric_is_faster_than_a_non_blocking_one_of_its_nics(tmp_path):
    more = "nics_per_node = [4, 8]\nnic_GBps = [25.0, 50.0]"
    study = study_of(tmp_path, KINDS, (1.0, 2.0), more)
    designs, _ = design_space(study)
    bought = {one.bought for one in designs}
    least = {one: days_of(study, one.changes(non_blocking(one.size))) for one in bought}
    assert len(designs) > 30
    for one in designs:
        assert least[one.bought] <= days_of(study, one.changes)


def test_limits_leave_out_what_is_dearer(tmp_path):
    designs, _ = design_space(study_of(tmp_path, KINDS))
    prices = sorted(one.price_usd for one in designs)
    middle = prices[len(prices) // 2]
    kept, refused = design_space(study_of(tmp_path, KINDS, more=f"max_usd = {middle}"))
    assert {one.name for one in kept} == {one.name for one in designs if one.price_usd <= middle}
    assert sum("over the limit" in one["reason"] for one in refused) == len(designs) - len(kept)


@pytest.mark.parametrize(
    ("families", "more", "said"),
    [
        (["ring"], "", "design.families must be topologies of a size, but is 'ring': pick"),
        (["torus"], "max_usd = 1000.0", "raise it: nearest is torus, 8 NICs"),
        (["torus"], "max_kW = 0.5", "design.max_kW must leave one design"),
        (["torus"], "colour = 1", "design.colour is not a known key"),
        (["torus"], "phases = [128, 64]", "design must be a design whose phases grow, but is"),
    ],
)
def test_bad_designs_end_in_a_sentence(tmp_path, families, more, said):
    with pytest.raises(InputError) as error:
        design_space(study_of(tmp_path, families, more=more))
    assert said in str(error.value)
