"""Every claim of a random comparison holds, and is the same in a sheet, in JSON and in a notebook.

What a claim states is held against the bills, plans and losses of the candidates, by arithmetic of
this module: costs line by line, the rule by comparing all pairs.
"""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import NamedTuple

import pytest
from random_comparisons import random_comparison

from nest_core.api.studies import comparison_result
from nest_core.documents import Claim, InputError
from nest_core.report.figures.comparison import pictures
from nest_core.report.sheet import decision_sheet
from nest_core.report.sheet.charts import (
    bill_chart,
    curve_chart,
    sensitivity_chart,
    throughput_chart,
)
from nest_core.report.sheet.sheet import differences, differences_title
from nest_core.report.sheet.words import rests_on, title, why
from nest_core.studies.decision import DecisionInputs, decide
from nest_core.studies.uncertainty import paired_sd

WIDTH = 1.2816
"""Four cases of five of a normal distribution lie within so many standard deviations."""
YEAR_H = 8766.0


class World:
    """The candidates of a comparison, priced by this module, with one thing moved."""

    def __init__(self, comparison, hours, max_loss):
        self.every = {c.name: c for c in comparison.candidates if c.report is not None}
        self.hours, self.max_loss = hours, max_loss
        first = next(iter(self.every.values()))
        self.first = first
        lacks = [{line.name for line in c.owned.lines if not line.usd} for c in self.every.values()]
        self.priced = all(c.owned.device_usd for c in self.every.values()) and all(
            lack == lacks[0] for lack in lacks
        )

    @staticmethod
    def rate(bill):
        return bill.report.samples_per_s * bill.scenario.sequence

    def trained(self, bill, failures=1.0):
        """Tokens/s with failures, by docs/method.md: Daly's model, and Erlang's loss for spares."""
        of = bill.training.goodput.process
        assert not of.shrinks
        rate, hosts = (
            failures * sum(one for one, takes in zip(of.rates, of.takes_host, strict=True) if takes)
            if of_hosts
            else failures * sum(of.rates)
            for of_hosts in (False, True)
        )
        period = of.work_s + of.blocking_s
        kept = math.exp(-rate * of.lag_s) / math.expm1(rate * period) if rate else 0.0
        share = rate * of.work_s * kept * math.exp(-rate * of.restart_s)
        load, blocked = hosts * of.repair_s, 1.0
        for servers in range(1, of.spares + 2):
            blocked = load * blocked / (servers + load * blocked)
        return self.rate(bill) * (share * (1 - blocked) if rate else of.work_s / period)

    def usd(self, bill, device=None, years=0.0, network=0.0, energy=0.0):
        """The whole bill, line by line."""

        def at(line, place):
            end = line.usd.low if place < 0 else line.usd.high
            return line.usd.typical + abs(place) * (end - line.usd.typical)

        owned, total = bill.owned, 0.0
        for line in owned.lines:
            if line.usd is None:
                continue
            if line.yearly:
                total += at(line, energy) * (owned.years + years) / owned.years
            elif line.part in ("accelerators with servers", "spares"):
                if device is None:
                    total += line.usd.typical
            else:
                total += at(line, network)
        if device is not None:
            total += device * owned.devices * (1 + owned.spares)
        return total

    def reference(self, failures):
        """What an accelerator of the first does is worth as much in any design."""
        return self.first.owned.devices / self.trained(self.first, failures)

    def cost(self, name, hours=None, faster=(), failures=1.0, **moved):
        bill = self.every[name]
        rate = self.trained(bill, failures) * dict(faster).get(name, 1.0)
        if not self.priced:
            return 1 / rate
        share = self.hours if hours is None else hours
        work = share * rate * self.reference(failures) + (1 - share) * bill.owned.devices
        return self.usd(bill, **moved) / work

    def sd(self, one, other):
        return paired_sd(self.every[one].sureness, self.every[other].sureness)

    def follows(self, name, hours=None, faster=(), failures=1.0, **_):
        """How far the cost follows the speed: all of it, or the part that this model makes up."""
        if not self.priced:
            return 1.0
        share = self.hours if hours is None else hours
        rate = self.trained(self.every[name], failures) * dict(faster).get(name, 1.0)
        trained = share * rate * self.reference(failures)
        return trained / (trained + (1 - share) * self.every[name].owned.devices)

    def beats(self, one, other, **moved):
        ahead = math.log(self.cost(other, **moved) / self.cost(one, **moved))
        part = (self.follows(one, **moved) + self.follows(other, **moved)) / 2
        return ahead > WIDTH * part * self.sd(one, other) + 1e-9

    def best(self, max_loss=None, **moved):
        limit = self.max_loss if max_loss is None else max_loss
        names = [
            name
            for name in self.every
            if not any(self.beats(other, name, **moved) for other in self.every if other != name)
        ]
        usd = {
            key: value for key, value in moved.items() if key not in ("hours", "faster", "failures")
        }

        def tie_order(name):
            bill = self.every[name]
            lost = bill.failure.least_loss if bill.failure else math.inf
            power = sum(line.power_W.typical for line in bill.owned.lines if line.power_W)
            return lost >= limit, round(self.usd(bill, **usd), 4) * self.priced, round(power, 6)

        return min(names, key=tie_order)

    def moved(self, name, at):
        if name.startswith("speed of "):
            return {"faster": ((name.removeprefix("speed of "), math.exp(at)),)}
        return {
            "price of an accelerator": {"device": at},
            "hours on this model": {"hours": at},
            "years": {"years": at},
            "network and hall": {"network": at},
            "energy": {"energy": at},
            "worst single failure": {"max_loss": at},
            "failures": {"failures": at},
        }[name]


