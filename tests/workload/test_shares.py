"""Parameters, FLOP and kept activations of ranks: the original's, and the documented copies."""

from __future__ import annotations

from typing import Any

import pytest
from small_models import FAMILIES, KINDS, MIXTURES, small
from strategy_cases import BATCH, EQUIVALENCES, TOKENS, strategy_of

from nest_core.workload import Graph, Node, Strategy, chain, layer_graph, load_trace
from nest_core.workload.models import sizes


def _count(dims: Any, at: dict[str, float], ranks: dict[str, float]) -> float:
    total = 1.0
    for dim in dims:
        for part in dim:
            total *= part if isinstance(part, int) else at[part] / ranks.get(part, 1.0)
    return total


def _expected(node: Node, graph: Graph, strategy: Strategy, kv_heads: int) -> dict[str, float]:
    """What a rank's share of every symbol is on a node, from the strategies' definitions.

    Written down once more here, by node and not by symbol: what lies between a column and a row
    projection is divided, whatever else is done by every tensor-parallel rank.
    """
    widths = {"heads", "kv_heads", "ffn", "shared_ffn", "vocabulary"}
    if strategy.etp == strategy.tp:
        widths.add("expert_ffn")
    near = [node.shape, *node.weights, *(graph[name].shape for name in node.inputs)]
    seen = {part for shape in near for dim in shape for part in dim}
    ranks: dict[str, float] = {}
    if seen & widths:
        ranks = {name: float(strategy.tp) for name in widths}
        ranks["kv_heads"] = float(min(strategy.tp, kv_heads))
    elif strategy.sp:
        ranks = {"sequence": float(strategy.tp), "slots": float(strategy.tp)}
    for name in ("sequence", "slots"):
        ranks[name] = ranks.get(name, 1.0) * strategy.cp
    own = {part for shape in (node.shape, *node.weights) for dim in shape for part in dim}
    if {"experts", "slots"} <= own and node.op != "dispatch":
        ranks["experts"] = float(strategy.ep)
        ranks["slots"] /= strategy.ep * (strategy.imbalance if strategy.ep > 1 else 1.0)
    return ranks


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("family", "kind", "case"), EQUIVALENCES)
@pytest.mark.parametrize("imbalance", [1.0, 1.5])
def test_parameters_and_products_over_ranks_are_the_originals_and_their_copies(
    family, kind, case, imbalance
):
    """Copies: norms, biases of row projections, router, latent projections, key and value heads
    beyond their number; context-parallel ranks hold all weights. With an imbalance the busiest
    rank is meant, and experts do that much more."""
    from nest_core.workload.operators import operators

    strategy = strategy_of(case, imbalance=imbalance, fused=False, joined=False)
    model = small(family)
    at = sizes(model, BATCH, TOKENS)
    original = load_trace(family)[kind]
    found = {each.name: each for each in operators(layer_graph(model, kind, strategy), at, 2.0)}
    whole = {each.name: each for each in operators(original, at, 2.0)}
    for node in original.nodes:
        if node.op in ("input", "reshape"):
            continue
        share = _expected(node, original, strategy, model.kv_heads)
        weights = sum(_count(weight, at, share) for weight in node.weights)
        assert found[node.name].parameters == pytest.approx(weights, rel=1e-12), node.name
        if whole[node.name].flops:
            (kernel,) = (each for each in found[node.name].forward if each.flops)
            (back, *_) = (each for each in found[node.name].backward if each.flops)
            before = whole[node.name].forward[0].flops
            if node.op == "attention":
                heads = 1 if node.function == "index" else strategy.tp
                tokens = strategy.tp if node.function == "index" and strategy.sp else 1
                part = 1.0 / heads / tokens / strategy.cp
            else:
                tokens = (*node.shape[:-1], *node.weights[0][-2:])
                part = _count(tokens, at, share) / _count(tokens, at, {})
            assert kernel.flops == pytest.approx(part * before, rel=1e-12), node.name
            assert back.flops / kernel.flops == pytest.approx(
                whole[node.name].backward[0].flops / before
            )


