"""Sizing of Clos fabrics in whole switches, ports and cables, per plane.

Sources and formulae: ``docs/method.md``, "Sizing". Groups are numbered

* height 1, leaves: ``unit * rails + rail`` (``rails`` is 1 where a node has one leaf);
* height 2: pods in three tiers; in two tiers one group, or one per rail where rails are apart;
* height 3: one group, or one per rail where rails are apart.

One plane is sized; the others are equal to it.

Oversubscription has two meanings. ``"remove_uplinks"`` keeps half of a switch's ports down and
removes uplinks; ``"split_radix"`` divides all ports anew, ``floor(radix o / (o + 1))`` of them
down, so that leaves and pods hold more and there are fewer of them.

Ports are those of NICs' links; a faster link to a spine or a core takes several at either end, and
the ratio is of what links carry.

Uplinks of a leaf are spread evenly over the spines above it, or dealt in turn, leaves one after
the other: the fewest spines then do, and links of a leaf to them differ by one at most. What pods
send to cores is always dealt.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from nest_core.documents.errors import InputError, require
from nest_core.documents.schema.fabric import Oversubscribe
from nest_core.fabric.checks import IntArray

__all__ = ["Demand", "Sizing", "down_ports", "size"]


@dataclass(frozen=True, slots=True)
class Demand:
    """What one plane has to carry.

    Parameters
    ----------
    nodes, radix, tiers : int
    links : int
        NIC links of one node to one leaf.
    rails : int
        Leaves that one node hangs on.
    rail_only : bool
        Rails are networks of their own.
    pods : {"units", "rails"}
        What a pod of three tiers gathers: all leaves of whole units, or leaves of one rail.
    oversubscription : tuple of float
    oversubscribe : {"remove_uplinks", "split_radix"}
        Whether a ratio removes uplinks from half a switch, or divides its ports anew.
    even : bool
        Whether every leaf reaches every spine above it with as many links.
    link_ports : tuple of int
        Ports that one link into every tier takes at either end, innermost first.
    """

    nodes: int
    radix: int
    tiers: int
    links: int
    rails: int
    rail_only: bool
    pods: Literal["units", "rails"]
    oversubscription: tuple[float, ...]
    oversubscribe: Oversubscribe = "remove_uplinks"
    even: bool = True
    link_ports: tuple[int, ...] = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class Sizing:
    """One plane in whole ports.

    Parameters
    ----------
    nodes_per_unit, units, rails : int
        A unit is the nodes under one leaf (under ``rails`` leaves, one per rail).
    down, up : int
        Ports of a full leaf to nodes and to spines; ``up`` is 0 in one tier.
    pod_of : tuple of int
        Group at height 2 of every leaf; empty in one tier.
    leaves : tuple of int
        Leaves under each group at height 2.
    spines, spine_up : tuple of int
        Per group at height 2: its switches, and uplinks of one of them (0 in two tiers).
    top_of : tuple of int
        Group at height 3 of every pod; empty below three tiers.
    cores : int
        Switches of one group at height 3; 0 below three tiers.
    """

    nodes_per_unit: int
    units: int
    rails: int
    down: int
    up: int
    pod_of: tuple[int, ...] = ()
    leaves: tuple[int, ...] = ()
    spines: tuple[int, ...] = ()
    spine_up: tuple[int, ...] = ()
    top_of: tuple[int, ...] = ()
    cores: int = 0

    @property
    def fullest(self) -> int:
        """The group at height 2 with the most leaves; 0 in one tier."""
        return max(range(len(self.leaves)), key=self.leaves.__getitem__, default=0)

    def spine_links(self, group: int) -> IntArray:
        """Return links between leaves and spines of a group, shape (leaves, spines).

        Examples
        --------
        >>> Sizing(1, 3, 1, 4, 4, leaves=(3,), spines=(3,)).spine_links(0).tolist()
        [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
        """
        return _dealt([self.up] * self.leaves[group], self.spines[group])

    def core_links(self, top: int) -> list[IntArray]:
        """Return links between spines and cores under one top, per pod, (spines, cores)."""
        pods = [pod for pod, above in enumerate(self.top_of) if above == top]
        ends = [up for pod in pods for up in [self.spine_up[pod]] * self.spines[pod]]
        last = np.cumsum([self.spines[pod] for pod in pods])
        return np.split(_dealt(ends, self.cores), last[:-1])


@lru_cache(maxsize=64)
def size(demand: Demand) -> Sizing:
    """Switches of one plane; refuses what the radix cannot carry.

    Raises
    ------
    InputError
        Naming tiers, radix or devices.
    """
    radix, links = demand.radix, demand.links
    if demand.tiers == 1:
        require(
            demand.nodes * links <= radix,
            "clos.tiers",
            f"must be more than 1, because {demand.nodes * links} NICs exceed radix {radix}",
            1,
            "use 2 tiers or a larger radix",
        )
        return Sizing(demand.nodes, 1, demand.rails, demand.nodes * links, 0)
    most = down_ports(demand, 0)
    per_unit = most // links
    if per_unit < 1:
        split = demand.oversubscribe == "split_radix"
        raise InputError(
            "clos.radix",
            f"must leave ports for one node of {links} NICs on "
            + (f"the {most} ports of the leaf that point down" if split else "half of the leaf"),
            radix,
            f"use a radix of at least {2 * links}",
        )
    units = -(-demand.nodes // per_unit)
    down = per_unit * links
    up = _uplinks(demand, 0, down)
    return (
        _two(demand, per_unit, units, down, up)
        if demand.tiers == 2
        else _three(demand, per_unit, units, down, up)
    )


def _two(demand: Demand, per_unit: int, units: int, down: int, up: int) -> Sizing:
    radix, rails, wide = demand.radix, demand.rails, demand.link_ports[1]
    leaves, ports = units if demand.rail_only else units * rails, radix // wide
    require(
        leaves <= ports,
        "clos.tiers",
        f"must be more than 2, because {leaves} leaves exceed radix {radix}"
        + (f" over the {wide} ports of a link" if wide > 1 else ""),
        2,
        "use 3 tiers, a larger radix or fewer devices",
    )
    groups = rails if demand.rail_only else 1
    spines = _spines(demand, leaves * up, up, ports)
    leaf = np.arange(units * rails)
    return Sizing(
        per_unit,
        units,
        rails,
        down,
        up,
        pod_of=_plain(leaf % groups),
        leaves=(leaves,) * groups,
        spines=(spines,) * groups,
        spine_up=(0,) * groups,
    )


def _three(demand: Demand, per_unit: int, units: int, down: int, up: int) -> Sizing:
    _, wide, wider = demand.link_ports
    rails, most, radix = demand.rails, down_ports(demand, 1) // wide, demand.radix // wider
    unit, rail = np.divmod(np.arange(units * rails), rails)
    by_rail = demand.rail_only or demand.pods == "rails"
    if by_rail:
        per_rail = -(-units // most)
        pod_of = rail * per_rail + unit // most
        pods = per_rail * rails
    else:
        require(
            rails <= most,
            "clos.rails",
            f"must be at most {most}, because a pod of whole units has {most} leaves",
            rails,
            'use fewer rails or pods = "rails"',
        )
        pod_of = unit // (most // rails)
        pods = -(-units // (most // rails))
    tops = rails if demand.rail_only else 1
    require(
        pods // tops <= radix,
        "clos.devices",
        f"must not need more than {radix} pods",
        f"{pods // tops} pods",
        "use a larger radix or fewer devices",
    )
    leaves = np.bincount(pod_of, minlength=pods)
    spines = tuple(_spines(demand, int(count) * up, up, most) for count in leaves)
    spine_down = [
        int(count) * up // switches for count, switches in zip(leaves, spines, strict=True)
    ]
    spine_up = tuple(_uplinks(demand, 1, links * wide) for links in spine_down)
    total = sum(count * ports for count, ports in zip(spines, spine_up, strict=True))
    return Sizing(
        per_unit,
        units,
        rails,
        down,
        up,
        pod_of=_plain(pod_of),
        leaves=_plain(leaves),
        spines=spines,
        spine_up=spine_up,
        top_of=tuple(pod * tops // pods for pod in range(pods)),
        cores=-(-total // tops // radix),
    )


def down_ports(demand: Demand, tier: int) -> int:
    """Ports of a switch that may point down: half of them, or the share that the ratio gives.

    Parameters
    ----------
    tier : int
        0 for leaves, 1 for the spines of pods.
    """
    radix, ratio = demand.radix, demand.oversubscription[tier]
    if demand.oversubscribe == "remove_uplinks":
        return radix // 2
    # A ratio written in decimals may miss a whole port by its last digit.
    split = math.floor(radix * ratio / (ratio + 1) + 1e-6)
    return min(radix - demand.link_ports[tier + 1], split)


def _uplinks(demand: Demand, tier: int, down: int) -> int:
    """Return the whole number of uplinks that carry nearest to ``down / ratio``, at least one.

    A switch that divides its ports anew and has all its downlinks uses all the others, but not
    more than it has down.
    """
    wide, free = demand.link_ports[tier + 1], demand.radix - down
    is_split = demand.oversubscribe == "split_radix" and down == down_ports(demand, tier)
    ports = min(down, free) if is_split else down / demand.oversubscription[tier]
    return min(free // wide, max(1, math.floor(ports / wide + 0.5)))


def _spines(demand: Demand, ends: int, up: int, ports: int) -> int:
    """Return the fewest switches with ports for all ends of uplinks.

    Spread evenly, they share the uplinks of one leaf; below cores they have as many links down
    each, so that their own uplinks are whole.
    """
    shared = up if demand.even else ends if demand.tiers == 3 else 0
    return next(count for count in range(-(-ends // ports), ends + 1) if shared % count == 0)


def _dealt(links: Sequence[int], switches: int) -> IntArray:
    """Return links to switches that are dealt in turn, shape (len(links), switches)."""
    dealt = (np.cumsum(links)[:, None] + np.arange(switches)[::-1]) // switches
    return np.diff(dealt, axis=0, prepend=0)


def _plain(numbers: IntArray) -> tuple[int, ...]:
    return tuple(int(number) for number in numbers)