def holds(fact, world):
    """Whether a fact is one."""
    names, every = fact.names, world.every
    match fact.relation, fact.figure:
        case "best", _:
            return world.best() == names[0]
        case "ties", "tokens_per_s":
            ratio = world.rate(every[names[1]]) / world.rate(every[names[0]])
            return abs(math.log(ratio)) <= WIDTH * world.sd(*names) + 1e-9
        case "ties", "":
            return not world.beats(*names) and not world.beats(*reversed(names))
        case ("less" | "more") as way, figure:
            one, other = (every[name] for name in names)
            value = {
                "": lambda: world.cost(names[0]) / world.cost(names[1]) - 1,
                "tokens_per_s": lambda: world.rate(one) / world.rate(other) - 1,
                "total_usd": lambda: world.usd(one) / world.usd(other) - 1,
                "usd": lambda: world.usd(one) - world.usd(other) if world.priced else math.nan,
                "W": lambda: one.owned.power_W.typical - other.owned.power_W.typical,
            }[figure]()
            return abs(value) == pytest.approx(abs(fact.value), rel=1e-6, abs=1e-9) and (
                value < 0 if way == "less" else value >= 0
            )
        case "same", _:
            one, other = (every[name] for name in names)
            return not world.priced or world.usd(one) == pytest.approx(world.usd(other))
        case "loses", figure:
            lost = {name: bill.failure.least_loss for name, bill in every.items() if bill.failure}
            is_most = figure != "most" or max(lost.values()) < fact.value + 0.0006
            return is_most and lost[names[0]] == pytest.approx(fact.value)
        case "takes", _:
            bill = every[names[0]]
            return bill.training.tokens / world.trained(bill) / 86400 == pytest.approx(fact.value)
        case "trains", _:
            return world.rate(every[names[0]]) == pytest.approx(fact.value)
        case "reaches", _:
            return every[names[0]].at_budget.tokens_per_s == fact.value
        case "over", "price":
            bill = every[names[0]]
            takes = sum(line.price_usd.typical for line in bill.owned.network.lines)
            return takes == pytest.approx(fact.value) and takes > bill.at_budget.budget.value
        case ("open" | "unproven") as relation, _:
            faster = 1 / (1 - every[names[0]].gap)
            turned = world.best(faster=((names[0], faster),)) != world.best()
            return faster - 1 == pytest.approx(fact.value) and turned == (relation == "open")
        case "changes", what:
            gap = 1e-6 * max(abs(fact.value), 1e-3)
            sides = {world.best(**world.moved(what, fact.value + d)) for d in (-gap, 0.0, gap)}
            return world.best() == names[0] and sides >= set(names[1:]) and names[0] in sides
        case "stays", what:
            ends = {
                "hours on this model": (0.5, 0.75, 1.0),
                "network and hall": (-1.0, -0.5, 0.5, 1.0),
                "energy": (-1.0, -0.5, 0.5, 1.0),
                "years": (-0.5, 0.5, 1.0),
                "failures": (0.0, 0.5, 2.0, 4.0),
            }
            listed = [what] if what else ends if world.priced else []
            return all(
                world.best(**world.moved(name, at)) == names[0]
                for name in listed
                for at in ends.get(name, ())
            )
    raise AssertionError(f"no oracle for {fact}")


