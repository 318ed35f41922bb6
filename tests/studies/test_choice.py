"""The order of a Pareto set, what the choice rests on, and how designs grow."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from inline import Inline
from studies import CLUSTER, written

from nest_core.studies import sensitivity as module
from nest_core.studies.design_choice import decision_model, weigh
from nest_core.studies.design_search import search_designs
from nest_core.studies.design_space import ROOM, SMALL, design_space, ways_to_grow
from nest_core.studies.engine import WorkerPool
from nest_core.studies.failures import worst_failure
from nest_core.studies.ranking import TieOrder, choose, first_change, ranked, ties_of
from nest_core.studies.sensitivity import information, sensitivity
from nest_core.studies.study import load_study
from nest_studio.session.store import Database, StoredAnswers

MIX = """
schema = 1
name = "Two models"

[[mix]]
scenario = "cluster.toml"
weight = {weight}

[[mix]]
scenario = "long.toml"
weight = {rest}

[design]
families = ["spine-leaf", "rail-only", "torus"]
ratios = [1.0, 4.0]
nics_per_node = [2, 8]
tokens_T = 1.0
goal = "{goal}"
"""


def weighed(folder, goal, weight=0.5):
    folder.mkdir(exist_ok=True)
    long = CLUSTER.replace("1024", "2048").replace("tp = [1, 8]", "tp = [8]")
    text = MIX.format(goal=goal, weight=weight, rest=1 - weight)
    study = load_study(str(written(folder, text, long=long)), folder)
    answers = StoredAnswers(Database(f"sqlite:///{folder}/store.sqlite"))
    pool = WorkerPool.of(Inline())
    found = search_designs(study, answers, pool)
    return study, found, weigh(study, found, pool)


@pytest.fixture(scope="module")
def by_dollar(tmp_path_factory):
    return weighed(tmp_path_factory.mktemp("dollar"), "tokens_per_usd")


def test_of_ties_the_one_that_fails_least_goes_first_then_price_then_power():
    costs = np.array([10.0, 10.1, 10.1, 20.0])
    apart = np.full((4, 4), 0.05)
    assert ties_of(costs, apart, 0) == [0, 1, 2]

    def rule(*tie_orders):
        return choose(costs, apart, [TieOrder(*one) for one in tie_orders])

    cheap = (False, 1.0, 1.0)
    assert rule((False, 3.0, 9.0), (True, 1.0, 1.0), (False, 2.0, 9.0), cheap) == 2
    assert rule((True, 3.0, 9.0), (True, 1.0, 1.0), (True, 2.0, 9.0), cheap) == 1
    assert rule((False, 2.0, 9.0), (False, 2.0, 8.0), (False, 2.0, 8.5), cheap) == 1
    assert choose(costs, np.zeros((4, 4)), [TieOrder(*cheap)] * 4) == 0


def test_what_another_surely_beats_does_not_win_by_its_ties():
    """The second ties with the least, yet the third is surely cheaper than it."""
    costs = np.array([10.0, 10.3, 10.1])
    log_sd = np.array([[0.0, 0.05, 0.05], [0.05, 0.0, 0.001], [0.05, 0.001, 0.0]])
    tie_orders = [TieOrder(False, usd, 1.0) for usd in (3.0, 1.0, 2.0)]
    assert ranked(costs, log_sd, tie_orders) == [(2, 1), (0, 1), (1, 3)]


def test_the_set_stands_in_the_order_of_the_goal(by_dollar):
    _, found, choice = by_dollar
    assert {one.planned for one in choice.contenders} == set(found.pareto)
    ranks = [one.rank for one in choice.contenders]
    assert ranks == sorted(ranks)
    assert ranks[0] == 1
    for rank in set(ranks):
        same = [one for one in choice.contenders if one.rank == rank]
        best = max(same, key=lambda one: one.value)
        assert all(one is best or best.name in one.ties for one in same)
        tie_orders = [
            ((one.worst_loss or (0.0,))[0] >= 0.1, one.planned.design.price_usd) for one in same
        ]
        assert tie_orders == sorted(tie_orders)
    for one in choice.contenders:
        assert one.span[0] < one.planned.days < one.span[1]


def test_the_worst_failure_is_that_of_any_model(by_dollar):
    study, _, choice = by_dollar
    one = next(each for each in choice.contenders if each.worst_loss)
    lost = []
    for member, bill in zip(study.members, one.bills, strict=True):
        change = one.planned.design.changes
        values = replace(member.scenario, overrides=change).values
        found = worst_failure(values, bill.report.plan, bill.owned.spare_nodes)
        lost.append((found.least_loss, found.words))
    assert one.worst_loss == max(lost)


@pytest.mark.check
def test_the_choice_changes_where_the_sentence_says(by_dollar, tmp_path):
    """A weight on either side of the crossing that is told, planned from the file on."""
    study, _, choice = by_dollar
    decision = decision_model(study, choice)
    factor = next(one for one in module._factors(decision) if one.name == "share of cluster.toml")
    seen = {}
    for weight in np.linspace(0.02, 0.98, 25):
        costs = factor.costs(float(weight))
        seen[float(weight)] = decision.names[int(costs.argmin())]
    first, last = min(seen), max(seen)
    for weight in (first, last):
        _, found, again = weighed(tmp_path / f"{weight}", "tokens_per_usd", weight)
        best = max(again.contenders, key=lambda one: one.value)
        assert best.name == seen[weight]
        rates = {one.design.name: one.tokens_per_s for one in found.pareto}
        times = (decision.seconds_per_token @ np.array([weight, 1 - weight])).tolist()
        for name, seconds in zip(decision.names, times, strict=True):
            if name in rates:
                assert 1 / seconds == pytest.approx(rates[name], rel=1e-9)


def test_bars_are_what_the_goal_costs_at_the_ends(by_dollar):
    study, _, choice = by_dollar
    found = sensitivity(study, choice)
    widths = [max(abs(one.low), abs(one.high)) for one in found.swings]
    assert widths == sorted(widths, reverse=True)
    nodes = next(one for one in found.swings if "accelerators" in one.name)
    first = choice.contenders[0].planned.design
    line = first.owned.of("accelerators with servers")[0]
    assert nodes.high == pytest.approx((line.usd.high - line.usd.typical) / first.price_usd)
    assert nodes.low == pytest.approx((line.usd.low - line.usd.typical) / first.price_usd)
    assert sum(found.wins) == pytest.approx(1.0)
    assert 0 <= found.regret < 1
    assert all(one.worth <= found.regret + 1e-3 for one in found.information)


def test_a_crossing_is_found_by_bisection():
    assert first_change(lambda at: int(at > 0.3), 0, 0.0, 1.0) == (pytest.approx(0.3), 1)
    assert first_change(lambda at: int(at > 2.0), 0, 0.0, 1.0) is None


def test_information_is_worth_what_the_normal_says():
    """Two designs, one parameter of the one: the gain is that of an option on a normal."""
    sd, ahead = 0.02, 0.01
    decision = SimpleNamespace(
        goal="days",
        names=["sure", "unsure"],
        parameters=[("incast", "")],
        slopes=np.array([[[0.0]], [[1.0]]]),
        covariance=np.array([[sd**2]]),
        run_covariance=np.zeros((1, 2, 2)),
        seconds_per_token=np.array([[1.0], [1.0 + ahead]]),
        weights=np.array([1.0]),
        part_usd={},
        price_usd=np.array([1.0, 1.0]),
        cost=lambda times, price=None: times,
    )
    regret, wins, (known,) = information(decision, 0)
    z = ahead / sd
    density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    tail = math.erfc(z / math.sqrt(2)) / 2
    worth = sd * density - ahead * tail
    assert regret == pytest.approx(worth, rel=0.1)
    assert known.worth == pytest.approx(worth, rel=0.15)
    assert wins[1] == pytest.approx(tail, abs=0.03)


GROWING = """
schema = 1
name = "Growing"
scenario = "llama3-70b-1024-h100"

