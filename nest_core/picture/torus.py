"""Tori and meshes: a grid, or a block drawn obliquely, with every wrap as a stub at both its ends.

Two dimensions are a grid; three stand obliquely (`oblique`), so that every device is seen and no
line passes one that is not its end. Where devices have no room they are blocks (`lattice`), said,
and lines are as wide as their links. The axes are told apart by colour, direction and letter; a
wrap is dashed, of a twisted torus bent, because it comes back elsewhere. Right of it stands one
ring per axis.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.picture.ask import Ask
from nest_core.picture.clos_words import said_rate
from nest_core.picture.frame import Frame, frame_of, framed
from nest_core.picture.lattice import AXES, Blocks, Joint, blocks_of
from nest_core.picture.marks import (
    Band,
    Box,
    Drawn,
    Line,
    Mark,
    Said,
    Stands,
    Swatch,
    Words,
    between,
)
from nest_core.picture.plan import load_look
from nest_core.picture.racks import Paint
from nest_core.picture.rings import rings
from nest_core.picture.stages import legend_of, load_words, stages_of
from nest_core.picture.switches import cross
from nest_core.picture.torus_plan import torus_plan
from nest_core.picture.torus_site import LONGEST_STUB, Site, apart, fits, key_of, site_of, stub
from nest_core.topology import Torus

__all__ = ["torus_drawn"]

_MOST = {2: 640, 3: 343}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_CUBE = 4

Layered = tuple[float, Mark]
"""A mark and how far back it is: what is further back is painted first."""


def torus_drawn(fabric: Torus, ask: Ask) -> Drawn:
    """The picture of a torus or mesh."""
    frame = frame_of(ask.width)
    blocks = blocks_of(fabric, _MOST[len(fabric.shape)], lambda counts: fits(counts, frame))
    site = site_of(blocks.counts, frame, ask.plan is not None)
    busy = {} if ask.loads is None else blocks.busiest(ask.loads.busy)
    most = max(busy.values(), default=0.0)
    words = load_words(ask, (_title(fabric), _subtitle(blocks)), most)
    stages, paint = stages_of(ask, fabric.places, fabric.place_of())
    looks = {joint: load_look(share, most) for joint, share in busy.items()}
    layers = [*_links(blocks, site, ask.parts, looks), *_boxes(blocks, site, ask.parts, paint)]
    if stages is not None:
        layers += torus_plan(blocks, site, stages)
    layers.sort(key=lambda layered: -layered[0])
    marks = [mark for _, mark in layers]
    if frame.words:
        marks += _letters(blocks, site)
    if frame.said == "full":
        marks += rings(blocks, frame)
    legend = legend_of(ask, most, _legend(blocks), marks)
    return framed(frame, words, marks, _said(blocks, ask.parts, frame), legend)


def _links(blocks: Blocks, site: Site, parts: Inventory, loads: dict[Joint, str]) -> list[Layered]:
    joints, _ = blocks.joints
    most = max((joint.links for joint in joints), default=1)
    cubes = _has_cubes(parts)
    found: list[Layered] = []
    for joint in joints:
        back = max(site.back[joint.a], site.back[joint.b])
        width = (2.4 if blocks.single else 0.36 * min(site.box)) * (1 - 0.35 * back)
        width = max(1.0, width * joint.links / most)
        ends = key_of(blocks, joint.a), key_of(blocks, joint.b)
        stands = _stands(blocks, joint, cubes)
        look = f"link {loads.get(joint, f'axis-{joint.axis}')}"
        fade = 1 - 0.35 * back
        if not joint.wraps:
            points = apart(site, joint)
            found.append((back, Line(between(*ends), look, points, width, ends, stands, fade)))
            continue
        for block, way, own in ((joint.a, 1, stands), (joint.b, -1, ())):
            bent = stub(blocks, site, joint, block, way)
            end = (key_of(blocks, block),)
            line = Line(between(*ends), f"{look} wrap", bent, width, end, own, fade)
            found.append((site.back[block], line))
    return found


def _stands(blocks: Blocks, joint: Joint, cubes: bool) -> Stands:
    if not cubes:
        return ((f"links {'wrap-around' if joint.wraps else 'neighbour'}", joint.links),)
    at = blocks.place(joint.a)[joint.axis] * blocks.side[joint.axis] + blocks.side[joint.axis]
    within = not joint.wraps and at % _CUBE
    return ((f"links {'cube' if within else 'between cubes'}", joint.links),)


def _boxes(blocks: Blocks, site: Site, parts: Inventory, paint: Paint) -> list[Layered]:
    _, inside = blocks.joints
    cubes = _has_cubes(parts)
    found: list[Layered] = []
    for block, (x, y) in enumerate(site.at):
        size, back = site.box[block], site.back[block]
        left, top = x - size / 2, y - size / 2
        present, places = int(blocks.present[block]), int(blocks.places[block])
        stands: Stands = (("device", present), ("node", present)) if present else ()
        if inside[block] and cubes:
            own = min(int(inside[block]), 144 * max(1, places // _CUBE**3))
            rest = int(inside[block]) - own
            stands += (("links cube", own), *((("links between cubes", rest),) if rest else ()))
        elif inside[block]:
            stands += (("links neighbour", int(inside[block])),)
        key = key_of(blocks, block)
        if blocks.single and not present:
            stands = (("device", 1), ("node", 1))
        look = paint(np.flatnonzero(blocks.of == block).tolist())
        if present < places:
            look = f"{look} part" if present else "device gone"
        if not blocks.single and len(blocks.side) == 3:
            found += [(back - 1e-6, face) for face in _faces(left, top, size, look)]
        radius = size / 2 if blocks.single and len(blocks.side) == 3 else 1.5
        box = Box(key, look, left, top, size, size, stands=stands, radius=radius)
        found.append((back - 1e-6, box))
        if present < places:
            lost = places - present
            gone: Stands = (("device", lost), ("node", lost)) if present else ()
            found += [(back - 2e-6, line) for line in _crossed(box, gone)]
    return found


def _faces(x: float, y: float, size: float, look: str) -> list[Mark]:
    """Upper and right face of a cube whose front is a square."""
    dx, dy = 0.34 * size, -0.26 * size
    upper = (x, y), (x + dx, y + dy), (x + size + dx, y + dy), (x + size, y)
    right = (
        (x + size, y),
        (x + size + dx, y + dy),
        (x + size + dx, y + size + dy),
        (x + size, y + size),
    )
    return [Band("", f"{look} top", upper), Band("", f"{look} side", right)]


def _crossed(box: Box, stands: Stands) -> list[Mark]:
    """A cross, which stands for what of a block has failed."""
    first, *others = cross(box)
    if isinstance(first, Line):
        first = replace(first, stands=stands)
    return [first, *others]


def _letters(blocks: Blocks, site: Site) -> list[Mark]:
    """x, y and z where their axes end."""
    found: list[Mark] = []
    flat = len(blocks.counts) == 2
    ends = [count - 1 for count in blocks.counts]
    for axis, (dx, dy) in enumerate(site.steps):
        if blocks.torus.shape[axis] == 1:
            continue
        corner, way = [0] * len(ends), -1.0
        if flat:
            corner[axis], way = ends[axis], 1.0
        elif dx * dy:
            # The axis that goes back is named where it ends, at the lower right.
            corner = [
                0 if step[0] == 0 else end for step, end in zip(site.steps, ends, strict=True)
            ]
            way = 1.0
        block = _block_at(corner, blocks.counts)
        x, y = site.at[block]
        length = math.hypot(dx, dy)
        far = way * (site.box[block] / 2 + LONGEST_STUB + 8)
        at = x + dx / length * far, y + dy / length * far + 4
        found.append(Words(AXES[axis], f"bold axis-{axis}", *at, 13.0, "middle"))
    return found


def _block_at(place: list[int], counts: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(place, counts, order="F"))


def _has_cubes(parts: Inventory) -> bool:
    return any(link.tier == "cube" for link in parts.links)


def _by(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in sizes)


def _called(fabric: Torus) -> str:
    kind = "torus" if any(fabric.wrap) else "mesh"
    return f"twisted {kind}" if fabric.twisted else kind


def _title(fabric: Torus) -> str:
    whole = replace(fabric, missing=())
    hops = int(whole.hops(np.zeros(1, np.int64), np.arange(whole.places)).max())
    links = sum(
        2 if size > 2 or any(shift) else size - 1
        for size, shift in zip(fabric.shape, fabric.shifts, strict=True)
    )
    up_to = "" if all(fabric.wrap) else "up to "
    article = (
        "An" if str(fabric.shape[0]) in ("8", "11", "18") or fabric.shape[0] // 10 == 8 else "A"
    )
    rate = said_rate(fabric.link_bandwidth_Bps)
    one = "link" if links == 1 else "links"
    return (
        f"{article} {_by(fabric.shape)} {_called(fabric)}: {up_to}{_NUMBERS[links]} {one} of "
        f"{rate} per device, at most {hops:,} hop{'s' if hops > 1 else ''}"
    )


def _subtitle(blocks: Blocks) -> str:
    torus = blocks.torus
    wraps = ", a wrap two stubs" if any(torus.wrap) else ", nothing wraps"
    if blocks.single:
        return f"{torus.devices:,} devices; every device and every link drawn{wraps}"
    joints, _ = blocks.joints
    usual = max((joint.links for joint in joints), default=0)
    line = f"; a line is {usual:,} links" if usual else ""
    return f"{torus.devices:,} devices in {_tiled(blocks)}{line}{wraps}"


def _tiled(blocks: Blocks) -> str:
    whole = math.prod(blocks.side)
    full = int((blocks.places == whole).sum())
    rest = len(blocks.places) - full
    smaller = f" and {rest:,} smaller at the ends" if rest else ""
    return f"{full:,} blocks of {_by(blocks.side)}{smaller}"


def _legend(blocks: Blocks) -> list[Swatch]:
    rate = said_rate(blocks.torus.link_bandwidth_Bps)
    found = [
        Swatch("line", "link axis-0", f"link of {rate}" if blocks.single else f"links of {rate}")
    ]
    if any(wraps for wraps in blocks.torus.wrap):
        where = (
            "back further along another axis" if blocks.torus.twisted else "back at the other end"
        )
        found.append(Swatch("line", "link axis-0 wrap", f"wrap: comes {where}"))
    what = "device" if blocks.single else f"block of {math.prod(blocks.side):,} devices"
    found.append(Swatch("box", "device", what))
    if blocks.torus.missing:
        found.append(Swatch("box", "device gone", "crossed: failed, its router forwards"))
    return found


def _said(blocks: Blocks, parts: Inventory, frame: Frame) -> list[Said]:
    torus = blocks.torus
    gone = torus.places - torus.devices
    of = f"{torus.devices:,} of {torus.places:,} devices" if gone else f"{torus.devices:,} devices"
    rows: list[tuple[str, int, str, tuple[str, ...], int]] = [
        ("device", torus.devices, of, (_by(torus.shape),), gone)
    ]
    cubes = torus.places // _CUBE**3
    wraps = sum(joint.links for joint in blocks.joints[0] if joint.wraps)
    for link in parts.links:
        words = {
            "neighbour": ("links", "between neighbours"),
            "wrap-around": (
                "wraps",
                "one per ring" if not torus.twisted else "closing the short axes",
            ),
            "cube": ("links", "within the cube" if cubes == 1 else f"within {cubes:,} cubes of 64"),
            "between cubes": ("wraps", "")
            if cubes == 1
            else ("links", f"between cubes, {wraps:,} of them wraps"),
        }[link.tier]
        below = (words[1],) if words[1] else ()
        rows.append((f"links {link.tier}", link.count, f"{link.count:,} {words[0]}", below, 0))
    for switch in parts.switches:
        head = f"{switch.count:,} optical switches"
        rows.append((switch.role, switch.count, head, ("which the links between cubes cross",), 0))
    rate = said_rate(torus.bisection_Bps())
    rows.append(("bisection", 0, rate, ("bisection, one way",), 0))
    room = frame.down / len(rows)
    found = [
        Said(what, count, head, below, frame.top + room * at, frame.top + room * (at + 1), lost)
        for at, (what, count, head, below, lost) in enumerate(rows)
    ]
    # Every device is a node of its own.
    return [*found, Said("node", torus.devices, "", (), frame.top, frame.bottom, gone)]
