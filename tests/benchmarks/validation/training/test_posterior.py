"""The hierarchical fit: what it finds in runs that were made from known parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from run_tables import SUBSET

from benchmarks.validation.training.posterior import (
    Evidence,
    effects_of,
    evidence,
    left_out,
    posterior_toml,
    refit,
    source_name,
)
from nest_core.calibration.training import read_runs
from nest_core.calibration.training.predict import spread
from nest_core.documents.presets import parse_toml
from nest_core.hardware.posterior import PARAMETERS, load_posterior

GEMM = PARAMETERS.index("gemm_efficiency")


@pytest.fixture(scope="module")
def real():
    text = (SUBSET / "train_measurements.csv").read_text()
    rows, _ = read_runs(text, "train_measurements.csv")
    known = load_posterior()
    return [item for row in rows[::3] if (item := evidence(row, known)) is not None]


@pytest.fixture(scope="module")
def run(real):
    return next(item.run for item in real if item.run.stack == "megatron-core-2025")


def made(run, sources, truth, noise, seed=0, each=6):
    """Runs of several sources whose products reach ``exp(truth)`` of what was assumed."""
    rng = np.random.default_rng(seed)
    found = []
    for name in sources:
        common = rng.normal(0.0, noise)
        for number in range(each):
            slopes = np.zeros(len(PARAMETERS))
            slopes[GEMM] = -rng.uniform(0.5, 1.0)
            measured = slopes[GEMM] * truth + common + rng.normal(0.0, noise / 2)
            one = replace(run, id=f"{name} {number}", source=name, quality="A")
            found.append(Evidence(one, measured, 0.0, slopes, np.zeros(len(PARAMETERS))))
    return found


def gemm_of(posterior, run):
    known = posterior.of("h100", "megatron", run.stack)
    return known.centre[GEMM], known.covariance[GEMM, GEMM] ** 0.5


@pytest.mark.check
def test_slopes_are_those_of_the_price(real):
    """Twice the step moves a predicted logarithm by twice as much, nearly."""
    from nest_core.calibration.training.machines import accelerator_of
    from nest_core.calibration.training.predict import predict
    from nest_core.hardware.stacks import load_stack

    for item in real[::12]:
        stack = load_stack(item.run.stack)
        family = accelerator_of(item.run.accelerator).family.name
        known = load_posterior().of(family, stack.framework, stack.name)
        move = np.zeros(len(PARAMETERS))
        move[GEMM] = -0.02
        moved = predict(item.run, factors=known.factors(known.centre + move)).iteration_s
        assert np.log(moved) - item.predicted == pytest.approx(-0.02 * item.slopes[GEMM], abs=1e-3)
        assert item.slopes[GEMM] <= 0.0


@pytest.mark.parametrize("truth", [-0.1, 0.0, 0.1])
def test_many_sources_that_agree_decide(run, truth):
    found = made(run, [f"a/{n}" for n in range(12)], truth, 0.01)
    centre, sd = gemm_of(refit(found), run)
    assert abs(centre - truth) < 2.5 * sd + 0.02
    assert abs(centre - truth) < 0.05


def test_few_runs_move_little_and_are_less_sure(run):
    many = refit(made(run, [f"a/{n}" for n in range(12)], 0.3, 0.01))
    few = refit(made(run, ["a/1", "a/2"], 0.3, 0.01, each=1))
    assert 0.0 < gemm_of(few, run)[0] < gemm_of(many, run)[0]
    assert gemm_of(few, run)[1] > gemm_of(many, run)[1]


def test_a_stack_of_one_source_has_no_effect_of_its_own(run):
    alone = effects_of(made(run, ["a/1"], 0.1, 0.01))
    assert {(effect.framework, effect.stack) for effect in alone} == {("", "")}
    both = effects_of(made(run, ["a/1", "b/1"], 0.1, 0.01))
    assert run.stack in {effect.stack for effect in both}


def test_one_source_far_out_hardly_counts(run):
    """A hundredth of what it would move if it counted as the others do."""
    good = made(run, [f"a/{n}" for n in range(8)], 0.0, 0.01)
    wild = made(run, ["w/1"], 0.0, 0.01)
    wild = [replace(item, measured=item.measured + 1.5) for item in wild]
    centre, _ = gemm_of(refit([*good, *wild]), run)
    assert abs(centre - gemm_of(refit(good), run)[0]) < 0.03


def test_a_source_left_out_is_predicted_from_the_others(run):
    """Its own times change nothing of what it is predicted to take."""
    found = made(run, [f"a/{n}" for n in range(8)], 0.1, 0.01)
    before = {item.run.id: item.predicted for item in left_out(found)}
    name = found[0].source
    moved = [
        replace(item, measured=item.measured + 0.02) if item.source == name else item
        for item in found
    ]
    after = {item.run.id: item.predicted for item in left_out(moved)}
    own = [item.run.id for item in found if item.source == name]
    assert [after[one] for one in own] == pytest.approx([before[one] for one in own], abs=2e-3)


def test_models_left_out_are_predicted_from_the_others_of_their_sources(run):
    """Runs of one model that say nothing of products are told what the others found."""
    found = made(run, "abcdef", 0.2, 0.01)
    blank = [
        replace(item, run=replace(item.run, model="other"), measured=0.0) for item in found[::2]
    ]
    chosen = [*(item for item in found if item not in found[::2]), *blank]
    without = left_out(chosen, lambda item: item.run.model)
    told = [item for item in without if item.run.model == "other"]
    assert len(told) == len(blank)
    for item, each in zip(blank, told, strict=True):
        assert each.predicted == pytest.approx(0.2 * item.slopes[GEMM], abs=0.03)
    assert len(without) == len(chosen)


def test_intervals_hold_as_often_as_they_say(run):
    """Of sources made from the model, left out one by one."""
    found = made(run, [f"a/{n}" for n in range(60)], 0.05, 0.08, each=3)
    inside = [
        abs(item.measured - item.predicted) < 1.2816 * item.spread for item in left_out(found)
    ]
    assert 0.7 < np.mean(inside) < 0.95


def test_sources_are_repositories_and_papers():
    a, b = "NVIDIA/dgxc-benchmarking llama3.1/README.md @741c886", "NVIDIA/dgxc-benchmarking x @2"
    assert source_name(a) == source_name(b) == "NVIDIA/dgxc-benchmarking"
    assert source_name("here") == "here"


def test_what_is_written_is_read_back(real, tmp_path):
    found = refit(real)
    text = parse_toml(posterior_toml(found, "a test"), "posterior.toml")
    assert [entry["value"] for entry in text["effect"]] == pytest.approx(found.values, abs=1e-4)
    assert np.array(text["covariance"]) == pytest.approx(found.covariance, rel=0.01, abs=1e-6)
    assert len(text["effect"]) == len(found.effects) == len(text["covariance"])
    assert (np.linalg.eigvalsh(np.array(text["covariance"])) > -1e-4).all()


def test_mixtures_are_known_less(real):
    known = load_posterior()
    dense = [item.run for item in real if item.run.experts == 1][:3]
    mixed = [item.run for item in real if item.run.experts > 1][:3]
    assert max(spread(one, known) for one in dense) < min(spread(one, known) for one in mixed)
    assert all(spread(one, known) > known.source_sd for one in dense)
