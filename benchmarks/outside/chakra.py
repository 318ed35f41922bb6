"""Our traces for ASTRA-sim, read by protoc with the fields of Chakra's schema.

Neither Debian nor the names that PyPI might have it under (chakra, mlcommons-chakra, astra-sim)
give a reader of Chakra's traces or their schema, and astra-sim-sdk has stubs of a service alone:
what of the schema traces use stands here. Looked at is what any reader needs: a length before
every message, nodes with a number of their own, no wait for one that comes later, a receive of the
same size for every send.
"""

import re
import subprocess
from collections import Counter

from benchmarks.outside.tool import BUILD, Debian, Row, reasons
from nest_core import export

TOOL = Debian("protobuf-compiler", ("protobuf-compiler", "libprotoc32", "libprotobuf32"))
PLANS = ("dp=16,pp=2,tp=2", "dp=8,pp=4,tp=2,schedule=gpipe", "dp=4,tp=8,pp=2", "dp=64,zero=1")
SCHEMA = """syntax = "proto3";
message Head { string version = 1; }
message Bools { repeated bool values = 1; }
message Attribute { string name = 1; int32 i32 = 7; int64 i64 = 9; bool flag = 27;
  Bools flags = 28; string text = 29; }
message Node { uint64 id = 1; string name = 2; int32 type = 3; repeated uint64 waits = 5;
  uint64 micros = 7; repeated Attribute attr = 10; }
message Trace { Head head = 14; repeated Node node = 15; }
"""
SEND, RECEIVE = "5", "6"


def as_one_message(trace: bytes) -> bytes:
    """Return a trace as one message, whose fields are those that stand behind their lengths."""
    result, at = b"", 0
    while at < len(trace):
        first, size, shift = at, 0, 0
        while not shift or trace[at - 1] >= 128:
            size |= (trace[at] & 127) << shift
            at, shift = at + 1, shift + 7
        result += bytes([(15 if first else 14) << 3 | 2]) + trace[first : at + size]
        at += size
    if at != len(trace):
        raise ValueError("it ends within a message")
    return result


def decoded(trace: bytes) -> str:
    """Return what protoc prints of a trace."""
    (BUILD / "trace.proto").write_text(SCHEMA)
    done = subprocess.run(
        ["protoc", "--decode=Trace", "trace.proto"],
        input=as_one_message(trace),
        env=TOOL.environment(),
        cwd=BUILD,
        capture_output=True,
    )
    if done.returncode:
        raise ValueError(done.stderr.decode().strip())
    return done.stdout.decode()


def faults(trace: bytes, rank: str, open_sends: Counter[tuple[str, ...]]) -> list[str]:
    """Return what a reader would stumble over; sends less receives are added up."""
    text = decoded(trace)
    wrong = ["fields that the schema lacks"] if re.search(r"(?m)^ *\d+[: ]", text) else []
    seen: set[str] = set()
    for node in re.split(r"(?m)^node \{$", text)[1:]:
        number, *more = re.findall(r"(?m)^  id: (\d+)$", node) or ["0"]
        if more or number in seen or not set(re.findall(r"(?m)^  waits: (\d+)$", node)) <= seen:
            wrong.append(f"node {number}: its number, or a wait for a later one")
        seen.add(number)
        kind = "".join(re.findall(r"(?m)^  type: (\d+)$", node))
        facts = dict(re.findall(r'name: "comm_(\w+)"\n    i\d+: (\d+)', node))
        if kind in (SEND, RECEIVE):
            open_sends[tuple(facts.get(key, "0") for key in ("src", "dst", "tag", "size"))] += (
                1 if kind == SEND else -1
            )
            if facts.get("src" if kind == SEND else "dst", "0") != rank:
                wrong.append("it speaks for another rank")
    return wrong


def rows() -> list[Row]:
    """Return how many plans have traces that fit together."""
    TOOL.root()
    wrong, count = [], 0
    for plan in PLANS:
        open_sends: Counter[tuple[str, ...]] = Counter()
        for name, content in export("llama2-7b-64-h100", "astra-sim", plan=plan).files.items():
            if name.endswith(".et") and isinstance(content, bytes):
                count += 1
                fault = faults(content, name.split(".")[1], open_sends)
                wrong += [f"{plan}, {name}: {text}" for text in fault[:1]]
        if any(open_sends.values()):
            wrong.append(f"{plan}: sends without receives")
    what = "traces for ASTRA-sim: nodes, waits, sends and receives fit together"
    return [Row("protoc", TOOL.version(), what, count, count - len(wrong), reasons(wrong))]
