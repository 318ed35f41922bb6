"""What the tables of Why and the figures above a plan say is so, over made-up outcomes.

Choices that tie, that cost nothing, that are faster than a plan whose search was stopped, axes
without a plan, searches that ended before their proof. A title that no rule knows is a failure too.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest
from percent_columns import uneven
from why_cases import DENSE, PLANS, priced, scenario

from nest_core.costs.head_room import spread_of
from nest_core.documents.units import humanise_bytes
from nest_core.planner.baselines import Baseline
from nest_core.planner.shadow import HeadRoom
from nest_core.report.explain import difference, fullest_words
from nest_core.report.explain.axes import AXES, NextBest
from nest_core.report.explain.binding import Gain, bindings
from nest_core.report.explain.headlines import headlines
from nest_core.report.explain.validity import validity_of
from nest_core.report.explain.words import (
    axes_table,
    binding_table,
    head_room_table,
    memory_table,
    shadow_table,
    terms_table,
    why_line,
)
from nest_core.report.figures.cards import memory_card, mfu_card
from nest_core.studies.uncertainty import interval_of

CASES = [case for case, (name, _) in PLANS.items() if name == DENSE]
SEEDS = 400


def share(text):
    return float(text.replace("−", "-").replace(",", "")) / 100


def reads(value, text):
    """Whether a figure in per cent is a share, rounded to the decimals that it has."""
    decimals = len(text.partition(".")[2])
    return abs(value - share(text)) <= 0.501 * 10.0 ** -(decimals + 2)


def is_near(value, wanted):
    return value == pytest.approx(wanted, rel=0.006, abs=6e-6)


def outcomes(draw, ours):
    """Next-best choices, some of them alike, unproven, or without a plan."""
    found = []
    for axis in draw.sample(list(AXES), draw.randint(0, 6)):
        proven = draw.random() < 0.8
        if draw.random() < 0.25:
            found.append(NextBest(axis, "1", None, None, proven, "it does not fit"))
            continue
        more = draw.choice((0.0, 1e-9, 0.0007, 0.05, 0.05, 0.31, -0.02))
        report = replace(priced(draw.choice(CASES))[1], iteration_s=ours.iteration_s * (1 + more))
        found.append(NextBest(axis, "1", report, more, proven))
    return found


def holds_of_axes(title, found):
    costs = {AXES[entry.axis]: entry for entry in found if entry.report is not None}
    without = {AXES[entry.axis] for entry in found if entry.report is None}
    if title == "The search leaves no other choice on any axis":
        return not found
    if match := re.fullmatch(
        r"(There is no plan|No plan was found) without our choice of (.+)", title
    ):
        names = set(re.split(r", | and ", match[2]))
        is_proven = all(entry.proven for entry in found)
        return not costs and names == without and is_proven == (match[1] == "There is no plan")
    first, _, rest = title.partition("; another ")
    most = max(entry.difference for entry in costs.values())
    least = min(entry.difference for entry in costs.values())
    if rest:
        match = re.fullmatch(r"(.+) (saves|costs|costs at most) (\S+) %", rest)
        cheap = costs[match[1]]
        at_most = match[2] == "costs at most"
        assert (is_near if at_most else reads)(
            abs(cheap.difference), share(match[3]) if at_most else match[3]
        )
        assert is_near(cheap.difference, least)
        assert (match[2] == "saves") == (least < 0)
        assert cheap.proven or match[2] != "costs" or least <= 0
    else:
        assert is_near(most, least)
    if match := re.fullmatch(r"No other choice( that has a plan)? costs anything", first):
        return most < 5.1e-6 and (match[1] is not None) == bool(without)
    match = re.fullmatch(
        r"(.+) 1 matters most( of what can be else)?: the best plan( found)? with (.*) takes "
        r"(\S+) % (less|longer)(?:, as one without our choice of (.+))?",
        first,
    )
    names = [name for name, entry in costs.items() if is_near(entry.difference, most)]
    named = [match[1].lower(), *(re.split(r", | and ", match[7]) if match[7] else ())]
    (dear,) = (costs[name] for name in costs if name.lower() == named[0])
    return (
        {name.lower() for name in named} == {name.lower() for name in names}
        and (match[2] is not None) == bool(without)
        and (match[3] is None) == dear.proven
        and is_near(abs(most), share(match[5]))
        and (match[6] == "less") == (most < 0)
    )


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_said_of_next_best_choices_is_so(seed):
    draw = random.Random(seed)
    found = outcomes(draw, priced(draw.choice(CASES))[1])
    table = axes_table(found)
    assert holds_of_axes(table.title, found), (table.title, found)
    assert not uneven(table.rows)
    figures = {row["Costs"].lstrip("−") for row in table.rows if "Costs" in row}
    assert set(re.findall(r"(?:takes|saves|costs) (\S+ %)", table.title)) <= figures


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_said_of_shadow_prices_is_so(seed):
    draw = random.Random(seed)
    names = ["memory", "bandwidth.node", "bandwidth.leaf", "bandwidth.spine"]
    prices = {
        name: draw.choice((None, 0.0, 1e-9, 0.0008, 0.003, 0.003))
        for name in draw.sample(names, draw.randint(1, 4))
    }
    gains = {name: Gain("1 % more", draw.choice((0.001, 0.0123, 0.35))) for name in names[1:3]}
    table = shadow_table(prices, gains)
    assert not uneven(table.rows)
    title = table.title
    proven = [price for price in prices.values() if price is not None]
    is_all = len(proven) == len(prices)
    top = max(proven, default=0.0)
    if match := re.fullmatch(r"1 % more of no one resource is (proven )?worth anything", title):
        assert top < 5.1e-6
        assert (match[1] is None) == is_all
        return
    match = re.fullmatch(
        r"1 % more (.+) is worth (\S+) % of throughput, (of what is proven )?no other bandwidth or "
        r"memory more",
        title,
    )
    key = "memory" if match[1] == "device memory" else f"bandwidth.{match[1].split()[0]}"
    assert prices[key] == top
    assert is_near(top, share(match[2]))
    assert (match[3] is None) == is_all


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_said_of_head_room_is_so(seed):
    draw = random.Random(seed)
    ours = priced(draw.choice(CASES))[1]
    steps = []
    for certainty in sorted(draw.sample((0.5, 0.8, 0.9, 0.95, 0.99), draw.randint(0, 4))):
        more = draw.choice((None, -0.02, 0.0, 1e-9, 0.001, 0.2))
        best = None if more is None else replace(ours, iteration_s=ours.iteration_s * (1 + more))
        steps.append(HeadRoom(certainty, 1e9, best, draw.random() < 0.8))
    table = head_room_table(steps, ours)
    assert not uneven(table.rows)
    for row, step in zip(table.rows, steps, strict=False):
        if "plan" in row:
            assert (row["The plan"] == "nothing fits") == (step.best is None and step.proven)
    surer = [step for step in steps if step.certainty > 0.95]
    title = table.title
    if title == "Nothing is known of how far memory is from what is predicted":
        assert not surer
        return
    step = surer[0]
    percents = re.findall(r"(\d+) %(?: certainty| instead)", title)
    assert str(round(100 * step.certainty)) in percents, title
    if title.endswith("is not proven"):
        assert not step.proven
    elif title.startswith("Nothing fits"):
        assert step.proven
        assert step.best is None
    else:
        more = step.best.iteration_s / ours.iteration_s - 1
        match = re.search(
            r"(costs nothing|costs (\S+) % of iteration time|takes (\S+) % less)$", title
        )
        assert step.proven
        if match[2]:
            assert is_near(more, share(match[2]))
        else:
            assert abs(more) < 5.1e-6 if not match[3] else is_near(-more, share(match[3]))


@pytest.mark.parametrize("case", list(PLANS))
def test_what_is_said_of_a_plan_that_binds_is_so(case):
    asked, report = priced(case)
    entries = bindings(asked, report)
    words = {
        "Compute": "compute", "Communication": "communication", "Memory": "memory",
        "Kernel launches": "launches", "Waiting": "bubble",
    }  # fmt: skip
    kinds = [entry.binding.kind for entry in entries]
    table = binding_table(entries, report)
    assert not uneven(table.rows)
    title = table.title
    match = re.match(
        r"(.+) binds (?:(the stage)|(\d+) of (\d+) stages(.*?)|all (\d+) stages)(?:; (.+) would "
        r"give (.+))?$",
        title,
    )
    kind = words[match[1]]
    count = kinds.count(kind)
    assert count == max(map(kinds.count, kinds))
    if match[2]:
        assert len(kinds) == 1
    elif match[6]:
        assert int(match[6]) == count == len(kinds) > 1
    else:
        assert (int(match[3]), int(match[4])) == (count, len(kinds))
        others = re.findall(r", ([a-z ]+) (\d+)", match[5])
        assert {(words[name.capitalize()], int(number)) for name, number in others} == {
            (other, kinds.count(other)) for other in kinds if other != kind
        }
    first = next(entry.binding for entry in entries if entry.binding.kind == kind)
    assert (first.gain is None) == (match[7] is None)
    for entry in entries:
        gain = re.search(r"would give (\S+) % (more|less) throughput\.$", entry.in_words)
        if gain:
            sign = 1 if gain[2] == "more" else -1
            assert is_near(entry.binding.gain, sign * share(gain[1]))
            assert gain[1][0].isdigit()
    name, part = re.fullmatch(r"(.+) takes (\S+) % of the time", why_line(report)).groups()
    terms = {term.lower(): seconds for term, seconds in report.terms}
    assert terms[name.lower()] == max(terms.values())
    assert is_near(terms[name.lower()] / report.iteration_s, share(part))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mine", CASES)
@pytest.mark.parametrize("other", CASES)
def test_what_is_said_of_another_plan_is_so(mine, other):
    ours, theirs = priced(mine)[1], priced(other)[1]
    found = difference(ours, theirs)
    title = terms_table(found).title
    times = theirs.iteration_s / ours.iteration_s
    if match := re.match(r"It takes (\S+) times as long as our plan", title):
        assert times >= 2 * (1 - 1e-9)
        assert float(match[1].replace(",", "")) == pytest.approx(times, rel=0.006)
    elif match := re.match(r"It takes (\S+) % (longer|less) than our plan", title):
        assert is_near(times - 1, (1 if match[2] == "longer" else -1) * share(match[1]))
    elif title != "This is the plan itself":
        assert title.startswith("It takes as long as our plan")
        assert abs(times - 1) < 5e-4
    limit = ours.memory_limit_bytes
    match = re.fullmatch(
        r"Its fullest stage takes (?:as much|(.+) (more|less)): (.+) of (.+)",
        memory_table(found, limit).title,
    )
    need, have = (max(stage.memory.total for stage in r.stages) for r in (theirs, ours))
    assert (match[3], match[4]) == (humanise_bytes(need), humanise_bytes(limit))
    if match[1]:
        assert match[1] == humanise_bytes(abs(need - have))
        assert (match[2] == "more") == (need > have)
    else:
        assert abs(need - have) < 1


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("times", [0.8, 0.9961, 1.0, 1.003, 1.7])
def test_what_stands_above_a_plan_is_so(case, times):
    asked, report = priced(case)
    values = scenario(DENSE)
    interval = interval_of(values, asked, report)
    slower = replace(report, iteration_s=times * report.iteration_s)
    rival = Baseline("manual", "Manual", "", slower, "", 0.0)
    estimate = validity_of(values, asked.network, report.plan)
    rows = headlines(values, report, estimate, interval, (rival,))
    rate, speed, iteration, bubble, room = rows
    tokens = report.samples_per_s * values.sequence
    assert float(rate.value.split()[0].replace(",", "")) * {
        "k": 1e3, "M": 1e6, "tokens/s": 1.0,
    }[rate.value.split()[1]] == pytest.approx(tokens, rel=0.006)  # fmt: skip
    assert float(speed.value.removesuffix(" ×")) == pytest.approx(times, abs=0.0051)
    assert speed.note.startswith("as fast as") == (abs(times - 1) < 0.005)
    mfu = re.match(r"MFU (\S+) %", iteration.note)[1]
    assert is_near(report.mfu, share(mfu))
    peak = values.accelerator.peak(values.precision)
    card = mfu_card(report.mfu, interval.around(report.mfu), peak, (), "")
    said = float(re.search(r">([0-9.,]+) TFLOP/s per GPU, whole model<", card)[1].replace(",", ""))
    assert said == pytest.approx(report.mfu * peak / 1e12, rel=0.006)
    assert is_near(report.mfu, share(re.search(r'nest-big ">(\S+) <', card)[1]))
    m = report.plan.point.micro_batches(values.batch)
    worst = max(stage.micro_batch_s for stage in report.stages)
    assert is_near(report.fill_s / (m * worst), share(bubble.value.removesuffix(" %")))
    needs = [stage.memory.total for stage in report.stages]
    most, limit = max(needs), report.memory_limit_bytes
    assert room.value == humanise_bytes(limit - most)
    words = fullest_words(report)
    match = re.fullmatch(r"stage (\d+) is fullest|(\d+) of (\d+) stages are fullest", words)
    full = [n + 1 for n, need in enumerate(needs) if humanise_bytes(need) == humanise_bytes(most)]
    if match[1]:
        assert full == [int(match[1])]
    else:
        assert (len(full), len(needs)) == (int(match[2]), int(match[3]))
    assert room.note.startswith(f"{words}: {humanise_bytes(most)} of {humanise_bytes(limit)}")
    spread = spread_of(values.stack.framework)
    card = memory_card(most, limit, spread, words)
    assert f"{words}: " in card
    said = re.search(r'nest-big ">(\S+|&gt; 99) <span class="nest-unit">%', card)
    assert (said is None) == (spread.sd == 0)
    if said:
        chance = 0.5 * (1 + math.erf(math.log(limit / most) / spread.sd / math.sqrt(2)))
        at_least = said[1].startswith("&gt; ")
        assert chance > 0.99 if at_least else abs(100 * chance - float(said[1])) <= 0.51
