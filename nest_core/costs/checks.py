"""Whether a plan exists on a problem; whether it fits into memory is a price's answer."""

from collections.abc import Sequence

from nest_core.costs.plan import SCHEDULES, Plan, Point
from nest_core.costs.problem import Problem
from nest_core.costs.schedules import SPLIT
from nest_core.documents.errors import require

__all__ = ["check_offload", "check_plan"]

_DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp", "micro_batch", "interleave")


def check_plan(problem: Problem, plan: Plan) -> None:
    """Refuse plans that do not exist on this problem; InputError names the field."""
    point = plan.point
    require(
        not plan.strategies or len(plan.strategies) == point.pp,
        "plan.stage_strategies",
        f"must name one strategy for each of {point.pp} stages",
        len(plan.strategies),
        "give one per stage, or none",
    )
    _check_devices(problem, plan)
    _check_degrees(problem, point)
    _check_schedule(problem, point)
    _check_strategies(problem, plan)
    layers, virtual_stages = problem.layers, point.pp * point.interleave
    require(
        virtual_stages <= layers,
        "plan.pp" if point.interleave == 1 else "plan.interleave",
        f"must leave a layer for each virtual stage of the {layers} layers",
        virtual_stages,
        "lower it",
    )
    rising = all(a < b for a, b in zip(plan.cuts, plan.cuts[1:], strict=False))
    require(
        len(plan.cuts) == virtual_stages + 1
        and plan.cuts[0] == 0
        and (plan.cuts[-1] == layers)
        and rising,
        "plan.cuts",
        f"must rise from 0 to {layers} in {virtual_stages} steps",
        list(plan.cuts),
        "give the first layer of every "
        + ("stage" if point.interleave == 1 else "virtual stage")
        + " and the total",
    )
    *lean, last = problem.recomputations
    require(
        len(plan.recompute) == point.pp and set(plan.recompute) <= set(problem.recomputations),
        "plan.recompute",
        f"must name {', '.join(lean)} or {last} for {point.pp} stages",
        list(plan.recompute),
        "correct it",
    )
    if plan.offload.activations:
        check_offload(plan.recompute, (point.schedule,))


