"""``nest-studio place``: which device plays which part in a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.errors import InputError
from nest_studio.commands.output import JsonFlag, emit, plain, table
from nest_studio.commands.plan import Sets
from nest_studio.commands.price import given_plan

__all__ = ["place"]


def place(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    plan: Annotated[
        str | None,
        typer.Option(
            help="JSON file, dp=8,tp=4,… or a Megatron-LM command; the best plan by default."
        ),
    ] = None,
    placement: Annotated[
        Path | None, typer.Option(help="Where its ranks sit, by hand: CSV or JSON.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the table here, as CSV or JSON by the ending.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Name every device's rank, replica, stage and rank on each axis, all counted from 0."""
    from nest_core.costs import check_plan
    from nest_core.files import write_file
    from nest_core.layout.placement import seated
    from nest_core.planner import search
    from nest_core.scenario import load_scenario

    if placement is not None and plan is None:
        raise InputError("--placement", "must come with --plan", str(placement), "add --plan")
    _check_ending(output)
    asked = load_scenario(scenario, sets or ())
    problem = asked.problem()
    if plan is not None:
        chosen = given_plan(asked, problem, plan, placement).plan
        check_plan(problem, chosen)
    else:
        found = search(problem, asked.space, time_limit_s=asked.time_limit_s)
        if found.best is None:
            nothing: dict[str, Any] = {
                "reason": found.reason,
                "plan": None,
                "devices": 0,
                "placement": [],
            }
            emit(nothing | {"output": None}, as_json, _as_text)
            return
        chosen = found.best.plan
    seats = seated(problem.network, chosen)
    rows = seats.rows()
    if output is not None:
        document = json.dumps({"plan": plain(chosen.to_json()), "placement": rows}) + "\n"
        text = document if output.suffix.lower() == ".json" else seats.to_csv()
        write_file(output, text, "--output")
    fields = {
        "reason": None,
        "plan": chosen.to_json(),
        "devices": len(rows),
        "placement": rows,
        "output": str(output) if output else None,
    }
    emit(fields, as_json, _as_text)


def _check_ending(output: Path | None) -> None:
    if output is not None and output.suffix.lower() not in (".csv", ".json"):
        raise InputError("--output", "must end in .csv or .json", str(output), "rename it")


def _as_text(fields: Mapping[str, Any]) -> str:
    if fields["plan"] is None:
        return f"infeasible: {fields['reason']}"
    if fields["output"]:
        return f"{fields['output']}: {fields['devices']:,} devices"
    rows = fields["placement"]
    return table(list(rows[0]), [list(row.values()) for row in rows])
