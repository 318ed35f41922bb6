"""Logs as rows: every printer's step, memory, plan and sizes; what must not move them."""

from __future__ import annotations

import random
import re

import pytest
from printed_logs import (
    STEADY_S,
    bridge,
    deepspeed,
    dump,
    iteration,
    megatron,
    memory,
    mllog,
    nemo,
    text,
    torchtitan,
)

from nest_core.calibration.logs import RunFacts, read_run_log
from nest_core.calibration.logs.readers import MllogReader
from nest_core.calibration.logs.run_log import read_command
from nest_core.documents.files import log_blocks
from nest_core.documents.units import GB, GIB
from nest_core.scenario import load_scenario

COMMAND = """torchrun --nnodes 4 --nproc-per-node 8 train.py \\
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --micro-batch-size 1 --bf16 \\
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu \\
  --seq-length 8192"""
SHELL = """export TENSOR_MODEL_PARALLEL=2
export PIPELINE_MODEL_PARALLEL=1
: ${DGXNNODES:=4}
export DGXNGPU=8  # of a node
export FP8=True"""
H100 = {"accelerator": "H100"}


@pytest.fixture
def read(tmp_path):
    """``read(lines, launch, model)``: the row of a log."""

    def row(lines, launch="", model="", **columns):
        path = tmp_path / "run.log"
        path.write_text(text(lines))
        return read_run_log(path, RunFacts(launch, {**H100, **columns}, model))

    return row


PRINTERS = {
    "Megatron-LM": (megatron, "", ""),
    "Megatron-Bridge": (bridge, COMMAND, ""),
    "NeMo": (nemo, COMMAND, ""),
    "torchtitan": (torchtitan, "", ""),
    "DeepSpeed": (deepspeed, "seq_length: 8192", "llama3-8b"),
    "MLPerf": (mllog, SHELL, ""),
}


@pytest.mark.parametrize("framework", PRINTERS)
def test_every_printer_gives_the_run_and_its_steady_step(read, framework):
    lines, launch, model = PRINTERS[framework]
    row = read(lines(), launch, model)
    run = row.run
    assert row.outcome.seconds == pytest.approx(STEADY_S, rel=1e-4)
    assert framework in run.source
    assert (run.devices, run.batch, run.sequence) == (32, 128, 8192)
    assert (run.layers, run.hidden, run.heads, run.ffn) == (32, 4096, 32, 14336)
    assert run.point.tp * run.point.pp * run.point.cp * run.point.dp == 32


def stated(run, name):
    """What a run says of a degree of its point, or of anything else."""
    return getattr(run.point if hasattr(run.point, name) else run, name)


@pytest.mark.parametrize(
    ("framework", "plan"),
    [
        ("Megatron-LM", {"tp": 4, "pp": 2, "micro_batch": 1, "sp": True, "zero": 1}),
        ("torchtitan", {"tp": 4, "pp": 1, "micro_batch": 16, "zero": 3, "recompute": "selective"}),
        ("DeepSpeed", {"tp": 1, "pp": 1, "micro_batch": 2, "zero": 3, "framework": "deepspeed"}),
        ("MLPerf", {"tp": 2, "pp": 1, "micro_batch": 1, "precision": "fp8"}),
    ],
)
def test_plans_are_what_was_printed(read, framework, plan):
    lines, launch, model = PRINTERS[framework]
    run = read(lines(), launch, model).run
    assert {name: stated(run, name) for name in plan} == plan


MEMORY = {
    "Megatron-LM": (61220.08 * GIB / 1024, "allocated"),  # "MB" is MiB; the fuller rank
    "Megatron-Bridge": (61.5 * GB, "allocated"),  # "GB" is 10^9 bytes
    "NeMo": (66.02 * GB, "reserved"),  # bytes
    "torchtitan": (58.12 * GIB, "reserved"),  # validation's peak is not a step's
    "DeepSpeed": (52.07 * GIB, "allocated"),  # "GB" is GiB
    "MLPerf": (61.5 * GIB, "allocated"),
}


@pytest.mark.parametrize("framework", MEMORY)
def test_units_of_memory_are_the_printers_own(read, framework):
    lines, launch, model = PRINTERS[framework]
    outcome = read(lines(), launch, model).outcome
    size, kind = MEMORY[framework]
    assert outcome.memory_bytes == pytest.approx(size, rel=1e-5)
    assert outcome.memory_kind == kind


