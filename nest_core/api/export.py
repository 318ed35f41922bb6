"""A plan as files that a framework, a scheduler or a simulator takes."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nest_core.api.price import Given, given_plan
from nest_core.api.scenario import Named, load
from nest_core.costs import Report, price
from nest_core.documents import InputError, plural, require, write_file
from nest_core.interop.exporters import RELEASES, TARGETS, ExportRefused, export_plan
from nest_core.planner import search
from nest_core.scenario import Scenario, ScenarioValues, scenario_title

__all__ = ["ExportedPlan", "WrittenFiles", "export"]


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
    problem = values.problem()
    require(
        plan is not None or placement is None,
        "plan",
        "must be given beside a placement",
        "absent",
        "name the plan that is placed",
    )
    if plan is not None:
        given = given_plan(values, problem, plan, placement).plan
        report = price(values.problem(given.recompute), given)
    else:
        result = search(problem, values.space, time_limit_s=values.time_limit_s)
        if result.best is None:
            raise InputError(
                "plan",
                f"must be given, since {result.reason}",
                "absent",
                "name one, or change the scenario",
            )
        report = result.best
    try:
        written = export_plan(to, values, report)
    except ExportRefused as error:
        return ExportedPlan(values, to, report, refused=str(error))
    return ExportedPlan(values, to, report, tuple(written.notes), files=written.files)
