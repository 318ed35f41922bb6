"""A plan as files that a framework, a scheduler or a simulator takes.

Files run experiments too: which runs narrow the choice of a plan most, or settle oversubscription.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nest_core.api.price import Given, priced_plans
from nest_core.api.scenario import Named, load
from nest_core.costs import Report
from nest_core.documents import (
    InputError,
    format_ratio,
    plural,
    require,
    table,
    write_file,
)
from nest_core.interop.exporters import RELEASES, TARGETS, ExportRefused, export_plan
from nest_core.interop.exporters.job_array import export_array, export_uplinks
from nest_core.planner import search
from nest_core.scenario import Scenario, ScenarioValues, scenario_title
from nest_core.studies.next_runs import NextRuns, UplinksOff, check_leaves, uplinks_off
from nest_core.studies.next_runs import next_runs as chosen

__all__ = [
    "Experiment",
    "ExportedPlan",
    "Next",
    "WrittenFiles",
    "experiment",
    "export",
    "next_runs",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFiles:
    """What comes with files.

    Parameters
    ----------
    files : mapping of str to str or bytes
        Contents by name; none where no target was asked for.
    """

    files: Mapping[str, str | bytes] = field(default_factory=dict)

    def write(self, folder: str | Path = ".") -> tuple[Path, ...]:
        """Write the files into a folder, which is made, and return their paths.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        require(isinstance(folder, str | Path), "folder", "must be a path", folder, "name a folder")
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise InputError(
                "folder", "must be a folder that can be written", str(error), "check the path"
            ) from error
        for name, content in self.files.items():
            write_file(place / name, content, "folder")
        return tuple(place / name for name in self.files)


@dataclass(frozen=True, slots=True)
class ExportedPlan(WrittenFiles):
    """A plan as the files that a framework, a scheduler or a simulator takes.

    Parameters
    ----------
    scenario : ScenarioValues
    target : str
    report : Report
    notes : tuple of str
    refused : str
        Why the target cannot express the plan; empty where it can.
    """

    scenario: ScenarioValues
    target: str
    report: Report
    notes: tuple[str, ...] = ()
    refused: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio export --json``; binary files in base 64."""
        return {
            "scenario": scenario_title(self.scenario),
            "target": self.target,
            "release": RELEASES[self.target],
            "plan": self.report.plan.to_json(),
            "feasible": self.report.feasible,
            "refused": self.refused or None,
            "files": {
                name: content if isinstance(content, str) else base64.b64encode(content).decode()
                for name, content in self.files.items()
            },
            "base64": sorted(n for n, content in self.files.items() if isinstance(content, bytes)),
            "output": None,
            "notes": list(self.notes),
        }

    @property
    def remarks(self) -> list[str]:
        """What is said beside the files, a line each."""
        fits = [] if self.report.feasible else ["note: the plan does not fit into memory."]
        refused = [f"refused: {self.refused}"] if self.refused else []
        return refused or [*fits, *(f"note: {note}" for note in self.notes)]

    def __str__(self) -> str:
        texts = [f"==> {name} <==\n{c}" for name, c in self.files.items() if isinstance(c, str)]
        binary = len(self.files) - len(texts)
        folder = [f"{plural(binary, 'binary file')} not printed: write them into a folder."]
        return "\n".join([*texts, *(folder if binary else []), *self.remarks])


def export(
    scenario: Scenario | Named,
    to: str,
    plan: Given | None = None,
    *,
    placement: str | Path | None = None,
) -> ExportedPlan:
    """Return a plan in the words of another program.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    to : {"megatron", "nemo", "deepspeed", "torchtitan", "maxtext", "slurm", "astra-sim"}
    plan : optional
        As `price` takes it; the best plan without it.
    placement : str or Path, optional
        A CSV or JSON file with its rank mapping.

    Raises
    ------
    InputError
        If there is no such target, it is no plan of this scenario, or there is none that fits.
        That the target cannot express the plan is an answer.
    """
    require(
        isinstance(to, str) and to in TARGETS,
        "to",
        "must be a known target",
        to,
        "pick " + ", ".join(TARGETS),
    )
    values = load(scenario).values
    report, others = priced_plans(values, plan, placement)
    try:
        written = export_plan(to, values, report, others)
    except ExportRefused as error:
        return ExportedPlan(values, to, report, refused=str(error))
    return ExportedPlan(values, to, report, tuple(written.notes), files=written.files)


TOP = 8
"""Plans, the best of which that can be run is the experiment's."""


