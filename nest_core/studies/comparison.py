"""Two to six scenarios solved and read against each other.

Every scenario is planned by itself, its whole bill drawn up (`nest_core.bill.ownership`), one
failed switch tried (`failures`), and its fabric scaled to a common budget where one is given
(`equal_budget`). Prices do not change plans: `Comparison.at` draws up other bills of the same ones.
Power with accelerators adds their design power; hosts, fans and cooling are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nest_core.bill.bill import Bill
from nest_core.bill.ownership import Owned, owned
from nest_core.bill.prices import Prices, prices_of
from nest_core.costs.price import Report
from nest_core.costs.problem import Problem
from nest_core.documents.errors import InputError
from nest_core.documents.quoting import csv_text
from nest_core.documents.schema import StudyTable, parameter
from nest_core.network.blocks import level_blocks
from nest_core.planner.baselines import Baseline, evaluate_baselines
from nest_core.scenario import Scenario, ScenarioValues
from nest_core.studies.candidate import Candidate
from nest_core.studies.comparison_table import ComparisonLine, lines
from nest_core.studies.equal_budget import AtBudget, Budget, at_budget, spent
from nest_core.studies.failures import Loss, lose_one, tiers_at_risk
from nest_core.studies.interval import sureness_of
from nest_core.studies.settings import differing, settings_of
from nest_core.studies.solving import Stop, Tell, never, silent, solve
from nest_core.studies.whole_bill import training_of
from nest_core.studies.whole_cost import DEVICE_USD

__all__ = ["BUDGET_OF", "FEWEST", "LONGEST_NAME", "MOST", "Comparison", "compare", "compared"]

FEWEST, MOST = 2, 6
LONGEST_NAME = 60
BUDGET_OF = {
    "price": parameter("budget_usd", StudyTable),
    "power": parameter("budget_W", StudyTable),
}
_DEVICE = "ownership.device_usd.typical"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Candidates in the order they were given; the first is what others are read against.

    Parameters
    ----------
    candidates : tuple of Candidate
    budget : Budget or None
    """

    candidates: tuple[Candidate, ...]
    budget: Budget | None

    @property
    def one_job(self) -> bool:
        """Whether all train the same model with the same sequence length and batch."""
        jobs = [one.scenario for one in self.candidates]
        return len({(job.model, job.sequence, job.batch) for job in jobs}) == 1

    def lines(self) -> tuple[ComparisonLine, ...]:
        """The table: one line per figure, a value and a text per candidate."""
        return lines(self.candidates, self.budget)

    def at(self, changes: Mapping[str, Any], tokens: float | None = None) -> Comparison:
        """The same plans under other prices.

        Parameters
        ----------
        changes : mapping
            Dotted keys of the price list (``ownership.pue.typical``) to values, over the shipped
            one.
        tokens : float, optional
            Of the training run; 20 per parameter without.
        """
        prices = prices_of(None, changes)
        moved = (
            replace(
                one,
                owned=_owned(one.scenario, prices),
                training=training_of(one.scenario, one.report, one.sureness, tokens)
                if one.report is not None and one.sureness is not None
                else None,
            )
            for one in self.candidates
        )
        return Comparison(tuple(moved), self.budget)

    def rows(self) -> list[dict[str, float | str | None]]:
        """One row per candidate: its name, then every figure; units stand in the names."""
        table = self.lines()
        return [
            {"scenario": one.name, **{line.column: line.values[place] for line in table}}
            for place, one in enumerate(self.candidates)
        ]

    def to_csv(self) -> str:
        """The table as CSV with plain numbers: part, figure, unit, then a column per candidate."""
        names = [candidate.name for candidate in self.candidates]
        return csv_text(
            ["part", "figure", "unit", *names],
            ([line.part, line.figure, line.unit, *line.values] for line in self.lines()),
        )


def compare(
    entries: Sequence[tuple[str, Scenario]],
    *,
    budget: Mapping[str, Any] | None = None,
    failures: bool = True,
    level_wise: bool = False,
    device_usd: float | None = None,
    prices: Mapping[str, Any] | None = None,
    progress: Tell = silent,
    stop: Stop = never,
) -> Comparison:
    """Solve and compare scenarios.

    Parameters
    ----------
    entries : sequence of (str, Scenario)
        Two to six, by their names.
    budget : mapping, optional
        ``{"kind": "price" | "power", "value"}`` with US dollars or watts for the network; a value
        of None is what the first network costs or draws.
    failures : bool
        Whether one failed switch is tried.
    level_wise : bool
        Whether NEST's level-wise program plans beside the exact search.
    device_usd : float, optional
        US dollars of an accelerator with its share of the server; the listed server's without it.
    prices : mapping, optional
        Dotted keys of the price list to values, over the shipped one.
    progress : callable (share, words), optional
    stop : callable () -> bool, optional
        Once true, searches end early and return what they have, like `search`.

    Raises
    ------
    InputError
        For what is no comparison; for a scenario that is none, with its name in front.
    """
    _check_names([name for name, _ in entries])
    values = [_values(name, scenario) for name, scenario in entries]
    device = {} if device_usd is None else {_DEVICE: DEVICE_USD.checked(device_usd)}
    listed = prices_of(None, {**(prices or {}), **device})
    limit = _budget(budget, _owned(values[0], listed).network)
    settings = [settings_of(scenario) for _, scenario in entries]
    keys = differing(settings)
    work = _Work(listed, limit, failures, level_wise, progress, stop)
    work.total = sum(map(work.steps, values))
    candidates = tuple(
        work.candidate(name, scenario, tuple((key, own.get(key, "")) for key in keys))
        for (name, scenario), own in zip(entries, settings, strict=True)
    )
    return Comparison(candidates, limit)


