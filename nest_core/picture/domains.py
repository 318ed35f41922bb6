"""Scale-up domains of more than 16 devices: racks with trays, heavy frames, their leaves above.

A domain is where a device has most of its bandwidth, so it is the largest thing in the picture: its
hosts are trays, a row of devices each, above and below the switch that joins all of them. Where the
fabric does not say what a host is, devices are a block of cells. Every rack has its links to every
leaf of its unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nest_core.picture.aggregate import Row, row_of
from nest_core.picture.ask import Ask
from nest_core.picture.clos import Sketch, left_ratio
from nest_core.picture.clos_plan import stage_legend
from nest_core.picture.clos_structure import Pod
from nest_core.picture.clos_words import plural, said_links, said_nodes, said_rate, said_tier
from nest_core.picture.frame import Frame, frame_of, framed
from nest_core.picture.marks import Box, Drawn, Mark, Said, Stands, Swatch, Words
from nest_core.picture.meshes import Mesh, mesh
from nest_core.picture.switches import Placed, Switch, cross, narrow_row, place, units
from nest_core.picture.text import text_width
from nest_core.topology import Clos

__all__ = ["LEAST_DOMAIN", "domains_drawn", "has_domains"]

LEAST_DOMAIN = 17
_LEAST_PITCH = 26.0
_SHARES = (("spine", 24.0), ("mesh", 92.0), ("leaf", 24.0), ("links", 88.0), ("rack", 250.0))
_EDGE = 5.0


def has_domains(fabric: Clos, ask: Ask) -> bool:
    """Whether every node is a rack that there is room for."""
    room = frame_of(ask.width).across / max(1, fabric.nodes)
    flat = fabric.tiers <= 2 and fabric.planes == 1 and fabric.kind != "rail_only"
    cells = fabric.slots <= 1536
    return fabric.devices_per_node >= LEAST_DOMAIN and flat and cells and room >= _LEAST_PITCH


def domains_drawn(sketch: Sketch) -> Drawn:
    """Racks in a row, leaves and spines above."""
    structure, fabric = sketch.structure, sketch.fabric
    (pod,) = structure.pods()
    frame = frame_of(sketch.width)
    edges = _edges(frame, bool(pod.spines))
    row = row_of(len(pod.leaves), frame.left, frame.right)
    unit = units(row, pod.leaves)
    names = fabric.tier_names
    leaves = place(pod.leaves, row, unit, edges["leaf"])
    marks: list[Mark] = []
    if pod.spines:
        spines = _spines(pod, row, unit, frame, edges["spine"])
        up = sum(leaf.up for leaf in pod.leaves)
        words = f"{up:,} links: every {names[0]} to every {names[1]}"
        ups = {key.removesuffix(" up"): look for key, look in sketch.loads.items()}
        links = Mesh(f"links {names[1]}", pod.links, words, unit, loads=ups)
        marks += mesh(leaves, spines, links)[1]
        marks += [mark for one in spines for mark in one.marks]
    racks = _racks(sketch, frame, edges["rack"])
    below = _to_leaves(sketch, pod)
    words = f"{int(below.sum()):,} links, {structure.links_per_node} from a rack to each leaf"
    room = min(unit, row.box / max(1, int(below.sum(axis=0).max())))
    # Every leaf takes as much of every rack: the looks of leaf 0's links are those of all.
    first = sketch.loads.get(f"{leaves[0].key} down", "")
    looks = dict.fromkeys((rack.key for rack in racks), first) if first else {}
    down = Mesh(f"links {names[0]}", below, words, room, loads=looks)
    marks += mesh(racks, leaves, down)[1]
    marks += [mark for one in (*leaves, *racks) for mark in one.marks]
    if frame.words:
        marks += _names(racks, frame)
    if sketch.plan is not None:
        marks += _outlines(sketch, racks)
    words_of = sketch.words("") if sketch.plan else (_title(fabric), _subtitle(fabric))
    return framed(frame, words_of, marks, _said(sketch, pod, edges), _legend(sketch))


def _edges(frame: Frame, spines: bool) -> dict[str, tuple[float, float]]:
    shares = [(name, share) for name, share in _SHARES if spines or name not in ("spine", "mesh")]
    bottom = frame.bottom - (17 if frame.words else 0)
    unit = (bottom - frame.top) / sum(share for _, share in shares)
    found, y = {}, frame.top
    for name, share in shares:
        found[name] = (y, y + share * unit)
        y += share * unit
    return found


def _spines(
    pod: Pod, row: Row, unit: float, frame: Frame, edges: tuple[float, float]
) -> list[Placed]:
    share = row.box / row.pitch
    width = min(frame.across, sum(spine.down for spine in pod.spines) * unit / share)
    above = narrow_row(len(pod.spines), (frame.left + frame.right) / 2, width, share)
    return place(pod.spines, above, unit, edges)


def _to_leaves(sketch: Sketch, pod: Pod) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Links of every rack to every leaf, shape (racks, leaves)."""
    structure, fabric = sketch.structure, sketch.fabric
    found = np.zeros((fabric.nodes, len(pod.leaves)), np.int64)
    for at, group in enumerate(pod.groups):
        under = structure.nodes_of(group).nodes
        found[under.start : under.stop, at] = structure.links_per_node
    return found


