"""Prices of plans whose stages differ in width, over concrete devices (``oracle_ragged.py``)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from oracle import Pick
from oracle_ragged import price_ragged
from oracle_traffic import Choice
from planner_instances import Instance, any_choice, any_picks, any_stages, large_instance

from nest_core.costs import Plan, Point, StageStrategy, price
from nest_core.costs.parse import parse_plan
from nest_core.documents.errors import InputError

pytestmark = pytest.mark.slow

_ORDERS = tuple(
    (*inner, *outer)
    for inner in (("tp", "cp"), ("cp", "tp"))
    for outer in (("pp", "dp"), ("dp", "pp"))
)


def _ragged(dice: np.random.Generator, instance: Instance) -> tuple[Plan, tuple[Pick, ...]]:
    """Any such plan: at least two widths, any order that begins with tp and cp."""
    devices = instance.fabric.devices
    while True:
        choice = any_choice(dice, instance)
        if choice.pp == 1 or choice.interleave > 1:
            continue
        order = _ORDERS[int(dice.integers(len(_ORDERS)))]
        picks = []
        for width in dice.choice([1, 2, 3, 4, 6], choice.pp).tolist():
            alike = choice._replace(tp=width, cp=1, ep=1, etp=width, order=order)
            picks.append(any_picks(dice, alike._replace(pp=1))[0])
        widths = [pick.tp * pick.cp for pick in picks]
        if len(set(widths)) > 1 and choice.dp * sum(widths) <= devices:
            first = choice._replace(order=order, **picks[0]._asdict())
            cuts, recompute = any_stages(dice, instance, first)
            strategies = tuple(StageStrategy(*pick) for pick in picks)
            return Plan(Point(*first), cuts, recompute, strategies), tuple(picks)


def test_a_group_of_zero_that_does_not_divide_a_stage_is_refused():
    instance, dice = large_instance(3), np.random.default_rng(44)
    plan, _ = _ragged(dice, instance)
    first, *others = plan.strategies
    sharers = plan.point.dp * first.cp
    broken = replace(first, zero=1, zero_group=sharers + 1)
    with pytest.raises(InputError, match=rf"plan\.zero_group must divide dp x cp = {sharers}, and"):
        price(instance.problem, replace(plan, strategies=(broken, *others)))


@pytest.mark.parametrize(
    "seeds",
    [range(6), pytest.param(range(6, 120), marks=pytest.mark.check)],
    ids=["quick", "more"],
)
@pytest.mark.check
def test_each_stage_is_priced_on_its_own_devices(seeds):
    for seed in seeds:
        instance, dice = large_instance(seed), np.random.default_rng([seed, 44])
        for _ in range(5):
            plan, picks = _ragged(dice, instance)
            report = price(instance.problem, plan)
            choice = Choice(**{name: getattr(plan.point, name) for name in Choice._fields})
            told = price_ragged(instance.oracle, choice, plan.cuts, plan.recompute, picks)
            assert report.iteration_s == pytest.approx(told.seconds, rel=1e-9), (seed, plan)
            for stage, mine in zip(report.stages, told.stages, strict=True):
                assert stage.micro_batch_s == pytest.approx(mine.seconds, rel=1e-9), (seed, plan)
                assert stage.sync_s == pytest.approx(mine.sync, rel=1e-9, abs=1e-12), (seed, plan)
                assert stage.memory.total == pytest.approx(mine.memory, rel=1e-9), (seed, plan)
            again = parse_plan(json.loads(json.dumps(plan.to_json())), instance.problem.layers)
            assert price(instance.problem, again) == report
