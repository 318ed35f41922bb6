"""``nest-studio plan``: the best plan of a scenario, with its certificate and the baselines."""

from __future__ import annotations

from typing import Annotated

import typer

from nest_core.documents.errors import InputError
from nest_core.documents.overrides import settings
from nest_studio.commands.output import JsonFlag, emit

__all__ = ["Sets", "plan"]

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key with a TOML value."),
]
"""The option ``--set`` that every command on a scenario takes."""


def plan(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    sets: Sets = None,
    top: Annotated[int | None, typer.Option(help="How many of the best points to print.")] = None,
    audit: Annotated[int, typer.Option(help="Solve this many excluded points at random.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the audit's draw.")] = 0,
    draws: Annotated[
        int, typer.Option(help="Draws of what is not known exactly, each searched anew.")
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Plan a scenario under the studio's own costs."""
    import nest_core as nest
    from nest_core.api.answer import answer, with_draws
    from nest_core.api.fields import plan_text
    from nest_core.planner import audit as audit_search
    from nest_core.planner import head_room_steps, shadow_prices
    from nest_core.studies.draw_search import checked_draws
    from nest_studio.commands.watching import tell_share, watched
    from nest_studio.jobs.pools import cores, processes
    from nest_studio.server.system import peak_bytes

    if not 0 <= audit <= 100_000:
        raise InputError("--audit", "must lie between 0 and 100,000", audit, "give another number")
    if seed < 0:
        raise InputError("--seed", "must not be negative", seed, "give another number")
    checked_draws(draws, "--draws")
    changes = settings(sets or ()) | ({} if top is None else {"search.top": top})
    values = nest.load(scenario, changes).values
    with watched() as (progress, stop):
        problem = values.problem()
        result = answer(values, problem=problem, progress=progress, stop=stop)
        if draws:
            with processes(cores()) as pool:  # which hears no interrupt: this process does
                result = with_draws(
                    result, problem, draws, pool=pool, progress=tell_share, stop=stop
                )
    fields = result.to_json()
    fields["shadow_prices"] = fields["head_room"] = None
    best = result.result.best
    if best and result.result.certificate.proven:
        limit, plans = values.time_limit_s, (best, *result.result.alternatives)
        fields["shadow_prices"] = shadow_prices(problem, values.space, best.iteration_s, limit)
        steps = head_room_steps(problem, values.space, plans, limit)
        fields["head_room"] = [step.to_json(best.iteration_s) for step in steps]
    if audit:
        checked = audit_search(problem, values.space, result.result, audit, seed)
        fields["audit"] = {
            "solved": checked.solved,
            "infeasible": checked.infeasible,
            "violations": [repr(point) for point in checked.violations],
        }
    fields["peak_memory_bytes"] = peak_bytes()
    emit(fields, as_json, plan_text)
