"""A Clos fabric as pictures need it: leaves with their nodes, pods with their spines, the top.

One plane at a time; numbers and keys are those that ``missing`` uses (``"leaf 3"``), and everything
is there whether it has failed or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nest_core.picture.switches import Switch
from nest_core.topology import Clos
from nest_core.topology.sizing import Sizing

__all__ = ["Nodes", "Pod", "Structure"]

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
    last : int
        Number of the last rack or unit of a tile.
    """

    name: str
    number: int
    nodes: range
    last: int = 0

    @property
    def key(self) -> str:
        """Of their frame."""
        several = f"-{self.last}" if self.last > self.number else ""
        return f"{self.name} {self.number}{several}"


@dataclass(frozen=True, slots=True)
class Pod:
    """Leaves that share their spines, in one plane.

    Parameters
    ----------
    number : int
    leaves, spines : tuple of Switch
    groups : tuple of int
        Group number of every leaf: ``unit * rails + rail``.
    """

    number: int
    leaves: tuple[Switch, ...]
    spines: tuple[Switch, ...]
    groups: tuple[int, ...]

    @property
    def links(self) -> IntArray:
        """Between leaves and spines, shape (leaves, spines)."""
        up = np.array([leaf.up for leaf in self.leaves], np.int64)
        return np.repeat((up // max(1, len(self.spines)))[:, None], len(self.spines), axis=1)

    @property
    def uplinks(self) -> int:
        """Into the tier above."""
        return sum(spine.up for spine in self.spines)

    @property
    def faulty(self) -> bool:
        """Whether a switch of it has failed or is slow."""
        return any(one.gone or one.rate < 1 for one in (*self.leaves, *self.spines))


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
    def _held(self) -> dict[str, dict[str, tuple[int, int]]]:
        return {}

    @cached_property
    def _alive(self) -> IntArray:
        """Nodes present before each one, shape (nodes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.present > 0)])

    @cached_property
    def _there(self) -> IntArray:
        """Devices present before each node, shape (nodes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.present)])

    def nodes_left(self, nodes: range) -> int:
        """Nodes present of some that follow each other."""
        return int(self._alive[nodes.stop] - self._alive[nodes.start])

    def devices_left(self, nodes: range) -> int:
        """Devices present of some nodes that follow each other."""
        return int(self._there[nodes.stop] - self._there[nodes.start])

    @cached_property
    def devices(self) -> frozenset[int]:
        """Numbers of the devices present, failed ones counted."""
        return frozenset(self.fabric.as_built.devices.tolist())

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
        found = []
        for number, count in enumerate(spines):
            groups = tuple(np.flatnonzero(pod_of == number).tolist())
            leaves = tuple(self._leaf(group, plane) for group in groups)
            up = sizing.spine_up[number] if sizing.spine_up else 0
            down = len(groups) * sizing.up // count if count else 0
            first = int(starts[number]) + plane * count
            found.append(
                Pod(
                    number,
                    leaves,
                    tuple(self._switch(1, first + at, down, up) for at in range(count)),
                    groups,
                )
            )
        return tuple(found)

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
        """What a pod holds, and what of it has failed, by class of the bill."""
        key = f"{pod.number} {pod.leaves[0].number}"
        if key not in self._held:
            self._held[key] = self._pod_counts(pod)
        return self._held[key]

    def _pod_counts(self, pod: Pod) -> dict[str, tuple[int, int]]:
        fabric, names = self.fabric, self.fabric.tier_names
        under = [self.nodes_of(group).nodes for group in pod.groups]
        here = [self.nodes_left(nodes) for nodes in under]
        live = [not leaf.gone for leaf in pod.leaves]
        down = sum(n * self.links_per_node for n, alive in zip(here, live, strict=True) if alive)
        above = np.array([not spine.gone for spine in pod.spines])
        up = int((pod.links * np.outer(np.array(live), above)).sum())
        own = [nodes for nodes, group in zip(under, pod.groups, strict=True) if self._owns(group)]
        nodes = sum(len(each) for each in own)
        there = sum(self.nodes_left(each) for each in own)
        devices = sum(self.devices_left(each) for each in own)
        whole = {
            "node": (there, nodes),
            "device": (devices, nodes * fabric.devices_per_node),
            names[0]: (sum(live), len(live)),
            f"links {names[0]}": (down, sum(leaf.down for leaf in pod.leaves)),
        }
        if pod.spines:
            whole[names[1]] = (int(above.sum()), len(above))
            whole[f"links {names[1]}"] = (up, int(pod.links.sum()))
        return {name: (found, total - found) for name, (found, total) in whole.items()}

    def _owns(self, group: int) -> bool:
        """Whether a unit's nodes are counted with this leaf: the one of its first rail."""
        return group % self.fabric.rails == 0

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
        pods = [pod for pod in self.pods(plane) if self.fabric.sizing.top_of[pod.number] == top]
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

        Dealt in turn, pods one after the other, as `nest_core.topology.asbuilt` has them.
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
