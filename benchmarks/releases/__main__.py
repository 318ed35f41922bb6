"""Logs of a run as releases of frameworks print it, by their own code.

``python -m benchmarks.releases`` takes each release's wheel from PyPI into ``build/releases``,
without what it depends on, and runs the functions and format strings that print, taken out of its
sources: what they read (arguments, clocks, devices) are stand-ins whose figures are invented. The
run is Llama 3 8B on 32 devices, 128 sequences of 8,192 tokens, 5.5 s a step when it is warm. It
writes ``tests/data/releases/NAME.log``; nothing of a release but what it prints is kept.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.releases.megatron import bridge, megatron, nemo
from benchmarks.releases.others import deepspeed, mllog, torchtitan

TARGET = Path("tests/data/releases")
LOGS: Mapping[str, Callable[[], None]] = {
    **{
        f"torchtitan-{version}": partial(torchtitan, version)
        for version in ("0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.3.0")
    },
    **{
        f"torchtitan-{version}-pipeline": partial(
            torchtitan, version, pp=4, dp_shard=4, tp=2, microbatches=8
        )
        for version in ("0.1.0", "0.2.0", "0.3.0")
    },
    **{
        f"torchtitan-{version}-experts": partial(torchtitan, version, dp_shard=16, cp=2, tp=1, ep=8)
        for version in ("0.2.0", "0.3.0")
    },
    "megatron-0.19.2": partial(megatron, "0.19.2"),
    "bridge-0.6.2": partial(bridge, "0.6.2"),
    **{f"nemo-{version}": partial(nemo, version) for version in ("2.0.0", "2.4.0")},
    **{f"nemo-bar-{version}": partial(nemo, version, bar=True) for version in ("2.0.0", "2.4.0")},
    "deepspeed-0.19.8": partial(deepspeed, "0.19.8"),
    "mllog-4.1.68": partial(mllog, "4.1.68"),
}


def main() -> None:
    """Write the logs, each printed by a process of its own, or print one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("log", nargs="?", choices=LOGS)
    if log := parser.parse_args().log:
        LOGS[log]()
        return
    for name in LOGS:
        words = [sys.executable, "-m", "benchmarks.releases", name]
        printed = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
        ).stdout.decode()
        plain = re.sub(r'"file": "[^"]*"', '"file": "train.py"', printed)
        (TARGET / f"{name}.log").write_text(plain, newline="")
        print(name, len(plain))


if __name__ == "__main__":
    main()
