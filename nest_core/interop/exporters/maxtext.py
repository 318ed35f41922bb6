"""MaxText: a configuration file on top of its own, and a script to start it.

Keys and rules of ``configs/base.yml`` and ``configs/types.py``. A mesh axis is
the product of a degree within a slice (``ici_``) and between slices (``dcn_``): a torus is one
slice, elsewhere a node is one. Ranks are numbered with ``expert`` innermost, then ``tensor``,
``context``, ``fsdp``, ``data`` and, where there is a pipeline, ``stage``. ``fsdp``, ``context``
and ``expert`` cut weights and ``data`` repeats them, so ZeRO 3 is ``fsdp``, ZeRO 0 ``data`` and
ZeRO 1 ``data`` with ``shard_optimizer_over_data``.

No policy is without recomputation: the word ``none`` is read as none given, which is ``full``,
layers scanned or not. ``minimal`` keeps products alone, which is ``selective`` under a stack of
JAX's; of experts it leaves out the name of the up projection, so ``custom`` names all of them. A
plan without recomputation keeps what attention made beside products, and holds less than planned.
Without a pipeline a replica's micro-batches are steps of gradient accumulation; with one they
pass it together and all wait for the backward pass, which is GPipe's order.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from nest_core.costs import (
    MEGATRON_ORDER,
    Plan,
    Point,
    Report,
    price,
    state_bytes,
    state_shares,
)
from nest_core.documents import GB
from nest_core.interop.exporters.values import (
    ExportFiles,
    check_plain_experts,
    fields_where,
    header,
    launched,
    pipelined,
    refuse_first,
)
from nest_core.network import collapse
from nest_core.scenario import ScenarioValues

__all__ = ["export_maxtext", "mesh_dimensions"]

_NAME = "MaxText"
_AXES = ("expert", "tensor_sequence", "tensor", "context", "fsdp", "data", "pipeline")
"""Mesh axes that a plan uses, innermost first."""

_DEEPSEEK_V2: dict[str, object] = {"decoder_block": "deepseek"}
_DEEPSEEK_V3 = _DEEPSEEK_V2 | {"routed_score_func": "sigmoid", "routed_bias": True}
_BLOCKS: Mapping[str, Mapping[str, object]] = {
    "llama": {"decoder_block": "llama2"},
    "qwen2": {"decoder_block": "qwen2", "attention_bias": True},
    "qwen3": {"decoder_block": "qwen3", "use_qk_norm": True},
    "qwen3_moe": {"decoder_block": "qwen3_moe", "use_qk_norm": True, "norm_topk_prob": True},
    "mixtral": {"decoder_block": "mixtral"},
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v2_lite": _DEEPSEEK_V2,
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v3_lite": _DEEPSEEK_V3,
}
"""By family, what its blocks are beside their sizes."""

_PRODUCTS = (
    "query_proj", "key_proj", "value_proj", "out_proj", "mlpwi_0", "mlpwi_1", "moe_mlpwi_1", "mlpwo"
)  # fmt: skip
"""Names of the products of a block with experts, which share the first's and the last's."""


def export_maxtext(scenario: ScenarioValues, report: Report) -> ExportFiles:
    """Return configuration and launch script of a priced plan.

    Raises
    ------
    ExportRefused
        Where MaxText cannot express the plan.
    """
    plan, point = report.plan, report.plan.point
    mapping = launched(scenario, plan, _NAME, (MEGATRON_ORDER,))
    torus = collapse(scenario.fabric).torus
    recompute = plan.recompute[0]
    check_plain_experts(scenario, point, _NAME)
    _check_plan(scenario, plan)
    _check_job(scenario, recompute)
    degrees = _degrees(point)
    slice_size = point.devices_used if torus else int(mapping.per_host[0])
    keys = _model(scenario) | _training(scenario, plan, recompute) | _mesh(degrees, slice_size)
    notes = [
        "Tokenizer, data, learning rate and what the scenario does not hold of the model (rotary "
        "base, norm epsilon) are those of MaxText's base.yml; data is synthetic.",
        *_otherwise(scenario, report),
    ]
    if torus is not None:
        refuse_first(
            (
                point.devices_used != torus.devices,
                "plan.devices_used",
                f"must be the whole slice for {_NAME}",
                point.devices_used,
                f"plan on all {torus.devices} devices",
            )
        )
        keys["allow_split_physical_axes"], note = _laid(degrees, torus.shape)
        notes.append(note)
    top = header(scenario, plan, "maxtext")
    lines = [
        f"{key}: {str(value).lower() if isinstance(value, bool) else value}\n"
        for key, value in keys.items()
    ]
    launch = (
        "#!/usr/bin/env bash\n" + top + "# Run on every host; arguments go to MaxText.\n"
        "set -euo pipefail\n"
        'exec python3 -m maxtext.trainers.pre_train.train "$(dirname -- "$0")/nest_plan.yml" \\\n'
        '  run_name="${RUN_NAME:-nest_plan}" \\\n'
        '  base_output_directory="${OUTPUT:?folder or bucket}" "$@"\n'
    )
    return ExportFiles(
        {"nest_plan.yml": top + "base_config: base.yml\n" + "".join(lines), "launch.sh": launch},
        tuple(notes),
    )


def _otherwise(scenario: ScenarioValues, report: Report) -> Iterator[str]:
    """Give what MaxText does otherwise than is priced, a sentence each."""
    plan, point, model = report.plan, report.plan.point, scenario.model
    state = state_bytes(scenario.precision, scenario.optimizer, scenario.gradient_bytes)
    if plan.recompute[0] == "none":
        most = "selective" if scenario.stack.checkpoint == "jax" else "full"
        other = replace(plan, recompute=(most,) * point.pp)
        slower = price(scenario.problem(other.recompute), other).iteration_s
        yield (
            "MaxText has no policy that recomputes nothing: the file's keeps products and "
            "attention, and runs norms, rotations and activations again. A layer holds less than "
            f"planned, and a step takes between the {report.iteration_s:.4g} s of the plan and "
            f"{slower:.4g} s, those of {most} recomputation."
        )
    free = max(0.0, report.memory_limit_bytes - report.fullest_bytes) / GB
    if pipelined(point):
        tables = 2 - model.tied - (point.pp == 2)
        gigabytes = sum(state_shares(point.zero, point.shard_ranks, state)) / GB
        more = tables * model.vocabulary * model.hidden / point.tp * gigabytes
        yield (
            f"Embedding and head lie outside {_NAME}'s pipeline, on every stage: {more:.2f} GB a "
            f"device more than is priced, of {free:.2f} GB that the plan leaves."
        )
    if point.zero == 1:
        shard = max(stage.memory.optimizer for stage in report.stages) / GB
        share = 4.0 / state.optimizer if scenario.precision == "bf16" else 0.0
        more = shard * share * (point.shard_ranks - 1)
        yield (
            f"{_NAME} keeps 32-bit weights whole under ZeRO 1, {more:.2f} GB a device more than "
            f"is priced, of {free:.2f} GB that the plan leaves; it all-reduces gradients and "
            "gathers weights in 32 bits: twice the bytes that are priced."
        )
    if point.zero == 3 and point.instances > 1:
        yield (
            f"{_NAME} all-reduces gradients between ZeRO's groups after every micro-batch, in "
            "the width of weights; priced is once."
        )
    if point.zero == 3 and model.experts > 1 and scenario.precision == "bf16":
        yield f"{_NAME} gathers weights of experts in 32 bits: twice the bytes that are priced."


def mesh_dimensions(
    degrees: Sequence[int], shape: Sequence[int]
) -> tuple[tuple[int, ...], ...] | None:
    """Return the dimensions of a slice that JAX's ``create_device_mesh`` gives each axis.

    From the innermost axis outwards, an axis takes whole dimensions that are still free and
    multiply to its degree, as many as can be.

    Parameters
    ----------
    degrees : sequence of int
        Of the mesh's axes, innermost first.
    shape : sequence of int
        Sizes of the slice's dimensions.

    Returns
    -------
    tuple of tuple of int, or None
        Dimensions by axis, in the order of ``degrees``; None where they do not lie so.

    Examples
    --------
    >>> mesh_dimensions((16, 4), (4, 4, 4)), mesh_dimensions((8, 8), (4, 4, 4))
    (((0, 1), (2,)), None)
    """
    free, taken = set(range(len(shape))), []
    for degree in degrees:
        choices = [
            choice
            for count in (3, 2, 1)
            for choice in combinations(sorted(free), count)
            if math.prod(shape[d] for d in choice) == degree
        ]
        if not choices and degree > 1:
            return None
        taken.append(choices[0] if choices else ())
        free.difference_update(taken[-1])
    return tuple(taken)


def _laid(degrees: Mapping[str, int], shape: Sequence[int]) -> tuple[bool, str]:
    """Return whether dimensions must be split, and how the mesh lies."""
    size = " x ".join(map(str, shape))
    axes = {axis: degree for axis, degree in degrees.items() if degree > 1}
    dimensions = mesh_dimensions(tuple(axes.values()), shape)
    if dimensions is not None:
        places = ", ".join(
            f"{axis} {degree} on dimension {' and '.join(map(str, place))}"
            for (axis, degree), place in zip(axes.items(), dimensions, strict=True)
        )
        return False, f"JAX lays the mesh on the slice of {size}: {places or 'one device'}."
    names = " x ".join(f"{axis} {degree}" for axis, degree in axes.items())
    near = _nearest(tuple(axes.values()), shape)
    offer = (
        " The nearest degrees that lie on whole dimensions are "
        + " x ".join(f"{axis} {degree}" for axis, degree in zip(axes, near, strict=True))
        + "."
        if near
        else ""
    )
    return True, (
        f"JAX lays {names} on a slice of {size} only with allow_split_physical_axes, which the "
        f"file sets: neighbours may then lie several hops apart, which is not priced.{offer}"
    )


def _nearest(degrees: tuple[int, ...], shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the degrees of the same axes that lie, by the least sum of their ratios."""
    sizes = sorted(
        {
            math.prod(choice)
            for count in range(len(shape) + 1)
            for choice in combinations(shape, count)
        }
    )
    lying = (
        mesh
        for mesh in product(sizes, repeat=len(degrees))
        if math.prod(mesh) == math.prod(degrees) and mesh_dimensions(mesh, shape) is not None
    )
    return min(
        lying,
        key=lambda mesh: sum(abs(math.log(a / b)) for a, b in zip(mesh, degrees, strict=True)),
        default=None,
    )


