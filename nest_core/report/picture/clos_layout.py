"""Where the rows of a Clos fabric stand: panels side by side, tiers one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nest_core.fabric import Clos
from nest_core.report.picture.aggregate import Row, row_of, tiles
from nest_core.report.picture.clos_nodes import Foot
from nest_core.report.picture.clos_structure import Pod, Structure, diagonal, merged
from nest_core.report.picture.frame import Frame
from nest_core.report.picture.marks import Box, Mark, Words
from nest_core.report.picture.meshes import Mesh
from nest_core.report.picture.racks import MIN_DOMAIN
from nest_core.report.picture.switches import Placed, Switch, narrow_row, place, units
from nest_core.report.picture.text import text_width

__all__ = ["MAX_RAIL_COLOURS", "ClosLayout", "Panel"]

MAX_RAIL_COLOURS = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """A pod or several, and where they stand.

    Parameters
    ----------
    key : str
        Of the frame; empty: none is drawn.
    pod : Pod
    tops : tuple of int
        Groups of switches above that are its alone; none where panels share them.
    left, right : float
    """

    key: str
    pod: Pod
    tops: tuple[int, ...]
    left: float
    right: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


@dataclass(frozen=True)
class ClosLayout:
    """The rows of a Clos fabric.

    Parameters
    ----------
    structure : Structure
    frame : Frame
        What is left to them.
    has_cells : bool
        Whether every device is drawn.
    """

    structure: Structure
    frame: Frame
    has_cells: bool

    @property
    def fabric(self) -> Clos:
        """What is drawn."""
        return self.structure.fabric

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """Panels from left to right."""
        structure, frame = self.structure, self.frame
        pods = structure.rail_pods() if structure.has_rail_panels else structure.pods()
        counts = tiles(len(pods), 0.6 * frame.across)
        pitch = frame.across / len(counts)
        gap = min(14.0, max(2.0, 0.08 * pitch)) if len(counts) > 1 else 0.0
        panels, at = [], 0
        name = "rail" if structure.has_rail_panels else "pod"
        for number, count in enumerate(counts):
            held, last = pods[at : at + count], at + count - 1
            key = f"{name} {at}" if count == 1 else f"{name} {at}-{last}"
            tops = tuple(range(at, last + 1)) if structure.tops > 1 else ()
            left = frame.left + number * pitch + gap / 2
            framed_key = key if len(pods) > 1 else ""
            panels.append(Panel(framed_key, merged(held), tops, left, left + pitch - gap))
            at += count
        return tuple(panels)

    @property
    def has_frames(self) -> bool:
        return bool(self.panels[0].key)

    @cached_property
    def _labels(self) -> bool:
        """Whether panels have room for their names."""
        panel = self.panels[-1]
        room = panel.right - panel.left - 6
        return (
            self.has_frames
            and self.frame.words
            and text_width(panel.key.split()[-1], 12.0, bold=True) * 1.12 <= room
        )

    @cached_property
    def edges(self) -> dict[str, tuple[float, float]]:
        """Top and bottom of every tier and class of links, by its name in the bill."""
        names, down, fabric = self.fabric.tier_names, self.frame.down, self.fabric
        switch = min(18.0, max(6.0, 0.055 * down))
        bundle = min(40.0, max(6.0, (0.11 if fabric.tiers < 3 else 0.07) * down))
        domain = fabric.devices_per_node >= MIN_DOMAIN and self.has_cells
        shares: list[tuple[str, float]] = []
        if fabric.kind == "rail_only":
            shares += [("common", min(24.0, 0.08 * down)), ("", 0.03 * down)]
        if fabric.tiers == 3:
            shares += [(names[2], switch), (f"links {names[2]}", max(0.17 * down, 12.0))]
        if self.has_frames:
            shares.append(("", 18.0 if self._labels else 3.0))
        if fabric.tiers > 1:
            shares += [(names[1], switch), (f"links {names[1]}", 0.0)]
        shares.append((names[0], switch))
        if self.has_frames:
            shares.append(("", 3.0))
        shares.append((f"links {names[0]}", bundle if fabric.tiers > 1 else 0.0))
        nodes = 0.46 if domain else 0.31 if fabric.tiers < 3 else 0.26
        shares.append(("node", nodes * down))
        rest = down - sum(height for _, height in shares)
        result: dict[str, tuple[float, float]] = {}
        y = self.frame.top
        for name, height in shares:
            below = y + (height or rest)
            result |= {name: (y, below)} if name else {"": (y, below)}
            y = below
        return result

    @cached_property
    def unit(self) -> float:
        """Room of one link."""
        rooms = []
        for panel in self.panels:
            row = self.leaf_row(panel)
            room = units(row, panel.pod.leaves)
            ports = sum(max(spine.down, spine.up) for spine in panel.pod.spines)
            share = row.box / row.pitch
            rooms.append(min(room, share * (row.pitch * len(row.counts)) / max(1, ports)))
        return min(rooms)

    def leaf_row(self, panel: Panel) -> Row:
        rails = 1 if self.structure.has_rail_panels else self.fabric.rails
        leaves = len(panel.pod.leaves)
        sizes = range(rails, leaves + 1, rails)  # whole units
        margin = min(3.0, 0.06 * (panel.right - panel.left)) if panel.key else 0.0
        return row_of(leaves, panel.left + margin, panel.right - margin, sizes)

    @cached_property
    def leaves(self) -> tuple[list[Placed], ...]:
        """Rows of leaves, panel by panel."""
        edges = self.edges[self.fabric.tier_names[0]]
        return tuple(
            place(self._dressed(panel), self.leaf_row(panel), self.unit, edges, panel.key)
            for panel in self.panels
        )

    def _dressed(self, panel: Panel) -> list[Switch]:
        rails = self.fabric.rails
        if not 1 < rails <= MAX_RAIL_COLOURS:
            return list(panel.pod.leaves)
        pairs = zip(panel.pod.leaves, panel.pod.groups, strict=True)
        return [replace(leaf, look=f"rail-{group % rails}") for leaf, group in pairs]

    @cached_property
    def spines(self) -> tuple[list[Placed], ...]:
        """Rows of spines, panel by panel, as wide as their capacity."""
        if self.fabric.tiers == 1:
            return tuple([] for _ in self.panels)
        edges = self.edges[self.fabric.tier_names[1]]
        return tuple(
            self._narrow(panel.pod.spines, panel, edges, panel.key) for panel in self.panels
        )

    def _narrow(
        self, switches: Sequence[Switch], panel: Panel, edges: tuple[float, float], inside: str
    ) -> list[Placed]:
        """A row of switches centred in a panel."""
        row = self.leaf_row(panel)
        share = row.box / row.pitch
        ports = max(sum(one.down for one in switches), sum(one.up for one in switches))
        width = min(row.pitch * len(row.counts), ports * self.unit / share)
        above = narrow_row(len(switches), panel.middle, width, share)
        return place(switches, above, self.unit, edges, inside)

    @cached_property
    def cores(self) -> tuple[tuple[Mesh, list[Placed], list[Placed]], ...]:
        """Every group of switches at the top: its links, the frames below it, and its row."""
        structure, fabric = self.structure, self.fabric
        if fabric.tiers < 3:
            return ()
        name = fabric.tier_names[2]
        frames = [self.panel_frame(panel) for panel in self.panels]
        edges, of = self.edges[name], f"links {name}"
        across = replace(self.panels[0], left=self.frame.left, right=self.frame.right)
        if structure.tops == 1:
            links, order = structure.core_links(), [n for p in self.panels for n in p.pod.numbers]
            total = f"{int(links.sum()):,} links"
            words = f"{total}, dealt to the {name} switches in turn"
            if int(links.min()) == int(links.max()):
                words = f"{total}: every pod to every {name} switch, {int(links.max())} each"
            sound = structure.core_sound()[order]
            row = self._top_row(structure.cores(), across, edges)
            return ((Mesh(of, links[order], words, self.unit, sound=sound), frames, row),)
        result = []
        for panel, frame in zip(self.panels, frames, strict=True):
            cores = [core for top in panel.tops for core in structure.cores(top)]
            links = diagonal([structure.core_links(top) for top in panel.tops])
            sound = diagonal([structure.core_sound(top) for top in panel.tops])
            each = Mesh(of, links, "", self.unit, sound=sound, meshes=len(self.panels))
            result.append((each, [frame], self._top_row(cores, panel, edges)))
        return tuple(result)

    def _top_row(
        self, cores: Sequence[Switch], panel: Panel, edges: tuple[float, float]
    ) -> list[Placed]:
        return self._narrow(cores, panel, edges, "")

    def panel_frame(self, panel: Panel) -> Placed:
        """The frame of a panel as what links from above end on."""
        names = self.fabric.tier_names
        top, bottom = self.edges[names[-1 if self.fabric.tiers == 1 else 1]][0], 0.0
        top -= 18.0 if self._labels else 3.0
        bottom = self.edges[names[0]][1] + 3.0
        look, rails = "frame", self.fabric.rails
        if self.structure.has_rail_panels and 1 < rails <= MAX_RAIL_COLOURS:
            look = f"rail-{panel.pod.groups[0] % rails} plane"
        box = Box(panel.key, look, panel.left, top, panel.right - panel.left, bottom - top)
        marks: list[Mark] = [box]
        if self._labels:
            text = panel.key
            if text_width(text, 12.0, bold=True) * 1.12 > box.width - 6:
                text = text.split()[-1]
            marks.append(Words(text, "soft", panel.middle, top + 13, 12.0, "middle", panel.key))
        switches = tuple(Switch("pod", at, 0, up) for at, up in enumerate(panel.pod.uplinks))
        reach = sum(panel.pod.uplinks) * self.unit
        return Placed(box, switches, tuple(marks), (panel.middle - reach / 2, reach))

    def feet(self, panel: int) -> list[Foot]:
        """Boxes of leaves of a panel with the numbers of their groups."""
        result, at = list[Foot](), 0
        groups = self.panels[panel].pod.groups
        for leaf in self.leaves[panel]:
            result.append((leaf, groups[at : at + len(leaf.members)]))
            at += len(leaf.members)
        return result
