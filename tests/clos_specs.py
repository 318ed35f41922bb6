"""Clos fabrics for tests, from a few figures."""

from __future__ import annotations

from typing import Any

from nest_core.fabric import Clos

__all__ = ["NODE", "clos", "counts"]

NODE = {
    "devices_per_node": 8,
    "nics_per_node": 8,
    "nic_bandwidth_Bps": 50e9,
    "hop_latency_s": 0.6e-6,
    "intra_bandwidth_Bps": 450e9,
    "intra_latency_s": 0.5e-6,
}


def clos(devices: int, radix: int, tiers: int, *ratios: float, **changes: Any) -> Clos:
    """A leaf-spine fabric of nodes with eight devices and eight NICs."""
    figures: dict[str, Any] = {**NODE, **changes}
    return Clos(
        name="clos",
        kind=figures.pop("kind", "leaf_spine"),
        devices=devices,
        radix=radix,
        tiers=tiers,
        oversubscription=ratios or (1.0,) * (tiers - 1),
        **figures,
    )


def link_counts(fabric: Clos) -> dict[str, int]:
    """Links in place between a tier and what is below it, by name of the upper tier."""
    return dict(zip(fabric.tier_names, fabric.as_built.links, strict=True))


def counts(fabric: Clos) -> tuple[list[int], list[int]]:
    """Switches of every tier, and links into every tier, innermost first."""
    return list(fabric.switch_counts().values()), list(link_counts(fabric).values())
