"""Plans and baselines, searched in worker processes and kept for everyone who asks again.

What no session asks for any more is given up; plans go before baselines.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field, replace

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.costs.price import Report
from nest_core.planner import NamedPlans
from nest_core.planner.baselines import Baseline
from nest_core.report.explain.training import Training
from nest_core.scenario import Scenario, scenario_document
from nest_studio.form.scenario import DEFAULT_SCENARIO
from nest_studio.jobs.tasks.plans import Levelwise, levelwise_program
from nest_studio.jobs.tasks.requests import best_plan, priced_baselines
from nest_studio.jobs.waiting import WorkerJob, submitted, wait_a_moment
from nest_studio.session.stored import session_value

__all__ = [
    "OtherPlans",
    "PlanPage",
    "answer_of",
    "is_there",
    "plan_again",
    "plan_page",
    "planned_scenario",
    "submit_plan",
]


@dataclass
class PlanPage:
    """What Plan keeps of a session: what it showed last.

    Parameters
    ----------
    scenario : Scenario or None
        All else that is shown follows from it.
    ahead_of : Scenario or None
    ahead : tuple of (str, Plan)
        Plans that were ahead of ours for that scenario, by whose they are.
    again : WorkerJob or None
        Our plan for it, searched from those.
    failures : mapping
        Overrides of the scenario that are its training run's failures.
    """

    scenario: Scenario | None = None
    ahead_of: Scenario | None = None
    ahead: NamedPlans = ()
    again: WorkerJob | None = None
    failures: Mapping[str, str] = field(default_factory=dict)


def plan_page() -> PlanPage:
    """Return what this session's Plan keeps."""
    return session_value(PlanPage)


def planned_scenario() -> Scenario:
    """Return what Plan showed last, with its training run's failures; else what it begins with."""
    scenario = plan_page().scenario or Scenario(scenario_document(DEFAULT_SCENARIO)[0])
    return replace(scenario, overrides={**scenario.overrides, **plan_page().failures})


def submit_plan(scenario: Scenario) -> WorkerJob:
    """Have a scenario planned, in place of what this session planned last."""
    page, ahead = plan_page(), _ahead(scenario)
    job = _plan(scenario, "plan", known=ahead, edited=True)
    page.again = job if ahead else page.again
    return job


def plan_again(
    scenario: Scenario, answer: Answer, rivals: Iterable[tuple[str, Report | None]]
) -> None:
    """Have a scenario planned from the plans that are ahead of ours; nothing where none is."""
    page, ahead = plan_page(), _ahead(scenario)
    more = [plan for plan in answer.result.plans_ahead(rivals) if plan not in ahead]
    if more:
        page.ahead_of, page.ahead = scenario, (*ahead, *more)
        st.rerun()


def answer_of(scenario: Scenario) -> Answer:
    """Return our plan for a scenario, once it is there, without baselines."""
    result, network, interval, run = _planned(scenario).result()
    return Answer(scenario.values, network, result, (), interval, run)


def is_there(scenario: Scenario) -> bool:
    """Return whether a scenario has a plan to show, or has one within a moment."""
    job = _planned(scenario, "plan before")
    wait_a_moment([job])
    return job.done() and job.exception() is None


class OtherPlans:
    """What other methods plan, as it comes.

    Parameters
    ----------
    scenario : Scenario
    answer : Answer
        Our plan for it.
    wanted : bool
        Whether the page wants them from now on, in place of those of another scenario.
    """

    def __init__(self, scenario: Scenario, answer: Answer, *, wanted: bool = False) -> None:
        self._scenario = scenario
        self._job = submitted(
            priced_baselines, scenario, urgent=False, place="baselines" if wanted else ""
        )
        self._program = (
            submitted(
                levelwise_program,
                scenario,
                answer.best,
                urgent=False,
                place="level-wise program" if wanted else "",
            )
            if "nest" in scenario.values.baselines
            else None
        )

    @property
    def missing(self) -> str:
        """Return why there are no baselines and will be none; empty if there are or may be."""
        return self._job.without

    @property
    def pending(self) -> list[WorkerJob]:
        """Return the jobs that have not ended."""
        return [job for job in (self._job, self._program) if job is not None and not job.done()]

    @property
    def awaited(self) -> list[str]:
        """Return the keys of what has not ended."""
        return [
            name
            for name in self._scenario.values.baselines
            if (job := self._program if name == "nest" else self._job) and not job.done()
        ]

    def priced(self) -> tuple[Baseline, ...] | None:
        """Return the baselines but NEST's program; None while they are priced."""
        runs = self._runs()
        return None if runs is None else tuple(baseline for baseline, _ in runs)

    def trainings(self) -> dict[str, Training | None] | None:
        """Return their training runs by name."""
        runs = self._runs()
        return None if runs is None else {baseline.name: run for baseline, run in runs}

    def _runs(self) -> tuple[tuple[Baseline, Training | None], ...] | None:
        job = self._job
        runs: tuple[tuple[Baseline, Training | None], ...] | None = (
            None if not job.done() else () if self.missing else job.result(0)
        )
        return runs

    def program(self) -> Levelwise | None:
        """Return NEST's program; None where it is not there, not wanted, or has no result."""
        job = self._program
        levelwise: Levelwise | None = (
            job.result(0) if job is not None and job.done() and not job.without else None
        )
        return levelwise

    def every(self, patience_s: float = 0.0) -> tuple[Baseline, ...]:
        """Return those that are there in time, in the scenario's order."""
        wait(self.pending, patience_s)
        levelwise = self.program()
        baselines = {baseline.name: baseline for baseline in self.priced() or ()}
        if levelwise is not None:
            baselines["nest"] = levelwise.baseline
        return tuple(
            baselines[name] for name in self._scenario.values.baselines if name in baselines
        )


def _ahead(scenario: Scenario) -> NamedPlans:
    page = plan_page()
    return page.ahead if page.ahead_of == scenario else ()


def _planned(scenario: Scenario, place: str = "") -> WorkerJob:
    """Return the job of our plan: once it is there, of that from the plans which were ahead."""
    again = plan_page().again if _ahead(scenario) else None
    return again if again and again.done() and not again.without else _plan(scenario, place)


def _plan(
    scenario: Scenario, place: str = "", *, known: NamedPlans = (), edited: bool = False
) -> WorkerJob:
    known_plans = (known,) if known else ()  # without, the job is that of everybody else
    return submitted(best_plan, scenario, *known_plans, place=place, edited=edited)
