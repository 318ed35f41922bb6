"""The planner's loops are compiled when the studio is installed, and anew when they changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from nest_core.documents.compiled import KERNELS
from nest_core.network import Phase, collapse, price_phases
from nest_core.scenario import load_fabric

BUILD = """
from nest_studio.jobs.kernels import build_kernels
build_kernels()
from nest_core.documents.compiled import KERNELS
print([kernel.__name__ for kernel in KERNELS if not kernel.overloads])
"""

PLAN = """
import json, sys
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event): pass
    def on_end(self, event):
        function = event.data["dispatcher"].py_func
        compiled.append((function.__module__, function.__name__, str(event.data["args"])))

event.register("numba:compile", Listener())
import nest_core as nest
for scenario, changes in json.loads(sys.argv[1]):
    nest.plan(nest.load(scenario, changes))
print(json.dumps(compiled))
"""

SMALL = "llama2-7b-64-h100"
FEW = {"workload.global_batch_sequences": 64}
SCENARIOS = (
    (SMALL, {}),
    ("llama2-7b-64-tpu-torus", {}),
    ("bert-large-64-v100", {}),
    ("gpt3-175b-64-h100", {"search.recompute": {"uniform": 2}}),
    ("mixtral-8x7b-256-tpuv4like", {"search.pp": [1, 2], "search.tp": [1, 2], "search.cp": 1}),
    (SMALL, {"fabric": "unequal-racks-88"}),
    (SMALL, {"fabric": "drawn-8"}),
    (SMALL, {"fabric": "dragonfly-1056", **FEW}),
    (SMALL, {"fabric": "rail-only-1024", **FEW}),
    (SMALL, {"search.schedule": "interleaved", "search.layouts": "uneven", "search.pp": 4}),
    (SMALL, {"search.schedule": ["zb_2p", "gpipe"]}),
    (SMALL, {"search.stage_strategies": "mixed", "search.pp": 2}),
    (SMALL, {"search.recompute": [{"block": 3}, {"modules": ["mlp"]}], "search.zero": 3}),
    (SMALL, {"search.zero_group": ["all", 8], "search.offload": ["none", {"activations": 0.5}]}),
)


def run(script: str, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )


@pytest.mark.check
def test_after_the_build_no_plan_compiles(tmp_path):
    """People saw the first page of a fresh install blank for 105 s, while it compiled."""
    first, again = run(BUILD, tmp_path), run(BUILD, tmp_path)
    assert first.stderr.startswith("Compiling the planner")
    assert first.stderr.count("\n") == 1
    assert first.stdout == "[]\n"
    assert again.stderr == ""
    assert json.loads(run(PLAN, tmp_path, json.dumps(SCENARIOS)).stdout) == []


def test_a_kernel_is_compiled_anew_when_what_it_reads_of_another_file_changed(tmp_path):
    """An upgrade that changed a callee alone left the callers as they were."""
    head = "from nest_core.documents.compiled import compiled\n"
    caller = """
        from callee import ADDED, doubled
        @compiled
        def result(number: int) -> int:
            return doubled(number) + ADDED
        print(result(5), *result.stats.cache_hits.values())
    """
    (tmp_path / "caller.py").write_text(head + textwrap.dedent(caller))

    def printed(factor: int, added: int) -> list[str]:
        callee = f"""
            ADDED = {added}
            @compiled
            def doubled(number: int) -> int:
                return {factor} * number
        """
        (tmp_path / "callee.py").write_text(head + textwrap.dedent(callee))
        script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import caller"
        return run(script, tmp_path / "cache").stdout.split()

    assert printed(2, 1) == ["11"]
    assert printed(2, 1) == ["11", "1"]
    # Of another length: Python keeps a module that was written within a second, if it is as long.
    assert printed(30, 1) == ["151"]
    assert printed(30, 400) == ["550"]


def test_a_reader_s_own_kernels_multiply_matrices(tmp_path):
    """nest_core had switched numba's linear algebra off for the whole process."""
    script = """
    import numba
    import numpy as np
    import nest_core.network.kernels

    @numba.njit
    def product(a, b):
        return a @ b

    print(product(np.eye(2), np.full((2, 2), 3.0)).sum())
    """
    assert run(textwrap.dedent(script), tmp_path).stdout.split() == ["12.0"]


def test_nowhere_to_keep_what_is_compiled_is_one_sentence(tmp_path):
    """A container whose file system is read-only showed numba's traceback."""
    (tmp_path / "file").touch()
    ended = subprocess.run(
        [sys.executable, "-m", "nest_studio", "plan", SMALL],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path / "file"),
            "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
        },
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("NUMBA_CACHE_DIR must name a folder that can be written")
    assert ended.stderr.count("\n") == 1


def test_flows_in_any_layout_run_the_same_programs():
    """A page compiled for seconds: whole or read-only steps, and ends side by side, were others."""
    link_map = collapse(load_fabric("h100-spine-leaf-64")).link_map
    ends = np.arange(32).reshape(16, 2) * 2

    def price(source, target, steps):
        flows = Phase(source, target, np.zeros(16, np.int64), np.ones(16), steps)
        return price_phases(link_map, [flows], 1).beta_s_per_byte

    plain = price(ends[:, 0].copy(), ends[:, 1].copy(), np.ones(16))
    programs = {kernel: len(kernel.signatures) for kernel in KERNELS}
    assert np.array_equal(price(*ends.T, np.broadcast_to(1, 16)), plain)
    assert {kernel: len(kernel.signatures) for kernel in KERNELS} == programs
