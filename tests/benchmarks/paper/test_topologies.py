"""Figures 8 and 9: levels as collapse makes them, hops as they are counted on the grid."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.paper.topologies import MESHES, figure8, figure9
from nest_core.paper.topologies import affinity, network_of
from nest_core.report.figures.paper import paper_pictures


@pytest.mark.parametrize("preset", MESHES)
def test_affinity_is_the_manhattan_distance(preset: str) -> None:
    network = network_of(preset)
    assert network.torus is not None
    sizes, wrap = network.torus.shape[::-1], network.torus.wrap[::-1]
    hops = np.zeros(sizes, dtype=int)
    for axis, (size, closes) in enumerate(zip(sizes, wrap, strict=True)):
        apart = np.abs(np.arange(size) - size // 2)
        apart = np.minimum(apart, size - apart) if closes else apart
        hops += apart.reshape([-1 if other == axis else 1 for other in range(len(sizes))])
    assert (affinity(network) + 1 == hops).all()
    rows = [row for row in figure9("own").rows if row["fabric"] == preset]
    assert [row["devices"] for row in rows] == np.bincount(hops.ravel())[1:].tolist()
    assert {row["class"] for row in rows[:2]} == {"1", "2"}
    assert {row["class"] for row in rows[2:]} == {"3, remote"}


def test_the_fat_tree_has_the_printed_uplinks() -> None:
    rows = [row for row in figure8("own").rows if row["fabric"] == "nest-fat-tree-1024"]
    assert [row["uplink_Bps"] for row in rows] == [row["published_Bps"] for row in rows]
    text = figure8("own").paragraph[0]
    assert text.startswith("4 of 5 printed bandwidths are those of the levels here")
    assert "node of nest-spine-leaf-1024 (450 GB/s against 900)" in text


def test_the_artifact_s_gigabytes_are_binary() -> None:
    for row in figure8("published").rows:
        if row["published_Bps"] is not None:
            assert row["uplink_Bps"] / row["published_Bps"] == pytest.approx(2**30 / 1e9)


def test_pictures_show_the_rows() -> None:
    found = figure8("own")
    fabrics = dict.fromkeys(row["fabric"] for row in found.rows)
    assert [picture.title.split(":")[0] for picture in paper_pictures(found)] == list(fabrics)
    (picture,) = paper_pictures(figure9("own"))
    for trace, preset in zip(picture.plot.data, MESHES, strict=True):
        assert np.bincount(np.asarray(trace.z).ravel())[0] == 1
        assert (np.asarray(trace.z) == affinity(network_of(preset)) + 1).all()
