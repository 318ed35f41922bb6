"""Target ``mixtures``: the expert degree of the search's plan beside what was run.

Published runs of mixtures of experts under Megatron-LM's and Megatron-Bridge's recipes, of each
model on each machine the fastest, and shipped scenarios with a mixture in them.
Each job is searched as `benchmarks.validation.training.optima` does it, and among what its run
recomputed too. The run's plan is priced by the same costs and known to the search, so that a search
which does not end is not behind it; where it does not fit as surely as plans must, what it lacks
stands beside it. Searches end by their work, the same everywhere.

Where another expert degree is chosen, the best plan with the run's shows why: its terms that take
longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from benchmarks.validation import validate_training
from benchmarks.validation.markdown import markdown_table
from benchmarks.validation.training.optima import Group, groups, planning_problem, space_of
from nest_core.calibration.training.machines import machine_of
from nest_core.calibration.training.predict import predict, predict_rows
from nest_core.costs import Problem, Report, price
from nest_core.costs.head_room import spread_of
from nest_core.documents.errors import InputError
from nest_core.documents.text import table
from nest_core.hardware.stacks import load_stack
from nest_core.planner import SearchSpace, search
from nest_core.scenario import load_scenario
from nest_core.workload.recomputation import ordered

__all__ = ["as_text", "mixtures", "mixtures_part"]

EFFORT = 0.2
"""Which part of a whole search's work each may do: some 20 s of a core."""

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

NEAR = 0.02
"""Of a time: degrees that make less are as good."""

GIB = 2.0**30
SHORT = {
    "compute of the slowest stage": "compute",
    "recomputation of the slowest stage": "recomputation",
    "kernel launches of the slowest stage": "launches",
    "communication of the slowest stage": "communication",
    "pipeline fill and drain": "pipeline",
    "gradient synchronisation and optimizer step": "gradients",
}
"""Terms of a price."""


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
        yield {
            "job": f"{scenario.model.name}, scenario {name}",
            "ran": {"ep": ran} if ran else {},
            **_chosen(scenario.problem(), scenario.space, ran),
        }


def _measured(group: Group) -> Iterator[dict[str, Any]]:
    run, theirs = group.best.run, predict(group.best.run)
    problem = planning_problem(run, spread_of(load_stack(run.stack).framework))
    space = space_of(run)
    space = replace(space, recompute=ordered((*space.recompute, *theirs.plan.recompute)))
    try:
        found = _chosen(problem, space, run.point.ep, theirs)
    except InputError:  # nothing valid is left
        return
    fullest = max(stage.memory.total for stage in theirs.stages)
    surely = price(problem, theirs.plan).feasible
    yield {
        "job": f"{run.model}, {run.devices} {run.accelerator}, batch {run.batch}, "
        f"{run.precision_name}",
        "ran": _degrees(theirs),
        **found,
        "measured_s": group.best.outcome.seconds,
        "ran_predicted_s": theirs.iteration_s,
        "ran_lacks_GiB": 0.0 if surely else (fullest - problem.planned_bytes) / GIB,
    }


def _chosen(
    problem: Problem, space: SearchSpace, ran: int, theirs: Report | None = None
) -> dict[str, Any]:
    """The best plan, how sure that is, and with the run's expert degree where that is another."""
    known = (("the run", theirs.plan),) if theirs else ()
    found = search(problem, space, effort=EFFORT, known=known)
    if found.best is None:
        return {"chosen": {}, "chosen_s": None}
    fields = {
        "chosen": _degrees(found.best),
        "chosen_s": found.best.iteration_s,
        "proven": found.certificate.proven,
        "least_s": found.certificate.lower_bound_s,
    }
    if not ran or found.best.plan.point.ep == ran:
        return fields
    alike = search(problem, replace(space, ep=(ran,)), effort=EFFORT, known=known).best
    if alike is None:
        return fields
    return {**fields, "alike_s": alike.iteration_s, "more": _more(alike, found.best)}


