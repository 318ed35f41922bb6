"""What every planner reaches in one case, in sequences per unit of time, under either costs.

Every planner on one case, under the costs that are chosen.

Under the artifact's these are our optimum, and its baselines in both orders; throughputs are
4,096 sequences over the time per batch, in the instance's own unit. Own costs are
`nest_core.paper.own`'s business.
"""

from functools import cache

from nest_core.paper.cases import Cell, Outcome, Rival, instance_of
from nest_core.paper.published import (
    ArtifactBaseline,
    Instance,
    Solution,
    StageOrder,
    evaluate,
    solve,
)
from nest_core.paper.published.costs import BATCH_SEQUENCES
from nest_core.paper.reproduction import Costs

__all__ = ["outcome_of"]


_NO_PLACEMENT = "Placement: the artifact ships no placement of this planner for this case."
_NO_INSTANCE = (
    "Instance: the artifact ships none for this case; its costs cannot be computed here, "
    "--costs own can."
)


def outcome_of(costs: Costs, cell: Cell, planners: tuple[str, ...]) -> Outcome:
    """Return the outcome of a case under the chosen costs."""
    if costs == "published":
        return _artifact_outcome(cell, planners)
    from nest_core.paper.own import own_outcome  # the planner is not for every start

    return own_outcome(cell, planners)


@cache
def _artifact_outcome(cell: Cell, planners: tuple[str, ...]) -> Outcome:
    """Solve a case and price its baselines as published and in their right order."""
    instance = instance_of(cell)
    if instance is None:
        return Outcome(
            None,
            _NO_INSTANCE,
            None,
            None,
            dict.fromkeys(planners, Rival(None, None, _NO_INSTANCE, _NO_INSTANCE)),
        )
    solution = solve(instance)
    by_name = {baseline.name.lower(): baseline for baseline in instance.baselines}
    return Outcome(
        ours=solution.throughput,
        reason=solution.reason or "",
        plan=_plan(instance, solution),
        search_seconds=solution.solve_seconds,
        rivals={name: _rival(instance, by_name.get(name)) for name in planners},
        even_division=_even_division(instance, solution),
        widths=tuple(layers.width for layers in instance.widths),
    )


def _plan(instance: Instance, solution: Solution) -> dict[str, int] | None:
    if not solution.feasible or solution.data_parallel is None or solution.tensor_parallel is None:
        return None
    return {
        "p": len(solution.stages),
        "d": solution.data_parallel,
        "t": solution.tensor_parallel,
        "e": instance.expert_parallel,
        "c": instance.context_parallel,
        "devices_used": solution.devices_used,
    }


def _rival(instance: Instance, baseline: ArtifactBaseline | None) -> Rival:
    if baseline is None:
        return Rival(None, None, _NO_PLACEMENT, _NO_PLACEMENT)
    published = evaluate(instance, baseline, StageOrder.AS_PUBLISHED)
    right = evaluate(instance, baseline, StageOrder.RIGHT)
    plan = {
        "p": baseline.pipeline,
        "d": baseline.data,
        "t": baseline.tensor,
        "e": instance.expert_parallel,
        "c": instance.context_parallel,
    }
    return Rival(
        published.throughput, right.throughput, published.reason or "", right.reason or "", plan
    )


def _even_division(instance: Instance, solution: Solution) -> float | None:
    """Return the optimum's own work, recomputation included, over all devices at once."""
    if solution.tensor_parallel is None:
        return None
    layers = next(
        candidate for candidate in instance.widths if candidate.width == solution.tensor_parallel
    )
    work = sum(layers.forward) + sum(layers.backward)
    if instance.recompute:  # all but the last stage, priced with the backward latencies
        work += sum(layers.backward[: solution.stages[-1].first])
    shared = work * instance.stage_devices(layers.width) / instance.devices
    return BATCH_SEQUENCES / (instance.micro_batches * shared)
