"""``nest-studio place``: which device plays which part in a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents.errors import InputError
from nest_core.documents.overrides import settings
from nest_core.documents.text import plain
from nest_studio.commands.output import JsonFlag, emit, show
from nest_studio.commands.plan import Sets

__all__ = ["place"]


def place(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    plan: Annotated[
        str | None,
        typer.Option(
            help="JSON file, dp=8,tp=4,… or a Megatron-LM command; the best plan by default."
        ),
    ] = None,
    placement: Annotated[Path | None, typer.Option(help="Its rank mapping: CSV or JSON.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the table here, as CSV or JSON by the ending.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Name every device's rank, replica, stage and rank on each axis, all counted from 0."""
    import nest_core as nest
    from nest_core.documents.files import write_file

    if placement is not None and plan is None:
        raise InputError("--placement", "must come with --plan", str(placement), "add --plan")
    _check_ending(output)
    mapping = nest.place(nest.load(scenario, settings(sets or ())), plan, placement=placement)
    if output is None or mapping.plan is None:
        show(mapping, as_json)
        return
    fields = mapping.to_json()
    document = json.dumps(plain({"plan": fields["plan"], "placement": fields["placement"]})) + "\n"
    text = document if output.suffix.lower() == ".json" else mapping.to_csv()
    write_file(output, text, "--output")
    emit(fields | {"output": str(output)}, as_json, _as_text)


def _check_ending(output: Path | None) -> None:
    if output is not None and output.suffix.lower() not in (".csv", ".json"):
        raise InputError("--output", "must end in .csv or .json", str(output), "rename it")


def _as_text(fields: Mapping[str, Any]) -> str:
    return f"{fields['output']}: {fields['devices']:,} devices"
