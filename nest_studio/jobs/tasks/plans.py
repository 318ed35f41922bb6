"""What worker processes do for the Plan page once a plan is there: pictures, why, and exports.

A scenario and its plan in, what is shown out; tasks are as those of
`nest_studio.jobs.tasks.requests`. Apart from them, as plans need no drawing: a worker that finds
one imports none of this.
"""

import io
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nest_core.api.simulate import draws_in_words
from nest_core.costs import Plan, Report
from nest_core.costs.communication import IterationPart, iteration_parts
from nest_core.costs.loads import link_loads
from nest_core.costs.placement import RankMapping, rank_mapping_of
from nest_core.documents import InputError, capital, percent
from nest_core.fabric import Fabric
from nest_core.interop.exporters import RELEASES, ExportRefused, export_plan
from nest_core.network import BusyLink
from nest_core.planner.baselines import Baseline, evaluate_baselines, nest
from nest_core.planner.baselines.cost_matrices import CostMatrices, cost_matrices
from nest_core.report.explain import Equation, Mine, StageBinding, bindings, equations, price_pasted
from nest_core.report.figures import Chart, level_figure, linkload_figure, timeline_figure
from nest_core.report.figures.failures import failures_figure
from nest_core.report.figures.levelwise import cost_matrices_figure, waterfall_figure
from nest_core.report.figures.timeline import links_figure, rows_of_device, rows_of_stages
from nest_core.report.picture import Drawn, picture, untitled
from nest_core.report.picture.matrix import pointed_picture
from nest_core.scenario import Scenario, scenario_title
from nest_core.simulator import drawn_seconds, simulate
from nest_core.simulator.activity import slowest
from nest_core.simulator.link_use import busiest
from nest_core.studies.failures import break_elements, single_failures
from nest_core.studies.whole_bill import spare_nodes
from nest_studio.jobs.tasks.requests import (
    Stop,
    Tell,
    announced,
    problem_of,
)

__all__ = [
    "OFFERED",
    "Levelwise",
    "PlanExport",
    "PlanPictures",
    "design_pictures",
    "level_matrices",
    "levelwise_program",
    "plan_bindings",
    "plan_draws",
    "plan_equations",
    "plan_exports",
    "plan_fabric",
    "plan_failures",
    "plan_links",
    "plan_parts",
    "plan_pictures",
    "plan_rank_mapping",
    "priced_mine",
    "zipped",
]


@dataclass(frozen=True, slots=True)
class PlanPictures:
    """A plan, or that there is none, in pictures.

    Parameters
    ----------
    timeline : Chart
        One iteration, event by event.
    links : Chart
        The busiest links over time.
    beside : Chart
        The level matrix, or the load on links where that is what is asked for.
    """

    timeline: Chart
    links: Chart
    beside: Chart


def plan_pictures(
    scenario: Scenario,
    best: Report | None,
    busy: bool,
    device: int | None,
    *,
    progress: Tell,
    stop: Stop,
) -> PlanPictures | None:
    """Return the pictures of a plan; None once stopped.

    ``busy``: with the load on links; ``device``: with the timeline of one in place of all stages'.
    """
    progress(0.0, "collapsing the fabric into levels")
    network = problem_of(scenario).network
    if stop():
        return None
    if best is None:
        return PlanPictures(timeline_figure(None), links_figure(None, ()), level_figure(network))
    progress(0.2, "simulating an iteration")
    drawn = _played(scenario, best, device)
    progress(0.8, "drawing it")
    loads = link_loads(problem_of(scenario), best) if busy else None
    return PlanPictures(*drawn, linkload_figure(loads) if loads else level_figure(network))


@announced("drawing the fabric")
def plan_fabric(
    scenario: Scenario, best: Report | None, busy: bool, width: float
) -> dict[str, Any]:
    """Return the fabric with a plan on it, beside the cost matrix that it collapses to.

    So many pixels wide, links coloured by load if ``busy``, and as a browser is told of it: to
    take the marks out of the worker one by one costs the server more than to show their text.
    """
    fabric = scenario.fabric
    if best is None:
        return pointed_picture(untitled(picture(fabric, width=width)))
    problem = problem_of(scenario)
    loads, read = link_loads(problem, best), cost_matrices(problem, best.plan)
    drawn = untitled(picture(fabric, best.plan, width=width, loads=loads if busy else None))
    return pointed_picture(drawn, read, loads)


@announced("playing it under other hashes")
def plan_draws(scenario: Scenario, best: Report) -> str:
    """Return what a plan takes under draws of the fabric's hash, in words."""
    problem = problem_of(scenario)
    return draws_in_words(drawn_seconds(problem, simulate(problem, best.plan)))


MOST_LISTED, LONGEST_LIST = 128, 14
"""Devices of a fabric up to which every class is replayed; classes that are drawn."""


@announced("letting elements fail")
def plan_failures(
    scenario: Scenario, best: Report, elements: tuple[str, ...], slow: float
) -> Chart:
    """Return both losses of elements, one at a time; without any of all, or of those that may
    be the worst.

    ``slow``: the share of its speed that each lost; 0 where it failed.
    """
    values, spares = scenario.values, spare_nodes(scenario)
    failures = (
        [
            replace(  # without what no process hands over
                break_elements(
                    values,
                    best.plan,
                    () if slow else (name,),
                    {name: slow} if slow else None,
                    replan=True,
                    spares=spares,
                ),
                iteration=None,
            )
            for name in elements
        ]
        or single_failures(
            values, best.plan, spares=spares, is_every=values.fabric.devices <= MOST_LISTED
        )[:LONGEST_LIST]
    )
    if not failures:
        return failures_figure([], "Nothing here may fail")
    worst = max(failures, key=lambda failure: failure.least_loss)
    return failures_figure(
        [(failure.elements[0], failure) for failure in failures],
        f"{capital(worst.words)} takes {percent(worst.least_loss)}",
    )


