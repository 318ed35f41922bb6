"""Logs that releases print themselves: the run that they are of is read from each.

The lines in ``tests/data/releases`` were printed by the code of the releases that their names hold,
by ``python -m benchmarks.releases``, for one job: Llama 3 8B on 32 devices, 128 sequences of
8,192 tokens, 5.5 s a step.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nest_core.calibration.logs import RunFacts, read_run_log
from nest_core.documents.errors import InputError
from nest_core.documents.units import GB, GIB

FOLDER = Path(__file__).parents[2] / "data" / "releases"
NEMO = (
    "torchrun --nnodes 4 --nproc-per-node 8 train.py --tensor-model-parallel-size 4 --bf16 "
    "--pipeline-model-parallel-size 2 --micro-batch-size 1 --num-layers 32 --hidden-size 4096 "
    "--num-attention-heads 32 --ffn-hidden-size 14336 --seq-length 8192"
)
LAUNCH = {
    "nemo": NEMO,
    "bridge": "num_nodes=4 gpus_per_node=8",
    "deepspeed": "seq_length=8192",
    "mllog": "bf16=true",
}
"""What logs of a framework do not hold."""
RESERVED = (58.12 * GIB, "reserved")
PLANS = {
    "torchtitan-0.1.0": ((8, 4, 1, 1, 1, 16), RESERVED),
    "torchtitan-0.2.0": ((8, 4, 1, 1, 1, 16), RESERVED),
    "torchtitan-0.2.1": ((8, 4, 1, 1, 1, 16), RESERVED),
    "torchtitan-0.2.2": ((8, 4, 1, 1, 1, 16), RESERVED),
    "torchtitan-0.3.0": ((8, 4, 1, 1, 1, 16), RESERVED),
    "torchtitan-0.1.0-pipeline": ((4, 2, 4, 1, 1, 4), RESERVED),
    "torchtitan-0.2.0-pipeline": ((4, 2, 4, 1, 1, 4), RESERVED),
    "torchtitan-0.3.0-pipeline": ((4, 2, 4, 1, 1, 4), RESERVED),
    "torchtitan-0.2.0-experts": ((16, 1, 1, 2, 8, 8), RESERVED),
    "torchtitan-0.3.0-experts": ((16, 1, 1, 2, 8, 8), RESERVED),
    "megatron-0.19.2": ((4, 4, 2, 1, 1, 1), (61220.08 * GIB / 1024, "allocated")),
    "bridge-0.6.2": ((4, 4, 2, 1, 1, 1), (61.5 * GB, "allocated")),
    "nemo-2.0.0": ((4, 4, 2, 1, 1, 1), (None, "unstated")),
    "nemo-2.4.0": ((4, 4, 2, 1, 1, 1), (None, "unstated")),
    "nemo-bar-2.0.0": ((4, 4, 2, 1, 1, 1), (None, "unstated")),
    "nemo-bar-2.4.0": ((4, 4, 2, 1, 1, 1), (None, "unstated")),
    "deepspeed-0.19.8": ((32, 1, 1, 1, 1, 2), (52.07 * GIB, "allocated")),
    "mllog-4.1.68": ((16, 2, 1, 1, 1, 1), (None, "unstated")),
}
"""By log: dp, tp, pp, cp, ep and micro-batch; memory and how it was counted."""


def read(path: Path, launch: str = ""):
    """Return the row of a release's log."""
    framework = path.name.partition("-")[0]
    accelerator = {} if framework in ("torchtitan", "mllog") else {"accelerator": "H100"}
    model = "llama3-8b" if framework == "deepspeed" else ""
    return read_run_log(path, RunFacts(launch or LAUNCH.get(framework, ""), accelerator, model))


@pytest.mark.parametrize("log", PLANS)
def test_the_run_of_every_release_is_read(log):
    """A failure: batch and sequence were read from the log of none of torchtitan's releases."""
    row = read(FOLDER / f"{log}.log")
    run, point = row.run, row.run.point
    plan, (memory, kind) = PLANS[log]
    assert (run.devices, run.batch, run.sequence) == (32, 128, 8192)
    assert (run.layers, run.hidden, run.heads, run.ffn) == (32, 4096, 32, 14336)
    assert (point.dp, point.tp, point.pp, point.cp, point.ep, point.micro_batch) == plan
    assert row.outcome.seconds == pytest.approx(5.5, rel=1e-3)
    assert row.outcome.memory_kind == kind
    assert (row.outcome.memory_bytes or 0) == pytest.approx(memory or 0, rel=1e-4)
    assert run.precision == "bf16"


def test_every_log_of_a_release_has_its_answer():
    assert {path.stem for path in FOLDER.glob("*.log")} == PLANS.keys()


@pytest.mark.parametrize("log", [name for name in PLANS if name.startswith("torchtitan")])
def test_recomputation_is_none_where_a_whole_start_names_none(log, tmp_path):
    lines = (FOLDER / f"{log}.log").read_text().splitlines(keepends=True)
    path = tmp_path / "torchtitan.log"
    path.write_text("".join(line for line in lines if "activation checkpointing" not in line))
    assert read(FOLDER / f"{log}.log").run.recompute == "selective"
    assert read(path).run.recompute == "none"


@pytest.mark.parametrize("pair", [("0.1.0", "0.1.0-pipeline"), ("0.2.0", "0.2.0-experts")])
def test_two_runs_in_a_file_are_refused_for_what_differs(pair, tmp_path):
    path = tmp_path / "torchtitan.log"
    path.write_text("".join((FOLDER / f"torchtitan-{name}.log").read_text() for name in pair))
    with pytest.raises(
        InputError, match=r"must hold one run, but is '2 runs that differ in [a-z]+_"
    ):
        read(path)


def test_experts_beside_tensor_parallelism_in_the_old_mesh_are_asked_for(tmp_path):
    """What 0.2.0 prints leaves open whether experts take in the ranks of a tensor."""
    text = (FOLDER / "torchtitan-0.2.0-experts.log").read_text()
    path = tmp_path / "torchtitan.log"
    path.write_text(text.replace("'cp']", "'tp']"))
    with pytest.raises(InputError, match="must state its expert degree"):
        read(path)
    launch = "--parallelism.expert_parallel_degree=4 --parallelism.tensor_parallel_degree=2"
    assert read(path, launch).run.point.ep == 4


def test_lines_of_a_release_that_is_not_known_are_no_steps(tmp_path):
    path = tmp_path / "torchtitan.log"
    text = (FOLDER / "torchtitan-0.3.0.log").read_text()
    path.write_text(text.replace("tps:", "tokens/s:"))
    with pytest.raises(InputError, match="is 'without one, after the start of torchtitan'"):
        read(path)
