"""What worker processes do for the Design page: a scenario's fabric in, what it shows out.

The scenario may hold a fabric alone. Tasks are as those of `nest_studio.jobs.tasks.requests`. What
comes back is small, rows of orders and of acceptance tests too: neither the fabric nor what it
collapses to, which of a drawing may take a gigabyte.
"""

import json
from dataclasses import dataclass, replace
from functools import lru_cache

from nest_core.bill.bill import Bill, bill
from nest_core.bill.cables import Format, cable_schedule, csv_lines
from nest_core.bill.prices import DEFAULT, load_prices
from nest_core.calibration.acceptance.expected import expected_of, library_of
from nest_core.calibration.acceptance.verdict import Verdict, judge, read_runs
from nest_core.calibration.collectives.sweep import LIBRARY_NETWORK, CollectiveSweep, sweep
from nest_core.costs.software import Software
from nest_core.fabric import MAX_EXPLICIT_DEVICES, Fabric
from nest_core.fabric.drawing import MAX_DRAWN, drawing_of, element_names
from nest_core.hardware.collectives.library import load_curve
from nest_core.interop.formats import Assumed, FabricText, ImportedFabric, read_fabric, write_fabric
from nest_core.interop.formats.exchange import caveats, lost_between, lost_on_canvas
from nest_core.network import (
    GraphLinkMap,
    Network,
    bisection_Bps,
    collapse,
    collapse_error,
    collective,
    level_blocks,
    shortest_paths,
)
from nest_core.report.explain import Headline, fabric_headlines, levels_table
from nest_core.report.figures import Chart
from nest_core.report.figures.bill import ports_table
from nest_core.report.figures.levels import level_figure, ways
from nest_core.report.picture import Drawn, picture, untitled
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, fabric_title
from nest_studio.jobs.tasks.requests import Stop, Tell, announced

__all__ = [
    "CableSummary",
    "CollectiveRequest",
    "FabricAnswer",
    "acceptance",
    "cable_file",
    "cable_summary",
    "fabric_answer",
    "fabric_bill",
    "fabric_drawn",
    "fabric_export",
    "fabric_import",
    "fabric_losses",
    "fabric_sweep",
]

KEPT = 4
MAP_BLOCKS = 64
MAP_HEIGHT = 360
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
    map : Chart
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
    map: Chart
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


@announced("drawing it")
def fabric_drawn(scenario: Scenario, width: float) -> Drawn:
    """Return the picture of a fabric, so many pixels wide."""
    return untitled(picture(scenario.fabric, width=width))


@lru_cache(maxsize=KEPT)
def _collapsed(scenario: Scenario) -> tuple[Fabric, Network]:
    fabric = scenario.fabric
    return fabric, collapse(fabric)


def fabric_answer(scenario: Scenario, *, progress: Tell, stop: Stop) -> FabricAnswer | None:
    """All that the page shows of a fabric before prices and collectives; None once stopped."""
    progress(0.0, "collapsing it into levels")
    fabric, network = _collapsed(scenario)
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
    return FabricAnswer(
        title=fabric_title(fabric),
        contents=fabric.contents(),
        devices=fabric.devices,
        clos=bool(fabric.tier_names),
        headlines=fabric_headlines(fabric, network, cut, error),
        levels=levels_table(network),
        ports=ports_table(fabric),
        map=level_figure(network, MAP_HEIGHT, _ways(fabric, network), MAP_BLOCKS),
        caveats=(*fabric.assumed, *caveats(network)),
        drawing=json.dumps(drawing_of(_titled(scenario), network.nesting))
        if fabric.devices <= MAX_DRAWN
        else "",
    )


@announced("counting its parts")
def fabric_bill(scenario: Scenario, settings: tuple[str, ...]) -> Bill:
    """Return what a fabric is made of and costs, with settings over the price list."""
    return bill(scenario.fabric, load_prices(DEFAULT, settings))


