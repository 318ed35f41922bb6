"""Logs as frameworks print them, made of their grammars; all figures are invented."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

MEGATRON: Mapping[str, object] = {
    "accumulate_allreduce_grads_in_fp32": True,
    "bf16": True,
    "context_parallel_size": 1,
    "data_parallel_size": 4,
    "expert_model_parallel_size": 1,
    "ffn_hidden_size": 14336,
    "fp8": None,
    "global_batch_size": 128,
    "group_query_attention": True,
    "hidden_size": 4096,
    "kv_channels": 128,
    "log_interval": 1,
    "micro_batch_size": 1,
    "moe_router_load_balancing_type_of_a_very_long_name_here": None,
    "num_attention_heads": 32,
    "num_experts": None,
    "num_layers": 32,
    "num_query_groups": 8,
    "overlap_grad_reduce": True,
    "padded_vocab_size": 128256,
    "pipeline_model_parallel_size": 2,
    "recompute_granularity": None,
    "recompute_modules": ["core_attn"],
    "seq_length": 8192,
    "sequence_parallel": True,
    "swiglu": True,
    "tensor_model_parallel_size": 4,
    "tp_comm_overlap": False,
    "untie_embeddings_and_output_weights": True,
    "use_distributed_optimizer": True,
    "use_tp_pp_dp_mapping": False,
    "virtual_pipeline_model_parallel_size": None,
    "world_size": 32,
}
"""Llama 3 8B on 32 devices, as `megatron` prints its arguments."""

STEADY_S = 5.5
"""What every log's steady step takes, where its test does not say otherwise."""


def dump(**changed: object) -> list[str]:
    """Arguments as Megatron-LM prints them."""
    rows = {**MEGATRON, **changed}
    lines = [f"  {key} {'.' * (48 - len(key))} {rows[key]}" for key in sorted(rows, key=str.lower)]
    return [
        "------------------------ arguments ------------------------",
        *lines,
        "-------------------- end of arguments ---------------------",
    ]


