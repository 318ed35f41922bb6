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
_VALUE = np.full(256, 255)
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
    text = np.frombuffer(content + b"\n", np.uint8)
    lines = np.concatenate([[0], np.flatnonzero(text == ord("\n"))[:-1] + 1])

    def shown(begin: int) -> str:
        return content[begin : begin + 80].partition(b"\n")[0].decode(errors="replace")

    opening = lines[text[lines] == ord("U")].tolist()
    guids = [_GUID.match(content, begin) for begin in opening]
    source.require(
        guids and all(guids),
        "tables",
        "must hold forwarding tables, each below a line with Unicast lids and the switch's GUID",
        shown(next((at for at, guid in zip(opening, guids, strict=True) if not guid), 0)),
        "save what dump_lfts or ibroute prints, or OpenSM's opensm-lfts.dump",
    )
    lines = lines[(lines > opening[0]) & (lines < len(content) - 9)]
    lines = lines[(text[lines] == ord("0")) & (text[lines + 1] == ord("x"))]
    digits = _VALUE[text[lines[:, None] + np.array([2, 3, 4, 5, 7, 8, 9])]]
    odd = (digits > np.array([15, 15, 15, 15, 9, 9, 9])).any(axis=1) | (text[lines + 6] != ord(" "))
    source.require(
        not odd.any(),
        "tables",
        "must have lines with an address such as 0x001f and a port such as 007",
        shown(int(lines[odd.argmax()])) if len(lines) else "",
        "save the dump unchanged",
    )
    lid, port = digits[:, :4] @ np.array([4096, 256, 16, 1]), digits[:, 4:] @ np.array([100, 10, 1])
    tables: dict[int, npt.NDArray[np.uint8]] = {}
    bounds = [*np.searchsorted(lines, opening).tolist(), len(lines)]
    for guid, low, high in zip(guids, bounds, bounds[1:], strict=False):
        row = np.full(int(lid[low:high].max(initial=0)) + 1, NO_PORT, np.uint8)
        row[lid[low:high]] = np.minimum(port[low:high], NO_PORT)
        if guid is not None:
            tables[int(guid[1], 16)] = row
    return tables
