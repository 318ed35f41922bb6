"""A person's own plan, typed or pasted, priced on a scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nest_core.costs.checks import check_plan
from nest_core.costs.parse import Pasted, read_pasted
from nest_core.costs.plan import Plan
from nest_core.costs.price import Report, price
from nest_core.costs.problem import Problem
from nest_core.errors import InputError
from nest_core.layout.placement import read_placement
from nest_core.workload import Model

__all__ = ["Mine", "check_heads", "price_pasted"]


@dataclass(frozen=True, slots=True)
class Mine:
    """A pasted plan and its price."""

    pasted: Pasted
    report: Report


def price_pasted(problem: Problem, model: Model, text: str, placement: str = "") -> Mine:
    """Read fields or a Megatron-LM command, and price what it says.

    Parameters
    ----------
    placement : str
        Where the ranks sit, by hand (`nest_core.layout.placement.read_placement`); empty: as the
        plan's device order says.

    Raises
    ------
    InputError
        If the text is no plan, or not one on this problem, or the placement does not seat it.
        Not fitting is an answer.
    """
    devices = problem.network.devices
    pasted = read_pasted(text, problem.layers, devices, problem.batch, problem.tokens)
    check_heads(model, pasted.plan)
    if placement.strip():
        check_plan(problem, pasted.plan)
        order = read_placement(placement, pasted.plan, devices, "placement")
        point = replace(pasted.plan.point, device_order=order)
        pasted = replace(pasted, plan=replace(pasted.plan, point=point))
    return Mine(pasted, price(problem, pasted.plan))


def check_heads(model: Model, plan: Plan) -> None:
    """Refuse tensor-parallel degrees that do not divide the heads."""
    for tp in (plan.point.tp, *(strategy.tp for strategy in plan.strategies)):
        if model.heads % tp:
            raise InputError(
                "plan.tp", f"must divide the model's {model.heads} heads", tp, "choose another tp"
            )