def claims_of(comparison, decision):
    charts = [chart(decision) for chart in (curve_chart, throughput_chart, bill_chart)]
    drawn = sensitivity_chart(decision)
    listed = [
        title(decision),
        *why(decision),
        differences_title(decision),
        *(chart.title for chart in charts),
        drawn.title,
        *(chart.title for chart in pictures(comparison) if isinstance(chart.title, Claim)),
    ]
    return [claim for claim in listed if isinstance(claim, Claim)]


def contradictions(seed):
    """What a random comparison says that is not so; facts of all of its claims are counted."""
    comparison, hours, max_loss = random_comparison(seed)
    try:
        decision = decide(comparison.candidates, DecisionInputs(hours, max_loss))
    except InputError:
        return 0, []
    world = World(comparison, hours, max_loss)
    claims = claims_of(comparison, decision)
    facts = [fact for claim in claims for fact in claim.facts]
    wrong = [fact for fact in facts if not holds(fact, world)]
    return len(facts), wrong + wrong_words(comparison, decision, world)


def wrong_words(comparison, decision, world):
    """Sentences without facts that are not so: of bills that are not comparable, of balance."""
    lines = {line.figure: line for line in comparison.lines()}
    bills = [lines[name] for name in ("Whole bill", "Per million tokens", "Per accelerator-hour")]
    listed = {bill.name for bill in world.every.values()}
    if not decision.left_out and not world.priced:
        wrong = [line.figure for line in bills if any(line.relative)]
    else:
        wrong = []
    table = dict(differences(decision, full=True))
    money = [cells for name, cells in table.items() if name.startswith(("Bill over", "$ per"))]
    if not world.priced:
        wrong += [cells for cells in money if any(apart for apart, _ in cells)]
        refused = "ills are not compared" in title(decision) or decision.is_open
        if len(listed) > 1 and not refused:
            wrong.append(title(decision))
        if any("for the same bill" in line or "the bill is" in line for line in why(decision)):
            wrong.append(why(decision))
    is_whole = not any(line.usd is None for bill in decision.bills for line in bill.owned.lines)
    if any("all in" in name for name in table) and not is_whole:
        wrong.append("all in")
    wrong += [words for words in sentences(comparison, decision) if not is_well_said(words, world)]
    return wrong + [
        chart.title
        for chart in pictures(comparison)
        if chart.title.startswith("Communication takes") and not balanced(chart.title, comparison)
    ]


def sentences(comparison, decision):
    """All that a page and a sheet say of a comparison, and the cells of what failures cost."""
    yield from (*claims_of(comparison, decision), *decision.unknown, *rests_on(decision))
    for name, cells in differences(decision, full=True):
        if name == "Worst single failure":
            for bill, (what, text) in zip(decision.bills, cells, strict=True):
                share = bill.failure.least_loss if bill.failure else None
                yield Loss(bill.name, what, share, text)


class Loss(NamedTuple):
    """A cell of the table: what an element that fails costs a design."""

    name: str
    element: str
    share: float | None
    text: str


VERBS = {
    "ties": "tie", "costs": "cost", "takes": "take", "loses": "lose", "is": "are", "has": "have",
    "joins": "join", "reaches": "reach", "stands": "stand", "trains": "train", "draws": "draw",
}  # fmt: skip


def is_well_said(words, world):
    """Whether names have their verbs, figures lie on their side of a bound, and none is hidden."""
    if isinstance(words, Loss):
        if words.share is None:
            return words.text == "–"
        said = -float(words.text.removesuffix(" %").replace("−", "-")) / 100
        return (said < world.max_loss) == (words.share < world.max_loss) or abs(words.share) < 5e-4
    for name in world.every:
        is_many = name.split()[0].lower() in ("two", "16", "four")
        for verb in VERBS if is_many else VERBS.values():
            if re.search(rf"(?<!and )(?<!of ){re.escape(name)} {verb}\b", words):
                return False
    if "planes's" in words or "rails's" in words or "1 other" in words:
        return False
    for most in re.findall(r"(?:may be up to|none is more than) (\S+) % faster", words):
        room = min((1 / (1 - bill.gap) - 1 for bill in world.every.values() if bill.gap), key=(
            lambda value: abs(value - float(most) / 100)
        ))  # fmt: skip
        if not room * (1 - 1e-8) <= float(most) / 100 <= room * 1.01:
            return False
    return True


