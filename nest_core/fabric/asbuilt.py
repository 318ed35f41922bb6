"""What is left of a Clos fabric without its failed elements.

A failed spine takes its share of the uplinks of every leaf of its group; a failed core takes
the uplinks that end on it (a pod's uplinks are dealt to the cores in turn, pods one after the
other); a failed leaf takes the NIC links that end on it and all its uplinks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from nest_core.documents.errors import InputError, require
from nest_core.fabric.checks import BoolArray, IntArray, parse_failed
from nest_core.fabric.clos_plan import ClosPlan

__all__ = ["AsBuilt", "as_built", "switches_per_plane", "without_failed"]


@dataclass(frozen=True, slots=True, eq=False)
class AsBuilt:
    """Present elements of a Clos fabric; arrays are read-only.

    Parameters
    ----------
    devices : int array, shape (devices present,)
        Their numbers in the whole fabric, ascending.
    leaf_links : int array, shape (leaf groups,)
        Links of one node into its leaf group, all planes.
    uplinks : tuple of int array
        Per height below the top: uplinks of each group, all planes.
    boxes : tuple of int array
        Per tier, innermost first: switches of each group, all planes.
    links : tuple of int
        Per tier: links from below.
    alive : tuple of bool array
        Per tier, shape (groups, planes, most switches of a group): which are in place.
    """

    devices: IntArray
    leaf_links: IntArray
    uplinks: tuple[IntArray, ...]
    boxes: tuple[IntArray, ...]
    links: tuple[int, ...]
    alive: tuple[BoolArray, ...]

    @property
    def switches(self) -> tuple[int, ...]:
        """Per tier."""
        return tuple(int(tier.sum()) for tier in self.boxes)


@lru_cache(maxsize=32)
def as_built(fabric: ClosPlan) -> AsBuilt:
    """`without_failed`, remembered."""
    return without_failed(fabric)


def without_failed(fabric: ClosPlan) -> AsBuilt:
    """Return the fabric without its failed elements.

    Raises
    ------
    InputError
        For entries that name nothing, and where devices are left without a path.
    """
    sizing, planes, per_plane = fabric.sizing, fabric.planes, switches_per_plane(fabric)
    gone = parse_failed(fabric.missing, fabric.element_counts)
    devices = _devices(fabric, gone)
    alive = [
        _alive(counts_of, planes, gone.get(name, ()))
        for name, counts_of in zip(fabric.tier_names, per_plane, strict=True)
    ]
    leaf_links, uplinks = _links(fabric, alive)
    if any(name in gone for name in fabric.tier_names) or fabric.kind == "rail_only":
        _check_paths(fabric, devices, leaf_links, uplinks)
    first = np.unique(devices // fabric.devices_per_node) // sizing.nodes_per_unit * sizing.rails
    into_leaves = sum(
        int(leaf_links.sum(axis=1)[first + rail].sum()) for rail in range(sizing.rails)
    )
    return AsBuilt(
        _fixed(devices),
        _fixed(leaf_links.sum(axis=1)),
        tuple(_fixed(links.sum(axis=1)) for links in uplinks),
        tuple(_fixed(counts_of.sum(axis=(1, 2))) for counts_of in alive),
        (into_leaves, *(int(links.sum()) for links in uplinks)),
        tuple(alive),
    )


def switches_per_plane(fabric: ClosPlan) -> tuple[IntArray, ...]:
    """Return switches of every group in one plane, tier by tier, failed ones counted."""
    sizing = fabric.sizing
    return (
        np.ones(sizing.units * sizing.rails, dtype=np.int64),
        np.array(sizing.spines, dtype=np.int64),
        np.full(_tops(fabric), sizing.cores, dtype=np.int64),
    )[: fabric.tiers]


def _tops(fabric: ClosPlan) -> int:
    return fabric.rails if fabric.kind == "rail_only" else 1


def _fixed(array: IntArray) -> IntArray:
    array.flags.writeable = False
    return array


def _devices(fabric: ClosPlan, gone: dict[str, tuple[int, ...]]) -> IntArray:
    present = np.ones((fabric.nodes, fabric.devices_per_node), dtype=bool)
    present[list(gone.get("node", ()))] = False
    present.reshape(-1)[list(gone.get("device", ()))] = False
    devices = np.flatnonzero(present.reshape(-1)).astype(np.int64)
    require(
        devices.size != 0,
        "missing",
        "must leave at least one device",
        list(fabric.missing),
        "take entries out",
    )
    return devices


def _alive(per_plane: IntArray, planes: int, gone: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Shape (groups, planes, most switches per plane); False beyond a group's own."""
    most = int(per_plane.max(initial=0))
    exists = np.arange(most) < per_plane[:, None, None]
    alive = np.broadcast_to(exists, (len(per_plane), planes, most)).copy()
    ends = np.cumsum(per_plane) * planes
    for number in gone:
        group = int(np.searchsorted(ends, number, side="right"))
        within = number - int(ends[group] - per_plane[group] * planes)
        plane, index = divmod(within, int(per_plane[group]))
        alive[group, plane, index] = False
    return alive


