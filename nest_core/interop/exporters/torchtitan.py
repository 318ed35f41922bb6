"""torchtitan: a configuration function and a script to start it.

Fields of ``torchtitan/config/configs.py``, rules of ``distributed/parallel_dims.py``,
``distributed/pipeline_parallel.py`` and ``distributed/activation_checkpoint.py``.
``--module`` takes any importable module, so the plan is one; it starts from the
configuration that torchtitan ships for the model and sets what the plan says.

Its mesh is pp, dp, cp, tp from the outside in. ZeRO 3 is its fully sharded data parallelism,
ZeRO 2 the same with parameters kept after the forward pass, ZeRO 0 replication; context-parallel
ranks always shard. Groups of ZeRO's are its hybrid sharding: replicas of whole shard degrees.

Models are those of ``torchtitan/models/*/__init__.py``; a configuration function of the same
tokenizer lends everything that the scenario does not hold.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, pairwise
from math import lcm

from nest_core.costs import MEGATRON_ORDER, REPLAYED, Plan, Point, Report, price
from nest_core.documents import GB
from nest_core.interop.exporters.values import (
    ExportFiles,
    ExportRefused,
    check_plain_experts,
    header,
    launched,
    pipelined,
    refuse_first,
    torchrun,
)
from nest_core.scenario import ScenarioValues
from nest_core.workload import Model

__all__ = ["export_torchtitan", "flavour_of"]

_NAME = "torchtitan"
_SCHEDULES = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved": "Interleaved1F1B",
    "interleaved_zb": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
}


def export_torchtitan(scenario: ScenarioValues, report: Report) -> ExportFiles:
    """Return configuration module and launch script of a priced plan.

    Raises
    ------
    Refused
        Where torchtitan cannot express the plan.
    """
    plan, recompute = report.plan, report.plan.recompute[0]
    package, flavour, base = flavour_of(scenario.model)
    rank_mapping = launched(scenario, plan, _NAME, (MEGATRON_ORDER,))
    _check(scenario, plan, recompute)
    notes = _notes(scenario, report)
    top = header(scenario, plan, "torchtitan")
    lines = [
        f"config.{name} = {value}" for name, value in _settings(scenario, plan, recompute).items()
    ]
    module = (
        top + "from torchtitan.distributed.activation_checkpoint import FullAC\n"
        f"from torchtitan.models.{package} import model_registry\n"
        f"from torchtitan.models.{package}.config_registry import {base}\n\n\n"
        "def plan():\n"
        f"    config = {base}()\n"
        f'    config.model_spec = model_registry("{flavour}")\n'
        + "".join(f"    {line}\n" for line in lines)
        + "    return config\n"
    )
    launch = (
        "#!/usr/bin/env bash\n" + top + "# Run on every node; arguments go to torchtitan.\n"
        "set -euo pipefail\n"
        'PYTHONPATH="$(cd -- "$(dirname -- "$0")" && pwd)${PYTHONPATH:+:$PYTHONPATH}"\n'
        "export PYTHONPATH\n"
        + torchrun(rank_mapping, ["-m torchtitan.train --module nest_plan --config plan", '"$@"'])
    )
    return ExportFiles(
        {"nest_plan.py": module, "launch.sh": launch},
        (
            f"Tokenizer, data and learning rate are those of torchtitan's {base}.",
            *notes,
        ),
    )


def _notes(scenario: ScenarioValues, report: Report) -> tuple[str, ...]:
    """Return what torchtitan does otherwise than is priced.

    Raises
    ------
    Refused
        Where what it holds beside that no longer fits.
    """
    plan, notes = report.plan, []
    point, passes = plan.point, plan.point.micro_batches(scenario.batch)
    often = f"{passes} times per iteration, after every micro-batch; priced is once."
    shares = passes > 1 and point.sharers > 1
    if passes > 1 and not pipelined(point) and (point.instances > 1 or point.zero < 1 < point.dp):
        notes.append(
            f"Between its replicas torchtitan reduces gradients {often} "
            "set_requires_all_reduce of its FSDP modules defers it."
        )
    if shares and not pipelined(point) and point.zero == 2:
        notes.append(
            f"torchtitan lets weights go after the backward pass, and gathers them {often}"
        )
    if shares and pipelined(point) and point.zero == 3:
        unsharded = price(
            scenario.problem(plan.recompute), replace(plan, point=replace(point, zero=2))
        )
        pairs = zip(unsharded.stages, report.stages, strict=True)
        more = max(a.memory.gradients - b.memory.gradients for a, b in pairs)
        _check_room(report, more, "plan.zero", "adds gradients up whole until the last micro-batch")
        notes.append(
            "In a pipeline torchtitan reduces gradients once, after the last micro-batch, and "
            f"keeps them whole until then ({more / GB:.2f} GB a rank more); priced is after each."
        )
    rules = scenario.stack.memory
    more = replace(rules, eager_loss=True).loss_bytes_per_logit - rules.loss_bytes_per_logit
    more *= point.micro_batch * scenario.sequence * scenario.model.vocabulary / point.tp / point.cp
    if _splits(point):
        _check_room(report, more, "plan.schedule", "then has the loss of all tokens at once")
    elif shares and pipelined(point):
        notes.append(
            f"In a pipeline torchtitan's loss in parts reduces gradients of the head {often} "
            f"config.loss = config.loss.loss_fn does it once, in {more / GB:.2f} GB more."
        )
    return tuple(notes)


def _check_room(report: Report, more: float, key: str, why: str) -> None:
    """Refuse a plan that fits without ``more`` bytes on a rank and not with them."""
    room = report.memory_limit_bytes - report.fullest_bytes
    refuse_first(
        (
            report.feasible and more > room,
            key,
            f"must leave {more / GB:.1f} GB free for {_NAME}, which {why}, where {room / GB:.1f} "
            "GB are",
            getattr(report.plan.point, key.removeprefix("plan.")),
            "pin search.pp to 1",
        )
    )


def _settings(scenario: ScenarioValues, plan: Plan, recompute: str) -> dict[str, str]:
    point = plan.point
    replicas = point.instances if point.zero >= 2 else point.dp
    # With a pipeline all micro-batches of a replica are one step; without, they add up.
    local = point.micro_batch * (point.micro_batches(scenario.batch) if point.pp > 1 else 1)

    return (
        {
            "training.seq_len": str(scenario.sequence),
            "training.local_batch_size": str(local),
            "training.global_batch_size": str(scenario.batch),
            "training.dtype": '"float32"',
            # CUDA graphs, its default, know neither pipelines nor dispatchers that wait for hosts.
            "training.disable_cuda_graphs": str(point.pp > 1 or point.ep > 1),
            "training.mixed_precision_param": (
                '"bfloat16"' if scenario.precision == "bf16" else '"float32"'
            ),
            "parallelism.data_parallel_replicate_degree": str(replicas),
            "parallelism.data_parallel_shard_degree": str(point.dp // replicas),
            "parallelism.fsdp_reshard_after_forward": '"always"' if point.zero == 3 else '"never"',
            "parallelism.tensor_parallel_degree": str(point.tp),
            "parallelism.enable_sequence_parallel": str(point.sp),
            "parallelism.context_parallel_degree": str(point.cp),
            "parallelism.pipeline_parallel_degree": str(point.pp),
            "parallelism.expert_parallel_degree": str(point.ep),
            "activation_checkpoint": "FullAC.Config()" if recompute == "full" else "None",
            "compile.enable_async_tensor_parallel": "False",
        }
        | (
            {
                "parallelism.pipeline_parallel_schedule": f'"{_SCHEDULES[point.schedule]}"',
                "parallelism.pipeline_parallel_microbatch_size": str(point.micro_batch),
                "parallelism.module_fqns_per_model_part": _parts(plan),
            }
            if pipelined(point)
            else {}
        )
        | (
            # Its loss in parts leaves split backward passes without gradients of the last stage.
            {"loss": "config.loss.loss_fn"} if _splits(point) else {}
        )
    )


def _splits(point: Point) -> bool:
    """Return whether backward passes are split, so that weights' gradients come later."""
    return pipelined(point) and point.schedule in REPLAYED


