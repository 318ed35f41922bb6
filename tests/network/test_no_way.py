"""Where there is no way, bytes take for ever, nothing takes no time, and nobody is warned."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from fabric_specs import tree

from nest_core.network import MessageTime, Phase, collapse, price_phases


@pytest.fixture(autouse=True)
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def severed():
    """Two nodes of two devices, and nothing left between them."""
    link_map = collapse(tree((2, 100, 0.5, "device", 1), (2, 10, 1.5, "child", 1))).link_map
    inner, outer = link_map.tiers
    nothing = np.zeros_like(outer.capacity_Bps)
    return replace(link_map, tiers=(inner, replace(outer, capacity_Bps=nothing, link_Bps=nothing)))


def priced(source, target):
    flow = Phase(np.array([source]), np.array([target]), np.array([0]), np.ones(1), np.ones(1))
    return price_phases(severed(), [flow], 1)


def test_bytes_never_arrive():
    assert priced(0, 2).seconds(np.array([[1.0], [1e9]])).tolist() == [[np.inf], [np.inf]]


def test_no_bytes_need_no_way():
    assert priced(0, 2).seconds(0.0).tolist() == [1.5e-6]


def test_who_stays_in_its_node_notices_nothing():
    assert priced(0, 1).seconds(np.array([[0.0], [1e9]])) == pytest.approx(
        np.array([[0.5e-6], [0.5e-6 + 1e9 / 100e9]])
    )


def test_another_way_is_taken_instead():
    """Of two regimes, the one with a way; sizes and members broadcast as elsewhere."""
    both = MessageTime(np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([[np.inf, 1.0], [1.0, 1.0]]))
    assert both.seconds([0.0, 3.0]).tolist() == [1.0, 4.0]
    assert both.seconds(np.array([[0.0, 3.0], [3.0, 0.0]])).tolist() == [[1.0, 4.0], [5.0, 1.0]]
    table = both.along(1).seconds(np.array([0.0, 3.0]))
    assert table.tolist() == [[1.0, 5.0], [1.0, 4.0]]
