"""How the devices of one node are joined: a switch, or links between pairs of devices.

Bandwidth is per device, one direction. A switch gives each device all of it towards any other.
Direct links divide it: a mesh evenly over all other devices (AMD MI300X, Intel Gaudi), a ring
over two neighbours, a hybrid cube mesh over the six NVLinks of each V100 of a DGX-1
(NVIDIA, "DGX-1 With Tesla V100 System Architecture", WP-08437, figure 4).
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from nest_core.documents import gigabytes, microseconds, require
from nest_core.fabric.checks import LinkGraph, positive, whole

__all__ = ["Interconnect", "ScaleUp"]

Interconnect = Literal["switch", "mesh", "ring", "hybrid_cube_mesh"]

# Slots and parallel NVLinks of the DGX-1 with V100; every slot has six.
_CUBE_MESH = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip
_CUBE_LINKS = 6


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """The inside of a node.

    Parameters
    ----------
    interconnect : {"switch", "mesh", "ring", "hybrid_cube_mesh"}
    devices : int
        Slots; eight for a hybrid cube mesh.
    bandwidth_Bps : float
        Of one device, all its links together, one direction.
    latency_s : float
        Between two devices that a switch or one link joins, one way, total.

    Examples
    --------
    >>> ScaleUp("mesh", 3, 100e9, 1e-6).links()
    [(0, 1, 50000000000.0), (0, 2, 50000000000.0), (1, 2, 50000000000.0)]
    """

    interconnect: Interconnect
    devices: int
    bandwidth_Bps: float
    latency_s: float

    def __post_init__(self) -> None:
        whole("intra_node.devices", self.devices)
        positive("intra_node.bandwidth_GBps", self.bandwidth_Bps)
        positive("intra_node.latency_us", self.latency_s, zero=True)
        require(
            self.interconnect != "hybrid_cube_mesh" or self.devices == 8,
            "intra_node.interconnect",
            "must not be a hybrid cube mesh unless a node has 8 devices",
            self.devices,
            "use 8 devices per node or another interconnect",
        )

    def table(self) -> dict[str, Any]:
        """As ``[intra_node]``."""
        return {
            "interconnect": self.interconnect,
            "bandwidth_GBps": gigabytes(self.bandwidth_Bps),
            "latency_us": microseconds(self.latency_s),
        }

    def links(self) -> list[tuple[int, int, float]]:
        """Slot pairs with a direct link and its bandwidth, bytes/s each way; none for a switch.

        Parallel links of one pair are added up; each pair stands once, lower slot first.
        """
        last, share = self.devices - 1, self.bandwidth_Bps
        if self.interconnect == "switch" or last == 0:
            return []
        if self.interconnect == "hybrid_cube_mesh":
            return [(a, b, share * count / _CUBE_LINKS) for a, b, count in _CUBE_MESH]
        if self.interconnect == "mesh" or last == 1:
            return [(a, b, share / last) for a, b in combinations(range(self.devices), 2)]
        return [*[(slot, slot + 1, share / 2) for slot in range(last)], (0, last, share / 2)]

    def draw(self, graph: LinkGraph, node: int, devices: dict[int, int]) -> None:
        """Add one node's inside to a link graph.

        Parameters
        ----------
        devices : dict of int to int
            Device id by slot; slots without a device have no links.
        """
        if self.interconnect == "switch":
            graph.add_node(("node", node), role="switch")
            for device in devices.values():
                graph.add_edge(
                    device,
                    ("node", node),
                    bandwidth_Bps=self.bandwidth_Bps,
                    count=1,
                    latency_s=self.latency_s / 2,
                )
            return
        for a, b, bandwidth in self.links():
            if a in devices and b in devices:
                graph.add_edge(
                    devices[a],
                    devices[b],
                    bandwidth_Bps=bandwidth,
                    count=1,
                    latency_s=self.latency_s,
                )
