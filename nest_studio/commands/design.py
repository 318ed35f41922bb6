"""``nest-studio design``: of all fabrics that may be bought, those that no other beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_core.documents.text import table
from nest_core.documents.units import percent
from nest_studio.commands.output import JsonFlag, emit
from nest_studio.commands.sweep import (
    DaskOption,
    WorkersOption,
    opened_pool,
    progress,
    shared_event,
)

if TYPE_CHECKING:
    from nest_core.studies.design_choice import Contender
    from nest_core.studies.design_growth import GrowthPath
    from nest_core.studies.design_search import Planned

__all__ = ["design"]

_FATES = ("designs", "planned", "bounded", "infeasible", "left")


def design(
    study: Annotated[str, typer.Argument(help="Study with a [design]: a preset or a TOML file.")],
    workers: WorkersOption = None,
    dask: DaskOption = None,
    as_json: JsonFlag = False,
) -> None:
    """The fabrics of a design study that no other beats in price, power and days, proven."""
    from nest_core.studies.design_growth import ways_to_grow
    from nest_core.studies.design_search import search_designs
    from nest_core.studies.sensitivity import choose_design
    from nest_core.studies.study import load_study
    from nest_studio.commands.watching import interrupts
    from nest_studio.session.store import Database, StoredAnswers, database_url

    study_file = load_study(study, Path())
    answers = StoredAnswers(Database(database_url()))
    with interrupts(shared_event()) as stop, progress(study_file.name) as tell:
        pool = opened_pool(stop, workers, dask)
        search = search_designs(study_file, answers, pool, tell=tell, stop=stop.is_set)
        answer = choose_design(study_file, search, pool)
    choice, rests_on = answer.choice, answer.sensitivity
    best = [contender.planned.design for contender in choice.contenders if contender.rank == 1]
    growth = ways_to_grow(study_file, best)
    fields = {
        "goal": choice.goal,
        "choice": choice.contenders[0].name if choice.contenders else None,
        "designs": search.certificate.designs,
        "certificate": asdict(search.certificate) | {"proven": search.certificate.proven},
        "pareto": [_contender(contender) for contender in choice.contenders],
        "sensitivity": asdict(rests_on) if rests_on else None,
        "sentences": list(rests_on.sentences) if rests_on else [],
        "growth": [_way(contender) for contender in growth],
        "planned": [_planned(contender) for contender in search.planned],
        "refused": [asdict(contender) for contender in search.refused],
    }
    emit(fields, as_json, _as_text)


def _planned(one: Planned) -> dict[str, Any]:
    return {
        "name": one.design.name,
        "price_usd": one.design.price_usd,
        "power_w": one.design.power_W,
        "days": one.days,
        "gap": one.gap,
        "plan": one.plan,
    }


def _contender(one: Contender) -> dict[str, Any]:
    worst = one.worst_loss
    return {
        **_planned(one.planned),
        "rank": one.rank,
        "value": one.value,
        "days_range": list(one.span),
        "ties": list(one.ties),
        "worst_failure": {"lost": worst[0], "what": worst[1]} if worst else None,
        "no_source": list(one.planned.design.owned.missing),
    }


def _way(one: GrowthPath) -> dict[str, Any]:
    return asdict(one) | {"total_usd": one.total_usd, "recabled": one.recabled}


def _as_text(found: Mapping[str, Any]) -> str:
    from nest_core.studies.design_choice import in_words

    by_days = found["goal"] == "days"
    rows = [
        (
            str(row["rank"]),
            row["name"],
            *([] if by_days else [in_words(found["goal"], row["value"])]),
            f"{row['price_usd'] / 1e6:,.4g}",
            f"{row['power_w'] / 1e3:,.4g}",
            f"{row['days']:.4g} ({row['days_range'][0]:.3g} to {row['days_range'][1]:.3g})",
            percent(row["worst_failure"]["lost"]) if row["worst_failure"] else "unknown",
        )
        for row in found["pareto"]
    ]
    goal = [] if by_days else ["goal"]
    heads = ("rank", "design", *goal, "M$", "kW", "days", "worst failure")
    proof = found["certificate"]
    parts = [f"{proof[key]:,} {key}" for key in _FATES if proof[key] or key == "designs"]
    verdict = "no other beats these" if proof["proven"] else f"open, gap {proof['gap']:.2%}"
    sentences = [f"{', '.join(parts)}; {verdict}. One rank: the interval does not tell them apart."]
    sentences += found["sentences"]
    if proof["left"]:
        sentences.append(
            f"{proof['left']:,} are open: not asked when it was stopped, failed, or without a plan "
            "at their limit of time (search.time_limit_s). The same command goes on."
        )
    unpriced = sorted({line for row in found["pareto"] for line in row["no_source"]})
    if unpriced:
        sentences.append(f"Without a source, and so in no price: {', '.join(unpriced)}.")
    grown = [_grown(found["growth"])] if found["growth"] else []
    return "\n".join([table(heads, rows), *sentences, *grown])


def _grown(ways: Sequence[Mapping[str, Any]]) -> str:
    """Every way to grow, a line each."""
    rows = [
        (
            way["design"],
            way["how"],
            " + ".join(f"{phase['paid_usd'] / 1e6:,.4g}" for phase in way["phases"]),
            " + ".join(f"{phase['recabled']:,}" for phase in way["phases"][1:]),
            f"{way['regret_usd'] / 1e6:,.3g}",
            "–" if way["reason"] else f"{way['total_usd'] / 1e6:,.4g}",
            way["reason"],
        )
        for way in ways
    ]
    heads = ("design", "built", "M$ by phase", "recabled", "regret M$", "M$ in all", "")
    return table(heads, rows)
