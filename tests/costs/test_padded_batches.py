"""A batch that replicas and micro-batches do not divide: refused, or padded and counted."""

from __future__ import annotations

import pytest

from nest_core.costs import Plan, Point, price
from nest_core.documents.errors import InputError
from nest_core.interop.exporters import export_plan
from nest_core.interop.exporters.values import ExportRefused
from nest_core.planner import search
from nest_core.report.explain.summary import plan_in_words
from nest_core.scenario import load_scenario

PADDED = "search.pad_batch=true"
POINT = Point(4, False, 7, 2, 2, 1, ("tp", "cp", "dp", "pp"))
PINS = ("search.dp=7", "search.tp=4", "search.pp=2", "search.micro_batch_sequences=2")


def _asked(batch, *more):
    sets = (f"workload.global_batch_sequences={batch}", 'workload.model="llama3-8b"', *more)
    return load_scenario("llama2-7b-64-h100", sets)


def _priced(asked, **other):
    point = POINT if not other else Point(**{**_fields(), **other})
    pp = point.pp
    return price(asked.problem(), Plan(point, (0, 17, 34) if pp == 2 else (0, 34), ("full",) * pp))


def _fields():
    return {"tp": 4, "sp": False, "dp": 7, "pp": 2, "micro_batch": 2, "zero": 1,
            "order": POINT.order}  # fmt: skip


def test_real_sequences_are_counted_and_padded_ones_take_time():
    padded, whole = _priced(_asked(50, PADDED)), _priced(_asked(56, PADDED))
    assert padded.iteration_s == whole.iteration_s
    assert padded.samples_per_s * padded.iteration_s == pytest.approx(50)
    assert padded.mfu == pytest.approx(whole.mfu * 50 / 56)
    words = plan_in_words(padded, 50, 64)
    assert "4 micro-batches per replica, padded by 6 sequences" in words
    assert "padded" not in plan_in_words(whole, 56, 64)


def test_a_padded_plan_is_found_where_it_is_the_only_one():
    asked = _asked(50, PADDED, *PINS)
    best = search(asked.problem(), asked.space).best
    assert best is not None
    assert (best.plan.point.dp, best.plan.point.micro_batches(50)) == (7, 4)
    assert best == price(asked.problem(), best.plan)


def test_without_padding_what_does_not_divide_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"or (set )?search\.pad_batch = true"):
        _priced(_asked(50))
    asked = _asked(50, "search.dp=2", "search.micro_batch_sequences=10")
    with pytest.raises(InputError, match=r"or (set )?search\.pad_batch = true"):
        search(asked.problem(), asked.space)


@pytest.mark.parametrize(("dp", "micro"), [(7, 9), (51, 1), (50, 2)])
def test_nobody_gets_padding_alone(dp, micro):
    with pytest.raises(InputError, match=r"must not exceed a replica's share of the batch of 50"):
        _priced(_asked(50, PADDED), dp=dp, tp=1, pp=1, micro_batch=micro)


@pytest.mark.parametrize("target", ["megatron", "nemo", "torchtitan", "deepspeed", "maxtext"])
def test_frameworks_are_not_handed_a_batch_that_they_cannot_train(target):
    asked = _asked(50, PADDED)
    with pytest.raises(ExportRefused, match="must divide the batch of 50 for"):
        export_plan(target, asked, _priced(asked))
