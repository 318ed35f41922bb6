"""Two to six scenarios solved and read against each other.

Every scenario is planned by itself, its whole bill drawn up (`nest_core.bill.ownership`), one
failed switch tried (`failures`), and its fabric scaled to a common budget where one is given
(`equal_budget`). Prices do not change plans: `Comparison.at` draws up other bills of the same ones.
Power with accelerators adds their design power; hosts, fans and cooling are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from nest_core.baselines import Baseline, evaluate_baselines
from nest_core.bill.bill import Bill, bill
from nest_core.bill.ownership import owned
from nest_core.bill.prices import Prices, prices_of
from nest_core.costs.price import Report
from nest_core.costs.problem import Problem
from nest_core.errors import InputError
from nest_core.network.blocks import level_blocks
from nest_core.quoting import csv_text
from nest_core.scenario import ScenarioValues, resolve_scenario
from nest_core.schema import StudyTable, parameter
from nest_core.studies.candidate import Candidate
from nest_core.studies.comparison_table import Line, lines
from nest_core.studies.equal_budget import AtBudget, Budget, at_budget, spent
from nest_core.studies.failures import Loss, lose_one, tiers_at_risk
from nest_core.studies.interval import sureness_of
from nest_core.studies.settings import differing, settings_of
from nest_core.studies.solving import Stop, Tell, solve
from nest_core.studies.whole_bill import WholeBill, training_of
from nest_core.studies.whole_cost import DEVICE_USD

__all__ = ["BUDGET_OF", "FEWEST", "LONGEST_NAME", "MOST", "Comparison", "compared", "run"]

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
    bills : tuple of WholeBill
        Of the candidates, in their order.
    """

    candidates: tuple[Candidate, ...]
    budget: Budget | None
    bills: tuple[WholeBill, ...] = field(compare=False)

    @property
    def one_job(self) -> bool:
        """Whether all train the same model with the same sequence length and batch."""
        jobs = [one.scenario for one in self.candidates]
        return len({(job.model, job.sequence, job.batch) for job in jobs}) == 1

    def lines(self) -> tuple[Line, ...]:
        """The table: one line per figure, a value and a text per candidate."""
        return lines(self.candidates, self.budget, self.bills)

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
        return _billed(self.candidates, self.budget, prices_of(None, changes), tokens)

    def rows(self) -> list[dict[str, float | str | None]]:
        """One row per candidate: its name, then every figure; units stand in the names."""
        table = self.lines()
        rows: list[dict[str, float | str | None]] = []
        for place, candidate in enumerate(self.candidates):
            row: dict[str, float | str | None] = {"scenario": candidate.name}
            row.update((line.column, line.values[place]) for line in table)
            rows.append(row)
        return rows

    def to_csv(self) -> str:
        """The table as CSV with plain numbers: part, figure, unit, then a column per candidate."""
        names = [candidate.name for candidate in self.candidates]
        return csv_text(
            ["part", "figure", "unit", *names],
            ([line.part, line.figure, line.unit, *line.values] for line in self.lines()),
        )


