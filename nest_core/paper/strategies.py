"""Table 2: the plans that every planner chose on 512 devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nest_core.paper.cases import PLANNERS, Cell
from nest_core.paper.outcome import outcome_of
from nest_core.paper.printed import printed
from nest_core.paper.reproduction import (
    Costs,
    Reproduction,
    Row,
    Table,
    listed,
    plan_words,
)
from nest_core.paper.settings import model_name

__all__ = ["table2", "table2_paragraph"]

DEVICES = 512
"""Devices at which the printed degrees multiply to the cluster."""

_PLANNERS = ("manual", "mcmc", "alpa_e", "phaze")


def table2(costs: Costs) -> Reproduction:
    """Printed plans beside ours and the baselines'."""
    rows = tuple(_row(costs, entry) for entry in printed()["table2"])
    return Reproduction(
        "table2",
        "Table 2: distributed strategies",
        costs,
        "The paper prints degrees {p, d, t, s, (e, c)}; for Alpa the number of stages alone. It "
        f"does not name the cluster: the degrees multiply to {DEVICES} devices.",
        (
            Table(
                "rows",
                "Distributed strategies",
                rows,
                tuple(words for row in rows for words in _words(row)),
            ),
        ),
        table2_paragraph(costs, rows),
    )


def _row(costs: Costs, entry: dict[str, Any]) -> Row:
    cell = Cell("tpuv4_fatTree", entry["model"], DEVICES, 1)
    outcome = outcome_of(costs, cell, _PLANNERS)
    return {
        "costs": costs,
        "model": entry["model"],
        "devices": DEVICES,
        "ours": dict(outcome.plan) if outcome.plan else None,
        "published": entry["nest"],
        "baselines": {
            name: {
                "published": entry[name],
                "ours": dict(rival.plan) if rival.plan else None,
            }
            for name, rival in outcome.rivals.items()
        },
    }


def _same(mine: dict[str, Any] | None, theirs: dict[str, int]) -> bool:
    """Equal in every printed degree that ours has; sequence degrees follow the framework."""
    return mine is not None and all(
        mine[key] == value for key, value in theirs.items() if key != "s" and key in mine
    )


def table2_paragraph(costs: Costs, rows: Sequence[Row]) -> tuple[str, ...]:
    """Which plans agree, and why the others do not."""
    same = [model_name(row["model"]) for row in rows if _same(row["ours"], row["published"])]
    other = [row for row in rows if not _same(row["ours"], row["published"])]
    found = [f"Our plan has NEST's printed degrees for {listed(same)} of {len(rows)} models."]
    found += [
        f"Differs for {model_name(row['model'])}: printed {plan_words(row['published'])}, "
        f"ours {plan_words(row['ours'])}."
        for row in other
    ]
    known = [
        (planner, _same(entry["ours"], entry["published"]))
        for row in rows
        for planner, entry in row["baselines"].items()
        if entry["ours"] is not None and len(entry["published"]) > 1
    ]
    if costs == "published":
        found.append(
            f"{sum(agrees for _, agrees in known)} of {len(known)} baseline placements that the "
            "artifact ships have the printed degrees."
        )
        if any(row["model"] == "mixtral" for row in other):
            found.append(
                "Why: the artifact's instance of Mixtral fixes the context degree at "
                f"{_degree(rows, 'mixtral', 'c')}; the printed plan has "
                f"{_printed_degree(rows, 'mixtral', 'c')}, so it is not of that instance, though "
                "figure 5's printed throughput is that of the instance's optimum."
            )
        found.append(
            "The sequence degree that is printed for GPT-3 is no field of the artifact's "
            "instances; ours have none under these costs."
        )
    else:
        found.append(
            "Why: own costs charge transfers, optimizer states and recomputation for what they "
            "are and may shard inside layers, so depth gives way to width: our pipelines have "
            f"{listed([str(row['ours']['p']) for row in rows if row['ours']])} stages, the printed "
            f"{listed([str(row['published']['p']) for row in rows])}."
        )
    return tuple(found)


def _degree(rows: Sequence[Row], model: str, key: str) -> int | None:
    return next((row["ours"][key] for row in rows if row["model"] == model and row["ours"]), None)


def _printed_degree(rows: Sequence[Row], model: str, key: str) -> int | None:
    return next((row["published"].get(key) for row in rows if row["model"] == model), None)


def _words(row: Row) -> list[dict[str, str]]:
    plans = {"NEST / ours": {"published": row["published"], "ours": row["ours"]}} | {
        PLANNERS[name]: entry for name, entry in row["baselines"].items()
    }
    return [
        {
            "model": model_name(row["model"]),
            "planner": planner,
            "printed": plan_words(entry["published"]),
            "here": plan_words(entry["ours"]),
        }
        for planner, entry in plans.items()
    ]
