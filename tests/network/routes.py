"""Routes over a fabric's explicit link graph, found without the collapsed network.

Devices send and receive but forward nothing, and a NIC passes traffic between its devices and
its switch only; both are split into a sending and a receiving side, so that a shortest path
cannot turn round inside one. A torus has devices that forward.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx

from nest_core.topology import Fabric, Torus

__all__ = ["path", "routing_graph", "usable"]


def routing_graph(fabric: Fabric) -> nx.DiGraph[Any]:
    """Directed links with ``bandwidth_Bps``, ``count``, ``latency_s`` and ``capacity``.

    Device ``d`` sends from ``("from", d)`` and receives at ``("to", d)``.
    """
    plain = fabric.explicit()
    routes: nx.DiGraph[Any] = nx.DiGraph()
    forwards = isinstance(fabric, Torus)
    for a, b, link in plain.edges(data=True):
        capacity = round(link["bandwidth_Bps"] * link["count"])
        for sender, receiver in ((a, b), (b, a)):
            if forwards:
                routes.add_edge(sender, receiver, capacity=capacity, **link)
                continue
            up = (
                plain.nodes[sender]["role"] == "device" or plain.nodes[receiver]["role"] == "switch"
            )
            routes.add_edge(
                _side(plain, sender, sending=True, up=up),
                _side(plain, receiver, sending=False, up=up),
                capacity=capacity,
                **link,
            )
    for device in range(fabric.devices):
        if forwards:
            routes.add_edge(("from", device), device, latency_s=0.0)
            routes.add_edge(device, ("to", device), latency_s=0.0)
        routes.add_nodes_from([("from", device), ("to", device)])
    return routes


def _side(plain: nx.Graph[Any], node: object, *, sending: bool, up: bool) -> object:
    role = plain.nodes[node]["role"]
    if role == "device":
        return ("from" if sending else "to", node)
    return ("up" if up else "down", node) if role == "nic" else node


def path(routes: nx.DiGraph[Any], source: int, target: int) -> list[tuple[Any, Any]]:
    """Links of the path of least latency."""
    nodes = nx.shortest_path(routes, ("from", source), ("to", target), weight="latency_s")
    return list(pairwise(nodes))


def usable(link: dict[str, Any], own: int = 1) -> float:
    """Bytes/s of one flow alone that may use ``own`` of a bundle's links."""
    return float(link["bandwidth_Bps"] * min(own, link["count"]))
