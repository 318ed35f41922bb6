"""The fields that commands print of plans, and of what those stand on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nest_core.costs.head_room import spread_of
from nest_core.costs.overlap import Overlap
from nest_core.costs.price import Report, Stage
from nest_core.costs.tables import mfu_convention
from nest_core.explain.summary import axes_of, proven_over
from nest_core.explain.validity import Validity
from nest_core.hardware import measured_share
from nest_core.hardware.posterior import load_posterior
from nest_core.hardware.stacks import validated
from nest_core.planner import Certificate
from nest_core.planner.baselines import Baseline
from nest_core.scenario import ScenarioValues
from nest_core.workload import chain

__all__ = [
    "assumptions_json",
    "baseline_json",
    "certificate_json",
    "memory_json",
    "profile_json",
    "report_json",
    "stack_json",
    "stage_json",
    "validity_json",
]


def assumptions_json(scenario: ScenarioValues, overlap: Overlap) -> dict[str, Any]:
    """What hides behind compute, whether the device's estimator was fitted, how FLOP count."""
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
        "mfu_convention": mfu_convention(scenario.model),
    }


def stack_json(scenario: ScenarioValues) -> dict[str, Any]:
    """The software that a scenario's times are those of, and what was measured of it."""
    stack, family = scenario.stack, scenario.accelerator.family.name
    return {
        "name": stack.name,
        "release": stack.release,
        "calibrated": bool(stack.parameters),
        "validated": validated(family, stack),
        "measured_runs": load_posterior().sure_rows(family, stack.name),
    }


def validity_json(found: Validity | None) -> dict[str, Any]:
    """The error band of the measured runs that a priced plan is like, and both in words."""
    if found is None:
        return {"error_band": None, "validity": None}
    return {
        "error_band": found.band.to_json() if found.band else None,
        "validity": found.in_words,
    }


def memory_json(scenario: ScenarioValues, report: Report) -> dict[str, Any]:
    """Memory of a plan's fullest device: centre, interval, and how likely the plan fits."""
    needed = max(stage.memory.total for stage in report.stages)
    spread = spread_of(scenario.stack.framework)
    return spread.to_json(needed, report.memory_limit_bytes, scenario.stack.name)


def report_json(report: Report) -> dict[str, Any]:
    """A priced plan as the command line prints it."""
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
    """One stage; times are per iteration."""
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
    """The profile that the accelerator was given, and what of the plan's time it measured.

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


def baseline_json(entry: Baseline, found: Validity | None) -> dict[str, Any]:
    """A baseline; ``found`` is what its report stands on, None where it has none that fits."""
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
        **validity_json(found),
        "search_seconds": entry.search_seconds,
    }
    if entry.name == "nest":
        fields["promised_s"] = entry.promised_s
        fields["waterfall"] = asdict(entry.waterfall) if entry.waterfall else None
    return fields


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """How a plan is known to be the best."""
    return {
        "lower_bound_s": certificate.lower_bound_s,
        "gap": certificate.gap,
        "proven": certificate.proven,
        "points": certificate.points,
        "solved": certificate.solved,
        "bounded": certificate.bounded,
        "infeasible": certificate.infeasible,
        **({} if certificate.proven else {"open": certificate.open}),
        "axes": axes_of(certificate.space),
        "words": proven_over(certificate),
    }
