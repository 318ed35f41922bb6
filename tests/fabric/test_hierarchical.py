"""Fabrics given level by level."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier

NODE = Tier("node", 8, 900e9, 0.1e-6)
RACK = Tier("rack", 4, 100e9, 0.2e-6, "child")


def test_devices_are_the_product_of_group_sizes():
    assert Hierarchical("h", (NODE, RACK, Tier("pod", 3, 1e9, 1e-6))).devices == 8 * 4 * 3


def test_the_link_graph_has_one_switch_per_group_and_a_port_per_device():
    """8 x 4 x 2: 64 devices, 8 nodes, 2 racks and the top; every device has its own way there."""
    fabric = Hierarchical("h", (NODE, RACK, Tier("top", 2, 400e9, 0.3e-6, "device", 2.0)))
    graph = fabric.explicit()
    assert graph.number_of_nodes() == 64 + 8 + 2 + 1 + 64 + 8
    assert graph.number_of_edges() == 64 + 2 * 8 + 2 * 64
    shared = graph.edges[("nic", 1, 0), (1, "rack", 0)]
    assert graph.has_edge((0, "node", 0), ("nic", 1, 0))
    assert (shared["count"], shared["bandwidth_Bps"]) == (1, 100e9)
    own = graph.edges[("nic", 2, 40), (2, "top", 0)]
    assert (own["count"], own["bandwidth_Bps"]) == (1, 200e9)
    assert not graph.has_edge((1, "rack", 1), (2, "top", 0))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"group_size": 0}, r"level\[1\].group_size must be a whole number of at least 1, but is 0"),
    ({"group_size": -4}, r"level\[1\].group_size must be a whole number of at least 1, but is -4"),
    ({"bandwidth_Bps": 0.0}, r"level\[1\].bandwidth_GBps must be a finite number above 0"),
    ({"bandwidth_Bps": math.nan}, r"level\[1\].bandwidth_GBps .* but is nan"),
    ({"latency_s": -1e-6}, r"level\[1\].latency_us must be a finite number of at least 0"),
    ({"latency_s": math.inf}, r"level\[1\].latency_us .* but is inf"),
    ({"oversubscription": 0.0}, r"level\[1\].oversubscription must be a finite number above 0"),
    ({"oversubscription": math.nan}, r"level\[1\].oversubscription .* but is nan"),
    ({"group_size": 200_000}, "level must not exceed 1,048,576 devices, but is 1600000"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change) for change, _ in BAD])
def test_a_level_that_cannot_be_is_refused(change, message):
    figures: dict[str, Any] = {
        "name": "rack",
        "group_size": 4,
        "bandwidth_Bps": 1e9,
        "latency_s": 1e-6,
        **change,
    }
    with pytest.raises(InputError, match=message):
        Hierarchical("h", (NODE, Tier(**figures)))


def test_a_hierarchy_has_levels():
    with pytest.raises(InputError, match=r"level must list at least one level, but is \[\]"):
        Hierarchical("h", ())


def test_an_undersubscribed_level_multiplies_its_uplinks():
    """A ratio below 1 is more bandwidth: Meta's racks have twice as much up as down."""
    fabric = Hierarchical("h", (NODE, Tier("rack", 2, 50e9, 1e-6, "device", 0.5)))
    link = fabric.explicit().edges[("nic", 1, 0), (1, "rack", 0)]
    assert link["bandwidth_Bps"] == 100e9
