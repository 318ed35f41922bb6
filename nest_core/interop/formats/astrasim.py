"""ASTRA-sim's analytical networks: products of Ring, FullyConnected and Switch.

Syntax: astra-network-analytical, ``input/*.yml``. The first dimension is the innermost; a rate is
GB/s of one link and direction, a latency ns of one link. A message through a Switch pays the
latency twice (comment in ``inputs/network/hgx_h100_32gpu.yml``), so a level's latency is stored
halved. In a product every NPU has a port in each dimension; a level of the studio joins the same
devices with one uplink each.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from nest_core.documents import InputError, gigabytes, microseconds, require
from nest_core.fabric import (
    MAX_DEVICES,
    MAX_EXPLICIT_DEVICES,
    MAX_LINKS,
    Clos,
    Fabric,
    Hierarchical,
    Torus,
)
from nest_core.interop.formats.draft import Draft, title
from nest_core.interop.formats.trees import host_groups
from nest_core.interop.formats.values import FabricText, Reading, Source, level_table
from nest_core.interop.formats.yaml_text import YamlTable, line_of, yaml_values

__all__ = ["astrasim_network", "read_astrasim", "write_astrasim"]

_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_BLOCKS = ("Ring", "FullyConnected", "Switch")
MAX_DIMENSIONS = 16

Dimension = tuple[str, int, float, float]
"""Building block, NPUs, bytes/s, seconds."""


def read_astrasim(source: Source) -> Reading:
    """Return levels, a torus, or, for other products, a graph."""
    dimensions = [entry for entry in _dimensions(source) if entry[1] > 1]
    source.require(dimensions, "npus_count", "must have two NPUs", 1, "raise a count")
    if {kind for kind, *_ in dimensions} == {"Switch"}:
        return _levels(source, dimensions)
    # A ring of two and two that are fully connected are one link.
    rings = all(
        kind == "Ring" or (kind, size) == ("FullyConnected", 2) for kind, size, *_ in dimensions
    )
    same = len({entry[2:] for entry in dimensions}) == 1
    return (
        _torus(source, dimensions)
        if rings and same and len(dimensions) <= 3
        else _product(source, dimensions)
    )


def _levels(source: Source, dimensions: list[Dimension]) -> Reading:
    levels = [
        level_table(f"dimension {index}", size, rate, 2 * latency)
        for index, (_, size, rate, latency) in enumerate(dimensions, start=1)
    ]
    return {"schema": 1, "name": title(source.name), "kind": "hierarchical"} | {"level": levels}, ()


def _torus(source: Source, dimensions: list[Dimension]) -> Reading:
    shape = [size for _, size, *_ in dimensions]
    shape += [1] * (2 - len(shape))
    torus = {
        "shape": shape,
        "wrap": [True] * len(shape),
        "link_bandwidth_GBps": dimensions[0][2],
        "hop_latency_us": dimensions[0][3],
    }
    return {"schema": 1, "name": title(source.name), "kind": "torus", "torus": torus}, ()


def _product(source: Source, dimensions: list[Dimension]) -> Reading:
    npus = math.prod([size for _, size, *_ in dimensions])
    source.require(
        npus <= MAX_EXPLICIT_DEVICES,
        "npus_count",
        f"must give at most {MAX_EXPLICIT_DEVICES:,} NPUs for this product",
        npus,
        "use switches only, or rings of one rate",
    )
    links = sum(npus * _links_each(kind, size) for kind, size, *_ in dimensions) // 2
    source.require(
        links <= MAX_LINKS,
        "npus_count",
        f"must give at most {MAX_LINKS:,} links for this product",
        links,
        "use a Switch for the large dimension",
    )
    draft = Draft(source)
    draft.notes.append("This product is neither levels nor a torus: it was drawn link by link.")
    for npu in range(npus):
        draft.element("", f"npu{npu}", "device")
    stride = 1
    for index, (kind, size, rate, latency) in enumerate(dimensions, start=1):
        for first in (npu for npu in range(npus) if npu // stride % size == 0):
            group = [f"npu{first + place * stride}" for place in range(size)]
            if kind == "Switch":
                switch = f"dimension {index} switch {first}"
                draft.element("", switch, "switch")
                pairs = [(npu, switch) for npu in group]
            elif kind == "FullyConnected" or size < 4:
                pairs = list(itertools.combinations(group, 2))
            else:
                pairs = [*itertools.pairwise(group), (group[-1], group[0])]
            for a, b in pairs:
                draft.link("", a, b, rate, latency)
        stride *= size
    return draft.document(source.name)


def _links_each(kind: str, size: int) -> int:
    """Return twice the links of a dimension per NPU."""
    return size - 1 if kind == "FullyConnected" else 2 if kind == "Switch" or size > 2 else 1


def _dimensions(source: Source) -> list[Dimension]:
    table = yaml_values(source)
    if not isinstance(table, YamlTable):
        raise source.wrong("", "must be a mapping", "none", "start with topology: [ Ring ]")
    for key in table:
        source.require(
            key in _KEYS, table.line, "must have known keys", key, "use " + ", ".join(_KEYS)
        )
    lists: list[list[Any]] = []
    for key in _KEYS:
        entries = table.get(key, "missing")
        source.require(
            isinstance(entries, list) and 1 <= len(entries) <= MAX_DIMENSIONS,
            line_of(entries) or table.line,
            f"must have a list of 1 to {MAX_DIMENSIONS} entries as {key}",
            entries,
            "write one entry per dimension, innermost first",
        )
        source.require(
            len(entries) == len(table["topology"]),
            line_of(entries),
            f"must have as many entries in {key} as in topology",
            f"{len(entries)} against {len(table['topology'])}",
            "complete the lists",
        )
        lists.append(entries)
    dimensions: list[Dimension] = []
    for kind, count, rate, latency in zip(*lists, strict=True):
        source.require(
            kind in _BLOCKS,
            line_of(kind),
            "must be a product of Ring, FullyConnected and Switch",
            kind,
            "pick one of them",
        )
        where = line_of(count)
        dimensions.append(
            (
                str(kind),
                int(source.number(where, "npus_count", count, whole=True)),
                source.rate(line_of(rate), "bandwidth", rate),
                source.number(line_of(latency), "latency", latency, zero=True) / 1000,
            )
        )
    npus = math.prod(size for _, size, *_ in dimensions)
    source.require(
        npus <= MAX_DEVICES,
        "npus_count",
        f"must have a product of at most {MAX_DEVICES:,}",
        npus,
        "make it smaller",
    )
    return dimensions


def write_astrasim(fabric: Fabric) -> FabricText:
    """Return the fabric as a product of dimensions; errors are those of `astrasim_network`."""
    table, lost = astrasim_network(fabric)
    return FabricText(
        "".join(f"{key}: [ {', '.join(map(str, values))} ]\n" for key, values in table.items()),
        lost,
    )


def astrasim_network(
    fabric: Fabric,
) -> tuple[dict[str, Sequence[str | int | float]], tuple[str, ...]]:
    """Return the lists of a network by key, innermost dimension first, and what they leave out.

    Raises
    ------
    InputError
        For what is no product: unequal groups, meshes, twisted tori, dragonflies, drawings.
    """
    dimensions, lost = _product_of(fabric)
    kinds, counts, rates, latencies = zip(*dimensions, strict=True)
    table = {
        "topology": kinds,
        "npus_count": counts,
        "bandwidth": list(map(gigabytes, rates)),
        "latency": list(map(_nanoseconds, latencies)),
    }
    return table, ("The fabric's name.", *lost)


def _nanoseconds(seconds: float) -> float:
    """Return the ns that are read back as the same time, in as few digits as that takes."""
    microsecond = microseconds(seconds)
    rough = microsecond * 1000
    rounded = (float(f"{rough:.{digits}g}") for digits in range(1, 18))
    return next((short for short in rounded if short / 1000 == microsecond), rough)


_RULE = "must be a product of rings, full meshes and switches for ASTRA-sim"


def _require(holds: object, what: str, remedy: str) -> None:
    require(holds, "fabric", _RULE, what, remedy)


@singledispatch
def _product_of(fabric: Fabric) -> tuple[list[Dimension], tuple[str, ...]]:
    raise InputError(
        "fabric", _RULE, f"a {fabric.noun}", "export a hierarchical fabric, a Clos or a torus"
    )


@_product_of.register
def _of_torus(fabric: Torus) -> tuple[list[Dimension], tuple[str, ...]]:
    _require(not fabric.twisted, "a twisted torus", "export a plain torus, or a graph format")
    _require(
        not fabric.missing, "a torus with failed devices", "put them back, or choose a graph format"
    )
    is_open = any(
        not wrap and size > 2 for size, wrap in zip(fabric.shape, fabric.wrap, strict=True)
    )
    _require(not is_open, "a mesh without wrap-around links", "close its dimensions")
    rate, latency = fabric.link_bandwidth_Bps, fabric.hop_latency_s
    return [
        ("FullyConnected" if size == 2 else "Ring", size, rate, latency)
        for size in fabric.shape
        if size > 1
    ], ()


@_product_of.register
def _of_levels(fabric: Hierarchical) -> tuple[list[Dimension], tuple[str, ...]]:
    rows = [fabric.group_of(level) for level in range(len(fabric.tiers))]
    sizes = list(_equal(rows, fabric.devices))
    lost: list[str] = ["The names of levels."]
    dimensions: list[Dimension] = []
    for level, (tier, size) in enumerate(zip(fabric.tiers, sizes, strict=True)):
        rate = tier.link_bandwidth_Bps
        if tier.uplink_per == "child" and level and math.prod(sizes[:level]) > 1:
            rate /= math.prod(sizes[:level])
            lost.append(f"Level {tier.name}: uplinks that a group shares are given out to devices.")
        if tier.oversubscription != 1:
            lost.append(f"Level {tier.name}: oversubscription is taken off the rate.")
        if size > 1:
            dimensions.append(("Switch", size, rate, tier.latency_s / 2))
        else:
            lost.append(f"Level {tier.name}, whose groups have one child.")
    return _of_several(dimensions, lost, "devices" if fabric.missing else "")


def _of_several(
    dimensions: list[Dimension], lost: list[str], failed: str
) -> tuple[list[Dimension], tuple[str, ...]]:
    """Return the dimensions that join something, and what they do not say."""
    joining = [entry for entry in dimensions if entry[1] > 1]
    _require(joining, "one device", "export a fabric of several")
    return joining, (*lost, *([f"Which {failed} failed."] if failed else []))


@_product_of.register
def _of_clos(fabric: Clos) -> tuple[list[Dimension], tuple[str, ...]]:
    rows = [fabric.node_of()]
    hosts = host_groups(fabric, "ASTRA-sim")
    rows += [group[hosts.host_of] for group in hosts.groups]
    sizes = list(_equal(rows, fabric.devices))
    kind = {"switch": "Switch", "mesh": "FullyConnected", "ring": "Ring"}.get(
        fabric.interconnect, ""
    )
    _require(kind, "nodes of a hybrid cube mesh", "choose a graph format")
    lost = ["Switches, links and routing: only which devices they join, and at which rate."]
    dimensions: list[Dimension] = []
    rate, latency = fabric.intra_bandwidth_Bps, fabric.intra_latency_s
    if kind == "FullyConnected":
        rate /= max(sizes[0] - 1, 1)
    elif kind == "Ring" and sizes[0] > 2:
        rate /= 2
    latency = latency / 2 if kind == "Switch" else latency
    dimensions.append((kind, sizes[0], rate, latency))
    per_device = fabric.nic_bandwidth_Bps * fabric.nics_per_node / fabric.devices_per_node
    ratios = (1.0, *fabric.ratios)
    if len(sizes) - 1 < fabric.tiers:
        lost.append("Tiers of switches that gather no further nodes.")
    for height, size in enumerate(sizes[1:], start=1):
        shared = math.prod(ratios[:height])
        if shared > 1:
            lost.append(f"Tier {height}: oversubscription of {shared:.3g} is taken off the rate.")
        hops = height if height < len(sizes) - 1 else fabric.tiers
        dimensions.append(("Switch", size, per_device / shared, hops * fabric.hop_latency_s))
    return _of_several(dimensions, lost, "elements" if fabric.missing else "")


def _equal(rows: list[Any], devices: int) -> Iterator[int]:
    """Yield children per group of every level, innermost first; unequal groups are refused."""
    below = 1
    for row in rows:
        members = np.unique(np.unique(row, return_counts=True)[1])
        _require(
            not (members.size > 1 or members[0] % below),
            "groups of unequal size",
            "make them equal, or choose TOML",
        )
        yield int(members[0]) // below
        below = int(members[0])
    _require(below == devices, "several fabrics", "join them")
