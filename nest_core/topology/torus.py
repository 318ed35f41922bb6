"""Two- and three-dimensional tori, with or without wrap-around links per dimension."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import networkx as nx

from nest_core.errors import InputError
from nest_core.topology.checks import check_devices, check_explicit_size, positive, whole

__all__ = ["MAX_DIAMETER", "Torus"]

MAX_DIAMETER = 4096


@dataclass(frozen=True, slots=True)
class Torus:
    """A torus; device ids count the first dimension fastest.

    Parameters
    ----------
    shape : tuple of int
        Two or three sizes.
    wrap : tuple of bool
        Whether a dimension closes into a ring.
    link_bandwidth_Bps, hop_latency_s : float
        One link in one direction; one hop.
    """

    name: str
    shape: tuple[int, ...]
    wrap: tuple[bool, ...]
    link_bandwidth_Bps: float
    hop_latency_s: float

    def __post_init__(self) -> None:
        if len(self.shape) not in (2, 3):
            raise InputError(
                "torus.shape",
                "must have two or three dimensions",
                list(self.shape),
                "add or drop one",
            )
        for index, size in enumerate(self.shape):
            whole(f"torus.shape[{index}]", size)
        if len(self.wrap) != len(self.shape):
            raise InputError(
                "torus.wrap",
                f"must have one entry per dimension ({len(self.shape)})",
                list(self.wrap),
                "say true or false for every dimension",
            )
        if self.devices < 2:
            raise InputError(
                "torus.shape", "must hold at least two devices", list(self.shape), "enlarge it"
            )
        check_devices("torus.shape", self.devices)
        if sum(self.shape) > MAX_DIAMETER:
            raise InputError(
                "torus.shape",
                f"must have sizes that add up to at most {MAX_DIAMETER:,}, one level per hop",
                list(self.shape),
                "make it squarer",
            )
        positive("torus.link_bandwidth_GBps", self.link_bandwidth_Bps)
        positive("torus.hop_latency_us", self.hop_latency_s, zero=True)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return math.prod(self.shape)

    def explicit(self) -> nx.Graph[Any]:
        """The link graph; devices are integers and forward one another's traffic.

        Raises
        ------
        InputError
            Over 16,384 devices.
        """
        check_explicit_size(self.devices)
        graph: nx.Graph[Any] = nx.Graph(name=self.name)
        graph.add_nodes_from(range(self.devices), role="device")
        for place in itertools.product(*(range(size) for size in self.shape)):
            for axis, (size, wrapped) in enumerate(zip(self.shape, self.wrap, strict=True)):
                beyond = place[axis] + 1
                if size == 1 or (beyond == size and (not wrapped or size == 2)):
                    continue
                neighbour = (*place[:axis], beyond % size, *place[axis + 1 :])
                graph.add_edge(
                    self._number(place),
                    self._number(neighbour),
                    bandwidth_Bps=self.link_bandwidth_Bps,
                    count=1,
                    latency_s=self.hop_latency_s,
                )
        return graph

    def _number(self, place: tuple[int, ...]) -> int:
        number = 0
        for size, coordinate in zip(reversed(self.shape), reversed(place), strict=True):
            number = number * size + coordinate
        return number
