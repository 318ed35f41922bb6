"""Servers of PCIe cards: bridges between two, slots on switches, NICs between servers."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier
from nest_core.interop.formats.exchange import caveats
from nest_core.network import collapse
from nest_core.network.collective import collective
from nest_core.scenario import load_fabric

# Devices 0 and 1 are a pair, 0 to 3 on one PCIe switch, 0 to 7 in one server; GB/s one way.
PAIRS = {1: 300.0, 2: 63.0, 4: 63.0, 8: 50.0}
CARDS = {1: 31.5, 2: 31.5, 4: 31.5, 8: 25.0}


@pytest.mark.parametrize(("name", "rates"), [("h100-nvl-pairs-16", PAIRS), ("l40s-pcie-16", CARDS)])
def test_a_flow_alone_has_its_slowest_link(name, rates):
    """Shortest paths: over the bridge, else the slots, else a NIC; none through another card."""
    link_map = collapse(load_fabric(name)).link_map
    for target, rate in rates.items():
        route = link_map.routes(np.array([0]), np.array([target]))
        assert link_map.capacity_Bps[route.link_group].min() == rate * 1e9


def test_levels_of_pairs_have_their_names_and_servers_are_the_nodes():
    """A pair was called a node, and two servers were eight."""
    network = collapse(load_fabric("h100-nvl-pairs-16"))
    named = [(level.name, level.group_size) for level in network.levels]
    assert named == [("island", 2), ("pcie", 4), ("node", 8), ("leaf", 16)]
    assert network.node_size == 8
    assert np.bincount(network.host).tolist() == [8, 8]


def test_an_all_reduce_of_a_pair_takes_its_bridge():
    """Each sends and receives the buffer once (ring of two), a microsecond or so to start."""
    network = collapse(load_fabric("h100-nvl-pairs-16"))
    size = 1 << 28
    seconds = collective(network, "all_reduce", size, 2).time_s
    assert seconds == pytest.approx(size / 300e9, rel=5e-3)


def test_bridges_need_no_warning():
    """Nobody forwards through a card that has one neighbour."""
    assert caveats(collapse(load_fabric("h100-nvl-pairs-16"))) == ()


def pairs(devices_per_host: int = 8, **changes: object) -> Hierarchical:
    sizes = {"island": 2, "slots": 4, "network": 3}
    tiers = tuple(Tier(name, size, 1e9, 1e-6) for name, size in sizes.items())
    return Hierarchical("pairs", tiers, devices_per_host=devices_per_host, **changes)


def test_a_hierarchy_of_pairs_is_billed_by_hosts():
    """Logs of bridged cards were billed as nodes of two with NICs of 504 Gb/s in PCIe slots."""
    parts = bill(pairs(), load_prices())
    assert (parts.nodes, parts.nics) == (3, 24)
    assert {total.tier for total in parts.links} == {"network"}
    failed = bill(pairs(missing=("slots 1",)), load_prices())
    assert (failed.nodes, failed.nics) == (2, 16)


@pytest.mark.parametrize("size", [3, 16])
def test_hosts_are_groups_of_some_level(size):
    with pytest.raises(InputError, match="devices_per_host must divide the 2 devices of a node"):
        pairs(size)


def test_hosts_of_unequal_groups_are_refused():
    tiers = (Tier("island", 0, 1e9, 1e-6, group_sizes=(2, 3, 3)), Tier("all", 3, 1e9, 1e-6))
    with pytest.raises(InputError, match="devices_per_host must divide"):
        Hierarchical("odd", tiers, devices_per_host=9)
