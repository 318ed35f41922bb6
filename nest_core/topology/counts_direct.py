"""Parts of fabrics without tiers of switches of their own: tori of chips, and drawn graphs."""

from __future__ import annotations

import math
from collections import Counter

import networkx as nx
import numpy as np

from nest_core.topology.checks import IntArray
from nest_core.topology.floor import Hall, chip_hall, node_hall
from nest_core.topology.graph import GraphFabric
from nest_core.topology.inventory import BITS, Inventory, LinkCount, SwitchCount, by_metres
from nest_core.topology.prices import Prices
from nest_core.topology.torus import Torus

__all__ = ["graph_parts", "torus_parts"]

_NO_NICS = (
    "The drawing has no NICs that would tell nodes from the network: switches and links inside "
    "nodes are billed as well; draw NICs to leave them out."
)


def torus_parts(fabric: Torus, prices: Prices) -> Inventory:
    """Links between chips; whole cubes behind optical switches."""
    hall = chip_hall(prices, fabric.places)
    rate = fabric.link_bandwidth_Bps * BITS
    if _cubes(fabric):
        return _cube_inventory(fabric, prices, hall, rate)
    near: Counter[int] = Counter()
    far: Counter[int] = Counter()
    for a, b, closes in _torus_links(fabric):
        lengths, counts = np.unique(
            hall.lengths_m(hall.rack_of(a), hall.rack_of(b)), return_counts=True
        )
        into = far if closes else near
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            into[length] += count
    links = tuple(
        LinkCount(tier, rate, tuple(sorted(found.items())), "chip", "chip", copper=copper)
        for tier, found, copper in (("neighbour", near, True), ("wrap-around", far, False))
        if found
    )
    return Inventory(hall, fabric.devices, 0, 0.0, (), links)


def _cubes(fabric: Torus) -> bool:
    """Whether a torus is made of TPU v4's 4 x 4 x 4 cubes behind optical switches."""
    whole = all(size % 4 == 0 for size in fabric.shape)
    return len(fabric.shape) == 3 and whole and all(fabric.wrap)


