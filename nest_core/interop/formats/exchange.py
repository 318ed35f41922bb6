"""What a fabric costs after it was written in another format and read again, if not the same.

A format may hold every link and yet lose what the fabric was: its levels, its bill, the time of a
collective. Nobody can tell that from the text, so both are priced and what differs is said, one
sentence each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from nest_core.bill.bill import Bill, bill
from nest_core.bill.prices import Prices
from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.documents.units import GIB, humanise, humanise_bytes, humanise_seconds
from nest_core.fabric import Fabric, build_fabric
from nest_core.fabric.drawing import Drawing
from nest_core.interop.formats import FORMATS, Exported, read_fabric
from nest_core.interop.formats.drawn import unsaid
from nest_core.network import GraphLinkMap, Network, collapse
from nest_core.network.collapse import is_counted
from nest_core.network.collective import collective
from nest_core.network.dragonfly import DragonflyLinkMap, without_detours
from nest_core.network.link_graph import DEVICE

__all__ = ["MOST_COMPARED", "caveats", "differences", "lost_between", "lost_on_canvas"]

MOST_COMPARED = 512
"""Devices up to which a drawn graph is collapsed for a comparison: seconds."""

_SAME = 1e-9
_OPS = ("all_reduce", "all_gather", "all_to_all")
_BYTES = (2.0**14, GIB)


def lost_between(
    fabric: Fabric, exported: Exported, format: str, prices: Prices
) -> tuple[str, ...]:
    """All that a fabric loses in a format: what its writer says, and what comes back otherwise.

    Parameters
    ----------
    exported : Exported
        As `nest_core.interop.formats.write_fabric` returned it for ``format``.
    """
    if not FORMATS[format].reads:
        return (*exported.lost, "A way back: the studio does not read this format.")
    name = f"fabric{FORMATS[format].suffixes[0]}"
    try:
        document = read_fabric(exported.text.encode(), name, format=format).document
    except InputError as error:
        return (*exported.lost, f"A way back: {error}")
    again = build_fabric(checked(FabricFile, document))
    return (*exported.lost, *differences(fabric, again, prices))


def lost_on_canvas(
    fabric: Fabric, document: Mapping[str, Any], drawing: Drawing, prices: Prices
) -> tuple[str, ...]:
    """All that a fabric loses when it is copied, in the words of `lost_between`.

    Parameters
    ----------
    document : mapping
        What the fabric was built from.
    drawing : Drawing
        As `nest_core.fabric.drawing.drawing_of` copied it.
    """
    again = build_fabric(checked(FabricFile, drawing))
    lost = (*fabric.lost_in_graph, *unsaid(fabric, document))
    return (*lost, *differences(fabric, again, prices))


def caveats(network: Network) -> tuple[str, ...]:
    """What the prices of a drawn graph or a dragonfly do not know about it, one sentence each."""
    link_map = network.link_map
    if isinstance(link_map, DragonflyLinkMap):
        return tuple(filter(None, [without_detours(link_map.fabric)]))
    if not isinstance(link_map, GraphLinkMap) or link_map.scale_up is not None:
        return ()
    links = link_map.links
    direct = (links.role[links.tail] == DEVICE) & (links.role[links.head] == DEVICE)
    if not direct.any():
        return ()
    return (
        "Devices are linked to one another, but neither as a torus or mesh of equal links nor as "
        "nodes that are all alike: collectives are priced over shortest paths, without rings over "
        "several dimensions at once, and may be priced several times too slow.",
    )


def differences(fabric: Fabric, again: Fabric, prices: Prices) -> tuple[str, ...]:
    """Sentences about what the fabric that came back costs otherwise; none if it is the same.

    Parameters
    ----------
    again : Fabric
        What reading the text gave.
    prices : Prices
        For the two bills.

    Examples
    --------
    >>> from nest_core.scenario import load_fabric
    >>> from nest_core.bill.prices import load_prices
    >>> one, other = load_fabric("drawn-8"), load_fabric("tpu-v4-2x2x4")
    >>> differences(one, other, load_prices())[0]
    'Its devices: 8 become 16, and so everything below.'
    """
    if replace(again, name=fabric.name) == fabric:
        return ()
    found = _bills(bill(fabric, prices), bill(again, prices))
    if again.devices != fabric.devices:
        first = (
            f"Its devices: {fabric.devices:,} become {again.devices:,}, and so everything below."
        )
        return (first, *found)
    if _slow(fabric) or _slow(again):
        return (
            *found,
            f"Its levels and times may differ: links of over {MOST_COMPARED:,} devices were not "
            "priced to compare them.",
        )
    before, after = collapse(fabric), collapse(again)
    return (*_levels(before, after), *_times(before, after), *found)


def _slow(fabric: Fabric) -> bool:
    return fabric.devices > MOST_COMPARED and not is_counted(fabric)


def _levels(before: Network, after: Network) -> tuple[str, ...]:
    one, other = _names(before), _names(after)
    if one != other:
        return (f"Its levels: {one} become {other}.",)
    for level, now in zip(before.levels, after.levels, strict=True):
        for what, unit, old, new in (
            ("devices", "", level.group_size, now.group_size),
            ("groups", "", level.groups, now.groups),
            ("per device", "B/s", level.bandwidth_Bps, now.bandwidth_Bps),
            ("latency", "s", level.latency_s, now.latency_s),
        ):
            if not math.isclose(old, new, rel_tol=_SAME):
                told = humanise_seconds if unit == "s" else partial(humanise, unit=unit)
                changed = " becomes ".join(told(figure) for figure in (old, new))
                return (f"Its levels: of {level.name}, {what}, {changed}.",)
    return ()


def _names(network: Network) -> str:
    names = [f"{level.name} ({level.kind})" for level in network.levels]
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} from {names[0]} to {names[-1]}"


def _times(before: Network, after: Network) -> tuple[str, ...]:
    """The collective that comes off worst, if any takes another time."""
    worst, told = _SAME, ""
    for op, message, size, stride in _asked(before):
        old, new = (
            collective(network, op, message, size, stride=stride).time_s
            for network in (before, after)
        )
        off = abs(math.log(new / old)) if old > 0 < new else abs(new - old)
        if off > worst:
            worst = off
            told = (
                f"Its times: {op.replace('_', '-')} of {humanise_bytes(message)} over {size:,} "
                f"devices{f', {stride:,} apart,' if stride > 1 else ''} takes "
                f"{humanise_seconds(new)} instead of {humanise_seconds(old)}."
            )
    return (told,) if told else ()


def _asked(network: Network) -> Iterator[tuple[str, float, int, int]]:
    """Operation, bytes, group and stride: pairs, nodes and all devices, side by side and apart."""
    devices = network.devices
    sizes = sorted({2, network.node_size, devices}) if devices > 1 else []
    for size in sizes:
        if 1 < size <= devices:
            for stride in sorted({1, devices // size}):
                yield from ((op, message, size, stride) for op in _OPS for message in _BYTES)


def _bills(before: Bill, after: Bill) -> tuple[str, ...]:
    counts = [(name, old, _counts(after)[name]) for name, old in _counts(before).items()]
    told = [f"{old:,} {name} become {new:,}" for name, old, new in counts if old != new]
    if not math.isclose(before.price_usd.typical, after.price_usd.typical, rel_tol=_SAME):
        old, new = (f"{found.price_usd.typical:,.0f} $" for found in (before, after))
        told.append(f"{old} become {new}")
    if not told and _lines(before) != _lines(after):
        told.append("other lines of the same sum")
    return (f"Its bill: {', '.join(told)}.",) if told else ()


def _counts(found: Bill) -> dict[str, int]:
    return {
        "NICs": found.nics,
        "switches": sum(total.count for total in found.switches),
        "ports": sum(total.ports for total in found.switches),
        "cables": found.cables,
        "transceivers": found.transceivers,
    }


def _lines(found: Bill) -> list[tuple[str, str, int]]:
    return sorted((line.part, line.item, line.count) for line in found.lines)
