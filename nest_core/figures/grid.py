"""Devices on a plane: groups side by side, recursively, or the planes of a torus.

The result is a grid of cells with narrow empty rows and columns between groups, wider the
further out the level that they separate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nest_core.network import FloatArray, IntArray, Network

__all__ = ["MAX_CELLS", "DeviceGrid", "device_grid"]

MAX_CELLS = 16_384
_GAP = 0.45  # of a cell, per level that a gap separates


@dataclass(frozen=True, slots=True, eq=False)
class DeviceGrid:
    """Cells, row by row from the top.

    Parameters
    ----------
    size : int
        Consecutive devices per cell; 1 unless there are more than `MAX_CELLS` devices.
    cells : int array, shape (rows, columns)
        Number of the cell, −1 where a gap is or nothing.
    x_edges, y_edges : float arrays, shapes (columns + 1,) and (rows + 1,)
        Borders of the columns and rows.
    """

    size: int
    cells: IntArray
    x_edges: FloatArray
    y_edges: FloatArray


def device_grid(network: Network, aspect: float = 1.6) -> DeviceGrid:
    """Lay the devices of a network out, about ``aspect`` times as wide as high."""
    if network.torus is not None:
        size, fans = _torus_fans(network.torus.shape)
        shapes = _torus_shapes(fans, aspect)
    else:
        size, fans = _nested_fans(network)
        shapes = _nested_shapes(fans, aspect)
    count = -(-network.devices // size)
    number = np.arange(count)
    row = np.zeros(count, dtype=np.int64)
    column = np.zeros(count, dtype=np.int64)
    high, wide = 1, 1
    for fan, (rows, columns) in zip(fans, shapes, strict=True):
        place = number % fan
        number = number // fan
        row += place // columns * high
        column += place % columns * wide
        high, wide = high * rows, wide * columns
    cells = np.full((high, wide), -1, dtype=np.int64)
    cells[row, column] = np.arange(count)
    y_edges, rows_at = _edges([rows for rows, _ in shapes])
    x_edges, columns_at = _edges([columns for _, columns in shapes])
    spaced = np.full((len(y_edges) - 1, len(x_edges) - 1), -1, dtype=np.int64)
    spaced[np.ix_(rows_at, columns_at)] = cells
    return DeviceGrid(size, spaced, x_edges, y_edges)


def _nested_fans(network: Network) -> tuple[int, list[int]]:
    """Devices per cell, and how many children each level joins, innermost first."""
    sizes = [level.group_size for level in network.levels[:-1]] + [network.devices]
    least = -(-network.devices // MAX_CELLS)
    cell = 1
    if least > 1:
        cell = next((size for size in sizes if size >= least and size < network.devices), least)
        inner = [size for size in range(least, cell) if cell % size == 0]
        cell = inner[0] if inner else cell
    fans, below = [], cell
    for size in sizes:
        if size > below:
            fans.append(-(-size // below))
            below *= fans[-1]
    return cell, fans or [1]


def _nested_shapes(fans: list[int], aspect: float) -> list[tuple[int, int]]:
    """Rows and columns of the children at each level."""
    shapes = []
    high = wide = 1
    for index, fan in enumerate(fans):
        target = aspect if index == len(fans) - 1 else 2.0
        rows, columns = _arranged(fan, target * high / wide)
        shapes.append((rows, columns))
        high, wide = high * rows, wide * columns
    return shapes


def _arranged(count: int, aspect: float) -> tuple[int, int]:
    """Rows and columns for ``count`` cells, near the aspect and with few cells left empty."""

    def misfit(rows: int) -> float:
        columns = -(-count // rows)
        empty = rows * columns / count - 1
        return abs(math.log(columns / rows / aspect)) + 4 * empty

    rows = min(range(1, math.isqrt(4 * count) + 1), key=misfit)
    return rows, -(-count // rows)


def _torus_fans(shape: tuple[int, ...]) -> tuple[int, list[int]]:
    """Devices per cell, and the cells along each dimension; the first ones are merged first."""
    size, fans = 1, []
    for length in shape:
        least = -(-math.prod(shape) // MAX_CELLS // size)
        merged = next(
            part
            for part in range(1, length + 1)
            if part == length or (length % part == 0 and part >= least)
        )
        fans.append(length // merged)
        size *= merged
    return size, fans


def _torus_shapes(fans: list[int], aspect: float) -> list[tuple[int, int]]:
    """The first dimension runs to the right, the second down, planes of a third side by side."""
    right, down, *planes = fans
    return [(1, right), (down, 1)] + [_arranged(count, aspect * down / right) for count in planes]


def _edges(fans: list[int]) -> tuple[FloatArray, IntArray]:
    """Borders of cells and gaps along one direction, and which of them are cells."""
    count = math.prod(fans)
    edges, cells = [0.0], []
    for index in range(count):
        level, below = 0, 1
        for depth, fan in enumerate(fans):
            if index and index % below == 0 and below > 1:
                level = depth
            below *= fan
        if level:
            edges.append(edges[-1] + _GAP * level)
        cells.append(len(edges) - 1)
        edges.append(edges[-1] + 1.0)
    return np.array(edges), np.array(cells, dtype=np.int64)
