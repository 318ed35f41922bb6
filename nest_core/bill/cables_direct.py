"""Every cable of tori and meshes: chip to chip, NIC to NIC, or through optical switches.

A chip's ports are called after the directions that they lead to: ``+x``, ``-z``. Of whole cubes
behind optical switches every face port has a fibre of its own to the switch of its face position,
with port ``2 c`` of a cube ``c`` for the far face and ``2 c + 1`` for the near one
(`nest_core.bill.counts_torus`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nest_core.bill.bundles import Bundle, Side, numbered
from nest_core.bill.inventory import Inventory
from nest_core.bill.prices import Prices
from nest_core.fabric import Fabric, IntArray, Torus
from nest_core.fabric.lattice import Lattice

__all__ = ["torus_bundles"]

CUBE = 4
AXES = "xyz"


def torus_bundles(
    fabric: Fabric, lattice: Lattice, parts: Inventory, prices: Prices
) -> Iterator[Bundle]:
    """Cables of a fabric that is a torus, dimension by dimension.

    Parameters
    ----------
    fabric : Fabric
        The torus itself, or the drawing that is one.
    lattice : Lattice
    parts : Inventory
    prices : Prices
    """
    torus = lattice.torus
    name = _names(fabric, lattice)
    links = {link.tier: link for link in parts.links}
    if "between cubes" in links:
        yield from _cubes(torus, parts, prices, name)
        return
    hall, per_node = parts.hall, torus.devices_per_node if torus.nics_per_device else 1
    for a, b, axis, closes in torus.link_places():
        yield Bundle(
            links["wrap-around" if closes else "neighbour"],
            *_ends(name, axis, a, b),
            hall.lengths_m(hall.rack_of(a // per_node), hall.rack_of(b // per_node)),
        )


def _names(fabric: Fabric, lattice: Lattice) -> Callable[[int], str]:
    if isinstance(fabric, Torus):
        return numbered("chip")
    ids = fabric.device_ids
    names = [ids[at] if isinstance(at, int) else str(at) for at in lattice.elements]
    return names.__getitem__


def _ends(name: Callable[[int], str], axis: int, a: IntArray, b: IntArray) -> tuple[Side, Side]:
    ports = np.full(len(a), axis)
    return (
        Side(name, a, ports, port_name=lambda at: f"+{AXES[at]}"),
        Side(name, b, ports, port_name=lambda at: f"-{AXES[at]}"),
    )


def _stride(torus: Torus, axis: int) -> int:
    return int(np.prod(torus.shape[:axis], dtype=np.int64))


def _cubes(
    torus: Torus, parts: Inventory, prices: Prices, name: Callable[[int], str]
) -> Iterator[Bundle]:
    hall, (inside, between) = parts.hall, parts.links
    place = np.arange(torus.places)
    at = [place // _stride(torus, axis) % size for axis, size in enumerate(torus.shape)]
    x, y, _ = (size // CUBE for size in torus.shape)
    cube = at[0] // CUBE + x * (at[1] // CUBE + y * (at[2] // CUBE))
    copper = int(hall.runs_m(np.zeros(1, np.int64), np.zeros(1, np.int64))[0])
    for axis in range(3):
        inner = place[at[axis] % CUBE < CUBE - 1]
        ends = _ends(name, axis, inner, inner + _stride(torus, axis))
        yield Bundle(inside, *ends, np.full(len(inner), copper))
    centre = hall.middle(np.zeros(1, np.int64), np.array([torus.places - 1]))
    boxes = -(-2 * (torus.places // CUBE**3) // prices.optical_switch.used_ports)
    for axis in range(3):
        row_at, column_at = (at[other] % CUBE for other in range(3) if other != axis)
        face = axis * CUBE**2 + row_at * CUBE + column_at
        for near, coordinate in enumerate((CUBE - 1, 0)):
            chips = place[at[axis] % CUBE == coordinate]
            port = 2 * cube[chips] + near
            box, port = np.divmod(port, prices.optical_switch.used_ports)
            side = _ends(name, axis, chips, chips)[near]
            yield Bundle(
                between,
                side,
                Side(numbered("optical"), face[chips] * boxes + box, port, "optical"),
                hall.lengths_m(hall.rack_of(cube[chips] * CUBE**3), np.repeat(centre, len(chips))),
            )
