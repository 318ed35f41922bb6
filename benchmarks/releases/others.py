"""What torchtitan, DeepSpeed and MLPerf's logger print."""

import contextlib
import dataclasses
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from benchmarks.releases.sources import DEGREES, TIMES, Source, unpacked


class Configuration(SimpleNamespace):
    """What DeepSpeed prints, without the JSON behind it."""

    def print_user_config(self) -> None:
        """Print none."""


def torchtitan(version: str, **changed: int) -> None:
    """Print what rank 0 of torchtitan prints."""
    release = unpacked("torchtitan", version) / "torchtitan"
    trainer = Source(release, "trainer.py" if (release / "trainer.py").exists() else "train.py")
    surroundings: dict[str, Any] = {"logging": logging, "os": os, "sys": sys}
    Source(release, "tools/logging.py").functions("init_logger", **surroundings)
    printer = logging.getLogger()
    surroundings["logger"] = printer
    Source(release, "tools/logging.py").functions("init_logger", **surroundings).init_logger()
    dims = {**DEGREES, **changed}
    pp, microbatches = dims["pp"], dims.pop("microbatches", 1)

    color = Source(release, "tools/utils.py").functions("Color", dataclass=dataclass).Color()
    arguments = make_dataclass("TransformerModelArgs", [("dim", int, 4096), ("n_layers", int, 32)])
    local = 128 // (dims["dp_replicate"] * dims["dp_shard"])
    config = SimpleNamespace(
        model=SimpleNamespace(name="llama3", flavor="8B"),
        training=SimpleNamespace(local_batch_size=local, seq_len=8192, steps=1000),
        lr_scheduler=SimpleNamespace(warmup_steps=200),
        parallelism=SimpleNamespace(pipeline_parallel_schedule="1F1B"),
    )
    memory = SimpleNamespace(
        device_name="NVIDIA H100 80GB HBM3",
        device_capacity_gib=79.10,
        max_reserved_gib=58.12,
        max_reserved_pct=73.41,
        max_active_gib=50.0,
        max_active_pct=63.2,
        num_alloc_retries=0,
        num_ooms=0,
    )
    world = SimpleNamespace(**dims)
    values = {
        "self": SimpleNamespace(
            **dims,
            step=0,
            gradient_accumulation_steps=1,
            train_spec=config.model,
        ),
        "model_spec": config.model,
        "job_config": config,
        "config": config,
        "model_args": arguments(),
        "model_param_count": 8_030_261_248,
        "color": color,
        "device_type": "cuda",
        "device_memory_monitor": memory,
        "device_mem_stats": memory,
        "gpu_peak_flops": 989e12,
        "global_batch_size": 128,
        "json": json,
        "dataclasses": dataclasses,
        "parallelism": config.parallelism,
        "n_microbatches": microbatches,
        "num_total_stages": pp,
    }
    mesh = Source(release, "distributed/parallel_dims.py")
    if version < "0.2.1":
        names = ["build_mesh", "_build_mesh", "_build_mesh_with_ep", "_build_mesh_without_ep"]
        names = [
            name
            for name in names
            if f"def {name}(" in (release / "distributed/parallel_dims.py").read_text()
        ]
        stop = MagicMock(side_effect=StopIteration)
        build = mesh.functions(*names, logger=printer, init_device_mesh=stop, device_type="cuda")
        for name in names:
            setattr(world, name, lambda *args, name=name: getattr(build, name)(world, *args))
        with contextlib.suppress(StopIteration):
            world.build_mesh(*(["cuda"] if version < "0.2.0" else []))
    else:
        printer.info(mesh.text("Building device mesh with", values))
    metrics = Source(release, "components/metrics.py")
    printer.info(metrics.text("capacity: ", values))
    printer.info(trainer.text("Building {", values))
    printer.info(trainer.text("total parameters", values))
    if pp > 1:
        path = "pipeline.py" if version < "0.2.0" else "pipeline_parallel.py"
        printer.info(Source(release, f"distributed/{path}").text("Using pipeline schedule", values))
    folder = (
        "models/llama3/infra/parallelize.py"
        if version < "0.2.0"
        else "distributed/activation_checkpoint.py"
    )
    selective = type("SelectiveAC", (), {})()
    printer.info(
        Source(release, folder).text(
            "activation checkpointing to the model",
            {"ac_config": SimpleNamespace(mode="selective"), "self": selective},
        )
    )
    printer.info(trainer.text("Peak FLOPS used", values))
    printer.info(trainer.text("memory usage for model", values))
    printer.info(trainer.text("Trainer is initialized with", values))
    printer.info(trainer.text("Training starts at step", values))
    clock = [0.0]
    log = metrics.functions(
        "log", logger=printer, time=SimpleNamespace(perf_counter=lambda: clock[0])
    ).log
    processor = MagicMock(
        num_flops_per_token=5e10,
        gpu_peak_flops=989e12,
        has_quantization=False,
        color=color,
        device_memory_monitor=MagicMock(get_peak_stats=lambda: memory),
        parallel_dims=SimpleNamespace(non_data_parallel_size=dims["cp"] * dims["tp"] * pp),
    )
    for number, seconds in enumerate(TIMES):
        steps = 10 if number else 1
        processor.ntokens_since_last_log = steps * local * 8192
        processor.time_last_log = clock[0]
        processor.data_loading_times = [0.01] * steps
        clock[0] += steps * seconds
        gradient = () if version < "0.2.0" else (2.1931,)
        log(processor, 10 * number or 1, 8.41207, 8.5, *gradient)
    printer.info(trainer.text("Training completed", values))


