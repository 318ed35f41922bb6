"""A Clos fabric as pictures need it: leaves with their nodes, pods with their spines, the top.

One plane at a time; numbers and keys are those that ``missing`` uses (``"leaf 3"``), and everything
is there whether it has failed or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nest_core.fabric import Clos
from nest_core.fabric.sizing import Sizing
from nest_core.report.picture.switches import Switch

__all__ = ["Nodes", "Pod", "Structure", "diagonal", "merged"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes under one leaf, or under the leaves of one unit.

    Parameters
    ----------
    name : str
        What they are called together: a rack, a unit.
    number : int
    nodes : range
        Failed ones too.
    """

    name: str
    number: int
    nodes: range


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """Leaves that share their spines, in one plane; or several pods that are drawn together.

    Parameters
    ----------
    numbers : tuple of int
        Of the pods.
    leaves, spines : tuple of Switch
    groups : tuple of int
        Group number of every leaf: ``unit * rails + rail``.
    links : int array (leaves, spines)
    uplinks : tuple of int
        Into the tier above, pod by pod.
    """

    numbers: tuple[int, ...]
    leaves: tuple[Switch, ...]
    spines: tuple[Switch, ...]
    groups: tuple[int, ...]
    links: IntArray
    uplinks: tuple[int, ...]


def diagonal(blocks: Sequence[IntArray]) -> IntArray:
    """Return matrices as one, each in rows and columns of its own."""
    shape = sum(block.shape[0] for block in blocks), sum(block.shape[1] for block in blocks)
    result, row, column = np.zeros(shape, np.int64), 0, 0
    for block in blocks:
        below, right = row + block.shape[0], column + block.shape[1]
        result[row:below, column:right] = block
        row, column = below, right
    return result


def merged(pods: Sequence[Pod]) -> Pod:
    """Return pods as one."""
    if len(pods) == 1:
        return pods[0]
    return Pod(
        tuple(number for pod in pods for number in pod.numbers),
        tuple(leaf for pod in pods for leaf in pod.leaves),
        tuple(spine for pod in pods for spine in pod.spines),
        tuple(group for pod in pods for group in pod.groups),
        diagonal([pod.links for pod in pods]),
        tuple(uplinks for pod in pods for uplinks in pod.uplinks),
    )


