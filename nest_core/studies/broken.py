"""A fabric where elements failed or are slow, by the names that people give them.

Beside the counted elements of a fabric (`nest_core.fabric.failing`) a ``nic 5`` of a Clos may fail,
or one of the parallel links that `nest_core.network.link_group_name` names, both ways. Routes are
those of the fabric that is left. A device whose only link died is gone as well. An element that is
slow by a share has so much less of its speed: a device takes longer for its work, a switch or a
link carries less.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nest_core.costs import Plan, device_order
from nest_core.documents import InputError, require
from nest_core.fabric import Clos, Fabric, GraphFabric, counted_element, element_kinds, no_such
from nest_core.fabric import without as fabric_without
from nest_core.network import FloatArray, IntArray, Network, TreeLinkMap, collapse, link_group_name

__all__ = [
    "Broken",
    "broken",
    "failing_kinds",
    "gone_devices",
    "named_elements",
    "only_device",
    "without_spared",
]


@dataclass(frozen=True, slots=True, eq=False)
class Broken:
    """A fabric on which elements failed or are slow.

    Parameters
    ----------
    network : Network
    devices : int array (devices left,)
        Their numbers on the fabric as it was.
    pace : float array (devices left,)
        Seconds that each takes for a second of work.
    """

    network: Network
    devices: IntArray
    pace: FloatArray

    def moved(self, plan: Plan, before: Network) -> Plan | None:
        """Return a plan with idle devices in place of dead ones; None where there are too few."""
        where = device_order(before, plan.point.device_order)[: plan.devices_used].copy()
        place = np.full(before.devices, -1)
        place[self.devices] = np.arange(len(self.devices))
        if (place >= 0).all():
            return plan
        idle = np.setdiff1d(self.devices, where)
        dead = np.flatnonzero(place[where] < 0)
        if len(dead) > len(idle):
            return None
        for rank in dead.tolist():
            spare = int(np.argmin(before.level(where[rank], idle)))
            where[rank], idle = idle[spare], np.delete(idle, spare)
        order = tuple(place[where].tolist())
        return replace(plan, point=replace(plan.point, device_order=order))


def broken(
    fabric: Fabric,
    network: Network,
    fail: Sequence[str] = (),
    slow: Mapping[str, float] | None = None,
) -> Broken:
    """Return what is left of a fabric.

    Parameters
    ----------
    network : Network
        The fabric's.
    fail : sequence of str
    slow : mapping of str to float
        By element, the share of its speed that it lost.

    Raises
    ------
    InputError
        For an element that there is not, with the nearest; for what leaves nothing or no path.
    """
    is_drawn, kinds = isinstance(fabric, GraphFabric), element_kinds(fabric)
    fail = [only_device(fabric, network, name) or name for name in fail]
    counted = [name for name in fail if is_drawn or counted_element(name, kinds)]
    try:
        rest = fabric_without(fabric, counted) if counted else fabric
        after = collapse(rest) if counted else network
    except InputError as error:  # in the words of a fabric's file
        raise InputError(
            "--fail", error.rule, ", ".join(counted), "let fewer elements fail"
        ) from error
    factor, pace = np.ones(len(after.link_map.capacity_Bps)), np.ones(network.devices)
    for name, lost in (slow or {}).items():
        require(0 < lost < 1, f"slow {name}", "must lose from 0 to 100 %", lost, "change it")
    losses = {name: 1.0 for name in fail if name not in counted} | dict(slow or {})
    for name, lost in losses.items():
        element = counted_element(name, kinds)
        if element is None:
            links, share = _link(fabric, network, name)
        else:
            other = fabric_without(fabric, [element])
            gone = np.setdiff1d(np.arange(network.devices), _left(fabric, other))
            if len(gone) and element.rsplit(" ", 1)[0] not in fabric.tier_names:
                pace[gone] /= 1.0 - lost
                continue
            require(not len(gone), "slow", "must leave devices a path", name, "name its links")
            before_Bps = network.link_map.capacity_Bps
            narrower = collapse(other).link_map.capacity_Bps / np.maximum(before_Bps, 1e-9)
            links = np.flatnonzero((narrower < 1) & (before_Bps > 0))
            share = 1.0 - narrower[links]
        np.multiply.at(factor, _moved_links(network, after, links), 1.0 - lost * share)
    if (factor < 1).any():
        after = replace(after, link_map=after.link_map.scaled(factor))
    devices = _left(fabric, rest)
    return Broken(after, devices, pace[devices])


def _left(fabric: Fabric, rest: Fabric) -> IntArray:
    """Return which devices of a fabric are left."""
    if isinstance(fabric, GraphFabric):
        return np.flatnonzero(np.isin(fabric.device_ids, rest.device_ids))
    return np.searchsorted(fabric.place_of(), rest.place_of())


@lru_cache(maxsize=4)
def _links_by_name(network: Network) -> dict[str, int]:
    """Return the first link group of every name, each link once."""
    names: dict[str, int] = {}
    for link in range(len(network.link_map.capacity_Bps)):
        names.setdefault(link_group_name(network, link), link)
    return names


def failing_kinds(fabric: Fabric, *, is_tree: bool = True) -> dict[str, int]:
    """Return how many elements of each kind may fail, NICs among them where links are a tree's."""
    is_clos = isinstance(fabric, Clos) and is_tree
    nics = {"nic": fabric.nodes * fabric.nics_per_node} if is_clos else {}  # type: ignore[attr-defined]
    return element_kinds(fabric) | nics


