"""Figure 2: what strategies spend on communication on 64 H100 of the spine-leaf.

For every tensor width the best plan of the rest; then the best plan of a uniform mesh, on which
every pair of devices has the node's bandwidth, priced on the real fabric.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from nest_core.costs.price import Report, price
from nest_core.paper.own import degrees, own_document, own_result, own_scenario
from nest_core.paper.reproduction import (
    Costs,
    Reproduction,
    Row,
    Table,
    listed,
    percent,
    plan_words,
    ratio,
    seconds,
)
from nest_core.paper.settings import model_name

__all__ = ["figure2", "figure2_paragraph"]

SETUP = "h100_spineLeaf"
MODELS = ("gpt3", "llama3", "mixtral")
DEVICES = 64
WIDTHS = (1, 2, 4, 8)
PARTS = ("compute_s", "recompute_s", "communication_s", "idle_s")

_NO_INSTANCE = "Instance: the artifact ships none for 64 H100; see --costs own."


def figure2(costs: Costs) -> Reproduction:
    """Breakdown of an iteration by strategy."""
    rows = tuple(
        _row(costs, model, width, _planned(model, width) if costs == "own" else None)
        for model in MODELS
        for width in WIDTHS
    )
    uniform = tuple(map(_uniform, MODELS)) if costs == "own" else ()
    tables = [Table("rows", "An iteration by strategy", rows, tuple(map(_words, rows)))]
    if uniform:
        tables.append(
            Table(
                "uniform_mesh",
                "The best plan of a uniform mesh, on the spine-leaf",
                uniform,
                tuple(map(_uniform_words, uniform)),
            )
        )
    return Reproduction(
        "figure2",
        "Figure 2: communication by strategy on 64 H100, spine-leaf",
        costs,
        "The paper shows figure 2 as a picture only; no number of it is printed.",
        tuple(tables),
        figure2_paragraph(costs, rows, uniform),
    )


@cache
def _planned(model: str, width: int) -> tuple[Report | None, str]:
    result = own_result(own_scenario(SETUP, model, DEVICES, 1, {"search.tp": width}))
    return result.best, result.reason


def _row(costs: Costs, model: str, width: int, planned: tuple[Report | None, str] | None) -> Row:
    report, reason = planned or (None, _NO_INSTANCE)
    row: Row = {
        "costs": costs,
        "model": model,
        "devices": DEVICES,
        "micro_batch": 1,
        "tp": width,
        "published": None,
        "plan": degrees(report.plan) if report else None,
        "iteration_time_s": report.iteration_s if report else None,
        **{part: _mean(report, part) if report else None for part in PARTS},
    }
    row["communication_share"] = (
        row["communication_s"] / row["iteration_time_s"] if report else None
    )
    if reason:
        row["reason"] = reason
    return row


def _mean(report: Report, part: str) -> float:
    """Over stages: the parts of each add up to the iteration."""
    return float(sum(getattr(stage, part) for stage in report.stages) / len(report.stages))


@cache
def _on_mesh(model: str) -> tuple[Report | None, Report | None, Report | None]:
    """The best plan here, that of a uniform mesh there, and the latter here."""
    real = own_scenario(SETUP, model, DEVICES, 1)
    document = own_document(SETUP, model, DEVICES, 1)
    node: dict[str, Any] = dict(document["fabric"]["level"][0])
    node["group_size"] = DEVICES
    mesh = own_scenario(SETUP, model, DEVICES, 1, {"fabric.level": [node]})
    best, blind = own_result(real).best, own_result(mesh).best
    return best, blind, price(real.problem(), blind.plan) if blind else None


def _uniform(model: str) -> Row:
    best, blind, there = _on_mesh(model)
    return {
        "model": model,
        "plan": degrees(best.plan) if best else None,
        "uniform_plan": degrees(blind.plan) if blind else None,
        "iteration_time_s": best.iteration_s if best else None,
        "uniform_on_uniform_s": blind.iteration_s if blind else None,
        "uniform_on_spine_leaf_s": there.iteration_s if there else None,
        "slower": there.iteration_s / best.iteration_s if there and best else None,
    }


def figure2_paragraph(costs: Costs, rows: Sequence[Row], uniform: Sequence[Row]) -> tuple[str, ...]:
    """Whether communication is a large part, and whether the best strategy moves."""
    if costs == "published":
        return (
            f"The artifact ships no instance for {DEVICES} H100, and its instance files hold no "
            "collective apart from the layers, so no share of communication can be computed from "
            "its costs; own costs give one.",
        )
    planned = [row for row in rows if row["communication_share"] is not None]
    shares = [row["communication_share"] for row in planned]
    best = [
        min(
            (row for row in planned if row["model"] == model),
            key=lambda row: row["iteration_time_s"],
        )
        for model in dict.fromkeys(row["model"] for row in planned)
    ]
    found = [
        f"Agrees: communication takes {percent(min(shares))} to {percent(max(shares))} of an "
        "iteration, depending on the strategy, and the best strategy depends on the model: "
        + listed([f"tp {row['tp']} for {model_name(row['model'])}" for row in best])
        + "."
    ]
    worst = [
        max(row["iteration_time_s"] for row in planned if row["model"] == entry["model"])
        / entry["iteration_time_s"]
        for entry in best
    ]
    found.append(
        "The slowest width takes "
        + listed(
            [
                f"{ratio(value)} times the best for {model_name(row['model'])}"
                for value, row in zip(worst, best, strict=True)
            ]
        )
        + "."
    )
    moved = [row for row in uniform if row["slower"] is not None and row["slower"] > 1.005]
    found.append(
        "Agrees: what is best on a uniform mesh is not best here; that plan, on the spine-leaf, "
        "takes "
        + listed(
            [f"{ratio(row['slower'])} times ours ({model_name(row['model'])})" for row in moved]
        )
        + "."
        if moved
        else "The best plan of a uniform mesh is the best one here too, which the text denies."
    )
    found.append(
        'The text calls the fabric "2:2 oversubscribed"; it is read as two spines that take half '
        "of a leaf's bandwidth each, which is full bisection above the 12.5 GB/s that a node's "
        "devices share."
    )
    return tuple(found)


def _words(row: Row) -> dict[str, str]:
    return {
        "model": model_name(row["model"]),
        "tp": str(row["tp"]),
        "plan": plan_words(row["plan"]),
        "iteration": seconds(row["iteration_time_s"]),
        "compute": seconds(row["compute_s"]),
        "recomputation": seconds(row["recompute_s"]),
        "communication": seconds(row["communication_s"]),
        "idle": seconds(row["idle_s"]),
        "communication, share": percent(row["communication_share"]),
        "printed": "–",
    }


def _uniform_words(row: Row) -> dict[str, str]:
    return {
        "model": model_name(row["model"]),
        "best here": plan_words(row["plan"]),
        "best on a uniform mesh": plan_words(row["uniform_plan"]),
        "iteration, best here": seconds(row["iteration_time_s"]),
        "the mesh's plan here": seconds(row["uniform_on_spine_leaf_s"]),
        "slower": ratio(row["slower"]),
    }
