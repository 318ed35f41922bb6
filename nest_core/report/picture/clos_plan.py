"""A plan on a Clos fabric: one replica's transfers, and the loads of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nest_core.documents.units import percent
from nest_core.explain.loads import Loads
from nest_core.report.picture.clos_structure import Structure
from nest_core.report.picture.marks import Mark, between
from nest_core.report.picture.plan import load_look, tier_busy
from nest_core.report.picture.stages import Stages, lit
from nest_core.report.picture.switches import Placed

__all__ = ["LinkLoads", "link_loads_of", "transfers"]


def transfers(
    structure: Structure, stages: Stages, leaves: Sequence[Placed], spines: Sequence[Placed]
) -> list[Mark]:
    """Draw the first replica's way from stage to stage."""
    marks, groups = list[Mark](), stages.groups()
    for stage, pair in enumerate(pairwise(groups)):
        low, high = (_leaf(structure, leaves, group[0]) for group in pair)
        if low.key != high.key and spines:
            spine = spines[(2 * stage + 1) * len(spines) // (2 * (len(groups) - 1))]
            end = (spine.box.centre[0], spine.box.y + spine.box.height)
            for leaf in (low, high):
                points = ((leaf.box.centre[0], leaf.box.y), end)
                marks += lit(between(leaf.key, spine.key), points, (leaf.key, spine.key))
    return marks


def _leaf(structure: Structure, leaves: Sequence[Placed], device: int) -> Placed:
    fabric = structure.fabric
    node, slot = divmod(device, fabric.devices_per_node)
    group = node // fabric.sizing.nodes_per_unit * fabric.rails + slot % fabric.rails
    return next(leaf for leaf in leaves if structure.group(leaf.members[-1]) >= group)


@dataclass(frozen=True, slots=True)
class LinkLoads:
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


def link_loads_of(structure: Structure, loads: Loads) -> LinkLoads:
    """Return busy shares of every leaf's links, from the loads that the plan is priced on."""
    fabric = structure.fabric
    shares = {}
    for level, tier in enumerate(fabric.tier_names[:2], start=1):
        shares[tier] = np.zeros(fabric.sizing.units * fabric.rails)
        np.maximum.at(shares[tier], fabric.group_of(1), tier_busy(loads, level))
    busiest = max(float(of_tier.max()) for of_tier in shares.values())
    looks = {
        f"{fabric.tier_names[0]} {group * fabric.planes} {way}": load_look(share, busiest)
        for way, of_tier in zip(("down", "up"), shares.values(), strict=False)
        for group, share in enumerate(of_tier.tolist())
    }
    words = {f"links {tier}": _busy(of_tier, loads) for tier, of_tier in shares.items()}
    low, *up = (percent(float(of_tier.max())) for of_tier in shares.values())
    finding = f"NIC links are busy {low} of an iteration"
    for share in up:
        finding += f", a {fabric.tier_names[0]}'s uplinks {share}"
    return LinkLoads(looks, words, finding)


def _busy(shares: npt.NDArray[np.float64], loads: Loads) -> str:
    """Say how long links are busy, from the least to the most."""
    live = shares[shares > 0]
    if not len(live):
        return "idle"
    low, high = float(live.min()), float(live.max())
    unit, scale = ("ms", 1e3) if high * loads.iteration_s < 1 else ("s", 1.0)
    first, last = (f"{share * loads.iteration_s * scale:.3g}" for share in (low, high))
    span = last if first == last else f"{first} to {last}"
    return f"busy {span}\u00a0{unit}, up to {percent(high)}"
