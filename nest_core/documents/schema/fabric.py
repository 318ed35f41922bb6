"""The tables of a fabric's file, by kind."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

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
    "ForwardingTable",
    "IntraNodeTable",
    "LevelTable",
    "LinkTable",
    "Oversubscribe",
    "Ratio",
    "Spread",
    "TorusTable",
    "TpuSliceTable",
]

Oversubscribe = Literal["remove_uplinks", "split_radix"]
Spread = Literal["even", "fewest"]
Ratio = Annotated[float, Field(ge=1, le=1e6)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
_RATIO = label("oversubscription", "1:1 is full bisection.", "down : up", 16.0)
_SWITCHES, _NODES, _ROUTES = "Switches and links", "Nodes", "Routing and failures"
Hop = Annotated[NotNegative, label("latency per hop", "A link and its switch.", group=_SWITCHES)]
NodeSize = Annotated[
    Count,
    label(
        "node size",
        "The scale-up domain: 8 of an H100 server, 72 of an NVL72 rack, without a NIC between.",
        unit="devices",
        group=_NODES,
    ),
]
NicCount = Annotated[Count, label("NICs per node", unit="number", group=_NODES)]
NicSpeed = Annotated[Positive, label("NIC speed", "One NIC, one direction.", group=_NODES)]
Extent = Annotated[Count, label("size", unit="devices")]
Wrap = Annotated[bool, label("ring", "Whether the ends are joined.")]


class LevelTable(SchemaTable):
    """One ``[[level]]`` of a hierarchical fabric."""

    name: Annotated[Name, label("name")]
    group_size: Annotated[Count | None, label("node size", unit="devices")] = None
    group_sizes: Annotated[
        Annotated[list[Count], Field(min_length=1, max_length=65_536)] | None,
        label("sizes", "Of every group in order, where they differ, with commas."),
    ] = None
    names: Annotated[
        list[Name],
        Field(max_length=65_536),
        label("names", "Of every group in order, with commas; empty: numbered."),
    ] = []
    uplink_per: Annotated[
        Literal["device", "child"],
        label("uplink", "Of each device, as NICs are, or one of each child for all in it."),
    ] = "device"
    bandwidth_GBps: Annotated[Positive, label("link speed")]
    oversubscription: Annotated[Positive, _RATIO] = 1.0
    latency_us: Annotated[NotNegative, label("latency")]


class ClosTable(SchemaTable):
    """``[clos]``."""

    devices: Annotated[
        Count, label("devices", "In whole nodes; many leaves need a fabric with another tier.")
    ]
    devices_per_node: NodeSize
    nics_per_node: NicCount
    nic_bandwidth_GBps: NicSpeed
    radix: Annotated[
        Count, label("switch radix", "At a NIC's speed over the planes.", "ports", group=_SWITCHES)
    ]
    tiers: Annotated[
        int,
        Field(ge=1, le=3),
        label("switch tiers", "Above the node.", unit="number", group=_SWITCHES),
    ]
    oversubscription: Annotated[list[Annotated[Ratio, _RATIO]], Field(max_length=2)] = []
    hop_latency_us: Hop
    planes: Annotated[
        int,
        Field(ge=1, le=64),
        label(
            "planes",
            "Equal, separate switches; each NIC divides over them.",
            unit="number",
            group=_SWITCHES,
        ),
    ] = 1
    rails: Annotated[
        Count | None,
        label(
            "rails",
            "Leaves that a node hangs on; empty: as many as its NICs and devices allow.",
            unit="number",
            group=_NODES,
        ),
    ] = None
    spine_link_GBps: Annotated[
        Positive | None,
        label(
            "spine link speed",
            "Of one from a leaf; 2, 4 or 8 times that of a NIC over the planes, which takes as "
            "many ports. Empty: that of a NIC.",
            group=_SWITCHES,
        ),
    ] = None
    core_link_GBps: Annotated[
        Positive | None,
        label(
            "core link speed",
            "Of one from the spine of a pod. Empty: that of links to spines.",
            group=_SWITCHES,
        ),
    ] = None
    pods: Annotated[
        Literal["units", "rails"],
        label("pods of", "Leaves of whole units of nodes, or of one rail.", group=_SWITCHES),
    ] = "units"
    oversubscribe: Annotated[
        Oversubscribe,
        label(
            "oversubscription",
            "A fixed leaf loses uplinks, its nodes stay; or the ports of a switch are split anew, "
            "so that a leaf holds more nodes and there are fewer of them.",
            group=_SWITCHES,
        ),
    ] = "remove_uplinks"
    spread: Annotated[
        Spread | None,
        label(
            "spines",
            "As many links from a leaf to each; or the fewest, for adaptive routing. Empty: the "
            "fewest of three tiers, even in two or with fixed routing.",
            group=_SWITCHES,
        ),
    ] = None
    nodes_per_rack: Annotated[
        Count | None,
        label(
            "nodes per rack",
            "Empty: as many as its power and height allow.",
            unit="number",
            group=_NODES,
        ),
    ] = None


class IntraNodeTable(SchemaTable):
    """``[intra_node]``."""

    interconnect: Annotated[
        Literal["switch", "mesh", "ring", "hybrid_cube_mesh"],
        label("links in the node", "What joins its devices.", group=_NODES),
    ] = "switch"
    bandwidth_GBps: Annotated[
        Positive, label("link speed in the node", "Of a device, one direction.", group=_NODES)
    ]
    latency_us: Annotated[NotNegative, label("latency in the node", group=_NODES)]


class TorusTable(SchemaTable):
    """``[torus]``."""

    shape: Annotated[list[Extent], Field(min_length=2, max_length=3)]
    wrap: Annotated[list[Wrap], Field(min_length=2, max_length=3)]
    link_bandwidth_GBps: Annotated[Positive, label("link speed", group=_SWITCHES)]
    hop_latency_us: Hop
    twisted: Annotated[bool, label("twisted", "k × k × 2k or k × 2k × 2k.")] = False
    nics_per_device: Annotated[
        Count | None,
        label(
            "NICs per device",
            "Whose ports are the links; empty: its own links.",
            unit="number",
            group=_NODES,
        ),
    ] = None
    nic_bandwidth_GBps: Annotated[
        Positive | None, label("NIC speed", "With NICs per device alone.", group=_NODES)
    ] = None
    devices_per_node: NodeSize = 1


class TpuSliceTable(SchemaTable):
    """``[tpu_slice]``: a torus whose wrap and link rate follow from the generation."""

    generation: Annotated[Literal["v4", "v5p", "v5e", "v6e", "v7x"], label("TPU generation")]
    shape: Annotated[list[Extent], Field(min_length=2, max_length=3)]
    twisted: Annotated[bool, label("twisted", "k × k × 2k or k × 2k × 2k, v4 and v5p.")] = False
    link_bandwidth_GBps: Annotated[
        Positive | None, label("link speed", "Empty: the generation's.", group=_SWITCHES)
    ] = None
    hop_latency_us: Hop = 1.0


class DragonflyTable(SchemaTable):
    """``[dragonfly]``."""

    routers_per_group: Annotated[Count, label("routers per group", unit="number", group=_SWITCHES)]
    nodes_per_router: Annotated[Count, label("nodes per router", unit="number", group=_NODES)]
    global_links_per_router: Annotated[
        Count, label("global links per router", unit="number", group=_SWITCHES)
    ]
    local_bandwidth_GBps: Annotated[Positive, label("local link speed", group=_SWITCHES)]
    global_bandwidth_GBps: Annotated[Positive, label("global link speed", group=_SWITCHES)]
    hop_latency_us: Hop
    groups: Annotated[
        Count | None,
        label("groups", "Empty: as many as global links join.", unit="number", group=_SWITCHES),
    ] = None
    devices_per_node: NodeSize = 1
    nics_per_node: NicCount = 1
    nic_bandwidth_GBps: Annotated[
        Positive | None, label("NIC speed", "Empty: that of a local link.", group=_NODES)
    ] = None


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


class ForwardingTable(SchemaTable):
    """One ``[[forwarding]]`` of a graph: a switch of an InfiniBand subnet, and its table.

    Each of its ``ports`` with a link is a number, the first address of what hangs there (0 for a
    switch) and the element, nothing for what is no part of the fabric: ``"5 30 node04 nic0"``.
    ``table`` is the port to every address from 0 on, a byte each, as zlib packs them, in base 64;
    empty: not known.
    """

    switch: Name
    guid: Annotated[str, Field(pattern=r"^0x[0-9a-f]{1,16}$")]
    ports: Annotated[
        list[Annotated[str, Field(pattern=r"^[1-9]\d{0,2} \d{1,5} .{0,200}$")]],
        Field(max_length=254),
    ]
    table: Annotated[str, Field(max_length=100_000)] = ""


class FabricFile(SchemaTable):
    """A fabric; ``kind`` says which of the tables it has."""

    version: Literal[1] = Field(alias="schema")
    name: Name
    kind: Annotated[
        Literal[
            "hierarchical",
            "leaf_spine",
            "fat_tree",
            "rail_optimised",
            "rail_only",
            "dragonfly",
            "torus",
            "tpu_slice",
            "graph",
        ],
        label("kind", "Of those that the same switches and nodes can be wired as."),
    ]
    assumed_inside_GBps: Positive | None = None
    """Rate of links inside nodes that the fabric's source does not state."""
    optics: Annotated[dict[Name, Name], Field(max_length=64)] = {}
    source: str = ""
    level: Annotated[list[LevelTable], Field(max_length=16)] | None = None
    clos: ClosTable | None = None
    intra_node: IntraNodeTable | None = None
    dragonfly: DragonflyTable | None = None
    torus: TorusTable | None = None
    tpu_slice: TpuSliceTable | None = None
    devices_per_host: Annotated[
        Count | None,
        label(
            "host size",
            "Devices of one operating system (4 of an NVL72 rack); empty: a node is one host.",
            unit="devices",
            group=_NODES,
        ),
    ] = None
    routing: Annotated[
        Literal["adaptive", "shortest_path", "ecmp", "tables", "minhop", "updn", "dor"],
        label("routing", "How flows choose among paths.", group=_ROUTES),
    ] = "adaptive"

    @field_validator("routing", mode="before")
    @classmethod
    def _engine(cls, value: object) -> object:
        """Say what to do for engines of OpenSM that are not followed by name."""
        if value in ("dfsssp", "dnup", "file", "ftree", "lash", "nue", "sssp", "torus-2QoS"):
            raise ValueError(
                "an engine of OpenSM that is followed by name (minhop, updn, dor), or tables: save"
                " what dump_lfts prints and read it with convert --tables"
            )
        return value

    ecmp_seed: Annotated[
        int, Field(ge=0, le=2**32 - 1), label("hash seed", "Of ECMP.", unit="number", group=_ROUTES)
    ] = 0
    missing: Annotated[
        list[Name],
        Field(max_length=65_536),
        label("failed", "By name and number from 0, with commas: node 17, leaf 3.", group=_ROUTES),
    ] = []
    element: Annotated[list[ElementTable], Field(max_length=400_000)] | None = None
    link: Annotated[list[LinkTable], Field(max_length=400_000)] | None = None
    forwarding: Annotated[list[ForwardingTable], Field(max_length=16_384)] | None = None
