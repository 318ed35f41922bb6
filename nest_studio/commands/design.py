"""``nest-studio design``: of all fabrics that may be bought, those that no other beats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.text import table
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.commands.sweep import DaskOption, WorkersOption, interrupts, opened_pool, progress

if TYPE_CHECKING:
    from nest_core.studies.design_search import Planned

__all__ = ["design"]


def design(
    study: Annotated[str, typer.Argument(help="Study with a [design]: a preset or a TOML file.")],
    workers: WorkersOption = None,
    dask: DaskOption = None,
    as_json: JsonFlag = False,
) -> None:
    """The fabrics of a design study that no other beats in price, power and days, proven."""
    from nest_core.store import Database, StoredAnswers, database_url
    from nest_core.studies.design_search import search_designs
    from nest_core.studies.study import load_study

    asked = load_study(study, Path())
    answers = StoredAnswers(Database(database_url()))
    with interrupts() as stop, progress(asked.name) as tell:
        pool, count = opened_pool(stop, workers, dask)
        found = search_designs(asked, answers, pool, count, tell=tell, stop=stop.is_set)
    certificate = found.certificate
    fields = {
        "designs": certificate.designs,
        "pareto": [_fields(one) for one in found.pareto],
        "certificate": {
            "designs": certificate.designs,
            "planned": certificate.planned,
            "bounded": certificate.bounded,
            "infeasible": certificate.infeasible,
            "left": certificate.left,
            "gap": certificate.gap,
            "proven": certificate.proven,
        },
        "planned": [_fields(one) for one in found.planned],
        "refused": [{"name": one.name, "reason": one.reason} for one in found.refused],
    }
    emit(fields, as_json, _as_text)


def _fields(one: Planned) -> dict[str, Any]:
    return {
        "name": one.design.name,
        "price_usd": one.design.price_usd,
        "power_w": one.design.power_W,
        "days": one.days,
        "plan": one.plan,
        "no_source": list(one.design.owned.missing),
    }


def _as_text(found: Mapping[str, Any]) -> str:
    rows = [
        (
            one["name"],
            f"{one['price_usd'] / 1e6:,.4g}",
            f"{one['power_w'] / 1e3:,.4g}",
            f"{one['days']:.5g}",
        )
        for one in found["pareto"]
    ]
    proof = found["certificate"]
    parts = [f"{proof[key]:,} {key}" for key in ("designs", "planned", "bounded", "infeasible")]
    verdict = "no other beats these" if proof["proven"] else f"open, gap {proof['gap']:.2%}"
    said = [f"{', '.join(parts)}; {verdict}."]
    unpriced = sorted({line for one in found["pareto"] for line in one["no_source"]})
    if unpriced:
        said.append(f"Without a source, and so in no price: {', '.join(unpriced)}.")
    return "\n".join([table(("design", "M$", "kW", "days"), rows), *said])
