"""Fabrics of every kind, small enough to enumerate: at most 128 devices each."""

from __future__ import annotations

from typing import Any, Literal

from nest_core.fabric import Clos, Fabric, Hierarchical, Tier, Torus

__all__ = [
    "CLOS",
    "EVERY",
    "EXPLICIT",
    "HIERARCHIES",
    "NESTED",
    "RAILS",
    "TORI",
    "TREES",
    "TWISTED",
    "UNEVEN",
    "clos",
    "rails",
    "torus",
    "tree",
]

Owner = Literal["device", "child"]


def tree(
    *rows: tuple[int, float, float, Owner, float], sizes: dict[int, tuple[int, ...]] | None = None
) -> Hierarchical:
    """Rows of (group size, GB/s of an uplink, latency in us, owner, oversubscription)."""
    return Hierarchical(
        "tree",
        tuple(
            Tier(
                f"tier {number}",
                0 if number in (sizes or {}) else size,
                speed * 1e9,
                latency * 1e-6,
                owner,
                ratio,
                (sizes or {}).get(number, ()),
            )
            for number, (size, speed, latency, owner, ratio) in enumerate(rows)
        ),
    )


def clos(
    devices: int,
    *,
    per_node: int = 8,
    nics: int = 8,
    radix: int = 32,
    tiers: int = 2,
    ratios: tuple[float, ...] = (1.0,),
    **changes: Any,
) -> Clos:
    """NICs of 50 GB/s, 0.6 us per hop; 450 GB/s and 0.5 us inside a node."""
    figures: dict[str, Any] = {
        "name": "clos",
        "kind": "leaf_spine",
        "devices": devices,
        "devices_per_node": per_node,
        "nics_per_node": nics,
        "nic_bandwidth_Bps": 50e9,
        "radix": radix,
        "tiers": tiers,
        "oversubscription": ratios[: tiers - 1],
        "hop_latency_s": 0.6e-6,
        "intra_bandwidth_Bps": 450e9,
        "intra_latency_s": 0.5e-6,
    }
    return Clos(**(figures | changes))


def rails(devices: int = 32, **changes: Any) -> Clos:
    """Nodes of four devices on four rails; a unit has four nodes and a leaf per rail."""
    figures = {"per_node": 4, "nics": 4, "radix": 8, "kind": "rail_optimised"}
    return clos(devices, **(figures | changes))


def torus(shape: tuple[int, ...], wrap: tuple[bool, ...], **changes: Any) -> Torus:
    """Links of 50 GB/s, 1 us per hop."""
    return Torus("torus", shape, wrap, 50e9, 1e-6, **changes)


HIERARCHIES: dict[str, Hierarchical] = {
    "one switch": tree((8, 450, 0.5, "device", 1)),
    "a NIC per device": tree((8, 900, 0.1, "device", 1), (4, 50, 0.2, "device", 1)),
    "the paper's uplinks": tree(
        (8, 900, 0.1, "device", 1), (4, 100, 0.2, "child", 1), (2, 400, 0.3, "child", 1)
    ),
    "both owners, oversubscribed": tree(
        (4, 450, 0.5, "device", 1), (4, 50, 1.5, "device", 2), (3, 400, 2.5, "child", 4)
    ),
    "odd sizes": tree((3, 300, 0.4, "child", 1), (5, 20, 1.0, "child", 1), (2, 70, 3, "child", 2)),
    "a level of one child": tree(
        (4, 300, 0.5, "device", 1), (1, 50, 0.5, "device", 1), (3, 80, 2, "child", 1)
    ),
    "faster outside": tree((4, 25, 0.5, "device", 1), (4, 400, 1.0, "child", 1)),
    "one device": tree((1, 450, 0.5, "device", 1)),
}

UNEVEN: dict[str, Hierarchical] = {
    "a short rack": tree(
        (4, 450, 0.5, "device", 1), (0, 50, 1.5, "device", 1), (3, 200, 2.5, "child", 1),
        sizes={1: (4, 2, 3)},
    ),
    "unequal nodes": tree(
        (0, 450, 0.5, "device", 1), (3, 50, 1.5, "child", 1), sizes={0: (4, 1, 3)}
    ),
}  # fmt: skip

