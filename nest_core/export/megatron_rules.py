"""What Megatron Core cannot run, for Megatron-LM and NeMo's Megatron-Bridge alike.

Rank order (``parallel_state.py`` of Megatron Core 0.16.1): tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp
under ``use_tp_pp_dp_mapping``. Expert groups are numbered in the same order with the
context-parallel axis left out, so they are neighbours among the ranks of a stage, as in a plan;
they are built for models without experts too, and the mapping asserts that their data-parallel
degree is that of the rest, hence ep = cp.
"""

from __future__ import annotations

from nest_core.costs.plan import Plan, Point
from nest_core.export.checks import (
    agrees,
    check_launcher,
    check_order,
    check_uniform,
    common_recomputation,
    pipelined,
)
from nest_core.export.seating import Seating
from nest_core.export.values import Refused
from nest_core.scenario import Scenario

__all__ = ["ORDER", "SWAPPED", "check_megatron", "swapped"]

ORDER = ("tp", "cp", "dp", "pp")
SWAPPED = ("tp", "cp", "pp", "dp")


def swapped(point: Point) -> bool:
    """Whether ranks follow the mapping with data parallelism outermost."""
    return not agrees(point, ORDER)


def check_megatron(scenario: Scenario, plan: Plan, seats: Seating, framework: str) -> None:
    """Refuse plans that Megatron Core's own checks or groups rule out.

    Raises
    ------
    Refused
        For the first part that cannot be expressed.
    """
    point = plan.point
    check_uniform(plan, framework)
    common_recomputation(plan, framework)
    if point.schedule == "gpipe" and pipelined(point):
        raise Refused(
            "plan.schedule", f"must be 1f1b or interleaved for {framework}", point.schedule,
            "pin search.schedule",
        )  # fmt: skip
    check_order(point, (ORDER, SWAPPED), framework)
    if swapped(point) and point.ep != point.cp:
        raise Refused(
            "plan.order", f"must be {'-'.join(ORDER)} for {framework} unless ep = cp, since it "
            "wants as many data-parallel ranks for experts as for the rest", "-".join(point.order),
            "pin search.order, or search.cp to 1",
        )  # fmt: skip
    check_launcher(seats, point, framework)
    _check_sharding(point, framework)
    _check_training(scenario, point, framework)
    if scenario.model.experts > 1:
        _check_experts(scenario, point, framework)
    if point.cp > 1 and scenario.sequence % (2 * point.cp):
        raise Refused(
            "workload.sequence_length_tokens",
            f"must be a multiple of 2 cp = {2 * point.cp} for {framework}", scenario.sequence,
            "choose another cp",
        )  # fmt: skip


def _check_sharding(point: Point, framework: str) -> None:
    if point.zero < 2:
        return
    if point.pp > 1:
        raise Refused(
            "plan.zero", f"must be 0 or 1 with a pipeline for {framework}, whose fully sharded "
            "data parallelism is documented for tp, cp and ep", point.zero,
            "pin search.zero to 0 and 1",
        )  # fmt: skip
    if swapped(point):
        raise Refused(
            "plan.order", f"must be {'-'.join(ORDER)} with ZeRO {point.zero} for {framework}",
            "-".join(point.order), "pin search.order",
        )  # fmt: skip


def _check_training(scenario: Scenario, point: Point, framework: str) -> None:
    if scenario.precision == "tf32":
        raise Refused(
            "workload.precision", f"must be fp32, fp16, bf16 or fp8 for {framework}",
            scenario.precision, "choose one of them",
        )  # fmt: skip
    if scenario.optimizer == "adam_bf16" or (scenario.optimizer == "adam_8bit" and not point.zero):
        rule = "must be adam or sgd" + ("" if point.zero else " without ZeRO")
        raise Refused(
            "workload.optimizer", f"{rule} for {framework}, whose narrow moments need its "
            "distributed optimizer and keep master weights", scenario.optimizer,
            "choose adam, or adam_8bit with ZeRO 1",
        )  # fmt: skip
    if scenario.model.family == "bert" and (point.cp > 1 or point.interleave > 1):
        raise Refused(
            "plan.cp" if point.cp > 1 else "plan.interleave",
            f"must be 1 for an encoder in {framework}",
            point.cp if point.cp > 1 else point.interleave, "pin it to 1",
        )  # fmt: skip


def _check_experts(scenario: Scenario, point: Point, framework: str) -> None:
    if point.tp > 1 and not point.sp:
        raise Refused(
            "plan.sp", f"must be true where experts meet tensor parallelism in {framework}",
            point.sp, "pin search.sp to true",
        )  # fmt: skip
    if point.tp > 1 and not scenario.expert_tensor:
        raise Refused(
            "workload.expert_tensor", f"must be true with tp = {point.tp} for {framework}, which "
            "otherwise spreads expert groups over tensor-parallel ranks", scenario.expert_tensor,
            "set it to true, or pin search.tp to 1",
        )  # fmt: skip
    if point.tp > 1 and scenario.model.family == "gpt_oss":
        raise Refused(
            "plan.tp", f"must be 1 for {framework}, which has no experts with bias divided by "
            "tensor parallelism", point.tp, "pin search.tp to 1",
        )  # fmt: skip
    if point.ep > 1 and scenario.precision == "fp16":
        raise Refused(
            "plan.ep", f"must be 1 in fp16 training for {framework}", point.ep,
            "train in bf16",
        )  # fmt: skip