def balanced(words, comparison):
    """Whether what communication takes, and who is uneven by how much, is so."""
    shares, above = {}, {}
    for bill in comparison.candidates:
        if bill.report is not None:
            stages = bill.report.stages
            spent = sum(stage.communication_s for stage in stages)
            shares[bill.name] = spent / len(stages) / bill.report.iteration_s
            loads = [stage.micro_batch_s for stage in stages]
            above[bill.name] = max(loads) * len(loads) / sum(loads) - 1
    match = re.fullmatch(
        r"Communication takes (\S+) % of an iteration in (.+?)(?:, (\S+) % in (.+?))?"
        r"(?:; stage (\d+) of (.+) lies (\S+) % above its mean)?",
        words,
    )
    most, high, least, low, number, name, apart = match.groups()
    near = {"rel": 0.006, "abs": 1e-5}
    is_so = shares[high] == max(shares.values()) == pytest.approx(float(most) / 100, **near)
    if low:
        is_so &= shares[low] == min(shares.values()) == pytest.approx(float(least) / 100, **near)
    else:
        is_so &= max(shares.values()) - min(shares.values()) <= 0.0051
    if number:
        report = next(bill.report for bill in comparison.candidates if bill.name == name)
        loads = [stage.micro_batch_s for stage in report.stages]
        is_so &= loads[int(number) - 1] == max(loads)
        return is_so and above[name] == pytest.approx(max(above.values())) == pytest.approx(
            float(apart) / 100, **near
        )
    return is_so and max(above.values()) < 0.0051


@pytest.mark.parametrize("block", range(5))
def test_every_claim_of_random_comparisons_holds(block):
    counts = 0
    for seed in range(8 * block, 8 * block + 8):
        count, wrong = contradictions(seed)
        assert not wrong, f"comparison {seed}: {wrong}"
        counts += count
    assert counts > 40


@pytest.mark.check
def test_every_claim_of_two_hundred_comparisons_holds():
    assert [(seed, wrong) for seed in range(200) if (wrong := contradictions(seed)[1])] == []


@pytest.mark.parametrize("seed", [1, 4, 9, 16])
def test_a_sheet_a_page_and_json_say_the_same_to_the_digit(seed):
    comparison, hours, max_loss = random_comparison(seed)
    decision = decide(comparison.candidates, DecisionInputs(hours, max_loss))
    sheet = decision_sheet(decision, datetime(2026, 11, 28))
    bare = html.unescape(sheet).replace("\u00a0", " ")
    assert f"<h1>{title(decision)}</h1>" in bare
    assert all(line in bare for line in why(decision))
    fields = json.loads(json.dumps(decision.to_json(), allow_nan=False))
    assert fields["best"] == decision.best.name == fields["order"][0]["name"]
    short, full = dict(differences(decision)), dict(differences(decision, full=True))
    for name, cells in short.items():
        assert cells == full[name]
        for _, text in cells:
            assert f"{text}</td>" in bare
    for row, cell in zip(fields["order"], short[days_of(decision)], strict=True):
        assert float(cell[1].replace(",", "")) == pytest.approx(row["days"], rel=6e-3)
        if difference := fields["intervals"].get(row["name"], {}).get("days"):
            assert difference["tie"] == cell[0].startswith("tie")
    limits = comparison.at({}, {"hours": hours, "max_loss": max_loss})
    again = replace(limits, candidates=comparison.candidates)
    assert str(title(decision)) in comparison_result(again).title


def days_of(decision):
    (name,) = (name for name, _ in differences(decision) if name.startswith("Days for "))
    return name


def test_a_wrong_claim_is_seen():
    """The oracle refuses what is not so."""
    comparison, hours, max_loss = random_comparison(1)
    decision = decide(comparison.candidates, DecisionInputs(hours, max_loss))
    world = World(comparison, hours, max_loss)
    facts = [fact for claim in claims_of(comparison, decision) for fact in claim.facts]
    (best, *_) = (fact for fact in facts if fact.relation == "best")
    other = next(name for name in world.every if name != best.names[0])
    assert not holds(best._replace(names=(other,)), world)
    for fact, factor in product(facts, (0.9, 1.1)):
        if fact.relation in ("less", "more", "takes", "loses") and fact.value:
            assert not holds(fact._replace(value=fact.value * factor), world)