def iteration(number: int, seconds: float, batch: int = 128, unit: str = "ms") -> str:
    """A line of Megatron-LM's last rank."""
    return (
        f" [2026-10-02 08:14:31.902113] iteration {number:8d}/    2000 | consumed samples: "
        f"{number * batch:12d} | elapsed time per iteration ({unit}): {seconds * 1e3:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): 511.4 | learning rate: 1.250000E-05 | global batch "
        f"size: {batch:5d} | lm loss: 6.120044E+00 | loss scale: 1.0 | grad norm: 1.902 | number "
        f"of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def memory(rank: int, allocated_mib: float, reserved_mib: float) -> str:
    """Megatron-LM's memory line."""
    return (
        f"[Rank {rank}] (after 2 iterations) memory (MB) | allocated: 21877.64 | max allocated: "
        f"{allocated_mib} | reserved: {reserved_mib} | max reserved: {reserved_mib}"
    )


def megatron(times: Sequence[float] = (), *, interval: int = 1, **changed: object) -> list[str]:
    """A whole log of Megatron-LM: arguments, iterations, memory of two ranks after the first."""
    times = times or (31.0, 6.1, 5.6, *[STEADY_S] * 12)
    lines = [iteration(interval * (at + 1), seconds) for at, seconds in enumerate(times)]
    held = [memory(0, 40112.9375, 43020.0), memory(8, 61220.08, 66834.0)]
    return [*dump(**changed), lines[0], *held, *lines[1:]]


def bridge(times: Iterable[float] = (31.0, 6.1, 5.6, *[STEADY_S] * 9)) -> list[str]:
    """Megatron-Bridge: lines of rank 0 and of the last rank, memory in 10^9 bytes."""
    lines = []
    for number, seconds in enumerate(times, start=1):
        lines += [
            f"Step Time : {seconds:.2f}s GPU utilization: 702.6MODEL_TFLOP/s/GPU",
            iteration(number, seconds),
        ]
    held = (
        "[Rank 0] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 41.207 | "
        "mem-max-allocated-gigabytes: 61.5 | mem-max-reserved-gigabytes: 66.02 | "
        "mem-alloc-retires: 0"
    )
    return [*lines[:4], held, *lines[4:]]


def nemo(times: Iterable[float] = (31.0, 6.1, 5.6, *[STEADY_S] * 9)) -> list[str]:
    """NeMo 2: four significant digits, validation's loss stays on the lines after it."""
    return [
        f"Training epoch 0, iteration {number}/49 | lr: 2.1e-05 | global_batch_size: 128 | "
        f"global_step: {number} | reduced_train_loss: 7.214 | train_step_timing in s: {seconds:.4} "
        f"| consumed_samples: {128 * (number + 1)} | max_memory_reserved: 6.602e+10"
        + (" | val_loss: 7.1" if number > 5 else "")
        for number, seconds in enumerate(times)
    ]


def torchtitan(
    times: Sequence[float] = (40.0, *[STEADY_S] * 6), *, mesh: Sequence[tuple[str, int]] = ()
) -> list[str]:
    """torchtitan v0.2, coloured: Llama 3 8B on 32 devices; ``times`` of every tenth step."""
    mesh = mesh or (("dp_shard", 8), ("tp", 4))
    devices = 1
    for _, degree in mesh:
        devices *= degree
    names, degrees = [name for name, _ in mesh], [degree for _, degree in mesh]
    said = [
        f"Building {len(mesh)}-D device mesh with {names}, {degrees}",
        "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory",
        "Model llama3 8B size: 8,030,261,248 total parameters",
        "Applied selective activation checkpointing to the model",
        "Compiling each TransformerBlock with torch.compile",
        "Training starts at step 1, with local batch size 16, global batch size 128, sequence "
        "length 8192, total steps 1000 (warmup 200)",
    ]
    for at, seconds in enumerate(times):
        rate = 128 * 8192 / devices / seconds
        said.append(
            f"\x1b[31mstep: {max(1, 10 * at):2}  \x1b[32mloss: {8.41207:8.5f}  \x1b[38;2;180;60;0m"
            f"grad_norm: {2.1931:7.4f}  \x1b[36mmemory: {58.12:5.2f}GiB({73.41:.2f}%)  "
            f"\x1b[34mtps: {round(rate):,}  \x1b[36mtflops: 318.77  \x1b[35mmfu: 32.23%\x1b[39m"
        )
        said.append("validate step: 20  loss:  3.9120  memory: 70.90GiB(90.71%)  tps: 99,230")
    return [f"[titan] 2026-10-05 11:02:45,318 - root - INFO - {line}" for line in said]


def deepspeed(times: Iterable[float] = (31.0, 9.0, *[STEADY_S] * 8)) -> list[str]:
    """DeepSpeed 0.16, ZeRO 3 on 32 devices; ``times`` of every tenth step."""
    settings = {
        "bfloat16_enabled": "True",
        "bfloat16_immediate_grad_update": "False",
        "fp16_enabled": "False",
        "gradient_accumulation_steps": "2",
        "train_batch_size": "128",
        "train_micro_batch_size_per_gpu": "2",
        "world_size": "32",
        "zero_optimization_stage": "3",
    }
    stamp = "[2026-10-01 09:00:00,120] [INFO]"
    lines = [f"{stamp} [logging.py:128:log_dist] [Rank 0] DeepSpeed info: version=0.16.2, git-hash"]
    for key, value in settings.items():
        lines.append(f"{stamp} [config.py:1003:print]   {key} {'.' * (29 - len(key))} {value}")
    for at, seconds in enumerate(times, start=1):
        lines.append(
            f"{stamp} [timer.py:265:stop] epoch=0/micro_step={20 * at}/global_step={10 * at}, "
            f"RunningAvgSamplesPerSec={128 / seconds:.5f}, CurrSamplesPerSec={128 / seconds!r}, "
            "MemAllocated=18.4GB, MaxMemAllocated=52.07GB"
        )
    return lines


def mllog(
    times: Sequence[float] = (30.0, *[STEADY_S] * 8),
    *,
    samples: bool = False,
    plan: bool = True,
    start_ms: int = 1_790_000_000_000,
    evaluations: Sequence[int] = (5,),
) -> list[str]:
    """MLPerf's events of Llama 3.1 8B; an evaluation of a minute stands after some steps."""
    now, lines = start_ms, []

    def event(key: str, value: object, kind: str = "POINT_IN_TIME", **metadata: object) -> None:
        record = {
            "namespace": "",
            "time_ms": now,
            "event_type": kind,
            "key": key,
            "value": value,
            "metadata": {"file": "/w/cb.py", "lineno": 12, **metadata},
        }
        lines.append(f"  0: :::MLLOG {json.dumps(record)}")

    event("submission_benchmark", "llama31_8b")
    event("submission_platform", "4xDGX-H100")
    event("global_batch_size", 128)
    event("max_sequence_length", 8192)
    event("micro_batch_size", 1)
    event("gradient_accumulation_steps", 8.0)
    if plan:
        event("tensor_parallelism", 2)
        event("pipeline_parallelism", 1)
        event("context_parallelism", 1)
    event("run_start", None, "INTERVAL_START")
    for number, seconds in enumerate(times):
        now += round(seconds * 1e3)
        stats = {"train_step_time": seconds * 0.98, "reduced_train_loss": 6.02}
        event("tracked_stats", stats, step=float(number * (128 if samples else 1)))
        if number in evaluations:
            event("eval_start", None, "INTERVAL_START")
            now += 60_000
            event("eval_stop", None, "INTERVAL_END")
    event("tracked_stats", {"max_memory_usage": 61.5})
    event("run_stop", None, "INTERVAL_END", status="success")
    return lines


def text(lines: Iterable[str]) -> str:
    """Lines as a file."""
    return "\n".join(lines) + "\n"
