"""torchtitan: a configuration function and a script to start it.

Fields of ``torchtitan/config/configs.py``, rules of ``distributed/parallel_dims.py``,
``distributed/pipeline_parallel.py`` and ``distributed/activation_checkpoint.py`` in release
0.3.0. ``--module`` takes any importable module, so the plan is one; it starts from the
configuration that torchtitan ships for the model and sets what the plan says.

Its mesh is pp, dp, cp, tp from the outside in. ZeRO 3 is its fully sharded data parallelism,
ZeRO 2 the same with parameters kept after the forward pass, ZeRO 0 replication; context-parallel
ranks always shard.
"""

from __future__ import annotations

from itertools import pairwise

from nest_core.costs.plan import Plan, Point
from nest_core.costs.price import Report
from nest_core.export.checks import (
    check_launcher,
    check_order,
    check_uniform,
    common_recomputation,
    pipelined,
)
from nest_core.export.launch import torchrun
from nest_core.export.seating import seating
from nest_core.export.torchtitan_models import flavour_of
from nest_core.export.values import Bundle, Refused, header
from nest_core.network import collapse
from nest_core.scenario import Scenario

__all__ = ["VERSION", "export_torchtitan"]

VERSION = "torchtitan 0.3.0"
_NAME = "torchtitan"
_ORDER = ("tp", "cp", "dp", "pp")
_SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}


def export_torchtitan(scenario: Scenario, report: Report) -> Bundle:
    """Configuration module and launch script of a priced plan.

    Raises
    ------
    Refused
        Where torchtitan cannot express the plan.
    """
    plan = report.plan
    seats = seating(collapse(scenario.fabric), plan.point)
    flavour = flavour_of(scenario.model)
    check_uniform(plan, _NAME)
    recompute = common_recomputation(plan, _NAME)
    check_order(plan.point, (_ORDER,), _NAME)
    check_launcher(seats, plan.point, _NAME)
    _check_sharding(plan.point)
    _check_rest(scenario, plan.point, recompute)
    top = header(scenario, plan, VERSION)
    lines = [
        f"config.{name} = {value}" for name, value in _settings(scenario, plan, recompute).items()
    ]
    module = (
        top + "from torchtitan.distributed.activation_checkpoint import FullAC\n"
        f"from torchtitan.models.{flavour.module} import model_registry\n"
        f"from torchtitan.models.{flavour.module}.config_registry import {flavour.base}\n\n\n"
        "def plan():\n"
        f"    config = {flavour.base}()\n"
        f'    config.model_spec = model_registry("{flavour.name}")\n'
        + "".join(f"    {line}\n" for line in lines)
        + "    return config\n"
    )
    launch = (
        "#!/usr/bin/env bash\n" + top + "# Run on every node; arguments go to torchtitan.\n"
        "set -euo pipefail\n"
        'PYTHONPATH="$(cd -- "$(dirname -- "$0")" && pwd)${PYTHONPATH:+:$PYTHONPATH}"\n'
        "export PYTHONPATH\n"
        + torchrun(seats, ["-m torchtitan.train --module nest_plan --config plan", '"$@"'])
    )
    return Bundle(
        {"nest_plan.py": module, "launch.sh": launch},
        (f"Tokenizer, data and learning rate are those of torchtitan's {flavour.base}.",),
    )


