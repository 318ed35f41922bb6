"""Prices and searches held against every plan of an instance over concrete devices."""

from __future__ import annotations

import pytest
from oracle import Choice, Oracle, Pick
from planner_instances import Instance

from nest_core.costs import Plan, Point, Problem, Report, StageStrategy, price
from nest_core.documents.errors import InputError
from nest_core.planner import SearchSpace, audit, search


def priced_as_over_devices(
    problem: Problem,
    oracle: Oracle,
    choice: Choice,
    cuts: tuple[int, ...],
    recompute: object,
    picks: tuple[Pick, ...] = (),
) -> Report:
    """Return the price of a plan, whose seconds and bytes are those of the oracle."""
    strategies = tuple(StageStrategy(*pick) for pick in picks)
    report = price(problem, Plan(Point(*choice), cuts, recompute, strategies))
    told = oracle.price(choice, cuts, recompute, picks)
    assert report.iteration_s == pytest.approx(told.seconds, rel=1e-9), choice
    assert sum(seconds for _, seconds in report.terms) == pytest.approx(report.iteration_s)
    for stage, mine in zip(report.stages, told.stages, strict=True):
        assert stage.sync_s == pytest.approx(mine.sync, rel=1e-9, abs=1e-12)
        assert stage.memory.total == pytest.approx(mine.memory, rel=1e-9)
    return report


def search_finds_the_best(instance: Instance, space: SearchSpace, seed: int) -> None:
    """Hold a search against the least of all plans of a space; bounds exclude nothing better."""
    oracle = Oracle(instance.fabric, instance.problem, space)
    choices = list(oracle.choices())
    if not choices:
        with pytest.raises(InputError):
            search(instance.problem, space)
        return
    ranking = oracle.ranking()
    result = search(instance.problem, space)
    assert (result.best is None) == (not ranking)
    assert result.certificate.points == len(choices)
    if result.best is not None:
        assert result.certificate.proven
        assert result.best.iteration_s == pytest.approx(ranking[0].seconds, rel=1e-9)
    assert not audit(instance.problem, space, result, 20, seed).violations
