"""NeMo: a training script for Megatron-Bridge, which has taken the place of NeMo 2's recipes.

Fields of its configuration classes (``training/config.py``, ``models/gpt_provider.py``,
``models/mla_provider.py``, ``training/mixed_precision.py``). The script builds the model from the
scenario's sizes on mock data; ranks and rules are Megatron Core's
(`nest_core.interop.exporters.megatron_core`).

A provider's own layers are alike and have plain attention, whatever its fields say: where experts
are not in every block, or attention is latent, they come from Megatron Core's block
specification, as in the release's DeepSeek. The vocabulary is the tokenizer's: only that is padded
to what tp divides.
"""

from collections.abc import Mapping

from nest_core.costs import Plan, Report
from nest_core.costs.megatron import SHARDING
from nest_core.interop.exporters.megatron_core import (
    Value,
    architecture,
    check_megatron,
    environment,
    layout_notes,
    overlap_fields,
    recompute_fields,
    stage_fields,
    swapped,
)
from nest_core.interop.exporters.values import (
    ExportFiles,
    exports,
    fields_where,
    header,
    refuse_first,
    torchrun,
)
from nest_core.scenario import ScenarioValues

__all__ = ["export_nemo"]

_NAME = "Megatron-Bridge"

Fields = dict[str, str]
"""Field names and the Python expressions that give them."""

_ACTIVATIONS = {
    "gelu": ("F.gelu", False),
    "swiglu": ("F.silu", True),
    "squared_relu": ("squared_relu", False),
    "quick_geglu": ("quick_gelu", True),
}
_PRECISION = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_current_scaling_mixed",
}
_DTYPE = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp8": "torch.bfloat16"}

_SCRIPT = """\
from functools import partial

import torch
import torch.nn.functional as F
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.models.mla_provider import MLAModelProvider
from megatron.bridge.training.config import (
    CheckpointConfig,
    ConfigContainer,
    DistributedDataParallelConfig,
    DistributedInitConfig,
    LoggerConfig,
    MockGPTDatasetConfig,
    OptimizerConfig,
    RNGConfig,
    SchedulerConfig,
    TokenizerConfig,
    TrainingConfig,
    ValidationConfig,
)
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import get_mixed_precision_config
from megatron.bridge.training.pretrain import pretrain
from megatron.core.activations import squared_relu
from megatron.core.fusions.fused_bias_geglu import quick_gelu
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
from megatron.core.transformer.enums import AttnBackend


"""


def export_nemo(scenario: ScenarioValues, report: Report) -> ExportFiles:
    """Return training script and launch script of a priced plan.

    Raises
    ------
    Refused
        Where Megatron-Bridge cannot express the plan.
    """
    plan = report.plan
    refuse_first(
        (
            scenario.model.family == "bert",
            "workload.model",
            f"must be a decoder for {_NAME}",
            scenario.model.name,
            "export for Megatron-LM",
        )
    )
    rank_mapping = check_megatron(scenario, plan, _NAME)
    top = header(scenario, plan, "nemo")
    script = top + _SCRIPT + _configuration(scenario, plan)
    launch = (
        "#!/usr/bin/env bash\n" + top + "# Run on every node.\nset -euo pipefail\n"
        'cd -- "$(dirname -- "$0")"\n'
        + exports(environment(scenario, plan.point))
        + torchrun(rank_mapping, ["train.py"])
    )
    return ExportFiles(
        {"train.py": script, "launch.sh": launch},
        (
            "The script trains on mock data with a placeholder learning rate; rotary base and "
            "norm epsilon are Megatron Core's defaults.",
            *layout_notes(plan),
        ),
    )


