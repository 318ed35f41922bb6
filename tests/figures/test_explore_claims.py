"""Titles of sweeps, highest ratios and studies, each held against its points by a rule of its own.

Points are made up: plateaus, dips, ties, points without a plan and sweeps that were given up. A
title that no rule knows is a failure too.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from nest_core.documents.schema import Parameter
from nest_core.report.figures.study import (
    is_better_low,
    ratio_rows,
    ratios_finding,
    ratios_picture,
    study_picture,
)
from nest_core.report.figures.sweep import pictures
from nest_core.studies.rows import StudyRow
from nest_core.studies.study import Study
from nest_core.studies.sweeps import Ratios, RatioStep, Sweep, TierRatios
from nest_core.studies.uncertainty import PairedRate

SEEDS = 400
GIB = 2.0**30
AXES = (
    ("oversubscription.0", "leaf oversubscription", "down : up", (1.0, 2.0, 3.0, 4.0, 8.0), True),
    ("devices", "devices", "", (8, 16, 32, 64, 128), True),
    ("zero", "ZeRO stage", "", (0, 1, 2, 3), False),
    ("memory", "memory", "GiB", (16.0, 32.0, 40.0, 80.0, 96.0), False),
    ("recompute", "recomputation", "", ("none", "selective", "full"), False),
)
SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def turned(draw, name=None):
    key, label, unit, values, is_fabric = draw.choice(
        [axis for axis in AXES if name is None or axis[0] != name]
    )
    some = tuple(sorted(draw.sample(values, draw.randint(1, len(values))), key=values.index))
    return Parameter(
        key, label, values=some, unit=unit, fabric=is_fabric, doubling=key == "devices"
    )


def plan_of(draw):
    return {
        "dp": draw.choice((4, 8)), "tp": 2, "pp": 2, "cp": 1, "ep": 1, "sp": True, "zero": 1,
        "recompute": "none", "micro_batch": 1, "schedule": "1f1b", "interleave": 1,
        "cuts": draw.choice(([0, 4, 8], [0, 5, 8])),
    }  # fmt: skip


def point_of(draw, values, rates):
    if draw.random() < 0.15:
        status = draw.choice(("memory", "invalid", "failed", "time limit"))
        needed = draw.choice((0.0, 96 * GIB)) if status == "memory" else 0.0
        return StudyRow(status, "No plan.", needed, values=values, limit_bytes=80 * GIB)
    return StudyRow(
        "solved",
        plan=plan_of(draw),
        tokens_per_s=draw.choice(rates),
        mfu=0.4,
        bubble=0.1,
        memory_bytes=draw.choice((40.0, 60.0, 60.001, 79.0)) * GIB,
        limit_bytes=80 * GIB,
        network_usd=draw.choice((1e6, 2e6, 2.5e6)),
        devices=values[0] if isinstance(values[0], int) and values[0] > 4 else 64,
        values=values,
    )


def swept(seed):
    draw = random.Random(seed)
    axes = [turned(draw)]
    if draw.random() < 0.3:
        axes.append(turned(draw, axes[0].name))
    top = draw.choice((5e5, 2e6))
    rates = [
        top * share for share in draw.choice(((1, 0.5, 0.98), (1, 0.999), (1, 1 + 1e-12, 0.9)))
    ]
    inner = axes[1].values if len(axes) > 1 else ("",)
    values = [(x, y)[: len(axes)] for y in inner for x in axes[0].values]
    if draw.random() < 0.2:  # given up on the way
        values = values[: draw.randint(1, len(values))]
    points = tuple(point_of(draw, place, rates) for place in values)
    return Sweep("made up", tuple(axes), points, True)


def words_of(axis, value):
    """The value as the axis has it in a title."""
    if axis.name.startswith("oversubscription"):
        return f"{value:g}:1"
    if axis.name in ("recompute", "zero"):
        return f"recomputation {value}" if axis.name == "recompute" else f"ZeRO {value}"
    return (
        f"{value:g} GiB"
        if axis.unit
        else f"{value:,} devices"
        if axis.name == "devices"
        else str(value)
    )


def share(text):
    return float(text.replace("−", "-").replace(",", "")) / 100


def is_near(value, wanted):
    return value == pytest.approx(wanted, rel=0.006, abs=6e-4)


def all_named(names, noun):
    """Up to two are named; of more the first, and how many others."""
    if len(names) > 2:
        return f"{names[0]} and {len(names) - 1} {noun}s"
    return " and ".join(names)


def planless_holds(title, points):
    count = sum(point.status != "solved" for point in points)
    match = re.search(r"; (\d+) of (\d+) points ha(s|ve) no plan$", title)
    if match is None:
        return count == 0
    return (int(match[1]), int(match[2])) == (count, len(points)) and (match[3] == "s") == (
        count == 1
    )


def holds_along(title, sweep):
    """Whether the title of throughput along one axis is so."""
    axis, points = sweep.x, list(sweep.points)
    solved = [point for point in points if point.status == "solved"]
    if title == "No plan fits at any of these points":
        return not solved
    names = [words_of(axis, point.values[0]) for point in solved]
    rates = [point.tokens_per_s for point in solved]
    if len(points) == 1:
        return title.endswith(f" tokens/s at {names[0]}")
    assert planless_holds(title, points), title
    first, *rest = re.sub(r"; \d+ of \d+ points ha\w+ no plan$", "", title).split("; ")
    if len(solved) > 1:
        assert plans_hold(rest, axis, solved), title
    top, low = max(rates), min(rates)
    best = {name for name, rate in zip(names, rates, strict=True) if rate > top * (1 - 1e-8)}
    worst = {name for name, rate in zip(names, rates, strict=True) if rate < low * (1 + 1e-8)}
    if match := re.fullmatch(r"Only (.+) has a plan", first):
        return names == [match[1]]
    if match := re.fullmatch(
        r"(The|Where there is a plan, the) (.+) hardly matters: throughput stays within (\S+) %",
        first,
    ):
        is_all = len(solved) == len(points)
        return (
            match[2] == axis.label
            and is_near(1 - low / top, share(match[3]))
            and 1 - low / top <= share(match[3]) * (1 + 1e-8) + 1e-9
            and (is_all == (match[1] == "The"))
        )
    if match := re.fullmatch(r"Fastest at (.+)", first):
        return set(re.split(r", | and ", match[1])) == best
    if match := re.fullmatch(r"Slowest at (.+), (\S+) % below the fastest", first):
        return set(re.split(r", | and ", match[1])) == worst and is_near(
            1 - low / top, share(match[2])
        )
    match = re.fullmatch(
        r"Throughput (falls|rises) (?:(\S+) %|(\S+)-fold) (?:\(.+\) )?from (.+?) to (.+?)"
        r"(?:, which .*)?",
        first,
    )
    times = rates[-1] / rates[0]
    ends = [names[0], names[-1]] == [match[4], match[5]]
    if match[1] == "falls":
        return ends and names[0] in best and times < 1 and is_near(1 - times, share(match[2]))
    more = times - 1 if match[2] else times
    return (
        ends
        and names[-1] in best
        and times > 1
        and is_near(more, share(match[2]) if match[2] else float(match[3]))
    )


def plans_hold(words, axis, solved):
    """Whether what is said of plans is so: they change n times, their cuts do, or they stay."""
    plans = [{key: value for key, value in p.plan.items() if key != axis.name} for p in solved]
    bare = [{key: value for key, value in plan.items() if key != "cuts"} for plan in plans]
    turns = sum(before != after for before, after in pairwise(bare))
    if turns:
        times = {1: "once", 2: "twice"}.get(turns, f"{turns} times")
        return words == [f"the plan changes {times}"]
    is_same = all(plan == plans[0] for plan in plans)
    return words == ["the plan stays" if is_same else "only the plan's cuts change"]


def holds_of_memory(title, sweep):
    known = [p for p in sweep.points if p.status == "solved"]
    if match := re.fullmatch(
        r"(As full everywhere|Fullest at (.+)): (\S+) % of a device's memory", title
    ):
        shares = {words_of(sweep.x, p.values[0]): p.memory_bytes / p.limit_bytes for p in known}
        most = max(shares.values())
        full = {name for name, value in shares.items() if f"{100 * value:.3g}" == match[3]}
        names = set(re.split(r", | and ", match[2])) if match[2] else set(shares)
        return names == full and is_near(most, share(match[3])) and (match[2] or len(known) > 1)
    needed = [p.needed_bytes for p in sweep.points if p.needed_bytes]
    if title == "96.0 GiB per device would be enough for some plan":
        return not known and min(needed) == 96 * GIB
    return title == "No point has a plan" and not known and not needed


def named(sweep, point):
    return ", ".join(
        axis.named(value) for axis, value in zip(sweep.axes, point.values, strict=True)
    )


def holds_of_plane(title, sweep):
    solved = [p for p in sweep.points if p.status == "solved"]
    if title == "No plan fits at any of these points":
        return not solved
    assert planless_holds(title, sweep.points), title
    match = re.match(r"Fastest at (.+?)( alike)?: (\S+) ([kM]?) ?tokens/s", title)
    top = max(p.tokens_per_s for p in solved)
    best = [named(sweep, p) for p in solved if p.tokens_per_s > top * (1 - 1e-8)]
    said = float(match[3].replace(",", "")) * SCALE[match[4]]
    is_so = (match[2] is None) == (len(best) == 1) and is_near(top, said)
    return is_so and match[1] == all_named(best, "other")


def holds_of_prices(title, sweep):
    solved = [p for p in sweep.points if p.status == "solved"]
    top = max(p.tokens_per_s for p in solved)
    least = min(p.network_usd for p in solved)
    if match := re.fullmatch(r"Nothing is cheaper or faster than (.+)", title):
        (one,) = (p for p in solved if named(sweep, p) == match[1])
        return one.network_usd == least and one.tokens_per_s > top * (1 - 1e-8)
    if title == "No cheaper network keeps 98 % of the throughput":
        enough = [p.network_usd for p in solved if p.tokens_per_s >= 0.98 * top]
        fastest = [p.network_usd for p in solved if p.tokens_per_s > top * (1 - 1e-8)]
        return min(enough) == min(fastest) > least
    match = re.fullmatch(
        r"(.+) keeps (\S+) % of the throughput for \$(\S+) (M) instead of \$(\S+) M", title
    )
    (one,) = (p for p in solved if named(sweep, p).lower() == match[1].lower())
    enough = [p.network_usd for p in solved if p.tokens_per_s >= 0.98 * top]
    dear = min(p.network_usd for p in solved if p.tokens_per_s == top)
    return (
        one.network_usd == min(enough) == pytest.approx(1e6 * float(match[3]), rel=6e-3)
        and is_near(one.tokens_per_s / top, share(match[2]))
        and dear == pytest.approx(1e6 * float(match[5]), rel=6e-3)
    )


def holds_of_scaling(title, sweep):
    solved = [p for p in sweep.points if p.status == "solved"]
    match = re.fullmatch(
        r"From (\S+) to (\S+) devices throughput (?:grows (\S+)-fold|falls by (\S+) %): "
        r"(\S+) % of ideal",
        title,
    )
    first, last = solved[0], solved[-1]
    times = last.tokens_per_s / first.tokens_per_s
    ends = [int(match[n].replace(",", "")) for n in (1, 2)] == [first.devices, last.devices]
    way = is_near(times, float(match[3])) if match[3] else is_near(1 - times, share(match[4]))
    ideal = times * first.devices / last.devices
    return ends and way and (match[3] is None) == (times < 1) and is_near(ideal, share(match[5]))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_titles_of_a_sweep_are_so(seed):
    sweep = swept(seed)
    rules = {
        "Training throughput against": holds_along,
        "Memory of the fullest": holds_of_memory,
        "Throughput against ideal": holds_of_scaling,
        "Throughput against the price": holds_of_prices,
    }
    for chart in pictures(sweep):
        rule = next(
            (rule for words, rule in rules.items() if chart.subtitle.startswith(words)), None
        )
        assert (rule or holds_of_plane)(chart.title, sweep), (chart.title, sweep.rows())


def is_chance(chance, words):
    """Whether a chance is told in whole percents, and neither as 0 nor as 100 where it is not."""
    if words.startswith("over"):
        return int(words[5:]) / 100 < chance < 1
    if words.startswith("under"):
        return 0 < chance < int(words[6:]) / 100
    is_near_it = abs(100 * chance - int(words)) <= 0.5
    return is_near_it and (chance in (0, 1) or 0 < int(words) < 100)


def ladder(seed):
    draw = random.Random(seed)
    limit, tiers = draw.choice((0.01, 0.02, 0.1)), []
    for number in range(draw.randint(1, 3)):
        steps, loss = [], 0.0
        for place in range(draw.randint(1, 6)):
            usd = draw.choice((None, 3e6 - 1e5 * place))
            if place and draw.random() < 0.2:  # no such fabric
                steps.append(RatioStep(1 + place / 2, "", None, (), "no such fabric"))
                continue
            if place and draw.random() < 0.15:
                steps.append(RatioStep(1 + place / 2, "2:1", None, (), "does not fit", usd))
                break
            if (
                place and draw.random() < 0.15
            ):  # as near to the limit as rounding goes, on either side
                loss = limit * draw.choice((0.999, 1 - 1e-9, 1.0, 1.001))
            trained = PairedRate(1 - loss, draw.choice((0.0, 0.005)) if place else 0.0)
            steps.append(RatioStep(1 + place / 2, "2:1", loss, (loss,), "", usd, trained))
            if loss >= limit:
                break
            loss += draw.choice((0.0, 0.004, 0.03))
        (*_, highest) = (step for step in steps if step.loss is not None and step.loss < limit)
        last = steps[-1]
        beyond = last if last.realised and last is not highest else None
        tiers.append(
            TierRatios(f"o.{number}", f"tier {number}", 1.0, tuple(steps), highest, beyond, None)
        )
    return Ratios("made up", (("model", 1.0),), limit, tuple(tiers), draw.random() < 0.8)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_said_of_ratios_is_so(seed):
    ratios = ladder(seed)
    title, chart, rows = ratios_finding(ratios), ratios_picture(ratios).title, ratio_rows(ratios)
    body, _, limit = title.rpartition(": the most that costs the mix less than ")
    assert float(limit.removesuffix(" %")) == pytest.approx(100 * ratios.limit)
    parts = re.findall(
        r"[Tt]ier (\d) (\S+):1 \(sure to ((?:over |under )?\d+) %(, and no higher was tried)?\)",
        body,
    )
    assert len(parts) == len(ratios.tiers)
    for tier, row, (_, ratio, sure, untried), words in zip(
        ratios.tiers, rows, parts, chart.split("; "), strict=True
    ):
        tried = [step for step in tier.steps if step.loss is not None or step.realised]
        borne = [step for step in tried if step.loss is not None and step.loss < ratios.limit]
        beyond = next((step for step in tried if step not in borne), None)
        assert float(ratio) == borne[-1].ratio
        assert is_chance(borne[-1].chance_below(ratios.limit), sure), (sure, borne[-1])
        assert row["sure to"] == f"{sure} %"
        # In words and in the table: what is borne costs less than the limit, what is not does not.
        assert share(row["costs"].removesuffix(" %")) < ratios.limit, row
        if beyond is not None and beyond.loss is not None:
            assert share(row["would cost"].removesuffix(" %")) >= ratios.limit, row
        assert (untried != "") == (beyond is None)
        assert f"{ratio}:1" in (row["highest"], row["highest"].replace(".0:", ":"))
        match = re.fullmatch(
            r"[Tt]ier \d (reaches|stays below|has no plan)(?: the limit)? (?:at|to) (\S+):1", words
        )
        end = beyond or borne[-1]
        assert float(match[2]) == end.ratio
        verb = "stays below" if beyond is None else "reaches" if beyond.loss else "has no plan"
        assert match[1] == verb, (words, tier)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_best_of_a_study_is_so(seed):
    draw = random.Random(seed)
    axes = [turned(draw)]
    axes += [turned(draw, axes[0].name)] if draw.random() < 0.5 else []
    metric = draw.choice(("tokens_per_s", "bubble", "network_usd"))
    study = Study("Made up", "", (), tuple(axes), (metric,), {})
    rows = [
        {
            "point": number,
            **dict(zip((axis.column for axis in axes), values, strict=True)),
            metric: draw.choice((None, 2.0, 2.0, 3.0, 5.0)),
            "meets": draw.random() < 0.7,
            "reason": "",
            "plan": "a plan",
        }
        for number, values in enumerate(
            (x, y)[: len(axes)]
            for x in axes[0].values
            for y in (axes[1].values if len(axes) > 1 else ("",))
        )
    ]
    title = study_picture(study, rows, metric).title
    valued = [row for row in rows if row[metric] is not None]
    allowed = [row for row in valued if row["meets"]]
    if title in ("No point has a plan", "No point meets the constraints"):
        assert not (valued if "plan" in title else allowed), title
        return
    match = re.fullmatch(r"(Least|Most) .+?: (\S+) .+? at (.+)", title)
    best = (min if is_better_low(metric) else max)(row[metric] for row in allowed)
    names = [
        ", ".join(axis.named(row[axis.column]) for axis in axes)
        for row in allowed
        if row[metric] == best
    ]
    assert (match[1] == "Least") == is_better_low(metric)
    assert match[3] == all_named(names, "other point"), title
    value = 100 * best if "%" in title else best
    assert float(match[2].replace(",", "").lstrip("$")) == pytest.approx(value, rel=6e-3)