def run(
    inputs: Mapping[str, Any],
    *,
    folders: Sequence[Path | None] = (),
    progress: Tell | None = None,
    stop: Stop | None = None,
) -> Comparison:
    """Solve and compare scenarios.

    Parameters
    ----------
    inputs : mapping
        Plain JSON. ``entries``: two to six of ``{"name", "document", "overrides"}``, a scenario
        as `resolve_scenario` takes it (``overrides`` may be absent or null).
        ``budget``: null, or ``{"kind": "price" | "power", "value"}`` with US dollars or watts for
        the network; a value of null is what the first network costs or draws.
        ``failures``: whether one failed switch is tried, true if absent. ``level_wise``: whether
        NEST's level-wise program plans beside the exact search, false if absent.
        ``device_usd``: US dollars of an accelerator with its share of the server; null or absent
        for the listed server's. ``prices``: dotted keys of the price list to values, over the
        shipped one; null or absent for none.
    folders : sequence of Path or None, optional
        Where each scenario's paths start; without one every name in it must be a preset's.
    progress : callable (share, words), optional
    stop : callable () -> bool, optional
        Once true, searches end early and return what they have, like `search`.

    Raises
    ------
    InputError
        For inputs that are no comparison; for a scenario that is none, with its name in front.
    """
    asked = zip_longest(_entries(inputs), folders)
    entries = [_entry(index, one, folder) for index, (one, folder) in enumerate(asked)]
    scenarios = [_scenario(entry) for entry in entries]
    prices = _prices(inputs)
    bills = [bill(scenario.fabric, prices) for scenario in scenarios]
    budget = _budget(inputs.get("budget"), bills[0])
    keys = differing([settings_of(e.document, e.overrides, e.folder) for e in entries])
    failures = bool(inputs.get("failures", True))
    level_wise = bool(inputs.get("level_wise", False))
    work = _Work(prices, budget, keys, failures, level_wise, progress, stop)
    work.total = sum(work.steps(scenario) for scenario in scenarios)
    candidates = tuple(
        work.candidate(entry, scenario, found)
        for entry, scenario, found in zip(entries, scenarios, bills, strict=True)
    )
    return _billed(candidates, budget, prices, None)


def compared(inputs: Mapping[str, Any], *, progress: Tell, stop: Stop) -> Comparison | None:
    """`run` for worker processes; None once stopped."""
    found = run(inputs, progress=progress, stop=stop)
    return None if stop() else found


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    document: Mapping[str, Any]
    overrides: Mapping[str, Any]
    folder: Path | None


@dataclass(slots=True)
class _Work:
    """Solves one candidate after the other and tells how far it is."""

    prices: Prices
    budget: Budget | None
    keys: tuple[str, ...]
    failures: bool
    level_wise: bool
    progress: Tell | None
    stop: Stop | None
    total: int = 1
    done: int = 0

    def steps(self, scenario: ScenarioValues) -> int:
        """Searches that a candidate takes."""
        at_risk = len(tiers_at_risk(scenario.fabric)) if self.failures else 0
        return 1 + at_risk + (self.budget is not None) + self.level_wise

    def step(self, words: str) -> None:
        if self.progress is not None:
            self.progress(self.done / self.total, words)
        self.done += 1

    def candidate(self, entry: _Entry, scenario: ScenarioValues, found: Bill) -> Candidate:
        self.step(entry.name)
        problem = scenario.problem()
        solved = solve(scenario, problem, stop=self.stop)
        report = solved.report
        own = settings_of(entry.document, entry.overrides, entry.folder)
        return Candidate(
            name=entry.name,
            scenario=scenario,
            report=report,
            reason=solved.reason,
            gap=solved.gap,
            sureness=sureness_of(scenario, problem, report) if report else None,
            levels=problem.network.levels,
            blocks=level_blocks(problem.network),
            bill=found,
            settings=tuple((key, own.get(key, "")) for key in self.keys),
            losses=self._losses(entry, scenario, report),
            at_budget=self._at_budget(entry, scenario),
            nest=self._nest(entry, scenario, problem, report),
            points=solved.points,
        )

    def _nest(
        self, entry: _Entry, scenario: ScenarioValues, problem: Problem, report: Report | None
    ) -> Baseline | None:
        if not self.level_wise:
            return None
        self.step(f"{entry.name}, NEST's level-wise program")
        (found,) = evaluate_baselines(
            problem,
            scenario.space,
            scenario.model,
            ("nest",),
            as_in_paper=scenario.baseline_space == "paper",
            time_limit_s=scenario.time_limit_s,
            ours_s=report.iteration_s if report else None,
        )
        return found

    def _losses(
        self, entry: _Entry, scenario: ScenarioValues, report: Report | None
    ) -> tuple[Loss, ...]:
        found = []
        for tier in tiers_at_risk(scenario.fabric) if self.failures else ():
            self.step(f"{entry.name}, one {tier} failed")
            if report is not None:
                found.append(
                    lose_one(
                        entry.document,
                        entry.overrides,
                        entry.folder,
                        scenario,
                        report,
                        tier,
                        stop=self.stop,
                    )
                )
        return tuple(found)

    def _at_budget(self, entry: _Entry, scenario: ScenarioValues) -> AtBudget | None:
        if self.budget is None:
            return None
        self.step(f"{entry.name} at equal budget")
        return at_budget(
            entry.document,
            entry.overrides,
            entry.folder,
            scenario,
            self.budget,
            self.prices,
            stop=self.stop,
        )


