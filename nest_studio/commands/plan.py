"""``nest-studio plan``: the best plan of a scenario, with its certificate and the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from nest_core.errors import InputError
from nest_studio.commands.output import JsonFlag, emit, table

__all__ = ["Sets", "band_line", "overlap_line", "plan"]

SHOWN = (
    "dp", "tp", "cp", "ep", "pp", "micro_batch", "zero", "recompute", "schedule", "interleave",
    "devices_used",
)  # fmt: skip

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
    as_json: JsonFlag = False,
) -> None:
    """Plan a scenario under the studio's own costs."""
    import resource

    from nest_core.answer import answer
    from nest_core.planner import audit as audit_search
    from nest_core.planner import shadow_prices
    from nest_core.scenario import load_scenario
    from nest_studio.commands.watching import watched

    if not 0 <= audit <= 100_000:
        raise InputError("--audit", "must lie between 0 and 100,000", audit, "give another number")
    if seed < 0:
        raise InputError("--seed", "must not be negative", seed, "give another number")
    settings = list(sets or ())
    if top is not None:
        settings.append(f"search.top={top}")
    asked = load_scenario(scenario, settings)
    with watched() as (progress, stop):
        found = answer(asked, progress=progress, stop=stop)
    fields = found.to_json()
    best = found.result.best
    fields["shadow_prices"] = (
        shadow_prices(found.problem, asked.space, best.iteration_s, asked.time_limit_s)
        if best and found.result.certificate.proven
        else None
    )
    if audit:
        checked = audit_search(found.problem, asked.space, found.result, audit, seed)
        fields["audit"] = {
            "solved": checked.solved,
            "infeasible": checked.infeasible,
            "violations": [repr(point) for point in checked.violations],
        }
    fields["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    emit(fields, as_json, _as_text)


def band_line(fields: Mapping[str, Any]) -> str:
    """Where the printed time lies if the runs of its kind are a guide, or that none are."""
    band = fields["error_band"]
    if band is None:
        return str(fields["validity"])
    low, high = band["iteration_time_s"]
    return f"error band {low:.4g} to {high:.4g} s. {fields['validity']}"


def overlap_line(fields: Mapping[str, Any]) -> str:
    """What is assumed to hide behind compute, and whether the device was calibrated."""
    shares, estimator = fields["overlap_shares"], fields["estimator"]
    words = f"overlap {fields['overlap']}"
    if fields["overlap"] == "fitted":
        words += f" (tp {shares['tp']:.0%}, pp {shares['pp']:.0%}, dp {shares['dp']:.0%})"
    return f"{words}; estimator {estimator['family']}" + (
        "" if estimator["calibrated"] else ": nothing was fitted for this device"
    )


def _as_text(fields: Mapping[str, Any]) -> str:
    if not fields["feasible"]:
        return "\n".join(filter(None, [f"infeasible: {fields['reason']}", fields["advice"]]))
    words = _words(fields["plan"])
    certificate = fields["certificate"]
    proof = "proven optimal" if certificate["proven"] else f"within {certificate['gap']:.2%}"
    rows = [["this plan", f"{fields['iteration_time_s']:.4g}", _span(fields), words]]
    for entry in fields["baselines"]:
        other = entry["plan"] if entry["feasible"] else None
        rows.append(
            [
                entry["name"],
                f"{entry['iteration_time_s']:.4g}" if entry["feasible"] else None,
                _span(entry),
                ", ".join(f"{key} {other[key]}" for key in ("dp", "tp", "pp", "micro_batch"))
                if other
                else entry["reason"],
            ]
        )
    audited = ""
    if "audit" in fields:
        audit = fields["audit"]
        audited = (
            f"audit: {audit['solved']} excluded points solved, {audit['infeasible']} infeasible, "
            f"{len(audit['violations'])} below their bound\n"
        )
    left = f"{certificate['open']:,} open, " if certificate.get("open") else ""
    others = [
        [str(place), f"{entry['iteration_time_s']:.4g}", _words(entry["plan"])]
        for place, entry in enumerate(fields["alternatives"], start=2)
    ]
    further = table(["place", "iteration, s", "plan"], others) if others else ""
    return (
        f"{fields['scenario']}: {fields['samples_per_s']:.4g} sequences/s, "
        f"MFU {fields['mfu']:.1%} ({fields['mfu_convention']}), "
        f"bubble {fields['bubble']:.1%} of the time that stages work\n"
        f"{proof}: {certificate['points']:,} points, {certificate['solved']:,} solved, "
        f"{certificate['bounded']:,} bounded, {certificate['infeasible']:,} infeasible, "
        f"{left}{fields['solve_seconds'] * 1e3:.0f} ms\n"
        + audited
        + f"{band_line(fields)}\n{overlap_line(fields)}\n\n"
        + table(["method", "iteration, s", "error band, s", "plan or reason"], rows)
        + (f"\n\n{further}" if further else "")
    )


def _words(plan: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key} {plan[key]}"
        for key in SHOWN
        if key not in ("cp", "ep", "interleave") or plan[key] > 1
    )


def _span(fields: Mapping[str, Any]) -> str | None:
    band = fields["error_band"]
    return "{:.4g} to {:.4g}".format(*band["iteration_time_s"]) if band else None
