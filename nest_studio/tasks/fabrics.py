"""What worker processes do for the Design page: a fabric's canonical text in, what it shows out.

The text is a JSON list of a fabric's document and its overrides. Tasks are as those of
`nest_studio.tasks.requests`. What comes back is small: neither the fabric nor what it
collapses to, which of a drawing may take a gigabyte.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from nest_core.bill.bill import Bill, bill
from nest_core.bill.prices import DEFAULT, load_prices
from nest_core.costs.software import Software
from nest_core.explain.fabric_summary import fabric_headlines, levels_table
from nest_core.explain.summary import Headline
from nest_core.figures import Picture
from nest_core.figures.bill import ports_table
from nest_core.figures.levels import level_figure, ways
from nest_core.formats import Assumed, Exported, Imported, read_fabric, write_fabric
from nest_core.formats.exchange import caveats, lost_between, lost_on_canvas
from nest_core.hardware.collectives.library import load_curve
from nest_core.measured.collectives.sweep import LIBRARY_NETWORK, Sweep, sweep
from nest_core.network import Network, collapse
from nest_core.network.bisection import bisection_Bps
from nest_core.network.blocks import level_blocks
from nest_core.network.collective import collective
from nest_core.network.error import collapse_error
from nest_core.network.graph import GraphLinkMap
from nest_core.network.paths import shortest_paths
from nest_core.overrides import assign
from nest_core.picture import Drawn, picture, untitled
from nest_core.report.tables import Table
from nest_core.scenario.titles import fabric_title
from nest_core.schema import FabricFile, checked
from nest_core.topology import Fabric
from nest_core.topology.checks import MAX_EXPLICIT_DEVICES
from nest_core.topology.drawing import MAX_DRAWN, drawing_of, element_names
from nest_core.topology.files import build_fabric
from nest_core.units import GIB
from nest_studio.tasks.requests import Stop, Tell, announced

__all__ = [
    "CollectiveRequest",
    "FabricAnswer",
    "all_reduce_time",
    "fabric_answer",
    "fabric_bill",
    "fabric_drawn",
    "fabric_export",
    "fabric_import",
    "fabric_losses",
    "fabric_sweep",
    "request_fabric",
    "with_overrides",
]

KEPT = 4
MAP_BLOCKS = 64
MAP_HEIGHT = 360
LARGEST_ALL_REDUCE = 32_768
LARGEST_DRAWN_ERROR = 1024


@dataclass(frozen=True, slots=True)
class FabricAnswer:
    """A fabric as the Design page shows it.

    Parameters
    ----------
    title, contents : str
        What it is called and what it is made of.
    devices : int
    clos : bool
        Whether its drawing joins switches and links.
    headlines : tuple of Headline
        Devices, levels, bisection, its share of full bisection, collapse error.
    levels : Table
    ports : Table or None
        None where a kind has no switches.
    map : Picture
        Who meets whom where.
    caveats : tuple of str
        What its prices do not know about it.
    drawing : str
        A drawing of it as JSON, which takes far less than its tables; empty where it is too large.
    """

    title: str
    contents: str
    devices: int
    clos: bool
    headlines: tuple[Headline, ...]
    levels: Table
    ports: Table | None
    map: Picture
    caveats: tuple[str, ...]
    drawing: str


@dataclass(frozen=True, slots=True)
class CollectiveRequest:
    """What the collective explorer asks for; ``library`` is a curve's name, empty: ideal links."""

    op: str
    size: int
    stride: int
    concurrent: str
    algorithm: str
    library: str


def request_fabric(text: str) -> Fabric:
    """The fabric of a canonical request; InputError where there is none."""
    document, overrides = json.loads(text)
    return build_fabric(checked(FabricFile, with_overrides(document, overrides), "fabric."))


@announced("drawing it")
def fabric_drawn(text: str, width: float) -> Drawn:
    """The picture of a fabric, so many pixels wide."""
    return untitled(picture(request_fabric(text), width=width))


