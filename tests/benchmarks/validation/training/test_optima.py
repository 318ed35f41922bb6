"""Chosen plans beside measured ones: what a ratio is made of, and that no price contradicts it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from run_tables import SUBSET

from benchmarks.validation import regenerate
from benchmarks.validation.__main__ import run
from benchmarks.validation.training import optima as module
from benchmarks.validation.training.optima import (
    as_used,
    found_or_why,
    groups,
    optimum,
    outside,
    planning_problem,
    space_of,
)
from benchmarks.validation.training.optima_document import OPTIMA_MARK, optima_part
from nest_core.calibration.training import MeasuredRow, read_runs
from nest_core.calibration.training.predict import Prediction, predict, predict_rows
from nest_core.calibration.training.runs import MeasuredOutcome, Unread
from nest_core.costs import Plan
from nest_core.costs.head_room import MemorySpread, at_most
from nest_core.documents.errors import InputError
from nest_core.planner import ORDERS, search

SOME = (
    "KORTH-002",  # sequence parallelism
    "MLM20-002",  # nothing but full recomputation
    "ZBPP-046",  # a schedule that is not searched
    "MPT-061",
    "MPT-180",  # fits, not surely
    "TITAN-032",  # FSDP2, fp8
    "MBRIDGE-005",  # a mixture, unstated recomputation
)


@pytest.fixture(scope="module")
def rows():
    return read_runs((SUBSET / "train_measurements.csv").read_text(), "t.csv")[0]


@pytest.fixture(scope="module")
def found(rows):
    predictions, _ = predict_rows(rows)
    chosen = [group for group in groups(predictions) if group.best.run.id in SOME]
    return {group.best.run.id: optimum(group) for group in chosen}


@pytest.mark.parametrize("name", SOME)
@pytest.mark.sampled(7)
def test_a_ratio_is_the_product_of_its_parts(found, name):
    item = found[name]
    assert math.prod(item.parts) == pytest.approx(item.ratio, rel=1e-12)
    assert item.ratio == item.best.iteration_s / item.group.best.outcome.seconds
    assert item.parts[0] == pytest.approx(1 + item.group.best.error, rel=1e-12)


@pytest.mark.parametrize("name", SOME)
def test_no_measured_plan_of_the_space_is_priced_under_the_optimum(found, name):
    item = found[name]
    assert item.proven
    assert not item.contradiction
    assert item.parts[2] <= 1.0
    assert item.parts[1] <= 1.0 + 1e-9 or item.outside


def test_why_a_measured_plan_is_not_searched(found):
    assert found["KORTH-002"].outside == found["TITAN-032"].outside == ()
    assert found["ZBPP-046"].outside == ("schedule zb_2p", "does not fit surely")
    assert found["MPT-180"].outside == ("does not fit surely",)


def test_axes_that_the_space_lacks_are_named(found):
    run = found["KORTH-002"].group.best.run
    problem, space = planning_problem(run, MemorySpread("all", 0.0, 0, 0)), space_of(run)
    mine = predict(run)
    assert outside(problem, space, mine) == ()
    narrow = replace(space, tp=(1,), recompute=("none",), schedules=("gpipe",))
    assert outside(problem, narrow, mine) == (
        "tp 8",
        "schedule 1f1b",
        "recomputation of selective",
    )
    order = ("tp", "pp", "dp", "cp")
    mixed = replace(mine.plan.point, tp=2, etp=2, dp=2, pp=2, micro_batch=1, order=order)
    cuts = (0, 20, problem.layers)
    moved = replace(mine, plan=Plan(mixed, cuts, 2 * mine.plan.recompute))
    found = outside(problem, replace(space, orders=ORDERS[:1]), moved)
    assert "rank order tp-pp-dp-cp" in found
    assert "rank order tp-pp-dp-cp" not in outside(problem, space, moved)


def test_a_price_under_the_optimum_is_a_contradiction(found):
    """And the document calls it a defect; where the plan is not searched it is none."""
    item = found["KORTH-002"]
    slower = replace(item, best=replace(item.best, iteration_s=2.0 * item.mine.iteration_s))
    assert slower.contradiction
    assert "KORTH-002 priced under the optimum: a defect" in optima_part([slower], [], "t.csv")
    assert "none of them is priced under" in optima_part([item], [], "t.csv")
    assert replace(item, best=None).contradiction
    assert not replace(slower, outside=("tp 8",)).contradiction
    assert not replace(slower, proven=False).contradiction


def test_optima_fit_surely(found):
    for item in found.values():
        room = module.accelerator_of(item.group.best.run.accelerator).memory_bytes
        assert item.needed_bytes <= at_most(room, item.memory.sd)


def test_settings_of_a_source_are_those_of_its_runs(found):
    item = found["MLM20-002"]
    run, every = item.group.best.run, space_of(item.group.best.run)
    space = as_used(every, [run])
    assert (space.zero, space.recompute, space.sp, space.pp) == ((0,), ("full",), (False,), (1,))
    assert space.tp == every.tp == (1, 2)
    other = replace(run.point, tp=1, pp=2, sp=True, zero=2)
    wide = as_used(every, [run, replace(run, point=other, recompute="")])
    assert (wide.zero, wide.sp, wide.pp) == ((0, 2), (False,), every.pp)
    assert wide.recompute == every.recompute
    assert as_used(every, [replace(run, point=replace(run.point, sp=True, tp=2))]).sp == (
        False,
        True,
    )
    assert item.beyond


def test_what_optima_have_beyond_a_source_is_named(found):
    """Exactly the settings that its space, narrowed to what was used, lacks."""
    for item in found.values():
        used = as_used(space_of(item.group.best.run), item.group.source)
        point = item.best.plan.point
        assert ("sequence parallelism" in item.beyond) == (point.sp not in used.sp)
        assert any("ZeRO" in word for word in item.beyond) == (
            point.zero not in used.zero and point.sharers > 1
        )
        if not item.beyond:
            assert item.parts[2] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", ["TITAN-032", "MPT-061", "MBRIDGE-005"])
def test_bounds_of_runs_are_bounds(rows, name):
    """Seconds and bytes of so many sequences are never under so many times those of one."""
    run = next(row.run for row in rows if row.run.id == name)
    problem = planning_problem(run, MemorySpread("all", 0.0, 0, 0))
    slack = 1 + 1e-9
    for sp, ep, etp in ((False, 1, 2), (True, 8 if run.experts > 1 else 1, 1)):
        least = problem.lower_bound(2, sp, 1, ep, etp)
        for size in (1, 2, 4):
            table = problem.table(2, sp, size, 1, ep, etp)
            for column in ("compute_s", "replay_s", "kept_bytes", "working_bytes"):
                bound = size * getattr(least, column)
                assert (getattr(table, column) * slack >= bound).all(), column
            for axis, calls in table.calls.items():
                assert (calls.bytes * slack >= size * least.calls[axis].bytes).all()


def test_bounds_change_no_optimum(found):
    item = found["TITAN-032"]
    run = item.group.best.run
    problem = replace(planning_problem(run, item.memory), lower_bound=None)
    assert search(problem, space_of(run)).best == item.best


def test_a_group_is_one_job_by_whatever_name(one: Callable[..., MeasuredRow]):
    """The fastest of quality A and B counts, from whatever source."""
    slow, fast = one(id="S", iter_time_s="2.0"), one(id="F", model="Mine", source="there/x")
    other = one(id="O", global_batch_seqs="128.0", iter_time_s="1.0")
    doubtful = one(id="D", iter_time_s="0.5", quality="C")
    untimed = one(id="U", iter_time_s="")
    predictions, _ = predict_rows([slow, fast, other, doubtful, untimed])
    first, second = groups(predictions)
    assert (first.best.run.id, first.runs) == ("F", 2)
    assert (second.best.run.id, second.runs) == ("O", 1)
    assert first.source == (fast.run,)
    assert {run.id for run in second.source} == {"S", "O", "D", "U"}


def test_memory_of_a_source_is_left_out_of_what_holds_for_it(one: Callable[..., MeasuredRow]):
    near = [one(id=f"N{n}", source="near/x", iter_time_s="2.0") for n in range(5)]
    far = one(id="F", source="far/x", global_batch_seqs="128.0", mem_GB_per_gpu="70.0")
    predictions, _ = predict_rows([*near, far])
    by_source = {group.best.run.source: group.others for group in groups(predictions)}
    own = abs(math.log1p(predictions[0].memory_error))
    assert by_source["far/x"].sd == pytest.approx(own, abs=1e-4)
    assert by_source["near/x"].runs == 0


def test_what_cannot_be_searched_says_why(found, monkeypatch):
    def refuses(*_: object, **__: object) -> None:
        raise InputError("search.tp", "must be one", 2, "take one")

    monkeypatch.setattr(module, "search", refuses)
    missed = found_or_why(found["KORTH-002"].group)
    assert missed == Unread("KORTH-002", "search.tp must be one, but is 2: take one.")
    assert "KORTH-002 is not searched: search.tp must be one" in optima_part([missed], [], "t.csv")


def with_memory(item, error: float) -> Prediction:
    best = item.group.best
    used = best.comparable_bytes / (1.0 + error)
    return replace(best, outcome=MeasuredOutcome(best.outcome.seconds, used, "device"))


def test_optima_are_held_against_the_errors_of_their_own_source(found):
    """One that fills 90 % does not fit where the source's rows hold 20 % more than predicted."""
    item = found["KORTH-002"]
    room = module.accelerator_of(item.group.best.run.accelerator).memory_bytes
    full = replace(item, needed_left_out_bytes=0.9 * room)
    more = replace(with_memory(item, 0.0), memory_bytes=room, counted_bytes=())
    errors = [
        replace(more, outcome=MeasuredOutcome(1.0, room * factor, "device"))
        for factor in (1.2, 1.0, 0.9)
    ]
    text = optima_part([full], errors, "t.csv")
    assert "33.3% do not fit" in text
    assert "| arXiv:2205.05198 | 1 | 3 | 90% | 33% |" in text