def check_offload(
    recompute: Sequence[str], schedules: Sequence[str], field: str = "plan"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Recomputations and schedules that go with offloaded activations; InputError for others.

    Of a space those that do are enough. Megatron-LM offloads none that are recomputed; W of
    zero-bubble schedules reads what came back long before.
    """
    methods = tuple(name for name in recompute if name == "none")
    unfit_free = tuple(name for name in schedules if name not in SPLIT)
    for name, some, all_of_it, rule in (
        ("recompute", methods, recompute, "none"),
        ("schedule", unfit_free, schedules, "no zero-bubble schedule"),
    ):
        require(
            some and (field != "plan" or len(some) >= len(all_of_it)),
            f"{field}.{name}",
            f"must be {rule} where activations are offloaded",
            list(all_of_it),
            "offload the optimizer alone, or change it",
        )
    return methods, unfit_free


def _check_devices(problem: Problem, plan: Plan) -> None:
    devices, point = problem.network.devices, plan.point
    require(
        plan.devices_used <= devices,
        "plan",
        f"must use at most the fabric's {devices} devices",
        plan.devices_used,
        "lower dp, tp or pp" if point.cp == 1 else "lower dp, tp, cp or pp",
    )


def _check_degrees(problem: Problem, point: Point) -> None:
    for field in _DEGREES:
        require(
            getattr(point, field) >= 1,
            f"plan.{field}",
            "must be at least 1",
            getattr(point, field),
            "correct it",
        )
    require(
        point.zero in (0, 1, 2, 3),
        "plan.zero",
        "must be 0, 1, 2 or 3",
        point.zero,
        "pick a ZeRO stage",
    )
    _check_experts(point)
    _check_zero_group(point)
    require(
        not problem.pad_batch or problem.divides(point.dp, point.micro_batch),
        "plan.micro_batch",
        f"must not exceed a replica's share of the batch of {problem.batch}, rounded up, and "
        f"dp = {point.dp} not the batch",
        point.micro_batch,
        "lower it, or dp",
    )
    require(
        problem.divides(point.dp, point.micro_batch),
        "plan.dp",
        f"times micro_batch = {point.micro_batch} must divide the batch of {problem.batch}",
        point.dp,
        "choose another dp or micro_batch, or set search.pad_batch = true",
    )


def _check_experts(point: Point) -> None:
    ranks = point.tp * point.sharers
    require(
        point.etp != point.tp or point.sharers % point.ep == 0,
        "plan.ep",
        f"must divide dp x cp = {point.sharers}",
        point.ep,
        "choose a divisor, another dp, or an etp under tp",
    )
    require(
        ranks % (point.ep * point.etp) == 0,
        "plan.etp",
        f"times ep = {point.ep} must divide tp x cp x dp = {ranks}",
        point.etp,
        "choose another etp or ep",
    )
    require(
        point.etp == point.tp or point.tp == 1 or point.sp,
        "plan.etp",
        f"must be tp = {point.tp} without sequence parallelism, as all tp ranks then hold the "
        "same tokens",
        point.etp,
        "set sp, or leave etp out",
    )


def _check_zero_group(point: Point) -> None:
    if not point.zero_group:
        return
    require(
        point.zero != 0,
        "plan.zero_group",
        "must be all at ZeRO 0, which shards nothing",
        point.zero_group,
        "leave it out, or set zero",
    )
    require(
        1 < point.zero_group <= point.sharers and point.sharers % point.zero_group == 0,
        "plan.zero_group",
        f"must divide dp x cp = {point.sharers}, and be above 1",
        point.zero_group,
        "choose a divisor, or all",
    )
    require(
        point.expert_sharers % point.instances == 0,
        "plan.zero_group",
        f"must leave instances, here {point.instances}, that divide the "
        f"{point.expert_sharers} ranks that hold the same experts",
        point.zero_group,
        "choose a larger one, or a smaller ep",
    )


def _check_strategies(problem: Problem, plan: Plan) -> None:
    point = plan.point
    if not plan.strategies:
        return
    for s in range(point.pp):
        _check_degrees(problem, plan.stage_point(s))
    if plan.ragged:
        _check_ragged(plan)
        return
    inner, outer = sorted((point.order.index("tp"), point.order.index("cp")))
    widths = {(strategy.tp, strategy.cp) for strategy in plan.strategies}
    require(
        len(widths) <= 1 or not inner < point.order.index("pp") < outer,
        "plan.order",
        "must not name pp between tp and cp where stages differ in them",
        list(point.order),
        "a stage keeps its devices whatever it makes of tp and cp only then",
    )


def _check_ragged(plan: Plan) -> None:
    point = plan.point
    require(
        set(point.order[:2]) == {"tp", "cp"},
        "plan.order",
        "must begin with tp and cp where stages differ in width",
        list(point.order),
        "name dp and pp after them",
    )
    require(
        point.interleave == 1,
        "plan.schedule",
        "must be of one virtual stage per stage where stages differ in width",
        point.schedule,
        "give 1f1b",
    )


def _check_schedule(problem: Problem, point: Point) -> None:
    require(
        point.schedule in SCHEDULES,
        "plan.schedule",
        "must be one of the schedules",
        point.schedule,
        "pick " + ", ".join(SCHEDULES),
    )
    require(
        point.interleave <= 1 or point.pp != 1,
        "plan.interleave",
        "must be 1 without a pipeline",
        point.interleave,
        "raise pp",
    )
    require(
        point.interleave == 2
        if point.is_v_shaped
        else point.schedule.startswith("interleaved") == (point.interleave > 1),
        "plan.interleave",
        "must be above 1 under interleaved schedules, 2 under zbv and dualpipev, and else 1",
        point.interleave,
        "give as many as the schedule has, or another schedule",
    )
    m = point.micro_batches(problem.batch)
    require(
        point.schedule != "dualpipev" or m >= 2 * point.pp,
        "plan.pp",
        f"must not exceed half the {m} micro-batches of a replica under dualpipev",
        point.pp,
        "choose another dp, micro_batch or pp",
    )
    require(
        not point.around or m % point.pp == 0,
        "plan.pp",
        f"must divide the {m} micro-batches of a replica when interleaved",
        point.pp,
        "choose another dp, micro_batch or pp",
    )