PREFIXES = (
    "  0: ",  # srun --label
    "[default3]:",  # torchrun --tee
    "[rank0]: ",
    "[1,0]<stdout>:",  # Open MPI --tag-output
    "[prterun-node1-4242@1,0]<stdout>: ",  # Open MPI 5 --output tag
    "Sat Mar  1 10:00:00 2025[1,0]<stdout>:",  # --timestamp-output
    "worker-0: ",  # pdsh, DeepSpeed's launcher
    "[pod/llama-worker-0/pytorch] ",  # kubectl logs --prefix
    "[pod/llama-worker-0/pytorch] 2025-03-01T10:00:00.123456789Z ",  # and --timestamps
    "2025-03-01T10:00:00.123456789Z ",  # docker logs --timestamps
    "trainer-1  | ",  # docker compose
    "trainer-1  | 2025-03-01T10:00:00.123456789Z ",
    "(RayTrainWorker pid=4242, ip=10.0.0.7) ",
    "\x1b[36mtrainer-1  | \x1b[0m",
    "\x1b[32m",
)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("framework", PRINTERS)
def test_what_launchers_put_before_lines_changes_nothing(read, framework, prefix):
    lines, launch, model = PRINTERS[framework]
    plain = read(lines(), launch, model)
    assert read([prefix + line for line in lines()], launch, model) == plain


def test_lines_of_other_ranks_between_change_nothing(read):
    lines = [line for each in megatron() for line in (each, "[rank5]: saving to disk", "tqdm 3/4")]
    assert read(lines) == read(megatron())


def test_a_line_that_every_rank_prints_counts_once(read):
    lines = torchtitan()
    assert read([line for line in lines for _ in range(3)]) == read(lines)
    late = [line for at, line in enumerate(lines) for line in (line, lines[max(6, at - 2)])]
    assert read(late) == read(lines)


TIMES = [5.5, 5.6, 5.4, 5.52, 5.48, 5.51, 5.49, 5.5, 5.53]


@pytest.mark.parametrize("first", [5.9, 31.0, 400.0])
def test_warm_up_moves_no_median(read, first):
    warm = [first, first / 2 + 3, 6.0]
    expected = read(megatron([9.0, 8.0, 7.0, *TIMES])).outcome.seconds
    assert read(megatron([*warm, *TIMES])).outcome.seconds == expected


def test_the_extra_line_after_the_first_iteration_is_warm_up_and_so_is_the_mean_over_it(read):
    times = [(1, 60.0), (10, 8.0), (20, 5.5), (30, 5.6), (40, 5.4)]
    lines = [*dump(log_interval=10), *(iteration(at, seconds) for at, seconds in times)]
    assert read(lines).outcome.seconds == pytest.approx(5.5)


@pytest.mark.parametrize("slow", [12.0, 60.0, 900.0])
def test_checkpoints_and_evaluations_move_no_median(read, slow):
    times = [9.0, 8.0, 7.0, *TIMES]
    expected = read(megatron(times)).outcome.seconds
    for at in (4, 7, 9):
        times.insert(at, slow)
    assert read(megatron(times)).outcome.seconds == expected


def test_evaluations_between_steps_of_mlperf_move_nothing(read):
    steps = [30.0, *[STEADY_S] * 18]
    often = read(mllog(steps, evaluations=(5, 9, 13)), SHELL)
    assert often.outcome.seconds == read(mllog(steps, evaluations=()), SHELL).outcome.seconds


def test_what_spans_an_evaluation_is_the_first_of_a_block():
    reader = MllogReader()
    reader.read(text(mllog([30.0, *[STEADY_S] * 18], evaluations=(5, 9, 13))).encode())
    reader.end()
    steps = reader.steps
    first = [
        step for before, step in zip([None, *steps], steps, strict=False)
        if before is None or before.block != step.block
    ]  # fmt: skip
    assert len(first) == 4
    assert [step for step in steps if step.seconds > 10] == first[1:]


def test_two_events_that_ranks_joined_in_a_line_are_two(read):
    lines = mllog()
    joined = ["".join(lines[at : at + 2]) for at in range(0, len(lines), 2)]
    assert read(joined, SHELL) == read(lines, SHELL)


def test_samples_in_place_of_steps_are_told_apart(read):
    by_step, by_sample = (read(mllog(samples=samples), SHELL) for samples in (False, True))
    assert by_step.outcome.seconds == pytest.approx(by_sample.outcome.seconds)


def test_a_restart_is_warm_up_again(read):
    again = [*megatron(), *megatron([40.0, 20.0, 9.0, *[STEADY_S] * 4])]
    assert read(again).outcome.seconds == STEADY_S
    resumed = [iteration(20 + at, seconds) for at, seconds in enumerate([7.0, 7.0, 7.0, 5.6])]
    lines = [*megatron([9.0, 8.0, 7.0, 5.4, 5.5]), *dump(), *resumed]
    assert read(lines).outcome.seconds == 5.5


def test_a_ramp_of_batches_is_left_out(read):
    ramp = [iteration(at, 2.0, batch=32) for at in range(1, 12)]
    full = [iteration(at, 5.5) for at in range(12, 20)]
    assert read([*dump(), *ramp, *full]).outcome.seconds == 5.5


