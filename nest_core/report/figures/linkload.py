"""Load per link: what the links of every tier carry, class by class, as shares of the iteration.

What a network's link groups are called.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nest_core.costs.loads import Loads
from nest_core.documents.units import capital, humanise_bytes, percent
from nest_core.network import GraphLinkMap, IntArray, Network, TreeLinkMap
from nest_core.network.torus import TorusLinkMap
from nest_core.report.explain import CLASSES
from nest_core.report.figures.style import TIME_COLOURS, Picture, bare_axis, empty, plot

__all__ = ["LOAD_SCALE", "link_group_name", "linkload_figure", "tier_name"]


def tier_name(network: Network, level: int) -> str:
    """The links whose traffic a level's pairs send first; a torus has one kind of link."""
    return "links" if network.torus is not None else network.levels[level].name


def link_group_name(network: Network, link_group: int) -> str:
    """Where a link group leads, in words.

    Devices count from 0. Of dragonflies the link group's number is told.
    """
    link_map = network.link_map
    if isinstance(link_map, TreeLinkMap):
        return _of_tree(link_map, link_group)
    if isinstance(link_map, TorusLinkMap):
        return _of_torus(link_map, link_group)
    if isinstance(link_map, GraphLinkMap):
        return _of_graph(link_map, link_group)
    return f"link {link_group:,}"


def _of_tree(link_map: TreeLinkMap, link_group: int) -> str:
    at = link_group
    if link_map.scale_up is not None:
        inside = len(link_map.scale_up.capacity_Bps)
        if at < inside:
            return f"a link inside node {at // link_map.scale_up.links_per_node:,}"
        at -= inside
    for tier in link_map.tiers:
        link_groups = 2 * tier.group_links * len(tier.capacity_Bps)
        if at < link_groups:
            break
        at -= link_groups
    number, down = divmod(at, 2)
    child, one_link = divmod(number, tier.group_links)
    way = "down to" if down else "up from"
    link = f", link {one_link + 1:,} of {tier.group_links:,}" if tier.group_links > 1 else ""
    return f"{way} {_devices(np.flatnonzero(tier.child == child))}{link}"


def _devices(members: IntArray) -> str:
    if len(members) == 1:
        return f"device {members[0]:,}"
    if len(members) and members[-1] - members[0] == len(members) - 1:
        return f"devices {members[0]:,} to {members[-1]:,}"
    first = f" from {members[0]:,} on" if len(members) else ""
    return f"{len(members):,} devices{first}"


def _of_torus(link_map: TorusLinkMap, link_group: int) -> str:
    link, downwards = divmod(link_group, 2)
    place, axis = divmod(link, len(link_map.shape.shape))
    devices = np.flatnonzero(link_map.place == place)
    who = f"device {devices[0]:,}" if len(devices) else f"router {place:,}"
    return f"{who}, dimension {axis + 1}, {'down' if downwards else 'up'}wards"


def _of_graph(link_map: GraphLinkMap, link_group: int) -> str:
    links = link_map.links
    copies = links.count if link_map.routing == "ecmp" else np.ones_like(links.count)
    arc = int(np.searchsorted(np.cumsum(copies), link_group, side="right"))
    ends = (links.elements[int(links.tail[arc])], links.elements[int(links.head[arc])])
    return " to ".join(_element(end) for end in ends)


def _element(name: object) -> str:
    if isinstance(name, int):
        return f"device {name:,}"
    if isinstance(name, tuple):
        return " ".join(map(str, name))
    return str(name)


LOAD_SCALE = [(0.0, "#F7EBCF"), (0.6, TIME_COLOURS["communication"]), (1.0, "#9C5F00")]
"""From little to much, around the colour of communication."""

_SHORT = {
    "tied": "tied copies",
    "expert_data": "expert gradients",
    "data": "gradients",
    "ep": "experts",
    "etp": "experts' tensors",
    "cp": "context",
    "tp": "tensor",
    "transfers": "pipeline",
}
_ROW, _MARGIN = 46, (148, 8, 36, 8)
_MIN_SHARE = 5e-6  # of an iteration; less is shown as nothing


def linkload_figure(loads: Loads | None) -> Picture:
    """Draw the busiest link of every tier and the mean of all, outermost tier at the top.

    Parameters
    ----------
    loads : Loads or None
        None: there is no plan.
    """
    if loads is None or not loads.bytes:
        why = "No plan sends anything" if loads is None else "Nothing is sent"
        return empty(why, "Load per link", 44 + 4 * _ROW, _MARGIN)
    names = [name for name in reversed(CLASSES) if name in loads.bytes]
    rows = []
    for tier in reversed(loads.tiers):
        name, count = tier_name(loads.network, tier.level), f"mean of {tier.links:,}"
        busiest = f"busiest link, {link_group_name(loads.network, tier.busiest)}"
        rows += [
            (f"<b>{name}</b>, busiest", busiest, tier.busiest_busy, tier.busiest_bytes),
            (f"{name}, {count}", f"{count} links", tier.mean_busy, tier.mean_bytes),
        ]
    z = np.array([_with_sum(names, busy) for _, _, busy, _ in rows])
    cells = {
        "type": "heatmap",
        "x": [*(_SHORT[name] for name in names), "together"],
        "y": [label for label, _, _, _ in rows],
        "z": 100 * z,
        "zmin": 0.0,
        "zmax": 100 * float(z.max()) or 1.0,
        "text": [
            [percent(value) if value > _MIN_SHARE else "0" for value in line] for line in z.tolist()
        ],
        "texttemplate": "%{text}",
        "customdata": [
            [f"{words}: {humanise_bytes(value)}" for value in _with_sum(names, size)]
            for _, words, _, size in rows
        ],
        "colorscale": LOAD_SCALE,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{x}: %{text} of the iteration<br>%{customdata}<extra></extra>",
    }
    ecmp = " Static ECMP: one draw of the hash." if loads.network.link_map.variants > 1 else ""
    return Picture(
        _finding(loads),
        "Load per link: share of the iteration that a link is busy at its full rate, by traffic",
        "Bytes over the links' rate; a tier's links lead up to it and down from it, each way on "
        f"its own. Libraries reach less than the links' rate, so collectives take longer.{ecmp}",
        plot(
            [cells],
            44 + _ROW * len(rows),
            _MARGIN,
            xaxis={"side": "top", "fixedrange": True, "showgrid": False, "ticks": ""},
            yaxis=bare_axis(range=[len(rows) - 0.5, -0.5], ticksuffix=" "),
        ),
    )


def _with_sum(names: list[str], values: Mapping[str, float]) -> list[float]:
    """Return a value per class, and all together."""
    return [*(values[name] for name in names), sum(values[name] for name in names)]


def _finding(loads: Loads) -> str:
    worst = max(loads.tiers, key=lambda tier: tier.share)
    if worst.share <= _MIN_SHARE:
        return "No link is busy for long"
    name = max(worst.busiest_busy, key=worst.busiest_busy.__getitem__)
    where = tier_name(loads.network, worst.level)
    links = "Links" if loads.network.torus is not None else f"{capital(where)} links"
    what = CLASSES[name].replace("-parallel", "")
    return f"{links} are busy up to {percent(worst.share)}, mostly with {what}"
