"""Sub-graph strategies: rewrites of an operator graph into what one rank runs.

Every strategy is a function ``(graph, strategy, sizes) -> graph`` behind the registry
`STRATEGIES`. It says which symbols a rank holds only a part of, on which nodes, and leaves the
collectives that follow from that to `connected`. So strategies can be applied in any order, and
others can be added with `register` (the paper's section 3.1).

References
----------
Shoeybi et al. 2019 (arXiv:1909.08053), tensor parallelism; Korthikanti et al. 2022
(arXiv:2205.05198), sequence parallelism; Liu et al. 2023 (arXiv:2310.01889), ring attention;
Llama 3 (arXiv:2407.21783), section 3.3.2, all-gathered keys and values; Lepikhin et al. 2020
(arXiv:2006.16668), expert parallelism.
"""

from collections.abc import Callable
from dataclasses import replace

from nest_core.workload.graph import Graph, Sizes
from nest_core.workload.strategies.edges import connected
from nest_core.workload.strategies.expert import expert_parallel, expert_tensor_parallel
from nest_core.workload.strategies.kernels import (
    fused_elementwise,
    joined_projections,
    scaled_activations,
    unfused_attention,
)
from nest_core.workload.strategies.strategy import Strategy
from nest_core.workload.strategies.tensor import (
    context_parallel,
    sequence_parallel,
    tensor_parallel,
)

__all__ = [
    "STRATEGIES",
    "Rewrite",
    "Strategy",
    "connected",
    "register",
    "rewritten",
    "without_experts",
]

Rewrite = Callable[[Graph, Strategy, Sizes], Graph]
"""A strategy; it returns the graph unchanged where it does not apply."""

STRATEGIES: dict[str, Rewrite] = {
    "attention": unfused_attention,
    "fusion": fused_elementwise,
    "projections": joined_projections,
    "scaling": scaled_activations,
    "tp": tensor_parallel,
    "sp": sequence_parallel,
    "cp": context_parallel,
    "ep": expert_parallel,
    "etp": expert_tensor_parallel,
}
"""By name, in the order in which `rewritten` applies them."""


def register(name: str, rewrite: Rewrite) -> None:
    """Add a strategy of one's own; it is applied after those that are there.

    Parameters
    ----------
    name : str
    rewrite : Rewrite
        Must return a graph whose output has the shape of the original's.
    """
    STRATEGIES[name] = rewrite


def rewritten(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Return what one rank runs of a layer: all registered strategies, one after another."""
    for rewrite in STRATEGIES.values():
        graph = rewrite(graph, strategy, sizes)
    return graph


def without_experts(rewrite: Rewrite, strategy: Strategy) -> Strategy:
    """Return what those that `rewritten` applies before ``rewrite`` read of a strategy.

    Of how experts are divided only whether that is as tensor parallelism divides; and not even
    ``ep`` before the rewrite that says so.
    """
    if rewrite not in (expert_parallel, expert_tensor_parallel):
        return strategy
    ep = 1 if rewrite is expert_parallel else strategy.ep
    other = 2 if strategy.tp == 1 else 1
    return replace(strategy, ep=ep, etp=strategy.tp if strategy.etp == strategy.tp else other)
