"""Plans and baselines, searched in worker processes and kept for everyone who asks again.

What no session asks for any more is given up; plans go before baselines.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.planner.baselines import Baseline
from nest_core.scenario import Scenario, scenario_document
from nest_studio.form.scenario import DEFAULT_SCENARIO
from nest_studio.jobs.tasks.plans import Levelwise, PlanFabric, PlanPictures, levelwise_program
from nest_studio.jobs.tasks.requests import best_plan, priced_baselines
from nest_studio.jobs.waiting import Job, Stopped, WorkerCrash, given_up, job_queue, submitted
from nest_studio.session.states import session_value

__all__ = [
    "OtherPlans",
    "PlanPage",
    "answer_of",
    "is_there_soon",
    "plan_page",
    "planned_scenario",
    "submit_ahead",
    "submit_plan",
]

_AHEAD = "the next step"
POLL_S = 0.1
PATIENCE_S = 5.0


@dataclass
class PlanPage:
    """What Plan keeps of a session: what it showed last.

    Parameters
    ----------
    scenario : Scenario or None
    baselines : tuple of Baseline
    fabric : PlanFabric or None
    pictures : PlanPictures or None
    """

    scenario: Scenario | None = None
    baselines: tuple[Baseline, ...] = ()
    fabric: PlanFabric | None = None
    pictures: PlanPictures | None = None


def plan_page() -> PlanPage:
    """Return what this session's Plan keeps."""
    return session_value(PlanPage)


def planned_scenario() -> Scenario:
    """Return what Plan showed last, else what it begins with."""
    return plan_page().scenario or Scenario(scenario_document(DEFAULT_SCENARIO)[0])


def submit_plan(scenario: Scenario) -> Job:
    """Have a scenario planned, and give up this session's last jobs."""
    job = _plan(scenario, "plan")
    given_up(_AHEAD)
    return job


def submit_ahead(scenario: Scenario, before: Scenario | None) -> None:
    """Have the step after the last one planned, while nobody waits for anything else.

    Whoever moves a slider moves it further: where one number alone changed since the scenario
    ``before``, the same change once more.
    """
    if before is None or not job_queue().idle:
        return
    now, then = scenario.overrides, before.overrides
    moved = [key for key in {**now, **then} if now.get(key) != then.get(key)]
    if scenario.document != before.document or len(moved) != 1:
        return
    (key,) = moved
    value, earlier = scenario.setting(key), before.setting(key)
    if not {type(value), type(earlier)} - {int, float}:
        _plan(replace(scenario, overrides={**now, key: 2 * value - earlier}), _AHEAD)


def answer_of(scenario: Scenario) -> Answer:
    """Return our plan for a scenario, once it is there, without baselines."""
    result, network, interval = _plan(scenario).result()
    return Answer(scenario.values, network, result, (), interval)


def is_there_soon(scenario: Scenario) -> bool:
    """Return whether a scenario has a plan to show, or will within seconds."""
    job = _plan(scenario, "plan before")
    until = time.monotonic() + PATIENCE_S
    while not job.wait(POLL_S) and time.monotonic() < until:
        st.session_state["awaited"] = "plan before"  # a newer run ends the wait
    return job.ended and not job.failed


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
        self._ours_s = answer.best.iteration_s if answer.best else None
        self._job = _baselines(scenario, "baselines" if wanted else "")
        self._program: Job | None = None
        if "nest" in scenario.values.baselines:
            place = "level-wise program" if wanted else ""
            self._program = _levelwise(scenario, self._ours_s, place)

    @property
    def missing(self) -> str:
        """Return why there are no baselines and will be none; empty if there are or may be."""
        return self._job.without

    @property
    def is_program_there(self) -> bool:
        """Return whether `program` has its answer at hand."""
        return self._program is None or self._program.ended

    def within(self, seconds: float) -> tuple[Baseline, ...] | None:
        """Return the baselines but NEST's program if they are there in time."""
        try:
            baselines: tuple[Baseline, ...] = self._job.result(seconds)
        except TimeoutError:
            return None
        except Stopped:  # given up by who asked for it; it is begun anew
            self._job = _baselines(self._scenario)
            return None
        except WorkerCrash:  # said by `missing`
            return ()
        return baselines

    def priced(self) -> tuple[Baseline, ...]:
        """Wait for the baselines but NEST's program; a newer run of the page ends the wait."""
        while (baselines := self.within(POLL_S)) is None:
            # Streamlit stops a run only where it touches the session.
            st.session_state["baselines awaited"] = True
        return baselines

    def program(self) -> Levelwise | None:
        """Wait for NEST's program, likewise; None where it is not wanted or has no result."""
        while self._program is not None:
            try:
                levelwise: Levelwise | None = self._program.result(POLL_S)
            except TimeoutError:
                st.session_state["baselines awaited"] = True
            except Stopped:
                self._program = _levelwise(self._scenario, self._ours_s)
            except WorkerCrash:
                break
            else:
                return levelwise
        return None

    def every(self) -> tuple[Baseline, ...]:
        """Wait for all of them, and return them in the scenario's order."""
        levelwise = self.program()
        baselines = {baseline.name: baseline for baseline in self.priced()}
        if levelwise is not None:
            baselines["nest"] = levelwise.baseline
        return tuple(
            baselines[name] for name in self._scenario.values.baselines if name in baselines
        )


def _plan(scenario: Scenario, place: str = "") -> Job:
    return submitted(best_plan, scenario, place=place)


def _baselines(scenario: Scenario, place: str = "") -> Job:
    return submitted(priced_baselines, scenario, urgent=False, place=place)


def _levelwise(scenario: Scenario, ours_s: float | None, place: str = "") -> Job:
    return submitted(levelwise_program, scenario, ours_s, urgent=False, place=place)
