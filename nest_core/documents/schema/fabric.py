"""The tables of a fabric's file, by kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nest_core.documents.schema.checking import (
    Count,
    Name,
    NotNegative,
    Positive,
    SchemaTable,
    label,
)

__all__ = [
    "ClosTable",
    "DragonflyTable",
    "ElementTable",
    "FabricFile",
    "IntraNodeTable",
    "LevelTable",
    "LinkTable",
    "Oversubscribe",
    "Ratio",
    "TorusTable",
    "TpuSliceTable",
]

Oversubscribe = Literal["remove_uplinks", "split_radix"]
Ratio = Annotated[float, Field(ge=1, le=1e6)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
_RATIO = label("oversubscription", "1:1 is full bisection.", "down : up", 16.0)


class LevelTable(SchemaTable):
    """One ``[[level]]`` of a hierarchical fabric."""

    name: Name
    group_size: Annotated[Count | None, label("node size", unit="devices")] = None
    group_sizes: Annotated[list[Count], Field(min_length=1, max_length=65_536)] | None = None
    uplink_per: Literal["device", "child"] = "device"
    bandwidth_GBps: Annotated[Positive, label("link speed")]
    oversubscription: Annotated[Positive, _RATIO] = 1.0
    latency_us: NotNegative


class ClosTable(SchemaTable):
    """``[clos]``."""

    devices: Annotated[
        Count, label("devices", "In whole nodes; many leaves need a fabric with another tier.")
    ]
    devices_per_node: Annotated[Count, label("node size", unit="devices")]
    nics_per_node: Count
    nic_bandwidth_GBps: Annotated[Positive, label("NIC speed")]
    radix: Count
    tiers: Annotated[int, Field(ge=1, le=3)]
    oversubscription: Annotated[list[Annotated[Ratio, _RATIO]], Field(max_length=2)] = []
    hop_latency_us: NotNegative
    planes: Annotated[int, Field(ge=1, le=64)] = 1
    rails: Count | None = None
    pods: Literal["units", "rails"] = "units"
    oversubscribe: Annotated[
        Oversubscribe,
        label(
            "oversubscription",
            "A fixed leaf loses uplinks, its nodes stay; or the ports of a switch are split anew, "
            "so that a leaf holds more nodes and there are fewer of them.",
        ),
    ] = "remove_uplinks"


class IntraNodeTable(SchemaTable):
    """``[intra_node]``."""

    interconnect: Literal["switch", "mesh", "ring", "hybrid_cube_mesh"] = "switch"
    bandwidth_GBps: Annotated[Positive, label("link speed in the node")]
    latency_us: NotNegative


class TorusTable(SchemaTable):
    """``[torus]``."""

    shape: Annotated[list[Count], Field(min_length=2, max_length=3)]
    wrap: Annotated[list[bool], Field(min_length=2, max_length=3)]
    link_bandwidth_GBps: Annotated[Positive, label("link speed")]
    hop_latency_us: NotNegative
    twisted: bool = False
    nics_per_device: Count | None = None
    nic_bandwidth_GBps: Positive | None = None
    devices_per_node: Count = 1


class TpuSliceTable(SchemaTable):
    """``[tpu_slice]``: a torus whose wrap and link rate follow from the generation."""

    generation: Literal["v4", "v5p", "v5e", "v6e"]
    shape: Annotated[list[Count], Field(min_length=2, max_length=3)]
    twisted: bool = False
    link_bandwidth_GBps: Annotated[Positive | None, label("link speed")] = None
    hop_latency_us: NotNegative = 1.0


class DragonflyTable(SchemaTable):
    """``[dragonfly]``."""

    routers_per_group: Count
    nodes_per_router: Count
    global_links_per_router: Count
    local_bandwidth_GBps: Annotated[Positive, label("local link speed")]
    global_bandwidth_GBps: Annotated[Positive, label("global link speed")]
    hop_latency_us: NotNegative
    groups: Count | None = None
    devices_per_node: Count = 1
    nics_per_node: Count = 1
    nic_bandwidth_GBps: Positive | None = None


class ElementTable(SchemaTable):
    """One ``[[element]]`` of a graph; ``group``, ``x`` and ``y`` are for drawings.

    ``count`` equal NICs or switches may be drawn as one.
    """

    id: Name
    role: Literal["device", "nic", "switch"]
    radix: Count | None = None
    count: Count = 1
    group: Annotated[str, Field(max_length=400)] = ""
    x: Coordinate | None = None
    y: Coordinate | None = None


class LinkTable(SchemaTable):
    """One ``[[link]]`` of a graph."""

    a: Name
    b: Name
    bandwidth_GBps: Positive
    count: Count = 1
    latency_us: NotNegative = 0.0


class FabricFile(SchemaTable):
    """A fabric; ``kind`` says which of the tables it has."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    kind: Literal[
        "hierarchical",
        "leaf_spine",
        "fat_tree",
        "rail_optimised",
        "rail_only",
        "dragonfly",
        "torus",
        "tpu_slice",
        "graph",
    ]
    routing: Literal["adaptive", "shortest_path", "ecmp"] = "adaptive"
    ecmp_seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    missing: Annotated[list[Name], Field(max_length=65_536)] = []
    devices_per_host: Count | None = None
    optics: Annotated[dict[Name, Name], Field(max_length=64)] = {}
    source: str = ""
    level: Annotated[list[LevelTable], Field(max_length=16)] | None = None
    clos: ClosTable | None = None
    intra_node: IntraNodeTable | None = None
    dragonfly: DragonflyTable | None = None
    torus: TorusTable | None = None
    tpu_slice: TpuSliceTable | None = None
    element: Annotated[list[ElementTable], Field(max_length=400_000)] | None = None
    link: Annotated[list[LinkTable], Field(max_length=400_000)] | None = None
