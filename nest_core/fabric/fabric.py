"""What every kind of fabric answers, whoever asks.

A kind is a subclass that states its devices, its link graph and its document; everything else has
a default that follows from those and is overridden where the kind knows better. What layers above
add by kind (levels, parts, formats) they dispatch on the type, with the link graph as default
(``docs/decisions/fabric-kinds.md``).

The ports of switches, tier by tier, in whole numbers.

Per tier the switch with the most links, nothing failed; ports of one plane, at one link's rate.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nest_core.documents.units import format_ratio, gigabytes
from nest_core.fabric.checks import IntArray, LinkGraph, Routing, check_explicit_size

__all__ = ["Document", "Fabric", "SwitchPorts"]


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
    stated : float or None
        Oversubscription asked for, down : up; None for the top tier and for routers.
    """

    name: str
    switches: int
    radix: int
    down: int
    up: int
    stated: float | None

    @property
    def free(self) -> int:
        """Ports without a link."""
        return self.radix - self.down - self.up

    @property
    def realised(self) -> float | None:
        """Oversubscription of whole ports; None where nothing was asked for."""
        return None if self.stated is None else self.down / self.up


Document = dict[str, Any]
"""What `nest_core.documents.schema.FabricFile` checks; human units."""


@dataclass(frozen=True, slots=True)
class Fabric(ABC):
    """A fabric of any kind; devices are numbered from 0.

    Parameters
    ----------
    name : str
    """

    name: str
    assumed_inside_Bps: float = field(default=0.0, kw_only=True)
    """Rate of its links inside nodes that its source does not state; 0: none is assumed."""
    routing: Routing = field(default="adaptive", kw_only=True)
    """How flows choose among paths."""
    ecmp_seed: int = field(default=0, kw_only=True)
    """Of the hash that spreads flows."""
    missing: tuple[str, ...] = field(default=(), kw_only=True)
    """Elements that it counts and does not have."""
    optics: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """Kind of cable or optics by tier, where the fabric names it."""
    devices_per_host: int = field(default=0, kw_only=True)
    """Devices that one operating system sees, where a node has several hosts; else 0."""

    noun: ClassVar[str] = "fabric"
    """What messages call one of this kind."""
    routed: ClassVar[bool] = True
    """Whether flows choose among paths; elsewhere ``routing`` is kept for the document."""
    switched: ClassVar[bool] = True
    """Whether switches join the devices."""
    lost_in_graph: ClassVar[tuple[str, ...]] = (
        "The counts and rules that make up the fabric: it is written element by element, link by"
        " link; levels, bill and times are found from these, and may differ.",
    )
    """What a drawing of the fabric does not say, one sentence each."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """As files name it."""

    @property
    @abstractmethod
    def devices(self) -> int:
        """Number of devices present."""

    @abstractmethod
    def explicit(self) -> LinkGraph:
        """Return the link graph: devices are integers, other elements strings or tuples with a
        name.

        Nodes carry ``role`` (device, nic, switch) and, where stated, ``radix`` and ``count``;
        edges ``bandwidth_Bps`` (one link, one direction), ``count`` and ``latency_s``.
        """

    def _devices_alone(self) -> LinkGraph:
        """Return the link graph before anything joins the devices; refused where they are too
        many.
        """
        check_explicit_size(self.devices)
        import networkx as nx  # few fabrics are drawn

        graph: LinkGraph = nx.Graph(name=self.name)
        graph.add_nodes_from(range(self.devices), role="device")
        return graph

    @abstractmethod
    def tables(self) -> Document:
        """Return the tables of its file, by name."""

    def document(self) -> Document:
        """Return what `nest_core.fabric.files.build_fabric` reads back as the same fabric."""
        stated = {
            "devices_per_host": self.devices_per_host,
            "assumed_inside_GBps": gigabytes(self.assumed_inside_Bps),
            "kind": self.kind,
            "routing": self.routing if self.routed or self.routing != "adaptive" else "",
            "ecmp_seed": self.ecmp_seed,
            "missing": list(self.missing),
            "optics": dict(self.optics),
        }
        return (
            {"schema": 1, "name": self.name}
            | {key: value for key, value in stated.items() if value}
            | self.tables()
        )

    @property
    def assumed(self) -> tuple[str, ...]:
        """What its source does not state, a sentence each."""
        rate = f"{gigabytes(self.assumed_inside_Bps):g} GB/s per device inside nodes"
        words = (f"Assumed: {rate}, which no file states; a plan takes its accelerator's own.",)
        return words if self.assumed_inside_Bps else ()

    @property
    def sizing(self) -> object | None:
        """What its ratios become in whole ports; None where they are taken as they are."""
        return None

    @property
    def tier_names(self) -> tuple[str, ...]:
        """Tiers of switches that may fail, innermost first."""
        return ()

    @property
    def ratios(self) -> tuple[float, ...]:
        """Realised oversubscription, down : up, of every tier above the innermost."""
        return ()

    def realised_ratios(self) -> tuple[str, ...]:
        """Return what each oversubscription becomes, innermost first: whole ports, or divided
        uplinks.
        """
        return ()

    def switch_ports(self) -> tuple[SwitchPorts, ...]:
        """Ports of a fully used switch per tier, innermost first; empty if it does not say."""
        return ()

    @property
    def element_counts(self) -> Mapping[str, int]:
        """How many elements of each name may be in ``missing``, failed ones counted."""
        return {}

    def place_of(self) -> IntArray:
        """Return number of every device as if nothing had failed, shape (devices,)."""
        return np.arange(self.devices)

    def arrangement(self) -> str:
        """Its kind and its realised ratios, as titles have them."""
        return f"{self.noun}{self.ratio_words()}"

    def ratio_words(self) -> str:
        """Realised ratios for a title, with a blank before them; empty if there are none."""
        ratios = " and ".join(map(format_ratio, self.ratios))
        return f" {ratios}" if ratios else ""

    def extent(self) -> str:
        """Return what it counts, in a few words."""
        return self.arrangement()

    def contents(self) -> str:
        """Return what it is made of, in one sentence."""
        return f"{self.extent()} of {self.devices:,} devices."

    @property
    def device_ids(self) -> tuple[str, ...]:
        """What drawings call every device."""
        return tuple(f"gpu {number}" for number in range(self.devices))

    @property
    def group_names(self) -> tuple[str, ...]:
        """What drawings call the blocks that devices nest in, innermost first."""
        return ("node", "rack", "pod", "hall")

    def group_labels(self, level: int) -> tuple[str, ...]:
        """Name the block of every device at a level, where its file does; else none."""
        return ()

    def drawn_groups(self) -> Mapping[str, str]:
        """Return the group of every element by its id, where a person drew it."""
        return {}

    def drawn_places(self) -> Sequence[tuple[float, float]]:
        """Where devices stand in a drawing, in steps of its grid; empty: where links put them."""
        return ()
