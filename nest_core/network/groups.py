"""How the members of groups find one another: rings, exchanges and nested blocks.

Groups come as an int array (groups, members) of devices, one row per group.

The level matrix: at which level any two devices meet, over blocks of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.documents.errors import require
from nest_core.network.kernels import ring_level
from nest_core.network.levels import Network
from nest_core.network.link_map import BoolArray, FloatArray, IntArray
from nest_core.network.phases import Phase, PhaseParts

__all__ = [
    "MAX_BLOCKS",
    "MOST_FLOWS",
    "BlockRing",
    "LevelBlocks",
    "block_rings",
    "exchange",
    "in_parts",
    "level_blocks",
    "numbered",
    "ring",
]

MOST_FLOWS = 2_000_000
"""Flows at once; finding their routes then takes about 1 GB, of hashed ones 3."""
PART_FLOWS = 250_000
"""Of each part where there are more."""


def ring(groups: IntArray, *, stride: int = 1, volume: float, steps: float) -> Phase:
    """Every member sends to the one ``stride`` places on, in the order given."""
    count, size = groups.shape
    return Phase(
        groups.reshape(-1),
        np.roll(groups, -stride, axis=1).reshape(-1),
        np.repeat(np.arange(count), size),
        np.full(count * size, volume),
        np.full(count * size, steps),
    )


def exchange(groups: IntArray, *, volume: float, steps: float) -> Phase:
    """Every member sends to every other at once, ``volume`` to each."""
    count, size = groups.shape
    index = np.arange(size)
    others = (index[:, None] + index[None, 1:]) % size
    flows = count * size * (size - 1)
    return Phase(
        np.repeat(groups, size - 1, axis=1).reshape(-1),
        groups[:, others].reshape(-1),
        np.repeat(np.arange(count), size * (size - 1)),
        np.full(flows, volume),
        np.full(flows, steps),
    )


def in_parts(
    groups: IntArray, group_flows: int, phases_of: Callable[[IntArray], list[Phase]]
) -> Sequence[Phase | PhaseParts]:
    """Return the phase of all groups, in parts where its flows are too many to list at once.

    Parameters
    ----------
    groups : (groups, members)
    group_flows : int
        Of one group.
    phases_of : callable (groups) -> list of Phase
        One phase, or none.

    Raises
    ------
    InputError
        Where one group alone has too many.
    """
    require(
        group_flows <= MOST_FLOWS,
        "all_to_all",
        f"must not need more than {MOST_FLOWS:,} flows of one group",
        group_flows,
        "use smaller groups",
    )
    if len(groups) * group_flows <= MOST_FLOWS:
        return phases_of(groups)
    count = max(1, PART_FLOWS // group_flows)

    def parts() -> Iterator[Phase]:
        yield from (
            replace(part, owner=part.owner + start)
            for start in range(0, len(groups), count)
            for part in phases_of(groups[start : start + count])
        )

    return [parts]


@dataclass(frozen=True, slots=True, eq=False)
class BlockRing:
    """The rings of one level of a hierarchy: who holds the same shard in neighbouring blocks.

    Parameters
    ----------
    level : int
        Index into the nesting.
    source, target, owner : int array (flows,)
        Ring neighbours, and the number of their group.
    fan : int array (flows,)
        Largest number of blocks that their group joins at this level.
    shard : float array (flows,)
        Part of the buffer that the levels inside have left to each member.
    """

    level: int
    source: IntArray
    target: IntArray
    owner: IntArray
    fan: IntArray
    shard: FloatArray

    def phase(self, *, volume: FloatArray | float, steps: FloatArray | float) -> Phase:
        """Return these neighbours as one phase."""
        every = np.ones(self.source.shape)
        return Phase(self.source, self.target, self.owner, every * volume, every * steps)


def in_block_order(groups: IntArray, nesting: tuple[IntArray, ...]) -> IntArray:
    """Return the members of one group after another, each sorted by outer and inner blocks."""
    order = np.lexsort((groups, *(level[groups] for level in nesting)), axis=1)
    return np.take_along_axis(groups, order, axis=1).reshape(-1)


def opening(block: IntArray, row: IntArray) -> BoolArray:
    """Return which places are the first of their group in a block."""
    opens = np.ones(len(block), dtype=bool)
    opens[1:] = (block[1:] != block[:-1]) | (row[1:] != row[:-1])
    return opens


def block_rings(
    groups: IntArray, nesting: tuple[IntArray, ...], direct: int = 0
) -> Iterator[BlockRing]:
    """Climb a hierarchy of blocks, innermost first; levels without traffic are left out.

    Where a group occupies blocks unevenly, the largest fan-in sets the exchange and the
    smallest the shard that it leaves, and members of a block with few do several's work.

    Parameters
    ----------
    groups : int array (groups, members)
    nesting : tuple of int array (devices,)
        Block of every device, innermost first; blocks nest, the last one holds everything.
    direct : int
        In so many innermost levels every member has all others as neighbours, not the next.
    """
    count, size = groups.shape
    member = in_block_order(groups, nesting)
    child = start = np.arange(count * size)  # inner blocks; at first every place its own
    shard = np.ones(count)
    for index, level in enumerate(nesting):
        flows, child, start, least = ring_level(
            member, level[member], size, child, start, shard, index < direct
        )
        if len(flows[0]):
            yield BlockRing(index, *flows)
        shard = shard / least


def numbered(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Labels numbered by first appearance, and where each appears first."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[inverse].astype(np.int64), first[order]


MAX_BLOCKS = 128


@dataclass(frozen=True, slots=True, eq=False)
class LevelBlocks:
    """The level matrix over blocks of consecutive devices.

    Parameters
    ----------
    size : int
        Devices per block; the last block may be smaller.
    matrix : int array, shape (blocks, blocks)
        Level at which the blocks' first devices meet; on the diagonal the level that joins the
        devices inside the block, −1 where it is a single device.
    """

    size: int
    matrix: IntArray


def level_blocks(network: Network, limit: int = MAX_BLOCKS) -> LevelBlocks:
    """Aggregate devices to at most ``limit`` blocks that straddle no group where possible."""
    devices = network.devices
    least = -(-devices // limit)
    groups = [level.group_size for level in network.levels[:-1] if level.kind == "nested"]
    fitting = (
        size
        for size in range(least, devices + 1)
        if all(group % size == 0 or size % group == 0 for group in groups)
    )
    size = next(fitting, least)
    first = np.arange(0, devices, size)
    last = np.minimum(first + size, devices) - 1
    matrix = network.level(first[:, None], first[None, :])
    np.fill_diagonal(matrix, network.level(first, last))
    return LevelBlocks(size, matrix)