def _degrees(point: Point) -> dict[str, int]:
    """Return the degree of every axis of `_AXES`."""
    replicas = point.instances if point.zero == 3 else point.dp
    tensor = "tensor_sequence" if point.sp else "tensor"
    used = {
        "expert": point.ep,
        tensor: point.tp,
        "context": point.cp,
        "fsdp": point.dp // (replicas * point.ep),
        "pipeline": point.pp,
        "data": replicas,
    }
    return {axis: used.get(axis, 1) for axis in _AXES}


def _mesh(degrees: Mapping[str, int], slice_size: int) -> dict[str, int]:
    """Return degrees within a slice and between slices."""
    inside = {}
    for axis, degree in degrees.items():
        inside[axis] = math.gcd(degree, slice_size)
        slice_size //= inside[axis]
    return {f"ici_{axis}_parallelism": inside[axis] for axis in _AXES} | {
        f"dcn_{axis}_parallelism": degrees[axis] // inside[axis] for axis in _AXES
    }


def _model(scenario: ScenarioValues) -> dict[str, object]:
    model = scenario.model
    experts = model.experts > 1
    return {
        **_BLOCKS[model.family],
        "base_emb_dim": model.hidden,
        "base_num_query_heads": model.heads,
        "base_num_kv_heads": model.kv_heads,
        "base_num_decoder_layers": model.blocks,
        "base_mlp_dim": model.ffn or model.expert_ffn,
        "head_dim": model.head_dim,
        "vocab_size": model.vocabulary,
        "logits_via_embedding": model.tied,
        **fields_where(
            experts,
            num_experts=model.experts,
            num_experts_per_tok=model.top_k,
            base_moe_mlp_dim=model.expert_ffn,
            shared_experts=model.shared_ffn // max(model.expert_ffn, 1),
            first_num_dense_layers=model.dense_blocks,
        ),
        **fields_where(
            model.kv_rank,
            attention_type="mla",
            q_lora_rank=model.q_rank,
            kv_lora_rank=model.kv_rank,
            qk_nope_head_dim=model.head_dim,
            qk_rope_head_dim=model.rope_dim,
            v_head_dim=model.value_dim,
        ),
    }


