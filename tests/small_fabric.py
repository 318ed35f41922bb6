"""A small job on a small spine-leaf fabric with thin uplinks, where everything can be tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nest_core.costs import Plan, Problem
from nest_core.costs.parse import read_plan
from nest_core.network import Network
from nest_core.scenario import Scenario, ScenarioValues, scenario_document

CLOS = {
    "devices": 16,
    "devices_per_node": 2,
    "nics_per_node": 2,
    "nic_bandwidth_GBps": 5.0,
    "radix": 8,
    "tiers": 2,
    "oversubscription": [2.0],
    "hop_latency_us": 1.0,
}
FABRIC: dict[str, Any] = {
    "schema": 1,
    "name": "small",
    "kind": "leaf_spine",
    "clos": CLOS,
    "intra_node": {"bandwidth_GBps": 100.0, "latency_us": 1.0},
}
"""Leaves of two nodes of two devices."""


def small(overrides: dict[str, Any] | None = None, **clos: Any) -> ScenarioValues:
    """BERT-large on the small fabric, other figures of `CLOS` as given."""
    document, _ = scenario_document("bert-large-64-v100")
    fabric = {**FABRIC, "clos": {**CLOS, **clos}}
    settings = {"workload.global_batch_sequences": 64, "search.micro_batch_sequences": 4}
    return Scenario({**document, "fabric": fabric}, {**settings, **(overrides or {})}).values


def job(
    values: ScenarioValues, network: Network, words: str, devices: list[int]
) -> tuple[Problem, Plan]:
    """Return a plan of some devices in the order of its ranks, and its problem."""
    problem = values.problem(network=network)
    plan = read_plan(words, problem.layers, len(devices))
    return problem, replace(plan, point=replace(plan.point, device_order=tuple(devices)))
