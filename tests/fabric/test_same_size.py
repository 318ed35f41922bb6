"""One size in every topology: devices, NICs and rates are the same, ports whole, bills count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Clos, Dragonfly, Torus, build_fabric
from nest_core.fabric.same_size import KINDS, FabricShape, Size, same_size, size_of, with_scale_up
from nest_core.scenario import load_fabric

LIST = load_prices()
SIZES = (64, 1024, 2048, 16_384)
RATE = 50e9


def size(devices: int) -> Size:
    return Size(devices, 8, 8, RATE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("devices", SIZES)
def test_every_topology_has_the_same_devices_and_nics_and_a_bill_that_counts(devices, kind):
    if (devices, kind) == (16_384, "spine-leaf"):
        with pytest.raises(InputError, match="512 leaves exceed radix 64"):
            same_size(size(devices), kind)
        return
    fabric = same_size(size(devices), kind)
    assert fabric.devices == devices
    found = bill(fabric, LIST)
    assert (found.nodes, found.nics) == (devices // 8, devices)
    cards = next(line for line in found.lines if line.part == "nic")
    assert (cards.item, cards.count) == ("ConnectX-7 400G", devices)
    assert all(total.used <= total.ports for total in found.switches)
    assert found.price_usd.typical > 0
    assert build_fabric(checked(FabricFile, fabric.document())) == fabric


@pytest.mark.parametrize("devices", SIZES)
def test_what_a_device_injects_is_the_same_and_ports_are_whole(devices):
    for kind in KINDS[devices == 16_384 :]:  # no spine-leaf is so large
        fabric = same_size(size(devices), kind)
        if isinstance(fabric, Torus):
            assert 4 * fabric.link_bandwidth_Bps == RATE == fabric.nic_bandwidth_Bps
        elif isinstance(fabric, Dragonfly):
            assert fabric.nics_per_node * fabric.nic_bandwidth_Bps == 8 * RATE
            assert fabric.radix <= 64
            assert fabric.groups == 1 or fabric.links_per_pair >= 1
        elif isinstance(fabric, Clos):
            assert fabric.nics_per_node * fabric.nic_bandwidth_Bps == 8 * RATE
            assert fabric.radix * fabric.link_bandwidth_Bps == 64 * RATE
            assert all(ratio == 1.0 for ratio in fabric.ratios)
            for ports in fabric.switch_ports():
                assert ports.down + ports.up <= fabric.radix


def test_clos_of_a_size_keep_the_rates_between_their_switches():
    """A search over fabrics built 400 Gb/s to spines where the scenario has 800."""
    base = same_size(size(1024), "spine-leaf")
    fast = replace(base, spine_link_Bps=2 * base.link_bandwidth_Bps)
    for kind in ("spine-leaf", "rail-optimised", "rail-only"):
        found = same_size(fast, kind)
        assert found.link_rates_Bps[1] == 2 * RATE
        assert found.uplinks(1).tolist() == [n // 2 for n in same_size(base, kind).uplinks(1)]
    assert isinstance(same_size(fast, "torus"), Torus)


def test_the_published_superpod_is_the_rail_optimised_one_of_its_size():
    """Leaves, spines, cores of NVIDIA's table at 1,024, 2,048 and 16,384 devices."""
    published = {1024: [32, 16], 2048: [64, 32], 16_384: [512, 512, 256]}
    for devices, switches in published.items():
        fabric = same_size(size(devices), "rail-optimised")
        assert [total.count for total in bill(fabric, LIST).switches] == switches


def test_a_balanced_dragonfly_is_canonical():
    fabric = same_size(size(16_384), "dragonfly")
    assert isinstance(fabric, Dragonfly)
    assert (fabric.routers_per_group, fabric.nodes_per_router * 8, fabric.groups) == (32, 16, 32)


def test_a_size_is_read_off_a_fabric_and_gives_it_back():
    """Its rails and hosts too: 18 rails of a GB200 rack became 72, more than a pod has leaves."""
    for name in ("dgx-superpod-h100", "rail-only-1024", "gb200-nvl72-rails"):
        fabric = load_fabric(name)
        assert size_of(fabric).devices == fabric.devices
        for kind in ("rail-optimised", "dual-plane"):
            again = same_size(fabric, kind)
            assert size_of(again) == size_of(fabric)
            assert (again.rails, again.devices_per_host) == (fabric.rails, fabric.devices_per_host)
    assert size_of(same_size(size(2048), "dual-plane")) == replace(size(2048), rails=8)
    with pytest.raises(InputError, match="must say its nodes, NICs and radix"):
        size_of(load_fabric("torus-16x16"))


@pytest.mark.parametrize("nodes", [8, 72, 144, 576])
def test_scale_up_keeps_devices_and_nics(nodes):
    larger = with_scale_up(Size(1152, 8, 8, RATE), nodes)
    assert larger.devices == 1152
    assert larger.nodes * larger.nics_per_node == 1152
    assert bill(same_size(larger, "rail-only"), LIST).nics == 1152
    with pytest.raises(InputError, match="scale-up size must divide the 1,024 devices"):
        with_scale_up(size(1024), 72)


def test_what_does_not_exist_says_why():
    for asked, kind, said in (
        (Size(14, 2, 2, RATE), "torus", "devices must be a product of two sides of 3 or more"),
        (Size(64, 8, 4, RATE), "torus", "must be whole NICs for each of 8 devices"),
        (size(64), "hypercube", "topology must be one of a size"),
    ):
        with pytest.raises(InputError, match=said):
            same_size(asked, kind)
    with pytest.raises(InputError, match="tiers must be 2 or 3 for a rail-optimised, but is 1"):
        same_size(size(64), "rail-optimised", FabricShape(tiers=1))
