"""How the planner's cost grows: with devices, with layers, with the axes that are searched.

Warm searches of Llama 3.1 models, the best of three, each proven; writes
``docs/images/planner-growth.svg`` and the numbers beside it. Ratios within one run are what
counts. ``python benchmarks/planner_growth.py [--quick]``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from growth_picture import Curve, growth_svg

from nest_core.planner import search
from nest_core.scenario import ScenarioValues, load_scenario

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
FABRIC = ["fabric.clos.radix=128", "search.time_limit_s=600"]
PINS = {
    "cp": "1",
    "ep": "1",
    "schedule": '"1f1b"',
    "zero": "1",
    "sp": "true",
    "recompute": '"none"',
    "micro_batch_sequences": "1",
    "order": '["tp","cp","dp","pp"]',
    "tp": "[2,4,8]",
}
"""What is left open at first: dp, pp, and every cut."""

AXES = ("tp", "micro_batch_sequences", "recompute", "sp", "zero", "order", "schedule", "cp")


def seconds(scenario: ScenarioValues) -> tuple[float, int]:
    """The best of three warm searches, and how many points they cover."""
    problem = scenario.problem()
    found = search(problem, scenario.space)
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        result = search(problem, scenario.space)
        best = min(best, time.perf_counter() - began)
        if not result.certificate.proven:
            raise SystemExit(f"{scenario.name}: not proven")
    return best, found.certificate.points


def by_devices(quick: bool) -> Curve:
    """405B on ever larger clusters, all axes."""
    sizes = (512, 2048, 8192) if quick else (512, 1024, 2048, 4096, 8192, 16384, 65536, 131072)
    points = []
    for devices in sizes:
        batch = max(2048, devices // 8)
        sets = [
            "search={}",
            f"fabric.clos.devices={devices}",
            f"workload.global_batch_sequences={batch}",
            *FABRIC,
        ]
        points.append((devices, *seconds(load_scenario("llama3.1-405b-8192-h100", sets))))
    return Curve("devices", "Llama 3.1 405B, all axes", tuple(points))


def by_layers(quick: bool) -> Curve:
    """70B with more and more blocks on 1,024 devices, all axes."""
    points = []
    for blocks in (20, 80) if quick else (10, 20, 40, 80, 160, 320, 640):
        sets = [f"workload.model.blocks={blocks}", "accelerator.memory_GiB=640"]
        points.append((blocks, *seconds(load_scenario("llama3-70b-1024-h100", sets))))
    return Curve("blocks", "Llama 3 70B's blocks, 1,024 H100, all axes", tuple(points))


def by_axes() -> Curve:
    """70B on 1,024 devices, one more axis at a time."""
    pins = dict(PINS)
    points = []
    for number in range(len(AXES) + 1):
        sets = [f"search.{key}={value}" for key, value in pins.items()]
        points.append((4 + number, *seconds(load_scenario("llama3-70b-1024-h100", sets))))
        if number < len(AXES):
            pins.pop(AXES[number])
    return Curve("axes searched", "Llama 3 70B, 1,024 H100", tuple(points))


def main() -> None:
    """Measure, write, print."""
    quick = "--quick" in sys.argv
    curves = [by_devices(quick), by_layers(quick), by_axes()]
    numbers = {curve.quantity: [list(point) for point in curve.points] for curve in curves}
    if not quick:
        (IMAGES / "planner-growth.svg").write_text(growth_svg(curves), encoding="utf-8")
    print(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
