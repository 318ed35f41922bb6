"""Nodes in the making: lengths are still numbers, names not yet final."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from nest_core.workload.tracing.sizes import symbolise

__all__ = ["Shape", "TraceEntry", "as_node", "free_name", "tidied"]

Shape = tuple[int, ...]


@dataclass(slots=True)
class TraceEntry:
    """A node of `nest_core.workload.graph` before its lengths are symbols.

    ``title`` is the name wanted; ``name`` tells entries of one title apart while they are made.
    """

    name: str
    op: str
    function: str
    inputs: list[str]
    shape: Shape
    weights: list[Shape] = field(default_factory=list)
    causal: bool = False
    title: str = ""


def tidied(entries: Mapping[str, TraceEntry], output: str) -> list[TraceEntry]:
    """What the output needs, and the first input, in order and under their final names.

    A view of a view is one view. The output comes last.
    """
    for entry in entries.values():
        while entry.op == "reshape" and entries[entry.inputs[0]].op == "reshape":
            entry.inputs = entries[entry.inputs[0]].inputs
    needed = {next(iter(entries))}
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting.extend(entries[name].inputs)
    needed_entries = [entry for name, entry in entries.items() if name in needed]
    needed_entries.sort(key=lambda entry: entry.name == output)
    return _renamed(needed_entries)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or with the lowest number that makes it unique."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _renamed(entries: list[TraceEntry]) -> list[TraceEntry]:
    """Entries by their titles: names that only dropped entries had taken are free again."""
    names: dict[str, str] = {}
    for entry in entries:
        names[entry.name] = free_name(entry.title, set(names.values()))
    for entry in entries:
        entry.name = names[entry.name]
        entry.inputs = [names[name] for name in entry.inputs]
    return entries


def as_node(entry: TraceEntry, symbols: Mapping[str, int]) -> dict[str, Any]:
    """The entry as a trace file has it; empty fields are left out."""

    def symbolic(shape: Shape) -> list[list[str | int]]:
        return [symbolise(length, symbols) for length in shape]

    node: dict[str, Any] = {"name": entry.name, "op": entry.op}
    if entry.function:
        node["function"] = entry.function
    if entry.inputs:
        node["inputs"] = entry.inputs
    node["shape"] = symbolic(entry.shape)
    if entry.weights:
        node["weights"] = [symbolic(weight) for weight in entry.weights]
    if entry.causal:
        node["causal"] = True
    return node
