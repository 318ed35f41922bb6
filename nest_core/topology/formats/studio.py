"""The studio's own files: a fabric's document from its value, and TOML in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest_core.presets import parse_toml
from nest_core.toml_text import toml_document
from nest_core.topology import Clos, Dragonfly, Fabric, GraphFabric, Hierarchical, Torus
from nest_core.topology.formats.values import (
    Document,
    Exported,
    Source,
    gigabytes,
    microseconds,
)

__all__ = ["document_of", "read_toml", "write_toml"]


def read_toml(source: Source) -> tuple[Document, tuple[str, ...]]:
    """The document as it stands; `nest_core.schema` checks it."""
    return parse_toml(source.text, source.name), ()


def write_toml(fabric: Fabric, document: Mapping[str, Any] | None = None) -> Exported:
    """The fabric's document as TOML; without one, `document_of` the fabric. Nothing is lost."""
    return Exported(toml_document(document_of(fabric) if document is None else document), ())


def document_of(fabric: Fabric) -> Document:
    """The inverse of `nest_core.topology.files.build_fabric`.

    A slice of TPUs has become a torus when it was built, and is written as one.
    """
    head: Document = {"schema": 1, "name": fabric.name}
    if isinstance(fabric, Clos | Hierarchical) and fabric.devices_per_host:
        head["devices_per_host"] = fabric.devices_per_host
    if isinstance(fabric, Hierarchical):
        return head | _hierarchical(fabric)
    if isinstance(fabric, Clos):
        return head | _clos(fabric)
    if isinstance(fabric, Torus):
        return head | _torus(fabric)
    if isinstance(fabric, Dragonfly):
        return head | _dragonfly(fabric)
    return head | _graph(fabric)


def _missing(fabric: Hierarchical | Clos | Torus) -> Document:
    return {"missing": list(fabric.missing)} if fabric.missing else {}


def _fixed(fabric: Hierarchical | Torus) -> Document:
    """What a fabric says of its routing, which changes nothing there."""
    return {} if fabric.routing == "adaptive" else {"routing": fabric.routing}


def _routing(fabric: Clos | Dragonfly | GraphFabric) -> Document:
    seed = {"ecmp_seed": fabric.ecmp_seed} if fabric.ecmp_seed else {}
    return {"routing": fabric.routing} | seed


def _hierarchical(fabric: Hierarchical) -> Document:
    levels = []
    for tier in fabric.tiers:
        size: Document = {"group_size": tier.group_size}
        if tier.group_sizes:
            size = {"group_sizes": list(tier.group_sizes)}
        levels.append(
            {"name": tier.name}
            | size
            | {
                "uplink_per": tier.uplink_per,
                "bandwidth_GBps": gigabytes(tier.bandwidth_Bps),
                "oversubscription": tier.oversubscription,
                "latency_us": microseconds(tier.latency_s),
            }
        )
    return {"kind": "hierarchical"} | _fixed(fabric) | _missing(fabric) | {"level": levels}


def _clos(fabric: Clos) -> Document:
    clos: Document = {
        "devices": fabric.slots,
        "devices_per_node": fabric.devices_per_node,
        "nics_per_node": fabric.nics_per_node,
        "nic_bandwidth_GBps": gigabytes(fabric.nic_bandwidth_Bps),
        "radix": fabric.radix,
        "tiers": fabric.tiers,
        "oversubscription": list(fabric.oversubscription),
        "hop_latency_us": microseconds(fabric.hop_latency_s),
    }
    if fabric.planes > 1:
        clos["planes"] = fabric.planes
    if fabric.kind in ("rail_optimised", "rail_only"):
        clos["rails"] = fabric.rails
    if fabric.pods != "units":
        clos["pods"] = fabric.pods
    if fabric.oversubscribe != "remove_uplinks":
        clos["oversubscribe"] = fabric.oversubscribe
    tables = {"clos": clos, "intra_node": _intra_node(fabric)}
    return {"kind": fabric.kind} | _routing(fabric) | _missing(fabric) | tables


def _intra_node(fabric: Clos | Dragonfly) -> Document:
    return {
        "interconnect": fabric.interconnect,
        "bandwidth_GBps": gigabytes(fabric.intra_bandwidth_Bps),
        "latency_us": microseconds(fabric.intra_latency_s),
    }


def _torus(fabric: Torus) -> Document:
    torus = {
        "shape": list(fabric.shape),
        "wrap": list(fabric.wrap),
        "link_bandwidth_GBps": gigabytes(fabric.link_bandwidth_Bps),
        "hop_latency_us": microseconds(fabric.hop_latency_s),
    }
    if fabric.twisted:
        torus["twisted"] = True
    return {"kind": "torus"} | _fixed(fabric) | _missing(fabric) | {"torus": torus}


def _dragonfly(fabric: Dragonfly) -> Document:
    table = {
        "routers_per_group": fabric.routers_per_group,
        "nodes_per_router": fabric.nodes_per_router,
        "global_links_per_router": fabric.global_links_per_router,
        "local_bandwidth_GBps": gigabytes(fabric.local_bandwidth_Bps),
        "global_bandwidth_GBps": gigabytes(fabric.global_bandwidth_Bps),
        "hop_latency_us": microseconds(fabric.hop_latency_s),
        "groups": fabric.groups,
        "devices_per_node": fabric.devices_per_node,
        "nic_bandwidth_GBps": gigabytes(fabric.nic_bandwidth_Bps),
    }
    tables = {"dragonfly": table, "intra_node": _intra_node(fabric)}
    return {"kind": "dragonfly"} | _routing(fabric) | tables


def _graph(fabric: GraphFabric) -> Document:
    elements = []
    for element in fabric.elements:
        entry: Document = {"id": element.id, "role": element.role}
        every = {
            "radix": element.radix or None, "count": None if element.count == 1 else element.count,
            "group": element.group or None, "x": element.x, "y": element.y,
        }  # fmt: skip
        elements.append(entry | {key: value for key, value in every.items() if value is not None})
    links = [
        {
            "a": link.a,
            "b": link.b,
            "bandwidth_GBps": gigabytes(link.bandwidth_Bps),
            "count": link.count,
            "latency_us": microseconds(link.latency_s),
        }
        for link in fabric.links
    ]
    tables = {"element": elements} | ({"link": links} if links else {})
    return {"kind": "graph"} | _routing(fabric) | tables
