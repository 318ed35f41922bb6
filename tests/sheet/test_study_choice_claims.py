"""A design study chooses as Compare does, whatever its goal, and says what the choice rests on.

Members of a Pareto set are made of random comparisons, some with bills that lack a line that others
have; who is first, who ties and what moves the choice is computed by comparing all pairs.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from random_comparisons import JOBS, planned, random_comparison
from test_claims_hold import World

from nest_core.report.figures.designs import designs_picture
from nest_core.studies.comparison import Comparison
from nest_core.studies.decision import DecisionInputs, decide
from nest_core.studies.design_choice import decision_model, weigh
from nest_core.studies.design_search import DesignCertificate, Designed, Planned, pareto
from nest_core.studies.sensitivity import LEAST_HOURS, sensitivity

GOALS = ("days", "tokens_per_usd", "tokens_per_network_usd", "tokens_per_W")
NETWORK = {"nic": "NICs", "switch": "switches", "transceiver": "transceivers", "cable": "cables"}


def part_of(line):
    return NETWORK.get(line.unit, line.part) if line.part.startswith("network") else line.part


class GoalWorld(World):
    """Designs by any goal, with prices of a part moved."""

    def __init__(self, comparison, max_loss, goal):
        super().__init__(comparison, 1.0, max_loss)
        bills = self.every.values()
        lacks = [
            {x.name for x in b.owned.lines if not x.usd and x.part.startswith("network")}
            for b in bills
        ]
        can = {
            "tokens_per_usd": self.priced,
            "tokens_per_network_usd": all(lack == lacks[0] for lack in lacks),
        }
        self.goal = goal if can.get(goal, True) else "days"

    def usd(self, bill, part="", place=0.0, **moved):
        off = sum(
            place * ((line.usd.high if place > 0 else line.usd.low) - line.usd.typical) * way
            for line in bill.owned.lines
            if line.usd and part and part_of(line) == part
            for way in [1 if place > 0 else -1]
        )
        return super().usd(bill, **moved) + off

    def cost(self, name, hours=None, faster=(), failures=1.0, **moved):
        bill = self.every[name]
        rate = self.trained(bill, failures)
        if self.goal == "tokens_per_usd":
            return super().cost(name, hours, faster, failures, **moved)
        network = replace(
            bill.owned, lines=tuple(x for x in bill.owned.lines if x.part.startswith("network"))
        )
        paid = {
            "days": lambda: 1.0,
            "tokens_per_W": lambda: sum(x.power_W.typical for x in bill.owned.lines if x.power_W),
            "tokens_per_network_usd": lambda: self.usd(replace(bill, owned=network), **moved),
        }[self.goal]()
        return paid / rate

    def follows(self, name, hours=None, faster=(), **moved):
        by_hours = self.goal == "tokens_per_usd"
        return super().follows(name, hours, faster, **moved) if by_hours else 1.0


class Pool:
    """Workers that know every bill by the name of its design."""

    def __init__(self, bills):
        self.bills = bills

    @contextmanager
    def open(self):
        yield self

    def submit(self, _work, name, _scenario, *, tokens, failures):
        assert failures
        assert tokens == 1e12
        future = Future()
        future.set_result(self.bills[name])
        return future


def chosen(seed, goal):
    """A choice, its study, and the world of the same bills."""
    comparison, _, max_loss = random_comparison(seed)
    bills = [
        replace(bill, sureness=bill.sureness or sureness_of(bill))
        for bill in comparison.candidates
        if bill.report is not None
    ]
    if len(bills) < 2:
        return None
    world = GoalWorld(Comparison(tuple(bills), None), max_loss, goal)
    designs = [
        Planned(
            SimpleNamespace(
                name=bill.name,
                owned=bill.owned,
                price_usd=bill.bill.price_usd.typical
                if goal == "tokens_per_network_usd"
                else bill.owned.total_usd.typical,
                power_W=bill.owned.power_W.typical,
                changes={},
            ),
            bill.effective_tokens_per_s,
            1e12 / bill.effective_tokens_per_s / 86400,
            "a plan",
            0.0,
        )
        for bill in bills
    ]
    study = SimpleNamespace(
        members=[SimpleNamespace(scenario=bills[0].source, name="one", weight=1.0)],
        design=SimpleNamespace(goal=goal, max_loss=max_loss, tokens_T=1.0),
    )
    found = Designed(
        tuple(designs), tuple(designs), (), DesignCertificate(9, len(designs), 0, 0, 0, 0.0)
    )
    choice = weigh(study, found, Pool({bill.name: bill for bill in bills}))
    return study, found, choice, world, bills


def sureness_of(bill):
    """As it was planned: a study's members always have one."""
    every = (one for job in JOBS for one in planned(job).candidates)
    return next(one.sureness for one in every if one.report is bill.report)


