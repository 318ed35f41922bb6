"""``nest-studio price``: what a given plan would take, beside the best one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from nest_core.errors import InputError
from nest_studio.commands.output import JsonFlag, emit, table
from nest_studio.commands.plan import Sets, band_line, overlap_line

__all__ = ["price"]


def price(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    plan: Annotated[str, typer.Option(help="JSON file, dp=8,tp=4,… or Megatron-LM flags.")],
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Price a plan on a scenario, term by term."""
    from nest_core.answer import assumptions_json, report_json, validity_json
    from nest_core.costs import price as price_plan
    from nest_core.costs.parse import read_plan
    from nest_core.planner import search
    from nest_core.scenario import load_scenario
    from nest_core.validity import standing

    asked = load_scenario(scenario, sets or ())
    problem = asked.problem()
    given = read_plan(plan, problem.layers, problem.network.devices)
    if asked.model.heads % given.point.tp:
        raise InputError(
            "plan.tp", f"must divide the model's {asked.model.heads} heads", given.point.tp,
            "choose another tp",
        )  # fmt: skip
    report = price_plan(problem, given)
    best = search(problem, asked.space, time_limit_s=asked.time_limit_s).best
    fields = report_json(report)
    fields["best_iteration_time_s"] = best.iteration_s if best else None
    fields["difference"] = report.iteration_s / best.iteration_s - 1 if best else None
    fields |= assumptions_json(asked, problem.overlap)
    fields |= validity_json(standing(asked, problem.network, given), report)
    emit(fields, as_json, _as_text)


def _as_text(fields: Mapping[str, Any]) -> str:
    rows = [[name, f"{seconds:.4g}"] for name, seconds in fields["terms"].items()]
    rows.append(["iteration", f"{fields['iteration_time_s']:.4g}"])
    difference = fields["difference"]
    beside = "nothing fits" if difference is None else f"{difference:+.2%} against the best plan"
    verdict = "fits" if fields["feasible"] else f"does not fit: {fields['reason']}"
    return f"{verdict}; {beside}\n{band_line(fields)}\n{overlap_line(fields)}\n\n" + table(
        ["term", "s"], rows
    )
