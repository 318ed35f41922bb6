"""Fabrics from the checked tables of a file: the registry of kinds, and one fabric of one file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pydantic import BaseModel

from nest_core.documents import from_gbps_bytes, require
from nest_core.documents.schema import FabricFile, add_kind
from nest_core.fabric.clos import Clos
from nest_core.fabric.dragonfly import Dragonfly
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.graph import GraphFabric
from nest_core.fabric.hierarchical import Hierarchical
from nest_core.fabric.torus import Torus, slice_from_file

__all__ = ["KINDS", "Kind", "build_fabric", "register"]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the files of a kind are read.

    Parameters
    ----------
    read : callable (FabricFile, *tables) -> Fabric
        Tables, first the required ones, become the fabric, human units SI.
    tables, optional : tuple of str
        Those that its files must have, and may have.
    missing, hosts, optics : bool
        Whether its files may say ``missing``, ``devices_per_host`` and ``[optics]``.
    routed : bool
        As `Fabric.routed`: whether ``routing = "ecmp"`` means something.
    """

    read: Callable[..., Fabric]
    tables: tuple[str, ...]
    optional: tuple[str, ...] = ()
    missing: bool = False
    hosts: bool = False
    optics: bool = False
    routed: bool = True


_CLOS = Kind(Clos.from_file, ("clos", "intra_node"), missing=True, hosts=True, optics=True)
KINDS: dict[str, Kind] = {
    "hierarchical": Kind(
        Hierarchical.from_file, ("level",), missing=True, hosts=True, routed=False
    ),
    "leaf_spine": _CLOS,
    "fat_tree": _CLOS,
    "rail_optimised": _CLOS,
    "rail_only": _CLOS,
    "dragonfly": Kind(Dragonfly.from_file, ("dragonfly",), ("intra_node",), optics=True),
    "torus": Kind(Torus.from_file, ("torus",), missing=True, routed=False),
    "tpu_slice": Kind(slice_from_file, ("tpu_slice",), missing=True, routed=False),
    # A graph of one device has no links.
    "graph": Kind(GraphFabric.from_file, ("element",), ("link", "forwarding")),
}


def register(name: str, kind: Kind, tables: Mapping[str, type[BaseModel]]) -> None:
    """Make files of one more kind readable.

    Parameters
    ----------
    name : str
        What ``kind`` says in such files.
    tables : mapping of str to type
        The tables that no kind had before, by their name in the file.
    """
    add_kind(name, tables)
    KINDS[name] = kind


def build_fabric(file: FabricFile) -> Fabric:
    """Return the fabric that a file describes.

    Raises
    ------
    InputError
        For tables that the kind does not have or lacks, and for what the fabric refuses.
    """
    kind = KINDS[file.kind]
    every = (name for kind_of in KINDS.values() for name in (*kind_of.tables, *kind_of.optional))
    for name in dict.fromkeys(every):
        present = getattr(file, name) is not None
        require(
            name not in kind.tables or present,
            name,
            f'is required for kind = "{file.kind}"',
            "absent",
            "add it",
        )
        require(
            not present or name in kind.tables + kind.optional,
            name,
            f'must be absent for kind = "{file.kind}"',
            "present",
            "remove it or change the kind",
        )
    for rule in (
        (
            not file.ecmp_seed or file.routing == "ecmp",
            "ecmp_seed",
            'must be absent or 0 unless routing is "ecmp"',
            file.ecmp_seed,
            "remove it",
        ),
        (
            not file.missing or kind.missing,
            "missing",
            f'must be empty for kind = "{file.kind}"',
            file.missing,
            "leave the elements out of the tables",
        ),
        (
            file.devices_per_host is None or kind.hosts,
            "devices_per_host",
            f'must be absent for kind = "{file.kind}"',
            file.devices_per_host,
            "leave it out: hosts follow from the nodes",
        ),
        (
            not file.optics or kind.optics,
            "optics",
            f'must be absent for kind = "{file.kind}"',
            ", ".join(file.optics),
            "name a kind for all tiers in the price list (cabling.media)",
        ),
        (
            file.routing in ("adaptive", "shortest_path") or kind.routed,
            "routing",
            f'must be adaptive or shortest_path for kind = "{file.kind}"',
            file.routing,
            "hashing and tables need single links: describe the fabric as a Clos or a graph",
        ),
        (
            file.routing != "tables" or file.kind == "graph",
            "routing",
            f'must not be tables for kind = "{file.kind}", which holds none',
            file.routing,
            "pick an engine of OpenSM, or read ibnetdiscover's output with convert --tables",
        ),
    ):
        require(*rule)
    fabric = kind.read(file, *(getattr(file, name) for name in (*kind.tables, *kind.optional)))
    assumed = file.assumed_inside_GBps
    return replace(fabric, assumed_inside_Bps=from_gbps_bytes(assumed)) if assumed else fabric
