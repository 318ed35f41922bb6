"""Fabrics of any shape are read and planned: what racks grew into, and what nobody would build."""

from __future__ import annotations

import networkx as nx
import pytest

import nest_core as nest
from nest_core.costs import price
from nest_core.planner import search

Row = tuple[str, str, float, int, str, str]


def hosts(sizes: list[int], nics: int) -> list[Row]:
    """Devices on a switch inside their host, and on its NICs in order."""
    rows: list[Row] = []
    for host, size in enumerate(sizes):
        for device in range(size):
            name, nic = f"h{host} gpu{device}", f"h{host} nic{device * nics // size}"
            rows.append((name, f"h{host}", 450, 1, "device", "switch"))
            rows.append((name, nic, 50, 1, "device", "nic"))
    return rows


def up(ends: dict[str, list[str]], GBps: float = 50, count: int = 1, role: str = "switch"):
    return [(a, b, GBps, count, role, "switch") for a, heads in ends.items() for b in heads]


def uneven_racks() -> list[Row]:
    rows, first = hosts([8] * 8, 8), 0
    for rack, size in enumerate((1, 3, 2, 2)):
        for host in range(first, first + size):
            rows += up({f"h{host} nic{k}": [f"leaf{rack}"] for k in range(8)}, role="nic")
        first += size
    return rows + up({f"leaf{rack}": ["spine0", "spine1"] for rack in range(4)}, count=4)


def missing_leaf() -> list[Row]:
    """Three hosts have no way to the leaf of rail 3."""
    rows = hosts([8] * 8, 8)
    for host in range(8):
        rails = [k for k in range(8) if k != 3 or host < 5]
        rows += up({f"h{host} nic{k}": [f"leaf{k}"] for k in rails}, role="nic")
    return rows + up({f"leaf{k}": ["spine"] for k in range(8)}, count=8)


def two_rails() -> list[Row]:
    """Without spines: devices forward for one another."""
    ends = {f"h{host} nic{k}": [f"rail{k}"] for host in range(8) for k in range(2)}
    return hosts([8] * 8, 2) + up(ends, role="nic")


def hosts_of_two_sizes() -> list[Row]:
    rows = hosts([8, 4] * 3, 4)
    ends = {f"h{host} nic{k}": [f"leaf{host // 2}"] for host in range(6) for k in range(4)}
    return rows + up(ends, role="nic") + up({f"leaf{k}": ["spine"] for k in range(3)}, 200)


def lone_devices() -> list[Row]:
    return up({f"gpu{k}": ["switch"] for k in range(24)}, role="device")


def lone_devices_on_uneven_switches() -> list[Row]:
    rows = up({f"gpu{k}": [f"s{k % 5 % 3}"] for k in range(30)}, role="device")
    return rows + up({f"s{k}": ["core"] for k in range(3)}, 100, 2)


def random_regular(seed: int, nics: int) -> list[Row]:
    graph = nx.random_regular_graph(4, 16, seed=seed)
    rows: list[Row] = [(f"s{a}", f"s{b}", 50, 1, "switch", "switch") for a, b in graph.edges]
    if nics:
        rows += [(f"gpu{k}", f"nic{k}", 50, 1, "device", "nic") for k in range(16)]
        return rows + up({f"nic{k}": [f"s{k}"] for k in range(16)}, role="nic")
    return rows + up({f"gpu{k}": [f"s{k}"] for k in range(16)}, role="device")


SHAPES = {
    "uneven racks": (uneven_racks(), 64),
    "a missing leaf": (missing_leaf(), 64),
    "two rails": (two_rails(), 64),
    "hosts of two sizes": (hosts_of_two_sizes(), 36),
    "lone devices": (lone_devices(), 24),
    "lone devices, uneven": (lone_devices_on_uneven_switches(), 30),
    "random regular": (random_regular(1, 0), 16),
    "another": (random_regular(2, 0), 16),
    "random regular, NICs": (random_regular(3, 1), 16),
    "two devices": ([("gpu0", "gpu1", 50, 1, "device", "device")], 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_fabric_of_any_shape_is_read_and_planned(name, tmp_path):
    """Every level says what it is, and the best plan takes what its price says."""
    rows, devices = SHAPES[name]
    path = tmp_path / "fabric.csv"
    header = "a,b,bandwidth_GBps,count,a_role,b_role\n"
    path.write_text(header + "".join(",".join(map(str, row)) + "\n" for row in rows))
    values = nest.load("llama2-7b-64-h100", {"fabric": str(path)}).values
    problem = values.problem()
    assert problem.network.devices == devices
    assert problem.network.levels[-1].group_size == devices
    assert all(level.name and level.bandwidth_Bps > 0 for level in problem.network.levels)
    result = search(problem, values.space)
    assert result.certificate.proven
    assert result.best is not None
    assert price(problem, result.best.plan).iteration_s == pytest.approx(result.best.iteration_s)
