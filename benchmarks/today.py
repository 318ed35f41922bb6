"""What people plan today, timed in several builds side by side.

``python benchmarks/today.py --build 14c5d0e=../base main=. [--repeat 5] [--only WORDS]`` runs the
command lines below with every build's own ``nest-studio``, in turn, so that what else the machine
does falls on all of them alike. Printed in Markdown: medians of the seconds on the clock and of the
processor, the most memory, how the search ended, and how many times faster the last build is than
the first. Builds are checkouts with an environment in ``.venv``, beside one ``../shared``; each
runs every command once before, unmeasured, so that what it compiles is kept.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

CASES = {
    "64 devices": "plan llama2-7b-64-h100",
    "1,024 devices": "plan llama3-70b-1024-h100",
    "DeepSeek-V3 on 16,416 GB200": "plan {shared}/inputs/deepseek-v3-16416-gb200.toml",
    "768 A100 read from a file": "plan llama3-70b-1024-h100 --set accelerator='\"a100-80gb\"' "
    "--set fabric='\"{shared}/inputs/ib_768_a100.txt\"'",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One command line in one build."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    ended: str


def run(build: Path, command: str, timeout_s: float) -> Run:
    """Time a command line.

    Raises
    ------
    SystemExit
        If it fails.
    """
    words = [str(build / ".venv/bin/python"), "-m", "nest_studio", *shlex.split(command), "--json"]
    surroundings = os.environ | {"PYTHONPATH": str(build)}
    began = time.perf_counter()
    with subprocess.Popen(
        words, cwd=build, env=surroundings, stdout=subprocess.PIPE, text=True
    ) as process:
        late = Timer(timeout_s, process.kill)
        late.start()
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{build.name}: {command}: ended with {process.returncode}")
    wall_s = time.perf_counter() - began
    cpu_s = usage.ru_utime + usage.ru_stime
    return Run(wall_s, cpu_s, usage.ru_maxrss / 1024, _ended(json.loads(printed)))


def _ended(answer: dict) -> str:
    certificate = answer["certificate"]
    if certificate["proven"]:
        return "proven"
    return f"within {certificate['gap']:.1%}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", nargs="+", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the names of cases")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one command")
    arguments = parser.parse_args()
    builds = [entry.partition("=")[::2] for entry in arguments.build]
    folders = {name: Path(folder).resolve() for name, folder in builds}
    print("| work | build | seconds | of the processor | MiB | ended | times faster |")
    print("|---|---|---|---|---|---|---|")
    for case, template in CASES.items():
        if arguments.only not in case:
            continue
        runs: dict[str, list[Run]] = {name: [] for name in folders}
        for turn in range(arguments.repeat + 1):
            for name, folder in folders.items():
                command = template.format(shared=folder.parent / "shared")
                measured = run(folder, command, arguments.timeout)
                if turn:
                    runs[name].append(measured)
        first: float | None = None
        for name, several in runs.items():
            wall = statistics.median(entry.wall_s for entry in several)
            cpu = statistics.median(entry.cpu_s for entry in several)
            first = first or wall
            ended = " / ".join(sorted({entry.ended for entry in several}))
            row = (case, name, f"{wall:.2f}", f"{cpu:.2f}", f"{several[-1].peak_mib:,.0f}", ended)
            print("|", " | ".join(row), f"| {first / wall:.1f} |", flush=True)


if __name__ == "__main__":
    main()
