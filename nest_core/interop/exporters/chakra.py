"""Chakra execution traces: messages of Chakra's schema, each behind its length.

A trace is a ``GlobalMetadata`` message and ``Node`` messages (``schema/protobuf/et_def.proto``;
reader: ASTRA-sim's ``workload/feeder_v3/protobuf_util.h``). The part of the
schema that traces use is built here at run time, so that no compiler of protocol buffers is needed.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "ALL_TO_ALL",
    "COLLECTIVE",
    "COMPUTE",
    "RECEIVE",
    "REDUCE_SCATTER",
    "SEND",
    "attributes",
    "delimited",
    "message_types",
    "metadata",
    "node",
]

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 6, 7

_PACKAGE = "ChakraProtoMsg"
_VALUE = {"oneofIndex": 0}
_LIST = {"label": "LABEL_REPEATED"}
_ATTRIBUTE_FIELDS = {
    "is_cpu_op": "bool_val",
    "involved_dim": "bool_list",
    "pg_name": "string_val",
    "comm_type": "int64_val",
    "comm_size": "int64_val",
    "comm_src": "int32_val",
    "comm_dst": "int32_val",
    "comm_tag": "int32_val",
}
"""Field of the value by the name of an attribute, as ASTRA-sim reads it."""


def _field(name: str, number: int, type_: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "number": number, "type": f"TYPE_{type_}", **more}


def _reference(name: str, number: int, message: str, **more: Any) -> dict[str, Any]:
    return _field(name, number, "MESSAGE", typeName=f".{_PACKAGE}.{message}", **more)


@cache
def message_types() -> Mapping[str, Any]:
    """Return the classes ``GlobalMetadata``, ``AttributeProto``, ``BoolList`` and ``Node``."""
    messages: dict[str, list[dict[str, Any]]] = {
        "GlobalMetadata": [_field("version", 1, "STRING")],
        "BoolList": [_field("values", 1, "BOOL", **_LIST)],
        "AttributeProto": [
            _field("name", 1, "STRING"),
            _field("int32_val", 7, "INT32", **_VALUE),
            _field("int64_val", 9, "INT64", **_VALUE),
            _field("bool_val", 27, "BOOL", **_VALUE),
            _reference("bool_list", 28, "BoolList", **_VALUE),
            _field("string_val", 29, "STRING", **_VALUE),
        ],
        "Node": [
            _field("id", 1, "UINT64"),
            _field("name", 2, "STRING"),
            _field("type", 3, "INT32"),  # an enumeration there, of the same encoding
            _field("data_deps", 5, "UINT64", **_LIST),
            _field("duration_micros", 7, "UINT64"),
            _reference("attr", 10, "AttributeProto", **_LIST),
        ],
    }
    file = {
        "name": "et_def.proto",
        "package": _PACKAGE,
        "syntax": "proto3",
        "messageType": [
            {"name": name, "field": fields}
            | ({"oneofDecl": [{"name": "value"}]} if name == "AttributeProto" else {})
            for name, fields in messages.items()
        ],
    }
    pool = DescriptorPool()
    pool.Add(json_format.ParseDict(file, FileDescriptorProto()))
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in messages
    }


def metadata() -> bytes:
    """Return the message that opens a trace."""
    return delimited(message_types()["GlobalMetadata"](version="0.0.4").SerializeToString())


def node(
    identifier: int,
    name: str,
    kind: int,
    after: Sequence[int] = (),
    micros: int = 0,
    given: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a node without its length; attributes may follow it.

    Parameters
    ----------
    kind : int
        `COMPUTE`, `SEND`, `RECEIVE` or `COLLECTIVE`.
    after : sequence of int
        Nodes whose end it waits for.
    micros : int
        Of a compute node.
    given : mapping of str to value
        As `attributes` takes them.

    Examples
    --------
    >>> delimited(node(3, "F", COMPUTE, (1,), 7)).hex(" ")
    '0c 08 03 12 01 46 18 04 2a 01 01 38 07'
    """
    message: bytes = message_types()["Node"](
        id=identifier, name=name, type=kind, data_deps=after, duration_micros=micros
    ).SerializeToString()
    return message + attributes(given or {})


def attributes(given: Mapping[str, Any]) -> bytes:
    """Return ASTRA-sim's attributes by name (see its ``et_feeder``), as the rest of a node."""
    types = message_types()
    message: bytes = types["Node"](
        attr=[
            types["AttributeProto"](name=key, **{_ATTRIBUTE_FIELDS[key]: value})
            for key, value in given.items()
        ]
    ).SerializeToString()
    return message


def delimited(message: bytes) -> bytes:
    """Return a message behind its length."""
    return _length(len(message)) + message


@cache
def _length(size: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + _length(size >> 7)
