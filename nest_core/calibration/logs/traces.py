"""What a profiler wrote of one rank: seconds of compute, communication by kind, idling.

Traces of PyTorch's profiler (Kineto), and what Chakra's ``chakra_trace_link`` makes of one.

Kernels, copies and fills of the device are taken by their times, whatever stream they run on.
Kernels of NCCL are told by their names, of which only the collective can be trusted. A moment
belongs to compute if any runs, else to the first kind of communication that does, else to copies,
so that the parts add up to a step. A kernel of NCCL that waits for another rank counts as
communication.

Times are microseconds with three decimals, read as nanoseconds; steps are those that
``ProfilerStep#`` marks, on the device where it has them.

Chakra keeps how long a kernel ran, and of when it began the call that launched it. So kernels of a
stream are played one after the other, each as soon as it is launched; where one waited for another
stream, which the file does not say, it begins too early here. Chakra's ``.et`` files have neither,
but whole microseconds.

Source: ``libkineto/src/output_json.cpp`` of pytorch/kineto @114171df; ``src/device/generate.py`` of
NVIDIA/nccl; ``src/trace_link/trace_linker.py`` of mlcommons/chakra @0f506d4a.
"""

import codecs
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from nest_core.documents import InputError, require
from nest_core.documents.files import file_blocks
from nest_core.network import IntArray

__all__ = ["TERMS", "RankTrace", "read_trace"]

TERMS = ("compute", "all_reduce", "reduce_scatter", "send_receive", "other", "copies", "idle")
"""Parts of a step; ``reduce_scatter`` and all-gathers are one, ``send_receive`` are transfers,
exchanges and rings."""

_NCCL = re.compile(r"^nccl\w*Kernel_(AllReduce|AllGather|ReduceScatter|SendRecv)?", re.ASCII)
_KINDS = {
    "AllReduce": "all_reduce",
    "AllGather": "reduce_scatter",
    "ReduceScatter": "reduce_scatter",
    "SendRecv": "send_receive",
    None: "other",
}
_COPIES = ("gpu_memcpy", "gpu_memset")
_STEPS = ("gpu_user_annotation", "user_annotation")
_HEAD_BYTES = 1 << 26
_GAP = re.compile(r"[\s,]*")
_LISTS = re.compile(r'"(traceEvents|nodes)"\s*:\s*\[')
_DURATIONS = {"traceEvents": "dur", "nodes": "exclusive_dur"}
"""Field with what an event takes, us, by the list that holds the events."""
_Run = tuple[str, int, int, Any]
_NUMBER = re.compile(r"(\d{1,9})\D*$")


@dataclass(frozen=True, slots=True)
class RankTrace:
    """A step of a rank.

    Parameters
    ----------
    name : str
        Of the file.
    rank, ranks : int or None
        Its number among how many; None where the file does not say.
    steps : int
        That it is the mean of; 0 where none is marked and all of the trace is one.
    seconds : dict of str to float
        By `TERMS`, adding up to a step.
    hidden_share : float or None
        Of the time in which anything is sent, that in which the device computes too; None where
        nothing is sent.
    """

    name: str
    rank: int | None
    ranks: int | None
    steps: int
    seconds: dict[str, float]
    hidden_share: float | None


def read_trace(path: Path) -> RankTrace:
    """Read a trace, event by event.

    Raises
    ------
    InputError
        If it is no such trace, or has no device's kernel with a duration.
    """
    spans = {term: array("q") for term in (*TERMS, *_STEPS)}
    head, events, list_name = _events(path)
    is_linked = list_name == "nodes"
    ran = _runs(events, _DURATIONS[list_name])
    for term, first, last, _ in _played(ran) if is_linked else ran:
        spans[term].extend((first, last))
    by_term = {term: np.array(ends, np.int64).reshape(-1, 2) for term, ends in spans.items()}
    runs = np.concatenate([by_term[term] for term in TERMS])
    require(
        len(runs),
        str(path),
        "must hold kernels of a device with their durations",
        "a trace without any",
        "profile with ProfilerActivity.CUDA",
    )
    marks = next((by_term[kind] for kind in _STEPS if len(by_term[kind])), runs)
    first, last, steps = marks[:, 0].min(), marks[:, 1].max(), 0 if marks is runs else len(marks)
    spans_of = [np.clip(by_term[term], first, last) for term in TERMS[:-1]]
    covered = [_covered(np.concatenate(spans_of[:n])) for n in range(1, len(TERMS))]
    taken_s = np.diff([0, *covered, last - first]) / max(steps, 1) / 1e9
    seconds = dict(zip(TERMS, taken_s.tolist(), strict=True))
    sent, exposed = _covered(np.concatenate(spans_of[1:-1])), covered[-2] - covered[0]
    number = _NUMBER.search(path.stem)
    return RankTrace(
        str(path),
        (int(number[1]) if number else None) if is_linked else _told(head, "rank"),
        _told(head, "world_size"),
        steps,
        seconds,
        1.0 - exposed / sent if sent else None,
    )


