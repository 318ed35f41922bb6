"""A folded Clos fabric as it is specified: figures, their rules, and its size in whole ports."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

from nest_core.documents import gigabytes, require
from nest_core.documents.schema.fabric import Oversubscribe, Spread
from nest_core.fabric.checks import (
    check_devices,
    check_hosts,
    check_routing,
    positive,
    whole,
)
from nest_core.fabric.fabric import Fabric
from nest_core.fabric.scale_up import Interconnect, ScaleUp
from nest_core.fabric.sizing import Demand, Sizing, size

__all__ = ["ROLES", "TIER_NAMES", "ClosPlan"]

Kind = Literal["leaf_spine", "fat_tree", "rail_optimised", "rail_only"]

ROLES = ("leaf", "spine", "core")
"""What switches are called, innermost first, where nothing names them."""
_LINK_PORTS = (1, 2, 4, 8)
"""Lanes of a port that one link may have, as ports are broken out."""
TIER_NAMES: dict[Kind, tuple[str, str, str]] = {
    "leaf_spine": ROLES,
    "fat_tree": ("edge", "aggregation", "core"),
    "rail_optimised": ROLES,
    "rail_only": ROLES,
}


@dataclass(frozen=True, slots=True)
class ClosPlan(Fabric):
    """The figures of a Clos fabric, nothing failed.

    Parameters
    ----------
    kind : {"leaf_spine", "fat_tree", "rail_optimised", "rail_only"}
        The first two have the same wiring; each names its tiers as its community does.
    devices : int
        Devices if nothing had failed; once built, devices present.
    devices_per_node, nics_per_node, radix : int
        ``radix`` counts ports of a NIC's links, ``nic_bandwidth_Bps / planes``.
    nic_bandwidth_Bps : float
        One NIC, all planes together, one direction.
    tiers : int
        Switch tiers above the node, 1 to 3.
    oversubscription : tuple of float
        Down : up of every switch tier but the top one, innermost first.
    hop_latency_s : float
        One link and the switch behind it.
    intra_bandwidth_Bps, intra_latency_s, interconnect
        The node, as in `ScaleUp`.
    planes : int
        Identical, disjoint copies of the switches.
    rails : int
        Of rail kinds; 0: one per NIC, or the most that divide NICs and devices of a node. A
        device's rail is its slot modulo rails. 1 for other kinds.
    pods : {"units", "rails"}
        In three tiers of a rail-optimised fabric: whether a pod gathers whole units, or leaves
        of one rail. Rail-only pods are of one rail always.
    routing, ecmp_seed
        How flows choose among parallel links.
    missing : tuple of str
        ``"node 17"``, ``"device 9"``, ``"leaf 3"``, ``"spine 0"`` (switches by the names of
        their tier). Switches are numbered group by group, within a group plane by plane.
    installed : int
        Left at 0: derived from ``devices``. Not 0 only where something failed.
    oversubscribe : {"remove_uplinks", "split_radix"}
        Whether a ratio removes uplinks from a leaf (and a pod) of fixed size, or divides the
        radix anew, so that leaves and pods hold more.
    devices_per_host : int
        Devices that one operating system sees, where a node (what devices reach each other in
        without a NIC) has several hosts; 0: those of a node.
    optics : tuple of (str, str)
        Kind of cable or optics by tier, innermost first; what is not named is as the price list
        has it. The bill reads it, no time does.
    spread : {"even", "fewest"} or None
        Whether a leaf reaches every spine above it with as many links, or uplinks are dealt in
        turn to the fewest spines, which only adaptive routing uses fully. None: the fewest below
        cores if routing is adaptive, else evenly.
    nodes_per_rack : int
        0: as many as power and height of a rack allow. The bill reads it.
    spine_link_Bps, core_link_Bps : float
        One link to a spine, and to a core, one direction: 1, 2, 4 or 8 times a NIC's link, and as
        many ports of the radix at either end. 0: that of the links below.
    """

    noun = "Clos"

    # Without a default: what the base declares is none.
    kind: Kind = dataclasses.field()
    devices: int = dataclasses.field()
    devices_per_node: int
    nics_per_node: int
    nic_bandwidth_Bps: float
    radix: int
    tiers: int
    oversubscription: tuple[float, ...]
    hop_latency_s: float
    intra_bandwidth_Bps: float
    intra_latency_s: float
    interconnect: Interconnect = "switch"
    planes: int = 1
    rails: int = 0
    pods: Literal["units", "rails"] = "units"
    installed: int = 0
    oversubscribe: Oversubscribe = "remove_uplinks"
    spread: Spread | None = None
    nodes_per_rack: int = 0
    spine_link_Bps: float = 0.0
    core_link_Bps: float = 0.0

    def __post_init__(self) -> None:
        _check_figures(self)
        _check_link_rates(self)
        _set_rails(self)
        _check_optics(self)
        _ = self.scale_up, self.sizing

    @property
    def slots(self) -> int:
        """Devices if nothing had failed."""
        return self.installed or self.devices

    @property
    def nodes(self) -> int:
        """Servers if nothing had failed."""
        return -(-self.slots // self.devices_per_node)

    @property
    def link_bandwidth_Bps(self) -> float:
        """One link of a NIC into one plane, one direction."""
        return self.nic_bandwidth_Bps / self.planes

    @property
    def link_rates_Bps(self) -> tuple[float, ...]:
        """One link into every tier, one direction, innermost first."""
        spine = self.spine_link_Bps or self.link_bandwidth_Bps
        return (self.link_bandwidth_Bps, spine, self.core_link_Bps or spine)[: self.tiers]

    @property
    def link_ports(self) -> tuple[int, ...]:
        """Ports of the radix that one link into every tier takes at either end."""
        return tuple(round(rate / self.link_bandwidth_Bps) for rate in self.link_rates_Bps)

    @property
    def scale_up(self) -> ScaleUp:
        """The inside of a node."""
        return ScaleUp(
            self.interconnect, self.devices_per_node, self.intra_bandwidth_Bps, self.intra_latency_s
        )

    @property
    def demand(self) -> Demand:
        """What one plane has to carry."""
        return Demand(
            nodes=self.nodes,
            radix=self.radix,
            tiers=self.tiers,
            links=self.nics_per_node // self.rails,
            rails=self.rails,
            rail_only=self.kind == "rail_only",
            pods=self.pods,
            oversubscription=self.oversubscription,
            oversubscribe=self.oversubscribe,
            link_ports=self.link_ports,
            even=self.spread == "even"
            or (self.spread is None and (self.tiers < 3 or self.routing != "adaptive")),
        )

    @property
    def sizing(self) -> Sizing:
        """One plane in whole ports, nothing failed."""
        return size(self.demand)

    @property
    def tier_names(self) -> tuple[str, ...]:
        """Names of the switch tiers, innermost first."""
        return TIER_NAMES[self.kind][: self.tiers]


def _check_optics(fabric: ClosPlan) -> None:
    for tier, _ in fabric.optics:
        require(
            tier in fabric.tier_names,
            f"optics.{tier}",
            "must name a tier of the fabric",
            tier,
            "pick " + ", ".join(fabric.tier_names),
        )


def _check_figures(fabric: ClosPlan) -> None:
    """Refuse figures that are out of range on their own."""
    for field in ("devices", "devices_per_node", "nics_per_node", "planes"):
        whole(f"clos.{field}", getattr(fabric, field))
    whole("clos.radix", fabric.radix, lowest=2)
    whole("clos.rails", fabric.rails, lowest=0)
    check_devices("clos.devices", fabric.slots)
    check_routing(fabric.routing, fabric.ecmp_seed)
    positive("clos.nic_bandwidth_GBps", fabric.nic_bandwidth_Bps)
    positive("clos.hop_latency_us", fabric.hop_latency_s, zero=True)
    require(
        1 <= fabric.tiers <= 3,
        "clos.tiers",
        "must be 1, 2 or 3",
        fabric.tiers,
        "add or drop a tier",
    )
    require(
        fabric.slots % fabric.devices_per_node == 0,
        "clos.devices",
        f"must be a multiple of clos.devices_per_node = {fabric.devices_per_node}",
        fabric.slots,
        f"use {fabric.nodes * fabric.devices_per_node} or change the node",
    )
    check_hosts(fabric.devices_per_host, (fabric.devices_per_node,))
    # Ports of NICs are 1, 2, 4 or 8 lanes; or each plane has NICs of its own.
    require(
        fabric.planes & (fabric.planes - 1) == 0 or fabric.nics_per_node % fabric.planes == 0,
        "clos.planes",
        f"must divide clos.nics_per_node = {fabric.nics_per_node}, or be a power of two, "
        "as lanes of a NIC are",
        fabric.planes,
        "change the planes or the NICs",
    )
    require(
        len(fabric.oversubscription) == fabric.tiers - 1,
        "clos.oversubscription",
        f"must have one entry per switch tier but the top one ({fabric.tiers - 1})",
        list(fabric.oversubscription),
        "give one ratio per tier, innermost first",
    )
    require(
        fabric.oversubscribe in ("remove_uplinks", "split_radix"),
        "clos.oversubscribe",
        "must be remove_uplinks or split_radix",
        fabric.oversubscribe,
        "pick one of them",
    )
    require(
        fabric.spread != "fewest" or fabric.routing == "adaptive",
        "clos.spread",
        f'must be even for routing = "{fabric.routing}", which loads no links unevenly',
        fabric.spread,
        "use even, or adaptive routing",
    )
    for index, ratio in enumerate(fabric.oversubscription):
        field = f"clos.oversubscription[{index}]"
        positive(field, ratio)
        require(
            ratio >= 1,
            field,
            "must be at least 1, because a leaf has as many ports up as down",
            ratio,
            "use 1 for full bisection",
        )


def _check_link_rates(fabric: ClosPlan) -> None:
    """Refuse rates that no whole ports have, or that no tier is for."""
    allowed = [fabric.link_bandwidth_Bps * ports for ports in _LINK_PORTS]
    for tier, rate in ((1, fabric.spine_link_Bps), (2, fabric.core_link_Bps)):
        field = f"clos.{ROLES[tier]}_link_GBps"
        require(
            rate == 0 or tier < fabric.tiers,
            field,
            f"must be absent for clos.tiers = {fabric.tiers}",
            gigabytes(rate),
            f"remove it or use {tier + 1} tiers",
        )
        require(
            rate == 0 or any(math.isclose(rate, other) for other in allowed),
            field,
            "must be 1, 2, 4 or 8 times the clos.nic_bandwidth_GBps of one of the clos.planes",
            gigabytes(rate),
            "use " + ", ".join(f"{gigabytes(other):g}" for other in allowed) + " GB/s",
        )
    widest = max(fabric.link_ports)
    require(
        widest == 1 or fabric.radix % (2 * widest) == 0,
        "clos.radix",
        f"must be a multiple of {2 * widest}, for links that take {widest} ports",
        fabric.radix,
        "change it or the speed of the links",
    )


def _set_rails(fabric: ClosPlan) -> None:
    """Fill in the default of ``rails``; refuse what does not divide a node."""
    by_rail = fabric.kind in ("rail_optimised", "rail_only")
    if fabric.rails == 0:
        default = math.gcd(fabric.nics_per_node, fabric.devices_per_node) if by_rail else 1
        object.__setattr__(fabric, "rails", default)
    require(
        by_rail or fabric.rails == 1,
        "clos.rails",
        f'must be absent for kind = "{fabric.kind}"',
        fabric.rails,
        "remove it or use rail_optimised or rail_only",
    )
    for field in ("nics_per_node", "devices_per_node"):
        require(
            getattr(fabric, field) % fabric.rails == 0,
            "clos.rails",
            f"must divide clos.{field} = {getattr(fabric, field)}",
            fabric.rails,
            "change one of them",
        )
    require(
        fabric.kind != "rail_optimised" or fabric.tiers != 1,
        "clos.tiers",
        'must be more than 1 for kind = "rail_optimised", whose rails meet in the spine',
        1,
        "use 2 tiers, or rail_only",
    )
