"""What Megatron-LM, Megatron-Bridge and NeMo print."""

import math
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import MISSING, fields, make_dataclass
from datetime import datetime
from typing import Any
from unittest.mock import MagicMock

from tqdm import tqdm

from benchmarks.releases.sources import TIMES, Args, Loss, Source, torch_of, unpacked

ARGUMENTS: Mapping[str, Any] = {
    "bf16": True,
    "context_parallel_size": 1,
    "data_parallel_size": 4,
    "ffn_hidden_size": 14336,
    "expert_model_parallel_size": 1,
    "fp8": None,
    "global_batch_size": 128,
    "hidden_size": 4096,
    "group_query_attention": True,
    "kv_channels": 128,
    "log_interval": 1,
    "micro_batch_size": 1,
    "num_attention_heads": 32,
    "num_experts": None,
    "num_layers": 32,
    "num_query_groups": 8,
    "padded_vocab_size": 128256,
    "pipeline_model_parallel_size": 2,
    "recompute_granularity": None,
    "recompute_modules": ["core_attn"],
    "seq_length": 8192,
    "sequence_parallel": True,
    "swiglu": True,
    "tensor_model_parallel_size": 4,
    "world_size": 32,
    "untie_embeddings_and_output_weights": True,
    "use_distributed_optimizer": True,
    "virtual_pipeline_model_parallel_size": None,
}


def megatron(version: str) -> None:
    """Print what rank 0 and the last rank of Megatron-LM print."""
    release = unpacked("megatron-core", version) / "megatron/training"

    sys.modules["megatron.training.utils"] = MagicMock(is_rank0=lambda: True)
    args = Args(
        **ARGUMENTS,
        train_iters=500,
        consumed_train_samples=0,
        skipped_train_samples=0,
        timing_log_level=0,
        perform_rl_step=False,
        gtp_weight_remat_size=1,
        log_throughput=True,
        log_device_memory_used=False,
        log_energy=False,
        tensorboard_log_interval=1,
    )
    printer = Source(release, "arguments.py").functions("_print_args")
    printer._print_args("arguments", args)
    elapsed = MagicMock()
    common = {"get_args": lambda: args, "print_rank_last": print, "print_rank_0": print}
    gib = 2**20
    torch = torch_of(
        memory_allocated=int(21877.64 * gib),
        max_memory_allocated=int(61220.08 * gib),
        memory_reserved=66834 * gib,
        max_memory_reserved=66834 * gib,
    )
    memory = Source(release, "utils/common_utils.py").functions(
        "report_memory", torch=torch, mpu=MagicMock(get_data_parallel_rank=lambda: 0), **common
    )
    training = Source(release, "training.py").functions(
        "training_log",
        **common,
        torch=torch,
        datetime=datetime,
        has_rl_utils=False,
        get_timers=lambda: MagicMock(return_value=elapsed),
        get_tensorboard_writer=lambda: None,
        get_wandb_writer=lambda: None,
        get_one_logger=lambda: None,
        get_energy_monitor=lambda: None,
        get_num_microbatches=lambda: 32,
        one_logger_utils=MagicMock(),
        reduce_max_stat_across_model_parallel_group=lambda rate, **_: rate,
        num_floating_point_operations=lambda *_, **__: 5.4e16 * 1.7,
        report_theoretical_memory=lambda *_, **__: None,
        report_memory=memory.report_memory,
        get_loaded_iteration=lambda: 0,
        is_hybrid_model=lambda _: False,
    )
    total: dict[str, Any] = {}
    flag = True
    for number, seconds in enumerate(TIMES, start=1):
        args.consumed_train_samples += 128
        elapsed.elapsed = lambda seconds=seconds, **_: seconds
        flag = training.training_log(
            {"lm loss": Loss(6.12)},
            total,
            1.25e-5,
            number,
            1.0,
            flag,
            0,
            1.902,
            None,
            None,
            None,
            is_first_iteration=number == 1,
        )
        if number == 1:
            total.clear()


