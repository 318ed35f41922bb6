"""The ports of the switches of a Clos or a dragonfly, tier by tier, in whole numbers.

Per tier the switch with the most links, nothing missing; ports of one plane, at one link's rate.
Other kinds do not say which switches they have.
"""

from __future__ import annotations

from dataclasses import dataclass

from nest_core.topology import Clos, Dragonfly, Fabric

__all__ = ["SwitchPorts", "switch_ports"]


@dataclass(frozen=True, slots=True)
class SwitchPorts:
    """A fully used switch of one tier.

    Parameters
    ----------
    name : str
        Of the tier.
    switches : int
        In place, all planes together.
    radix, down, up, free : int
        Ports of one switch; ``down + up + free = radix``. Of a dragonfly's router ``up`` are
        those to other routers.
    asked : float or None
        Oversubscription asked for, down : up; None for the top tier and for routers.
    """

    name: str
    switches: int
    radix: int
    down: int
    up: int
    asked: float | None

    @property
    def free(self) -> int:
        """Ports without a link."""
        return self.radix - self.down - self.up

    @property
    def realised(self) -> float | None:
        """Oversubscription of whole ports; None where nothing was asked for."""
        return None if self.asked is None else self.down / self.up


def switch_ports(fabric: Fabric) -> tuple[SwitchPorts, ...]:
    """Ports per tier, innermost first; empty for kinds that do not say.

    Examples
    --------
    >>> from nest_core.scenario import load_fabric
    >>> for tier in switch_ports(load_fabric("h100-spine-leaf-1024-4to1")):
    ...     print(tier.name, tier.switches, tier.down, tier.up, tier.free)
    leaf 32 32 8 24
    spine 4 64 0 0
    """
    if isinstance(fabric, Dragonfly):
        down, radix = fabric.nodes_per_router, fabric.radix
        lit = fabric.links_per_pair * (fabric.groups - 1)
        up = fabric.routers_per_group - 1 + min(fabric.global_links_per_router, lit)
        return (SwitchPorts("router", fabric.routers, radix, down, up, None),)
    if not isinstance(fabric, Clos):
        return ()
    sizing, asked = fabric.sizing, fabric.oversubscription
    full = max(range(len(sizing.leaves)), key=sizing.leaves.__getitem__, default=0)
    ports = [(min(sizing.down, fabric.demand.nodes * fabric.demand.links), sizing.up)]
    if fabric.tiers > 1:
        spines = sizing.spines[full]
        ports.append((sizing.leaves[full] * sizing.up // spines, sizing.spine_up[full]))
    if fabric.tiers > 2:
        tops = fabric.rails if fabric.kind == "rail_only" else 1
        ends = sum(s * up for s, up in zip(sizing.spines, sizing.spine_up, strict=True)) // tops
        ports.append((-(-ends // sizing.cores), 0))
    return tuple(
        SwitchPorts(name, count, fabric.radix, down, up, asked[tier] if tier < len(asked) else None)
        for tier, (name, count, (down, up)) in enumerate(
            zip(fabric.tier_names, fabric.as_built.switches, ports, strict=True)
        )
    )
