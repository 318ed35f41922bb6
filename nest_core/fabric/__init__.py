"""Fabrics as people specify them: counts, levels and link graphs."""

from nest_core.fabric.checks import MAX_DEVICES, MAX_EXPLICIT_DEVICES, IntArray
from nest_core.fabric.clos import Clos
from nest_core.fabric.dragonfly import Dragonfly
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.files import build_fabric
from nest_core.fabric.graph import MAX_LINKS, Element, GraphFabric, Link, as_graph, node_name
from nest_core.fabric.hierarchical import Hierarchical, Tier
from nest_core.fabric.scale_up import ScaleUp
from nest_core.fabric.torus import Torus, tpu_slice

__all__ = [
    "MAX_DEVICES",
    "MAX_EXPLICIT_DEVICES",
    "MAX_LINKS",
    "Clos",
    "Dragonfly",
    "Element",
    "Fabric",
    "GraphFabric",
    "Hierarchical",
    "IntArray",
    "Link",
    "ScaleUp",
    "Tier",
    "Torus",
    "as_graph",
    "build_fabric",
    "node_name",
    "tpu_slice",
]
