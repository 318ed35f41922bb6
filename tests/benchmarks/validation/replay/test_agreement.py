"""Prices beside replays: what a row says, and what the document says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.validation.replay.agreement import Agreement, Case, compared
from benchmarks.validation.replay.document import replay_part, summary
from nest_core.costs import IDEAL_OVERLAP, NO_OVERLAP
from nest_core.costs.parse import read_plan
from nest_core.scenario import load_scenario


def case(text: str, overlap=NO_OVERLAP) -> Case:
    problem = load_scenario("llama2-7b-64-h100", ["workload.global_batch_sequences=64"]).problem()
    plan = read_plan(text, problem.layers, problem.network.devices)
    return Case("shipped", "llama", replace(problem, overlap=overlap), plan)


def test_one_kind_of_traffic_meets_no_other():
    row = compared(case("dp=64,zero=1"))
    assert row.contention == pytest.approx(0.0, abs=1e-9)
    assert row.is_near
    assert row.alone == {}


def test_gradients_that_hide_meet_calls_of_layers():
    row = compared(case("dp=4,tp=16,sp=true,zero=2", IDEAL_OVERLAP))
    assert row.contention > 0
    assert row.difference == row.simulated_s / row.planned_s - 1


def agreement(difference: float, contention: float, overlap: str = "none") -> Agreement:
    return Agreement("drawn", "fabric", "dp 2", overlap, 2.0, 2 * (1 + difference), contention, {})


@pytest.mark.parametrize(
    ("difference", "contention", "is_near"),
    [(0.02, 0.0, True), (-0.04, 0.0, False), (0.04, 0.01, True), (0.11, 0.01, False)],
)
def test_more_is_asked_where_nothing_meets(difference, contention, is_near):
    assert agreement(difference, contention).is_near == is_near


def test_the_document_counts_what_agrees_and_lists_the_rest():
    rows = [agreement(0.01, 0.0), agreement(0.2, 0.05), agreement(-0.01, 0.0, "ideal")]
    assert [cells[:5] for cells in summary(rows)] == [
        ["drawn", "none", "2", "1", "10.50%"],
        ["drawn", "ideal", "1", "1", "1.00%"],
    ]
    part = replay_part(rows)
    assert part.startswith("## Replay")
    assert part.count("| fabric: dp 2 |") == 4  # three rows, one of them further off
    assert "+20.00%" in part
