"""Columns of units and rails: where leaves of rail-wired fabrics stand, and what a rail wears."""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.picture.aggregate import tiles
from nest_core.picture.clos_structure import Structure

__all__ = ["COLOURS", "Grid", "grid_of", "rail_look"]

COLOURS = 8
"""Most rails that have a colour each."""

_MOST_UNITS = 12
_LEAST_COLUMN = 6.6


def rail_look(rail: int, rails: int) -> str:
    """Colour of a rail; over eight they are grey, and numbers tell them apart.

    Examples
    --------
    >>> rail_look(3, 8), rail_look(3, 18)
    ('rail-3', '')
    """
    return f"rail-{rail}" if rails <= COLOURS else ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns of units and rails.

    Parameters
    ----------
    units, rails : tuple of int
        Units and rails of every tile.
    left, right : float
    """

    units: tuple[int, ...]
    rails: tuple[int, ...]
    left: float
    right: float

    @property
    def pitch(self) -> float:
        """Between two tiles of units."""
        return (self.right - self.left) / len(self.units)

    @property
    def wide(self) -> float:
        """Of a unit's frame."""
        return self.pitch - min(14.0, max(2.0, 0.08 * self.pitch))

    @property
    def column(self) -> float:
        """Between two rails of a unit."""
        return (self.wide - 4) / len(self.rails)

    @property
    def box(self) -> float:
        """Of a leaf."""
        return self.column - min(6.0, max(1.6, 0.16 * self.column))

    def unit_left(self, unit: int) -> float:
        """Left edge of a tile of units."""
        return self.left + (unit + 0.5) * self.pitch - self.wide / 2

    def middle(self, unit: int, rail: int) -> float:
        """Middle of a column."""
        return self.unit_left(unit) + 2 + (rail + 0.5) * self.column

    @property
    def said(self) -> str:
        """Tiles in words."""
        if max(self.units) == 1:
            return ""
        return f"drawn {self.units[0]} units at a time"


def grid_of(structure: Structure, units: int, left: float, right: float) -> Grid:
    """As many units and rails as have room, tiles of several where not."""
    width, rails = right - left, structure.fabric.rails
    shown = rails
    if width / rails < _LEAST_COLUMN + 2:
        shown = len(tiles(rails, width * 0.8))
    by_rail = tiles(rails, width) if shown == rails else (rails // shown,) * shown
    if sum(by_rail) != rails:
        by_rail = (rails,)
    most = max(1, min(_MOST_UNITS, int(width / (len(by_rail) * _LEAST_COLUMN + 4))))
    size = -(-units // most)
    size = next((d for d in range(size, 2 * size) if units % d == 0), size)
    full, rest = divmod(units, size)
    return Grid((size,) * full + ((rest,) if rest else ()), by_rail, left, right)
