"""Rules that every fabric shares, stated once.

Elements that a specification counts and a site does not have: ``"node 17"``, ``"spine 0"``.

Numbers are those of the whole fabric, from 0, as if nothing had failed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from nest_core.documents.errors import InputError, require

if TYPE_CHECKING:
    import networkx as nx  # imported by who draws one: most fabrics are counted

__all__ = [
    "MAX_DEVICES",
    "MAX_EXPLICIT_DEVICES",
    "TABLED",
    "IntArray",
    "LinkGraph",
    "Routing",
    "check_devices",
    "check_explicit_size",
    "check_hosts",
    "check_routing",
    "check_some_left",
    "parse_failed",
    "positive",
    "whole",
]

MAX_DEVICES = 1_048_576
MAX_EXPLICIT_DEVICES = 16_384

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
LinkGraph: TypeAlias = "nx.Graph[Any]"
Routing = Literal["adaptive", "shortest_path", "ecmp", "tables", "minhop", "updn", "dor"]
TABLED = ("tables", "minhop", "updn", "dor")
"""By forwarding tables of InfiniBand switches: as they are stated, or as OpenSM's engines fill them
(`nest_core.network.opensm`)."""


def positive(field: str, value: float, *, zero: bool = False) -> None:
    """Refuse NaN, infinities, negative figures and, unless ``zero``, zero."""
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        rule = (
            "must be a finite number of at least 0" if zero else "must be a finite number above 0"
        )
        raise InputError(field, rule, value, "correct the figure")


def whole(field: str, value: int, *, lowest: int = 1) -> None:
    """Refuse counts below ``lowest``."""
    require(
        value >= lowest, field, f"must be a whole number of at least {lowest}", value, "correct it"
    )


def check_hosts(devices_per_host: int, nodes: Sequence[int]) -> None:
    """Refuse hosts that no node has a whole number of; 0 stands for one host per node."""
    uneven = next((size for size in nodes if devices_per_host and size % devices_per_host), None)
    require(
        uneven is None,
        "devices_per_host",
        f"must divide the {uneven} devices of a node",
        devices_per_host,
        "correct it, or leave it out where a node is one host",
    )


def check_devices(field: str, devices: int) -> None:
    """Refuse fabrics over the limit."""
    require(
        devices <= MAX_DEVICES,
        field,
        f"must not exceed {MAX_DEVICES:,} devices",
        devices,
        "make the fabric smaller",
    )


def check_some_left(missing: Sequence[str], devices: int) -> None:
    """Refuse missing elements that take every device with them."""
    require(
        not missing or devices != 0,
        "missing",
        "must leave at least one device",
        list(missing),
        "take entries out",
    )


def check_explicit_size(devices: int) -> None:
    """Refuse to build link graphs that no one could look at."""
    require(
        devices <= MAX_EXPLICIT_DEVICES,
        "explicit()",
        f"builds link graphs of at most {MAX_EXPLICIT_DEVICES:,} devices",
        devices,
        "use the collapsed levels, which have no such limit",
    )


def check_routing(routing: str, ecmp_seed: int) -> None:
    """Refuse unknown routing, and seeds that nothing reads."""
    require(
        routing in get_args(Routing),
        "routing",
        f"must be one of {', '.join(get_args(Routing))}",
        routing,
        "pick one of them",
    )
    whole("ecmp_seed", ecmp_seed, lowest=0)
    require(
        not ecmp_seed or routing == "ecmp",
        "ecmp_seed",
        'must be absent or 0 unless routing is "ecmp"',
        ecmp_seed,
        "remove it",
    )


def parse_failed(missing: tuple[str, ...], counts: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Numbers of the failed elements by name, ascending and once each.

    Parameters
    ----------
    missing : tuple of str
        Each a name and a number from 0 (``"leaf 3"``).
    counts : mapping of str to int
        How many elements of each name the whole fabric has.

    Raises
    ------
    InputError
        For what is not a name and a number, an unknown name, or a number out of range.

    Examples
    --------
    >>> parse_failed(("node 3", "node 1", "spine 0"), {"node": 8, "spine": 2})
    {'node': (1, 3), 'spine': (0,)}
    """
    failed: dict[str, set[int]] = {}
    for index, entry in enumerate(missing):
        field = f"missing[{index}]"
        name, _, number = entry.rpartition(" ")
        require(
            name in counts,
            field,
            "must be an element's name and its number",
            entry,
            "write one of " + ", ".join(f'"{tier} 0"' for tier in counts),
        )
        require(
            number.isascii() and number.isdigit() and (len(number) <= 9),
            field,
            "must end in a whole number",
            entry,
            f'write "{name} 0" or another number',
        )
        require(
            int(number) < counts[name],
            field,
            f"must have a number below {counts[name]}, because numbers start at 0",
            entry,
            "correct the number",
        )
        failed.setdefault(name, set()).add(int(number))
    return {name: tuple(sorted(numbers)) for name, numbers in failed.items()}
