"""Reads the output of nccl-tests (``all_reduce_perf`` and its siblings).

Understood are the tables of nccl-tests 2.x as they are printed: ``size count type [redop [root]]``
and then ``time algbw busbw #wrong`` once (out of place) or twice (then in place), with or without
times of iterations, time stamps and what rccl-tests add. The out-of-place time is taken. Devices,
nodes and the accelerator come from the header's ``Rank`` lines, the collective from
``Collective test starting`` or the program's name; all can be given instead. Runs that failed or
had wrong results are refused.

Limits: files of 5 MB (`nest_core.documents.files.read_text`), `MAX_ROWS` rows.
Source: NVIDIA/nccl-tests ``src/common.cu``, ``PERFORMANCE.md``.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

from nest_core.documents import MICROSECOND, InputError, figure_of, require
from nest_core.hardware.collectives.measurements import MAX_ROWS, OPS, Measurement, op_name

__all__ = [
    "LogFacts",
    "NcclRun",
    "complete_run",
    "is_log",
    "read_log",
    "read_run",
]

_RANK = re.compile(
    r"^#\s+Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device\s+(\d+)\s+\[[0-9a-fA-Fx:.]+\]\s+(.*?)\s*$"
)
_FAILED = re.compile(r"\bTest (?:NCCL |CUDA )?failure\b|^# Out of bounds values .*\bFAILED\b")
_FOOTER = re.compile(r"(?m)^(?:.{0,40}[ :>])?# Avg bus bandwidth\s*: [\d.]+")
_PROGRAM = re.compile(r"\b([a-z_]+)_perf\b")
_PREFIX = re.compile(r"^(?:\[\d+,\d+\]<\w+>:| *\d+:|[A-Za-z][\w.-]*:(?= ))\s*")
_TIMESTAMP = re.compile(r"\s\"?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s*$")
_PER_ITERATION = 21
"""Columns with the shortest, longest, 99th percentile and spread of iterations after each group."""
_RCCL = 16
"""Columns with algorithm, protocol and channels behind, as AMD's rccl-tests have them."""
_LARGEST = 2.0**50
_RATIO = 0.1
"""Bandwidths are printed with two decimals."""

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
    """Return whether a text looks like the output of nccl-tests.

    Examples
    --------
    >>> is_log("# nThread 1 nGpus 8 minBytes 8"), is_log("device,op,num_gpus")
    (True, False)
    """
    return bool(re.search(r"# nThread|#wrong[^\n]*busbw|busbw[^\n]*#wrong", text[:20_000]))


@dataclass(frozen=True, slots=True)
class NcclRun:
    """What a log of nccl-tests says.

    Parameters
    ----------
    name : str
        Of the log.
    op : str or None
        The collective, as this project spells it or as nccl-tests do; None where it is not told.
    ranks : tuple of (str, int, str)
        Host, number of the device on it and accelerator of every rank that the header lists.
    rows : tuple of (float, float)
        Bytes and seconds.
    """

    name: str
    op: str | None
    ranks: tuple[tuple[str, int, str], ...]
    rows: tuple[tuple[float, float], ...]

    @property
    def hosts(self) -> Counter[str]:
        """Return the ranks of every host."""
        return Counter(host for host, *_ in self.ranks)

    @property
    def accelerator(self) -> str:
        """Return the accelerator of the first rank; empty where the header lists none."""
        return self.ranks[0][2] if self.ranks else ""


def read_run(text: str, name: str, *, every_rank: bool = True) -> NcclRun:
    """Return what a log says.

    Parameters
    ----------
    text : str
    name : str
        What to call it in errors.
    every_rank : bool
        Whether a header that leaves ranks out is refused, as that of a very large run does.

    Raises
    ------
    InputError
        If a row is malformed, the run failed, or nothing was measured.
    """
    op: str | None = None
    ranks: dict[int, tuple[str, int, str]] = {}
    rows: list[tuple[float, float]] = []
    last = ""
    for number, printed in enumerate(text.splitlines(), start=1):
        line = _PREFIX.sub("", printed)  # without what mpirun, srun -l and pdsh put before it
        if _FAILED.search(line):
            raise InputError(
                f"{name} line {number}",
                "must be of a run that ended well",
                line.strip(),
                "mend what its first error names, and run it again",
            )
        if rank := _RANK.match(line):
            ranks.setdefault(int(rank[1]), (rank[2], int(rank[3]), rank[4]))
        elif row := _row(line, f"{name} line {number}"):
            rows.append(row)
            last = line
        elif op is None and (program := _PROGRAM.search(line)):
            op = op_name(program[1]) or program[1]
        require(
            len(rows) <= MAX_ROWS, name, f"must have at most {MAX_ROWS:,} rows", "more", "split it"
        )
    numbered = max(ranks, default=-1) + 1
    require(
        not every_rank or len(ranks) == numbered,
        name,
        "must list every rank in its header",
        f"{len(ranks):,} of {numbered:,}",
        "paste all of it",
    )
    require(
        rows,
        name,
        "must hold rows of nccl-tests",
        "a text without any",
        "paste the whole output of all_reduce_perf or its siblings",
    )
    ordered = tuple(ranks[rank] for rank in sorted(ranks))
    return NcclRun(name, op or _op_of_row(last.split(), len(ranks)), ordered, tuple(rows))