@pytest.mark.parametrize(
    ("changed", "cells"),
    [
        ({"fp8": "hybrid", "fp8_recipe": "delayed"}, {"precision": "fp8"}),
        ({"virtual_pipeline_model_parallel_size": 4}, {"interleave": 4, "schedule": "interleaved"}),
        ({"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 3},
         {"recompute": "block:3"}),
        ({"recompute_granularity": "selective"}, {"recompute": "selective"}),
        ({"recompute_granularity": "selective", "recompute_modules": ["mlp", "layernorm"]},
         {"recompute": "layernorm+mlp"}),
        ({"use_tp_pp_dp_mapping": True}, {"order": ("tp", "cp", "pp", "dp")}),
        ({"tp_comm_overlap": True}, {"overlap": (True, True, True)}),  # no switch of pipelines
        ({"sequence_parallel": False}, {"overlap": (True, True, True)}),  # nor of whole sequences
        ({"virtual_pipeline_model_parallel_size": 4, "overlap_p2p_comm": False},
         {"overlap": (False, False, True)}),
        ({"kv_channels": 160}, {"head_dim": 160}),
        ({"num_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 2048,
          "expert_model_parallel_size": 4, "expert_tensor_parallel_size": 1,
          "moe_layer_freq": [0, 0, *[1] * 30]},
         {"experts": 8, "top_k": 2, "ffn": 2048, "ep": 4, "etp": 1, "dense_layers": 2}),
        ({"use_distributed_optimizer": False}, {"zero": 0}),
        ({"group_query_attention": False, "num_query_groups": 1}, {"kv_heads": 32}),
    ],
)  # fmt: skip
def test_arguments_of_megatron_become_columns(read, changed, cells):
    run = read(megatron(**changed)).run
    assert {name: stated(run, name) for name in cells} == cells


@pytest.mark.parametrize(
    ("mesh", "plan"),
    [
        ([("pp", 4), ("dp_shard", 4), ("tp", 2)], {"pp": 4, "dp": 4, "tp": 2, "zero": 3}),
        ([("dp_replicate", 2), ("dp_shard", 16)], {"dp": 32, "tp": 1, "zero": 3}),
        ([("dp_shard", 4), ("cp", 8)], {"dp": 4, "cp": 8}),
    ],
)
def test_meshes_of_torchtitan_become_plans(read, mesh, plan):
    lines = [re.sub("local batch size 16", "local batch size 4", line) for line in
             torchtitan(mesh=mesh)]  # fmt: skip
    run = read(lines).run
    assert {name: stated(run, name) for name in plan} == plan


def test_the_accelerator_is_the_one_that_torchtitan_prints(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(text(torchtitan()))
    assert read_run_log(path).run.accelerator == "NVIDIA H100 80GB HBM3"


def test_what_is_given_of_the_machine_goes_into_the_row(read):
    assert {"gpus_per_node", "inter_bw_GBps_per_gpu"} <= set(read(megatron()).run.assumed)
    told = read(megatron(), gpus_per_node="4", inter_bw_GBps_per_gpu="25").run
    assert (told.per_node, told.inter_Bps) == (4, 25 * GB)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\nthr", ["one", "two"]),  # the end of the file cuts the third
        (b"1/3\r2/3\rdone\n", ["1/3", "2/3", "done"]),
        (b"\xff\xfeone\r\n", ["\ufffd\ufffdone"]),
        (b"x" * (1 << 20) + b"yz\n", ["x" * (1 << 20), "yz"]),
        (b"ab\r\n" * 400_000, ["ab"] * 400_000),
    ],
)
def test_lines_of_a_log_whatever_is_in_it(tmp_path, content, lines):
    path = tmp_path / "run.log"
    path.write_bytes(content)
    assert [
        line
        for block in log_blocks(path)
        for line in block.decode(errors="replace").split("\n")
        if line
    ] == lines


def test_shuffled_ranks_give_the_fullest_device(read):
    held = [memory(rank, 40000.0 + rank, 50000.0) for rank in range(0, 32, 8)]
    random.Random(3).shuffle(held)
    lines = megatron()
    assert read([*lines, *held]).outcome.memory_bytes == read(lines).outcome.memory_bytes


@pytest.mark.parametrize("device", ["h100-80gb", "a100-80gb", "b200-180gb"])
def test_a_run_that_names_no_release_has_the_stack_of_a_scenario_of_its_devices(device):
    """A failure: "before" of calibrate stood on the stack of 2026, price on that of 2025."""
    given = RunFacts(columns={"accelerator": device}, model="llama2-7b")
    command = (
        "torchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py --bf16 --seq-length 4096 "
        "--tensor-model-parallel-size 4 --global-batch-size 64 --micro-batch-size 1"
    )
    run = read_command(command, given).row.run
    scenario = load_scenario("llama2-7b-64-h100", [f'accelerator="{device}"'])
    assert run.stack == scenario.stack.name
    shares = scenario.hidden.tp, scenario.hidden.pp, scenario.hidden.dp
    assert run.overlap == tuple(share > 0 for share in shares)
