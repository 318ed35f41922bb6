"""Settings of frameworks as columns of a table of measured runs.

Frameworks call the same thing by few names; `NAMES` holds them for every column, whether a log, a
launch command or a configuration file said them. What takes more than a name is a function below.
"""

import math
import re
from collections.abc import Iterator, Mapping

from nest_core.costs.megatron_job import hidden_traffic, yes
from nest_core.documents import preset_names, require
from nest_core.workload import Model, by_method, load_model, spelled

__all__ = ["NAMES", "columns_of", "model_columns", "preset_of", "sizes_of", "whole_number"]

NAMES: Mapping[str, tuple[str, ...]] = {
    "gpus": ("world_size", "num_processes"),
    "tp": (
        "tensor_model_parallel_size",
        "tensor_parallel_degree",
        "tensor_model_parallel",
        "tensor_parallelism",
        "autotp_size",
        "tensor_parallel.autotp_size",
    ),
    "pp": (
        "pipeline_model_parallel_size",
        "pipeline_parallel_degree",
        "pipeline_model_parallel",
        "pipeline_parallelism",
    ),
    "vp_interleave": (
        "virtual_pipeline_model_parallel_size",
        "num_virtual_stages_per_pipeline_rank",
        "interleaved_pipeline",
    ),
    "cp": (
        "context_parallel_size",
        "context_parallel_degree",
        "context_parallel",
        "context_parallelism",
    ),
    "ep": (
        "expert_model_parallel_size",
        "expert_parallel_degree",
        "expert_model_parallel",
        "expert_parallelism",
    ),
    "dp": ("data_parallel_size",),
    "micro_batch": (
        "micro_batch_size",
        "train_micro_batch_size_per_gpu",
        "per_device_train_batch_size",
        "pipeline_parallel_microbatch_size",
        "microbs",
    ),
    "global_batch_seqs": ("global_batch_size", "train_batch_size"),
    "seq_len": (
        *("seq_length", "seq_len", "max_sequence_length", "encoder_seq_length"),
        *("sequence_length", "max_seq_length", "max_seq_len", "model_max_length", "cutoff_len"),
    ),
    "layers": ("num_layers", "n_layers", "num_hidden_layers"),
    "hidden": ("hidden_size", "dim"),
    "heads": ("num_attention_heads", "n_heads"),
    "vocab": ("padded_vocab_size", "vocab_size"),
    "experts": ("num_experts", "num_moe_experts"),
    "topk": ("moe_router_topk",),
}
"""By column: names of settings that are whole numbers, the surest first."""

NODES = ("nnodes", "num_nodes", "dgxnnodes", "num_machines")
PER_NODE = ("nproc_per_node", "gpus_per_node", "num_gpus_per_node", "dgxngpu", "ngpu")
"""Of launchers; their product is how many devices there are."""

FLAGS: Mapping[str, tuple[str, str]] = {
    "squared_relu": ("squared-relu", ""),
    "multi_latent_attention": ("MLA", ""),
    "grad_reduce_in_bf16": ("bf16 grad reduce", ""),
    "accumulate_allreduce_grads_in_fp32": ("fp32 grad accum", ""),
    "use_flash_attn": ("flash attention", ""),
    "overlap_moe_expert_parallel_comm": ("overlap_moe_expert_parallel_comm", ""),
    "account_for_embedding_in_pipeline_split": ("embedding as own pp layer", ""),
    "moe_enable_deepep": ("DeepEP", ""),
}
"""Settings that column ``notes`` states, and its words where they are on and off."""

SCHEDULES = (("interleaved", "interleaved 1f1b"), ("1f1b", "1f1b"), ("zb", "schedule=zb"))
"""torchtitan's names of schedules, by what they hold, and the words of column ``notes``."""

CHECKPOINTING = ("gradient_checkpointing", "fsdp_activation_checkpointing")
"""Of accelerate and transformers: whole layers are recomputed."""

UNSAID = frozenset({"", "none", "null", "auto", "-1"})