def deepspeed(version: str) -> None:
    """Print what DeepSpeed prints where its log level is "info", which is not its default."""
    release = unpacked("deepspeed", version) / "deepspeed"

    surroundings = {
        "logging": logging,
        "sys": sys,
        "os": os,
        "required_torch_version": lambda **_: False,
    }
    factory = Source(release, "utils/logging.py").functions("create_logger", **surroundings)
    printer = factory.create_logger("DeepSpeed", logging.INFO)
    sys.modules["deepspeed.utils"] = MagicMock(logger=printer)
    values = {"__version__": version, "__git_hash__": "unknown", "__git_branch__": "unknown"}
    dist = Source(release, "utils/logging.py").functions(
        "log_dist",
        logging=logging,
        logger=printer,
        get_dist_msg=lambda message, ranks: f"[Rank {ranks[0]}] {message}",
    )
    dist.log_dist(Source(release, "__init__.py").text("DeepSpeed info", values), ranks=[0])
    bf16 = "enabled=True immediate_grad_update=False check_grad_overflow=True"
    config = Configuration(
        bfloat16_config=bf16,
        float16_config=bf16.replace("True", "False", 1),
        global_rank=0,
        gradient_accumulation_steps=2,
        gradient_clipping=1.0,
        steps_per_print=10,
        world_size=32,
        train_batch_size=128,
        train_micro_batch_size_per_gpu=2,
        wall_clock_breakdown=False,
        zero_allow_untested_optimizer=False,
        zero_enabled=True,
        zero_optimization_stage=3,
        zero_force_ds_cpu_optimizer=True,
    )
    Source(release, "runtime/config.py").functions("print", logger=printer).print(
        config, "DeepSpeedEngine configuration"
    )
    clock = [1.0]
    accelerator = MagicMock(
        memory_allocated=lambda: 18.4 * 2**30, max_memory_allocated=lambda: 52.07 * 2**30
    )
    timer = (
        Source(release, "utils/timer.py")
        .functions(
            "ThroughputTimer",
            time=SimpleNamespace(time=lambda: clock[0]),
            TIME_EPSILON=1e-6,
            get_accelerator=lambda: accelerator,
            PSUTILS_INSTALLED=False,
        )
        .ThroughputTimer(
            SimpleNamespace(enabled=True, synchronized=True),
            128,
            steps_per_output=10,
            logging_fn=partial(dist.log_dist, ranks=[0]),
        )
    )
    for seconds in (TIMES[0], *[second for second in TIMES for _ in range(10)][1:]):
        for part in range(2):
            timer.start()
            clock[0] += seconds / 2
            timer.stop(global_step=part == 1)


def mllog(version: str) -> None:
    """Print events by MLPerf's own logger."""
    sys.path.insert(0, str(unpacked("mlperf-logging", version)))
    from mlperf_logging import mllog as package

    printer = package.get_mllogger()
    now = [1_790_000_000.0]

    def event(
        key: str, value: Any = None, call: Callable[..., None] = printer.event, **metadata: Any
    ) -> None:
        call(key=key, value=value, metadata=metadata, time_ms=round(now[0] * 1000))

    for key, value in (
        ("submission_benchmark", "llama31_8b"),
        ("submission_platform", "4xDGX-H100"),
        ("global_batch_size", 128),
        ("max_sequence_length", 8192),
        ("micro_batch_size", 1),
        ("gradient_accumulation_steps", 8),
        ("tensor_parallelism", 2),
        ("pipeline_parallelism", 1),
        ("context_parallelism", 1),
        ("expert_parallelism", 1),
    ):
        event(key, value)
    event("run_start", call=printer.start)
    for number, seconds in enumerate(TIMES):
        now[0] += seconds
        stats = {"train_step_time": seconds, "reduced_train_loss": 6.02}
        event("tracked_stats", stats, step=number, samples_count=128 * number)
    event("run_stop", call=printer.end, status="success")
