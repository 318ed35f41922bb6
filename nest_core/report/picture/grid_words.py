"""What pictures of tori and meshes say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.fabric import Torus
from nest_core.report.picture.fabric_words import count_words, rate_words
from nest_core.report.picture.frame import Frame
from nest_core.report.picture.lattice import CUBE, LatticeBlocks
from nest_core.report.picture.marks import Swatch, TierLabel

__all__ = ["torus_labels", "torus_legend", "torus_subtitle", "torus_title"]

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def _by(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in sizes)


def torus_title(fabric: Torus) -> str:
    """Return what the fabric is, how many links a device has, and how far it is at most."""
    full = replace(fabric, missing=())
    hops = int(full.hops(np.zeros(1, np.int64), np.arange(full.places)).max())
    links = sum(
        2 if size > 2 or any(shift) else size - 1
        for size, shift in zip(fabric.shape, fabric.shifts, strict=True)
    )
    first = str(fabric.shape[0])
    article = "An" if first.startswith("8") or first in ("11", "18") else "A"
    kind = f"{'twisted ' if fabric.twisted else ''}{'torus' if any(fabric.wrap) else 'mesh'}"
    up_to = "" if all(fabric.wrap) else "up to "
    words = f"{up_to}{_NUMBERS[links]} link{'' if links == 1 else 's'}"
    return (
        f"{article} {_by(fabric.shape)} {kind}: {words} of "
        f"{rate_words(fabric.link_bandwidth_Bps)} per device, at most {count_words(hops, 0, 'hop')}"
    )


def torus_subtitle(blocks: LatticeBlocks) -> str:
    """Return how many devices there are, and what a line is."""
    torus = blocks.torus
    wraps = "; a wrap is two stubs" if any(torus.wrap) else "; nothing wraps"
    if len(torus.shape) > 2:
        wraps += ", as is a link between layers"
    if blocks.single:
        return f"{torus.devices:,} devices; every device and every link drawn{wraps}"
    full = int((blocks.places == math.prod(blocks.side)).sum())
    rest = len(blocks.places) - full
    smaller = f" and {rest:,} smaller at the ends" if rest else ""
    usual = max(blocks.joints.values(), default=0)
    line = f"; a line is {usual:,} links" if usual else ""
    return (
        f"{torus.devices:,} devices in {full:,} blocks of {_by(blocks.side)}{smaller}{line}{wraps}"
    )


def torus_legend(blocks: LatticeBlocks) -> list[Swatch]:
    """Return the entries of the legend."""
    torus, devices = blocks.torus, math.prod(blocks.side)
    rate = f"link{'' if blocks.single else 's'} of {rate_words(torus.link_bandwidth_Bps)}"
    back = "further along another axis" if torus.twisted else "at the other end"
    what = "device" if blocks.single else f"block of {devices:,} devices"
    entries = [
        (True, Swatch("line", "link axis-0", rate)),
        (any(torus.wrap), Swatch("line", "link axis-0 wrap", f"wrap: comes back {back}")),
        (True, Swatch("box", "device", what)),
        (bool(torus.missing), Swatch("box", "device gone", "crossed: failed, its router forwards")),
    ]
    return [swatch for is_drawn, swatch in entries if is_drawn]


def torus_labels(blocks: LatticeBlocks, parts: Inventory, frame: Frame) -> list[TierLabel]:
    """Return what there is, one below the other."""
    torus = blocks.torus
    gone, cubes = torus.places - torus.devices, torus.places // CUBE**3
    wraps = sum(links for joint, links in blocks.joints.items() if joint.wraps)
    closing = "closing the short axes" if torus.twisted else "one per ring"
    words = {
        "neighbour": ("links", "between neighbours"),
        "wrap-around": ("wraps", closing),
        "cube": ("links", "within the cube" if cubes == 1 else f"within {cubes:,} cubes of 64"),
        "between cubes": ("links", f"between cubes, {wraps:,} of them wraps"),
    }
    if cubes == 1:
        words["between cubes"] = ("wraps", "")
    devices = count_words(torus.devices, gone, "device")
    rows = [("device", torus.devices, devices, _by(torus.shape), gone)]
    for link in parts.links:
        name, below = words[link.tier]
        rows.append((f"links {link.tier}", link.count, f"{link.count:,} {name}", below, 0))
    for switch in parts.switches:
        head = f"{switch.count:,} optical switches"
        rows.append((switch.role, switch.count, head, "which the links between cubes cross", 0))
    rows.append(("bisection", 0, rate_words(torus.bisection_Bps()), "bisection, one way", 0))
    room = frame.down / len(rows)
    labels = []
    for at, (what, count, head, below, lost) in enumerate(rows):
        top = frame.top + room * at
        lines = (below,) if below else ()
        labels.append(TierLabel(what, count, head, lines, top, top + room, lost))
    # Every device is a node of its own.
    return [*labels, TierLabel("node", torus.devices, "", (), frame.top, frame.bottom, gone)]