def _links(fabric: ClosPlan, alive: list[npt.NDArray[np.bool_]]) -> tuple[IntArray, list[IntArray]]:
    """Links of a node into its leaf group, and uplinks per height; shape (groups, planes)."""
    sizing = fabric.sizing
    leaves = alive[0][:, :, 0].astype(np.int64)
    leaf_links = leaves * (fabric.nics_per_node // fabric.rails)
    if fabric.tiers == 1:
        return leaf_links, []
    pod_of, reached = np.array(sizing.pod_of), np.full_like(leaves, sizing.up)
    for group in np.flatnonzero(
        alive[1].sum(axis=(1, 2)) < fabric.planes * np.array(sizing.spines)
    ):
        reached[pod_of == group] = (
            sizing.spine_links(int(group)) @ alive[1][group, :, : sizing.spines[group]].T
        )
    up = [leaves * reached]
    if fabric.tiers == 3:
        up.append(_spine_links(fabric, alive[1], alive[2]))
    return leaf_links, up


def _spine_links(
    fabric: ClosPlan, spines: npt.NDArray[np.bool_], cores: npt.NDArray[np.bool_]
) -> IntArray:
    """Uplinks of every pod, shape (pods, planes): those whose spine and core are both there."""
    sizing = fabric.sizing
    spine_up = np.array(sizing.spine_up, dtype=np.int64)
    links: IntArray = spines.sum(axis=2, dtype=np.int64) * spine_up[:, None]
    if cores.all():
        return links
    top_of = np.array(sizing.top_of)
    for top in range(len(cores)):
        pods = np.flatnonzero(top_of == top).tolist()
        for pod, dealt in zip(pods, sizing.core_links(top), strict=True):
            links[pod] = ((dealt @ cores[top].T).T * spines[pod, :, : len(dealt)]).sum(axis=1)
    return links


def _check_paths(
    fabric: ClosPlan, devices: IntArray, leaf_links: IntArray, uplinks: list[IntArray]
) -> None:
    """Refuse a fabric in which two nodes have no path, plane by plane."""
    sizing = fabric.sizing
    nodes = np.unique(devices // fabric.devices_per_node)
    units = np.unique(nodes // sizing.nodes_per_unit)
    if nodes.size == 1:
        return
    live = leaf_links.reshape(sizing.units, sizing.rails, -1) > 0
    cut_off = units[~live[units].any(axis=(1, 2))]
    if cut_off.size:
        node = int(nodes[nodes // sizing.nodes_per_unit == cut_off[0]][0])
        raise InputError(
            "missing",
            f"must leave node {node} a leaf",
            list(fabric.missing),
            "put a leaf back, add planes, wire by rail, or list the nodes in missing too",
        )
    import networkx as nx  # nothing is drawn where nothing failed

    graph: nx.Graph[tuple[object, ...]] = nx.Graph()
    for unit in units.tolist():
        for rail, plane in np.argwhere(live[unit]).tolist():
            graph.add_edge(("unit", unit), (1, unit * sizing.rails + rail, plane))
    above = [sizing.pod_of, sizing.top_of]
    for height, links in enumerate(uplinks, start=1):
        for group, plane in np.argwhere(links > 0).tolist():
            graph.add_edge((height, group, plane), (height + 1, above[height - 1][group], plane))
    if len(units) > 1:
        together = nx.node_connected_component(graph, ("unit", int(units[0])))
        for unit in units.tolist():
            require(
                ("unit", unit) in together,
                "missing",
                f"must leave a path between the nodes of unit {int(units[0])} and unit {unit}",
                list(fabric.missing),
                "put a switch back, or list the nodes in missing too",
            )
    switches = graph.subgraph([element for element in graph if element[0] != "unit"])
    parts = {
        element: number
        for number, members in enumerate(nx.connected_components(switches))
        for element in members
    }
    if fabric.kind == "rail_only":
        _check_common_rails(fabric, devices, live, parts)
    elif sizing.rails > 1:
        _check_rails(fabric, units, live, parts)


def _check_common_rails(
    fabric: ClosPlan, devices: IntArray, live: BoolArray, parts: Mapping[tuple[object, ...], int]
) -> None:
    """Refuse nodes that meet in a third one only: nobody forwards there."""
    rails, per_node = fabric.sizing.rails, fabric.devices_per_node
    reached: dict[int, set[int]] = {}
    for node, slot in np.stack([devices // per_node, devices % per_node], axis=1).tolist():
        leaf = node // fabric.sizing.nodes_per_unit, slot % rails
        met = {
            parts[1, leaf[0] * rails + leaf[1], plane]
            for plane in np.flatnonzero(live[leaf]).tolist()
        }
        reached.setdefault(node, set()).update(met)
    alike = {frozenset(met): node for node, met in reversed(reached.items())}
    for (node_rails, lower), (other_rails, other) in combinations(alike.items(), 2):
        require(
            node_rails & other_rails,
            "missing",
            f"must leave nodes {min(lower, other)} and {max(lower, other)} a rail in common",
            list(fabric.missing),
            "put a leaf or a device back, or list the nodes in missing too",
        )


def _check_rails(
    fabric: ClosPlan, units: IntArray, live: BoolArray, parts: Mapping[tuple[object, ...], int]
) -> None:
    """Refuse rails of a unit that do not meet above their leaves in any plane."""
    rails = fabric.sizing.rails
    for unit in units.tolist():
        first, *others = np.flatnonzero(live[unit].any(axis=1)).tolist()  # the rest is forwarded
        for rail in others:
            met = (
                {parts[1, unit * rails + end, plane] for end in (first, rail)}
                for plane in np.flatnonzero(live[unit][[first, rail]].all(axis=0)).tolist()
            )
            require(
                any(len(numbers) == 1 for numbers in met),
                "missing",
                f"must leave a path between rails {first} and {rail} of unit {unit}",
                list(fabric.missing),
                "put a switch back, or wire it rail-only",
            )
