"""``nest-studio export``: a plan as files that a framework, a scheduler or a simulator takes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.errors import InputError
from nest_core.files import write_file
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.commands.plan import Sets
from nest_studio.commands.price import given_plan

if TYPE_CHECKING:
    from nest_core.costs import Report
    from nest_core.scenario import Scenario

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
        Path | None, typer.Option(help="Where its ranks sit, by hand: CSV or JSON, see place.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write into; without it, files are printed.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Export a plan, or say why the target cannot express it."""
    from nest_core.export import TARGETS, Bundle, Refused, export_plan
    from nest_core.scenario import load_scenario
    from nest_core.titles import scenario_title

    if to not in TARGETS:
        raise InputError("--to", "must be a known target", to, "pick " + ", ".join(TARGETS))
    asked = load_scenario(scenario, sets or ())
    report = _priced(asked, plan, placement)
    refused, bundle = None, Bundle({})
    try:
        bundle = export_plan(to, asked, report)
    except Refused as error:
        refused = str(error)
    binary = sorted(name for name, content in bundle.files.items() if isinstance(content, bytes))
    if output is not None:
        _write(output, bundle.files)
    fields = {
        "scenario": scenario_title(asked),
        "target": to,
        "plan": report.plan.to_json(),
        "feasible": report.feasible,
        "refused": refused,
        "files": {name: _shown(content) for name, content in bundle.files.items()}
        if output is None
        else {name: str(output / name) for name in bundle.files},
        "base64": binary if output is None else [],
        "output": str(output) if output is not None else None,
        "notes": bundle.notes,
    }
    emit(fields, as_json, _as_text)


def _priced(scenario: Scenario, plan: str, placement: Path | None) -> Report:
    """The given plan, or the best one, with its price."""
    from nest_core.costs import price
    from nest_core.planner import search

    problem = scenario.problem()
    if plan:
        return price(problem, given_plan(scenario, problem, plan, placement).plan)
    if placement is not None:
        raise InputError(
            "--plan", "must be given beside --placement", "absent", "name the plan that is placed"
        )
    found = search(problem, scenario.space, time_limit_s=scenario.time_limit_s)
    if found.best is None:
        raise InputError(
            "--plan", f"must be given, since {found.reason}", "absent",
            "name one, or change the scenario",
        )  # fmt: skip
    return found.best


def _shown(content: str | bytes) -> str:
    return content if isinstance(content, str) else base64.b64encode(content).decode()


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(
            "--output", "must be a folder that can be written", str(error), "check the path"
        ) from error
    for name, content in files.items():
        write_file(folder / name, content, "--output")


def _as_text(fields: Mapping[str, Any]) -> str:
    if fields["refused"]:
        return f"refused: {fields['refused']}"
    parts = []
    if fields["output"]:
        count = len(fields["files"])
        shown = sorted(fields["files"])[:12]
        parts.append(
            f"{count} file{'' if count == 1 else 's'} in {fields['output']}: "
            + ", ".join(shown)
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
