"""Megatron Core's words and rules, for Megatron-LM and NeMo's Megatron-Bridge alike.

*Models* are named as in ``TransformerConfig`` and the GPT model. What the scenario does not hold
(rotary base and scaling, norm epsilon, router losses) is left to the framework's defaults.
Families whose blocks Megatron Core has no options for are refused: ALiBi is not among its position
embeddings, and there is no norm behind attention and MLP.

*Stages*: Megatron Core puts the embedding before the first block and the loss after the last,
and knows four ways to say where blocks go (``transformer_config.py``, ``transformer_block.py`` and
``pipeline_parallel_layer_layout.py`` of the release):

* nothing: as many blocks in every virtual stage;
* embedding and loss counted as one layer each, then as many layers in every virtual stage;
* other numbers in the first and the last stage, as many blocks in all between;
* a layout string, one letter per layer (``E`` embedding, ``t`` block, ``L`` loss), virtual stages
  parted by ``|`` in the order in which a micro-batch passes them; ``x*n`` repeats a letter.

`stage_fields` picks the first that says a plan's cuts.

*Rank order* (``parallel_state.py``): tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp
under ``use_tp_pp_dp_mapping``. Expert groups are numbered in the same order with the
context-parallel axis left out, so they are neighbours among the ranks of a stage, as in a plan;
they are built for models without experts too, and the mapping asserts that their data-parallel
degree is that of the rest, hence ep x etp = cp x tp.
"""

from collections.abc import Mapping
from itertools import pairwise

from nest_core.costs import MEGATRON_ORDER, Plan, Point
from nest_core.interop.exporters.values import (
    HostMapping,
    agrees,
    fields_where,
    launched,
    pipelined,
    refuse_first,
)
from nest_core.scenario import ScenarioValues
from nest_core.workload import Model, method_of, modules_of

__all__ = [
    "SWAPPED",
    "Value",
    "architecture",
    "check_megatron",
    "environment",
    "layout_notes",
    "layout_string",
    "overlap_fields",
    "recompute_fields",
    "stage_fields",
    "swapped",
]

SWAPPED = ("tp", "cp", "pp", "dp")


def swapped(point: Point) -> bool:
    """Return whether ranks follow the mapping with data parallelism outermost."""
    return not agrees(point, MEGATRON_ORDER)


def check_megatron(scenario: ScenarioValues, plan: Plan, framework: str) -> HostMapping:
    """Return where ranks run; plans that Megatron Core's own checks or groups rule out are refused.

    Raises
    ------
    Refused
        For the first part that cannot be expressed.
    """
    point = plan.point
    mapping = launched(scenario, plan, framework, (MEGATRON_ORDER, SWAPPED))
    refuse_first(
        (
            "moe_act" in modules_of(plan.recompute[0])
            and scenario.precision not in ("bf16", "fp8"),
            "plan.recompute",
            f"must not name moe_act outside bf16 and fp8 for {framework}, whose grouped "
            "products it "
            "belongs to",
            plan.recompute[0],
            "pin search.recompute to none or full, or train in bf16",
        ),
        (
            point.schedule not in ("1f1b", "interleaved") and pipelined(point),
            "plan.schedule",
            f"must be 1f1b or interleaved for {framework}",
            point.schedule,
            "pin search.schedule to 1f1b or interleaved",
        ),
        (
            swapped(point) and point.ep * point.etp != point.cp * point.tp,
            "plan.order",
            f"must be {'-'.join(MEGATRON_ORDER)} for {framework} unless ep x etp = cp x tp, since "
            "it wants as many data-parallel ranks for experts as for the rest",
            "-".join(point.order),
            f"pin search.order to {'-'.join(MEGATRON_ORDER)}, or search.cp to 1",
        ),
        (
            point.cp > 1 and scenario.sequence % (2 * point.cp),
            "workload.sequence_length_tokens",
            f"must be a multiple of 2 cp = {2 * point.cp} for {framework}",
            scenario.sequence,
            "choose another cp",
        ),
    )
    _check_training(scenario, point, framework)
    if scenario.model.experts > 1:
        _check_experts(scenario, point, framework)
        if scenario.expert_overlap:
            _check_expert_overlap(scenario, plan, framework)
    return mapping


