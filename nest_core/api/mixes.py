"""Jobs that share a fabric: who slows whom on which links, or what places cost a population."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nest_core.api.results import Result
from nest_core.api.scenario import Named
from nest_core.documents import format_ratio, named_file, percent, read_text
from nest_core.documents.schema.mix import MixFile
from nest_core.report.explain import busiest_table
from nest_core.report.figures import Chart
from nest_core.report.figures.mixes import (
    mix_finding,
    population_finding,
    population_picture,
    slowdowns_picture,
)
from nest_core.report.tables import Table
from nest_core.studies.mixes import MixResult, load_mix, mix_file, play_mix
from nest_core.studies.population import Population, play_population

__all__ = ["SharedFabric", "mix", "mix_text"]


@dataclass(frozen=True, slots=True)
class SharedFabric(Result):
    """What several jobs, or a population of them, come to on one fabric."""

    result: MixResult | Population

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``nest-studio mix --json``."""
        return self.result.to_json()

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for every job, or for every size of a population."""
        fields = self.to_json()
        return [dict(row) for row in fields["jobs"] or fields["population"]["sizes"]]

    def tables(self) -> tuple[Table, ...]:
        """Return jobs and the links that several use, or ratios and sizes of a population."""
        if isinstance(self.result, Population):
            sizes = [
                {
                    "devices": f"{row['devices']:,.0f}",
                    "GPU-hours": percent(row["share"]),
                    "under one leaf": percent(row["under_one_leaf"]),
                }
                for row in self.result.sizes
            ]
            costs = [
                {
                    "ratio": format_ratio(row["ratio"]),
                    "loss, idle neighbours": percent(row["loss"]),
                    "all send as much": percent(row["contended_loss"]),
                }
                for row in self.result.ratios
            ]
            title = f"Placed by topology/{self.result.placement}"
            return (
                Table(population_finding(self.result), "Loss weighted by GPU-hours", costs),
                Table(title, "Jobs by size, and their share under one leaf", sizes),
            )
        jobs = [
            {
                "job": job.name,
                "devices": f"{len(job.devices):,}",
                "undisturbed, s": f"{job.undisturbed_s:.4g}",
                "here, s": f"{job.seconds:.4g}",
                "slowdown": f"{job.slowdown:.3f}",
                "at most": f"{job.most_s / job.undisturbed_s:.3f}",
            }
            for job in self.result.jobs
        ]
        links = [busiest_table(self.result.links)] if self.result.links else []
        return Table(mix_finding(self.result), "Seconds of an iteration", jobs), *links

    def pictures(self) -> tuple[Chart, ...]:
        """Return slowdowns of jobs, or losses by ratio."""
        if isinstance(self.result, Population):
            return (population_picture(self.result),)
        return (slowdowns_picture([self.result]),)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables()))


def mix_text(name: str) -> str:
    """Return the file of a mix that is shipped; InputError where there is none of that name."""
    return read_text(named_file("mixes", name, None, field="mix"))


def mix(
    file: Named, *, progress: Callable[[float, str], object] = lambda share, words: None
) -> SharedFabric:
    """Play jobs that share a fabric, or what ratios cost a population of them.

    Parameters
    ----------
    file : str, Path or mapping
        A preset's name, a mix file, or its tables.
    progress : callable
        Takes what share of a population's ratios is done, and what comes next.

    Raises
    ------
    InputError
        For what is no mix, jobs that do not fit, or a log that cannot be read.

    Examples
    --------
    >>> [round(job.slowdown, 2) for job in mix("two-jobs-64-h100").result.jobs]
    [1.22, 1.22]
    """
    loaded, folder = (
        (mix_file(dict(file)), None) if isinstance(file, Mapping) else load_mix(str(file), Path())
    )
    return SharedFabric(
        play_mix(loaded, folder)
        if isinstance(loaded, MixFile)
        else play_population(loaded, folder, progress)
    )