def _racks(sketch: Sketch, frame: Frame, edges: tuple[float, float]) -> list[Placed]:
    structure, fabric = sketch.structure, sketch.fabric
    row = row_of(fabric.nodes, frame.left, frame.right, most=150.0)
    found = []
    for node, middle in enumerate(row.centres):
        gone = not structure.present[node]
        left = middle - row.box / 2
        stands: Stands = (("node", 1),)
        if gone:
            stands += (("device", fabric.devices_per_node),)
        look = "frame gone" if gone else "frame domain"
        box = Box(
            f"node {node}", look, left, edges[0], row.box, edges[1] - edges[0], "", stands, radius=3
        )
        inside = cross(box) if gone else _trays(sketch, box, node)
        switch = Switch("node", node, 0, fabric.nics_per_node, bool(gone))
        found.append(Placed(box, (switch,), (box, *inside)))
    return found


def _trays(sketch: Sketch, rack: Box, node: int) -> list[Mark]:
    """Hosts in rows of devices, half of them above the switch that joins them."""
    fabric = sketch.fabric
    each = fabric.devices_per_host
    if not each or fabric.devices_per_node % each:
        each = _across(fabric.devices_per_node, rack.width / rack.height)
    rows = math.ceil(fabric.devices_per_node / each)
    joined = fabric.interconnect == "switch"
    bar = min(26.0, 0.12 * rack.height) if joined else 0.0
    room = rack.height - 2 * _EDGE - bar - (6 if joined else 0)
    high, wide = room / rows, (rack.width - 2 * _EDGE) / each
    gap = min(2.0, 0.25 * high), min(2.0, 0.2 * wide)
    upper = rows // 2
    marks: list[Mark] = []
    for slot in range(fabric.devices_per_node):
        row, column = divmod(slot, each)
        number = node * fabric.devices_per_node + slot
        here = number in sketch.structure.devices
        x = rack.x + _EDGE + column * wide + gap[1] / 2
        y = rack.y + _EDGE + row * high + (bar + 6 if joined and row >= upper else 0) + gap[0] / 2
        look = sketch.racks.paint((number,)) if here else "device gone"
        size = wide - gap[1], high - gap[0]
        marks.append(Box(f"device {number}", look, x, y, *size, rack.key, (("device", 1),)))
    if joined:
        y = rack.y + _EDGE + upper * high + 3
        place = rack.x + _EDGE, y, rack.width - 2 * _EDGE, bar
        marks.append(Box(f"nvswitch {node}", "port", *place, rack.key, radius=1.5))
    return marks


def _outlines(sketch: Sketch, racks: Sequence[Placed]) -> list[Mark]:
    """Around every device of the first replica."""
    present = sketch.fabric.as_built.devices
    held = [int(present[at]) for group in sketch.plan.group for at in group] if sketch.plan else []
    keys = {f"device {number}" for number in held}
    boxes = [mark for rack in racks for mark in rack.marks if isinstance(mark, Box)]
    return [
        Box("", look, box.x - 1, box.y - 1, box.width + 2, box.height + 2, box.inside)
        for box in boxes
        if box.key in keys
        for look in ("cased", "lit")
    ]


