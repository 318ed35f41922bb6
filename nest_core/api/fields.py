"""The fields that commands print of plans and of what those stand on, and their lines of text."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nest_core.costs import (
    Overlap,
    Report,
    Stage,
    degrees_in_words,
    mfu_convention,
    plan_words,
    spread_of,
)
from nest_core.costs.shapes import measured_words
from nest_core.documents import at_most_percent, percent, signed_percent, table
from nest_core.hardware import load_posterior, measured_share
from nest_core.planner import Certificate
from nest_core.planner.baselines import NAMES, Baseline
from nest_core.report.explain import Validity, axes_of, proven_over
from nest_core.scenario import ScenarioValues
from nest_core.workload import chain

__all__ = [
    "assumptions_json",
    "baseline_json",
    "certificate_json",
    "interval_line",
    "memory_json",
    "overlap_line",
    "plan_text",
    "profile_json",
    "report_json",
    "stack_json",
    "stage_json",
    "validity_json",
]


def assumptions_json(scenario: ScenarioValues, overlap: Overlap) -> dict[str, Any]:
    """Return what hides behind compute, whether the estimator was fitted, how FLOP count."""
    family = scenario.accelerator.family
    return {
        "overlap": overlap.name,
        "overlap_shares": {
            "tp": overlap.tp,
            "pp": overlap.pp,
            "dp": overlap.dp,
            "slowdown": overlap.slowdown,
        },
        "estimator": {"family": family.name, "calibrated": family.calibrated},
        "fabric": scenario.fabric.assumed,
        "mfu_convention": mfu_convention(scenario.model),
    }


def stack_json(scenario: ScenarioValues) -> dict[str, Any]:
    """Return the software that a scenario's times are those of, and what was measured of it."""
    stack, family = scenario.stack, scenario.accelerator.family.name
    return {
        "name": stack.name,
        "release": stack.release,
        "calibrated": bool(stack.parameters),
        "measured_runs": load_posterior().sure_rows(family, stack.name),
    }


def validity_json(validity: Validity | None) -> dict[str, Any]:
    """Return the error band of the measured runs that a priced plan is like, and both in words."""
    return (
        {"error_band": None, "validity": None}
        if validity is None
        else {
            "error_band": validity.band.to_json() if validity.band else None,
            "validity": validity.in_words,
        }
    )


def memory_json(scenario: ScenarioValues, report: Report) -> dict[str, Any]:
    """Return memory of a plan's fullest device: centre, interval, and how likely the plan fits."""
    return spread_of(scenario.stack.framework).to_json(
        report.fullest_bytes, report.memory_limit_bytes, scenario.stack.name
    )


def report_json(report: Report) -> dict[str, Any]:
    """Return a priced plan as the command line prints it."""
    return {
        "feasible": report.feasible,
        "reason": report.reason or None,
        "iteration_time_s": report.iteration_s,
        "samples_per_s": report.samples_per_s,
        "tokens_per_s_per_device": report.tokens_per_s_per_device,
        "mfu": report.mfu,
        "bubble": report.bubble,
        "plan": report.plan.to_json(),
        "terms": dict(report.terms),
        "stages": [stage_json(stage) for stage in report.stages],
    }


def stage_json(stage: Stage) -> dict[str, Any]:
    """Return one stage; times are per iteration."""
    memory = stage.memory
    return {
        "layers": [stage.first, stage.last],
        "chunks": [list(span) for span in stage.virtual_stages],
        "recompute": stage.recompute,
        "level_to_producer": stage.producer_level if stage.producer_level >= 0 else None,
        "compute_s": stage.compute_s + stage.recompute_s,
        "recompute_s": stage.recompute_s,
        "communication_s": stage.communication_s,
        "idle_s": stage.idle_s,
        "memory_bytes": {
            "weights": memory.weights,
            "gradients": memory.gradients,
            "optimizer": memory.optimizer,
            "activations": memory.activations,
            "stash": memory.stash,
            "buffers": memory.buffers,
        },
    }


