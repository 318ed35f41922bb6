"""Tori: links, diameter and bisection are the textbook's."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import pytest

from nest_core.documents.errors import InputError
from nest_core.fabric import Torus
from nest_core.network import collapse

SHAPES = [(4, 4), (16, 16), (4, 4, 4), (3, 5, 7), (8, 1), (6, 2), (1, 9), (2, 2, 2)]


def torus(shape: tuple[int, ...], wrap: bool | tuple[bool, ...] = True) -> Torus:
    wraps = (wrap,) * len(shape) if isinstance(wrap, bool) else wrap
    return Torus("torus", shape, wraps, 50e9, 1e-6)


def place(device: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Coordinates, first dimension fastest."""
    coordinates = []
    for size in shape:
        device, coordinate = divmod(device, size)
        coordinates.append(coordinate)
    return tuple(coordinates)


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_neighbours_differ_by_one_step_in_one_dimension(shape, wrap):
    """The definition of the links; a failure swaps dimensions or drops the wrap."""
    fabric = torus(shape, wrap)
    graph = fabric.explicit()
    for a, b in itertools.combinations(range(fabric.devices), 2):
        apart = [abs(x - y) for x, y in zip(place(a, shape), place(b, shape), strict=True)]
        steps = [
            min(gap, size - gap) if wrap else gap for gap, size in zip(apart, shape, strict=True)
        ]
        assert graph.has_edge(a, b) == (sum(steps) == 1)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if min(shape) > 2])
def test_links_diameter_and_bisection(shape):
    """dims x N links; sum of floor(n/2); 2 N / n_max links across the largest even dimension."""
    fabric = torus(shape)
    graph = fabric.explicit()
    devices = math.prod(shape)
    assert graph.number_of_edges() == len(shape) * devices
    assert len(collapse(fabric).levels) == sum(size // 2 for size in shape)
    assert nx.diameter(graph) == sum(size // 2 for size in shape)
    axis = shape.index(max(shape))
    if shape[axis] % 2 == 0:
        for wrap, links in ((True, 2 * devices // shape[axis]), (False, devices // shape[axis])):
            half = {
                device for device in range(devices) if place(device, shape)[axis] < shape[axis] // 2
            }
            assert nx.cut_size(torus(shape, wrap).explicit(), half) == links


BAD: list[tuple[dict[str, Any], str]] = [
    ({"shape": (4,), "wrap": (True,)}, "torus.shape must have two or three dimensions"),
    ({"shape": (2,) * 4, "wrap": (True,) * 4}, "torus.shape must have two or three dimensions"),
    ({"shape": (4, 0)}, r"torus.shape\[1\] must be a whole number of at least 1, but is 0"),
    ({"shape": (-4, 4)}, r"torus.shape\[0\] must be a whole number of at least 1, but is -4"),
    ({"wrap": (True,)}, r"torus.wrap must have one entry per dimension \(2\), but is \[True\]"),
    ({"shape": (1, 1)}, "torus.shape must hold at least two devices"),
    ({"shape": (2048, 2048)}, "torus.shape must not exceed 1,048,576 devices, but is 4194304"),
    ({"link_bandwidth_Bps": math.nan}, "torus.link_bandwidth_GBps must be a finite number above"),
    ({"link_bandwidth_Bps": 0.0}, "torus.link_bandwidth_GBps must be a finite number above 0"),
    ({"hop_latency_s": -1.0}, "torus.hop_latency_us must be a finite number of at least 0"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change) for change, _ in BAD])
def test_what_is_no_torus_is_refused(change, message):
    figures: dict[str, Any] = {
        "name": "t",
        "shape": (4, 4),
        "wrap": (True, True),
        "link_bandwidth_Bps": 50e9,
        "hop_latency_s": 1e-6,
        **change,
    }
    with pytest.raises(InputError, match=message):
        Torus(**figures)


def test_link_graphs_have_a_limit():
    with pytest.raises(InputError, match="builds link graphs of at most 16,384 devices"):
        torus((256, 256)).explicit()
