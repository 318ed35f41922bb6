"""What the Design page asks of the core: computed by workers, kept for everyone who asks again.

The key is the request's canonical text: the fabric's document with its overrides.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.formats import Assumed
from nest_core.hardware.collectives.library import KIND, Library, load_library
from nest_core.measured.collectives.sweep import LIBRARY_NETWORK, Measured, Sweep, load_measured
from nest_core.presets import load_toml, named_file
from nest_studio.jobs import Job, submitted
from nest_studio.tasks.fabrics import (
    CollectiveRequest,
    all_reduce_time,
    fabric_answer,
    fabric_bill,
    fabric_export,
    fabric_import,
    fabric_losses,
    fabric_sweep,
)

__all__ = [
    "IDEAL_LINKS",
    "CollectiveRequest",
    "FabricRequest",
    "canonical",
    "families",
    "library_note",
    "measured_of",
    "submit_all_reduce",
    "submit_bill",
    "submit_export",
    "submit_fabric",
    "submit_import",
    "submit_losses",
    "submit_sweep",
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


def submit_fabric(text: str, place: str) -> Job:
    """What a fabric collapses to: a `FabricAnswer`."""
    return submitted(f"fabric {_digest(text)}", fabric_answer, text, place=place)


def submit_bill(text: str, settings: tuple[str, ...], place: str) -> Job:
    """The bill of a fabric, with settings over the price list."""
    return submitted(f"bill {settings} {_digest(text)}", fabric_bill, text, settings, place=place)


def submit_sweep(text: str, asked: CollectiveRequest) -> Job:
    """A collective at all message sizes, and what its ends wait for."""
    key = f"sweep {asked} {_digest(text)}"
    return submitted(key, fabric_sweep, text, asked, place="collective")


def submit_all_reduce(text: str, place: str) -> Job:
    """Seconds for 1 GiB over all devices; 0 where that takes long."""
    key = f"all-reduce {_digest(text)}"
    return submitted(key, all_reduce_time, text, urgent=False, place=place)


def submit_export(text: str, format_: str) -> Job:
    """A fabric in another program's format, with what it loses there."""
    key = f"export {format_} {_digest(text)}"
    return submitted(key, fabric_export, text, format_, urgent=False, place="export")


def submit_losses(text: str) -> Job:
    """What a fabric loses when it is copied onto the canvas."""
    return submitted(f"losses {_digest(text)}", fabric_losses, text, place="losses")


def submit_import(content: bytes, name: str, assumed: Assumed) -> Job:
    """A fabric file as a document."""
    key = f"import {name!r} {assumed} {_digest(content)}"
    return submitted(key, fabric_import, content, name, assumed, place="import")


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


def _digest(content: str | bytes) -> str:
    """Stands for a fabric in keys, which are kept: drawn, it may have megabytes."""
    data = content if isinstance(content, bytes) else content.encode()
    return hashlib.sha256(data).hexdigest()


@st.cache_resource(show_spinner=False)
def _library() -> Library:
    return load_library()