def _settings(scenario: Scenario, plan: Plan, recompute: str) -> dict[str, str]:
    point = plan.point
    sharded = point.zero >= 2
    micro_batches = point.micro_batches(scenario.batch)
    # With a pipeline all micro-batches of a replica are one step; without, they add up.
    local = point.micro_batch * (micro_batches if point.pp > 1 else 1)
    fields = {
        "training.seq_len": str(scenario.sequence),
        "training.local_batch_size": str(local),
        "training.global_batch_size": str(scenario.batch),
        "training.dtype": '"float32"',
        "training.mixed_precision_param": (
            '"bfloat16"' if scenario.precision == "bf16" else '"float32"'
        ),
        "parallelism.data_parallel_replicate_degree": str(1 if sharded else point.dp),
        "parallelism.data_parallel_shard_degree": str(point.dp if sharded else 1),
        "parallelism.fsdp_reshard_after_forward": '"always"' if point.zero == 3 else '"never"',
        "parallelism.tensor_parallel_degree": str(point.tp),
        "parallelism.enable_sequence_parallel": str(point.sp),
        "parallelism.context_parallel_degree": str(point.cp),
        "parallelism.pipeline_parallel_degree": str(point.pp),
        "parallelism.expert_parallel_degree": str(point.ep),
        "activation_checkpoint": "FullAC.Config()" if recompute == "full" else "None",
        "compile.enable_async_tensor_parallel": "False",
    }
    if pipelined(point):
        fields |= {
            "parallelism.pipeline_parallel_schedule": f'"{_SCHEDULES[point.schedule]}"',
            "parallelism.pipeline_parallel_microbatch_size": str(point.micro_batch),
            "parallelism.module_fqns_per_model_part": _parts(plan),
        }
    return fields


def _parts(plan: Plan) -> str:
    """Modules of every chunk, in the order in which a micro-batch passes them."""
    last = plan.cuts[-1] - 1
    rows = []
    for first, end in pairwise(plan.cuts):
        blocks = range(max(first, 1) - 1, min(end, last) - 1)
        names = ["tok_embeddings"] if first == 0 else []
        names += [f"layers.{block}" for block in blocks]
        names += ["norm", "lm_head"] if end == plan.cuts[-1] else []
        rows.append("        [" + ", ".join(f'"{name}"' for name in names) + "],\n")
    return "[\n" + "".join(rows) + "    ]"


def _check_sharding(point: Point) -> None:
    if point.zero == 1 and point.sharers > 1:
        raise Refused(
            "plan.zero", f"must be 0, 2 or 3 for {_NAME}, which shards gradients with the "
            "optimizer's states", point.zero, "pin search.zero",
        )  # fmt: skip
    if point.zero == 0 and point.cp > 1:
        raise Refused(
            "plan.zero", f"must be 2 or 3 with context parallelism for {_NAME}, whose "
            "context-parallel ranks shard", point.zero, "pin search.zero",
        )  # fmt: skip


def _check_rest(scenario: Scenario, point: Point, recompute: str) -> None:
    if recompute == "selective":
        raise Refused(
            "plan.recompute", f"must be none or full for {_NAME}, whose selective mode saves "
            "every second matrix product", recompute, "pin search.recompute",
        )  # fmt: skip
    if scenario.precision not in ("bf16", "fp32"):
        raise Refused(
            "workload.precision", f"must be bf16 or fp32 for {_NAME}", scenario.precision,
            "choose one of them",
        )  # fmt: skip
    if scenario.optimizer != "adam":
        raise Refused(
            "workload.optimizer", f"must be adam for {_NAME}", scenario.optimizer, "choose adam"
        )
    if scenario.gradient_bytes == 2.0:
        raise Refused(
            "workload.gradient_bytes", f"must be 4 for {_NAME}, which reduces in fp32", 2,
            "leave it out",
        )  # fmt: skip
    if scenario.model.experts > 1 and point.tp > 1:
        raise Refused(
            "plan.tp", f"must be 1 with experts for {_NAME}, whose expert groups take "
            "tensor-parallel ranks in", point.tp, "pin search.tp to 1",
        )  # fmt: skip
    if point.ep > 1 and point.zero == 0:
        raise Refused(
            "plan.zero", f"must be 2 or 3 with expert parallelism for {_NAME}, which takes its "
            "ranks from the sharded ones", point.zero, "pin search.zero",
        )  # fmt: skip
    if scenario.context == "ring" and point.cp > 1 and scenario.sequence % (2 * point.cp):
        raise Refused(
            "workload.sequence_length_tokens",
            f"must be a multiple of 2 cp = {2 * point.cp} for {_NAME}", scenario.sequence,
            "choose another cp",
        )  # fmt: skip
