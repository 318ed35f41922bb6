"""How the planner's cost grows: with devices, layers, experts, and the axes that are searched.

Warm searches, the best of three, each proven, in seconds of the processor; writes
``docs/images/planner-growth.svg`` and prints the numbers, with the exponent of every curve beside
that of a limit: the seconds that one bound of eight bytes for every outer point takes to be read
once, at the rate at which this machine adds up a large array. No search that looks at each point
once is faster. ``python benchmarks/planner_growth.py [--quick]``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from growth_picture import Curve, exponent, growth_svg

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


BOUND_BYTES = 8
LONG_S = 3.0
"""A search that takes longer is not made again."""


def seconds(scenario: ScenarioValues) -> tuple[float, int]:
    """The best of three warm searches, and how many points they cover."""
    problem = scenario.problem()
    certificate = search(problem, scenario.space).certificate
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        certificate = search(problem, scenario.space).certificate
        best = min(best, time.process_time() - began)
        if not certificate.proven:
            raise SystemExit(f"{scenario.name}: not proven")
        if best > LONG_S:
            break
    return best, certificate.points


def bytes_per_s() -> float:
    """The rate at which an array of 256 MB is added up, the best of five."""
    array, best = np.ones(2**25), float("inf")
    for _ in range(5):
        began = time.process_time()
        array.sum()
        best = min(best, time.process_time() - began)
    return array.nbytes / best


def by_devices(quick: bool) -> Curve:
    """Llama 3 70B on ever larger clusters, all axes."""
    sizes = [64, 1024, 16384] if quick else [2**power for power in range(6, 18)]
    points = []
    for devices in sizes:
        batch = max(2048, devices // 8)
        sets = [
            "search={}",
            f"fabric.clos.devices={devices}",
            f"workload.global_batch_sequences={batch}",
            "workload.model='llama3-70b'",
            *FABRIC,
        ]
        points.append((devices, *seconds(load_scenario("llama3.1-405b-8192-h100", sets))))
    return Curve("devices", "Llama 3 70B, all axes", tuple(points))


def by_layers(quick: bool) -> Curve:
    """70B with more and more blocks on 1,024 devices, all axes."""
    points = []
    for blocks in (20, 80) if quick else (10, 20, 40, 80, 160, 320, 640):
        sets = [f"workload.model.blocks={blocks}", "accelerator.memory_GiB=640"]
        points.append((blocks, *seconds(load_scenario("llama3-70b-1024-h100", sets))))
    return Curve("blocks", "Llama 3 70B's blocks, 1,024 H100, all axes", tuple(points))


def by_experts(quick: bool) -> Curve:
    """Mixtral 8x7B with more and more experts on 64 devices, all axes."""
    points = []
    for experts in (8, 32) if quick else (2, 4, 8, 16, 32, 64, 128):
        sets = [
            "search={}",
            "workload.model='mixtral-8x7b'",
            f"workload.model.experts={experts}",
            "accelerator.memory_GiB=640",
        ]
        points.append((experts, *seconds(load_scenario("llama2-7b-64-h100", sets))))
    return Curve("experts", "Mixtral 8x7B's experts, 64 H100, all axes", tuple(points))


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
    curves = [by_devices(quick), by_layers(quick), by_experts(quick), by_axes()]
    rate = bytes_per_s()
    read_s = BOUND_BYTES / rate
    numbers = {
        curve.quantity: {
            "points": curve.points,
            "exponent": exponent([(size, took) for size, took, _ in curve.points]),
            "of the limit": exponent(
                [(size, covered * read_s) for size, _, covered in curve.points]
            ),
        }
        for curve in curves
    }
    if not quick:
        (IMAGES / "planner-growth.svg").write_text(growth_svg(curves, read_s), encoding="utf-8")
    print(json.dumps({"GB/s": rate / 1e9, **numbers}, indent=1))


if __name__ == "__main__":
    main()
