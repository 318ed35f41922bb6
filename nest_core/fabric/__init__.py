"""Fabrics as people specify them: counts, levels and link graphs."""

from nest_core.fabric.arrange import heights, hops, inner_switches
from nest_core.fabric.checks import (
    MAX_DEVICES,
    MAX_EXPLICIT_DEVICES,
    TABLED,
    BoolArray,
    IntArray,
    LinkGraph,
    Routing,
)
from nest_core.fabric.clos import Clos
from nest_core.fabric.clos_plan import ROLES
from nest_core.fabric.dragonfly import Dragonfly
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.failing import counted_element, element_kinds, no_such, without
from nest_core.fabric.files import build_fabric
from nest_core.fabric.graph import MAX_LINKS, Element, GraphFabric, Link, as_graph, node_name
from nest_core.fabric.hierarchical import Hierarchical, Tier
from nest_core.fabric.lattice import Lattice, lattice_of, torus_of
from nest_core.fabric.scale_up import ScaleUp
from nest_core.fabric.subnet import SubnetSwitch, packed_table
from nest_core.fabric.torus import Torus, tpu_slice

__all__ = [
    "MAX_DEVICES",
    "MAX_EXPLICIT_DEVICES",
    "MAX_LINKS",
    "ROLES",
    "TABLED",
    "BoolArray",
    "Clos",
    "Dragonfly",
    "Element",
    "Fabric",
    "GraphFabric",
    "Hierarchical",
    "IntArray",
    "Lattice",
    "Link",
    "LinkGraph",
    "Routing",
    "ScaleUp",
    "SubnetSwitch",
    "Tier",
    "Torus",
    "as_graph",
    "build_fabric",
    "counted_element",
    "element_kinds",
    "heights",
    "hops",
    "inner_switches",
    "lattice_of",
    "no_such",
    "node_name",
    "packed_table",
    "torus_of",
    "tpu_slice",
    "without",
]