CLOS: dict[str, Clos] = {
    "one tier": clos(32, tiers=1),
    "two tiers": clos(64),
    "two tiers, 4:1": clos(64, ratios=(4.0,)),
    "two tiers, 3:1 in whole ports": clos(128, ratios=(3.0,)),
    "two tiers, short last leaf": clos(56, ratios=(2.0,)),
    "two tiers, one leaf": clos(16),
    "three tiers, short last pod": clos(
        40, per_node=2, nics=2, radix=8, tiers=3, ratios=(2.0, 2.0)
    ),
    "three tiers, short leaf and pod": clos(
        54, per_node=2, nics=2, radix=8, tiers=3, ratios=(1.0, 4.0)
    ),
    "fat tree, k = 4": clos(
        16, per_node=1, nics=1, radix=4, tiers=3, ratios=(1.0, 1.0), kind="fat_tree"
    ),
    "fat tree, k = 8": clos(
        128, per_node=1, nics=1, radix=8, tiers=3, ratios=(1.0, 1.0), kind="fat_tree"
    ),
    "two NICs per device": clos(64, nics=16, radix=64),
    "a NIC for two devices": clos(64, nics=4, radix=16, ratios=(2.0,)),
    "three NICs for four devices": clos(24, per_node=4, nics=3, radix=12),
    "eight NICs for six devices": clos(36, per_node=6, nics=8, radix=32),
    "uplinks of twice the rate": clos(64, ratios=(2.0,), spine_link_Bps=100e9),
    "uplinks of four times the rate": clos(64, spine_link_Bps=200e9),
    "fast cores": clos(
        128, per_node=4, nics=4, radix=16, tiers=3, ratios=(1.0, 2.0), core_link_Bps=100e9
    ),
    "two planes": clos(64, planes=2, ratios=(2.0,)),
    "meshed nodes": clos(64, interconnect="mesh"),
    "ring nodes": clos(32, interconnect="ring", ratios=(2.0,)),
    "hybrid cube mesh": clos(32, nics=4, radix=16, interconnect="hybrid_cube_mesh"),
}

UNEVEN_CLOS: dict[str, Clos] = {
    "two planes, a leaf failed": clos(64, planes=2, missing=("leaf 0",)),
    "a spine failed": clos(64, radix=32, missing=("spine 1",)),
    "a node and a device failed": clos(64, ratios=(4.0,), missing=("node 1", "device 20")),
}

RAILS: dict[str, Clos] = {
    "rails": rails(),
    "rails, 4:1": rails(ratios=(4.0,)),
    "rails, short last unit": rails(24, ratios=(2.0,)),
    "rails of two devices": rails(rails=2),
    "rails, two planes": rails(planes=2),
    "rails, a device failed": rails(missing=("device 5",)),
    "rails, three tiers": rails(128, tiers=3, ratios=(1.0, 2.0)),
    "rails, pods of rails": rails(128, tiers=3, ratios=(1.0, 2.0), pods="rails"),
    "rail-only, one tier": rails(16, kind="rail_only", tiers=1),
    "rail-only": rails(64, kind="rail_only", ratios=(2.0,)),
    "rail-only, three tiers": rails(128, kind="rail_only", tiers=3, ratios=(1.0, 2.0)),
    "rail-only, meshed nodes": rails(32, kind="rail_only", interconnect="mesh"),
    "rail-only, ring nodes": rails(32, kind="rail_only", interconnect="ring"),
}

TORI: dict[str, Torus] = {
    "4x4": torus((4, 4), (True, True)),
    "5x4 without wrap": torus((5, 4), (False, False)),
    "8x3, one wrap": torus((8, 3), (True, False)),
    "7x1": torus((7, 1), (True, True)),
    "2x2": torus((2, 2), (True, True)),
    "4x4x4": torus((4, 4, 4), (True, True, True)),
    "2x3x5, mixed": torus((2, 3, 5), (True, False, True)),
    "3x3x3 without wrap": torus((3, 3, 3), (False, False, False)),
    "4x4, chips failed": torus((4, 4), (True, True), missing=("device 0", "device 6")),
}

TWISTED: dict[str, Torus] = {
    "2x2x4 twisted": torus((2, 2, 4), (True,) * 3, twisted=True),
    "3x3x6 twisted": torus((3, 3, 6), (True,) * 3, twisted=True),
    "4x2x2 twisted": torus((4, 2, 2), (True,) * 3, twisted=True),
    "2x4x4 twisted": torus((2, 4, 4), (True,) * 3, twisted=True),
    "4x8x4 twisted": torus((4, 8, 4), (True,) * 3, twisted=True),
    "6x3x6 twisted": torus((6, 3, 6), (True,) * 3, twisted=True),
}

# Equal groups that nest; groups that nest; everything that is a tree of switches; all.
NESTED: dict[str, Hierarchical | Clos] = {**HIERARCHIES, **CLOS}
TREES: dict[str, Hierarchical | Clos] = {**NESTED, **UNEVEN, **UNEVEN_CLOS}
EXPLICIT: dict[str, Hierarchical | Clos | Torus] = {**TREES, **RAILS, **TORI}
EVERY: dict[str, Fabric] = {**EXPLICIT, **TWISTED}
