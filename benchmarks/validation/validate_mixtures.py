"""Target ``mixtures``: the expert degree of the search's plan beside what was run.

Published runs of mixtures of experts under Megatron-LM's and Megatron-Bridge's recipes, of each
model on each machine the fastest, and shipped scenarios with a mixture in them.
Each job is searched as `benchmarks.validation.training.optima` does it, and the plan that was run
is priced by the same costs; what it takes longer for is in seconds per iteration, by the terms of
its price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.validation import validate_training
from benchmarks.validation.training.optima import Group, groups, planning_problem, space_of
from nest_core.calibration.training.machines import machine_of
from nest_core.calibration.training.predict import predict, predict_rows
from nest_core.costs import Report
from nest_core.costs.head_room import spread_of
from nest_core.documents.errors import InputError
from nest_core.documents.text import table
from nest_core.hardware.stacks import load_stack
from nest_core.planner import search
from nest_core.scenario import load_scenario

__all__ = ["as_text", "mixtures"]

TIME_LIMIT_S = 20.0
"""Of one search."""

SCENARIOS: tuple[tuple[str, str, int], ...] = (
    ("mixtral-8x7b-256-tpuv4like", "", 0),
    ("gpt3-175b-64-h100", "qwen3-30b-a3b", 8),
    ("gpt3-175b-64-h100", "gpt-oss-120b", 8),
    ("gpt3-175b-64-h100", "mixtral-8x7b", 8),
    ("llama3-70b-1024-h100", "deepseek-v3", 64),
)
"""Shipped scenarios, the mixture that is trained in place of their model, and the expert degree of
its recipe on such devices (Megatron-Bridge, ``scripts/performance/configs``; Mixtral's of
``recipes/mixtral``)."""

LENGTH = ("workload.sequence_length_tokens=4096", "workload.global_batch_sequences=1024")


def mixtures() -> dict[str, Any]:
    """Every mixture's expert degree, run and chosen."""
    rows = validate_training.read_training(validate_training.SHARED)[0]
    predictions, _ = predict_rows(row for row in rows if row.run.experts > 1)
    fastest: dict[tuple[str, str], Group] = {}
    for group in groups(predictions):
        run = group.best.run
        key = run.model, machine_of(run.accelerator).preset
        if run.framework == "megatron" and _rate(group) > _rate(fastest.get(key, group)) * (
            key in fastest
        ):
            fastest[key] = group
    return {"rows": [*_shipped(), *(row for group in fastest.values() for row in _measured(group))]}


def _rate(group: Group) -> float:
    """Tokens per second and device."""
    run, seconds = group.best.run, group.best.outcome.seconds
    return run.batch * run.sequence / (run.devices * seconds) if seconds else 0.0


def _shipped() -> Iterator[dict[str, Any]]:
    for name, model, ran in SCENARIOS:
        changed = [f'workload.model="{model}"', *LENGTH] if model else []
        scenario = load_scenario(name, changed)
        best = search(scenario.problem(), scenario.space, time_limit_s=TIME_LIMIT_S).best
        yield {
            "job": f"{scenario.model.name}, scenario {name}",
            "ran": {"ep": ran} if ran else {},
            **_chosen(best),
        }


def _measured(group: Group) -> Iterator[dict[str, Any]]:
    run = group.best.run
    problem = planning_problem(run, spread_of(load_stack(run.stack).framework))
    try:
        best = search(problem, space_of(run), time_limit_s=TIME_LIMIT_S).best
    except InputError:
        return
    theirs = predict(run)
    job = f"{run.model}, {run.devices} {run.accelerator}, batch {run.batch}, {run.precision_name}"
    yield {
        "job": job,
        "ran": _degrees(theirs),
        **_chosen(best),
        "measured_s": group.best.outcome.seconds,
        "ran_predicted_s": theirs.iteration_s,
        "slower_by": _slower(theirs, best) if best else {},
    }


def _chosen(best: Report | None) -> dict[str, Any]:
    if best is None:
        return {"chosen": {}, "chosen_s": None}
    return {"chosen": _degrees(best), "chosen_s": best.iteration_s}


def _degrees(report: Report) -> dict[str, int]:
    point = report.plan.point
    return {
        name: getattr(point, name) for name in ("tp", "cp", "ep", "etp", "pp", "dp", "micro_batch")
    }


def _slower(theirs: Report, ours: Report) -> dict[str, float]:
    """Terms that a plan takes longer for, the longest first."""
    mine = dict(ours.terms)
    more = {name: seconds - mine.get(name, 0.0) for name, seconds in theirs.terms}
    return dict(sorted(more.items(), key=lambda term: -term[1])[:2])


def as_text(fields: Mapping[str, Any]) -> str:
    """What people read."""
    rows = [
        [
            row["job"],
            _spelled(row["ran"]),
            _spelled(row["chosen"]),
            *(_seconds(row.get(key)) for key in ("measured_s", "ran_predicted_s", "chosen_s")),
            ", ".join(
                f"{name} {seconds:+.2f}" for name, seconds in row.get("slower_by", {}).items()
            ),
        ]
        for row in fields["rows"]
    ]
    known = [row for row in fields["rows"] if row["ran"] and row["chosen"]]
    same = sum(row["ran"]["ep"] == row["chosen"]["ep"] for row in known)
    return (
        f"{len(rows)} mixtures; the expert degree is what was run in {same} of {len(known)}.\n\n"
        + table(
            ["mixture", "ran", "chosen", "measured s", "priced s", "chosen s", "more for"], rows
        )
    )


def _spelled(degrees: Mapping[str, int]) -> str:
    short = {"micro_batch": "b"}
    return " ".join(
        f"{short.get(name, name)}{degree}"
        for name, degree in degrees.items()
        if degree > 1 or name == "ep"
    )


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"
