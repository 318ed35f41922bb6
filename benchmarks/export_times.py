"""How long exports of a plan of 1,024 devices take, in two versions: ``REF`` and the working tree.

``python benchmarks/export_times.py [REF]`` copies both as `benchmarks.compare` does and lets them
export the same priced plans to every target in turn, `TIMES` times; printed are the fastest times
in milliseconds. One plan is taken by all targets, the other is a pipeline that some refuse.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from compare import copies

TIMES = 3
PROGRAM = """
import json, sys, time
from nest_core.api.price import given_plan
from nest_core.costs import price
from nest_core.interop.exporters import TARGETS, ExportRefused, export_plan
from nest_core.scenario import load_scenario

values = load_scenario("llama3-70b-1024-h100", ['search.device_order="natural"'])
times = {}
for name, fields in json.loads(sys.argv[1]).items():
    plan = given_plan(values, values.problem(), fields).plan
    report = price(values.problem(plan.recompute), plan)
    for target in TARGETS:
        start = time.perf_counter()
        try:
            export_plan(target, values, report)
            outcome = ""
        except ExportRefused:
            outcome = " (refused)"
        times[f"{name}, {target}{outcome}"] = 1e3 * (time.perf_counter() - start)
print(json.dumps(times))
"""
PLANS = {
    "all take it": {"tp": 8, "dp": 128, "zero": 3, "recompute": "full"},
    "a pipeline": {"tp": 8, "sp": True, "pp": 8, "dp": 16, "zero": 1, "recompute": "full"},
}


def measured(tree: Path) -> dict[str, float]:
    """Return milliseconds by plan and target in one version."""
    words = [sys.executable, "-c", PROGRAM, json.dumps(PLANS)]
    done = subprocess.run(
        words,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        check=True,
    )
    times: dict[str, float] = json.loads(done.stdout)
    return times


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        trees = copies(sys.argv[1] if len(sys.argv) > 1 else "HEAD", Path(folder))
        runs: list[list[dict[str, float]]] = [[], []]
        for _ in range(TIMES):
            for tree, of_tree in zip(trees, runs, strict=True):
                of_tree.append(measured(tree))
    before, after = ({key: min(run[key] for run in of) for key in of[0]} for of in runs)
    print("| plan, target | before, ms | now, ms |\n|---|---|---|")
    for key in sorted({*before, *after}):
        print(
            f"| {key} | {before.get(key, float('nan')):.1f} | {after.get(key, float('nan')):.1f} |"
        )
    totals = [sum(times.values()) for times in (before, after)]
    print(f"| all | {totals[0]:.1f} | {totals[1]:.1f} |")


if __name__ == "__main__":
    main()
