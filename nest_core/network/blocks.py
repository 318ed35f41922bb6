"""The level matrix: at which level any two devices meet, over blocks of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray

__all__ = ["MAX_BLOCKS", "LevelBlocks", "level_blocks"]

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
    fitting = (size for size in range(least, devices + 1) if _nests(size, groups))
    size = next(fitting, least)
    first = np.arange(0, devices, size)
    last = np.minimum(first + size, devices) - 1
    matrix = network.level(first[:, None], first[None, :])
    np.fill_diagonal(matrix, network.level(first, last))
    return LevelBlocks(size, matrix)


def _nests(size: int, groups: list[int]) -> bool:
    return all(group % size == 0 or size % group == 0 for group in groups)
