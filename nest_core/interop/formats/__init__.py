"""Fabric files of other programs: read into the studio's own documents, written from fabrics.

Syntax and sources stand in the modules, one per format. `read_fabric` finds the format, refuses
what is too large, too deep or unclear with one sentence, and returns a document that has been
built once, so that it is valid. `write_fabric` says what a format cannot hold.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from nest_core.documents import (
    MAX_FILE_BYTES,
    InputError,
    decoded,
    parse_toml,
    require,
    toml_document,
)
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.interop.formats.astrasim import read_astrasim, write_astrasim
from nest_core.interop.formats.edges import read_edges, write_edges
from nest_core.interop.formats.graphml import read_graphml, write_graphml
from nest_core.interop.formats.ibnetdiscover import read_ibnetdiscover
from nest_core.interop.formats.infragraph import read_infragraph, write_infragraph
from nest_core.interop.formats.lfts import TABLE_START
from nest_core.interop.formats.ns3 import write_ns3, write_simai
from nest_core.interop.formats.slurm import read_slurm, write_slurm_block, write_slurm_tree
from nest_core.interop.formats.slurm_yaml import read_slurm_yaml
from nest_core.interop.formats.values import (
    Assumed,
    FabricText,
    ImportedFabric,
    Reading,
    Source,
    unsaid,
)

__all__ = [
    "FORMATS",
    "TABLE_START",
    "Assumed",
    "FabricText",
    "Format",
    "ImportedFabric",
    "format_of",
    "read_fabric",
    "write_fabric",
]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Parameters
    ----------
    name, label : str
        For programs, for people.
    suffixes : tuple of str
        Endings of file names, with the dot; several formats may share one.
    reads : callable (Source) -> Reading, or None
    writes : callable (Fabric) -> FabricText, or None
    """

    name: str
    label: str
    suffixes: tuple[str, ...]
    reads: Callable[[Source], Reading] | None = None
    writes: Callable[[Fabric], FabricText] | None = None


FORMATS: Mapping[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            "toml",
            "Nest Studio TOML",
            (".toml",),
            lambda source: (parse_toml(source.text, source.name), ()),
            lambda fabric: FabricText(toml_document(fabric.document()), ()),
        ),
        Format("graphml", "GraphML", (".graphml", ".xml"), read_graphml, write_graphml),
        Format("csv", "Edge list (CSV)", (".csv",), read_edges, write_edges),
        Format("slurm-tree", "Slurm topology.conf, tree", (".conf",), read_slurm, write_slurm_tree),
        Format(
            "slurm-block", "Slurm topology.conf, block", (".conf",), read_slurm, write_slurm_block
        ),
        Format("slurm-yaml", "Slurm topology.yaml", (".yaml", ".yml"), read_slurm_yaml),
        Format(
            "ibnetdiscover",
            "ibnetdiscover output",
            (".ibnetdiscover", ".topo", ".out", ".txt"),
            read_ibnetdiscover,
        ),
        Format(
            "astrasim",
            "ASTRA-sim analytical network",
            (".yaml", ".yml"),
            read_astrasim,
            write_astrasim,
        ),
        Format(
            "infragraph",
            "InfraGraph",
            (".json", ".yaml", ".yml"),
            read_infragraph,
            write_infragraph,
        ),
        Format("simai", "SimAI topology (ns-3)", (".simai", ".txt"), writes=write_simai),
        Format("ns3", "ASTRA-sim ns-3 physical topology", (".ns3", ".txt"), writes=write_ns3),
    )
}
"""Every format by name, those that keep everything first."""

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("graphml", re.compile(r"\s*<")),
    ("slurm-block", re.compile(r"(?im)^[ \t]*Block(?:Name|Sizes)[ \t]*=")),
    ("slurm-tree", re.compile(r"(?im)^[ \t]*(?:SwitchName|RingName)[ \t]*=")),
    ("ibnetdiscover", re.compile(r'(?m)^(?:(?:Switch|Ca|Rt)\s+\d+\s+"|switchguid=|caguid=)')),
    ("ibnetdiscover", re.compile(r"# Topology file: generated|#\n# Topology file: generated")),
    ("infragraph", re.compile(r"(?m)^[ \t{\"']*(?:devices|instances)[\"']?[ \t]*:")),
    ("astrasim", re.compile(r"(?m)^[ \t]*npus_count[ \t]*:")),
    ("slurm-yaml", re.compile(r"(?m)^[ \t]*(?:-[ \t]+)?[\"']?topology[\"']?[ \t]*:")),
    ("csv", re.compile(r'(?m)\A\s*(?:[\w"]+,)*"?(?:a|b)"?(?:,|$)')),
    ("toml", re.compile(r"(?m)^[ \t]*(?:schema|kind)[ \t]*=")),
)
_HEAD = 100_000


