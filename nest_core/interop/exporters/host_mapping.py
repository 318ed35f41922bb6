"""Ranks on hosts: which host, and which of its devices, carries rank 0, 1, 2, …

A rank's number is its place along the axes of the plan's order (`nest_core.costs.layout`); the
device order says where that number sits. Hosts are those of `nest_core.network.Network.host`,
numbered as their first devices are: a tray of an NVL72 rack, not the 72 devices that NVLink joins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs import Point
from nest_core.costs.layout import device_order
from nest_core.network import IntArray, Network

__all__ = ["HostMapping", "host_mapping"]


@dataclass(frozen=True, slots=True, eq=False)
class HostMapping:
    """Where every rank runs.

    Parameters
    ----------
    devices, hosts, slots : int array (ranks,)
        Device of the fabric, its host, and its place among the devices of that host.
    host_sizes : int array (hosts of the fabric,)
        Devices of every host.
    """

    devices: IntArray
    hosts: IntArray
    slots: IntArray
    host_sizes: IntArray

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.devices)

    @property
    def used_hosts(self) -> IntArray:
        """Return hosts that carry a rank, ascending."""
        return np.unique(self.hosts)

    @property
    def per_host(self) -> IntArray:
        """Return ranks on each of the used hosts."""
        return np.unique(self.hosts, return_counts=True)[1]

    @property
    def in_order(self) -> bool:
        """Whether ranks fill host 0 slot by slot, then host 1, …, as launchers number them."""
        hosts = np.repeat(np.arange(len(self.per_host)), self.per_host)
        slots = np.arange(self.ranks) - np.searchsorted(hosts, hosts)
        return np.array_equal(self.hosts, hosts) and np.array_equal(self.slots, slots)

    @property
    def even(self) -> bool:
        """Return whether all used hosts carry as many ranks."""
        return int(self.per_host.min()) == int(self.per_host.max())


def host_mapping(network: Network, point: Point) -> HostMapping:
    """Return the rank mapping of a point on a network."""
    _, first, host = np.unique(network.host, return_index=True, return_inverse=True)
    host = np.argsort(np.argsort(first))[host]
    order = np.argsort(host, kind="stable")
    sizes = np.bincount(host)
    starts = np.cumsum(sizes) - sizes
    slot = np.empty(network.devices, dtype=np.int64)
    slot[order] = np.arange(network.devices) - np.repeat(starts, sizes)
    devices = np.asarray(device_order(network, point.device_order)[: point.devices_used])
    return HostMapping(devices, host[devices], slot[devices], sizes)
