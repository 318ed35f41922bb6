"""Search times of the scenario presets under own costs, warm, and what they cost in memory.

Ratios within one run are what counts; machines are noisy. Run with ``make bench``.
"""

from __future__ import annotations

import tracemalloc

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from nest_core.api.answer import answer
from nest_core.documents.presets import preset_names
from nest_core.paper.cases import FIGURES, Cell
from nest_core.paper.own import own_scenario
from nest_core.planner import search
from nest_core.scenario import load_scenario

SCALED = [(name, None) for name in preset_names("scenarios")] + [
    ("gpt3-175b-512-a100", 1024),
    ("llama3-70b-1024-h100", 16384),
]
AXES = {
    "zero_group": ('search.zero_group=["all",8,32,64]',),
    "recompute": (
        'search.recompute=["none","selective","full",{modules=["mlp"]},{uniform=2},{block=4}]',
    ),
    "offload": (
        'search.offload=["none",{optimizer=1.0}]',
        "accelerator.host_bandwidth_GBps=55.0",
    ),
    "pad_batch": ("search.pad_batch=true",),
    "layouts": ('search.layouts="uneven"',),
    "schedule": (
        'search.schedule=["1f1b","interleaved","gpipe","zb_h1","zb_1p","zb_2p","interleaved_zb","zbv","dualpipev"]',
    ),
}
"""Axes that are closed, or narrower, by default."""

CELLS = sorted({cell for figure in FIGURES.values() for cell in figure.cells})


@pytest.mark.parametrize(("name", "devices"), SCALED)
def test_search(benchmark: BenchmarkFixture, name: str, devices: int | None) -> None:
    """Our plan alone: what a moved slider waits for."""
    sets = [] if devices is None else [f"fabric.clos.devices={devices}", "fabric.clos.tiers=3"]
    if devices is not None:
        sets.append("fabric.clos.oversubscription=[1.0,1.0]")
    scenario = load_scenario(name, sets)
    problem = scenario.problem()
    result = benchmark(search, problem, scenario.space)
    tracemalloc.start()
    search(problem, scenario.space)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    benchmark.extra_info.update(
        devices=problem.network.devices,
        points=result.certificate.points,
        solved=result.certificate.solved,
        peak_MB=round(peak / 1e6, 1),
    )


@pytest.mark.parametrize("axis", ["none", *AXES, "all"])
def test_further_axes(benchmark: BenchmarkFixture, axis: str) -> None:
    """The default scenario with one more axis open, and with all of them, for at most 30 s."""
    opened = {"none": (), "all": sum(AXES.values(), ()), **AXES}[axis]
    scenario = load_scenario("llama3-70b-1024-h100", list(opened))
    problem = scenario.problem()
    result = benchmark.pedantic(  # type: ignore[no-untyped-call]  # theirs
        search,
        (problem, scenario.space),
        {"time_limit_s": 30.0},
        rounds=2,
        warmup_rounds=1,
    )
    told = result.certificate
    benchmark.extra_info.update(points=told.points, solved=told.solved, gap=told.gap)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_paper_case(benchmark: BenchmarkFixture, cell: Cell) -> None:
    """Our plan under this project's costs for every case of the paper's throughput figures."""
    scenario = own_scenario(cell.setup, cell.model, cell.devices, cell.micro_batch)
    problem = scenario.problem()
    result = benchmark(search, problem, scenario.space)
    benchmark.extra_info.update(points=result.certificate.points, solved=result.certificate.solved)


def test_answer_with_baselines(benchmark: BenchmarkFixture) -> None:
    """The default scenario with its five baselines."""
    scenario = load_scenario("llama3-70b-1024-h100")
    benchmark(answer, scenario)
