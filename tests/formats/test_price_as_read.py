"""A fabric takes what it takes, whether its parameters are given or its links are read."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import nest_core as nest
from nest_core.costs import Plan, Point, price
from nest_core.costs.plan import even_cuts
from nest_core.fabric import Clos, Hierarchical, Tier
from nest_core.interop.formats import write_fabric

UNEVEN = Hierarchical(
    "uneven racks",
    (
        Tier("node", 4, 450e9, 0.5e-6, "device"),
        Tier("rack", 0, 50e9, 1e-6, "device", 1.0, (2, 1, 4, 1)),
        Tier("fabric", 4, 100e9, 2e-6, "child"),
    ),
)


def clos(**changes):
    figures = {
        "name": "clos",
        "kind": "leaf_spine",
        "devices": 64,
        "devices_per_node": 8,
        "nics_per_node": 8,
        "nic_bandwidth_Bps": 50e9,
        "radix": 32,
        "tiers": 2,
        "oversubscription": (1.0,),
        "hop_latency_s": 0.6e-6,
        "intra_bandwidth_Bps": 450e9,
        "intra_latency_s": 0.5e-6,
    }
    return Clos(**(figures | changes))


FABRICS = {
    "leaves and spines": clos(),
    "two rails": clos(kind="rail_optimised", nics_per_node=2, devices_per_node=2, radix=16),
    "rails, 4:1": clos(kind="rail_optimised", oversubscription=(4.0,), radix=20),
    "uneven racks": UNEVEN,
}


def points(devices: int, seed: int):
    """Points that fill any part of a fabric, drawn."""
    dice = np.random.default_rng(seed)
    while True:
        tp, cp, dp, pp = (int(2 ** dice.integers(0, most)) for most in (4, 2, 4, 3))
        if tp * cp * dp * pp <= devices:
            order = (("tp", "cp", "dp", "pp"), ("tp", "cp", "pp", "dp"))[dice.integers(2)]
            yield Point(
                tp=tp, sp=tp > 1, cp=cp, dp=dp, pp=pp, micro_batch=1,
                zero=int(dice.integers(0, 4 if pp == 1 else 2)), order=order,
            )  # fmt: skip


@pytest.mark.parametrize("file", ["csv", "graphml"])
@pytest.mark.parametrize("name", FABRICS)
def test_a_plan_takes_as_long_on_a_fabric_that_is_read(name, file, tmp_path):
    path = tmp_path / f"fabric.{file}"
    path.write_text(write_fabric(FABRICS[name], file).text, encoding="utf-8")
    values = nest.load("llama2-7b-64-h100", {"fabric": str(path)}).values
    read = replace(values.problem(), memory_bytes=1e15)
    given = replace(replace(values, fabric=FABRICS[name]).problem(), memory_bytes=1e15)
    for point in islice(points(FABRICS[name].devices, seed=len(name)), 12):
        plan = Plan(point, even_cuts(read.layers, point.pp), ("none",) * point.pp)
        expected, found = price(given, plan), price(read, plan)
        assert found.iteration_s == pytest.approx(expected.iteration_s, rel=1e-9), point
