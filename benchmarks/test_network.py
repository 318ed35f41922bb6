"""From a specification to priced traffic, at three sizes; and the collapse of a drawn graph.

What is timed is all that a person waits for: specify, size, collapse, and price the traffic of
one plan (tensor-parallel groups of eight, data-parallel groups across the fabric, a pipeline of
sixteen stages). Peak memory is what Python and numpy allocate meanwhile.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from nest_core.fabric import Clos, Fabric, Torus
from nest_core.network import Network, collapse, collectives, transfers
from nest_core.network.clusters import graph_network

LIMIT_BYTES = 500e6

Specify = Callable[[int], Fabric]


def clos(kind: str) -> Specify:
    return lambda devices: Clos(
        kind, kind, devices, 8, 8, 50e9, 128, 3, (1.0, 4.0), 6e-7, 450e9, 5e-7  # type: ignore[arg-type]
    )  # fmt: skip


def torus(devices: int) -> Fabric:
    side = {1024: (16, 16, 4), 16384: (32, 32, 16), 131072: (64, 64, 32)}[devices]
    return Torus("torus", side, (True,) * 3, 50e9, 1e-6)


def priced(specify: Specify, devices: int) -> Network:
    """A plan's three classes of traffic on a fabric made from nothing."""
    network = collapse(specify(devices))
    every = np.arange(devices)
    collectives(network, every.reshape(-1, 8))
    collectives(network, every.reshape(-1, 8 * 16).T.copy())
    transfers(network, every[: -devices // 16], every[devices // 16 :])
    return network


@pytest.mark.parametrize("devices", [1024, 16384, 131072])
@pytest.mark.parametrize(
    "specify", [clos("leaf_spine"), clos("rail_optimised"), torus], ids=["tree", "rails", "torus"]
)
def test_specify_collapse_and_price(
    benchmark: BenchmarkFixture, specify: Specify, devices: int
) -> None:
    benchmark.pedantic(priced, (specify, devices), rounds=3, warmup_rounds=1)
    tracemalloc.start()
    priced(specify, devices)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    benchmark.extra_info["peak_MB"] = round(peak / 1e6, 1)
    assert peak < LIMIT_BYTES


def test_a_drawn_graph_of_1024_devices_collapses(benchmark: BenchmarkFixture) -> None:
    drawn = Clos("drawn", "leaf_spine", 1024, 8, 8, 50e9, 64, 2, (4.0,), 6e-7, 450e9, 5e-7)
    graph = drawn.explicit()
    found = benchmark.pedantic(graph_network, (graph,), rounds=2)
    assert found.devices == 1024