def _parts(plan: Plan) -> str:
    """Return modules of every virtual stage, in the order in which a micro-batch passes them."""
    blocks = [f"layers.{block}" for block in range(plan.cuts[-1] - 2)]
    # The embedding is the first layer, the norm goes with the last.
    layers = [["tok_embeddings"], *([block] for block in blocks), ["norm", "lm_head"]]
    parts = [[*chain.from_iterable(layers[a:b])] for a, b in pairwise(plan.cuts)]
    return "".join(["[\n", *(f"        {json.dumps(part)},\n" for part in parts), "    ]"])


def _check(scenario: ScenarioValues, plan: Plan, recompute: str) -> None:
    point, ends = plan.point, (plan.cuts[1], plan.cuts[-1] - plan.cuts[-2])
    parts, blocks = (2 * point.cp, 128 * point.cp) if point.cp > 1 else (1, 8)
    divisor = lcm((point.tp if point.sp else 1) * parts, blocks)
    check_plain_experts(scenario, point, _NAME)
    refuse_first(
        (
            point.schedule not in _SCHEDULES and pipelined(point),
            "plan.schedule",
            f"must be 1f1b, gpipe, interleaved, interleaved_zb, zbv or dualpipev for {_NAME}, "
            "whose zero-bubble schedules want two or more virtual stages per stage",
            point.schedule,
            "pin search.schedule to one of them",
        ),
        (
            point.schedule == "1f1b" and point.micro_batches(scenario.batch) < point.pp,
            "plan.pp",
            f"must not exceed the {point.micro_batches(scenario.batch)} micro-batches under 1f1b "
            f"for {_NAME}, whose schedule wants one for each stage",
            point.pp,
            "use smaller micro-batches or fewer stages",
        ),
        (
            point.cp > 1 and pipelined(point) and 1 in ends,
            "plan.cuts",
            f"must leave embedding and head a block each with context parallelism for {_NAME}, "
            "which divides the attention of every part",
            ", ".join(map(str, plan.cuts)),
            "give a plan with other cuts, or pin search.cp to 1",
        ),
        (
            scenario.model.kv_heads % point.tp > 0,
            "plan.tp",
            f"must divide the {scenario.model.kv_heads} key-value heads for {_NAME}",
            point.tp,
            "pin search.tp to a smaller degree",
        ),
        (
            scenario.model.tied and pipelined(point),
            "plan.pp",
            f"must be 1 for {_NAME} where the head has the embedding's weights",
            point.pp,
            "pin search.pp to 1",
        ),
        (
            point.cp > 1 and scenario.model.family == "gpt_oss",
            "plan.cp",
            f"must be 1 with GPT-OSS for {_NAME}, whose attention there is of variable length",
            point.cp,
            "pin search.cp to 1",
        ),
        (
            point.zero == 1 and point.sharers > 1,
            "plan.zero",
            f"must be 0, 2 or 3 for {_NAME}, which shards gradients with the optimizer's states",
            point.zero,
            "pin search.zero to 0, 2 or 3",
        ),
        (
            point.zero == 3 and point.sharers > 1 and _splits(point),
            "plan.zero",
            f"must be 0 or 2 with split backward passes for {_NAME}, which loses gradients of "
            "weights that were let go in between",
            point.zero,
            "pin search.zero to 0 or 2, or search.schedule to 1f1b, gpipe or interleaved",
        ),
        (
            point.zero == 0 and point.cp > 1,
            "plan.zero",
            f"must be 2 or 3 with context parallelism for {_NAME}, whose context-parallel ranks "
            "shard",
            point.zero,
            "pin search.zero to 2 or 3",
        ),
        (
            point.zero_group % point.cp > 0,
            "plan.zero_group",
            f"must be a multiple of cp = {point.cp} for {_NAME}, whose context-parallel ranks "
            "shard",
            point.zero_group,
            "set search.zero_group to such a number, or to all",
        ),
        (
            recompute not in ("none", "full"),
            "plan.recompute",
            f"must be none or full for {_NAME}, whose selective mode saves every second matrix "
            "product",
            recompute,
            "pin search.recompute to none or full",
        ),
        (
            scenario.precision not in ("bf16", "fp32"),
            "workload.precision",
            f"must be bf16 or fp32 for {_NAME}",
            scenario.precision,
            "choose one of them",
        ),
        (
            scenario.optimizer != "adam",
            "workload.optimizer",
            f"must be adam for {_NAME}",
            scenario.optimizer,
            "choose adam",
        ),
        (
            scenario.gradient_bytes == 2.0,
            "workload.gradient_bytes",
            f"must be 4 for {_NAME}, which reduces in fp32",
            2,
            "set workload.gradient_bytes to 4",
        ),
        (
            scenario.model.experts > 1 and max(point.tp, point.etp) > 1,
            "plan.tp",
            f"must be 1 with experts for {_NAME}, whose expert groups take tensor-parallel "
            "ranks in",
            point.tp,
            "pin search.tp to 1",
        ),
        (
            point.ep > 1 and point.zero == 0,
            "plan.zero",
            f"must be 2 or 3 with expert parallelism for {_NAME}, which takes its "
            "ranks from the sharded ones",
            point.zero,
            "pin search.zero to 2 or 3",
        ),
        (
            scenario.sequence % divisor,
            "workload.sequence_length_tokens",
            f"must be a multiple of {divisor} for {_NAME}, whose loss takes a sequence in eight "
            "parts, and with cp its attention blocks of 128 tokens",
            scenario.sequence,
            "choose another cp or tp",
        ),
        (
            point.cp > 1 and scenario.context == "ring",
            "workload.context",
            f"must be all_gather for {_NAME}, whose ranks gather keys and values",
            scenario.context,
            "set workload.context to all_gather",
        ),
    )


