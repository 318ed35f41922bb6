"""Figures 2 and 10: what iterations are spent on, by strategy and on one node.

Figure 10: GPT-3 on 4 and 8 H100 of one node, predicted collectives beside measured ones. The
paper measures compute and simulates communication; the difference it reports lies in the
collectives. Here compute is the estimator's in both columns, and the collectives are once
predicted and once read from NCCL's measured times (``presets/measured``, interpolated).

Figure 2: what strategies spend on communication on 64 H100 of the spine-leaf. For every tensor
width the best plan of the rest, once without recomputation and once with that of every layer (the
two of section 3.3); then the best plan of a uniform mesh, on which every pair of devices has the
node's bandwidth, priced on the real fabric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from nest_core.calibration.collectives.sweep import load_measured
from nest_core.costs import Plan, Point, Report, price
from nest_core.documents.units import humanise_seconds, join_words, percent
from nest_core.paper.own import degrees, one_node, own_result, own_scenario
from nest_core.paper.reproduction import (
    Costs,
    Reproduction,
    ResultTable,
    Row,
    model_name,
    plan_words,
    printed,
    ratio,
)

__all__ = ["figure2", "figure2_paragraph", "figure10", "figure10_paragraph", "mean_part", "on_mesh"]

MODEL = "gpt3-13b"
"""Assumed: the paper says GPT-3 without a size; 175B does not fit four devices."""
DEVICES = (4, 8)
BATCHES = (1, 2, 3, 4)
MEASURED = "h100-nvlink4"

_NO_INSTANCE = "Instance: the artifact ships none for one H100 node; see --costs own."


def figure10(costs: Costs) -> Reproduction:
    """Forward and backward of one batch on one node."""
    rows = tuple(
        _own_row(devices, batch) if costs == "own" else _empty_row(devices, batch)
        for devices in DEVICES
        for batch in BATCHES
    )
    return Reproduction(
        "figure10",
        "Figure 10: iteration time of GPT-3 on one H100 node",
        costs,
        "The paper shows figure 10 as a picture; of its numbers the text prints one, a difference "
        f"of up to {percent(printed()['figure10']['largest_difference'])} between measured and "
        f"predicted. The size of its GPT-3 is not printed; {model_name(MODEL)} is assumed.",
        (ResultTable("rows", "Forward and backward", rows, tuple(map(_words, rows))),),
        figure10_paragraph(costs, rows),
    )


def _empty_row(devices: int, batch: int) -> Row:
    return {
        "costs": "published",
        "model": MODEL,
        "devices": devices,
        "batch": batch,
        "published": None,
        "compute_s": None,
        "communication_s": None,
        "measured_communication_s": None,
        "iteration_time_s": None,
        "difference": None,
        "reason": _NO_INSTANCE,
    }


def _own_row(devices: int, batch: int) -> Row:
    scenario = own_scenario(
        "h100_node", MODEL, devices, batch, {"workload.overlap": "none"}, batch=batch
    )
    problem = scenario.problem()
    point = Point(devices, False, 1, 1, batch, 0, ("tp", "cp", "dp", "pp"))
    report = price(problem, Plan(point, (0, problem.layers), ("none",)))
    terms = dict(report.terms)
    compute = sum(
        value for name, value in terms.items() if name.startswith(("compute", "kernel launches"))
    )
    communication = terms["communication of the slowest stage"]
    calls = problem.table(devices, False, batch, 1, 1, devices).calls["tp"]
    times = load_measured(MEASURED, "all_reduce", devices)
    if times is None:
        raise RuntimeError(f"presets/measured lost the all-reduces of {devices} devices")
    used = calls.number > 0
    number = calls.number[used] / 2  # an all-reduce counts as its reduce-scatter and its all-gather
    sizes = calls.bytes[used] / calls.number[used]
    each = np.exp(np.interp(np.log(sizes), np.log(times.size_bytes), np.log(times.seconds)))
    measured = float((number * each).sum())
    return {
        "costs": "own",
        "model": MODEL,
        "devices": devices,
        "batch": batch,
        "published": None,
        "compute_s": compute,
        "communication_s": communication,
        "measured_communication_s": measured,
        "iteration_time_s": compute + communication,
        "difference": (compute + communication) / (compute + measured) - 1,
    }


def figure10_paragraph(costs: Costs, rows: Sequence[Row]) -> tuple[str, ...]:
    """How far predicted iterations are from those with measured collectives."""
    if costs == "published":
        return (
            "The artifact's instance files hold latencies and bytes, no measured iteration and "
            "no instance of one node, so nothing of the figure can be computed from its costs.",
        )
    limit = printed()["figure10"]["largest_difference"]
    largest = max(rows, key=lambda row: abs(row["difference"]))
    within = [row for row in rows if abs(row["difference"]) <= limit]
    share = [row["measured_communication_s"] / row["iteration_time_s"] for row in rows]
    return (
        f"{'Agrees' if len(within) == len(rows) else 'Differs'}: {len(within)} of {len(rows)} "
        f"iterations are within the printed {percent(limit)}; the largest difference is "
        f"{percent(largest['difference'])}, at batch {largest['batch']} on "
        f"{largest['devices']} devices.",
        f"Compute is the same on both sides, so what differs is the all-reduces, "
        f"{percent(min(share))} to {percent(max(share))} of an iteration: those measured are "
        "NCCL's on "
        f"{join_words([str(count) for count in dict.fromkeys(r['devices'] for r in rows)])} "
        "H100 of one node, by another project. Half of these measurements fitted the curves that "
        "predict; how far the other half is off is in docs/validation.md.",
        f"The paper does not name the size of its GPT-3; {model_name(MODEL)} is assumed, since "
        f"GPT-3 175B does not fit {DEVICES[0]} devices. The "
        "estimator of compute has error bands of its own (Plan page), which this figure leaves "
        "out as the paper's does.",
    )


def _words(row: Row) -> dict[str, str]:
    return {
        "devices": str(row["devices"]),
        "batch": str(row["batch"]),
        "compute": humanise_seconds(row["compute_s"]),
        "all-reduces, predicted": humanise_seconds(row["communication_s"]),
        "all-reduces, measured": humanise_seconds(row["measured_communication_s"]),
        "iteration, predicted": humanise_seconds(row["iteration_time_s"]),
        "difference": percent(row["difference"]),
        "printed": "–",
    }


SETUP = "h100_spineLeaf"
MODELS = ("gpt3", "llama3", "mixtral")
STRATEGY_DEVICES = 64
WIDTHS = (1, 2, 4, 8)
RECOMPUTATION = ("none", "full")
PARTS = ("compute_s", "recompute_s", "communication_s", "idle_s")

_NO_64_H100 = "Instance: the artifact ships none for 64 H100; see --costs own."


def figure2(costs: Costs) -> Reproduction:
    """Breakdown of an iteration by strategy."""
    rows = tuple(
        _strategy_row(costs, model, width, recompute)
        for model in MODELS
        for width in WIDTHS
        for recompute in RECOMPUTATION
    )
    uniform = tuple(map(_uniform, MODELS)) if costs == "own" else ()
    tables = [
        ResultTable("rows", "An iteration by strategy", rows, tuple(map(_strategy_words, rows)))
    ]
    if uniform:
        tables.append(
            ResultTable(
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
def _planned(model: str, width: int, recompute: str) -> tuple[Report | None, str]:
    chosen = {"search.tp": width, "search.recompute": recompute}
    result = own_result(own_scenario(SETUP, model, STRATEGY_DEVICES, 1, chosen))
    return result.best, result.reason


def _strategy_row(costs: Costs, model: str, width: int, recompute: str) -> Row:
    report, reason = _planned(model, width, recompute) if costs == "own" else (None, _NO_64_H100)
    row: Row = {
        "costs": costs,
        "model": model,
        "devices": STRATEGY_DEVICES,
        "micro_batch": 1,
        "tp": width,
        "recompute": recompute,
        "published": None,
        "plan": degrees(report.plan) if report else None,
        "iteration_time_s": report.iteration_s if report else None,
        **{part: mean_part(report, part) if report else None for part in PARTS},
    }
    row["communication_share"] = (
        row["communication_s"] / row["iteration_time_s"] if report else None
    )
    if reason:
        row["reason"] = reason
    return row


def mean_part(report: Report, part: str) -> float:
    """Over stages: the parts of each add up to the iteration."""
    return float(sum(getattr(stage, part) for stage in report.stages) / len(report.stages))


@cache
def on_mesh(model: str) -> tuple[Report | None, Report | None, Report | None]:
    """The best plan here, that of a uniform mesh there, and the latter here."""
    real = own_scenario(SETUP, model, STRATEGY_DEVICES, 1)
    uniform = {"fabric": one_node(STRATEGY_DEVICES)}
    mesh = own_scenario(SETUP, model, STRATEGY_DEVICES, 1, uniform)
    best, blind = own_result(real).best, own_result(mesh).best
    return best, blind, price(real.problem(), blind.plan) if blind else None


def _uniform(model: str) -> Row:
    best, blind, there = on_mesh(model)
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
            f"The artifact ships no instance for {STRATEGY_DEVICES} H100, and its instance files "
            "hold no collective apart from the layers, so no share of communication can be "
            "computed from its costs; own costs give one.",
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
        + join_words([f"tp {row['tp']} for {model_name(row['model'])}" for row in best])
        + "."
    ]
    found += _pairs(rows)
    worst = [
        max(row["iteration_time_s"] for row in planned if row["model"] == entry["model"])
        / entry["iteration_time_s"]
        for entry in best
    ]
    found.append(
        "The slowest strategy takes "
        + join_words(
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
        + join_words(
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


def _pairs(rows: Sequence[Row]) -> Iterator[str]:
    """What recomputation costs where both fit, and where nothing fits without it."""
    without, with_it = (
        {
            (row["model"], row["tp"]): row["iteration_time_s"]
            for row in rows
            if row["recompute"] == recompute
        }
        for recompute in RECOMPUTATION
    )
    both = [with_it[key] / time for key, time in without.items() if time and with_it[key]]
    if both:
        yield (
            f"Recomputation of every layer takes {ratio(min(both))} to {ratio(max(both))} times "
            f"the iteration without, in the {len(both)} pairs where both fit."
        )
    tight = [
        f"{model_name(model)} at tp {width}"
        for (model, width), time in without.items()
        if time is None and with_it[model, width]
    ]
    if tight:
        yield f"Only with recomputation fits {join_words(tight)}."


def _strategy_words(row: Row) -> dict[str, str]:
    return {
        "model": model_name(row["model"]),
        "tp": str(row["tp"]),
        "recomputes": "every layer" if row["recompute"] == "full" else "nothing",
        "plan": plan_words(row["plan"]),
        "iteration": humanise_seconds(row["iteration_time_s"]),
        "compute": humanise_seconds(row["compute_s"]),
        "recomputation": humanise_seconds(row["recompute_s"]),
        "communication": humanise_seconds(row["communication_s"]),
        "idle": humanise_seconds(row["idle_s"]),
        "communication, share": percent(row["communication_share"]),
        "printed": "–",
    }


def _uniform_words(row: Row) -> dict[str, str]:
    return {
        "model": model_name(row["model"]),
        "best here": plan_words(row["plan"]),
        "best on a uniform mesh": plan_words(row["uniform_plan"]),
        "iteration, best here": humanise_seconds(row["iteration_time_s"]),
        "the mesh's plan here": humanise_seconds(row["uniform_on_spine_leaf_s"]),
        "slower": ratio(row["slower"]),
    }