def _degrees(report: Report) -> dict[str, int]:
    point = report.plan.point
    return {
        name: getattr(point, name) for name in ("tp", "cp", "ep", "etp", "pp", "dp", "micro_batch")
    }


def _more(theirs: Report, ours: Report) -> dict[str, float]:
    """Terms that a plan takes longer for, the longest first."""
    mine = dict(ours.terms)
    more = {SHORT[name]: seconds - mine.get(name, 0.0) for name, seconds in theirs.terms}
    return dict(sorted(more.items(), key=lambda term: -term[1])[:2])


HEAD = (
    "mixture",
    "ran",
    "chosen",
    "measured, s",
    "ran, priced",
    "chosen, priced",
    "least",
    "run lacks",
    "with the run's ep",
    "which takes more for",
)


def _cells(row: Mapping[str, Any]) -> list[str]:
    lacks, least = row.get("ran_lacks_GiB", 0.0), row.get("least_s")
    return [
        row["job"],
        _spelled(row["ran"]),
        _spelled(row["chosen"]),
        *(_seconds(row.get(key)) for key in ("measured_s", "ran_predicted_s", "chosen_s")),
        "proven" if row.get("proven") else _seconds(least),
        f"{lacks:.0f} GiB" if lacks else "",
        f"+{row['alike_s'] / row['chosen_s'] - 1:.1%}" if "alike_s" in row else "",
        ", ".join(f"{name} {seconds:+.2f}" for name, seconds in row.get("more", {}).items()),
    ]


def _sentence(rows: list[Mapping[str, Any]]) -> str:
    known = [row for row in rows if row["ran"] and row["chosen"]]
    same = [row for row in known if row["ran"]["ep"] == row["chosen"]["ep"]]
    others = [row for row in known if "alike_s" in row]
    apart = [row for row in others if row["alike_s"] > (1 + NEAR) * row["chosen_s"]]
    terms = Counter(next(iter(row["more"])) for row in apart)
    slower = [
        row
        for row in known
        if row["chosen_s"] > row.get("ran_predicted_s", row["chosen_s"]) * (1 + 1e-9)
    ]
    return (
        f"{len(rows)} mixtures; the expert degree is what was run in {len(same)} of {len(known)}, "
        f"and makes less than {NEAR:.0%} in {len(others) - len(apart)} more. Elsewhere the run's "
        "takes longer for "
        + ", ".join(f"{term} ({number})" for term, number in terms.most_common())
        + f". {len(slower)} chosen plans are priced above the run's, "
        f"{sum(not row['ran_lacks_GiB'] for row in slower)} of them where that fits."
    )


def as_text(fields: Mapping[str, Any]) -> str:
    """What people read."""
    return _sentence(fields["rows"]) + "\n\n" + table(HEAD, map(_cells, fields["rows"]))


INTRODUCTION = """\
## Expert degrees

The fastest published run of each mixture on each machine under Megatron-LM and Megatron-Bridge, and
shipped scenarios with the degree of the recipe for such devices, beside the plan that the search
chooses for the same job, software and recomputation. Not all searches end with a proof in their
share of work; *least* is then what no plan undercuts. *Run lacks*: the run's plan does not fit with
95 % certainty, by how much. Where another degree is chosen, the last columns are of the best plan
with the run's.
"""


def mixtures_part(fields: Mapping[str, Any]) -> str:
    """The document's part."""
    rows = [_cells(row) for row in fields["rows"]]
    return "\n".join([INTRODUCTION, _sentence(fields["rows"]), "", *markdown_table(HEAD, rows)])


def _spelled(degrees: Mapping[str, int]) -> str:
    short = {"micro_batch": "b"}
    return " ".join(
        f"{short.get(name, name)}{degree}"
        for name, degree in degrees.items()
        if degree > 1 or name == "ep"
    )


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"
