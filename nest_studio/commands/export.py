"""``nest-studio export``: a plan as files that a framework, a scheduler or a simulator takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents.overrides import settings
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.commands.plan import Sets

__all__ = ["export"]


def export(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    to: Annotated[
        str,
        typer.Option(help="megatron, nemo, deepspeed, torchtitan, slurm or astra-sim."),
    ],
    plan: Annotated[
        str,
        typer.Option(help="JSON file, dp=8,tp=4,… or a Megatron-LM command; without it, the best."),
    ] = "",
    placement: Annotated[
        Path | None, typer.Option(help="Its rank mapping: CSV or JSON, see place.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write into; without it, files are printed.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Export a plan, or say why the target cannot express it."""
    import nest_core as nest

    document = nest.load(scenario, settings(sets or ()))
    bundle = nest.export(document, to, plan or None, placement=placement)
    fields = bundle.to_json()
    if output is not None:
        files = {path.name: str(path) for path in bundle.write(output)}
        fields |= {"files": files, "base64": [], "output": str(output)}
    emit(fields, as_json, _as_text)


def _as_text(fields: Mapping[str, Any]) -> str:
    if fields["refused"]:
        return f"refused: {fields['refused']}"
    parts = []
    if fields["output"]:
        count = len(fields["files"])
        names = sorted(fields["files"])[:12]
        parts.append(
            f"{count} file{'' if count == 1 else 's'} in {fields['output']}: "
            + ", ".join(names)
            + (", …" if count > 12 else "")
        )
    else:
        parts += [
            f"==> {name} <==\n{content}"
            for name, content in fields["files"].items()
            if name not in fields["base64"]
        ]
        if fields["base64"]:
            parts.append(
                f"{len(fields['base64'])} binary files are not printed: give --output a folder."
            )
    if not fields["feasible"]:
        parts.append("note: the plan does not fit into memory.")
    parts += [f"note: {note}" for note in fields["notes"]]
    return "\n".join(parts)
