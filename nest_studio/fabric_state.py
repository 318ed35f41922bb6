"""What the fabric page asks of the core, computed once per request and kept for everyone.

The key is the request's canonical text: the fabric's document with its overrides.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.calibration.curves import Curve
from nest_core.calibration.library import KIND, Library, load_library
from nest_core.calibration.sweep import (
    LIBRARY_NETWORK,
    Measured,
    Sweep,
    load_measured,
    sweep,
)
from nest_core.figures.levels import level_blocks, ways
from nest_core.network import Network, collapse
from nest_core.network.bisection import bisection_Bps
from nest_core.network.collective import CollectiveAnswer, collective
from nest_core.network.error import collapse_error
from nest_core.network.graph import GraphWires
from nest_core.network.paths import shortest_paths
from nest_core.overrides import assign
from nest_core.presets import load_toml, named_file
from nest_core.schema import FabricFile, checked
from nest_core.topology import Fabric
from nest_core.topology.checks import MAX_EXPLICIT_DEVICES
from nest_core.topology.drawing import element_names
from nest_core.topology.files import build_fabric
from nest_core.units import GIB

__all__ = [
    "IDEAL_WIRES",
    "MAP_BLOCKS",
    "CollectiveRequest",
    "FabricRequest",
    "all_reduce_of",
    "bisection_of",
    "canonical",
    "error_of",
    "fabric_of",
    "families",
    "library_note",
    "measured_of",
    "network_of",
    "sweep_of",
    "waits_of",
    "ways_of",
    "with_overrides",
]

KEPT = 16
MAP_BLOCKS = 64
LARGEST_ALL_REDUCE = 32_768
LARGEST_DRAWN_ERROR = 1024
IDEAL_WIRES = "ideal wires"


@dataclass(frozen=True, slots=True)
class FabricRequest:
    """A fabric preset and what differs from it, by dotted key (``fabric.clos.devices``)."""

    preset: str
    document: dict[str, Any]
    overrides: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CollectiveRequest:
    """What the explorer's controls ask for; ``library`` is `IDEAL_WIRES` or a family's curve."""

    op: str
    size: int
    stride: int
    concurrent: str
    algorithm: str
    library: str


def canonical(request: FabricRequest) -> str:
    """The text that identifies a request."""
    return json.dumps([request.document, request.overrides], sort_keys=True)


def fabric_of(text: str) -> Fabric:
    """The fabric of a canonical request; InputError where there is none."""
    document, overrides = json.loads(text)
    return build_fabric(checked(FabricFile, with_overrides(document, overrides), "fabric."))


def with_overrides(document: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """A fabric's document with what a request changes in it."""
    merged = {"fabric": copy.deepcopy(document)}
    for key, value in overrides.items():
        assign(merged, key, value)
    return merged["fabric"]


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def network_of(text: str) -> Network:
    """What the fabric collapses to."""
    return collapse(fabric_of(text))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def bisection_of(text: str) -> float | None:
    """Bisection bandwidth, bytes/s."""
    return bisection_Bps(fabric_of(text), network_of(text))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def ways_of(text: str) -> list[list[str]] | None:
    """What lies between the first devices of any two blocks of the map; None where too large."""
    fabric, network = fabric_of(text), network_of(text)
    if fabric.devices > MAX_EXPLICIT_DEVICES:
        return None
    size = level_blocks(network, MAP_BLOCKS).size
    graph = fabric.explicit()
    paths = shortest_paths(graph, range(0, fabric.devices, size))
    return ways(paths, element_names(graph, fabric))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def error_of(text: str) -> float | None:
    """How far levels alone are from the links beneath them, relative; None where it takes long."""
    network = network_of(text)
    if isinstance(network.wires, GraphWires) and network.devices > LARGEST_DRAWN_ERROR:
        return None
    return collapse_error(network)


@st.cache_data(max_entries=KEPT, show_spinner=False)
def all_reduce_of(text: str) -> float | None:
    """Seconds for 1 GiB over all devices by the fastest algorithm; None where that takes long."""
    network = network_of(text)
    if not 2 <= network.devices <= LARGEST_ALL_REDUCE:
        return None
    return collective(network, "all_reduce", GIB, network.devices).time_s


@st.cache_data(max_entries=KEPT, show_spinner=False)
def sweep_of(text: str, asked: CollectiveRequest) -> Sweep:
    """The collective at all message sizes."""
    local, between = _curves(asked.library)
    return sweep(
        network_of(text), asked.op, asked.size, stride=asked.stride,
        concurrent="all" if asked.concurrent == "all" else "one", algorithm=asked.algorithm,
        local=local, between=between,
    )  # fmt: skip


@st.cache_data(max_entries=KEPT, show_spinner=False)
def waits_of(text: str, asked: CollectiveRequest, size_bytes: float, algorithm: str) -> str:
    """What one message waits for on the wires, in words."""
    answer: CollectiveAnswer = collective(
        network_of(text), asked.op, size_bytes, asked.size, stride=asked.stride,
        concurrent="all" if asked.concurrent == "all" else "one", algorithm=algorithm,
    )  # fmt: skip
    return answer.bottleneck


def measured_of(text: str, found: Sweep, library: str) -> Measured | None:
    """Measured runs of the chosen family, or of the accelerator that the fabric's name gives."""
    if found.nodes != 1:
        return None
    if library == IDEAL_WIRES:
        known = _library().local(json.loads(text)[0]["name"])
        if known is None:
            return None
        library = known[0].name
    return load_measured(library, found.op, found.devices)


def families() -> tuple[str, ...]:
    """Curves of accelerator families."""
    own = [entry.name for entry in _library().curves if entry.link == "nvlink"]
    return tuple(name for name in own if name != "start")


def library_note(library: str) -> str:
    """Where the chosen curve comes from, in one sentence."""
    if library == IDEAL_WIRES:
        return "Ideal wires: the fabric's latencies and all of its bandwidth, no software."
    facts = load_toml(named_file(KIND, library, None, field="curves")).get("provenance", {})
    rows, median = facts.get("rows_fitted"), facts.get("held_out_median")
    fit = f"{library}: {facts.get('status', 'not fitted')}"
    if rows:
        fit += f" to {rows:,} measured runs"
    if median:
        fit += f", {100 * median:.2g} % off in the median on runs held out"
    return f"{fit}; between nodes {LIBRARY_NETWORK}, assumed and not fitted."


def _curves(library: str) -> tuple[Curve | None, Curve | None]:
    if library == IDEAL_WIRES:
        return None, None
    return _library()[library], _library()[LIBRARY_NETWORK]


@st.cache_resource(show_spinner=False)
def _library() -> Library:
    return load_library()
