"""The highest ratios that a mix of models bears, against trying all of them one by one."""

from __future__ import annotations

import json
from functools import cache

import pytest

from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_core.studies.sweeps import highest_ratios

PRESET = "llama2-7b-64-h100"
MIX = (("llama2-7b", 3.0), ("llama3-8b", 1.0))
NARROW = {"fabric.clos.nic_bandwidth_GBps": 6.25}
"""Slow enough that ratios cost something."""

FEW = {
    "search.schedule": ["1f1b"],
    "search.recompute": ["none"],
    "search.zero": [1],
    "search.cp": 1,
    "search.micro_batch_sequences": [1, 2],
}
"""Few plans to choose from, so that many ratios are tried soon."""


def asked(loss, mix=MIX, preset=PRESET, overrides=None):
    document, _ = scenario_document(preset)
    return {
        "scenario": Scenario(document, FEW | (NARROW if overrides is None else overrides)),
        "mix": [{"model": model, "share": share} for model, share in mix],
        "loss": loss,
    }


def on(overrides):
    document, _ = scenario_document(PRESET)
    return {"scenario": Scenario(document, overrides)}


def losses_one_by_one(mix, ratios):
    """What every ratio costs, each planned from a scenario written out in full."""
    rates = {}
    for ratio in ratios:
        for model, _ in mix:
            scenario = load_scenario(
                PRESET,
                [
                    f'workload.model="{model}"',
                    *(f"{key}={json.dumps(value)}" for key, value in (NARROW | FEW).items()),
                    f"fabric.clos.oversubscription=[{ratio}]",
                ],
            )
            rates[ratio, model] = search(scenario.problem(), scenario.space).best.samples_per_s
    whole = sum(share for _, share in mix)
    return {
        ratio: 1 - sum(s * rates[ratio, m] / rates[ratios[0], m] for m, s in mix) / whole
        for ratio in ratios
    }


@pytest.fixture(scope="module")
def brute_force():
    return losses_one_by_one(MIX, [1 + step / 2 for step in range(31)])


@cache
def tier_below(loss):
    (tier,) = highest_ratios(**asked(loss)).tiers
    return tier


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.2])
@pytest.mark.sampled(3)
def test_the_highest_ratio_is_the_last_before_one_that_costs_too_much(brute_force, loss):
    tier = tier_below(loss)
    over = [ratio for ratio, lost in brute_force.items() if lost >= loss]
    expected = max(ratio for ratio in brute_force if not over or ratio < over[0])
    assert tier.highest.ratio == expected
    assert tier.highest.loss == pytest.approx(brute_force[expected], abs=1e-9)
    if over:
        assert tier.beyond.ratio == over[0]
        assert tier.beyond.loss == pytest.approx(brute_force[over[0]], abs=1e-9)
    else:
        assert tier.beyond is None
    assert [step.ratio for step in tier.steps] == [r for r in brute_force if r <= (over or [16])[0]]


def test_a_tighter_limit_never_bears_more():
    found = [tier_below(loss).highest.ratio for loss in (0.01, 0.05, 0.2)]
    assert found == sorted(found)
    assert found[0] < found[-1]


@pytest.mark.check
def test_shares_count_and_only_their_proportion_does():
    one, other = (
        highest_ratios(**asked(0.05, mix)).tiers[0]
        for mix in ((("llama2-7b", 1), ("llama3-8b", 1)), (("llama2-7b", 50), ("llama3-8b", 50)))
    )
    assert one == other
    step = one.steps[-1]
    assert step.loss == pytest.approx(sum(step.losses) / 2)


def test_every_tier_is_tried_with_the_others_as_they_are():
    document, _ = scenario_document("bert-large-64-v100")
    inputs = asked(0.05, (("bert-large", 1),), "bert-large-64-v100", {})
    found = highest_ratios(**inputs)
    assert [tier.label for tier in found.tiers] == ["pod", "spine"]
    assert [tier.present for tier in found.tiers] == [1.0, 2.0]
    assert all(tier.steps[0].loss == 0 for tier in found.tiers)
    assert document["fabric"] == "v100-pods-64"


def test_a_ratio_saves_money_or_nothing():
    least, most = tier_below(0.2).price_usd
    assert most < least


def test_once_stopped_the_tiers_that_are_done_are_there():
    calls = iter([False] * 3 + [True] * 1000)
    found = highest_ratios(**asked(0.05), stop=lambda: next(calls))
    assert not found.complete
    assert found.tiers == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": 0}, "loss must be at least 0.001, but is 0"),
        ({"loss": True}, "loss must be a number"),
        ({"mix": []}, "mix must list 1 to 6 models"),
        ({"mix": [{"model": "llama2-7b", "share": 0}]}, r"mix\[0\].share must be at least 0.001"),
        ({"mix": [{"model": "nobody", "share": 1}]}, "workload.model must be a preset"),
        (on({"fabric": "dragonfly-1056"}), "fabric must have tiers to oversubscribe"),
        (on(FEW | {"accelerator.memory_GiB": 2.5}), "mix must hold models that fit"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(changes, message):
    with pytest.raises(InputError, match=message):
        highest_ratios(**asked(0.05) | changes)