def _training(scenario: ScenarioValues, plan: Plan, recompute: str) -> dict[str, object]:
    point = plan.point
    rounds = point.micro_batches(scenario.batch)
    ring = point.cp > 1 and _on_tpu(scenario) and scenario.context == "ring"
    together = rounds if pipelined(point) else 1
    return {
        "hardware": "tpu" if _on_tpu(scenario) else "gpu_multiprocess",
        "dataset_type": "synthetic",
        "enable_dropout": False,
        "dtype": "bfloat16" if scenario.precision == "bf16" else "float32",
        "weight_dtype": "float32",
        "grad_dtype": "bfloat16" if scenario.gradient_bytes == 2.0 else "float32",
        "opt_type": "sgd" if scenario.optimizer == "sgd" else "adamw",
        "max_target_length": scenario.sequence,
        "per_device_batch_size": point.micro_batch * together / (point.tp * point.cp * point.pp),
        "gradient_accumulation_steps": rounds // together,
        **_remat(recompute, experts=scenario.model.experts > 1),
        "shard_optimizer_over_data": point.zero == 1,
        **fields_where(point.cp > 1, context_parallel_strategy=scenario.context),
        **fields_where(ring, attention="flash", use_tokamax_splash=True),
        **fields_where(
            pipelined(point),
            num_layers_per_pipeline_stage=scenario.model.blocks // point.pp,
            num_pipeline_microbatches=rounds,
            pipeline_parallel_layers=scenario.model.blocks,
        ),
    }


