"""How fast a long log is read, and in how much memory, in several builds side by side.

``python benchmarks/log_speed.py --build before=../main now=. [--megabytes 100] [--repeat 3]``
writes a log of every kind of line into a temporary folder and reads it with every build in turn,
each time in a process of its own. Printed in Markdown: MB (10^6 bytes) for each second of the
processor, best of the repeats, the most memory of the process above what it held once the reader
was imported, and the answer.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

READ = """
import resource, sys, time
from pathlib import Path
from nest_core.calibration.logs import RunFacts, read_run_log
from nest_core.documents import InputError
import nest_core.calibration.training.calibration
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * resource.getpagesize() / 1e6
command = (
    "--nnodes 4 --nproc-per-node 8 --tensor-model-parallel-size 4 --micro-batch-size 1 --bf16 "
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192 "
) if "nemo" in sys.argv[1] else ""
began = time.process_time()
given = RunFacts(command, {"accelerator": "H100"})
try:
    answer = f"{read_run_log(Path(sys.argv[1]), given).outcome.seconds:.2f} s"
except InputError as error:
    answer = "refused"
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(seconds, max(0.0, peak - before), answer, sep=";")
"""

ARGUMENTS = {
    "bf16": True,
    "data_parallel_size": 4,
    "ffn_hidden_size": 14336,
    "global_batch_size": 128,
    "hidden_size": 4096,
    "micro_batch_size": 1,
    "num_attention_heads": 32,
    "num_layers": 32,
    "pipeline_model_parallel_size": 2,
    "seq_length": 8192,
    "swiglu": True,
    "tensor_model_parallel_size": 4,
    "world_size": 32,
}


def arguments() -> Iterator[str]:
    """Yield Megatron-LM's dump."""
    yield "------------------------ arguments ------------------------"
    for key, value in ARGUMENTS.items():
        yield f"  {key} {'.' * (48 - len(key))} {value}"
    yield "-------------------- end of arguments ---------------------"


def iteration(number: int) -> str:
    """Return a line of Megatron-LM's last rank."""
    return (
        f" [2026-10-02 08:14:31.902113] iteration {number:8d}/ 9000000 | consumed samples: "
        f"{number * 128:12d} | elapsed time per iteration (ms): {5500 + number % 7:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): 511.4 | learning rate: 1.250000E-05 | global batch "
        f"size:   128 | lm loss: 6.120044E+00 | loss scale: 1.0 | grad norm: 1.902 | number of "
        f"skipped iterations:   0 | number of nan iterations:   0 |"
    )


def megatron() -> Iterator[str]:
    """Yield iterations alone."""
    yield from arguments()
    yield from map(iteration, count(1))


def noisy() -> Iterator[str]:
    """Yield an iteration among many lines of NCCL and of loaders."""
    yield from arguments()
    for number in count(1):
        for rank in range(20):
            yield f"node07:4012:{rank} [{rank % 8}] NCCL INFO Channel 03/0 : {rank}[1] -> 9[1]"
            yield f"[rank{rank}]: WARNING: retrying shard {number:06d} of the data: time out, 3/5"
        yield iteration(number)


def torchtitan() -> Iterator[str]:
    """Yield coloured lines of rates."""
    head = "[titan] 2026-10-05 11:02:45,318 - root - INFO - "
    for line in (
        "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=4, ep=1",
        "Model llama3 8B size: 8,030,261,248 total parameters",
        "Trainer is initialized with local batch size 16, global batch size 128, gradient "
        "accumulation steps 1, sequence length 8192, total steps 1000 (warmup 200)",
        "Training starts at step 1",
    ):
        yield head + line
    for number in count(1):
        yield (
            f"{head}\x1b[31mstep: {number:2}  \x1b[32mloss:  8.41207  \x1b[38;5;208m"
            f"grad_norm:  2.1931  \x1b[38;2;54;234;195mmemory: 58.12GiB(73.41%)  "
            f"\x1b[34mtps: {5950 + number % 9:,}  \x1b[36mtflops: 318.7  \x1b[35mmfu: 32.23%\x1b[0m"
        )


def nemo() -> Iterator[str]:
    """Yield the states of a progress bar, each over the one before."""
    for number in count(1):
        yield (
            f"Epoch 0: :   1%|▏         | {number}/9000000 [00:02<16:40, reduced_train_loss=7.21, "
            f"global_step={number}, consumed_samples={number * 128}, train_step_timing in s=5.50]\r"
        )


def unknown() -> Iterator[str]:
    """Yield lines of no printer that is known."""
    for number in count(1):
        yield f"INFO:trainer: epoch: {number // 1000} step {number} loss: 3.21 at 5.5 s/it"


KINDS = {
    "Megatron-LM, iterations alone": megatron,
    "Megatron-LM, one line of 41": noisy,
    "torchtitan, coloured": torchtitan,
    "NeMo's progress bar": nemo,
    "of no known printer": unknown,
}


def write(path: Path, lines: Iterator[str], size: int) -> None:
    """Write lines until a file has its size."""
    with path.open("w", newline="") as file:
        while file.tell() < size:
            file.write("".join(f"{next(lines)}\n" for _ in range(1000)))


def read(build: Path, log: Path) -> tuple[float, float, str]:
    """Return seconds, MB and the answer of a build."""
    done = subprocess.run(
        [str(build / ".venv/bin/python"), "-c", READ, str(log)],
        cwd=build,
        env=os.environ | {"PYTHONPATH": str(build)},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, megabytes, answer = done.stdout.strip().split(";")
    return float(seconds), float(megabytes), answer


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", nargs="+", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    builds = {name: Path(path).resolve() for name, path in (b.split("=", 1) for b in options.build)}
    print(
        "| log of",
        options.megabytes,
        "MB | " + " | ".join(f"{n}: MB/s | MB | answer" for n in builds),
        "|",
    )
    print("|---" * (1 + 3 * len(builds)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for kind, lines in KINDS.items():
            log = Path(folder) / f"{lines.__name__}.log"
            write(log, lines(), options.megabytes * 1_000_000)
            size = log.stat().st_size / 1e6
            cells = []
            for build in builds.values():
                runs = [read(build, log) for _ in range(options.repeat)]
                fastest, most = min(run[0] for run in runs), max(run[1] for run in runs)
                cells.append(f"{size / fastest:.0f} | {most:.0f} | {runs[0][2]}")
            print(f"| {kind} | {' | '.join(cells)} |", file=sys.stdout, flush=True)
            log.unlink()


if __name__ == "__main__":
    main()
