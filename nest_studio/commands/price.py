"""``nest-studio price``: what a given plan would take, beside the best one and term by term."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nest_studio.commands.output import JsonFlag, emit, table
from nest_studio.commands.plan import Sets, band_line, overlap_line

if TYPE_CHECKING:
    from nest_core.costs.parse import Pasted
    from nest_core.costs.price import Report
    from nest_core.costs.problem import Problem
    from nest_core.scenario import Scenario
    from nest_core.why import Row, StageBinding

__all__ = ["given_plan", "price"]

_STAGES_SHOWN = 16


def price(
    scenario: Annotated[str, typer.Argument(help="Scenario preset or file (TOML).")],
    plan: Annotated[str, typer.Option(help="JSON file, dp=8,tp=4,… or a Megatron-LM command.")],
    placement: Annotated[
        Path | None, typer.Option(help="Where its ranks sit, by hand: CSV or JSON, see place.")
    ] = None,
    sets: Sets = None,
    as_json: JsonFlag = False,
) -> None:
    """Price a plan on a scenario, term by term beside the best plan."""
    from nest_core.answer import assumptions_json, report_json, validity_json
    from nest_core.costs import price as price_plan
    from nest_core.planner import search
    from nest_core.scenario import load_scenario
    from nest_core.validity import standing
    from nest_core.why import bindings, equations, withheld

    asked = load_scenario(scenario, sets or ())
    problem = asked.problem()
    given = given_plan(asked, problem, plan, placement)
    report = price_plan(problem, given.plan)
    best = search(problem, asked.space, time_limit_s=asked.time_limit_s).best
    fields = report_json(report)
    fields["best_iteration_time_s"] = best.iteration_s if best else None
    unsure = withheld(given)
    judged = best if unsure is None else None
    fields["difference"] = report.iteration_s / judged.iteration_s - 1 if judged else None
    fields |= _beside(judged, report)
    fields["unpriced"], fields["withheld"] = given.unpriced, unsure
    fields["bindings"] = [_binding(stage) for stage in bindings(problem, report)]
    fields["equations"] = [entry.in_words for entry in equations(problem, report)]
    fields["ignored"], fields["notes"] = given.ignored, given.notes
    fields |= assumptions_json(asked, problem.overlap)
    fields |= validity_json(standing(asked, problem.network, given.plan), report)
    emit(fields, as_json, _as_text)


def given_plan(
    asked: Scenario, problem: Problem, text: str, placement: Path | None = None
) -> Pasted:
    """The plan that a command was given, its ranks where a placement file puts them."""
    from dataclasses import replace

    from nest_core.costs import check_plan
    from nest_core.costs.parse import read_given
    from nest_core.files import read_text
    from nest_core.layout.placement import read_placement
    from nest_core.why import check_heads, check_job

    devices = problem.network.devices
    given = read_given(text, problem.layers, devices)
    plan = given.plan
    check_job(asked, given.settings)
    check_heads(asked.model, plan)
    if placement is None:
        return given
    check_plan(problem, plan)
    order = read_placement(read_text(placement), plan, devices, str(placement))
    return replace(given, plan=replace(plan, point=replace(plan.point, device_order=order)))


def _beside(best: Report | None, report: Report) -> dict[str, Any]:
    """Both plans term by term; null where there is nothing to compare with."""
    from nest_core.why import difference

    if best is None:
        return {"why_not": None, "term_differences": None, "memory_differences": None}
    found = difference(best, report)
    return {
        "why_not": found.sentence,
        "term_differences": [_row(row, "s") for row in found.terms],
        "memory_differences": [_row(row, "bytes") for row in found.memory],
    }


def _row(row: Row, unit: str) -> dict[str, Any]:
    return {
        "name": row.name,
        f"best_{unit}": row.ours,
        f"this_{unit}": row.theirs,
        f"difference_{unit}": row.difference,
    }


def _binding(stage: StageBinding) -> dict[str, Any]:
    return {
        "kind": stage.binding.kind,
        "words": stage.in_words,
        "memory_share": stage.memory_share,
        "constraints": [
            {
                "kind": entry.kind,
                "name": entry.words,
                "seconds": entry.seconds,
                "share": entry.share,
                "more": entry.more or None,
                "throughput_gain": entry.gain,
            }
            for entry in stage.constraints
        ],
    }


def _as_text(fields: Mapping[str, Any]) -> str:
    difference = fields["difference"]
    beside = "nothing fits" if difference is None else f"{difference:+.2%} against the best plan"
    verdict = "fits" if fields["feasible"] else f"does not fit: {fields['reason']}"
    lines = [
        fields["withheld"] or f"{verdict}; {beside}", band_line(fields), overlap_line(fields)
    ]  # fmt: skip
    lines += [f"note: {note}" for note in fields["notes"]]
    if fields["ignored"]:
        lines.append("ignored: " + ", ".join(fields["ignored"]))
    if fields["why_not"]:
        lines.append(fields["why_not"])
    lines += ["", _terms(fields), ""]
    told = [stage["words"] for stage in fields["bindings"]]
    lines += told[:_STAGES_SHOWN]
    if len(told) > _STAGES_SHOWN:
        lines.append(f"… and {len(told) - _STAGES_SHOWN} more stages (--json)")
    return "\n".join(lines)


def _terms(fields: Mapping[str, Any]) -> str:
    if fields["term_differences"] is None:
        rows = [[name, f"{seconds:.4g}"] for name, seconds in fields["terms"].items()]
        rows.append(["iteration", f"{fields['iteration_time_s']:.4g}"])
        return table(["term", "s"], rows)
    beside = [
        [row["name"], *(_figure(row[f"{which}_s"]) for which in ("this", "best", "difference"))]
        for row in fields["term_differences"]
    ]
    apart = fields["iteration_time_s"] - fields["best_iteration_time_s"]
    times = (fields["iteration_time_s"], fields["best_iteration_time_s"], apart)
    beside.append(["iteration", *map(_figure, times)])
    return table(["term", "this plan, s", "best, s", "difference, s"], beside)


def _figure(seconds: float) -> str:
    return f"{seconds:.4g}"
