"""Seatings once more, in plain Python, from the words of docs/method.md alone; part of the oracle.

A device's address is the numbers of its groups from the outermost level down, and its own.
"""

from __future__ import annotations

from collections.abc import Sequence

Address = tuple[int, ...]


def seatings(address: Sequence[Address], names: Sequence[str]) -> dict[str, list[int]]:
    """Devices with a seat, in the order of ranks, by the name of the seating."""
    inner = list(range(len(names) - 1))
    sizes = {level: sorted(set(map(len, _blocks(address, level).values()))) for level in inner}
    odd = [size for size in sizes.get(0, []) if size not in (1, 2, 4, 8, 16, 32, 64, 128)]
    if not odd and all(len(found) == 1 for found in sizes.values()):
        return {}
    result: dict[str, list[int]] = {}

    def add(name: str, seats: list[int]) -> None:
        if seats != list(range(len(seats))) and seats not in result.values():
            result[name] = seats

    for count in range(max(sizes[0]), 0, -1):
        add(f"multiples of {count} per node", _multiples(address, count))
    for count in range(max(sizes[0]), 0, -1):
        add(f"{count} per node", _just(address, 0, count))
    for level in inner[1:]:
        if len(sizes[level]) > 1:
            nodes = {size - size % max(sizes[0]) for size in sizes[level]}
            powers = {max(2**bit for bit in range(8) if 2**bit <= size) for size in sizes[level]}
            for count in sorted((nodes | powers) - {0}, reverse=True):
                add(f"{count} per {names[level]}", _just(address, level, count))
    return dict(sorted(result.items(), key=lambda entry: -len(entry[1])))


def _blocks(address: Sequence[Address], level: int) -> dict[Address, list[int]]:
    found: dict[Address, list[int]] = {}
    for device, place in enumerate(address):
        found.setdefault(place[: len(place) - 1 - level], []).append(device)
    return found


def _just(address: Sequence[Address], level: int, count: int) -> list[int]:
    blocks = _blocks(address, level).values()
    return [device for block in blocks if len(block) >= count for device in block[:count]]


def _multiples(address: Sequence[Address], count: int) -> list[int]:
    """By racks that seat the most, then by nodes that do."""
    nodes = _blocks(address, 0)
    kept = {node: block[: len(block) - len(block) % count] for node, block in nodes.items()}

    def total(prefix: Address) -> int:
        return sum(len(seats) for node, seats in kept.items() if node[: len(prefix)] == prefix)

    def key(node: Address) -> list[tuple[int, Address]]:
        return [(-total(node[:depth]), node[:depth]) for depth in range(len(node) + 1)]

    return [device for node in sorted(nodes, key=key) for device in kept[node]]
