"""What a fabric costs after it was written in another format and read again, if not the same.

A format may hold every link and yet lose what the fabric was: its levels, its bill, the time of a
collective. Nobody can tell that from the text, so both are priced, and what differs is said.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from nest_core.bill.bill import Bill, bill
from nest_core.bill.prices import Prices
from nest_core.documents import GIB, InputError, humanise, humanise_bytes, humanise_seconds
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.fabric.drawing import Drawing
from nest_core.interop.formats import FORMATS, FabricText, read_fabric
from nest_core.interop.formats.values import unsaid
from nest_core.network import (
    DEVICE,
    DragonflyLinkMap,
    GraphLinkMap,
    Network,
    collapse,
    collective,
    is_counted,
    without_detours,
)

__all__ = ["MAX_COMPARED", "caveats", "differences", "lost_between", "lost_on_canvas"]

MAX_COMPARED = 512
"""Devices up to which a drawn graph is collapsed for a comparison: seconds."""

_SAME = 1e-9

_OPS = ("all_reduce", "all_gather", "all_to_all")
_BYTES = (2.0**14, GIB)


def lost_between(
    fabric: Fabric, exported: FabricText, format: str, prices: Prices
) -> tuple[str, ...]:
    """Return all that a fabric loses in a format: what its writer and a way back say.

    Parameters
    ----------
    exported : FabricText
        As `nest_core.interop.formats.write_fabric` returned it for ``format``.
    """
    if not FORMATS[format].reads:
        return (*exported.lost, "A way back: the studio does not read this format.")
    name = f"fabric{FORMATS[format].suffixes[0]}"
    try:
        document = read_fabric(exported.text.encode(), name, format=format).document
    except InputError as error:
        return (*exported.lost, f"A way back: {error}")
    return (
        *exported.lost,
        *differences(fabric, build_fabric(checked(FabricFile, document)), prices),
    )


def lost_on_canvas(
    fabric: Fabric, document: Mapping[str, Any], drawing: Drawing, prices: Prices
) -> tuple[str, ...]:
    """Return all that a fabric loses when it is copied, in the words of `lost_between`.

    Parameters
    ----------
    document : mapping
        What the fabric was built from.
    drawing : Drawing
        As `nest_core.fabric.drawing.drawing_of` copied it.
    """
    again = build_fabric(checked(FabricFile, drawing))
    return (
        *(*fabric.lost_in_graph, *unsaid(fabric, document)),
        *differences(fabric, again, prices),
    )


def caveats(network: Network) -> tuple[str, ...]:
    """Return what prices of a drawn graph or a dragonfly leave out, one sentence each."""
    link_map = network.link_map
    if isinstance(link_map, DragonflyLinkMap):
        return tuple(filter(None, [without_detours(link_map.fabric)]))
    if not isinstance(link_map, GraphLinkMap) or link_map.scale_up is not None:
        return ()
    links = link_map.links
    direct = (links.role[links.tail] == DEVICE) & (links.role[links.head] == DEVICE)
    if len({*links.tail[direct].tolist()}) == direct.sum():
        return ()  # none, or bridges between two, through which nobody forwards
    return (
        "Devices are linked to one another, but neither as a torus or mesh of equal links nor as "
        "nodes that are all alike: collectives are priced over shortest paths, without rings over "
        "several dimensions at once, and may be priced several times too slow.",
    )


def differences(fabric: Fabric, again: Fabric, prices: Prices) -> tuple[str, ...]:
    """Return sentences about what the fabric that came back costs otherwise.

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
    >>> drawn, torus = load_fabric("drawn-8"), load_fabric("tpu-v4-2x2x4")
    >>> differences(drawn, torus, load_prices())[0]
    'Its devices: 8 become 16, and so everything below.'
    """
    if replace(again, name=fabric.name) == fabric:
        return ()
    bills = _bills(bill(fabric, prices), bill(again, prices))
    if again.devices != fabric.devices:
        counts = f"{fabric.devices:,} become {again.devices:,}"
        return (f"Its devices: {counts}, and so everything below.", *bills)
    if fabric.devices > MAX_COMPARED and not (is_counted(fabric) and is_counted(again)):
        return (
            *bills,
            f"Its levels and times may differ: links of over {MAX_COMPARED:,} devices were not "
            "priced to compare them.",
        )
    before, after = collapse(fabric), collapse(again)
    return (*_levels(before, after), *_times(before, after), *bills)


def _levels(before: Network, after: Network) -> tuple[str, ...]:
    """Return a sentence on the first level that is another one."""
    names, new_names = (
        ", ".join(f"{level.name} ({level.kind})" for level in network.levels)
        for network in (before, after)
    )
    if names != new_names:
        return (f"Its levels: {names} become {new_names}.",)
    for level, new in zip(before.levels, after.levels, strict=True):
        for what, unit, figures in (
            ("devices", "", (level.group_size, new.group_size)),
            ("groups", "", (level.groups, new.groups)),
            ("per device", "B/s", (level.bandwidth_Bps, new.bandwidth_Bps)),
            ("latency", "s", (level.latency_s, new.latency_s)),
        ):
            if not math.isclose(*figures, rel_tol=_SAME):
                words = humanise_seconds if unit == "s" else partial(humanise, unit=unit)
                changed = " becomes ".join(map(words, figures))
                return (f"Its levels: of {level.name}, {what}, {changed}.",)
    return ()


def _times(before: Network, after: Network) -> tuple[str, ...]:
    """Return a sentence on the collective that comes off worst, if any takes another time.

    They run over pairs, nodes and all devices, in neighbouring devices and far ones.
    """
    devices = before.devices
    sizes = {size for size in (2, before.node_size, devices) if 1 < size <= devices}
    groups = {(size, stride) for size in sizes for stride in (1, devices // size)}
    changes = []
    for op, message, (size, stride) in product(_OPS, _BYTES, sorted(groups)):
        old, new = (
            collective(network, op, message, size, stride=stride).time_s
            for network in (before, after)
        )
        if not math.isclose(old, new, rel_tol=_SAME):
            words = (
                f"{op.replace('_', '-')} of {humanise_bytes(message)} over {size:,} devices"
                f"{f', {stride:,} apart,' if stride > 1 else ''} takes {humanise_seconds(new)} "
                f"instead of {humanise_seconds(old)}"
            )
            changes.append((abs(math.log(new / old)), words))
    return (f"Its times: {max(changes)[1]}.",) if changes else ()


def _bills(before: Bill, after: Bill) -> tuple[str, ...]:
    counts, new_counts = (
        {
            "NICs": total.nics,
            "switches": sum(group.count for group in total.switches),
            "ports": sum(group.ports for group in total.switches),
            "cables": total.cables,
            "transceivers": total.transceivers,
        }
        for total in (before, after)
    )
    changes = [
        f"{old:,} {name} become {new_counts[name]:,}"
        for name, old in counts.items()
        if old != new_counts[name]
    ]
    usd, new_usd = before.price_usd.typical, after.price_usd.typical
    if not math.isclose(usd, new_usd, rel_tol=_SAME):
        changes.append(f"{usd:,.0f} $ become {new_usd:,.0f} $")
    lines, new_lines = (
        sorted((line.part, line.item, line.count) for line in total.lines)
        for total in (before, after)
    )
    if lines != new_lines and not changes:
        changes.append("other lines of the same sum")
    return (f"Its bill: {', '.join(changes)}.",) if changes else ()
