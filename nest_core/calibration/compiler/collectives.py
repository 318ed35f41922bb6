"""Collectives of a program as XLA prints it after all passes, loops counted as often as they run.

A gather that XLA has turned into a ring counts as the permutes of the ring. A fusion that adds up a
tensor and keeps a part of it is a reduce-scatter. Bytes are those of the whole buffer: what an
all-gather makes, what an all-reduce or a reduce-scatter adds up, what a permute sends.
"""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

__all__ = ["KINDS", "collectives_of_program"]

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "collective_permute")

_CALL = re.compile(
    r"= (?P<shapes>.*?) (?P<kind>all-gather|reduce-scatter|all-reduce|all-to-all|"
    r"collective-permute)(?P<start>-start)?\((?P<rest>.*)"
)
_SHAPE = re.compile(r"[a-z]+(\d+)\w*\[([\d,]*)\]")
_AXES = re.compile(r"mesh\[(.*?)\] \{(.*?)\}")
_DEGREE = re.compile(r"'(\w+)'=(\d+)")
_INNER = re.compile(r"(?:calls|body|to_apply)=%?([\w.\-]+)")
_CONDITION = re.compile(r"condition=%?([\w.\-]+)")
_OPERATION = re.compile(r"%([\w.\-]+) = .*? (constant|add|copy|tuple)\(([^)]*)\)")
_LIMIT = re.compile(r"[su]32\[\]\S* constant\((\d+)\)")
_COUNTER = re.compile(r"get-tuple-element\(.*index=(\d+)")
_NAME = re.compile(r"%([\w.\-]+)")
_SCATTER = "all-reduce-scatter"


def collectives_of_program(text: str) -> dict[str, tuple[float, float]]:
    """Return how often each kind of `KINDS` runs, and the bytes of all its buffers.

    Examples
    --------
    >>> collectives_of_program('''
    ... ENTRY %main (x: f32[4]) -> f32[8] {
    ...   %g = f32[8]{0} all-gather(%x), replica_groups={{0,1}}, dimensions={0}
    ... }
    ... ''')
    {'all_gather': (1.0, 32.0)}
    """
    bodies: dict[str, list[str]] = {}
    entry = name = ""
    for line in text.splitlines():
        if line[:1] in "%E" and line.endswith("{"):
            name = line.removeprefix("ENTRY ").split()[0].lstrip("%")
            bodies[name], entry = [], name if line.startswith("ENTRY") else entry
        elif name:
            bodies[name].append(line)

    @cache
    def calls(name: str) -> tuple[tuple[str, float, float], ...]:
        return tuple(_calls(name, bodies, calls))

    sent = calls(entry) if entry else ()
    return {
        kind: (
            sum(number for name, number, _ in sent if name == kind),
            sum(size for name, _, size in sent if name == kind),
        )
        for kind in KINDS
        if any(name == kind for name, _, _ in sent)
    }


def _calls(
    name: str, bodies: dict[str, list[str]], calls: Any
) -> Iterator[tuple[str, float, float]]:
    """Yield kind, number and bytes of what a computation and those that it calls send."""
    for line in bodies.get(name, ()):
        if match := _CALL.search(line):
            kind = "reduce-scatter" if name.startswith(_SCATTER) else match["kind"]
            yield kind.replace("-", "_"), 1.0, _size(match)
            continue
        condition = _CONDITION.search(line)
        for inner in _INNER.findall(line):
            times = _trips(bodies.get(condition[1], ()), bodies.get(inner, ())) if condition else 1
            for kind, number, size in calls(inner):
                yield kind, times * number, times * size


def _trips(condition: Sequence[str], body: Sequence[str]) -> int:
    """Return how often a loop runs whose counter begins at 0; that of a ring may grow by two."""
    limit, place = (
        next(map(int, pattern.findall("\n".join(condition))), otherwise)
        for pattern, otherwise in ((_LIMIT, 1), (_COUNTER, 0))
    )
    operations = {
        name: (kind, operands) for name, kind, operands in _OPERATION.findall("\n".join(body))
    }
    name = next(reversed(operations), "")  # from the root, which hands the counter on
    while operations.get(name, ("",))[0] in ("tuple", "copy"):
        name, place = _NAME.findall(operations[name][1])[place], 0
    terms = [
        operations.get(term, ("", "")) for term in _NAME.findall(operations.get(name, ("", ""))[1])
    ]
    return math.ceil(limit / next((int(n) for kind, n in terms if kind == "constant"), 1))


def _size(match: re.Match[str]) -> float:
    """Return the bytes of a call's whole buffer; the result of a reduce-scatter is a rank's."""
    sizes = [
        int(bits) / 8 * math.prod(int(n) for n in dims.split(",") if n)
        for bits, dims in _SHAPE.findall(match["shapes"])
    ] or [0.0]
    axes = _AXES.search(match["rest"])
    if match["kind"] != "reduce-scatter" or axes is None:
        return max(sizes) if match["start"] else sum(sizes)
    degrees = dict(_DEGREE.findall(axes[1]))
    return sum(sizes) * math.prod(
        int(degrees[axis]) for axis in axes[2].replace("'", "").split(",")
    )
