"""Which operators of an exported graph run in which module, and in which fused one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from nest_core.documents.errors import InputError
from nest_core.workload.tracing.operators import is_idle

__all__ = ["FusedGroup", "fused_groups", "module_path"]


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
    """The group of every operator that runs in a module with ``fused = True``.

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
        if len(leaving) > 1:
            raise InputError(
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
