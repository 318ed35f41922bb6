"""Plans, schedules and collectives of the lessons, by the figures that the app has of them."""

from __future__ import annotations

from dataclasses import replace

from nest_core.costs.plan_words import schedule_words
from nest_core.documents.units import humanise_bytes, humanise_seconds
from nest_core.report.figures import (
    MethodRow,
    Picture,
    balance_figure,
    memory_figure,
    throughput_figure,
    timeline_figure,
)
from nest_core.report.figures.collectives import time_figure
from nest_core.teaching.lessons.figure import Plans, Sweeps, Timelines

__all__ = ["plan_pictures", "sweep_pictures", "timeline_pictures"]


def plan_pictures(plans: Plans) -> tuple[Picture, ...]:
    """Return the views of plans, each with a finding over all of them."""
    reports = {name: report for name, report in plans.reports.items() if report is not None}
    needs = {
        name: max(stage.memory.total for stage in report.stages) for name, report in reports.items()
    }
    judged = "memory" in plans.views
    seconds = {
        name: report.iteration_s
        for name, report in reports.items()
        if report.feasible or not judged
    }
    limit = next(iter(reports.values())).memory_limit_bytes
    entries = [
        MethodRow(name, report, "no plan of this width fits")
        if report is None
        else MethodRow(name, report, "" if name in seconds else "some stage does not fit")
        for name, report in plans.reports.items()
    ]
    leanest = min(needs, key=needs.__getitem__)
    low, high = humanise_bytes(needs[leanest]), humanise_bytes(max(needs.values()))
    memory = f"{leanest} needs least, {low} of {humanise_bytes(limit)}; the most is {high}"
    if len(needs) == 1:
        memory = f"{leanest} needs {low} of {humanise_bytes(limit)} on its fullest stage"
    time = rate = "Nothing fits"
    if seconds:
        fastest = min(seconds, key=seconds.__getitem__)
        time = f"{fastest} is fastest: {humanise_seconds(seconds[fastest])} an iteration"
        tokens_per_s = reports[fastest].samples_per_s * plans.tokens
        rate = f"{fastest} trains most: {tokens_per_s:,.0f} tokens/s"
    pictures = {
        "memory": lambda: replace(memory_figure(entries, limit), title=memory),
        "time": lambda: replace(balance_figure(entries), title=time),
        "rate": lambda: replace(throughput_figure(entries, plans.tokens), title=rate),
    }
    return tuple(pictures[view]() for view in plans.views)


def timeline_pictures(found: Timelines) -> tuple[Picture, ...]:
    """Return a timeline per schedule."""
    return tuple(
        replace(picture, title=f"{schedule_words(point.schedule, 1)}: {picture.title}")
        for timeline in found.timelines
        for point, picture in ((timeline.report.plan.point, timeline_figure(timeline)),)
    )


def sweep_pictures(found: Sweeps) -> tuple[Picture, ...]:
    """Return the times of each algorithm."""
    return tuple(
        replace(picture, title=f"{sweep.algorithms[0].replace('_', ' ')}: {picture.title}")
        for sweep in found.sweeps
        for picture in (time_figure(sweep),)
    )