[design]
families = ["spine-leaf", "rail-optimised", "torus"]
ratios = [1.0]
phases = [1024, 2048, 8192]
"""


def test_growth_pays_what_is_missing_and_counts_what_is_moved(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(GROWING)
    study = load_study(str(file), tmp_path)
    designs, _ = design_space(study)
    leaf, rails, torus = designs
    leaf, torus = ways_to_grow(study, [leaf, torus])
    assert leaf.how == torus.how == SMALL
    assert "8,192 devices" in leaf.reason  # two tiers of radix 64 hold 2,048
    assert len(leaf.phases) == 2
    assert torus.reason == ""
    first, second = leaf.phases
    assert first.recabled == 0
    # 1,024 uplinks of 32 leaves spread over twice the spines: half of them move.
    assert second.recabled == 512
    assert second.links == 2 * first.links
    assert first.paid_usd > 0
    assert second.paid_usd == pytest.approx(first.paid_usd, rel=0.01)
    small, roomy = ways_to_grow(study, [rails])
    assert (small.how, roomy.how) == (SMALL, ROOM)
    assert [phase.tiers for phase in roomy.phases] == [3, 3, 3]
    assert roomy.regret_usd > small.regret_usd == 0.0
    assert small.total_usd >= roomy.total_usd  # what is built twice is paid twice


def test_growth_goes_on_as_it_was_built_and_says_what_ends_it(tmp_path):
    """A rail of one switch has no ratio until its second tier; 5,004 devices are no whole nodes."""
    file = tmp_path / "study.toml"
    text = GROWING.replace("[1024, 2048, 8192]", "[64, 4096, 5004]").replace("[1.0]", "[4.0]")
    file.write_text(text.replace('"rail-optimised", "torus"', '"rail-only"'))
    study = load_study(str(file), tmp_path)
    leaf, rails = ways_to_grow(study, design_space(study)[0])[:2]
    assert "4,096 devices: clos.tiers must be more than 2" in leaf.reason
    assert "5,004 devices: devices must be a multiple of the 8 of a node" in rails.reason
    assert [phase.tiers for phase in rails.phases] == [1, 2]
    # Rails of 512 NICs on 16 leaves of 32 down and 8 up.
    assert rails.phases[1].links == 4096 + 8 * 16 * 8
