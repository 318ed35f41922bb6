"""Device orders are permutations with the neighbourhood they promise."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs.layout import DEVICE_ORDERS, Layout, device_order, rank_mapping
from nest_core.documents.errors import InputError
from nest_core.fabric import Clos, Hierarchical, Tier, Torus
from nest_core.network import collapse

TORI = [(4, 4), (8, 8), (4, 4, 4), (3, 5), (16, 2, 3), (8, 4, 2)]


def torus(shape):
    return collapse(Torus("t", shape, (True,) * len(shape), 50e9, 1e-6))


def tree():
    tiers = (Tier("node", 4, 450e9, 1e-6), Tier("rack", 3, 50e9, 2e-6), Tier("top", 2, 50e9, 3e-6))
    return collapse(Hierarchical("tree", tiers))


@pytest.mark.parametrize("name", DEVICE_ORDERS)
@pytest.mark.parametrize("shape", TORI)
def test_every_order_is_a_permutation(name, shape):
    network = torus(shape)
    assert np.array_equal(np.sort(device_order(network, name)), np.arange(network.devices))


@pytest.mark.parametrize("shape", TORI)
def test_a_snake_never_jumps(shape):
    """Neighbouring ranks are one hop apart."""
    network = torus(shape)
    order = device_order(network, "snake")
    assert (network.level(order[:-1], order[1:]) == 0).all()


@pytest.mark.parametrize("shape", [(4, 4), (8, 8), (32, 32), (4, 4, 4), (8, 8, 8)])
def test_a_hilbert_curve_never_jumps_and_fills_blocks(shape):
    """One hop from rank to rank, and the first 2^dims ranks fill a cube of side two."""
    network = torus(shape)
    order = device_order(network, "hilbert")
    assert (network.level(order[:-1], order[1:]) == 0).all()
    for start in range(0, network.devices, 2 ** len(shape)):
        cube = network.torus.coordinates(order[start : start + 2 ** len(shape)])
        assert (np.ptp(cube, axis=1) == 1).all()


def test_rails_put_one_slot_after_the_other():
    """Two racks of three nodes of four: slot 0 of the first rack's nodes comes first."""
    order = device_order(tree(), "rail").tolist()
    assert order[:12] == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    assert order[12:15] == [12, 16, 20]


def test_racks_are_the_natural_order_of_a_tree():
    assert np.array_equal(device_order(tree(), "rack"), np.arange(24))


def test_ranks_follow_the_order():
    network = tree()
    layout = Layout(2, 1, 3, 4, ("tp", "cp", "dp", "pp"))
    placed = rank_mapping(network, layout, "rail")
    assert placed[0].tolist() == [[0, 4], [8, 1], [5, 9]]
    assert np.unique(placed).size == 24


def test_tensor_groups_on_rails_leave_their_node():
    """What the order changes: four ranks of a node against four nodes."""
    network = collapse(
        Clos("c", "rail_optimised", 64, 4, 4, 50e9, 16, 2, (1.0,), 6e-7, 450e9, 5e-7)
    )
    layout = Layout(4, 1, 16, 1, ("tp", "cp", "dp", "pp"))
    natural, rail = (rank_mapping(network, layout, name)[0] for name in ("natural", "rail"))
    assert network.level(natural[:, :1], natural).max() == 0
    assert network.level(rail[:, :1], rail[:, 1:]).min() == 1


@pytest.mark.parametrize("name", ["snake", "hilbert"])
def test_curves_need_a_torus(name):
    with pytest.raises(InputError, match="must be natural, rail or rack unless the fabric is a t"):
        device_order(tree(), name)


def test_an_unknown_order_is_refused():
    with pytest.raises(InputError, match="must be one of the orders, but is 'spiral'"):
        device_order(tree(), "spiral")
