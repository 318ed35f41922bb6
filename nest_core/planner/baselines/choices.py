"""What may be chosen: the planner's valid points, one at a time.

The rules are the planner's (``docs/method.md``, "The program"), so that no baseline leaves the
space in which our plan is the best.
"""

from dataclasses import replace

from nest_core.costs import Point, Problem, acting_zero
from nest_core.costs.layout import places
from nest_core.costs.plan import even_cuts
from nest_core.planner import SearchSpace
from nest_core.planner.layouts import even_patterns

__all__ = ["canonical", "default_order", "even_choices", "grouped", "natural", "valid"]

MEGATRON_ORDER = ("tp", "cp", "dp", "pp")


def default_order(space: SearchSpace) -> tuple[str, ...]:
    """Megatron-LM's and Alpa's axis order, or the first that is allowed."""
    return MEGATRON_ORDER if MEGATRON_ORDER in space.orders else space.orders[0]


def natural(space: SearchSpace) -> str:
    """Return the fabric's own device order, or the first of those that are allowed."""
    return "natural" if "natural" in space.device_orders else space.device_orders[0]


def valid(problem: Problem, space: SearchSpace, point: Point) -> bool:
    """Whether a point is one of the planner's; recomputation and cuts are not looked at."""
    devices, order = problem.network.devices, point.device_order
    limit = places(problem.network, order) if isinstance(order, str) else devices
    if (
        point.devices_used > limit
        or (not space.idle_devices and point.devices_used < devices)
        or not problem.divides(point.dp, point.micro_batch)
        or point.tp * point.sharers % (point.ep * point.etp)
        or point.etp not in space.expert_tensor(point.tp, point.sp)
        or (point.zero and point.zero_group not in _groups(space, point))
        or point.pp > problem.layers
        or (point.sp and point.tp == 1)
    ):
        return False
    if point.schedule != "interleaved":
        return point.interleave == 1
    return (
        point.pp > 1
        and point.interleave > 1
        and point.micro_batches(problem.batch) % point.pp == 0
        and bool(even_patterns(problem.layers, point.pp, point.interleave))
    )


def canonical(space: SearchSpace, point: Point) -> Point:
    """Return the name that a point has where others stand for the same: ZeRO of a single copy of
    the
    weights, ZeRO 1 and 2 of a pipeline, schedules of a single stage.
    """
    if not point.shared:
        point = replace(point, zero=0, zero_group=0)
    elif point.zero not in space.stages_of_zero(point.pp):
        point = replace(point, zero=acting_zero(point.zero, point.pp, space.sharded_gradients))
    if point.pp == 1 and point.schedule != "interleaved":
        point = replace(point, schedule=space.plain or point.schedule)
    return point


def grouped(space: SearchSpace, point: Point) -> Point:
    """Return the point in its own group of ZeRO's if it may have that, else over all or the
    largest.

    Where no group divides its ranks it is left to ZeRO 0, if that is allowed.
    """
    groups = _groups(space, point) if point.zero else (0,)
    if point.zero_group in groups:
        return point
    if not groups:
        return replace(point, zero=0, zero_group=0) if 0 in space.zero else point
    return replace(point, zero_group=0 if 0 in groups else max(groups))


def _groups(space: SearchSpace, point: Point) -> tuple[int, ...]:
    return space.groups_among(point.sharers, point.expert_sharers)


def even_choices(problem: Problem, point: Point) -> tuple[tuple[int, ...], ...]:
    """Equal stages or virtual stages, of blocks or of layers; else as even as they go.

    Interleaved points that are valid have equal virtual stages.
    """
    patterns = even_patterns(problem.layers, point.pp, point.interleave)
    return patterns or (even_cuts(problem.layers, point.pp * point.interleave),)
