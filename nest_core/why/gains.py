"""What more of a resource is worth to a plan that stays as it is.

The difference quotient at one per cent: kernels, host and every level's bandwidth 1 % faster, and,
since a bubble shrinks with the micro-batches of an iteration, twice as many of those. A planner
may do better with the same resource by changing the plan: `nest_core.planner.shadow`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nest_core.costs.plan import Plan
from nest_core.costs.price import price
from nest_core.costs.problem import LayerTable, Problem
from nest_core.why.traffic import STEP, wider, with_tables

__all__ = ["Gain", "gains"]


@dataclass(frozen=True, slots=True)
class Gain:
    """What more of one resource gives.

    Parameters
    ----------
    resource : str
        compute, launches, bandwidth.<level> or micro-batches.
    more : str
        How much more of it, in words.
    throughput : float
        Relative gain.
    """

    resource: str
    more: str
    throughput: float


def gains(problem: Problem, plan: Plan) -> dict[str, Gain]:
    """Gains by resource."""
    before = price(problem, plan).samples_per_s
    changed: list[tuple[str, str, Problem]] = [
        ("compute", "1 % faster kernels", with_tables(problem, _faster)),
        ("launches", "1 % faster launches", with_tables(problem, _sooner)),
        *(
            (f"bandwidth.{name}", f"1 % more {name} bandwidth", replace(problem, network=network))
            for name, network in wider(problem.network)
        ),
        ("micro-batches", "twice the micro-batches", replace(problem, batch=2 * problem.batch)),
    ]
    return {
        resource: Gain(resource, more, price(other, plan).samples_per_s / before - 1)
        for resource, more, other in changed
    }


def _faster(table: LayerTable) -> LayerTable:
    rate = 1 + STEP
    return replace(
        table,
        compute_s=table.compute_s / rate,
        forward_s=table.forward_s / rate,
        replay_s=table.replay_s / rate,
    )


def _sooner(table: LayerTable) -> LayerTable:
    return replace(table, launch_s=table.launch_s / (1 + STEP))