def _check_training(scenario: ScenarioValues, point: Point, framework: str) -> None:
    refuse_first(
        (
            point.zero > 1 and point.pp > 1,
            "plan.zero",
            f"must be 0 or 1 with a pipeline for {framework}, whose fully sharded "
            "data parallelism is documented for tp, cp and ep",
            point.zero,
            "pin search.zero to 0 or 1",
        ),
        (
            point.zero > 1 and swapped(point),
            "plan.order",
            f"must be {'-'.join(MEGATRON_ORDER)} with ZeRO {point.zero} for {framework}",
            "-".join(point.order),
            f"pin search.order to {'-'.join(MEGATRON_ORDER)}",
        ),
        (
            scenario.precision not in ("fp32", "fp16", "bf16", "fp8"),
            "workload.precision",
            f"must be fp32, fp16, bf16 or fp8 for {framework}",
            scenario.precision,
            "choose one of them",
        ),
        (
            scenario.optimizer == "adam_bf16"
            or (scenario.optimizer == "adam_8bit" and not point.zero),
            "workload.optimizer",
            f"must be adam or sgd{'' if point.zero else ' without ZeRO'} for {framework}, whose "
            "narrow moments need its distributed optimizer and keep master weights",
            scenario.optimizer,
            "choose adam, or adam_8bit with ZeRO 1",
        ),
        *(
            (
                scenario.model.family == "bert" and getattr(point, axis) > 1,
                f"plan.{axis}",
                f"must be 1 for an encoder in {framework}",
                getattr(point, axis),
                f"pin search.{axis} to 1",
            )
            for axis in ("cp", "interleave")
        ),
    )


def _check_experts(scenario: ScenarioValues, point: Point, framework: str) -> None:
    refuse_first(
        (
            point.tp > 1 and not point.sp,
            "plan.sp",
            f"must be on where experts meet tensor parallelism in {framework}",
            point.sp,
            "set search.sp to on",
        ),
        (
            point.etp > 1 and scenario.model.family == "gpt_oss",
            "plan.etp",
            f"must be 1 for {framework}, which has no experts with bias divided by tensor "
            "parallelism",
            point.etp,
            "pin search.etp to 1",
        ),
        (
            point.ep > 1 and scenario.precision == "fp16",
            "plan.ep",
            f"must be 1 in fp16 training for {framework}",
            point.ep,
            "train in bf16",
        ),
    )


def _check_expert_overlap(scenario: ScenarioValues, plan: Plan, framework: str) -> None:
    point, recompute = plan.point, plan.recompute[0]
    by_layers = recompute == "full" or method_of(recompute)[0] != ""
    replays = by_layers or "moe" in modules_of(recompute)
    refused = (
        ("spread experts (ep above 1)", point.ep == 1),
        ("interleaved stages in a pipeline", point.pp > 1 and point.interleave == 1),
        ("bf16, fp16 or fp8", scenario.precision not in ("bf16", "fp16", "fp8")),
        ("recomputation of single modules other than moe, or none", replays),
    )
    refuse_first(
        *(
            (
                lacking,
                "workload.expert_overlap",
                f"must be off for {framework} without {needed}",
                True,
                "pin the search to it, or set workload.expert_overlap to off",
            )
            for needed, lacking in refused
        )
    )


Value = bool | int | float | str | tuple[int, ...] | tuple[str, ...]

_LLAMA: dict[str, Value] = {
    "normalization": "RMSNorm",
    "activation": "swiglu",
    "add_bias_linear": False,
    "position_embedding_type": "rope",
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
}
_GPT: dict[str, Value] = {
    "normalization": "LayerNorm",
    "activation": "gelu",
    "add_bias_linear": True,
    "position_embedding_type": "learned_absolute",
}
_FAMILIES: Mapping[str, Mapping[str, Value]] = {
    "gpt": _GPT,
    "bert": _GPT,
    "llama": _LLAMA,
    "mixtral": _LLAMA,
    "qwen2": _LLAMA | {"add_qkv_bias": True},
    "qwen3": _LLAMA | {"qk_layernorm": True},
    "qwen3_moe": _LLAMA | {"qk_layernorm": True},
    "nemotron": _LLAMA
    | {
        "normalization": "LayerNorm",
        "layernorm_zero_centered_gamma": True,
        "activation": "squared_relu",
        "rotary_percent": 0.5,
    },
    "deepseek_v2": _LLAMA | {"qk_layernorm": True},
    "deepseek_v3": _LLAMA
    | {
        "qk_layernorm": True,
        "moe_router_score_function": "sigmoid",
        "moe_router_enable_expert_bias": True,
    },
    "gpt_oss": _LLAMA
    | {
        "activation": "quick_geglu",
        "add_bias_linear": True,
        "softmax_type": "learnable",
        "window_size": (127, 0),
        "window_attn_skip_freq": 2,
        "glu_linear_offset": 1.0,
        "activation_func_clamp_value": 7.0,
    },
}
_MISSING = {
    "bloom": "ALiBi",
    "mpt": "ALiBi",
    "grok1": "norms behind attention and MLP",
}


