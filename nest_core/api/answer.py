"""A scenario answered: our plan with its certificate, the baselines, and why."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nest_core.api.fields import (
    assumptions_json,
    baseline_json,
    certificate_json,
    memory_json,
    plan_text,
    profile_json,
    report_json,
    stack_json,
    validity_json,
)
from nest_core.api.results import Result
from nest_core.api.scenario import Named, load
from nest_core.costs import Interval, Problem, Report, plan_columns
from nest_core.documents import at_least_gib, percent, plain, require, to_gib
from nest_core.hardware.posterior import SHARE
from nest_core.network import Network, Outline
from nest_core.planner import Progress, SearchResult, search
from nest_core.planner.baselines import Baseline, evaluate_baselines, fastest
from nest_core.planner.frontier import Frontier
from nest_core.planner.mixed import MixedFrontier
from nest_core.report.explain import (
    Headline,
    Training,
    Validity,
    certificate_line,
    fullest,
    name_stack_for_search,
    plan_in_words,
    proven_over,
    stages_table,
    validity_of,
)
from nest_core.report.explain.headlines import headlines
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, ScenarioValues, scenario_title
from nest_core.studies.recommended import Recommended, checked_draws, recommend
from nest_core.studies.solving import Stop, Tell, never, silent
from nest_core.studies.uncertainty import interval_of

if TYPE_CHECKING:
    from nest_core.report.figures import Chart

__all__ = ["Answer", "answer", "plan", "with_draws"]


@dataclass(frozen=True, slots=True)
class Answer(Result):
    """What the studio shows and ``nest-studio plan`` prints.

    Parameters
    ----------
    scenario : ScenarioValues
    network : Network or Outline
        The scenario's fabric, collapsed.
    result : SearchResult
    baselines : tuple of Baseline
        In the scenario's order.
    interval : Interval or None
        Where the best plan's time will lie; None without one.
    training : Training or None
        Of the best plan on the usual tokens, with the scenario's failures, where it was asked for.
    recommended : Recommended or None
        Where draws were asked for and there is a plan.
    """

    scenario: ScenarioValues
    network: Network | Outline
    result: SearchResult
    baselines: tuple[Baseline, ...]
    interval: Interval | None = None
    training: Training | None = None
    recommended: Recommended | None = None

    @property
    def best_baseline(self) -> Baseline | None:
        """The fastest feasible baseline."""
        return fastest(self.baselines)

    @property
    def speedup(self) -> float | None:
        """Our throughput over the best feasible baseline's."""
        best, rival = self.result.best, self.best_baseline
        return (
            rival.report.iteration_s / best.iteration_s if best and rival and rival.report else None
        )

    def validity_of(self, report: Report) -> Validity:
        """Return what a report of this scenario stands on."""
        return validity_of(self.scenario, self.network, report.plan)

    @property
    def advice(self) -> str:
        """What may let a plan fit where none does; so much memory is enough, if not the least.

        Empty if a plan fits, or if it is unknown how much is enough.
        """
        if self.result.best is not None or not self.result.needed_bytes:
            return ""
        space = self.scenario.space
        ways = {
            f"raise memory per device to {at_least_gib(self.result.needed_bytes)}": True,
            "allow higher ZeRO stages": max(space.zero) < 3,
            "allow full recomputation": "full" not in space.recompute,
            "allow 1f1b, which holds less": "1f1b" not in space.schedules,
            "use more devices": True,
        }
        first, *others = (way for way, helps in ways.items() if helps)
        sentence = " or ".join([", ".join([first, *others[:-1]]), others[-1]])
        return sentence[0].upper() + sentence[1:]

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the command line's ``plan``."""
        result, best = self.result, self.result.best
        answer: dict[str, Any] = {
            "scenario": scenario_title(self.scenario),
            "costs": "own",
            **assumptions_json(self.scenario, self.scenario.hidden),
            "feasible": best is not None,
            "reason": result.reason or None,
            "advice": self.advice or None,
            "iteration_time_s": None,
            "samples_per_s": None,
            "tokens_per_s_per_device": None,
            "mfu": None,
            "plan": None,
            "stages": [],
        }
        if best is not None:
            answer.update(report_json(best))
        answer.update(
            certificate=certificate_json(result.certificate),
            alternatives=[report_json(report) for report in result.alternatives],
            baselines=[
                baseline_json(
                    entry,
                    self.validity_of(entry.report) if entry.report and entry.feasible else None,
                )
                for entry in self.baselines
            ],
            **validity_json(self.validity_of(best) if best else None),
            interval=self.interval.to_json() if self.interval else None,
            stack=stack_json(self.scenario),
            recommended=self.recommended.to_json() if self.recommended else None,
            memory=memory_json(self.scenario, best) if best else None,
            profile=profile_json(self.scenario, best),
            solve_seconds=result.solve_seconds,
        )
        return answer

    def headlines(self, *, baselines_pending: bool = False) -> tuple[Headline, ...]:
        """Return the five figures above an answer; no speed-up while baselines are being priced."""
        best = self.result.best
        validity = self.validity_of(best) if best else None
        baselines = None if baselines_pending else self.baselines
        return headlines(self.scenario, best, validity, self.interval, baselines)

    @property
    def best(self) -> Report | None:
        """The best plan with its price; None where none fits."""
        return self.result.best

    def rows(self) -> list[dict[str, Any]]:
        """Return our plan and every baseline's, a row each; none rounded, units in the names."""
        result, rival = self.result, self.best_baseline
        fields = [self._row("ours", self.best, result.reason)]
        fields += [self._row(e.name, e.report, e.reason, e.feasible) for e in self.baselines]
        best = {"best_baseline": rival.label if rival else None}
        return [row | best for row in fields]

    def _row(
        self, name: str, report: Report | None, reason: str, feasible: bool = True
    ) -> dict[str, Any]:
        rival, runs = self.best_baseline, report if feasible else None
        rate = rival.report.samples_per_s if rival and rival.report else None
        scenario = self.scenario
        return {
            "name": name,
            "feasible": runs is not None,
            "reason": reason or None,
            "iteration_time_s": runs and runs.iteration_s,
            "tokens_per_s": runs and runs.samples_per_s * scenario.sequence,
            "samples_per_s": runs and runs.samples_per_s,
            "mfu": runs and runs.mfu,
            "bubble": runs and runs.bubble,
            "memory_GiB": report and to_gib(fullest(report)[1].memory.total),
            "speedup": runs.samples_per_s / rate if runs and rate else None,
            **plan_columns(report.plan.to_json() if report else None),
            "plan": report and plan_in_words(report, scenario.batch, scenario.fabric.devices),
        }

    def pictures(self) -> tuple[Chart, ...]:
        """Throughput, stage balance and memory of our plan and the baselines."""
        from nest_core.report.figures import (
            balance_figure,
            entries,
            memory_figure,
            throughput_figure,
        )

        rows = entries(self.result, self.baselines)
        return (
            throughput_figure(rows, self.scenario.sequence, self.interval),
            balance_figure(rows),
            memory_figure(rows, self.scenario.accelerator.memory_bytes),
        )

    def __str__(self) -> str:
        return plan_text(plain(self.to_json()))

    def tables(self) -> tuple[Table, ...]:
        """Return headline figures with the plan in words or why there is none, and its stages."""
        best, title = self.result.best, scenario_title(self.scenario)
        if best is None:
            why = " ".join(f"{text}." for text in (self.result.reason, self.advice) if text)
            return (Table(title, why, ()),)
        rows = [
            {
                "": entry.name,
                "figure": entry.value,
                f"{percent(SHARE)} interval": entry.span,
                "note": entry.note,
            }
            for entry in self.headlines()
        ]
        certificate = self.result.certificate
        words = (
            f"{plan_in_words(best, self.scenario.batch, self.scenario.fabric.devices)} "
            f"{certificate_line(self.result)}. {proven_over(certificate)}"
        )
        return Table(title, words, rows), stages_table(best)


