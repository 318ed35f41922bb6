"""Fabrics from the checked tables of a file: human units become SI, tables become one fabric."""

from __future__ import annotations

from nest_core.errors import InputError
from nest_core.schema import FabricFile, LevelTable
from nest_core.topology.clos import Clos
from nest_core.topology.dragonfly import Dragonfly
from nest_core.topology.graph import Element, GraphFabric, Link
from nest_core.topology.hierarchical import Hierarchical, Tier
from nest_core.topology.torus import Torus
from nest_core.topology.tpu import tpu_slice
from nest_core.units import from_gbps_bytes, from_microseconds

__all__ = ["build_fabric"]

_CLOS = (("clos", "intra_node"), ())
# Per kind: tables that it must have, tables that it may have.
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "hierarchical": (("level",), ()),
    "leaf_spine": _CLOS,
    "fat_tree": _CLOS,
    "rail_optimised": _CLOS,
    "rail_only": _CLOS,
    "dragonfly": (("dragonfly",), ("intra_node",)),
    "torus": (("torus",), ()),
    "tpu_slice": (("tpu_slice",), ()),
    "graph": (("element", "link"), ()),
}
_EVERY = (
    "level", "clos", "intra_node", "dragonfly", "torus", "tpu_slice", "element", "link",
)  # fmt: skip


def build_fabric(file: FabricFile) -> Hierarchical | Clos | Torus | Dragonfly | GraphFabric:
    """The fabric that a file describes.

    Raises
    ------
    InputError
        For tables that the kind does not have or lacks, and for what the fabric refuses.
    """
    required, optional = _TABLES[file.kind]
    for name in _EVERY:
        present = getattr(file, name) is not None
        if name in required and not present:
            # A graph of one device has no links.
            if name == "link":
                continue
            raise InputError(name, f'is required for kind = "{file.kind}"', "absent", "add it")
        if present and name not in required + optional:
            raise InputError(
                name, f'must be absent for kind = "{file.kind}"', "present",
                "remove it or change the kind",
            )  # fmt: skip
    if file.ecmp_seed and file.routing != "ecmp":
        raise InputError(
            "ecmp_seed", 'must be absent or 0 unless routing is "ecmp"', file.ecmp_seed, "remove it"
        )
    if file.missing and file.kind in ("dragonfly", "graph"):
        raise InputError(
            "missing", f'must be empty for kind = "{file.kind}"', file.missing,
            "leave the elements out of the tables",
        )  # fmt: skip
    if file.devices_per_host is not None and file.level is None and file.clos is None:
        raise InputError(
            "devices_per_host", f'must be absent for kind = "{file.kind}"', file.devices_per_host,
            "leave it out: hosts follow from the nodes",
        )  # fmt: skip
    if file.routing == "ecmp" and file.kind in ("hierarchical", "torus", "tpu_slice"):
        raise InputError(
            "routing", f'must be adaptive or shortest_path for kind = "{file.kind}"', "ecmp",
            "hashing needs single links: describe the fabric as a Clos or a graph",
        )  # fmt: skip
    for build in (_hierarchical, _clos, _dragonfly, _torus, _tpu_slice):
        fabric = build(file)
        if fabric is not None:
            return fabric
    return _graph(file)


def _hierarchical(file: FabricFile) -> Hierarchical | None:
    if file.level is None:
        return None
    tiers = tuple(_tier(index, level) for index, level in enumerate(file.level))
    hosts = file.devices_per_host or 0
    return Hierarchical(file.name, tiers, tuple(file.missing), hosts, file.routing)


def _tier(index: int, level: LevelTable) -> Tier:
    if (level.group_size is None) == (level.group_sizes is None):
        both = level.group_size is not None
        raise InputError(
            f"level[{index}].group_size",
            "must be absent where group_sizes is given"
            if both
            else "is required, unless group_sizes lists every group",
            level.group_size if both else "missing",
            "remove one of them" if both else "add it",
        )
    return Tier(
        name=level.name,
        group_size=level.group_size or 0,
        bandwidth_Bps=from_gbps_bytes(level.bandwidth_GBps),
        latency_s=from_microseconds(level.latency_us),
        uplink_per=level.uplink_per,
        oversubscription=level.oversubscription,
        group_sizes=tuple(level.group_sizes or ()),
    )


