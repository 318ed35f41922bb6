"""What the published program costs: search time, whole process, peak memory.

Over the artifact's 55 instances where the shared data lie beside the repository, else over
the 25 of figure 5. Run with ``pytest benchmarks/test_published.py --benchmark-enable``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from nest_core.paper.published import PAPER_MODELS, Instance, paper_cells, read_instance, solve

_ROOT = Path(__file__).resolve().parent.parent
_SHARED = _ROOT.parent / "shared" / "data" / "nest_instances"

SEARCH_SECONDS = 0.1
PROCESS_SECONDS = 0.5
PEAK_BYTES = 300e6

# The peak is the whole process's, interpreter and numpy included; Linux counts it in KiB.
_CHILD = """
import json, resource, sys
from nest_core.paper.published import paper_cells, read_instance, solve
kind, name, index = sys.argv[1:]
instance = read_instance(name) if kind == "file" else paper_cells(name)[int(index)].instance
json.dumps(solve(instance).to_json())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@dataclass(frozen=True)
class Case:
    """An instance by file, or by model and position among its preset's cells."""

    kind: str
    name: str
    index: int = 0

    def instance(self) -> Instance:
        if self.kind == "file":
            return read_instance(self.name)
        return paper_cells(self.name)[self.index].instance

    def __str__(self) -> str:
        return Path(self.name).stem if self.kind == "file" else f"{self.name}-{self.index}"


def _cases() -> list[Case]:
    files = sorted(_SHARED.glob("*.json"))
    if files:
        return [Case("file", str(path)) for path in files]
    return [
        Case("preset", model, index)
        for model in PAPER_MODELS
        for index in range(len(paper_cells(model)))
    ]


CASES = _cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_search(benchmark: BenchmarkFixture, case: Case) -> None:
    instance = case.instance()
    solution = benchmark(solve, instance)
    benchmark.extra_info["feasible"] = solution.feasible
    benchmark.extra_info["layers"] = len(instance.layer_ids)
    if benchmark.stats is not None:  # None under --benchmark-disable
        assert benchmark.stats.stats.median < SEARCH_SECONDS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_process(benchmark: BenchmarkFixture, case: Case) -> None:
    """Start Python, import, read, solve, print."""
    command = [sys.executable, "-c", _CHILD, case.kind, case.name, str(case.index)]

    def run() -> tuple[float, float]:
        started = time.perf_counter()
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
        return time.perf_counter() - started, float(done.stdout)

    seconds, peak = benchmark.pedantic(run, rounds=3)
    benchmark.extra_info["peak_bytes"] = peak
    assert peak < PEAK_BYTES
    assert seconds < PROCESS_SECONDS
