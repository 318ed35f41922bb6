"""The worked example of docs/method.md, number by number.

The tables are read from the page; plans are priced by `nest_core.costs.price`, and the recurrence
is written out here once more, over every cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from nest_core.costs import LayerTable, Plan, Point, Problem, StateBytes, price
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.planner import ORDERS, SearchSpace, search

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "method.md"
_SECONDS = (6.0, 6.0, 3.0, 5.0)
_UNITS = (0.0, 3.0, 2.0, 2.0, 0.0)
_MICRO_BATCHES = 4
_EXACT = {"rel": 0, "abs": 1e-12}


def _table(name: str) -> list[dict[str, str]]:
    """Rows of the table that follows a marker; bold is only for the eye."""
    text = _PAGE.read_text(encoding="utf-8")
    marked = re.search(rf"<!-- blackboard: {re.escape(name)} -->\n((?:\|.*\n)+)", text)
    assert marked, f"docs/method.md has no table {name!r}"
    cells = [
        [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
        for line in marked.group(1).splitlines()
    ]
    head, _, *rows = cells
    return [dict(zip(head, row, strict=True)) for row in rows]


def _problem() -> Problem:
    tiers = (Tier("node", 2, 2.0, 0.0, "device"), Tier("rack", 2, 1.0, 0.0, "child"))
    nothing, none = np.zeros(4), np.zeros((3, 4))
    chain = LayerTable(
        compute_s=np.array(_SECONDS),
        forward_s=nothing,
        weight_s=nothing,
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=np.array(_UNITS),
    )
    return Problem(
        network=collapse(Hierarchical("blackboard", tiers)),
        table=lambda tp, sp, micro_batch, cp, ep, etp: chain,
        batch=_MICRO_BATCHES,
        tokens=1,
        memory_bytes=float("inf"),
        reserved_bytes=0.0,
        state=StateBytes(0.0, 0.0, 0.0),
        update_Bps=1.0,
        model_flops=0.0,
        peak_flops=1.0,
    )


def _search(pp: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
    space = SearchSpace(
        tp=(1,), sp=(False,), dp=(1,), pp=pp, micro_batch=(1,), zero=(0,), recompute=("none",)
    )
    best = search(_problem(), space).best
    assert best is not None
    return best.iteration_s, best.plan.cuts


def _numbers(cell: str) -> tuple[float, ...]:
    return tuple(float(number) for number in cell.split())


def _plan(cuts: Sequence[int]) -> Plan:
    stages = len(cuts) - 1
    return Plan(Point(1, False, 1, stages, 1, 0, ORDERS[0]), tuple(cuts), ("none",) * stages)


def test_the_page_lists_every_plan():
    listed = [tuple(map(int, row["cuts"].split())) for row in _table("plans")]
    every = [
        (0, *inner, 4) for stages in range(1, 5) for inner in combinations((1, 2, 3), stages - 1)
    ]
    assert sorted(listed) == sorted(every)


@pytest.mark.parametrize("row", _table("plans"), ids=lambda row: row["cuts"])
def test_every_row_is_what_its_plan_costs(row):
    cuts = tuple(map(int, row["cuts"].split()))
    assert int(row["pp"]) == len(cuts) - 1
    report = price(_problem(), _plan(cuts))
    loads = [stage.micro_batch_s for stage in report.stages]
    assert loads == pytest.approx(_numbers(row["loads"]), **_EXACT)
    assert sum(loads) == pytest.approx(float(row["sum"]), **_EXACT)
    assert max(loads) == pytest.approx(float(row["max"]), **_EXACT)
    assert report.iteration_s == pytest.approx(float(row["sum + 3 max"]), **_EXACT)


def _best(cap: float) -> dict[tuple[int, int], float]:
    """The recurrence for three stages on devices 0, 1 and 2; unreachable cells are left out."""
    hop = {1: 0.5, 2: 1.0}  # seconds per unit over the link into a stage

    def load(stage: int, first: int, end: int) -> float:
        arrives = hop[stage] * _UNITS[first] if stage > 0 else 0.0
        returns = hop[stage + 1] * _UNITS[end] if stage < 2 else 0.0
        return sum(_SECONDS[first:end]) + arrives + returns

    @cache
    def least(stage: int, first: int) -> float:
        if stage == 3:
            return 0.0 if first == 4 else float("inf")
        return min(
            (
                load(stage, first, end) + least(stage + 1, end)
                for end in range(first + 1, 5)
                if load(stage, first, end) < cap
            ),
            default=float("inf"),
        )

    reachable = [(0, 0)] + [(stage, first) for stage in (1, 2) for first in range(stage, 4)]
    return {cell: least(*cell) for cell in reachable if least(*cell) < float("inf")}


@pytest.mark.parametrize(("name", "cap"), [("T = inf", float("inf")), ("T < 13", 13.0)])
def test_the_recurrence_fills_the_table(name, cap):
    written = {
        (int(row["σ"]), first): float(row[f"i = {first}"])
        for row in _table(f"best, {name}")
        for first in range(4)
        if row[f"i = {first}"]
    }
    assert written == pytest.approx(_best(cap), **_EXACT)


def test_nothing_is_left_below_ten():
    assert (0, 0) not in _best(10.0)


def test_the_planner_weighs_sum_and_bottleneck():
    assert _search((1, 2, 3, 4)) == (pytest.approx(57.0, **_EXACT), (0, 1, 2, 4))


@pytest.mark.parametrize("pp", [1, 2, 3, 4])
def test_the_planner_finds_the_best_of_each_depth(pp):
    rows = [row for row in _table("plans") if int(row["pp"]) == pp]
    best = min(rows, key=lambda row: float(row["sum + 3 max"]))
    seconds, cuts = _search((pp,))
    assert seconds == pytest.approx(float(best["sum + 3 max"]), **_EXACT)
    assert cuts == tuple(map(int, best["cuts"].split()))


def test_the_least_bottleneck_and_the_least_sum_both_lose():
    rows = _table("plans")
    seconds = {row["cuts"]: float(row["sum + 3 max"]) for row in rows}
    for column in ("sum", "max"):
        alone = min(rows, key=lambda row: float(row[column]))
        assert seconds[alone["cuts"]] > min(seconds.values())
    narrowest = min(rows, key=lambda row: float(row["max"]))
    assert seconds[narrowest["cuts"]] == _search((4,))[0] == pytest.approx(57.5)
