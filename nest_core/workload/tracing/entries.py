"""Nodes in the making: lengths are still numbers, names not yet final.

Which operators of an exported graph run in which module, and in which fused one.

Numbers back to products of symbols.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any

from torch import fx, nn

from nest_core.documents.errors import require
from nest_core.workload.tracing.operators import is_idle

__all__ = [
    "FusedGroup",
    "Shape",
    "TraceEntry",
    "as_node",
    "free_name",
    "fused_groups",
    "module_path",
    "symbolise",
    "tidied",
]

_MOST_SYMBOLS = 3
_MOST_FACTOR = 8


def symbolise(length: int, symbols: Mapping[str, int]) -> list[str | int]:
    """Return a dimension as a product of symbols and, rarely, a whole number.

    Exact products win, of as few symbols as possible, earlier symbols first; then products
    times a factor of at most 8, as in a projection to queries, keys and values at once. A
    length that is neither stays a number; 1 is the empty product.

    Parameters
    ----------
    length : int
    symbols : mapping of str to int
        Sizes above 1.

    Examples
    --------
    >>> symbolise(35, {"heads": 5, "head_dim": 7, "hidden": 11})
    ['heads', 'head_dim']
    >>> symbolise(33, {"heads": 5, "head_dim": 7, "hidden": 11})
    [3, 'hidden']
    >>> symbolise(1, {"hidden": 11}), symbolise(13, {"hidden": 11})
    ([], [13])
    """
    return list(_symbolise(length, tuple(symbols.items())))


@lru_cache(maxsize=4096)
def _symbolise(length: int, symbols: tuple[tuple[str, int], ...]) -> tuple[str | int, ...]:
    if length <= 1:
        return () if length == 1 else (length,)
    dividing = [(name, size) for name, size in symbols if length % size == 0]
    scaled: tuple[str | int, ...] | None = None
    for number in range(1, _MOST_SYMBOLS + 1):
        for chosen in combinations(dividing, number):
            product = math.prod(size for _, size in chosen)
            if length % product:
                continue
            names = tuple(name for name, _ in chosen)
            factor = length // product
            if factor == 1:
                return names
            if scaled is None and factor <= _MOST_FACTOR:
                scaled = (factor, *names)
    return scaled or (length,)


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
    """Return what the output needs, and the first input, in order and under their final names.

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
    """Return the name, or with the lowest number that makes it unique."""
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
    """Return the entry as a trace file has it; empty fields are left out."""

    def symbolic(shape: Shape) -> list[list[str | int]]:
        return [symbolise(length, symbols) for length in shape]

    node = {
        "name": entry.name,
        "op": entry.op,
        "function": entry.function,
        "inputs": entry.inputs,
        "shape": symbolic(entry.shape),
        "weights": [symbolic(weight) for weight in entry.weights],
        "causal": entry.causal,
    }
    return {key: value for key, value in node.items() if value or key == "shape"}


@dataclass(frozen=True, slots=True)
class FusedGroup:
    """One call of a fused module.

    Parameters
    ----------
    path : str
        Of the module; a repeated call has its number after it.
    module : nn.Module
    nodes : frozenset of fx.Node
        Its operators.
    output : fx.Node or None
        The one whose value is used outside; None where none is.
    """

    path: str
    module: nn.Module
    nodes: frozenset[fx.Node]
    output: fx.Node | None


def fused_groups(root: nn.Module, graph: fx.Graph) -> dict[fx.Node, FusedGroup]:
    """Return the group of every operator that runs in a module with ``fused = True``.

    Raises
    ------
    InputError
        If a fused module returns several tensors.
    """
    members: dict[tuple[str, str], list[fx.Node]] = {}
    modules: dict[tuple[str, str], nn.Module] = {}
    for node in graph.nodes:
        for key, path in _stack(node):
            module = root.get_submodule(path.partition("@")[0])
            if getattr(module, "fused", False):
                members.setdefault((key, path), []).append(node)
                modules[key, path] = module
                break
    group_of = {}
    for (key, path), nodes in members.items():
        plain = path.partition("@")[0] or str(modules[key, path].op)
        inside = frozenset(nodes)
        leaving = [node for node in nodes if not is_idle(node) and _leaves(node, inside)]
        require(
            len(leaving) <= 1,
            f"fused module {plain}",
            "must return one tensor",
            f"{len(leaving)} that are used",
            "return one tensor, or take fused = True away",
        )
        group = FusedGroup(plain, modules[key, path], inside, leaving[0] if leaving else None)
        group_of.update(dict.fromkeys(nodes, group))
    return group_of


def module_path(node: fx.Node) -> str:
    """Path of the innermost module that an operator runs in; empty for the outermost."""
    stack = _stack(node)
    return stack[-1][1].partition("@")[0] if stack else ""


def _stack(node: fx.Node) -> list[tuple[str, str]]:
    """Modules around a node, outermost first: a key that tells calls apart, and the path."""
    stack: dict[Any, Any] = node.meta.get("nn_module_stack") or {}
    return [(str(key), str(entry[0])) for key, entry in stack.items()]


def _leaves(node: fx.Node, inside: frozenset[fx.Node]) -> bool:
    """Whether a value is used outside, also after casts that do nothing."""
    return any(
        user not in inside or (is_idle(user) and _leaves(user, inside)) for user in node.users
    )