def architecture(scenario: ScenarioValues, framework: str) -> dict[str, Value]:
    """Return field names and values of the scenario's model.

    ``activation`` stands for ``activation_func`` and ``gated_linear_unit``, ``tied`` for
    ``share_embeddings_and_output_weights``.

    Raises
    ------
    Refused
        For families with parts that Megatron Core has no option for.
    """
    model = scenario.model
    refuse_first(
        (
            model.family not in _FAMILIES,
            "workload.model",
            f"must not need {_MISSING.get(model.family, 'parts it does not know')} for {framework}",
            model.name,
            "export for Slurm or ASTRA-sim",
        )
    )
    return {
        "num_layers": model.blocks,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "ffn_hidden_size": model.ffn or model.expert_ffn,
        "seq_length": scenario.sequence,
        "max_position_embeddings": max(model.positions, scenario.sequence),
        "tied": model.tied,
        **_FAMILIES[model.family],
        **_attention(model),
        **_experts(scenario),
        **fields_where(model.window, window_size=(model.window - 1, 0)),
    }


def _attention(model: Model) -> dict[str, Value]:
    return (
        {
            "multi_latent_attention": True,
            "kv_lora_rank": model.kv_rank,
            "qk_head_dim": model.head_dim,
            "qk_pos_emb_head_dim": model.rope_dim,
            "v_head_dim": model.value_dim,
            **fields_where(model.q_rank, q_lora_rank=model.q_rank),
        }
        if model.kv_rank
        else {
            "kv_channels": model.head_dim,
            **fields_where(model.kv_heads != model.heads, num_query_groups=model.kv_heads),
        }
    )


_BACKENDS = {"once_per_node": "deepep", "hybrid": "hybridep"}


def environment(scenario: ScenarioValues, point: Point) -> dict[str, str]:
    """Return environment variables of a run; an empty value unsets.

    One queue keeps collectives before kernels; sharding forbids it, and passes that run beside one
    another need several.
    """
    queues = "32" if scenario.hidden.experts else "" if point.zero > 1 else "1"
    return {"CUDA_DEVICE_MAX_CONNECTIONS": queues}


def overlap_fields(scenario: ScenarioValues, point: Point) -> dict[str, Value]:
    """Return what hides tensor-parallel traffic, and passes of different micro-batches, as the
    scenario has it; see `check_megatron` and `hidden_traffic`.
    """
    hidden = scenario.hidden
    return {
        **fields_where(hidden.tp and point.tp > 1 and point.sp, tp_comm_overlap=True),
        **fields_where(
            hidden.experts, overlap_moe_expert_parallel_comm=True, delay_wgrad_compute=True
        ),
    }


def _experts(scenario: ScenarioValues) -> dict[str, Value]:
    model = scenario.model
    if model.experts == 1:
        return {}
    backend = "" if scenario.dispatch == "all_to_all" else _BACKENDS[scenario.dispatch]
    sparse = model.blocks - model.dense_blocks
    return {
        "num_moe_experts": model.experts,
        "moe_router_topk": model.top_k,
        "moe_ffn_hidden_size": model.expert_ffn,
        "moe_token_dispatcher_type": "flex" if backend else "alltoall",
        "moe_grouped_gemm": scenario.precision in ("bf16", "fp8"),
        **fields_where(backend, moe_flex_dispatcher_backend=backend),
        **fields_where(
            model.expert_groups > 1,
            moe_router_num_groups=model.expert_groups,
            moe_router_group_topk=model.top_groups,
        ),
        **fields_where(model.shared_ffn, moe_shared_expert_intermediate_size=model.shared_ffn),
        **fields_where(
            model.dense_blocks, moe_layer_freq=(0,) * model.dense_blocks + (1,) * sparse
        ),
        **fields_where(
            scenario.capacity,
            moe_expert_capacity_factor=scenario.capacity,
            moe_pad_expert_input_to_capacity=True,
        ),
    }