@announced("drawing the fabrics")
def design_pictures(
    designs: tuple[tuple[Fabric, Plan | None], ...], width: float
) -> tuple[Drawn, ...]:
    """Fabrics with the plans on them, all of one width."""
    return tuple(picture(fabric, plan, width=width) for fabric, plan in designs)


@announced("taking one iteration apart")
def plan_parts(scenario: Scenario, best: Report) -> tuple[IterationPart, ...]:
    """Return one iteration of a plan's slowest stage, part by part."""
    return iteration_parts(problem_of(scenario), best)


@dataclass(frozen=True, slots=True)
class Levelwise:
    """NEST's level-wise program beside the exact search.

    Parameters
    ----------
    baseline : Baseline
    matrices : Chart
        What the program read.
    waterfall : Chart
        What it promised, takes, and loses by.
    """

    baseline: Baseline
    matrices: Chart
    waterfall: Chart


@announced("running NEST's level-wise program")
def levelwise_program(scenario: Scenario, ours: Report | None) -> Levelwise:
    """NEST's program on a scenario, beside our plan; None: there is none."""
    values, problem = scenario.values, problem_of(scenario)
    (program,) = evaluate_baselines(
        problem,
        values.space,
        values.model,
        ("nest",),
        as_in_paper=values.baseline_space == "paper",
        time_limit_s=values.time_limit_s,
        ours=ours,
    )
    read = cost_matrices(problem, program.report.plan) if program.report else None
    return Levelwise(
        program,
        cost_matrices_figure(read, program.reason),
        waterfall_figure(program, ours.iteration_s if ours else None),
    )


@announced("running NEST's level-wise program")
def level_matrices(scenario: Scenario) -> tuple[str, CostMatrices | None, str]:
    """A scenario's title, the cost matrices of NEST's program on it, and why there are none."""
    values, problem = scenario.values, problem_of(scenario)
    program = nest.find(problem, values.space.seated_on(problem.network), values.time_limit_s)
    read = cost_matrices(problem, program.plan) if program.plan else None
    return scenario_title(values), read, program.reason


@announced("pricing it with more of each resource")
def plan_bindings(scenario: Scenario, best: Report) -> tuple[StageBinding, ...]:
    """Return what binds every stage of a plan."""
    return bindings(problem_of(scenario), best)


@announced("counting the load on every link")
def plan_links(scenario: Scenario, best: Report) -> tuple[BusyLink, ...]:
    """Return the busiest links of a plan."""
    return link_loads(problem_of(scenario), best).busiest


@announced("filling in its figures")
def plan_equations(scenario: Scenario, best: Report) -> tuple[Equation, ...]:
    """Return the equations behind a plan."""
    return equations(problem_of(scenario), best)


@announced("placing its ranks")
def plan_rank_mapping(scenario: Scenario, best: Report) -> RankMapping:
    """Who sits where under a plan."""
    return rank_mapping_of(problem_of(scenario).network, best.plan)


@announced("reading and pricing it")
def priced_mine(scenario: Scenario, pasted: str, placement: str) -> Mine:
    """Return a pasted plan priced on a scenario; InputError where it is none."""
    return price_pasted(scenario.values, pasted, placement)


def _played(scenario: Scenario, best: Report, device: int | None) -> tuple[Chart, Chart]:
    try:
        iteration = simulate(problem_of(scenario), best.plan)
    except InputError as error:
        return timeline_figure(None, why=str(error)), links_figure(None, ())
    if device is None:
        rows, why = rows_of_stages(iteration, slowest(iteration)), ""
    else:
        rows, why = rows_of_device(iteration, device), f"Device {device:,} is idle"
    return timeline_figure(iteration, best, rows, why), links_figure(iteration, busiest(iteration))


OFFERED = tuple(target for target in RELEASES if target != "astra-sim")
"""Targets that a page offers; ASTRA-sim's traces may be of a million nodes."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive: the same plan has the same bytes."""


@dataclass(frozen=True, slots=True)
class PlanExport:
    """A plan for one target.

    Parameters
    ----------
    target : str
        One of `OFFERED`.
    files : mapping of str to str or bytes
        Contents by name; none where it is refused.
    refused : str
        Why the target cannot express the plan; empty where it can.
    notes : tuple of str
        What stays with the framework.
    """

    target: str
    files: Mapping[str, str | bytes]
    refused: str = ""
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return the program and its release."""
        return RELEASES[self.target]


@announced("writing it for every framework")
def plan_exports(scenario: Scenario, ranked: tuple[Report, ...]) -> tuple[PlanExport, ...]:
    """Return a scenario's plan for every target of `OFFERED`, in their order."""
    values, exports = scenario.values, []
    for target in OFFERED:
        try:
            bundle = export_plan(target, values, ranked[0], [report.plan for report in ranked[1:]])
        except ExportRefused as error:
            exports.append(PlanExport(target, {}, str(error)))
        else:
            exports.append(PlanExport(target, dict(bundle.files), "", tuple(bundle.notes)))
    return tuple(exports)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Files in one archive, scripts of the shell executable; the same files, the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            mode = 0o755 if name.endswith((".sh", ".sbatch")) else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return content.getvalue()
