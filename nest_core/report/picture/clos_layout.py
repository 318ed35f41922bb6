"""A Clos fabric as pictures need it: what it is made of, and where its rows stand.

The first plane alone, since all are alike; numbers and keys are those that ``missing`` uses
(``"leaf 3"``), and everything is there whether it has failed or not. Panels stand side by side,
tiers one above the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from nest_core.fabric import BoolArray, Clos, IntArray
from nest_core.report.picture.aggregate import BoxRow, row_of, tiles
from nest_core.report.picture.frame import Frame, stacked_edges
from nest_core.report.picture.marks import Box, Mark, Words, first_fitting
from nest_core.report.picture.racks import MIN_DOMAIN, NodeBoxes
from nest_core.report.picture.switches import DrawnSwitch, Mesh, Placed, place, room_of_link

__all__ = ["MAX_RAIL_COLOURS", "ClosLayout", "ClosPanel", "Pod", "Structure", "merged"]


@dataclass(frozen=True, slots=True)
class ClosPanel:
    """A pod or several, and where they stand.

    Parameters
    ----------
    key : str
        Of the frame; empty: none is drawn.
    pod : Pod
    row : BoxRow
        Of the leaves.
    start, end : float
        Left and right edge.
    """

    key: str
    pod: Pod
    row: BoxRow
    start: float
    end: float


@dataclass(frozen=True)
class ClosLayout:
    """The rows of a Clos fabric.

    Parameters
    ----------
    structure : Structure
    frame : Frame
        What is left to them.
    boxes : NodeBoxes
    """

    structure: Structure
    frame: Frame
    boxes: NodeBoxes

    @property
    def fabric(self) -> Clos:
        """What is drawn."""
        return self.structure.fabric

    @cached_property
    def panels(self) -> tuple[ClosPanel, ...]:
        """Panels from left to right."""
        structure, frame = self.structure, self.frame
        pods = structure.panel_pods
        counts = tiles(len(pods), 0.6 * frame.across)
        pitch = frame.across / len(counts)
        gap = min(14.0, max(2.0, 0.08 * pitch)) if len(counts) > 1 else 0.0
        numbers = BoxRow(counts, (), pitch, pitch)
        rails = 1 if structure.has_rail_panels else self.fabric.rails
        panels = []
        for at, members in enumerate(numbers.split(pods)):
            key = numbers.key("rail" if structure.has_rail_panels else "pod", at)
            start = frame.start + at * pitch + gap / 2
            end = start + pitch - gap
            pod = members[0] if len(members) == 1 else merged(members)
            margin = min(3.0, 0.06 * (end - start)) if len(pods) > 1 else 0.0
            units = range(rails, len(pod.leaves) + 1, rails)
            row = row_of(len(pod.leaves), start + margin, end - margin, units)
            panels.append(ClosPanel(key if len(pods) > 1 else "", pod, row, start, end))
        return tuple(panels)

    @property
    def has_frames(self) -> bool:
        """Whether panels have frames."""
        return bool(self.panels[0].key)

    @cached_property
    def has_labels(self) -> bool:
        """Whether panels have room for their names."""
        panel = self.panels[-1]
        number, room = panel.key.split(" ")[-1], panel.end - panel.start - 6
        return self.frame.words and bool(first_fitting([number], room, bold=True))

    @cached_property
    def edges(self) -> dict[str, tuple[float, float]]:
        """Top and bottom of every tier and class of links, by its name in the bill."""
        fabric, down = self.fabric, self.frame.down
        low, *middle = fabric.tier_names
        switch = min(18.0, max(6.0, 0.055 * down))
        bundle = min(40.0, max(6.0, (0.11 if fabric.tiers < 3 else 0.07) * down))
        nodes = 0.31 if fabric.tiers < 3 else 0.26
        if fabric.nodes == 1 or (fabric.devices_per_node >= MIN_DOMAIN and self.boxes.has_cells):
            nodes = 0.46
        shares: list[tuple[str, float]] = [
            *(
                [("common", min(24.0, 0.08 * down)), ("", 0.03 * down)]
                if fabric.kind == "rail_only"
                else []
            ),
            *(
                [(middle[1], switch), (f"links {middle[1]}", max(0.17 * down, 12.0))]
                if fabric.tiers == 3
                else []
            ),
            *([("", 18.0 if self.has_labels else 3.0)] if self.has_frames else []),
            *([(middle[0], switch), (f"links {middle[0]}", 0.0)] if fabric.tiers > 1 else []),
            (low, switch),
            *([("", 3.0)] if self.has_frames else []),
            (f"links {low}", bundle if fabric.tiers > 1 else 0.0),
            ("node", nodes * down),
        ]
        rest = down - sum(height for _, height in shares)
        return stacked_edges(self.frame.top, [(name, high or rest) for name, high in shares])

    @cached_property
    def unit(self) -> float:
        """Room of one link."""
        rooms = []
        for panel in self.panels:
            row, pod = panel.row, panel.pod
            ports = sum(max(spine.down, spine.up) for spine in pod.spines)
            share = row.box / row.pitch
            rooms.append(room_of_link(row, pod.leaves))
            rooms.append(share * row.pitch * len(row.counts) / max(1, ports))
        return min(rooms)

    @cached_property
    def leaves(self) -> tuple[list[Placed], ...]:
        """Rows of leaves, panel by panel."""
        edges = self.edges[self.fabric.tier_names[0]]
        return tuple(
            place(panel.pod.leaves, panel.row, self.unit, edges, panel.key) for panel in self.panels
        )

    @cached_property
    def spines(self) -> tuple[list[Placed], ...]:
        """Rows of spines, panel by panel, as wide as their capacity."""
        return tuple(self._narrow(panel.pod.spines, 1, (panel,)) for panel in self.panels)

    def _narrow(
        self, switches: Sequence[DrawnSwitch], tier: int, panels: Sequence[ClosPanel]
    ) -> list[Placed]:
        """Place a row of switches centred above panels, as wide as its links."""
        if not switches:
            return []
        first, last = panels[0], panels[-1]
        is_single = len(panels) == 1
        row = first.row if is_single else row_of(len(first.pod.leaves), first.start, last.end)
        share = row.box / row.pitch
        ports = max(sum(switch.down for switch in switches), sum(switch.up for switch in switches))
        half = min(row.pitch * len(row.counts), ports * self.unit / share) / 2
        middle = (first.start + last.end) / 2
        above = row_of(len(switches), middle - half, middle + half)
        above = BoxRow(above.counts, above.centres, above.pitch, above.pitch * share)
        inside = first.key if tier == 1 else ""
        return place(switches, above, self.unit, self.edges[self.fabric.tier_names[tier]], inside)

    @cached_property
    def cores(self) -> tuple[Mesh, ...]:
        """Every group of switches at the top with its links to the frames below it."""
        structure, fabric = self.structure, self.fabric
        if fabric.tiers < 3:
            return ()
        name, is_shared = fabric.tier_names[2], structure.tops == 1
        meshes = []
        for panels in [self.panels] if is_shared else [(panel,) for panel in self.panels]:
            numbers = [number for panel in panels for number in panel.pod.numbers]
            tops = sorted({fabric.sizing.top_of[number] for number in numbers})
            links = block_diag(*(structure.core_links(top) for top in tops))
            alive = block_diag(*(structure.core_links(top, alive=True) for top in tops))
            words = ""
            if is_shared:  # panels of rails have their pods in an order of their own
                links, alive = links[numbers], alive[numbers]
                dealt = f", dealt to the {name} switches in turn"
                even = f": every pod to every {name} switch, {links.max()} each"
                words = f"{int(links.sum()):,} links{even if links.min() == links.max() else dealt}"
            row = self._narrow([core for top in tops for core in structure.cores(top)], 2, panels)
            frames = [self.panel_frame(panel) for panel in panels]
            share, unit = 1 if is_shared else len(self.panels), self.unit * fabric.link_ports[2]
            meshes.append(Mesh(f"links {name}", frames, row, links, unit, words, alive, {}, share))
        return tuple(meshes)

    def panel_frame(self, panel: ClosPanel) -> Placed:
        """Return the frame of a panel as what links from above end on."""
        names, rails = self.fabric.tier_names, self.fabric.rails
        top = self.edges[names[min(1, self.fabric.tiers - 1)]][0]
        top -= 18.0 if self.has_labels else 3.0
        height = self.edges[names[0]][1] + 3.0 - top
        is_coloured = self.structure.has_rail_panels and 1 < rails <= MAX_RAIL_COLOURS
        look = f"{panel.pod.leaves[0].look} plane" if is_coloured else "frame"
        box = Box(panel.key, look, panel.start, top, panel.end - panel.start, height)
        marks: list[Mark] = [box]
        middle = box.centre[0]
        if self.has_labels:
            text = first_fitting((panel.key, panel.key.split()[-1]), box.width - 6, bold=True)
            marks.append(Words(text, "soft", middle, top + 13, 12.0, "middle", panel.key))
        switches = tuple(DrawnSwitch("pod", at, 0, up) for at, up in enumerate(panel.pod.uplinks))
        reach = sum(panel.pod.uplinks) * self.unit
        return Placed(box, switches, tuple(marks), (middle - reach / 2, reach))


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
        Ports into the tier above, pod by pod.
    """

    numbers: tuple[int, ...]
    leaves: tuple[DrawnSwitch, ...]
    spines: tuple[DrawnSwitch, ...]
    links: IntArray
    uplinks: tuple[int, ...]


