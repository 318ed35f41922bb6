"""'Why not mine?' and the other figures about a plan: sums, sentences, equations, days."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from why_cases import DENSE, PLANS, priced, problem, scenario

from nest_core.costs.interval import Interval
from nest_core.costs.price import price
from nest_core.documents.errors import InputError
from nest_core.documents.failures import load_failures
from nest_core.hardware.posterior import WIDTH
from nest_core.report.explain import difference, equations, price_pasted, training
from nest_core.report.explain.words import (
    equation_table,
    memory_table,
    terms_table,
    training_headline,
    why_line,
)

ROOT = Path(__file__).resolve().parents[2]
CASES = [case for case, (name, _) in PLANS.items() if name == DENSE]


@pytest.mark.parametrize(("mine", "other"), list(itertools.permutations(CASES[:5], 2)))
def test_differences_add_up(mine, other):
    """Terms to the difference of the iterations, parts to that of the fullest stages."""
    ours, theirs = priced(mine)[1], priced(other)[1]
    found = difference(ours, theirs)
    apart = theirs.iteration_s - ours.iteration_s
    assert sum(row.difference for row in found.terms) == pytest.approx(apart)
    assert found.relative == pytest.approx(apart / ours.iteration_s)
    full = [max(stage.memory.total for stage in report.stages) for report in (ours, theirs)]
    assert sum(row.difference for row in found.memory) == pytest.approx(full[1] - full[0])
    check_reason(found, apart)
    slower = "longer" in found.sentence or "times as long" in found.sentence
    assert slower == (apart > 0)
    assert len(terms_table(found).rows) == len(found.terms) + 1
    assert memory_table(found, ours.memory_limit_bytes).rows[-1]["Part"] == "in all"


def check_reason(found, apart):
    """The first term named has the sign of the difference; what it adds or saves is the most."""
    first, _, second = found.finding.partition("; ")[2].partition(", ")
    least = 5e-4 * apart / found.relative
    for part, sign in ((first, 1 if apart > 0 else -1), (second, -1 if apart > 0 else 1)):
        signed = [sign * row.difference for row in found.terms]
        if max(signed) > least:
            largest = found.terms[signed.index(max(signed))]
            assert part.startswith(f"what {'adds' if sign > 0 else 'saves'} most is {largest.name}")
            assert f"({'+' if sign > 0 else '−'}" in part
        else:
            assert part == ""


def test_the_same_plan_and_one_that_does_not_fit_are_told():
    report = priced("pipeline")[1]
    same = difference(report, report)
    assert same.sentence == "This is the plan itself."
    assert same.relative == 0
    asked = problem(DENSE)
    tight = replace(asked, memory_bytes=2 * 2.0**30)
    misfit = price(tight, priced("whole replicas")[1].plan)
    told = difference(report, misfit).sentence
    assert told.startswith(f"It does not fit: {misfit.reason}. ")


def test_pasted_plans_are_priced_or_refused():
    asked, whole = problem(DENSE), scenario(DENSE)
    mine = price_pasted(whole, "dp=8 tp=2 pp=4 zero=1")
    assert mine.report == price(asked, mine.pasted.plan)
    command = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --lr 3"
    assert price_pasted(whole, command).pasted.ignored == ("--lr",)
    torn = str([8 * (rank % 8) + rank // 8 for rank in range(64)])
    placed = price_pasted(whole, "dp=8 tp=2 pp=4 zero=1", torn)
    assert placed.report.iteration_s > mine.report.iteration_s
    assert placed.report == price(asked, placed.pasted.plan)
    with pytest.raises(InputError, match="placement must place all 64 ranks of the plan"):
        price_pasted(whole, "dp=8 tp=2 pp=4 zero=1", "[0, 1]")
    for text, words in (
        ("tp=3", "must divide the model's 32 heads"),
        ("dp=64,tp=64", "plan.tp"),
        ("dp=7", "must divide the batch"),
        ("hello", "must read key=value"),
    ):
        with pytest.raises(InputError, match=words):
            price_pasted(whole, text)


@pytest.mark.parametrize("case", PLANS)
@pytest.mark.sampled(4)
def test_every_term_has_its_equation(case):
    """With its own seconds; figures follow; sections are those of the method's page."""
    asked, report = priced(case)
    found = equations(asked, report)
    named = {entry.name: entry for entry in found}
    assert len(named) == len(found)
    for name, seconds in report.terms:
        assert named[name].value == pytest.approx(seconds, abs=1e-12 * report.iteration_s)
    assert named["iteration"].value == report.iteration_s
    assert named["throughput"].value == report.samples_per_s
    assert found[-1].value == max(stage.memory.total for stage in report.stages)
    sections = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "method.md").read_text(), re.M)
    assert {part for entry in found for part in entry.section.split(", ")} <= set(sections)
    assert len(equation_table(found, report).rows) == len(found)
    assert why_line(report).endswith("of the time")


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number.replace(",", "")) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "min": 60}[unit]


