"""A given plan priced, term by term beside the best one, and where its ranks are placed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nest_core.api.answer import Answer
from nest_core.api.fields import (
    assumptions_json,
    interval_line,
    memory_json,
    overlap_line,
    report_json,
    stack_json,
    validity_json,
)
from nest_core.api.results import Result
from nest_core.api.scenario import Named, load
from nest_core.costs import Plan, Problem, Report, check_plan
from nest_core.costs import price as price_plan
from nest_core.costs.parse import Pasted, parse_plan, read_given
from nest_core.costs.placement import RankMapping, rank_mapping_of
from nest_core.documents import InputError, plain, read_text, require, signed_percent, table
from nest_core.planner import search
from nest_core.report.explain import (
    DifferenceRow,
    bindings,
    checked_plan,
    difference,
    equations,
    name_stack_for_plan,
    stages_table,
    validity_of,
    withheld,
)
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, ScenarioValues, as_written
from nest_core.studies.uncertainty import interval_of

if TYPE_CHECKING:
    import pandas as pd

    from nest_core.report.figures import Chart

__all__ = [
    "Given",
    "Placement",
    "Priced",
    "given_plan",
    "place",
    "price",
]

Given = str | Path | Mapping[str, Any] | Plan | Report | Answer
"""A plan, priced or not, an answer with one, or what `price` reads as one."""

_STAGES_SHOWN = 16


@dataclass(frozen=True, slots=True)
class Priced(Result):
    """What a given plan takes, beside the best one.

    Parameters
    ----------
    scenario : ScenarioValues
    problem : Problem
    given : Pasted
        The plan, and what of a pasted command was not read.
    report : Report
        Its price.
    best : Report or None
        The best plan's; None where none fits.
    """

    scenario: ScenarioValues
    problem: Problem
    given: Pasted
    report: Report
    best: Report | None

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio price --json``."""
        best, report, given = self.best, self.report, self.given
        unsure = withheld(given)
        judged = best if unsure is None else None
        return {
            **report_json(report),
            "best_iteration_time_s": best.iteration_s if best else None,
            "difference": report.iteration_s / judged.iteration_s - 1 if judged else None,
            **_differences(judged, report),
            "unpriced": given.unpriced,
            "withheld": unsure,
            "bindings": [
                {
                    "kind": stage.binding.kind,
                    "words": stage.in_words,
                    "memory_share": stage.memory_share,
                    "constraints": [
                        {
                            "kind": entry.kind,
                            "name": entry.words,
                            "seconds": entry.seconds,
                            "share": entry.share,
                            "more": entry.more or None,
                            "throughput_gain": entry.gain,
                        }
                        for entry in stage.constraints
                    ],
                }
                for stage in bindings(self.problem, report)
            ],
            "equations": [entry.in_words for entry in equations(self.problem, report)],
            "ignored": given.ignored,
            "notes": given.notes,
            **assumptions_json(self.scenario, self.problem.overlap),
            **validity_json(validity_of(self.scenario, self.problem.network, given.plan)),
            "interval": interval_of(self.scenario, self.problem, report).to_json(),
            "stack": stack_json(self.scenario),
            "memory": memory_json(self.scenario, report),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the terms of the iteration, s, beside the best plan's; a row each."""
        if self.best is None:
            return [{"name": name, "time_s": seconds} for name, seconds in self.report.terms]
        return [
            {
                "name": row.name,
                "time_s": row.theirs,
                "best_time_s": row.ours,
                "difference_s": row.difference,
            }
            for row in difference(self.best, self.report).terms
        ]

    def _terms(self) -> str:
        best = self.best.iteration_s if self.best else 0.0
        total = (self.report.iteration_s, best, self.report.iteration_s - best)
        rows = [list(row.values()) for row in self.rows()]
        rows.append(["iteration", *total[: len(rows[0]) - 1]])
        texts = [[name, *map("{:.4g}".format, times)] for name, *times in rows]
        return table(["term", "this plan, s", "best, s", "difference, s"][: len(rows[0])], texts)

    def pictures(self) -> tuple[Chart, ...]:
        """Return the time of every stage, beside the best plan's."""
        from nest_core.report.figures import balance_figure
        from nest_core.report.figures.entries import OURS, MethodRow

        rows = [MethodRow("this plan", self.report, self.report.reason)]
        if self.best is not None:
            rows.insert(0, MethodRow(OURS, self.best, ""))
        return (balance_figure(rows),)

    def __str__(self) -> str:
        fields = plain(self.to_json())
        difference = fields["difference"]
        comparison = (
            "nothing fits"
            if difference is None
            else f"{signed_percent(difference, 2)} against the best plan"
        )
        verdict = "fits" if fields["feasible"] else f"does not fit: {fields['reason']}"
        ignored, why_not = ", ".join(fields["ignored"]), fields["why_not"]
        sentences = [stage["words"] for stage in fields["bindings"]]
        more = len(sentences) - _STAGES_SHOWN
        return "\n".join(
            [
                fields["withheld"] or f"{verdict}; {comparison}",
                interval_line(fields),
                fields["validity"],
                overlap_line(fields),
                *(f"note: {note}" for note in fields["notes"]),
                *([f"ignored: {ignored}"] if ignored else []),
                *([why_not] if why_not else []),
                "",
                self._terms(),
                "",
                *sentences[:_STAGES_SHOWN],
                *([f"… and {more} more stages (--json)"] if more > 0 else []),
            ]
        )

    def tables(self) -> tuple[Table, ...]:
        """Return the stages."""
        return (stages_table(self.report),)


def price(
    scenario: Scenario | Named, plan: Given, *, placement: str | Path | None = None
) -> Priced:
    """Return what a plan takes on a scenario, beside the best plan.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    plan : str, Path, mapping, Plan, Report or Answer
        A JSON file, the fields of a plan (``{"dp": 8, "tp": 4}`` or ``"dp=8,tp=4"``), or a
        Megatron-LM command; a plan as results hold it; an answer, for its best plan.
    placement : str or Path, optional
        A CSV or JSON file with its rank mapping.

    Raises
    ------
    InputError
        If it is no plan of this scenario. Not fitting into memory is an answer.

    Examples
    --------
    >>> found = price("llama2-7b-64-h100", "dp=32,tp=2,zero=1")
    >>> found.report.feasible, found.report.iteration_s > found.best.iteration_s
    (True, True)
    """
    values = load(scenario).values
    problem = values.problem()
    given = given_plan(values, problem, plan, placement)
    pasted = () if withheld(given) else (("yours", given.plan),)
    best = search(problem, values.space, time_limit_s=values.time_limit_s, known=pasted).best
    acting = values.hiding(given.hidden)
    problem = acting.problem(given.plan.recompute)
    return Priced(
        acting, problem, given, name_stack_for_plan(acting, price_plan(problem, given.plan)), best
    )


def given_plan(
    scenario: ScenarioValues, problem: Problem, plan: Given, placement: str | Path | None = None
) -> Pasted:
    """Return the plan that somebody gives, its ranks where a placement file puts them.

    Raises
    ------
    InputError
        If it is no plan of this scenario.
    """
    given = _read(
        plan, problem.layers, problem.network.devices, whole_experts=not scenario.expert_tensor
    )
    require(
        placement is None or isinstance(placement, str | Path),
        "placement",
        "must be a path",
        placement,
        "name a CSV or JSON file",
    )
    mapping = None if placement is None else read_text(Path(placement))
    return checked_plan(scenario, given, mapping, str(placement))


def given_or_best(
    scenario: ScenarioValues, plan: Given | None, placement: str | Path | None = None
) -> tuple[Pasted | None, str]:
    """Return the plan that somebody gives, else the best one; None and why where none fits."""
    ranked, reason = given_or_ranked(scenario, plan, placement)
    return (ranked[0] if ranked else None), reason


def given_or_ranked(
    scenario: ScenarioValues, plan: Given | None, placement: str | Path | None = None
) -> tuple[list[Pasted], str]:
    """Return the plan that somebody gives, else the best ones; none and why where none fits.

    Raises
    ------
    InputError
        If it is no plan of this scenario, or ranks are placed of none.
    """
    require(
        placement is None or plan is not None,
        "placement",
        "must come with a plan",
        str(placement),
        "give the plan",
    )
    problem = scenario.problem()
    if plan is not None:
        return [given_plan(scenario, problem, plan, placement)], ""
    result = search(problem, scenario.space, time_limit_s=scenario.time_limit_s)
    return [Pasted(report.plan) for report in result.ranked], result.reason


def priced_plans(
    scenario: ScenarioValues, plan: Given | None, placement: str | Path | None
) -> tuple[Report, list[Plan]]:
    """Return the plan that is given, else the best one and the next best."""
    ranked, reason = given_or_ranked(scenario, plan, placement)
    if not ranked:
        raise InputError(
            "plan", f"must be given, since {reason}", "absent", "name one, or change the scenario"
        )
    first, *others = [given.plan for given in ranked]
    return price_plan(scenario.problem(first.recompute), first), others


def _read(plan: object, layers: int, devices: int, *, whole_experts: bool) -> Pasted:
    if isinstance(plan, Answer):
        plan = plan.best
    if isinstance(plan, Report):
        plan = plan.plan
    if isinstance(plan, Plan):
        return Pasted(plan)
    if isinstance(plan, Mapping):
        return Pasted(parse_plan(as_written("plan", plan), layers, whole_experts=whole_experts))
    if isinstance(plan, str | Path):
        return read_given(str(plan), layers, devices, whole_experts=whole_experts)
    raise InputError(
        "plan", "must be a file's name, the fields of a plan or a command", plan, "give one"
    )


def _differences(best: Report | None, report: Report) -> dict[str, Any]:
    """Return both plans term by term; null where there is nothing to compare with."""
    against = difference(best, report) if best else None
    return {
        "why_not": against.sentence if against else None,
        "term_differences": [_row(row, "s") for row in against.terms] if against else None,
        "memory_differences": [_row(row, "bytes") for row in against.memory] if against else None,
    }


def _row(row: DifferenceRow, unit: str) -> dict[str, Any]:
    return {
        "name": row.name,
        f"best_{unit}": row.ours,
        f"this_{unit}": row.theirs,
        f"difference_{unit}": row.difference,
    }


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Which device plays which part in a plan.

    Parameters
    ----------
    plan : Plan or None
        None where none fits.
    rank_mapping : RankMapping or None
        Rank and rank on every axis of each device, shape (devices,), −1 where it is idle.
    reason : str
        Why there is no plan; empty where there is one.
    """

    plan: Plan | None
    rank_mapping: RankMapping | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio place --json``."""
        rows = self.rows()
        return {
            "reason": self.reason or None,
            "plan": self.plan.to_json() if self.plan else None,
            "devices": len(rows),
            "placement": rows,
            "output": None,
        }

    def rows(self) -> list[dict[str, int | None]]:
        """Return one row per device; None where it is idle."""
        return self.rank_mapping.rows() if self.rank_mapping else []

    def to_csv(self) -> str:
        """Return one row per device; cells of idle devices are empty."""
        return self.rank_mapping.to_csv() if self.rank_mapping else ""

    def to_frame(self) -> pd.DataFrame:
        """Return one row per device; missing where it is idle."""
        import pandas as pd

        return pd.DataFrame(self.rows(), dtype="Int64")

    def __str__(self) -> str:
        rows = self.rows()
        return (
            table(list(rows[0]), [list(row.values()) for row in rows])
            if rows
            else f"infeasible: {self.reason}"
        )

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, max_rows=20))


def place(
    scenario: Scenario | Named, plan: Given | None = None, *, placement: str | Path | None = None
) -> Placement:
    """Return every device's rank, replica, stage and rank on each axis, all counted from 0.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    plan : optional
        As `price` takes it; the best plan without it.
    placement : str or Path, optional
        A CSV or JSON file with its rank mapping.

    Raises
    ------
    InputError
        If it is no plan of this scenario.
    """
    values = load(scenario).values
    given, reason = given_or_best(values, plan, placement)
    if given is None:
        return Placement(None, None, reason)
    problem = values.problem(given.plan.recompute)
    check_plan(problem, given.plan)
    return Placement(given.plan, rank_mapping_of(problem.network, given.plan))