def profile_json(scenario: ScenarioValues, best: Report | None) -> dict[str, Any] | None:
    """Return the profile that the accelerator was given, and what of the plan's time it measured.

    ``coverage`` is the share of one forward and backward pass over all layers, on one rank,
    that its kernels measured; None without a plan.
    """
    profile = scenario.accelerator.profile
    if profile is None:
        return None
    coverage = None
    if best is not None:
        at = best.plan.point
        strategy = scenario.strategy(at.tp, at.sp, at.micro_batch, at.cp, at.ep, at.etp)
        runs = chain(scenario.model, strategy).runs
        coverage = measured_share(
            ((operator, times) for layer, times in runs for operator in layer.operators),
            scenario.accelerator,
            scenario.precision,
        )
    return {
        "name": profile.name,
        "device": profile.device,
        "precision": profile.precision,
        "torch": profile.torch,
        "date": profile.date,
        "coverage": coverage,
    }


def baseline_json(entry: Baseline, validity: Validity | None) -> dict[str, Any]:
    """Return a baseline; ``validity`` is what its report stands on, None where none fits."""
    report = entry.report
    runs = report if entry.feasible else None
    fields = {
        "name": entry.name,
        "feasible": entry.feasible,
        "reason": entry.reason or None,
        "origin": entry.origin or None,
        "plan": report.plan.to_json() if report else None,
        "stages": [stage_json(stage) for stage in report.stages] if report else [],
        "iteration_time_s": runs.iteration_s if runs else None,
        **validity_json(validity),
        "search_seconds": entry.search_seconds,
    }
    if entry.name == "nest":
        fields["promised_s"] = entry.promised_s
        fields["waterfall"] = asdict(entry.waterfall) if entry.waterfall else None
    return fields


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """Return how a plan is known to be the best."""
    return {
        "lower_bound_s": certificate.lower_bound_s,
        "gap": certificate.gap,
        "proven": certificate.proven,
        "points": certificate.points,
        "solved": certificate.solved,
        "bounded": certificate.bounded,
        "infeasible": certificate.infeasible,
        **({} if certificate.proven else {"open": certificate.open, "ended": certificate.ended}),
        **({"origin": certificate.origin} if certificate.origin else {}),
        "axes": axes_of(certificate.space),
        "words": proven_over(certificate),
    }


def plan_text(fields: Mapping[str, Any]) -> str:
    """Return a planned scenario: the plan, its proof, its interval, and the baselines beside it."""
    if not fields["feasible"]:
        return "\n".join(filter(None, [f"infeasible: {fields['reason']}", fields["advice"]]))
    words = plan_words(fields["plan"])
    certificate = fields["certificate"]
    origin = f", plan from {certificate['origin']}" if "origin" in certificate else ""
    proof = (
        "proven optimal"
        if certificate["proven"]
        else f"within {at_most_percent(certificate['gap'])}"
    )
    interval = f"{percent(fields['interval']['share'])} interval, s"
    rows: list[list[str | None]] = [
        ["this plan", f"{fields['iteration_time_s']:.4g}", _span(fields, fields), words],
        *(
            [
                NAMES["nest"] if entry["name"] == "nest" else entry["name"],
                f"{entry['iteration_time_s']:.4g}" if entry["feasible"] else None,
                _span(entry, fields) if entry["feasible"] else None,
                degrees_in_words(entry["plan"]) + _promise(entry)
                if entry["feasible"]
                else entry["reason"],
            ]
            for entry in fields["baselines"]
        ),
    ]
    audited = "".join(
        f"audit: {audit['solved']} excluded points solved, {audit['infeasible']} infeasible, "
        f"{len(audit['violations'])} below their bound\n"
        for audit in filter(None, [fields.get("audit")])
    )
    still_open = f"{certificate['open']:,} open, " if certificate.get("open") else ""
    others = [
        [str(place), f"{entry['iteration_time_s']:.4g}", plan_words(entry["plan"])]
        for place, entry in enumerate(fields["alternatives"], start=2)
    ]
    return (
        f"{fields['scenario']}: {fields['samples_per_s']:.4g} sequences/s, "
        f"MFU {percent(fields['mfu'])} ({fields['mfu_convention']}), "
        f"bubble {percent(fields['bubble'])} of the time that stages work\n"
        f"{proof}{origin}: {certificate['points']:,} points, {certificate['solved']:,} solved, "
        f"{certificate['bounded']:,} bounded, {certificate['infeasible']:,} infeasible, "
        f"{still_open}{fields['solve_seconds'] * 1e3:.0f} ms\n"
        f"{certificate['words']}\n"
        + audited
        + f"{interval_line(fields)}\n{fields['validity']}\n{overlap_line(fields)}\n"
        + head_room_line(fields)
        + (f"{_recommended(fields)}\n\n" if fields.get("recommended") else "\n")
        + table(["method", "iteration, s", interval, "plan or reason"], rows)
        + ("\n\n" + table(["place", "iteration, s", "plan"], others) if others else "")
    )