def answer(
    scenario: ScenarioValues,
    *,
    problem: Problem | None = None,
    frontier: Frontier | MixedFrontier | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Answer:
    """Plan a scenario and price the baselines beside it.

    Parameters
    ----------
    scenario : ScenarioValues
    problem : Problem, optional
        The scenario's, where it is at hand.
    frontier : Frontier, optional
        The problem's (`nest_core.planner.shared_frontier`), where other questions share it.
    progress, stop
        As `search` takes them.
    """
    problem = problem or scenario.problem()
    choices = partial(
        evaluate_baselines,
        problem,
        scenario.space,
        scenario.model,
        seed=scenario.seed,
        as_in_paper=scenario.baseline_space == "paper",
        time_limit_s=scenario.time_limit_s,
        frontier=frontier,
    )
    searched = partial(
        search,
        problem,
        scenario.space,
        top=scenario.top,
        time_limit_s=scenario.time_limit_s,
        frontier=frontier,
        progress=progress,
        stop=stop,
    )
    result = searched()
    entries: list[Baseline] = []
    for last in (False, True):  # NEST's program: its waterfall ends at our plan
        names = tuple(name for name in scenario.baselines if (name == "nest") == last)
        methods = choices(names, ours=result.best)
        ahead = result.plans_ahead((entry.label, entry.report) for entry in methods)
        if ahead:
            # Once more, from what is faster: an answer is not behind a plan that it shows.
            result = searched(known=ahead)
            if last and result.best:
                methods = choices(names, ours=result.best)
        entries += methods
    result = name_stack_for_search(scenario, result)
    best = result.best
    baselines = tuple(sorted(entries, key=lambda entry: scenario.baselines.index(entry.name)))
    interval = interval_of(scenario, problem, best) if best else None
    return Answer(scenario, problem.network, result, baselines, interval)


def with_draws(
    planned: Answer,
    problem: Problem,
    draws: int,
    *,
    pool: Executor | None = None,
    progress: Tell = silent,
    stop: Stop = never,
) -> Answer:
    """Return an answer with what draws recommend; as it is without a plan.

    Parameters
    ----------
    problem : Problem
        The scenario's.
    draws, pool, progress, stop
        See `nest_core.studies.recommended.recommend`.
    """
    best = planned.best
    if best is None or not draws:
        return planned
    recommended = recommend(
        planned.scenario,
        problem,
        best.plan,
        draws,
        seed=planned.scenario.seed,
        pool=pool,
        progress=progress,
        stop=stop,
    )
    return replace(planned, recommended=recommended)


def plan(
    scenario: Scenario | Named,
    *,
    draws: int = 0,
    pool: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Answer:
    """Return the plan that is proven best for a scenario, with every baseline beside it.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    draws : int
        Of what is not known exactly: so many are searched anew, and the answer's ``recommended``
        is the plan of least expected time with how sure that is. 0: none.
    pool : concurrent.futures.Executor, optional
        Whose processes search the draws; the answer is the same without it.
    progress : callable, optional
        Told from time to time how far the search is.
    stop : callable () -> bool, optional
        Asked from time to time; once true, the best plan so far is returned with its gap.

    Raises
    ------
    InputError
        If it is no scenario. That no plan fits into memory is an answer.

    Examples
    --------
    >>> found = plan("llama2-7b-64-h100")
    >>> found.result.certificate.proven, found.best.plan.point.devices_used
    (True, 64)
    """
    for name, given in (("progress", progress), ("stop", stop)):
        require(
            given is None or callable(given),
            name,
            "must be a function",
            given,
            "give one, or leave it out",
        )
    values, count = load(scenario).values, checked_draws(draws)
    problem = values.problem()
    planned = answer(values, problem=problem, progress=progress, stop=stop)
    return with_draws(planned, problem, count, pool=pool, stop=stop or never)
