"""A scenario answered: our plan with its certificate, the baselines, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nest_core.baselines import Baseline, evaluate_baselines
from nest_core.costs.price import Report, Stage
from nest_core.costs.problem import Problem
from nest_core.planner import Result, search
from nest_core.scenario import Scenario
from nest_core.units import at_least_gib

__all__ = ["Answer", "answer", "report_json", "stage_json"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the studio shows and ``nest-studio plan`` prints.

    Parameters
    ----------
    scenario : Scenario
    problem : Problem
    result : Result
    baselines : tuple of Baseline
        In the scenario's order.
    """

    scenario: Scenario
    problem: Problem
    result: Result
    baselines: tuple[Baseline, ...]

    @property
    def best_baseline(self) -> Baseline | None:
        """The fastest feasible baseline."""
        feasible = [entry for entry in self.baselines if entry.feasible and entry.report]
        return min(feasible, key=_seconds, default=None)

    @property
    def speedup(self) -> float | None:
        """Our throughput over the best feasible baseline's."""
        rival = self.best_baseline
        if self.result.best is None or rival is None or rival.report is None:
            return None
        return rival.report.iteration_s / self.result.best.iteration_s

    @property
    def advice(self) -> str:
        """The nearest change that makes an infeasible scenario feasible; empty if it is."""
        if self.result.best is not None or not self.result.needed_bytes:
            return ""
        enough = at_least_gib(self.result.needed_bytes)
        return (
            f"Raise memory per device to {enough}, use more devices, or allow more "
            "ZeRO stages, recomputation or tensor parallelism"
        )

    def to_json(self) -> dict[str, Any]:
        """The fields of the command line's ``plan``."""
        result, best = self.result, self.result.best
        certificate = result.certificate
        answer: dict[str, Any] = {
            "scenario": self.scenario.name,
            "costs": "own",
            "overlap": "none",
            "feasible": best is not None,
            "reason": result.reason or None,
            "advice": self.advice or None,
            "iteration_time_s": None,
            "samples_per_s": None,
            "tokens_per_s_per_device": None,
            "mfu": None,
            "plan": None,
            "stages": [],
        }
        if best is not None:
            answer.update(report_json(best))
        answer.update(
            certificate={
                "lower_bound_s": certificate.lower_bound_s,
                "gap": certificate.gap,
                "proven": certificate.proven,
                "points": certificate.points,
                "solved": certificate.solved,
                "bounded": certificate.bounded,
                "infeasible": certificate.infeasible,
            },
            alternatives=[report_json(report) for report in result.alternatives],
            baselines=[_baseline_json(entry) for entry in self.baselines],
            error_band=None,
            solve_seconds=result.solve_seconds,
        )
        return answer


def answer(scenario: Scenario) -> Answer:
    """Plan a scenario and price the baselines beside it."""
    problem = scenario.problem()
    result = search(problem, scenario.space, top=scenario.top, time_limit_s=scenario.time_limit_s)
    baselines = evaluate_baselines(problem, scenario.space, scenario.model, scenario.baselines)
    return Answer(scenario, problem, result, baselines)


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


def _baseline_json(entry: Baseline) -> dict[str, Any]:
    report = entry.report
    return {
        "name": entry.name,
        "feasible": entry.feasible,
        "reason": entry.reason or None,
        "origin": entry.origin or None,
        "plan": report.plan.to_json() if report else None,
        "stages": [stage_json(stage) for stage in report.stages] if report else [],
        "iteration_time_s": report.iteration_s if report and entry.feasible else None,
        "search_seconds": entry.search_seconds,
    }


def _seconds(entry: Baseline) -> float:
    return entry.report.iteration_s if entry.report else float("inf")