def interval_line(fields: Mapping[str, Any]) -> str:
    """Return where the plan's time will lie in four cases of five, and under which software."""
    interval, stack = fields["interval"], fields["stack"]
    return (
        f"{percent(interval['share'])} interval {interval['low_s']:.4g} to "
        f"{interval['high_s']:.4g} s under {stack['name']}"
        f"{', calibrated' if stack['calibrated'] else ''}"
    )


def head_room_line(fields: Mapping[str, Any]) -> str:
    """Return what plans take that fit more or less surely, if that was asked and proven."""
    steps = [
        f"{entry['iteration_time_s']:.4g} s ({signed_percent(entry['difference'], 2)}) "
        f"to fit with {percent(entry['certainty'])} certainty"
        for entry in fields.get("head_room") or ()
        if entry["difference"] is not None
    ]
    return f"head-room: {', '.join(steps)}\n" if steps else ""


def overlap_line(fields: Mapping[str, Any]) -> str:
    """Return what is assumed to hide behind compute, and whether the device was calibrated."""
    shares, estimator = fields["overlap_shares"], fields["estimator"]
    words = f"overlap {fields['overlap']}"
    if fields["overlap"] == "fitted":
        words += (
            f" (tp {percent(shares['tp'])}, pp {percent(shares['pp'])}, dp {percent(shares['dp'])})"
        )
    return f"{words}; estimator {estimator['family']}" + (
        "" if estimator["calibrated"] else ": nothing was fitted for this device"
    )


def _recommended(fields: Mapping[str, Any]) -> str:
    """Return what draws recommend, how sure that is, and what cannot be told from it."""
    result = fields["recommended"]
    span = result["interval"]
    same = result["plan"] == fields["plan"]
    lines = [
        "recommended: " + ("this plan" if same else plan_words(result["plan"])),
        f"{result['words']}; expected {result['expected_s']:.4g} s, "
        f"{percent(span['share'])} interval {span['low_s']:.4g} to {span['high_s']:.4g} s",
        measured_words(result["measured"], fields["estimator"]["family"], fields["stack"]["name"]),
    ]
    for equal in result["equals"]:
        low, high = (f"{100 * value:+z.1f} %" for value in equal["slower"])
        difference = f"{low} to {high}; its shape measured {equal['measured']} times"
        lines.append(f"cannot be told from it ({difference}): {plan_words(equal['plan'])}")
    return "\n".join(lines)


def _promise(entry: Mapping[str, Any]) -> str:
    """Return what NEST's program promised, and the largest cause of what it loses."""
    if entry.get("promised_s") is None:
        return ""
    words = f"; promised {entry['promised_s']:.4g} s"
    fall = entry["waterfall"]
    if fall and max(fall.values()) > 1e-9 * entry["promised_s"]:
        cause = max(fall, key=lambda name: float(fall[name]))
        words += f", loses most by {cause.replace('_', ' ')} ({fall[cause]:.3g} s)"
    return words


def _span(entry: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """Return the interval of a method's plan: as wide as ours, whose software it shares."""
    interval = fields["interval"]
    low, high = (
        entry["iteration_time_s"] * interval[end] / interval["centre_s"]
        for end in ("low_s", "high_s")
    )
    return f"{low:.4g} to {high:.4g}"