def _entries(inputs: Mapping[str, Any]) -> Sequence[Any]:
    entries = inputs.get("entries")
    if not isinstance(entries, list) or not FEWEST <= len(entries) <= MOST:
        count = len(entries) if isinstance(entries, list) else entries
        raise InputError(
            "entries", f"must list {FEWEST} to {MOST} scenarios", count, "add or remove some"
        )
    names = [one.get("name") for one in entries if isinstance(one, Mapping)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError("entries.name", "must name each scenario once", twice[0], "rename one")
    return entries


def _entry(index: int, one: Any, folder: Path | None) -> _Entry:
    where = f"entries[{index}]"
    if not isinstance(one, Mapping) or not isinstance(one.get("document"), Mapping):
        raise InputError(f"{where}.document", "must be a scenario's table", one, "add it")
    name, overrides = one.get("name"), one.get("overrides") or {}
    if not isinstance(name, str) or not 0 < len(name.strip()) <= LONGEST_NAME:
        raise InputError(
            f"{where}.name", f"must be text of 1 to {LONGEST_NAME} characters", name, "rename it"
        )
    if not isinstance(overrides, Mapping):
        raise InputError(
            f"{where}.overrides", "must be a table of dotted keys", overrides, "correct it"
        )
    return _Entry(name, one["document"], overrides, folder)


def _scenario(entry: _Entry) -> ScenarioValues:
    try:
        return resolve_scenario(entry.document, entry.overrides, entry.folder)
    except InputError as error:
        raise InputError(
            f"{entry.name}: {error.field}", error.rule, error.value, error.remedy
        ) from error


def _budget(asked: Any, first: Bill) -> Budget | None:
    if asked is None:
        return None
    if not isinstance(asked, Mapping) or asked.get("kind") not in BUDGET_OF:
        raise InputError("budget.kind", "must be price or power", asked, "pick one")
    value = asked.get("value")
    if value is None:
        return Budget(asked["kind"], spent(first, asked["kind"]))
    return Budget(asked["kind"], BUDGET_OF[asked["kind"]].checked(value, "budget.value"))


def _prices(inputs: Mapping[str, Any]) -> Prices:
    changes = inputs.get("prices") or {}
    if not isinstance(changes, Mapping):
        raise InputError("prices", "must be a table of dotted keys", changes, "correct it")
    device_usd = inputs.get("device_usd")
    own = {} if device_usd is None else {_DEVICE: DEVICE_USD.checked(device_usd)}
    return prices_of(None, {**changes, **own})


def _billed(
    every: Sequence[Candidate], budget: Budget | None, prices: Prices, tokens: float | None
) -> Comparison:
    bills = tuple(_bill(one, prices, tokens) for one in every)
    priced = (
        replace(one, bill=found.owned.network) for one, found in zip(every, bills, strict=True)
    )
    return Comparison(tuple(priced), budget, bills)


def _bill(one: Candidate, prices: Prices, tokens: float | None) -> WholeBill:
    run = None
    if one.report is not None and one.sureness is not None:
        run = training_of(one.scenario, one.report, one.sureness, tokens)
    return WholeBill(
        one.name,
        owned(one.scenario.fabric, prices, one.scenario.accelerator.name),
        one.scenario,
        one.report,
        one.reason,
        one.sureness,
        run,
        one.losses,
        one.gap,
        one.points,
    )
