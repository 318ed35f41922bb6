"""A tree's tiers as arrays that compiled loops read."""

from __future__ import annotations

from typing import NamedTuple

from nest_core.network.link_map import IntArray

__all__ = ["Ways"]


class Ways(NamedTuple):
    """Uplinks of every device at every tier; see `TreeTier`.

    Attributes
    ----------
    child, group : (tiers, devices)
    leaves_by : (tiers,)
        The tier by which a flow leaves its device, where it meets its peer.
    offset : (tiers,)
        Number of the tier's first link group.
    group_links, parallel : (tiers,)
    links, rank : (tiers, devices)
        Of the device's child, and the device among those of its child.
    """

    child: IntArray
    group: IntArray
    leaves_by: IntArray
    offset: IntArray
    group_links: IntArray
    parallel: IntArray
    links: IntArray
    rank: IntArray
