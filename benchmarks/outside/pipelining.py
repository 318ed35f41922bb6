"""PyTorch's pipeline schedules beside ours: micro-batch rules, what is live, how long they idle.

A forward pass of a virtual stage takes one slot, its backward pass two, and half of it one. Ours
are `nest_core.costs.schedules`: passes in flight, and slots of an iteration of equal stages.
"""

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.outside.tool import Row, Tool, reasons
from nest_core.costs import REPLAYED, V_SHAPED, Point
from nest_core.costs.schedules import in_flight, iteration_seconds, replayed_seconds

TOOL = Tool("torch", "2.13.0", ("numpy",), torch=True)
NAMES = {
    "1F1B": "1f1b",
    "GPipe": "gpipe",
    "Interleaved1F1B": "interleaved",
    "InterleavedZeroBubble": "interleaved_zb",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipev",
}
PIPELINES, VIRTUAL = (2, 4, 8), (2, 3)
ROUNDS = ("interleaved", "interleaved_zb")


def cases() -> list[dict[str, Any]]:
    """Return every schedule with all numbers of micro-batches up to three rounds."""
    return [
        {"schedule": theirs, "pp": pp, "virtual": virtual, "m": m}
        for theirs, ours in NAMES.items()
        for pp in PIPELINES
        for virtual in (VIRTUAL if ours in ROUNDS else (2,) if ours in V_SHAPED else (1,))
        for m in range(1, 3 * pp + 1)
    ]


def ours(case: dict[str, Any]) -> tuple[list[int], float]:
    """Return passes in flight by rank, and slots."""
    pp, v = case["pp"], case["virtual"]
    schedule = NAMES[case["schedule"]]
    point = Point(1, False, 1, pp, 1, 0, ("tp", "cp", "dp", "pp"), schedule=schedule, interleave=v)
    loads, nothing = np.full(pp, 3.0 * v), np.zeros(pp)
    passes = [round(n * v) for n in in_flight(point, case["m"])]
    if schedule in REPLAYED:
        return passes, replayed_seconds(point, case["m"], np.ones((pp, v, 3)))
    return passes, iteration_seconds(point, case["m"], loads, nothing, nothing)


def _whole_rounds(case: dict[str, Any]) -> bool:
    """Whether our schedule takes as many micro-batches: interleaved ones want whole rounds."""
    return NAMES[case["schedule"]] not in ROUNDS or case["m"] % case["pp"] == 0


def rows() -> list[Row]:
    """Return a row for each schedule and question."""
    tried = cases()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(tried, file)
        file.flush()
        answers = json.loads(TOOL.run("pipeline_orders.py", Path(file.name)))
    groups = defaultdict(list)
    for case, answer in zip(tried, answers, strict=True):
        groups[case["schedule"]].append((case, answer))
    result = []
    for name, pairs in groups.items():
        taken = [(case, answer) for case, answer in pairs if not answer["refused"]]
        refused = [answer["refused"] for _, answer in pairs if answer["refused"]]
        why = f"refused: {reasons(refused)}" if refused else ""
        result.append(TOOL.row(f"{name}: micro-batches", len(pairs), len(taken), why))
        for place, what in enumerate(("passes in flight as ours", "slots as ours")):
            other = [
                f"pp {case['pp']}, {case['virtual']} virtual, m {case['m']}: {theirs} for {mine}"
                for case, answer in taken
                for theirs, mine in [((answer["live"], answer["slots"])[place], ours(case)[place])]
                if theirs != mine and _whole_rounds(case)
            ]
            counted = [case for case, _ in taken if _whole_rounds(case)]
            remark = f"{len(other)} differ: {'; '.join(other[:3])}" if other else ""
            row = TOOL.row(f"{name}: {what}", len(counted), len(counted) - len(other), remark)
            result.append(row)
    return result
