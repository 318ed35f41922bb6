"""Our joint search beside the search engine of hetu-galvatron 2.4.0, on the same cores.

``make outside`` (``python benchmarks/outside.py PYTHON``, whose environment has that package) plans
Llama 2 7B at 2,048 tokens, batch 512, on 64 devices of eight to a node with 80 GiB over the same
axes: tensor and pipeline degrees 1 to 8, what is left replicas, ZeRO-3 or none, recomputation or
none, every micro-batch, 1F1B. It reads profiles of A100s, we price H100s: what is compared is how
long the choice takes. The engine has one strategy for all layers; with ``--fine`` one for each,
which it is made for and we have not. Printed in Markdown: seconds on the clock and of the
processor, the best of three, plans, microseconds of the processor per plan. A plan has degrees, a
micro-batch and a strategy of its own; of each we cut the layers exactly, the engine by memory.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from nest_core.planner import search
from nest_core.scenario import load_scenario

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


def theirs(python: str, *options: str) -> dict[str, float]:
    """Return the same of the engine."""
    engine = Path(__file__).with_name("galvatron_engine.py")
    sizes = [str(NODES), str(BATCH), str(MEMORY_GIB)]
    with tempfile.TemporaryDirectory() as folder:
        words = [python, str(engine), *sizes, folder, *options]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", help="of the environment that has hetu-galvatron")
    parser.add_argument("--fine", action="store_true", help="a strategy for every layer: minutes")
    asked = parser.parse_args()
    ours()  # what it compiles is kept
    rows = {
        "ours": [ours() for _ in range(TIMES)],
        "hetu-galvatron": [theirs(asked.python) for _ in range(TIMES)],
    }
    if asked.fine:
        rows["hetu-galvatron, a strategy for every layer"] = [theirs(asked.python, "--fine")]
    print("| search | seconds | of the processor | plans | µs per plan |")
    print("|---|---|---|---|---|")
    for name, runs in rows.items():
        wall, cpu, plans = (min(run[key] for run in runs) for key in ("wall_s", "cpu_s", "plans"))
        print(f"| {name} | {wall:.3g} | {cpu:.3g} | {plans:,} | {1e6 * cpu / plans:.3g} |")


if __name__ == "__main__":
    main()
