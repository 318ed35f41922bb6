"""Which runs narrow the choice of a plan most, and the job that runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nest_core.api.scenario import Named, Scenario, load
from nest_core.api.words import plan_words
from nest_core.costs import Report
from nest_core.errors import InputError
from nest_core.exporters import Refused, export_plan
from nest_core.exporters.job_array import export_array
from nest_core.files import write_file
from nest_core.studies.next_runs import NextRuns
from nest_core.studies.next_runs import next_runs as chosen
from nest_core.text import table

__all__ = ["Next", "next_runs"]


@dataclass(frozen=True, slots=True)
class Next:
    """Runs that narrow a choice, and the files that run them.

    Parameters
    ----------
    found : NextRuns
    files : mapping of str to str
        Contents by name; none where no target was asked for.
    refused : tuple of str
        Why the target cannot run a plan that might be the fastest, each reason once.
    """

    found: NextRuns
    files: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()

    def write(self, folder: str | Path = ".") -> tuple[Path, ...]:
        """Write the files into a folder that exists; their paths.

        Raises
        ------
        InputError
            If they cannot be written.
        """
        for name, content in self.files.items():
            write_file(Path(folder) / name, content, "folder")
        return tuple(Path(folder) / name for name in self.files)

    def to_json(self) -> dict[str, Any]:
        """The fields of ``nest-studio next --json``; contents under ``files``."""
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
                plan_words(run.report.plan.to_json()),
                f"{run.report.iteration_s:.4g}",
                f"{run.expected_regret_removed_s:.3g}",
            ]
            for place, run in enumerate(self.found.runs)
        ]
        said = (
            f"{self.found.candidates} plans may be the fastest; to know which would save "
            f"{self.found.expected_regret_s:.3g} s of an iteration on average."
        )
        head = ["run", "plan", "predicted, s", "removes, s"]
        return "\n".join(
            [said, "", table(head, rows), *(f"not run: {why}" for why in self.refused)]
        )


def next_runs(scenario: Scenario | Named, runs: int = 6, *, to: str = "", seed: int = 0) -> Next:
    """The runs whose times narrow the choice of a scenario's plan most.

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
    if to not in ("", "slurm"):
        raise InputError("to", "must be slurm", to, "leave it out, or give --to slurm")
    asked = load(scenario).values
    refused: dict[str, None] = {}

    def runnable(report: Report) -> bool:
        try:
            export_plan("megatron", asked, report)
        except Refused as error:
            refused[str(error)] = None
            return False
        return True

    if not to:
        return Next(chosen(asked, runs, seed=seed))
    found = chosen(asked, runs, runnable, seed)
    bundle = export_array(asked, [run.report for run in found.runs])
    files = {name: str(content) for name, content in bundle.files.items()}
    return Next(found, files, tuple(refused))