def _configuration(scenario: ScenarioValues, plan: Plan) -> str:
    fields = architecture(scenario, _NAME)
    provider = "MLAModelProvider" if fields.get("multi_latent_attention") else "GPTModelProvider"
    calls = {
        "model": (provider, _model(fields) | _parallel(scenario, plan)),
        "train": (
            "TrainingConfig",
            {
                "micro_batch_size": str(plan.point.micro_batch),
                "global_batch_size": str(scenario.batch),
                "train_iters": "100",
            },
        ),
        "validation": ("ValidationConfig", {"eval_iters": "0"}),
        "optimizer": (
            "OptimizerConfig",
            {
                "optimizer": '"sgd"' if scenario.optimizer == "sgd" else '"adam"',
                "lr": "1.0e-4",
                "min_lr": "1.0e-5",
                "use_distributed_optimizer": str(plan.point.zero > 0),
                **fields_where(
                    scenario.optimizer == "adam_8bit",
                    use_precision_aware_optimizer="True",
                    exp_avg_dtype="torch.uint8",
                    exp_avg_sq_dtype="torch.uint8",
                ),
            },
        ),
        "scheduler": (
            "SchedulerConfig",
            {"lr_decay_style": '"cosine"', "lr_warmup_iters": "2"},
        ),
        "dataset": (
            "MockGPTDatasetConfig",
            {
                "seq_length": str(scenario.sequence),
                "random_seed": "1234",
                "reset_position_ids": "False",
                "reset_attention_mask": "False",
                "eod_mask_loss": "False",
                "num_dataset_builder_threads": "1",
                "split": '"9999,8,2"',
                "dataloader_type": '"single"',
            },
        ),
        "ddp": ("DistributedDataParallelConfig", _ddp(scenario, plan)),
        "dist": (
            "DistributedInitConfig",
            {
                "use_tp_pp_dp_mapping": str(swapped(plan.point)),
                **fields_where(plan.point.zero > 1, use_megatron_fsdp="True"),
            },
        ),
        "logger": ("LoggerConfig", {"log_interval": "1"}),
        "tokenizer": (
            "TokenizerConfig",
            {
                "tokenizer_type": '"NullTokenizer"',
                "vocab_size": str(scenario.model.vocabulary),
            },
        ),
        "checkpoint": (
            "CheckpointConfig",
            {"ckpt_format": '"fsdp_dtensor"' if plan.point.zero > 1 else '"torch_dist"'},
        ),
        "rng": ("RNGConfig", {"seed": "1234"}),
    }
    body = "".join(
        f"        {name}={call}(\n"
        + "".join(f"            {key}={value},\n" for key, value in arguments.items())
        + "        ),\n"
        for name, (call, arguments) in calls.items()
    )
    precision = _precision(scenario)
    mixed = "        mixed_precision=precision,\n" if precision else ""
    return (
        f"def config():\n{precision}    return ConfigContainer(\n{body}{mixed}    )\n\n\n"
        'if __name__ == "__main__":\n'
        "    pretrain(config=config(), forward_step_func=forward_step)\n"
    )


def _precision(scenario: ScenarioValues) -> str:
    if scenario.precision not in _PRECISION:
        return ""
    wide = scenario.gradient_bytes == 4.0 or (
        not scenario.gradient_bytes and scenario.precision != "fp16"
    )
    return (
        f'    precision = get_mixed_precision_config("{_PRECISION[scenario.precision]}")\n'
        f"    precision.grad_reduce_in_fp32 = {wide}\n"
    )


def _model(fields: Mapping[str, Value]) -> Fields:
    result: Fields = {}
    for name, value in fields.items():
        if name == "activation":
            function, gated = _ACTIVATIONS[str(value)]
            result |= {"activation_func": function, "gated_linear_unit": str(gated)}
        elif name == "tied":
            result["share_embeddings_and_output_weights"] = str(value)
        elif name == "moe_layer_freq" and isinstance(value, tuple):
            result[name] = f"[0] * {value.count(0)} + [1] * {value.count(1)}"
        elif name != "max_position_embeddings":
            result[name] = _literal(value)
    special = "num_moe_experts" in fields or "multi_latent_attention" in fields
    blocks = "partial(get_gpt_decoder_block_spec, use_transformer_engine=True)"
    return result | fields_where(special, transformer_layer_spec=blocks)


def _literal(value: Value) -> str:
    if isinstance(value, tuple) and isinstance(value[0], str):
        return "[" + ", ".join(f'"{entry}"' for entry in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _parallel(scenario: ScenarioValues, plan: Plan) -> Fields:
    point = plan.point
    stages = stage_fields(plan) | recompute_fields(plan) | overlap_fields(scenario, point)
    return {
        "tensor_model_parallel_size": str(point.tp),
        "pipeline_model_parallel_size": str(point.pp),
        "context_parallel_size": str(point.cp),
        "expert_model_parallel_size": str(point.ep),
        "sequence_parallel": str(point.sp),
        "pipeline_dtype": _DTYPE.get(scenario.precision, "torch.float32"),
        "attention_backend": f"AttnBackend.{scenario.attention}",
        # Left out, it is 1 where there are expert groups, and not tp as in Megatron Core.
        **fields_where(scenario.model.experts > 1, expert_tensor_parallel_size=str(point.etp)),
        **{name: _literal(value) for name, value in stages.items()},
        **fields_where(
            point.cp > 1, cp_comm_type='"p2p"' if scenario.context == "ring" else '"all_gather"'
        ),
        **fields_where(point.zero > 1, gradient_accumulation_fusion="False"),
        **fields_where(
            point.interleave > 1 and scenario.hidden.pp,
            overlap_p2p_comm="True",
            batch_p2p_comm="False",
        ),
    }


def _ddp(scenario: ScenarioValues, plan: Plan) -> Fields:
    point = plan.point
    overlaps = scenario.hidden.dp > 0.0
    return {
        "use_distributed_optimizer": str(point.zero > 0),
        "overlap_grad_reduce": str(overlaps),
        "overlap_param_gather": str(overlaps and point.zero > 0),
        **fields_where(
            point.instances > 1, num_distributed_optimizer_instances=str(point.instances)
        ),
        **fields_where(
            point.zero > 1,
            use_megatron_fsdp="True",
            data_parallel_sharding_strategy=f'"{SHARDING[point.zero]}"',
        ),
    }