@dataclass(frozen=True, slots=True)
class Next(WrittenFiles):
    """Runs that narrow a choice, and the files that run them.

    Parameters
    ----------
    found : NextRuns
    refused : tuple of str
        Why the target cannot run a plan that might be the fastest, each reason once.
    """

    found: NextRuns
    refused: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio next --json``; contents under ``files``."""
        return {
            "runs": [run.to_json() for run in self.found.runs],
            "candidates": self.found.candidates,
            "draws": self.found.draws,
            "expected_regret_s": self.found.expected_regret_s,
            "refused": list(self.refused),
            "files": dict(self.files),
        }

    def __str__(self) -> str:
        rows = [
            [
                f"{place}",
                run.report.plan.words,
                f"{run.report.iteration_s:.4g}",
                f"{run.expected_regret_removed_s:.3g}",
            ]
            for place, run in enumerate(self.found.runs)
        ]
        parts = (
            f"{self.found.candidates} plans may be the fastest; to know which would save "
            f"{self.found.expected_regret_s:.3g} s of an iteration on average."
        )
        head = ["run", "plan", "predicted, s", "removes, s"]
        return "\n".join(
            [parts, "", table(head, rows), *(f"not run: {why}" for why in self.refused)]
        )


@dataclass(frozen=True, slots=True)
class Experiment(WrittenFiles):
    """One plan on fewer and fewer uplinks, and the files that run it.

    Parameters
    ----------
    found : UplinksOff
    """

    found: UplinksOff

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio next --experiment uplinks --json``."""
        return {
            "experiment": "uplinks",
            "plan": self.found.report.plan.to_json(),
            "leaves": self.found.leaves,
            "spines": self.found.spines,
            "steps": [
                step.to_json() | {"keep": self.found.kept(step.remaining)}
                for step in self.found.steps
            ],
            "crosses": self.found.crosses,
            "files": dict(self.files),
        }

    @property
    def words(self) -> str:
        """What leaves have."""
        count = self.found.steps[0].remaining
        return (
            f"{self.found.leaves:,} leaf switches with {count} uplinks each, "
            f"{self.found.kept(count)}; the plan is {self.found.report.plan.words}."
        )

    @property
    def table(self) -> str:
        """What stays on at every leaf, and what is predicted."""
        rows = [
            [
                f"{step.remaining}",
                format_ratio(step.oversubscription),
                self.found.kept(step.remaining),
                f"{step.interval.centre_s:.4g}",
                f"{step.interval.low_s:.4g} to {step.interval.high_s:.4g}",
                f"{step.ratio:.4f}",
                f"{step.ratio_interval[0]:.3f} to {step.ratio_interval[1]:.3f}",
            ]
            for step in self.found.steps
        ]
        head = ["left", "down:up", "every leaf keeps", "predicted, s", "80 %", "ratio", "80 %"]
        return table(head, rows)

    def __str__(self) -> str:
        parts = [self.words, self.table]
        if not self.found.crosses:
            parts.append(
                "This plan hardly notices its uplinks: pin search to one that sends across leaves "
                "(ZeRO 3 over all devices, experts over two leaves), and keep this as the control."
            )
        return "\n\n".join(parts)


def experiment(scenario: Scenario | Named, *, to: str = "") -> Experiment:
    """Return a scenario's plan on every number of uplinks that its leaves may have left.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    to : {"", "slurm"}
        Also write it as a job array that launches Megatron-LM, with the best plan that it can
        express.

    Raises
    ------
    InputError
        If there is no such target, the fabric's leaves have no uplinks, no plan fits, or none can
        be run.
    """
    _check_target(to)
    values = load(scenario).values
    check_leaves(values.fabric)
    result = search(values.problem(), values.space, top=TOP, time_limit_s=values.time_limit_s)
    if result.best is None:
        raise InputError("scenario", "must have a plan", result.reason, "change it")
    if not to:
        return Experiment(uplinks_off(values, result.best))
    refused: ExportRefused | None = None
    for report in result.ranked:
        try:
            export_plan("megatron", values, report)
        except ExportRefused as error:
            refused = refused or error
            continue
        planned = Experiment(uplinks_off(values, report))
        written = export_uplinks(
            values, report, planned.found.steps[0].remaining, planned.words, planned.table
        )
        return replace(planned, files=written.files)
    raise refused or InputError("to", "must be able to run a plan", to, "leave it out")


def _check_target(to: str) -> None:
    require(to in ("", "slurm"), "to", "must be slurm", to, "leave it out, or give --to slurm")


def next_runs(scenario: Scenario | Named, runs: int = 6, *, to: str = "", seed: int = 0) -> Next:
    """Return the runs whose times narrow the choice of a scenario's plan most.

    Parameters
    ----------
    scenario : Scenario, str, Path or mapping
    runs : int
        At most so many.
    to : {"", "slurm"}
        Also write them as one job array that launches Megatron-LM; plans that it cannot express
        are then not among them.
    seed : int
        Of draws and outcomes.

    Raises
    ------
    InputError
        If there is no such target, no plan fits, or none of them can be run.
    """
    _check_target(to)
    values = load(scenario).values
    refused: dict[str, None] = {}

    def runnable(report: Report) -> bool:
        try:
            export_plan("megatron", values, report)
        except ExportRefused as error:
            refused[str(error)] = None
            return False
        return True

    if not to:
        return Next(chosen(values, runs, seed=seed))
    result = chosen(values, runs, runnable, seed)
    written = export_array(values, [run.report for run in result.runs])
    return Next(result, tuple(refused), files=written.files)
