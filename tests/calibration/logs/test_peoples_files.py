"""Logs and commands that people have: those of the shared folder, and three more of each kind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from printed_logs import dump, iteration, nemo, text

from nest_core.calibration.logs import RunFacts, read_run_log
from nest_core.calibration.logs.launch import launch_text
from nest_core.documents import content_blocks
from nest_studio.cli import run

INPUTS = Path(__file__).parents[4] / "shared" / "inputs"
LAUNCH = INPUTS / "launch.txt"


@pytest.fixture
def read(tmp_path):
    """``read(log, launch)``: the row of a file, or of lines."""

    def row(log, launch=""):
        if not isinstance(log, Path):
            (tmp_path / "run.log").write_text(log)
        elif not log.exists():
            pytest.skip(f"{log.name} is in ../shared/inputs, which this checkout lacks")
        path = log if isinstance(log, Path) else tmp_path / "run.log"
        return read_run_log(path, RunFacts(launch_text(launch), {"accelerator": "H100"}))

    return row


@pytest.mark.parametrize(
    ("log", "seconds"), [("mlm_ok.log", 5.1947), ("mlm_pdsh.log", 5.222), ("nemo_tqdm.log", 1.99)]
)
def test_the_shared_logs_are_read(read, log, seconds):
    """A failure: a log through pdsh "must state its sequence length", a bar was no log at all."""
    launch = str(LAUNCH) if log.startswith("nemo") else ""
    row = read(INPUTS / log, launch)
    run = row.run
    assert row.outcome.seconds == pytest.approx(seconds)
    assert (run.devices, run.batch, run.sequence, run.layers, run.hidden) == (
        16,
        64,
        4096,
        32,
        4096,
    )
    assert (run.point.tp, run.point.dp, run.point.zero, run.point.sp) == (2, 8, 1, True)


SMALL = {"world_size": 8, "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1}


@pytest.mark.parametrize("times", [4, 40, 400])
def test_a_command_may_be_of_any_length_and_stand_beside_its_log(read, times, tmp_path):
    """A failure: "File name too long", as a traceback."""
    lines = text([*dump(**SMALL), *(iteration(at, 5.5) for at in range(1, 12))])
    more = " ".join(f"--data-path shard-{number:03d}" for number in range(times))
    command = f"torchrun --nproc-per-node 8 pretrain_gpt.py {more} --tensor-model-parallel-size 2"
    expected = read(lines)
    (tmp_path / "launch.txt").write_text(command)
    assert read(lines, command) == read(lines, str(tmp_path / "launch.txt")) == expected


def test_a_long_command_reaches_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "run.log"
    log.write_text(text([*dump(**SMALL), *(iteration(at, 5.5) for at in range(1, 12))]))
    command = "torchrun --nproc-per-node 8 pretrain_gpt.py " + "--seq-length 8192 " * 300
    words = ["calibrate", str(log), "--launch", command, "--accelerator", "H100", "--name", "mine"]
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["measured_s"] == 5.5
    assert run(["calibrate", str(log), "--launch", "no/such.sh", "--name", "mine"]) == 2
    assert "no/such.sh must be a readable file" in capsys.readouterr().err


PLAN = "--seq-length 8192 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16"


@pytest.mark.parametrize(
    "command",
    [
        f"#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n# don't ask\nsource env.sh\n"
        f"srun python train.py {PLAN} --tensor-model-parallel-size 4",
        f'ssh node1 "cd /w && torchrun --nnodes 4 --nproc-per-node 8 train.py {PLAN} '
        f'--tensor-model-parallel-size 4"',
        f"sbatch -N 4 --wrap='srun --ntasks-per-node 8 python train.py {PLAN} "
        "--tensor-model-parallel-size 4'",
        "args:\n  - torchrun\n  - --nnodes=4\n  - --nproc-per-node=8\n  - train.py\n"
        + "".join(f"  - {word}\n" for word in PLAN.split())
        + '  - --tensor-model-parallel-size\n  - "4"\n',
        'command: ["torchrun", "--nnodes", "4", "--nproc-per-node", "8", "train.py", '
        + ", ".join(f'"{word}"' for word in PLAN.split())
        + ', "--tensor-model-parallel-size", "4"]',
        f"torchrun --nnodes $NNODES --nproc-per-node gpu train.py {PLAN} world_size=32 "
        "--tensor-model-parallel-size 4",
    ],
    ids=["sbatch", "ssh", "wrap", "yaml list", "flow list", "unset"],
)
def test_forms_of_commands(read, command):
    lines = nemo()
    run = read(text(lines), command).run
    assert (run.devices, run.point.tp, run.sequence, run.layers) == (32, 4, 8192, 32)


PLAIN = text([*dump(**SMALL), *(iteration(at, 5.5) for at in range(1, 12))])


def docker(log: str) -> str:
    """As its driver json-file keeps what a container prints (a text and its time in each line)."""
    stamp = {"stream": "stdout", "time": "2026-11-29T14:00:00.123456789Z"}
    return "".join(
        json.dumps({"log": line, **stamp}, separators=(",", ":")) + "\n"
        for line in re.findall(r"[^\n]*\n", log)
    )


def test_lines_that_docker_keeps_are_those_of_the_log(read):
    """A line of over 16 KiB is two of its; a progress bar writes over its own line."""
    log = 'tokens é "quoted" \\ back\rsecond of the line\n' + "x" * 40_000 + "\n" + PLAIN
    parts = docker(log).replace(
        "x" * 20_000, "x" * 20_000 + '","stream":"stdout","time":"T"}\n{"log":"', 1
    )
    assert read(parts) == read(PLAIN)
    lines = [b"".join(content_blocks(text.encode(), "x")).split() for text in (parts, log)]
    assert lines[0] == lines[1]
    assert b"\r" not in b"".join(content_blocks(parts.encode(), "x"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_powershell_tees_is_read(read, tmp_path, encoding, end):
    """``Tee-Object`` writes UTF-16 with its mark: it was "must be text, but is 'binary'"."""
    path = tmp_path / "tee.log"
    path.write_bytes(("\ufeff" + PLAIN.replace("\n", end)).encode(encoding))
    assert read(path).outcome == read(PLAIN).outcome


def test_a_log_of_another_cluster_is_a_sentence(tmp_path, capsys):
    """32 ranks are on no fabric of eight devices."""
    ran = text([*dump(**SMALL | {"world_size": 32}), *(iteration(at, 5.5) for at in range(1, 12))])
    path = tmp_path / "run.log"
    path.write_text(ran)
    given = ["--name", "x", "--on", "drawn-8", "--accelerator", "H100"]
    assert run(["calibrate", str(path), *given]) != 0
    sentence = "must be of a run on the 8 devices of --on, but is 'of one on 32'"
    assert sentence in capsys.readouterr().err


def bar(step: int, seconds: float) -> str:
    """NeMo's progress bar after a step of 64 samples."""
    return (
        f"Epoch 0: :   {step}%|▏         | {step}/500 [00:02<16:40,  2.01s/it, v_num=0,"
        f" reduced_train_loss=7.55, global_step={step}.0, consumed_samples={64 * step}.0,"
        f" train_step_timing in s={seconds:.2f}]"
    )


BARS = [bar(step, 9.0 if step == 1 else 2.5) for step in range(1, 13)]
NEMO = (
    "torchrun --nproc-per-node 8 --nnodes 2 pretrain.py --tensor-model-parallel-size 2"
    " --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --num-layers 32 --bf16"
    " --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --vocab-size 32000"
)


@pytest.mark.parametrize(
    "log",
    [
        "\r".join(BARS) + "\n",
        docker("\r".join(BARS) + "\n"),
        "".join(f"[pod/train-0/nemo] {line}\n" for line in BARS),
        "\r".join([*BARS[:6], "Validation DataLoader 0: : 100%|█| 32/32 [00:09<00:00]", *BARS[6:]])
        + "\n",
    ],
    ids=["plain", "docker", "kubectl", "validation"],
)
def test_bars_of_nemo(read, log):
    """Of twelve steps of 2.5 s the first takes 9: 16 ranks, 64 sequences of 4,096."""
    row = read(log, NEMO)
    assert row.outcome.seconds == pytest.approx(2.5)
    assert (row.run.devices, row.run.batch, row.run.sequence) == (16, 64, 4096)