def _runs(events: Iterator[Mapping[str, Any]], duration: str) -> Iterator[_Run]:
    """Yield term, begin and end, ns, and stream of what has times."""
    for event in events:
        term, begins, taken = _term(event), event.get("ts"), event.get(duration)
        if term and isinstance(begins, int | Decimal) and isinstance(taken, int | Decimal):
            first = int(1000 * begins)
            yield term, first, first + int(1000 * taken), event.get("stream")


def _played(runs: Iterable[_Run]) -> Iterator[_Run]:
    """Yield the same, each when it is launched and its stream is free."""
    free_at: dict[Any, int] = {}
    for term, launched, end, stream in sorted(runs, key=itemgetter(1)):
        first = max(launched, free_at.get(stream, launched))
        free_at[stream] = first + end - launched
        yield term, first, free_at[stream], stream


def _told(head: str, name: str) -> int | None:
    """Return a number of ``distributedInfo``."""
    hit = re.search(rf'"distributedInfo"[^}}\]]*?"{name}"\s*:\s*(\d{{1,9}})', head)
    return int(hit[1]) if hit else None


def _term(event: Mapping[str, Any]) -> str:
    """Return which part an event belongs to; empty for those that are none."""
    kind, name = str(event.get("cat", "")).lower(), str(event.get("name", ""))
    if kind == "kernel":
        hit = _NCCL.match(name)
        return _KINDS[hit[1]] if hit else "compute"
    is_step = kind in _STEPS and name.startswith("ProfilerStep#")
    return kind if is_step else "copies" if kind in _COPIES else ""


def _covered(spans: IntArray) -> int:
    """Return how long at least one of some spans lasts."""
    begins, ends = spans[np.argsort(spans[:, 0], kind="stable")].T
    until = np.maximum.accumulate(np.append(begins[:1], ends))
    return int(np.maximum(0, until[1:] - np.maximum(begins, until[:-1])).sum())


def _events(path: Path) -> tuple[str, Iterator[Mapping[str, Any]], str]:
    """Return what stands before the events, these one by one, and the name of their list."""
    blocks, text = codecs.iterdecode(file_blocks(path), "utf-8", "replace"), ""
    while not (hit := _LISTS.search(text)):
        block = next(blocks, "")
        require(
            block and len(text) < _HEAD_BYTES,
            str(path),
            "must be a trace of PyTorch's profiler or what chakra_trace_link makes of one",
            "other text",
            "name its file",
        )
        text += block
    return text[: hit.start()], _decoded(str(path), text[hit.end() :], blocks), hit[1]


def _decoded(name: str, text: str, blocks: Iterator[str]) -> Iterator[Mapping[str, Any]]:
    """Yield objects of an array that goes on in blocks; fractions as they are written."""
    decode, at = json.JSONDecoder(parse_float=Decimal).raw_decode, 0
    while True:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]  # matches nothing too
        if text.startswith("]", at):
            return
        try:
            event, at = decode(text, at)
            yield event if isinstance(event, dict) else {}
        except (ValueError, RecursionError) as error:
            if not (block := next(blocks, "")):
                rule = "must be whole", "a trace that is cut off", "copy it again"
                raise InputError(name, *rule) from error
            text, at = text[at:] + block, 0