SEEDS = range(21)


@pytest.mark.parametrize("goal", GOALS)
def test_a_study_chooses_what_compare_chooses(goal):
    refused = 0
    for seed in SEEDS:
        if (of := chosen(seed, goal)) is None:
            continue
        _, found, choice, world, bills = of
        first = choice.contenders[0]
        assert first.name == world.best(), (seed, goal)
        decision = decide(bills, DecisionInputs(max_loss=choice.max_loss), goal)
        assert [bill.name for bill in decision.bills] == [c.name for c in choice.contenders]
        assert choice.goal == world.goal == decision.goal
        for contender in choice.contenders:
            others = [c.name for c in choice.contenders if c is not contender]
            ties = {
                other
                for other in others
                if not world.beats(contender.name, other) and not world.beats(other, contender.name)
            }
            assert set(contender.ties) == ties
        said = "; bills are not compared: " in designs_picture(found, choice).title
        assert said == (not world.priced), (seed, goal)
        refused += said
    assert refused


@pytest.mark.parametrize("goal", ["tokens_per_usd", "tokens_per_network_usd"])
def test_what_a_study_s_choice_rests_on_is_so(goal):
    """At its centre nothing changes the choice; at the ends of prices and hours all pairs agree."""
    moved = 0
    for seed in SEEDS:
        if (of := chosen(seed, goal)) is None:
            continue
        study, _, choice, world, _ = of
        found = sensitivity(study, choice)
        assert found.choice == decision_model(study, choice).names[0] == world.best()
        for swing in found.swings:
            if swing.name.startswith("price of "):
                part = swing.name.removeprefix("price of ")
                ends = [{"part": part, "place": place} for place in (-1.0, 1.0)]
            elif swing.name == "share of the hours for these models":
                ends = [{"hours": hours} for hours in (LEAST_HOURS, 1.0)]
            else:
                continue
            at_ends = [world.best(**end) for end in ends]
            assert at_ends == [swing.low_choice, swing.high_choice], (seed, swing)
            assert swing.changes.count("The choice changes to") <= 2
            changes = {swing.low_choice, swing.high_choice} != {found.choice}
            assert not changes or swing.changes
            moved += changes
        *_, known = found.sentences
        if found.information:
            worth = max(row.worth for row in found.information)
            assert found.information[0].worth == worth > 1e-4
            assert known.endswith(f"expected to save {100 * worth:.3g} %.")
        else:
            assert known.endswith("expected to save more than 0.01 %.")
        assert (found.sentences[0].startswith("Nothing that")) == (
            not any(swing.changes for swing in found.swings)
        )
    assert moved or goal == "tokens_per_network_usd"


def test_a_bill_that_lacks_a_line_beats_no_other_in_price():
    def plan(name, price, days, missing=()):
        owned = SimpleNamespace(missing=missing)
        design = SimpleNamespace(name=name, price_usd=price, power_W=1.0, owned=owned)
        return Planned(design, 1.0, days, "a plan", 0.0)

    whole, lacking = plan("whole", 5.0, 9.0), plan("lacking", 4.0, 9.0, ("optics",))
    dear = plan("dear", 6.0, 9.0)
    assert {one.design.name for one in pareto([whole, lacking, dear])} == {"whole", "lacking"}
