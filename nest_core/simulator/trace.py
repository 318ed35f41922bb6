"""An iteration as a Chrome trace: what Perfetto and the browsers' own viewers read.

A process is a stage, seen from a device of its slowest class; a thread is one of its streams, on
which one thing runs at a time; counters are links. Times are microseconds with three decimals,
which Perfetto keeps to the nanosecond, from the iteration's start on.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nest_core.network import BusyLink
from nest_core.simulator.activity import Activity, entry_times, part_of
from nest_core.simulator.entries import STREAMS
from nest_core.simulator.iteration import Iteration
from nest_core.simulator.link_use import link_use

__all__ = ["trace_events"]

_BINS = 1000
_MICROSECONDS = 1e6


def trace_events(
    iteration: Iteration, activities: Sequence[Activity], links: Sequence[BusyLink]
) -> Iterator[str]:
    """Yield the parts of a JSON object, line by line.

    Parameters
    ----------
    activities : sequence of Activity
        Of the device that stands for each stage.
    links : sequence of BusyLink
        Which become counters.
    """
    yield '{"displayTimeUnit":"ms","traceEvents":['
    for number, event in enumerate(_events(iteration, activities, links)):
        yield ("," if number else "") + json.dumps(event, separators=(",", ":"))
    yield "]}"


def _events(
    iteration: Iteration, activities: Sequence[Activity], links: Sequence[BusyLink]
) -> Iterator[dict[str, Any]]:
    for entry in activities:
        alike = f" and {entry.alike - 1:,} like it" if entry.alike > 1 else ""
        yield from _named(entry.stage + 1, f"stage {entry.stage}, device {entry.device}{alike}")
        yield from _stage(iteration, entry)
    counters = len(activities) + 1
    yield from _named(counters, "busiest links")
    edges_s = np.linspace(0.0, float(iteration.ends_s.max()), _BINS + 1)
    for link, shares in zip(
        links, link_use(iteration, [link.link_group for link in links], edges_s), strict=True
    ):
        for begins, share in zip(edges_s.tolist(), shares.tolist(), strict=False):
            value = {"%": round(100 * share, 3)}
            yield {"ph": "C", "pid": counters, "name": link.in_words, "args": value} | _at(begins)


def _named(process: int, name: str, thread: int = 0) -> Iterator[dict[str, Any]]:
    """Yield a process's, or a thread's, name and place."""
    kind, place = ("thread", thread) if thread else ("process", process)
    of: dict[str, Any] = {"ph": "M", "pid": process, "tid": thread or 1}
    yield of | {"name": f"{kind}_name", "args": {"name": name}}
    yield of | {"name": f"{kind}_sort_index", "args": {"sort_index": place}}


def _at(seconds: float) -> dict[str, float]:
    return {"ts": round(_MICROSECONDS * seconds, 3)}


def _stage(iteration: Iteration, entry: Activity) -> Iterator[dict[str, Any]]:
    program, process = iteration.programs[entry.stage], entry.stage + 1
    begins_s, ends_s = entry_times(iteration, entry.stage, entry.device)
    for stream in sorted({program.rows[row].stream for row in np.unique(program.row)}):
        yield from _named(process, STREAMS[stream], stream + 1)
    for place in np.flatnonzero(ends_s > begins_s).tolist():
        row = program.rows[program.row[place]]
        begins = _at(begins_s[place])
        details = {"micro-batch": int(program.micro_batch[place]), "layer": row.layer}
        details = {name: number for name, number in details.items() if number >= 0}
        called = {"kind": row.call.kind, "bytes": row.size} if row.call else {}
        yield {
            "ph": "X",
            "cat": part_of(row),
            "name": row.kind or part_of(row),
            "pid": process,
            "tid": row.stream + 1,
            "dur": round(_at(ends_s[place])["ts"] - begins["ts"], 3),
            "args": details | called,
        } | begins
