"""Rings, exchanges and nested blocks: who sends to whom, and how much."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from fabric_specs import EVERY

from nest_core.network import collapse
from nest_core.network.groups import BlockRing, block_rings, exchange, ring

NAMES = [name for name in EVERY if EVERY[name].devices > 1]
# Cubes of devices numbered so that three nested blocks each hold equally many.
CUBES = [(2, 2, 2), (4, 3, 2), (1, 5, 3), (8, 1, 2), (3, 4, 1)]


def random_groups(devices: int, seed: int) -> np.ndarray:
    """Disjoint groups of one size, in any order."""
    dice = np.random.default_rng(seed)
    size = int(dice.integers(2, devices + 1)) if devices > 2 else devices
    count = int(dice.integers(1, devices // size + 1))
    return dice.permutation(devices)[: count * size].reshape(count, size)


def even(shape: tuple[int, ...], seed: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Four groups that occupy their blocks evenly, members shuffled, and the nesting."""
    n = int(np.prod(shape))
    device = np.arange(4 * n)
    inner, middle = 4 * shape[0], 4 * shape[0] * shape[1]
    nesting = (device // inner, device // middle, np.zeros(4 * n, dtype=np.int64))
    dice = np.random.default_rng(seed)
    groups = np.arange(n) * 4 + np.arange(4)[:, None]
    return dice.permuted(groups, axis=1), nesting


def nested(nesting: tuple[np.ndarray, ...], level: int) -> tuple[np.ndarray, np.ndarray]:
    """Inner and outer block of every device at a level."""
    inner = nesting[level - 1] if level else np.arange(len(nesting[0]))
    return inner, nesting[level]


def test_a_ring_is_one_cycle_through_every_member():
    """In the order given; everyone sends once and receives once."""
    groups = random_groups(40, 3)
    phase = ring(groups, volume=0.75, steps=3)
    follows = dict(zip(phase.source.tolist(), phase.target.tolist(), strict=True))
    assert len(follows) == groups.size == len(set(follows.values()))
    for number, group in enumerate(groups.tolist()):
        walked = [group[0]]
        while len(walked) < len(group):
            walked.append(follows[walked[-1]])
        assert walked == group
        assert follows[walked[-1]] == group[0]
        assert (phase.owner[np.isin(phase.source, group)] == number).all()
    assert set(phase.volume) == {0.75}
    assert set(phase.steps) == {3}


def test_an_exchange_has_every_ordered_pair_once():
    groups = random_groups(30, 5)
    phase = exchange(groups, volume=0.5, steps=1)
    found = sorted(zip(phase.owner, phase.source, phase.target, strict=True))
    pairs = [(row, pair) for row, group in enumerate(groups) for pair in permutations(group, 2)]
    assert found == sorted((row, a, b) for row, (a, b) in pairs)
    assert set(phase.volume) == {0.5}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_neighbours_share_the_outer_block_and_not_the_inner(name, seed):
    """Whoever is grouped, however unevenly. A failure: a level carries another's traffic.

    Everyone whose block has others beside it sends exactly once per level, inside his group.
    """
    nesting = collapse(EVERY[name]).nesting
    groups = random_groups(len(nesting[0]), seed)
    row = np.full(len(nesting[0]), -1)
    row[groups] = np.arange(len(groups))[:, None]
    seen = set()
    for entry in block_rings(groups, nesting):
        inner, outer = nested(nesting, entry.level)
        assert (outer[entry.source] == outer[entry.target]).all()
        assert (inner[entry.source] != inner[entry.target]).all()
        assert (row[entry.source] == entry.owner).all()
        assert (row[entry.target] == entry.owner).all()
        assert len(set(entry.source.tolist())) == len(entry.source)
        senders = {
            device
            for group in groups.tolist()
            for device in group
            if any(outer[p] == outer[device] and inner[p] != inner[device] for p in group)
        }
        assert set(entry.source.tolist()) == senders
        seen.add(entry.level)
    assert seen == {
        level
        for level in range(len(nesting))
        if any(
            len({(outer[d], inner[d]) for d in group}) > len({outer[d] for d in group})
            for inner, outer in [nested(nesting, level)]
            for group in groups.tolist()
        )
    }


@pytest.mark.parametrize("direct", [0, 1, 3])
@pytest.mark.parametrize("shape", CUBES)
def test_volumes_of_even_groups_add_up(shape, direct):
    """Every member sends (n - 1) / n of the buffer, and receives as much; also where the inner
    levels exchange directly."""
    groups, nesting = even(shape, 1)
    sent, received = np.zeros(groups.size), np.zeros(groups.size)
    for entry in block_rings(groups, nesting, direct):
        part = entry.shard / entry.fan
        phase = entry.phase(
            volume=part if entry.level < direct else part * (entry.fan - 1), steps=1.0
        )
        np.add.at(sent, phase.source, phase.volume)
        np.add.at(received, phase.target, phase.volume)
    n = groups.shape[1]
    assert sent == pytest.approx(np.full(groups.size, (n - 1) / n))
    assert received == pytest.approx(sent)


@pytest.mark.parametrize("shape", CUBES)
def test_rings_of_even_groups_close_over_their_blocks(shape):
    """Everyone receives once; following the neighbours visits each inner block of the outer one
    exactly once, and the same place in each, so that shards match."""
    groups, nesting = even(shape, 2)
    for entry in block_rings(groups, nesting):
        inner, outer = nested(nesting, entry.level)
        follows = dict(zip(entry.source.tolist(), entry.target.tolist(), strict=True))
        assert sorted(follows) == sorted(follows.values())
        for device, owner, fan in zip(entry.source, entry.owner, entry.fan, strict=True):
            walked = [int(device)]
            while follows[walked[-1]] != device:
                walked.append(follows[walked[-1]])
            blocks = [int(inner[at]) for at in walked]
            members = groups[owner]
            there = members[outer[members] == outer[device]]
            assert sorted(blocks) == sorted(set(inner[there].tolist()))
            assert len(walked) == fan
            ranks = {int((members[inner[members] == inner[at]] < at).sum()) for at in walked}
            assert len(ranks) == 1


def test_direct_levels_have_everyone_as_neighbour():
    """Two nodes of three, one group: inside, each sends to both others; across, to one."""
    nesting = (np.array([0, 0, 0, 1, 1, 1]), np.zeros(6, dtype=np.int64))
    inside, across = block_rings(np.array([[5, 0, 4, 1, 3, 2]]), nesting, direct=1)
    pairs = sorted(zip(inside.source.tolist(), inside.target.tolist(), strict=True))
    assert pairs == [
        (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1),
        (3, 4), (3, 5), (4, 3), (4, 5), (5, 3), (5, 4),
    ]  # fmt: skip
    pairs = sorted(zip(across.source.tolist(), across.target.tolist(), strict=True))
    assert pairs == [(0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)]
    assert across.shard.tolist() == [1 / 3] * 6


def three_and_one() -> tuple[BlockRing, BlockRing]:
    nesting = (np.arange(8) // 4, np.zeros(8, dtype=np.int64))
    inside, across = block_rings(np.array([[4, 2, 0, 1]]), nesting)
    return inside, across


def test_uneven_blocks_exchange_the_most_and_leave_the_least():
    """Devices 0, 1, 2 of one node, 4 of the next: fan 3 inside, but 4 still holds all of it.

    Across, all three send to 4, and 4 to the first of them.
    """
    inside, across = three_and_one()
    assert dict(zip(inside.source.tolist(), inside.target.tolist(), strict=True)) == {
        0: 1, 1: 2, 2: 0,
    }  # fmt: skip
    assert inside.fan.tolist() == [3] * 3
    assert inside.shard.tolist() == [1.0] * 3
    found = dict(zip(across.source.tolist(), across.target.tolist(), strict=True))
    assert found == {0: 4, 1: 4, 2: 4, 4: 0}
    assert across.fan.tolist() == [2] * 4
    assert across.shard.tolist() == [1.0] * 4


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_members_does_not_matter(name):
    """Blocks sort themselves: a hierarchy is priced alike however its members are listed."""
    nesting = collapse(EVERY[name]).nesting
    groups = random_groups(len(nesting[0]), 4)
    shuffled = np.random.default_rng(0).permuted(groups, axis=1)
    for one, other in zip(
        block_rings(groups, nesting), block_rings(shuffled, nesting), strict=True
    ):
        for part in ("source", "target", "owner", "fan", "shard"):
            assert (getattr(one, part) == getattr(other, part)).all()
