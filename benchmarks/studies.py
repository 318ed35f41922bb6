"""What studies at scale cost, and that nothing of them is lost.

``python benchmarks/studies.py killed`` runs 50,000 small points twice, once killed by -9 at a third
and at two thirds, and compares every row; ``large`` runs 500 points at 1,024 devices, and again;
``scaling`` runs a study in one process, in a pool of two and on a Dask cluster of two workers, and
follows what the workers hold. Every part has stores of its own in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

SMALL = Path(__file__).parents[1] / "tests" / "data" / "studies" / "tiny.toml"
"""A scenario whose plan takes milliseconds."""
MANY = """
schema = 1
name = "Fifty thousand points"
scenario = "small.toml"
metrics = ["tokens_per_s", "memory_GiB", "mfu"]

[[axes]]
parameter = "accelerator.memory_GiB"
range = { from = 20, to = 269.5, step = 0.5 }

[[axes]]
parameter = "batch"
range = { from = 16, to = 400, step = 16 }

[[axes]]
parameter = "zero"
values = [0, 1, 2, 3]
"""
LARGE = """
schema = 1
name = "Five hundred points at 1,024 devices"
scenario = "llama3-70b-1024-h100"

[[axes]]
parameter = "speed.nic"
values = [25.0, 40.0, 50.0, 75.0, 100.0]

[[axes]]
parameter = "oversubscription.0"
values = [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0]

[[axes]]
parameter = "batch"
range = { from = 512, to = 1664, step = 128 }
"""
SCALED = MANY.replace("to = 269.5, step = 0.5", "to = 269, step = 1")
WORKERS = 2


def main() -> None:
    """Run one part and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("killed", "large", "scaling"))
    part: Callable[[Path], dict[str, Any]] = globals()[parser.parse_args().part]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(SMALL, Path(folder) / "small.toml")
        print(json.dumps(part(Path(folder)), indent=1))


def killed(folder: Path) -> dict[str, Any]:
    """Fifty thousand points, uninterrupted and killed twice."""
    (folder / "study.toml").write_text(MANY)
    points = 500 * 25 * 4
    whole = _ended(_begun(folder, "whole"))
    left = []
    for share in (1 / 3, 2 / 3):
        running = _begun(folder, "killed")
        while _answers(folder, "killed") < share * points:
            time.sleep(0.2)
        running.send_signal(signal.SIGKILL)
        running.wait()
        left.append(_answers(folder, "killed"))
    last = _ended(_begun(folder, "killed"))
    one, other = (pd.read_parquet(folder / f"{name}.parquet") for name in ("whole", "killed"))
    return {
        "points": points,
        "whole_s": whole["wall_s"],
        "kept_at_kills": left,
        "reused_and_computed_after": [last["reused"], last["computed"]],
        "failed": whole["failed"] + last["failed"],
        "equal": one.equals(other),
    }


def large(folder: Path) -> dict[str, Any]:
    """Five hundred points at 1,024 devices, and the same again."""
    (folder / "study.toml").write_text(LARGE)
    first, again = (_timed(lambda: _ended(_begun(folder, "large"))) for _ in range(2))
    rows = pd.read_parquet(folder / "large.parquet")
    return {
        "first_s": first[0],
        "computed": first[1]["computed"],
        "again_s": again[0],
        "reused": again[1]["reused"],
        "status": rows["status"].value_counts().to_dict(),
        "largest_gap": float(rows["gap"].max()),
    }


def scaling(folder: Path) -> dict[str, Any]:
    """One process, two, and a cluster of two workers."""
    (folder / "study.toml").write_text(SCALED)
    seconds, held = {}, {}
    with _memory() as taken:
        seconds["one"] = _ended(_begun(folder, "one", "--workers", "1"))["wall_s"]
        held["one"] = taken()
    with _memory() as taken:
        seconds["two"] = _ended(_begun(folder, "two"))["wall_s"]
        held["two"] = taken()
    with _cluster() as address, _memory() as taken:
        seconds["dask"] = _ended(_begun(folder, "dask", "--dask", address))["wall_s"]
        held["dask"] = taken()
    frames = [pd.read_parquet(folder / f"{name}.parquet") for name in seconds]
    return {
        "points": len(frames[0]),
        "seconds": seconds,
        "efficiency": {
            name: seconds["one"] / (WORKERS * seconds[name]) for name in ("two", "dask")
        },
        "equal": all(frame.equals(frames[0]) for frame in frames),
        "GiB_per_worker_by_quarters": held,
    }


def _begun(folder: Path, name: str, *more: str) -> subprocess.Popen[str]:
    """The study of a folder, with the store and the result of a name."""
    own = os.environ | {"NEST_STUDIO_DATABASE": f"sqlite:///{folder}/{name}.sqlite"}
    workers = () if more else ("--workers", str(WORKERS))
    words = ["sweep", "study.toml", "--json", "--output", f"{name}.parquet", *workers, *more]
    return subprocess.Popen(
        [sys.executable, "-m", "nest_studio", *words],
        cwd=folder,
        env=own,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ended(running: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = running.communicate()
    if running.returncode:
        sys.exit(f"nest-studio sweep ended with {running.returncode}")
    found: dict[str, Any] = json.loads(said)
    return found


def _timed(work: Callable[[], dict[str, Any]]) -> tuple[float, dict[str, Any]]:
    began = time.monotonic()
    found = work()
    return time.monotonic() - began, found


def _answers(folder: Path, name: str) -> int:
    """How many answers a store has."""
    file = folder / f"{name}.sqlite"
    if not file.exists():
        return 0
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)
    try:
        return int(connection.execute("select count(*) from answers").fetchone()[0])
    except sqlite3.OperationalError:  # the table is not made yet
        return 0
    finally:
        connection.close()


@contextmanager
def _memory() -> Iterator[Callable[[], list[float]]]:
    """What the largest of this process's descendants holds, GiB: its most in every quarter."""
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            held = [_held(process) for process in psutil.Process().children(recursive=True)]
            seen.append(max(held, default=0.0))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield lambda: [round(max(part), 3) for part in _quarters(seen)]
    finally:
        over.set()
        watcher.join()


def _held(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / 2**30
    except psutil.NoSuchProcess:
        return 0.0


def _quarters(seen: Sequence[float]) -> list[Sequence[float]]:
    size = max(1, len(seen) // 4)
    return [seen[first : first + size] for first in range(0, 4 * size, size) if seen[first:]]


@contextmanager
def _cluster() -> Iterator[str]:
    """A Dask scheduler and its workers on loopback, of one thread each; the scheduler's address."""
    from distributed import LocalCluster

    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=WORKERS,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
    ) as cluster:
        yield cluster.scheduler_address


if __name__ == "__main__":
    main()
