"""Rules that the figures of a Clos fabric must keep before it is sized."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nest_core.errors import InputError
from nest_core.topology.checks import check_devices, check_hosts, check_routing, positive, whole

if TYPE_CHECKING:
    from nest_core.topology.clos import Clos

__all__ = ["check_figures", "set_rails"]


def check_figures(fabric: Clos) -> None:
    """Refuse figures that are out of range on their own."""
    for field in ("devices", "devices_per_node", "nics_per_node", "planes"):
        whole(f"clos.{field}", getattr(fabric, field))
    whole("clos.radix", fabric.radix, least=2)
    whole("clos.rails", fabric.rails, least=0)
    check_devices("clos.devices", fabric.slots)
    check_routing(fabric.routing, fabric.ecmp_seed)
    positive("clos.nic_bandwidth_GBps", fabric.nic_bandwidth_Bps)
    positive("clos.hop_latency_us", fabric.hop_latency_s, zero=True)
    if not 1 <= fabric.tiers <= 3:
        raise InputError("clos.tiers", "must be 1, 2 or 3", fabric.tiers, "add or drop a tier")
    if fabric.slots % fabric.devices_per_node:
        raise InputError(
            "clos.devices",
            f"must be a multiple of clos.devices_per_node = {fabric.devices_per_node}",
            fabric.slots,
            f"use {fabric.nodes * fabric.devices_per_node} or change the node",
        )
    check_hosts(fabric.devices_per_host, (fabric.devices_per_node,))
    if len(fabric.oversubscription) != fabric.tiers - 1:
        raise InputError(
            "clos.oversubscription",
            f"must have one entry per switch tier but the top one ({fabric.tiers - 1})",
            list(fabric.oversubscription),
            "give one ratio per tier, innermost first",
        )
    if fabric.oversubscribe not in ("remove_uplinks", "split_radix"):
        raise InputError(
            "clos.oversubscribe",
            "must be remove_uplinks or split_radix",
            fabric.oversubscribe,
            "pick one of them",
        )
    for index, ratio in enumerate(fabric.oversubscription):
        field = f"clos.oversubscription[{index}]"
        positive(field, ratio)
        if ratio < 1:
            raise InputError(
                field,
                "must be at least 1, because a leaf has as many ports up as down",
                ratio,
                "use 1 for full bisection",
            )


def set_rails(fabric: Clos) -> None:
    """Fill in the default of ``rails``; refuse what does not divide a node."""
    by_rail = fabric.kind in ("rail_optimised", "rail_only")
    if fabric.rails == 0:
        default = math.gcd(fabric.nics_per_node, fabric.devices_per_node) if by_rail else 1
        object.__setattr__(fabric, "rails", default)
    if not by_rail and fabric.rails != 1:
        raise InputError(
            "clos.rails",
            f'must be absent for kind = "{fabric.kind}"',
            fabric.rails,
            "remove it or use rail_optimised or rail_only",
        )
    for field in ("nics_per_node", "devices_per_node"):
        if getattr(fabric, field) % fabric.rails:
            raise InputError(
                "clos.rails",
                f"must divide clos.{field} = {getattr(fabric, field)}",
                fabric.rails,
                "change one of them",
            )
    if fabric.kind == "rail_optimised" and fabric.tiers == 1:
        raise InputError(
            "clos.tiers",
            'must be more than 1 for kind = "rail_optimised", whose rails meet in the spine',
            1,
            "use 2 tiers, or rail_only",
        )
