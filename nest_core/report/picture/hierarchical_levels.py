"""What a hierarchy's levels hold column by column, and its title, subtitle and legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nest_core.bill.inventory import BITS
from nest_core.documents.units import format_ratio
from nest_core.fabric import Hierarchical
from nest_core.report.picture.aggregate import Row
from nest_core.report.picture.ask import Ask
from nest_core.report.picture.fabric_words import plural, said_rate
from nest_core.report.picture.marks import Swatch
from nest_core.report.picture.plan import tier_busy

__all__ = ["Levels", "legend_entries", "subtitle_of", "title_of"]

_OVER = 1.1

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Levels:
    """Groups, capacities and links of every level, column by column.

    Parameters
    ----------
    fabric : Hierarchical
    ask : Ask
    row : Row
        Columns: groups of level ``at``.
    at : int
    """

    fabric: Hierarchical
    ask: Ask
    row: Row
    at: int

    @cached_property
    def whole(self) -> Hierarchical:
        """The fabric if nothing had failed."""
        return replace(self.fabric, missing=())

    @cached_property
    def column_of(self) -> IntArray:
        """Column of every device, failed ones counted."""
        columns = np.repeat(np.arange(len(self.row.counts)), self.row.counts)
        return np.asarray(columns[self.whole.group_of(self.at)], np.int64)

    def columns_of(self, level: int) -> IntArray:
        """Column of every group of a level; −1: of devices."""
        if level < 0:
            return self.column_of
        result = np.zeros(self.whole.groups[level], np.int64)
        result[self.whole.group_of(level)] = self.column_of
        return result

    @cached_property
    def present(self) -> npt.NDArray[np.bool_]:
        """Whether each device is there."""
        here = np.ones(self.whole.devices, bool)
        if self.fabric.missing:
            here[:] = False
            here[self.fabric.place_of()] = True
        return here

    def capacity(self, level: int) -> FloatArray:
        """What climbs into a level, bytes/s by column, nothing failed."""
        return self._by_column(level, self.whole.capacity_Bps(level))

    def links(self, level: int, fabric: Hierarchical) -> IntArray:
        """Links into a level by column, as the bill counts them."""
        tier = self.fabric.tiers[level]
        rate = self.ask.parts.links[level - 1].rate_Gbps
        parallel = round(tier.bandwidth_Bps * BITS / rate)
        uplinks = fabric.uplinks(level) * (parallel / tier.oversubscription)
        counts = np.ceil(uplinks - 1e-6)
        return self._by_column(level, counts).astype(np.int64)

    def _by_column(self, level: int, values: FloatArray) -> FloatArray:
        columns = self.columns_of(level - 1)
        if level == 0 and len(values) != len(columns):
            columns = columns[self.present]
        return np.bincount(columns, values, minlength=len(self.row.counts)).astype(np.float64)

    def busy(self, level: int) -> FloatArray:
        """Busy share of the fullest link into a level, by column."""
        result = np.zeros(len(self.row.counts))
        if self.ask.loads is not None:
            columns = self.column_of[self.present]
            np.maximum.at(result, columns, tier_busy(self.ask.loads, level))
        return result

    @property
    def busiest(self) -> float:
        """The same of the fullest link of all."""
        levels = range(1, len(self.fabric.tiers))
        return max((float(self.busy(level).max()) for level in levels), default=0.0)

    def groups(self, level: int) -> IntArray:
        """Groups of a level by column."""
        return np.bincount(self.columns_of(level), minlength=len(self.row.counts))


def _shares(fabric: Hierarchical) -> list[float]:
    """What a device has of every level's uplinks, bytes/s."""
    whole = replace(fabric, missing=())
    return [
        float(whole.capacity_Bps(level).sum()) / whole.devices for level in range(len(fabric.tiers))
    ]


def title_of(fabric: Hierarchical) -> str:
    shares = _shares(fabric)
    worst = max(range(len(fabric.tiers)), key=lambda level: fabric.tiers[level].oversubscription)
    tier = fabric.tiers[worst]
    if worst and tier.oversubscription > _OVER:
        name = fabric.tiers[worst - 1].name
        return (
            f"{format_ratio(tier.oversubscription)} between {plural(name, 2)}: a device keeps "
            f"{said_rate(shares[worst])} of its {said_rate(shares[1])} there"
            if worst > 1
            else f"{format_ratio(tier.oversubscription)} between {plural(name, 2)}: a device keeps "
            f"{said_rate(shares[worst])} there"
        )
    parts = [f"{said_rate(shares[0])} in its {fabric.tiers[0].name}"]
    parts += [
        f"{said_rate(shares[level])} at the {fabric.tiers[level].name}"
        for level in range(1, len(shares))
        if level == 1 or not np.isclose(shares[level], shares[level - 1])
    ]
    return f"A device has {', '.join(parts)}"


def subtitle_of(fabric: Hierarchical) -> str:
    return (
        f"{fabric.devices:,} devices, given as levels. "
        "Width is capacity: in at the foot, out at the head"
    )


def legend_entries(fabric: Hierarchical, at: int) -> Sequence[Swatch]:
    funnel = [Swatch("funnel", "switch", "switches of a level")] if at > 0 else []
    gone = [Swatch("box", "device gone", "crossed: failed")] if fabric.missing else []
    return [*funnel, Swatch("box", "device", "devices"), Swatch("box", "bundle", "links"), *gone]
