"""Switches of an InfiniBand subnet: what hangs on which port, and their forwarding tables.

A switch forwards by the address of the receiving port alone (LID; InfiniBand Architecture
Specification, volume 1, chapter 18): its linear forwarding table is one port for every address,
255 where it knows none. A port with several addresses (LMC above 0) is sent to at its first.
"""

import base64
import binascii
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nest_core.documents import require
from nest_core.documents.schema.fabric import ForwardingTable

__all__ = ["NO_PORT", "SubnetSwitch", "check_cables", "packed_table"]

NO_PORT = 255
"""In tables: no way to this address."""

MAX_ADDRESSES = 49_152


@dataclass(frozen=True, slots=True)
class SubnetSwitch:
    """A switch, its ports, and its table.

    Parameters
    ----------
    switch : str
        Id of an element.
    guid : int
    ports : tuple of (int, int, str)
        Those with a link, the first address of what hangs there (0 for a switch), and the element;
        empty for what is no part of the fabric.
    table : str
        As `packed_table` gives it; empty where it is not known.
    """

    switch: str
    guid: int
    ports: tuple[tuple[int, int, str], ...]
    table: str = ""

    @classmethod
    def from_file(cls, entry: ForwardingTable) -> Self:
        """Return the switch of a file."""
        ports = (text.split(" ", 2) for text in entry.ports)
        return cls(
            entry.switch,
            int(entry.guid, 16),
            tuple((int(port), int(lid), end) for port, lid, end in ports),
            entry.table,
        )

    def document(self) -> dict[str, Any]:
        """Return what a file says of it."""
        entry = {
            "switch": self.switch,
            "guid": f"{self.guid:#x}",
            "ports": [f"{port} {lid} {end}" for port, lid, end in self.ports],
        }
        return entry | ({"table": self.table} if self.table else {})

    def forwards(self) -> npt.NDArray[np.uint8]:
        """Return the port to every address, (addresses,)."""
        unpack = zlib.decompressobj()
        try:
            row = unpack.decompress(base64.b64decode(self.table, validate=True), MAX_ADDRESSES)
        except (binascii.Error, zlib.error) as error:
            row, unpack = str(error).encode(), zlib.decompressobj()
        require(
            unpack.eof and not unpack.unconsumed_tail,
            "forwarding.table",
            f"must be at most {MAX_ADDRESSES:,} bytes, packed by zlib and written in base 64",
            f"something else at {self.switch}",
            "read the topology and its tables again",
        )
        return np.frombuffer(row, np.uint8)


def packed_table(row: npt.NDArray[np.uint8]) -> str:
    """Return a table as files hold it.

    Examples
    --------
    >>> table = packed_table(np.array([255, 1, 1, 7], np.uint8))
    >>> SubnetSwitch("leaf", 1, (), table).forwards().tolist()
    [255, 1, 1, 7]
    """
    return base64.b64encode(zlib.compress(row.tobytes())).decode()


def check_cables(
    forwarding: Sequence[SubnetSwitch], links: Iterable[tuple[str, str, int]], nics: Set[str]
) -> None:
    """Refuse ports that are not those of the fabric's links.

    Parameters
    ----------
    links : iterable of (str, str, int)
        Ends and number of parallel links, none of them of a device.
    nics : set of str
    """
    remedy = 'read the topology and its tables again, or choose routing = "adaptive"'
    ports: Counter[tuple[str, str]] = Counter()
    for index, entry in enumerate(forwarding):
        require(
            len({port for port, *_ in entry.ports if port < NO_PORT}) == len(entry.ports),
            f"forwarding[{index}].ports",
            "must be numbers from 1 to 254, once each",
            entry.switch,
            remedy,
        )
        ports.update((entry.switch, end) for *_, end in entry.ports if end)
    switches = Counter(entry.switch for entry in forwarding)
    twice = [name for name, count in switches.items() if count > 1]
    require(not twice, "forwarding", "must list a switch once", "".join(twice[:1]), remedy)
    cables: dict[tuple[str, str], int] = {}
    for a, b, count in links:
        for here, far in ((a, b), (b, a)):
            if here in switches:
                cables[here, far] = count
                is_listed = far in switches or far in nics
            else:
                is_listed = here not in nics or far in switches
            require(is_listed, "forwarding", "must list every switch", far, remedy)
    for switch, far in {**ports, **cables}:
        stated, present = ports[switch, far], cables.get((switch, far), 0)
        require(
            stated == present,
            "forwarding",
            "must have a port for every link of a switch",
            f"{stated} ports of {switch} to {far}, with {present} links",
            remedy,
        )
