"""One run has one figure: its command and its log, by `price` and by `calibrate`."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest

import nest_core as nest
from nest_core.documents import toml_document
from nest_studio.cli import run

sys.path.append(str(Path(__file__).parent / "logs"))
from printed_logs import iteration, megatron, text

COMMAND = (
    "torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
    "--seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 --swiglu --bf16 "
    "--untie-embeddings-and-output-weights --tensor-model-parallel-size 4 --sequence-parallel "
    "--pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 128 "
    "--use-distributed-optimizer --accumulate-allreduce-grads-in-fp32"
)
"""Of `printed_logs.MEGATRON`, without a word on overlap."""
OFF = {"overlap_grad_reduce": False, "tp_comm_overlap": False, "overlap_p2p_comm": False}
VIRTUAL = {"virtual_pipeline_model_parallel_size": 2}
FULL = {"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 3}
SHARES = {"tp": 0.6, "pp": 0.6, "dp": 0.75}
"""Of H100 that hide where software hides the class of traffic (docs/method.md)."""

RUNS = {
    "nothing": ("", {}, "p"),
    "gradients": ("--overlap-grad-reduce", {"overlap_grad_reduce": True}, "pd"),
    "tensors": ("--tp-comm-overlap", {"tp_comm_overlap": True}, "tp"),
    "both": (
        "--tp-comm-overlap --overlap-grad-reduce",
        {"tp_comm_overlap": True, "overlap_grad_reduce": True},
        "tpd",
    ),
    "interleaved": (
        "--num-virtual-stages-per-pipeline-rank 2",
        {**VIRTUAL, "overlap_p2p_comm": True},
        "p",
    ),
    "interleaved, exposed": (
        "--num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication",
        VIRTUAL,
        "",
    ),
    "recomputed": (
        "--recompute-granularity full --recompute-method block --recompute-num-layers 3",
        FULL,
        "p",
    ),
}
"""By name: flags after `COMMAND`, what the log's arguments show of them, and what then hides."""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """``job(**changes)``: a file with the scenario that the run is of, on half of its devices."""
    monkeypatch.chdir(tmp_path)

    def written(**changes):
        document = nest.load("llama2-7b-64-h100").document | {"name": "Llama 3 8B", **changes}
        document["workload"] |= {
            "model": "llama3-8b", "sequence_length_tokens": 8192, "global_batch_sequences": 128,
        }  # fmt: skip
        document["search"] = {"tp": [4], "pp": [2], "micro_batch_sequences": [1]}
        Path("job.toml").write_text(toml_document(document))
        return "job.toml"

    return written


def asked(capsys, *arguments):
    """The fields that a command prints."""
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", RUNS)
def test_a_command_and_its_log_take_as_long(name, job, capsys):
    """`price` said 3.99 s of a run for which `calibrate` said 4.49 s before it was fitted: a
    command that does not hide tensor-parallel traffic was priced as if it did."""
    flags, shown, hides = RUNS[name]
    scenario, command = job(), f"{COMMAND} {flags}"
    Path("run.log").write_text(text(megatron(**OFF | shown)))
    priced = nest.price(scenario, command)
    (fitted,) = nest.calibrate(["run.log"], "mine", on=scenario).calibration.runs
    assert (fitted.before, fitted.row.run.stack) == (
        priced.report.iteration_s,
        "megatron-core-2025",
    )
    calibrated = asked(capsys, "calibrate", "run.log", "--on", scenario, "--name", "mine")["rows"][
        0
    ]
    fields = asked(capsys, "price", scenario, "--plan", command)
    assert calibrated["before_s"] == fields["iteration_time_s"] == fitted.before
    assert calibrated["stack"] == fields["stack"]["name"] == "megatron-core-2025"
    hiding = {"tp": "--tp-comm-overlap", "dp": "--overlap-grad-reduce"}
    for traffic, flag in hiding.items():
        is_said = any(flag in note for note in fields["notes"])
        assert is_said == (traffic[0] not in hides), fields["notes"]
    assert fields["overlap_shares"] == {
        traffic: share * (traffic[0] in hides) for traffic, share in SHARES.items()
    } | {"slowdown": 0.0}


def test_what_a_run_hides_is_never_slower(job):
    scenario = job()
    times = {
        hides: nest.price(scenario, f"{COMMAND} {flags}").report.iteration_s
        for flags, _, hides in itertools.islice(RUNS.values(), 4)
    }
    assert times["tpd"] < min(times["tp"], times["pd"])
    assert max(times["tp"], times["pd"]) < times["p"]


def test_a_command_stands_in_for_arguments_that_a_log_lost(job):
    """Steps alone, with the command beside them."""
    lines = [iteration(at + 1, 5.5) for at in range(14)]
    Path("run.log").write_text(text(lines))
    command = f"{COMMAND} --overlap-grad-reduce"
    fitted = nest.calibrate(["run.log"], "mine", launch=[command], on=job())
    assert fitted.calibration.runs[0].before == nest.price("job.toml", command).report.iteration_s


@pytest.mark.parametrize("stack", ["megatron-core-2024", "megatron-core-2026"])
def test_a_log_of_a_scenario_has_its_stack_and_fabric(stack, job):
    scenario = job(
        stack=stack, override={"fabric.clos.oversubscription": [4.0], "fabric.clos.radix": 16}
    )
    Path("run.log").write_text(text(megatron()))
    (fitted,) = nest.calibrate(["run.log"], "mine", on=scenario).calibration.runs
    priced = nest.price(scenario, f"{COMMAND} --overlap-grad-reduce")
    assert (fitted.row.run.stack, fitted.before) == (stack, priced.report.iteration_s)
    rails = nest.calibrate(["run.log"], "mine", accelerator="H100").calibration.runs[0]
    assert rails.before < fitted.before
