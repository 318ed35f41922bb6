"""A Clos fabric as pictures need it: leaves with their nodes, pods with their spines, the top.

The first plane alone, since all are alike; numbers and keys are those that ``missing`` uses
(``"leaf 3"``), and everything is there whether it has failed or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nest_core.fabric import Clos
from nest_core.fabric.checks import BoolArray, IntArray
from nest_core.report.picture.switches import DrawnSwitch

__all__ = ["MAX_RAIL_COLOURS", "Pod", "Structure", "diagonal", "merged"]


MAX_RAIL_COLOURS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """Leaves that share their spines, in one plane; or several pods that are drawn together.

    Parameters
    ----------
    numbers : tuple of int
        Of the pods.
    leaves, spines : tuple of DrawnSwitch
    links : int array (leaves, spines)
    uplinks : tuple of int
        Into the tier above, pod by pod.
    """

    numbers: tuple[int, ...]
    leaves: tuple[DrawnSwitch, ...]
    spines: tuple[DrawnSwitch, ...]
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
    return Pod(
        tuple(number for pod in pods for number in pod.numbers),
        tuple(leaf for pod in pods for leaf in pod.leaves),
        tuple(spine for pod in pods for spine in pod.spines),
        diagonal([pod.links for pod in pods]),
        tuple(uplinks for pod in pods for uplinks in pod.uplinks),
    )


@dataclass(frozen=True)
class Structure:
    """What a fabric is made of.

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
    def is_present(self) -> BoolArray:
        """Whether each device is present, shape (slots,)."""
        present = np.zeros(self.fabric.slots, bool)
        present[self.fabric.as_built.devices] = True
        return present

    @property
    def links_per_node(self) -> int:
        """Of one node to one leaf of one plane."""
        return self.fabric.nics_per_node // self.fabric.rails

    @property
    def unit_name(self) -> str:
        """What the nodes below one leaf, or the leaves of one unit, are together."""
        per_unit = self.fabric.sizing.nodes_per_unit
        return "rack" if self.fabric.rails == 1 and per_unit == self.per_rack else "unit"

    def nodes_of(self, group: int) -> range:
        """Return the nodes below a group of leaves, failed ones counted."""
        per_unit = self.fabric.sizing.nodes_per_unit
        start = group // self.fabric.rails * per_unit
        return range(start, min(start + per_unit, self.fabric.nodes))

    def group(self, leaf: DrawnSwitch) -> int:
        """Return the group of a leaf: ``unit * rails + rail``."""
        return leaf.number // self.fabric.planes

    @property
    def has_rail_panels(self) -> bool:
        """Whether every rail has leaves and spines of its own."""
        fabric = self.fabric
        return fabric.kind == "rail_only" or (fabric.tiers == 3 and fabric.pods == "rails")

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """All pods; one in two tiers (rail-only: one per rail)."""
        fabric, sizing = self.fabric, self.fabric.sizing
        pod_of = np.array(sizing.pod_of or (0,) * (sizing.units * sizing.rails))
        spines = sizing.spines or (0,)
        starts = np.cumsum([0, *spines]) * fabric.planes
        pods = []
        for number, count in enumerate(spines):
            leaves = tuple(map(self._leaf, np.flatnonzero(pod_of == number).tolist()))
            up = sizing.spine_up[number] if sizing.spine_up else 0
            down = len(leaves) * sizing.up // count if count else 0
            first = int(starts[number])
            above = tuple(self._switch(1, first + at, down, up) for at in range(count))
            links = np.full((len(leaves), count), sizing.up // max(1, count), np.int64)
            pods.append(Pod((number,), leaves, above, links, (up * count,)))
        return tuple(pods)

    @cached_property
    def panel_pods(self) -> tuple[Pod, ...]:
        """What is drawn in a panel each: a pod, or all of a rail."""
        rails, pods = self.fabric.rails, self.pods
        if not self.has_rail_panels:
            return pods
        if self.fabric.tiers > 1:
            on_rail = [self.group(pod.leaves[0]) % rails for pod in pods]
            return tuple(
                merged([pod for pod, number in zip(pods, on_rail, strict=True) if number == rail])
                for rail in range(rails)
            )
        (pod,) = pods
        return tuple(
            Pod((rail,), pod.leaves[rail::rails], (), pod.links[rail::rails], (0,))
            for rail in range(rails)
        )

    def _leaf(self, group: int) -> DrawnSwitch:
        down, rails = len(self.nodes_of(group)) * self.links_per_node, self.fabric.rails
        look = f"rail-{group % rails}" if 1 < rails <= MAX_RAIL_COLOURS else ""
        return self._switch(0, group * self.fabric.planes, down, self.fabric.sizing.up, look)

    def _switch(self, tier: int, number: int, down: int, up: int, look: str = "") -> DrawnSwitch:
        name = self.fabric.tier_names[tier]
        key = f"{name} {number}"
        rate = self.slow.get(key, 1.0)
        return DrawnSwitch(name, number, down, up, key in self.fabric.missing, rate, look)

    @property
    def tops(self) -> int:
        """Groups of switches at the top of three tiers."""
        return self.fabric.rails if self.fabric.kind == "rail_only" else 1

    def cores(self, top: int = 0) -> tuple[DrawnSwitch, ...]:
        """Return switches of the third tier, with the links that end on each."""
        ends = self.core_links(top).sum(axis=0).tolist()
        first = top * self.fabric.planes * len(ends)
        return tuple(self._switch(2, first + at, down, 0) for at, down in enumerate(ends))

    def core_links(self, top: int = 0, *, alive: bool = False) -> IntArray:
        """Return links between pods and the switches of a group at the top, shape (pods, cores).

        Dealt in turn, pods one after the other, as `nest_core.fabric.asbuilt` has them.

        Parameters
        ----------
        top : int
        alive : bool
            Without those of failed spines and cores.
        """
        sizing, rows, start = self.fabric.sizing, [], 0
        for pod in (p for p, above in enumerate(sizing.top_of) if above == top):
            links = sizing.spines[pod] * sizing.spine_up[pod]
            ends = (start + np.arange(links)) % sizing.cores
            start += links
            if alive:
                spines = [not spine.gone for spine in self.pods[pod].spines]
                ends = ends[np.repeat(spines, sizing.spine_up[pod])]
            rows.append(np.bincount(ends, minlength=sizing.cores))
        result = np.array(rows, np.int64)
        return result * [not core.gone for core in self.cores(top)] if alive else result