def format_of(name: str, text: str) -> str:
    """Return the format of a file: by its ending where only one has it, else by its content.

    Raises
    ------
    InputError
        If no format fits.
    """
    suffix = PurePath(name).suffix.lower()
    readable = [entry for entry in FORMATS.values() if entry.reads]
    fitting = [entry.name for entry in readable if suffix in entry.suffixes]
    if len(fitting) == 1 and suffix not in (".txt", ".out"):
        return fitting[0]
    head = text[:_HEAD]
    for format, sign in _SIGNS:
        if sign.search(head) if sign.pattern.startswith("(?") else sign.match(head):
            return format
    raise InputError(
        _short(name),
        "must be a fabric file of a known format",
        "something else",
        f"known are {', '.join(entry.label for entry in readable)}; what nvidia-smi topo and"
        " nccl-tests print describes nodes and is for nest-studio inspect",
    )


def read_fabric(
    content: bytes,
    name: str,
    *,
    format: str = "",
    assumed: Assumed | None = None,
    nodes: tuple[str, ...] = (),
    tables: bytes = b"",
) -> ImportedFabric:
    """Read a fabric file as a document of the studio's own schema.

    Parameters
    ----------
    content : bytes
        At most `MAX_FILE_BYTES` of UTF-8.
    name : str
        Of the file: its ending helps to tell the format, and messages show it.
    format : str
        One of `FORMATS` that reads; empty: by ending and content.
    assumed : Assumed
        What the file does not state.
    nodes : tuple of str
        Which of a subnet's hosts have devices, where something else lists them.
    tables : bytes
        Forwarding tables of the subnet's switches, as ``dump_lfts`` prints them.

    Raises
    ------
    InputError
        For everything that keeps the file from being a fabric.
    """
    short = _short(name)
    text = decoded(content, short)
    require(
        text.strip() and "\0" not in text,
        short,
        "must hold a fabric as text",
        "binary" if text.strip() else "empty",
        "choose another file, or save it as UTF-8 text",
    )
    readers = {entry.name: entry.reads for entry in FORMATS.values() if entry.reads}
    require(
        not format or format in readers,
        "from",
        "must be a known format",
        format,
        "pick " + ", ".join(readers),
    )
    require(
        not text.startswith(TABLE_START),
        short,
        "must hold a topology, with forwarding tables beside it or behind it",
        "tables alone",
        "give what ibnetdiscover prints of the same subnet first",
    )
    chosen = format or format_of(name, text)
    require(
        not tables or chosen == "ibnetdiscover",
        "tables",
        "must come beside what ibnetdiscover prints",
        FORMATS[chosen].label,
        "leave them out",
    )
    document, notes = readers[chosen](Source(text, short, assumed or Assumed(), nodes, tables))
    build_fabric(checked(FabricFile, document))
    return ImportedFabric(chosen, document, notes)


def write_fabric(
    fabric: Fabric, format: str, *, document: Mapping[str, Any] | None = None
) -> FabricText:
    """Return a fabric as text of a format, with what the format cannot hold.

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
    writers = {entry.name: entry.writes for entry in FORMATS.values() if entry.writes}
    require(format in writers, "to", "must be a known format", format, "pick " + ", ".join(writers))
    if format == "toml" and document is not None:
        return FabricText(toml_document(document), ())
    written = writers[format](fabric)
    if format == "toml":
        return written
    lost = written.lost
    size = len(written.text.encode())
    if FORMATS[format].reads and size > MAX_FILE_BYTES:
        limit = f"the studio reads files of {MAX_FILE_BYTES:,} bytes, this has {size:,}."
        lost = (*lost, f"A way back: {limit}")
    return FabricText(written.text, (*lost, *unsaid(fabric, document, hosts="slurm" not in format)))


def _short(name: str) -> str:
    return PurePath(name).name[-60:] or "file"
