"""Forwarding tables of InfiniBand switches as ``dump_lfts``, ``ibroute`` and OpenSM print them.

infiniband-diags and OpenSM's ``opensm-lfts.dump`` agree in what counts: a line ``Unicast lids ...
guid 0x...`` opens the table of a switch, and each line below begins with an address of four
hexadecimal digits and a port of three decimal ones. Such dumps are long (a line per switch and
address), so lines are told apart by their first bytes, all at once.
"""

import re

import numpy as np
import numpy.typing as npt

from nest_core.fabric.subnet import NO_PORT
from nest_core.interop.formats.values import Source

__all__ = ["MAX_TABLE_BYTES", "TABLE_START", "read_tables"]

MAX_TABLE_BYTES = 1_000_000_000
"""Of a dump: some 600 switches with 16,384 addresses."""

TABLE_START = "Unicast lids "
_GUID = re.compile(rb"Unicast lids .* guid 0x([0-9a-fA-F]{1,16})")
_VALUE = np.full(256, 255, np.uint8)
_VALUE[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_VALUE[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def read_tables(source: Source, content: bytes) -> dict[int, npt.NDArray[np.uint8]]:
    """Return the port of every switch to every address, 255 for none, by the switch's GUID."""
    source.require(
        len(content) <= MAX_TABLE_BYTES,
        "tables",
        f"must be at most {MAX_TABLE_BYTES:,} bytes",
        "more",
        "take switches outside the fabric out",
    )
    opening, at = [], content.find(TABLE_START.encode())
    while at >= 0:
        opening.append(at)
        at = content.find(f"\n{TABLE_START}".encode(), at) + 1 or -1
    tables: dict[int, npt.NDArray[np.uint8]] = {}
    for begin, end in zip(opening, [*opening[1:], len(content)], strict=False):
        guid = _GUID.match(content, begin, end)
        source.require(
            guid,
            "tables",
            "must name the switch's GUID in every line with Unicast lids",
            _line(content, begin),
            "save the dump unchanged",
        )
        if guid is not None:
            tables[int(guid[1], 16)] = _table(source, content[begin:end])
    source.require(
        tables,
        "tables",
        "must hold forwarding tables, each below a line with Unicast lids and the switch's GUID",
        _line(content, 0),
        "save what dump_lfts or ibroute prints, or OpenSM's opensm-lfts.dump",
    )
    return tables


def _line(content: bytes, begin: int) -> str:
    return content[begin : begin + 80].partition(b"\n")[0].decode(errors="replace")


def _table(source: Source, content: bytes) -> npt.NDArray[np.uint8]:
    """Return the port to every address of one switch."""
    text = np.frombuffer(content, np.uint8)
    lines = np.flatnonzero(text == ord("\n")) + 1
    lines = lines[lines < len(content) - 9]
    lines = lines[(text[lines] == ord("0")) & (text[lines + 1] == ord("x"))]
    # A row per place, in which all lines stand one after another.
    digits = _VALUE[text[lines + np.array([[2], [3], [4], [5], [7], [8], [9]])]]
    odd = (digits[:4] > 15).any(axis=0) | (digits[4:] > 9).any(axis=0)
    odd |= text[lines + 6] != ord(" ")
    source.require(
        not odd.any(),
        "tables",
        "must have lines with an address such as 0x001f and a port such as 007",
        _line(content, int(lines[odd.argmax()])) if len(lines) else "",
        "save the dump unchanged",
    )
    lid, port = np.array([4096, 256, 16, 1]) @ digits[:4], np.array([100, 10, 1]) @ digits[4:]
    row = np.full(int(lid.max(initial=0)) + 1, NO_PORT, np.uint8)
    row[lid] = np.minimum(port, NO_PORT)
    return row
