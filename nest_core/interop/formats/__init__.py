"""Fabric files of other programs: read into the studio's own documents, written from fabrics.

Syntax and sources stand in the modules, one per format. `read_fabric` finds the format, refuses
what is too large, too deep or unclear with one sentence, and returns a document that has been
built once, so that it is valid. `write_fabric` says what a format cannot hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.files import MAX_FILE_BYTES, decoded
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.interop.formats.astrasim import read_astrasim, write_astrasim
from nest_core.interop.formats.drawn import unsaid
from nest_core.interop.formats.edges import read_edges, write_edges
from nest_core.interop.formats.graphml import read_graphml, write_graphml
from nest_core.interop.formats.ibnetdiscover import read_ibnetdiscover
from nest_core.interop.formats.simai import write_ns3, write_simai
from nest_core.interop.formats.slurm import read_slurm, write_slurm_block, write_slurm_tree
from nest_core.interop.formats.slurm_yaml import read_slurm_yaml
from nest_core.interop.formats.studio import read_toml, write_toml
from nest_core.interop.formats.values import Assumed, Exported, Format, Imported, Source

__all__ = [
    "FORMATS",
    "Assumed",
    "Exported",
    "Format",
    "Imported",
    "format_of",
    "read_fabric",
    "write_fabric",
]

_READERS: dict[str, Callable[[Source], tuple[dict[str, Any], tuple[str, ...]]]] = {
    "toml": read_toml,
    "graphml": read_graphml,
    "csv": read_edges,
    "slurm-tree": read_slurm,
    "slurm-block": read_slurm,
    "slurm-yaml": read_slurm_yaml,
    "ibnetdiscover": read_ibnetdiscover,
    "astrasim": read_astrasim,
}
_WRITERS: dict[str, Callable[[Fabric], Exported]] = {
    "toml": write_toml,
    "graphml": write_graphml,
    "csv": write_edges,
    "slurm-tree": write_slurm_tree,
    "slurm-block": write_slurm_block,
    "astrasim": write_astrasim,
    "simai": write_simai,
    "ns3": write_ns3,
}
_LABELS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("toml", "Nest Studio TOML", (".toml",)),
    ("graphml", "GraphML", (".graphml", ".xml")),
    ("csv", "Edge list (CSV)", (".csv",)),
    ("slurm-tree", "Slurm topology.conf, tree", (".conf",)),
    ("slurm-block", "Slurm topology.conf, block", (".conf",)),
    ("slurm-yaml", "Slurm topology.yaml", (".yaml", ".yml")),
    ("ibnetdiscover", "ibnetdiscover output", (".ibnetdiscover", ".topo", ".out", ".txt")),
    ("astrasim", "ASTRA-sim analytical network", (".yaml", ".yml")),
    ("simai", "SimAI topology (ns-3)", (".simai", ".txt")),
    ("ns3", "ASTRA-sim ns-3 physical topology", (".ns3", ".txt")),
)
FORMATS: Mapping[str, Format] = {
    name: Format(name, label, suffixes, name in _READERS, name in _WRITERS)
    for name, label, suffixes in _LABELS
}
"""Every format by name, those that keep everything first."""

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("graphml", re.compile(r"\s*<")),
    ("slurm-block", re.compile(r"(?im)^[ \t]*Block(?:Name|Sizes)[ \t]*=")),
    ("slurm-tree", re.compile(r"(?im)^[ \t]*(?:SwitchName|RingName)[ \t]*=")),
    ("ibnetdiscover", re.compile(r'(?m)^(?:(?:Switch|Ca|Rt)\s+\d+\s+"|switchguid=|caguid=)')),
    ("ibnetdiscover", re.compile(r"# Topology file: generated|#\n# Topology file: generated")),
    ("astrasim", re.compile(r"(?m)^[ \t]*npus_count[ \t]*:")),
    ("slurm-yaml", re.compile(r"(?m)^[ \t]*(?:-[ \t]+)?[\"']?topology[\"']?[ \t]*:")),
    ("csv", re.compile(r'(?m)\A\s*(?:[\w"]+,)*"?(?:a|b)"?(?:,|$)')),
    ("toml", re.compile(r"(?m)^[ \t]*(?:schema|kind)[ \t]*=")),
)
_HEAD = 100_000


def format_of(name: str, text: str) -> str:
    """The format of a file: by its ending where only one has it, otherwise by its content.

    Raises
    ------
    InputError
        If no format fits.
    """
    suffix = PurePath(name).suffix.lower()
    named = [entry.name for entry in FORMATS.values() if entry.reads and suffix in entry.suffixes]
    if len(named) == 1 and suffix != ".txt" and suffix != ".out":
        return named[0]
    head = text[:_HEAD]
    for found, sign in _SIGNS:
        if sign.search(head) if sign.pattern.startswith("(?") else sign.match(head):
            return found
    raise InputError(
        _short(name),
        "must be a fabric file of a known format",
        "something else",
        "known are " + ", ".join(entry.label for entry in FORMATS.values() if entry.reads),
    )


def read_fabric(
    content: bytes, name: str, *, format: str = "", assumed: Assumed | None = None
) -> Imported:
    """A fabric file as a document of the studio's own schema.

    Parameters
    ----------
    content : bytes
        At most `MAX_FILE_BYTES` of UTF-8.
    name : str
        Of the file: its ending helps to tell the format, and messages show it.
    format : str
        One of `FORMATS` that reads; empty: found out.
    assumed : Assumed
        What the file does not state.

    Raises
    ------
    InputError
        For everything that keeps the file from being a fabric.
    """
    short = _short(name)
    text = _decoded(content, short)
    if format and (format not in FORMATS or not FORMATS[format].reads):
        raise _unknown("from", format, [entry.name for entry in FORMATS.values() if entry.reads])
    found = format or format_of(name, text)
    source = Source(text, short, assumed or Assumed())
    document, notes = _READERS[found](source)
    build_fabric(checked(FabricFile, document))
    return Imported(found, document, notes)


def write_fabric(
    fabric: Fabric, format: str, *, document: Mapping[str, Any] | None = None
) -> Exported:
    """A fabric as text of a format, with what the format cannot hold.

    Parameters
    ----------
    format : str
        One of `FORMATS` that writes.
    document : mapping, optional
        What the fabric was built from: TOML is written from it, so that its remarks stay.

    Raises
    ------
    InputError
        For fabrics that the format cannot represent at all.
    """
    if format not in _WRITERS:
        raise _unknown("to", format, list(_WRITERS))
    if format == "toml":
        return write_toml(fabric, document)
    exported = _WRITERS[format](fabric)
    size = len(exported.text.encode())
    if FORMATS[format].reads and size > MAX_FILE_BYTES:
        limit = (
            f"A way back: the studio reads files of {MAX_FILE_BYTES:,} bytes, this has {size:,}."
        )
        exported = Exported(exported.text, (*exported.lost, limit))
    left = unsaid(fabric, document, hosts="slurm" not in format)
    return Exported(exported.text, (*exported.lost, *left))


def _decoded(content: bytes, name: str) -> str:
    text = decoded(content, name)
    if "\0" in text:
        raise InputError(name, "must be text", "a NUL character", "save the file as UTF-8 text")
    if not text.strip():
        raise InputError(name, "must hold a fabric", "empty", "choose another file")
    return text


def _short(name: str) -> str:
    return PurePath(name).name[-60:] or "file"


def _unknown(option: str, name: str, known: list[str]) -> InputError:
    return InputError(option, "must be a known format", name, "pick " + ", ".join(known))
