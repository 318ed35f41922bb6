"""Cards, alternatives and one iteration: what they draw adds up, and says what the core says."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest

from nest_core.costs.communication import iteration_parts, lost, report_parts
from nest_core.costs.head_room import MemorySpread
from nest_core.costs.interval import Interval
from nest_core.planner import Certificate, search
from nest_core.reliability.process import Shares
from nest_core.report.explain.training import Training
from nest_core.report.figures import MethodRow
from nest_core.report.figures.alternatives import alternatives_table
from nest_core.report.figures.cards import (
    Reference,
    iteration_part,
    memory_card,
    mfu_card,
    plan_pills,
    throughput_card,
    training_card,
)
from nest_core.scenario import load_scenario

SMALL = "gpt3-175b-64-h100"
FEW = ("search.tp=8", "search.zero=[0,1]", "search.micro_batch_sequences=[1,2]")
INTERVAL = Interval(10.0, 0.05)


@functools.cache
def planned(*more):
    problem = (scenario := load_scenario(SMALL, [*FEW, *more])).problem()
    return problem, search(problem, scenario.space).best


@pytest.mark.parametrize("more", [(), ('search.schedule="interleaved"',)])
def test_the_parts_of_an_iteration_add_up_to_it_and_what_is_lost_to_the_peak(more):
    problem, best = planned(*more)
    parts = iteration_parts(problem, best)
    assert parts[0].name == "compute"
    assert sum(part.seconds for part in parts) == pytest.approx(best.iteration_s)
    assert sum(part.seconds for part in report_parts(best)) == pytest.approx(best.iteration_s)
    assert best.mfu + sum(share for _, share in lost(best, parts)) == pytest.approx(1.0)
    assert {part.name: part.level for part in parts}["tensor"] == "node"
    drawn = iteration_part(parts, best.iteration_s, "")
    assert all(f"<b>{part.name}</b>" in drawn for part in parts[1:])


def test_pills_say_every_degree():
    _, best = planned()
    pills = dict(re.findall(r"<i>([^<]*)</i> ([^<]*)<", plan_pills(best, 64)))
    point = best.plan.point
    assert (pills["tp"], pills["pp"], pills["dp"]) == (str(point.tp), str(point.pp), str(point.dp))
    assert pills["devices"] == "64 of 64"


def run_of(days, share=1.0):
    """A run on 64 devices; what failures take is all repair."""
    losses = (0.0, 0.0, 0.0, 1 - share, 0.0)
    goodput = SimpleNamespace(shares=Shares(share, losses, 0.0), span=(share, share))
    return Training(1e12, 1e12 / (share * days * 86_400), 1.0, 64, INTERVAL, goodput)


@pytest.mark.parametrize(
    ("slower", "said"), [(1.2, "1.20 ×"), (1.0017, "tie"), (0.8, "0.80 ×"), (None, "no plan")]
)
def test_throughput_is_held_against_the_reference(slower, said):
    mine = run_of(10.0)
    rival = run_of(10.0 * slower) if slower else None
    card = throughput_card(mine.tokens_per_s, INTERVAL, Reference("<Mine>", rival))
    assert said in card
    assert "<Mine>" not in card
    assert "&lt;Mine&gt;" in card


def test_days_cost_devices_times_hours_times_the_price_and_nothing_without_one():
    card = training_card(run_of(10.0, 0.9), 2.0, Reference("Manual", run_of(20.0)))
    for words in (
        '"nest-big ">10.0 <',
        "9.38 to 10.7 days",
        "9.00 days without failures",
        "waiting for repair 24.0 h",
        "$30.7 k",
        "$28.8 to $32.8 k",
        "Manual: 20.0 days, $61.4 k",
        "saves 10.0",
    ):
        assert words in card
    assert "$" not in training_card(run_of(10.0), None, Reference("Manual", run_of(20.0)))
    brief = training_card(run_of(0.5), None, Reference("Manual", run_of(1.0)))
    for words in (
        "Time to train",
        "12.0",
        "11.3 to 12.8 h",
        "next to nothing lost to failures",
        "Manual: 1.00 days",
        "saves 12.0 h",
    ):
        assert words in brief


def test_utilisation_tells_the_rate_of_a_device_and_every_loss():
    card = mfu_card(0.5, (0.45, 0.55), 1e15, (("kernels", 0.3), ("tensor", 0.2)), "Megatron-LM")
    for words in ("Megatron-LM’s log: 500 TFLOP/s per GPU", "45.0 to 55.0", "−30", "−20"):
        assert words in card


@pytest.mark.parametrize("count", range(1, 8))
def test_names_of_losses_have_room(count):
    """They stood at 10 px where the card is narrow: at 12 px "pipeline" is wider than a column."""
    lost = [("pipeline", 0.5 / count)] * count
    card = mfu_card(0.5, (0.45, 0.55), 1e15, lost, "")
    name = r'left:calc\(([\d.]+)% [^"]*;top:([\d.]+)px">(?:peak|pipeline|MFU)<'
    rows = defaultdict(list)
    for at, top in re.findall(name, card):
        rows[top].append(float(at))
    assert sum(map(len, rows.values())) == count + 2
    gaps = [after - before for row in rows.values() for before, after in pairwise(row)]
    assert min(gaps) > 19.9  # per cent of 268 px at 1,280
    # One row in a wide window, of 318 px at 1,440.
    assert (" low" not in card) or 318 / (count + 2) > 45


@pytest.mark.parametrize(("needed", "said"), [(80.0, ">50"), (40.0, "&gt; 99"), (160.0, ">0")])
def test_memory_fits_as_likely_as_its_spread_says(needed, said):
    card = memory_card(
        needed * 2**30, 80 * 2**30, MemorySpread("megatron", 0.06, 80, 8), "stage 3 is fullest"
    )
    assert said in card
    assert "stage 3 is fullest: " in card
    assert ("--limit" in card.split("clip-path")[-1]) or needed < 80


def test_identical_plans_share_a_row_and_bars_are_as_long_as_rates():
    _, best = planned()
    slow = replace(
        best,
        iteration_s=2 * best.iteration_s,
        samples_per_s=best.samples_per_s / 2,
        plan=replace(best.plan, point=replace(best.plan.point, zero=3)),
    )
    rows = (
        MethodRow("Exact search (ours)", best),
        MethodRow("Twin", best),
        MethodRow("Slow", slow),
        MethodRow("None", None, "does not fit"),
    )
    proof = Certificate(best.iteration_s, 0.0, True, 1234, 1234, 0, 0, load_scenario(SMALL).space)
    table = alternatives_table(rows, 2048, INTERVAL, "Slow", proof)
    assert "Exact search is 1e+02 % faster" not in table
    assert "Exact search is 100 % faster than Slow; Twin finds the same plan here" in table
    assert "= Twin" in table
    assert table.count("<tr") == 4
    assert "none of 1,234 plans is faster" in table
    widths = re.findall(r"left:0%;top:1px;width:([\d.]+)%", table)
    assert float(widths[0]) == pytest.approx(2 * float(widths[1]), abs=0.01)
    early = alternatives_table(
        (replace(rows[0], report=slow), MethodRow("Twin", best)),
        2048,
        INTERVAL,
        "Twin",
        replace(proof, proven=False, gap=0.5, ended="after its share of work"),
    )
    assert "Twin is 100 % faster than what the search had found when it stopped" in early
    assert (
        "search stopped after its share of work: best so far, optimum at most 100 % faster" in early
    )
    assert "plans is faster" not in early
