"""The program on a case priced by hand, and what its answers promise."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from published_tiny import tiny

from nest_core.paper.published import SolvedStage, parse_instance, solve

# By hand, for `tiny`. Across level 1 a transfer of c bytes takes 2 (c / 10 + 1).
# One stage: load (1 + 3 + 5) + (2 + 4 + 6) = 21, memory 2 * 60 + 600 = 720.
#   One replica: 21 * 4 = 84. Two: 21 * 2 = 42, and 60 bytes synchronised in
#   (0.5 + 60 / 20) + 2 (1 + 60 / 10) = 17.5, together 59.5.
# Two stages [-1 | 0 1]: the last waits 2 (40 / 10 + 1) = 10 for its input, then runs 8; its
#   backward takes 10: load 28, memory 2 * 50 + 500 = 600. The first runs 1, again 2, waits
#   until 10 for its gradient, then 2: 13, memory 2 * 10 + 100. 28 * (4 + 1) = 140.
# Two stages [-1 0 | 1]: the last waits 18, runs 5 and 6: 29, memory 360. The first 4, 6
#   again, waits until 18, then 4 and 2: 28, memory 360. 29 * 5 = 145.
BY_HAND = [
    (1000, 59.5, 2, [(0, 3, 21, 720)]),
    (719, 140, 1, [(0, 1, 13, 120), (1, 3, 28, 600)]),
    (599, 145, 1, [(0, 2, 28, 360), (2, 3, 29, 360)]),
]


@pytest.mark.parametrize(("memory", "time", "degree", "stages"), BY_HAND)
def test_optimum_is_the_one_found_by_hand(
    memory: int, time: float, degree: int, stages: list[tuple[int, int, float, float]]
) -> None:
    solution = solve(parse_instance(tiny(maxMemoryPerDevice=memory)))
    assert solution.feasible
    assert solution.reason is None
    assert solution.time_per_batch == pytest.approx(time, rel=1e-12)
    assert solution.throughput == pytest.approx(4096 / time, rel=1e-12)
    assert (solution.data_parallel, solution.tensor_parallel) == (degree, 1)
    assert solution.stages == tuple(
        SolvedStage(first, last, 1, None if first == 0 else 1, load, need)
        for first, last, load, need in stages
    )


def test_memory_met_exactly_suffices() -> None:
    assert solve(parse_instance(tiny(maxMemoryPerDevice=360))).feasible


def test_infeasible_says_what_memory_the_least_demanding_placement_needs() -> None:
    solution = solve(parse_instance(tiny(maxMemoryPerDevice=300)))
    assert not solution.feasible
    assert solution.reason == (
        "Memory: the least demanding placement (tensor width 1, 2 stages) needs 360 B on its "
        "fullest device, 60 B more than the 300 B there are."
    )
    assert (solution.time_per_batch, solution.throughput, solution.stages) == (None, None, ())


def test_infeasible_says_how_many_devices_a_stage_takes() -> None:
    solution = solve(parse_instance(tiny(ep_degree=2, cp_degree=3)))
    assert not solution.feasible
    assert solution.reason == (
        "Devices: one stage takes at least 6 (tensor width times ep_degree times cp_degree), "
        "but there are 2."
    )


def test_adam_needs_six_more_bytes_per_byte_of_parameters() -> None:
    sgd = solve(parse_instance(tiny()))
    adam = solve(parse_instance(tiny(optimizerAlgorithm="Adam", maxMemoryPerDevice=2000)))
    assert adam.stages[0].memory_bytes - sgd.stages[0].memory_bytes == 6 * 60
    assert adam.time_per_batch == sgd.time_per_batch


def test_without_recomputation_activations_are_stashed() -> None:
    document = tiny(activationRecomputation=False, maxMemoryPerDevice=719)
    first, last = solve(parse_instance(document)).stages
    assert (first.memory_bytes, last.memory_bytes) == (2 * 10 + 100 + 100, 600)
    assert (first.load, last.load) == (1 + 10 + 2, 28)


def test_transfers_do_not_gain_from_a_faster_outer_level_but_synchronisation_does() -> None:
    faster = tiny(bws=[20, 40])
    # 42 + (0.5 + 60 / 20) + 2 (1 + 60 / 40) with the level as given ...
    assert solve(parse_instance(faster)).time_per_batch == pytest.approx(50.5, rel=1e-12)
    # ... and [-1 0 | 1] with 2 (80 / 20 + 1) + 5 + 6, by the inner level's bandwidth.
    faster["maxMemoryPerDevice"] = 600
    assert solve(parse_instance(faster)).stages[-1].load == pytest.approx(21, rel=1e-12)


def test_a_tie_found_later_wins_with_fewer_stages() -> None:
    # Two devices either way: two stages of load 10 for two slots, or, twice as wide, one
    # stage of load 20 for one.
    kind = {"optimalLatencyFw": 10, "optimalLatencyBw": 0, "parameterSize": 0}
    document = tiny(latency_per_level=[0, 0], mbsInBatch=1)
    for width, activations in ((1, 600), (2, 400)):
        document["nodes"][str(width)] = [
            {"id": layer, "activationSize": activations, **kind} for layer in (0, 1)
        ]
        document["edges"][str(width)] = [{"sourceId": 0, "destId": 1, "communicationCost": 0}]
    for memory, width, stages in ((799, 1, 2), (800, 2, 1)):
        solution = solve(parse_instance({**document, "maxMemoryPerDevice": memory}))
        assert (solution.tensor_parallel, len(solution.stages)) == (width, stages)
        assert (solution.time_per_batch, solution.devices_used) == (20, 2)


def test_answers_are_plain_json_and_repeatable() -> None:
    instance = parse_instance(tiny(maxMemoryPerDevice=719))
    answers = [solve(instance).to_json() for _ in range(2)]
    for answer in answers:
        assert answer.pop("solve_seconds") >= 0
    assert json.dumps(answers[0]) == json.dumps(answers[1])
    assert set(answers[0]) >= {
        "feasible",
        "time_per_batch",
        "throughput",
        "data_parallel",
        "tensor_parallel",
        "stages",
        "reason",
    }
    assert answers[0]["stages"] == [
        {"layers": [0, 1], "devices": 1, "level_to_producer": None, "load": 13.0,
         "memory_bytes": 120.0},
        {"layers": [1, 3], "devices": 1, "level_to_producer": 1, "load": 28.0,
         "memory_bytes": 600.0},
    ]  # fmt: skip


def test_an_infeasible_answer_is_plain_json_too() -> None:
    answer = solve(parse_instance(tiny(maxMemoryPerDevice=300))).to_json()
    assert json.loads(json.dumps(answer)) == answer
    assert (answer["feasible"], answer["stages"], answer["data_parallel"]) == (False, [], None)


@pytest.mark.check
def test_the_largest_admitted_instance_is_solved_in_seconds() -> None:
    layers = 2000
    document = tiny(
        maxDevices=2**20,
        bws=[900.0, 100.0, 25.0],
        latency_per_level=[0.1, 0.2, 0.3],
        devices_per_level=[8, 4, 2**15],
        maxMemoryPerDevice=10**5,
        mbsInBatch=10**6,
    )
    kind = document["nodes"]["1"][1]
    document["nodes"]["1"] = [{**kind, "id": layer - 1} for layer in range(layers)]
    document["edges"]["1"] = [
        {"sourceId": layer - 1, "destId": layer, "communicationCost": 80}
        for layer in range(layers - 1)
    ]
    solution = solve(parse_instance(document))
    assert solution.feasible
    assert solution.stages[-1].last == layers
    assert all(stage.memory_bytes <= 10**5 for stage in solution.stages)
    assert solution.solve_seconds < 20


def test_the_package_needs_numpy_and_nothing_heavier() -> None:
    script = "import sys, nest_core.paper.published; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"pandas", "networkx", "scipy", "numba", "pydantic", "plotly", "streamlit", "torch"}
    assert not heavy & set(loaded)
