"""The program against every plan of 500 small instances, enumerated over concrete devices."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from published_oracle import Plan, all_plans

from nest_core.paper.published import parse_instance, solve

_SEEDS = 500
# Every machine of up to eight devices and three levels that is worth a look.
_MACHINES = (
    [8], [4, 2], [2, 4], [2, 2, 2], [1, 4, 2], [3, 2], [2, 3], [1, 8], [7], [1, 5], [2, 1, 3],
)  # fmt: skip


def random_document(seed: int) -> dict[str, Any]:
    """A small instance: tight or loose memory, with or without every feature of the model."""
    dice = random.Random(seed)
    machine = dice.choice(_MACHINES)
    devices = 1
    for children in machine:
        devices *= children
    layers = dice.choice([2, 4, 6, 6, 7, 7, 7])
    sizes = [dice.choice([1, 2, 3, 3, 40]) for _ in range(layers)]
    activations = [dice.choice([0, 5, 10, 60]) for _ in range(layers)]
    ids = [-1, *dice.sample(range(50), layers - 1)]
    pairs = [(ids[k], ids[k + 1]) for k in range(layers - 1)]
    if dice.random() < 0.4:
        pairs += [
            (ids[i], ids[j])
            for i in range(layers)
            for j in range(i + 2, layers)
            if dice.random() < 0.3
        ]
    traffic = dice.choice([2, 10, 60])
    edge_bytes = [dice.randint(0, traffic) for _ in pairs]
    scales = [dice.choice([0.1, 1.0, 1.0, 8.0]) for _ in range(layers)]
    compute = [(scale * dice.uniform(0, 6), scale * dice.uniform(0.1, 9)) for scale in scales]
    nodes, edges = {}, {}
    for width in dice.choice([[1], [2], [1, 2], [1, 2]]):
        gain = 1 if width == 1 else dice.uniform(1.0, 2.6)
        shrink = 1 if width == 1 else dice.choice([0.5, 0.9, 1.0])
        nodes[str(width)] = [
            {
                "id": ids[k],
                "optimalLatencyFw": compute[k][0] / gain,
                "optimalLatencyBw": compute[k][1] / gain,
                "parameterSize": int(sizes[k] * shrink),
                "activationSize": int(activations[k] * shrink),
            }
            for k in range(layers)
        ]
        edges[str(width)] = [
            {"sourceId": source, "destId": target, "communicationCost": size}
            for (source, target), size in zip(pairs, edge_bytes, strict=True)
        ]
        dice.shuffle(nodes[str(width)])
        dice.shuffle(edges[str(width)])
    optimizer = dice.choice(["SGD", "SGD", "SGD", "Adam"])
    demand = (8 if optimizer == "Adam" else 2) * sum(sizes) + sum(activations)
    return {
        "ep_degree": dice.choice([1, 1, 1, 1, 2]),
        "cp_degree": 1 if devices < 4 else dice.choice([1, 1, 1, 1, 2]),
        # Whole bytes, so that no verdict hangs on the order of a sum.
        "maxMemoryPerDevice": int(demand * dice.choice([0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 10.0]))
        + 1,
        "maxDevices": devices,
        "bws": [dice.uniform(1, 40) for _ in machine],
        "latency_per_level": [dice.uniform(0, 0.5) for _ in machine],
        "devices_per_level": machine,
        "mbsInBatch": float(dice.choice([1, 3, 5, 8, 13, 40])),
        "nodes": nodes,
        "edges": edges,
        "activationRecomputation": dice.random() < 0.75,
        "optimizerAlgorithm": optimizer,
    }


def traits(document: dict[str, Any], plan: Plan) -> list[str]:
    """Which choices of the model a plan makes use of."""
    lengths = [len(stage) for stage in plan.stages]
    found = {
        "tensor parallel": plan.width > 1,
        "data parallel": plan.degree > 1,
        "pipeline": len(plan.stages) > 1,
        "recomputation": document["activationRecomputation"] and len(plan.stages) > 1,
        "uneven cuts": max(lengths) - min(lengths) > 1,
        "outer level": any(level > 0 for level in plan.levels),
        "idle devices": len(plan.devices) < document["maxDevices"],
    }
    return [name for name, present in found.items() if present]


def test_program_finds_the_optimum_of_every_enumeration() -> None:
    seen: Counter[str] = Counter()
    feasible = 0
    for seed in range(_SEEDS):
        document = random_document(seed)
        best = min(all_plans(document), key=lambda plan: plan.time, default=None)
        solution = solve(parse_instance(document))
        if best is None:
            assert not solution.feasible, f"seed {seed}: found a plan that does not exist"
            assert solution.reason
            continue
        feasible += 1
        assert solution.time_per_batch == pytest.approx(best.time, rel=1e-9), f"seed {seed}"
        seen.update(traits(document, best))
    assert 0.5 * _SEEDS < feasible < _SEEDS  # both answers are exercised
    rare = {name: count for name, count in seen.items() if count < _SEEDS / 5}
    assert len(seen) == 7
    assert not rare, f"options too rarely in an optimum to be tested: {rare}"


def test_reported_stages_are_a_plan_of_that_price() -> None:
    for seed in range(_SEEDS):
        document = random_document(seed)
        instance = parse_instance(document)
        solution = solve(instance)
        if not solution.feasible:
            continue
        cut = tuple(instance.layer_ids[stage.first : stage.last] for stage in solution.stages)
        chosen = (solution.tensor_parallel, solution.data_parallel, cut)
        plans = all_plans(document)
        plan = next(
            (plan for plan in plans if (plan.width, plan.degree, plan.stages) == chosen), None
        )
        assert plan is not None, f"seed {seed}: {chosen} is no plan"
        assert plan.time == pytest.approx(solution.time_per_batch, rel=1e-9), f"seed {seed}"
        stages = solution.stages
        assert [stage.load for stage in stages] == pytest.approx(plan.loads, rel=1e-9)
        assert [stage.memory_bytes for stage in stages] == pytest.approx(plan.memory, rel=1e-9)
        assert [stage.level_to_producer for stage in stages] == [None, *plan.levels]
        assert solution.devices_used == len(plan.devices)


@pytest.mark.parametrize("seed", range(3, _SEEDS, 25))
def test_ties_go_to_the_fewest_devices_then_stages_then_width(seed: int) -> None:
    document = random_document(seed)
    # Equal figures at every width and one slot whatever the degree: many plans tie.
    first = next(iter(document["nodes"]))
    document["nodes"] = {"1": document["nodes"][first], "2": document["nodes"][first]}
    document["edges"] = {"1": document["edges"][first], "2": document["edges"][first]}
    document["mbsInBatch"] = 1
    solution = solve(parse_instance(document))
    plans = list(all_plans(document))
    if not plans:
        assert not solution.feasible
        return
    least = min(plan.time for plan in plans)
    expected = min(
        (len(plan.devices), len(plan.stages), plan.width)
        for plan in plans
        if plan.time <= least * (1 + 1e-12)
    )
    assert (solution.devices_used, len(solution.stages), solution.tensor_parallel) == expected