def only_device(fabric: Fabric, network: Network, name: str) -> str | None:
    """Return the device that a link is the only way to; None for what is no such link."""
    link_map, link = network.link_map, _links_by_name(network).get(name)
    if link is None or not isinstance(link_map, TreeLinkMap) or link_map.scale_up is not None:
        return None
    device, is_first = link // 2, link_map.tier[link] == 0
    is_only = is_first and link_map.link_Bps[link] == link_map.capacity_Bps[link]
    return _device_name(fabric, device) if is_only and link_map.tiers[0].group_links == 1 else None


def _link(fabric: Fabric, network: Network, name: str) -> tuple[IntArray, FloatArray]:
    """Return both ways of a link or of a NIC, and its share of each link group."""
    link_map = network.link_map
    kinds = failing_kinds(fabric, is_tree=isinstance(link_map, TreeLinkMap))
    capacity_Bps = link_map.capacity_Bps
    element = counted_element(name, kinds)
    if element is not None and isinstance(fabric, Clos) and isinstance(link_map, TreeLinkMap):
        served, nics = fabric.devices_per_node // fabric.rails, fabric.nics_per_node // fabric.rails
        pool = int(element.rsplit(" ", 1)[1]) // (nics // int(np.gcd(served, nics)))
        first, rate_Bps = int(link_map.ways.offset[1]) + 2 * pool, fabric.nic_bandwidth_Bps
    else:
        names = _links_by_name(network)
        if name not in names:
            raise no_such(name, kinds, names)
        first = names[name]
        level = network.levels[int(link_map.tier[first])]
        rate_Bps = min(float(link_map.link_Bps[first]), level.link_bandwidth_Bps)
    links = np.array([first, link_map.reverse(first)])
    return links, np.minimum(1.0, rate_Bps / np.maximum(capacity_Bps[links], max(rate_Bps, 1.0)))


def _moved_links(before: Network, after: Network, links: IntArray) -> IntArray:
    """Return the numbers that links have where devices are gone."""
    was, is_now = before.link_map, after.link_map
    if was is is_now or not (isinstance(was, TreeLinkMap) and isinstance(is_now, TreeLinkMap)):
        return links
    tier = np.searchsorted(was.ways.offset, links, side="right") - 1
    return np.asarray(links - np.where(tier < 0, 0, (was.ways.offset - is_now.ways.offset)[tier]))


def named_elements(fabric: Fabric, network: Network) -> Iterator[tuple[str, str]]:
    """Yield every element that is left by its kind."""
    is_tree = isinstance(network.link_map, TreeLinkMap)
    for kind, number in failing_kinds(fabric, is_tree=is_tree).items():
        names = (f"{kind} {n}" for n in range(number))
        yield from ((kind, name) for name in names if name not in fabric.missing)
    if isinstance(fabric, GraphFabric):
        yield from ((element.role, element.id) for element in fabric.elements)
        yield from (("link", f"{link.a} to {link.b}") for link in fabric.links)
        return
    links = _links_by_name(network).items()
    yield from (("link", name) for name, link in links if link < network.link_map.reverse(link))


def gone_devices(fabric: Fabric, name: str) -> IntArray:
    """Return the devices that go with an element, as a fabric's network numbers them."""
    element = (
        name if isinstance(fabric, GraphFabric) else counted_element(name, element_kinds(fabric))
    )
    if element is None:
        return np.zeros(0, np.int64)
    if element.startswith("device ") and not isinstance(fabric, GraphFabric):
        return np.flatnonzero(fabric.place_of() == int(element.rsplit(" ", 1)[1]))
    left = _left(fabric, fabric_without(fabric, [element]))
    return np.setdiff1d(np.arange(fabric.devices), left)


def without_spared(
    fabric: Fabric, network: Network, elements: Sequence[str], spares: int
) -> tuple[list[str], int]:
    """Return what is gone once spare nodes stand in for lost ones, and how many do."""
    remaining, standing = [], 0
    for name in elements:
        gone = gone_devices(fabric, only_device(fabric, network, name) or name)
        replaced = np.unique(network.host[gone])[: spares - standing]
        standing += len(replaced)
        missing = gone[~np.isin(network.host[gone], replaced)].tolist()
        names = [_device_name(fabric, device) for device in missing]
        remaining += names if len(replaced) else [name]
    return remaining, standing


def _device_name(fabric: Fabric, device: int) -> str:
    is_drawn = isinstance(fabric, GraphFabric)
    return fabric.device_ids[device] if is_drawn else f"device {fabric.place_of()[device]}"