def test_the_part_of_the_document(found):
    text = optima_part([*found.values(), Unread("x", "y")], [], "t.csv")
    assert f"- {len(found)} groups of" in text
    line = next(line for line in text.splitlines() if line.startswith("| all |"))
    *_, error, plan, settings = (float(cell) for cell in line.strip("| ").split(" | ")[1:])
    ratios = [item.ratio for item in found.values()]
    mean = math.prod(ratios) ** (1 / len(ratios))
    assert error * plan * settings == pytest.approx(mean, abs=0.02)
    assert "**volta, dense, megatron-lm-2021, one node**, 0." in text
    assert "- *megatron-lm-2021*: most of its runs" in text
    assert "*mixture of experts*" not in optima_part([found["TITAN-032"]], [], "t.csv")
    assert "**h100, dense, torchtitan-2025, several nodes**" in text


@pytest.mark.check
def test_regenerating_leaves_other_parts_alone(found, monkeypatch, tmp_path):
    document = tmp_path / "validation.md"
    document.write_text("# Validation\n\nOf others.\n")
    monkeypatch.setattr(regenerate, "DOCUMENT", document)
    monkeypatch.setattr(regenerate.validate_training, "SHARED", SUBSET)
    monkeypatch.setattr(regenerate, "groups", lambda _: [])
    assert run(["regenerate", "optima"]) == 0
    assert document.read_text().startswith(f"# Validation\n\nOf others.\n\n{OPTIMA_MARK}\n\n## Opt")
    assert run(["regenerate", "optima", "--fit"]) == 2
    monkeypatch.setattr(regenerate.validate_training, "SHARED", tmp_path)
    assert run(["regenerate", "optima"]) == 2