def compared(inputs: Mapping[str, Any], *, progress: Tell, stop: Stop) -> Comparison | None:
    """Compare what plain JSON asks for; None once stopped.

    Parameters
    ----------
    inputs : mapping
        ``entries``, a list of tables with ``name``, ``document`` and ``overrides``, and whatever
        else `compare` takes.
    """
    options = {key: value for key, value in inputs.items() if key != "entries"}
    entries = [
        (entry["name"], Scenario(entry["document"], entry.get("overrides") or {}))
        for entry in inputs["entries"]
    ]
    found = compare(entries, **options, progress=progress, stop=stop)
    return None if stop() else found


@dataclass(slots=True)
class _Work:
    """Solves one candidate after the other and tells how far it is."""

    prices: Prices
    budget: Budget | None
    failures: bool
    level_wise: bool
    progress: Tell
    stop: Stop
    total: int = 1
    done: int = 0

    def steps(self, values: ScenarioValues) -> int:
        """Searches that a candidate takes."""
        at_risk = len(tiers_at_risk(values.fabric)) if self.failures else 0
        return 1 + at_risk + (self.budget is not None) + self.level_wise

    def step(self, words: str) -> None:
        self.progress(self.done / self.total, words)
        self.done += 1

    def candidate(
        self, name: str, scenario: Scenario, settings: tuple[tuple[str, str], ...]
    ) -> Candidate:
        self.step(name)
        values = scenario.values
        problem = values.problem()
        solved = solve(values, problem, stop=self.stop)
        report = solved.report
        sureness = sureness_of(values, problem, report) if report else None
        return Candidate(
            name=name,
            owned=_owned(values, self.prices),
            scenario=values,
            report=report,
            reason=solved.reason,
            sureness=sureness,
            training=training_of(values, report, sureness, None) if report and sureness else None,
            losses=self._losses(name, scenario, report),
            gap=solved.gap,
            points=solved.points,
            levels=problem.network.levels,
            blocks=level_blocks(problem.network),
            settings=settings,
            at_budget=self._at_budget(name, scenario),
            nest=self._nest(name, values, problem, report),
        )

    def _nest(
        self, name: str, values: ScenarioValues, problem: Problem, report: Report | None
    ) -> Baseline | None:
        if not self.level_wise:
            return None
        self.step(f"{name}, NEST's level-wise program")
        (found,) = evaluate_baselines(
            problem,
            values.space,
            values.model,
            ("nest",),
            as_in_paper=values.baseline_space == "paper",
            time_limit_s=values.time_limit_s,
            ours_s=report.iteration_s if report else None,
        )
        return found

    def _losses(self, name: str, scenario: Scenario, report: Report | None) -> tuple[Loss, ...]:
        found = []
        for tier in tiers_at_risk(scenario.values.fabric) if self.failures else ():
            self.step(f"{name}, one {tier} failed")
            if report is not None:
                found.append(lose_one(scenario, report, tier, stop=self.stop))
        return tuple(found)

    def _at_budget(self, name: str, scenario: Scenario) -> AtBudget | None:
        if self.budget is None:
            return None
        self.step(f"{name} at equal budget")
        return at_budget(scenario, self.budget, self.prices, stop=self.stop)


def _check_names(names: Sequence[str]) -> None:
    if not FEWEST <= len(names) <= MOST:
        rule = f"must list {FEWEST} to {MOST} scenarios"
        raise InputError("entries", rule, len(names), "add or remove some")
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InputError("entries.name", "must name each scenario once", name, "rename one")
        if not 0 < len(name.strip()) <= LONGEST_NAME:
            rule = f"must be text of 1 to {LONGEST_NAME} characters"
            raise InputError(f"entries[{number}].name", rule, name, "rename it")


def _values(name: str, scenario: Scenario) -> ScenarioValues:
    try:
        return scenario.values
    except InputError as error:
        field = f"{name}: {error.field}"
        raise InputError(field, error.rule, error.value, error.remedy) from error


def _owned(values: ScenarioValues, prices: Prices) -> Owned:
    return owned(values.fabric, prices, values.accelerator.name)


def _budget(asked: Mapping[str, Any] | None, first: Bill) -> Budget | None:
    if asked is None:
        return None
    if not isinstance(asked, Mapping) or asked.get("kind") not in BUDGET_OF:
        raise InputError("budget.kind", "must be price or power", asked, "pick one")
    value = asked.get("value")
    if value is None:
        return Budget(asked["kind"], spent(first, asked["kind"]))
    return Budget(asked["kind"], BUDGET_OF[asked["kind"]].checked(value, "budget.value"))