def merged(pods: Sequence[Pod]) -> Pod:
    """Return pods as one."""
    return Pod(
        tuple(number for pod in pods for number in pod.numbers),
        tuple(leaf for pod in pods for leaf in pod.leaves),
        tuple(spine for pod in pods for spine in pod.spines),
        block_diag(*(pod.links for pod in pods)),
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
    """

    fabric: Clos
    per_rack: int

    @cached_property
    def is_present(self) -> BoolArray:
        """Whether each device is present, shape (slots,)."""
        return np.isin(np.arange(self.fabric.slots), self.fabric.as_built.devices)

    @property
    def links_per_node(self) -> int:
        """Of one node to one leaf of one plane."""
        return self.fabric.nics_per_node // self.fabric.rails

    @property
    def unit_name(self) -> str:
        """What the nodes below one leaf, or the leaves of one unit, are together."""
        return (
            "rack"
            if self.fabric.rails == 1 and self.fabric.sizing.nodes_per_unit == self.per_rack
            else "unit"
        )

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
            links = sizing.spine_links(number) if count else np.zeros((len(leaves), 0), np.int64)
            first, down = int(starts[number]), links.sum(axis=0).tolist()
            above = tuple(self._switch(1, first + at, down[at], up) for at in range(count))
            pods.append(Pod((number,), leaves, above, links, (sum(spine.up for spine in above),)))
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
        name, wide = self.fabric.tier_names[tier], (*self.fabric.link_ports, 1)
        is_gone = f"{name} {number}" in self.fabric.missing
        return DrawnSwitch(name, number, down * wide[tier], up * wide[tier + 1], is_gone, look)

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
        sizing = self.fabric.sizing
        pods = [pod for pod, above in zip(self.pods, sizing.top_of, strict=True) if above == top]
        result = np.array(
            [
                dealt[[not (alive and spine.gone) for spine in pod.spines]].sum(axis=0)
                for pod, dealt in zip(pods, sizing.core_links(top), strict=True)
            ]
        )
        return result * [not core.gone for core in self.cores(top)] if alive else result
