"""Chakra execution traces, written byte by byte.

A trace is a ``GlobalMetadata`` message and ``Node`` messages, each behind its length as a varint
(Chakra's ``schema/protobuf/et_def.proto`` at commit 6dc63e14, package ``ChakraProtoMsg``; reader:
ASTRA-sim's ``workload/feeder_v3/protobuf_util.h``). Only varint and length-delimited fields occur,
so the wire format [1]_ is written here rather than with a library that would be needed for nothing
else.

References
----------
.. [1] Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "ALL_TO_ALL",
    "COLLECTIVE",
    "COMPUTE",
    "RECEIVE",
    "REDUCE_SCATTER",
    "SCHEMA",
    "SEND",
    "flags",
    "metadata",
    "node",
    "number",
    "text",
    "wide",
]

SCHEMA = "Chakra schema commit 6dc63e14"
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 6, 7

_VARINT, _BYTES = 0, 2


def metadata() -> bytes:
    """The message that opens a trace."""
    return _delimited(_field(1, b"0.0.4"))


def node(
    identifier: int, name: str, kind: int, after: Sequence[int], micros: int, attributes: bytes
) -> bytes:
    """A node behind its length.

    Parameters
    ----------
    kind : int
        `COMPUTE`, `SEND`, `RECEIVE` or `COLLECTIVE`.
    after : sequence of int
        Nodes whose end it waits for.
    micros : int
        Of a compute node.
    attributes : bytes
        Joined results of `number`, `wide`, `text` and `flags`.

    Examples
    --------
    >>> node(3, "F", COMPUTE, (1,), 7, b"").hex(" ")
    '0c 08 03 12 01 46 18 04 2a 01 01 38 07'
    """
    parts = [_count(1, identifier)] if identifier else []  # zero is what an absent field means
    parts += [_named(name), _count(3, kind)]
    if after:
        parts.append(_field(5, b"".join(map(_varint, after))))
    if micros:
        parts.append(_count(7, micros))
    return _delimited(b"".join((*parts, attributes)))


@lru_cache(maxsize=65_536)
def number(name: str, value: int) -> bytes:
    """An attribute of type int32."""
    return _attribute(name, _count(7, value))


@lru_cache(maxsize=65_536)
def wide(name: str, value: int) -> bytes:
    """An attribute of type int64."""
    return _attribute(name, _count(9, value))


@lru_cache(maxsize=65_536)
def text(name: str, value: str) -> bytes:
    """An attribute of type string."""
    return _attribute(name, _field(29, value.encode()))


@lru_cache(maxsize=64)
def flags(name: str, values: tuple[bool, ...] | bool) -> bytes:
    """An attribute of type bool, or a list of them."""
    if isinstance(values, bool):
        return _attribute(name, _count(27, int(values)))
    return _attribute(name, _field(28, _field(1, bytes(map(int, values)))))


def _attribute(name: str, value: bytes) -> bytes:
    return _field(10, _field(1, name.encode()) + value)


@lru_cache(maxsize=4096)
def _named(name: str) -> bytes:
    return _field(2, name.encode())


def _count(tag: int, value: int) -> bytes:
    return _varint(tag << 3 | _VARINT) + _varint(value)


def _field(tag: int, content: bytes) -> bytes:
    return _varint(tag << 3 | _BYTES) + _delimited(content)


def _delimited(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first."""
    if value < 128:
        return bytes((value,))
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
