"""Fabrics given level by level: nodes in racks in pods.

A tier joins ``group_size`` children (innermost: devices), or, where groups differ, as many as
``group_sizes`` says group by group. What climbs into a tier goes over uplinks owned by the
devices below (``uplink_per = "device"``, as NICs are) or by the whole child group
(``"child"``, as a rack's uplink is). Mixing the two up changes an all-reduce several times
over, so every tier says which.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from nest_core.documents import (
    InputError,
    from_gbps_bytes,
    from_microseconds,
    gigabytes,
    humanise_rate,
    microseconds,
    plural,
    require,
)
from nest_core.documents.schema import FabricFile, LevelTable
from nest_core.fabric.checks import (
    IntArray,
    LinkGraph,
    check_devices,
    check_hosts,
    check_some_left,
    parse_failed,
    positive,
    whole,
)
from nest_core.fabric.fabric import Document, Fabric

__all__ = ["Hierarchical", "Tier"]


@dataclass(frozen=True, slots=True)
class Tier:
    """One level of a hierarchy.

    Parameters
    ----------
    name : str
    group_size : int
        Children joined here; at the innermost tier a child is a device. Where groups differ,
        the largest (0: taken from ``group_sizes``).
    bandwidth_Bps : float
        One uplink into this tier, one direction.
    latency_s : float
        Between two devices that meet here, one way, total.
    uplink_per : {"device", "child"}
    oversubscription : float
        Down : up; divides the uplink.
    group_sizes : tuple of int
        Children of every group in order, where groups differ; empty where they are equal.
    names : tuple of str
        What every group is called, in order; empty: by the tier's name and a number.
    """

    name: str
    group_size: int
    bandwidth_Bps: float
    latency_s: float
    uplink_per: Literal["device", "child"] = "device"
    oversubscription: float = 1.0
    group_sizes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.group_sizes and self.group_size == 0:
            object.__setattr__(self, "group_size", max(self.group_sizes))

    @classmethod
    def from_table(cls, index: int, level: LevelTable) -> Self:
        """Return the tier of one ``[[level]]``."""
        if (level.group_size is None) == (level.group_sizes is None):
            both = level.group_size is not None
            raise InputError(
                f"level[{index}].group_size",
                "must be absent where group_sizes is given"
                if both
                else "is required, unless group_sizes lists every group",
                level.group_size if both else "missing",
                "remove one of them" if both else "add it",
            )
        return cls(
            name=level.name,
            group_size=level.group_size or 0,
            bandwidth_Bps=from_gbps_bytes(level.bandwidth_GBps),
            latency_s=from_microseconds(level.latency_us),
            uplink_per=level.uplink_per,
            oversubscription=level.oversubscription,
            group_sizes=tuple(level.group_sizes or ()),
            names=tuple(level.names),
        )

    @property
    def link_bandwidth_Bps(self) -> float:
        """One uplink into this tier after oversubscription, one direction."""
        return self.bandwidth_Bps / self.oversubscription

    def table(self) -> Document:
        """Return the inverse of `from_table`."""
        sizes = list(self.group_sizes)
        return {
            "name": self.name,
            **({"group_sizes": sizes} if sizes else {"group_size": self.group_size}),
            **({"names": list(self.names)} if self.names else {}),
            "uplink_per": self.uplink_per,
            "bandwidth_GBps": gigabytes(self.bandwidth_Bps),
            "oversubscription": self.oversubscription,
            "latency_us": microseconds(self.latency_s),
        }


@dataclass(frozen=True, slots=True)
class Hierarchical(Fabric):
    """A tree of switches, one tier per level.

    Parameters
    ----------
    tiers : tuple of Tier
        Innermost first; the outermost is one group.
    missing : tuple of str
        ``"device 9"``, or a group by the name of its tier (``"rack 2"``) with all it holds.
    devices_per_host : int
        Devices that one operating system sees, where an innermost group has several hosts, or
        a host several of them (bridged pairs); 0: those of an innermost group.
    routing : {"adaptive", "shortest_path"}
        Kept for the document; a tree has one route.
    """

    kind = "hierarchical"
    noun = "hierarchy"
    routed = False

    tiers: tuple[Tier, ...]

    def __post_init__(self) -> None:
        require(self.tiers, "level", "must list at least one level", [], "add a [[level]] table")
        for index, tier in enumerate(self.tiers):
            where = f"level[{index}]"
            for place, size in enumerate(tier.group_sizes):
                whole(f"{where}.group_sizes[{place}]", size)
            whole(f"{where}.group_size", tier.group_size)
            positive(f"{where}.bandwidth_GBps", tier.bandwidth_Bps)
            positive(f"{where}.latency_us", tier.latency_s, zero=True)
            positive(f"{where}.oversubscription", tier.oversubscription)
        self._check_groups()
        check_hosts(
            0 if self.host_level else self.devices_per_host,
            self.tiers[0].group_sizes or (self.tiers[0].group_size,),
        )
        check_some_left(self.missing, self.devices)

    def _check_groups(self) -> None:
        """Refuse sizes that do not add up, from the outermost tier inwards."""
        groups = 1
        for index in reversed(range(len(self.tiers))):
            tier = self.tiers[index]
            if tier.group_sizes and len(tier.group_sizes) != groups:
                above = "the outermost" if groups == 1 else "what the level above joins"
                raise InputError(
                    f"level[{index}].group_sizes",
                    f"must have one entry per group, and {groups} of them ({above})",
                    f"{len(tier.group_sizes)} entries",
                    "change the list or the level above",
                )
            require(
                len(tier.names) in (0, groups),
                f"level[{index}].names",
                f"must name every group, {groups} of them",
                f"{len(tier.names)} names",
                "change the list",
            )
            groups = sum(tier.group_sizes) if tier.group_sizes else groups * tier.group_size
            check_devices("level", groups)

    @classmethod
    def from_file(cls, file: FabricFile, levels: list[LevelTable]) -> Self:
        """Return the fabric of a file's levels."""
        tiers = tuple(Tier.from_table(index, level) for index, level in enumerate(levels))
        return cls(
            file.name,
            tiers,
            missing=tuple(file.missing),
            devices_per_host=file.devices_per_host or 0,
            routing=file.routing,
        )

    def tables(self) -> Document:
        """Its levels."""
        return {"level": [tier.table() for tier in self.tiers]}

    @property
    def ratios(self) -> tuple[float, ...]:
        """As stated, of every level above the innermost."""
        return tuple(tier.oversubscription for tier in self.tiers[1:])

    def realised_ratios(self) -> tuple[str, ...]:
        """Return the divided uplink of every level above the innermost."""
        return tuple(
            f"{humanise_rate(tier.bandwidth_Bps / tier.oversubscription)} per "
            + ("device" if tier.uplink_per == "device" else f"{below.name} uplink")
            for below, tier in pairwise(self.tiers)
        )

    def arrangement(self) -> str:
        """Levels and their ratios."""
        return f"{plural(len(self.tiers), 'level')}{self.ratio_words()}"

    def extent(self) -> str:
        """Sizes of groups, the largest ones where they differ."""
        return " × ".join(str(tier.group_size) for tier in reversed(self.tiers))

    def contents(self) -> str:
        """Uplinks of every level."""
        return (
            "; ".join(
                f"{humanise_rate(tier.link_bandwidth_Bps)} per "
                f"{'device' if tier.uplink_per == 'device' else 'uplink'} into the {tier.name}"
                for tier in self.tiers
            )
            + "."
        )

    @property
    def group_names(self) -> tuple[str, ...]:
        """Those of its levels."""
        return tuple(tier.name for tier in self.tiers)

    def group_labels(self, level: int) -> tuple[str, ...]:
        """Name the group of every device at a level, where its file does."""
        names = self.tiers[level].names
        return tuple(names[at] for at in self.group_of(level).tolist()) if names else ()

    @property
    def groups(self) -> tuple[int, ...]:
        """Groups of every level, innermost first, failed ones counted."""
        return tuple(len(sizes) for sizes in _group_sizes(self))

    @property
    def devices(self) -> int:
        """Number of devices present."""
        return int(_present(self).size)

    def group_of(self, level: int) -> IntArray:
        """Group of each device at a level (0: innermost), shape (devices,)."""
        group = _present(self)
        for sizes in _group_sizes(self)[: level + 1]:
            group = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)[group]
        return group

    @property
    def element_counts(self) -> dict[str, int]:
        """Devices, and groups of every level."""
        sizes = zip(self.tiers, _group_sizes(self), strict=True)
        devices = {"device": int(_group_sizes(self)[0].sum())}
        return devices | {tier.name: len(of) for tier, of in sizes}

    def place_of(self) -> IntArray:
        """Return number of every device as if nothing had failed, shape (devices,)."""
        return _present(self)

    @property
    def host_level(self) -> int:
        """Level whose groups are nodes with an operating system, or, the innermost, several."""
        sizes = accumulate((tier.group_size * (not tier.group_sizes) for tier in self.tiers), mul)
        return next((k for k, size in enumerate(sizes) if 0 < size == self.devices_per_host), 0)

    def host_of(self) -> IntArray:
        """Host of every device, shape (devices,); numbers count failed ones too."""
        return (
            np.asarray(_present(self) // self.devices_per_host)
            if self.devices_per_host
            else self.group_of(0)
        )

    def uplinks(self, level: int) -> IntArray:
        """Uplinks of every child into its group at a level, shape (children at ``level``,).

        Children are the groups of the level inside, or, at level 0, the devices present. A
        failed device takes its own uplinks with it; a child without devices has none.
        """
        if level == 0:
            return np.ones(self.devices, dtype=np.int64)
        below = np.bincount(self.group_of(level - 1), minlength=self.groups[level - 1])
        owned = below if self.tiers[level].uplink_per == "device" else np.minimum(below, 1)
        return owned.astype(np.int64)

    def capacity_Bps(self, level: int) -> npt.NDArray[np.float64]:
        """Bytes/s of every child's uplinks, one direction, after oversubscription."""
        return np.asarray(
            self.uplinks(level) * self.tiers[level].link_bandwidth_Bps, dtype=np.float64
        )

    def explicit(self) -> LinkGraph:
        """Return the link graph: devices are integers, switches ``(level, tier name, number)``.

        Above the innermost level the uplinks that a device owns hang on a NIC of its own, one for
        all levels; the uplink of a whole node on a NIC of the node; further out an uplink of a
        group joins two switches. NICs are ``("nic", level, device or node)``. Edges carry
        ``bandwidth_Bps`` (one link, one direction), ``count`` and ``latency_s``. Groups without
        devices are not drawn.

        Raises
        ------
        InputError
            Over 16,384 devices, or if latency falls outward (a path cannot get shorter by
            climbing further).
        """
        graph = self._devices_alone()
        child = np.arange(self.devices, dtype=np.int64)
        reached = 0.0
        for index, tier in enumerate(self.tiers):
            per_device = tier.uplink_per == "device"
            step = tier.latency_s / 2 - (0.0 if per_device else reached)
            require(
                step >= 0,
                f"level[{index}].latency_us",
                "must not be smaller than the level's inside it",
                tier.latency_s * 1e6,
                "state the total latency between two devices that meet at this level",
            )
            group = self.group_of(index)
            below = np.arange(self.devices, dtype=np.int64) if per_device else child
            for place, parent in np.unique(np.stack((below, group)), axis=1).T.tolist():
                switch = (index, tier.name, parent)
                end = (
                    place
                    if per_device or not index
                    else (index - 1, self.tiers[index - 1].name, place)
                )
                graph.add_node(switch, role="switch")
                if index and (per_device or index == 1):
                    # Apart from the ports that its devices have inside the node.
                    end = self._card(graph, index, end)
                self._join(graph, end, switch, tier.link_bandwidth_Bps, step)
            reached = tier.latency_s / 2
            child = group
        return graph

    def _card(self, graph: LinkGraph, level: int, owner: Any) -> Any:
        """Return the NIC of a device or of a node's switch, which carries all uplinks of its
        owner.
        """
        levels = [
            index for index, tier in enumerate(self.tiers) if index and tier.uplink_per == "device"
        ]
        if not isinstance(owner, int):
            levels = [level]
        nic = ("nic", min(levels), owner if isinstance(owner, int) else owner[-1])
        if nic not in graph:
            graph.add_node(nic, role="nic")
            rate = sum(self.tiers[index].link_bandwidth_Bps for index in levels)
            self._join(graph, owner, nic, rate, 0.0)
        return nic

    @staticmethod
    def _join(graph: LinkGraph, a: Any, b: Any, rate_Bps: float, latency_s: float) -> None:
        graph.add_edge(a, b, bandwidth_Bps=rate_Bps, count=1, latency_s=latency_s)


@lru_cache(maxsize=32)
def _group_sizes(fabric: Hierarchical) -> tuple[IntArray, ...]:
    """Children of every group, per level, nothing failed."""
    sizes: list[IntArray] = []
    groups = 1
    for tier in reversed(fabric.tiers):
        tier_sizes = np.full(groups, tier.group_sizes or tier.group_size, dtype=np.int64)
        tier_sizes.flags.writeable = False
        sizes.append(tier_sizes)
        groups = int(tier_sizes.sum())
    return tuple(reversed(sizes))


@lru_cache(maxsize=32)
def _present(fabric: Hierarchical) -> IntArray:
    """Numbers of the devices present, as if nothing had failed."""
    sizes = _group_sizes(fabric)
    whole_fabric = np.arange(int(sizes[0].sum()), dtype=np.int64)
    counts = fabric.element_counts
    require(
        len(counts) > len(fabric.tiers) or not fabric.missing,
        "missing",
        "must be absent where two levels, or a level and its devices, share a name",
        [tier.name for tier in fabric.tiers],
        "rename the level",
    )
    gone = parse_failed(fabric.missing, counts)
    present = np.ones(whole_fabric.size, dtype=bool)
    present[list(gone.get("device", ()))] = False
    group = whole_fabric
    for tier, tier_sizes in zip(fabric.tiers, sizes, strict=True):
        group = np.repeat(np.arange(len(tier_sizes), dtype=np.int64), tier_sizes)[group]
        present &= ~np.isin(group, gone.get(tier.name, ()))
    positions = np.flatnonzero(present).astype(np.int64)
    positions.flags.writeable = False
    return positions
