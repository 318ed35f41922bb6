"""Pictures of fabrics, from a fabric that is collapsed to SVG text: under 100 ms each."""

from __future__ import annotations

import pytest

from nest_core.fabric import Clos
from nest_core.report.picture import picture, to_svg
from nest_core.scenario import load_fabric

FABRICS = {
    "rows, 1,024": load_fabric("h100-spine-leaf-1024"),
    "rails, 1,024": load_fabric("dgx-superpod-h100"),
    "two planes, 15,360": load_fabric("hpn-dual-plane"),
    "pods, 131,072": Clos(
        "c", "fat_tree", 131_072, 8, 8, 50e9, 128, 3, (1.0, 1.0), 6e-7, 450e9, 5e-7
    ),
}


@pytest.mark.parametrize("name", FABRICS)
def test_picture(benchmark, name):
    text = benchmark(lambda: to_svg(picture(FABRICS[name])))
    benchmark.extra_info["KiB"] = len(text) // 1024
