"""Parts of a fabric to test one inside the other: a host, a rail, a leaf, across spines.

A scope is what one command of nccl-tests loads: the blocks that devices nest in, from the node
outwards, and, where NICs are wired rail by rail, one device of every node under one leaf. Inside a
node and under one leaf an all-reduce fills every port. Above, its rings leave most uplinks idle, so
an all-to-all is run across the tier, over at most `MAX_RANKS` devices of whole blocks where two
fit. Blocks of other sizes than the first (a short rack) are scopes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nest_core.documents.errors import InputError
from nest_core.fabric import Clos, Fabric, IntArray
from nest_core.network import Network

__all__ = ["HOST", "RAIL", "Scope", "scopes_of"]

MAX_RANKS = 2048
MAX_SIZES = 3
"""Different sizes of the blocks of one level that are told apart, largest first."""
HOST, RAIL = "host", "rail"


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What one command loads.

    Parameters
    ----------
    tier : str
        Whose links it is the first to load: host, rail, or as the fabric's levels are called.
    name : str
        The tier, and which rail.
    op : str
        As `nest_core.network.collective` calls it.
    devices : int array (ranks,)
        Of the fabric, in the order of ranks; those of the first such part.
    hosts, per_host : int
        Over which they are spread, and ranks on each.
    times : int
        Parts of the fabric that the command is to be run in.
    device : int or None
        Of each host, where only one takes part.
    is_block : bool
        Whether it is all of its block.
    """

    tier: str
    name: str
    op: str
    devices: IntArray
    hosts: int
    per_host: int
    times: int
    device: int | None = None
    is_block: bool = True


def scopes_of(fabric: Fabric, network: Network) -> tuple[Scope, ...]:
    """Return scopes from the inside out.

    Raises
    ------
    InputError
        Where the devices are joined without hosts of their own.
    """
    if network.torus is not None:
        raise InputError(
            "fabric",
            "must have hosts behind NICs, on which nccl-tests run",
            fabric.arrangement(),
            "choose a fabric of switches",
        )
    if network.devices < 2:
        raise InputError("fabric", "must have two devices or more", 1, "name a larger fabric")
    scopes: list[Scope] = []
    blocks = [np.arange(network.devices), *network.nesting]
    for index, (child, block) in enumerate(pairwise(blocks)):
        level = len(network.levels) - 1 if index == len(network.nesting) - 1 else index
        tier = HOST if index == 0 else network.levels[level].name
        if index == 1 and isinstance(fabric, Clos) and fabric.rails > 1:
            scopes += _rails(fabric, network, block)
        op = "all_to_all" if level > 1 else "all_reduce"
        scopes += _of_level(network, tier, op, child, block)
    return tuple(scopes)


def _of_level(
    network: Network, tier: str, op: str, child: IntArray, block: IntArray
) -> Iterator[Scope]:
    """Yield one scope per size of the blocks of a level."""
    sizes = np.bincount(block)
    for size in np.unique(sizes[sizes > 1])[::-1][:MAX_SIZES].tolist():
        alike = np.flatnonzero(sizes == size)
        devices = np.flatnonzero(block == alike[0])
        children, first = np.unique(child[devices], return_index=True)
        if len(children) == 1:
            continue  # the level below was this one already
        if op == "all_to_all" and len(devices) > MAX_RANKS:
            ends = np.append(np.sort(first)[1:], len(devices))
            fit = ends[ends <= MAX_RANKS]
            devices = devices[: fit[-1] if len(fit) > 1 else ends[1]]
        scope = _scope(network, tier, op, devices, len(alike))
        if scope is not None:
            yield replace(scope, is_block=len(devices) == size)


def _rails(fabric: Clos, network: Network, units: IntArray) -> Iterator[Scope]:
    """One device of every node of a unit, rail by rail, and where hosts are smaller by device."""
    sizes = np.bincount(units)
    largest = np.flatnonzero(sizes == sizes.max())
    members = np.flatnonzero(units == largest[0])
    slots = fabric.slot_of()[members]
    per_host = min(fabric.devices_per_host or fabric.devices_per_node, fabric.devices_per_node)
    for rail in range(min(fabric.rails, per_host)):
        on = members[slots == rail]
        alike = len(range(rail, fabric.rails, per_host))
        name = f"{RAIL} {rail}" if per_host >= fabric.rails else f"{RAIL}s of device {rail}"
        scope = _scope(network, RAIL, "all_reduce", on, alike * len(largest))
        if scope is not None and scope.hosts > 1:
            yield replace(scope, name=name, device=rail)


def _scope(network: Network, tier: str, op: str, devices: IntArray, times: int) -> Scope | None:
    """None where hosts hold unequal numbers of ranks, which nccl-tests do not run on."""
    _, ranks = np.unique(network.host[devices], return_counts=True)
    if len(devices) < 2 or len(np.unique(ranks)) > 1:
        return None
    return Scope(tier, tier, op, devices, len(ranks), int(ranks[0]), times)
