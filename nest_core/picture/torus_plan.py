"""A plan on a torus: tensor groups whose devices touch, and one replica's way from stage to stage.

Transfers go link by link, as they are routed: dimension by dimension, a wrap by both of its stubs.
"""

from __future__ import annotations

from itertools import pairwise

from nest_core.picture.lattice import Blocks
from nest_core.picture.marks import Line, Mark, between
from nest_core.picture.stages import Stages, lit
from nest_core.picture.torus_site import Site, apart, key_of, stub

__all__ = ["torus_plan"]


def torus_plan(blocks: Blocks, site: Site, stages: Stages) -> list[tuple[float, Mark]]:
    """Marks, and how far back they are."""
    return [
        *_groups(blocks, site, stages),
        *_numbers(blocks, site, stages),
        *_ways(blocks, site, stages),
    ]


def _groups(blocks: Blocks, site: Site, stages: Stages) -> list[tuple[float, Mark]]:
    """Bars between devices of one tensor group that are neighbours."""
    if not blocks.single:
        return []
    tensor, found = stages.tensor(), list[tuple[float, Mark]]()
    for joint in blocks.joints[0]:
        if joint.wraps or tensor[joint.a] < 0 or tensor[joint.a] != tensor[joint.b]:
            continue
        back = max(site.back[joint.a], site.back[joint.b])
        ends = key_of(blocks, joint.a), key_of(blocks, joint.b)
        look = f"{stages.paint((joint.a,))} bar"
        width = 0.6 * min(site.box[joint.a], site.box[joint.b])
        points = apart(site, joint)
        found.append((back - 3e-7, Line(between(*ends), look, points, width, ends)))
    return found


def _numbers(blocks: Blocks, site: Site, stages: Stages) -> list[tuple[float, Mark]]:
    held: list[list[int]] = [[] for _ in site.at]
    for place, block in enumerate(blocks.of.tolist()):
        held[block].append(place)
    return [
        (site.back[block] - 2e-6, mark)
        for block, places in enumerate(held)
        for mark in stages.number(places, site.at[block], site.box[block], key_of(blocks, block))
    ]


def _ways(blocks: Blocks, site: Site, stages: Stages) -> list[tuple[float, Mark]]:
    passed: set[tuple[int, int, int, bool]] = set()
    for here, there in pairwise(stages.groups()):
        for start, end in zip(here, there, strict=False):
            passed |= blocks.way(start, end)
    found: list[tuple[float, Mark]] = []
    for joint in blocks.joints[0]:
        if (joint.axis, joint.a, joint.b, joint.wraps) not in passed:
            continue
        ends = key_of(blocks, joint.a), key_of(blocks, joint.b)
        back = max(site.back[joint.a], site.back[joint.b]) - 5e-7
        if not joint.wraps:
            found += [(back, mark) for mark in lit(between(*ends), apart(site, joint), ends)]
            continue
        for block, way in ((joint.a, 1), (joint.b, -1)):
            points = stub(blocks, site, joint, block, way)
            marks = lit(between(*ends), points, (key_of(blocks, block),))
            found += [(site.back[block] - 5e-7, mark) for mark in marks]
    return found