_LLAMA, _QWEN, _DEEPSEEK = 128256, 151936, "deepseek_v3_16b"
_SIZES = (
    "family",
    "blocks",
    "hidden",
    "heads",
    "kv_heads",
    "ffn",
    "vocabulary",
    "experts",
    "top_k",
    "expert_ffn",
    "shared_ffn",
    "dense_blocks",
    "tied",
)
_FLAVOURS: Mapping[tuple[str, str, str], tuple[str | int | bool, ...]] = {
    ("llama3", "debugmodel", "llama3_debugmodel"): (
        "llama", 6, 256, 16, 16, 768, 2048, 1, 1, 0, 0, 0, False,
    ),
    ("llama3", "1B", "llama3_8b"): (
        "llama", 16, 2048, 32, 8, 8192, _LLAMA, 1, 1, 0, 0, 0, True,
    ),
    ("llama3", "3B", "llama3_8b"): (
        "llama", 28, 3072, 24, 8, 8192, _LLAMA, 1, 1, 0, 0, 0, True,
    ),
    ("llama3", "8B", "llama3_8b"): (
        "llama", 32, 4096, 32, 8, 14336, _LLAMA, 1, 1, 0, 0, 0, False,
    ),
    ("llama3", "70B", "llama3_70b"): (
        "llama", 80, 8192, 64, 8, 28672, _LLAMA, 1, 1, 0, 0, 0, False,
    ),
    ("llama3", "405B", "llama3_70b"): (
        "llama", 126, 16384, 128, 8, 53248, _LLAMA, 1, 1, 0, 0, 0, False,
    ),
    ("qwen3", "0.6B", "qwen3_0_6b"): (
        "qwen3", 28, 1024, 16, 8, 3072, _QWEN, 1, 1, 0, 0, 0, True,
    ),
    ("qwen3", "1.7B", "qwen3_1_7b"): (
        "qwen3", 28, 2048, 16, 8, 6144, _QWEN, 1, 1, 0, 0, 0, True,
    ),
    ("qwen3", "4B", "qwen3_1_7b"): (
        "qwen3", 36, 2560, 32, 8, 9728, _QWEN, 1, 1, 0, 0, 0, True,
    ),
    ("qwen3", "8B", "qwen3_14b"): (
        "qwen3", 36, 4096, 32, 8, 12288, _QWEN, 1, 1, 0, 0, 0, False,
    ),
    ("qwen3", "14B", "qwen3_14b"): (
        "qwen3", 40, 5120, 40, 8, 17408, _QWEN, 1, 1, 0, 0, 0, False,
    ),
    ("qwen3", "32B", "qwen3_32b"): (
        "qwen3", 64, 5120, 64, 8, 25600, _QWEN, 1, 1, 0, 0, 0, False,
    ),
    ("qwen3", "debugmodel_moe", "qwen3_moe_debug"): (
        "qwen3_moe", 8, 256, 16, 8, 0, 2048, 64, 8, 768, 0, 0, False,
    ),
    ("qwen3", "30B-A3B", "qwen3_30b_a3b"): (
        "qwen3_moe", 48, 2048, 32, 4, 0, _QWEN, 128, 8, 768, 0, 0, False,
    ),
    ("qwen3", "235B-A22B", "qwen3_30b_a3b"): (
        "qwen3_moe", 94, 4096, 64, 4, 0, _QWEN, 128, 8, 1536, 0, 0, False,
    ),
    ("deepseek_v3", "236B", _DEEPSEEK): (
        "deepseek_v2", 60, 5120, 128, 128, 12288, 102400, 160, 6, 1536, 3072, 1, False,
    ),
    ("deepseek_v3", "671B", "deepseek_v3_671b"): (
        "deepseek_v3", 61, 7168, 128, 128, 18432, 129280, 256, 8, 2048, 2048, 3, False,
    ),
    ("gpt_oss", "120b", "gpt_oss_120b"): (
        "gpt_oss", 36, 2880, 64, 8, 0, 201088, 128, 4, 2880, 0, 0, False,
    ),
    ("gpt_oss", "20b", "gpt_oss_20b"): (
        "gpt_oss", 24, 2880, 64, 8, 0, 201088, 32, 4, 2880, 0, 0, False,
    ),
}  # fmt: skip
"""By package of ``torchtitan.models``, key of its ``model_registry`` and function of its
``config_registry``: `_SIZES` of the model, of which ``ffn`` is the width of the dense MLP."""


def flavour_of(model: Model) -> tuple[str, str, str]:
    """Return the package, the registry's key and the configuration function of a model's sizes.

    Raises
    ------
    Refused
        If torchtitan ships none.
    """
    sizes = tuple(getattr(model, name) for name in _SIZES)
    flavour = next((key for key, shipped in _FLAVOURS.items() if sizes == shipped), None)
    if flavour is None or (model.window and not model.full_every):
        raise ExportRefused(
            "workload.model",
            "must have the sizes of a model that torchtitan ships",
            model.name,
            "pick a Llama 3, Qwen3, DeepSeek or GPT-OSS model, or export for Megatron-LM",
        )
    return flavour
