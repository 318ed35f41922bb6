"""Figures 1 (right) and 3: what planners see, and what each strategy divides.

Figure 3: every strategy of section 3.1 alone at degree two, against one device: states and
activations of the fullest device, its work, and what it waits for communication. Figure 1: the
three things that the text says no planner sees together, each taken away from our own search, and
the paper's planners, all priced on the same true fabric.

References
----------
NEST, MLSys 2026, sections 1, 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from benchmarks.paper.iterations import SETUP, STRATEGY_DEVICES, on_mesh
from nest_core.costs import Plan, Point, Report, Stage, price
from nest_core.documents.units import humanise_seconds, join_words, percent
from nest_core.paper.cases import PLANNERS
from nest_core.paper.own import degrees, own_result, own_scenario
from nest_core.paper.reproduction import (
    Costs,
    Reproduction,
    ResultTable,
    Row,
    model_name,
    plan_words,
    ratio,
)
from nest_core.planner import search
from nest_core.planner.baselines import evaluate_baselines

__all__ = ["figure1", "figure1_paragraph", "figure3", "figure3_paragraph"]

MODELS = ("llama3", "mixtral")
MODEL = "mixtral"
"""Of figure 3: it has every strategy."""
BATCH = 16
NOTHING_S = 1e-9
"""Of sums that leave a rounding."""

_DIVIDES = 0.9
_LEVEL = 0.98
_ENDLESS = 1e6
_PLAIN = {"search.tp": 1, "search.ep": 1, "search.zero": 0}

_NO_PARTS = (
    "Instance: the artifact ships none of 64 H100, and its layers stand for one choice of "
    "strategies; see --costs own."
)
_ORDER = ("tp", "cp", "dp", "pp")
_ALONE = Point(
    tp=1, sp=False, dp=1, pp=1, micro_batch=1, zero=0, order=_ORDER, device_order="natural"
)
_STRATEGIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "tensor": ("sub-graph", {"tp": 2}, "none"),
    "tensor with sequence": ("sub-graph", {"tp": 2, "sp": True}, "none"),
    "context": ("sub-graph", {"cp": 2}, "none"),
    "expert": ("sub-graph", {"dp": 2, "ep": 2}, "none"),
    "pipeline": ("graph-global", {"pp": 2}, "none"),
    "data": ("graph-global", {"dp": 2}, "none"),
    "ZeRO-1": ("graph-global", {"dp": 2, "zero": 1}, "none"),
    "ZeRO-2": ("graph-global", {"dp": 2, "zero": 2}, "none"),
    "ZeRO-3": ("graph-global", {"dp": 2, "zero": 3}, "none"),
    "recomputation": ("graph-global", {}, "full"),
}
"""Kind in section 3.1, fields of the point, recomputation."""


def figure3(costs: Costs) -> Reproduction:
    """What every strategy does at degree two."""
    rows = tuple(_effect(name) if costs == "own" else _no_effect(name) for name in _STRATEGIES)
    return Reproduction(
        "figure3",
        "Figure 3: strategies, sub-graph and graph-global",
        costs,
        "The paper shows figure 3 as a picture of its workflow with the strategies that it "
        "supports; section 3.1 puts them into two categories.",
        (
            ResultTable(
                "rows", "At degree two, one device is 1", rows, tuple(map(_effect_words, rows))
            ),
        ),
        figure3_paragraph(costs, rows),
    )


@cache
def _priced(name: str) -> Report:
    problem = own_scenario("h100_node", MODEL, 8, 1, batch=BATCH).problem()
    _, fields, recompute = _STRATEGIES.get(name, ("", {}, "none"))
    point = replace(_ALONE, etp=0, **fields)  # experts as wide as tp
    cuts = tuple(stage * problem.layers // point.pp for stage in range(point.pp + 1))
    return price(problem, Plan(point, cuts, (recompute,) * point.pp))


def _effect(name: str) -> Row:
    report, alone = _priced(name), _priced("one device")

    def against(part: Any) -> float:
        return float(max(map(part, report.stages)) / max(map(part, alone.stages)))

    return {
        "costs": "own",
        "strategy": name,
        "category": _STRATEGIES[name][0],
        "devices": report.plan.devices_used,
        "states": against(_states),
        "activations": against(lambda stage: stage.memory.activations + stage.memory.stash),
        "work": against(lambda stage: stage.compute_s + stage.recompute_s - stage.launch_s),
        "communication_s": max(stage.communication_s for stage in report.stages),
    }


def _states(stage: Stage) -> float:
    return stage.memory.weights + stage.memory.gradients + stage.memory.optimizer


def _no_effect(name: str) -> Row:
    return {
        "costs": "published",
        "strategy": name,
        "category": _STRATEGIES[name][0],
        "devices": None,
        "states": None,
        "activations": None,
        "work": None,
        "communication_s": None,
        "reason": _NO_PARTS,
    }


def figure3_paragraph(costs: Costs, rows: Sequence[Row]) -> tuple[str, ...]:
    """Who divides what."""
    if costs == "published":
        return (
            "The artifact's instances hold one operator graph per tensor width with everything "
            "else fixed, so no strategy can be taken alone under its costs.",
        )
    divided = {
        word: [row["strategy"] for row in rows if row[key] < _DIVIDES]
        for key, word in (("states", "states"), ("activations", "activations"), ("work", "work"))
    }
    told = [f"{word} by {join_words(names)}" for word, names in divided.items()]
    talkative = max(rows, key=lambda row: row["communication_s"])
    silent = [row["strategy"] for row in rows if row["communication_s"] < NOTHING_S]
    return (
        f"Divided are, by a tenth at least: {'; '.join(told)}.",
        f"Most of its communication shows with {talkative['strategy']}, "
        f"{humanise_seconds(talkative['communication_s'])} per iteration; none with "
        f"{join_words(silent)}.",
        f"The case is one iteration of {BATCH} sequences of {model_name(MODEL)} on H100 of one "
        "node, priced whether or not it fits into memory.",
    )


def _effect_words(row: Row) -> dict[str, str]:
    return {
        "strategy": row["strategy"],
        "category": row["category"],
        "devices": "–" if row["devices"] is None else str(row["devices"]),
        "weights, gradients, optimizer": ratio(row["states"]),
        "activations": ratio(row["activations"]),
        "work of a device": ratio(row["work"]),
        "communication": humanise_seconds(row["communication_s"]),
    }


def figure1(costs: Costs) -> Reproduction:
    """Our search without one of the three, and the paper's planners."""
    rows = (
        tuple(row for model in MODELS for row in _planners(model))
        if costs == "own"
        else tuple(_no_planner(model) for model in MODELS)
    )
    return Reproduction(
        "figure1",
        "Figure 1 (right): seeing parallelism, memory and topology together",
        costs,
        "The paper shows figure 1 as a picture without numbers; its text says that no other "
        "framework handles parallelism, memory and topology jointly.",
        (
            ResultTable(
                "rows",
                f"Plans for {STRATEGY_DEVICES} H100 on the spine-leaf, on the true fabric",
                rows,
                tuple(map(_planner_words, rows)),
            ),
        ),
        figure1_paragraph(costs, rows),
    )


