"""Parts of tori of chips, or of servers whose NICs are joined directly."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nest_core.bill.floor import Hall, chip_hall, node_hall
from nest_core.bill.inventory import BITS, Inventory, LinkCount, SwitchCount, by_metres
from nest_core.bill.prices import Prices
from nest_core.fabric import Torus

__all__ = ["torus_parts"]


def torus_parts(fabric: Torus, prices: Prices) -> Inventory:
    """Links between chips, or between NICs; whole cubes behind optical switches."""
    rate = fabric.link_bandwidth_Bps * BITS
    if fabric.nics_per_device:
        return _of_nics(fabric, prices, rate)
    hall = chip_hall(prices, fabric.places)
    if _cubes(fabric):
        return _cube_inventory(fabric, prices, hall, rate)
    near, far = _runs(fabric, hall, 1)
    links = tuple(
        LinkCount(tier, rate, tuple(sorted(runs.items())), "chip", "chip", copper=copper)
        for tier, runs, copper in (("neighbour", near, True), ("wrap-around", far, False))
        if runs
    )
    return Inventory(hall, fabric.devices, 0, 0.0, (), links)


def _of_nics(fabric: Torus, prices: Prices, rate: float) -> Inventory:
    """Servers whose NICs, broken out, are joined directly."""
    per_node = fabric.devices_per_node
    nodes = -(-fabric.places // per_node)
    hall = node_hall(prices, nodes, per_node, fabric.name)
    links = tuple(
        LinkCount(tier, rate, tuple(sorted(runs.items())), "nic", "nic")
        for tier, runs in zip(
            ("neighbour", "wrap-around"), _runs(fabric, hall, per_node), strict=True
        )
        if runs
    )
    return Inventory(
        hall,
        nodes,
        fabric.devices * fabric.nics_per_device,
        fabric.nic_bandwidth_Bps * BITS,
        (),
        links,
        (f"NICs are broken out into links of {rate:.4g} Gb/s, each with modules of its own.",),
    )


def _runs(fabric: Torus, hall: Hall, per_node: int) -> tuple[Counter[int], Counter[int]]:
    """Links by length, those between neighbours and those that close a dimension."""
    near: Counter[int] = Counter()
    far: Counter[int] = Counter()
    for a, b, _, closes in fabric.link_places():
        lengths, counts = np.unique(
            hall.lengths_m(hall.rack_of(a // per_node), hall.rack_of(b // per_node)),
            return_counts=True,
        )
        into = far if closes else near
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            into[length] += count
    return near, far


def _cubes(fabric: Torus) -> bool:
    """Whether a torus is made of TPU v4's 4 x 4 x 4 cubes behind optical switches."""
    is_cubes = all(size % 4 == 0 for size in fabric.shape)
    return len(fabric.shape) == 3 and is_cubes and all(fabric.wrap)


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