def columns_of(settings: Mapping[str, str], *, is_complete: bool = False) -> dict[str, str]:
    """Return columns that settings decide; those that they leave open are missing.

    Parameters
    ----------
    settings : mapping
        By name, in lower case with underscores.
    is_complete : bool
        Whether they are a whole command of Megatron-LM, so that what it leaves out has its default.

    Raises
    ------
    InputError
        For a size that is no whole number, or a recomputation that is none.
    """
    columns = {
        column: str(number)
        for column, names in NAMES.items()
        if (number := _first(settings, names))
    }
    columns |= _devices(settings, columns) | _sizes(settings) | _stages(settings, columns)
    columns |= (
        _batches(settings, columns)
        | columns
        | _sharding(settings)
        | _precision(settings)
        | _recomputation(settings, {"recompute": "none"} if is_complete else {})
    )
    for name in ("sequence_parallel", "seq_parallel"):
        if name in settings:
            columns["seq_parallel"] = str(int(yes(settings[name])))
    if "use_tp_pp_dp_mapping" in settings:
        columns["rank_order"] = (
            "tp-cp-pp-dp" if yes(settings["use_tp_pp_dp_mapping"]) else "tp-cp-dp-pp"
        )
    traffic = (
        f"{kind.upper()} overlap on" if hides else f"no {kind.upper()} overlap"
        for kind, hides in hidden_traffic(settings, is_complete=is_complete).items()
    )
    if notes := "; ".join((*_notes(settings, columns), *traffic)):
        columns["notes"] = notes
    return columns


def whole_number(settings: Mapping[str, str], name: str) -> int | None:
    """Return a setting's number; None where it is not said, or left to the framework.

    Raises
    ------
    InputError
        If it is no whole number from 1.
    """
    text = settings.get(name, "").strip().replace("_", "").removesuffix(".0")
    if (
        text.lower() in UNSAID
        or text.startswith("$")
        or (text == "0" and name in ("num_experts", "num_moe_experts"))
    ):
        return None
    require(
        text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text) > 0,
        name,
        "must be a whole number from 1",
        settings[name],
        "write the number",
    )
    return int(text)


