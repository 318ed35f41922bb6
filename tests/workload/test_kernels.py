"""Which kernels run: stored scores, element-wise chains, joined projections."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_models import DENSE, FAMILIES, KINDS, small

from nest_core.workload import Strategy, chain, layer_graph, load_model, load_trace

AT = {"micro_batch": 2, "sequence": 16}


def of(**more: object) -> Strategy:
    return Strategy(**{**AT, **more})  # type: ignore[arg-type]


def functions(graph: object) -> list[str]:
    return [
        node.function or node.op
        for node in graph.nodes  # type: ignore[attr-defined]
        if node.op in ("elementwise", "dropout")
    ]


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_flash_attention_stays_one_kernel(family, kind):
    graph = layer_graph(small(family), kind, of(fused=False))
    ops = [node.op for node in graph.nodes]
    indexed = any(node.function == "index" for node in graph.nodes)
    assert ops.count("attention") == (1 + indexed if "block" in kind else 0)
    assert "softmax" not in ops
    assert "matmul" not in ops


@pytest.mark.parametrize(("family", "kind"), [pair for pair in KINDS if "block" in pair[1]])
def test_stored_scores_take_the_place_of_attention(family, kind):
    """Scores, softmax, dropout where the module has one, values; readers see the same name."""
    original = load_trace(family)[kind]
    graph = layer_graph(small(family), kind, of(attention="unfused", fused=False, joined=False))
    core = next(node for node in original.nodes if node.name == "attention.core")
    if core.function == "delta":  # linear attention has no scores
        assert graph.nodes == original.nodes
        return
    made = [node for node in graph.nodes if node.name.startswith(core.name)]
    ops = [node.op for node in made]
    latent = ["matmul", "matmul", "elementwise"] if len(core.inputs) == 5 else ["matmul"]
    dropped = ["dropout"] if core.function == "dropout" else []
    assert ops == [*latent, "softmax", *dropped, "matmul"]
    assert made[-1].name == core.name
    assert made[-1].shape == core.shape
    assert made[0].shape[-1] == ("keys",)
    assert [node for node in graph.nodes if node not in made] == [
        node for node in original.nodes if node is not core
    ]


@pytest.mark.parametrize(("family", "kind"), KINDS)
def test_fusion_leaves_work_parameters_and_what_is_kept(family, kind):
    """Only traffic and launches fall: a tensor between two element-wise passes is not written."""
    model = small(family)
    for attention in ("flash", "unfused"):
        found = []
        for fused in (False, True):
            strategy = of(fused=fused, joined=fused, attention=attention, tp=2)
            layers = chain(model, strategy).runs
            found.append(next(layer for layer, _ in layers if layer.kind == kind))
        apart, fused_layer = found
        for figure in ("parameters", "expert_parameters", "collectives", "input_bytes"):
            assert getattr(apart, figure) == getattr(fused_layer, figure)
        for recompute in ("none", "selective", "full"):
            assert apart.kept_bytes(recompute) == fused_layer.kept_bytes(recompute)
        flops, traffic, launches = (
            [sum(value(each) for each in layer.operators) for layer in found]
            for value in (
                lambda each: each.flops,
                lambda each: each.bytes,
                lambda each: len(each.forward),
            )
        )
        assert flops[0] == flops[1]
        assert traffic[1] <= traffic[0]
        assert launches[1] <= launches[0]
        if "block" in kind:
            assert launches[1] < launches[0]


def test_dropout_and_residual_run_together():
    """Megatron-LM's bias-dropout-add; nothing else of a GPT block is next to one another."""
    graph = layer_graph(small("gpt"), "block", of())
    assert functions(graph) == ["dropout+add", "gelu", "dropout+add"]
    assert functions(load_trace("gpt")["block"]) == ["dropout", "add", "gelu", "dropout", "add"]


def test_a_tensor_with_two_readers_is_written():
    """The residual after attention is read by norm and residual: it is no part of a chain."""
    for family in sorted({*DENSE} - {"cohere2"}):  # whose halves run side by side
        graph = layer_graph(small(family), "block", of())
        names = {node.name for node in graph.nodes}
        assert {"attention_residual", "mlp_residual"} <= names


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("case", [{}, {"tp": 2}, {"tp": 2, "sp": True, "ep": 2, "cp": 2}], ids=str)
def test_projections_of_one_tensor_are_one_product(family, case):
    """Query, key and value; gate and up. What reads another tensor has a product of its own."""
    for kind in load_trace(family):
        if "block" not in kind:
            continue
        graph = layer_graph(small(family), kind, of(**case))
        for node in graph.nodes:
            if node.together:
                head = graph[node.together]
                assert not head.together
                assert (head.inputs, head.op) == (node.inputs, node.op)
        joined = {node.name: node.together for node in graph.nodes if node.together}
        if "kv_rank" not in {part for node in graph.nodes for part in node.symbols}:
            assert joined["attention.key"] == joined["attention.value"] == "attention.query"
        for module in ("mlp", "experts", "shared"):
            if f"{module}.gate" in {node.name for node in graph.nodes}:
                assert joined[f"{module}.up"] == f"{module}.gate"
    apart = layer_graph(small(family), kind, of(joined=False, **case))
    assert not any(node.together for node in apart.nodes)


@pytest.mark.parametrize(
    ("micro_batch", "tp", "fused"),
    [(1, 4, True), (1, 8, False), (2, 8, True), (3, 8, False), (1, 16, False), (4, 16, True)],
)
def test_scores_are_masked_by_a_kernel_of_their_own_where_matrices_are_no_four(
    micro_batch, tp, fused
):
    """Megatron-LM's fused softmax takes four matrices at once, PyTorch's five kernels any."""
    model = load_model("gpt3-175b")
    model = replace(model, heads=16, kv_heads=16, head_dim=model.hidden // 16)
    strategy = Strategy(tp=tp, micro_batch=micro_batch, sequence=2048, attention="unfused")
    (layer,) = (layer for layer, _ in chain(model, strategy).runs if layer.kind == "block")
    (softmax,) = (each for each in layer.operators if each.op == "softmax")
    scores = micro_batch * 16 / tp * 2048**2
    assert len(softmax.forward) == len(softmax.backward) == (1 if fused else 5)
    moved = (4, 6) if fused else (36, 40)
    for kernels, each in zip((softmax.forward, softmax.backward), moved, strict=True):
        assert sum(kernel.bytes for kernel in kernels) == each * scores
