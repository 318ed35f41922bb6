"""Link maps whose links are narrower, or gone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_fabric import small

from nest_core.network import collapse
from nest_core.scenario import load_fabric

KINDS = ("h100-spine-leaf-64", "torus-16x16", "dragonfly-1056", "drawn-8", "mi300x-mesh-64")


def pairs(network, count=200):
    rng = np.random.default_rng(0)
    source, target = rng.integers(network.devices, size=(2, count))
    return source[source != target], target[source != target]


@pytest.mark.parametrize("name", KINDS)
def test_every_link_has_its_share_and_routes_stay(name):
    network = collapse(load_fabric(name))
    before = network.link_map
    factor = np.random.default_rng(1).uniform(0.2, 1.0, len(before.capacity_Bps))
    if name == "h100-spine-leaf-64":  # both ways of a tree's uplink are one link
        factor[1::2] = factor[::2]
    if name == "mi300x-mesh-64":  # meshed nodes have links of one way each before those
        inside = len(before.scale_up.capacity_Bps)
        factor[inside + 1 :: 2] = factor[inside::2]
    after = before.scaled(factor)
    assert after.capacity_Bps == pytest.approx(before.capacity_Bps * factor)
    assert (after.link_Bps <= before.link_Bps).all()
    source, target = pairs(network)
    was, is_now = before.routes(source, target), after.routes(source, target)
    assert (was.link_group == is_now.link_group).all()
    assert (was.share == is_now.share).all()


def test_a_port_that_is_gone_is_left_by_another_of_its_node():
    values = small()
    network = collapse(values.fabric)
    first = int(network.link_map.ways.offset[1])
    factor = np.ones(len(network.link_map.capacity_Bps))
    factor[first : first + 2] = 0.0  # that of device 0
    rest = network.link_map.scaled(factor)
    source = np.arange(16)
    for target in range(16):
        routes = rest.routes(source, np.full(16, target))
        assert (rest.capacity_Bps[routes.link_group] > 0).all()
    assert (rest.egress == np.r_[1, np.arange(1, 16)]).all()


def test_a_node_without_any_port_is_cut_off():
    network = collapse(small().fabric)
    first = int(network.link_map.ways.offset[1])
    factor = np.ones(len(network.link_map.capacity_Bps))
    factor[first : first + 4] = 0.0
    rest = network.link_map.scaled(factor)
    routes = rest.routes(np.array([0, 1, 2]), np.array([4, 4, 4]))
    dead = np.unique(routes.flow[rest.capacity_Bps[routes.link_group] == 0])
    assert dead.tolist() == [0, 1]


def test_of_links_that_flows_choose_from_those_that_are_gone_are_not_chosen():
    fabric = load_fabric("h100-spine-leaf-64")
    network = collapse(replace(fabric, routing="ecmp"))
    up, tier = network.link_map, network.link_map.tiers[2]
    offset, links = int(up.ways.offset[2]), tier.group_links
    factor = np.ones(len(up.capacity_Bps))
    factor[offset : offset + 2 * (links // 2)] = 0.0  # half of the first leaf's
    rest = up.scaled(factor)
    assert rest.tiers[2].links[0] == links - links // 2
    source, target = np.arange(32), np.arange(32, 64)
    for draw in range(4):
        routes = rest.routes(source, target, draw)
        leaves = (routes.link_group >= offset) & (routes.link_group < offset + 2 * links)
        used = np.unique((routes.link_group[leaves] - offset) // 2)
        assert (used < links - links // 2).all()
