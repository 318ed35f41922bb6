"""What worker processes do for the Measurements page: read logs, fit a stack, choose next runs.

Tasks are as those of `nest_studio.jobs.tasks.requests`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nest_core.api.calibrate import given_by
from nest_core.api.export import next_runs
from nest_core.api.measurements import (
    MeasuredEntry,
    Measurements,
    errors_in_words,
    fitted,
    next_table,
    parameter_table,
    read_entries,
    run_table,
)
from nest_core.calibration.logs import RunFacts
from nest_core.report.figures import Chart
from nest_core.report.figures.measured import errors_picture
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_studio.jobs.tasks.requests import announced

__all__ = ["FitAnswer", "NextAnswer", "chosen_runs", "fit_measured", "read_measured"]


@announced("reading it")
def read_measured(
    content: bytes, name: str, launch: str, model: str, accelerator: str, scenario: Scenario | None
) -> tuple[MeasuredEntry, ...]:
    """Return what a file holds; without one, what the launch command says.

    Fabric, accelerator and model of the runs are the scenario's, if there is one.

    Parameters
    ----------
    launch : str
        The launch command or a configuration, which a person gives beside a log.
    model, accelerator : str
        Presets, given likewise; empty: as the log says.
    """
    given = given_by(scenario.values) if scenario else RunFacts()
    columns = {"accelerator": accelerator} if accelerator else {}
    return read_entries(
        content,
        name,
        replace(given, launch=launch, model=model, columns={**given.columns, **columns}),
    )


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """What a set of measurements comes to, ready to be shown.

    Parameters
    ----------
    runs : Table
        As read, beside what is predicted under the shipped stack.
    skipped : tuple of (str, str)
        Names of those that are not, and why.
    unfitted : str
        Why there is no stack; empty where there is one.
    stack : dict or None
        As a scenario's table.
    toml : str
        The stack's file.
    words : str
        Errors before and after.
    errors : Chart or None
        The same, run by run.
    parameters : Table or None
    """

    runs: Table
    skipped: tuple[tuple[str, str], ...]
    unfitted: str
    stack: Mapping[str, Any] | None = None
    toml: str = ""
    words: str = ""
    errors: Chart | None = None
    parameters: Table | None = None


@announced("fitting the stack's figures to your runs")
def fit_measured(text: str) -> FitAnswer:
    """Predict and fit a set of measurements, given as JSON."""
    fit = fitted(Measurements.from_json(json.loads(text)))
    answer = FitAnswer(run_table(fit), fit.skipped, fit.unfitted)
    if fit.own_stack is None:
        return answer
    return replace(
        answer,
        stack=fit.stack,
        toml=fit.own_stack.toml,
        words=errors_in_words(fit.own_stack),
        errors=errors_picture(fit.own_stack.calibration.runs),
        parameters=parameter_table(fit.own_stack),
    )


@dataclass(frozen=True, slots=True)
class NextAnswer:
    """The next runs worth making.

    Parameters
    ----------
    table : Table
    refused : tuple of str
        Why plans that might be the fastest cannot be run.
    files : mapping of str to str or bytes
        The job.
    """

    table: Table
    refused: tuple[str, ...]
    files: Mapping[str, str | bytes]


@announced("asking which runs tell most")
def chosen_runs(scenario: Scenario, runs: int) -> NextAnswer:
    """Return the runs of a scenario's plans that narrow the choice most, as a job of Slurm's."""
    choice = next_runs(scenario, runs, to="slurm")
    return NextAnswer(next_table(choice, scenario.values), choice.refused, choice.files)
