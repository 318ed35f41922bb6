"""What pictures of Clos fabrics say: findings as titles, and the words of tiers and links.

Counts are the inventory's. What a device keeps is the least share of the links of any group that
it climbs through, over the devices below it.
"""

from __future__ import annotations

import numpy as np

from nest_core.documents.units import format_ratio, humanise_rate
from nest_core.fabric import Clos
from nest_core.report.picture.clos_structure import Structure
from nest_core.report.picture.fabric_words import count_words, said_rate
from nest_core.report.picture.marks import Said

__all__ = [
    "Counts",
    "keeps",
    "said_links",
    "said_nodes",
    "said_tier",
    "subtitle",
    "title",
]


Counts = dict[str, tuple[int, int]]
"""By class of the bill: how many there are, and how many have failed."""


def keeps(structure: Structure) -> tuple[float, float]:
    """Bytes/s of a device's NICs, and what is left of it at the worst between any two devices."""
    fabric = structure.fabric
    own = fabric.nics_per_node * fabric.nic_bandwidth_Bps / fabric.devices_per_node
    least = own
    slow = min([1.0, *structure.slow.values()])
    for height in range(1, fabric.tiers):
        group = fabric.group_of(height)
        if len(np.unique(group)) < 2:
            continue
        members = np.bincount(group, minlength=len(fabric.uplinks(height)))
        links = fabric.uplinks(height) * fabric.link_bandwidth_Bps
        shares = links[members > 0] / members[members > 0]
        least = min(least, float(shares[shares > 0].min(initial=own)))
    return own, least * slow


def rate(bytes_per_second: float, whole: float) -> str:
    """A rate in the unit of another, without it.

    Examples
    --------
    >>> rate(12.5e9, 50e9)
    '12.5'
    """
    unit = humanise_rate(whole).split()[-1]
    scale = {"TB/s": 1e12, "GB/s": 1e9, "MB/s": 1e6}.get(unit, 1.0)
    return f"{bytes_per_second / scale:.3g}"


def title(structure: Structure) -> str:
    """The finding."""
    fabric = structure.fabric
    own, least = keeps(structure)
    said = said_rate(own)
    bad = troubles(structure)
    if bad:
        less = f"keep {rate(least, own)} of their {said}" if least < own * 0.999 else f"keep {said}"
        return f"With {bad}, devices {less} at the worst"
    if fabric.kind == "rail_only":
        return "Rails never meet above the node: between rails, traffic goes through " + inside(
            fabric
        )
    if fabric.planes > 1:
        share = {2: "halves", 3: "takes a third of", 4: "takes a quarter of"}.get(
            fabric.planes, f"takes 1/{fabric.planes} of"
        )
        return (
            f"Each NIC has a port in {_count(fabric.planes)} planes that share no switch: "
            f"a leaf down {share} it, cuts nobody off"
        )
    if fabric.kind == "rail_optimised":
        unit = fabric.sizing.nodes_per_unit * fabric.devices_per_node
        hop = f"one leaf hop within a unit of {min(unit, fabric.slots):,}"
        return f"Device i of every node is on rail i: {hop}" if fabric.rails > 1 else hop
    if fabric.tiers == 1:
        return f"One switch joins all: a device keeps its {said}"
    return _ratios(structure, own, least, said)


def _ratios(structure: Structure, own: float, least: float, said: str) -> str:
    fabric = structure.fabric
    low, *high = (tier.oversubscription for tier in fabric.switch_tiers[1:])
    if least >= own * 0.999:
        far = "between any two pods" if fabric.tiers == 3 else "up to the spine"
        return f"1:1{' on three tiers' if high else ''}: a device keeps its {said} {far}"
    kept = f"a device keeps {rate(least, own)} of its {said}"
    if high and low > 1.001 and high[0] > 1.001:
        return (
            f"{format_ratio(low)} above the {fabric.tier_names[0]}, "
            f"{format_ratio(high[0])} above the pod: {kept}"
        )
    if high and high[0] > low:
        return f"{format_ratio(high[0])} above the pod: {kept} from pod to pod"
    where = fabric.tier_names[0] + (" switch" if fabric.kind == "fat_tree" else "")
    return f"{format_ratio(low)}: above the {where} {kept}"


def _count(number: int) -> str:
    return {2: "two", 3: "three", 4: "four"}.get(number, str(number))


def inside(fabric: Clos) -> str:
    """What joins the devices of a node."""
    if fabric.interconnect == "switch":
        return "NVLink in a node" if fabric.devices_per_node > 1 else "nothing"
    return "the links between a node's devices"


def troubles(structure: Structure) -> str:
    """What has failed or is slow, in a few words; empty if nothing."""
    gone = sorted(structure.gone)
    slow = [f"{key} at {_share(share)}" for key, share in sorted(structure.slow.items())]
    said = [", ".join(gone) + " down" if len(gone) < 3 else f"{len(gone)} elements down"]
    return " and ".join((said if gone else []) + (slow if len(slow) < 3 else [f"{len(slow)} slow"]))


def _share(share: float) -> str:
    return "half rate" if share == 0.5 else f"{share:.2g} of its rate"


def subtitle(structure: Structure, line: str) -> str:
    """What it is, and what one line and one width mean."""
    fabric = structure.fabric
    means = f" One line is {line}; width is capacity" if line else " Width is capacity"
    return f"{fabric.devices:,} devices, {fabric.arrangement()}.{means}"


def said_tier(
    name: str, counts: Counts, words: tuple[str, ...], edges: tuple[float, float], head: str = ""
) -> Said:
    """A tier of switches."""
    count, gone = counts[name]
    text = head or count_words(count, gone, name)
    return Said(name, count, text, words, *edges, gone=gone)


def said_links(
    name: str,
    counts: Counts,
    words: str,
    edges: tuple[float, float],
    ratio: float | None = None,
) -> Said:
    """Links into a tier; ``words`` follow their number."""
    what = f"links {name}"
    count, gone = counts[what]
    said = count_words(count, gone, "link") + words
    return Said(what, count, "", (said,), *edges, gone=gone, ratio=ratio)


def said_nodes(
    structure: Structure, counts: Counts, edges: tuple[float, float], head: str, words: str
) -> Said:
    """The nodes and their devices."""
    count, gone = counts["node"]
    fabric = structure.fabric
    each = fabric.devices_per_node
    devices = f"{each} devices" if each > 1 else "1 device"
    nics = f"{fabric.nics_per_node} NICs" if fabric.nics_per_node > 1 else "1 NIC"
    more = f"{devices}, {nics} each"
    join = ""
    if each > 1:
        join = f"{inside_name(fabric)}, {said_rate(fabric.intra_bandwidth_Bps)} per device"
    text = head or count_words(count, gone, "node")
    return Said("node", count, text, tuple(w for w in (words, more, join) if w), *edges, gone=gone)


def inside_name(fabric: Clos) -> str:
    """The interconnect of a node, as gutters have it."""
    return {
        "switch": "switch in the node",
        "mesh": "full mesh in the node",
        "ring": "ring in the node",
        "hybrid_cube_mesh": "hybrid cube mesh",
    }[fabric.interconnect]
