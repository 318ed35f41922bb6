"""One node as it is inside: devices, their NICs and leaves, and what joins the devices.

A switch that joins all of them is one bar, since the file says no more of it; direct links are arcs
below the devices, as wide as what they carry, so that the mesh, the ring and the hybrid cube mesh
differ at a glance. One width holds for the whole picture, so that what a device has inside stands
beside what its NIC has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.fabric import Clos, Hierarchical
from nest_core.fabric.scale_up import ScaleUp
from nest_core.report.picture.ask import Ask
from nest_core.report.picture.fabric_words import count_words, said_rate
from nest_core.report.picture.frame import TEXT, Frame, frame_of, framed
from nest_core.report.picture.marks import (
    Band,
    Box,
    Drawn,
    Line,
    Mark,
    Said,
    Swatch,
    Words,
    between,
)
from nest_core.report.picture.meshes import arc
from nest_core.report.picture.racks import Paint
from nest_core.report.picture.stages import legend_of, load_words, stages_of
from nest_core.report.picture.switches import cross, rectangle
from nest_core.report.picture.text import text_width

__all__ = ["MOST_DEVICES", "node_drawn"]

MOST_DEVICES = 16
_EDGE = 8.0
_NIC_PX = 3.0


@dataclass(frozen=True, slots=True)
class _Node:
    """What there is.

    Parameters
    ----------
    inside : ScaleUp
    present : frozenset of int
    nics : int
    nic_Bps : float
    leaves : int
        0: nothing leaves the node.
    leaf : str
        What its switch is called.
    """

    inside: ScaleUp
    present: frozenset[int]
    nics: int = 0
    nic_Bps: float = 0.0
    leaves: int = 0
    leaf: str = "leaf"


def node_drawn(fabric: Clos | Hierarchical, ask: Ask) -> Drawn:
    """The picture of a fabric of one node."""
    if isinstance(fabric, Clos):
        numbers, slots = fabric.as_built.devices, fabric.slots
        node = _Node(
            fabric.scale_up,
            frozenset(numbers.tolist()),
            fabric.nics_per_node,
            fabric.nic_bandwidth_Bps,
            sum(one.count for one in ask.parts.switches),
            fabric.tier_names[0],
        )
    else:
        numbers, tier = fabric.place_of(), fabric.tiers[0]
        slots = tier.group_size
        inside = ScaleUp("switch", slots, tier.link_bandwidth_Bps, tier.latency_s)
        node = _Node(inside, frozenset(numbers.tolist()))
    frame = frame_of(ask.width)
    stages, paint = stages_of(ask, slots, np.asarray(numbers))
    sketch = _Sketch(node, frame, paint)
    marks = sketch.marks()
    if stages is not None:
        for at, box in enumerate(sketch.devices()):
            marks += stages.number((at,), (box.centre[0], box.y + 12), box.width, box.key)
    words = load_words(ask, (_title(node), _subtitle(node)), 0.0)
    legend = legend_of(ask, 0.0, [Swatch("box", "device", "device")], marks)
    return framed(frame, words, marks, sketch.said(ask), legend)


@dataclass(frozen=True, slots=True)
class _Sketch:
    """The rows: leaves, NICs, devices, what joins them."""

    node: _Node
    frame: Frame
    paint: Paint

    @property
    def pitch(self) -> float:
        """Between two devices."""
        return (self.frame.across - 2 * _EDGE) / self.node.inside.devices

    @property
    def unit(self) -> float:
        """Pixels of one byte/s."""
        widest = self.node.inside.bandwidth_Bps
        fit = 0.55 * self.pitch / widest
        return min(fit, _NIC_PX / self.node.nic_Bps) if self.node.nic_Bps else fit

    def row(self, share: float, height: float) -> tuple[float, float]:
        """Upper and lower edge of a row whose middle is at a share of the height."""
        middle = self.frame.top + share * self.frame.down
        half = height * self.frame.down / 2
        return middle - half, middle + half

    def devices(self) -> list[Box]:
        """One box each."""
        top, bottom = self.row(0.56 if self.node.leaves else 0.3, 0.17)
        wide = min(110.0, 0.84 * self.pitch)
        result = []
        for slot in range(self.node.inside.devices):
            x = self.frame.left + _EDGE + (slot + 0.5) * self.pitch - wide / 2
            look = self.paint((slot,)) if slot in self.node.present else "device gone"
            stands = (("device", 1),)
            result.append(
                Box(f"device {slot}", look, x, top, wide, bottom - top, "node 0", stands, radius=2)
            )
        return result

    def marks(self) -> list[Mark]:
        """The frame, links, then boxes."""
        devices = self.devices()
        frame_top = self.row(0.27, 0.0)[0] if self.node.leaves else self.frame.top
        across, bottom = self.frame.across, self.frame.bottom
        place = self.frame.left, frame_top, across, bottom - frame_top
        marks: list[Mark] = [Box("node 0", "frame", *place, "", (("node", 1),), radius=5)]
        marks += self._joined(devices)
        if self.node.leaves:
            marks += self._outwards(devices)
        for box in devices:
            marks += [box, *(cross(box) if "gone" in box.look else [])]
            number = box.key.removeprefix("device ")
            text = next((t for t in (box.key, number) if self._fits(t, box)), "")
            if text and self.frame.words and box.look == "device":
                x, y = box.centre
                marks.append(Words(text, "label", x, y + 4.2, TEXT, "middle", box.key))
        return marks

    @staticmethod
    def _fits(text: str, box: Box) -> bool:
        return text_width(text, TEXT) * 1.1 <= box.width

    def _joined(self, devices: Sequence[Box]) -> list[Mark]:
        inside = self.node.inside
        if inside.interconnect != "switch" or inside.devices == 1:
            return self._arcs(devices)
        top, bottom = self.row(0.88, 0.13)
        left, across = self.frame.left + _EDGE, self.frame.across - 2 * _EDGE
        bar = Box("nvswitch 0", "switch", left, top, across, bottom - top, "node 0", radius=2)
        wide = max(1.0, inside.bandwidth_Bps * self.unit)
        marks: list[Mark] = []
        for box in devices:
            if "gone" not in box.look:
                x, y = box.centre[0], box.y + box.height
                points = rectangle(x - wide / 2, y, wide, top - y)
                ends = box.key, bar.key
                marks.append(Band(between(*ends), "bundle", points, ends))
        total = said_rate(inside.devices * inside.bandwidth_Bps)
        one = said_rate(inside.bandwidth_Bps)
        text = f"switch: any to any, {inside.devices} x {one} = {total}"
        marks.append(bar)
        if self.frame.words and text_width(text, TEXT) * 1.1 <= across and bottom - top >= 15:
            x, y = bar.centre
            marks.append(Words(text, "bold", x, y + 4.2, TEXT, "middle", bar.key))
        return marks

    def _arcs(self, devices: Sequence[Box]) -> list[Mark]:
        links = self.node.inside.links()
        room = self.frame.bottom - devices[0].y - devices[0].height - 24
        most = max((rate for _, _, rate in links), default=1.0)
        marks: list[Mark] = []
        for a, b, rate in links:
            if not {a, b} <= self.node.present:
                continue
            one, other = devices[a], devices[b]
            base = one.y + one.height
            deep = room * (0.16 + 0.8 * (b - a) / max(1, len(devices) - 1))
            points = arc(one.centre[0], other.centre[0], base, -deep)
            ends = one.key, other.key
            width = max(0.8, 3.0 * rate / most)
            marks.append(Line(between(*ends), "link", points, width, ends, opacity=0.8))
        return marks

    def _outwards(self, devices: Sequence[Box]) -> list[Mark]:
        node = self.node
        top, bottom = self.row(0.36, 0.08)
        above, below = self.row(0.08, 0.1)
        pitch = (self.frame.across - 2 * _EDGE) / node.leaves
        leaves = [
            Box(
                f"{node.leaf} {at}",
                "switch",
                self.frame.left + _EDGE + (at + 0.02) * pitch,
                above,
                0.96 * pitch,
                below - above,
                "",
                ((node.leaf, 1),),
            )
            for at in range(node.leaves)
        ]
        wide = max(1.0, node.nic_Bps * self.unit)
        marks: list[Mark] = []
        each = (self.frame.across - 2 * _EDGE) / node.nics
        for at in range(node.nics):
            x = self.frame.left + _EDGE + (at + 0.5) * each
            size = min(60.0, 0.6 * each)
            nic = Box(f"nic 0.{at}", "port", x - size / 2, top, size, bottom - top, "node 0")
            leaf = leaves[at * node.leaves // node.nics]
            ends = nic.key, leaf.key
            stands = ((f"links {node.leaf}", 1),)
            marks.append(Line(between(*ends), "link", ((x, top), (x, below)), wide, ends, stands))
            own = [b for n, b in enumerate(devices) if n * node.nics // len(devices) == at]
            for box in own or [devices[at * len(devices) // node.nics]]:
                inner = box.key, nic.key
                start = x if abs(x - box.centre[0]) < box.width / 2 - 2 else box.centre[0]
                end = min(max(start, x - size / 2 + 2), x + size / 2 - 2)
                points = (start, box.y), (end, bottom)
                if "gone" not in box.look:
                    marks.append(Line(between(*inner), "link", points, wide, inner))
            marks.append(nic)
        return [*marks, *leaves]

    def said(self, ask: Ask) -> list[Said]:
        """Leaves, NICs, devices, what joins them."""
        node, inside = self.node, self.node.inside
        result: list[Said] = []
        if node.leaves:
            head = count_words(node.leaves, 0, node.leaf)
            result.append(Said(node.leaf, node.leaves, head, (), *self.row(0.08, 0.1)))
            links = sum(one.count for one in ask.parts.links)
            one = f"{links} links of {said_rate(node.nic_Bps)}"
            result.append(Said(f"links {node.leaf}", links, "", (one,), *self.row(0.22, 0.06)))
            result.append(
                Said("nic", node.nics, count_words(node.nics, 0, "NIC"), (), *self.row(0.36, 0.08))
            )
        count, gone = len(node.present), inside.devices - len(node.present)
        edges = self.row(0.56 if node.leaves else 0.3, 0.17)
        result.append(
            Said(
                "device", count, count_words(count, gone, "device"), ("in one node",), *edges, gone
            )
        )
        how = {"switch": "switch", "mesh": "all to all", "ring": "ring"}
        join = how.get(inside.interconnect, "hybrid cube mesh")
        rate = f"{said_rate(inside.bandwidth_Bps)} per device"
        result.append(Said("inside", 0, join.capitalize(), (rate,), *self.row(0.88, 0.13)))
        return [*result, Said("node", 1, "", (), self.frame.top, self.frame.bottom)]


def _title(node: _Node) -> str:
    own = said_rate(node.inside.bandwidth_Bps)
    if not node.leaves:
        return f"One node: a device has {own} to the others"
    outside = node.nics * node.nic_Bps / node.inside.devices
    times = node.inside.bandwidth_Bps / outside
    return f"Inside the node a device has {own}, {times:.3g} times its share of the NICs"


def _subtitle(node: _Node) -> str:
    return f"One node of {node.inside.devices} devices; width is capacity"
