"""What worker processes do for Compare and Explore: one design or mix in, its figures out.

Tasks are as those of `nest_studio.jobs.tasks.requests`. Every design is planned by itself: what one
of them takes, or fails by, is no other's.
"""

from collections.abc import Mapping
from typing import Any

from nest_core.api.mixes import SharedFabric, mix
from nest_core.costs.price import Report
from nest_core.scenario import Scenario
from nest_core.studies.comparison import budget_of, further_figures, planned_candidate
from nest_core.studies.whole_bill import Candidate
from nest_studio.jobs.tasks.requests import Stop, Tell

__all__ = ["further_design", "planned_design", "shared_fabric"]


def planned_design(scenario: Scenario, *, progress: Tell, stop: Stop) -> Candidate | None:
    """Return a design without a name; once stopped its best plan so far, None for none."""
    progress(0.0, "planning it")
    candidate = planned_candidate("", scenario, stop=stop)
    return None if stop() and candidate.report is None else candidate


def further_design(
    scenario: Scenario,
    report: Report | None,
    first: Scenario | None,
    asks: Mapping[str, Any],
    *,
    progress: Tell,
    stop: Stop,
) -> dict[str, Any] | None:
    """Return what takes further searches; None once stopped.

    Parameters
    ----------
    report : Report or None
        The design's best plan.
    first : Scenario or None
        What a budget without a value is that of; None without a budget.
    asks : mapping
        Budget, failures, level_wise and prices as `compare` takes them.
    """
    progress(0.0, "switches that fail, equal budget, NEST's program")
    more = further_figures(
        scenario,
        report,
        budget_of(asks["budget"], first.values, asks["prices"]) if first else None,
        asks["prices"],
        failures=asks["failures"],
        level_wise=asks["level_wise"],
        stop=stop,
    )
    return None if stop() else more


def shared_fabric(document: Mapping[str, Any], *, progress: Tell, stop: Stop) -> SharedFabric:
    """Return what jobs on one fabric come to; it cannot be stopped on the way."""
    del stop
    progress(0.0, "placing, planning and replaying")
    return mix(document, progress=progress)
