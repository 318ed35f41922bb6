"""One size, any topology: fabrics of the same devices, NICs and rates, so that like meets like.

A size is what is bought whatever the topology is: devices in nodes, NICs of one rate, switches of
one radix at that rate. Of it are made, at full bisection wherever the kind allows it and no other
ratio is asked for:

* ``spine-leaf``: two tiers; ``fat-tree``: three;
* ``rail-optimised``: NIC i of a node to leaf i of its unit, in as few tiers as hold it;
* ``rail-only``: rails that meet nowhere above the node, in as few tiers as hold one rail;
* ``dual-plane``: rail-optimised, every NIC broken out over two planes, and every switch port too,
  so that a switch has twice the radix at half the rate;
* ``torus``: two dimensions, as square as the devices allow; a device's NICs, broken out four ways,
  are its four links, and the switch inside its node is not used;
* ``dragonfly``: canonical, a = 2 p = 2 h (Kim et al., ISCA 2008), as near as the nodes divide;
  all NICs of a node go to one router; one group where several would have too few local links.

All in whole ports. A kind that does not exist at a size says why instead.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import singledispatch
from math import isqrt

from nest_core.documents.errors import InputError, require
from nest_core.documents.schema.fabric import Oversubscribe
from nest_core.fabric.clos import Clos
from nest_core.fabric.clos_plan import Kind as ClosKind
from nest_core.fabric.dragonfly import Dragonfly
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.scale_up import Interconnect
from nest_core.fabric.torus import Torus

__all__ = ["KINDS", "TIERS", "FabricShape", "Size", "same_size", "size_of", "with_scale_up"]

_CLOS: dict[str, tuple[ClosKind, tuple[int, ...], int]] = {
    "spine-leaf": ("leaf_spine", (2,), 1),
    "rail-optimised": ("rail_optimised", (2, 3), 1),
    "rail-only": ("rail_only", (1, 2, 3), 1),
    "fat-tree": ("fat_tree", (3,), 1),
    "dual-plane": ("rail_optimised", (2, 3), 2),
}
"""Kind, numbers of tiers, planes."""
KINDS = (*_CLOS, "torus", "dragonfly")
"""Topologies by the names that people give them."""
TIERS = {kind: tiers for kind, (_, tiers, _) in _CLOS.items()}
"""Those that are Clos, and the numbers of tiers that each may have."""
_TORUS_LINKS = 4
_SPARE_PORTS = 2
"""A router uses up to so many ports more than it needs, and all where they stay dark."""
_GOOD = 0.85
"""Of full bisection: what a dragonfly of whole ports may have and pass for balanced."""


@dataclass(frozen=True, slots=True)
class Size:
    """What is bought whatever the topology is.

    Parameters
    ----------
    devices, devices_per_node, nics_per_node : int
    nic_bandwidth_Bps : float
        One NIC, one direction.
    radix : int
        Ports of a switch at a NIC's rate.
    hop_latency_s : float
        One link and the switch behind it.
    intra_bandwidth_Bps, intra_latency_s, interconnect
        The node, as in `ScaleUp`.
    rails, devices_per_host : int
        As in `Clos`; 0: as usual.
    spine_link_Bps, core_link_Bps : float
        As in `Clos`, of those that have such tiers.
    """

    devices: int
    devices_per_node: int
    nics_per_node: int
    nic_bandwidth_Bps: float
    radix: int = 64
    hop_latency_s: float = 0.6e-6
    intra_bandwidth_Bps: float = 450e9
    intra_latency_s: float = 0.5e-6
    interconnect: Interconnect = "switch"
    rails: int = 0
    devices_per_host: int = 0
    spine_link_Bps: float = 0.0
    core_link_Bps: float = 0.0

    def __post_init__(self) -> None:
        require(
            self.devices % self.devices_per_node == 0,
            "devices",
            f"must be a multiple of the {self.devices_per_node} of a node",
            self.devices,
            f"take {-(-self.devices // self.devices_per_node) * self.devices_per_node}",
        )

    @property
    def nodes(self) -> int:
        """Servers."""
        return self.devices // self.devices_per_node


@dataclass(frozen=True, slots=True)
class FabricShape:
    """How a Clos of a size is built.

    Parameters
    ----------
    ratios : tuple of float
        Down to up, of leaves and of pods, where there are any.
    tiers : int
        0: as few as hold the size at these ratios.
    oversubscribe : {"remove_uplinks", "split_radix"}
        How a switch comes to a ratio, as in `Clos`; one at 1:1 comes to it either way.
    """

    ratios: tuple[float, float] = (1.0, 1.0)
    tiers: int = 0
    oversubscribe: Oversubscribe = "remove_uplinks"


_FULL_BISECTION = FabricShape()


@singledispatch
def size_of(fabric: Fabric) -> Size:
    """Return what of a fabric is the same in any topology.

    Raises
    ------
    InputError
        For fabrics that do not say which NICs and switches they have.
    """
    raise InputError(
        "fabric",
        "must say its nodes, NICs and radix, as a Clos or a dragonfly does",
        f"a {fabric.noun}",
        "describe it as one of these, or give devices, NICs, radix and rate",
    )


@size_of.register(Clos)
@size_of.register(Dragonfly)
def _(fabric: Clos | Dragonfly) -> Size:
    planes = fabric.planes if isinstance(fabric, Clos) else 1
    return Size(
        fabric.devices,
        fabric.devices_per_node,
        fabric.nics_per_node,
        fabric.nic_bandwidth_Bps,
        max(2, fabric.radix // planes),
        fabric.hop_latency_s,
        fabric.intra_bandwidth_Bps,
        fabric.intra_latency_s,
        fabric.interconnect,
        fabric.rails if isinstance(fabric, Clos) and fabric.rails > 1 else 0,
        fabric.devices_per_host if isinstance(fabric, Clos) else 0,
        fabric.spine_link_Bps if isinstance(fabric, Clos) else 0.0,
        fabric.core_link_Bps if isinstance(fabric, Clos) else 0.0,
    )


def same_size(of: Fabric | Size, kind: str, shape: FabricShape = _FULL_BISECTION) -> Fabric:
    """Return a fabric of a size.

    Parameters
    ----------
    of : Fabric or Size
    kind : str
        Of `KINDS`.
    shape : FabricShape, optional
        Of those that are Clos (`TIERS`).

    Raises
    ------
    InputError
        If there is no such kind, or none of this size and shape.

    Examples
    --------
    >>> [same_size(Size(1024, 8, 8, 50e9), kind).arrangement() for kind in ("rail-only", "torus")]
    ['rail-only 1:1', '32×32 torus']
    """
    size = of if isinstance(of, Size) else size_of(of)
    if kind in TIERS:
        return _clos(kind, size, shape)
    if kind == "torus":
        return _torus(size)
    if kind == "dragonfly":
        return _dragonfly(size)
    raise InputError("topology", "must be one of a size", kind, "pick " + ", ".join(KINDS))


def with_scale_up(size: Size, devices_per_node: int) -> Size:
    """Return the same devices, NICs and rates in nodes of another number of devices (8, 72, 144,
    576).

    Raises
    ------
    InputError
        Where devices or their NICs are not whole nodes' then.
    """
    nics = size.nics_per_node * devices_per_node
    require(
        size.devices % devices_per_node == 0 and nics % size.devices_per_node == 0,
        "scale-up size",
        f"must divide the {size.devices:,} devices and leave whole NICs to a node",
        devices_per_node,
        "take a number of devices that it divides",
    )
    return replace(
        size,
        devices_per_node=devices_per_node,
        nics_per_node=nics // size.devices_per_node,
        rails=0,
        devices_per_host=0,
    )


def _clos(word: str, size: Size, shape: FabricShape) -> Clos:
    """In the tiers that are asked for, else the fewest that hold it."""
    numbers = TIERS[word]
    if shape.tiers:
        if shape.tiers not in numbers:
            rule = f"must be {' or '.join(map(str, numbers))} for a {word}"
            raise InputError("tiers", rule, shape.tiers, "leave it out")
        numbers = (shape.tiers,)
    for tiers in numbers[:-1]:
        with suppress(InputError):  # they do not hold it
            return _in_tiers(word, size, shape, tiers)
    return _in_tiers(word, size, shape, numbers[-1])


def _in_tiers(word: str, size: Size, shape: FabricShape, tiers: int) -> Clos:
    kind, _, planes = _CLOS[word]
    ratios = shape.ratios[: tiers - 1]
    return Clos(
        name=_name(size, word),
        kind=kind,
        devices=size.devices,
        devices_per_node=size.devices_per_node,
        nics_per_node=size.nics_per_node,
        nic_bandwidth_Bps=size.nic_bandwidth_Bps,
        radix=size.radix * planes,
        tiers=tiers,
        oversubscription=ratios,
        oversubscribe=shape.oversubscribe if set(ratios) - {1.0} else "remove_uplinks",
        hop_latency_s=size.hop_latency_s,
        intra_bandwidth_Bps=size.intra_bandwidth_Bps,
        intra_latency_s=size.intra_latency_s,
        interconnect=size.interconnect,
        planes=planes,
        rails=size.rails if kind.startswith("rail") else 0,
        devices_per_host=size.devices_per_host,
        spine_link_Bps=size.spine_link_Bps if tiers > 1 else 0.0,
        core_link_Bps=size.core_link_Bps if tiers > 2 else 0.0,
    )


def _name(size: Size, word: str) -> str:
    return f"{size.devices:,} devices, {word}"


def _torus(size: Size) -> Torus:
    """Whole NICs of every device over four links."""
    nics, rest = divmod(size.nics_per_node, size.devices_per_node)
    require(
        not rest and nics,
        "NICs per node",
        f"must be whole NICs for each of {size.devices_per_node} devices",
        size.nics_per_node,
        "give every device its own",
    )
    across = next(n for n in range(isqrt(size.devices), 0, -1) if size.devices % n == 0)
    require(
        across >= 3,
        "devices",
        "must be a product of two sides of 3 or more",
        size.devices,
        "add some",
    )
    return Torus(
        name=_name(size, "torus"),
        shape=(size.devices // across, across),
        wrap=(True, True),
        link_bandwidth_Bps=nics * size.nic_bandwidth_Bps / _TORUS_LINKS,
        hop_latency_s=size.hop_latency_s,
        nics_per_device=nics,
        nic_bandwidth_Bps=size.nic_bandwidth_Bps,
        devices_per_node=size.devices_per_node,
    )


def _dragonfly(size: Size) -> Dragonfly:
    """Return the fewest routers among those that come nearest to full bisection in whole ports."""
    best: tuple[tuple[float, bool, int], tuple[int, int, int, int]] | None = None
    for nodes in _divisors(size.nodes):
        ports, routers = nodes * size.nics_per_node, size.nodes // nodes
        for a in _divisors(routers):
            groups, free = routers // a, size.radix - ports - (a - 1)
            h = min(ports, free)
            if h < 1 or a * h < groups - 1:
                continue
            rank = (-min(_GOOD, _share(ports, a, h, groups)), groups == 1, routers)
            if best is None or rank < best[0]:
                global_ports = free if groups == 1 or free - h <= _SPARE_PORTS else h
                best = (rank, (a, nodes, global_ports, groups))
    if best is None:
        raise InputError(
            "radix",
            "must leave a router ports for its nodes, its group and other groups",
            size.radix,
            "take a larger radix or another number of nodes",
        )
    a, nodes, h, groups = best[1]
    return Dragonfly(
        name=_name(size, "dragonfly"),
        routers_per_group=a,
        nodes_per_router=nodes,
        global_links_per_router=h,
        local_bandwidth_Bps=size.nic_bandwidth_Bps,
        global_bandwidth_Bps=size.nic_bandwidth_Bps,
        hop_latency_s=size.hop_latency_s,
        intra_bandwidth_Bps=size.intra_bandwidth_Bps,
        intra_latency_s=size.intra_latency_s,
        interconnect=size.interconnect,
        groups=groups,
        devices_per_node=size.devices_per_node,
        nic_bandwidth_Bps=size.nic_bandwidth_Bps,
        nics_per_node=size.nics_per_node,
    )


def _share(ports: int, a: int, h: int, groups: int) -> float:
    """Of a router's NICs, what its links in the group and the group's links out carry.

    Uniform traffic crosses a local link before and after a global one; one group has no global.
    """
    if groups == 1:
        return min(1.0, (a - 1) / ports) if a > 1 else 1.0
    return min(1.0, (a * h // (groups - 1) * (groups - 1)) / (a * ports), (a - 1) / (2 * ports))


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
