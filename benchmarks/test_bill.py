"""The bill of 131,072 devices: counted by arithmetic, per tier and length and not per cable."""

from __future__ import annotations

import pytest

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.fabric import Clos, Dragonfly, Torus

FABRICS = {
    "rails": Clos(
        "c", "rail_optimised", 131_072, 8, 8, 50e9, 128, 3, (1.0, 1.0), 6e-7, 450e9, 5e-7
    ),
    "torus": Torus("t", (64, 64, 32), (True,) * 3, 50e9, 1e-6),
    "dragonfly": Dragonfly("d", 16, 8, 8, 50e9, 50e9, 1e-6),
}


@pytest.mark.parametrize("name", FABRICS)
def test_bill(benchmark, name):
    prices = load_prices()
    found = benchmark(bill, FABRICS[name], prices)
    benchmark.extra_info["cables"] = found.cables
