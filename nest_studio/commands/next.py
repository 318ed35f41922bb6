"""``nest-studio next``: the runs that narrow the choice of a plan most, or an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nest_core.documents.errors import InputError, require
from nest_core.documents.overrides import settings
from nest_studio.commands.output import JsonFlag, Sets, emit

__all__ = ["next"]


def next(  # named as the command is
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    runs: Annotated[int | None, typer.Option(help="At most so many; 6 unless told.")] = None,
    to: Annotated[str, typer.Option(help="slurm: write one job array of 30-step runs.")] = "",
    output: Annotated[Path, typer.Option(help="Folder to write into.")] = Path(),
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    experiment: Annotated[
        str, typer.Option(help="uplinks: its plan on fewer and fewer uplinks of every leaf.")
    ] = "",
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Choose the runs of a scenario's plans that tell most about which is the fastest."""
    import nest_core as nest
    from nest_core.api.next_runs import Experiment, Next
    from nest_core.api.next_runs import experiment as write_experiment

    require(seed >= 0, "--seed", "must not be negative", seed, "give another number")
    document = nest.load(scenario, settings(sets or ()))
    require(
        experiment in ("", "uplinks"),
        "--experiment",
        "must be uplinks",
        experiment,
        "leave it out",
    )
    if experiment and runs is not None:
        rule = "has no part in an experiment, which runs once for every number of uplinks left"
        raise InputError("--runs", rule, runs, "leave it out")
    if experiment:
        choice: Experiment | Next = write_experiment(document, to=to)
    else:
        choice = nest.next_runs(document, 6 if runs is None else runs, to=to, seed=seed)
    written = choice.write(output)
    fields = choice.to_json() | {"files": {path.name: str(path) for path in written}}
    paths = "".join(f"\n\nWritten to {path}." for path in written)
    emit(fields, as_json, lambda _: f"{choice}{paths}")
