"""The strategies that tests run, and a graph's run with numbers on their ranks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from small_models import KINDS, small

from nest_core.workload import Strategy, load_trace
from nest_core.workload.graph import Graph, Node
from nest_core.workload.models import sizes

__all__ = ["BATCH", "CASES", "EQUIVALENCES", "EXPERT_CASES", "TOKENS", "Run", "strategy_of"]

BATCH, TOKENS = 2, 16

CASES = {
    "tp": {"tp": 2},
    "tp over kv heads": {"tp": 4},
    "sp": {"tp": 2, "sp": True},
    "sp over kv heads": {"tp": 4, "sp": True},
    "ring": {"cp": 2},
    "all-gather": {"cp": 2, "context": "all_gather"},
    "tp, ring": {"tp": 2, "cp": 2},
    "sp, ring": {"tp": 2, "sp": True, "cp": 2},
    "sp, all-gather": {"tp": 4, "sp": True, "cp": 2, "context": "all_gather"},
}
EXPERT_CASES = {
    "ep": {"ep": 2},
    "ep of all": {"ep": 4},
    "ep, cp": {"ep": 2, "cp": 2},
    "ep, tp": {"ep": 2, "tp": 2},
    "ep, sp": {"ep": 2, "tp": 2, "sp": True},
    "ep, tp, whole experts": {"ep": 2, "tp": 2, "etp": 1},
    "ep, sp, whole experts": {"ep": 2, "tp": 2, "sp": True, "etp": 1},
    "sp, whole experts": {"tp": 4, "sp": True, "etp": 1},
    "everything": {"ep": 2, "tp": 2, "sp": True, "cp": 2},
}


def strategy_of(case: dict[str, Any], **more: Any) -> Strategy:
    return Strategy(**{"micro_batch": BATCH, "sequence": TOKENS, **case, **more})


class Run:
    """A graph's outputs and gradients, on one rank or on many."""

    def __init__(self, family: str, kind: str) -> None:
        import torch

        self.model = small(family)
        at = sizes(self.model, BATCH, TOKENS)
        self.sizes = {name: int(size) for name, size in at.items()}
        self.original = load_trace(family)[kind]
        dice = torch.Generator().manual_seed(5)

        def random(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=dice, dtype=torch.float64)

        self.weights = {
            (node.name, number): random(*(self._length(dim) for dim in weight)) / 2
            for node in self.original.nodes
            for number, weight in enumerate(node.weights)
        }
        shape = (BATCH, TOKENS)
        vocabulary = self.model.vocabulary

        def tokens() -> torch.Tensor:
            return torch.randint(vocabulary, shape, generator=dice)

        ranks = range(4)
        self.targets = [tokens() for _ in ranks]
        hidden = self.model.hidden
        self.inputs = [tokens() if kind == "embedding" else random(*shape, hidden) for _ in ranks]
        self.upstream = [random(*shape, hidden) for _ in ranks]
        core = next((node for node in self.original.nodes if node.op == "attention"), None)
        width = self.model.head_dim + self.model.rope_dim
        self.settings = {"scale": width**-0.5, "causal": bool(core and core.causal)}

    def _length(self, dim: Any) -> int:
        return math.prod(part if isinstance(part, int) else self.sizes[part] for part in dim)

    def on(self, graph: Graph, tp: int = 1, cp: int = 1, ep: int = 1, first: int = 0) -> Any:
        """A machine after both passes, with its outputs."""
        import torch
        from rank_machine import Machine

        machine = Machine(self.sizes, tp, cp, ep)
        outputs = machine.run(
            graph.nodes,
            self.weights,
            lambda at: self.inputs[first + at],
            lambda at: self.targets[first + at],
            **self.settings,
        )
        gradients = [
            torch.tensor(1.0 / cp, dtype=torch.float64)
            if value.places is None
            else self.upstream[first + rank.ep][:, value.places]
            for rank, value in zip(machine.ranks, outputs, strict=True)
        ]
        torch.autograd.backward([value.data for value in outputs], gradients)
        return machine, outputs

    def compare(self, graph: Graph, strategy: Strategy) -> None:
        """The graph on its ranks against the original on one."""
        import torch

        degrees = {"tp": strategy.tp, "cp": strategy.cp, "ep": strategy.ep}
        machine, outputs = self.on(graph, **degrees)
        alone = [self.on(self.original, first=number) for number in range(strategy.ep)]
        (one,) = {rank for other, _ in alone for rank in other.ranks}

        def same(found: Any, expected: Any) -> None:
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)

        losses = [[] for _ in range(strategy.ep)]
        for rank, value in zip(machine.ranks, outputs, strict=True):
            other, (whole,) = alone[rank.ep]
            if value.places is None:
                losses[rank.ep].append(value.data)
            else:
                same(value.data, whole.data[:, value.places])
            entered = machine.entered[rank]
            if entered.data.requires_grad:
                same(entered.data.grad, other.entered[one].data.grad[:, entered.places])
        for number, found in enumerate(losses):
            if found:
                same(torch.stack(found).mean(), alone[number][1][0].data)
        for key, held in machine.slices.items():
            expected = sum(
                other.slices[key][one][1].grad
                for other, _ in alone
                if other.slices[key][one][1].grad is not None
            )
            if not isinstance(expected, int):
                same(_summed(graph[key[0]], held, expected), expected)


def _summed(node: Node, held: dict[Any, Any], like: Any) -> Any:
    """Gradients of a weight's slices put together: copies of ranks with other tokens add up."""
    import torch

    total = torch.zeros_like(like)
    shared = any(entry.axis == "tp" for entry in node.split)
    for rank, (cut, weight) in held.items():
        if weight.grad is None:
            continue
        if shared or rank.tp == 0:
            total[cut] += weight.grad
        else:  # tensor-parallel ranks that do the same have the same gradient
            torch.testing.assert_close(weight.grad, held[replace(rank, tp=0)][1].grad)
    return total


def _cases(kind: str) -> dict[str, dict[str, Any]]:
    return CASES | EXPERT_CASES if kind == "moe_block" else CASES


WHOLE_NORMS = ("minimax_m2", "olmo2", "olmoe")
"""A norm of all heads together: ranks would have to add up their squares, which is not priced."""

EQUIVALENCES = [
    pytest.param(family, kind, case, id=f"{family} {kind}: {name}")
    for family, kind in KINDS
    for name, case in _cases(kind).items()
    # Traces of linear attention and of indexers have the shapes of the rule and not its values.
    if family != "deepseek_v32" and not kind.startswith("local")
    if family not in WHOLE_NORMS or case.get("tp", 1) == 1
]
