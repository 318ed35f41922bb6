"""``nest-studio calibrate``: a stack of one's own from what a job printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nest_studio.commands.output import JsonFlag, emit

__all__ = ["calibrate"]


def calibrate(
    files: Annotated[list[str], typer.Argument(help="Logs of training runs, or CSV tables.")],
    name: Annotated[str, typer.Option(help="What to call the stack.")],
    as_json: JsonFlag = False,
    launch: Annotated[
        list[str] | None,
        typer.Option(help="Launch command or configuration, text or file; one for each log."),
    ] = None,
    nccl: Annotated[
        list[str] | None,
        typer.Option(help="A log of nccl-tests on this cluster; one of a node, one of several."),
    ] = None,
    on: Annotated[str, typer.Option(help="Fabric or scenario that the runs are of.")] = "",
    accelerator: Annotated[str, typer.Option(help="Accelerator, where no scenario is given.")] = "",
    model: Annotated[str, typer.Option(help="Preset of the model, where none is printed.")] = "",
    output: Annotated[str, typer.Option(help="The stack's file; NAME.toml if not given.")] = "",
) -> None:
    """Calibrate the costs to your own cluster and software, from logs or a table of runs."""
    import nest_core as nest
    from nest_core.api.calibrate import calibrate as fit
    from nest_core.documents.errors import InputError
    from nest_core.documents.files import check_writable, write_file

    if not name.strip() or set(name) & set('/\\:*?"<>|') or name.startswith("."):
        raise InputError("--name", "must be a plain name", name, "use letters, digits and dashes")
    path = Path(output or f"{name}.toml")
    check_writable(path, "--output")
    result = fit(
        files,
        name,
        launch=launch or (),
        on=on,
        accelerator=accelerator,
        model=model,
        nccl=nccl or (),
    )
    write_file(path, result.toml, "--output")
    fields, following = result.to_json() | {"next_runs": [], "output": str(path)}, ""
    if result.scenario:
        best = nest.next_runs(nest.load(result.scenario, {"stack": str(path.resolve())}))
        fields["next_runs"], following = best.to_json()["runs"], f"\n\n{best}"
    emit(fields, as_json, lambda _: f"{result}{following}\n\nWritten to {path}.")
