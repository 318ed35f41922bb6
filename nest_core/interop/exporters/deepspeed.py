"""DeepSpeed: its JSON configuration, a host file, the glue that needs Python, a launch script.

Keys and options of DeepSpeed (``runtime/config.py`` and the sections it reads,
``launcher/runner.py``). A pipeline is a ``PipelineModule`` whose topology gives ranks their
coordinates; it has no tensor-parallel layers, allows ZeRO 0 and 1, runs 1F1B, and cuts layers as
evenly as they go or so that every stage has as many of one class. Without a pipeline tensor
parallelism is AutoTP's and expert parallelism AutoEP's, on Hugging Face models; the latter keeps
experts whole.
"""

import json
from itertools import pairwise

from nest_core.costs import Plan, Report, state_bytes, state_shares
from nest_core.documents import GB
from nest_core.interop.exporters.values import (
    ExportFiles,
    ExportRefused,
    check_plain_experts,
    fields_where,
    header,
    launched,
    pipelined,
    refuse_first,
)
from nest_core.scenario import ScenarioValues

__all__ = ["export_deepspeed", "uniform_parts"]

_NAME = "DeepSpeed"
_ORDERS = (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"))
_PRESETS = {
    "mixtral": "mixtral",
    "qwen3_moe": "qwen3_moe",
    "deepseek_v2": "deepseek_v2",
    "deepseek_v3": "deepseek_v3",
}

_PIPELINE = '''\
"""Ranks, stages and recomputation of the plan, for a model given as a list of layers."""

import deepspeed
from deepspeed.pipe import PipelineModule
from deepspeed.runtime.pipe.topology import ProcessTopology

AXES = {axes}
DIMS = {dims}


def engine(layers, block, loss_fn):
    """The engine of the plan.

    ``layers`` are {count} layers or LayerSpecs: the embedding, {blocks} of class ``block``, the
    head.
    """
    deepspeed.init_distributed()
    module = PipelineModule(
        layers=layers,
        topology=ProcessTopology(axes=AXES, dims=DIMS),
        loss_fn=loss_fn,
        partition_method={method},
        activation_checkpoint_interval={interval},
        checkpointable_layers=[block.__name__],
    )
    return deepspeed.initialize(
        model=module, model_parameters=module.parameters(), config="ds_config.json"
    )[0]
'''
_PLAIN = '''\
"""The engine of the plan, for a Hugging Face model."""

import deepspeed


def engine(model):
    """The engine of the plan."""
{recompute}    return deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config="ds_config.json"
    )[0]
'''


def export_deepspeed(scenario: ScenarioValues, report: Report) -> ExportFiles:
    """Return configuration, host file, Python glue and launch script of a priced plan.

    Raises
    ------
    Refused
        Where DeepSpeed cannot express the plan.
    """
    plan, recompute = report.plan, report.plan.recompute[0]
    rank_mapping = launched(scenario, plan, _NAME, _ORDERS, even=False)
    _check(scenario, plan, recompute)
    notes = _tensor_parallel_notes(scenario, report)
    top = header(scenario, plan, "deepspeed")
    launch = (
        "#!/usr/bin/env bash\n" + top + "# Arguments: the training script, which imports engine()"
        " from nest_plan.py, and its own.\n"
        "set -euo pipefail\n"
        'HERE="$(cd -- "$(dirname -- "$0")" && pwd)"\n'
        'cd -- "$HERE"\n'
        'export PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}"\n'
        'exec deepspeed --hostfile "$HERE/hostfile" --master_port "${MASTER_PORT:-29500}" "$@"\n'
    )
    ranks = zip(rank_mapping.used_hosts, rank_mapping.per_host, strict=True)
    return ExportFiles(
        {
            "ds_config.json": json.dumps(_config(scenario, plan), indent=2) + "\n",
            "hostfile": top + "".join(f"node{host:04d} slots={count}\n" for host, count in ranks),
            "nest_plan.py": top + _glue(plan, recompute),
            "launch.sh": launch,
        },
        (
            "Host names in hostfile are places: put the cluster's own there, in the same order.",
            *notes,
        ),
    )


def _tensor_parallel_notes(scenario: ScenarioValues, report: Report) -> tuple[str, ...]:
    """Return what AutoTP does otherwise than is priced.

    Raises
    ------
    Refused
        Where the embedding, whole on every rank unless the head has its weights, no longer fits.
    """
    point, model, offload = report.plan.point, scenario.model, report.plan.offload
    if point.tp == 1:
        return ()
    state = state_bytes(scenario.precision, scenario.optimizer, scenario.gradient_bytes)
    weights, gradients, states = state_shares(point.zero, point.sharers, state)
    bytes_each = weights + gradients + states * (1 - offload.optimizer)
    elements = 0.0 if model.tied else model.vocabulary * model.hidden * (1 - 1 / point.tp)
    more = elements * bytes_each
    room = report.memory_limit_bytes - report.fullest_bytes
    refuse_first(
        (
            report.feasible and more > room,
            "plan.tp",
            f"must leave {more / GB:.1f} GB free for {_NAME}, whose AutoTP keeps the embedding "
            f"whole on every rank, where {room / GB:.1f} GB are",
            point.tp,
            "pin search.tp to 1, or search.zero to a higher stage",
        )
    )
    embedding = f", and keeps the embedding whole ({more / GB:.2f} GB a rank more)" if more else ""
    return (
        "AutoTP's backward pass all-reduces for each of q, k, v, gate and up where two a block are "
        f"priced{embedding}; the batch that DeepSpeed logs is tp times what reaches the optimizer.",
    )


def _config(scenario: ScenarioValues, plan: Plan) -> dict[str, object]:
    point = plan.point
    state = state_bytes(scenario.precision, scenario.optimizer, scenario.gradient_bytes)
    gradients = "fp32" if state.gradients == 4.0 else scenario.precision
    adam = {"lr": 1e-4, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
    share = plan.offload.optimizer
    part = fields_where(point.zero == 3, ratio=share)
    experts = {
        "enabled": True,
        "autoep_size": point.ep,
        "preset_model": _PRESETS.get(scenario.model.family),
    }
    return {
        # AutoTP resolves it with all ranks, though tensor-parallel ones share their sequences.
        **fields_where(point.tp == 1, train_batch_size=scenario.batch),
        "train_micro_batch_size_per_gpu": point.micro_batch,
        "gradient_accumulation_steps": point.micro_batches(scenario.batch),
        "gradient_clipping": 1.0,
        "optimizer": (
            {"type": "SGD", "params": {"lr": 1e-4}}
            if scenario.optimizer == "sgd"
            else {"type": "AdamW", "params": adam}
        ),
        "zero_optimization": {
            "stage": point.zero,
            "overlap_comm": scenario.overlap != "none",
            # By default up to a billion weights stay whole from the forward to the backward pass.
            **fields_where(point.zero == 3, stage3_max_reuse_distance=0),
            **fields_where(share, offload_optimizer={"device": "cpu", "pin_memory": True, **part}),
        },
        "data_types": {"grad_accum_dtype": gradients},
        **({} if scenario.precision == "fp32" else {scenario.precision: {"enabled": True}}),
        **({"tensor_parallel": {"autotp_size": point.tp}} if point.tp > 1 else {}),
        **({"expert_parallel": experts} if point.ep > 1 else {}),
    }


def _glue(plan: Plan, recompute: str) -> str:
    point = plan.point
    if not pipelined(point):
        line = "    model.gradient_checkpointing_enable()\n" if recompute == "full" else ""
        return _PLAIN.format(recompute=line)
    outer = [axis for axis in reversed(point.order) if axis in ("dp", "pp")]
    names = {"dp": "data", "pp": "pipe"}
    layers = plan.cuts[-1]
    return _PIPELINE.format(
        axes=[names[axis] for axis in outer],
        dims=[getattr(point, axis) for axis in outer],
        count=layers,
        blocks=layers - 2,
        method=_method(plan),
        interval=1 if recompute == "full" else 0,
    )


def uniform_parts(layers: int, parts: int) -> tuple[int, ...]:
    """Return cuts of the method ``uniform``: the first parts are one layer longer.

    Examples
    --------
    >>> uniform_parts(10, 4)
    (0, 3, 6, 8, 10)
    """
    size, longer = divmod(layers, parts)
    return tuple(part * size + min(part, longer) for part in range(parts + 1))


def _method(plan: Plan) -> str:
    """Return the expression that gives the plan's cuts."""
    layers, pp = plan.cuts[-1], plan.point.pp
    if plan.cuts == uniform_parts(layers, pp):
        return '"uniform"'
    blocks = {min(b, layers - 1) - max(a, 1) for a, b in pairwise(plan.cuts)}
    if len(blocks) == 1 and blocks != {0}:
        return 'f"type:{block.__name__}"'
    raise ExportRefused(
        "plan.cuts",
        f"must be even in layers or in blocks for {_NAME}",
        ", ".join(map(str, plan.cuts)),
        "leave the cuts out for even ones, or export for Megatron-LM",
    )


def _check(scenario: ScenarioValues, plan: Plan, recompute: str) -> None:
    """Refuse what DeepSpeed cannot do; of the optimizer it offloads ZeRO's Adam, parts at 3."""
    point, share, piped = plan.point, plan.offload.optimizer, pipelined(plan.point)
    state = state_bytes(scenario.precision, scenario.optimizer, scenario.gradient_bytes)
    check_plain_experts(scenario, point, _NAME)
    refuse_first(
        (
            point.cp > 1,
            "plan.cp",
            f"must be 1 for {_NAME}, whose sequence parallelism exchanges heads",
            point.cp,
            "pin search.cp to 1",
        ),
        (
            point.sp,
            "plan.sp",
            f"must be off for {_NAME}, whose AutoTP keeps norms whole",
            point.sp,
            "set search.sp to off",
        ),
        (
            piped and point.zero > 1,
            "plan.zero",
            f"must be 0 or 1 with a pipeline for {_NAME}",
            point.zero,
            "pin search.zero to 0 or 1",
        ),
        (
            piped and point.zero == 0 and point.sharers > 1 and scenario.precision == "bf16",
            "plan.zero",
            f"must be 1 with a pipeline in bf16 for {_NAME}, which then shards states anyway",
            point.zero,
            "pin search.zero to 1",
        ),
        (
            piped and point.schedule != "1f1b",
            "plan.schedule",
            f"must be 1f1b for {_NAME}",
            point.schedule,
            "pin search.schedule to 1f1b",
        ),
        *(
            (
                piped and getattr(point, axis) > 1,
                f"plan.{axis}",
                f"must be 1 with a pipeline for {_NAME}, whose PipelineModule has "
                "no such layers of its own",
                getattr(point, axis),
                f"pin search.{axis} to 1",
            )
            for axis in ("tp", "ep")
        ),
        (
            scenario.model.experts > 1 and max(point.tp, point.etp) > 1,
            "plan.tp",
            f"must be 1 with experts for {_NAME}, whose AutoEP keeps them whole",
            point.tp,
            "pin search.tp to 1",
        ),
        (
            point.ep > 1 and scenario.model.family not in _PRESETS,
            "plan.ep",
            f"must be 1 for this family, since {_NAME}'s AutoEP knows " + ", ".join(_PRESETS),
            point.ep,
            "pin search.ep to 1",
        ),
        (
            point.instances > 1,
            "plan.zero_group",
            f"must be all for {_NAME}, which shards over all data-parallel ranks: its hpZ keeps a "
            "copy of the weights in every node, and of nothing else",
            point.zero_group,
            "set search.zero_group to all",
        ),
        (
            recompute not in ("none", "full"),
            "plan.recompute",
            f"must be none or full for {_NAME}, which recomputes whole layers",
            recompute,
            "pin search.recompute to none or full",
        ),
        (
            scenario.precision not in ("bf16", "fp16", "fp32"),
            "workload.precision",
            f"must be bf16, fp16 or fp32 for {_NAME}",
            scenario.precision,
            "choose one of them",
        ),
        (
            scenario.optimizer not in ("adam", "sgd"),
            "workload.optimizer",
            f"must be adam or sgd for {_NAME}",
            scenario.optimizer,
            "choose one of them",
        ),
        (
            point.zero == 0 and state.weights == 2.0 and state.gradients == 4.0,
            "plan.zero",
            f"must be 1 or more where gradients are wider than weights for {_NAME}",
            point.zero,
            "pin search.zero to 1, 2 or 3, or set workload.gradient_bytes to 2",
        ),
        (
            plan.offload.activations > 0
            or (share > 0 and (point.zero == 0 or scenario.optimizer != "adam"))
            or (0 < share < 1 and point.zero < 3),
            "plan.offload",
            "must be none or all of the optimizer, of Adam at ZeRO 1 and above, or a part at "
            f"ZeRO 3, for {_NAME}",
            plan.offload.words,
            "pin search.offload to none",
        ),
    )
