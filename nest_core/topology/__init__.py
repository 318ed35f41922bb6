"""Fabrics as people specify them: counts, levels and link graphs."""

from nest_core.topology.checks import MAX_DEVICES
from nest_core.topology.clos import Clos, SwitchTier
from nest_core.topology.hierarchical import Hierarchical, Tier
from nest_core.topology.torus import Torus

Fabric = Hierarchical | Clos | Torus

__all__ = ["MAX_DEVICES", "Clos", "Fabric", "Hierarchical", "SwitchTier", "Tier", "Torus"]