def fabric_sweep(
    scenario: Scenario, asked: CollectiveRequest, *, progress: Tell, stop: Stop
) -> tuple[CollectiveSweep, tuple[str, str]] | None:
    """A collective at all sizes, and what the smallest and the largest wait for on the links."""
    progress(0.0, "collapsing the fabric into levels")
    _, network = _collapsed(scenario)
    progress(0.2, "pricing every algorithm at every size")
    names = (asked.library, LIBRARY_NETWORK) if asked.library else ()
    result = sweep(
        network,
        asked.op,
        asked.size,
        stride=asked.stride,
        concurrent="all" if asked.concurrent == "all" else "one",
        algorithm=asked.algorithm,
        software=Software(*(load_curve(name) for name in names)),
    )
    if stop():
        return None
    progress(0.9, "asking what they wait for")
    first, last = (
        collective(
            network,
            asked.op,
            float(result.size_bytes[end]),
            asked.size,
            stride=asked.stride,
            concurrent="all" if asked.concurrent == "all" else "one",
            algorithm=result.algorithms[end],
        ).bottleneck
        for end in (0, -1)
    )
    return result, (first, last)


@announced("reading the file")
def fabric_import(content: bytes, name: str, assumed: Assumed, tables: bytes) -> ImportedFabric:
    """Return a fabric file, with tables of its switches, as a document of the studio's own."""
    return read_fabric(content, name, assumed=assumed, tables=tables)


@announced("copying it to compare")
def fabric_losses(scenario: Scenario) -> tuple[str, ...]:
    """Return all that a fabric loses when it is copied onto the canvas."""
    fabric, network = _collapsed(scenario)
    return lost_on_canvas(
        fabric, scenario.fabric_table, drawing_of(fabric, network.nesting), load_prices()
    )


def fabric_export(scenario: Scenario, format_: str, *, progress: Tell, stop: Stop) -> FabricText:
    """Return a fabric in another program's format, with all that it loses there."""
    progress(0.0, "writing it")
    fabric, written = _titled(scenario), scenario.fabric_table
    written["name"] = fabric.name
    exported = write_fabric(fabric, format_, document=written)
    progress(0.3, "reading it again to compare")
    return replace(exported, lost=lost_between(scenario.fabric, exported, format_, load_prices()))


def _titled(scenario: Scenario) -> Fabric:
    """Return the fabric; with overrides it is no longer what its name says."""
    fabric = scenario.fabric
    return replace(fabric, name=fabric_title(fabric)) if scenario.overrides else fabric


def _error(network: Network) -> float | None:
    """How far levels alone are from the links beneath them, relative; None where it takes long."""
    is_large = isinstance(network.link_map, GraphLinkMap) and network.devices > LARGEST_DRAWN_ERROR
    return None if is_large else collapse_error(network)


def _ways(fabric: Fabric, network: Network) -> list[list[str]] | None:
    """What lies between the first devices of any two blocks of the map; None where too large."""
    if fabric.devices > MAX_EXPLICIT_DEVICES:
        return None
    size = level_blocks(network, MAP_BLOCKS).size
    graph = fabric.explicit()
    return ways(shortest_paths(graph, range(0, fabric.devices, size)), element_names(graph, fabric))


CableSummary = tuple[int, tuple[tuple[str, int], ...], tuple[str, ...]]
"""Cables in all and by tier, and what to know of them."""


@announced("listing its cables")
def cable_summary(scenario: Scenario, settings: tuple[str, ...]) -> CableSummary:
    """Return how many cables a fabric has."""
    schedule = cable_schedule(scenario.fabric, load_prices(DEFAULT, settings))
    return schedule.count, schedule.tiers, schedule.notes


@announced("listing its cables")
def cable_file(scenario: Scenario, settings: tuple[str, ...], style: Format) -> str:
    """Return all of them as CSV."""
    return "".join(
        csv_lines(cable_schedule(scenario.fabric, load_prices(DEFAULT, settings)).cables, style)
    )


@announced("pricing its acceptance tests")
def acceptance(scenario: Scenario, accelerator: str, logs: tuple[tuple[str, str], ...]) -> Verdict:
    """Commands of nccl-tests for a fabric, and what the logs of some say."""
    fabric = scenario.fabric
    return judge(
        expected_of(fabric, collapse(fabric), library_of(fabric, accelerator)), read_runs(logs)
    )