DIVIDED = [
    pytest.param(family, kind, case, id=f"{family} {kind} {case}")
    for family, kind in KINDS
    for case in (
        {"tp": 2, "sp": True},
        {"tp": 2, "sp": True, "cp": 2},
        {"cp": 2},
        {"cp": 4, "context": "all_gather"},
        {"ep": 4},
        {"tp": 2, "sp": True, "ep": 2, "cp": 2},
    )
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("family", "kind", "case"), DIVIDED)
@pytest.mark.parametrize("attention", ["flash", "unfused"])
def test_kept_activations_divide_among_ranks(family, kind, case, attention):
    """With sequence and context parallelism nothing is kept twice; expert-parallel ranks have
    batches of their own, and keep together what they would alone."""
    model = small(family)

    def kept(strategy: Strategy) -> list[float]:
        layer = next(layer for layer, _ in chain(model, strategy).runs if layer.kind == kind)
        return [layer.kept_bytes(recompute) for recompute in ("none", "selective", "full")]

    alone = kept(strategy_of({"attention": attention}))
    share = kept(strategy_of(case, attention=attention))
    ranks = case.get("tp", 1) * case.get("cp", 1)
    assert [ranks * size for size in share] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tp", [2, 4])
def test_without_sequence_parallelism_only_whole_tensors_are_kept_twice(family, tp):
    """The difference to an even share is tp - 1 copies of what lies outside the regions."""
    model = small(family)
    for attention in ("flash", "unfused"):
        even = chain(model, strategy_of({"tp": tp, "sp": True, "attention": attention}))
        plain = chain(model, strategy_of({"tp": tp, "attention": attention}))
        for (thin, _), (thick, _) in zip(even.runs, plain.runs, strict=True):
            saved = [
                dict(entry for each in layer.operators for entry in each.kept)
                for layer in (thin, thick)
            ]
            assert saved[0].keys() == saved[1].keys()
            for name, size in saved[0].items():
                assert saved[1][name] in (pytest.approx(size), pytest.approx(tp * size)), name


@pytest.mark.parametrize("family", MIXTURES)
def test_the_busiest_rank_keeps_and_does_more(family):
    """Its experts' tokens times the imbalance: products and what they keep; the rest as it was."""
    model = small(family)
    balanced, busy = (
        next(
            layer
            for layer, _ in chain(model, strategy_of({"ep": 2}, imbalance=imbalance)).runs
            if layer.kind == "moe_block"
        )
        for imbalance in (1.0, 1.5)
    )
    graph = layer_graph(model, "moe_block", strategy_of({"ep": 2}))
    for before, after in zip(balanced.operators, busy.operators, strict=True):
        grown = "slots" in graph[before.name].written and before.op != "dispatch"
        assert after.flops == pytest.approx(before.flops * (1.5 if grown else 1.0))
        if before.op == "grouped_linear" or before.name == "experts.activation":
            for (name, size), (other, bigger) in zip(before.kept, after.kept, strict=True):
                assert name == other
                assert bigger == pytest.approx(1.5 * size), (before.name, name)
        elif before.op == "combine":  # what comes back is that of a rank's own tokens
            assert after.kept == before.kept
    assert busy.parameters == balanced.parameters
    assert busy.expert_parameters == balanced.expert_parameters


@pytest.mark.parametrize("family", MIXTURES)
@pytest.mark.parametrize("ep", [1, 2])
def test_capacity_sizes_every_expert(family, ep):
    """Filled or not: 1.25 times the slots in dispatch, products and what is kept; no imbalance."""
    model = small(family)
    plain, padded = (
        next(
            layer
            for layer, _ in chain(model, strategy_of({"ep": ep}, capacity=capacity, **more)).runs
            if layer.kind == "moe_block"
        )
        for capacity, more in ((0.0, {}), (1.25, {"imbalance": 3.0}))
    )
    for before, after in zip(plain.operators, padded.operators, strict=True):
        if before.op == "grouped_linear":
            assert after.flops == pytest.approx(1.25 * before.flops)
            for (_, size), (_, bigger) in zip(before.kept, after.kept, strict=True):
                assert bigger == pytest.approx(1.25 * size)
        elif before.op == "dispatch":
            assert after.bytes > before.bytes
    sent = [
        {call.op: call.bytes for call in layer.collectives if call.axis == "ep"}
        for layer in (plain, padded)
    ]
    for op, size in sent[0].items():
        assert sent[1][op] == pytest.approx(1.25 * size)
