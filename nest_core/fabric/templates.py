"""Parts that a person adds to a drawing: racks, pods and rails of servers, and spines over them.

A part is a small Clos of its own (`nest_core.fabric.clos`), drawn as any fabric is, copied as
often as asked beside what is there, its names numbered on. Spines are one element with a count,
linked to every switch that nothing is above yet, in whole ports.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nest_core.documents import from_gbps_bytes, from_microseconds, require
from nest_core.fabric.checks import positive, whole
from nest_core.fabric.clos import Clos
from nest_core.fabric.clos_plan import Kind
from nest_core.fabric.drawing import MAX_DRAWN, Drawing, drawing_of, edited
from nest_core.fabric.tiers import open_switches

__all__ = ["TEMPLATES", "TemplatePart", "added", "with_spines"]

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
    next_number: Counter[str] = Counter()
    for name in names:
        if parts := _NUMBER.fullmatch(name):
            next_number[parts[1]] = max(next_number[parts[1]], int(parts[2]) + 1)
    return next_number


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
