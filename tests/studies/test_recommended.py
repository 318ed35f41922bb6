"""What draws recommend: against searches and prices of single draws, and what follows from both."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import nest_core as nest
from nest_core.costs import price
from nest_core.costs.parse import read_plan
from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.scenario import load_scenario
from nest_core.studies import recommended as studied
from nest_core.studies.recommended import (
    DrawResult,
    difference,
    local_price,
    recommend,
    recommended,
    search_draws,
)
from nest_core.studies.uncertainty import ParameterSpread, alikeness, spread_of

JOB = "llama2-7b-64-h100"
SMALL = ("search.cp=1",)
"""A few of its plans are close."""
DRAWS = 6


@pytest.fixture(scope="module")
def asked():
    scenario = load_scenario(JOB, SMALL)
    problem = scenario.problem()
    return scenario, problem, search(problem, scenario.space).best.plan


@pytest.fixture(scope="module")
def searched(asked):
    scenario, problem, known = asked
    return search_draws(scenario, problem, known, range(DRAWS))


@pytest.fixture(scope="module")
def base(asked, searched):
    scenario, problem, known = asked
    return recommended(scenario, problem, known, searched)


def sharp(monkeypatch):
    """All is known exactly."""
    exact = spread_of

    def certain(scenario, problem):
        found = exact(scenario, problem)
        network = tuple((field, name, 0.0) for field, name, _ in found.network)
        return replace(found, covariance=0 * found.covariance, network=network, run_sd=0.0)

    monkeypatch.setattr(studied, "spread_of", certain)


def test_a_draw_of_nothing_is_the_scenario_itself(asked):
    scenario, problem, known = asked
    spread = spread_of(scenario, problem)
    same = spread.draw(np.zeros(len(spread.sd))).problem(scenario, problem.network)
    assert same.network is problem.network
    assert price(same, known) == price(problem, known)


def test_no_winner_is_faster_than_what_its_draw_alone_finds(asked, searched):
    scenario, problem, _ = asked
    draws = spread_of(scenario, problem).draws(DRAWS, 0)
    assert [one.draw for one in searched] == list(range(DRAWS))
    assert len({one.plan for one in searched}) > 1
    for one in searched:
        drawn = draws[one.draw].problem(scenario, problem.network)
        alone = search(drawn, scenario.space)
        assert one.proven
        assert alone.certificate.proven
        assert one.iteration_s == alone.best.iteration_s == price(drawn, one.plan).iteration_s
        assert one.known_s >= one.iteration_s


def test_nine_local_prices_in_ten_are_those_of_price_within_three_parts_in_a_thousand():
    """Where uplinks are few, what they carry and what hides of it multiply; and in a draw the host
    may set the pace of forward passes (once in these forty, 2.45 standard deviations away).
    """
    scenario = load_scenario("llama3-70b-1024-h100-4to1")
    problem = scenario.problem()
    plan = read_plan("dp=64,tp=8,pp=2,zero=1,micro_batch=1,sp=true", problem.layers, 1024)
    spread = spread_of(scenario, problem)
    rows = spread.rows(40, 7)
    exact = [
        price(spread.draw(row).problem(scenario, problem.network), plan).iteration_s for row in rows
    ]
    error = np.abs(local_price(scenario, plan, spread, problem.network).seconds(rows) / exact - 1)
    assert np.std(np.log(exact)) > 0.02  # draws move it far more than that
    assert np.median(error) < 0.001
    assert np.quantile(error, 0.9) < 0.003
    assert np.mean(error) < 0.003


def test_what_is_known_exactly_is_the_plain_optimum(asked, monkeypatch):
    sharp(monkeypatch)
    scenario, problem, known = asked
    found = recommend(scenario, problem, known, 3)
    assert found.report.plan == known
    assert (found.best, found.worst_regret, found.others) == (1.0, 0.0, ())
    assert found.expected_s == pytest.approx(found.report.iteration_s)


def test_nothing_that_was_priced_is_expected_to_take_less(asked, searched, base):
    _, _, known = asked
    found = base
    assert all(one.expected_s >= found.expected_s for one in found.others)
    assert found.equals
    assert {one.plan for one in searched} | {known} == {
        found.report.plan,
        *(one.report.plan for one in found.others),
    }
    assert found.low <= found.best <= found.high
    assert found.worst_regret >= 0.0
    assert found.interval.low_s < found.expected_s < found.interval.high_s


def test_workers_change_nothing(asked, searched, base, monkeypatch):
    """Whoever searches a draw: the seed alone says what is found."""
    scenario, problem, known = asked
    monkeypatch.setattr(studied, "_AT_ONCE", 4)
    with ThreadPoolExecutor(1) as pool:
        found = recommend(scenario, problem, known, DRAWS, pool=pool)
    assert found.to_json() == base.to_json()
    (other,) = search_draws(scenario, problem, known, range(1), seed=1)
    assert other.known_s != searched[0].known_s


def test_what_was_stopped_says_of_how_many_draws_it_is(asked):
    scenario, problem, known = asked
    stops = iter([False, False, True])  # asked once per draw where the incumbent is proven at once
    found = search_draws(scenario, problem, known, range(DRAWS), stop=lambda: next(stops, True))
    assert len(found) < DRAWS
    assert recommend(scenario, problem, known, 2, stop=lambda: True) is None


def test_errors_are_shared_by_what_is_alike(asked, searched):
    _, _, known = asked
    wider = replace(known, point=replace(known.point, micro_batch=known.point.micro_batch * 2))
    found = alikeness([known, wider, *(one.plan for one in searched)])
    assert found[0, 1] == pytest.approx(0.8)
    assert np.array_equal(found, found.T)
    assert np.diag(found) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_between_two_fabrics_what_both_share_cancels(base):
    same = difference(base, base)
    assert (same.low, same.centre, same.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    tight = load_scenario(JOB, (*SMALL, "fabric.clos.oversubscription=[4.0]"))
    other_problem = tight.problem()
    best = search(other_problem, tight.space).best.plan
    found = difference(base, recommend(tight, other_problem, best, 1))
    assert found.low <= found.centre <= found.high
    alone = (base.interval.high_s - base.interval.low_s) / base.report.iteration_s
    assert found.high - found.low < alone / 2


@pytest.fixture(scope="module")
def full():
    """A scenario whose optimum fits surely, and with next to nothing to spare."""
    scenario = load_scenario(JOB, (*SMALL, "accelerator.memory_GiB=17"))
    problem = scenario.problem()
    return scenario, problem, search(problem, scenario.space).best


def holding(monkeypatch, *deviations):
    """Draws of memory alone, by so many standard deviations."""
    exact = ParameterSpread.memory
    shown = np.array(deviations)

    def memory(self, count, seed):
        return np.concatenate([shown, exact(self, count, seed)])[:count]

    monkeypatch.setattr(ParameterSpread, "memory", memory)
    monkeypatch.setattr(
        ParameterSpread, "rows", lambda self, count, seed: np.zeros((count, len(self.sd)))
    )


def held(report):
    return max(stage.memory.total for stage in report.stages)


@pytest.mark.check
def test_what_does_not_fit_in_a_draw_cannot_win_it(full, monkeypatch):
    """Beside a search with so much less memory; with more, plans must still fit surely."""
    holding(monkeypatch, 2.0, -3.0, 60.0)
    scenario, problem, best = full
    sd = problem.memory_spread
    more, less, none = search_draws(scenario, problem, best.plan, range(3))
    assert held(best) * np.exp(2.0 * sd) > problem.memory_bytes
    memory = problem.memory_bytes * np.exp(-2.0 * sd)
    alone = search(replace(problem, memory_bytes=memory, memory_spread=0.0), scenario.space).best
    assert (more.plan, more.iteration_s) == (alone.plan, alone.iteration_s)
    assert more.iteration_s > best.iteration_s
    assert more.known_s == float("inf")
    assert (less.plan, less.iteration_s, less.proven) == (best.plan, best.iteration_s, True)
    assert (none.plan, none.iteration_s) == (None, float("inf"))
    found = recommended(scenario, problem, best.plan, (more, less, none))
    assert found.report.plan == best.plan
    assert found.best == pytest.approx(1 / 3)
    assert found.to_json()["best_in"]["worst_regret"] < 1.0


def test_the_chance_to_fit_is_that_of_draws(full, monkeypatch):
    scenario, problem, best = full
    found = recommend(scenario, problem, best.plan, 1)
    memory = spread_of(scenario, problem).memory(200_000, 0)
    share = np.mean(held(best) * np.exp(problem.memory_spread * memory) <= problem.memory_bytes)
    assert 0.95 <= found.fits == pytest.approx(share, abs=3e-3)
    certainty = "over 99 %" if found.fits > 0.99 else f"{100 * found.fits:.0f} %"
    assert f"fits with {certainty} certainty" in found.in_words


@pytest.mark.check
def test_regret_counts_neither_plans_nor_draws_that_do_not_fit(full, monkeypatch):
    """Errors of the model make either plan the faster one."""
    scenario, problem, best = full
    exact = spread_of(scenario, problem)
    monkeypatch.setattr(studied, "spread_of", lambda *_: replace(exact, run_sd=0.5))
    wide = replace(best.plan, point=replace(best.plan.point, zero=0))
    assert held(price(problem, wide)) > 1.1 * problem.memory_bytes
    assert price(problem, wide).iteration_s > best.iteration_s
    lean = search(replace(problem, memory_bytes=0.9 * problem.memory_bytes), scenario.space).best
    worst = {}
    for other in (wide, lean.plan):
        won = (DrawResult(0, other, 1.0, 1.0, True),)
        for deviations in (0.0, 2.0):
            holding(monkeypatch, *[deviations] * studied.PRICED)
            found = recommended(scenario, problem, best.plan, won)
            assert found.report.plan == best.plan
            worst[other, deviations] = found.worst_regret
    assert worst.pop((lean.plan, 0.0)) > 0.0
    assert set(worst.values()) == {0.0}


def test_of_equals_the_shape_that_was_measured_most_goes_first(asked, searched, monkeypatch):
    scenario, problem, known = asked
    widths = iter(range(100))
    often: dict[object, int] = {}

    def counted(family, stack, plan):
        assert (family, stack) == ("h100", "megatron-core-2025")
        return often.setdefault(plan, next(widths))

    monkeypatch.setattr(studied, "measured_like", counted)
    near = search(problem, scenario.space, top=4).alternatives
    won = [replace(searched[0], draw=DRAWS + n, plan=one.plan) for n, one in enumerate(near)]
    found = recommended(scenario, problem, known, (*searched, *won))
    runs = [one.measured for one in found.equals]
    assert len(runs) > 1
    assert runs == sorted(runs, reverse=True)
    assert runs != [one.measured for one in found.others if one.equal]
    assert found.to_json()["measured"] == often[found.report.plan]
    assert found.to_json()["equals"][0]["measured"] == runs[0]


def test_a_share_is_said_with_the_interval_of_jeffreys():
    """Brown, Cai and DasGupta 2001, section 4.3: no win and nothing but wins have a closed end."""
    assert studied._share_interval(0, 30)[0] == 0.0
    assert studied._share_interval(30, 30)[1] == 1.0
    low, high = studied._share_interval(22, 30)
    assert low < 22 / 30 < high
    shares = np.random.default_rng(0).beta(22.5, 8.5, 200_000)
    assert (low, high) == pytest.approx(np.quantile(shares, [0.05, 0.95]), abs=2e-3)


def test_the_facade_answers_as_the_command_does(asked):
    scenario = nest.load("llama2-7b-64-h100", {"baselines.names": []})
    assert nest.plan(scenario).to_json()["recommended"] is None
    answer = nest.plan(scenario, draws=2)
    found = answer.to_json()["recommended"]
    assert {"plan", "expected_s", "interval", "fits", "best_in"} <= set(found)
    assert set(found["interval"]) == {"centre_s", "low_s", "high_s", "share"}
    assert {"draws", "best", "low", "high", "worst_regret"} <= set(found["best_in"])
    assert found["best_in"]["draws"] == 2
    priced = nest.price(scenario, found["plan"]).to_json()
    assert found["fits"] == priced["memory"]["fits"] >= 0.95
    assert "recommended: " in str(answer)


def test_no_number_of_draws_is_an_error_in_a_sentence():
    for count in (-1, 1001, 2.5, True):
        with pytest.raises(InputError, match="draws must lie between 0 and 1,000"):
            nest.plan("llama2-7b-64-h100", draws=count)