def _remat(recompute: str, *, experts: bool) -> dict[str, object]:
    """Return the policy of a recomputation, and what stays by name."""
    policy = {"full": "full", "none": "minimal_with_context"}.get(recompute, "minimal")
    by_name = experts and policy != "full"
    return {
        "remat_policy": "custom" if by_name else policy,
        **fields_where(by_name, **dict.fromkeys(_PRODUCTS, "device")),
        **fields_where(by_name and recompute == "none", context="device"),
    }


def _on_tpu(scenario: ScenarioValues) -> bool:
    return scenario.accelerator.name.startswith("TPU")


def _check_plan(scenario: ScenarioValues, plan: Plan) -> None:
    point, blocks = plan.point, scenario.model.blocks
    even = tuple(1 + stage * blocks // point.pp for stage in range(1, point.pp))
    refuse_first(
        (
            point.zero == 2,
            "plan.zero",
            f"must be 0, 1 or 3 for {_NAME}, which cuts gradients with weights",
            2,
            "pin search.zero to 0, 1 or 3",
        ),
        (
            point.zero < 3 and max(point.cp, point.ep) > 1,
            "plan.zero",
            f"must be 3 with context or expert parallelism for {_NAME}, whose axes cut weights",
            point.zero,
            "pin search.zero to 3",
        ),
        (
            point.zero == 1 and point.instances > 1,
            "plan.zero_group",
            f"must be all with ZeRO 1 for {_NAME}, which shards over all replicas",
            point.zero_group,
            "set search.zero_group to all",
        ),
        (
            point.zero == 3 and point.instances > 1 and point.zero_group % point.cp,
            "plan.zero_group",
            f"must be a multiple of cp = {point.cp} for {_NAME}, whose context axis cuts weights",
            point.zero_group,
            "set search.zero_group to such a number, or to all",
        ),
        (
            point.ep > 1 and max(point.tp, point.cp) > 1,
            "plan.ep",
            f"must be 1 with tensor or context parallelism for {_NAME}, whose expert groups are "
            "neighbours",
            point.ep,
            "pin search.ep to 1, or both search.tp and search.cp",
        ),
        (
            point.ep > 1 and point.dp // point.instances % point.ep,
            "plan.ep",
            f"must divide the replicas that share weights for {_NAME}",
            point.ep,
            "pin search.ep to a divisor",
        ),
        (
            point.etp != point.tp,
            "plan.etp",
            f"must be tp = {point.tp} for {_NAME}",
            point.etp,
            "pin search.etp to the same",
        ),
        (
            pipelined(point) and point.schedule != "gpipe",
            "plan.schedule",
            f"must be gpipe for {_NAME}, which runs all micro-batches before any goes back",
            point.schedule,
            "pin search.schedule to gpipe",
        ),
        (
            pipelined(point) and (blocks % point.pp or plan.cuts[1:-1] != even),
            "plan.cuts",
            f"must give every stage as many blocks for {_NAME}",
            ", ".join(map(str, plan.cuts)),
            "give a plan with even cuts",
        ),
        (
            pipelined(point) and scenario.model.dense_blocks,
            "plan.pp",
            f"must be 1 for {_NAME} in a model with dense and mixed blocks, of which it "
            "pipelines the mixed ones",
            point.pp,
            "pin search.pp to 1",
        ),
        (
            pipelined(point) and point.micro_batches(scenario.batch) % point.pp,
            "plan.micro_batch",
            f"must leave a multiple of pp = {point.pp} micro-batches for {_NAME}",
            point.micro_batch,
            "pin search.micro_batch_sequences to a smaller one, or search.pp to 1",
        ),
        (
            scenario.sequence % (point.cp**2 if _on_tpu(scenario) else 2 * point.cp)
            and point.cp > 1,
            "workload.sequence_length_tokens",
            f"must be a multiple of cp squared on a TPU, of 2 cp elsewhere, for {_NAME}",
            scenario.sequence,
            "choose another cp",
        ),
        (
            point.tp > 1 and scenario.model.kv_heads % point.tp,
            "plan.tp",
            f"must divide the {scenario.model.kv_heads} KV heads for {_NAME}",
            point.tp,
            "pin search.tp to a divisor",
        ),
    )


def _check_job(scenario: ScenarioValues, recompute: str) -> None:
    model = scenario.model
    refuse_first(
        (
            model.family not in _BLOCKS or model.graphs or model.window or model.moe_every > 1,
            "workload.model",
            f"must be of a family that {_NAME}'s decoder blocks are ({', '.join(_BLOCKS)}), "
            "without a sliding window or dense blocks between",
            model.name,
            "pick another model, or export for Megatron-LM",
        ),
        (
            recompute not in ("none", "full")
            and (recompute, scenario.stack.checkpoint) != ("selective", "jax"),
            "plan.recompute",
            f"must be none or full for {_NAME}",
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
            scenario.optimizer not in ("adam", "sgd"),
            "workload.optimizer",
            f"must be adam or sgd for {_NAME}",
            scenario.optimizer,
            "choose one of them",
        ),
    )
