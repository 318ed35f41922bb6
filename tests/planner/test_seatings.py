"""Clusters with holes: the search over seatings against every plan, and against its own bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oracle import Choice
from planner_instances import holed_instance

from nest_core.costs import price
from nest_core.layout import seated, seatings
from nest_core.planner import audit, search

_CASES = range(24)


@pytest.mark.parametrize("seed", _CASES)
def test_seatings_are_those_of_the_documented_rules(seed):
    instance = holed_instance(seed)
    network, told = instance.problem.network, instance.oracle.link_map.seatings
    assert seatings(network) == tuple(told)
    for name, seats in told.items():
        order, count = seated(network, name)
        assert order[:count].tolist() == seats
        assert sorted(order.tolist()) == list(range(network.devices))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", _CASES)
def test_the_best_plan_is_the_best_of_all_seatings(seed):
    instance = holed_instance(seed)
    oracle = instance.oracle
    ranking, choices = oracle.ranking(), list(oracle.choices())
    result = search(instance.problem, instance.space)
    assert result.certificate.proven
    assert result.certificate.points == len(choices)
    assert (result.best is None) == (not ranking)
    if result.best is not None:
        assert result.best.iteration_s == pytest.approx(ranking[0].seconds, rel=1e-9, abs=0)
        point = result.best.plan.point
        own = Choice(*(getattr(point, name) for name in Choice._fields))
        assert own in choices
        told = oracle.price(own, result.best.plan.cuts, result.best.plan.recompute)
        again = price(instance.problem, result.best.plan)
        assert again.iteration_s == pytest.approx(told.seconds, rel=1e-9, abs=0)
    assert not audit(instance.problem, instance.space, result, 60, seed=seed).violations


def test_gaps_win_somewhere():
    """Else the enumeration above would say nothing about them."""
    gained = 0
    for seed in _CASES:
        instance = holed_instance(seed)
        found = [
            search(instance.problem, replace(instance.space, seating=seating)).best
            for seating in ("any", "consecutive")
        ]
        if found[0] is not None:
            gained += found[1] is None or found[0].iteration_s < found[1].iteration_s * (1 - 1e-9)
    assert gained >= 3