def bridge(version: str) -> None:
    """Print what Megatron-Bridge prints, the summary of its configuration first."""
    release = unpacked("megatron-bridge", version) / "megatron/bridge/training"

    def values(name: str, **entries: Any) -> Any:
        return make_dataclass(name, [(key, type(value), value) for key, value in entries.items()])()

    core = make_dataclass(
        "TransformerConfig",
        [(name, int, 1) for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size")]
        + [(name, int, 0) for name in ("num_layers", "hidden_size", "num_attention_heads")]
        + [
            ("num_query_groups", int, None),
            ("ffn_hidden_size", int, None),
            ("bf16", bool, False),
            ("sequence_parallel", bool, False),
            ("recompute_granularity", str, None),
        ],
    )
    model = values(
        "Llama3ModelProvider",
        tensor_model_parallel_size=4,
        pipeline_model_parallel_size=2,
        num_layers=32,
        hidden_size=4096,
        num_attention_heads=32,
        num_query_groups=8,
        ffn_hidden_size=14336,
        bf16=True,
        sequence_parallel=True,
        recompute_granularity="selective",
    )
    config = Args(
        model=model,
        optimizer=values("O"),
        ddp=values("D"),
        train=values("TrainingConfig", global_batch_size=128, micro_batch_size=1, train_iters=500),
        validation=values("V", eval_iters=0),
        scheduler=values("S", lr_decay_iters=500),
        dataset=values("GPTDatasetConfig", sequence_length=8192, seq_length=8192),
        checkpoint=None,
        logger=Args(log_interval=1, log_throughput=True, timing_log_level=0),
        tokenizer=None,
        rng=None,
    )
    source = Source(release, "config.py")
    if "log_non_default_values" in (release / "config.py").read_text():
        names = (
            "log_non_default_values",
            "_get_non_default_values",
            "_get_key_config_values",
            "_get_mcore_transformer_parent",
        )
        known = [name for name in names if f"def {name}(" in (release / "config.py").read_text()]
        empty = make_dataclass("Empty", [])
        source.functions(
            *known,
            fields=fields,
            MISSING=MISSING,
            print_rank_0=print,
            GPTModelConfig=int,
            HybridModelConfig=int,
            MCoreTransformerConfig=core,
            MCoreMLATransformerConfig=dict,
            MCoreOptimizerConfig=empty,
            MCoreDistributedDataParallelConfig=empty,
        ).log_non_default_values(config)
    elapsed, history = MagicMock(), []
    path = "utils/train_utils.py"
    common: dict[str, Any] = {"torch": torch_of(), "math": math}
    keys = {
        "allocated_bytes.all.peak": "mem-max-allocated-bytes",
        "reserved_bytes.all.peak": "mem-max-reserved-bytes",
        "num_alloc_retries": "mem-alloc-retires",
    }
    report = Source(release, path).functions("report_memory", MEMORY_KEYS=keys, **common)
    training = Source(release, path).functions(
        "training_log",
        **common,
        **dict.fromkeys(("print_rank_0", "print_rank_last"), print),
        datetime=datetime,
        report_memory=report.report_memory,
        get_num_microbatches=lambda: 32,
        report_theoretical_memory=lambda *_, **__: None,
        get_world_size_safe=lambda: 32,
        get_rank_safe=lambda: 0,
        num_floating_point_operations=lambda *_: 9e16,
        time=time,
        is_last_rank=lambda: True,
        reduce_max_stat_across_model_parallel_group=lambda rate, **_: rate,
        get_pg_collection=MagicMock(),
        get_model_config=MagicMock(),
        one_logger_utils=MagicMock(),
    )
    state = MagicMock()
    state.energy_monitor = state.wandb_logger = state.tensorboard_logger = None
    state.mlflow_logger = state.comet_logger = None
    timers = MagicMock(side_effect=lambda _: elapsed)
    state.timers = timers
    train = state.train_state
    train.skipped_train_samples = train.consumed_train_samples = 0
    state._flops_at_last_log = train.floating_point_operations_so_far = 0.0
    config.model.kv_channels, config.model.num_moe_experts = 128, None
    config.profiling = None
    config.data_parallel_size = 4
    config.peft = None
    total: dict[str, Any] = {}
    flag = True
    for number, seconds in enumerate(TIMES, start=1):
        train.step = number
        train.consumed_train_samples += 128
        train.floating_point_operations_so_far += 9e16
        elapsed.elapsed = lambda seconds=seconds, **_: seconds
        given = [
            {"lm loss": Loss(6.12)},
            total,
            1.25e-5,
            None,
            1.0,
            flag,
            0,
            1.9,
            None,
            None,
            config,
            state,
            history,
            [],
        ]
        groups = {"pg_collection": MagicMock()} if version > "0.4" else {}
        flag = training.training_log(*given, **groups)


def nemo(version: str, bar: bool = False) -> None:
    """Print NeMo 2's lines of averages, or its progress bar."""
    release = unpacked("nemo-toolkit", version) / "nemo/lightning/pytorch/callbacks"

    trainer = MagicMock(max_steps=500, current_epoch=0)
    trainer.strategy.timers = None
    metrics: dict[str, Any] = {}
    if bar:
        lightning = Source(
            unpacked("pytorch-lightning", "2.6.6") / "pytorch_lightning",
            "callbacks/progress/tqdm_progress.py",
        )

        parts = lightning.functions(
            "Tqdm",
            "_update_n",
            "init_train_tqdm",
            _tqdm=tqdm,
            Union=MagicMock(),
            Any=Any,
            _PAD_SIZE=5,
            sys=sys,
            math=math,
        )
        base = type(
            "TQDMProgressBar",
            (),
            {
                "init_train_tqdm": parts.init_train_tqdm,
                "train_description": "Training",
                "process_position": 0,
                "is_disabled": False,
                "BAR_FORMAT": "",
                "get_metrics": lambda *_: metrics,
                "_should_update": lambda *_: True,
            },
        )
        shown = (
            Source(release, "progress_bar.py")
            .functions("MegatronProgressBar", TQDMProgressBar=base, _update_n=parts._update_n)
            .MegatronProgressBar()
        )
        shown.train_progress_bar = shown.init_train_tqdm()
        shown.on_train_epoch_start(trainer)
    else:
        shown = (
            Source(release, "progress_printer.py")
            .functions(
                "ProgressPrinter",
                ProgressBar=type("ProgressBar", (), {"get_metrics": lambda *_: metrics}),
                defaultdict=defaultdict,
                override=lambda function: function,
                Any=Any,
            )
            .ProgressPrinter()
        )
        for start in ("on_train_start", "on_train_epoch_start"):
            getattr(shown, start, lambda _: None)(trainer)
    for number, seconds in enumerate(TIMES):
        trainer.strategy.current_epoch_step = number + 1
        metrics |= {
            **({"v_num": 0} if bar else {}),
            "reduced_train_loss": 7.214,
            "lr": 2.1e-5,
            **({} if bar else {"global_batch_size": 128.0}),
            "global_step": float(number),
            "consumed_samples": 128.0 * (number + 1),
            "train_step_timing in s": seconds,
        }
        shown.on_train_batch_end(trainer, None)
    print()
