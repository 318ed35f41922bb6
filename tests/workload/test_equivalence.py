"""Numerical equivalence: ranks that run a rewritten graph compute what one rank would.

`rank_machine` runs both graphs in 64-bit floats, forward and backward; outputs, gradients of
inputs and gradients of weights of every rank are compared.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from strategy_cases import CASES, EQUIVALENCES, EXPERT_CASES, Run, strategy_of

from nest_core.workload import Graph, Node, layer_graph, load_trace


@pytest.mark.sampled(6)
@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize(("family", "kind", "case"), EQUIVALENCES)
def test_ranks_compute_what_one_would(family, kind, case):
    """A failure: a collective is missing, superfluous or of the wrong kind, in either pass."""
    strategy = strategy_of(case)
    run = Run(family, kind)
    run.compare(layer_graph(run.model, kind, strategy), strategy)


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize("case", [CASES[name] for name in CASES if name != "all-gather"], ids=str)
@pytest.mark.parametrize("family", ["gpt", "llama", "bert", "mixtral", "deepseek_v3"])
@pytest.mark.sampled(4)
def test_stored_scores_are_divided_like_fused_ones(family, case):
    """Attention as products around a score matrix, under every strategy."""
    for kind in ("block", "moe_block"):
        if kind in load_trace(family):
            strategy = strategy_of(case, attention="unfused")
            run = Run(family, kind)
            graph = layer_graph(run.model, kind, strategy)
            assert any(node.op == "softmax" for node in graph.nodes)
            run.compare(graph, strategy)


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize("case", [CASES["sp, ring"], EXPERT_CASES["everything"]], ids=str)
def test_no_collective_can_be_spared(case):
    """The comparison itself: without any one collective, or with one in the wrong pass, it fails.

    What it cannot see are collectives that change nothing; there are none.
    """
    strategy = strategy_of(case)
    run = Run("mixtral", "moe_block")
    graph = layer_graph(run.model, "moe_block", strategy)
    exchanged = [node for node in graph.nodes if node.op == "collective"]
    assert len(exchanged) >= 4
    for node in exchanged:
        for field in ("forward", "backward"):
            if not getattr(node, field):
                continue
            broken = replace(node, **{field: ()})
            nodes = tuple(broken if each is node else each for each in graph.nodes)
            with pytest.raises((AssertionError, RuntimeError)):
                run.compare(Graph(graph.kind, nodes), strategy)


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize("added", ["mlp.gate", "mlp.activation", "mlp_residual"])
def test_a_superfluous_all_reduce_is_seen(added):
    """The comparison itself: sums that nobody asked for change the result."""
    strategy = strategy_of({"tp": 2})
    run = Run("llama", "block")
    graph = layer_graph(run.model, "block", strategy)
    node = graph[added]
    extra = Node(
        "extra",
        "collective",
        inputs=(added,),
        shape=node.shape,
        split=node.split,
        axis="tp",
        forward=("all_reduce",),
    )
    nodes: list[Node] = []
    for each in graph.nodes:
        inputs = tuple("extra" if name == added else name for name in each.inputs)
        nodes.append(replace(each, inputs=inputs))
        if each is node:
            nodes.append(extra)
    with pytest.raises(AssertionError):
        run.compare(Graph("block", tuple(nodes)), strategy)


# The machine itself, against the modules that were traced ---------------------------------------


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize(
    "family", ["gpt", "bert", "llama", "qwen2", "qwen3", "mpt", "bloom", "deepseek_v3"]
)
def test_the_original_graph_computes_what_its_module_does(family):
    """A trace that says something else than its module would make every comparison void."""
    import torch

    from benchmarks.traces.modules import FAMILIES as MODULES
    from benchmarks.traces.sizes import Sizes

    run = Run(family, "block")
    given = {name: size for name, size in run.sizes.items() if size}
    module = MODULES[family]["block"](Sizes(**given)).double().eval()
    names = ("weight", "bias")
    with torch.no_grad():
        for (name, number), weight in run.weights.items():
            getattr(module.get_submodule(name), names[number]).copy_(weight)
        expected = module(run.inputs[0])
    _, (found,) = run.on(run.original)
    torch.testing.assert_close(found.data, expected, rtol=1e-5, atol=1e-6)
