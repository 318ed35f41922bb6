"""A plan on a Clos fabric: one replica's transfers, and the loads of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nest_core.explain.loads import Loads
from nest_core.report.picture.clos_nodes import Foot
from nest_core.report.picture.clos_structure import Structure
from nest_core.report.picture.marks import Mark, between
from nest_core.report.picture.plan import load_look, tier_busy
from nest_core.report.picture.stages import Stages, lit
from nest_core.report.picture.switches import Placed

__all__ = [
    "Busy",
    "busy_of",
    "transfers",
]


def transfers(
    structure: Structure, stages: Stages, leaves: Sequence[Foot], spines: Sequence[Placed]
) -> list[Mark]:
    """Draw the first replica's way from stage to stage."""
    marks, groups = list[Mark](), stages.groups()
    for stage, pair in enumerate(pairwise(groups)):
        low, high = (_leaf(structure, leaves, group[0]) for group in pair)
        if low and high and low.key != high.key and spines:
            spine = spines[(2 * stage + 1) * len(spines) // (2 * (len(groups) - 1))]
            end = (spine.box.centre[0], spine.box.y + spine.box.height)
            for leaf in (low, high):
                points = ((leaf.box.centre[0], leaf.box.y), end)
                marks += lit(between(leaf.key, spine.key), points, (leaf.key, spine.key))
    return marks


def _leaf(structure: Structure, leaves: Sequence[Foot], device: int) -> Placed | None:
    fabric = structure.fabric
    node, slot = divmod(device, fabric.devices_per_node)
    group = node // fabric.sizing.nodes_per_unit * fabric.rails + slot % fabric.rails
    return next((leaf for leaf, groups in leaves if group in groups), None)


@dataclass(frozen=True, slots=True)
class Busy:
    """Loads of links as pictures have them.

    Parameters
    ----------
    looks : mapping of str to str
        Look by leaf and ``up`` or ``down``.
    words : mapping of str to str
        By class of links: how long they are busy.
    finding : str
    """

    looks: Mapping[str, str]
    words: Mapping[str, str]
    finding: str


def busy_of(structure: Structure, loads: Loads) -> Busy:
    """Busy shares of every leaf's links, both ways, from the loads that the plan is priced on."""
    fabric = structure.fabric
    leaf_of = fabric.group_of(1)
    groups = fabric.sizing.units * fabric.rails
    result = {}
    for way, level in (("down", 1), ("up", 2)):
        shares = np.zeros(groups)
        if level <= fabric.tiers:
            np.maximum.at(shares, leaf_of, tier_busy(loads, level))
        result[way] = shares
    busiest = max(float(shares.max()) for shares in result.values())
    looks = {
        f"{fabric.tier_names[0]} {group * fabric.planes + plane} {way}": load_look(share, busiest)
        for way, shares in result.items()
        for group, share in enumerate(shares.tolist())
        for plane in range(fabric.planes)
    }
    words = {f"links {fabric.tier_names[0]}": _said(result["down"], loads.iteration_s)}
    parts = [f"NIC links are busy {_percent(float(result['down'].max()))} of an iteration"]
    if fabric.tiers > 1:
        words[f"links {fabric.tier_names[1]}"] = _said(result["up"], loads.iteration_s)
        name = fabric.tier_names[0]
        parts.append(f"a {name}'s uplinks {_percent(float(result['up'].max()))}")
    return Busy(looks, words, ", ".join(parts))


def _percent(share: float) -> str:
    return f"{100 * share:.3g}\u00a0%"


def _said(shares: npt.NDArray[np.float64], seconds: float) -> str:
    """How long links are busy, least to most."""
    live = shares[shares > 0]
    if not len(live):
        return "idle"
    low, high = float(live.min()), float(live.max())
    unit, scale = ("ms", 1e3) if high * seconds < 1 else ("s", 1.0)
    least, most = f"{low * seconds * scale:.3g}", f"{high * seconds * scale:.3g}"
    span = most if least == most else f"{least} to {most}"
    return f"busy {span}\u00a0{unit}, up to {_percent(high)}"