def _first(settings: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    return next((number for name in names if (number := whole_number(settings, name))), None)


def _devices(settings: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    nodes, per_node = _first(settings, NODES), _first(settings, PER_NODE)
    replicas = whole_number(settings, "data_parallel_replicate_degree") or 1
    shards = whole_number(settings, "data_parallel_shard_degree")
    added = {"gpus": (nodes or 1) * per_node if per_node else 0, "dp": replicas * (shards or 0)}
    return {name: str(count) for name, count in added.items() if count and name not in columns}


def _batches(settings: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return micro-batch and batch where they are stated of a replica: by torchtitan, whose
    sequences are fed at once where no pipeline divides them, or beside accumulation steps.
    """
    local = whole_number(settings, "local_batch_size")
    parts = whole_number(settings, "microbatches") or int(columns.get("pp", "1") == "1")
    added = {"micro_batch": str(local // parts)} if local and parts else {}
    accumulated = whole_number(settings, "gradient_accumulation_steps") or int(
        "per_device_train_batch_size" in settings
    )
    shared = math.prod(int(columns.get(axis, "1")) for axis in ("tp", "pp", "cp"))
    replicas = int(columns.get("dp", 0)) or int(columns.get("gpus", 0)) // shared
    batch = (local or int(columns.get("micro_batch", 0)) * accumulated) * replicas
    return added | ({"global_batch_seqs": str(batch)} if batch else {})


def _sizes(settings: Mapping[str, str]) -> dict[str, str]:
    """Return widths that depend on what kind of block it is."""
    experts = whole_number(settings, "num_experts") or whole_number(settings, "num_moe_experts")
    ffn = ("moe_ffn_hidden_size", "ffn_hidden_size") if experts else ("ffn_hidden_size",)
    groups = _first(settings, ("num_query_groups", "n_kv_heads", "num_key_value_heads"))
    sizes = {
        "ffn_hidden": _first(settings, (*ffn, "intermediate_size")),
        "kv_heads": groups if yes(settings.get("group_query_attention", "true")) else None,
        "gated_mlp": int(yes(settings["swiglu"])) if "swiglu" in settings else None,
    }
    return {column: str(size) for column, size in sizes.items() if size is not None}


def _stages(settings: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return virtual stages where they are given by their layers, or by a layout."""
    if "vp_interleave" in columns or "pp" not in columns:
        return {}
    if stages := whole_number(settings, "pipeline_stages"):  # torchtitan's, of all ranks
        return {"vp_interleave": str(max(1, stages // int(columns["pp"])))}
    layers = whole_number(settings, "num_layers_per_virtual_pipeline_stage")
    if layers and "layers" in columns:
        virtual_stages = int(columns["layers"]) // (int(columns["pp"]) * layers)
        return {"vp_interleave": str(max(1, virtual_stages))}
    return {"vp_interleave": "1"} if "virtual_pipeline_model_parallel_size" in settings else {}


def _sharding(settings: Mapping[str, str]) -> dict[str, str]:
    names = ("zero_optimization.stage", "zero_stage", "zero_optimization_stage")
    stage = next((settings[name] for name in names if settings.get(name)), None)
    if stage is not None and yes(settings.get("deepspeed", "true")):
        return {"dist_opt_or_zero": f"zero{stage}" if stage in ("1", "2", "3") else "none"}
    if yes(settings.get("use_megatron_fsdp", "")) or yes(settings.get("use_torch_fsdp2", "")):
        return {"dist_opt_or_zero": "megatron_fsdp"}
    names = ("fsdp_sharding_strategy", "fsdp_reshard_after_forward", "fsdp")
    if strategy := " ".join(settings.get(name, "") for name in names).strip().lower():
        in_part = "2" if re.search("grad_op|zero2|false", strategy) else "3"
        return {"dist_opt_or_zero": "none" if "no_shard" in strategy else f"fsdp(zero{in_part})"}
    if "use_distributed_optimizer" in settings:
        return {
            "dist_opt_or_zero": "distributed_optimizer"
            if yes(settings["use_distributed_optimizer"])
            else "none"
        }
    if shards := whole_number(settings, "data_parallel_shard_degree"):
        sharded = shards * (whole_number(settings, "context_parallel_degree") or 1)
        return {"dist_opt_or_zero": "fsdp2(zero3)" if sharded > 1 else "none"}
    return {}


def _precision(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what products are computed in; empty where nothing is said of it."""
    settings = {
        settings.get("mixed_precision", "").lower(): "true",
        # Lightning's bf16-mixed, 16-mixed and 16
        re.sub(r"^16$", "fp16", settings.get("precision", "").lower().partition("-")[0]): "true",
        **settings,
    }
    fp8 = settings.get("fp8", settings.get("fp8_format", ""))
    if settings.get("fp4", settings.get("fp4_format", "")).lower() not in (*UNSAID, "false"):
        return {"precision": "nvfp4"}
    if fp8.lower() not in (*UNSAID, "false"):
        return {"precision": f"fp8({settings.get('fp8_recipe', 'delayed')})"}
    for name, word in (
        ("bf16", "bf16"),
        ("bf16.enabled", "bf16"),
        ("bfloat16_enabled", "bf16"),
        ("bfloat16_config", "bf16"),
        ("fp16", "fp16-mixed"),
        ("fp16.enabled", "fp16-mixed"),
        ("fp16_enabled", "fp16-mixed"),
        ("float16_config", "fp16-mixed"),
    ):
        if yes(settings.get(name, "")):
            return {"precision": word}
    return (
        {"precision": "fp32"}
        if {"bf16", "bfloat16_enabled", "bfloat16_config"} & settings.keys()
        else {}
    )


def _recomputation(settings: Mapping[str, str], unsaid: dict[str, str]) -> dict[str, str]:
    granularity = settings.get("recompute_granularity", "").lower()
    if "recompute_granularity" not in settings:
        if any(yes(settings.get(name, "")) for name in CHECKPOINTING):
            return {"recompute": "full"}
        return (
            {"recompute": "selective"} if yes(settings.get("recompute_activations", "")) else unsaid
        )
    if granularity == "full":
        method = settings.get("recompute_method", "").lower()
        layers = whole_number(settings, "recompute_num_layers")
        in_part = layers and method in ("uniform", "block")
        return {"recompute": by_method(method, layers) if in_part else "full"}
    if granularity == "selective":
        modules = re.findall(r"[a-z_]+", settings.get("recompute_modules", "").lower())
        chosen = [module for module in modules if module != "none"]
        return {"recompute": spelled(chosen, "recompute_modules") if chosen else "selective"}
    return {"recompute": "none"} if granularity in ("none", "null", "false", "") else {}


def _notes(settings: Mapping[str, str], columns: Mapping[str, str]) -> Iterator[str]:
    flags = (words[not yes(settings[name])] for name, words in FLAGS.items() if name in settings)
    yield from filter(None, flags)
    if settings.get("attention_backend", "").lower().rpartition(".")[2] in ("flash", "fused"):
        yield "flash attention"
    if "untie_embeddings_and_output_weights" in settings and not yes(
        settings["untie_embeddings_and_output_weights"]
    ):
        yield "tied embeddings"
    if settings.get("position_embedding_type", "").lower() == "alibi":
        yield "ALiBi"
    etp = whole_number(settings, "expert_tensor_parallel_size")
    if etp and "experts" in columns:
        yield f"etp={etp}"
    width, heads = whole_number(settings, "kv_channels"), int(columns.get("heads", 0))
    if width and heads and width * heads != int(columns.get("hidden", 0)):
        yield f"head_dim {width}"
    if "experts" in columns and "moe_expert_capacity_factor" in settings:
        factor = settings["moe_expert_capacity_factor"].lower()
        yield "dropless" if factor in UNSAID else f"capacity factor {factor}"
    if dense := _dense_blocks(settings.get("moe_layer_freq", "")):
        yield f"{dense} dense + experts"
    schedule = settings.get("pipeline_parallel_schedule", "").lower()
    if schedule and columns.get("pp", "1") != "1":
        yield next((word for key, word in SCHEDULES if key in schedule), "")
    if "hybridep" in settings.get("moe_flex_dispatcher_backend", "").lower():
        yield "HybridEP"


def _dense_blocks(frequency: str) -> int:
    """Return blocks without experts before those with them, as a list or its Python says.

    Examples
    --------
    >>> _dense_blocks("[0, 0, 0, 1, 1]"), _dense_blocks("([0]*3+[1]*58)"), _dense_blocks("1")
    (3, 3, 0)
    """
    if times := re.match(r"\(?\[0\]\*(\d{1,4})", frequency):
        return int(times[1])
    listed = re.match(r"\[((?:0, ?)+)", frequency)
    return listed[1].count("0") if listed else 0


ALIASES = {
    "gpt3": "gpt3-175b",
    "llama3405b": "llama3.1-405b",
    "deepseekv3671b": "deepseek-v3",
    "deepseekv3": "deepseek-v3",
}
"""Names whose letters and digits are not those of a preset."""

UNGATED = ("gpt", "bert", "bloom", "mpt", "nemotron")
"""Families whose MLP has no gate."""


def preset_of(name: str) -> str:
    """Return a preset's name; empty if none has the letters and digits of these words or the last.

    Examples
    --------
    >>> preset_of("llama3 8B"), preset_of("llama3 llama31_405b"), preset_of("gpt3"), preset_of("x")
    ('llama3-8b', 'llama3.1-405b', 'gpt3-175b', '')
    """
    plain = [re.sub(r"[^a-z0-9]", "", word.lower()) for word in (name, *name.split()[-1:])]
    spelled_alike = (
        preset
        for preset in preset_names("models")
        if {ALIASES.get(word, word) for word in plain} & {preset, re.sub(r"[^a-z0-9]", "", preset)}
    )
    return next(spelled_alike, "")


def model_columns(name: str) -> dict[str, str]:
    """Return columns of a run that say what model it is; none if no preset has the name.

    Raises
    ------
    InputError
        If the preset cannot be read.
    """
    preset = preset_of(name)
    return sizes_of(load_model(preset)) if preset else {}


def sizes_of(model: Model) -> dict[str, str]:
    """Return columns with a model's sizes."""
    experts = {"experts": str(model.experts), "topk": str(model.top_k)} if model.experts > 1 else {}
    return {
        "model": model.name,
        "layers": str(model.blocks),
        "hidden": str(model.hidden),
        "heads": str(model.heads),
        "kv_heads": str(model.kv_heads),
        "ffn_hidden": str(model.expert_ffn or model.ffn),
        "gated_mlp": str(int(model.family not in UNGATED)),
        "vocab": str(model.vocabulary),
        **experts,
    }
