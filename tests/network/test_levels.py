"""Where pairs of devices meet."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from fabric_specs import EVERY, TORI, TREES, TWISTED, rails

from nest_core.fabric import Clos, Hierarchical
from nest_core.network import Network, collapse
from nest_core.network.patterns import collapse_error


def table(network: Network) -> np.ndarray:
    """Level of every pair, shape (devices, devices)."""
    device = np.arange(network.devices)
    return network.level(device[:, None], device[None, :])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EVERY)
def test_level_is_a_symmetric_table_with_nobody_meeting_himself(name):
    """A failure: the price of a transfer depends on its direction, or on sending to oneself."""
    network = collapse(EVERY[name])
    met = table(network)
    assert met.shape == (network.devices, network.devices)
    assert met.dtype == np.int64
    assert (met == met.T).all()
    assert (np.diag(met) == -1).all()
    off = met[~np.eye(network.devices, dtype=bool)]
    assert ((off >= 0) & (off < len(network.levels))).all()


def groups(fabric: Hierarchical | Clos) -> list[np.ndarray]:
    """Group of every device at every level, as the specification counts them."""
    if isinstance(fabric, Hierarchical):
        return [fabric.group_of(level) for level in range(len(fabric.tiers))]
    return [fabric.node_of(), *(fabric.group_of(height + 1) for height in range(fabric.tiers))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TREES)
def test_nested_levels_are_ultrametric(name):
    """Of three devices the two farthest pairs meet at the same level: groups are nested."""
    met = table(collapse(TREES[name]))
    worst_detour = np.maximum(met[:, :, None], met[None, :, :]).min(axis=1)
    assert (met <= worst_detour).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TREES)
def test_a_pair_meets_at_the_innermost_level_whose_group_holds_both(name):
    """The definition: the same group there, different ones inside."""
    fabric = TREES[name]
    network = collapse(fabric)
    blocks = [np.arange(network.devices), *groups(fabric)]
    assert len(np.unique(blocks[-1])) == 1
    for a, b in itertools.product(range(0, network.devices, 3), range(network.devices)):
        if a == b:
            continue
        level = int(network.level(a, b)) + 1
        assert blocks[level][a] == blocks[level][b]
        assert blocks[level - 1][a] != blocks[level - 1][b]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EVERY)
def test_blocks_that_collectives_climb_nest_and_end_in_one(name):
    """A failure: a hierarchical collective leaves somebody out, or meets him twice."""
    network = collapse(EVERY[name])
    inner = np.arange(network.devices)
    for outer in network.nesting:
        pairs = np.unique(np.stack([inner, outer]), axis=1)
        assert len(np.unique(pairs[0])) == pairs.shape[1]
        inner = outer
    assert len(np.unique(inner)) == 1


@pytest.mark.parametrize("name", [*TORI, *TWISTED])
def test_hops_of_a_torus_are_a_metric(name):
    """The triangle inequality; without it some pair would gain by a detour."""
    hops = table(collapse(EVERY[name])) + 1
    assert (hops <= (hops[:, :, None] + hops[None, :, :]).min(axis=1)).all()


def test_torus_levels_are_not_transitive():
    """0, 1 and 2 in a row: neighbours meet at level 0, the ends do not (so no groups there)."""
    network = collapse(TORI["5x4 without wrap"])
    assert network.level([0, 1, 0], [1, 2, 2]).tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["the paper's uplinks", "4x4x4"])
def test_levels_broadcast_like_numpy(name):
    """Scalars, rows and columns mix; the answer is that of the pairs one by one."""
    network = collapse(EVERY[name])
    rows, columns = np.array([0, 7, 8, 63]), np.array([[0], [8], [31]])
    met = network.level(rows, columns)
    assert met.shape == (3, 4)
    for (i, j), level in np.ndenumerate(met):
        assert network.level(int(rows[j]), int(columns[i, 0])) == level
    assert network.level(5, rows).shape == (4,)
    assert network.level(5, 5).shape == ()
    assert network.level([], []).shape == (0,)


def test_a_leaf_that_is_missing_does_not_take_the_spine_from_the_others():
    """What is gone is not the scarcest of what is there."""
    whole, lost = (collapse(rails(missing=missing)) for missing in ((), ("leaf 0", "leaf 1")))
    spine, left = whole.levels[-1], lost.levels[-1]
    assert (left.name, left.links, left.bandwidth_Bps) == (
        spine.name,
        spine.links,
        spine.bandwidth_Bps,
    )
    assert math.isfinite(collapse_error(lost))
