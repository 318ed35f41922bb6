"""Reads the output of nccl-tests (``all_reduce_perf`` and its siblings).

Understood are the tables of nccl-tests 2.x as they are printed: ``size count type [redop [root]]``
and then ``time algbw busbw #wrong`` once (out of place) or twice (then in place). The out-of-place
time is taken. Devices, nodes and the accelerator come from the header's ``Rank`` lines, the
collective from ``Collective test starting`` or the program's name; all can be given instead.

Limits: files of 5 MB (`nest_core.files.read_text`), `MAX_ROWS` rows.
Source: NVIDIA/nccl-tests ``src/common.cu``, ``PERFORMANCE.md``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TypeVar

from nest_core.errors import InputError
from nest_core.hardware.collectives.measurements import MAX_ROWS, OPS, Measurement, op_name
from nest_core.units import MICROSECOND

__all__ = ["LogFacts", "is_log", "read_log"]

_RANK = re.compile(
    r"^#\s+Rank\s+\d+\s.*?\bon\s+(\S+)\s+device\s+\d+\s+\[[0-9a-fA-Fx:.]+\]\s+(.*?)\s*$"
)
_PROGRAM = re.compile(r"\b([a-z_]+)_perf\b")
_PREFIX = re.compile(r"^(?:\[\d+,\d+\]<\w+>:|\d+:)\s*")
_LARGEST = 2.0**50

_Value = TypeVar("_Value", int, str)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a person says about a log; None (or empty) leaves it to the header."""

    op: str | None = None
    accelerator: str = ""
    devices: int | None = None
    nodes: int | None = None
    network: str = ""
    network_Bps: float = 0.0


def is_log(text: str) -> bool:
    """Whether a text looks like the output of nccl-tests.

    Examples
    --------
    >>> is_log("# nThread 1 nGpus 8 minBytes 8"), is_log("device,op,num_gpus")
    (True, False)
    """
    head = text[:20_000]
    return "# nThread" in head or ("#wrong" in head and "busbw" in head)


def read_log(text: str, name: str, facts: LogFacts | None = None) -> list[Measurement]:
    """Measurements of a log.

    Parameters
    ----------
    text : str
    name : str
        What to call it in errors and in the rows' ids.
    facts : LogFacts, optional

    Raises
    ------
    InputError
        If a row is malformed, nothing was measured, or neither header nor facts say what.
    """
    facts = facts or LogFacts()
    hosts: list[str] = []
    devices: list[str] = []
    op = facts.op
    sizes: list[tuple[float, float]] = []
    for number, printed in enumerate(text.splitlines(), start=1):
        line = _PREFIX.sub("", printed)  # what mpirun and srun put before it
        if line.startswith("#"):
            rank = _RANK.match(line)
            if rank:
                hosts.append(rank[1])
                devices.append(rank[2])
                continue
        row = _row(line, f"{name} line {number}")
        if row is None:
            program = _PROGRAM.search(line)
            if op is None and program:
                op = op_name(program[1]) or program[1]
        elif len(sizes) == MAX_ROWS:
            raise InputError(name, f"must have at most {MAX_ROWS:,} rows", "more", "split it")
        else:
            sizes.append(row)
    if not sizes:
        remedy = "paste the whole output of all_reduce_perf or its siblings"
        raise InputError(name, "must hold rows of nccl-tests", "a text without any", remedy)
    count = _known(facts.devices or len(hosts), name, "devices", "the number of devices")
    nodes = facts.nodes or len(set(hosts)) or 1
    if count < 2 or nodes < 1 or count % nodes:
        remedy = "give devices and nodes"
        raise InputError(
            name,
            "must have at least 2 devices, spread evenly over its nodes",
            f"{count} on {nodes}",
            remedy,
        )
    accelerator = facts.accelerator or (devices[0] if devices else "")
    chosen = _known(op, name, "op", "the collective")
    if chosen not in OPS:
        raise InputError("op", f"must be one of {', '.join(OPS)}", chosen, "choose one")
    return [
        Measurement(
            f"{name}/{int(size)}",
            chosen,
            _known(accelerator, name, "accelerator", "the device"),
            count,
            nodes,
            size,
            seconds,
            True,
            facts.network if nodes > 1 else "",
            facts.network_Bps if nodes > 1 else 0.0,
            name,
        )
        for size, seconds in sizes
    ]


def _row(line: str, where: str) -> tuple[float, float] | None:
    """Bytes and seconds of a row; None for a line that is not one."""
    words = line.split()
    if len(words) < 7 or not (words[0].isdecimal() and words[1].isdecimal()):
        return None
    figures = words[3:]
    columns = 8 if len(figures) >= 8 else 4
    if len(figures) - columns > 2:
        raise InputError(where, "must have 7 to 13 columns", len(words), "paste the log unchanged")
    size, microseconds = _figure(words[0]), _figure(figures[-columns])
    if not (math.isfinite(microseconds) and microseconds > 0 and size <= _LARGEST):
        raise InputError(
            where, "must state a positive time", figures[-columns], "paste the log unchanged"
        )
    return (size, microseconds * MICROSECOND) if size else None


def _figure(word: str) -> float:
    try:
        return float(word)
    except (ValueError, OverflowError):
        return math.nan


def _known(value: _Value | None, name: str, option: str, what: str) -> _Value:
    if not value:
        raise InputError(name, f"must say {what} in its header", "silent", f"give --{option}")
    return value
