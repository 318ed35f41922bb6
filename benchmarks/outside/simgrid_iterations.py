"""Our replays of iterations beside SimGrid's times for the same tasks and the same messages.

Plans on small fabrics whose messages each take one way, followed device by device. What a call's
phases wait before they send is the same on both sides; SimGrid shares the links.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.outside.simgrid import NEAR, TOOL
from benchmarks.outside.tool import BUILD, Row
from benchmarks.validation.replay.agreement import OVERLAPS, engine_input
from nest_core.costs import Plan, Problem
from nest_core.costs.parse import read_plan
from nest_core.costs.software import LINKS_ALONE
from nest_core.network import FloatArray
from nest_core.scenario import load_scenario
from nest_core.simulator.engine import Calls, Tasks

__all__ = ["Played", "asked", "iterations", "played", "rows"]

FABRIC = (
    "fabric={{kind='hierarchical', name='nodes', level=["
    "{{name='node', group_size={inside}, bandwidth_GBps=450.0, latency_us=0.5, "
    "uplink_per='device'}}, "
    "{{name='row', group_size={nodes}, bandwidth_GBps=50.0, latency_us=2.0, "
    "uplink_per='{uplink}'}}]}}"
)
PLANS = (
    (8, 1, "device", "llama2-7b", 16, "dp=4,tp=2,zero=1"),
    (4, 4, "device", "llama2-7b", 16, "dp=2,tp=2,pp=4"),
    (4, 4, "device", "llama2-7b", 16, "dp=4,tp=4,zero=3"),
    (8, 4, "device", "llama2-7b", 32, "dp=2,tp=4,pp=4,schedule=interleaved,interleave=2"),
    (8, 4, "device", "mixtral-8x7b", 32, "dp=4,cp=2,pp=4,ep=4,zero=1"),
    (8, 8, "device", "llama2-7b", 64, "dp=8,tp=2,pp=4,zero=1"),
    (8, 8, "device", "llama2-7b", 64, "dp=4,cp=2,tp=2,pp=4,schedule=zb_h1"),
    (4, 4, "child", "llama2-7b", 16, "dp=4,tp=2,pp=2,zero=1"),
    (8, 4, "child", "llama2-7b", 32, "dp=16,tp=2,zero=3"),
    (8, 4, "child", "mixtral-8x7b", 32, "dp=4,cp=2,pp=4,ep=4,zero=1"),
)
"""Devices of a node, nodes, whose uplinks are, model, batch and plan."""


@dataclass(frozen=True, slots=True)
class Played:
    """An iteration that we played, and what SimGrid is asked."""

    name: str
    ours_s: float
    case: dict[str, Any]


def iterations() -> Iterator[tuple[str, Problem, Plan]]:
    """Yield names, problems and plans."""
    for inside, nodes, uplink, model, batch, text in PLANS:
        for name, overlap in OVERLAPS.items():
            problem, plan = posed(inside, nodes, model, batch, text, uplink)
            yield (
                f"{text}, {inside * nodes} devices, an uplink per {uplink}, {name}",
                replace(problem, overlap=overlap),
                plan,
            )


def posed(
    inside: int, nodes: int, model: str, batch: int, text: str, uplink: str = "device"
) -> tuple[Problem, Plan]:
    """Return a plan of a model on nodes with an uplink per device, or one; links alone bound it."""
    values = load_scenario(
        "llama2-7b-64-h100",
        [
            FABRIC.format(inside=inside, nodes=nodes, uplink=uplink),
            f"workload.model='{model}'",
            f"workload.global_batch_sequences={batch}",
        ],
    )
    problem = replace(values.problem(), software=LINKS_ALONE)
    return problem, read_plan(text, problem.layers, problem.network.devices)


def played(name: str, problem: Problem, plan: Plan) -> Played:
    """Play an iteration device by device."""
    result, (tasks, calls, capacity_Bps, _) = engine_input(problem, plan, is_whole=True)
    return Played(name, result.seconds, asked(tasks, calls, capacity_Bps))


def asked(tasks: Tasks, calls: Calls, capacity_Bps: FloatArray) -> dict[str, Any]:
    """Return tasks and messages for SimGrid.

    Raises
    ------
    ValueError
        If a flow spreads over several ways, which a message does not, or takes more of a link than
        it sends over it.
    """
    if not np.allclose(calls.weight, 1.0, rtol=1e-12):
        raise ValueError("every flow must take one way at the full rate of its links")
    routes: dict[tuple[int, ...], int] = {}
    route_of = []
    for n in range(len(calls.volume)):
        links = calls.link[calls.first_crossing[n] : calls.first_crossing[n + 1]]
        if calls.most_Bps[n] < capacity_Bps[links].min(initial=np.inf):
            raise ValueError("every flow must take one way at the full rate of its links")
        route_of.append(routes.setdefault(tuple(links.tolist()), len(routes)))
    phases = [
        {
            "latency_s": float(calls.latency_s[k]),
            "flows": [
                (route_of[n], float(calls.volume[n]))
                for n in range(calls.first_flow[k], calls.first_flow[k + 1])
                if calls.volume[n] > 0
            ],
        }
        for k in range(len(calls.latency_s))
    ]
    first = calls.first_phase.tolist()
    columns = (tasks.seconds, tasks.call, tasks.size, tasks.times)
    after = np.split(tasks.after, tasks.first_after[1:-1])
    names = ("seconds", "call", "size", "times", "after")
    rows = zip(*(column.tolist() for column in columns), (of.tolist() for of in after), strict=True)
    return {
        "links_Bps": capacity_Bps.tolist(),
        "routes": list(routes),
        "calls": [phases[i:j] for i, j in itertools.pairwise(first)],
        "tasks": [dict(zip(names, row, strict=True)) for row in rows],
    }


def answers(cases: list[dict[str, Any]]) -> list[tuple[float, float, int]]:
    """Return SimGrid's seconds of every iteration, what it took for them, and messages."""
    folder = BUILD / "simgrid"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "iterations.json").write_text(json.dumps(cases))
    TOOL.run_python("3.13", "simgrid_iterations.py", folder)
    read: list[tuple[float, float, int]] = json.loads(
        (folder / "iterations_answers.json").read_text()
    )
    return read


def rows() -> list[Row]:
    """Return how many iterations are near."""
    ours = [played(*iteration) for iteration in iterations()]
    errors = {
        one.name: one.ours_s / theirs - 1.0
        for one, (theirs, _, _) in zip(ours, answers([one.case for one in ours]), strict=True)
    }
    worst = max(errors, key=lambda name: abs(errors[name]))
    near = sum(abs(error) <= NEAR for error in errors.values())
    remark = f"largest {errors[worst]:+.2%} ({worst})"
    what = f"iterations event by event: times within {NEAR:.0%}"
    return [Row("SimGrid", TOOL.version(), what, len(errors), near, remark)]
