"""The busiest links: what they carry, what they are called, and which of them are alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fabric_specs import clos, tree

from nest_core.network import busiest_links, collapse, link_group_name
from nest_core.network.busiest import load_of
from nest_core.network.patterns import pattern_phases, shift_loads, traffic
from nest_core.scenario import load_fabric

KINDS = ("h100-spine-leaf-64", "tpu-v4-4x4x4", "dragonfly-1056", "drawn-8", "mi300x-mesh-64")


def pipeline(network, replica: int, stage: int):
    phases = pattern_phases(network, "pp", replica, stage)
    return load_of(network.link_map, phases, 1e9)


def test_four_flows_share_an_uplink_and_its_peer_is_alike():
    """Two nodes of four over 40 GB/s, four flows of 1e9 bytes from one to the other."""
    fabric = tree((4, 100, 0.0, "device", 1), (2, 40, 0.0, "child", 1))
    busiest = traffic(collapse(fabric), "pp", 4, 4, 1e9, "fwd", fabric).busiest
    first = busiest[0]
    assert first.link == "devices 0 to 3 up to tier 1"
    assert (first.utilisation, first.alike) == (pytest.approx(1.0), 2)
    assert (first.load_bytes, first.capacity_Bps) == (4e9, 40e9)
    assert first.users == {"pipeline transfers": pytest.approx(1.0)}
    assert sum(entry.alike for entry in busiest) == 2 + 8


@pytest.mark.parametrize("name", KINDS)
def test_users_add_up_and_rows_hold_every_loaded_link(name):
    network = collapse(load_fabric(name))
    loads, seconds = shift_loads(network)
    busiest = busiest_links(network, loads, seconds)
    total, capacity = sum(loads.values()), network.link_map.capacity_Bps
    busy = np.divide(total, capacity * seconds, out=0 * capacity, where=capacity > 0)
    assert busiest[0].utilisation == pytest.approx(busy.max())
    shares = [entry.utilisation for entry in busiest]
    assert shares == sorted(shares, reverse=True)
    for entry in busiest:
        assert sum(entry.users.values()) == pytest.approx(entry.utilisation)
        assert list(entry.users.values()) == sorted(entry.users.values(), reverse=True)
        near = np.isclose(busy, entry.utilisation, rtol=0, atol=1.01e-3 * busy.max())
        assert 1 <= entry.alike <= near.sum()


@pytest.mark.parametrize("name", KINDS)
def test_no_two_links_have_one_name(name):
    """But those inside a node, which are told by their node."""
    network = collapse(load_fabric(name))
    names = [
        link_group_name(network, at)
        for at in np.flatnonzero(network.link_map.capacity_Bps > 0).tolist()
    ]
    outer = [entry for entry in names if "inside node" not in entry]
    assert len(set(outer)) == len(outer)


def test_what_a_link_is_follows_from_the_routing():
    """Under adaptive routing a leaf's uplinks are one; under ECMP each is named."""
    fabric = clos(devices=64, oversubscription=(2.0,))
    adaptive, ecmp = (
        collapse(replace(fabric, routing=routing)) for routing in ("adaptive", "ecmp")
    )
    spread, single = (
        busiest_links(network, {"pipeline": pipeline(network, 64, 32)}, 1.0)
        for network in (adaptive, ecmp)
    )
    assert "link" not in spread[0].link
    assert any(", link " in entry.link for entry in single)
    assert single[0].utilisation >= spread[0].utilisation


def test_without_traffic_or_time_there_are_none():
    network = collapse(load_fabric("drawn-8"))
    load = pipeline(network, 8, 4)
    assert busiest_links(network, {}, 1.0) == ()
    assert busiest_links(network, {"pipeline": 0 * load}, 1.0) == ()
    assert busiest_links(network, {"pipeline": load}, 0.0) == ()
