"""What the Design page asks of the core, and what it says of curves and measured runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.hardware.collectives.library import KIND, Library, load_library
from nest_core.measured.collectives.sweep import LIBRARY_NETWORK, Measured, Sweep, load_measured
from nest_core.presets import load_toml, named_file

__all__ = [
    "IDEAL_LINKS",
    "FabricRequest",
    "canonical",
    "families",
    "library_note",
    "measured_of",
]

IDEAL_LINKS = "ideal links"


@dataclass(frozen=True, slots=True)
class FabricRequest:
    """A fabric preset and what differs from it, by dotted key (``fabric.clos.devices``)."""

    preset: str
    document: dict[str, Any]
    overrides: dict[str, Any]


def canonical(request: FabricRequest) -> str:
    """The text that identifies a request."""
    return json.dumps([request.document, request.overrides], sort_keys=True)


def measured_of(name: str, found: Sweep, library: str) -> Measured | None:
    """Measured runs of the chosen family, or of the accelerator that the fabric's name gives."""
    if found.nodes != 1:
        return None
    if not library:
        known = _library().local(name)
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
    if not library:
        return "Ideal links: the fabric's latencies and all of its bandwidth, no software."
    facts = load_toml(named_file(KIND, library, None, field="curves")).get("provenance", {})
    rows, median = facts.get("rows_fitted"), facts.get("held_out_median")
    fit = f"{library}: {facts.get('status', 'not fitted')}"
    if rows:
        fit += f" to {rows:,} measured runs"
    if median:
        fit += f", {100 * median:.2g} % off in the median on runs held out"
    return f"{fit}; between nodes {LIBRARY_NETWORK}, assumed and not fitted."


@st.cache_resource(show_spinner=False)
def _library() -> Library:
    return load_library()