def _clos(file: FabricFile) -> Clos | None:
    clos, kind = file.clos, file.kind
    if clos is None or file.intra_node is None:
        return None
    if kind not in ("leaf_spine", "fat_tree", "rail_optimised", "rail_only"):
        return None
    return Clos(
        name=file.name,
        kind=kind,
        devices=clos.devices,
        devices_per_node=clos.devices_per_node,
        nics_per_node=clos.nics_per_node,
        nic_bandwidth_Bps=from_gbps_bytes(clos.nic_bandwidth_GBps),
        radix=clos.radix,
        tiers=clos.tiers,
        oversubscription=tuple(clos.oversubscription),
        hop_latency_s=from_microseconds(clos.hop_latency_us),
        intra_bandwidth_Bps=from_gbps_bytes(file.intra_node.bandwidth_GBps),
        intra_latency_s=from_microseconds(file.intra_node.latency_us),
        interconnect=file.intra_node.interconnect,
        planes=clos.planes,
        rails=clos.rails or 0,
        pods=clos.pods,
        oversubscribe=clos.oversubscribe,
        devices_per_host=file.devices_per_host or 0,
        routing=file.routing,
        ecmp_seed=file.ecmp_seed,
        missing=tuple(file.missing),
    )


def _dragonfly(file: FabricFile) -> Dragonfly | None:
    table, node = file.dragonfly, file.intra_node
    if table is None:
        return None
    if node is None and table.devices_per_node > 1:
        raise InputError(
            "intra_node", "is required for nodes of several devices", "absent", "add it"
        )
    nic = table.nic_bandwidth_GBps
    # A node of one device has no inside; its figures are never read.
    inside = nic or table.local_bandwidth_GBps
    return Dragonfly(
        name=file.name,
        routers_per_group=table.routers_per_group,
        nodes_per_router=table.nodes_per_router,
        global_links_per_router=table.global_links_per_router,
        local_bandwidth_Bps=from_gbps_bytes(table.local_bandwidth_GBps),
        global_bandwidth_Bps=from_gbps_bytes(table.global_bandwidth_GBps),
        hop_latency_s=from_microseconds(table.hop_latency_us),
        intra_bandwidth_Bps=from_gbps_bytes(node.bandwidth_GBps if node else inside),
        intra_latency_s=from_microseconds(node.latency_us if node else 0.0),
        interconnect=node.interconnect if node else "switch",
        groups=table.groups or 0,
        devices_per_node=table.devices_per_node,
        nic_bandwidth_Bps=0.0 if nic is None else from_gbps_bytes(nic),
        routing=file.routing,
        ecmp_seed=file.ecmp_seed,
    )


def _torus(file: FabricFile) -> Torus | None:
    if file.torus is None:
        return None
    return Torus(
        file.name,
        tuple(file.torus.shape),
        tuple(file.torus.wrap),
        from_gbps_bytes(file.torus.link_bandwidth_GBps),
        from_microseconds(file.torus.hop_latency_us),
        file.torus.twisted,
        tuple(file.missing),
        file.routing,
    )


def _tpu_slice(file: FabricFile) -> Torus | None:
    table = file.tpu_slice
    if table is None:
        return None
    rate = table.link_bandwidth_GBps
    return tpu_slice(
        file.name,
        table.generation,
        tuple(table.shape),
        twisted=table.twisted,
        hop_latency_s=from_microseconds(table.hop_latency_us),
        link_bandwidth_Bps=0.0 if rate is None else from_gbps_bytes(rate),
        missing=tuple(file.missing),
        routing=file.routing,
    )


def _graph(file: FabricFile) -> GraphFabric:
    return GraphFabric(
        file.name,
        tuple(
            Element(
                entry.id, entry.role, entry.radix or 0, entry.group, entry.x, entry.y, entry.count
            )
            for entry in file.element or ()
        ),
        tuple(
            Link(
                entry.a,
                entry.b,
                from_gbps_bytes(entry.bandwidth_GBps),
                entry.count,
                from_microseconds(entry.latency_us),
            )
            for entry in file.link or ()
        ),
        file.routing,
        file.ecmp_seed,
    )