@pytest.mark.parametrize("case", PLANS)
@pytest.mark.sampled(4)
def test_the_numbers_of_an_equation_give_its_value(case):
    """``m × (a + b) = c``, ``a + b = c``, ``(a − b) / v = c`` are true to three digits."""
    asked, report = priced(case)
    figure = r"[\d.,]+ (?:s|ms|µs|min)\b"
    for entry in equations(asked, report)[: len(report.terms) + 1]:
        left, _, right = entry.numbers.rpartition(" = ")
        value = _seconds(re.match(figure, right)[0])
        times = re.match(r"([\d,]+) × ", left)
        shares = re.search(r"\) / (\d+)$", left)
        body = left[times.end() :] if times else left
        parts = [_seconds(part) for part in re.findall(figure, body)]
        total = parts[0] - sum(parts[1:]) if "−" in body else sum(parts)
        total *= int(times[1].replace(",", "")) if times else 1
        total /= int(shares[1]) if shares else 1
        scale = max([value, *parts[:1]]) if "−" in body else value
        assert total == pytest.approx(value, abs=0.012 * scale + 1e-9), entry.in_words


def test_days_to_train_count_every_token_once():
    asked, (_, report) = scenario(DENSE), priced("pipeline")
    per_day = report.samples_per_s * asked.sequence * 86_400
    interval = Interval(report.iteration_s, math.log(1.25) / WIDTH)
    never = load_failures({"base": "llama3-405b", "complete": True, "cause": []})
    usual, asked = asked, replace(asked, failures=never)
    found = training(asked, report, 2.5 * per_day, interval)
    with_failures = training(usual, report, 2.5 * per_day, interval)
    assert with_failures.days_without_failures == pytest.approx(2.5)
    share = with_failures.goodput.shares.effective
    assert 0.9 < share < 0.999
    assert with_failures.days == pytest.approx(2.5 / share)
    assert sum(days for _, days in with_failures.parts) == pytest.approx(with_failures.days)
    low, high = with_failures.goodput.span
    ends = [
        math.hypot(math.log(1.25), math.log(high / share)),
        math.hypot(math.log(1.25), math.log(share / low)),
    ]
    assert [math.log(end * share / 2.5) for end in with_failures.span] == pytest.approx(
        [-ends[0], ends[1]]
    )
    assert found.days == pytest.approx(2.5)
    assert found.iterations * report.iteration_s == pytest.approx(2.5 * 86_400)
    assert found.device_days == pytest.approx(2.5 * asked.fabric.devices)
    assert found.span == pytest.approx((2.0, 3.125))
    headline = training_headline(found)
    assert (headline.value, headline.span) == ("2.50 days", "2.00 to 3.12 days")
    for tokens in (0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="tokens must be a positive number"):
            training(asked, report, tokens, interval)