def complete_run(text: str, name: str) -> NcclRun:
    """Return what a log from its header to its footer says.

    Raises
    ------
    InputError
        If it is no such log, is cut off, or is one that `read_run` refuses.
    """
    require(
        is_log(text),
        name,
        "must be the output of nccl-tests",
        "another text",
        "save all that all_reduce_perf or alltoall_perf prints",
    )
    run = read_run(text, name)
    require(
        _FOOTER.search(text),
        name,
        "must end with the average bus bandwidth",
        "cut off",
        "paste the whole output, or run it again",
    )
    return run


def read_log(text: str, name: str, facts: LogFacts | None = None) -> list[Measurement]:
    """Return the measurements of a log.

    Parameters
    ----------
    text : str
    name : str
        What to call it in errors and in the rows' ids.
    facts : LogFacts, optional

    Raises
    ------
    InputError
        If `read_run` refuses it, or neither header nor facts say what was measured.
    """
    facts = facts or LogFacts()
    run = read_run(text, name, every_rank=not facts.devices)
    count = _stated(facts.devices or len(run.ranks), name, "devices", "the number of devices")
    nodes = facts.nodes or len(run.hosts) or 1
    require(
        not (count < 2 or nodes < 1 or count % nodes),
        name,
        "must have at least 2 devices, spread evenly over its nodes",
        f"{count} on {nodes}",
        "give devices and nodes",
    )
    op = _stated(facts.op or run.op, name, "op", "the collective")
    require(op in OPS, "op", f"must be one of {', '.join(OPS)}", op, "choose one")
    accelerator = _stated(facts.accelerator or run.accelerator, name, "accelerator", "the device")
    return [
        Measurement(
            f"{name}/{int(size)}",
            op,
            accelerator,
            count,
            nodes,
            size,
            seconds,
            True,
            facts.network if nodes > 1 else "",
            facts.network_Bps if nodes > 1 else 0.0,
            name,
        )
        for size, seconds in run.rows
    ]


def _op_of_row(words: list[str], ranks: int) -> str | None:
    """Return the collective that a row's bandwidths tell, of versions that name no program.

    Of ``n`` ranks, bus bandwidth is ``2 (n - 1) / n`` of the algorithm's for all-reduce and
    ``(n - 1) / n`` for what is gathered or scattered; only a reduce-scatter of these has an
    operation.
    """
    if ranks < 2 or len(words) < 13:
        return None
    ratio = figure_of(words[7]) / (figure_of(words[6]) or math.nan) * ranks / (ranks - 1)
    if abs(ratio - 2) < _RATIO:
        return "all_reduce"
    return "reduce_scatter" if abs(ratio - 1) < _RATIO and words[3] != "none" else None


def _row(line: str, where: str) -> tuple[float, float] | None:
    """Return bytes and seconds of a row; None for a line that is not one."""
    words = _TIMESTAMP.sub("", line).split()
    if len(words) == _PER_ITERATION:
        words = words[:9] + words[13:17]
    elif len(words) == _RCCL and words[13].isalpha():
        words = words[:13]
    if len(words) < 7 or not (words[0].isdecimal() and words[1].isdecimal()):
        return None
    figures = words[3:]
    columns = 8 if len(figures) >= 8 else 4
    require(
        len(figures) - columns <= 2,
        where,
        "must have 7 to 13 columns",
        len(words),
        "paste the log unchanged",
    )
    size, microseconds = figure_of(words[0]), figure_of(figures[-columns])
    require(
        math.isfinite(microseconds) and microseconds > 0 and size <= _LARGEST,
        where,
        "must state a positive time",
        figures[-columns],
        "paste the log unchanged",
    )
    wrong = next((word for word in figures[3 - columns :: 4] if figure_of(word) > 0), None)
    require(
        wrong is None,
        where,
        "must have no wrong results",
        wrong,
        "mend what makes results wrong, and run it again",
    )
    return (size, microseconds * MICROSECOND) if size else None


def _stated(value: _Value | None, name: str, option: str, what: str) -> _Value:
    if not value:
        raise InputError(name, f"must say {what} in its header", "silent", f"give --{option}")
    return value