def _across(devices: int, aspect: float) -> int:
    """Devices side by side in a block: a divisor that makes cells about twice as wide as high."""
    divisors = [size for size in range(1, devices + 1) if devices % size == 0]
    wanted = math.sqrt(devices * aspect / 2)
    return min(divisors, key=lambda size: abs(math.log(size / wanted)))


def _names(racks: Sequence[Placed], frame: Frame) -> list[Mark]:
    pitch = frame.across / len(racks)
    named = text_width("rack 88", 12.0) * 1.1 <= pitch
    return [
        Words(f"rack {at}" if named else str(at), "soft", one.box.centre[0], frame.bottom - 1,
              12.0, "middle", one.key)
        for at, one in enumerate(racks)
    ]  # fmt: skip


def _title(fabric: Clos) -> str:
    outside = fabric.nics_per_node * fabric.nic_bandwidth_Bps / fabric.devices_per_node
    times = fabric.intra_bandwidth_Bps / outside
    if fabric.nodes == 1:
        return f"One rack: a device has {said_rate(fabric.intra_bandwidth_Bps)} to any other"
    return f"Inside a rack a device has {times:.3g} times the bandwidth that it has between racks"


def _subtitle(fabric: Clos) -> str:
    rails = f", {fabric.rails} rails" if fabric.rails > 1 else ""
    racks = f"{fabric.nodes} {plural('rack', fabric.nodes)} of {fabric.devices_per_node}"
    return (
        f"{fabric.devices:,} devices in {racks}{rails}; width is capacity, a heavy frame a domain"
    )


def _legend(sketch: Sketch) -> list[Swatch]:
    fabric = sketch.fabric
    stages = stage_legend(sketch.plan) if sketch.plan else ()
    busy = (Swatch("ramp", "", "busy, least to most"),) if sketch.busy else ()
    joined = fabric.interconnect == "switch"
    gone = [Swatch("box", "device gone", "crossed, dashed: failed")] if fabric.missing else []
    return [
        *stages,
        *busy,
        *(() if stages else (Swatch("box", "device", "device"),)),
        *([Swatch("box", "port", "switch in the rack: any to any")] if joined else []),
        Swatch("box", "switch", "switch; width is ports in use"),
        Swatch("box", "frame domain", "scale-up domain"),
        *gone,
    ]


def _said(sketch: Sketch, pod: Pod, edges: dict[str, tuple[float, float]]) -> list[Said]:
    fabric, counts, names = sketch.fabric, sketch.counts, sketch.fabric.tier_names
    leaf, found = pod.leaves[0], list[Said]()
    if pod.spines:
        ports = f"{pod.spines[0].down} of {fabric.radix} ports each"
        found.append(said_tier(names[1], counts, (ports,), edges["spine"]))
        ratio = left_ratio(sketch, 1)
        each = leaf.up // len(pod.spines)
        words = f": every {names[0]} to every {names[1]}, x {each}"
        found.append(said_links(names[1], counts, words, edges["mesh"], ratio))
    ports = f"{leaf.down} down, {leaf.up} up each" if leaf.up else f"{leaf.down} ports down"
    rails = ("one per rail",) if fabric.rails > 1 and len(pod.leaves) == fabric.rails else ()
    found.append(said_tier(names[0], counts, (*rails, ports), edges["leaf"]))
    each = sketch.structure.links_per_node
    words = f" of {sketch.one_link}, {each} from a rack to each {names[0]}"
    found.append(said_links(names[0], counts, words, edges["links"]))
    top, bottom = edges["rack"]
    host = fabric.devices_per_host
    trays = f"{fabric.devices_per_node // host} hosts of {host} devices; " if host else ""
    present, gone = counts["node"]
    of = f"{present:,} of {present + gone:,}" if gone else f"{present:,}"
    head = f"{of} {plural('rack', present + gone)}"
    racks = said_nodes(sketch.structure, counts, (top, top + 0.7 * (bottom - top)), head, trays)
    total, lost = counts["device"]
    of = f"{total:,} of {total + lost:,}" if lost else f"{total:,}"
    devices = Said("device", total, f"{of} devices", (), top + 0.7 * (bottom - top), bottom, lost)
    return [*found, racks, devices]
