"""Our joint search beside the search engine of hetu-galvatron, on the same cores.

Both plan Llama 2 7B at 2,048 tokens, batch 512, on 64 devices of eight to a node with 80 GiB over
the same axes: tensor and pipeline degrees 1 to 8, what is left replicas, ZeRO-3 or none,
recomputation or none, every micro-batch, 1F1B. It reads profiles of A100s, we price H100s: what is
compared is how long the choice takes. The engine has one strategy for all layers here (it can have
one for each, which it is made for and we have not). Seconds on the clock and of the processor, the
best of three, and microseconds of the processor per plan. A plan has degrees, a micro-batch and a
strategy of its own; of each we cut the layers exactly, the engine by memory.
"""

import json
import tempfile
import time

from benchmarks.outside.tool import Row, Tool
from nest_core.planner import search
from nest_core.scenario import load_scenario

TOOL = Tool("galvatron", "2.4.0", ("numpy", "scipy", "tqdm"), ("hetu-galvatron==2.4.0",))
NODES, BATCH, MEMORY_GIB, TIMES = 8, 512, 80, 3
SETS = [
    "workload.sequence_length_tokens=2048",
    f"workload.global_batch_sequences={BATCH}",
    "search={tp=[1,2,4,8], pp=[1,2,4,8], cp=1, ep=1, zero=[0,3], recompute=['none','full'], "
    "schedule=['1f1b'], device_order=['natural']}",
]


def ours() -> dict[str, float]:
    """Return seconds and plans of one warm search."""
    scenario = load_scenario("llama2-7b-64-h100", SETS)
    problem = scenario.problem()
    wall, cpu = time.perf_counter(), time.process_time()
    certificate = search(problem, scenario.space).certificate
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if not certificate.proven:
        raise SystemExit("not proven")
    return {"wall_s": wall, "cpu_s": cpu, "plans": certificate.points}


def theirs() -> dict[str, float]:
    """Return the same of the engine."""
    with tempfile.TemporaryDirectory() as folder:
        printed = TOOL.run("galvatron_engine.py", NODES, BATCH, MEMORY_GIB, folder)
    figures: dict[str, float] = json.loads(printed.splitlines()[-1])
    return figures


def rows() -> list[Row]:
    """Return how long both take."""
    TOOL.interpreter()
    ours()  # what it compiles is kept
    result = []
    for name, measure in (("ours", ours), ("its own", theirs)):
        runs = [measure() for _ in range(TIMES)]
        wall, cpu, plans = (min(run[key] for run in runs) for key in ("wall_s", "cpu_s", "plans"))
        remark = f"{wall:.3g} s, {cpu:.3g} of the processor: {1e6 * cpu / plans:.3g} µs per plan"
        result.append(TOOL.row(f"search for Llama 2 7B, {name}", int(plans), None, remark))
    return result
