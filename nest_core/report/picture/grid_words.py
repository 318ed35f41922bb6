"""What pictures of tori and meshes say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nest_core.bill.inventory import Inventory
from nest_core.fabric import Torus
from nest_core.report.picture.fabric_words import count_words, rate_words
from nest_core.report.picture.frame import Frame
from nest_core.report.picture.lattice import CUBE, Blocks
from nest_core.report.picture.marks import Swatch, TierLabel

__all__ = ["torus_legend", "torus_said", "torus_subtitle", "torus_title"]

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def _by(sizes: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in sizes)


def _called(fabric: Torus) -> str:
    kind = "torus" if any(fabric.wrap) else "mesh"
    return f"twisted {kind}" if fabric.twisted else kind


def torus_title(fabric: Torus) -> str:
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
    rate = rate_words(fabric.link_bandwidth_Bps)
    one = "link" if links == 1 else "links"
    return (
        f"{article} {_by(fabric.shape)} {_called(fabric)}: {up_to}{_NUMBERS[links]} {one} of "
        f"{rate} per device, at most {hops:,} hop{'s' if hops > 1 else ''}"
    )


def torus_subtitle(blocks: Blocks) -> str:
    torus = blocks.torus
    wraps = "; a wrap is two stubs" if any(torus.wrap) else "; nothing wraps"
    if len(torus.shape) > 2:
        wraps += ", as is a link between layers"
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


def torus_legend(blocks: Blocks) -> list[Swatch]:
    rate = rate_words(blocks.torus.link_bandwidth_Bps)
    result = [
        Swatch("line", "link axis-0", f"link of {rate}" if blocks.single else f"links of {rate}")
    ]
    if any(wraps for wraps in blocks.torus.wrap):
        where = (
            "back further along another axis" if blocks.torus.twisted else "back at the other end"
        )
        result.append(Swatch("line", "link axis-0 wrap", f"wrap: comes {where}"))
    what = "device" if blocks.single else f"block of {math.prod(blocks.side):,} devices"
    result.append(Swatch("box", "device", what))
    if blocks.torus.missing:
        result.append(Swatch("box", "device gone", "crossed: failed, its router forwards"))
    return result


def torus_said(blocks: Blocks, parts: Inventory, frame: Frame) -> list[TierLabel]:
    torus = blocks.torus
    gone = torus.places - torus.devices
    of = count_words(torus.devices, gone, "device")
    rows: list[tuple[str, int, str, tuple[str, ...], int]] = [
        ("device", torus.devices, of, (_by(torus.shape),), gone)
    ]
    cubes = torus.places // CUBE**3
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
    rate = rate_words(torus.bisection_Bps())
    rows.append(("bisection", 0, rate, ("bisection, one way",), 0))
    room = frame.down / len(rows)
    result = [
        TierLabel(
            what, count, head, below, frame.top + room * at, frame.top + room * (at + 1), lost
        )
        for at, (what, count, head, below, lost) in enumerate(rows)
    ]
    # Every device is a node of its own.
    return [*result, TierLabel("node", torus.devices, "", (), frame.top, frame.bottom, gone)]
