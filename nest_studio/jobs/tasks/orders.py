"""What worker processes do for orders and acceptance: a scenario's fabric in, rows out."""

from nest_core.bill.cables import Format, cable_schedule, csv_lines
from nest_core.bill.prices import DEFAULT, load_prices
from nest_core.calibration.acceptance.expected import expected_of, library_of
from nest_core.calibration.acceptance.verdict import Verdict, judge, read_runs
from nest_core.network import collapse
from nest_core.scenario import Scenario
from nest_studio.jobs.tasks.requests import announced

__all__ = ["CableSummary", "acceptance", "cable_file", "cable_summary"]

CableSummary = tuple[int, tuple[tuple[str, int], ...], tuple[str, ...]]
"""Cables in all and by tier, and what to know of them."""


@announced("listing its cables")
def cable_summary(scenario: Scenario, settings: tuple[str, ...]) -> CableSummary:
    """Return how many cables a fabric has."""
    schedule = cable_schedule(scenario.fabric, load_prices(DEFAULT, settings))
    return schedule.count, schedule.tiers, schedule.notes


@announced("listing its cables")
def cable_file(scenario: Scenario, settings: tuple[str, ...], style: Format) -> str:
    """Return all of them as CSV."""
    return "".join(
        csv_lines(cable_schedule(scenario.fabric, load_prices(DEFAULT, settings)).cables, style)
    )


@announced("pricing its acceptance tests")
def acceptance(scenario: Scenario, accelerator: str, logs: tuple[tuple[str, str], ...]) -> Verdict:
    """Commands of nccl-tests for a fabric, and what the logs of some say."""
    fabric = scenario.fabric
    return judge(
        expected_of(fabric, collapse(fabric), library_of(fabric, accelerator)), read_runs(logs)
    )