@dataclass(frozen=True)
class Structure:
    """What there is of a fabric.

    Parameters
    ----------
    fabric : Clos
    per_rack : int
        Nodes that a rack holds.
    slow : mapping of str to float
        Share of the rate that slow switches have left.
    """

    fabric: Clos
    per_rack: int
    slow: Mapping[str, float]

    @cached_property
    def gone(self) -> frozenset[str]:
        """Keys of what has failed."""
        return frozenset(self.fabric.missing)

    @cached_property
    def present(self) -> IntArray:
        """Devices present of every node, shape (nodes,)."""
        fabric = self.fabric
        return np.bincount(fabric.node_of(), minlength=fabric.nodes).astype(np.int64)

    @cached_property
    def sizing(self) -> Sizing:
        """One plane in whole ports."""
        return self.fabric.sizing

    @cached_property
    def _pods(self) -> dict[int, tuple[Pod, ...]]:
        return {}

    @cached_property
    def is_present(self) -> npt.NDArray[np.bool_]:
        """Whether each device is there, shape (slots,)."""
        here = np.zeros(self.fabric.slots, bool)
        here[self.fabric.as_built.devices] = True
        return here

    @property
    def links_per_node(self) -> int:
        """Of one node to one leaf of one plane."""
        return self.fabric.nics_per_node // self.fabric.rails

    @cached_property
    def units(self) -> tuple[Nodes, ...]:
        """Nodes by the leaves that they hang on."""
        sizing, fabric = self.fabric.sizing, self.fabric
        racks = fabric.rails == 1 and sizing.nodes_per_unit == self.per_rack
        name = "rack" if racks else "unit"
        each = sizing.nodes_per_unit
        return tuple(
            Nodes(name, unit, range(unit * each, min((unit + 1) * each, fabric.nodes)))
            for unit in range(sizing.units)
        )

    def nodes_of(self, group: int) -> Nodes:
        """Those of a leaf by its group's number."""
        return self.units[group // self.fabric.rails]

    def pods(self, plane: int = 0) -> tuple[Pod, ...]:
        """All pods of a plane; one in two tiers (rail-only: one per rail)."""
        if plane not in self._pods:
            self._pods[plane] = self._all_pods(plane)
        return self._pods[plane]

    def _all_pods(self, plane: int) -> tuple[Pod, ...]:
        fabric, sizing = self.fabric, self.sizing
        pod_of = np.array(sizing.pod_of or (0,) * (sizing.units * sizing.rails))
        spines = sizing.spines or (0,)
        starts = np.cumsum([0, *spines]) * fabric.planes
        result = []
        for number, count in enumerate(spines):
            groups = tuple(np.flatnonzero(pod_of == number).tolist())
            leaves = tuple(self._leaf(group, plane) for group in groups)
            up = sizing.spine_up[number] if sizing.spine_up else 0
            down = len(groups) * sizing.up // count if count else 0
            first = int(starts[number]) + plane * count
            above = tuple(self._switch(1, first + at, down, up) for at in range(count))
            each = np.array([leaf.up for leaf in leaves], np.int64) // max(1, count)
            links = np.repeat(each[:, None], count, axis=1)
            result.append(Pod((number,), leaves, above, groups, links, (up * count,)))
        return tuple(result)

    @property
    def has_rail_panels(self) -> bool:
        """Whether every rail has leaves and spines of its own."""
        fabric = self.fabric
        return fabric.kind == "rail_only" or (fabric.tiers == 3 and fabric.pods == "rails")

    def rail_pods(self) -> tuple[Pod, ...]:
        """Return what there is of every rail, in the first plane."""
        rails, pods = self.fabric.rails, self.pods()
        if self.fabric.tiers > 1:
            return tuple(
                merged([pod for pod in pods if pod.groups[0] % rails == rail])
                for rail in range(rails)
            )
        (pod,) = pods
        none = np.zeros((len(pod.leaves) // rails, 0), np.int64)
        return tuple(
            Pod((rail,), pod.leaves[rail::rails], (), pod.groups[rail::rails], none, (0,))
            for rail in range(rails)
        )

    def _leaf(self, group: int, plane: int) -> Switch:
        sizing = self.sizing
        down = len(self.nodes_of(group).nodes) * self.links_per_node
        return self._switch(0, group * self.fabric.planes + plane, down, sizing.up)

    def _switch(self, tier: int, number: int, down: int, up: int) -> Switch:
        name = self.fabric.tier_names[tier]
        if not self.gone and not self.slow:
            return Switch(name, number, down, up)
        key = f"{name} {number}"
        return Switch(name, number, down, up, key in self.gone, self.slow.get(key, 1.0))

    def cores(self, top: int = 0, plane: int = 0) -> tuple[Switch, ...]:
        """Switches of the third tier, with the links that end on each."""
        count = self.fabric.sizing.cores
        ends = self.core_links(top).sum(axis=0).tolist()
        first = (top * self.fabric.planes + plane) * count
        return tuple(self._switch(2, first + at, int(ends[at]), 0) for at in range(count))

    def pod_counts(self, pod: Pod) -> dict[str, tuple[int, int]]:
        """Return switches and links of a pod, and what of them has failed, by class of the bill."""
        names = self.fabric.tier_names
        under = [self.nodes_of(group).nodes for group in pod.groups]
        here = [int((self.present[nodes.start : nodes.stop] > 0).sum()) for nodes in under]
        live = np.array([not leaf.gone for leaf in pod.leaves])
        down = int((np.array(here) * live).sum()) * self.links_per_node
        counts = {
            names[0]: (int(live.sum()), len(live)),
            f"links {names[0]}": (down, sum(leaf.down for leaf in pod.leaves)),
        }
        if pod.spines:
            above = np.array([not spine.gone for spine in pod.spines])
            up = int((pod.links * np.outer(live, above)).sum())
            counts[names[1]] = (int(above.sum()), len(above))
            counts[f"links {names[1]}"] = (up, int(pod.links.sum()))
        return {name: (left, total - left) for name, (left, total) in counts.items()}

    @property
    def tops(self) -> int:
        """Groups of switches at the top of three tiers."""
        return self.fabric.rails if self.fabric.kind == "rail_only" else 1

    def top_counts(self, top: int, plane: int) -> dict[str, tuple[int, int]]:
        """The same of a group of switches at the top."""
        name, cores = self.fabric.tier_names[2], self.cores(top, plane)
        here = sum(not core.gone for core in cores)
        left, total = int(self.core_sound(top, plane).sum()), int(self.core_links(top).sum())
        return {name: (here, len(cores) - here), f"links {name}": (left, total - left)}

    def core_sound(self, top: int = 0, plane: int = 0) -> IntArray:
        """`core_links` without those of failed spines and cores."""
        links = self.core_links(top)
        if not self.gone:
            return links
        pods = [pod for pod in self.pods(plane) if self.fabric.sizing.top_of[pod.numbers[0]] == top]
        cores = np.array([not core.gone for core in self.cores(top, plane)])
        start = 0
        for row, pod in enumerate(pods):
            spines = np.array([not spine.gone for spine in pod.spines])
            alive = np.repeat(spines, pod.spines[0].up)
            ends = (start + np.arange(len(alive))) % len(cores)
            if not spines.all():
                links[row] = np.bincount(ends[alive], minlength=len(cores))
            start += len(alive)
        return np.asarray(links * cores)

    def core_links(self, top: int = 0) -> IntArray:
        """Links between pods and the switches of a group at the top, shape (pods, cores).

        Dealt in turn, pods one after the other, as `nest_core.fabric.asbuilt` has them.
        """
        sizing = self.sizing
        cores = np.arange(sizing.cores)
        rows, start = [], 0
        for pod in (p for p, above in enumerate(sizing.top_of) if above == top):
            links = sizing.spines[pod] * sizing.spine_up[pod]
            ends = (start + links - cores + sizing.cores - 1) // sizing.cores
            rows.append(ends - (start - cores + sizing.cores - 1) // sizing.cores)
            start += links
        return np.array(rows, np.int64)