def with_overrides(document: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """A fabric's document with what a request changes in it."""
    merged = {"fabric": copy.deepcopy(document)}
    for key, value in overrides.items():
        assign(merged, key, value)
    return merged["fabric"]


@lru_cache(maxsize=KEPT)
def _collapsed(text: str) -> tuple[Fabric, Network]:
    fabric = request_fabric(text)
    return fabric, collapse(fabric)


def fabric_answer(text: str, *, progress: Tell, stop: Stop) -> FabricAnswer | None:
    """All that the page shows of a fabric before prices and collectives; None once stopped."""
    progress(0.0, "collapsing it into levels")
    fabric, network = _collapsed(text)
    if stop():
        return None
    progress(0.4, "cutting it into halves")
    cut = bisection_Bps(fabric, network)
    if stop():
        return None
    progress(0.6, "pricing its levels alone")
    error = _error(network)
    if stop():
        return None
    progress(0.8, "drawing it")
    drawn = fabric.devices <= MAX_DRAWN
    return FabricAnswer(
        title=fabric_title(fabric),
        contents=fabric.contents(),
        devices=fabric.devices,
        clos=bool(fabric.tier_names),
        headlines=fabric_headlines(fabric, network, cut, error),
        levels=levels_table(network),
        ports=ports_table(fabric),
        map=level_figure(network, MAP_HEIGHT, _ways(fabric, network), MAP_BLOCKS),
        caveats=caveats(network),
        drawing=json.dumps(drawing_of(_titled(text), network.nesting)) if drawn else "",
    )


@announced("counting its parts")
def fabric_bill(text: str, settings: tuple[str, ...]) -> Bill:
    """What a fabric is made of and costs, with settings over the price list."""
    return bill(request_fabric(text), load_prices(DEFAULT, settings))


def fabric_sweep(
    text: str, asked: CollectiveRequest, *, progress: Tell, stop: Stop
) -> tuple[Sweep, tuple[str, str]] | None:
    """A collective at all sizes, and what the smallest and the largest wait for on the links."""
    progress(0.0, "collapsing the fabric into levels")
    _, network = _collapsed(text)
    progress(0.2, "pricing every algorithm at every size")
    names = (asked.library, LIBRARY_NETWORK) if asked.library else ()
    software = Software(*(load_curve(name) for name in names))
    found = sweep(
        network,
        asked.op,
        asked.size,
        stride=asked.stride,
        concurrent="all" if asked.concurrent == "all" else "one",
        algorithm=asked.algorithm,
        software=software,
    )
    if stop():
        return None
    progress(0.9, "asking what they wait for")
    first, last = (
        collective(
            network,
            asked.op,
            float(found.size_bytes[end]),
            asked.size,
            stride=asked.stride,
            concurrent="all" if asked.concurrent == "all" else "one",
            algorithm=found.algorithms[end],
        ).bottleneck
        for end in (0, -1)
    )
    return found, (first, last)


@announced("pricing an all-reduce of 1 GiB over all devices")
def all_reduce_time(text: str) -> float:
    """Seconds for 1 GiB over all devices as plans price it; 0 where that takes long."""
    _, network = _collapsed(text)
    if not 2 <= network.devices <= LARGEST_ALL_REDUCE:
        return 0.0
    return collective(network, "all_reduce", GIB, network.devices).time_s


@announced("reading the file")
def fabric_import(content: bytes, name: str, assumed: Assumed) -> Imported:
    """A fabric file as a document of the studio's own."""
    return read_fabric(content, name, assumed=assumed)


@announced("copying it to compare")
def fabric_losses(text: str) -> tuple[str, ...]:
    """All that a fabric loses when it is copied onto the canvas."""
    fabric, network = _collapsed(text)
    document = with_overrides(*json.loads(text))
    return lost_on_canvas(fabric, document, drawing_of(fabric, network.nesting), load_prices())


def fabric_export(text: str, format_: str, *, progress: Tell, stop: Stop) -> Exported:
    """A fabric in another program's format, with all that it loses there."""
    progress(0.0, "writing it")
    fabric, written = _titled(text), with_overrides(*json.loads(text))
    written["name"] = fabric.name
    exported = write_fabric(fabric, format_, document=written)
    progress(0.3, "reading it again to compare")
    return replace(
        exported, lost=lost_between(request_fabric(text), exported, format_, load_prices())
    )


def _titled(text: str) -> Fabric:
    """The fabric of a request; with overrides it is no longer what its name says."""
    fabric, (_, overrides) = request_fabric(text), json.loads(text)
    return replace(fabric, name=fabric_title(fabric)) if overrides else fabric


def _error(network: Network) -> float | None:
    """How far levels alone are from the links beneath them, relative; None where it takes long."""
    if isinstance(network.link_map, GraphLinkMap) and network.devices > LARGEST_DRAWN_ERROR:
        return None
    return collapse_error(network)


def _ways(fabric: Fabric, network: Network) -> list[list[str]] | None:
    """What lies between the first devices of any two blocks of the map; None where too large."""
    if fabric.devices > MAX_EXPLICIT_DEVICES:
        return None
    size = level_blocks(network, MAP_BLOCKS).size
    graph = fabric.explicit()
    paths = shortest_paths(graph, range(0, fabric.devices, size))
    return ways(paths, element_names(graph, fabric))