def _cube_inventory(fabric: Torus, prices: Prices, hall: Hall, rate: float) -> Inventory:
    """Cubes of 64 chips: 144 links inside, 96 fibres out, two for every link between cubes.

    Every one of the 3 x 16 pairs of opposite face links has an optical switch of its own, with
    two ports per cube (Jouppi et al. 2023).
    """
    cubes = fabric.places // 64
    optical, faces = prices.optical_switch, 3 * 16
    boxes = faces * -(-2 * cubes // optical.used_ports)
    cube = np.arange(cubes)
    centre = hall.middle(np.zeros(1, np.int64), np.array([fabric.places - 1]))
    lengths = hall.lengths_m(hall.rack_of(cube * 64), np.repeat(centre, cubes))
    inside = int(hall.runs_m(np.zeros(1, np.int64), np.zeros(1, np.int64))[0])
    checks: tuple[str, ...] = (
        "Whole cubes are billed as TPU v4 has them, behind optical circuit switches, which smaller "
        "slices share with the rest of their pod: switches are priced by the ports used.",
    )
    if 2 * cubes > optical.used_ports:
        checks += (
            f"{cubes} cubes need {2 * cubes} ports of every optical switch, one has "
            f"{optical.used_ports}: larger ones, or a second layer, which is not counted.",
        )
    return Inventory(
        hall,
        fabric.devices,
        0,
        0.0,
        (SwitchCount("optical", boxes, optical.ports, rate, 2 * faces * cubes, optical=True),),
        (
            LinkCount("cube", rate, ((inside, 144 * cubes),), "chip", "chip", copper=True),
            LinkCount(
                "between cubes",
                rate,
                by_metres(lengths, np.full(cubes, 48)),
                "chip",
                "chip",
                cables_per_link=2,
            ),
        ),
        checks,
    )


def _torus_links(fabric: Torus) -> list[tuple[IntArray, IntArray, bool]]:
    """Places at both ends of the links of every dimension, and whether they close it."""
    place = np.arange(fabric.places)
    coordinates, rest = [], place
    for size in fabric.shape:
        coordinates.append(rest % size)
        rest = rest // size
    strides = np.cumprod((1, *fabric.shape[:-1])).tolist()
    found = []
    for axis, (size, wrapped) in enumerate(zip(fabric.shape, fabric.wrap, strict=True)):
        inner = np.flatnonzero(coordinates[axis] < size - 1)
        if len(inner):
            found.append((inner, inner + strides[axis], False))
        shifts = fabric.shifts[axis]
        if wrapped and (any(shifts) or size > 2):
            edge = np.flatnonzero(coordinates[axis] == size - 1)
            ahead = np.zeros(len(edge), dtype=np.int64)
            for other, (length, stride) in enumerate(zip(fabric.shape, strides, strict=True)):
                at = np.zeros_like(ahead) if other == axis else coordinates[other][edge]
                ahead += (at + shifts[other]) % length * stride
            found.append((edge, ahead, True))
    return found


def graph_parts(fabric: GraphFabric, prices: Prices) -> Inventory:
    """What was drawn, switches by how many links they are from cards or devices."""
    role = {element.id: element.role for element in fabric.elements}
    radix = {element.id: element.radix for element in fabric.elements}
    cards = [element.id for element in fabric.elements if element.role == "nic"]
    # With cards, what hangs on devices only is the inside of nodes.
    height = _heights(fabric, cards or list(fabric.device_ids))
    metres = int(np.ceil(prices.floor.unknown_m.typical))
    tiers: Counter[tuple[str, float, str]] = Counter()
    used: Counter[str] = Counter()
    fastest: dict[str, float] = {}
    for link in fabric.links:
        if link.a not in height or link.b not in height:
            continue
        low, high = sorted((link.a, link.b), key=height.__getitem__)
        rate = link.bandwidth_Bps * BITS
        tier = "chip" if not height[high] else f"tier {height[high]}"
        end = {"device": "chip", "nic": "nic", "switch": "switch"}[role[low]]
        tiers[tier, rate, end] += link.count
        for name in (low, high):
            used[name] += link.count
            fastest[name] = max(rate, fastest.get(name, 0.0))
    boxes: Counter[tuple[int, int, float]] = Counter()
    ports: Counter[tuple[int, int, float]] = Counter()
    for name, count in used.items():
        if role[name] == "switch":
            key = (
                height[name],
                radix[name] or _listed(prices, count, fastest[name]),
                fastest[name],
            )
            boxes[key] += 1
            ports[key] += count
    rates = [fastest[name] for name in cards if name in fastest]
    nodes = _nodes(fabric) if cards else fabric.devices
    return Inventory(
        node_hall(prices, nodes, -(-fabric.devices // nodes), fabric.name),
        nodes,
        len(cards),
        max(rates, default=0.0),
        tuple(
            SwitchCount(f"tier {key[0]}", boxes[key], key[1], key[2], ports[key])
            for key in sorted(boxes)
        ),
        tuple(
            LinkCount(tier, rate, ((metres, count),), end, "chip" if tier == "chip" else "switch")
            for (tier, rate, end), count in sorted(tiers.items())
        ),
        (
            f"A drawn fabric has no floor: every cable is taken as {metres} m (floor.unknown_m).",
            *((_NO_NICS,) if boxes and not cards else ()),
        ),
    )


def _listed(prices: Prices, used: int, rate_Gbps: float) -> int:
    """Ports of the smallest listed switch of that rate with enough of them; else those used."""
    enough = [
        switch.ports
        for switch in prices.switch
        if switch.ports >= used and math.isclose(switch.rate_Gbps, rate_Gbps, rel_tol=1e-6)
    ]
    return min(enough, default=used)


def _nodes(fabric: GraphFabric) -> int:
    """Nodes with devices: what hangs together without cards."""
    inside: nx.Graph[str] = nx.Graph()
    cards = {element.id for element in fabric.elements if element.role == "nic"}
    inside.add_nodes_from(fabric.device_ids)
    inside.add_edges_from(
        (link.a, link.b) for link in fabric.links if link.a not in cards and link.b not in cards
    )
    devices = set(fabric.device_ids)
    return sum(bool(devices & part) for part in nx.connected_components(inside))


def _heights(fabric: GraphFabric, ends: list[str]) -> dict[str, int]:
    """Links between every switch and the nearest end, over switches only; ends have 0."""
    role = {element.id: element.role for element in fabric.elements}
    beside: dict[str, list[str]] = {element.id: [] for element in fabric.elements}
    for link in fabric.links:
        beside[link.a].append(link.b)
        beside[link.b].append(link.a)
    height = dict.fromkeys(ends, 0)
    frontier = ends
    while frontier:
        reached: list[str] = []
        for name in frontier:
            for other in beside[name]:
                if other not in height and role[other] == "switch":
                    height[other] = height[name] + 1
                    reached.append(other)
        frontier = reached
    return height
