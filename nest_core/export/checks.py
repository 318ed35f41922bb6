"""What several frameworks cannot express, refused in one place."""

from __future__ import annotations

from collections.abc import Sequence

from nest_core.costs.plan import Plan, Point
from nest_core.export.seating import Seating
from nest_core.export.values import Refused

__all__ = [
    "agrees",
    "check_launcher",
    "check_order",
    "check_uniform",
    "common_recomputation",
    "pipelined",
]


def pipelined(point: Point) -> bool:
    """Whether the schedule matters."""
    return point.pp > 1


def check_uniform(plan: Plan, framework: str) -> None:
    """Refuse stages that divide their layers differently."""
    different = sorted({str((s.tp, s.sp, s.cp, s.ep, s.zero)) for s in plan.strategies})
    if len(different) > 1:
        raise Refused(
            "plan.stage_strategies", f"must be the same in every stage for {framework}",
            ", ".join(different), "plan with search.stage_strategies uniform",
        )  # fmt: skip


def common_recomputation(plan: Plan, framework: str) -> str:
    """What every stage recomputes; refused where stages differ."""
    if len(set(plan.recompute)) > 1:
        raise Refused(
            "plan.recompute", f"must be the same in every stage for {framework}",
            ", ".join(plan.recompute), "pin search.recompute to one choice",
        )  # fmt: skip
    return plan.recompute[0]


def agrees(point: Point, order: Sequence[str]) -> bool:
    """Whether an order gives ranks the same coordinates, axes of degree 1 left out.

    Examples
    --------
    >>> point = Point(8, True, 4, 1, 1, 0, ("tp", "cp", "pp", "dp"))
    >>> agrees(point, ("tp", "cp", "dp", "pp"))
    True
    """
    return [a for a in point.order if getattr(point, a) > 1] == [
        a for a in order if getattr(point, a) > 1
    ]


def check_order(point: Point, orders: Sequence[Sequence[str]], framework: str) -> None:
    """Refuse axis orders that a framework has no ranks for."""
    if not any(agrees(point, order) for order in orders):
        known = " or ".join("-".join(order) for order in orders)
        raise Refused(
            "plan.order", f"must be {known} for {framework}, apart from axes of degree 1",
            "-".join(point.order), "pin search.order to one of them",
        )  # fmt: skip


def check_launcher(seats: Seating, point: Point, framework: str, *, even: bool = True) -> None:
    """Refuse seats that a launcher without a rank file does not give.

    Parameters
    ----------
    even : bool
        Whether hosts must carry as many ranks each.
    """
    if not seats.in_order:
        raise Refused(
            "plan.device_order", f"must fill node after node for {framework}'s launcher",
            point.device_order, "export with --to slurm, whose rank file carries it",
        )  # fmt: skip
    if even and not seats.even:
        counts = ", ".join(map(str, sorted({int(n) for n in seats.per_host})))
        raise Refused(
            "plan.devices_used", f"must put as many ranks on every node for {framework}'s launcher",
            counts, "use whole nodes, or export with --to slurm",
        )  # fmt: skip
