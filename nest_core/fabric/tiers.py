"""Tiers of a drawing: switches by their height over devices, and how wide they are upwards.

A tier is the switches of one height and one word in their names. Down and up are links to what is
lower and higher; the ratio of a tier is the largest of its switches'. Switches that join the
devices of one server (all their neighbours are devices, while others have NICs) are no tier.

Units: GB/s, one direction, as drawings have them.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from nest_core.documents.errors import InputError, require
from nest_core.fabric.arrange import heights, inner_switches
from nest_core.fabric.checks import positive
from nest_core.fabric.drawing import Drawing, edited

__all__ = ["DrawnTier", "cut_off", "open_switches", "oversubscribed", "tiers_of", "unlinked"]


@dataclass(frozen=True, slots=True)
class DrawnTier:
    """Switches of a drawing that have links up.

    Parameters
    ----------
    name : str
        The word of their names, or which tier it is.
    switches : tuple of str
        Their ids.
    groups : tuple of str
        Outermost groups that they stand in, each once.
    down_GBps, up_GBps : float
        Of the switch with the largest ratio.
    links_up : (int, int)
        Fewest and most of a switch.
    """

    name: str
    switches: tuple[str, ...]
    groups: tuple[str, ...]
    down_GBps: float
    up_GBps: float
    links_up: tuple[int, int]

    @property
    def ratio(self) -> float:
        """Down : up."""
        return self.down_GBps / self.up_GBps


@dataclass(frozen=True, slots=True, eq=False)
class _Heights:
    """Switches outside servers, with the indices of their links down and up."""

    height: dict[str, int]
    down: dict[str, list[int]]
    up: dict[str, list[int]]


def unlinked(drawing: Mapping[str, Any]) -> tuple[str, ...]:
    """Ids of elements without any link, unless there is one element alone."""
    linked = {link.get(end) for link in drawing["link"] for end in ("a", "b")}
    ids = [entry.get("id") for entry in drawing["element"]]
    return tuple(str(name) for name in ids if name not in linked) if len(ids) > 1 else ()


def cut_off(drawing: Drawing) -> tuple[str, ...]:
    """Ids of elements from which no path leads to where most devices are, as drawn.

    Nothing where no two devices hang together, as in a drawing that was just begun.
    """
    devices = {entry["id"] for entry in drawing["element"] if entry.get("role") == "device"}
    ends = ((link.get("a"), link.get("b")) for link in drawing["link"])
    graph = nx.Graph(pair for pair in ends if all(pair))
    graph.add_nodes_from(entry["id"] for entry in drawing["element"])
    most = max(nx.connected_components(graph), key=lambda part: len(part & devices), default=set())
    return (
        tuple(entry["id"] for entry in drawing["element"] if entry["id"] not in most)
        if len(most & devices) > 1 and devices - most
        else ()
    )


def tiers_of(drawing: Drawing) -> tuple[DrawnTier, ...]:
    """Tiers with links up, innermost first."""
    heights = _heights(drawing)
    ids: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for name in heights.up:
        if heights.up[name] and heights.down[name]:
            first = re.match(r"[^\W\d_]+", name)
            ids[heights.height[name], first[0] if first else ""].append(name)
    group = {entry["id"]: (entry.get("group") or "").split("/")[0] for entry in drawing["element"]}
    tiers = []
    for height, word in sorted(ids):
        names = ids[height, word]
        rates = [
            (_rate(drawing, heights.down[switch]), _rate(drawing, heights.up[switch]))
            for switch in names
        ]
        down, up = max(rates, key=lambda rate: rate[0] / rate[1])
        counts = [sum(_count(drawing, at) for at in heights.up[name]) for name in names]
        tiers.append(
            DrawnTier(
                word or f"tier {height}",
                tuple(names),
                tuple(dict.fromkeys(group[name] for name in names if group[name])),
                down,
                up,
                (min(counts), max(counts)),
            )
        )
    return tuple(tiers)


def open_switches(drawing: Drawing) -> dict[str, float]:
    """Switches outside servers that nothing is above, with what reaches them from below, GB/s."""
    heights = _heights(drawing)
    return {
        name: _rate(drawing, heights.down[name])
        for name in heights.up
        if heights.down[name] and not heights.up[name]
    }


def oversubscribed(drawing: Drawing, switches: Collection[str], ratio: float) -> Drawing:
    """Return the drawing with as many links up from some switches as a ratio asks, in whole links.

    Links go from a switch to those above it as they did, as evenly as before; a switch keeps one
    link at least. `tiers_of` says what the ratio became.

    Raises
    ------
    InputError
        If the ratio is not positive, a switch has no links up, or what is above has too few ports.

    Examples
    --------
    >>> from nest_core.fabric.drawing import empty_drawing
    >>> from nest_core.fabric.templates import TemplatePart, added, with_spines
    >>> hall = with_spines(added(empty_drawing(), TemplatePart("rack", copies=4)), 4, 1.0, 50.0)
    >>> leaf = tiers_of(hall)[0]
    >>> thin = tiers_of(oversubscribed(hall, leaf.switches, 3.0))[0]
    >>> leaf.ratio, thin.ratio, thin.links_up
    (1.0, 2.909090909090909, (11, 11))
    """
    positive("ratio", ratio)
    heights = _heights(drawing)
    links = [dict(link) for link in drawing["link"]]
    for name in switches:
        up = heights.up.get(name, [])
        require(
            up and heights.down[name],
            "ratio",
            "must be of switches with links down and up",
            name,
            "choose a tier",
        )
        wanted = max(
            1,
            math.floor(
                _rate(drawing, heights.down[name])
                * sum(_count(drawing, at) for at in up)
                / (_rate(drawing, up) * ratio)
                + 0.5
            ),
        )
        for at, count in zip(up, _shared(wanted, [_count(drawing, at) for at in up]), strict=True):
            links[at]["count"] = count
    changed = edited(
        drawing, drawing["element"], [link for link in links if link.get("count", 1) > 0]
    )
    _check_ports(changed, switches)
    return changed


def _shared(total: int, before: Sequence[int]) -> list[int]:
    """Whole parts of a total in the proportions of before, the largest remainders raised."""
    exact = [total * count / sum(before) for count in before]
    parts = [math.floor(share) for share in exact]
    order = sorted(range(len(before)), key=lambda at: (parts[at] - exact[at], at))
    for at in order[: total - sum(parts)]:
        parts[at] += 1
    return parts


def _check_ports(drawing: Drawing, switches: Collection[str]) -> None:
    """Return that neither the switches nor those above them have more links than ports."""
    used: defaultdict[str, int] = defaultdict(int)
    touched = set(switches)
    for link in drawing["link"]:
        for end, other in (("a", "b"), ("b", "a")):
            used[link[end]] += link.get("count", 1)
            if link[other] in switches:
                touched.add(link[end])
    for entry in drawing["element"]:
        ports = entry.get("radix", 0) * entry.get("count", 1)
        if entry["id"] in touched and 0 < ports < used[entry["id"]]:
            raise InputError(
                "ratio",
                f"must leave {entry['id']} at its {ports:,} ports or fewer",
                f"{used[entry['id']]:,} links",
                "choose a larger ratio or a larger switch",
            )


def _heights(drawing: Drawing) -> _Heights:
    roles = {entry["id"]: entry["role"] for entry in drawing["element"]}
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(roles)
    wired = [
        (at, link["a"], link["b"])
        for at, link in enumerate(drawing["link"])
        if link["a"] in roles and link["b"] in roles
    ]
    graph.add_edges_from((a, b) for _, a, b in wired)
    cards = "nic" in roles.values()
    devices = [name for name, role in roles.items() if role == "device"]
    inside = inner_switches(graph, devices) if cards else set()
    height = heights(graph, devices)
    outside = [name for name, role in roles.items() if role == "switch" and name not in inside]
    down: dict[str, list[int]] = {name: [] for name in outside}
    up: dict[str, list[int]] = {name: [] for name in outside}
    for at, a, b in wired:
        for end, other in ((a, b), (b, a)):
            if end in up and height[end] != height[other]:
                (down if height[other] < height[end] else up)[end].append(at)
    return _Heights(height, down, up)


def _count(drawing: Drawing, at: int) -> int:
    return int(drawing["link"][at].get("count", 1))


def _rate(drawing: Drawing, links: list[int]) -> float:
    return sum(_count(drawing, at) * float(drawing["link"][at]["bandwidth_GBps"]) for at in links)