@cache
def _planners(model: str) -> tuple[Row, ...]:
    scenario = own_scenario(SETUP, model, STRATEGY_DEVICES, 1)
    problem = scenario.problem()
    best, _, flat = on_mesh(model)
    endless = replace(problem, memory_bytes=_ENDLESS * problem.memory_bytes)
    roomy = search(endless, scenario.space, time_limit_s=scenario.time_limit_s).best
    whole = own_result(own_scenario(SETUP, model, STRATEGY_DEVICES, 1, _PLAIN))
    blind: list[tuple[str, Report | None, str]] = [
        ("ours", best, ""),
        ("ours, blind to the network", flat, ""),
        ("ours, blind to memory", price(problem, roomy.plan) if roomy else None, ""),
        ("ours, data and pipeline parallelism only", whole.best, whole.reason),
    ]
    rivals = evaluate_baselines(
        problem, scenario.space, scenario.model, tuple(PLANNERS), as_in_paper=True
    )
    blind += [(PLANNERS[one.name], one.report, one.reason) for one in rivals]
    return tuple(_planner_row(model, name, best, report, why) for name, report, why in blind)


def _planner_row(
    model: str, name: str, best: Report | None, report: Report | None, reason: str
) -> Row:
    fits = report is not None and report.feasible
    return {
        "costs": "own",
        "model": model,
        "planner": name,
        "plan": degrees(report.plan) if report else None,
        "fits": fits,
        "of_ours": report.samples_per_s / best.samples_per_s if report and best and fits else None,
    } | ({} if fits else {"reason": report.reason if report else reason})


def _no_planner(model: str) -> Row:
    return {
        "costs": "published",
        "model": model,
        "planner": "ours",
        "plan": None,
        "fits": None,
        "of_ours": None,
        "reason": _NO_PARTS,
    }


def figure1_paragraph(costs: Costs, rows: Sequence[Row]) -> tuple[str, ...]:
    """What each blindness costs."""
    if costs == "published":
        return (
            "The artifact's instances fix expert and context degrees and ship none of 64 H100, so "
            "no search of its costs can be made blind on equal terms.",
        )
    found = []
    for name in dict.fromkeys(row["planner"] for row in rows if row["planner"].startswith("ours,")):
        told = [
            f"{percent(row['of_ours'])} of our throughput for {model_name(row['model'])}"
            if row["fits"]
            else f"nothing that fits for {model_name(row['model'])}"
            for row in rows
            if row["planner"] == name
        ]
        found.append(f"{name.removeprefix('ours, ').capitalize()}: {join_words(told)}.")
    rest = [row for row in rows if not row["planner"].startswith("ours")]
    level = [row for row in rest if row["fits"] and row["of_ours"] > _LEVEL]
    found.append(
        f"Of {len(rest)} plans of the paper's other planners, in the spaces that the paper gives "
        f"them, {len(level)} come within {percent(1 - _LEVEL)} of ours, and "
        f"{sum(not row['fits'] for row in rest)} do not fit."
    )
    return tuple(found)


def _planner_words(row: Row) -> dict[str, str]:
    return {
        "model": model_name(row["model"]),
        "planner": row["planner"],
        "plan": plan_words(row["plan"]),
        "fits": {True: "yes", False: "no", None: "–"}[row["fits"]],
        "throughput, of ours": percent(row["of_ours"]),
    }
