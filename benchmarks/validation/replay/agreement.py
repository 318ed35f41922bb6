"""A plan's price beside its replay (`nest_core.simulator`), and how much its messages meet."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.proof_times import drawn_scenario
from nest_core.costs import IDEAL_OVERLAP, NO_OVERLAP, Overlap, Plan, Problem, price
from nest_core.costs.plan import SCHEDULES
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.network import FloatArray
from nest_core.planner import SearchSpace, search
from nest_core.scenario import load_scenario
from nest_core.simulator import Iteration, iteration, simulate
from nest_core.simulator.engine import Calls, Tasks, run

__all__ = ["KINDS", "OVERLAPS", "Agreement", "Case", "cases", "compared", "engine_input"]

OVERLAPS = {"none": NO_OVERLAP, "ideal": IDEAL_OVERLAP}
EFFORT = 0.05
DRAWN, MOST_DEVICES, SEED = 40, 256, 39
QUIET, LOUD, SOME = 0.03, 0.1, 1e-3
"""Largest differences where no messages of different kinds meet and elsewhere, and how much longer
they make an iteration where they do."""
KINDS = {
    "inside layers": Overlap("fitted", tp=1.0),
    "between stages": Overlap("fitted", pp=1.0),
    "gradients and weights": Overlap("fitted", dp=1.0),
}
"""Kinds of traffic, and what hides one alone."""
SCHEDULED = ("gpt3-175b-64-h100", "llama3-70b-256-tpuv4like")
"""Scenarios whose fastest plan of every schedule is replayed."""


@dataclass(frozen=True, slots=True)
class Case:
    """A plan to compare; ``source``: shipped, drawn or a schedule."""

    source: str
    name: str
    problem: Problem
    plan: Plan


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a plan takes in closed form and event by event.

    Parameters
    ----------
    contention : float
        By how much the replay is longer than one in which different kinds of traffic never share
        a link.
    alone : dict of str to float
        Of those beyond the limit where everything hides: what `difference` is where one kind of
        traffic alone hides.
    """

    source: str
    name: str
    plan: str
    overlap: str
    planned_s: float
    simulated_s: float
    contention: float
    alone: Mapping[str, float]

    @property
    def difference(self) -> float:
        """How much longer the replay takes."""
        return self.simulated_s / self.planned_s - 1.0

    @property
    def is_near(self) -> bool:
        """Whether that is within what is asked."""
        return abs(self.difference) <= (QUIET if self.contention <= SOME else LOUD)


def cases() -> Iterator[Case]:
    """Yield the plans of shipped scenarios, of drawn ones and of every schedule."""
    for name in preset_names("scenarios"):
        values = load_scenario(name)
        yield from _planned("shipped", name, values.problem(), values.space)
    count = number = 0
    while count < DRAWN:
        kind, settings = drawn_scenario(SEED, number)
        number += 1
        try:
            values = load_scenario("llama2-7b-64-h100", settings)
            problem = values.problem()
        except InputError:
            continue
        if problem.network.devices <= MOST_DEVICES:
            found = list(_planned("drawn", f"{number - 1}: {kind}", problem, values.space))
            count += bool(found)
            yield from found
    for name in SCHEDULED:
        for schedule in SCHEDULES:
            values = load_scenario(name)
            deep = tuple(pp for pp in values.space.pp if pp > 1)
            space = replace(values.space, schedules=(schedule,), pp=deep, interleave=(2, 3, 4))
            yield from _planned("schedule", f"{schedule}, {name}", values.problem(), space)


def _planned(source: str, name: str, problem: Problem, space: SearchSpace) -> Iterator[Case]:
    for overlap in OVERLAPS.values():
        played = replace(problem, overlap=overlap)
        best = search(played, space, effort=EFFORT).best
        if best is not None:
            yield Case(source, name, played, best.plan)


def engine_input(
    problem: Problem, plan: Plan, **options: Any
) -> tuple[Iteration, tuple[Tasks, Calls, FloatArray, float]]:
    """Return an iteration, and what the engine was given."""
    with mock.patch.object(iteration, "run", wraps=run) as engine:
        played = simulate(problem, plan, **options)
    return played, engine.call_args.args


def compared(case: Case) -> Agreement:
    """Price a plan and play it."""
    report = price(case.problem, case.plan)
    played, (tasks, calls, capacity_Bps, slowdown) = engine_input(case.problem, case.plan)
    # The same on links of which every kind of traffic has its own.
    axes = [
        program.rows[row].call.axis if program.rows[row].call else ""
        for program, row in (
            (played.programs[s], played.programs[s].row[entry])
            for s, entry in zip(played.stage.tolist(), played.entry.tolist(), strict=True)
        )
    ]
    names, axis = np.unique(np.array(axes), return_inverse=True)
    axis_of = np.zeros(len(calls.first_phase) - 1, np.int64)
    axis_of[tasks.call[tasks.call >= 0]] = axis[tasks.call >= 0]
    flows = np.repeat(np.repeat(axis_of, np.diff(calls.first_phase)), np.diff(calls.first_flow))
    crossing = np.repeat(flows, np.diff(calls.first_crossing))
    apart = calls._replace(link=calls.link + crossing * len(capacity_Bps))
    _, ends = run(tasks, apart, np.tile(capacity_Bps, len(names)), slowdown)
    free_s = replace(played, ends_s=ends).seconds
    overlap = case.problem.overlap.name
    result = Agreement(
        case.source,
        case.name,
        case.plan.words,
        overlap,
        report.iteration_s,
        played.seconds,
        played.seconds / free_s - 1.0,
        {},
    )
    return result if result.is_near or overlap == "none" else replace(result, alone=_alone(case))


def _alone(case: Case) -> dict[str, float]:
    """Return the difference where one kind of traffic hides and nothing else."""
    result = {}
    for name, overlap in KINDS.items():
        problem = replace(case.problem, overlap=overlap)
        planned_s = price(problem, case.plan).iteration_s
        result[name] = simulate(problem, case.plan).seconds / planned_s - 1.0
    return result