def stage_fields(plan: Plan) -> dict[str, Value]:
    """Return what says a plan's cuts, by the names of configuration fields.

    Examples
    --------
    >>> from nest_core.costs.plan import Point
    >>> def of(pp, cuts):
    ...     point = Point(1, False, 1, pp, 1, 0, ("tp", "cp", "dp", "pp"))
    ...     return stage_fields(Plan(point, cuts, ("none",) * pp))
    >>> of(2, (0, 5, 10)), of(2, (0, 3, 10))["num_layers_in_first_pipeline_stage"]
    ({}, 2)
    >>> sorted(of(3, (0, 4, 8, 12)))
    ['account_for_embedding_in_pipeline_split', 'account_for_loss_in_pipeline_split']
    >>> of(4, (0, 2, 4, 7, 10))
    {'pipeline_model_parallel_layout': 'Et|t*2|t*3|t*2L'}
    >>> of(3, (0, 1, 2, 3))  # no layer of the ends is counted away to nothing
    {'pipeline_model_parallel_layout': 'E|t|L'}
    """
    v, pp = plan.point.interleave, plan.point.pp
    blocks = _blocks(plan.cuts)
    fields: dict[str, Value] = {"virtual_pipeline_model_parallel_size": v} if v > 1 else {}
    if pp == 1 or len(set(blocks)) == 1:
        return fields
    if len({b - a for a, b in pairwise(plan.cuts)}) == 1 and min(blocks) > 0:
        return fields | {
            "account_for_embedding_in_pipeline_split": True,
            "account_for_loss_in_pipeline_split": True,
        }
    middle = set(blocks[1:-1])
    return (
        {
            "num_layers_in_first_pipeline_stage": blocks[0],
            "num_layers_in_last_pipeline_stage": blocks[-1],
        }
        if v == 1 and len(middle) < 2 and min(blocks[0], blocks[-1], *middle) > 0
        else fields | {"pipeline_model_parallel_layout": layout_string(plan.cuts)}
    )


def recompute_fields(plan: Plan) -> dict[str, Value]:
    """Return what every stage recomputes, by the names of configuration fields."""
    if plan.recompute[0] == "none":
        return {}
    method, layers = method_of(plan.recompute[0])
    return (
        {
            "recompute_granularity": "full",
            "recompute_method": method or "uniform",
            "recompute_num_layers": layers or 1,
        }
        if method or plan.recompute[0] == "full"
        else {
            "recompute_granularity": "selective",
            **fields_where(
                plan.recompute[0] != "selective", recompute_modules=modules_of(plan.recompute[0])
            ),
        }
    )


def layout_notes(plan: Plan) -> tuple[str, ...]:
    """Return what people should know who change a script with a layout string."""
    if plan.point.interleave > 1 or "pipeline_model_parallel_layout" not in stage_fields(plan):
        return ()
    return (
        f"The layout of stages is that of pp {plan.point.pp}: Megatron Core reads it as "
        "interleaved, without a word, where pp is made a divisor of that.",
    )


def layout_string(cuts: tuple[int, ...]) -> str:
    """Return virtual stages as letters.

    Examples
    --------
    >>> layout_string((0, 1, 4, 7, 8))
    'E|t*3|t*3|L'
    """
    parts = [("t" if n == 1 else f"t*{n}") if n else "" for n in _blocks(cuts)]
    parts[0] = "E" + parts[0]
    parts[-1] += "L"
    return "|".join(parts)


def _blocks(cuts: tuple[int, ...]) -> list[int]:
    """Return transformer blocks of every virtual stage.

    The first layer embeds, the last has the loss.
    """
    last = cuts[-1] - 1
    return [min(b, last) - max(a, 1) for a, b in pairwise(cuts)]
