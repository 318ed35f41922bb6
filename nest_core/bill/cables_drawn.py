"""Every cable of drawn graphs, link by link in the order that they were drawn.

Ends are called after the drawn elements. An element that stands for several deals its cables to
them in turn, ``spine (2 of 16)``. Ports are numbered in the order of the links, those of a switch
towards devices first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from nest_core.bill.bundles import Bundle, Side
from nest_core.bill.counts_drawn import DrawnLinks, drawn_links
from nest_core.bill.prices import Prices
from nest_core.fabric import Element, GraphFabric

__all__ = ["graph_bundles"]


def graph_bundles(fabric: GraphFabric, prices: Prices) -> Iterator[Bundle]:
    """Cables outside nodes, tier by tier."""
    given: defaultdict[str, int] = defaultdict(int)

    def kind(link: DrawnLinks) -> tuple[int, float, str, str, tuple[str, str]]:
        tier = link.tier  # downlinks are met before uplinks
        return link.height, tier.rate_Gbps, tier.lower, tier.upper, link.roles

    for (*_, roles), group in groupby(sorted(drawn_links(fabric, prices), key=kind), kind):
        tier = list(group)
        metres = np.repeat([link.metres for link in tier], [link.count for link in tier])
        low, high = (
            _side([(end(link), link.count) for link in tier], given, role)
            for end, role in zip((_low, _high), roles, strict=True)
        )
        yield Bundle(tier[0].tier, low, high, metres)


def _low(link: DrawnLinks) -> Element:
    return link.low


def _high(link: DrawnLinks) -> Element:
    return link.high


def _side(ends: Sequence[tuple[Element, int]], given: defaultdict[str, int], role: str) -> Side:
    """Boxes and ports of every cable; ``given`` counts the ports that each element gave so far."""
    names: dict[str, int] = {}
    boxes, ports = [], []
    for element, count in ends:
        for number in range(given[element.id], given[element.id] + count):
            port, box = divmod(number, element.count)
            name = (
                element.id if element.count == 1 else f"{element.id} ({box + 1} of {element.count})"
            )
            boxes.append(names.setdefault(name, len(names)))
            ports.append(port)
        given[element.id] += count
    return Side(
        list(names).__getitem__,
        np.array(boxes),
        np.array(ports),
        role if ends[0][0].role == "switch" else "",
        port_name=lambda port: f"port {port + 1}",
    )
