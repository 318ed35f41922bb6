"""Tiers of a drawing: switches by their height over devices, how wide upwards, and parts added.

A tier is the switches of one height and one word in their names. Down and up are links to what is
lower and higher; the ratio of a tier is the largest of its switches'. Switches that join the
devices of one server (all their neighbours are devices, while others have NICs) are no tier.

Parts that a person adds are racks, pods and rails of servers, and spines over them. A part is a
small Clos of its own (`nest_core.fabric.clos`), drawn as any fabric is, copied as often as asked
beside what is there, its names numbered on. Spines are one element with a count, linked to every
switch that nothing is above yet, in whole ports.

Units: GB/s, one direction, as drawings have them.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from nest_core.documents import (
    InputError,
    from_gbps_bytes,
    from_microseconds,
    grouped,
    require,
    summed,
)
from nest_core.fabric.arrange import heights, inner_switches
from nest_core.fabric.checks import positive, whole
from nest_core.fabric.clos import Clos
from nest_core.fabric.clos_plan import Kind
from nest_core.fabric.drawing import MAX_DRAWN, Drawing, drawing_of, edited

__all__ = [
    "TEMPLATES",
    "DrawnTier",
    "TemplatePart",
    "added",
    "cut_off",
    "open_switches",
    "oversubscribed",
    "tiers_of",
    "unlinked",
    "with_spines",
]


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
    ids = grouped(
        ((heights.height[name], word), name)
        for name in heights.up
        if heights.up[name] and heights.down[name]
        for word in re.findall(r"^[^\W\d_]*", name)
    )
    group = {entry["id"]: (entry.get("group") or "").split("/")[0] for entry in drawing["element"]}
    tiers = []
    for (height, word), names in sorted(ids.items()):
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
    >>> from nest_core.fabric.tiers import TemplatePart, added, with_spines
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
    ends = [
        (link[end], link[other], link.get("count", 1))
        for link in drawing["link"]
        for end, other in (("a", "b"), ("b", "a"))
    ]
    used = summed((end, count) for end, _, count in ends)
    touched = {*switches, *(end for end, other, _ in ends if other in switches)}
    for entry in drawing["element"]:
        ports = entry.get("radix", 0) * entry.get("count", 1)
        if entry["id"] in touched and 0 < ports < used.get(entry["id"], 0):
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


GAP = 120.0
"""Between copies, in steps of the canvas."""
LONGEST = 40
_NUMBER = re.compile(r"(\D*)(\d+)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """What to add.

    Parameters
    ----------
    template : str
        One of `TEMPLATES`.
    copies : int
    word : str
        What each copy is called, before its number.
    nodes : int
        Servers of one copy.
    devices : int
        Of one server, each with a NIC of its own.
    nic_GBps, inside_GBps : float
        One NIC, and one device inside its server; one direction.
    radix : int
        Of switches.
    """

    template: str
    copies: int = 1
    word: str = "rack"
    nodes: int = 4
    devices: int = 8
    nic_GBps: float = 50.0
    inside_GBps: float = 450.0
    radix: int = 64


TEMPLATES: Mapping[str, tuple[str, Kind, int]] = {
    "rack": ("servers under one leaf", "leaf_spine", 1),
    "rails": ("servers under one leaf per NIC, rail by rail", "rail_only", 1),
    "pod": ("servers in racks, leaves under spines at 1:1", "leaf_spine", 2),
}
"""What one copy is, in words; kind and tiers of the Clos that it is."""


def added(drawing: Drawing, part: TemplatePart) -> Drawing:
    """Return the drawing with copies of a part at its right.

    Raises
    ------
    InputError
        If there is no such template, a figure is out of its range, or the drawing grows too large.

    Examples
    --------
    >>> from nest_core.fabric.drawing import empty_drawing
    >>> two = added(empty_drawing(), TemplatePart("rack", copies=2, nodes=4))
    >>> [entry["id"] for entry in two["element"] if entry["id"].startswith("leaf")]
    ['leaf 0', 'leaf 1']
    """
    require(
        part.template in TEMPLATES,
        "template",
        f"must be one of {', '.join(TEMPLATES)}",
        part.template,
        "choose one",
    )
    word = _word(part.word)
    for field in ("copies", "nodes", "devices"):
        whole(f"template.{field}", getattr(part, field))
    devices = sum(entry.get("role") == "device" for entry in drawing["element"])
    grown = devices + part.copies * part.nodes * part.devices
    require(
        grown <= MAX_DRAWN,
        "template.copies",
        f"must leave the drawing at {MAX_DRAWN:,} devices or fewer",
        f"{grown:,}",
        "add fewer, or describe the fabric by a kind",
    )
    clos = _clos(part)
    piece = drawing_of(clos, [clos.node_of(), clos.group_of(1)][: clos.tiers])
    elements, links = list(drawing["element"]), list(drawing["link"])
    ids = _beyond(entry["id"] for entry in elements)
    steps = _beyond(step for entry in elements for step in (entry.get("group") or "").split("/"))
    paths = {entry.get("group", "") for entry in piece["element"]} - {""}
    for _ in range(part.copies):
        names = _numbered_on((entry["id"] for entry in piece["element"]), ids)
        (group,) = _numbered_on([f"{word} 0"], steps).values()
        inner = _numbered_on(sorted({step for path in paths for step in path.split("/")}), steps)
        for entry in piece["element"]:
            path = [inner[step] for step in entry.get("group", "").split("/") if step]
            elements.append(entry | {"id": names[entry["id"]], "group": "/".join([group, *path])})
        links += [link | {"a": names[link["a"]], "b": names[link["b"]]} for link in piece["link"]]
    return edited(drawing, elements, links)


def with_spines(
    drawing: Drawing, switches: int, ratio: float, link_GBps: float, word: str = "spine"
) -> Drawing:
    """Return the drawing with spines over every switch that nothing is above.

    Parameters
    ----------
    drawing : Drawing
    switches : int
        Spines, drawn as one element; each of those below has links to all where ports allow.
    ratio : float
        Oversubscription of those below, down : up, in the nearest whole number of links.
    link_GBps : float
    word : str

    Raises
    ------
    InputError
        Where no two switches wait for one above, or a figure is out of its range.
    """
    whole("template.switches", switches)
    positive("template.ratio", ratio)
    positive("template.link_GBps", link_GBps)
    below = open_switches(drawing)
    require(
        len(below) >= 2,
        "template",
        "must find two switches or more with nothing above them",
        len(below),
        "add racks or rails first",
    )
    taken = _beyond(entry["id"] for entry in drawing["element"])
    (name,) = _numbered_on([f"{_word(word)} 0"], taken).values()
    places = [entry for entry in drawing["element"] if entry["id"] in below]
    spine: dict[str, Any] = {"id": name, "role": "switch", "count": switches}
    if all(entry.get("x") is not None for entry in places):
        spine["x"] = sum(entry["x"] for entry in places) / len(places)
        spine["y"] = min(entry["y"] for entry in places) - GAP
    links = [
        {
            "a": leaf,
            "b": name,
            "bandwidth_GBps": link_GBps,
            "count": max(1, math.floor(down / (ratio * link_GBps) + 0.5)),
            "latency_us": 0.6,
        }
        for leaf, down in below.items()
    ]
    return edited(drawing, [*drawing["element"], spine], [*drawing["link"], *links])


def _clos(part: TemplatePart) -> Clos:
    _, kind, tiers = TEMPLATES[part.template]
    return Clos(
        name="part",
        kind=kind,
        devices=part.nodes * part.devices,
        devices_per_node=part.devices,
        nics_per_node=part.devices,
        nic_bandwidth_Bps=from_gbps_bytes(part.nic_GBps),
        radix=part.radix,
        tiers=tiers,
        oversubscription=(1.0,) * (tiers - 1),
        hop_latency_s=from_microseconds(0.6),
        intra_bandwidth_Bps=from_gbps_bytes(part.inside_GBps),
        intra_latency_s=from_microseconds(0.5),
    )


def _word(text: str) -> str:
    word = text.strip()
    require(
        1 <= len(word) <= LONGEST and "/" not in word and (not any(map(str.isdigit, word))),
        "template.names",
        f"must be 1 to {LONGEST} characters without digits and slashes",
        text,
        "call them rack; numbers are added",
    )
    return word


def _beyond(names: Iterable[str]) -> Counter[str]:
    """By word, the number after the highest that is taken."""
    numbers = grouped((parts[1], int(parts[2])) for parts in map(_NUMBER.fullmatch, names) if parts)
    return Counter({word: max(taken) + 1 for word, taken in numbers.items()})


def _numbered_on(names: Iterable[str], beyond: Counter[str]) -> dict[str, str]:
    """Names for a copy: the first number of each is raised beyond those taken, then taken too."""
    new: dict[str, str] = {}
    highest: Counter[str] = Counter()
    for name in names:
        word, number, rest = _NUMBER.findall(name)[0]
        new[name] = f"{word}{beyond[word] + int(number)}{rest}"
        highest[word] = max(highest[word], int(number) + 1)
    beyond.update(highest)
    return new
